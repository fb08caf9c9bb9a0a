"""Cost of a page for us and for other crawlers, in one run over the same pages (`make bench-peers`)."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import corpora
import peers
import product
from measure import CLIENT_CORE, MIB, Cost, alternated, load, median, run, table
from serving import Host, Server, Site, pages, serve

OURS, INDEXED, PAIR = "periplus", "periplus-indexed", "periplus-two-workers"
CRAWLERS = {
    OURS: "one worker, everything kept, no index",
    INDEXED: "the same, and pages searchable at its end",
    PAIR: "two workers on both cores, no index",
    **{name: peer.note for name, peer in peers.PEERS.items()},
}
LIMIT_S = 900.0  # LinkChecker and HTTrack are slow; after the limit the pages fetched so far count


@dataclass(frozen=True, slots=True)
class Trial:
    """A crawl by a crawler: its cost, and the requests according to the server."""

    cost: Cost
    pages: int
    requests: int

    @property
    def cpu_per_1000(self) -> float:
        """CPU seconds of the crawler per 1,000 pages."""
        return self.cost.cpu_s / self.pages * 1000 if self.pages else float("nan")


@dataclass(frozen=True, slots=True)
class Wish:
    """How to run a crawler: its command in an empty folder, and the number of cores."""

    command: Callable[[Path], list[str]]
    core: int | None = CLIENT_CORE


def ours(hosts: tuple[Host, ...], *, workers: int = 1, index: bool = False) -> Callable[[Path], list[str]]:
    return lambda folder: product.command(replace(product.by_address(hosts, folder / "kept", workers), index=index))


def crawlers(hosts: tuple[Host, ...], only: set[str]) -> dict[str, Wish]:
    """The available crawlers, in the order of CRAWLERS."""
    starts = [one.by_address for one in hosts]
    found: dict[str, Wish] = {}
    if product.is_there():
        found[OURS] = Wish(ours(hosts))
        found[INDEXED] = Wish(ours(hosts, index=True))
        if len(hosts) > 1:  # a host is crawled by one worker at a time
            found[PAIR] = Wish(ours(hosts, workers=2), core=None)
    for name, peer in peers.PEERS.items():
        if peer.is_there():
            # bind the loop variable
            found[name] = Wish(lambda folder, peer=peer: peer.command(starts, folder / "files"))  # type: ignore[misc]
    return {name: wish for name, wish in found.items() if not only or name in only}


def trials(server: Server, rounds: int, only: set[str]) -> dict[str, list[Trial]]:
    """Runs each crawler `rounds` times, in alternation, each time in a new folder."""
    seen: dict[str, list[Trial]] = {}

    def trial(name: str, wish: Wish) -> Cost:
        with tempfile.TemporaryDirectory(prefix="periplus-bench-") as folder:
            mark = server.mark()
            cost = run(wish.command(Path(folder)), core=wish.core, cwd=Path(folder), limit_s=LIMIT_S)
            hits = server.hits(mark)
            seen.setdefault(name, []).append(Trial(cost, pages(hits), len(hits)))
        return cost

    found = crawlers(server.hosts, only)
    alternated(rounds, {name: partial(trial, name, wish) for name, wish in found.items()})
    return seen


def report(title: str, results: dict[str, list[Trial]]) -> str:
    """Table of medians; the last column but one is the peer's CPU per page relative to ours."""
    own = median(one.cpu_per_1000 for one in results.get(OURS, []))
    rows = []
    for name, found in ((name, results[name]) for name in CRAWLERS if name in results):
        cost = median(one.cpu_per_1000 for one in found)
        rows.append(
            (
                name,
                len(found),
                median(one.pages for one in found),
                median(one.requests for one in found),
                cost,
                f"{min(one.cpu_per_1000 for one in found):.3g}-{max(one.cpu_per_1000 for one in found):.3g}",
                1000 / cost,
                median(one.pages / one.cost.wall_s for one in found),
                median(one.cost.rss_bytes / MIB for one in found),
                cost / own,
                ",".join(str(one.cost.exit_code) for one in found),
            )
        )
    heads = (
        "crawler",
        "runs",
        "pages",
        "requests",
        "CPU s / 1,000",
        "range",
        "pages / CPU s",
        "pages / s",
        "RSS MiB",
        "cost / ours",
        "exit codes",
    )
    return f"\n## {title} ({load()})\n\n{table(heads, rows)}"


def compare(title: str, sites: list[Site], rounds: int, only: set[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="periplus-nginx-") as temp, serve(sites, Path(temp)) as server:
        print(report(title, trials(server, rounds, only)), flush=True)


def roll_call() -> None:
    """Prints the crawlers with version and options, and the missing ones."""
    for name, peer in peers.PEERS.items():
        print(
            f"{name}: {peer.version_said()}, {peer.note}"
            if peer.is_there()
            else f"{name}: absent; --install-peers installs what is written in Python"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--corpus", choices=("a", "b", "both"), default="both")
    parser.add_argument("--pages", type=int, default=5000, help="of corpus (b)")
    parser.add_argument("--only", nargs="*", default=[], choices=tuple(CRAWLERS))
    parser.add_argument(
        "--install-peers",
        action="store_true",
        help=f"install {', '.join(peers.PACKAGES.values())} beside {peers.VENV} first",
    )
    options = parser.parse_args()
    if options.install_peers:
        peers.install()
    if not product.is_there():
        print("periplus crawl is not there yet: peers only")
    roll_call()
    if options.corpus in ("a", "both"):
        compare("(a) 1,073 real pages of 64 KB, two hosts", corpora.real(), options.rounds, set(options.only))
    if options.corpus in ("b", "both"):
        title = f"(b) {options.pages:,} generated pages of 25 KB with 40 links, one host"
        compare(title, corpora.generated(pages=options.pages), options.rounds, set(options.only))


if __name__ == "__main__":
    main()
