"""The input of an audit, as columns that scale to a million pages and ten million links.

A URL's *place* is its index in AuditUrls; every other column refers to URLs by place, so that checks are array
operations.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import xxhash

from periplus.analyse.duplicates import NearGroup
from periplus.analyse.sizes import KINDS
from periplus.analyse.verdicts import ChainEnds, RedirectColumns, chain_ends
from periplus.model.arrays import Floats, Ints, Ints32, Mask, Unsigned8, Unsigned64
from periplus.model.audit import VERDICTS, Verdict
from periplus.model.graph import REASONS
from periplus.model.page import LinkKind, Position
from periplus.model.visit import BROKEN_REASONS, Reason
from periplus.model.web import Url
from periplus.urls.url_patterns import SESSION_NAMES
from periplus.values import frozen

Numbers = Ints32 | Ints | Floats
POSITIONS = tuple(Position)
"""A position is stored as its index here."""
# Kinds that have checks of their own or are not meant to be followed: a form's target expects input, a citation is a
# name.
UNFOLLOWED_KINDS = frozenset(
    {LinkKind.REDIRECT, LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.FORM, LinkKind.CITE, LinkKind.SITEMAP}
)
_IS_FAILED = np.array([reason in BROKEN_REASONS for reason in REASONS])
_IS_DEAD = np.array([verdict in (Verdict.BROKEN, Verdict.SERVER_ERROR, Verdict.MISSING) for verdict in VERDICTS])
_SESSION = re.compile(rf"[?&;]({'|'.join(map(re.escape, SESSION_NAMES))})=", re.IGNORECASE)
LEAST_PAGES_WITH_ISSUE = 3  # pages with an issue: fewer may be mistakes in single pages


@frozen
class AuditUrls:
    """u URLs: the site's own, and all link targets. In ascending order of text, so that lists need no sorting."""

    url: Sequence[Url]
    reason: Unsigned8  # u: index in model.graph.REASONS
    verdict: Unsigned8  # u: index in model.audit.VERDICTS; UNCHECKED if not judged
    depth: Ints32  # u: clicks from the start; -1 if not reachable by links
    own: Mask  # u: of the site under audit
    start: Mask  # u: the home page, which needs no link
    in_sitemap: Mask  # u


@frozen
class PageTraits:
    """p own HTML pages that were fetched with status 200: one value per page."""

    place: Ints  # p, ascending
    title: Unsigned64  # from `text_keys`; 0: none
    title_chars: Ints32
    description: Unsigned64  # from `text_keys`; 0: none
    description_chars: Ints32
    # equal for pages with equal text, ignoring diacritics and case; 0 if the text is unique
    text: Unsigned64
    h1s: Ints32  # main headings; -1: unknown
    canonical: Ints  # place of the canonical URL; -1: none
    noindex: Mask
    has_language: Mask
    # header and document declare different encodings, or the text contradicts the declaration
    charset_mismatch: Mask
    took_s: Floats  # from sending the request to the last byte
    weight_bytes: Ints  # including its resources: see sizes.pulled_bytes
    images_without_alt: Ints32  # -1: unknown


@frozen
class LinkFacts:
    """m links, in any order; one row per (source, target, kind, position, nofollow)."""

    source: Ints
    target: Ints
    kind: Unsigned8  # index in analyse.sizes.KINDS
    position: Unsigned8  # index in POSITIONS
    nofollow: Mask
    linked: Ints  # the URL as written: the target, or an alias of it


class NoteColumns(NamedTuple):
    """k notes of one kind about the markup or headers of pages, in any order."""

    place: Ints  # k
    numbers: Floats  # k
    words: Sequence[str]  # k


NO_NOTES = NoteColumns(np.zeros(0, np.int64), np.zeros(0), ())


@frozen
class Remarks:
    """Rare facts, as rows of tuples in any order."""

    fragments: Sequence[tuple[int, str]] = ()  # (index of a link, fragment missing on its target)
    texts: Sequence[tuple[int, str]] = ()  # (index of a link, fragment with a `:~:text=` missing on its target)
    mails: Sequence[tuple[int, str, str]] = ()  # (place of the page, mailto: as written, problem)
    malformed: Sequence[tuple[int, str]] = ()  # (place of the page, the invalid URL as written)
    # (place of the page, place of the translation, its language as written)
    hreflangs: Sequence[tuple[int, int, str]] = ()
    near: Sequence[NearGroup] = ()  # indices are places
    copies: Sequence[tuple[int, int]] = ()  # (place of a page, place of a copy with the same bytes)
    # (place of an own page that was not read, or only in part; its reason; details)
    unread: Sequence[tuple[int, Reason, str]] = ()
    # (place of the first skipped URL of an endless series, the pattern, number of skipped URLs)
    series: Sequence[tuple[int, str, int]] = ()
    notes: Mapping[str, NoteColumns] = field(default_factory=dict)  # by code of the finding


