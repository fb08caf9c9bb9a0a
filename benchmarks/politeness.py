"""Crawl of many hosts with a delay: how close is its time to the ideal, and is any gap between requests too short?

The server logs the arrival of each request head by the monotonic clock (nginx logs the end, in milliseconds). It runs
in this process, on the server's core.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import peers
import product
from measure import SERVER_CORE, Cost, run, table
from serving import free_port

PAGES = 21  # per host: the start and the 20 pages that it links to
SLACK_S = 0.005  # a gap shorter by less than this may be the delay of the server; counted separately


@dataclass
class Watching:
    """A server on many loopback addresses, with a log per host: (time in s, path)."""

    port: int
    addresses: list[str]
    starts: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    ready: threading.Event = field(default_factory=threading.Event)
    loop: asyncio.AbstractEventLoop | None = None

    def serve(self) -> None:
        """Runs until end() is called, from another thread."""
        os.sched_setaffinity(threading.get_native_id(), {SERVER_CORE})
        asyncio.run(self._serve())

    def end(self) -> None:
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self._over.set)

    async def _serve(self) -> None:
        self.loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._answer, self.addresses, self.port, backlog=512)
        self.ready.set()
        async with server:
            await self._over.wait()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = writer.get_extra_info("sockname")[0]
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                moment = time.monotonic()
                path = head.split(b" ", 2)[1].decode("latin-1")
                self.starts.setdefault(host, []).append((moment, path))
                writer.write(answer(path))
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            writer.close()


def answer(path: str) -> bytes:
    """The start links to all pages, a page to the start; 404 for all other paths, including robots.txt."""
    known = path == "/" or path in {f"/{number}.html" for number in range(1, PAGES)}
    links = (
        "".join(f'<a href="/{number}.html">page {number}</a> ' for number in range(1, PAGES))
        if path == "/"
        else '<a href="/">start</a>'
    )
    # all pages of a host differ
    words = " ".join(f"{word}{path[1:-5]}" for word in ("alpha", "beta", "gamma", "delta"))
    body = f"<!DOCTYPE html><title>{path}</title><h1>Page {path}</h1><p>{words}</p><p>{links}</p>".encode()
    line = b"HTTP/1.1 200 OK" if known else b"HTTP/1.1 404 Not Found"
    return line + b"\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def judge(starts: dict[str, list[tuple[float, str]]], delay_s: float, cost: Cost) -> list[object]:
    """Row of a crawl. ideal: time that the delay alone takes for the pages of a host. Gaps include robots.txt."""
    gaps = [later - earlier for log in starts.values() for (earlier, _), (later, _) in pairwise(log)]
    paths = [[one for one in log if one[1] == "/" or one[1].endswith(".html")] for log in starts.values()]
    moments = [moment for log in paths for moment, _ in log]
    ideal = (PAGES - 1) * delay_s
    span = max(moments, default=0.0) - min(moments, default=0.0)
    requests = max(map(len, starts.values()), default=0)
    under = sum(1 for gap in gaps if gap < delay_s)
    badly = sum(1 for gap in gaps if gap < delay_s - SLACK_S)
    fetched = sum(len({path for _, path in log}) for log in paths)
    whole = fetched == len(starts) * PAGES  # an incomplete crawl does not count as faster
    real = ideal / span if span and whole else float("nan")
    command = (requests - 1) * delay_s / cost.wall_s if cost.wall_s and whole else float("nan")
    return [
        fetched,
        ideal,
        span,
        real,
        cost.wall_s,
        command,
        min(gaps, default=float("nan")),
        under,
        badly,
        cost.cpu_s,
        cost.exit_code,
    ]


def trial(addresses: list[str], delay_s: float, made: Callable[[int, Path], list[str]]) -> list[object]:
    """The row of one crawl with a new server."""
    watching = Watching(free_port(), addresses)
    thread = threading.Thread(target=watching.serve, daemon=True)
    thread.start()
    watching.ready.wait(10)
    with tempfile.TemporaryDirectory(prefix="periplus-bench-") as folder:
        cost = run(made(watching.port, Path(folder)), cwd=Path(folder), limit_s=PAGES * delay_s * 8 + 30)
    watching.end()
    thread.join(5)
    if cost.exit_code:
        print(cost.said[-500:])
    return judge(watching.starts, delay_s, cost)


def ours(addresses: list[str], delay_s: float, workers: int) -> Callable[[int, Path], list[str]]:
    def made(port: int, folder: Path) -> list[str]:
        hosts = [(f"h{number:03}.test", address) for number, address in enumerate(addresses)]
        starts = tuple(f"http://{name}:{port}/" for name, _ in hosts)
        resolve = tuple(f"{name}:{port}:{address}" for name, address in hosts)
        return product.command(
            product.Crawl(starts, folder / "kept", (), resolve, delay_s=delay_s, per_host=1, workers=workers)
        )

    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--delay", type=float, default=0.5)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--peers", action="store_true", help="Scrapy too")
    options = parser.parse_args()
    addresses = [f"127.0.1.{number + 1}" for number in range(options.hosts)]
    rows = []
    if product.is_there():
        rows.append(["periplus", *trial(addresses, options.delay, ours(addresses, options.delay, options.workers))])
    else:
        print("periplus crawl is not there yet")
    if options.peers and peers.have_scrapy():
        starts = lambda port, _folder: peers.scrapy(  # noqa: E731
            [f"http://{one}:{port}/" for one in addresses], delay_s=options.delay, per_host=1
        )
        rows.append(["scrapy", *trial(addresses, options.delay, starts)])
    heads = (
        "crawler",
        "pages",
        "ideal s",
        "first to last page s",
        "efficiency",
        "command s",
        "of command, with robots.txt",
    )
    print(table((*heads, "smallest gap s", "gaps under the delay", "under by > 5 ms", "CPU s", "exit"), rows))


if __name__ == "__main__":
    main()
