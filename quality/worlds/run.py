"""Does a crawl read every page of a site and stop, with and without the traps of real software?

python quality/worlds/run.py [--world NAME...] [--size N] [--jobs N] [--traps yes|no|both] [--json FILE]

Each world is crawled with default settings, but without delay, and with a bound of 3 x real + 2,000 pages. The table
counts answers of the server: real pages, fetched and lost ones, fetched trap pages. Below are the reasons that the
collection has for lost pages, and the locations of the trap pages.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from kit import World
from server import KINDS, Server

LONGEST_S = 3600.0  # for one crawl


class Row(NamedTuple):
    """Result of the crawl of a world."""

    world: str
    real: int
    read: int
    neutral: int
    trap: int  # answers 200 or 302 that are neither real nor neutral, and real pages again under another address
    ended: bool  # not by the bound on pages or time
    code: int
    seconds: float
    first: str  # line of the output
    reasons: dict[str, int]  # of pages that were lost
    lost: list[str]  # some of them
    trapped: dict[str, int]  # scripts or folders of the trap pages that were read

    @property
    def bound(self) -> int:
        """Pages allowed."""
        return bound(self.real)


def bound(real: int) -> int:
    """Pages that a crawl may read."""
    return 3 * real + 2000


def reasons(periplus: str, store: Path, world: World, lost: set[str]) -> dict[str, int]:
    """Why pages were not fetched: the reasons of their addresses in the collection."""
    asked = [periplus, "sql", "SELECT url, reason FROM urls", "-c", str(store), "-f", "jsonl", "--time-limit", "0"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    why: dict[str, str] = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        why.setdefault(world.key("/" + row["url"].split("/", 3)[-1]), str(row["reason"]))
    return dict(collections.Counter(why.get(target, "never queued") for target in lost))


def crawl(name: str, traps: bool, size: int, periplus: str) -> Row:
    """Crawls one world."""
    world = KINDS[name](size, traps)
    server = Server(("127.0.0.1", 0), [world])
    server.start()
    port, began = server.server_address[1], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="worlds-") as folder:
        store = Path(folder) / "c"
        command = [
            *(
                periplus,
                "crawl",
                f"http://{world.host}:{port}/",
                "-o",
                str(store),
                "--delay",
                "0",
                "--mine",
                world.host,
                "--allow-private",
            ),
            *(
                "--resolve",
                f"{world.host}:{port}:127.0.0.1",
                "--max-pages",
                str(bound(len(world.real))),
                "--no-progress",
            ),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST_S)
            code, said = done.returncode, done.stdout or done.stderr
        except subprocess.TimeoutExpired:
            code, said = -1, f"not at an end after {LONGEST_S:.0f} s"
        seconds = time.monotonic() - began
        answered = [target for _, target, status in server.log if status < 400]
        server.shutdown()
        found = {world.key(target) for target in answered}
        lost = world.real - found
        why = reasons(periplus, store, world, lost) if lost else {}
    read, neutral = len(world.real & found), len(world.neutral & found)
    trapped = collections.Counter(
        "/".join(target.split("?")[0].split(";")[0].split("/")[:2])
        for target in answered
        if world.kind(target) == "trap"
    )
    ended = code >= 0 and len(answered) < bound(len(world.real))
    return Row(
        world.host.split(".")[0],
        len(world.real),
        read,
        neutral,
        len(answered) - read - neutral,
        ended,
        code,
        seconds,
        next((line.strip() for line in said.splitlines() if line.strip()), ""),
        why,
        sorted(lost)[:3],
        dict(trapped.most_common(4)),
    )


def text_of(row: Row) -> str:
    """A line of the table."""
    ended = "yes" if row.ended else "no"
    numbers = f"{row.real:6} | {row.read:6} | {row.real - row.read:5} | {row.trap:6} | {row.neutral:6}"
    return f"| {row.world:17} | {numbers} | {ended:5} | {row.code:4} | {row.seconds:5.0f} | {row.first[:160]} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", nargs="*", choices=sorted(KINDS), default=list(KINDS))
    parser.add_argument(
        "--size", type=int, default=600, help="records of each world (default 600; 30000 for a full measurement)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="crawls at once")
    parser.add_argument("--traps", choices=("yes", "no", "both"), default="both")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument(
        "--periplus", default=str(Path(sys.executable).with_name("periplus")), help="program to measure"
    )
    options = parser.parse_args()
    variants = {"yes": (True,), "no": (False,), "both": (False, True)}[options.traps]
    print(
        "| world             |   real |   read |  lost |  traps | neutral | ended | exit |     s | first line |\n"
        "|---|---|---|---|---|---|---|---|---|---|"
    )
    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(
            lambda case: crawl(*case, options.size, options.periplus),
            [(name, traps) for name in options.world for traps in variants],
        ):
            print(text_of(row), flush=True)
            rows.append(row)
    for row in rows:
        if row.reasons or row.trap:
            print(f"{row.world}: lost {row.reasons} as {row.lost}; traps read {row.trapped}")
    total = [sum(values) for values in zip(*((row.real, row.read, row.trap, row.ended) for row in rows), strict=True)]
    print(
        f"{total[0]} real pages, {total[1]} read, {total[0] - total[1]} lost; {total[2]} trap pages read; "
        f"{total[3]} of {len(rows)} crawls ended"
    )
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in rows], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
