"""Collects what crawls and checks saw of each URL, and detects soft 404s (error pages with status 200).

Reads stored data only. Redirects are followed through the stored responses of crawls and checks; the verdict on the
last URL applies to the first. The rules for verdicts are in `analyse.verdicts`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from periplus.analyse.duplicates import shingles
from periplus.analyse.verdicts import (
    PROBE_WORDS,
    TEXT_CHARS,
    Attempt,
    Evidence,
    Hop,
    HostHabits,
    Judgement,
    PageProbe,
    judge,
    looks_missing,
    says_missing,
    sent_home,
    without_address,
)
from periplus.model.audit import Verdict
from periplus.model.frontier import Look
from periplus.model.graph import REASONS
from periplus.model.visit import FETCHED_REASONS, REASONS_OF, STATE_OF, Cause, Cut, Reason, State
from periplus.model.web import HostKey, Origin, SiteKey, Url, UrlId
from periplus.store import checks, site_rows
from periplus.store.reader import CollectionReader
from periplus.store.site_arrays import redirects as all_redirects
from periplus.store.site_rows import AllUrls, PageTexts
from periplus.urls.canonical import url_id
from periplus.urls.folders import is_folder_host
from periplus.urls.hosts import host_key, origin_of
from periplus.values import frozen

HOPS_MOST = 101  # redirects followed: more than any setting allows a crawl or check to follow
COMPLETE_REASONS = FETCHED_REASONS - {Reason.TRUNCATED}  # the page exists: it can only be a soft 404
FAILURE_REASONS = [*REASONS_OF[State.FAILED], Reason.REFUSED, Reason.BOT_WALL, Reason.TRUNCATED]
# reasons of URLs that a crawl does not request but a check does
_LEFT = frozenset([*REASONS_OF[State.DISCOVERED], Reason.SCOPE]) - {
    Reason.WAITING,
    Reason.ROBOTS,
}
_NOT_DEAD = {Verdict.OK: Reason.ALIVE, Verdict.MOVED: Reason.ALIVE, Verdict.REFUSED: Reason.REFUSED}
_OF_FILES = {
    "it answers 404": "there is no such file",
    "it answers 403: refused to crawlers, perhaps not to browsers": "not readable, or a link out of the folder",
}
# reasons of URLs that were not requested because of their host
_HOST_REASONS = frozenset({Reason.HOST_DOWN, Reason.TLS, Reason.UNREACHABLE})


@frozen
class Way:
    """The redirects of a URL."""

    end: int  # id of the last URL; in a loop, the id of the first
    hops: tuple[Hop, ...]
    circle: bool  # a loop, or more hops than the limit


@dataclass(slots=True)
class _Trace:
    """The visits of one URL."""

    url: Url
    attempts: list[Attempt] = field(default_factory=list)
    hop: tuple[int, Url] | None = None  # status and target of the latest response if it was a redirect
    skipped: Reason | None = None  # why the latest visit made no request
    seen_at: float = 0.0  # time of the latest visit of any kind
    got_at: float = 0.0  # time of the latest GET

    def add(self, row: checks.VisitEvidence) -> None:
        """Adds the next visit in order of time.

        A HEAD counts only if it succeeds or redirects: many servers answer it wrongly otherwise.
        """
        self.seen_at = max(self.seen_at, row.started)
        if row.purpose != "head":
            self.got_at = max(self.got_at, row.started)
        if row.outcome == "skipped":
            self.skipped = Reason(row.detail.partition(": ")[0])
            return
        if row.purpose == "head" and not (row.outcome == "redirected" or 200 <= row.status < 300):
            return
        self.skipped = None
        self.hop = (row.status, Url(row.detail)) if row.outcome == "redirected" else None
        self.attempts.append(_attempt(row))


def _attempt(row: checks.VisitEvidence) -> Attempt:
    if row.outcome == "failed":
        return Attempt(row.started, 0, Cause(row.detail.partition(": ")[0]))
    return Attempt(row.started, row.status, cut=Cut(row.detail) if row.outcome == "fetched" else Cut.NONE)


def _reason_of(status: int, cause: Cause | None) -> Reason:
    """Reason of a dead URL, from its last attempt."""
    if cause in (Cause.NOT_HTTP, Cause.HEADER_LIMIT):
        return Reason.BAD_ANSWER
    if cause is not None:
        return Reason.UNREACHABLE
    if status in (404, 410):
        return Reason.NOT_FOUND
    return (
        Reason.CLIENT_ERROR
        if 400 <= status < 500
        else Reason.SERVER_ERROR
        if 500 <= status < 600
        else Reason.BAD_ANSWER
    )


class UrlEvidence:
    """Everything seen of the collection's URLs, at the time of construction."""

    def __init__(self, reader: CollectionReader, urls: AllUrls, spacing_s: float, most_hops: int) -> None:
        """urls: all URLs of the collection. spacing_s: minimum time between two failures for a verdict. most_hops:
        redirects that checks follow.
        """
        self._most_hops = most_hops
        self._reader, self._urls, self._spacing_s = reader, urls, spacing_s
        self._ids = urls.ids.data  # its items are integers of Python, which compare fast
        self._traces: dict[int, _Trace] = {}
        for row in checks.check_visits(reader):
            self._trace(url_id(row.url), row.url).add(row)
        self._add_failures()
        self._host_attempts: dict[Origin, list[Attempt]] = {}
        for row in checks.host_failures(reader):
            self._host_attempts.setdefault(origin_of(row.url), []).append(_attempt(row))
        # for URLs that a check marked as dead: the crawl's own reason; all others still have it
        self._crawled_as = checks.crawled_as(reader)
        moved = all_redirects(reader)
        self._moved = dict(zip(moved.sources.tolist(), moved.targets.tolist(), strict=True))

    def _trace(self, url: int, text: Url) -> _Trace:
        return self._traces.setdefault(url, _Trace(text))

    def _add_failures(self) -> None:
        """Merges the failed attempts of the crawl with those of checks, in order of time."""
        for number, row in checks.failures(self._reader, FAILURE_REASONS):
            trace = self._trace(number, row.url)
            if row.purpose not in ("head", "check") and row.outcome not in ("skipped", "unchanged"):
                trace.attempts.append(_attempt(row))
        for trace in self._traces.values():
            trace.attempts.sort(key=lambda attempt: attempt.at)

    def place(self, url: int) -> int:
        """Index of the URL in the columns; -1 if only checks know it."""
        place = bisect_left(self._ids, url)
        return place if place < len(self._ids) and self._ids[place] == url else -1

    def _status(self, url: int) -> int:
        """Status of the crawl's response; 0: none."""
        place = self.place(url)
        return int(self._urls.statuses[place]) if place >= 0 else 0

    def text(self, url: int) -> Url:
        trace, place = self._traces.get(url), self.place(url)
        return self._urls.texts[place] if place >= 0 else trace.url if trace else Url("")

    def reason(self, url: int) -> Reason:
        """The crawl's reason, or that of a check which was not allowed to request the URL."""
        trace = self._traces.get(url)
        return trace.skipped if trace is not None and trace.skipped is not None else self.crawl_reason(url)

    def crawl_reason(self, url: int) -> Reason:
        """The crawl's reason; SCOPE for URLs that it does not know."""
        if url in self._crawled_as:
            return Reason(self._crawled_as[url])
        place = self.place(url)
        return REASONS[int(self._urls.reasons[place])] if place >= 0 else Reason.SCOPE

    def request_time(self, url: int, *, by_get: bool) -> float:
        """Time of the URL's last visit by a check, or of its last GET; 0.0: never."""
        trace = self._traces.get(url)
        return 0.0 if trace is None else trace.got_at if by_get else trace.seen_at

    def checked_urls(self) -> Mapping[int, Url]:
        """URLs that checks requested, and the targets of their redirects."""
        asked = {number: trace.url for number, trace in self._traces.items()}
        return asked | {url_id(trace.hop[1]): trace.hop[1] for trace in self._traces.values() if trace.hop}

    def redirecting(self) -> list[int]:
        """Ids of URLs that redirect."""
        return [number for number in {*self._moved, *self._traces} if self.hop(number)]

    def hop(self, url: int) -> tuple[int, int] | None:
        """(status, target id) of a redirecting URL. A check's response supersedes the crawl's."""
        trace = self._traces.get(url)
        if trace is not None and trace.hop is not None:
            return trace.hop[0], url_id(trace.hop[1])
        target = self._moved.get(url)
        if target is None or (trace is not None and trace.seen_at and trace.attempts):
            return None
        return self._status(url), target

    def way(self, url: int) -> Way:
        """Follows the URL's redirects."""
        hops: list[Hop] = []
        met, end = {url}, url
        while len(hops) < HOPS_MOST and (hop := self.hop(end)) is not None:
            status, end = hop
            if status:  # status 0 is an alias, which is no redirect
                hops.append(Hop(status, self.text(end)))
            if end in met:
                return Way(url, tuple(hops), True)
            met.add(end)
        if len(hops) > self._most_hops and self.place(end) < 0 and end not in self._traces:
            return Way(url, tuple(hops), True)
        return Way(end, tuple(hops), False)

    def judgement(self, url: int, looks_missing: Mapping[int, str]) -> Judgement:
        """Verdict on a URL. looks_missing: reasons for suspected soft 404s, by id."""
        if url not in self._traces and url not in self._moved and url not in looks_missing:
            reason = self.crawl_reason(url)  # as most links to other sites
            if reason not in _HOST_REASONS and not self._status(url):
                return judge(Evidence(reason), spacing_s=0.0)
        way = self.way(url)
        missing = looks_missing.get(url) or looks_missing.get(way.end, "")
        evidence = Evidence(self.reason(way.end), self._attempts(way.end), way.hops, way.circle, missing)
        if (text := self.text(way.end)) and is_folder_host(host_key(text)):  # failures of local files are not temporary
            judgement = judge(evidence, spacing_s=0.0)
            return replace(judgement, why=_OF_FILES.get(judgement.why, judgement.why))
        return judge(evidence, spacing_s=self._spacing_s)

    def dead_urls(self) -> Iterator[tuple[int, str, str, int]]:
        """(id, reason, rule, status) of URLs that checks found dead but the crawl did not request; they count as failed
        (SPEC A1, A7).
        """
        for number, reason in zip(self._urls.ids.tolist(), self._urls.reasons.tolist(), strict=True):
            if REASONS[reason] in _LEFT and (number in self._traces or number in self._moved):
                judgement = self.judgement(number, {})
                if judgement.verdict in (Verdict.BROKEN, Verdict.SERVER_ERROR):
                    last = self._attempts(self.way(number).end)[-1:]
                    status = last[0].status if last else 0
                    yield number, _reason_of(status, last[0].cause if last else None).value, judgement.why, status

    def alive_urls(self) -> Iterator[tuple[int, str, str, int]]:
        """Like `dead_urls`, for URLs that the crawl found dead and a later check found alive or refused."""
        for number, reason in zip(self._urls.ids.tolist(), self._urls.reasons.tolist(), strict=True):
            if (
                STATE_OF[REASONS[reason]] is State.FAILED
                and number not in self._crawled_as
                and self.request_time(number, by_get=False)
            ):
                judgement = self.judgement(number, {})
                if judgement.verdict in _NOT_DEAD:
                    last = self._attempts(self.way(number).end)[-1:]
                    yield number, _NOT_DEAD[judgement.verdict].value, judgement.why, last[0].status if last else 0

    def _attempts(self, url: int) -> list[Attempt]:
        """Attempts at a URL, plus those at its host if the host is why the URL was not requested."""
        trace, reason = self._traces.get(url), self.reason(url)
        if trace is not None and trace.attempts:
            own = list(trace.attempts)
        elif reason in COMPLETE_REASONS | {Reason.REDIRECT} and (status := self._status(url)):
            own = [Attempt(checks.visit_time_s(self._reader, url), status)]
        else:
            own = []
        if reason in _HOST_REASONS and (trace is None or trace.skipped is not None or not own):
            own += self._host_attempts.get(origin_of(self.text(url)), [])
        return sorted(own, key=lambda attempt: attempt.at)


