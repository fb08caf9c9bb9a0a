"""Finds what is wrong with a site's pages, links and redirects: one table of findings, each row with its check."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.audit_input import NO_NOTES, AuditInput, Mask, Numbers, PageTraits, Places
from periplus.document.language_codes import is_language
from periplus.errors import ExtensionError
from periplus.extensions import guarded, loaded
from periplus.model.audit import VERDICTS, Category, CausedBy, Grade, IssueKind, Verdict
from periplus.model.graph import REASONS
from periplus.model.page import PULLED_KINDS, LinkKind
from periplus.model.visit import Reason

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IssueColumns:
    """k issues of one kind as columns; `issues.issues` puts them into words."""

    subjects: Places  # k: pages to mend
    related: Places | None = None  # k: what the issue is about besides; -1: nothing
    numbers: NDArray[np.float64] | None = None  # k: for the detail
    links: Places | None = None  # k: indices in LinkFacts
    words: list[str] | None = None  # k: for the detail
    limit: float = 0.0  # that the numbers exceed

    def __len__(self) -> int:
        return len(self.subjects)

    def rows(self, rows: Places) -> IssueColumns:
        """Some of the issues, in the order given."""
        return IssueColumns(
            self.subjects[rows],
            self.related[rows] if self.related is not None else None,
            self.numbers[rows] if self.numbers is not None else None,
            self.links[rows] if self.links is not None else None,
            [self.words[row] for row in rows.tolist()] if self.words is not None else None,
            self.limit,
        )


Check = Callable[[AuditInput], IssueColumns]


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the table: a kind of issue, and the function that finds all of its issues."""

    kind: IssueKind
    check: Check  # over the whole input: only where text is looked at does a loop in Python visit pages or links


def audit(site: AuditInput) -> dict[str, IssueColumns]:
    """All that is wrong, by code in the order of the table; kinds without issues are left out.

    A page that is no answer to a reader (a soft 404), asks not to be indexed or names another page as canonical is not
    asked for title, description or text of its own.
    O(u + p log p + m log m).
    """
    columns = ((finding.kind.code, finding.check(site)) for finding in findings())
    return {code: issues for code, issues in columns if len(issues)}


# From where on a page is long, slow, heavy or deep.

TITLE_CHARS = 60  # what result pages show is about 600 px; audit programs warn from 60 on
DESCRIPTION_CHARS = 160  # result pages show 155 to 160
SLOW_S = 1.8  # "poor" time to first byte by the Web Vitals thresholds; ours is to the last byte of the HTML
HEAVY_BYTES = 3_000_000  # the median page of the HTTP Archive weighs about 2.6 MB
DEEP_CLICKS = 6  # ours: from there on pages are found by search, not by clicking
URL_CHARS = 2_047  # sitemaps.org: a location has fewer than 2,048 characters
CHAIN_HOPS = 2  # the first hop that can be saved

# Links

# by which a reader comes to a page
_WAYS = frozenset({LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FRAME, LinkKind.IFRAME, LinkKind.REFRESH})
# by browsers, or warned of, where a secure page fetches them insecurely (Mixed Content, W3C)
_BLOCKED = PULLED_KINDS - {LinkKind.ICON}
_OTHER_VERDICTS = [  # each has a finding of its own
    VERDICTS.index(verdict) for verdict in (Verdict.SERVER_ERROR, Verdict.MISSING, Verdict.SUSPECT, Verdict.REFUSED)
]


def _links(site: AuditInput, mask: Mask) -> IssueColumns:
    """An issue for each of these links, by page."""
    rows = np.flatnonzero(mask)
    rows = rows[np.argsort(site.links.source[rows], kind="stable")]
    return IssueColumns(site.links.source[rows], site.links.target[rows], links=rows)


def _broken(*, parts: bool) -> Check:
    """Followed links of own pages to what is dead and has no verdict with a finding of its own."""

    def check(site: AuditInput) -> IssueColumns:
        broken = site.dead & ~np.isin(site.urls.verdict, _OTHER_VERDICTS)
        return _links(site, site.followed & broken[site.links.target] & (site.is_kind(PULLED_KINDS) == parts))

    return check


def _judged(verdict: Verdict) -> Check:
    """Followed links of own pages to what has this verdict."""
    code = VERDICTS.index(verdict)
    return lambda site: _links(site, site.followed & (site.urls.verdict[site.links.target] == code))


def _fragments(site: AuditInput, fragments: Sequence[tuple[int, str]]) -> IssueColumns:
    """Links of own pages whose target lacks the place that they name. fragments: as in Remarks."""
    rows = np.array([row for row, _ in fragments], np.int64)
    own = site.urls.own[site.links.source[rows]]
    words = [fragment for (_, fragment), is_own in zip(fragments, own.tolist(), strict=True) if is_own]
    rows = rows[own]
    return IssueColumns(site.links.source[rows], site.links.target[rows], links=rows, words=words)


