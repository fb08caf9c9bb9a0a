"""What was seen of a collection's URLs by crawls and checks, and which pages that answered 200 are error pages.

Reads what is stored, asks nothing. Redirects are followed through what the crawl and the checks recorded; the verdict
on the last URL holds for the first. The rules themselves stand in `analyse.verdicts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from periplus.analyse.duplicates import shingles
from periplus.analyse.linkgraph import places_in_sorted
from periplus.analyse.verdicts import (
    PROBE_WORDS,
    TEXT_CHARS,
    Attempt,
    Evidence,
    Hop,
    HostHabits,
    Judgement,
    PageProbe,
    judged,
    looks_missing,
    says_missing,
    sent_home,
    without_address,
)
from periplus.model.audit import Verdict
from periplus.model.frontier import Look
from periplus.model.graph import REASONS
from periplus.model.visit import FETCHED, REASONS_OF, STATE_OF, Cause, Cut, Reason, State
from periplus.model.web import HostKey, Origin, SiteKey, Url, UrlId
from periplus.store.sqlite import checks, reading, site_rows
from periplus.store.sqlite.page_rows import Contents
from periplus.store.sqlite.site_rows import AllUrls, PageTexts
from periplus.urls.canonical import url_id
from periplus.urls.folders import is_folder_host
from periplus.urls.hosts import host_key, origin_of
from periplus.values import frozen

HOPS_MOST = 101  # redirects that are followed: more than any setting lets a crawl or a check follow
SETTLED = FETCHED - {Reason.TRUNCATED}  # the page is there: nothing is left to judge but whether it is an error page
FAILED = [*REASONS_OF[State.FAILED], Reason.REFUSED, Reason.TRUNCATED]
# States of URLs that a crawl did not ask for, and a check does
_LEFT = frozenset([*REASONS_OF[State.DISCOVERED], Reason.SCOPE]) - {
    Reason.WAITING,
    Reason.ROBOTS,
}
_NOT_DEAD = {Verdict.OK: Reason.ALIVE, Verdict.MOVED: Reason.ALIVE, Verdict.REFUSED: Reason.REFUSED}
_OF_FILES = {
    "it answers 404": "there is no such file",
    "it answers 403: refused to crawlers, perhaps not to browsers": "not readable, or a link out of the folder",
}
# of a URL that nobody was asked for because of its host
_HOST_REASONS = frozenset({Reason.HOST_DOWN, Reason.TLS, Reason.UNREACHABLE})


@frozen
class Way:
    """Where a URL leads."""

    end: int  # id of the last URL; in a circle of the first
    hops: tuple[Hop, ...]
    circle: bool  # or longer than anybody follows


@dataclass(slots=True)
class _Trace:
    """What was seen of one URL by asking for it."""

    url: Url
    attempts: list[Attempt] = field(default_factory=list)
    hop: tuple[int, Url] | None = None  # the latest answer's status and target, when it was a redirect
    skipped: Reason | None = None  # why it was not asked for at last
    seen_at: float = 0.0  # the latest visit of whatever kind
    got_at: float = 0.0  # the latest by GET

    def add(self, row: checks.VisitEvidence) -> None:
        """The next visit, in order of time.

        A HEAD counts when it succeeds or redirects: many servers answer others wrongly.
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
    """The state of a dead URL by its last attempt."""
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
    """Everything that was seen of the collection's URLs, as it stands at one moment."""

    def __init__(self, connection: reading.Connection, urls: AllUrls, spacing_s: float, most_hops: int) -> None:
        """urls: all of the collection's.

        spacing_s: between two failures that make a verdict. most_hops: redirects that checks follow.
        """
        self._most_hops = most_hops
        self._connection, self._urls, self._spacing_s = connection, urls, spacing_s
        self._traces: dict[int, _Trace] = {}
        for row in checks.asked(connection):
            self._trace(url_id(row.url), row.url).add(row)
        self._add_failures()
        self._host_attempts: dict[Origin, list[Attempt]] = {}
        for row in checks.host_failures(connection):
            self._host_attempts.setdefault(origin_of(row.url), []).append(_attempt(row))
        # of what checks found dead; all others stand as the crawl left them
        self._crawled_as = checks.crawled_as(connection)
        moved = site_rows.redirects(connection)
        self._moved = dict(zip(moved.sources.tolist(), moved.targets.tolist(), strict=True))

    def _trace(self, url: int, text: Url) -> _Trace:
        return self._traces.setdefault(url, _Trace(text))

    def _add_failures(self) -> None:
        """What the crawl saw of pages that failed stands before or between what checks saw."""
        for number, row in checks.failures(self._connection, FAILED):
            trace = self._trace(number, row.url)
            if row.purpose not in ("head", "check") and row.outcome not in ("skipped", "unchanged"):
                trace.attempts.append(_attempt(row))
        for trace in self._traces.values():
            trace.attempts.sort(key=lambda attempt: attempt.at)

    def place(self, url: int) -> int:
        """The URL's place in the columns; -1: checks met it, and the crawl did not."""
        return int(places_in_sorted(self._urls.ids, np.array([url], np.int64))[0])

    def text(self, url: int) -> Url:
        trace, place = self._traces.get(url), self.place(url)
        return self._urls.texts[place] if place >= 0 else trace.url if trace else Url("")

    def reason(self, url: int) -> Reason:
        """As the crawl left it, or as a check found that it may not be asked for."""
        trace = self._traces.get(url)
        return trace.skipped if trace is not None and trace.skipped is not None else self.crawled_as(url)

    def crawled_as(self, url: int) -> Reason:
        """As the crawl left it; SCOPE for what it did not meet."""
        if url in self._crawled_as:
            return Reason(self._crawled_as[url])
        place = self.place(url)
        return REASONS[int(self._urls.reasons[place])] if place >= 0 else Reason.SCOPE

    def asked_at(self, url: int, *, by_get: bool) -> float:
        """When a check last had to do with the URL, or by GET; 0.0: never."""
        trace = self._traces.get(url)
        return 0.0 if trace is None else trace.got_at if by_get else trace.seen_at

    def met(self) -> Mapping[int, Url]:
        """Every URL that checks asked for, or were led to."""
        asked = {number: trace.url for number, trace in self._traces.items()}
        return asked | {url_id(trace.hop[1]): trace.hop[1] for trace in self._traces.values() if trace.hop}

    def redirecting(self) -> list[int]:
        """Ids of the URLs that redirect."""
        return [number for number in {*self._moved, *self._traces} if self.hop(number)]

    def hop(self, url: int) -> tuple[int, int] | None:
        """(status, id of its target) of a URL that redirects. A check's answer is later than the crawl's."""
        trace = self._traces.get(url)
        if trace is not None and trace.hop is not None:
            return trace.hop[0], url_id(trace.hop[1])
        target = self._moved.get(url)
        if target is None or (trace is not None and trace.seen_at and trace.attempts):
            return None
        place = self.place(url)
        return int(self._urls.statuses[place]) if place >= 0 else 0, target

    def way(self, url: int) -> Way:
        """Where the URL leads, hop by hop."""
        hops: list[Hop] = []
        met, end = {url}, url
        while len(hops) < HOPS_MOST and (hop := self.hop(end)) is not None:
            status, end = hop
            if status:  # an alias is no redirect: nobody was sent anywhere
                hops.append(Hop(status, self.text(end)))
            if end in met:
                return Way(url, tuple(hops), True)
            met.add(end)
        if len(hops) > self._most_hops and self.place(end) < 0 and end not in self._traces:
            return Way(url, tuple(hops), True)
        return Way(end, tuple(hops), False)

    def judgement(self, url: int, looks_missing: Mapping[int, str]) -> Judgement:
        """looks_missing: why pages that answered 200 seem error pages, by id."""
        way = self.way(url)
        missing = looks_missing.get(url) or looks_missing.get(way.end, "")
        evidence = Evidence(self.reason(way.end), self._attempts(way.end), way.hops, way.circle, missing)
        if (text := self.text(way.end)) and is_folder_host(host_key(text)):  # no failure of a folder passes
            judgement = judged(evidence, spacing_s=0.0)
            return replace(judgement, why=_OF_FILES.get(judgement.why, judgement.why))
        return judged(evidence, spacing_s=self._spacing_s)

    def dead(self) -> Iterator[tuple[int, str, str, int]]:
        """(id, reason, rule, status) of what checks found dead and the crawl left at another state:
        it counts as failed (SPEC A1, A7).
        """
        for number, reason in zip(self._urls.ids.tolist(), self._urls.reasons.tolist(), strict=True):
            if REASONS[reason] in _LEFT and (number in self._traces or number in self._moved):
                judgement = self.judgement(number, {})
                if judgement.verdict in (Verdict.BROKEN, Verdict.SERVER_ERROR):
                    last = self._attempts(self.way(number).end)[-1:]
                    status = last[0].status if last else 0
                    yield number, _reason_of(status, last[0].cause if last else None).value, judgement.why, status

    def revived(self) -> Iterator[tuple[int, str, str, int]]:
        """As `dead`, of what the crawl found dead and a check since then alive, or refused to us."""
        for number, reason in zip(self._urls.ids.tolist(), self._urls.reasons.tolist(), strict=True):
            if (
                STATE_OF[REASONS[reason]] is State.FAILED
                and number not in self._crawled_as
                and self.asked_at(number, by_get=False)
            ):
                judgement = self.judgement(number, {})
                if judgement.verdict in _NOT_DEAD:
                    last = self._attempts(self.way(number).end)[-1:]
                    yield number, _NOT_DEAD[judgement.verdict].value, judgement.why, last[0].status if last else 0

    def _attempts(self, url: int) -> list[Attempt]:
        """The attempts at one URL, those at its host when that was why it was not asked for."""
        trace, reason, place = self._traces.get(url), self.reason(url), self.place(url)
        if trace is not None and trace.attempts:
            own = list(trace.attempts)
        elif place >= 0 and self._urls.statuses[place] and reason in SETTLED | {Reason.REDIRECT}:
            own = [Attempt(checks.visited_at(self._connection, url), int(self._urls.statuses[place]))]
        else:
            own = []
        if reason in _HOST_REASONS and (trace is None or trace.skipped is not None or not own):
            own += self._host_attempts.get(origin_of(self.text(url)), [])
        return sorted(own, key=lambda attempt: attempt.at)


