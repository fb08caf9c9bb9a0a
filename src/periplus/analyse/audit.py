"""Checks a site's pages, links and redirects: a table of findings, each with its check function."""

from __future__ import annotations

import json
import logging
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from periplus.analyse.audit_input import (
    NO_NOTES,
    AuditInput,
    IssueColumns,
    Numbers,
    PageTraits,
    folder_causes,
    session_causes,
)
from periplus.document.language import is_language
from periplus.errors import ExtensionError
from periplus.features import blame, loaded
from periplus.model.arrays import Ints, Mask, Unsigned64
from periplus.model.audit import VERDICTS, Category, IssueKind, Severity, SharedCause, Verdict
from periplus.model.graph import REASONS
from periplus.model.page import CLICK_KINDS, PULLED_KINDS, LinkKind
from periplus.model.visit import Reason
from periplus.values import frozen

log = logging.getLogger(__name__)


Check = Callable[[AuditInput], IssueColumns]
TITLE_CHARS = 60  # search results show about 600 px; SEO tools warn from 60 on
DESCRIPTION_CHARS = 160  # result pages show 155 to 160
SLOW_S = 1.8  # "poor" time to first byte by the Web Vitals thresholds; ours is to the last byte of the HTML
HEAVY_BYTES = 3_000_000  # the median page of the HTTP Archive weighs about 2.6 MB
DEEP_CLICKS = 6  # our choice: deeper pages are found by search, not by clicking
URL_CHARS = 2_047  # sitemaps.org: a location has fewer than 2,048 characters
CHAIN_HOPS = 2  # from two hops on, one can be saved
# kinds of links by which a reader reaches a page
_WAYS = CLICK_KINDS - {LinkKind.REDIRECT}
# kinds that browsers block, or warn about, on a secure page if insecure (Mixed Content, W3C)
_MIXED_CONTENT_KINDS = PULLED_KINDS - {LinkKind.ICON}
# each has a finding of its own
_OTHER_VERDICTS = [*map(VERDICTS.index, (Verdict.SERVER_ERROR, Verdict.MISSING, Verdict.SUSPECT, Verdict.REFUSED))]


@frozen
class Finding:
    """One row of the table: a kind of issue, and the function that finds all issues of this kind."""

    kind: IssueKind
    check: Check  # array operations over the whole input; only text is processed page by page in Python


def audit(site: AuditInput) -> dict[str, IssueColumns]:
    """All issues, by code in the order of the table; kinds without issues are left out.

    Pages that are soft 404s, have noindex or name another page as canonical need no title, description or text of their
    own. O(u + p log p + m log m).
    """
    columns = ((finding.kind, finding.check(site)) for finding in findings())
    return {kind.code: _with_cause(kind, issues, site) for kind, issues in columns if len(issues)}


def _columns(rows: Collection[Sequence[Any]], *places: int) -> Iterator[Ints]:
    return (np.array([row[at] for row in rows], np.int64) for at in places)


def _with_cause(kind: IssueKind, issues: IssueColumns, site: AuditInput) -> IssueColumns:
    """The issues with the folder that they have in common, where their kind is caused by one."""
    if kind.caused_by is not SharedCause.FOLDER:
        return issues
    return replace(issues, words=folder_causes(issues.subjects, site.pages.place, site.urls.url))


# Long, slow, heavy and deep pages.


def _links(site: AuditInput, mask: Mask) -> IssueColumns:
    """One issue per link, sorted by page."""
    rows = np.flatnonzero(mask)
    rows = rows[np.argsort(site.links.source[rows], kind="stable")]
    return IssueColumns(site.links.source[rows], site.links.linked[rows], links=rows)


def _broken_links(*, parts: bool) -> Check:
    """Followed links of own pages to dead URLs whose verdict has no finding of its own."""

    def check(site: AuditInput) -> IssueColumns:
        broken = site.dead & ~np.isin(site.urls.verdict, _OTHER_VERDICTS)
        return _links(site, site.is_followed & broken[site.links.target] & (site.is_kind(PULLED_KINDS) == parts))

    return check


def _links_to(verdict: Verdict) -> Check:
    """Followed links of own pages to URLs with this verdict."""
    code = VERDICTS.index(verdict)
    return lambda site: _links(site, site.is_followed & (site.urls.verdict[site.links.target] == code))