def _worded(rows: list[tuple[int, str]]) -> IssueColumns:
    """Pages, each with words. rows: (place, words)."""
    return IssueColumns(np.array([place for place, _ in rows], np.int64), words=[words for _, words in rows])


def _bad_mails(site: AuditInput) -> IssueColumns:
    own = site.urls.own
    return _worded([(page, f"{text[:200]}: {problem}") for page, text, problem in site.remarks.mails if own[page]])


def _malformed(site: AuditInput) -> IssueColumns:
    return _worded([(page, text[:200]) for page, text in site.remarks.malformed if site.urls.own[page]])


def _nofollow(site: AuditInput) -> IssueColumns:
    """Own pages, with the number of their nofollow links to own pages."""
    own, links = site.urls.own, site.links
    inside = links.nofollow & own[links.source] & own[links.target] & site.is_kind(_WAYS)
    pages, counts = np.unique(links.source[inside], return_counts=True)
    return IssueColumns(pages, numbers=counts.astype(np.float64))


def _insecure(kinds: frozenset[LinkKind]) -> Check:
    """What secure pages fetch or send insecurely."""

    def check(site: AuditInput) -> IssueColumns:
        urls, links = site.urls, site.links
        secure = np.fromiter((text.startswith("https:") for text in urls.url), np.bool_, len(urls.url))
        downgrade = urls.own[links.source] & secure[links.source] & ~secure[links.target]
        return _links(site, downgrade & site.is_kind(kinds))

    return check


# Redirects


def _moved(site: AuditInput) -> IssueColumns:
    """Followed links of own pages to what has moved.

    Own URLs that redirect are in our hands, whatever the status; others are named when they moved for good. What leads
    to nothing is a broken link: there is no new place to name.
    """
    urls = site.urls
    moved = ((site.redirecting & urls.own) | (urls.verdict == VERDICTS.index(Verdict.MOVED))) & ~site.dead
    return _links(site, site.followed & moved[site.links.target])


def _redirects(which: Callable[[AuditInput], Mask]) -> Check:
    """Own URLs that redirect, of which this holds. which: bool[r], in the order of the redirects."""

    def check(site: AuditInput) -> IssueColumns:
        sources, chains = site.redirects.sources, site.chains
        rows = np.flatnonzero(site.urls.own[sources] & which(site))
        rows = rows[np.argsort(sources[rows])]
        return IssueColumns(sources[rows], chains.ends[rows], chains.hops[rows].astype(np.float64))

    return check


def _orphans(site: AuditInput) -> IssueColumns:
    """Own pages that no other page leads to, be it over redirects; known from a sitemap or an earlier run."""
    urls, links = site.urls, site.links
    end = site.ends[links.target]
    led = site.is_kind(_WAYS) & (end != links.source)
    reached = np.zeros(len(urls.url), np.bool_)
    reached[end[led]] = True
    reached[site.ends[np.flatnonzero(urls.start)]] = True
    pages = site.pages.place
    missing = urls.verdict[pages] == VERDICTS.index(Verdict.MISSING)
    return IssueColumns(pages[~reached[pages] & ~missing])


# Pages


def _pages(which: Callable[[AuditInput], Mask]) -> Check:
    """Pages of which this holds. which: bool[p]."""
    return lambda site: IssueColumns(site.pages.place[which(site)])


def _shown(which: Callable[[PageTraits], Mask]) -> Check:
    """The same among pages that want to be found by themselves."""
    return _pages(lambda site: site.shown & which(site.pages))


def _beyond(
    limit: float, values: Callable[[AuditInput], Numbers], among: Callable[[AuditInput], Mask] | None = None
) -> Check:
    """Pages whose value is greater than the limit. values: number[p]; among: bool[p]; None: all."""

    def check(site: AuditInput) -> IssueColumns:
        numbers = values(site)
        over = numbers > limit
        if among is not None:
            over &= among(site)
        return IssueColumns(site.pages.place[over], numbers=numbers[over].astype(np.float64), limit=limit)

    return check


def _is_shown(site: AuditInput) -> Mask:
    return site.shown


def _shared(keys: Callable[[PageTraits], NDArray[np.uint64]]) -> Check:
    """Pages that want to be found, whose key (not 0) others have too.

    related: the first of the others; number: how many have it.
    """

    def check(site: AuditInput) -> IssueColumns:
        key, place = keys(site.pages), site.pages.place
        rows = np.flatnonzero(site.shown & (key != 0))
        _, first, inverse, counts = np.unique(key[rows], return_index=True, return_inverse=True, return_counts=True)
        several = counts[inverse] > 1
        heads = rows[first[inverse]][several]
        rows, sizes = rows[several], counts[inverse][several]
        # the first page of a group has the second as its other
        order = np.lexsort((rows, heads))
        second = np.zeros(len(rows), np.int64)
        second[order[:-1]] = rows[order[1:]]
        others = np.where(heads == rows, second, heads)
        return IssueColumns(place[rows], place[others], sizes.astype(np.float64))

    return check