# Error pages that answer 200. Loads only those texts that can decide it.

ALIKE_CHARS = (0.7, 1.4)  # of a probe's length without its address: beyond, texts do not share nine shingles in ten


class MissingPages:
    """The error pages among a site's pages, among what leads to its home page, and among others that checks asked for.

    Within a snapshot.
    """

    notes: Sequence[str] = ()  # all of them are looked at

    def __init__(self, connection: reading.Connection, seen: UrlEvidence, site: SiteKey) -> None:
        self._seen, self._contents = seen, Contents(connection)
        self._looks = checks.looks(connection)
        self._habits = _habits(connection, seen, self._looks, site)
        self._missing: dict[int, str] = {}
        self._elsewhere = {
            url_id(url): (url, look) for url, look in self._looks.items() if PROBE_WORDS not in url
        }  # unless they turn out to be pages of the site

    def looked_at(self, pages: Iterable[PageTexts]) -> Iterator[PageTexts]:
        """The pages themselves, all of the site's, each looked at as it passes."""
        for page in pages:
            self._elsewhere.pop(UrlId(page.url_id), None)
            look = _own_look(self._contents, self._seen, page, self._habits)
            if look is not None:
                habits = self._habits.get(host_key(Url(look.url)), HostHabits())
                if why := looks_missing(look, habits):
                    self._missing[page.url_id] = why
            yield page

    def whys(self) -> dict[int, str]:
        """Why each seems to be one, by id."""
        elsewhere = {
            number: why
            for number, (url, look) in self._elsewhere.items()
            if (why := looks_missing(_look(url, url, look), HostHabits()))
        }
        return self._missing | elsewhere | _sent_home(self._seen, self._habits)


