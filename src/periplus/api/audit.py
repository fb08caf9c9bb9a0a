"""Audits a site: judges its links from stored crawls and checks, and lists its issues."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, islice, repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.audit import audit
from periplus.analyse.audit_input import (
    AuditInput,
    AuditUrls,
    IssueColumns,
    LinkFacts,
    NoteColumns,
    PageTraits,
    Remarks,
    text_keys,
)
from periplus.analyse.duplicates import NearGroup
from periplus.analyse.issues import (
    AuditRules,
    IssueTable,
    KindIssues,
    Lookups,
    blocks,
    kind_issues,
    texts,
    without,
    words_of,
)
from periplus.analyse.linkgraph import places_in_sorted, resolve_redirects
from periplus.analyse.sizes import SizeInput, media_places, pulled_bytes
from periplus.analyse.verdicts import (
    TEXT_CHARS,
    HostHabits,
    Judgement,
    PageProbe,
    RedirectColumns,
    looks_missing,
    says_missing,
)
from periplus.api.duplicates import NEAR, duplicate_groups, site_number
from periplus.api.evidence import COMPLETE_REASONS, MissingPages, UrlEvidence
from periplus.api.facts import Start, known_sizes
from periplus.api.page_notes import NO_FACTS, SourceFacts, notes_of_site
from periplus.document.links import DIRECTIVE, fragment_verdict
from periplus.document.understand import anchors_of_body
from periplus.model.arrays import Ints, Ints32, Mask, Unsigned8
from periplus.model.audit import VERDICTS, FragmentVerdict, Verdict
from periplus.model.duplicates import DuplicateGroup
from periplus.model.graph import REASONS, LinkRows
from periplus.model.page import LinkKind, Position
from periplus.model.ports import CHECK
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, Url, UrlId
from periplus.present.wording import REASON_WORDS, count_of
from periplus.settings import FetchLimits, Politeness
from periplus.store import checks, site_rows, text_rows
from periplus.store.notes import fault_notes
from periplus.store.reader import CollectionReader
from periplus.store.site_arrays import redirects as all_redirects
from periplus.urls.canonical import url_id
from periplus.urls.mailto import mailto_problem
from periplus.values import frozen

NEAR_PAGES = 20_000  # texts compared by default: about 1 ms and 1 kB of memory each
UNMARKED_PAGES = 500  # of them without a stored split into content and navigation: up to 20 ms each
# pages whose bodies are searched for link fragments: 1 to 2 ms each; a manual of 10,000 pages has 9,000
FRAGMENT_PAGES = 20_000
SOFT_404_PAGES = 200_000  # short pages whose title and heading are searched for words of an error page: 25 us each
_BLOCK = 10_000  # pages converted to columns at a time
_NO_HASHES = np.zeros(0, np.uint64)
_NO_PLACES: Mapping[str, FragmentVerdict] = {}
_ABSENT = (FragmentVerdict.MISSING, FragmentVerdict.TEXT_MISSING)
Scalar = TypeVar("Scalar", bound=np.generic)
_IS_SETTLED = np.array([reason in COMPLETE_REASONS for reason in REASONS])
_KINDS = {kind.value: place for place, kind in enumerate(LinkKind)}
_POSITIONS = {position.value: place for place, position in enumerate(Position)}


@frozen
class SiteAudit:
    """The issues of a site, and the rest of a report's data."""

    site: AuditInput
    findings: Mapping[str, IssueColumns]  # by issue code, from `audit`
    judgements: Mapping[int, Judgement]  # by URL index; without URLs that are simply reachable
    ids: Ints  # URL ids by index
    sites: Ints32  # site numbers by URL index
    sizes: SizeInput
    duplicates: tuple[DuplicateGroup, ...]  # pages with equal or nearly equal text
    notes: tuple[str, ...]  # skipped parts of the audit, and why

    def kinds(
        self,
        rules: AuditRules | None = None,
        findings: Mapping[str, IssueColumns] | None = None,
    ) -> Iterator[KindIssues]:
        """Issues by kind, without anchor texts. findings: default: all findings of this audit."""
        judgements = self.judgements

        def whys(places: Ints) -> Iterable[str]:
            return (judgements[place].why if place in judgements else "" for place in places.tolist())

        # the end of a redirect may be known from checks only
        better = {place: Url(judgement.better) for place, judgement in judgements.items() if judgement.better}
        columns = self.findings if findings is None else findings
        return kind_issues(columns, self.site, rules, Lookups(whys=whys, better=better))


