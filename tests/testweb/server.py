"""Serves a synthetic web: one thread, loopback only, all hosts on one port."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from testweb import tls
from testweb.log import HEADERS_KEPT, Entry, Log
from testweb.site import NOT_FOUND, Site, Web
from testweb.truth import Truth
from testweb.wire import PORT, REASONS, TLS_PORT, Answer, Asked, Pause, Raw, Reset

LOOPBACK = "127.0.0.1"
HEAD_LIMIT_BYTES = 65_536
# of Linux's struct tcp_info: milliseconds since the connection's last bytes came in
_LAST_DATA_RECV = struct.Struct("=52xI")
_TICK_MS = 4  # its resolution: subtracted, so that no request seems to arrive before its predecessor
_HARD_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: closing sends RST


@lru_cache(maxsize=8192)
def _gzipped(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=1, mtime=0)


def _lateness_s(connection: socket.socket) -> float:
    """Seconds since the system received the last bytes: our delay on a busy machine.

    0.0 where unknown (not Linux).
    """
    if not hasattr(socket, "TCP_INFO"):
        return 0.0
    (late_ms,) = _LAST_DATA_RECV.unpack(
        connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_DATA_RECV.size)
    )
    return max(0, late_ms - _TICK_MS) / 1000


@dataclass(slots=True)
class _Exchange:
    """An open request; it is logged before the client can have the complete answer."""

    asked: Asked
    writer: asyncio.StreamWriter
    connection: int
    at_once: int
    wall: float
    arrived: float
    status: int = 0
    body_bytes: int = 0
    logged: bool = False

    def tell(self, log: Log) -> None:
        """Adds the exchange to the log, once."""
        if not self.logged:
            self.logged = True
            asked = self.asked
            kept = tuple((name, asked.headers[name]) for name in HEADERS_KEPT if name in asked.headers)
            agent, ended = asked.headers.get("user-agent", ""), time.monotonic()
            request = (self.wall, self.arrived, ended, asked.host, asked.method, asked.target, agent, kept)
            log.add(Entry(*request, self.status, self.body_bytes, self.at_once, self.connection))


@dataclass(slots=True)
class Server:
    """A running server of a web. Created by `serve` and by `python -m testweb`."""

    web: Web
    log: Log = field(default_factory=Log)
    port: int = 0
    tls_port: int = 0
    _serial: int = 0
    _connections: int = 0
    _times: Counter = field(default_factory=Counter)  # by host and target
    _versions: Counter = field(default_factory=Counter)  # by host and path
    _under_way: Counter = field(default_factory=Counter)  # by host
    _tasks: set[asyncio.Task] = field(default_factory=set)

    def url(self, host: str, path: str = "/", *, tls: bool = False) -> str:
        return f"https://{host}:{self.tls_port}{path}" if tls else f"http://{host}:{self.port}{path}"

    @property
    def resolve(self) -> tuple[str, ...]:
        """Values of the setting `resolve`: every host name on our ports is this machine."""
        return tuple(f"*:{port}:{LOOPBACK}" for port in (self.port, self.tls_port) if port)

    @property
    def truth(self) -> Truth:
        return self.web.truth.at(self.port, self.tls_port)

    def bump(self, host: str, path: str) -> None:
        """Changes the page: from now on its next version is served."""
        self._versions[(host, path)] += 1

    async def start(self, context: ssl.SSLContext | None = None) -> list[asyncio.Server]:
        """Listens on ports that the kernel chooses."""
        plain = await asyncio.start_server(self._accept, LOOPBACK, 0, limit=HEAD_LIMIT_BYTES, backlog=1024)
        self.port = plain.sockets[0].getsockname()[1]
        if context is None:
            return [plain]
        secure = await asyncio.start_server(
            self._accept, LOOPBACK, 0, limit=HEAD_LIMIT_BYTES, backlog=1024, ssl=context
        )
        self.tls_port = secure.sockets[0].getsockname()[1]
        return [plain, secure]

    async def stop(self, listeners: list[asyncio.Server]) -> None:
        for listener in listeners:
            listener.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # closed transports report it in the next round

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        self._connections += 1
        try:
            await self._converse(reader, writer, self._connections)
        except (
            ConnectionError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            asyncio.CancelledError,
            ssl.SSLError,
        ):
            pass  # the client left, or did not speak HTTP: the log has the rest
        finally:
            self._tasks.discard(task)
            if task.cancelling():
                writer.transport.abort()  # closing would wait for a client that is gone
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> None:
        """Handles the requests of a connection in sequence until either side closes."""
        going_on = True
        while going_on:
            head = await reader.readuntil(b"\r\n\r\n")
            late = _lateness_s(writer.get_extra_info("socket"))
            wall, arrived = time.time() - late, time.monotonic() - late
            asked = self._asked(head)
            # bodies of forms are ignored
            await reader.readexactly(int(asked.headers.get("content-length", "0")))
            self._under_way[asked.host] += 1
            exchange = _Exchange(asked, writer, connection, self._under_way[asked.host], wall, arrived)
            try:
                going_on = await self._reply(exchange) and asked.headers.get("connection", "").lower() != "close"
            finally:
                self._under_way[asked.host] -= 1
                exchange.tell(self.log)

    def _asked(self, head: bytes) -> Asked:
        """The parsed request. An invalid head requests a missing page."""
        lines = head.decode("latin-1").split("\r\n")
        method, _, rest = lines[0].partition(" ")
        target = rest.rpartition(" ")[0] or "*"
        headers = {}
        for line in lines[1:-2]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
        host = host.lower()
        asked = Asked(
            method,
            host,
            target,
            headers,
            self._times[(host, target)],
            self._serial,
            self._versions[(host, target.partition("?")[0])],
        )
        self._times[(host, target)] += 1
        self._serial += 1
        return asked

    async def _reply(self, exchange: _Exchange) -> bool:
        """Sends the answer; returns whether the connection stays open."""
        asked = exchange.asked
        site = self.web.sites.get(asked.host)
        if asked.method == "BUMP":
            self.bump(asked.host, asked.target)
            reply: Answer | Raw = Answer(200, b"", "")
        else:
            reply = NOT_FOUND if site is None else site.reply(asked)
        if site is not None and site.latency_s:
            await asyncio.sleep(site.latency_s)
        if isinstance(reply, Raw):
            await self._perform(reply, exchange)
            return False
        await self._send(reply, exchange)
        return True

    def _ported(self, text: bytes) -> bytes:
        if b"@" not in text:
            return text
        return text.replace(PORT.encode(), str(self.port).encode()).replace(
            TLS_PORT.encode(), str(self.tls_port).encode()
        )

    async def _send(self, answer: Answer, exchange: _Exchange) -> None:
        asked = exchange.asked
        if answer.wait_s:
            await asyncio.sleep(answer.wait_s)
        body = self._ported(answer.body)
        fields = [*answer.headers]
        if answer.gzip and len(body) > 200 and "gzip" in asked.headers.get("accept-encoding", ""):
            body = _gzipped(body)
            fields += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
        if answer.media_type:
            fields.append(("Content-Type", answer.media_type))
        fields.append(("Transfer-Encoding", "chunked") if answer.chunked else ("Content-Length", str(len(body))))
        fields.append(("Date", formatdate(usegmt=True)))
        lines = [
            f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Status')}",
            *(f"{name}: {value}" for name, value in fields),
        ]
        head = self._ported(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        payload = b"" if asked.method == "HEAD" or answer.status == 304 else body
        exchange.status, exchange.body_bytes = answer.status, len(payload)
        exchange.tell(self.log)
        exchange.writer.write(head + (_chunks(payload) if answer.chunked and asked.method != "HEAD" else payload))
        await exchange.writer.drain()

    async def _perform(self, script: Raw, exchange: _Exchange) -> None:
        """Runs the steps of a misbehaving answer while the client is connected.

        body_bytes counts every byte sent.
        """
        writer = exchange.writer
        exchange.status = script.status
        for step in script.steps():
            if writer.is_closing():
                return
            match step:
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Reset():
                    exchange.tell(self.log)
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _HARD_CLOSE)
                    writer.transport.abort()
                case bytes():
                    writer.write(self._ported(step) if len(step) < HEAD_LIMIT_BYTES else step)
                    exchange.body_bytes += len(step)
                    await writer.drain()


def _chunks(body: bytes, size: int = 4096) -> bytes:
    """The body in the chunked transfer coding (RFC 9112, 7.1)."""
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@contextlib.contextmanager
def serve(
    web: Web | Site, *, certificate: Path | ssl.SSLContext | None = None, log_sink: TextIO | None = None
) -> Iterator[Server]:
    """Serves the web on loopback, in a thread, until the block ends.

    certificate: a PEM file with key, or a context, for an additional TLS port.
    """
    web = Web([web]) if isinstance(web, Site) else web
    for site in web.sites.values():
        site.render_all()
    server = Server(web, Log(sink=log_sink))
    context = tls.context(certificate) if isinstance(certificate, Path) else certificate
    ready, failed = threading.Event(), []
    loop = asyncio.new_event_loop()
    leave = asyncio.Event()

    async def live() -> None:
        listeners = await server.start(context)
        ready.set()
        await leave.wait()
        await server.stop(listeners)

    def run() -> None:
        try:
            loop.run_until_complete(live())
        except OSError as error:
            failed.append(error)
            ready.set()
        finally:
            loop.close()

    thread = threading.Thread(target=run, name="testweb", daemon=True)
    thread.start()
    ready.wait()
    if failed:
        raise failed[0]
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(leave.set)
        thread.join()
