"""Requests to web archives and their answers: CDX servers, TimeGates, TimeMaps (RFC 7089); copies of broken links."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from periplus.acquire.clock import SystemClock
from periplus.acquire.politeness import delay_for
from periplus.acquire.transport import CurlTransport, Wire
from periplus.analyse.issues import IssueTable, KindIssues
from periplus.analyse.linkgraph import sort_distinct
from periplus.api.homes import open_reader
from periplus.api.secrets import resolve_secrets
from periplus.model.ports import Clock, Transport
from periplus.model.visit import Cause, Request
from periplus.model.web import Url
from periplus.present.wording import utc
from periplus.settings import FetchLimits, Settings
from periplus.urls.canonical import start_urls, url_id
from periplus.urls.hosts import host_key
from periplus.values import Place, frozen
from periplus_archives.captures import Capture

# The formats of CDX servers differ: lines of JSON (pywb), an array of arrays whose first row has the names (Wayback
# Machine), lines of CDXJ, or lines of CDX with eleven fields, of which the first seven are the same everywhere.
# Sources: the CDX Server API of the Wayback Machine and of pywb.

ASKED_COPIES = 10  # nearest in time; some of them are redirects or errors
ANSWER_S = 60.0  # timeout; the index of a large archive is slow
_PAGE_STATUSES = frozenset({"200", "-", ""})  # a page; some servers have no status for revisit records
_NAMES = {"timestamp": "timestamp", "url": "url", "original": "url", "status": "status", "statuscode": "status"}
CAPTURES_PER_ANSWER = 5_000  # captures in one answer: 1 to 2 MB
_REPLAY_PATH = re.compile(r"/([0-9]{14})(?:[a-z]{2}_)?/")  # `id_`: as it was stored
_LINK = re.compile(r"<([^<>\s]*)>((?:\s*;\s*[^\s=;,]+\s*=\s*(?:\"[^\"]*\"|[^\s;,\"]+))*)")
_REL = re.compile(r";\s*rel\s*=\s*\"?([^\";]+)\"?", re.IGNORECASE)
_CDX = ("urlkey", "timestamp", "url", "mime", "status")

DEAD = frozenset({"broken-link", "broken-resource", "soft-404"})
MOST_URLS = 1_000  # URLs per check: about eight minutes at half a second each
MOST_FAILURES = 3  # consecutive failures after which the archive is no longer asked
LIMITS = FetchLimits(body_bytes=1 << 20, inflated_bytes=1 << 22, total_timeout_s=60.0, first_byte_timeout_s=60.0)


class ArchivedCopy(NamedTuple):
    """One copy of a URL. taken: seconds since the epoch, UTC; address: URL of the copy, empty if unknown."""

    url: str
    taken: float
    address: str


class CdxServer:
    """The index of one archive: one query at a time, with delay_s between queries."""

    def __init__(self, address: Url, transport: Transport, clock: Clock, delay_s: float) -> None:
        self._address, self._transport, self._clock, self._delay_s = address, transport, clock, delay_s
        self._next = clock.monotonic()

    def nearest(self, url: Url, at: float) -> ArchivedCopy | str | None:
        """The copy nearest to a time (seconds since the epoch); None: there is none; str: an error message."""
        while (rest_s := self._next - self._clock.monotonic()) > 0:
            self._transport.wait(rest_s)
        self._next = self._clock.monotonic() + self._delay_s
        self._transport.start(Request(Url(query_url(self._address, url, at))))
        until = self._clock.monotonic() + ANSWER_S
        while not (answers := self._transport.wait(max(0.0, until - self._clock.monotonic()))):
            if self._clock.monotonic() >= until:
                return "timeout"
        answer = answers[0]
        if answer.cause is Cause.STALE:
            return self.nearest(url, at)
        if answer.cause is not None:
            return f"{answer.cause.value}: {answer.detail}" if answer.detail else answer.cause.value
        if answer.status == 404:  # some servers answer so if there are no copies
            return None
        if answer.status != 200:
            return f"status {answer.status}"
        copies = [(stamp, text) for stamp, text, status in copies_of(answer.body) if status in _PAGE_STATUSES]
        dated = [
            (abs(taken - at), taken, stamp, text) for stamp, text in copies if (taken := time_of(stamp)) is not None
        ]
        if not dated:
            return None
        _, taken, stamp, text = min(dated)
        return ArchivedCopy(text, taken, replay_url(self._address, stamp, text))


def query_url(server: Url, url: Url, at: float) -> str:
    stamp = datetime.fromtimestamp(at, UTC).strftime("%Y%m%d%H%M%S")
    sign = "&" if "?" in server else "?"
    limits = f"closest={stamp}&sort=closest&limit={ASKED_COPIES}&output=json"
    return f"{server}{sign}url={quote(url, safe='')}&{limits}"


def listing_query_url(server: Url, host: str, resume_key: str = "") -> str:
    """A query for all captures of a host, CAPTURES_PER_ANSWER at a time. pywb ignores the resume key."""
    sign = "&" if "?" in server else "?"
    resumed = f"&resumeKey={quote(resume_key, safe='')}" if resume_key else ""
    what = f"url={quote(host, safe='')}&matchType=host&limit={CAPTURES_PER_ANSWER}&output=json&showResumeKey=true"
    return f"{server}{sign}{what}{resumed}"


def resume_key_of(body: bytes) -> str:
    """The key for the next query, after an empty row at the end of an answer; empty: there is none. Never raises."""
    text = body.decode("utf-8", "replace").strip()
    if text.startswith("["):
        try:
            table = json.loads(text)
        except ValueError:
            return ""
        has_key = isinstance(table, list) and len(table) > 2 and table[-2] == [] and isinstance(table[-1], list)
        return str(table[-1][0]) if has_key and len(table[-1]) == 1 else ""
    before, _, last = text.rpartition("\n\n")
    return last if before and last and " " not in last and "\n" not in last else ""


def captures_of(body: bytes) -> list[Capture]:
    """The captures in a CDX server's answer, with the timestamp of 14 digits as `place`. Never raises."""
    rows = ((stamp, url, status, time_of(stamp)) for stamp, url, status in copies_of(body))
    return [
        Capture(url, taken, int(status) if status.isdigit() and len(status) == 3 else 0, stamp)
        for stamp, url, status, taken in rows
        if taken is not None
    ]