def site_audit(
    urls: Urls,
    start: Start,
    *,
    near: bool | None = None,
    links: site_rows.LinkBlock | None = None,
    judged: bool = True,
    closed: bool = False,
) -> SiteAudit:
    """All issues of a site, from the stored data. Call within a snapshot.

    near: compare texts for near duplicates; None: only if the site is small enough. links: the site's links if already
    loaded. judged: judge link targets by everything crawls and checks saw, with the spacing of the last check; False:
    take the state that the crawl stored. closed: include issues that a user closed. Costs: benchmarks/million.py.
    """
    reader = urls.reader
    links = site_rows.site_links(reader, start.site) if links is None else links
    redirects, notes = urls.leads, list[str]()
    ids, sites = urls.column(urls.rows.ids), urls.column(urls.rows.sites)
    own = sites == site_number(reader, start.site)
    groups = _duplicates(reader, start.site, near, notes)
    evidence = UrlEvidence(reader, urls.rows, *_check_settings(reader)) if judged else None
    fragments = list(_fragments(urls, start.site, links, evidence, notes))
    link_facts = _link_facts(urls, links)
    del links  # frees 150 MB at eight million links, unless the caller holds them
    moved = urls.redirects(redirects)
    sizes = SizeInput(urls.sizes, urls.media, link_facts.source, link_facts.target, link_facts.kind)
    missing = _ShortPages(urls) if evidence is None else MissingPages(reader, evidence, start.site)
    pages = missing.examine(site_rows.page_texts(reader, start.site))
    traits = _Traits(urls, pages, _text_numbers(groups))
    judgements: dict[int, Judgement] = {}
    asked = own.copy()
    asked[link_facts.target] = asked[moved.targets] = True
    verdict = _judge_urls(urls, asked, evidence, missing.whys(), judgements)
    _judge_aliases(urls, link_facts, judgements)
    notes += missing.notes
    begun = [text for run in reader.runs() for text in run.starts] if judged else [start.url]
    site = AuditInput(
        AuditUrls(
            urls.texts,
            urls.column(urls.rows.reasons),
            verdict,
            urls.column(urls.rows.depths),
            own,
            urls.mask([start.home_id, *(url_id(Url(text)) for text in begun)]),
            urls.column(urls.rows.in_sitemap),
        ),
        traits.columns(pulled_bytes(sizes)),
        link_facts,
        moved,
        dataclasses.replace(
            _remarks(reader, start.site, urls, traits.translated, fragments, groups),
            notes=_by_place(urls, notes_of_site(reader, start, notes.append)),
        ),
    )
    if not judged:
        judgements = _crawl_judgements(site, urls)
    findings = audit(site) if closed else _open(audit(site), reader, site, notes)
    return SiteAudit(site, findings, judgements, ids, sites, sizes, tuple(groups), tuple(notes))


def _link_facts(urls: Urls, links: site_rows.LinkBlock) -> LinkFacts:
    """The links by URL index. A link to an alias counts as a link to its page."""
    source, linked = urls.places(links.sources), urls.places(links.targets)
    return LinkFacts(source, urls.page_of[linked], links.kinds, links.positions, links.nofollow, linked)


def _open(
    findings: Mapping[str, IssueColumns], reader: CollectionReader, site: AuditInput, notes: list[str]
) -> Mapping[str, IssueColumns]:
    """Drops findings whose cause a user accepted or ignored, and notes how many."""
    decided = [note for note in fault_notes(reader.statements) if note.decision]
    if decided:
        notes.append(f"{count_of(len(decided), 'cause')} accepted or ignored by a user are left out.")
    return without(findings, site, decided)