def _unread(*reasons: Reason) -> Check:
    """Pages that could not be read, or not whole: of these, nothing else that is found is sure to be all."""
    return lambda site: _worded([(place, why) for place, reason, why in site.remarks.unread if reason in reasons])


def _near(site: AuditInput) -> IssueColumns:
    """Pages of nearly one text, each with the first of its group; number: per cent of the text that they share."""
    shown = np.zeros(len(site.urls.url), np.bool_)
    shown[site.pages.place[site.shown]] = True
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


def _noted(code: str) -> Check:
    """Own pages with this note, as `document.static_checks` and `header_checks` take them."""

    def check(site: AuditInput) -> IssueColumns:
        notes = site.remarks.notes.get(code, NO_NOTES)
        rank = {words: place for place, words in enumerate(sorted(set(notes.words)))}
        ranks = np.fromiter(map(rank.__getitem__, notes.words), np.int64, len(notes.words))
        order = np.lexsort((ranks, notes.numbers, notes.place))
        issues = IssueColumns(notes.place, numbers=notes.numbers, words=list(notes.words))
        return issues.rows(order[(notes.place[order] >= 0) & site.urls.own[notes.place[order]]])

    return check


def _note(
    code: str, grade: Grade, category: Category, *texts: str, source: str = "", caused_by: CausedBy = CausedBy.PAGE
) -> Finding:
    """A finding made of notes. texts: title, why, remedy, detail of IssueKind."""
    title, why, remedy, *detail = texts
    kind = IssueKind(code, grade, category, title, why, remedy, "".join(detail), caused_by, source)
    return Finding(kind, _noted(code))


def _series(site: AuditInput) -> IssueColumns:
    rows = site.remarks.series
    places, left = (np.array([row[at] for row in rows], np.int64) for at in (0, 2))
    return IssueColumns(places, numbers=left.astype(np.float64), words=[pattern for _, pattern, _ in rows])


# What search engines are told

_ELSEWHERE, _BROKEN, _REDIRECT, _NOINDEX, _CHAIN = range(5)  # what is wrong with a canonical page; of several the first


def _canonical(problem: int) -> Check:
    """Pages that name another as canonical, with which this is wrong."""

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


def _listed(which: Callable[[AuditInput], Mask]) -> Check:
    """Own URLs in the sitemap of which this holds. which: bool[u]."""
    return lambda site: IssueColumns(np.flatnonzero(site.listed & which(site)))


def _canonical_elsewhere_listed(site: AuditInput) -> IssueColumns:
    rows = site.listed[site.pages.place] & site.elsewhere
    return IssueColumns(site.pages.place[rows], site.pages.canonical[rows])


def _not_listed(site: AuditInput) -> IssueColumns:
    """Pages that want to be found and are not in the sitemap, where there is one."""
    place = site.pages.place
    return IssueColumns(place[site.shown & ~site.listed[place]] if site.listed.any() else place[:0])


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
    """Translations that are pages of ours and do not name the page as theirs."""
    (source, target), count = site.translations, len(site.urls.url)
    fetched = np.zeros(count, np.bool_)
    fetched[site.pages.place] = True
    returned = np.isin(target * count + source, source * count + target)
    no_page = (site.dead | site.redirecting | site.noindex)[target]
    alone = fetched[target] & ~returned & ~no_page
    return IssueColumns(source[alone], target[alone])


def _without_themselves(site: AuditInput) -> IssueColumns:
    """Pages that want to be found, with translations of which none is the page itself."""
    source, target = site.translations
    places = np.setdiff1d(source, source[source == target])
    return IssueColumns(places[np.isin(places, site.pages.place[site.shown])])


def _translated_twice(site: AuditInput) -> IssueColumns:
    """Translations in a language that another translation of the page has too: the page itself, or else the first."""
    by_language: dict[tuple[int, str], set[int]] = {}
    for page, other, language in site.remarks.hreflangs:
        by_language.setdefault((page, language.lower()), set()).add(other)
    rows: dict[tuple[int, int], str] = {}
    for (page, language), others in sorted(by_language.items()):
        for other in sorted(others, key=lambda place: (place != page, place))[1:]:
            rows.setdefault((page, other), language)
    places, others_of = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
    return IssueColumns(places, others_of, words=list(rows.values()))


_E, _W, _N = Grade.ERROR, Grade.WARNING, Grade.NOTICE
_BY_TARGET, _BY_FRAGMENT, _BY_WORDS = CausedBy.TARGET, CausedBy.FRAGMENT, CausedBy.WORDS
_BY_HOST, _BY_GROUP = CausedBy.HOST, CausedBy.GROUP