def mementos_of(links: str, url: str) -> list[Capture]:
    """The captures of a URL in a TimeMap or a Link field (RFC 8288, RFC 7089). Never raises.

    `place` is the address of the stored bytes; captures for which it cannot be derived are left out.
    """
    mementos = []
    for address, parameters in _LINK.findall(links):
        relation = _REL.search(parameters)
        if relation is not None and "memento" in relation[1].split() and (capture := memento_at(address, url)):
            mementos.append(capture)
    return mementos


def memento_at(address: str, url: str) -> Capture | None:
    """The capture at an archive's address in the form of the Wayback Machine: `/20190531120000/URL`; else None."""
    match = _REPLAY_PATH.search(address)
    taken = time_of(match[1]) if match else None
    return Capture(url, taken, 0, _REPLAY_PATH.sub(r"/\1id_/", address, count=1)) if taken is not None else None


def original_of(address: str) -> str:
    """The captured URL of an archive's address; the address itself if it is not of a capture."""
    match = _REPLAY_PATH.search(address)
    return address[match.end() :] if match and address[match.end() :].startswith(("http:", "https:")) else address


def copies_of(body: bytes) -> Iterator[tuple[str, str, str]]:
    """(timestamp of 14 digits, URL, status) of each copy in an answer. Never raises."""
    text = body.decode("utf-8", "replace").strip()
    try:
        table = json.loads(text) if text.startswith("[") else None
    except ValueError:
        table = None
    if isinstance(table, list):
        rows = [row for row in table if isinstance(row, list)]
        for row in rows[1:]:
            yield from _copy(dict(zip(map(str, rows[0]), row, strict=False)))
        return
    for line in text.splitlines():
        before, brace, _ = line.partition("{")
        words = before.split()
        values: object = None
        if brace:
            try:
                values = json.loads(line[len(before) :])
            except ValueError:
                continue
            if isinstance(values, dict) and len(words) >= 2:
                values = {"timestamp": words[1]} | values
        elif len(words) >= len(_CDX):
            values = dict(zip(_CDX, words, strict=False))
        if isinstance(values, dict):
            yield from _copy(values)


