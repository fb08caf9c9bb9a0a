"""Answers a crawl's requests from a web archive instead of the web: files on disk, a CDX server, or a TimeGate.

Only the archive's own host receives requests. It is one host, whatever it has archived: one request at a time, with its
delay, robots.txt and Retry-After; if it keeps failing, the crawl ends. The archived hosts receive no requests, so their
robots.txt, delays and retries do not apply.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict, deque
from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from periplus.acquire.fetch import REDIRECTS
from periplus.acquire.inflating import inflate
from periplus.acquire.politeness import delay_for, may_pass, retry_after_s
from periplus.acquire.transport import CurlTransport, Wire
from periplus.document.headers import media_type
from periplus.document.robots import RobotsGroup, robots_from_answer
from periplus.errors import InvalidUrl, UsageError
from periplus.model.ports import Clock, Response, Transport
from periplus.model.visit import Cause, Cut, Failed, Fetched, Headers, Purpose, Request
from periplus.model.web import HostKey, Origin, Url
from periplus.settings import Politeness, Settings
from periplus.store.warc import capture_key
from periplus.urls.canonical import canonical, resolve
from periplus.urls.hosts import host_key, host_name, is_named, origin_of, path_and_query
from periplus_archives import cdx
from periplus_archives.captures import Capture, FileArchive, by_nearness

Answering = Generator[Request, Response, Response]
"""Yields requests to an archive's server, receives their responses, and returns the response to a crawl's request."""

MOST_CAPTURES_PER_URL = 6  # captures of one URL; some redirect to themselves, or are revisits of a lost capture
MOST_HOPS = 5  # of an archive's own redirects
MOST_CAPTURES_PER_HOST = 20_000  # captures of one host that are listed; hosts with more are queried by URL
MOST_HOSTS = 32  # whose lists are in memory: some 200 MB, if all are of that size
_READ = frozenset({Purpose.PAGE, Purpose.CHECK})
_ORIGINAL_PREFIX = "x-archive-orig-"  # prefix of field names as the captured server sent them
# fields of the archive's server itself; all others belong to the capture, if the archive adds no prefix
_OWN = frozenset(
    {"memento-datetime", "link", "content-location", "vary", "transfer-encoding", "connection", "server-timing"}
)
_OWN_PREFIXES = ("x-archive-", "x-app-", "x-ts", "x-tr", "x-rl", "x-na", "x-page-cache", "x-location", "x-nid")


class ArchiveSource(Protocol):
    """An archive. host: its server, the only host that receives requests; None: files."""

    host: HostKey | None

    def answer(self, request: Request) -> Answering:
        """Cause.NOT_ARCHIVED in the answer: there is no capture; Cause.CANCELLED: the archive has failed for good."""

    @property
    def gap_s(self) -> float:
        """Seconds between the starts of two requests to the server."""


class CaptureFiles(Protocol):
    """Captures on disk: see `store.captures`."""

    def captures(self, url: str) -> list[Capture]: ...

    def answer(self, capture: Capture, request: Request) -> Response | None: ...


class ArchiveTransport:
    """`model.ports.Transport` on an archive. failure: why the archive cannot be used any more, or ""."""

    def __init__(self, inner: Transport, source: ArchiveSource, politeness: Politeness, clock: Clock) -> None:
        self._inner, self._source, self._politeness, self._clock = inner, source, politeness, clock
        self._waiting: deque[Request] = deque()
        self._ready: list[Response] = []
        self._asking: tuple[Request, Answering] | None = None
        self._unsent: Request | None = None  # to the archive, waiting for its delay
        self._not_before = -math.inf
        self._failures = 0  # in a row
        self.failure = ""

    @property
    def in_flight(self) -> int:
        return len(self._waiting) + len(self._ready) + (self._asking is not None)

    def start(self, request: Request, before: float = math.inf) -> None:
        """before: ignored, since the request's host is not contacted."""
        self._waiting.append(request)
        self._advance()

    def withdraw(self, requests: Collection[Request]) -> None:
        """Does nothing: the hosts are not contacted."""

    def wait(self, timeout_s: float) -> Sequence[Response]:
        if not self._ready:
            pause_s = timeout_s
            if self._unsent is not None:
                pause_s = min(pause_s, max(0.0, self._not_before - self._clock.monotonic()))
                if not pause_s:
                    self._send(self._unsent)
                    pause_s = timeout_s
            for response in self._inner.wait(pause_s):
                self._receive(response)
        ready, self._ready = self._ready, []
        return ready

    def attend(self, fds: Sequence[int]) -> None:
        self._inner.attend(fds)

    def close(self) -> None:
        self._inner.close()

    def _advance(self) -> None:
        """Answers waiting requests until one needs the archive's server."""
        while self._waiting and self._asking is None:
            request = self._waiting.popleft()
            if self.failure:
                self._ready.append(_no_answer(request, Cause.CANCELLED, self.failure))
                continue
            self._asking = request, self._source.answer(request)
            self._step(None)

    def _step(self, response: Response | None) -> None:
        """Queues the next request to the archive, or ends the current request of the crawl."""
        assert self._asking is not None
        request, answering = self._asking
        try:
            onward = next(answering) if response is None else answering.send(response)
        except StopIteration as end:
            answer: Response = end.value
            if answer.cause is Cause.CANCELLED:
                self.failure = answer.detail
            self._ready.append(answer)
            self._asking = None
            return
        if host_key(onward.url) != self._source.host:
            self._fail(f"the archive redirects to another host, {host_name(onward.url)}, which is not allowed")
            return
        self._unsent = replace(onward, attempt=request.attempt)

    def _send(self, request: Request) -> None:
        self._unsent = None
        self._not_before = self._clock.monotonic() + self._source.gap_s
        self._inner.start(request)

    def _receive(self, response: Response) -> None:
        if response.cause is Cause.STALE:
            self._unsent = response.request
            return
        if (wait_s := self._retry_wait_s(response)) is None:
            self._failures = 0
            self._step(response)
            self._advance()
            return
        self._failures += 1
        why = response.cause.value if response.cause else f"status {response.status}"
        if self._failures > self._politeness.retries or wait_s > self._politeness.max_retry_after_s:
            self._fail(f"the archive {self._source.host} does not answer: {why}")
            return
        self._unsent = response.request
        self._not_before = max(self._not_before, self._clock.monotonic() + wait_s)

    def _retry_wait_s(self, response: Response) -> float | None:
        """Seconds until the retry after a refusal or failure of the archive; None: no retry is needed."""
        if response.cause is None and (response.status < 400 or is_capture(response.headers)):
            return None
        outcome = Failed(response.cause) if response.cause else Fetched(response.status, response.headers, b"")
        if response.cause is None and not may_pass(outcome):
            return None
        asked_s = retry_after_s(response.headers.get("retry-after"), self._clock.now())
        return self._politeness.retry_wait_s * 2**self._failures if asked_s is None else asked_s

    def _fail(self, why: str) -> None:
        assert self._asking is not None
        self.failure = why
        self._ready.append(_no_answer(self._asking[0], Cause.CANCELLED, why))
        self._asking = None
        self._advance()


