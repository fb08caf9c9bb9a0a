"""Serves the example site on this machine only: python examples/serve.py [--news] [--port 0] [--port-file F]"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SITE, NEWS = Path(__file__).parent / "site", Path(__file__).parent / "news"
sys.path[:0] = [str(SITE), str(NEWS)]

from coastnews import NewsWeb, today_utc  # noqa: E402
from harbours import Harbours  # noqa: E402  (they lie beside their sources)

LOOPBACK = "127.0.0.1"


class Handler(BaseHTTPRequestHandler):
    """One connection. Keeps it open, and answers 304 to those who hold the page already."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # header and body leave in one packet
    web: Harbours | NewsWeb = Harbours(SITE)
    serials = itertools.count()

    def do_GET(self) -> None:
        base = "http://" + self.headers.get("Host", LOOPBACK)
        answer = self.web.answer(self.path.partition("?")[0], base, next(self.serials))
        if answer.wait_s:
            time.sleep(answer.wait_s)
        etag = f'"{hashlib.md5(answer.body, usedforsecurity=False).hexdigest()[:16]}"'
        known = answer.status == 200 and self.headers.get("If-None-Match") == etag
        self.send_response(304 if known else answer.status)
        self.send_header("ETag", etag)
        if answer.location:
            self.send_header("Location", answer.location)
        if not known:
            self.send_header("Content-Type", answer.media_type)
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if not known and self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815  (the name that http.server looks for)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the crawler tells what happened."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: one that is free")
    parser.add_argument("--port-file", type=Path, help="the port is written to this file once the site is served")
    parser.add_argument(
        "--news", action="store_true", help="the small news web instead: ten sites, told apart by the Host field"
    )
    arguments = parser.parse_args()
    if arguments.news:
        Handler.web = NewsWeb(today_utc())
    with ThreadingHTTPServer((LOOPBACK, arguments.port), Handler) as server:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        print(f"http://{LOOPBACK}:{server.server_port}/", flush=True)
        if arguments.port_file:
            arguments.port_file.write_text(f"{server.server_port}\n", "utf-8")
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            print("ended")


if __name__ == "__main__":
    main()
