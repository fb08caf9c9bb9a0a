"""Cost of exporting a collection as Parquet, moving it into PostgreSQL and back: time, CPU, memory, disk space.

The collection is that of `made_rows.py`: pages and links without bodies. The server is PERIPLUS_TEST_POSTGRES, or a
temporary one; the figures include its time but not its CPU.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from corpora import CACHE
from made_rows import collection_of
from measure import MIB, load, run, table

TESTS = Path(__file__).parent.parent / "tests"


def size_of(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def measured(pages: int, links: int, store: str) -> list[tuple[str, ...]]:
    """store: the address of an empty collection."""
    with ProcessPoolExecutor(1) as pool:  # a separate process: later commands would inherit the peak memory of this one
        source = pool.submit(collection_of, pages, links).result()
    work = CACHE / "moving"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(source, work / "source")
    rows = []
    for what, words, place in (
        ("export parquet", ["export", "parquet", str(work / "tables"), "-c", str(work / "source")], work / "tables"),
        ("move into PostgreSQL", ["move", str(work / "source"), store], work / "source"),
        ("move back", ["move", store, str(work / "back")], work / "back"),
    ):
        cost = run([sys.executable, "-m", "periplus", *words], core=None, cwd=work, limit_s=3_600)
        figures = (
            f"{cost.wall_s:.1f}",
            f"{cost.cpu_s:.1f}",
            f"{cost.cpu_s / links * 1e6:.1f}",
            f"{cost.rss_bytes / MIB:,.0f}",
            f"{size_of(place) / MIB:,.0f}",
        )
        rows.append((what, *figures, str(cost.exit_code)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=200_000)
    parser.add_argument("--links", type=int, default=2_000_000)
    chosen = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    from postgres_server import empty_collection

    print(f"{chosen.pages:,} pages, {chosen.links:,} links asked for; {os.cpu_count()} cores; {load()}")
    with ExitStack() as stack:
        rows = measured(chosen.pages, chosen.links, stack.enter_context(empty_collection()))
    print(table(("what", "wall s", "CPU s", "us of CPU a link", "peak MiB", "MiB on disk", "exit"), rows))


if __name__ == "__main__":
    main()