# Codes never change their meaning. A new finding whose facts are loaded is a row here with its check, or an entry point
# of `periplus.findings` in an installed package.
# fmt: off
FINDINGS = (
    Finding(IssueKind("broken-link", _E, Category.LINKS, "Broken links", "A reader who follows the link finds nothing.",
        "Correct the link or take it away.", "{words}", _BY_TARGET), _broken(parts=False)),
    Finding(IssueKind("broken-resource", _E, Category.LINKS, "Broken parts of pages",
        "An image, style or script is missing from the page.", "Correct its address.", "{words}", _BY_TARGET),
        _broken(parts=True)),
    Finding(IssueKind("broken-fragment", _W, Category.LINKS, "Links to places that a page lacks",
        "The reader lands at the page's top.", "Name an id that is there.", "no #{words}", _BY_FRAGMENT),
        lambda site: _fragments(site, site.remarks.fragments)),
    Finding(IssueKind("missing-text", _W, Category.LINKS, "Links to words that a page lacks",
        "The reader lands at the page's top.", "Quote words that are there.", "no #{words}", _BY_FRAGMENT),
        lambda site: _fragments(site, site.remarks.texts)),
    Finding(IssueKind("bad-mailto", _E, Category.LINKS, "Mail links that cannot work",
        "Nobody can write to that address.", "Correct the address.", "{words}", _BY_WORDS), _bad_mails),
    Finding(IssueKind("malformed-link", _E, Category.LINKS, "Links that are no URL", "No browser can follow the link.",
        "Write a whole address.", "{words}", _BY_WORDS), _malformed),
    Finding(IssueKind("server-error", _W, Category.LINKS, "Links to failing servers",
        "The reader meets an error, perhaps a passing one.", "Watch it; replace it if it lasts.", "{words}",
        _BY_TARGET), _judged(Verdict.SERVER_ERROR)),
    Finding(IssueKind("soft-404", _W, Category.LINKS, "Links to pages that look missing",
        "The server says 200 but shows an error page.", "Look at it; correct the link.", "{words}", _BY_TARGET),
        _judged(Verdict.MISSING)),
    Finding(IssueKind("suspect-link", _N, Category.LINKS, "Links in doubt",
        "It failed once, was cut short, or its certificate fails.", "Check again, or look at it in a browser.",
        "{words}", _BY_TARGET), _judged(Verdict.SUSPECT)),
    Finding(IssueKind("refused-link", _N, Category.LINKS, "Links refused to us",
        "The server turns programs away; readers may get through.", "Look at it in a browser.", "{words}", _BY_TARGET),
        _judged(Verdict.REFUSED)),
    Finding(IssueKind("nofollow-inside", _N, Category.LINKS, "Own pages linked with nofollow",
        "Search engines may not follow it.", "Take nofollow away.", "{number:.0f} links"), _nofollow),
    Finding(IssueKind("dead-start", _E, Category.LINKS, "Starts that are not there",
        "What you gave to be read cannot be read.", "Correct the address."),
        lambda site: IssueColumns(np.flatnonzero(site.urls.start & site.dead))),
    Finding(IssueKind("link-to-redirect", _N, Category.REDIRECTS, "Links to what has moved",
        "Each click takes a detour that may end one day.", "Link to the new place.", "leads to {also}", _BY_TARGET),
        _moved),
    Finding(IssueKind("redirect-chain", _W, Category.REDIRECTS, "Chains of redirects",
        "Each hop costs time; some programs give up.", "Redirect at once.", "{number:.0f} hops to {also}"),
        _redirects(lambda site: ~site.chains.loops & (site.chains.hops >= CHAIN_HOPS))),
    Finding(IssueKind("redirect-loop", _E, Category.REDIRECTS, "Redirects in a circle", "Nobody ever arrives.",
        "Let one of them answer.", "leads back to {also}"), _redirects(lambda site: site.chains.loops)),
    Finding(IssueKind("redirect-broken", _E, Category.REDIRECTS, "Redirects to nothing",
        "Whoever follows finds nothing.", "Redirect to a page that is there.", "ends at {also}", _BY_TARGET),
        _redirects(lambda site: ~site.chains.loops & site.dead[site.chains.ends])),
    Finding(IssueKind("title-missing", _E, Category.TITLES, "Pages without a title",
        "Search results and tabs have no name for it.", "Give it a title."), _shown(lambda pages: pages.title == 0)),
    Finding(IssueKind("title-duplicate", _W, Category.TITLES, "Pages with one title", "Readers cannot tell them apart.",
        "Name what is special to each.", "{number:.0f} pages share it", _BY_GROUP), _shared(lambda pages: pages.title)),
    Finding(IssueKind("title-long", _N, Category.TITLES, "Long titles", "Search results cut them.", "Say it shorter.",
        "{number:.0f} characters, more than {limit:.0f}"),
        _beyond(TITLE_CHARS, lambda site: site.pages.title_chars, _is_shown)),
    Finding(IssueKind("description-missing", _N, Category.TITLES, "Pages without a description",
        "Search engines choose some text of the page.", "Describe it in a sentence."),
        _shown(lambda pages: pages.description == 0)),
    Finding(IssueKind("description-duplicate", _N, Category.TITLES, "Pages with one description",
        "It describes none of them.", "Describe each.", "{number:.0f} pages share it", _BY_GROUP),
        _shared(lambda pages: pages.description)),
    Finding(IssueKind("description-long", _N, Category.TITLES, "Long descriptions", "Search results cut them.",
        "Say it shorter.", "{number:.0f} characters, more than {limit:.0f}"),
        _beyond(DESCRIPTION_CHARS, lambda site: site.pages.description_chars, _is_shown)),
    Finding(IssueKind("h1-missing", _W, Category.TITLES, "Pages without a main heading",
        "Readers and screen readers find no beginning.", "Give it one h1."), _shown(lambda pages: pages.h1s == 0)),
    Finding(IssueKind("h1-several", _N, Category.TITLES, "Pages with several main headings",
        "It is not clear what the page is about.", "Keep one h1.", "{number:.0f} of them"),
        _beyond(1, lambda site: site.pages.h1s, _is_shown)),
    Finding(IssueKind("canonical-elsewhere", _N, Category.INDEXING, "Pages that name another as canonical",
        "They are left out of search.", "Check that it is meant.", "names {also}"), _canonical(_ELSEWHERE)),
    Finding(IssueKind("canonical-broken", _E, Category.INDEXING, "Canonical pages that are not there",
        "Search engines are sent to nothing.", "Name a page that is there.", "names {also}", _BY_TARGET),
        _canonical(_BROKEN)),
    Finding(IssueKind("canonical-redirect", _W, Category.INDEXING, "Canonical pages that redirect",
        "Two signals disagree.", "Name the redirect's end.", "names {also}", _BY_TARGET), _canonical(_REDIRECT)),
    Finding(IssueKind("canonical-noindex", _E, Category.INDEXING, "Canonical pages that ask not to be indexed",
        "Both may vanish from search.", "Decide for one.", "names {also}", _BY_TARGET), _canonical(_NOINDEX)),
    Finding(IssueKind("canonical-chain", _W, Category.INDEXING, "Canonical pages that name a third",
        "The signal is likely ignored.", "Name the last of them.", "names {also}"), _canonical(_CHAIN)),
    Finding(IssueKind("robots-sitemap-conflict", _W, Category.INDEXING, "In the sitemap, yet disallowed by robots.txt",
        "Offered and forbidden at once.", "Decide for one."),
        _listed(lambda site: site.urls.reason == REASONS.index(Reason.ROBOTS))),
    Finding(IssueKind("noindex-in-sitemap", _W, Category.INDEXING, "In the sitemap, yet not to be indexed",
        "Offered and forbidden at once.", "Decide for one."), _listed(lambda site: site.noindex)),
    Finding(IssueKind("redirect-in-sitemap", _N, Category.INDEXING, "In the sitemap, yet redirected",
        "Search engines are sent on a detour.", "List the page itself."), _listed(lambda site: site.redirecting)),
    Finding(IssueKind("canonical-in-sitemap", _N, Category.INDEXING, "In the sitemap, yet not canonical",
        "Two signals disagree.", "List the canonical page.", "names {also}"), _canonical_elsewhere_listed),
    Finding(IssueKind("broken-in-sitemap", _E, Category.INDEXING, "In the sitemap, yet not there",
        "Search engines are sent to nothing.", "Take it off the sitemap."), _listed(lambda site: site.dead)),
    Finding(IssueKind("missing-from-sitemap", _N, Category.INDEXING, "Not in the sitemap",
        "Search engines find it late.", "Add it to the sitemap."), _not_listed),
    Finding(IssueKind("language-missing", _W, Category.LANGUAGES, "Pages that do not say their language",
        "Screen readers may read it wrongly.", "Write lang on html."), _shown(lambda pages: ~pages.has_language)),
    Finding(IssueKind("hreflang-no-return", _W, Category.LANGUAGES, "Translations that do not link back",
        "Search engines ignore the link.", "Link back.", "to {also}"), _translations_without_return),
    Finding(IssueKind("hreflang-bad-language", _W, Category.LANGUAGES, "Translations in no known language",
        "Search engines ignore the link.", "Write a code as en or pt-br.", "{words}", _BY_WORDS), _bad_languages),
    Finding(IssueKind("hreflang-no-self", _N, Category.LANGUAGES, "Pages that are not among their translations",
        "Search engines may ignore the others.", "Name the page itself too."), _without_themselves),
    Finding(IssueKind("hreflang-twice", _W, Category.LANGUAGES, "Two translations in one language",
        "Search engines cannot choose between them.", "Name one page a language.", "{words}: {also} too"),
        _translated_twice),
    Finding(IssueKind("hreflang-broken", _W, Category.LANGUAGES, "Translations that are no page",
        "The link leads nowhere or elsewhere.", "Name the page itself.", "to {also}", _BY_TARGET),
        _broken_translations),
    Finding(IssueKind("charset-mismatch", _W, Category.LANGUAGES, "Pages that declare a wrong encoding",
        "Letters may show wrong.", "Write UTF-8, and say so."), _pages(lambda site: site.pages.charset_mismatch)),
    Finding(IssueKind("unreadable", _W, Category.CONTENT, "Pages that cannot be read", "Nobody finds what they say.",
        "Repair the file, or send it as what it is.", "{words}"), _unread(Reason.UNREADABLE)),
    Finding(IssueKind("needs-script", _W, Category.CONTENT, "Pages empty until a script fills them",
        "Who runs no scripts sees nothing.", "Send the text with the page.", "{words}"), _unread(Reason.NEEDS_SCRIPT)),
    Finding(IssueKind("partly-read", _N, Category.CONTENT, "Pages read in part",
        "What stands behind the bound is not checked.", "Divide the page, or raise the limit.", "{words}"),
        _unread(Reason.TRUNCATED, Reason.PARTIAL, Reason.NOINDEX)),
    Finding(IssueKind("duplicate", _W, Category.CONTENT, "Pages of one text", "They compete; readers wonder.",
        "Keep one, or name it canonical.", "{number:.0f} pages have it", _BY_GROUP), _shared(lambda pages: pages.text)),
    Finding(IssueKind("near-duplicate", _N, Category.CONTENT, "Pages of nearly one text", "They compete in search.",
        "Join them, or tell them apart.", "{number:.0f} % alike", _BY_TARGET), _near),
    Finding(IssueKind("image-without-alt", _W, Category.CONTENT, "Images without a text",
        "Who cannot see them learns nothing.", "Write alt, empty for ornaments.", "images: {number:.0f}"),
        _beyond(0, lambda site: site.pages.images_without_alt, lambda site: ~site.pages.noindex)),
    Finding(IssueKind("mixed-content", _W, Category.SECURITY, "Insecure parts of secure pages",
        "Browsers block or warn.", "Fetch it by https.", "", _BY_TARGET), _insecure(_BLOCKED)),
    Finding(IssueKind("insecure-form", _E, Category.SECURITY, "Forms that send without encryption",
        "Others can read what is typed.", "Send it by https.", "", _BY_TARGET), _insecure(frozenset({LinkKind.FORM}))),
    Finding(IssueKind("slow-page", _W, Category.SPEED, "Slow pages", "Readers leave.",
        "Find out what the server waits for.", "{number:.1f} s, more than {limit:.1f}"),
        _beyond(SLOW_S, lambda site: site.pages.took_s)),
    Finding(IssueKind("heavy-page", _N, Category.SPEED, "Heavy pages", "Slow and dear on a telephone.",
        "Make images smaller.", "{number:,.0f} bytes, more than {limit:,.0f}"),
        _beyond(HEAVY_BYTES, lambda site: site.pages.weight_bytes)),
    Finding(IssueKind("deep-page", _N, Category.STRUCTURE, "Pages many clicks away", "Few readers get there.",
        "Link to it from nearer.", "{number:.0f} clicks, more than {limit:.0f}"),
        _beyond(DEEP_CLICKS, lambda site: site.urls.depth[site.pages.place])),
    Finding(IssueKind("orphan", _W, Category.STRUCTURE, "Pages that no link leads to", "Readers cannot find it.",
        "Link to it, or take it away."), _orphans),
    Finding(IssueKind("url-too-long", _N, Category.STRUCTURE, "Long URLs",
        "Sitemaps and some programs cannot take them.", "Shorten it.",
        "{number:.0f} characters, more than {limit:.0f}"), _long_urls),
    Finding(IssueKind("endless-series", _N, Category.STRUCTURE, "Series of addresses that look endless",
        "What they hold was not read to its end.", "See whether a page hides among them: crawl with --trap-window 0.",
        "{number:,.0f} left unread as {words}"), _series),
    _note("heading-skipped", _W, Category.ACCESS, "Headings that leave out a level",
        "Who goes from heading to heading thinks a part is missing.", "Write the level that follows: h2 below h1.",
        "{words}", source="WCAG 2.2, 1.3.1; technique G141"),
    _note("heading-empty", _N, Category.ACCESS, "Headings without words", "A screen reader announces nothing.",
        "Write what the part is about, or take the heading away.", "headings: {number:.0f}", source="WCAG 2.2, 2.4.6"),
    _note("link-without-name", _W, Category.ACCESS, "Links without words",
        "A screen reader can only say “link”.", "Give it words, or its image an alt.", "links: {number:.0f}",
        source="WCAG 2.2, 2.4.4 and 4.1.2"),
    _note("button-without-name", _W, Category.ACCESS, "Buttons without words",
        "Nobody who does not see it learns what it does.", "Give it words, or an aria-label.", "buttons: {number:.0f}",
        source="WCAG 2.2, 4.1.2"),
    _note("field-without-label", _W, Category.ACCESS, "Fields without a label",
        "Who does not see the field does not learn what to write there.", "Give it a label.", "fields: {number:.0f}",
        source="WCAG 2.2, 1.3.1 and 4.1.2"),
    _note("frame-without-title", _W, Category.ACCESS, "Frames without a title",
        "A screen reader cannot say what is in it.", "Write title on the iframe.", "frames: {number:.0f}",
        source="WCAG 2.2, 4.1.2; technique H64"),
    _note("language-bad", _W, Category.ACCESS, "Pages in a language that there is not",
        "Screen readers read it with a wrong voice.", "Write a code as en or pt-BR.", "lang={words}",
        source="WCAG 2.2, 3.1.1; BCP 47", caused_by=_BY_WORDS),
    _note("main-missing", _N, Category.ACCESS, "Pages without a main part",
        "Who uses keys must go through the navigation of each page.", "Put the content into main.",
        source="WAI-ARIA 1.2, main; WCAG 2.2, 2.4.1"),
    _note("table-without-heads", _N, Category.ACCESS, "Tables without heads",
        "Read cell by cell, nobody knows what a value means.", "Write th for the heads.", "tables: {number:.0f}",
        source="WCAG 2.2, 1.3.1; technique H51"),
    _note("focus-order", _N, Category.ACCESS, "Pages with an order of focus of their own",
        "The tab key jumps about.", "Write tabindex=0, and place it where it belongs.", "elements: {number:.0f}",
        source="WCAG 2.2, 2.4.3"),
    _note("reloads-itself", _W, Category.ACCESS, "Pages that reload by themselves",
        "Slow readers lose their place.", "Let the reader choose when.", "after {number:.0f} s",
        source="WCAG 2.2, 2.2.1; failure F41"),
    _note("zoom-forbidden", _W, Category.ACCESS, "Pages that cannot be enlarged",
        "Who sees badly cannot read them on a telephone.", "Take user-scalable and maximum-scale away.", "{words}",
        source="WCAG 2.2, 1.4.4", caused_by=_BY_WORDS),
    _note("viewport-missing", _N, Category.ACCESS, "Pages not made for telephones",
        "A telephone shows it as wide as a desk's screen, in tiny letters.",
        'Write <meta name="viewport" content="width=device-width, initial-scale=1">.', source="CSS Viewport, 3"),
    _note("doctype-missing", _N, Category.CONTENT, "Pages without a doctype",
        "Browsers show it as those of 1998 did.", "Begin with <!doctype html>.", source="HTML Standard, 13.1.1"),
    _note("preview-incomplete", _N, Category.CONTENT, "Incomplete previews for sharing",
        "Who shares the page shows a card without its picture or name.", "Write the Open Graph tags that lack.",
        "lacks {words}", source="The Open Graph protocol, basic metadata", caused_by=_BY_WORDS),
    _note("structured-syntax", _W, Category.INDEXING, "JSON-LD that cannot be read",
        "Search engines leave out what it describes.", "Correct its JSON.", "{words}",
        source="JSON-LD 1.1, 7; RFC 8259", caused_by=_BY_WORDS),
    _note("structured-incomplete", _W, Category.INDEXING, "Structured data without what search engines ask for",
        "Results show no more than a title.", "Add the properties.", "{words}",
        source="Google Search Central, structured data", caused_by=_BY_WORDS),
    _note("structured-sparse", _N, Category.INDEXING, "Structured data without what search engines recommend",
        "Results show less than they could.", "Add the properties that the page has.", "{words}",
        source="Google Search Central, structured data", caused_by=_BY_WORDS),
    _note("structured-value", _W, Category.INDEXING, "Structured data with values of a wrong form",
        "Search engines do not read them.", "Write 2026-05-03 for a date, 1200.50 for a number, PT1H for a duration.",
        "{words}", source="schema.org; ISO 8601", caused_by=_BY_WORDS),
    _note("page-insecure", _W, Category.SECURITY, "Pages sent without encryption",
        "Anybody on the way can read and change them; browsers warn.", "Serve them by https, and redirect there.",
        source="RFC 9110, 17.1 and 4.2.2", caused_by=_BY_HOST),
    _note("certificate-fault", _E, Category.SECURITY, "Certificates that browsers do not trust",
        "Readers see a warning in place of the page.", "Get one for this name, and send those between it and its root.",
        "{words}", source="RFC 9110, 4.3.4; RFC 9525", caused_by=_BY_WORDS),
    _note("certificate-ends", _W, Category.SECURITY, "Certificates that end soon",
        "From then on readers see a warning in place of the page.", "Renew it; let a program do so.",
        "{words}: in {number:.0f} days", source="RFC 5280, 4.1.2.5"),
    _note("tls-old", _W, Category.SECURITY, "Servers that agree to TLS 1.0 or 1.1",
        "Who stands between can make old browsers use what is broken.", "Allow TLS 1.2 and 1.3 alone.", "{words}",
        source="RFC 8996", caused_by=_BY_WORDS),
    _note("hsts-missing", _N, Category.SECURITY, "Encryption that is not insisted on",
        "A first visit by http can be led astray.", "Send Strict-Transport-Security: max-age=31536000.", "{words}",
        source="RFC 6797, 6.1 and 7.2", caused_by=_BY_WORDS),
    _note("csp-missing", _N, Category.SECURITY, "Pages without a content security policy",
        "Where a script is smuggled in, nothing stops it.", "Send Content-Security-Policy.", "{words}",
        source="Content Security Policy Level 3, 3.1", caused_by=_BY_WORDS),
    _note("csp-weak", _N, Category.SECURITY, "Content security policies that let any script in",
        "The policy stops no script that is smuggled in.", "Name sources, nonces or digests of scripts.", "{words}",
        source="Content Security Policy Level 3, 8.2", caused_by=_BY_WORDS),
    _note("framing-allowed", _N, Category.SECURITY, "Pages that any site may frame",
        "Another site can lay its own buttons over yours.", "Send Content-Security-Policy: frame-ancestors 'self'.",
        "{words}", source="Content Security Policy Level 3, 6.4.2; RFC 7034", caused_by=_BY_WORDS),
    _note("sniffing-allowed", _N, Category.SECURITY, "Types that browsers may guess",
        "A file that somebody uploaded may run as a script.", "Send X-Content-Type-Options: nosniff.", "{words}",
        source="Fetch Standard, 3.6", caused_by=_BY_WORDS),
    _note("referrer-leak", _N, Category.SECURITY, "Addresses told to other sites",
        "Each site linked to learns which page a reader came from.", "Send strict-origin-when-cross-origin.", "{words}",
        source="Referrer Policy, 3", caused_by=_BY_WORDS),
    _note("permissions-missing", _N, Category.SECURITY, "Devices open to embedded pages",
        "A frame may ask for camera, microphone or place.", "Send Permissions-Policy for what nobody needs.", "{words}",
        source="Permissions Policy, 5.1", caused_by=_BY_WORDS),
    _note("cookie-insecure", _W, Category.SECURITY, "Cookies that travel without encryption",
        "Anybody on the way can take over the visit.", "Set them with Secure.", "{words}",
        source="RFC 6265, 4.1.2.5 and 8.3", caused_by=_BY_WORDS),
    _note("cookie-open", _N, Category.SECURITY, "Cookies open to scripts or other sites",
        "A smuggled script reads them; other sites have them sent along.", "Set them with HttpOnly and SameSite.",
        "{words}", source="RFC 6265, 4.1.2.6; RFC 6265bis, 4.1.2.7", caused_by=_BY_WORDS),
    _note("version-shown", _N, Category.SECURITY, "Programs that tell their version",
        "Whoever looks for a known hole finds the server by it.", "Send the name alone.", "{words}",
        source="RFC 9110, 10.2.4 and 17.12", caused_by=_BY_WORDS),
    _note("slow-paint", _W, Category.SPEED, "Pages whose largest part is shown late",
        "Readers wait, or leave; a network comes on top of it.",
        "Make scripts smaller, or send the text with the page.",
        "{number:.1f} s in a browser, more than 2.5: {words}", source="web.dev, Largest Contentful Paint: 2.5 and 4 s"),
    _note("layout-shift", _W, Category.SPEED, "Pages that move while they are read",
        "Readers lose the line, or press another button.", "Keep room for what comes late.",
        "{number:.2f}, more than 0.1: {words}", source="web.dev, Cumulative Layout Shift: 0.1 and 0.25"),
    _note("not-compressed", _W, Category.SPEED, "Pages sent uncompressed", "They take several times as long.",
        "Let the server compress text: gzip, brotli or zstd.", "{number:,.0f} bytes", source="RFC 9110, 8.4",
        caused_by=_BY_HOST),
    _note("not-cacheable", _N, Category.SPEED, "Pages that are always sent anew",
        "Each visit fetches all of it, changed or not.", "Send ETag or Last-Modified, or Cache-Control.",
        source="RFC 9110, 8.8; RFC 9111, 4.3", caused_by=_BY_HOST),
    _note("part-short-cache", _N, Category.SPEED, "Parts kept for a short time",
        "Images, styles and scripts are fetched again on each visit.",
        "Send Cache-Control: max-age=31536000, and another name for another version.", "kept for {number:,.0f} s",
        source="RFC 9111, 5.2.2.1; RFC 8246"),
    _note("model-crawlers", _N, Category.INDEXING, "Crawlers of language models that nobody decided on",
        "Your texts may train and feed models, or stay unknown to them, by chance.",
        "Name them in robots.txt, whether they may or not.", "let in: {words}", source="RFC 9309, 2.2.1"),
)
# fmt: on


@cache
def findings() -> tuple[Finding, ...]:
    """FINDINGS, then those of installed packages, with codes that none of ours has."""
    codes = {finding.kind.code for finding in FINDINGS}
    added = (
        replace(finding, check=_harmless(guarded(package, finding.check)))
        for package, finding in loaded("findings", Finding).values()
        if finding.kind.code not in codes
    )
    return (*FINDINGS, *added)


def _harmless(check: Check) -> Check:
    """The check of a package: where it fails there is a warning, and no issue."""

    def checked(site: AuditInput) -> IssueColumns:
        try:
            return check(site)
        except ExtensionError as error:
            log.warning("%s", error)
            return IssueColumns(np.zeros(0, np.int64))

    return checked


@cache
def issue_kinds() -> Mapping[str, IssueKind]:
    """Every kind by its code, in the order of lists."""
    return {finding.kind.code: finding.kind for finding in findings()}
