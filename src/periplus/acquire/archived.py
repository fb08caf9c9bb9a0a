"""Answers a crawl's requests from a web archive in place of the web: files on disk, a CDX server, or a TimeGate.

No host but the archive's own is ever asked. An archive's server is one host, whatever it holds: one request at a time,
its delay apart, by its robots.txt; it is waited for when it says so, and left alone, with the crawl, when it keeps
failing. What a capture is an answer to costs nobody anything: hosts of the past have no robots.txt, delay or retries.
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

from periplus.acquire import cdx
from periplus.acquire.fetch import REDIRECTS
from periplus.acquire.inflating import inflate
from periplus.acquire.politeness import delay_for, may_pass, retry_after_s
from periplus.acquire.transport import Wire
from periplus.document.headers import media_type
from periplus.document.robots import RobotsGroup, robots_from_answer
from periplus.errors import InvalidUrl, UsageError
from periplus.model.ports import Clock, Response, Transport
from periplus.model.visit import Cause, Cut, Failed, Fetched, Headers, Purpose, Request
from periplus.model.web import HostKey, Origin, Url
from periplus.settings import Politeness
from periplus.urls.canonical import canonical, resolve
from periplus.urls.captures import Capture, by_nearness, capture_key
from periplus.urls.hosts import host_key, host_name, is_named, origin_of, path_and_query

Answering = Generator[Request, Response, Response]
"""Asks an archive's server, request by request, and ends with the answer to a crawl's request."""

MOST_TRIED = 6  # captures of one URL: some lead to themselves, or repeat what is lost
MOST_HOPS = 5  # of an archive's own redirects, to the capture that it has
MOST_LISTED = 20_000  # captures of one host that are asked for at once; of larger ones URL by URL
MOST_HOSTS = 32  # whose lists are in memory: some 200 MB, were all of them so large
_READ = frozenset({Purpose.PAGE, Purpose.CHECK})
_SENT = "x-archive-orig-"  # before the names of fields as a server sent them
# what an archive's server says of itself; all else is a capture's, where it does not tell them apart
_OWN = frozenset(
    {"memento-datetime", "link", "content-location", "vary", "transfer-encoding", "connection", "server-timing"}
)
_OWN_PREFIXES = ("x-archive-", "x-app-", "x-ts", "x-tr", "x-rl", "x-na", "x-page-cache", "x-location", "x-nid")


class ArchiveSource(Protocol):
    """An archive. host: of its server, the only one that may be asked; None: it has none."""

    host: HostKey | None

    def answer(self, request: Request) -> Answering:
        """The answer with Cause.NOT_ARCHIVED: there is no capture; with Cause.CANCELLED: nothing more can be had."""

    @property
    def gap_s(self) -> float:
        """Seconds between the starts of two requests to the server."""


class CaptureFiles(Protocol):
    """Captures on disk: see `store.captures`."""

    def captures(self, url: str) -> list[Capture]: ...

    def answer(self, capture: Capture, request: Request) -> Response | None: ...


class ArchiveTransport:
    """`model.ports.Transport` on an archive. failure: why nothing more can be had of it; empty: it can."""

    def __init__(self, inner: Transport, source: ArchiveSource, politeness: Politeness, clock: Clock) -> None:
        self._inner, self._source, self._politeness, self._clock = inner, source, politeness, clock
        self._waiting: deque[Request] = deque()
        self._ready: list[Response] = []
        self._asking: tuple[Request, Answering] | None = None
        self._unsent: Request | None = None  # to the archive, for whom its time has not come
        self._not_before = -math.inf
        self._failures = 0  # in a row
        self.failure = ""

    @property
    def in_flight(self) -> int:
        return len(self._waiting) + len(self._ready) + (self._asking is not None)

    def start(self, request: Request, before: float = math.inf) -> None:
        """before: does not matter, for the request's host is not asked."""
        self._waiting.append(request)
        self._advance()

    def withdraw(self, requests: Collection[Request]) -> None:
        """Nothing: their hosts are not asked."""

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
        """Takes up what waits, until the archive's server has to be asked."""
        while self._waiting and self._asking is None:
            request = self._waiting.popleft()
            if self.failure:
                self._ready.append(_no_answer(request, Cause.CANCELLED, self.failure))
                continue
            self._asking = request, self._source.answer(request)
            self._step(None)

    def _step(self, response: Response | None) -> None:
        """The next request to the archive, or the end of one of the crawl."""
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
            self._fail(f"the archive leads to another host, {host_name(onward.url)}, which is not asked")
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
        if (wait_s := self._wait_of(response)) is None:
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

    def _wait_of(self, response: Response) -> float | None:
        """Seconds until the archive may be asked again after it refused or failed; None: it did not."""
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
    """Whether an archive's answer is that of a server in the past, whatever its status."""
    return any(name == "memento-datetime" or name.startswith(_SENT) for name, _ in headers.fields)


