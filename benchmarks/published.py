"""Writes docs/compared.md and its picture: speed, memory, restart and completeness, beside seven other crawlers.

All figures of the page come from one run of this script. Use a quiet machine: three rounds take some 25 minutes.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from math import log10, nan
from pathlib import Path

import corpora
import killed
import peers
import product
from beside_peers import INDEXED, LIMIT_S, OURS, PAIR, Trial, crawlers, trials
from measure import CLIENT_CORE, MIB, median, run, table
from real_sites import addresses
from serving import Server, Site, serve
from sites import MANUALS, Truth, prepared, truth

from periplus.present.draw import caption, element, heading, write_sheet

PROJECT = Path(__file__).resolve().parent.parent
PAGE, PICTURE = PROJECT / "docs/compared.md", PROJECT / "docs/images/compared.svg"
NAMES = {OURS: "Periplus", INDEXED: "Periplus, indexed", PAIR: "Periplus, two workers"}
RESTARTED_PAGES, KILLED_AFTER = 1000, 400
COMPLETE = ("sqlite.test", "postgresql.test", "handbook.test")  # beside the sites of corpus (a)
ROW, LEFT, WIDTH, TOP = 26.0, 170.0, 760.0, 76.0  # px of the picture
TEXT = """# Periplus beside other crawlers

Each figure on this page comes from one run of one script, on one machine, with the same pages for every crawler:

    {command}

{machine}. Commit {commit}, {date}. The load of the machine was {before} before the run and {after} at its end;
only one crawler ran at a time, and the server ran on the other core.

![CPU time and memory of each crawler]({picture})

## Speed and memory

1,073 pages of 64 KB in the mean (the manual of Python 3.11 and the C part of cppreference), on two hosts, served by
nginx on loopback with compressed copies. CPU time is user and system time of the crawler and its children, for 1,000
pages; memory is the largest resident size of one process. Median and range of the rounds ({rounds}), in which the
crawlers took turns.

{speed}

The crawlers do different work. Periplus keeps the bytes, the text, the links with their places and words, languages,
digests and the state of each URL, so that it can continue, refresh and compare; *indexed* also makes the pages
searchable. wget, wget2 and HTTrack keep files. Scrapy, Crawlee and minet keep nothing here. LinkChecker checks each
link.

## Restart

{restarted:,} generated pages of 25 KB. Each crawler is killed with SIGKILL after {killed} pages and started again with
the same command in the same folder. Pages asked for twice were fetched before the kill too.

{restart}

Scrapy, Crawlee and minet run with their stored state (JOBDIR, file storage, persistent queue). wget and wget2 have none
and fetch again. LinkChecker has none and is not in the table.

## Completeness

Pages that each crawler asked for and got, of those that a breadth-first search over the files finds with another parser
(links of `a`, `area`, `frame` and `iframe`). Each site was crawled once. LinkChecker, which takes minutes for each, is
left out; its pages of two other sites are in the first table, which has 1,073 pages in all.

{complete}

## Commands and versions

{commands}

