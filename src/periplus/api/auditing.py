"""What is wrong with a site: the audit's input from what is stored, and its issues in words. One function for the check and the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.audit import audit
from periplus.analyse.audit_input import AuditInput, Finding, LinkFacts, Mask, PageTraits, Places, Remarks, UrlFacts, text_keys
from periplus.analyse.audit_issues import AuditRules, Lookups, issues
from periplus.analyse.linkgraph import places_in_sorted
from periplus.analyse.redirects import RedirectColumns
from periplus.analyse.sizes import SizeInput, media_places, weights
from periplus.analyse.verdicts import Judgement
from periplus.api.error_pages import missing_pages
from periplus.api.facts import Start
from periplus.api.judging import SETTLED, Seen
from periplus.api.places_on_pages import FragmentOrder, broken_fragments, near_pages
from periplus.model.audit import VERDICTS, Issue, Verdict
from periplus.model.graph import REASONS
from periplus.model.visit import Reason
from periplus.model.web import Url
from periplus.store.sqlite import checks, graph_rows, reading, site_rows
from periplus.urls.canonical import url_id
from periplus.urls.mailto import mailto_problem

_SETTLED = np.array([reason in SETTLED for reason in REASONS])


@dataclass(frozen=True, slots=True)
class AuditOrder:
    """How a site is audited. spacing_s: between two failures that make a link broken."""

    spacing_s: float = 30.0
    fragments: bool = True  # whether places on pages are looked for
    near: bool = True  # whether pages of nearly one text are


@dataclass(frozen=True, slots=True)
class SiteAudit:
    """A site with all that was found. whys: why a URL has its verdict, by place."""

    known: AuditInput
    findings: Sequence[Finding]
    judgements: Mapping[int, Judgement]  # by place; of those only that are not simply there
    ids: Places  # of the URLs, by place

    def issues(self, connection: reading.Connection, rules: AuditRules | None = None) -> Iterator[Issue]:
        """The findings one by one, in words. Bounded memory."""

        def anchors(links: Places) -> Iterable[str]:
            pairs = zip(self.ids[self.known.links.source[links]].tolist(), self.ids[self.known.links.target[links]].tolist(), strict=True)
            return site_rows.anchors_of(connection, pairs)

        def whys(places: Places) -> Iterable[str]:
            return (self.judgements[place].why if place in self.judgements else "" for place in places.tolist())

        return issues(self.findings, self.known, rules, Lookups(anchors, whys))


def audited(connection: reading.Connection, start: Start, order: AuditOrder | None = None) -> SiteAudit:
    """Everything that is wrong with a site, by what is stored of it; within a snapshot."""
    order = order or AuditOrder()
    urls = site_rows.all_urls(connection)
    seen = Seen(connection, urls, order.spacing_s)
    pages = list(site_rows.page_texts(connection, start.site))
    missing = missing_pages(connection, seen, pages)
    columns = _Columns(connection, urls, seen, start)
    links = columns.links(site_rows.site_links(connection, start.site))
    facts, judgements = columns.facts(links, missing)
    fragments = broken_fragments(connection, seen, FragmentOrder(start.site, columns.ids, links)) if order.fragments else []
    traits = checks.page_traits(connection)
    remarks = dataclasses.replace(_remarks(connection, columns, traits), fragments=fragments, near=near_pages(connection, columns, pages) if order.near else ())
    known = AuditInput(facts, columns.pages(pages, traits, links), links, columns.redirects(), remarks)
    return SiteAudit(known, audit(known), judgements, columns.ids)


class _Columns:
    """The collection's URLs in the order of their text, and the way from ids to places."""

    def __init__(self, connection: reading.Connection, urls: site_rows.AllUrls, seen: Seen, start: Start) -> None:
        self._connection, self._urls, self._seen, self._start = connection, urls, seen, start
        known = set(urls.ids.tolist())
        further = {number: text for number, text in seen.met().items() if number not in known}  # met by checks only
        texts = [*urls.texts, *further.values()]
        self._row = np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64)  # of each place
        self.texts = [texts[row] for row in self._row.tolist()]
        self.ids: Places = np.concatenate((urls.ids, np.array(list(further), np.int64)))[self._row]
        self._by_id = np.argsort(self.ids, kind="stable")
        self._sorted_ids = self.ids[self._by_id]

    def places(self, ids: NDArray[np.int64]) -> Places:
        """-1: nowhere."""
        found = places_in_sorted(self._sorted_ids, ids)
        return np.where(found >= 0, self._by_id[found], -1)

    def place(self, url: int) -> int:
        return int(self.places(np.array([url], np.int64))[0])

    def _spread(self, column: NDArray[np.generic], otherwise: object) -> NDArray[np.generic]:
        """A column of the crawl's URLs in the order of places, with another value for URLs that it did not meet."""
        return np.concatenate((column, np.full(len(self._row) - len(column), otherwise, column.dtype)))[self._row]

    def links(self, rows: site_rows.SiteLinks) -> LinkFacts:
        return LinkFacts(self.places(rows.sources), self.places(rows.targets), rows.kinds, rows.positions, rows.nofollow)

    def facts(self, links: LinkFacts, missing: Mapping[int, str]) -> tuple[UrlFacts, dict[int, Judgement]]:
        """The facts of each URL, and the judgements that are worth words."""
        urls = self._urls
        reason = self._spread(urls.reasons, REASONS.index(Reason.SCOPE)).astype(np.uint8)
        number = next((key for key, name in graph_rows.site_names(self._connection).items() if name == self._start.site), -1)
        own: Mask = self._spread(urls.sites, -1) == number
        verdict = np.where(_SETTLED[reason], VERDICTS.index(Verdict.OK), VERDICTS.index(Verdict.UNCHECKED)).astype(np.uint8)
        asked = np.zeros(len(reason), np.bool_)
        asked[links.target] = True
        asked |= own
        asked[self.redirects().targets] = True
        asked &= ~_SETTLED[reason] & (reason != REASONS.index(Reason.WAITING))
        judge = [*np.flatnonzero(asked).tolist(), *(self.place(url) for url in missing)]
        judgements = {place: self._seen.judgement(int(self.ids[place]), missing) for place in judge if place >= 0}
        for place, judgement in judgements.items():
            verdict[place] = VERDICTS.index(judgement.verdict)
        start = np.zeros(len(reason), np.bool_)
        start[[place for place in (self.place(self._start.home_id), self.place(url_id(self._start.url))) if place >= 0]] = True
        layer = self._spread(urls.layers, -1).astype(np.int32)
        return UrlFacts(self.texts, reason, verdict, layer, own, start, self._spread(urls.in_sitemap, False).astype(np.bool_)), judgements

    def redirects(self) -> RedirectColumns:
        rows = [(url, *hop) for url in self._seen.redirecting() if (hop := self._seen.hop(url))]
        sources = self.places(np.array([row[0] for row in rows], np.int64))
        targets = self.places(np.array([row[2] for row in rows], np.int64))
        kept = (sources >= 0) & (targets >= 0)
        return RedirectColumns(sources[kept], targets[kept], np.array([row[1] for row in rows], np.int16)[kept])

    def pages(self, rows: Sequence[site_rows.PageTexts], traits: Mapping[int, checks.PageTraits], links: LinkFacts) -> PageTraits:
        """One value a page, by place."""
        place = self.places(np.array([row.url_id for row in rows], np.int64))
        order = np.argsort(place)
        rows, place = [rows[at] for at in order.tolist()], place[order]
        usual = checks.PageTraits(1, 0, "", ())
        told = [traits.get(row.url_id, usual) for row in rows]
        canonical = np.array([url_id(Url(row.canonical)) if row.canonical else 0 for row in rows], np.int64)
        named = np.where([bool(row.canonical) for row in rows], self.places(canonical), -1) if rows else canonical
        return PageTraits(
            place=place,
            title=text_keys(row.title for row in rows),
            title_chars=np.array([len(row.title) for row in rows], np.int32),
            description=text_keys(row.description for row in rows),
            description_chars=np.array([len(row.description) for row in rows], np.int32),
            text=np.array([int.from_bytes(row.folded_md5[:8], "big") | 1 if row.text_chars else 0 for row in rows], np.uint64),
            h1s=np.array([one.h1s for one in told], np.int32),
            canonical=named.astype(np.int64),
            noindex=np.array(["noindex" in row.robots for row in rows], np.bool_),
            has_language=np.array([bool(row.language) for row in rows], np.bool_),
            charset_mismatch=np.array([bool(one.other_charset) for one in told], np.bool_),
            took_s=np.array([row.took_s for row in rows], np.float64),
            weight_bytes=self._weights(links)[place],
            images_without_alt=np.array([one.images_without_alt for one in told], np.int32),
        )

    def _weights(self, links: LinkFacts) -> NDArray[np.int64]:
        """Of each URL, with all that it pulls in."""
        pages = site_rows.any_pages(self._connection)
        place = self.places(pages.ids)
        sizes, media = np.zeros(len(self.ids), np.int64), media_places([""] * len(self.ids))
        sizes[place], media[place] = pages.sizes, media_places(pages.media_types)
        pulled = weights(SizeInput(sizes, media, links.source, links.target, links.kind)).pulled
        return np.asarray(pulled.sum(axis=1), np.int64)


def _remarks(connection: reading.Connection, columns: _Columns, traits: Mapping[int, checks.PageTraits]) -> Remarks:
    """What stands at few links only."""
    mails, malformed = [], []
    for page, text, why in site_rows.bad_link_rows(connection, columns._start.site):
        if why == "malformed":
            malformed.append((columns.place(page), text))
        elif problem := mailto_problem(text):
            mails.append((columns.place(page), text, problem))
    pairs = [(columns.place(page), columns.place(url_id(url)), language) for page, one in traits.items() for language, url in one.translations]
    return Remarks(mails=mails, malformed=malformed, hreflangs=[pair for pair in pairs if pair[0] >= 0 and pair[1] >= 0])
