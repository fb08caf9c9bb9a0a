"""Does a complete crawl of a real site find exactly the pages that exist?"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import corpora
import product
from measure import MIB, Cost, run, table
from serving import Hit, Host, Server, Site, serve
from sites import Truth, installed, prepared, truth


def crawl(server: Server, host: Host, known: Truth, folder: Path) -> tuple[list[object], list[str]]:
    """Crawls and maps a site: its row of the table, and remarks."""
    mark = server.mark()
    cost = run(product.command(product.by_name([host], folder / "kept")), cwd=folder, family=True)
    seen = server.hits(mark)
    mapped = run(product.map_command(folder / "kept"), cwd=folder)
    found, dead = addresses(seen, 200), addresses(seen, 404) - {"/robots.txt", "/sitemap.xml"}
    row = [
        host.site.name,
        len(known.pages),
        len(found),
        len(known.pages.keys() - found),
        len(found - known.pages.keys()),
    ]
    row += [len(known.dead_targets), len(dead & known.dead_targets), len(dead - known.dead_targets), len(seen)]
    row += [cost.cpu_s / max(len(found), 1) * 1000, cost.wall_s, cost.rss_bytes / MIB, mapped.wall_s]
    return row, remarks(known, found, dead, (cost, mapped), product.status(folder / "kept"))


def addresses(hits: list[Hit], status: int) -> set[str]:
    """Paths of HTML pages sent with this status; errors of any type."""
    return {one.path for one in hits if one.status == status and (status != 200 or one.media_type == "text/html")}


def remarks(
    known: Truth, found: set[str], dead: set[str], costs: tuple[Cost, Cost], status: dict[str, object]
) -> list[str]:
    """Differences (five of each kind), failed commands, and the status of the collection."""
    said = [f"  not crawled: {path}" for path in sorted(known.pages.keys() - found)[:5]]
    said += [f"  crawled, not in the truth: {path}" for path in sorted(found - known.pages.keys())[:5]]
    said += [f"  dead, not in the truth: {path}" for path in sorted(dead - known.dead_targets)[:5]]
    said += [
        f"  {name} ended with {cost.exit_code}: {cost.said[-300:]}"
        for name, cost in zip(("crawl", "map"), costs, strict=True)
        if cost.exit_code
    ]
    said.append(f"  truth: depth {known.depth}, {len(known.dead)} dead references to {len(known.dead_targets)} targets")
    return [*said, "  status: " + ", ".join(f"{name}={value}" for name, value in product.leaves(status))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", nargs="*", default=[], metavar="SITE", help="postgresql, sqlite, python, cppreference, handbook"
    )
    options = parser.parse_args()
    chosen = [site for site in installed() if not options.only or site.name.partition(".")[0] in options.only]
    if not product.is_there():
        sys.exit("periplus crawl is not there yet; `python benchmarks/sites.py` prints the truth alone")
    copies: list[Site] = prepared(chosen, corpora.CACHE)
    rows, said = [], []
    with tempfile.TemporaryDirectory(prefix="periplus-nginx-") as temp, serve(copies, Path(temp)) as server:
        for host, site in zip(server.hosts, chosen, strict=True):
            with tempfile.TemporaryDirectory(prefix="periplus-bench-") as folder:
                row, more = crawl(server, host, truth(site.root, site.start), Path(folder))
            rows.append(row)
            said += [f"\n{site.name}", *more]
    heads = (
        "site",
        "pages",
        "crawled",
        "missed",
        "extra",
        "dead",
        "dead found",
        "dead extra",
        "requests",
        "CPU s / 1,000",
        "wall s",
        "RSS MiB",
        "map s",
    )
    print(table(heads, rows))
    print(*said, sep="\n")


if __name__ == "__main__":
    main()
