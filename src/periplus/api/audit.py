"""Gathers what the store knows of a site into the form in which it is audited, with a verdict on each link's target."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.audit import NOT_FOLLOWED
from periplus.analyse.audit_input import (
    AuditInput,
    AuditLimits,
    AuditUrls,
    LinkFacts,
    PageTraits,
    Places,
    Remarks,
    text_keys,
)
from periplus.analyse.duplicates import NearGroup
from periplus.analyse.linkgraph import places_in_sorted, resolved
from periplus.analyse.sizes import PageWeights, SizeInput, media_places, weights
from periplus.analyse.verdicts import (
    TEXT_CHARS,
    Attempt,
    Evidence,
    Hop,
    HostHabits,
    Judgement,
    PageProbe,
    RedirectColumns,
    judged,
    looks_missing,
)
from periplus.api.duplicates import NEAR, duplicate_groups, site_number
from periplus.api.facts import known_sizes
from periplus.document.decode import decode
from periplus.document.links import DIRECTIVE, anchors_of, fragment_verdict
from periplus.model.audit import VERDICTS, FragmentVerdict, Verdict
from periplus.model.duplicates import DuplicateGroup
from periplus.model.graph import REASONS, LinkRows
from periplus.model.visit import FETCHED, STATE_OF, Cause, Cut, Reason, State
from periplus.model.web import Origin, SiteKey, Url, UrlId
from periplus.store.sqlite import checks, reading, site_rows, text_rows
from periplus.store.sqlite.listing import names
from periplus.store.sqlite.page_rows import Contents
from periplus.store.sqlite.site_rows import AllUrls
from periplus.urls.canonical import url_id
from periplus.urls.hosts import origin_of
from periplus.urls.mailto import mailto_problem

# Reads what is stored, asks nothing. Redirects are followed through what the crawl and the checks recorded; the verdict
# on the last URL holds for the first. The rules themselves stand in `analyse.verdicts`.

HOPS_MOST = 101  # redirects that are looked along: more than any setting lets a crawl or a check follow
SETTLED = FETCHED - {Reason.TRUNCATED}  # the page is there: nothing is left to judge but whether it is an error page
FAILED = [reason for reason in Reason if STATE_OF[reason] is State.INVALID] + [Reason.REFUSED, Reason.TRUNCATED]
# States of URLs that a crawl did not ask for, and a check does
_LEFT = frozenset({reason for reason, state in STATE_OF.items() if state is State.REGISTERED} | {Reason.SCOPE}) - {
    Reason.WAITING,
    Reason.NOINDEX,
    Reason.ROBOTS,
}
_NOT_DEAD = {Verdict.OK: Reason.ALIVE, Verdict.MOVED: Reason.ALIVE, Verdict.REFUSED: Reason.REFUSED}
# of a URL that nobody was asked for because of its host
_HOST_REASONS = frozenset({Reason.HOST_DOWN, Reason.TLS, Reason.UNREACHABLE})


@dataclass(frozen=True, slots=True)
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
        for number, row in checks.failures(self._connection, names(FAILED)):
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
        found = {number: trace.url for number, trace in self._traces.items()}
        return found | {url_id(trace.hop[1]): trace.hop[1] for trace in self._traces.values() if trace.hop}

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
        return judged(evidence, spacing_s=self._spacing_s)

    def dead(self) -> Iterator[tuple[int, str, str, int]]:
        """(id, reason, rule, status) of what checks found dead and the crawl left at another state:
        it counts as invalid (SPEC A1, A7).
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
                STATE_OF[REASONS[reason]] is State.INVALID
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


