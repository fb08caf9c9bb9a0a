"""Memory of a crawl with 5,000 pages, with a million known addresses, and with --known further addresses.

The further addresses are inserted into the store before the crawl (as page parts on 1,000 hosts, which are never
requested), because discovering 10 million addresses would take an hour. The crawl discovers its own addresses too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import corpora
import product
from measure import MIB, run, table
from serving import Site, pages, serve

from periplus.model.visit import Reason
from periplus.model.web import Url
from periplus.store.sqlite import schema
from periplus.urls.canonical import url_id

HOSTS = 1000  # of the addresses inserted before
LOT = 1_000_000  # written in one transaction
LIMIT_S = 3600.0


def known_before(folder: Path, count: int) -> None:
    """Creates a collection with known URLs. Each batch is sorted by key, for fast inserts into the tree."""
    schema.create(folder)
    connection = schema.connect(folder)
    connection.executemany("INSERT INTO site (key) VALUES (?)", [(f"h{number:03}.test",) for number in range(HOSTS)])
    connection.execute("INSERT INTO host (key, site_id) SELECT key, id FROM site")
    reason = Reason.RESOURCE.value
    insert = f"INSERT INTO url (id, text, host_id, reason, first_seen) VALUES (?, ?, ?, '{reason}', 1.0)"
    for start in range(0, count, LOT):
        texts = [
            Url(f"http://h{number % HOSTS:03}.test/section-{number % 37}/image-{number}.png")
            for number in range(start, min(start + LOT, count))
        ]
        rows = sorted((url_id(text), text, at % HOSTS + 1) for at, text in enumerate(texts, start))
        with connection:
            connection.execute("BEGIN")
            connection.executemany(insert, rows)
    connection.executemany("INSERT INTO tally VALUES (?, ?)", [("known", count), (f"reason:{reason}", count)])
    connection.close()


def crawl(sites: list[Site], max_depth: int | None, known: int = 0) -> tuple[object, ...]:
    """(pages, peak RSS in MiB, CPU s, wall s, size of the collection in MiB, exit code)"""
    with tempfile.TemporaryDirectory(prefix="periplus-bench-") as temp, serve(sites, Path(temp)) as server:
        kept = Path(temp) / "kept"
        if known:
            # a separate process: later commands would inherit the peak memory of this one
            with ProcessPoolExecutor(1) as pool:
                pool.submit(known_before, kept, known).result()
        wanted = replace(product.by_name(server.hosts, kept), max_depth=max_depth, index=not known)
        cost = run(product.command(wanted), cwd=Path(temp), family=True, limit_s=LIMIT_S)
        size = sum(path.stat().st_size for path in kept.rglob("*") if path.is_file()) if kept.exists() else 0
        return pages(server.hits()), cost.rss_bytes / MIB, cost.cpu_s, cost.wall_s, size / MIB, cost.exit_code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument(
        "--leaves", type=int, default=200, help="addresses beyond the last depth that each page alone links to"
    )
    parser.add_argument(
        "--known", type=int, default=0, help="addresses known before, besides: 10000000 takes some 1.5 GB of disk"
    )
    parser.add_argument("--only-known", action="store_true", help="that crawl alone")
    options = parser.parse_args()
    if not product.is_there():
        sys.exit("periplus crawl is not there yet")
    known = options.pages * options.leaves
    rows: list[tuple[object, ...]] = []
    if not options.only_known:
        rows += [
            (
                f"{options.pages:,} pages with 40 links",
                options.pages,
                *crawl(corpora.generated(pages=options.pages), None),
            ),
            (
                f"{options.pages:,} pages, {known:,} addresses beyond",
                known,
                *crawl(corpora.leafy(pages=options.pages, leaves=options.leaves), 2),
            ),
        ]
    if options.known:
        sites = corpora.leafy(pages=options.pages, leaves=options.leaves)
        rows.append(
            (
                f"the same, {options.known:,} known before, not indexed",
                known + options.known,
                *crawl(sites, 2, options.known),
            )
        )
    print(
        table(("crawl", "known addresses", "pages", "peak RSS MiB", "CPU s", "wall s", "collection MiB", "exit"), rows)
    )


if __name__ == "__main__":
    main()
