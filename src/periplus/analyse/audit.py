"""Checks a site's pages, links and redirects: a table of findings, each with its check function."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

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
from periplus.document.language_codes import is_language
from periplus.errors import ExtensionError
from periplus.extensions import guarded, loaded
from periplus.model.arrays import Mask, Unsigned64
from periplus.model.audit import VERDICTS, Category, IssueKind, Severity, SharedCause, Verdict
from periplus.model.graph import REASONS
from periplus.model.page import CLICK_KINDS, PULLED_KINDS, LinkKind
from periplus.model.visit import Reason
from periplus.values import frozen

log = logging.getLogger(__name__)


Check = Callable[[AuditInput], IssueColumns]


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


def _with_cause(kind: IssueKind, issues: IssueColumns, site: AuditInput) -> IssueColumns:
    """The issues with the folder that they have in common, where their kind is caused by one."""
    if kind.caused_by is not SharedCause.FOLDER:
        return issues
    return replace(issues, words=folder_causes(issues.subjects, site.pages.place, site.urls.url))


# Thresholds for long, slow, heavy and deep pages.

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
        secure = np.fromiter((text.startswith("https:") for text in urls.url), np.bool_, len(urls.url))
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
    members, leaders = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
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


def _note(
    code: str,
    severity: Severity,
    category: Category,
    *texts: str,
    source: str = "",
    caused_by: SharedCause = SharedCause.PAGE,
) -> Finding:
    """A finding based on notes. texts: title, why, remedy, detail of IssueKind."""
    title, why, remedy, *detail = texts
    kind = IssueKind(code, severity, category, title, why, remedy, "".join(detail), caused_by, source)
    return Finding(kind, _pages_with_note(code))


def _series(site: AuditInput) -> IssueColumns:
    rows = site.remarks.series
    places, left = (np.array([row[at] for row in rows], np.int64) for at in (0, 2))
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
    places, others = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
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
    places, others_of = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
    return IssueColumns(places, others_of, words=list(rows.values()))


_C, _E, _W, _N = Category, Severity.ERROR, Severity.WARNING, Severity.NOTICE
_BY_TARGET, _BY_FRAGMENT, _BY_WORDS = SharedCause.TARGET, SharedCause.FRAGMENT, SharedCause.WORDS
_BY_HOST, _BY_GROUP, _BY_FOLDER = SharedCause.HOST, SharedCause.GROUP, SharedCause.FOLDER

# Codes never change their meaning. A new finding on existing input is a row here with its check, or an entry point of
# `periplus.findings` in an installed package.
# fmt: off
FINDINGS = (
    Finding(IssueKind("broken-link", _E, _C.LINKS, "Broken links", "The link leads to a page that does not exist.",
        "Correct or remove the link.", "{words}", _BY_TARGET), _broken_links(parts=False)),
    Finding(IssueKind("broken-resource", _E, _C.LINKS, "Broken resources",
        "An image, style sheet or script is missing.", "Correct its URL.", "{words}", _BY_TARGET),
        _broken_links(parts=True)),
    Finding(IssueKind("broken-fragment", _W, _C.LINKS, "Broken anchors",
        "The target page has no element with this id, so the browser shows its top.", "Link to an id that exists.",
        "no #{words}", _BY_FRAGMENT), lambda site: _fragments(site, site.remarks.fragments)),
    Finding(IssueKind("missing-text", _W, _C.LINKS, "Broken text fragments",
        "The quoted text is not on the target page, so the browser shows its top.", "Quote text that is on the page.",
        "no #{words}", _BY_FRAGMENT), lambda site: _fragments(site, site.remarks.texts)),
    Finding(IssueKind("bad-mailto", _E, _C.LINKS, "Invalid mailto links", "Mail to this address cannot be delivered.",
        "Correct the address.", "{words}", _BY_WORDS), _bad_mails),
    Finding(IssueKind("malformed-link", _E, _C.LINKS, "Invalid URLs", "No browser can follow the link.",
        "Write a valid URL.", "{words}", _BY_WORDS), _malformed_links),
    Finding(IssueKind("server-error", _W, _C.LINKS, "Links to server errors",
        "The target answers with a server error, perhaps a temporary one.",
        "Check again; replace the link if the error lasts.", "{words}", _BY_TARGET), _links_to(Verdict.SERVER_ERROR)),
    Finding(IssueKind("soft-404", _W, _C.LINKS, "Links to soft 404 pages", "The answer is 200, but an error page.",
        "Open the page; correct the link.", "{words}", _BY_TARGET), _links_to(Verdict.MISSING)),
    Finding(IssueKind("suspect-link", _N, _C.LINKS, "Uncertain links",
        "The request failed once, was cut short, or the certificate is invalid.",
        "Check again, or open the link in a browser.", "{words}", _BY_TARGET), _links_to(Verdict.SUSPECT)),
    Finding(IssueKind("refused-link", _N, _C.LINKS, "Links that refuse crawlers", "The server refuses programs.",
        "Open the link in a browser.", "{words}", _BY_TARGET), _links_to(Verdict.REFUSED)),
    Finding(IssueKind("nofollow-inside", _N, _C.LINKS, "Internal nofollow links",
        "Search engines may not follow the links.", "Remove nofollow.", "{number:.0f} links"), _nofollow),
    Finding(IssueKind("broken-start", _E, _C.LINKS, "Broken start URLs", "A start URL of the crawl cannot be read.",
        "Correct the start URL."), lambda site: IssueColumns(np.flatnonzero(site.urls.start & site.dead))),
    Finding(IssueKind("link-to-redirect", _N, _C.REDIRECTS, "Links to redirects",
        "Each click takes an extra request, and the redirect may end one day.", "Link to the redirect's target.",
        "leads to {also}", _BY_TARGET), _links_to_moved_urls),
    Finding(IssueKind("redirect-chain", _W, _C.REDIRECTS, "Redirect chains",
        "Each redirect adds a request, and some clients give up.", "Redirect to the final URL directly.",
        "{number:.0f} hops to {also}"), _redirects(lambda site: ~site.chains.loops & (site.chains.hops >= CHAIN_HOPS))),
    Finding(IssueKind("redirect-loop", _E, _C.REDIRECTS, "Redirect loops", "The redirects never reach a page.",
        "Let one of the URLs answer with a page.", "leads back to {also}"), _redirects(lambda site: site.chains.loops)),
    Finding(IssueKind("redirect-broken", _E, _C.REDIRECTS, "Broken redirects",
        "The redirect leads to a page that does not exist.", "Redirect to an existing page.", "ends at {also}",
        _BY_TARGET), _redirects(lambda site: ~site.chains.loops & site.dead[site.chains.ends])),
    Finding(IssueKind("title-missing", _E, _C.TITLES, "Missing titles", "Search results have no name for it.",
        "Add a title.", caused_by=_BY_FOLDER), _indexable_pages(lambda pages: pages.title == 0)),
    Finding(IssueKind("title-duplicate", _W, _C.TITLES, "Duplicate titles",
        "Readers cannot tell the pages apart in search results and tabs.", "Give each page a title of its own.",
        "{number:.0f} pages share it", _BY_GROUP), _duplicate_values(lambda pages: pages.title)),
    Finding(IssueKind("title-long", _N, _C.TITLES, "Long titles", "Search results cut the title off.",
        "Shorten the title.", "{number:.0f} characters, more than {limit:.0f}"), _beyond(TITLE_CHARS,
        lambda site: site.pages.title_chars, _is_shown)),
    Finding(IssueKind("description-missing", _N, _C.TITLES, "Missing descriptions",
        "Search engines choose some text of the page instead.", "Add a meta description of one or two sentences.",
        caused_by=_BY_FOLDER), _indexable_pages(lambda pages: pages.description == 0)),
    Finding(IssueKind("description-duplicate", _N, _C.TITLES, "Duplicate descriptions",
        "The description does not tell the pages apart.", "Write a description for each page.",
        "{number:.0f} pages share it", _BY_GROUP), _duplicate_values(lambda pages: pages.description)),
    Finding(IssueKind("description-long", _N, _C.TITLES, "Long descriptions", "Search results cut the description off.",
        "Shorten the description.", "{number:.0f} characters, more than {limit:.0f}"), _beyond(DESCRIPTION_CHARS,
        lambda site: site.pages.description_chars, _is_shown)),
    Finding(IssueKind("h1-missing", _W, _C.TITLES, "Missing h1", "Readers and screen readers find no main heading.",
        "Add one h1.", caused_by=_BY_FOLDER), _indexable_pages(lambda pages: pages.h1s == 0)),
    Finding(IssueKind("h1-several", _N, _C.TITLES, "Multiple h1",
        "The page has several main headings, so its subject is unclear.", "Keep one h1.", "{number:.0f} of them"),
        _beyond(1, lambda site: site.pages.h1s, _is_shown)),
    Finding(IssueKind("canonical-elsewhere", _N, _C.INDEXING, "Canonicalised pages", "Search engines leave them out.",
        "Check that this is intended.", "names {also}"), _canonical(_ELSEWHERE)),
    Finding(IssueKind("canonical-broken", _E, _C.INDEXING, "Broken canonical URLs",
        "The canonical page does not exist.", "Name an existing page.", "names {also}", _BY_TARGET),
        _canonical(_BROKEN)),
    Finding(IssueKind("canonical-redirect", _W, _C.INDEXING, "Canonical URLs that redirect",
        "The two signals disagree.", "Name the redirect's target.", "names {also}", _BY_TARGET), _canonical(_REDIRECT)),
    Finding(IssueKind("canonical-noindex", _E, _C.INDEXING, "Canonical URLs with noindex",
        "Search engines may drop both pages.", "Keep one of them.", "names {also}", _BY_TARGET), _canonical(_NOINDEX)),
    Finding(IssueKind("canonical-chain", _W, _C.INDEXING, "Canonical chains",
        "The canonical page names a third page as canonical, so search engines ignore the link.",
        "Name the last page of the chain.", "names {also}"), _canonical(_CHAIN)),
    Finding(IssueKind("robots-sitemap-conflict", _W, _C.INDEXING, "Sitemap URLs blocked by robots.txt",
        "The two signals disagree.", "Remove the URL from the sitemap, or allow it."),
        _sitemap_urls(lambda site: site.urls.reason == REASONS.index(Reason.ROBOTS))),
    Finding(IssueKind("noindex-in-sitemap", _W, _C.INDEXING, "Sitemap URLs with noindex", "The two signals disagree.",
        "Remove the URL from the sitemap, or remove noindex."), _sitemap_urls(lambda site: site.noindex)),
    Finding(IssueKind("redirect-in-sitemap", _N, _C.INDEXING, "Sitemap URLs that redirect",
        "Each costs an extra request.", "List the redirect's target."), _sitemap_urls(lambda site: site.redirecting)),
    Finding(IssueKind("canonical-in-sitemap", _N, _C.INDEXING, "Non-canonical sitemap URLs",
        "The two signals disagree.", "List the canonical URL.", "names {also}"), _noncanonical_in_sitemap),
    Finding(IssueKind("broken-in-sitemap", _E, _C.INDEXING, "Broken sitemap URLs", "The page does not exist.",
        "Remove the URL from the sitemap."), _sitemap_urls(lambda site: site.dead)),
    Finding(IssueKind("missing-from-sitemap", _N, _C.INDEXING, "Pages missing from the sitemap",
        "Search engines may find the page late.", "Add the page to the sitemap.", caused_by=_BY_FOLDER),
        _missing_in_sitemap),
    Finding(IssueKind("language-missing", _W, _C.LANGUAGES, "Missing lang attribute",
        "Screen readers may pronounce the text wrongly.", "Add lang to the html element.", caused_by=_BY_FOLDER),
        _indexable_pages(lambda pages: ~pages.has_language)),
    Finding(IssueKind("hreflang-no-return", _W, _C.LANGUAGES, "hreflang without return link",
        "Search engines ignore hreflang links that are not mutual.", "Link back from the translation.", "to {also}"),
        _translations_without_return),
    Finding(IssueKind("hreflang-bad-language", _W, _C.LANGUAGES, "Invalid hreflang codes",
        "Search engines ignore the link.", "Use a code such as en or pt-br.", "{words}", _BY_WORDS), _bad_languages),
    Finding(IssueKind("hreflang-no-self", _N, _C.LANGUAGES, "hreflang without self-reference",
        "Search engines may ignore the other links.", "Add the page itself to its hreflang links."),
        _without_themselves),
    Finding(IssueKind("hreflang-twice", _W, _C.LANGUAGES, "Duplicate hreflang entries", "Search engines cannot choose.",
        "Name one page for each language.", "{words}: {also} too"), _translated_twice),
    Finding(IssueKind("hreflang-broken", _W, _C.LANGUAGES, "Broken hreflang links", "The target cannot be indexed.",
        "Link to an indexable page.", "to {also}", _BY_TARGET), _broken_translations),
    Finding(IssueKind("charset-mismatch", _W, _C.LANGUAGES, "Wrong character encoding",
        "The declared encoding is not the real one, so letters may be garbled.", "Use UTF-8 and declare it."),
        _pages(lambda site: site.pages.charset_mismatch)),
    Finding(IssueKind("unreadable", _W, _C.CONTENT, "Unreadable files", "The file is damaged or of another type.",
        "Repair the file, or correct its Content-Type.", "{words}"), _unread(Reason.UNREADABLE)),
    Finding(IssueKind("needs-script", _W, _C.CONTENT, "Pages empty without JavaScript",
        "Without JavaScript the page has no text.", "Send the text in the HTML.", "{words}"),
        _unread(Reason.NEEDS_SCRIPT)),
    Finding(IssueKind("partly-read", _N, _C.CONTENT, "Pages read in part",
        "The part beyond a size limit was not checked.", "Split the page, or raise the limit.", "{words}"),
        _unread(Reason.TRUNCATED, Reason.PARTIAL, Reason.NOINDEX)),
    Finding(IssueKind("duplicate", _W, _C.CONTENT, "Duplicate content",
        "Pages with the same text compete in search results.", "Keep one page, or name one as canonical.",
        "{number:.0f} addresses have it", _BY_GROUP), _duplicates),
    Finding(IssueKind("near-duplicate", _N, _C.CONTENT, "Near-duplicate content",
        "Pages with nearly the same text compete in search results.", "Merge the pages, or make them differ.",
        "{number:.0f} % alike", _BY_TARGET), _near),
    Finding(IssueKind("image-without-alt", _W, _C.CONTENT, "Missing alt text",
        "Blind readers do not learn what they show.", "Add alt; leave it empty for decoration.",
        "images: {number:.0f}"), _beyond(0, lambda site: site.pages.images_without_alt,
        lambda site: ~site.pages.noindex)),
    Finding(IssueKind("mixed-content", _W, _C.SECURITY, "Mixed content",
        "Browsers block the insecure resource or warn.", "Load the resource over HTTPS.", "", _BY_TARGET),
        _insecure(_MIXED_CONTENT_KINDS)),
    Finding(IssueKind("insecure-form", _E, _C.SECURITY, "Forms without HTTPS",
        "Others on the network can read what is sent.", "Send the form over HTTPS.", "", _BY_TARGET),
        _insecure(frozenset({LinkKind.FORM}))),
    Finding(IssueKind("slow-page", _W, _C.PERFORMANCE, "Slow pages", "The server takes long to answer; visitors leave.",
        "Find out what the server waits for.", "{number:.1f} s, more than {limit:.1f}"), _beyond(SLOW_S,
        lambda site: site.pages.took_s)),
    Finding(IssueKind("heavy-page", _N, _C.PERFORMANCE, "Large pages", "They load slowly on a phone.",
        "Make images and scripts smaller.", "{number:,.0f} bytes, more than {limit:,.0f}"), _beyond(HEAVY_BYTES,
        lambda site: site.pages.weight_bytes)),
    Finding(IssueKind("deep-page", _N, _C.STRUCTURE, "Deep pages",
        "The page is many clicks from the start page, so few visitors reach it.",
        "Link to it from a page nearer to the start.", "{number:.0f} clicks, more than {limit:.0f}"),
        _beyond(DEEP_CLICKS, lambda site: site.urls.depth[site.pages.place])),
    Finding(IssueKind("orphan", _W, _C.STRUCTURE, "Orphan pages", "No page links to it, so visitors cannot find it.",
        "Link to the page, or remove it.", caused_by=_BY_WORDS), _orphans),
    Finding(IssueKind("url-too-long", _N, _C.STRUCTURE, "Long URLs",
        "Sitemaps and some programs do not accept the URL.", "Shorten the URL.",
        "{number:.0f} characters, more than {limit:.0f}"), _long_urls),
    Finding(IssueKind("endless-series", _N, _C.STRUCTURE, "Endless URL series", "The series was not read to its end.",
        "Check that no page is missing; --trap-window 0 reads all.", "{number:,.0f} left unread as {words}"), _series),
    _note("heading-skipped", _W, _C.ACCESSIBILITY, "Skipped heading levels",
        "People who jump from heading to heading think that a part is missing.", "Use the next level: h2 below h1.",
        "{words}", source="WCAG 2.2, 1.3.1; technique G141"),
    _note("heading-empty", _N, _C.ACCESSIBILITY, "Empty headings", "A screen reader announces a heading without text.",
        "Add text, or remove the heading.", "headings: {number:.0f}", source="WCAG 2.2, 2.4.6"),
    _note("link-without-name", _W, _C.ACCESSIBILITY, "Links without text", "A screen reader can only say “link”.",
        "Add text to the link, or alt to its image.", "links: {number:.0f}", source="WCAG 2.2, 2.4.4 and 4.1.2"),
    _note("button-without-name", _W, _C.ACCESSIBILITY, "Buttons without text",
        "Screen readers cannot say what the button does.", "Add text or an aria-label.", "buttons: {number:.0f}",
        source="WCAG 2.2, 4.1.2"),
    _note("field-without-label", _W, _C.ACCESSIBILITY, "Form fields without label",
        "Screen readers cannot name it.", "Add a label.", "fields: {number:.0f}", source="WCAG 2.2, 1.3.1 and 4.1.2"),
    _note("frame-without-title", _W, _C.ACCESSIBILITY, "Frames without title", "Screen readers cannot announce it.",
        "Add a title to the iframe.", "frames: {number:.0f}", source="WCAG 2.2, 4.1.2; technique H64"),
    _note("language-bad", _W, _C.ACCESSIBILITY, "Invalid lang attribute", "Screen readers pronounce the text wrongly.",
        "Use a code such as en or pt-BR.", "lang={words}", source="WCAG 2.2, 3.1.1; BCP 47", caused_by=_BY_WORDS),
    _note("main-missing", _N, _C.ACCESSIBILITY, "Missing main landmark", "Keyboard users must pass the navigation.",
        "Put the content into a main element.", source="WAI-ARIA 1.2, main; WCAG 2.2, 2.4.1",
        caused_by=_BY_FOLDER),
    _note("table-without-heads", _N, _C.ACCESSIBILITY, "Tables without header cells",
        "Read cell by cell, the values have no meaning.", "Use th for header cells.", "tables: {number:.0f}",
        source="WCAG 2.2, 1.3.1; technique H51"),
    _note("focus-order", _N, _C.ACCESSIBILITY, "Positive tabindex", "The tab key jumps about the page.",
        "Use tabindex=0 and order the elements in the HTML.", "elements: {number:.0f}", source="WCAG 2.2, 2.4.3"),
    _note("reloads-itself", _W, _C.ACCESSIBILITY, "Automatic page refresh", "Slow readers lose their place.",
        "Let the reader reload the page.", "after {number:.0f} s", source="WCAG 2.2, 2.2.1; failure F41"),
    _note("zoom-forbidden", _W, _C.ACCESSIBILITY, "Zoom disabled",
        "People with low vision cannot enlarge the page on a phone.", "Remove user-scalable and maximum-scale.",
        "{words}", source="WCAG 2.2, 1.4.4", caused_by=_BY_WORDS),
    _note("viewport-missing", _N, _C.ACCESSIBILITY, "Missing viewport",
        "A phone shows the page at desktop width, in tiny letters.",
        'Add <meta name="viewport" content="width=device-width, initial-scale=1">.', source="CSS Viewport, 3",
        caused_by=_BY_FOLDER),
    _note("doctype-missing", _N, _C.CONTENT, "Missing doctype",
        "Browsers use quirks mode, the layout rules of the 1990s.", "Begin with <!doctype html>.",
        source="HTML Standard, 13.1.1", caused_by=_BY_FOLDER),
    _note("preview-incomplete", _N, _C.CONTENT, "Incomplete Open Graph tags",
        "Shared links show a card without picture or title.", "Add the missing Open Graph tags.", "lacks {words}",
        source="The Open Graph protocol, basic metadata", caused_by=_BY_WORDS),
    _note("structured-syntax", _W, _C.INDEXING, "Invalid JSON-LD", "Search engines cannot read the structured data.",
        "Correct the JSON.", "{words}", source="JSON-LD 1.1, 7; RFC 8259", caused_by=_BY_WORDS),
    _note("structured-incomplete", _W, _C.INDEXING, "Structured data: missing required properties",
        "Search engines do not show rich results.", "Add the required properties.", "{words}",
        source="Google Search Central, structured data", caused_by=_BY_WORDS),
    _note("structured-sparse", _N, _C.INDEXING, "Structured data: missing recommended properties",
        "Rich results show less than they could.", "Add the properties that apply to the page.", "{words}",
        source="Google Search Central, structured data", caused_by=_BY_WORDS),
    _note("structured-value", _W, _C.INDEXING, "Structured data: invalid values", "Search engines ignore the values.",
        "Write 2026-05-03 for a date, 1200.50 for a number, PT1H for a duration.", "{words}",
        source="schema.org; ISO 8601", caused_by=_BY_WORDS),
    _note("page-insecure", _W, _C.SECURITY, "Pages without HTTPS",
        "Others on the network can read and change the page; browsers warn.",
        "Serve the site over HTTPS and redirect to it.", source="RFC 9110, 17.1 and 4.2.2", caused_by=_BY_HOST),
    _note("certificate-fault", _E, _C.SECURITY, "Invalid TLS certificates",
        "Browsers show a warning instead of the page.",
        "Install a certificate for this name, with its intermediate certificates.", "{words}",
        source="RFC 9110, 4.3.4; RFC 9525", caused_by=_BY_WORDS),
    _note("certificate-ends", _W, _C.SECURITY, "TLS certificates that expire soon",
        "After that date browsers show a warning instead of the page.", "Renew the certificate; automate the renewal.",
        "{words}: in {number:.0f} days", source="RFC 5280, 4.1.2.5"),
    _note("tls-old", _W, _C.SECURITY, "Outdated TLS versions", "Attackers can force broken ciphers.",
        "Allow only TLS 1.2 and 1.3.", "{words}", source="RFC 8996", caused_by=_BY_WORDS),
    _note("hsts-missing", _N, _C.SECURITY, "Missing HSTS header", "Attackers can redirect a first visit over HTTP.",
        "Send Strict-Transport-Security: max-age=31536000.", "{words}", source="RFC 6797, 6.1 and 7.2",
        caused_by=_BY_WORDS),
    _note("csp-missing", _N, _C.SECURITY, "Missing content security policy", "Nothing stops an injected script.",
        "Send Content-Security-Policy.", "{words}", source="Content Security Policy Level 3, 3.1", caused_by=_BY_WORDS),
    _note("csp-weak", _N, _C.SECURITY, "Weak content security policy", "The policy does not stop injected scripts.",
        "Allow sources, nonces or hashes of scripts only.", "{words}", source="Content Security Policy Level 3, 8.2",
        caused_by=_BY_WORDS),
    _note("framing-allowed", _N, _C.SECURITY, "Missing clickjacking protection",
        "Another site can embed the page and overlay its own buttons.",
        "Send Content-Security-Policy: frame-ancestors 'self'.", "{words}",
        source="Content Security Policy Level 3, 6.4.2; RFC 7034", caused_by=_BY_WORDS),
    _note("sniffing-allowed", _N, _C.SECURITY, "Missing nosniff header",
        "Browsers may run an uploaded file as a script.", "Send X-Content-Type-Options: nosniff.", "{words}",
        source="Fetch Standard, 3.6", caused_by=_BY_WORDS),
    _note("referrer-leak", _N, _C.SECURITY, "Referrer leaks", "Other sites see the full URL that a visitor came from.",
        "Send Referrer-Policy: strict-origin-when-cross-origin.", "{words}", source="Referrer Policy, 3",
        caused_by=_BY_WORDS),
    _note("permissions-missing", _N, _C.SECURITY, "Missing permissions policy",
        "Embedded pages may ask for the camera.", "Send Permissions-Policy for the features that are not used.",
        "{words}", source="Permissions Policy, 5.1", caused_by=_BY_WORDS),
    _note("cookie-insecure", _W, _C.SECURITY, "Cookies without Secure",
        "Others on the network can take over the session.", "Set the cookie with Secure.", "{words}",
        source="RFC 6265, 4.1.2.5 and 8.3", caused_by=_BY_WORDS),
    _note("cookie-open", _N, _C.SECURITY, "Cookies without HttpOnly or SameSite",
        "An injected script can read them; other sites can send them.", "Set the cookie with HttpOnly and SameSite.",
        "{words}", source="RFC 6265, 4.1.2.6; RFC 6265bis, 4.1.2.7", caused_by=_BY_WORDS),
    _note("version-shown", _N, _C.SECURITY, "Server version disclosed", "Attackers search for servers by version.",
        "Send the product name without its version.", "{words}", source="RFC 9110, 10.2.4 and 17.12",
        caused_by=_BY_WORDS),
    _note("slow-paint", _W, _C.PERFORMANCE, "Slow Largest Contentful Paint",
        "Visitors wait for the main content; the network adds to this time.",
        "Make scripts smaller, or send the text in the HTML.", "{number:.1f} s in a browser, more than 2.5: {words}",
        source="web.dev, Largest Contentful Paint: 2.5 and 4 s"),
    _note("layout-shift", _W, _C.PERFORMANCE, "Layout shift", "The content moves while it is read.",
        "Reserve space for images and late content.", "{number:.2f}, more than 0.1: {words}",
        source="web.dev, Cumulative Layout Shift: 0.1 and 0.25"),
    _note("not-compressed", _W, _C.PERFORMANCE, "Uncompressed responses", "Transfer takes several times as long.",
        "Compress text with gzip, brotli or zstd.", "{number:,.0f} bytes", source="RFC 9110, 8.4", caused_by=_BY_HOST),
    _note("not-cacheable", _N, _C.PERFORMANCE, "Pages without cache headers",
        "Each visit downloads the page again, changed or not.", "Send ETag, Last-Modified or Cache-Control.",
        source="RFC 9110, 8.8; RFC 9111, 4.3", caused_by=_BY_HOST),
    _note("part-short-cache", _N, _C.PERFORMANCE, "Short cache lifetime", "Each visit downloads the resources again.",
        "Send Cache-Control: max-age=31536000.", "kept for {number:,.0f} s", source="RFC 9111, 5.2.2.1; RFC 8246"),
    _note("model-crawlers", _N, _C.INDEXING, "AI crawlers not addressed in robots.txt",
        "robots.txt does not say whether language models may use the site.",
        "Allow or disallow these crawlers in robots.txt.", "let in: {words}", source="RFC 9309, 2.2.1"),
)
# fmt: on


@cache
def findings() -> tuple[Finding, ...]:
    """FINDINGS, then those of installed packages whose codes are new."""
    codes = {finding.kind.code for finding in FINDINGS}
    added = (
        replace(finding, check=_harmless(guarded(package, finding.check)))
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