def _fragments(site: AuditInput, fragments: Sequence[tuple[int, str]]) -> IssueColumns:
    """Links of own pages whose target lacks the named anchor. fragments: as in Remarks."""
    rows = np.array([row for row, _ in fragments], np.int64)
    own = site.urls.own[site.links.source[rows]]
    words = [fragment for (_, fragment), is_own in zip(fragments, own.tolist(), strict=True) if is_own]
    rows = rows[own]
    return IssueColumns(site.links.source[rows], site.links.linked[rows], links=rows, words=words)


def _issues_with_text(rows: list[tuple[int, str]]) -> IssueColumns:
    """Pages, each with a text. rows: (place, text)."""
    return IssueColumns(np.array([place for place, _ in rows], np.int64), words=[words for _, words in rows])


def _bad_mails(site: AuditInput) -> IssueColumns:
    own = site.urls.own
    return _issues_with_text(
        [(page, f"{text[:200]}: {problem}") for page, text, problem in site.remarks.mails if own[page]]
    )


def _malformed_links(site: AuditInput) -> IssueColumns:
    return _issues_with_text([(page, text[:200]) for page, text in site.remarks.malformed if site.urls.own[page]])


def _nofollow(site: AuditInput) -> IssueColumns:
    """Own pages, with the number of their nofollow links to own pages."""
    own, links = site.urls.own, site.links
    inside = links.nofollow & own[links.source] & own[links.target] & site.is_kind(_WAYS)
    pages, counts = np.unique(links.source[inside], return_counts=True)
    return IssueColumns(pages, numbers=counts.astype(np.float64))


def _insecure(kinds: frozenset[LinkKind]) -> Check:
    """Insecure resources and form targets of secure pages."""

    def check(site: AuditInput) -> IssueColumns:
        urls, links = site.urls, site.links
        secure = np.zeros(len(urls.url), np.bool_)
        secure[bisect_left(urls.url, "https:") : bisect_left(urls.url, "https;")] = True
        downgrade = urls.own[links.source] & secure[links.source] & ~secure[links.target]
        return _links(site, downgrade & site.is_kind(kinds))

    return check


# Redirects


def _links_to_moved_urls(site: AuditInput) -> IssueColumns:
    """Followed links of own pages to moved URLs; links that end at a dead URL are broken links instead.

    Own URLs count if they redirect with a status other than 303, external ones if they moved permanently.
    """
    urls, redirects = site.urls, site.redirects
    moved = ((site.redirecting & urls.own) | (urls.verdict == VERDICTS.index(Verdict.MOVED))) & ~site.dead
    moved[redirects.sources[redirects.statuses == 303]] = False
    return _links(site, site.is_followed & moved[site.links.target])


def _redirects(which: Callable[[AuditInput], Mask]) -> Check:
    """Own URLs that redirect and satisfy a condition. which: bool[r], in the order of the redirects."""

    def check(site: AuditInput) -> IssueColumns:
        sources, chains = site.redirects.sources, site.chains
        rows = np.flatnonzero(site.urls.own[sources] & which(site))
        rows = rows[np.argsort(sources[rows])]
        return IssueColumns(sources[rows], chains.ends[rows], chains.hops[rows].astype(np.float64))

    return check


def _orphans(site: AuditInput) -> IssueColumns:
    """Own pages without links from other pages, even via redirects; known from a sitemap or an earlier run."""
    urls, links = site.urls, site.links
    end = site.ends[links.target]
    led = site.is_kind(_WAYS) & (end != links.source)
    reached = np.zeros(len(urls.url), np.bool_)
    reached[end[led]] = True
    reached[site.ends[np.flatnonzero(urls.start)]] = True
    pages = site.pages.place
    missing = urls.verdict[pages] == VERDICTS.index(Verdict.MISSING)
    orphans = pages[~reached[pages] & ~missing]
    return IssueColumns(orphans, words=session_causes(orphans, urls.url))


# Pages


def _pages(which: Callable[[AuditInput], Mask]) -> Check:
    """Pages that satisfy a condition. which: bool[p]."""
    return lambda site: IssueColumns(site.pages.place[which(site)])


def _indexable_pages(which: Callable[[PageTraits], Mask]) -> Check:
    """As `_pages`, but only indexable pages (`AuditInput.shown`)."""
    return _pages(lambda site: site.is_indexable & which(site.pages))


def _beyond(
    limit: float, values: Callable[[AuditInput], Numbers], among: Callable[[AuditInput], Mask] | None = None
) -> Check:
    """Pages whose value exceeds the limit. values: number[p]; among: bool[p], or None for all pages."""

    def check(site: AuditInput) -> IssueColumns:
        numbers = values(site)
        over = numbers > limit
        if among is not None:
            over &= among(site)
        return IssueColumns(site.pages.place[over], numbers=numbers[over].astype(np.float64), limit=limit)

    return check


