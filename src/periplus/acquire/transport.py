"""HTTP transport on libcurl. No other module opens sockets to web servers."""

from __future__ import annotations

import calendar
import contextlib
import math
import re
import select
import socket
import time
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pycurl

from periplus.acquire.inflating import HAS_BROTLI, read_header
from periplus.errors import UsageError
from periplus.model.ports import Clock, Response
from periplus.model.visit import Cause, Certificate, Cut, Headers, Purpose, Request
from periplus.model.web import HostKey, Url
from periplus.settings import CONTROL, VERSION, FetchLimits, Identity
from periplus.urls.hosts import host_key, is_named, special_network
from periplus.values import frozen

# libcurl's multi interface, driven by a selector.
#
# One exchange is one hop; redirects are answers. Every result of a server or the network becomes a `Response`. Limits
# (header, body, first byte, total time) are enforced while bytes arrive. Private addresses are refused after name
# resolution, just before the socket is opened, so DNS rebinding does not get around the check.

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,text/plain;q=0.8,*/*;q=0.5"
ACCEPT_ENCODING = "gzip, deflate, br, zstd" if HAS_BROTLI else "gzip, deflate, zstd"
READ_AHEAD_BYTES = 65_536  # an unwanted body up to this size is read to its end: cheaper than a new connection
SUPPRESS_CONNECT_HEADERS = 265  # an option of libcurl that pycurl has no name for
PATROL_S = 0.25  # how often the first-byte timeout is checked
KEPT_ANSWERS = 20  # if a host loses kept connections more often than this, new connections cost it less
MOST_LOSSES = 65_536  # hosts whose losses are remembered

_BAD_FIELD = 8  # CURLE_WEIRD_SERVER_REPLY, which pycurl has no name for
_CAUSES: dict[int, Cause] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: Cause.NOT_HTTP,  # also libcurl's code for an HTTP/0.9 answer
    pycurl.E_URL_MALFORMAT: Cause.NOT_HTTP,
    pycurl.E_COULDNT_RESOLVE_PROXY: Cause.PROXY,
    pycurl.E_COULDNT_RESOLVE_HOST: Cause.NAME,
    pycurl.E_COULDNT_CONNECT: Cause.CONNECT,
    _BAD_FIELD: Cause.NOT_HTTP,
    pycurl.E_HTTP2: Cause.RESET,
    92: Cause.RESET,  # CURLE_HTTP2_STREAM
    pycurl.E_PARTIAL_FILE: Cause.RESET,
    pycurl.E_OPERATION_TIMEDOUT: Cause.TIMEOUT,
    pycurl.E_SSL_CONNECT_ERROR: Cause.TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: Cause.TLS,
    pycurl.E_SSL_CERTPROBLEM: Cause.TLS,
    pycurl.E_SSL_CIPHER: Cause.TLS,
    pycurl.E_SSL_CACERT_BADFILE: Cause.TLS,
    pycurl.E_GOT_NOTHING: Cause.RESET,
    pycurl.E_SEND_ERROR: Cause.RESET,
    pycurl.E_RECV_ERROR: Cause.RESET,
    100: Cause.HEADER_LIMIT,  # CURLE_TOO_LARGE
    97: Cause.PROXY,  # CURLE_PROXY
    pycurl.E_ABORTED_BY_CALLBACK: Cause.TIMEOUT,  # only `_on_sending` aborts
}
_HEADER = re.compile(r"(\S+) +([!#$%&'*+.^`|~\w-]+): *([\x20-\x7e]+)", re.ASCII)
_OWN_FIELDS = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "range", "te"})
_CERTIFICATE_ERRORS = frozenset({pycurl.E_PEER_FAILED_VERIFICATION, 51})  # 51: the same error in older releases
_OLD_TLS = pycurl.SSLVERSION_TLSv1_0 | pycurl.SSLVERSION_MAX_TLSv1_1
_ANY_CIPHER = "DEFAULT:@SECLEVEL=0"  # else OpenSSL 3 itself refuses old versions, even if the server accepts them
_CERTIFICATE_DATE = "%b %d %H:%M:%S %Y GMT"


def user_agent(identity: Identity) -> str:
    """The User-Agent to send: the user's, else periplus/VERSION with the contact."""
    contact = f" (+{identity.contact})" if identity.contact else ""
    return identity.user_agent or f"periplus/{VERSION}{contact}"


def header_line(text: str) -> bytes:
    """A request header line in bytes. Raises ValueError for control characters, which callers must refuse before."""
    if CONTROL.search(text):
        raise ValueError(f"a control character in the header line {text.partition(':')[0]!r}")
    return text.encode("latin-1", "replace")


def resolve_entries(entries: Sequence[str]) -> list[str]:
    """HOST:PORT:ADDRESS entries, with each @FILE replaced by its lines. Raises UsageError."""
    resolved: list[str] = []
    for entry in entries:
        lines = [entry]
        if entry.startswith("@"):
            try:
                lines = Path(entry[1:]).read_text("utf-8").split()
            except OSError as error:
                raise UsageError(f"cannot read the resolve file {entry[1:]}: {error.strerror}") from None
        for line in lines:
            if line.count(":") < 2:
                raise UsageError(f"resolve takes HOST:PORT:ADDRESS, not {line!r}")
            resolved.append(line)
    return resolved


def header_of(entry: str) -> tuple[str, str]:
    """(host, header line) of an entry of the setting `header`. Raises UsageError, without the value."""
    match = _HEADER.fullmatch(entry)
    if match is None:
        raise UsageError(f"header takes HOST NAME: VALUE in ASCII, not {entry.partition(': ')[0]!r}")
    if match[2].lower() in _OWN_FIELDS:
        raise UsageError(f"header: the transport itself sends {match[2]}")
    return match[1].lower(), f"{match[2]}: {match[3]}"


@frozen
class Wire:
    """The configuration of a transport."""

    limits: FetchLimits
    identity: Identity
    concurrency: int
    auth_hosts: frozenset[HostKey] = frozenset()  # the only hosts to which the password is sent
    reads: Callable[[str], bool] = lambda media_type: True  # whether to download a body of this media type
    # the same, by media type and first bytes
    reads_start: Callable[[str, bytes], bool] = lambda media_type, start: True
    # whether a host may be requested at the address that its name resolved to
    admits: Callable[[HostKey, str], bool] = lambda host, address: True
    # the header lines of a login session for a URL, or None: see `session.LoginSessions`
    credentials: Callable[[Url], Sequence[str] | None] | None = None


class _CurlSocket(socket.socket):
    """A socket for libcurl. pycurl duplicates the descriptor, so this one is closed when it is garbage-collected."""

    def __del__(self) -> None:
        self.close()


def _set_connection(easy: pycurl.Curl, identity: Identity, guard: Callable[..., object], *, verified: bool) -> None:
    """Sets proxy, name resolution and TLS verification. guard: checks each address before a socket is opened to it."""
    easy.setopt(pycurl.PROXY, identity.proxy)  # empty: disables the http_proxy variable of the environment
    if entries := resolve_entries(identity.resolve):
        easy.setopt(pycurl.RESOLVE, entries)
    if not identity.proxy and not identity.allow_private:
        easy.setopt(pycurl.OPENSOCKETFUNCTION, guard)
    if identity.ca_file:
        easy.setopt(pycurl.CAINFO, identity.ca_file)
    if not verified:
        _set_options(easy, {pycurl.SSL_VERIFYPEER: 0, pycurl.SSL_VERIFYHOST: 0})


def _set_options(handle: Any, options: Mapping[int, object]) -> None:
    for option, value in options.items():
        handle.setopt(option, value)


class _Slot:
    """One libcurl handle and its current exchange. Handles are reused, so that most options are set once."""

    def __init__(self, wire: Wire, share: pycurl.CurlShare) -> None:
        self.wire = wire
        self.easy = pycurl.Curl()
        self.plain_headers = [f"Accept: {ACCEPT}", f"Accept-Encoding: {ACCEPT_ENCODING}"]
        self.method = pycurl.HTTPGET  # of the last request
        self.of_hosts = [header_of(entry) for entry in wire.identity.header]
        self.special = False  # whether the last request had additional header lines
        self.is_alone = False  # whether the last request had its own connection
        self.header_most = wire.limits.header_bytes
        self._configure(share)

    def _configure(self, share: pycurl.CurlShare) -> None:
        limits, identity = self.wire.limits, self.wire.identity
        options = {
            pycurl.NOSIGNAL: 1,
            pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
            pycurl.PATH_AS_IS: 1,  # canonical URLs are sent as they are
            pycurl.FOLLOWLOCATION: 0,
            pycurl.HTTP_CONTENT_DECODING: 0,  # `inflate` decodes: it has limits and is three times faster
            pycurl.BUFFERSIZE: 131_072,
            pycurl.USERAGENT: header_line(user_agent(identity)),
            pycurl.HTTPHEADER: self.plain_headers,
            pycurl.CONNECTTIMEOUT_MS: int(limits.connect_timeout_s * 1000),
            pycurl.TIMEOUT_MS: int(limits.total_timeout_s * 1000),
            pycurl.HEADERFUNCTION: self._on_header,
            pycurl.WRITEFUNCTION: self._on_body,
            pycurl.PREREQFUNCTION: self._on_sending,
            pycurl.SHARE: share,
            SUPPRESS_CONNECT_HEADERS: 1,  # a proxy's answer to CONNECT is not the server's answer
        }
        _set_options(self.easy, options)
        _set_connection(self.easy, identity, self._on_socket, verified=not identity.insecure)
        if identity.cookie_file:
            self.easy.setopt(pycurl.COOKIEFILE, identity.cookie_file)

    def begin(self, request: Request, clock: Clock, before: float, is_alone: bool) -> None:
        """before: monotonic time after which it is not sent; is_alone: use a new connection and close it afterwards."""
        self.request, self.clock, self.before = request, clock, before
        self.started, self.start_mono = clock.now(), clock.monotonic()
        self.status, self.header_size, self.body_size = 0, 0, 0
        self.lines: list[bytes] = []
        self.lines_read = 0
        self.headers = Headers()
        self.chunks: list[bytes] = []
        self.cut, self.cause = Cut.NONE, None
        self.is_read, self.header_whole, self.refused, self.sent = True, False, "", False
        self.easy.setopt(pycurl.URL, request.url)
        if is_alone != self.is_alone:
            self.is_alone = is_alone
            self.easy.setopt(pycurl.FRESH_CONNECT, is_alone)
            self.easy.setopt(pycurl.FORBID_REUSE, is_alone)
        method = pycurl.POST if request.body else pycurl.NOBODY if request.purpose is Purpose.HEAD else pycurl.HTTPGET
        if method != self.method:
            self.method = method
            self.easy.setopt(method, 1)
        if request.body:
            self.easy.setopt(pycurl.POSTFIELDS, request.body)
        extra = self._extra_headers(request)
        if extra or self.special:
            accepts = any(line[:7].lower() == "accept:" for line in extra)
            # as bytes, since servers send validators with other characters and pycurl accepts only ASCII in str
            lines = map(header_line, extra)
            self.easy.setopt(pycurl.HTTPHEADER, [*self.plain_headers[accepts:], *lines])
            self.special = bool(extra)

    def _extra_headers(self, request: Request) -> list[str]:
        # with a cookie file, libcurl sends the cookies itself
        extra = [
            field for field in request.fields if not (field.startswith("Cookie:") and self.wire.identity.cookie_file)
        ]
        validators = (("If-None-Match", request.etag), ("If-Modified-Since", request.last_modified))
        extra += [f"{name}: {value}" for name, value in validators if value and not CONTROL.search(value)]
        if self.wire.auth_hosts and host_key(request.url) in self.wire.auth_hosts:
            extra.append("Authorization: Basic " + b64encode(self.wire.identity.auth.encode()).decode())
        extra += [line for host, line in self.of_hosts if is_named(host_key(request.url), frozenset({host}))]
        if self.wire.credentials is not None and (lines := self.wire.credentials(request.url)) is not None:
            extra = [*(field for field in extra if not field.startswith("Cookie:")), *lines]
        return extra

    cause: Cause | None

    def _on_socket(self, purpose: int, address: tuple[int, int, int, tuple[str, int]]) -> socket.socket | int:
        family, kind, protocol, place = address
        network = special_network(place[0])
        if network:
            self.refused = f"{place[0]}: {network}"  # libcurl then tries further addresses of the name
            return int(pycurl.SOCKET_BAD)
        return _CurlSocket(family, kind, protocol)

    def _on_sending(self, address: str, own_address: str, port: int, own_port: int) -> int:
        """Called by libcurl just before it sends the request: the last moment to check the lease's time.

        The process may have been suspended before, so that another worker holds the host now. libcurl calls this a
        second time to repeat a request at once, if a kept connection was closed before an answer. That is refused: the
        worker repeats the request after the host's delay. Forms are never sent twice.
        """
        if self.sent:
            self.cause = Cause.RESET if self.is_alone or self.request.body else Cause.STALE
            return int(pycurl.PREREQFUNC_ABORT)
        if not self.wire.admits(host_key(self.request.url), address):
            self.cause = Cause.CANCELLED
            return int(pycurl.PREREQFUNC_ABORT)
        self.sent = True
        return int(pycurl.PREREQFUNC_OK if self.clock.monotonic() <= self.before else pycurl.PREREQFUNC_ABORT)

    def _on_header(self, line: bytes) -> int | None:
        self.header_size += len(line)
        if self.header_size > self.header_most:
            self.cause = Cause.HEADER_LIMIT
            return -1
        self.lines.append(line)
        return None

    def _read_header(self) -> None:
        """Parses the header lines received so far: before the first bytes of a body, else at the end.

        Decides by them whether the body is downloaded. Bodies of error pages and redirects are short: always.
        """
        if self.lines_read == len(self.lines):
            return
        self.lines_read = len(self.lines)
        self.status, self.headers, self.header_whole = read_header(self.lines)
        if self.body_size or not self.header_whole or self.status not in (200, 203, 206):
            return
        media_type = self.headers.get("content-type").partition(";")[0].strip().lower()
        self.is_read = (
            self.request.purpose not in (Purpose.PAGE, Purpose.CHECK) or not media_type or self.wire.reads(media_type)
        )
        if not self.is_read:
            self.cut = Cut.NOT_WANTED

    def _may_be_read(self, start: bytes) -> bool:
        """Whether to go on after the first bytes of the body, if they are not compressed."""
        headers = self.headers
        if (
            self.status not in (200, 203, 206)
            or self.request.purpose not in (Purpose.PAGE, Purpose.CHECK)
            or headers.get("content-encoding")
        ):
            return True
        return self.wire.reads_start(headers.get("content-type").partition(";")[0].strip().lower(), start)

    def _on_body(self, chunk: bytes) -> int | None:
        if not self.body_size:
            self._read_header()
            if self.is_read and not self._may_be_read(chunk):
                self.is_read, self.cut = False, Cut.NOT_WANTED
        self.body_size += len(chunk)
        if not self.is_read:
            return None if self.body_size <= READ_AHEAD_BYTES else -1
        limit = self.wire.limits.body_bytes
        if self.body_size > limit:
            self.chunks.append(chunk[: len(chunk) - (self.body_size - limit)])
            self.cut = Cut.BODY_LIMIT
            return -1
        self.chunks.append(chunk)
        return None

    def response(self, code: int, detail: str) -> Response:
        """The finished exchange as a value. code: of libcurl, 0 for success."""
        self._read_header()
        cause = self.cause
        if cause is None and self.cut is Cut.NONE and (code or not self.header_whole):
            # an answer began: keep the part that was received
            if self.status >= 200 and self.header_whole and code != pycurl.E_WRITE_ERROR:
                self.cut = Cut.TIME_LIMIT if code == pycurl.E_OPERATION_TIMEDOUT else Cut.SHORT
            # libcurl refuses an answer with two Location fields, browsers use the first
            elif code != _BAD_FIELD or not (300 <= self.status < 400 and self.headers.get("location")):
                cause = self._cause_of(code)
                ours = (
                    self.refused
                    if cause is Cause.PRIVATE
                    else "not sent in time"
                    if code == pycurl.E_ABORTED_BY_CALLBACK
                    else ""
                )
                detail = ours or detail or "the header ended early"
        if cause is Cause.RESET and not self.status:  # libcurl's text depends on whether the connection was a kept one
            detail = "the connection was lost before an answer"
        easy = self.easy
        sent = easy.getinfo(pycurl.PRETRANSFER_TIME)
        took = max(0.0, easy.getinfo(pycurl.TOTAL_TIME) - sent)
        first_byte = max(0.0, easy.getinfo(pycurl.STARTTRANSFER_TIME) - sent) if self.status else 0.0
        body = self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)
        address = easy.getinfo(pycurl.PRIMARY_IP) if self.status and not self.wire.identity.proxy else ""
        return Response(
            self.request,
            self.started,
            took,
            self.status,
            self.headers,
            body,
            self.cut,
            cause,
            detail if cause else "",
            address,
            first_byte,
        )

    def _cause_of(self, code: int) -> Cause:
        """Why there is no answer. code 0: libcurl treats a connection that closes within the header as success."""
        if self.refused and code == pycurl.E_COULDNT_CONNECT:
            return Cause.PRIVATE
        if self.wire.identity.proxy and self.easy.getinfo(pycurl.HTTP_CONNECTCODE) >= 300:
            return Cause.PROXY
        return _CAUSES.get(code, Cause.RESET)


class CurlTransport:
    """`model.ports.Transport` on libcurl. Not thread-safe: one per worker."""

    def __init__(self, wire: Wire, clock: Clock) -> None:
        self._wire, self._clock = wire, clock
        # registering and removing a socket takes 2 us, with `selectors` 9 us; poll (without epoll) expects milliseconds
        self._sockets: select.epoll | select.poll
        self._sockets, self._per_s = (select.epoll(), 1) if hasattr(select, "epoll") else (select.poll(), 1000)
        self._watched: set[int] = set()
        self._share = pycurl.CurlShare()
        if wire.identity.cookie_file:
            self._share.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_COOKIE)
        self._multi = pycurl.CurlMulti()
        watching = {pycurl.M_SOCKETFUNCTION: self._on_watch, pycurl.M_TIMERFUNCTION: self._on_timer}
        _set_options(self._multi, {pycurl.M_MAXCONNECTS: wire.concurrency * 2, **watching})
        self._timer_at: float | None = None
        self._attended: frozenset[int] = frozenset()
        self._has_news = False  # whether one of the attended descriptors is readable
        self._patrol_at = 0.0
        self._answers: dict[HostKey, int] = {}  # see `_count`
        self._idle: list[_Slot] = []
        self._busy: dict[pycurl.Curl, _Slot] = {}
        self._done: list[Response] = []

    @property
    def in_flight(self) -> int:
        return len(self._busy)

    def start(self, request: Request, before: float = math.inf) -> None:
        slot = self._idle.pop() if self._idle else _Slot(self._wire, self._share)
        is_alone = bool(self._answers) and self._answers.get(host_key(request.url), 1) < 1
        slot.begin(request, self._clock, before, is_alone)
        self._busy[slot.easy] = slot
        self._multi.add_handle(slot.easy)

    def withdraw(self, requests: Collection[Request]) -> None:
        for slot in self._busy.values():
            if slot.request in requests and not slot.sent:
                slot.before, slot.cause = -math.inf, Cause.CANCELLED

    def wait(self, timeout_s: float) -> Sequence[Response]:
        deadline = self._clock.monotonic() + timeout_s
        while True:
            now = self._clock.monotonic()
            pause = deadline - now
            if self._busy:
                pause = min(pause, PATROL_S)
            if self._timer_at is not None:
                pause = min(pause, self._timer_at - now)
            self._exchange(max(0.0, pause))
            if self._done:
                done, self._done = self._done, []
                return done
            if self._has_news or self._clock.monotonic() >= deadline:
                self._has_news = False
                return ()

    def attend(self, fds: Sequence[int]) -> None:
        before, self._attended = self._attended, frozenset(fds)
        for fd in before - self._attended:
            with contextlib.suppress(OSError, KeyError):  # closed before
                self._sockets.unregister(fd)
        for fd in self._attended - before:
            self._sockets.register(fd, select.POLLIN)

    def _exchange(self, pause_s: float) -> None:
        """One round: wait for sockets, run libcurl, collect finished exchanges."""
        for fd, events in self._sockets.poll(pause_s * self._per_s):
            if fd in self._attended:
                self._has_news = True
                continue
            # errors and hang-ups count as readable and writable
            bits = (pycurl.CSELECT_IN if events & ~select.POLLOUT else 0) | (
                pycurl.CSELECT_OUT if events & ~select.POLLIN else 0
            )
            self._multi.socket_action(fd, bits)
        now = self._clock.monotonic()
        if self._timer_at is not None and now >= self._timer_at:
            self._timer_at = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._collect()
        if now >= self._patrol_at:
            self._patrol_at = now + PATROL_S
            self._patrol(now)

    def _collect(self) -> None:
        more = 1
        while more:
            more, good, bad = self._multi.info_read()
            for easy in good:
                self._end(self._busy[easy], 0, "")
            for easy, code, detail in bad:
                self._end(self._busy[easy], code, detail)

    def _patrol(self, now: float) -> None:
        """Ends exchanges that exceed the first-byte timeout (libcurl has no such limit)."""
        limit = self._wire.limits.first_byte_timeout_s
        for slot in [slot for slot in self._busy.values() if not slot.header_size and now - slot.start_mono > limit]:
            connected = slot.easy.getinfo(pycurl.PRETRANSFER_TIME) > 0
            slot.cause = Cause.FIRST_BYTE if connected else Cause.CONNECT
            self._end(slot, pycurl.E_OPERATION_TIMEDOUT, f"no first byte in {limit:g} s")

    def _end(self, slot: _Slot, code: int, detail: str) -> None:
        self._multi.remove_handle(slot.easy)
        del self._busy[slot.easy]
        response = slot.response(code, detail)
        if self._answers or response.cause is Cause.STALE:
            self._count(response)
        self._done.append(response)
        self._idle.append(slot)

    def _count(self, response: Response) -> None:
        """Counts lost connections of hosts that close kept connections without notice.

        `_answers` holds the number of answers since the last loss. At 0 the next request gets its own connection, at -1
        every request does: the second loss came within KEPT_ANSWERS. Losses in a row without an answer count once.
        """
        host = host_key(response.request.url)
        answers = self._answers.get(host)
        if response.cause is Cause.STALE:
            if answers is None and len(self._answers) >= MOST_LOSSES:
                del self._answers[next(iter(self._answers))]
            self._answers[host] = -1 if answers else 0
        elif answers is not None and answers >= 0 and response.status:
            self._answers[host] = answers + 1
            if answers == KEPT_ANSWERS:
                del self._answers[host]

    def _on_watch(self, what: int, fd: int, multi: pycurl.CurlMulti, data: object) -> None:
        """Called by libcurl with the sockets that it wants to be polled."""
        if what == pycurl.POLL_REMOVE:
            if fd in self._watched:
                self._watched.remove(fd)
                self._sockets.unregister(fd)
            return
        mask = (select.POLLIN if what & pycurl.POLL_IN else 0) | (select.POLLOUT if what & pycurl.POLL_OUT else 0)
        if fd in self._watched:
            self._sockets.modify(fd, mask)
        else:
            self._watched.add(fd)
            self._sockets.register(fd, mask)

    def _on_timer(self, timeout_ms: int) -> None:
        self._timer_at = None if timeout_ms < 0 else self._clock.monotonic() + timeout_ms / 1000

    def close(self) -> None:
        for slot in list(self._busy.values()):
            self._multi.remove_handle(slot.easy)
        for slot in [*self._busy.values(), *self._idle]:
            slot.easy.close()
        self._busy.clear()
        self._idle.clear()
        self._multi.close()
        self._share.close()
        if hasattr(self._sockets, "close"):
            self._sockets.close()


# Certificates


def certificate_of(url: Url, identity: Identity, limits: FetchLimits) -> Certificate | None:
    """The certificate of an https URL's server, by up to three handshakes and no request. None: no TLS connection.

    It is verified even if the crawl does not verify certificates. Server and network errors do not raise.
    """
    fault, ends = _handshake(url, identity, limits, verified=True)
    if fault is None:
        return None
    if fault:
        unverified, ends = _handshake(url, identity, limits, verified=False)
        if unverified is None:
            return None
    old, _ = _handshake(url, identity, limits, verified=False, old=True)
    return Certificate(ends, old == "", fault)


def _handshake(
    url: Url, identity: Identity, limits: FetchLimits, *, verified: bool, old: bool = False
) -> tuple[str | None, float]:
    """(fault of the certificate: "" if trusted, None without a connection; its expiry, seconds since the epoch)."""
    easy = pycurl.Curl()
    try:
        options = {
            pycurl.NOSIGNAL: 1,
            pycurl.URL: url,
            pycurl.CONNECT_ONLY: 1,
            pycurl.OPT_CERTINFO: 1,
            pycurl.CONNECTTIMEOUT_MS: int(limits.connect_timeout_s * 1000),
        }
        _set_options(easy, options)
        _set_connection(easy, identity, _public_socket, verified=verified)
        if old:
            _set_options(easy, {pycurl.SSLVERSION: _OLD_TLS, pycurl.SSL_CIPHER_LIST: _ANY_CIPHER})
        easy.perform()
        chain = easy.getinfo(pycurl.INFO_CERTINFO)
        expiry = dict(chain[0]).get("Expire date", "") if chain else ""
        return "", calendar.timegm(time.strptime(expiry, _CERTIFICATE_DATE))
    except ValueError:  # no date, or in another form
        return "", 0.0
    except pycurl.error as error:
        return (str(error.args[1]) if error.args[0] in _CERTIFICATE_ERRORS else None), 0.0
    finally:
        easy.close()


def _public_socket(purpose: int, address: tuple[int, int, int, tuple[str, int]]) -> socket.socket | int:
    family, kind, protocol, place = address
    return int(pycurl.SOCKET_BAD) if special_network(place[0]) else _CurlSocket(family, kind, protocol)