# Soft 404s. Loads only texts that can decide the question.

ALIKE_CHARS = (0.7, 1.4)  # of a probe's length without its address; outside, texts cannot share 90 % of their shingles


class MissingPages:
    """Soft 404s among a site's pages, redirects to its home page, and other URLs requested by checks.

    Use within a snapshot.
    """

    notes: Sequence[str] = ()  # no page is skipped

    def __init__(self, reader: CollectionReader, seen: UrlEvidence, site: SiteKey) -> None:
        self._seen, self._contents = seen, reader
        self._looks = checks.looks(reader)
        self._habits = _habits(reader, seen, self._looks, site)
        self._missing: dict[int, str] = {}
        self._elsewhere = {
            url_id(url): (url, look) for url, look in self._looks.items() if PROBE_WORDS not in url
        }  # pages of the site are removed later

    def examine(self, pages: Iterable[PageTexts]) -> Iterator[PageTexts]:
        """Passes the site's pages through and examines each."""
        for page in pages:
            self._elsewhere.pop(UrlId(page.url_id), None)
            look = _own_look(self._contents, self._seen, page, self._habits)
            if look is not None:
                habits = self._habits.get(host_key(Url(look.url)), HostHabits())
                if why := looks_missing(look, habits):
                    self._missing[page.url_id] = why
            yield page

    def whys(self) -> dict[int, str]:
        """Reason for each suspected soft 404, by URL id."""
        elsewhere = {
            number: why
            for number, (url, look) in self._elsewhere.items()
            if (why := looks_missing(_look(url, url, look), HostHabits()))
        }
        return self._missing | elsewhere | _sent_home(self._seen, self._habits)


