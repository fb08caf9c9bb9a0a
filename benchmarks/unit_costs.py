"""What does one URL, page, link and waiting URL take in PostgreSQL, and one link in Parquet?

The unit costs of docs/cluster.md. Generated sites as in `database.py`: pages of 4 KB with 21 links. Bytes are those of
tables with their indexes after VACUUM FULL, and after the crawl itself. Export is measured at two sizes: the difference
leaves out the start of the program.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psycopg
from database import BUFFERS, PAGES, crawled, one, sites
from measure import load, run, table
from serving import serve

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import postgres_server

UNITS = {  # name: (tables, what is counted)
    "known URL": (("url",), "SELECT count(*) FROM url"),
    "page and its visit": (("page", "visit"), "SELECT count(*) FROM page"),
    "link": (("page_links",), "SELECT sum(cardinality(targets)) FROM page_links"),
    "text and blocks of a page": (("body",), "SELECT count(*) FROM body"),
    "waiting URL, beside the known one": (("waiting",), "SELECT count(*) FROM waiting"),
}
# as a breadth-first crawl has them: by host, one depth after another
WAITING = (
    "CREATE TABLE waiting (LIKE queue INCLUDING ALL); INSERT INTO waiting (shard, host_id, priority, url_id)"
    " SELECT shard, host_id, coalesce(depth, 0), id FROM url ORDER BY depth, id"
)


def sizes(connection: psycopg.Connection[tuple[object, ...]]) -> dict[str, float]:
    """Bytes a unit."""
    found = {}
    for name, (tables, count) in UNITS.items():
        total = " + ".join(f"pg_total_relation_size('{name}')" for name in tables)
        found[name] = int(str(one(connection, f"SELECT {total}"))) / int(str(one(connection, count)))
    return found


def exported(place: str, cwd: Path) -> tuple[float, int, int]:
    """(CPU seconds, bytes of its links, links) of an export without texts."""
    words = [sys.executable, "-m", "periplus", "export", "parquet", str(cwd / "dataset"), "-c", place]
    cost = run(words, core=None, cwd=cwd)
    if cost.exit_code:
        sys.exit(f"the export failed: {cost.said[-500:]}")
    files = [
        path
        for path in (cwd / "dataset").rglob("*.parquet")
        if path.relative_to(cwd / "dataset").parts[0].startswith("links")
    ]
    with psycopg.connect(place.partition("collection=")[0].rstrip("?&"), autocommit=True) as connection:
        connection.execute(f"SET search_path TO {place.partition('collection=')[2]}".encode())
        links = int(str(one(connection, UNITS["link"][1])))
    return cost.cpu_s, sum(path.stat().st_size for path in files), links


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs=2, default=[10, 100])
    options = parser.parse_args(given)
    exports = []
    with (
        tempfile.TemporaryDirectory(prefix="periplus-nginx-") as temp,
        contextlib.closing(postgres_server.own_server(fsync="on", full_page_writes="on", **BUFFERS)) as database,
    ):
        for number, hosts in enumerate(options.hosts):
            name, dsn, folder = f"units_{number}", database.dsn(), Path(temp) / f"hosts{number}"
            folder.mkdir()
            place = f"{dsn}{'&' if '?' in dsn else '?'}collection={name}"
            with serve(sites(hosts), folder, core=None, log=False) as server:
                crawled(server, place, 1, folder)
            exports.append(exported(place, folder))
        with psycopg.connect(database.dsn(), autocommit=True) as connection:
            connection.execute(f"SET search_path TO {name}".encode())
            connection.execute(WAITING.encode())
            crawl_bytes = sizes(connection)
            for names, _ in UNITS.values():
                for each in names:
                    connection.execute(f"VACUUM FULL {each}".encode())
            packed = sizes(connection)
    print(f"{PAGES * options.hosts[1]:,} pages of 4 KB ({load()})")
    rows = [(unit, f"{crawl_bytes[unit]:.0f}", f"{packed[unit]:.0f}") for unit in UNITS]
    print(table(("unit", "bytes after the crawl", "after VACUUM FULL"), rows))
    (small_s, small_bytes, few), (large_s, large_bytes, many) = exports
    links = many - few
    print(f"export parquet: {(large_s - small_s) / links * 1e6:.1f} CPU us a link and its share of the page")
    print(f"links as Parquet: {(large_bytes - small_bytes) / links:.1f} bytes each, of {links:,}")


if __name__ == "__main__":
    main()