@dataclass(frozen=True)
class AuditInput:
    """The input of all checks; values shared by several checks are computed once."""

    urls: AuditUrls
    pages: PageTraits
    links: LinkFacts
    redirects: RedirectColumns  # sources and targets are places
    remarks: Remarks = field(default_factory=Remarks)

    @cached_property
    def dead(self) -> Mask:
        """bool[u]: dead, by verdict; unjudged URLs by the result of the crawl."""
        unchecked = self.urls.verdict == VERDICTS.index(Verdict.UNCHECKED)
        dead: Mask = _IS_DEAD[self.urls.verdict] | (unchecked & _IS_FAILED[self.urls.reason])
        return dead

    @cached_property
    def redirecting(self) -> Mask:
        """bool[u]: redirects."""
        redirecting: Mask = self.urls.reason == REASONS.index(Reason.REDIRECT)
        return redirecting

    @cached_property
    def chains(self) -> ChainEnds:
        """The end of each redirect chain, in the order of the redirects."""
        return chain_ends(self.redirects)

    @cached_property
    def ends(self) -> Ints:
        """int64[u]: the end of each URL's redirect chain, or the URL itself."""
        ends = np.arange(len(self.urls.url))
        ends[self.redirects.sources] = self.chains.ends
        return ends

    @cached_property
    def in_sitemap(self) -> Mask:
        """bool[u]: own URLs in the sitemap."""
        return self.urls.in_sitemap & self.urls.own

    @cached_property
    def noindex(self) -> Mask:
        """bool[u]: own pages with noindex."""
        noindex = np.zeros(len(self.urls.url), np.bool_)
        noindex[self.pages.place] = self.pages.noindex
        return noindex

    @cached_property
    def elsewhere(self) -> Mask:
        """bool[p]: has another page as canonical URL."""
        elsewhere: Mask = (self.pages.canonical >= 0) & (self.pages.canonical != self.pages.place)
        return elsewhere

    @cached_property
    def is_indexable(self) -> Mask:
        """bool[p]: indexable, that is, meant to be found by itself."""
        missing = self.urls.verdict[self.pages.place] == VERDICTS.index(Verdict.MISSING)
        shown: Mask = ~self.pages.noindex & ~missing & ~self.elsewhere
        return shown

    @cached_property
    def is_followed(self) -> Mask:
        """bool[m]: links of own pages that are to be followed, or resources."""
        return self.urls.own[self.links.source] & ~self.is_kind(UNFOLLOWED_KINDS)

    @cached_property
    def translations(self) -> tuple[Ints, Ints]:
        """(pages, their hreflang translations), each pair once, regardless of languages."""
        count = max(len(self.urls.url), 1)
        pairs = [source * count + target for source, target, _ in self.remarks.hreflangs]
        distinct = np.unique(np.array(pairs, np.int64))
        return distinct // count, distinct % count

    def is_kind(self, kinds: frozenset[LinkKind]) -> Mask:
        """bool[m]: links of these kinds."""
        return np.array([kind in kinds for kind in KINDS])[self.links.kind]


def text_keys(texts: Iterable[str]) -> Unsigned64:
    """A hash per text, ignoring case and white space; 0 for empty texts."""
    digest = xxhash.xxh3_64_intdigest
    return np.array(
        [
            digest(" ".join(words).encode("utf-8", "surrogatepass")) if (words := text.lower().split()) else 0
            for text in texts
        ],
        np.uint64,
    )


@frozen
class IssueColumns:
    """k issues of one kind as columns; `issues.issues` puts them into words."""

    subjects: Ints  # k: pages to mend
    related: Ints | None = None  # k: what the issue is about besides; -1: nothing
    numbers: Floats | None = None  # k: for the detail
    links: Ints | None = None  # k: indices in LinkFacts
    words: list[str] | None = None  # k: for the detail
    limit: float = 0.0  # that the numbers exceed

    def __len__(self) -> int:
        return len(self.subjects)

    def rows(self, rows: Ints) -> IssueColumns:
        """Some of the issues, in the order given."""
        return IssueColumns(
            self.subjects[rows],
            self.related[rows] if self.related is not None else None,
            self.numbers[rows] if self.numbers is not None else None,
            self.links[rows] if self.links is not None else None,
            [self.words[row] for row in rows.tolist()] if self.words is not None else None,
            self.limit,
        )


def folder_causes(subjects: Ints, pages: Ints, url: Sequence[Url]) -> list[str]:
    """k texts: the highest folder of which at least half of the pages have the issue; empty: there is none.

    subjects: k places of pages with the issue; pages: places of all pages, ascending. Pages of a folder are most often
    made by one template, so that one repair mends them all. O(k log k).
    """
    subject_places = np.unique(subjects)
    causes: dict[int, str] = {}
    row = 0
    without_cause = ""  # a folder in which the page before has no cause: its other pages have none either
    while row < len(subject_places):
        end, page = row + 1, url[subject_places[row]]
        parent = page.partition("?")[0].rpartition("/")[0]
        for folder in _folders(page) if parent != without_cause else ():
            # URLs are sorted: those below a folder stand together, and "0" is the next character after "/"
            span = (bisect_left(url, folder), bisect_left(url, folder[:-1] + "0"))
            (first, last), (begin, of_all) = (np.searchsorted(places, span) for places in (subject_places, pages))
            if last - row >= LEAST_PAGES_WITH_ISSUE and 2 * (last - first) >= of_all - begin:
                end = last
                causes |= dict.fromkeys(subject_places[row:end].tolist(), f"pages below {folder}")
                break
        else:
            without_cause = parent
        row = end
    return [causes.get(page, "") for page in subjects.tolist()]


def session_causes(subjects: Ints, url: Sequence[Url]) -> list[str]:
    """k texts: the session parameter in each URL; empty: there is none."""
    matches = (_SESSION.search(url[page]) for page in subjects.tolist())
    return [f"URLs with the session parameter {match[1]}" if match else "" for match in matches]


def _folders(url: Url) -> list[str]:
    """The folders of a URL's path, the root first, each with a slash at its end."""
    steps = url.partition("?")[0].split("/")[:-1]
    return list(accumulate(f"{step}/" for step in steps))[2:]