def _no_answer(request: Request, cause: Cause, detail: str = "") -> Response:
    return Response(request, 0.0, 0.0, 0, Headers(), b"", Cut.NONE, cause, detail, "")


def _leads_to_itself(status: int, location: str, capture: Capture, url: Url) -> bool:
    """Whether a capture is a redirect to the very URL that it is to answer for, as `http:` to `https:`."""
    if status not in REDIRECTS or not location:
        return False
    try:
        return resolve(location, canonical(capture.url))[0] == url
    except InvalidUrl:
        return False


class FileSource:
    """Archives on disk. at: the time of which captures are wanted, in seconds since the epoch."""

    host: HostKey | None = None
    gap_s = 0.0

    def __init__(self, files: CaptureFiles, at: float, wire: Wire, clock: Clock) -> None:
        self._files, self._at, self._wire, self._clock = files, at, wire, clock

    def answer(self, request: Request) -> Answering:
        for capture in by_nearness(self._files.captures(request.url), request.url, self._at)[:MOST_TRIED]:
            response = self._files.answer(capture, request)
            if response is None:
                continue
            if not _leads_to_itself(response.status, response.headers.get("location"), capture, request.url):
                return _as_wanted(response, self._wire)
        return _no_answer(request, Cause.NOT_ARCHIVED)
        yield  # type: ignore[unreachable]  # so that it is a generator, which asks nobody


def _as_wanted(response: Response, wire: Wire) -> Response:
    """The answer without a body that nobody reads, as if its transfer had been ended."""
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
    """Nothing more can be had of an archive's server; its text says why."""