def _is_shown(site: AuditInput) -> Mask:
    return site.is_indexable


def _duplicate_values(keys: Callable[[PageTraits], Unsigned64]) -> Check:
    """Indexable pages that share a non-zero key.

    related: the first other page with the key; number: pages with the key.
    """

    def check(site: AuditInput) -> IssueColumns:
        key, place = keys(site.pages), site.pages.place
        rows = np.flatnonzero(site.is_indexable & (key != 0))
        _, first, inverse, counts = np.unique(key[rows], return_index=True, return_inverse=True, return_counts=True)
        several = counts[inverse] > 1
        heads = rows[first[inverse]][several]
        rows, sizes = rows[several], counts[inverse][several]
        # for the first page of a group, the related page is the second
        order = np.lexsort((rows, heads))
        second = np.zeros(len(rows), np.int64)
        second[order[:-1]] = rows[order[1:]]
        others = np.where(heads == rows, second, heads)
        return IssueColumns(place[rows], place[others], sizes.astype(np.float64))

    return check


def _unread(*reasons: Reason) -> Check:
    """Pages that could not be read, or only in part; further findings on them may be incomplete."""
    return lambda site: _issues_with_text(
        [(place, why) for place, reason, why in site.remarks.unread if reason in reasons]
    )


def _duplicates(site: AuditInput) -> IssueColumns:
    """Pages with the same text, and pages with copies (the same bytes) at other addresses."""
    texts = _duplicate_values(lambda pages: pages.text)(site)
    shown = set(site.pages.place[site.is_indexable].tolist())
    rows = [row for row in site.remarks.copies if row[0] in shown]
    pages, copies = np.array(rows, np.int64).reshape(-1, 2).T
    _, first, counts = np.unique(pages, return_inverse=True, return_counts=True)
    return IssueColumns(
        np.append(texts.subjects, pages),
        np.append(np.asarray(texts.related), copies),
        np.append(np.asarray(texts.numbers), 1.0 + counts[first]),
    )


def _near(site: AuditInput) -> IssueColumns:
    """Near-duplicate pages, each with the leader of its group; number: percentage of the text that they share."""
    shown = np.zeros(len(site.urls.url), np.bool_)
    shown[site.pages.place[site.is_indexable]] = True
    rows = [
        (member, group.leader, similarity)
        for group in site.remarks.near
        for member, similarity in zip(group.members, group.similarity, strict=True)
        if shown[member] and shown[group.leader]
    ]
    members, leaders = _columns(rows, 0, 1)
    return IssueColumns(members, leaders, np.floor(np.array([row[2] for row in rows], np.float64) * 100))


def _long_urls(site: AuditInput) -> IssueColumns:
    chars = np.fromiter(map(len, site.urls.url), np.int64, len(site.urls.url))
    long = np.flatnonzero(site.urls.own & (chars > URL_CHARS))
    return IssueColumns(long, numbers=chars[long].astype(np.float64), limit=URL_CHARS)


def _pages_with_note(code: str) -> Check:
    """Own pages with this note, from `document.static_checks` or `header_checks`."""

    def check(site: AuditInput) -> IssueColumns:
        notes = site.remarks.notes.get(code, NO_NOTES)
        rank = {words: place for place, words in enumerate(sorted(set(notes.words)))}
        ranks = np.fromiter(map(rank.__getitem__, notes.words), np.int64, len(notes.words))
        order = np.lexsort((ranks, notes.numbers, notes.place))
        issues = IssueColumns(notes.place, numbers=notes.numbers, words=list(notes.words))
        return issues.rows(order[(notes.place[order] >= 0) & site.urls.own[notes.place[order]]])

    return check


def _series(site: AuditInput) -> IssueColumns:
    rows = site.remarks.series
    places, left = _columns(rows, 0, 2)
    return IssueColumns(places, numbers=left.astype(np.float64), words=[pattern for _, pattern, _ in rows])


# Indexing signals

# problems of a canonical URL; the first that applies is reported
_ELSEWHERE, _BROKEN, _REDIRECT, _NOINDEX, _CHAIN = range(5)


def _canonical(problem: int) -> Check:
    """Pages with a canonical URL that has this problem."""

    def check(site: AuditInput) -> IssueColumns:
        pages = site.pages
        rows = np.flatnonzero(site.elsewhere)
        page, named = pages.place[rows], pages.canonical[rows]
        third = np.full(len(site.urls.url), -1, np.int64)
        third[pages.place] = pages.canonical
        chain = (third[named] >= 0) & (third[named] != named)
        faults = [site.dead[named], site.redirecting[named], site.noindex[named], chain]
        here = np.select(faults, [_BROKEN, _REDIRECT, _NOINDEX, _CHAIN], _ELSEWHERE) == problem
        return IssueColumns(page[here], named[here])

    return check


