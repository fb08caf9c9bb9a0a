"""What do ten questions cost in a folder and in PostgreSQL, alone and while four workers write into the same server?

CPU seconds of the command, milliseconds of its statements in the server (`pg_stat_statements`, so that writers do not
count), and bytes in the reader's cache after it. Questions to the server come from a role with SELECT alone. Each is
asked twice, since the first of those that read a copy makes it. Load makes everything dearer: compare the columns.
With --rows the collection is inserted by `made_rows.py`: one site, no texts.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import product
import psycopg
from database import BUFFERS, PAGES, one, sites
from made_rows import collection_of, page_url
from measure import Cost, load, run, table
from serving import Server, serve

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import postgres_server

QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("status",), ("page", "PAGE"), ("pages", "--limit", "100"), ("pages", "--state", "failed", "--limit", "100"),
    ("links", "--to", "PAGE", "--limit", "100"), ("links", "--bad", "--limit", "100"), ("search", "harbour"),
    ("trends",), ("faults", "list"), ("report", "--site", "SITE"),
)  # fmt: skip
OF_WORDS = {"faults": 2}  # words of a command's name
LIMIT_S = 3_000.0  # of one command
WRITERS = 4
ROLE = "reader"
SPENT = (
    "SELECT coalesce(sum(total_exec_time + total_plan_time), 0) FROM pg_stat_statements"
    f" WHERE userid = '{ROLE}'::regrole"
)


def commanded(words: list[str], cwd: Path) -> Cost:
    """Runs a command of periplus, which must succeed."""
    cost = run([sys.executable, "-m", "periplus", *words], core=None, cwd=cwd, limit_s=LIMIT_S)
    if cost.exit_code:
        sys.exit(f"periplus {' '.join(words)[:200]} returned {cost.exit_code}: {cost.said[-500:]}")
    return cost


class Asker:
    """Asks the questions. page: URL of one page."""

    def __init__(self, page: str, cwd: Path, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        self._page, self._cwd, self._connection = page, cwd, connection

    def cost(self, place: str, question: tuple[str, ...]) -> tuple[float, float]:
        """(CPU seconds of the command, milliseconds of its statements)."""
        words = [word.replace("PAGE", self._page).replace("SITE", self._page.split("/")[2]) for word in question]
        at = OF_WORDS.get(words[0], 1)
        self._connection.execute("SELECT pg_stat_statements_reset()")
        cost = commanded([*words[:at], "-c", place, *words[at:]], self._cwd)
        return cost.cpu_s, float(str(one(self._connection, SPENT)))

    def cached_mb(self) -> float:
        return sum(file.stat().st_size for file in (self._cwd / "cache").rglob("*") if file.is_file()) / 1e6


def crawled(server: Server, folder: Path, cwd: Path) -> None:
    crawl = replace(product.by_name(server.hosts, folder, 1), index=False)
    commanded(product.arguments(crawl), cwd)


@contextlib.contextmanager
def writers(server: Server, place: str) -> Iterator[subprocess.Popen[bytes]]:
    """A crawl by WRITERS workers into another collection, stopped at the end."""
    crawl = replace(product.by_name(server.hosts, place, WRITERS), index=False)
    with subprocess.Popen(product.command(crawl), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as writer:
        yield writer
        writer.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=210, help="of the crawl that writes, and of the collection")
    parser.add_argument("--rows", type=int, default=0, help="pages of a collection without texts, instead")
    options = parser.parse_args()
    settings = BUFFERS | {"shared_preload_libraries": "pg_stat_statements"}
    with (
        tempfile.TemporaryDirectory(prefix="periplus-nginx-") as temp,
        contextlib.closing(postgres_server.own_server(fsync="on", full_page_writes="on", **settings)) as database,
        serve(sites(options.hosts), Path(temp), core=None, log=False) as server,
        psycopg.connect(database.dsn(), autocommit=True) as connection,
    ):
        cwd, mark = Path(temp), "&" if "?" in database.dsn() else "?"
        os.environ["XDG_CACHE_HOME"] = str(cwd / "cache")
        owned, folder = f"{database.dsn()}{mark}collection=asked", cwd / "asked.periplus"
        if options.rows:
            folder = collection_of(options.rows, 10 * options.rows)
        else:
            crawled(server, folder, cwd)
        page = page_url(1) if options.rows else server.hosts[0].by_name
        commanded(["move", str(folder), owned], cwd)
        connection.execute("CREATE EXTENSION pg_stat_statements")
        connection.execute(f"CREATE ROLE {ROLE} LOGIN".encode())
        connection.execute(f"GRANT USAGE ON SCHEMA asked TO {ROLE}".encode())
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA asked TO {ROLE}".encode())
        place = owned.replace("postgres@", f"{ROLE}@")
        pages = options.rows or PAGES * options.hosts
        print(f"{pages:,} pages ({load()})", flush=True)
        rows, asker = [], Asker(page, cwd, connection)
        for question in QUESTIONS:
            inside, again = asker.cost(str(folder), question)[0], asker.cost(str(folder), question)[0]
            (first_s, first_ms), (second_s, second_ms) = asker.cost(place, question), asker.cost(place, question)
            row = [f"{inside:.2f}", f"{again:.2f}", f"{first_s:.2f}", f"{first_ms:.1f}", f"{second_s:.2f}"]
            rows.append([" ".join(question), *row, f"{second_ms:.1f}", f"{asker.cached_mb():.2f}"])
            print(rows[-1], flush=True)
        print(f"alone ({load()})", flush=True)
        with writers(server, f"{database.dsn()}{mark}collection=writing") as writer:
            for row, question in zip(rows, QUESTIONS, strict=True):
                busy_s, busy_ms = asker.cost(place, question)
                row += [f"{busy_s:.2f}", f"{busy_ms:.1f}", "no" if writer.poll() is None else "yes"]
                print(row, flush=True)
        print(f"{pages:,} pages, the last three columns beside {WRITERS} writers ({load()})")
        heads = ["question", "folder", "again", "first", "ms", "second", "ms", "cache MB", "beside", "ms", "over"]
        print(table(heads, rows))


if __name__ == "__main__":
    main()