def _habits(
    connection: reading.Connection, seen: UrlEvidence, looks: Mapping[Url, Look], site: SiteKey
) -> dict[HostKey, HostHabits]:
    """What each host sends for URLs that cannot exist, and its home page beside it."""
    probes: dict[HostKey, list[PageProbe]] = {}
    for number, url in seen.met().items():
        if PROBE_WORDS not in url:
            continue
        end = seen.text(seen.way(number).end)
        if end in looks:
            probes.setdefault(host_key(url), []).append(_look(url, end, looks[end]))
    homes = {
        host_key(url): page
        for page in (site_rows.page_texts(connection, site) if probes else ())
        if _is_home(url := seen.text(page.url_id)) and host_key(url) in probes
    }
    contents = Contents(connection)
    return {
        host: HostHabits(looks_there, _page_look(seen, homes[host], contents) if host in homes else None)
        for host, looks_there in probes.items()
    }


def _is_home(url: Url) -> bool:
    return url.count("/") == 3 and url.endswith("/")


def _own_look(
    contents: Contents, seen: UrlEvidence, page: PageTexts, habits: Mapping[HostKey, HostHabits]
) -> PageProbe | None:
    """The page as `looks_missing` takes it; None where title and length alone say that it is none."""
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
    """By length alone. Either may repeat its address, as often as the probe does: short texts differ by little else."""
    low, high = ALIKE_CHARS
    chars = len(without_address(probe.text, probe.url))
    times = (len(probe.text) - chars) / len(probe.url.rpartition("/")[2])  # that it is repeated, at most
    return low * chars <= text_chars <= high * chars + times * len(url)


def _page_look(seen: UrlEvidence, page: PageTexts, contents: Contents) -> PageProbe:
    text, url = contents.text(UrlId(page.url_id)) or "", seen.text(page.url_id)
    return PageProbe(url, url, page.title, page.h1, text, shingles(without_address(text, url)))


def _look(url: Url, final: Url, look: Look) -> PageProbe:
    return PageProbe(url, final, look.title, look.h1, look.text, shingles(without_address(look.text, url)))


def _sent_home(seen: UrlEvidence, habits: Mapping[HostKey, HostHabits]) -> dict[int, str]:
    """Deep URLs that redirect to a home page, where those do as well that cannot exist."""
    if not any(probe.url != probe.final_url for host in habits.values() for probe in host.probes):
        return {}
    return {
        number: "it redirects to the home page, as nonexistent URLs do"
        for number, look in _redirected(seen)
        if _is_sent_home(look, habits)
    }


def _is_sent_home(look: PageProbe, habits: Mapping[HostKey, HostHabits]) -> bool:
    host = habits.get(host_key(Url(look.url)))
    return host is not None and PROBE_WORDS not in look.url and sent_home(look, host)


def _redirected(seen: UrlEvidence) -> Iterator[tuple[int, PageProbe]]:
    """Every URL that redirects, with where to; the look has nothing else."""
    none = shingles("")
    for number in seen.redirecting():
        yield number, PageProbe(seen.text(number), seen.text(seen.way(number).end), "", "", "", none)