def _copy(values: dict[str, object]) -> Iterator[tuple[str, str, str]]:
    named = {_NAMES[name]: str(value) for name, value in values.items() if name in _NAMES}
    if named.get("timestamp") and named.get("url"):
        yield named["timestamp"], named["url"], named.get("status", "")


def time_of(stamp: str) -> float | None:
    """Seconds since the epoch of a timestamp of 14 digits; None if it is invalid."""
    try:
        return datetime.strptime(stamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def replay_url(server: Url, stamp: str, url: str) -> str:
    """The URL of a copy in the archive of a CDX server, for the Wayback Machine and pywb; empty: unknown."""
    parts = urlsplit(server)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    if path.endswith("/cdx/search/cdx"):
        return f"{origin}{path.removesuffix('/cdx/search/cdx')}/web/{stamp}/{url}"
    if path.endswith(("/cdx", "-cdx")):
        return f"{origin}{path[:-4]}/{stamp}/{url}"
    return ""


@frozen
class Suggestions:
    """The issues, with copies added to the details of broken links. asked: number of broken URLs."""

    issues: IssueTable
    asked: int
    copies: int
    left: int  # broken URLs that were not looked up
    fault: str = ""  # latest error of the archive


def with_copies(
    place: Place,
    issues: IssueTable,
    server: str,
    settings: Settings,
    watch: Callable[[int, int], None] = lambda done, count: None,
) -> Suggestions:
    """Suggests archived copies for broken links: those closest to the time when the link was first seen.

    Looks up a copy of each broken URL on a CDX server. Raises UsageError for an invalid server address.

    watch: called with (URLs looked up, total).
    """
    (address,) = start_urls([server])
    links = [kind for kind in issues.kinds if kind.kind.code in DEAD]
    targets = {issues.url[place] for kind in links for place in sort_distinct(kind.related).tolist()}
    dead = sorted(url for url in targets if url.startswith("http"))
    clock = SystemClock()
    host = host_key(address)
    delay_s = delay_for(settings.politeness, host in settings.politeness.mine, None)
    folder = place if isinstance(place, Path) else Path()
    transport = CurlTransport(Wire(LIMITS, resolve_secrets(settings.identity, folder), 1), clock)
    copies: dict[str, ArchivedCopy] = {}
    failures, fault, asked = 0, "", 0
    try:
        index = CdxServer(address, transport, clock, delay_s)
        for text, first_seen in _first_seen_times(place, dead[:MOST_URLS]):
            watch(asked, len(dead))
            answer = index.nearest(Url(text), first_seen)
            asked += 1
            if isinstance(answer, str):
                failures, fault = failures + 1, answer
                if failures == MOST_FAILURES:
                    break
                continue
            failures = 0
            if answer is not None:
                copies[text] = answer
    finally:
        transport.close()
    named = issues.of(_with_copies(kind, issues, copies) if kind.kind.code in DEAD else kind for kind in issues.kinds)
    return Suggestions(named, asked, len(copies), len(dead) - asked, fault)


def _with_copies(kind: KindIssues, issues: IssueTable, copies: dict[str, ArchivedCopy]) -> KindIssues:
    """Adds copies to the details of the issues of broken links."""
    words = kind.words.copy()
    for row, place in enumerate(kind.related.tolist()):
        if (copy := copies.get(issues.url[place])) is not None:
            where = f"archived {utc(copy.taken)}{': ' if copy.address else ''}{copy.address}"
            words[row] = "; ".join(filter(None, (words[row], where)))
    return replace(kind, words=words)


def _first_seen_times(place: Place, urls: Sequence[str]) -> list[tuple[str, float]]:
    """(URL, time when it was first seen)."""
    with open_reader(place) as reader:
        times = [(url, reader.first_seen_s(url_id(Url(url)))) for url in urls]
    return [(url, moment) for url, moment in times if moment is not None]