def _sitemap_urls(which: Callable[[AuditInput], Mask]) -> Check:
    """Own URLs in the sitemap that satisfy a condition. which: bool[u]."""
    return lambda site: IssueColumns(np.flatnonzero(site.in_sitemap & which(site)))


def _noncanonical_in_sitemap(site: AuditInput) -> IssueColumns:
    rows = site.in_sitemap[site.pages.place] & site.elsewhere
    return IssueColumns(site.pages.place[rows], site.pages.canonical[rows])


def _missing_in_sitemap(site: AuditInput) -> IssueColumns:
    """Indexable pages missing from the sitemap, if there is a sitemap."""
    place = site.pages.place
    return IssueColumns(place[site.is_indexable & ~site.in_sitemap[place]] if site.in_sitemap.any() else place[:0])


# Languages


def _bad_languages(site: AuditInput) -> IssueColumns:
    bad = {language for language in {row[2] for row in site.remarks.hreflangs} if not is_language(language)}
    rows = [row for row in site.remarks.hreflangs if row[2] in bad]
    places, others = _columns(rows, 0, 1)
    return IssueColumns(places, others, words=[language for _, _, language in rows])


def _broken_translations(site: AuditInput) -> IssueColumns:
    source, target = site.translations
    no_page = (site.dead | site.redirecting | site.noindex)[target]
    return IssueColumns(source[no_page], target[no_page])


def _translations_without_return(site: AuditInput) -> IssueColumns:
    """Translations on own pages that do not link back."""
    (source, target), count = site.translations, len(site.urls.url)
    fetched = np.zeros(count, np.bool_)
    fetched[site.pages.place] = True
    returned = np.isin(target * count + source, source * count + target)
    no_page = (site.dead | site.redirecting | site.noindex)[target]
    alone = fetched[target] & ~returned & ~no_page
    return IssueColumns(source[alone], target[alone])


def _without_themselves(site: AuditInput) -> IssueColumns:
    """Indexable pages with translations, none of which is the page itself."""
    source, target = site.translations
    places = np.setdiff1d(source, source[source == target])
    return IssueColumns(places[np.isin(places, site.pages.place[site.is_indexable])])


def _translated_twice(site: AuditInput) -> IssueColumns:
    """Second and further translations of a page in the same language; the page itself, or else the first, is kept."""
    by_language: dict[tuple[int, str], set[int]] = {}
    for page, other, language in site.remarks.hreflangs:
        by_language.setdefault((page, language.lower()), set()).add(other)
    rows: dict[tuple[int, int], str] = {}
    for (page, language), others in sorted(by_language.items()):
        for other in sorted(others, key=lambda place: (place != page, place))[1:]:
            rows.setdefault((page, other), language)
    places, others_of = _columns(rows, 0, 1)
    return IssueColumns(places, others_of, words=list(rows.values()))