def is_capture(headers: Headers) -> bool:
    """Whether an archive's answer is a capture, of any status, and not the archive's own answer."""
    return any(name == "memento-datetime" or name.startswith(_ORIGINAL_PREFIX) for name, _ in headers.fields)


def _no_answer(request: Request, cause: Cause, detail: str = "") -> Response:
    return Response(request, 0.0, 0.0, 0, Headers(), b"", Cut.NONE, cause, detail, "")


def _is_self_redirect(status: int, location: str, capture: Capture, url: Url) -> bool:
    """Whether a capture redirects to the requested URL itself, as a capture of `http:` does for `https:`."""
    if status not in REDIRECTS or not location:
        return False
    try:
        return resolve(location, canonical(capture.url))[0] == url
    except InvalidUrl:
        return False


class FileSource:
    """Archives on disk. at: the wanted time of captures, seconds since the epoch."""

    host: HostKey | None = None
    gap_s = 0.0

    def __init__(self, files: CaptureFiles, at: float, wire: Wire, clock: Clock) -> None:
        self._files, self._at, self._wire, self._clock = files, at, wire, clock

    def answer(self, request: Request) -> Answering:
        for capture in by_nearness(self._files.captures(request.url), request.url, self._at)[:MOST_CAPTURES_PER_URL]:
            response = self._files.answer(capture, request)
            if response is None:
                continue
            if not _is_self_redirect(response.status, response.headers.get("location"), capture, request.url):
                return _without_unread_body(response, self._wire)
        return _no_answer(request, Cause.NOT_ARCHIVED)
        yield  # type: ignore[unreachable]  # makes this function a generator


