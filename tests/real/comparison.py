"""Crawls real manuals completely, and compares the results with those of an independent reader.

    python tests/real/comparison.py NAME... [--interrupted] [--stranger] [--keep DIR] [crawl flags]

NAME: of tests/real/manuals.py, or all. --interrupted: the crawl is killed, comes to a limit, is stopped by
Ctrl-C, and then goes on to its end. --stranger: as on a host of somebody else's, one request at a time and half
a second between two. --keep: collections and logs stay in DIR. What is not known here goes to `periplus crawl`.
Exits with 1 on any difference.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from manuals import MANUALS, Manual, Served, Unavailable, served, unpacked
from oracle import PAGE_TYPES, Sight, normal, read_site

CRAWL_S = 1800.0  # time limit of a command
OURS = ("--delay", "0", "--per-host", "8", "--retry-wait", "0.1")  # for our own hosts
EXAMPLES = 5  # printed per kind of difference
KINDS = ("a", "area", "frame", "iframe", "refresh", "canonical", "alternate", "related")  # of links to pages


@dataclass(frozen=True, slots=True)
class Crawled:
    """Contents of a collection. reasons: of every URL; aliases: the page with the same bytes.

    failures: commands with an unexpected exit.
    """

    sight: Sight
    reasons: dict[str, str]
    aliases: dict[str, str]
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences between two readings of a site, one line of text each; empty if they agree."""

    name: str
    pages: int  # of the oracle
    read: int
    edges: int  # of the oracle, on pages that both have
    dead: int
    fragments: int
    lost: Counter[str]  # lost pages by their reason in Periplus
    differences: dict[str, tuple[str, ...]]

    @property
    def agrees(self) -> bool:
        return not any(self.differences.values())

    def __str__(self) -> str:
        lost = ", ".join(f"{count} {reason}" for reason, count in self.lost.most_common()) or "0"
        head = (
            f"{self.name}: {self.pages} pages, {self.read} read; lost {lost}; {self.edges} edges, {self.dead} dead "
            f"links, {self.fragments} broken fragments"
        )
        told = [
            f"  {kind}: {len(lines)}" + "".join(f"\n    {line}" for line in lines[:EXAMPLES])
            for kind, lines in self.differences.items()
            if lines
        ]
        return "\n".join([head, *told])


def compared(name: str, oracle: Sight, crawled: Crawled) -> Comparison:
    """Compares links, dead links and fragments on pages that both have, so that a lost page is reported once."""
    seen = crawled.sight
    both = oracle.depths.keys() & seen.depths.keys()
    lost = {
        url: crawled.reasons.get(url, "no link to it known")
        for url in oracle.depths.keys() - both
        if not _is_kept(url, oracle, crawled)
    }
    page_of = {url: kept for url, kept in crawled.aliases.items() if url not in lost}
    sides = (oracle, seen)
    edges = [{(edge[0], page_of.get(edge[1], edge[1])) for edge in sight.edges if edge[0] in both} for sight in sides]
    edges = [{edge for edge in rows if edge[0] != edge[1]} for rows in edges]
    dead = [{edge for edge in sight.dead if edge[0] in both and _met(edge[1], lost)} for sight in sides]
    places = [
        {(row[0], page_of.get(row[1], row[1]), row[2]) for row in sight.fragments if row[0] in both} for sight in sides
    ]
    places = [{row for row in rows if row[1] in both} for rows in places]
    deeper = [
        f"{oracle.depths[url]} -> {seen.depths[url]} {url}" for url in both if oracle.depths[url] != seen.depths[url]
    ]
    differences = {
        "command": list(crawled.failures),
        "lost": [f"{reason} {url}" for url, reason in lost.items()],
        "extra": list(seen.depths.keys() - both),
        "depth": deeper,
        **{
            f"{kind} {side}": [" ".join(row) for row in rows]
            for kind, (wanted, got) in {"edge": edges, "dead": dead, "fragment": places}.items()
            for side, rows in (("missed", wanted - got), ("invented", got - wanted))
        },
    }
    told = {kind: tuple(sorted(lines)) for kind, lines in differences.items()}
    return Comparison(
        name,
        len(oracle.depths),
        len(oracle.depths) - len(lost),
        len(edges[0]),
        len(dead[0]),
        len(places[0]),
        Counter(lost.values()),
        told,
    )


def _is_kept(url: str, oracle: Sight, crawled: Crawled) -> bool:
    """Whether it is an alias of a fetched page: the same bytes, according to both readers."""
    kept = crawled.aliases.get(url, "")
    return kept in crawled.sight.depths and oracle.digests.get(kept) == oracle.digests.get(url)


def _met(url: str, lost: dict[str, str]) -> bool:
    return url not in lost


