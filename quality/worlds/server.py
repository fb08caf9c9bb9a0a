"""All worlds on one port, each under its own name: `python quality/worlds/server.py [ADDRESS PORT] [--size N]`.

http://HOST/... answers by the Host header; the path /_truth of a world lists its real addresses.
"""

from __future__ import annotations

import argparse
import random
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from archives import Gallery, Mails
from boards import Bugs, Forum
from catalogues import Genealogy, Library
from kit import Redirect, World
from reference import Dictionary, Gazetteer
from registers import Exams, Ships
from tables import Buses, Prices

KINDS: dict[str, type[World]] = {
    kind.name: kind
    for kind in (
        *(Dictionary, Gazetteer, Ships, Exams, Prices, Buses),
        *(Bugs, Forum, Mails, Gallery, Library, Genealogy),
    )
}


class Server(ThreadingHTTPServer):
    """Answers for the worlds it is given, and logs (host, address, status) of each request."""

    request_queue_size = 128
    daemon_threads = True

    def __init__(self, address: tuple[str, int], worlds: Iterable[World]) -> None:
        super().__init__(address, Handler)
        self.worlds = {world.host: world for world in worlds}
        self.log: list[tuple[str, str, int]] = []
        self.chance = random.Random(0)

    def start(self) -> None:
        """Runs in its own thread until `shutdown`."""
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Server
    wbufsize = -1  # headers and body in one packet

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").split(":")[0]
        world = self.server.worlds.get(host)
        if world is not None and self.path == "/_truth":
            self.reply(200, "\n".join(sorted(world.real)), kind="text/plain")
            return
        try:
            answer = world.answer(self.path, self.server.chance) if world else None
        except ValueError:  # a number that is none
            answer = None
        status = 404 if answer is None else 302 if isinstance(answer, Redirect) else 200
        self.server.log.append((host, self.path, status))
        self.reply(status, answer if isinstance(answer, str) else "", answer.to if isinstance(answer, Redirect) else "")

    do_HEAD = do_GET  # noqa: N815

    def reply(self, status: int, text: str, to: str = "", kind: str = "text/html") -> None:
        """The whole answer."""
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if to:
            self.send_header("Location", to)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
        self.wfile.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", nargs="?", default="127.0.0.1")
    parser.add_argument("port", nargs="?", type=int, default=8480)
    parser.add_argument("--size", type=int, default=600, help="records of each world")
    options = parser.parse_args()
    server = Server(
        (options.address, options.port),
        [kind(options.size, traps) for kind in KINDS.values() for traps in (False, True)],
    )
    for host in server.worlds:
        print(f"http://{host}/  {len(server.worlds[host].real)} real pages")
    server.serve_forever()


if __name__ == "__main__":
    main()