# Codes never change their meaning. A new finding on existing input is a row of findings.json, with its check here if
# it does not only count notes of its code, or an entry point of `periplus.findings` in an installed package.
_CHECKS: dict[str, Check] = {
    "broken-link": _broken_links(parts=False),
    "broken-resource": _broken_links(parts=True),
    "broken-fragment": lambda site: _fragments(site, site.remarks.fragments),
    "missing-text": lambda site: _fragments(site, site.remarks.texts),
    "bad-mailto": _bad_mails,
    "malformed-link": _malformed_links,
    "server-error": _links_to(Verdict.SERVER_ERROR),
    "soft-404": _links_to(Verdict.MISSING),
    "suspect-link": _links_to(Verdict.SUSPECT),
    "refused-link": _links_to(Verdict.REFUSED),
    "bot-wall": lambda site: IssueColumns(
        np.flatnonzero(site.urls.own & (site.urls.reason == REASONS.index(Reason.BOT_WALL)))
    ),
    "nofollow-inside": _nofollow,
    "broken-start": lambda site: IssueColumns(np.flatnonzero(site.urls.start & site.dead)),
    "link-to-redirect": _links_to_moved_urls,
    "redirect-chain": _redirects(lambda site: ~site.chains.loops & (site.chains.hops >= CHAIN_HOPS)),
    "redirect-loop": _redirects(lambda site: site.chains.loops),
    "redirect-broken": _redirects(lambda site: ~site.chains.loops & site.dead[site.chains.ends]),
    "title-missing": _indexable_pages(lambda pages: pages.title == 0),
    "title-duplicate": _duplicate_values(lambda pages: pages.title),
    "title-long": _beyond(TITLE_CHARS, lambda site: site.pages.title_chars, _is_shown),
    "description-missing": _indexable_pages(lambda pages: pages.description == 0),
    "description-duplicate": _duplicate_values(lambda pages: pages.description),
    "description-long": _beyond(DESCRIPTION_CHARS, lambda site: site.pages.description_chars, _is_shown),
    "h1-missing": _indexable_pages(lambda pages: pages.h1s == 0),
    "h1-several": _beyond(1, lambda site: site.pages.h1s, _is_shown),
    "canonical-elsewhere": _canonical(_ELSEWHERE),
    "canonical-broken": _canonical(_BROKEN),
    "canonical-redirect": _canonical(_REDIRECT),
    "canonical-noindex": _canonical(_NOINDEX),
    "canonical-chain": _canonical(_CHAIN),
    "robots-sitemap-conflict": _sitemap_urls(lambda site: site.urls.reason == REASONS.index(Reason.ROBOTS)),
    "noindex-in-sitemap": _sitemap_urls(lambda site: site.noindex),
    "redirect-in-sitemap": _sitemap_urls(lambda site: site.redirecting),
    "canonical-in-sitemap": _noncanonical_in_sitemap,
    "broken-in-sitemap": _sitemap_urls(lambda site: site.dead),
    "missing-from-sitemap": _missing_in_sitemap,
    "language-missing": _indexable_pages(lambda pages: ~pages.has_language),
    "hreflang-no-return": _translations_without_return,
    "hreflang-bad-language": _bad_languages,
    "hreflang-no-self": _without_themselves,
    "hreflang-twice": _translated_twice,
    "hreflang-broken": _broken_translations,
    "charset-mismatch": _pages(lambda site: site.pages.charset_mismatch),
    "unreadable": _unread(Reason.UNREADABLE),
    "needs-script": _unread(Reason.NEEDS_SCRIPT),
    "partly-read": _unread(Reason.TRUNCATED, Reason.PARTIAL, Reason.NOINDEX),
    "duplicate": _duplicates,
    "near-duplicate": _near,
    "image-without-alt": _beyond(0, lambda site: site.pages.images_without_alt, lambda site: ~site.pages.noindex),
    "mixed-content": _insecure(_MIXED_CONTENT_KINDS),
    "insecure-form": _insecure(frozenset({LinkKind.FORM})),
    "slow-page": _beyond(SLOW_S, lambda site: site.pages.took_s),
    "heavy-page": _beyond(HEAVY_BYTES, lambda site: site.pages.weight_bytes),
    "deep-page": _beyond(DEEP_CLICKS, lambda site: site.urls.depth[site.pages.place]),
    "orphan": _orphans,
    "url-too-long": _long_urls,
    "endless-series": _series,
}


def _kind(code: str, row: dict[str, str]) -> IssueKind:
    """The kind of a row of findings.json."""
    severity, category = Severity(row.pop("severity")), Category(row.pop("category"))
    cause = SharedCause(row.pop("caused_by", SharedCause.PAGE))
    return IssueKind(code, severity, category, caused_by=cause, **row)


FINDINGS = tuple(
    Finding(_kind(code, row), _CHECKS.get(code) or _pages_with_note(code))
    for code, row in json.loads(Path(__file__).with_name("findings.json").read_text("utf-8")).items()
)


@cache
def findings() -> tuple[Finding, ...]:
    """FINDINGS, then those of installed packages whose codes are new."""
    codes = {finding.kind.code for finding in FINDINGS}
    added = (
        replace(finding, check=_harmless(blame(package)(finding.check)))
        for package, finding in loaded("findings", Finding).values()
        if finding.kind.code not in codes
    )
    return (*FINDINGS, *added)


def _harmless(check: Check) -> Check:
    """Wraps a package's check: if it fails, a warning is logged and there are no issues."""

    def run_check(site: AuditInput) -> IssueColumns:
        try:
            return check(site)
        except ExtensionError as error:
            log.warning("%s", error)
            return IssueColumns(np.zeros(0, np.int64))

    return run_check


@cache
def issue_kinds() -> Mapping[str, IssueKind]:
    """Every kind by code, in display order."""
    return {finding.kind.code: finding.kind for finding in findings()}