def crawl(start: str, site: Served, folder: Path, flags: Sequence[str] = OURS, *, interrupt_after: int = 0) -> Crawled:
    """Runs the command.

    interrupt_after: requests before each kill, limit and stop; 0: no interruptions.
    """
    words = [
        sys.executable,
        "-m",
        "periplus",
        "crawl",
        start,
        "-o",
        str(folder),
        "-q",
        "--resolve",
        site.resolve,
        "--allow-private",
        *flags,
    ]
    environment = {**os.environ, "COLUMNS": "200"}
    failures = []
    with folder.with_suffix(".log").open("ab") as log:

        def run(*more: str, expect: int = 0, sent: signal.Signals | None = None, after: int = 0) -> None:
            before = site.requests()
            process = subprocess.Popen([*words, *more], stdout=log, stderr=log, env=environment, start_new_session=True)
            try:
                _until(lambda: process.poll() is not None or (sent is not None and site.requests() - before >= after))
                if sent is not None and process.poll() is None:
                    (os.killpg if sent is signal.SIGKILL else os.kill)(process.pid, sent)
                status = process.wait(CRAWL_S)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            if status not in (expect, 0):
                failures.append(f"{' '.join(more)} ended with {status}")

        if interrupt_after:
            run(expect=-signal.SIGKILL, sent=signal.SIGKILL, after=interrupt_after)
            run("--max-pages", str(interrupt_after))
            run(expect=130, sent=signal.SIGINT, after=interrupt_after)
        run()
    return _read_back(folder, start, tuple(failures))


def _until(is_over: Callable[[], bool]) -> None:
    deadline = time.monotonic() + CRAWL_S
    while not is_over():
        assert time.monotonic() < deadline, "the crawl does not end"
        time.sleep(0.01)


def _read_back(folder: Path, start: str, failures: tuple[str, ...]) -> Crawled:
    """Reads the public SQL views, and the list of issues."""
    root = "/".join(start.split("/")[:3]) + "/"
    with contextlib.closing(sqlite3.connect(folder / "collection.db")) as connection:
        reasons = {normal(url): reason for url, reason in connection.execute("SELECT url, reason FROM urls")}
        query = "SELECT url, rule FROM urls WHERE reason = 'alias' AND rule LIKE 'same bytes %'"
        aliases = {normal(url): normal(rule.partition(" as ")[2]) for url, rule in connection.execute(query)}
        types = ", ".join(f"'{name}'" for name in sorted(PAGE_TYPES))
        query = f"SELECT url, depth FROM pages WHERE status = 200 AND media_type IN ({types})"
        depths = {normal(url): depth for url, depth in connection.execute(query)}
        kinds = ", ".join(f"'{kind}'" for kind in KINDS)
        query = (
            "SELECT DISTINCT source, target, target_reason FROM links WHERE internal"
            f" AND NOT nofollow AND kind IN ({kinds})"
        )
        rows = [(normal(source), normal(target), reason) for source, target, reason in connection.execute(query)]
        states = dict(connection.execute("SELECT DISTINCT reason, state FROM urls"))
    edges = {(source, target) for source, target, _ in rows if source != target and target.startswith(root)}
    dead = {
        (source, target) for source, target, reason in rows if (source, target) in edges and states[reason] == "failed"
    }
    return Crawled(Sight(depths, frozenset(edges), frozenset(dead), _broken_places(folder)), reasons, aliases, failures)


def _broken_places(folder: Path) -> frozenset[tuple[str, str, str]]:
    words = [sys.executable, "-m", "periplus", "check", "-c", str(folder), "--offline", "-q", "-f", "jsonl"]
    said = subprocess.run(words, capture_output=True, text=True, timeout=CRAWL_S, check=True).stdout
    broken = [issue for issue in map(json.loads, said.splitlines()) if issue["code"] == "broken-fragment"]
    return frozenset(
        (normal(issue["url"]), normal(issue["related_url"]), unquote(issue["detail"].removeprefix("no #")))
        for issue in broken
    )


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=["all", *MANUALS])
    parser.add_argument("--interrupted", action="store_true")
    parser.add_argument("--stranger", action="store_true")
    parser.add_argument("--keep", type=Path)
    given, flags = parser.parse_known_args(words)
    names = list(MANUALS) if "all" in given.names else given.names
    with contextlib.ExitStack() as stack:
        work = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="periplus-real-")))
        return max(_tell(MANUALS[name], work / name, given, flags) for name in names)


def _tell(manual: Manual, work: Path, given: argparse.Namespace, flags: Sequence[str]) -> int:
    try:
        result = comparison_of(manual, work, interrupted=given.interrupted, stranger=given.stranger, flags=flags)
    except Unavailable as why:
        print(f"{manual.name}: left out, {why}", flush=True)
        return 1
    print(result, flush=True)
    return 0 if result.agrees else 1


def comparison_of(
    manual: Manual, work: Path, *, interrupted: bool = False, stranger: bool = False, flags: Sequence[str] = ()
) -> Comparison:
    """Reads and crawls a manual. work: a new folder."""
    folder, host = unpacked(manual), f"{manual.name}.test"
    with served(folder, host, work / "server") as site:
        sight = read_site(site.root, manual.start, site.port)
        politeness = ("--delay", "0.5") if stranger else ("--mine", host, *OURS)
        after = max(len(sight.depths) // 5, 5) if interrupted else 0
        crawled = crawl(
            site.root + manual.start,
            site,
            work / "collection",
            (*politeness, *manual.flags, *flags),
            interrupt_after=after,
        )
    name = manual.name + (", interrupted" if interrupted else "") + (", as a stranger" if stranger else "")
    return compared(name, sight, crawled)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
