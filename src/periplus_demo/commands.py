"""`periplus demo`: serves the demo webs on this machine only, all on one port, by the name in the Host field."""

from __future__ import annotations

import hashlib
import itertools
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click

from periplus.cli.options import option
from periplus.errors import UsageError
from periplus_demo import coastnews, towns
from periplus_demo.harbours import Harbours, WebAnswer

LOOPBACK = "127.0.0.1"
_DEMO_PORT = 8000
_DEMO_SETTINGS = """\
# For the example webs of `periplus demo`. Do not crawl other people's sites like this.
[settings]
allow_private = true                  # the webs are served on this machine
resolve = ["*:{port}:127.0.0.1"]       # their invented names lead to it too
mine = ["127.0.0.1", "*.example"]     # your own hosts need no long delays
delay_s = 0.02
retry_wait_s = 0.2
recheck_wait_s = 0.5
"""


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


@click.command()
@option("--port", "The port to listen on; 0: any that is free.", click.IntRange(0, 65535), _DEMO_PORT)
@option("--settings", "Print a periplus.toml for fast crawls of the webs, and serve nothing.", bool)
@option("--repaired", "Serve the first site without its broken links, to see the next check improve.", bool)
def demo(port: int, settings: bool, repaired: bool) -> None:
    """Serve three small example webs on this machine, to try the commands on.

    A site in eight languages with planted faults, ten news sites that copy each other's stories, and the sites of eight
    towns that link to each other. The tutorials use them. Nothing leaves this machine; Ctrl-C ends it.

    \b
    periplus demo                                in one terminal
    periplus demo --settings > periplus.toml     in another one, where the collections are to be
    periplus crawl http://127.0.0.1:8000/
    """
    if settings:
        click.echo(_DEMO_SETTINGS.format(port=port), nl=False)
        return

    def ready(port: int) -> None:
        shown_port = "" if port == _DEMO_PORT else f" --port {port}"
        click.echo(
            f"A site with planted faults:  http://{LOOPBACK}:{port}/\n"
            f"Ten news sites:              {coastnews.starts(str(port))[0]} and others\n"
            f"Eight towns:                 {towns.starts(str(port))[0]} and others\n"
            f"In another terminal:         periplus demo --settings{shown_port} > periplus.toml\n"
            f"                             periplus crawl http://{LOOPBACK}:{port}/\n"
            f"Ctrl-C ends it."
        )
        sys.stdout.flush()

    try:
        serve(port, ready, repaired=repaired)
    except OSError as error:
        raise UsageError(f"nothing can listen on port {port} ({error.strerror}): choose another with --port") from error