def _without_unread_body(response: Response, wire: Wire) -> Response:
    """Removes a body that is not read (HEAD, unwanted media type), as the transport would have cut it."""
    request, kind = response.request, media_type(response.headers)[0]
    if request.purpose is Purpose.HEAD:
        return replace(response, body=b"", cut=Cut.NONE)
    if request.purpose not in _READ or not 200 <= response.status < 300:
        return replace(response, cut=Cut.NONE) if response.status >= 300 else response
    is_read = (not kind or wire.reads(kind)) and (
        bool(response.headers.get("content-encoding")) or wire.reads_start(kind, response.body)
    )
    return response if is_read else replace(response, body=b"", cut=Cut.NOT_WANTED)


class _Refusal(Exception):
    """The archive's server cannot be used any more; the message has the reason."""


class ServerSource:
    """An archive's server, used through its CDX server, TimeGate or TimeMap."""

    def __init__(self, place: ArchivePlace, politeness: Politeness, wire: Wire, clock: Clock) -> None:
        self._place, self._politeness, self._wire, self._clock = place, politeness, wire, clock
        self._address = place.address
        self.host: HostKey | None = host_key(place.address)
        self._mine = is_named(host_key(place.address), frozenset(politeness.mine))
        self._rules: RobotsGroup | None = None
        self._lists: OrderedDict[HostKey, dict[str, list[Capture]] | None] = OrderedDict()

    @property
    def gap_s(self) -> float:
        return delay_for(self._politeness, self._mine, self._rules.crawl_delay if self._rules else None)

    def answer(self, request: Request) -> Answering:
        try:
            ask = self._query_cdx if self._place.kind == "cdx" else self._query_memento
            captures = yield from ask(request.url)
            for capture in by_nearness(captures, request.url, self._place.at)[:MOST_CAPTURES_PER_URL]:
                response = yield from self._get(self._address_of(capture))
                if not is_capture(response.headers):
                    continue  # deleted or blocked
                answer = _answer_of(response, request, capture)
                if not _is_self_redirect(answer.status, answer.headers.get("location"), capture, request.url):
                    return _without_unread_body(answer, self._wire)
        except _Refusal as refusal:
            return _no_answer(request, Cause.CANCELLED, str(refusal))
        return _no_answer(request, Cause.NOT_ARCHIVED)

    def _address_of(self, capture: Capture) -> str:
        if self._place.kind == "cdx":
            return cdx.replay_url(self._address, capture.place + "id_", capture.url)
        return capture.place

    # requests --------------------------------------------------------------------------------------------------------

    def _get(self, address: str) -> Answering:
        """An answer of the server after its own redirects. Raises _Refusal if its robots.txt disallows the request."""
        for _ in range(MOST_HOPS):
            try:
                url = canonical(address)
            except InvalidUrl:
                raise _Refusal(f"the archive returned an invalid address: {address}") from None
            yield from self._check_robots(url)
            response = yield Request(url, Purpose.PART)
            location = response.headers.get("location")
            if response.status not in REDIRECTS or not location or is_capture(response.headers):
                return response
            address = resolve(location, url)[0]
        return response

    def _check_robots(self, url: Url) -> Generator[Request, Response, None]:
        """Raises _Refusal if the server's robots.txt disallows the URL."""
        if self._mine and self._politeness.ignore_robots:
            return
        if self._rules is None:
            asked = canonical(f"{origin_of(url)}/robots.txt")
            for _ in range(MOST_HOPS):
                response = yield Request(asked, Purpose.ROBOTS, about=Origin(origin_of(url)))
                location = response.headers.get("location")
                if response.status not in REDIRECTS or not location:
                    break
                asked = resolve(location, asked)[0]
            cause = response.cause.value if response.cause else ""
            self._rules = robots_from_answer(response.status, cause, response.body).robots().group_for()
        verdict = self._rules.decide(path_and_query(url))
        if not verdict.allowed:
            where = f"robots.txt line {verdict.line}: {verdict.rule}" if verdict.line else verdict.rule
            raise _Refusal(f"the archive {self.host} disallows crawlers: {where}")

    # captures --------------------------------------------------------------------------------------------------------

    def _query_cdx(self, url: Url) -> Generator[Request, Response, Iterable[Capture]]:
        """Captures from a CDX server: one list for the whole host unless it has too many, else a query for the URL."""
        host = host_key(url)
        if host not in self._lists:
            self._lists[host] = yield from self._list_of(url)
            if len(self._lists) > MOST_HOSTS:
                self._lists.popitem(last=False)
        self._lists.move_to_end(host)
        listed = self._lists[host]
        if listed is not None:
            return listed.get(capture_key(url), ())
        response = yield from self._get(cdx.query_url(self._address, url, min(self._place.at, self._clock.now())))
        return cdx.captures_of(self._index_of(response))

    def _list_of(self, url: Url) -> Generator[Request, Response, dict[str, list[Capture]] | None]:
        """The captures of a URL's host by `capture_key`; None: there are too many."""
        name = url.split("/")[2]
        captures: list[Capture] = []
        resume_key = ""
        while len(captures) < MOST_CAPTURES_PER_HOST:
            response = yield from self._get(cdx.listing_query_url(self._address, name, resume_key))
            body = self._index_of(response)
            further = cdx.captures_of(body)
            captures += further
            before, resume_key = resume_key, cdx.resume_key_of(body)
            if (
                response.cut
                or resume_key == before != ""
                or (len(further) >= cdx.CAPTURES_PER_ANSWER and not resume_key)
            ):
                return None
            if not resume_key:
                return _by_key(captures)
        return None

    def _index_of(self, response: Response) -> bytes:
        """The body of an index's answer; empty: no captures. Raises _Refusal for error statuses."""
        if response.status == 404:  # some servers answer so if there are no captures
            return b""
        if response.status != 200:
            raise _Refusal(f"the archive's index {self._address} answers with status {response.status}")
        return inflate(response.body, response.headers.get("content-encoding"), self._wire.limits)[0]

    def _query_memento(self, url: Url) -> Generator[Request, Response, Iterable[Capture]]:
        """Captures from a TimeGate or TimeMap (RFC 7089)."""
        from email.utils import format_datetime  # the import takes 20 ms, and no other crawl needs it

        when = format_datetime(datetime.fromtimestamp(min(self._place.at, self._clock.now()), UTC), usegmt=True)
        gate = Url(str(self._address) + url)
        yield from self._check_robots(gate)
        response = yield Request(gate, Purpose.PART, fields=(f"Accept-Datetime: {when}",))
        if response.status == 404:
            return ()
        if response.status in REDIRECTS:
            capture = cdx.memento_at(resolve(response.headers.get("location"), gate)[0], url)
            return (capture,) if capture else ()
        body = self._index_of(response)
        if media_type(response.headers)[0] == "application/link-format":
            return cdx.mementos_of(body.decode("utf-8", "replace"), url)
        places = [response.headers.get("content-location")] if response.headers.get("content-location") else []
        named = [capture for place in places if (capture := cdx.memento_at(resolve(place, gate)[0], url))]
        return named or cdx.mementos_of(", ".join(response.headers.all("link")), url)


