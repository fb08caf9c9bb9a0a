"""Tools for tests of the transport: a web of faults, a scripted socket, complete exchanges."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from dataclasses import replace

from periplus.acquire.clock import SystemClock
from periplus.acquire.transport import CurlTransport, Wire
from periplus.model.visit import Request
from periplus.settings import FetchLimits, Identity
from testweb import Web, faults
from testweb.site import Page
from testweb.wire import Answer, Pause, head, raw

QUICK = FetchLimits(connect_timeout_s=2.0, first_byte_timeout_s=1.5, total_timeout_s=3.0)
PATIENCE_S = 300.0


def fault_web():
    """a.test with every fault, b.test with one page."""
    site = faults.faulty_site("a.test")
    faults.drip(site, "/drip", 0.05)
    faults.flood(site, "/flood")
    faults.silent(site, "/silent")
    faults.slow(site, "/slow", 0.2)
    faults.many_headers(site, "/many-headers", 5000)
    site.answer("/big", Answer(body=bytes(range(256)) * 400, media_type="application/octet-stream", gzip=False))
    site.answer("/film", Answer(body=b"f" * 50_000, media_type="video/mp4", gzip=False))
    site.answer("/long-film", Answer(body=b"f" * 5_000_000, media_type="video/mp4", gzip=False))
    site.answer("/headers", Answer(body=b"x", headers=(("X-Twice", "1"), ("x-twice", "2"), ("X-Latin", "caf\xe9"))))
    site.answer("/cookie", Answer(body=b"x", headers=(("Set-Cookie", "session=new; Path=/"),)))
    site.answer("/half-header", raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Ha"))
    site.answer("/late-header", raw(b"HTTP/1.1 200 OK\r\n", Pause(3600.0)))
    site.answer(
        "/continue", raw(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + head(200, ("Content-Length", "2")) + b"ok")
    )
    site.answer("/odd-status", raw(b"HTTP/1.1 999 Go away\r\nContent-Length: 0\r\n\r\n"))
    web = Web([site])
    web.site("b.test").add(Page("/", "Another host"))
    return web


def curl(
    resolve=(),
    limits=QUICK,
    *,
    concurrency=128,
    auth_hosts=frozenset(),
    reads=None,
    reads_start=None,
    admits=None,
    clock=None,
    **identity,
):
    """A transport to loopback, unless identity overrides it."""
    identity = {"allow_private": True, "resolve": tuple(resolve)} | identity
    wire = Wire(
        limits,
        Identity(**identity),
        concurrency,
        auth_hosts,
        reads or (lambda media_type: True),
        reads_start or (lambda media_type, start: True),
    )
    return CurlTransport(wire if admits is None else replace(wire, admits=admits), clock or SystemClock())


def carry(transport, *requests):
    """Responses by path, after all exchanges ended. Texts are parsed as URLs."""
    asked = [request if isinstance(request, Request) else Request(request) for request in requests]
    for request in asked:
        transport.start(request)
    found, deadline = {}, time.monotonic() + PATIENCE_S
    while transport.in_flight:
        assert time.monotonic() < deadline, "an exchange never ended"
        found |= {response.request: response for response in transport.wait(0.5)}
    return [found[request] for request in asked]


class Talker:
    """A listening socket; each connection is handed to `talk(connection)`. heard: the first bytes of each."""

    def __init__(self, talk, address="127.0.0.1"):
        self.talk, self.heard = talk, []
        self.socket = socket.create_server((address, 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(PATIENCE_S)
                    self.heard.append(connection.recv(65_536))
                    self.talk(connection)

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(PATIENCE_S)


@contextlib.contextmanager
def talker(says, address="127.0.0.1"):
    """A Talker that sends these bytes on every connection and closes it."""
    served = Talker(lambda connection: connection.sendall(says), address)
    try:
        yield served
    finally:
        served.close()
