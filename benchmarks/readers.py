"""How much do fifty users of the interface slow a crawl, and how fast are their answers?

One worker crawls sites, alternately without users and with users of `periplus serve`. Each user watches the live
screen and opens further screens, PAUSE_S apart. Crawl, web server, interface and users share the cores; the program of
the users, which usually runs elsewhere, has nice 19. Aim: at most a tenth slower.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import corpora
import product
from measure import Cost, alternated, load, process_cpu_s, run, table
from serving import Host, free_port, serve

NAME = "watched"
PAUSE_S = 10.0  # between two screens of a user; reading one takes longer
READERS = "--as-readers"
SCREENS = (
    "live",
    "t/pages",
    "t/pages?status=200&sort=-size",
    "t/links",
    "t/pages?q=page",
    "t/hosts",
    "t/dead",
    "t/runs",
    "page?url={}",
    "graph?node={}",
)


@contextlib.contextmanager
def interface(folder: Path) -> Iterator[tuple[int, int]]:
    """(port, process) of the interface over the folder."""
    port = free_port()
    child = subprocess.Popen(
        [product.COMMAND, "serve", folder, "--port", str(port), "--no-workers"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(200):
            with contextlib.suppress(OSError):
                asked(port, "/")
                break
            time.sleep(0.1)
        yield port, child.pid
    finally:
        child.terminate()
        child.wait()


def asked(port: int, path: str) -> float:
    """Seconds until the answer."""
    started = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    connection.getresponse().read()
    connection.close()
    return time.perf_counter() - started


def read(port: int, number: int, start: str, ended: threading.Event, took: list[float]) -> None:
    """A user, until the crawl ends."""
    watching = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    watching.request("GET", f"/c/{NAME}/events")
    stream = threading.Thread(target=drain, args=(watching,), daemon=True)
    stream.start()
    turn = number
    while not ended.wait(PAUSE_S * (0.5 if turn == number else 1) * (1 + number % 5) / 3):
        took.append(asked(port, f"/c/{NAME}/{SCREENS[turn % len(SCREENS)].format(quote(start, safe=''))}"))
        turn += 1


def drain(watching: http.client.HTTPConnection) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
        answer = watching.getresponse()
        while answer.read1(65_536):
            pass


def as_readers(port: int, readers: int, start: str) -> None:
    """A separate process: runs users until its input ends, then prints the response times."""
    os.nice(19)
    ended, took = threading.Event(), []
    for number in range(readers):
        threading.Thread(target=read, args=(port, number, start, ended, took), daemon=True).start()
    sys.stdin.read()
    ended.set()
    print(json.dumps(took), flush=True)
    os._exit(0)  # event streams do not end on their own


def crawl(base: Path, hosts: tuple[Host, ...]) -> tuple[list[str], Path]:
    folder = base / f"{NAME}.periplus"
    shutil.rmtree(folder, ignore_errors=True)
    return product.command(product.by_address(hosts, folder)), folder


def watched(base: Path, hosts: tuple[Host, ...], port: int, readers: int, answers: list[float]) -> Cost:
    command, folder = crawl(base, hosts)
    child = subprocess.Popen(
        [sys.executable, __file__, READERS, str(port), str(readers), hosts[0].by_address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    folder.mkdir()  # users start once the collection exists
    cost = run(command, core=None)
    told, _ = child.communicate("")
    answers += json.loads(told)
    return cost


def main() -> None:
    if READERS in sys.argv:
        as_readers(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sites", type=int, default=4)
    chosen = parser.parse_args()
    sites = [corpora.generated(pages=1000, seed=seed)[0] for seed in range(1, chosen.sites + 1)]
    answers: list[float] = []
    with tempfile.TemporaryDirectory() as temp, serve(sites, Path(temp), core=None, log=False) as server:
        base = Path(temp) / "collections"
        base.mkdir()
        with interface(base) as (port, pid):
            before, began = process_cpu_s(pid), time.monotonic()
            trials = {
                "no users": lambda: run(crawl(base, server.hosts)[0], core=None),
                f"{chosen.readers} readers": lambda: watched(base, server.hosts, port, chosen.readers, answers),
            }
            costs = alternated(chosen.rounds, trials)
            used = (process_cpu_s(pid) - before) / (time.monotonic() - began)
    report(costs, answers, used)


def report(costs: dict[str, list[Cost]], answers: list[float], used: float) -> None:
    first = next(iter(costs.values()))
    rows = []
    for name, trials in costs.items():
        ratios = [one.wall_s / other.wall_s for one, other in zip(trials, first, strict=True)]
        wall, cpu = (
            statistics.median(values) for values in ([one.wall_s for one in trials], [one.cpu_s for one in trials])
        )
        rows.append(
            (
                name,
                f"{wall:.1f}",
                f"{cpu:.1f}",
                f"{statistics.median(ratios):.2f}",
                " ".join(f"{ratio:.2f}" for ratio in ratios),
            )
        )
    print(f"{load()}; the interface used {100 * used:.0f} % of a core over all rounds")
    print(table(("crawl while", "wall s", "CPU s", "ratio of wall, median", "of each round"), rows))
    ordered = sorted(answers) or [0.0]
    median, late = ordered[len(ordered) // 2], ordered[int(0.95 * (len(ordered) - 1))]
    print(
        f"{len(answers)} screens opened: {1000 * median:,.0f} ms at the median, "
        f"{1000 * late:,.0f} ms at the 95th percentile"
    )


if __name__ == "__main__":
    main()