NEAR_PAGES = 20_000  # whose texts are compared unasked: about 1 ms each, and 1 kB of memory
UNMARKED_PAGES = 500  # of them in which content is yet to be told from navigation: up to 20 ms each
# targets of links with a fragment whose bodies are looked at: 1 to 2 ms each; a manual of 10,000 pages has 9,000
FRAGMENT_PAGES = 20_000
SOFT_404_PAGES = 200_000  # short pages whose title and heading are asked for the words of an error page: 25 us each
_NO_HASHES = np.zeros(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Audited:
    """A site ready for its audit, and what a report shows of it besides."""

    known: AuditInput
    ids: NDArray[np.int64]  # of the URLs, by place
    statuses: NDArray[np.int16]  # by place; 0: no answer
    sites: NDArray[np.int32]  # by place: numbers of sites
    sizes: SizeInput
    weights: PageWeights
    followed: NDArray[np.bool_]  # by link: it is to be followed, or part of the page
    duplicates: tuple[DuplicateGroup, ...]  # pages of one text or nearly one
    notes: tuple[str, ...]  # what was not looked at, and why


@dataclass(frozen=True, slots=True)
class AuditOrder:
    """What is audited, and how closely."""

    site: SiteKey
    starts: tuple[UrlId, ...]  # given by the user, and where they lead
    near: bool | None = None  # compare texts; None: where there are at most NEAR_PAGES
    limits: AuditLimits = AuditLimits()  # noqa: RUF009  # a frozen value


@dataclass(frozen=True, slots=True)
class _Urls:
    """All URLs by place, and how ids become places."""

    rows: site_rows.AllUrls  # by id
    place_of_row: Places
    order: NDArray[np.int64]  # the row of each place
    texts: Sequence[Url]  # by place

    def places(self, ids: NDArray[np.int64]) -> Places:
        """-1: not known."""
        found = places_in_sorted(self.rows.ids, ids)
        return np.where(found >= 0, self.place_of_row[found], -1) if len(self.rows.ids) else found


def audited(
    connection: reading.Connection, order: AuditOrder, links: site_rows.SiteLinks, redirects: LinkRows
) -> Audited:
    """Reads what is not in links (the site's, all of them) and redirects (aliases among them). Within a snapshot.
    A million pages with ten million links: see benchmarks/million.py."""
    urls = _urls(connection)
    site = site_number(connection, order.site)
    page_of = _pages_of_aliases(urls, redirects)
    facts = _link_facts(urls, links, page_of)
    moved = _redirect_columns(urls, redirects, page_of)
    sizes = _size_input(connection, urls, facts)
    found = weights(sizes)
    notes: list[str] = []
    groups = _duplicates(connection, order, site, notes)
    pages, said = _page_traits(connection, order.site, urls, found, _texts(groups))
    verdicts = np.full(len(urls.texts), VERDICTS.index(Verdict.UNCHECKED), np.uint8)
    verdicts[_looking_missing(urls, said, notes)] = VERDICTS.index(Verdict.MISSING)
    own = urls.rows.sites[urls.order] == site
    start = np.zeros(len(urls.texts), np.bool_)
    places = urls.places(np.array(order.starts, np.int64))
    start[places[places >= 0]] = True
    rows, by = urls.rows, urls.order
    url_facts = AuditUrls(urls.texts, rows.reasons[by], verdicts, rows.depths[by], own, start, rows.in_sitemap[by])
    fragments = list(_fragments(connection, order.site, links, notes))
    remarks = Remarks(
        fragments=[(row, fragment) for row, fragment, verdict in fragments if verdict is FragmentVerdict.MISSING],
        texts=[(row, fragment) for row, fragment, verdict in fragments if verdict is FragmentVerdict.TEXT_MISSING],
        mails=[
            (page, text, problem)
            for page, text in _bad(connection, order.site, urls, "mailto")
            if (problem := mailto_problem(text))
        ],
        malformed=list(_bad(connection, order.site, urls, "malformed")),
        hreflangs=list(_hreflangs(urls, said)),
        near=list(_near(urls, groups)),
        unread=_unread(connection, order.site, urls),
        series=_series(connection, order.site, urls),
    )
    known = AuditInput(url_facts, pages, facts, moved, remarks, order.limits)
    return Audited(
        known,
        rows.ids[by],
        rows.statuses[by],
        rows.sites[by],
        sizes,
        found,
        np.isin(links.kinds, _FOLLOWED),
        tuple(groups),
        tuple(notes),
    )


_FOLLOWED = [place for place, kind in enumerate(site_rows.KINDS) if kind not in NOT_FOLLOWED]


def _urls(connection: reading.Connection) -> _Urls:
    rows = site_rows.all_urls(connection)
    order = np.array(sorted(range(len(rows.texts)), key=rows.texts.__getitem__), np.int64)
    place_of_row = np.empty(len(order), np.int64)
    place_of_row[order] = np.arange(len(order))
    return _Urls(rows, place_of_row, order, [rows.texts[row] for row in order.tolist()])


def _pages_of_aliases(urls: _Urls, redirects: LinkRows) -> Places:
    """int64[u]: the page that each URL is another address of, by place; itself where it is none."""
    page_of = np.arange(len(urls.texts))
    source = urls.places(redirects.sources)
    reasons = urls.rows.reasons[urls.order]
    alias = (source >= 0) & (reasons[source] == REASONS.index(Reason.ALIAS)) if len(source) else np.zeros(0, np.bool_)
    ends, leads = resolved(redirects.targets[alias], LinkRows(redirects.sources[alias], redirects.targets[alias]))
    target = urls.places(ends)
    sure = leads & (target >= 0)
    page_of[source[alias][sure]] = target[sure]
    return page_of


def _link_facts(urls: _Urls, links: site_rows.SiteLinks, page_of: Places) -> LinkFacts:
    """Links by place; a link to an alias is one to its page. Every target has its row, as the crawl wrote it."""
    return LinkFacts(
        urls.places(links.sources), page_of[urls.places(links.targets)], links.kinds, links.positions, links.nofollow
    )


def _redirect_columns(urls: _Urls, redirects: LinkRows, page_of: Places) -> RedirectColumns:
    """Without aliases: nobody is sent anywhere by them."""
    source, target = urls.places(redirects.sources), urls.places(redirects.targets)
    reasons, statuses = urls.rows.reasons[urls.order], urls.rows.statuses[urls.order]
    kept = (source >= 0) & (target >= 0)
    kept[kept] = reasons[source[kept]] == REASONS.index(Reason.REDIRECT)
    return RedirectColumns(source[kept], page_of[target[kept]], statuses[source[kept]])


def _size_input(connection: reading.Connection, urls: _Urls, links: LinkFacts) -> SizeInput:
    pages = known_sizes(connection)
    size, media = np.zeros(len(urls.texts), np.int64), np.full(len(urls.texts), media_places([""])[0], np.uint8)
    place = urls.places(pages.ids)
    known = place >= 0
    size[place[known]], media[place[known]] = pages.sizes[known], media_places(pages.media_types)[known]
    return SizeInput(size, media, links.source, links.target, links.kind)


@dataclass(slots=True)
class _Said:
    """What pages say, kept for further checks: those that may be error pages, and those with translations;
    and which of them say the same.
    """

    short: list[tuple[int, str, str]]  # (place, title, h1)
    translated: list[tuple[int, str]]  # (place, JSON)
    texts: Mapping[UrlId, int]  # given: of pages that say what others do, the number of that text


def _page_traits(
    connection: reading.Connection, site: SiteKey, urls: _Urls, found: PageWeights, texts: Mapping[UrlId, int]
) -> tuple[PageTraits, _Said]:
    """One pass over the pages; long texts become numbers at once."""
    said = _Said([], [], texts)
    columns: list[NDArray[np.generic]] = []
    parts = [_traits_of(urls, block, said) for block in _in_blocks(site_rows.page_texts(connection, site))]
    columns = (
        [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else list(_traits_of(urls, [], said))
    )
    order = np.argsort(columns[0])
    (place, title, title_chars, about, about_chars, text, h1s, canonical, noindex, language, charset, took, images) = (
        column[order] for column in columns
    )
    weight = found.pulled[place].sum(axis=1)
    # each of its own type
    return PageTraits(
        place, title, title_chars, about, about_chars, text, h1s, canonical, noindex,  # type: ignore[arg-type]
        language, charset, took, weight, images,  # type: ignore[arg-type]
    ), said  # fmt: skip


def _in_blocks(rows: Iterator[site_rows.PageTexts], size: int = 10_000) -> Iterator[list[site_rows.PageTexts]]:
    block: list[site_rows.PageTexts] = []
    for row in rows:
        block.append(row)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block


def _traits_of(urls: _Urls, block: list[site_rows.PageTexts], said: _Said) -> tuple[NDArray[np.generic], ...]:
    """A block's columns, in the order of PageTraits without the weight."""
    place = urls.places(np.array([page.url_id for page in block], np.int64))
    named = np.array([url_id(Url(page.canonical)) if page.canonical else 0 for page in block], np.int64)
    canonical = np.where(named != 0, urls.places(named), -1)
    for where, page in zip(place.tolist(), block, strict=True):
        if page.text_chars <= TEXT_CHARS and len(said.short) < SOFT_404_PAGES:
            said.short.append((where, page.title, page.h1))
        if page.translations:
            said.translated.append((where, page.translations))
    return (
        place,
        text_keys(page.title for page in block),
        np.array([len(page.title) for page in block], np.int32),
        text_keys(page.description for page in block),
        np.array([len(page.description) for page in block], np.int32),
        np.array([said.texts.get(UrlId(page.url_id), 0) if page.text_chars else 0 for page in block], np.uint64),
        np.array([page.h1s for page in block], np.int32),
        canonical,
        np.array(["noindex" in page.robots for page in block], np.bool_),
        np.array([bool(page.language) for page in block], np.bool_),
        np.array([bool(page.other_charset) for page in block], np.bool_),
        np.array([page.took_s for page in block], np.float64),
        np.array([page.images_without_alt for page in block], np.int32),
    )


def _looking_missing(urls: _Urls, said: _Said, notes: list[str]) -> Places:
    """Own pages that answer 200 and call themselves error pages, by place."""
    if len(said.short) == SOFT_404_PAGES:
        notes.append(
            f"Only the first {SOFT_404_PAGES:,} short pages were asked whether they are error pages that answer 200."
        )
    habits = HostHabits()
    found = [
        place
        for place, title, h1 in said.short
        if looks_missing(PageProbe(urls.texts[place], urls.texts[place], title, h1, "", _NO_HASHES), habits)
    ]
    return np.array(found, np.int64)


def _bad(connection: reading.Connection, site: SiteKey, urls: _Urls, why: str) -> Iterator[tuple[int, str]]:
    """(place of the page, what stood there) of one kind of what is no link."""
    for page, text, kind in site_rows.bad_link_rows(connection, site):
        if kind == why:
            yield int(urls.places(np.array([page], np.int64))[0]), text


def _unread(connection: reading.Connection, site: SiteKey, urls: _Urls) -> list[tuple[int, Reason, str]]:
    rows = list(site_rows.unread_pages(connection, site))
    places = urls.places(np.array([page for page, _, _ in rows], np.int64)).tolist()
    return [(place, Reason(reason), why) for place, (_, reason, why) in zip(places, rows, strict=True)]


def _series(connection: reading.Connection, site: SiteKey, urls: _Urls) -> list[tuple[int, str, int]]:
    rows = site_rows.trap_patterns(connection, site)
    places = urls.places(np.array([first for first, _, _ in rows], np.int64)).tolist()
    return [(place, pattern, left) for place, (_, pattern, left) in zip(places, rows, strict=True)]


def _hreflangs(urls: _Urls, said: _Said) -> Iterator[tuple[int, int, str]]:
    for place, written in said.translated:
        for language, target in json.loads(written):
            other = int(urls.places(np.array([url_id(Url(target))], np.int64))[0])
            if other >= 0:
                yield place, other, language


def _fragments(
    connection: reading.Connection, site: SiteKey, links: site_rows.SiteLinks, notes: list[str]
) -> Iterator[tuple[int, str, FragmentVerdict]]:
    """(index of the link, fragment, verdict) of links that name places on kept pages.

    Each target's body is read once.
    """
    contents = Contents(connection)
    target_now, names, looked = None, frozenset[str](), 0
    text: str | None = None
    for source, target, kind, position, fragments in site_rows.fragment_rows(connection, site):
        if target != target_now:
            if looked == FRAGMENT_PAGES:
                notes.append(
                    f"Places on pages (#fragments) were looked for on the first {FRAGMENT_PAGES:,} "
                    "pages that such links lead to."
                )
                break
            body, charset = contents.body(UrlId(target)), site_rows.charset_of(connection, target)
            target_now, looked = target, looked + 1
            names, text = anchors_of(decode(body, charset, "text/html")[0]) if body is not None else frozenset(), None
        for fragment in fragments.split(" "):
            if DIRECTIVE in fragment and text is None:
                text = contents.text(UrlId(target))
            yield (
                _index_of(links, source, target, kind, position),
                fragment,
                fragment_verdict(fragment, names, text=text),
            )


def _index_of(links: site_rows.SiteLinks, source: int, target: int, kind: str, position: str) -> int:
    """Where a link that is there stands."""
    row = int(np.searchsorted(links.sources, source))
    wanted = (
        target,
        [item.value for item in site_rows.KINDS].index(kind),
        [item.value for item in site_rows.POSITIONS].index(position),
    )
    while (links.targets[row], links.kinds[row], links.positions[row]) != wanted:
        row += 1
    return row


def _duplicates(connection: reading.Connection, order: AuditOrder, site: int, notes: list[str]) -> list[DuplicateGroup]:
    """Pages of one text, and where it is wanted those of nearly one."""
    pages, unmarked = text_rows.tally(connection, site)
    near = order.near
    if near is None:
        near = pages <= NEAR_PAGES and unmarked <= UNMARKED_PAGES
    if not near:
        before = " after `periplus index`" if unmarked > UNMARKED_PAGES else ""
        notes.append(
            f"Texts of {pages:,} pages were not compared for near duplicates: --near "
            f"does{before}, at about 1 ms a page."
        )
    return duplicate_groups(connection, site, NEAR if near else 1.0)


def _texts(groups: Sequence[DuplicateGroup]) -> dict[UrlId, int]:
    """Of each page that says what another one does, a number of that text."""
    numbers: dict[UrlId, int] = {}
    for group in groups:
        by_text: dict[int, list[UrlId]] = {0: [group.url_id]}
        for page in group.pages:
            by_text.setdefault(page.text, []).append(page.url_id)
        for ids in by_text.values():
            if len(ids) > 1:
                numbers.update(dict.fromkeys(ids, len(numbers) + 1))
    return numbers


def _near(urls: _Urls, groups: Sequence[DuplicateGroup]) -> Iterator[NearGroup]:
    """Groups of pages of nearly one text; of pages with exactly one text only the first is named. Members by place."""
    for group in groups:
        near = {page.text: page for page in reversed(group.pages) if page.text}
        if near:
            leader, *members = urls.places(
                np.array([group.url_id, *(page.url_id for page in near.values())], np.int64)
            ).tolist()
            yield NearGroup(leader, tuple(members), tuple(page.similarity for page in near.values()))
