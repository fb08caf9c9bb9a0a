"""Crawls killed with SIGKILL and restarted with the same command: which get all pages, and how many twice?

Ours without options; Scrapy with JOBDIR, Crawlee with unpurged file storage, minet with its persistent queue and
resume. Other crawlers have no stored state, or start from the beginning.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import corpora
import peers
import product
from measure import CLIENT_CORE, pinned, table
from serving import Server, pages, serve

RESUMING = ("scrapy", "crawlee-parsel", "minet")
LOOK_S = 0.05
LIMIT_S = 300.0


def trial(server: Server, made: Callable[[Path], list[str]], after: int) -> tuple[object, ...]:
    """(pages before the kill, total, requested twice, exit code of the second start)"""
    with tempfile.TemporaryDirectory(prefix="periplus-bench-") as folder:
        environment = os.environ | {"PEER_KEEPS": f"{folder}/state"}
        command = pinned(made(Path(folder)), CLIENT_CORE)
        mark = server.mark()
        first = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while pages(server.hits(mark)) < after and first.poll() is None:
            time.sleep(LOOK_S)
        first.kill()
        first.wait()
        before = pages(server.hits(mark))
        second = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            second.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            second.terminate()
            second.wait()
        hits = server.hits(mark)
    times = Counter(one.path for one in hits if one.status == 200 and one.media_type == "text/html")
    return before, pages(hits), sum(count - 1 for count in times.values()), second.returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument(
        "--after", type=int, nargs="*", default=[1500], help="pages after which to kill: one trial each"
    )
    options = parser.parse_args()
    rows: list[tuple[object, ...]] = []
    with (
        tempfile.TemporaryDirectory(prefix="periplus-nginx-") as temp,
        serve(corpora.generated(pages=options.pages), Path(temp)) as server,
    ):
        starts = [one.by_address for one in server.hosts]
        commands: dict[str, Callable[[Path], list[str]]] = {}
        if product.is_there():
            commands["periplus"] = lambda folder: product.command(product.by_address(server.hosts, folder / "kept"))
        for name in RESUMING:
            if peers.PEERS[name].is_there():
                # bind the loop variable
                commands[name] = lambda folder, peer=peers.PEERS[name]: peer.command(starts, folder / "files")  # type: ignore[misc]
        for name, made in commands.items():
            rows += [(name, *trial(server, made, after)) for after in options.after]
    print(
        table(("crawler", "pages before the kill", f"of {options.pages + 1:,} in all", "asked for twice", "exit"), rows)
    )


if __name__ == "__main__":
    main()