def _by_key(captures: Iterable[Capture]) -> dict[str, list[Capture]]:
    by_key: dict[str, list[Capture]] = {}
    for capture in captures:
        by_key.setdefault(capture_key(capture.url), []).append(capture)
    return by_key


def _answer_of(response: Response, request: Request, capture: Capture) -> Response:
    """Turns an archive's answer into that of the captured server: its time, header fields and redirect target."""
    fields = response.headers.fields
    sent = [(name.removeprefix(_ORIGINAL_PREFIX), value) for name, value in fields if name.startswith(_ORIGINAL_PREFIX)]
    if sent:
        named = {name for name, _ in sent}
        sent += [(name, value) for name, value in fields if name in ("content-type", "location") and name not in named]
    else:
        sent = [(name, value) for name, value in fields if name not in _OWN and not name.startswith(_OWN_PREFIXES)]
    sent = [(name, cdx.original_of(value) if name == "location" else value) for name, value in sent]
    # Content-Encoding is that of the archive's transfer, since the archive may have decoded the captured body
    coded = [(name, value) for name, value in fields if name == "content-encoding"]
    plain = [(name, value) for name, value in sent if name != "content-encoding"]
    headers = Headers((*plain, *coded), response.headers.status_line)
    taken = _moment(response.headers.get("memento-datetime")) or capture.taken
    return replace(
        response,
        request=request,
        started=taken,
        headers=headers,
        sent=Headers(tuple(sent), headers.status_line),
        address="",
    )