How the peers are set up, and what else is measured: `benchmarks/README.md` in the source, *Method*.
"""


def speed_rows(found: dict[str, list[Trial]]) -> list[tuple[object, ...]]:
    """One row for each crawler, the cheapest first."""
    own = median(one.cpu_per_1000 for one in found.get(OURS, []))
    rows: list[tuple[object, ...]] = []
    for name, runs in found.items():
        cost = median(one.cpu_per_1000 for one in runs)
        least, most = min(one.cpu_per_1000 for one in runs), max(one.cpu_per_1000 for one in runs)
        memory = median(one.cost.rss_bytes / MIB for one in runs)
        wall = median(one.cost.wall_s for one in runs)
        pages = round(median(one.pages for one in runs))
        rows.append((NAMES.get(name, name), cost, f"{least:.3g} to {most:.3g}", cost / own, memory, wall, pages))
    return sorted(rows, key=lambda row: row[1] if isinstance(row[1], float) else nan)


def restart_rows(server: Server) -> list[tuple[object, ...]]:
    """(crawler, pages before the kill, pages in all, asked for twice) of each crawler that can be started again."""
    starts = [one.by_address for one in server.hosts]
    rows: list[tuple[object, ...]] = []
    ours = killed.trial(
        server, lambda folder: product.command(product.by_address(server.hosts, folder / "kept")), KILLED_AFTER
    )
    rows.append(("Periplus", *ours[:3]))
    for name, peer in peers.PEERS.items():
        if peer.is_there() and name not in ("linkchecker", "crawlee-soup", "wget2-nothing-kept"):
            made = killed.trial(
                server, partial(lambda peer, folder: peer.command(starts, folder / "files"), peer), KILLED_AFTER
            )
            rows.append((name, *made[:3]))
    return rows


def complete_rows(sites: list[Site], truths: list[Truth], only: set[str]) -> list[tuple[object, ...]]:
    """(crawler, pages got of all for each site); each site is served and crawled alone."""
    got: dict[str, list[str]] = {}
    for site, known in zip(sites, truths, strict=True):
        with tempfile.TemporaryDirectory(prefix="periplus-nginx-") as temp, serve([site], Path(temp)) as server:
            for name, wish in crawlers(server.hosts, only).items():
                with tempfile.TemporaryDirectory(prefix="periplus-bench-") as folder:
                    mark = server.mark()
                    run(wish.command(Path(folder)), core=CLIENT_CORE, cwd=Path(folder), limit_s=LIMIT_S)
                    found = addresses(server.hits(mark), 200) & known.pages.keys()
                got.setdefault(name, []).append(f"{len(found):,} of {len(known.pages):,}")
    return [(NAMES.get(name, name), *cells) for name, cells in got.items()]


def picture(rows: list[tuple[object, ...]]) -> Iterable[str]:
    """Bars of CPU time on a logarithmic scale, with memory at their ends."""
    yield heading(
        "CPU seconds for 1,000 pages of 64 KB", "logarithmic; at the end of each bar: CPU seconds, and MiB of memory"
    )
    costs = [float(str(row[1])) for row in rows]
    low, high = log10(min(costs) / 2), log10(max(costs))
    for number, (row, cost) in enumerate(zip(rows, costs, strict=True)):
        y = TOP + number * ROW
        width = (log10(cost) - low) / (high - low) * (WIDTH - LEFT - 170)
        ours = str(row[0]).startswith("Periplus")
        yield caption(LEFT - 10, y + 14, str(row[0]), "end strong" if ours else "end")
        yield element("rect", "teal" if ours else "grey", x=LEFT, y=y, width=width, height=ROW - 8, rx=3)
        yield caption(LEFT + width + 8, y + 14, f"{cost:.3g} s, {float(str(row[4])):,.0f} MiB")


def machine() -> str:
    """Processor, cores, memory and system."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        "",
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"Linux {platform.release()}, Python {platform.python_version()}"
    return f"{model or platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB of memory, {system}"


def commands() -> str:
    """A list of the crawlers with version, and the command of each, with ADDRESS for the start addresses."""
    ours = product.arguments(product.Crawl(("ADDRESS",), "FOLDER", ("HOST",), index=False))
    lines = [f"- Periplus: `periplus {' '.join(ours)}`"]
    for name, peer in peers.PEERS.items():
        if peer.is_there():
            said = " ".join(peer.command(["ADDRESS"], Path("FOLDER"))).replace(f"{PROJECT}/", "")
            lines.append(f"- {name} {peer.version_said()} ({peer.note}): `{said}`")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="names of crawlers, to try the script")
    options = parser.parse_args()
    only, before = set(options.only), f"{os.getloadavg()[0]:.1f}"
    with tempfile.TemporaryDirectory(prefix="periplus-nginx-") as temp, serve(corpora.real(), Path(temp)) as server:
        found = trials(server, options.rounds, only)
    rows = speed_rows(found)
    with (
        tempfile.TemporaryDirectory(prefix="periplus-nginx-") as temp,
        serve(corpora.generated(pages=RESTARTED_PAGES), Path(temp)) as server,
    ):
        restarted = restart_rows(server)
    known = [site for site in MANUALS if site.name in COMPLETE and site.root.exists()]
    chosen = only or set(found) - {INDEXED, PAIR, "crawlee-soup", "wget2-nothing-kept", "linkchecker"}
    complete = complete_rows(prepared(known, corpora.CACHE), [truth(site.root, site.start) for site in known], chosen)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.strip()
    with PICTURE.open("w", encoding="utf-8") as file:
        write_sheet(file, (WIDTH, TOP + ROW * len(rows) + 14), "CPU time and memory of crawlers", picture(rows))
    PAGE.write_text(
        TEXT.format(
            command="make bench-published",
            machine=machine(),
            commit=commit,
            date=datetime.now(UTC).date().isoformat(),
            before=before,
            after=f"{os.getloadavg()[0]:.1f}",
            picture=PICTURE.relative_to(PAGE.parent),
            rounds=options.rounds,
            speed=table(("crawler", "CPU s / 1,000", "range", "of Periplus", "MiB", "wall s", "pages"), rows),
            restarted=RESTARTED_PAGES + 1,
            killed=KILLED_AFTER,
            restart=table(("crawler", "before the kill", "in all", "asked for twice"), restarted),
            complete=table(("crawler", *(site.name.partition(".")[0] for site in known)), complete),
            commands=commands(),
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
