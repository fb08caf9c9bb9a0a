"""How much memory does a crawl need, with 5,000 pages, and with a million known addresses?"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import corpora
import product
from measure import MIB, run, table
from serving import Site, pages, serve


def crawl(sites: list[Site], max_depth: int | None) -> tuple[object, ...]:
    """(pages, peak RSS in MiB, CPU s, wall s, size of the collection in MiB, exit code)"""
    with tempfile.TemporaryDirectory(prefix="periplus-bench-") as temp, serve(sites, Path(temp)) as server:
        kept = Path(temp) / "kept"
        wanted = replace(product.by_name(server.hosts, kept), max_depth=max_depth)
        cost = run(product.command(wanted), cwd=Path(temp), family=True)
        size = sum(path.stat().st_size for path in kept.rglob("*") if path.is_file()) if kept.exists() else 0
        return pages(server.hits()), cost.rss_bytes / MIB, cost.cpu_s, cost.wall_s, size / MIB, cost.exit_code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--leaves", type=int, default=200, help="addresses beyond the last layer that each page alone links to")
    options = parser.parse_args()
    if not product.is_there():
        sys.exit("periplus crawl is not there yet")
    known = options.pages * options.leaves
    rows = [
        (f"{options.pages:,} pages with 40 links", options.pages, *crawl(corpora.generated(pages=options.pages), None)),
        (f"{options.pages:,} pages, {known:,} addresses beyond", known, *crawl(corpora.leafy(pages=options.pages, leaves=options.leaves), 2)),
    ]
    print(table(("crawl", "known addresses", "pages", "peak RSS MiB", "CPU s", "wall s", "collection MiB", "exit"), rows))


if __name__ == "__main__":
    main()