def _moment(date: str) -> float | None:
    """Seconds since the epoch of a date in a header field; None if missing or invalid."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).timestamp() if date else None
    except ValueError:
        return None


# Settings


class ArchivePlace(NamedTuple):
    """The location of an archive. kind: files, cdx or memento; address: of a server; at: the wanted time of captures,
    seconds since the epoch, infinity for the latest.
    """

    kind: str
    paths: tuple[Path, ...]
    address: Url
    at: float


def place_of(text: str, date: str) -> ArchivePlace:
    """The archive in the settings `from_archive` and `at`. Raises UsageError."""
    at = end_of(date)
    kind, colon, address = text.partition(":")
    if colon and kind in ("cdx", "memento"):
        try:
            url = canonical(address) if kind == "cdx" else Url(canonical(address).rstrip("/") + "/")
        except InvalidUrl as error:
            raise UsageError(f"--from-archive {text}: {error}") from None
        if kind == "cdx" and not cdx.replay_url(url, "", ""):
            raise UsageError(
                f"--from-archive {text}: the address of a CDX server must end in /cdx, -cdx or /cdx/search/cdx; "
                "for other servers give the TimeGate: memento:URL"
            )
        return ArchivePlace(kind, (), url, at)
    if re.match(r"https?://", text):
        raise UsageError(f"--from-archive {text}: write cdx:{text} for a CDX server or memento:{text} for a TimeGate")
    path = Path(text).expanduser()
    if not path.exists():
        raise UsageError(f"--from-archive {text}: there is no such file or folder")
    return ArchivePlace("files", (path,), Url(""), at)


def end_of(date: str) -> float:
    """The end of an ISO 8601 date or minute, seconds since the epoch; infinity for "". Raises UsageError."""
    if not date:
        return math.inf
    try:
        when = datetime.fromisoformat(date)
    except ValueError:
        raise UsageError(f"{date!r} is not a date: write 2019-05-31 or 2019-05-31T12:00") from None
    moment = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    lengths = {len("2019-05-31"): 86_400.0, len("2019-05-31T12:00"): 60.0}
    return moment + lengths.get(len(date), 1.0) - 1e-6


def past_transport(settings: Settings, wire: Wire, clock: Clock) -> ArchiveTransport:
    """Transport that reads from the archive named in the settings. Raises UsageError."""
    place = place_of(settings.past.from_archive, settings.past.at)
    limits = replace(
        settings.limits,
        total_timeout_s=max(settings.limits.total_timeout_s, cdx.ANSWER_S),
        first_byte_timeout_s=max(settings.limits.first_byte_timeout_s, cdx.ANSWER_S),
    )
    source: ArchiveSource = (
        FileSource(FileArchive(place.paths, settings.limits), place.at, wire, clock)
        if place.kind == "files"
        else ServerSource(place, settings.politeness, wire, clock)
    )
    return ArchiveTransport(
        CurlTransport(Wire(limits, settings.identity, 1), clock), source, settings.politeness, clock
    )
