"""A network namespace with a lying name server: `lying_names.py PROGRAM...` runs the program in it.

Two web servers, on a public address and on loopback, both on this machine; their requests are written to
`asked.json`: {"public": [...], "private": [...]}, each `host path`. Must be started by `unshare --mount --net`.
"""

from __future__ import annotations

import http.server
import json
import random
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

PUBLIC, PRIVATE = "93.184.216.34", "127.0.0.1"
# name -> results of successive look-ups; the last one repeats. No addresses: the name does not
# exist; None: the server fails
NAMES = {
    "honest.example": ((PUBLIC,),),
    "liar.example": ((PRIVATE,),),
    "both.example": ((PRIVATE, PUBLIC),),
    "rebound.example": ((PUBLIC,), (PRIVATE,)),
    "flapping.example": (None, None, (PUBLIC,)),
    "failing.example": (None,),
    "missing.example": ((),),
    "mapped.example": (("::ffff:127.0.0.1",),),
    "metadata.example": (("169.254.169.254",),),
    "zero.example": (("0.0.0.0",),),
}
SILENT = "silent.example"  # look-ups are never answered
WORDS = [
    "harbour",
    "pilot",
    "chart",
    "tide",
    "buoy",
    "lamp",
    "mole",
    "reef",
    "shoal",
    "keeper",
    "ferry",
    "crew",
    "wind",
    "fog",
    "bell",
    "channel",
    "anchor",
    "rope",
    "dock",
    "coast",
]
PATHS = ("/", *(f"/{number}" for number in range(1, 9)))


def reply(question: bytes, seen: Counter[str]) -> bytes | None:
    """Answer of the name server to a question (RFC 1035, 4); None: no answer."""
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode("ascii").lower())
        at += 1 + question[at]
    asked, name = question[12 : at + 5], ".".join(labels)
    wants_six = struct.unpack("!H", question[at + 1 : at + 3])[0] == 28
    if name == SILENT:
        return None
    turns = NAMES.get(name, ((),))
    six = any(turn and ":" in turn[0] for turn in turns)
    turn = turns[min(seen[name], len(turns) - 1)]
    if wants_six == six:
        seen[name] += 1  # a look-up requests both kinds of addresses
    found = [] if turn is None else [address for address in turn if (":" in address) is wants_six]
    code = 2 if turn is None else 3 if turns == ((),) else 0
    records = b"".join(_record(address) for address in found)
    return question[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(found), 0, 0) + asked + records


def _record(address: str) -> bytes:
    """A record with a TTL of 0, so that it is not cached."""
    family, kind = (socket.AF_INET6, 28) if ":" in address else (socket.AF_INET, 1)
    data = socket.inet_pton(family, address)
    return b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(data)) + data


def serve_names() -> None:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 53))
    seen: Counter[str] = Counter()

    def answer() -> None:
        while True:
            question, who = sock.recvfrom(2048)
            if (said := reply(question, seen)) is not None:
                sock.sendto(said, who)

    threading.Thread(target=answer, daemon=True).start()


def serve_pages(address: str, asked: list[str]) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.headers['host']} {self.path}")
            known = self.path in PATHS
            words = " ".join(random.Random(f"{self.headers['host']}{self.path}").choices(WORDS, k=60))
            page = f"<!doctype html><title>{self.path}</title><p>{words}." + "".join(
                f"<a href={path}>{path}</a>" for path in PATHS
            )
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page) if known else 0))
            self.end_headers()
            self.wfile.write(page.encode() if known else b"")

        def log_message(self, *args: object) -> None: ...

    class Server(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        daemon_threads = True

    server = Server((address, 80), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main() -> None:
    for words in ("ip link set lo up", f"ip addr add {PUBLIC}/32 dev lo"):
        subprocess.run(words.split(), check=True)
    resolver = Path("resolv.conf")
    resolver.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n", "ascii")
    subprocess.run(["mount", "--bind", resolver, "/etc/resolv.conf"], check=True)
    asked: dict[str, list[str]] = {"public": [], "private": []}
    serve_names()
    serve_pages(PUBLIC, asked["public"])
    serve_pages(PRIVATE, asked["private"])
    serve_pages("::1", asked["private"])
    status = subprocess.run(["bash", "-c", sys.argv[1]], check=False).returncode
    Path("asked.json").write_text(json.dumps(asked), "utf-8")
    sys.exit(status)


if __name__ == "__main__":
    main()
