"""Profiles a crawl by parts of the program.

(Not called profile.py: cProfile imports a module of that name.)

One worker crawls corpus (a) in this process under cProfile. The own time of a function counts for the part of its
module; the time of C functions and libraries is split among the calling parts, in proportion to their calls. Waiting
for the server is excluded (CPU time instead of wall time would double the overhead of the profiler). The profiler makes
Python calls more expensive than C calls, so shares show where to look; for costs see beside_peers.py.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import corpora
import product
from measure import CLIENT_CORE, table
from serving import pages, serve

PARTS = (  # the first that matches a function's file, relative to src/periplus
    ("acquire/transport", "transport"),
    ("acquire/inflate", "inflate"),
    ("acquire/frontier", "frontier"),
    ("store/sqlite/frontier", "frontier"),
    ("acquire/politeness", "frontier"),
    ("schedule/", "frontier"),
    ("document/robots", "robots"),
    ("document/", "understand"),
    ("urls/", "urls"),
    ("store/bodies", "store: bodies"),
    ("store/", "store: rows"),
    ("acquire/", "acquire: the rest"),
    ("cli/", "start and end"),
)
ELSEWHERE = "elsewhere"
# in the names of waiting functions
IDLE = ("select.epoll", "select.poll", "built-in method select.", "built-in method time.sleep")
ROUNDS = 60  # of passing time from callee to caller; deeper library stacks count as ELSEWHERE
Function = tuple[str, int, str]


def part_of(function: Function) -> str | None:
    """Part of a function, or None: its time counts for its callers."""
    _, mark, path = function[0].replace(os.sep, "/").partition("/periplus/")
    if not mark:
        return None
    return next((part for start, part in PARTS if path.startswith(start)), "the rest of ours")


def shares(stats: dict[Function, Any]) -> dict[str, float]:
    """Seconds by part.

    stats: of pstats, function -> (calls, calls, own seconds, seconds, {caller: (calls, calls, own, whole)}).
    """
    paid: dict[str, float] = defaultdict(float)
    waiting = {function: row[2] for function, row in stats.items() if not any(name in function[2] for name in IDLE)}
    for _ in range(ROUNDS):
        handed: dict[Function, float] = defaultdict(float)
        for function, seconds in waiting.items():
            part = part_of(function)
            callers = stats[function][4] if function in stats else {}
            weights = {caller: row[3] or row[0] * 1e-9 for caller, row in callers.items() if caller != function}
            total = sum(weights.values())
            if part is not None or not total:
                paid[part or ELSEWHERE] += seconds
                continue
            for caller, weight in weights.items():
                handed[caller] += seconds * weight / total
        waiting = {function: seconds for function, seconds in handed.items() if seconds > 1e-7}
    paid[ELSEWHERE] += sum(waiting.values())
    return dict(paid)


def command_of_ours() -> Callable[..., object]:
    """The click command of `periplus`."""
    try:
        found: Callable[..., object] = import_module("periplus.cli.main").main
    except ImportError:
        sys.exit("periplus crawl is not there yet")
    return found


def profiled(call: Callable[[], object]) -> cProfile.Profile:
    """Profile of a call, even if it raises; a click command ends with SystemExit."""
    profile = cProfile.Profile()
    profile.enable()
    try:
        call()
    except SystemExit as end:
        if end.code:
            print(f"the crawl ended with {end.code}")
    finally:
        profile.disable()
    return profile


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", choices=("a", "b"), default="a")
    parser.add_argument("--top", type=int, default=15, help="functions to list by own time")
    options = parser.parse_args()
    command = command_of_ours()
    sites = corpora.real() if options.corpus == "a" else corpora.generated()
    with tempfile.TemporaryDirectory(prefix="periplus-bench-") as temp, serve(sites, Path(temp)) as server:
        os.sched_setaffinity(0, {CLIENT_CORE})
        wanted = product.by_address(server.hosts, Path(temp) / "kept")
        profile = profiled(lambda: command(product.arguments(wanted)))
        count = pages(server.hits())
    stats = pstats.Stats(profile)
    found = shares(stats.stats)  # type: ignore[attr-defined]  # typeshed hides it; pstats documents it by its own use
    total = sum(found.values())
    rows = [
        (part, seconds, 100 * seconds / total, seconds / max(count, 1) * 1e6)
        for part, seconds in sorted(found.items(), key=lambda one: -one[1])
    ]
    print(f"{count:,} pages, {total:.2f} s under the profiler")
    print(table(("part", "s", "%", "us a page"), rows))
    stats.sort_stats("tottime").print_stats(options.top)


if __name__ == "__main__":
    main()
