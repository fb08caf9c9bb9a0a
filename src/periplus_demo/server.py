"""Serves the demo webs on this machine only, all on one port, by the name in the Host field."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from periplus_demo import coastnews, towns
from periplus_demo.harbours import Harbours, WebAnswer

LOOPBACK = "127.0.0.1"


class _Webs:
    """The three webs, each created at its first request."""

    def __init__(self, *, repaired: bool) -> None:
        self.repaired = repaired
        self.serials = itertools.count()
        self.pilot_book: Harbours | None = None
        self.news: coastnews.NewsWeb | None = None

    def answer(self, host: str, path: str) -> WebAnswer:
        """host: the Host field, with its port."""
        name, _, port = host.partition(":")
        if name in towns.TOWNS or name in towns.OFFICES:
            return towns.answer(name, path, port)
        base = f"http://{host}"
        if name.endswith(f".{coastnews.DOMAIN}"):
            self.news = self.news or coastnews.NewsWeb(coastnews.today_utc())
            return self.news.answer(path, base, 0)
        self.pilot_book = self.pilot_book or Harbours(Path(__file__).parent, repaired=self.repaired)
        return self.pilot_book.answer(path, base, next(self.serials))


class _Handler(BaseHTTPRequestHandler):
    """A connection, kept open. Answers 304 if the client has the current page."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # header and body leave in one packet
    webs: _Webs

    def do_GET(self) -> None:
        answer = self.webs.answer(self.headers.get("Host", LOOPBACK), self.path.partition("?")[0])
        if answer.wait_s:
            time.sleep(answer.wait_s)
        etag = f'"{hashlib.md5(answer.body, usedforsecurity=False).hexdigest()[:16]}"'
        unchanged = answer.status == 200 and self.headers.get("If-None-Match") == etag
        self.send_response(304 if unchanged else answer.status)
        self.send_header("ETag", etag)
        if answer.location:
            self.send_header("Location", answer.location)
        if not unchanged:
            if answer.media_type:
                self.send_header("Content-Type", answer.media_type)
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if not unchanged and self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815  (the name that http.server expects)

    def log_message(self, format: str, *args: object) -> None:
        """Does nothing: the crawler reports the requests."""


def serve(port: int, ready: Callable[[int], None], *, repaired: bool = False) -> None:
    """Serves until the process is interrupted. port: 0 for a free one; ready: called once with the port.

    repaired: with the broken links of the pilot book repaired.
    """
    handler = type("Handler", (_Handler,), {"webs": _Webs(repaired=repaired)})
    with ThreadingHTTPServer((LOOPBACK, port), handler) as server:
        server.daemon_threads = True
        ready(server.server_port)
        server.serve_forever(poll_interval=0.1)
