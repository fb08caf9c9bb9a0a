"""Cost of a crawl into PostgreSQL compared with a folder, for 1, 2 and 4 workers: CPU, statements, WAL.

Generated sites of 100 pages of 4 KB with 21 links each, delay 0, no index. The server uses the same cores and waits for
its disk, as in production. CPU seconds depend on other load: rounds alternate and the minimum counts. Statements and
WAL do not depend on load.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import corpora
import product
import psycopg
from measure import descendants, load, run, table
from serving import Server, Site, serve

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import postgres_server

PAGES = 100  # of a site, with its start
BUFFERS = {"shared_buffers": "256MB", "max_wal_size": "4GB"}
_STATEMENTS = "SELECT calls, rows, total_exec_time, query FROM pg_stat_statements WHERE queryid IS NOT NULL"


class Trial(NamedTuple):
    """A crawl. For a folder the figures of the server are 0."""

    wall_s: float
    worker_s: float
    server_s: float
    statements: float
    wal_bytes: int


def sites(hosts: int) -> list[Site]:
    """Different sites without links to each other."""
    made = [corpora.generated(pages=PAGES - 1, links=21, page_bytes=4096, seed=seed)[0] for seed in range(1, hosts + 1)]
    return [Site(f"d{number}.test", one.root) for number, one in enumerate(made)]


def crawled(server: Server, place: str, workers: int, cwd: Path) -> tuple[float, float]:
    """(seconds, CPU seconds of the crawl's processes)."""
    crawl = replace(product.by_name(server.hosts, Path("PLACE"), workers), index=False)
    words = [place if word == "PLACE" else word for word in product.command(crawl)]
    cost = run(words, core=None, cwd=cwd)
    if cost.exit_code:
        sys.exit(f"the crawl failed: {cost.said[-500:]}")
    return cost.wall_s, cost.cpu_s


def in_folder(server: Server, workers: int) -> Trial:
    with tempfile.TemporaryDirectory(prefix="periplus-bench-") as folder:
        wall_s, worker_s = crawled(server, f"{folder}/kept", workers, Path(folder))
    return Trial(wall_s, worker_s, 0.0, 0, 0)


def in_database(database: postgres_server.Server, server: Server, workers: int, show: int = 0) -> Trial:
    """show: number of most expensive statements to print."""
    name = f"bench_{workers}"
    with psycopg.connect(database.dsn(), autocommit=True) as connection:
        if show:
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            connection.execute("SELECT pg_stat_statements_reset()")
        connection.execute("CHECKPOINT")
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
        before = one(connection, "SELECT pg_current_wal_lsn()")
        begun = server_cpu_s(database.process.pid)
        dsn = database.dsn()
        place = f"{dsn}{'&' if '?' in dsn else '?'}collection={name}"
        with tempfile.TemporaryDirectory(prefix="periplus-bench-") as folder:
            wall_s, worker_s = crawled(server, place, workers, Path(folder))
        server_s = server_cpu_s(database.process.pid) - begun
        wal_bytes = one(connection, f"SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '{before}')::bigint")
        statements = shown(connection, show) if show else 0
    return Trial(wall_s, worker_s, server_s, statements, int(str(wal_bytes)))


def one(connection: psycopg.Connection[tuple[object, ...]], query: str) -> object:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def shown(connection: psycopg.Connection[tuple[object, ...]], most: int) -> int:
    """Prints the most expensive statements; returns the number of all statements."""
    rows = connection.execute(f"{_STATEMENTS} ORDER BY total_exec_time DESC".encode()).fetchall()
    cells = [(calls, affected, f"{ms:.0f}", " ".join(str(text).split())[:150]) for calls, affected, ms, text in rows]
    print(table(("calls", "rows", "ms", "statement"), cells[:most]))
    return sum(int(str(row[0])) for row in rows)


def server_cpu_s(pid: int) -> float:
    """CPU seconds of the database's processes, including ended ones."""
    used = 0
    for process in descendants(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
            used += sum(map(int, fields[11 : 15 if process == pid else 13]))
    return used / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--show", type=int, default=0, help="print so many of the dearest statements, and count all")
    options = parser.parse_args()
    pages, rows = PAGES * options.hosts, []
    counted = {"shared_preload_libraries": "pg_stat_statements"} if options.show else {}
    with (
        tempfile.TemporaryDirectory(prefix="periplus-nginx-") as temp,
        serve(sites(options.hosts), Path(temp), core=None, log=False) as server,
        contextlib.closing(
            postgres_server.own_server(fsync="on", full_page_writes="on", **BUFFERS, **counted)
        ) as database,
    ):
        for workers in options.workers:
            trials: dict[str, Callable[[], Trial]] = {
                "folder": partial(in_folder, server, workers),
                "PostgreSQL": partial(in_database, database, server, workers, options.show),
            }
            done: dict[str, list[Trial]] = {name: [] for name in trials}
            for _ in range(options.rounds):
                for name, trial in trials.items():
                    done[name].append(trial())
            least = {name: min(many, key=lambda one: one.worker_s + one.server_s) for name, many in done.items()}
            folder_s = least["folder"].worker_s
            for name, best in least.items():
                rate = pages / min(trial.wall_s for trial in done[name])
                above = f"{(best.worker_s + best.server_s) / folder_s - 1:+.0%}"
                costs = (best.worker_s / pages * 1000, best.server_s / pages * 1000)
                rows.append((workers, name, rate, *costs, above, best.statements / pages, best.wal_bytes / pages))
    print(f"{pages:,} pages on {options.hosts} hosts ({load()})")
    heads = (
        "workers",
        "store",
        "pages/s",
        "CPU ms a page",
        "server's",
        "above",
        "statements a page",
        "WAL bytes a page",
    )
    print(table(heads, rows))


if __name__ == "__main__":
    main()