class ServerSource:
    """An archive's server, by its CDX server, TimeGate or TimeMap. address: of that; at: as for `FileSource`."""

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
            ask = self._listed if self._place.kind == "cdx" else self._negotiated
            captures = yield from ask(request.url)
            for capture in by_nearness(captures, request.url, self._place.at)[:MOST_TRIED]:
                response = yield from self._asked(self._shown_at(capture))
                if not is_capture(response.headers):
                    continue  # taken out since, or not to be shown
                answer = _answer_of(response, request, capture)
                if not _leads_to_itself(answer.status, answer.headers.get("location"), capture, request.url):
                    return _as_wanted(answer, self._wire)
        except _Refusal as refusal:
            return _no_answer(request, Cause.CANCELLED, str(refusal))
        return _no_answer(request, Cause.NOT_ARCHIVED)

    def _shown_at(self, capture: Capture) -> str:
        if self._place.kind == "cdx":
            return cdx.shown_at(self._address, capture.place + "id_", capture.url)
        return capture.place

    # requests --------------------------------------------------------------------------------------------------------

    def _asked(self, address: str, fields: tuple[str, ...] = ()) -> Answering:
        """An answer of the server, its own redirects followed. Raises _Refusal where its robots.txt says no."""
        for _ in range(MOST_HOPS):
            try:
                url = canonical(address)
            except InvalidUrl:
                raise _Refusal(f"the archive names an address that is none: {address}") from None
            yield from self._obey(url)
            response = yield Request(url, Purpose.PART, fields=fields)
            location = response.headers.get("location")
            if response.status not in REDIRECTS or not location or is_capture(response.headers):
                return response
            address = resolve(location, url)[0]
        return response

    def _obey(self, url: Url) -> Generator[Request, Response, None]:
        """Raises _Refusal for what the server's robots.txt disallows."""
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
            raise _Refusal(f"the archive {self.host} asks programs not to come: {where}")

    # captures --------------------------------------------------------------------------------------------------------

    def _listed(self, url: Url) -> Generator[Request, Response, Iterable[Capture]]:
        """By a CDX server: those of the host at once where they are not too many, else those of the URL."""
        host = host_key(url)
        if host not in self._lists:
            self._lists[host] = yield from self._list_of(url)
            if len(self._lists) > MOST_HOSTS:
                self._lists.popitem(last=False)
        self._lists.move_to_end(host)
        listed = self._lists[host]
        if listed is not None:
            return listed.get(capture_key(url), ())
        response = yield from self._asked(cdx.question(self._address, url, min(self._place.at, self._clock.now())))
        return cdx.captures_of(self._index_of(response))

    def _list_of(self, url: Url) -> Generator[Request, Response, dict[str, list[Capture]] | None]:
        """The captures of a URL's host by their keys; None: they are too many."""
        name = url.split("/")[2]
        captures: list[Capture] = []
        resume_key = ""
        while len(captures) < MOST_LISTED:
            response = yield from self._asked(cdx.listing_question(self._address, name, resume_key))
            body = self._index_of(response)
            further = cdx.captures_of(body)
            captures += further
            before, resume_key = resume_key, cdx.resume_key_of(body)
            if response.cut or resume_key == before != "" or (len(further) >= cdx.LISTED_AT_ONCE and not resume_key):
                return None
            if not resume_key:
                return _by_key(captures)
        return None

    def _index_of(self, response: Response) -> bytes:
        """The text of an index's answer; empty: it has nothing. Raises _Refusal for what is no answer."""
        if response.status == 404:  # so some servers say that there is none
            return b""
        if response.status != 200:
            raise _Refusal(f"the archive's index {self._address} answers with status {response.status}")
        return inflate(response.body, response.headers.get("content-encoding"), self._wire.limits)[0]

    def _negotiated(self, url: Url) -> Generator[Request, Response, Iterable[Capture]]:
        """By a TimeGate or TimeMap (RFC 7089)."""
        from email.utils import format_datetime  # 20 ms, which no other crawl needs

        when = format_datetime(datetime.fromtimestamp(min(self._place.at, self._clock.now()), UTC), usegmt=True)
        gate = Url(str(self._address) + url)
        yield from self._obey(gate)
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
    """An archive's answer as that of the server in the past: its time, its fields, and where it led to."""
    fields = response.headers.fields
    sent = [(name.removeprefix(_SENT), value) for name, value in fields if name.startswith(_SENT)]
    if sent:
        named = {name for name, _ in sent}
        sent += [(name, value) for name, value in fields if name in ("content-type", "location") and name not in named]
    else:
        sent = [(name, value) for name, value in fields if name not in _OWN and not name.startswith(_OWN_PREFIXES)]
    sent = [(name, cdx.original_of(value) if name == "location" else value) for name, value in sent]
    # the body's coding is that of the transfer from the archive, which may have undone the other
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
    """Seconds since the epoch of a date in a header field; None: it is none."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).timestamp() if date else None
    except ValueError:
        return None


# What a user names.


class ArchivePlace(NamedTuple):
    """Where an archive is. kind: files, cdx or memento; address: of a server; at: the time of which captures are
    wanted, in seconds since the epoch, infinite: the latest.
    """

    kind: str
    paths: tuple[Path, ...]
    address: Url
    at: float


def place_of(text: str, date: str) -> ArchivePlace:
    """The archive that the settings `from_archive` and `at` name. Raises UsageError."""
    at = end_of(date)
    kind, colon, address = text.partition(":")
    if colon and kind in ("cdx", "memento"):
        try:
            url = canonical(address) if kind == "cdx" else Url(canonical(address).rstrip("/") + "/")
        except InvalidUrl as error:
            raise UsageError(f"--from-archive {text}: {error}") from None
        if kind == "cdx" and not cdx.shown_at(url, "", ""):
            raise UsageError(
                f"--from-archive {text}: an address that ends in /cdx, -cdx or /cdx/search/cdx tells where its "
                "captures are shown; of another, name the TimeGate: memento:URL"
            )
        return ArchivePlace(kind, (), url, at)
    if re.match(r"https?://", text):
        raise UsageError(f"--from-archive {text}: is it a CDX server or a TimeGate? Write cdx:{text} or memento:{text}")
    path = Path(text).expanduser()
    if not path.exists():
        raise UsageError(f"--from-archive {text}: there is no such file or folder")
    return ArchivePlace("files", (path,), Url(""), at)


def end_of(date: str) -> float:
    """The last moment that an ISO 8601 date names, in seconds since the epoch; empty: infinity. Raises UsageError."""
    if not date:
        return math.inf
    try:
        when = datetime.fromisoformat(date)
    except ValueError:
        raise UsageError(f"{date!r} is no date: write 2019-05-31, or 2019-05-31T12:00") from None
    moment = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    lengths = {len("2019-05-31"): 86_400.0, len("2019-05-31T12:00"): 60.0}
    return moment + lengths.get(len(date), 1.0) - 1e-6
