"""A web of any number of small pages on several hosts, generated on request.

A page depends only on its host and number. Page 0 of a host is the start; page n links to 4 n + 1 ... 4 n + 4, so that
all pages are reachable. Its other links lead to random pages, low numbers more often, a fifth of them on other hosts.
Some links are dead, redirect, or leave the web. Some pages lack a title, share it with another page, or have a story
that four other hosts have with small changes.

    .venv/bin/python benchmarks/small_pages.py --pages 1000 --port 8900     # until Ctrl-C: http://127.0.0.11:8900/
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import random
import re
from dataclasses import dataclass
from itertools import accumulate

from corpora import SYLLABLES

FIRST_ADDRESS = 11  # 127.0.0.11 is the first host
DOMAIN = "large.test"  # of all hosts
CHILDREN = 4
MENU = 2  # number of menu links: start and parent
FOREIGN = 0.2  # share of the other links that lead to other hosts
DEAD, MOVED, OUTSIDE = 250, 250, 50  # one page in this many has a link of that kind
NO_TITLE, SAME_TITLE, NO_DESCRIPTION = 97, 89, 31
STORY, TELLERS, CHANGED = 400, 5, 0.05  # one page in this many has a story; hosts per story; share of changed words
WORDS, DRAWN = 20_000, 1 << 16  # distinct words; size of the sampling table, in which frequent words are repeated
PATH = re.compile(rb"/(?:s(\d+)/p(\d+)\.html)?")
MOVED_PATH = re.compile(rb"/old/(\d+)\.html")


@dataclass(frozen=True, slots=True)
class Web:
    """pages: total of all hosts; first: share of the first host, the rest is shared equally; links, page_bytes:
    approximate values per page; links include the two of the menu.
    """

    pages: int
    hosts: int = 20
    links: int = 10
    page_bytes: int = 4096
    first: float = 0.8

    def pages_of(self, host: int) -> int:
        others = int(self.pages * (1 - self.first) / max(1, self.hosts - 1))
        return others if host else self.pages - others * (self.hosts - 1)


def host_name(host: int) -> str:
    return f"h{host:02}.{DOMAIN}"


def path_of(number: int) -> str:
    return f"/s{number % 100}/p{number}.html" if number else "/"


@functools.cache
def vocabulary() -> list[str]:
    """Words with a frequency of the nth word proportional to 1 / (n + 10)."""
    rng = random.Random(1)
    words = list(dict.fromkeys("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(2 * WORDS)))[:WORDS]
    weights = list(accumulate(1 / (place + 10) for place in range(len(words))))
    return rng.choices(words, cum_weights=weights, k=DRAWN)


def told(rng: random.Random, host: int, number: int) -> list[str]:
    """Words of the story of this page; five hosts have the same story, each with its own changes."""
    words = random.Random(f"story {host // TELLERS} {number}").choices(vocabulary(), k=200)
    return [word if rng.random() > CHANGED else rng.choice(vocabulary()) for word in words]


def links_of(web: Web, rng: random.Random, host: int, number: int, port: int) -> list[str]:
    """Addresses, some of them relative to their host. Children first."""
    size = web.pages_of(host)
    links = [path_of(child) for child in range(CHILDREN * number + 1, CHILDREN * number + CHILDREN + 1) if child < size]
    if number % DEAD == 3:
        links.append(f"/gone/{number}.html")
    if number % MOVED == 7:
        links.append(f"/old/{number}.html")
    if number % OUTSIDE == 5:
        links.append(f"http://outside{number % 997}.example/{number}")
    while len(links) < web.links - MENU:
        there = rng.randrange(web.hosts) if rng.random() < FOREIGN else host
        path = path_of(int(rng.random() ** 2 * web.pages_of(there)))
        links.append(path if there == host else f"http://{host_name(there)}:{port}{path}")
    return links


def page(web: Web, host: int, number: int, port: int) -> bytes:
    """A page of HTML."""
    rng = random.Random(number * web.hosts + host)
    words = vocabulary()
    title = (
        ""
        if number % NO_TITLE == 96
        else f"Chapter {number // SAME_TITLE}"
        if number % SAME_TITLE < 2
        else " ".join(rng.choices(words, k=4))
    )
    about = "" if number % NO_DESCRIPTION == 30 else " ".join(rng.choices(words, k=12))
    links = links_of(web, rng, host, number, port)
    is_story = number % STORY == 17
    text = told(rng, host, number) if is_story else rng.choices(words, k=max(20, web.page_bytes // 8))
    date = f"2026-{1 + number % 12:02}-{1 + (number + host) % 28:02}"
    each = len(text) // len(links)
    parts = [
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width">'
        f'<meta name="description" content="{about}"><meta property="article:published_time" content="{date}"></head>'
        f'<body><nav><a href="/">{host_name(host)}</a> <a href="{path_of((number - 1) // CHILDREN)}">up</a></nav>'
        f"<main><h1>{title or number}</h1>"
    ]
    parts += [
        f'<p>{" ".join(text[at * each : (at + 1) * each])} <a href="{link}">{words[(number + at) % DRAWN]} '
        f"{words[(number * 7 + at) % DRAWN]}</a>.</p>"
        for at, link in enumerate(links)
    ]
    parts.append("</main></body></html>\n")
    return "\n".join(parts).encode()


def response(status: str, body: bytes, more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def answer(web: Web, host: int, target: bytes, port: int) -> bytes:
    """The complete response to a GET of this path."""
    if (named := PATH.fullmatch(target)) is not None:
        number = int(named[2] or 0)
        if number < web.pages_of(host) and target == path_of(number).encode():
            return response("200 OK", page(web, host, number, port))
    if (old := MOVED_PATH.fullmatch(target)) is not None:
        return response("301 Moved Permanently", b"", f"Location: {path_of(int(old[1]))}\r\n")
    return response("404 Not Found", b"<!DOCTYPE html><title>Not found</title><p>Not found.")


class Connection(asyncio.Protocol):
    """A kept-alive connection; answers each complete request head."""

    def __init__(self, web: Web, host: int, port: int) -> None:
        self._web, self._host, self._port, self._rest = web, host, port, b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for head in heads:
            method, target, _ = head.split(b" ", 2)
            whole = answer(self._web, self._host, target, self._port)
            self._transport.write(whole.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == b"HEAD" else whole)


async def served(web: Web, port: int) -> None:
    """Serves until it is cancelled."""
    loop = asyncio.get_running_loop()
    for host in range(web.hosts):
        await loop.create_server(
            functools.partial(Connection, web, host, port), f"127.0.0.{FIRST_ADDRESS + host}", port, backlog=1000
        )
    print("ready", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--links", type=int, default=10)
    parser.add_argument("--page-bytes", type=int, default=4096)
    parser.add_argument("--first", type=float, default=0.8)
    parser.add_argument("--port", type=int, required=True)
    chosen = parser.parse_args()
    vocabulary()
    with contextlib.suppress(KeyboardInterrupt):
        web = Web(chosen.pages, chosen.hosts, chosen.links, chosen.page_bytes, chosen.first)
        asyncio.run(served(web, chosen.port))


if __name__ == "__main__":
    main()