class Urls:
    """All URLs sorted by text, and the mapping from ids to indices in that order."""

    def __init__(self, reader: CollectionReader, facts: SourceFacts = NO_FACTS) -> None:
        """Call within a snapshot. facts: of pages parsed just before."""
        self.reader, self.facts = reader, facts
        self.rows = rows = site_rows.all_urls(reader)
        self.leads = all_redirects(reader)
        self._order = np.array(sorted(range(len(rows.texts)), key=rows.texts.__getitem__), np.int64)
        self._place_of_row = np.empty(len(rows.texts), np.int64)
        self._place_of_row[self._order] = np.arange(len(rows.texts))
        self.texts: Sequence[Url] = [rows.texts[row] for row in self._order.tolist()]
        self.page_of = self._pages_of_aliases(self.leads)
        pages, count = known_sizes(reader), len(self.texts)
        self.sizes, self.media = np.zeros(count, np.int64), np.full(count, media_places([""])[0], np.uint8)
        place = self.places(pages.ids)
        there = place >= 0
        self.sizes[place[there]], self.media[place[there]] = pages.sizes[there], media_places(pages.media_types)[there]

    def column(self, rows: NDArray[Scalar]) -> NDArray[Scalar]:
        """A column of the rows in index order."""
        return rows[self._order]

    def places(self, ids: Iterable[int] | Ints) -> Ints:
        """Indices of ids; -1 for unknown URLs."""
        numbers = ids if isinstance(ids, np.ndarray) else np.fromiter(ids, np.int64)
        rows = places_in_sorted(self.rows.ids, numbers)
        return np.where(rows >= 0, self._place_of_row[rows], -1) if len(self.texts) else rows

    def place(self, url: int) -> int:
        """Index of an id; -1 for an unknown URL."""
        return int(self.places([url])[0])

    def mask(self, ids: Iterable[int]) -> Mask:
        """bool[urls]: whether the URL is one of these ids."""
        mask = np.zeros(len(self.texts), np.bool_)
        places = self.places(ids)
        mask[places[places >= 0]] = True
        return mask

    def redirects(self, links: LinkRows) -> RedirectColumns:
        """Redirects by URL index, without aliases: no client follows those."""
        source, target = self.places(links.sources), self.places(links.targets)
        rows = (source >= 0) & (target >= 0)
        rows[rows] = self.column(self.rows.reasons)[source[rows]] == REASONS.index(Reason.REDIRECT)
        statuses = self.column(self.rows.statuses)
        return RedirectColumns(source[rows], self.page_of[target[rows]], statuses[source[rows]])

    def _pages_of_aliases(self, redirects: LinkRows) -> Ints:
        """int64[urls]: index of the page that the URL is an alias of; its own index if it is none."""
        page_of = np.arange(len(self.texts))
        source = self.places(redirects.sources)
        if not len(source):
            return page_of
        alias = (source >= 0) & (self.column(self.rows.reasons)[source] == REASONS.index(Reason.ALIAS))
        ends, leads = resolve_redirects(
            redirects.targets[alias], LinkRows(redirects.sources[alias], redirects.targets[alias])
        )
        target = self.places(ends)
        sure = leads & (target >= 0)
        page_of[source[alias][sure]] = target[sure]
        return page_of


def _check_settings(reader: CollectionReader) -> tuple[float, int]:
    """(minimum seconds between two failures of a broken link, redirect limit) of the last check."""
    stored = next((run.settings for run in reversed(reader.runs()) if run.kind == CHECK), {})
    spacing_s, hops = stored.get("recheck_wait_s"), stored.get("redirect_hops")
    return (
        spacing_s if isinstance(spacing_s, float) else Politeness().recheck_wait_s,
        hops if isinstance(hops, int) else FetchLimits().redirect_hops,
    )


def _judge_urls(
    urls: Urls, asked: Mask, evidence: UrlEvidence | None, missing: Mapping[int, str], judgements: dict[int, Judgement]
) -> Unsigned8:
    """Verdict of each URL. Adds to `judgements` those that need an explanation.

    asked: URLs to judge. evidence: None: only missing pages are judged.
    """
    if evidence is None:
        unchecked = np.full(len(urls.texts), VERDICTS.index(Verdict.UNCHECKED), np.uint8)
        unchecked[urls.places(missing)] = VERDICTS.index(Verdict.MISSING)
        return unchecked
    reasons, ids = urls.column(urls.rows.reasons), urls.column(urls.rows.ids)
    settled = _IS_SETTLED[reasons]
    asked = asked & ~settled & (reasons != REASONS.index(Reason.WAITING))
    asked |= np.isin(ids, np.array(list(missing), np.int64))
    verdict = np.where(settled, VERDICTS.index(Verdict.OK), VERDICTS.index(Verdict.UNCHECKED)).astype(np.uint8)
    for place in np.flatnonzero(asked).tolist():
        judgements[place] = evidence.judgement(int(ids[place]), missing)
        verdict[place] = VERDICTS.index(judgements[place].verdict)
    return verdict