def _habits(
    reader: CollectionReader, seen: UrlEvidence, looks: Mapping[Url, Look], site: SiteKey
) -> dict[HostKey, HostHabits]:
    """Responses of each host to URLs that cannot exist, with its home page."""
    probes: dict[HostKey, list[PageProbe]] = {}
    for number, url in seen.checked_urls().items():
        if PROBE_WORDS not in url:
            continue
        end = seen.text(seen.way(number).end)
        if end in looks:
            probes.setdefault(host_key(url), []).append(_look(url, end, looks[end]))
    homes = {
        host_key(url): page
        for page in (site_rows.page_texts(reader, site) if probes else ())
        if _is_home(url := seen.text(page.url_id)) and host_key(url) in probes
    }
    contents = reader
    return {
        host: HostHabits(looks_there, _page_look(seen, homes[host], contents) if host in homes else None)
        for host, looks_there in probes.items()
    }


def _is_home(url: Url) -> bool:
    return url.count("/") == 3 and url.endswith("/")


def _own_look(
    contents: CollectionReader, seen: UrlEvidence, page: PageTexts, habits: Mapping[HostKey, HostHabits]
) -> PageProbe | None:
    """The page for `looks_missing`, or None if title and length alone rule out a soft 404."""
    short = page.text_chars <= TEXT_CHARS and (says_missing(page.title) or says_missing(page.h1))
    if not short and not habits:
        return None
    host = habits.get(host_key(seen.text(page.url_id)))
    if short or (
        host is not None and any(_may_be_alike(page.text_chars, seen.text(page.url_id), probe) for probe in host.probes)
    ):
        return _page_look(seen, page, contents)
    return None


