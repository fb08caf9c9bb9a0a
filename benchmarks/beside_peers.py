"""What does a page cost us, and what does it cost Scrapy and wget2, in one run over the same served pages?"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import corpora
import peers
import product
from measure import MIB, Cost, alternated, load, median, run, table
from serving import Host, Server, Site, pages, serve

OURS, SCRAPY, WGET2, WGET2_BARE = "periplus", "scrapy", "wget2-files", "wget2-nothing-kept"
CRAWLERS = (OURS, SCRAPY, WGET2, WGET2_BARE)


@dataclass(frozen=True, slots=True)
class Trial:
    """One crawl by one crawler: its cost and what the server saw of it."""

    cost: Cost
    pages: int
    requests: int

    @property
    def cpu_per_1000(self) -> float:
        """Seconds of the crawler's CPU for 1,000 pages."""
        return self.cost.cpu_s / self.pages * 1000 if self.pages else float("nan")


def crawler_commands(hosts: tuple[Host, ...], only: set[str]) -> dict[str, Callable[[Path], list[str]]]:
    """What can be run here, as functions of an empty folder."""
    starts = [one.by_address for one in hosts]
    found: dict[str, Callable[[Path], list[str]]] = {}
    if product.is_there():
        found[OURS] = lambda folder: product.command(product.by_address(hosts, folder / "kept"))
    if peers.have_scrapy():
        found[SCRAPY] = lambda _folder: peers.scrapy(starts)
    if peers.have_wget2():
        found[WGET2] = lambda folder: peers.wget2(starts, folder / "files")
        found[WGET2_BARE] = lambda folder: peers.wget2(starts, folder / "files", keep=False)
    return {name: made for name, made in found.items() if not only or name in only}


def trials(server: Server, rounds: int, only: set[str]) -> dict[str, list[Trial]]:
    """Each crawler `rounds` times, in alternation, each time into a fresh folder."""
    seen: dict[str, list[Trial]] = {}

    def trial(name: str, made: Callable[[Path], list[str]]) -> Cost:
        with tempfile.TemporaryDirectory(prefix="periplus-bench-") as folder:
            mark = server.mark()
            cost = run(made(Path(folder)), cwd=Path(folder))
            hits = server.hits(mark)
            seen.setdefault(name, []).append(Trial(cost, pages(hits), len(hits)))
        return cost

    found = crawler_commands(server.hosts, only)
    alternated(rounds, {name: partial(trial, name, made) for name, made in found.items()})
    return seen


def report(title: str, results: dict[str, list[Trial]]) -> str:
    """Medians; the last column is the peer's CPU per page against ours."""
    own = median(one.cpu_per_1000 for one in results.get(OURS, []))
    rows = []
    for name in CRAWLERS:
        found = results.get(name, [])
        cost = median(one.cpu_per_1000 for one in found)
        range_ = f"{min(one.cpu_per_1000 for one in found):.3g}-{max(one.cpu_per_1000 for one in found):.3g}" if found else "not run"
        rows.append(
            (
                name,
                len(found),
                median(one.pages for one in found),
                median(one.requests for one in found),
                cost,
                range_,
                1000 / cost,
                median(one.pages / one.cost.wall_s for one in found),
                median(one.cost.rss_bytes / MIB for one in found),
                cost / own,
                ",".join(str(one.cost.exit_code) for one in found),
            )
        )
    heads = ("crawler", "runs", "pages", "requests", "CPU s / 1,000", "range", "pages / CPU s", "pages / s", "RSS MiB", "cost / ours", "exit codes")
    return f"\n## {title} ({load()})\n\n{table(heads, rows)}"


def compare(title: str, sites: list[Site], rounds: int, only: set[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="periplus-nginx-") as temp, serve(sites, Path(temp)) as server:
        print(report(title, trials(server, rounds, only)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--corpus", choices=("a", "b", "both"), default="both")
    parser.add_argument("--only", nargs="*", default=[], choices=CRAWLERS)
    parser.add_argument("--install-peers", action="store_true", help=f"install Scrapy {peers.SCRAPY_VERSION} into {peers.VENV} first")
    options = parser.parse_args()
    if options.install_peers:
        peers.install()
    if not product.is_there():
        print("periplus crawl is not there yet: peers only")
    if options.corpus in ("a", "both"):
        compare("(a) 1,073 real pages of 64 KB, two hosts", corpora.real(), options.rounds, set(options.only))
    if options.corpus in ("b", "both"):
        compare("(b) 5,000 generated pages of 25 KB with 40 links, one host", corpora.generated(), options.rounds, set(options.only))


if __name__ == "__main__":
    main()