def _judge_aliases(urls: Urls, facts: LinkFacts, judgements: dict[int, Judgement]) -> None:
    """Adds the judgements of linked aliases: those of their pages."""
    aliases = np.unique(facts.linked[facts.linked != facts.target])
    for alias, page in zip(aliases.tolist(), urls.page_of[aliases].tolist(), strict=True):
        if page in judgements:
            judgements[alias] = judgements[page]


def _crawl_judgements(site: AuditInput, urls: Urls) -> dict[int, Judgement]:
    """Judgements of dead URLs from the state that the crawl stored."""
    statuses, judgements = urls.column(urls.rows.statuses), {}
    for place in np.flatnonzero(site.dead).tolist():
        missing = site.urls.verdict[place] == VERDICTS.index(Verdict.MISSING)
        words = "calls itself an error page" if missing else REASON_WORDS[REASONS[site.urls.reason[place]]]
        status = f", status {statuses[place]}" if statuses[place] else ""
        judgements[place] = Judgement(Verdict.MISSING if missing else Verdict.BROKEN, words + status)
    return judgements


class _ShortPages:
    """Soft 404s among the site's own pages, recognised by title and heading alone."""

    def __init__(self, urls: Urls) -> None:
        self.notes: list[str] = []  # skipped checks
        self._urls, self._missing = urls, dict[int, str]()

    def examine(self, pages: Iterable[site_rows.PageTexts]) -> Iterator[site_rows.PageTexts]:
        """Passes the pages through and examines the first SOFT_404_PAGES short ones."""
        short, habits = 0, HostHabits()
        for page in pages:
            if page.text_chars <= TEXT_CHARS and short < SOFT_404_PAGES:
                short += 1
                if says_missing(page.title) or says_missing(page.h1):
                    url = self._urls.texts[self._urls.place(page.url_id)]
                    if why := looks_missing(PageProbe(url, url, page.title, page.h1, "", _NO_HASHES), habits):
                        self._missing[page.url_id] = why
            yield page
        if short == SOFT_404_PAGES:
            self.notes.append(
                f"Only the first {short:,} short pages were checked for soft 404s (error pages with status 200)."
            )

    def whys(self) -> Mapping[int, str]:
        """Reason for each suspected soft 404, by URL id."""
        return self._missing


class _Traits:
    """Columns of the site's pages for the audit. Read block by block; long texts become hashes at once."""

    def __init__(self, urls: Urls, pages: Iterator[site_rows.PageTexts], texts: Mapping[UrlId, int]) -> None:
        """texts: text number of each page whose text occurs more than once."""
        self.translated: list[tuple[int, str]] = []  # (place, JSON)
        self._urls, self._texts = urls, texts
        self._blocks = [self._block([])]
        while block := list(islice(pages, _BLOCK)):
            self._blocks.append(self._block(block))

    def _block(self, pages: Sequence[site_rows.PageTexts]) -> dict[str, NDArray[Any]]:
        place = self._urls.places(page.url_id for page in pages)
        for row, page in zip(place.tolist(), pages, strict=True):
            if page.translations:
                self.translated.append((row, page.translations))
        canonical = np.array([url_id(Url(page.canonical)) if page.canonical else 0 for page in pages], np.int64)
        texts = [self._texts.get(UrlId(page.url_id), 0) if page.text_chars else 0 for page in pages]
        return {
            "place": place,
            "title": text_keys(page.title for page in pages),
            "title_chars": np.array([len(page.title) for page in pages], np.int32),
            "description": text_keys(page.description for page in pages),
            "description_chars": np.array([len(page.description) for page in pages], np.int32),
            "text": np.array(texts, np.uint64),
            "h1s": np.array([page.h1s for page in pages], np.int32),
            "canonical": np.where(canonical != 0, self._urls.places(canonical), -1),
            "noindex": np.array(["noindex" in page.robots for page in pages], np.bool_),
            "has_language": np.array([bool(page.language) for page in pages], np.bool_),
            "charset_mismatch": np.array([bool(page.other_charset) for page in pages], np.bool_),
            "took_s": np.array([page.took_s for page in pages], np.float64),
            "images_without_alt": np.array([page.images_without_alt for page in pages], np.int32),
        }

    def columns(self, weight_bytes: Ints) -> PageTraits:
        """Page columns by URL index. weight_bytes: of every URL."""
        order = np.argsort(np.concatenate([block["place"] for block in self._blocks]))
        columns = {name: np.concatenate([block[name] for block in self._blocks])[order] for name in self._blocks[0]}
        return PageTraits(**columns, weight_bytes=weight_bytes[columns["place"]])