def _may_be_alike(text_chars: int, url: Url, probe: PageProbe) -> bool:
    """Compares by length only. Both pages may repeat their address equally often; short texts differ in little else."""
    low, high = ALIKE_CHARS
    chars = len(without_address(probe.text, probe.url))
    times = (len(probe.text) - chars) / len(probe.url.rpartition("/")[2])  # upper bound of repetitions
    return low * chars <= text_chars <= high * chars + times * len(url)


def _page_look(seen: UrlEvidence, page: PageTexts, contents: CollectionReader) -> PageProbe:
    text, url = contents.text(UrlId(page.url_id)) or "", seen.text(page.url_id)
    return PageProbe(url, url, page.title, page.h1, text, shingles(without_address(text, url)))


def _look(url: Url, final: Url, look: Look) -> PageProbe:
    return PageProbe(url, final, look.title, look.h1, look.text, shingles(without_address(look.text, url)))


def _sent_home(seen: UrlEvidence, habits: Mapping[HostKey, HostHabits]) -> dict[int, str]:
    """Deep URLs that redirect to the home page on hosts where non-existent URLs do so too."""
    if not any(probe.url != probe.final_url for host in habits.values() for probe in host.probes):
        return {}
    sent, no_shingles = dict[int, str](), shingles("")
    for number in seen.redirecting():
        look = PageProbe(seen.text(number), seen.text(seen.way(number).end), "", "", "", no_shingles)
        host = habits.get(host_key(Url(look.url)))
        if host is not None and PROBE_WORDS not in look.url and sent_home(look, host):
            sent[number] = "it redirects to the home page, as nonexistent URLs do"
    return sent