def _remarks(
    reader: CollectionReader,
    site: SiteKey,
    urls: Urls,
    translated: Sequence[tuple[int, str]],
    fragments: Sequence[tuple[int, str, FragmentVerdict]],
    groups: Sequence[DuplicateGroup],
) -> Remarks:
    """Findings on few links or pages. translated: (URL index, JSON); fragments: (link index, fragment, verdict)."""
    bad = [(urls.place(page), text, why) for page, text, why in site_rows.bad_link_rows(reader, site)]
    mails = [(page, text, mailto_problem(text)) for page, text, why in bad if why == "mailto"]
    return Remarks(
        fragments=[(row, text) for row, text, verdict in fragments if verdict is FragmentVerdict.MISSING],
        texts=[(row, text) for row, text, verdict in fragments if verdict is FragmentVerdict.TEXT_MISSING],
        mails=[(page, text, problem) for page, text, problem in mails if problem],
        malformed=[(page, text) for page, text, why in bad if why == "malformed"],
        hreflangs=list(_hreflangs(urls, translated)),
        near=list(_near(urls, groups)),
        copies=[(urls.place(page), urls.place(copy)) for page, copy in site_rows.copies(reader, site)],
        unread=[(urls.place(page), Reason(reason), why) for page, reason, why in site_rows.unread_pages(reader, site)],
        series=[(urls.place(first), pattern, left) for first, pattern, left in site_rows.trap_patterns(reader, site)],
    )


def _by_place(urls: Urls, notes: Mapping[str, NoteColumns]) -> dict[str, NoteColumns]:
    """The notes with URL indices instead of ids."""
    return {code: columns._replace(place=urls.places(columns.place)) for code, columns in notes.items()}


def _hreflangs(urls: Urls, translated: Sequence[tuple[int, str]]) -> Iterator[tuple[int, int, str]]:
    for place, translations in translated:
        for language, target in json.loads(translations):
            if (other := urls.place(url_id(Url(target)))) >= 0:
                yield place, other, language


def _near(urls: Urls, groups: Sequence[DuplicateGroup]) -> Iterator[NearGroup]:
    """Groups of near duplicates by URL index. Pages with identical text are represented by the first of them."""
    for group in groups:
        near = {page.text: page for page in reversed(group.pages) if page.text}
        if near:
            leader, *members = urls.places([group.url_id, *(page.url_id for page in near.values())]).tolist()
            yield NearGroup(leader, tuple(members), tuple(page.similarity for page in near.values()))


def _fragments(
    urls: Urls,
    site: SiteKey,
    links: site_rows.LinkBlock,
    evidence: UrlEvidence | None,
    notes: list[str],
) -> Iterator[tuple[int, str, FragmentVerdict]]:
    """(link index, fragment, verdict) of links whose fragment is absent, following redirects.

    Reads each target's body once. For targets without a stored body it takes the verdicts of checks, if any.
    """
    reader, redirects = urls.reader, urls.leads
    inherits = ~np.isin(redirects.sources, checks.redirects_to_places(reader))
    moved = LinkRows(redirects.sources[inherits], redirects.targets[inherits])
    ends = dict(zip(moved.sources.tolist(), resolve_redirects(moved.targets, moved)[0].tolist(), strict=True))
    looks = dict[int, dict[str, FragmentVerdict]]()
    if evidence is not None:
        looks = {url_id(url): dict(look.fragments) for url, look in checks.looks(reader).items() if look.fragments}
    targets = groupby(site_rows.fragment_rows(reader, site), key=lambda row: row[1])
    for number, (target, rows) in enumerate(targets):
        if number == FRAGMENT_PAGES:
            notes.append(f"Link fragments (#name) were checked on the first {FRAGMENT_PAGES:,} target pages only.")
            break
        find = _places_of_page(reader, ends.get(target, target), urls.facts)
        if find is None:
            find = looks.get(evidence.way(target).end, {}).get if evidence is not None else _NO_PLACES.get
        for source, _, kind, position, fragments in rows:
            for fragment in fragments.split(" "):
                verdict = find(fragment)
                if verdict in _ABSENT and (row := _row_of(links, source, target, kind, position)) >= 0:
                    yield row, fragment, verdict


def _places_of_page(
    reader: CollectionReader, page: int, facts: SourceFacts
) -> Callable[[str], FragmentVerdict | None] | None:
    """A function for the verdict on a fragment of a stored page; None if its body is not stored or has no anchors."""
    media_type, charset = site_rows.type_with_places(reader, page)
    if not media_type:
        return None
    names = facts.anchors(page)
    if names is None:
        body = reader.body(UrlId(page))
        if body is None:
            return None
        names = anchors_of_body(body, media_type, charset)
    text = cache(lambda: reader.text(UrlId(page)))
    return cache(  # many links of a site have the same fragment
        lambda fragment: fragment_verdict(
            fragment, names, text=text() if DIRECTIVE in fragment else None, media_type=media_type
        )
    )


def _row_of(links: site_rows.LinkBlock, source: int, target: int, kind: str, position: str) -> int:
    """Index of the first such link; -1 if the link belongs to another site."""
    start, end = (int(np.searchsorted(links.sources, edge)) for edge in (source, source + 1))
    row = start + int(np.searchsorted(links.targets[start:end], target))
    while row < end and links.targets[row] == target:
        if (links.kinds[row], links.positions[row]) == (_KINDS[kind], _POSITIONS[position]):
            return row
        row += 1
    return -1


def _duplicates(reader: CollectionReader, site: SiteKey, near: bool | None, notes: list[str]) -> list[DuplicateGroup]:
    """Groups of exact duplicates, and of near duplicates unless near is False. None: only if there are few pages."""
    number = site_number(reader, site)
    pages, unmarked = text_rows.tally(reader, number)
    if near is None:
        near = pages <= NEAR_PAGES and unmarked <= UNMARKED_PAGES
    if not near:
        before = " after `periplus index`" if unmarked > UNMARKED_PAGES else ""
        notes.append(
            f"Texts of {pages:,} pages were not compared for near duplicates: --near "
            f"does{before}, at about 1 ms a page."
        )
    return duplicate_groups(reader, number, NEAR if near else 1.0)


def _text_numbers(groups: Sequence[DuplicateGroup]) -> dict[UrlId, int]:
    """A number per text that occurs on several pages, for each of these pages."""
    numbers: dict[UrlId, int] = {}
    for group in groups:
        by_text: dict[int, list[UrlId]] = {0: [group.url_id]}
        for page in group.pages:
            by_text.setdefault(page.text, []).append(page.url_id)
        for ids in by_text.values():
            if len(ids) > 1:
                numbers.update(dict.fromkeys(ids, len(numbers) + 1))
    return numbers


# The results of audits and checks.


def issue_table(
    urls: Urls,
    starts: Iterable[Start],
    rules: AuditRules,
    *,
    near: bool | None = None,
    closed: bool = False,
    note: Callable[[str], object] = lambda sentence: None,
) -> IssueTable:
    """Issues of the sites of these starts, site by site, in the order of the findings. Call within a snapshot.

    closed: include causes that a user accepted or ignored.
    """
    kinds: list[KindIssues] = []
    url: Sequence[Url] = ()
    ids = np.zeros(0, np.int64)
    for start in starts:
        audited = site_audit(urls, start, near=near, closed=closed)
        url, ids = audited.site.urls.url, audited.ids  # the same for every site
        kinds += [with_anchors(urls.reader, kind, ids) for kind in audited.kinds(rules)]
        for sentence in audited.notes:
            note(sentence)
    return IssueTable((), url, ids).of(kinds)


def with_anchors(reader: CollectionReader, kind: KindIssues, ids: Ints) -> KindIssues:
    """Adds the anchor texts of the links. ids: URL ids by index."""
    if not kind.are_links:
        return kind
    order = np.argsort(kind.pages, kind="stable")  # the links of a page are read once
    pairs = zip(ids[kind.pages[order]].tolist(), ids[kind.related[order]].tolist(), strict=True)
    anchors = np.empty(len(kind), np.object_)
    anchors[order] = texts(site_rows.anchors_of(reader, pairs), len(kind))
    return dataclasses.replace(kind, anchors=anchors)


def issue_rows(table: IssueTable) -> Iterator[tuple[str | int | None, ...]]:
    """Rows of the table ISSUES, one per issue."""
    for kind in table.kinds:
        about = (kind.severity.value, kind.kind.category.value, kind.kind.code, kind.kind.title)
        for block in blocks(kind):
            words = words_of(block, table.url)
            others = ([text or None for text in column] for column in (words.related, words.anchor, words.position))
            places = ([number or None for number in column] for column in (words.line, words.column))
            yield from zip(words.url, *map(repeat, about), words.detail, *others, words.cause, *places, strict=False)
