"""What must be known of a site before it can be audited? Columns, fit for a million pages and ten million links.

A URL's *place* is its index in AuditUrls; every other column names URLs by place, so that checks are array work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import xxhash
from numpy.typing import NDArray

from periplus.analyse.duplicates import NearGroup
from periplus.analyse.verdicts import RedirectColumns
from periplus.model.audit import VERDICTS, Verdict
from periplus.model.graph import REASONS
from periplus.model.page import Position
from periplus.model.visit import STATE_OF, Reason, State
from periplus.model.web import Url

Places = NDArray[np.int64]
Mask = NDArray[np.bool_]
_IS_INVALID = np.array(
    [STATE_OF[reason] is State.INVALID and reason not in (Reason.BUG, Reason.PRIVATE) for reason in REASONS]
)
_IS_DEAD = np.array([verdict in (Verdict.BROKEN, Verdict.SERVER_ERROR, Verdict.MISSING) for verdict in VERDICTS])
POSITIONS = tuple(Position)
"""A position's place here stands for it in arrays."""


@dataclass(frozen=True, slots=True)
class AuditUrls:
    """u URLs: the site's own, and all that these link to. In ascending order of text, so that lists need no sorting."""

    url: Sequence[Url]
    reason: NDArray[np.uint8]  # u: place in model.graph.REASONS
    verdict: NDArray[np.uint8]  # u: place in model.audit.VERDICTS; UNCHECKED where nobody judged
    depth: NDArray[np.int32]  # u: clicks from the start; -1 where no link leads
    own: NDArray[np.bool_]  # u: of the site under audit
    start: NDArray[np.bool_]  # u: the home page, which no link need lead to
    in_sitemap: NDArray[np.bool_]  # u


@dataclass(frozen=True, slots=True)
class PageTraits:
    """p own HTML pages that were fetched and answered 200: one value a page."""

    place: Places  # p, ascending
    title: NDArray[np.uint64]  # from `text_keys`; 0: none
    title_chars: NDArray[np.int32]
    description: NDArray[np.uint64]  # from `text_keys`; 0: none
    description_chars: NDArray[np.int32]
    # pages with the same number say the same, diacritics and case apart; 0: says what no other page does
    text: NDArray[np.uint64]
    h1s: NDArray[np.int32]  # main headings; -1: not known
    canonical: Places  # the place that the page names; -1: none
    noindex: NDArray[np.bool_]
    has_language: NDArray[np.bool_]
    # header and document name different encodings, or the text contradicts what they name
    charset_mismatch: NDArray[np.bool_]
    took_s: NDArray[np.float64]  # from the request sent to the last byte read
    weight_bytes: NDArray[np.int64]  # with all it pulls in: rows of sizes.PageWeights.pulled, summed
    images_without_alt: NDArray[np.int32]  # -1: not known


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """m links, in any order; a row is one (source, target, kind, position, nofollow)."""

    source: Places
    target: Places
    kind: NDArray[np.uint8]  # place in analyse.sizes.KINDS
    position: NDArray[np.uint8]  # place in POSITIONS
    nofollow: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Remarks:
    """What stands at few links only: rows as tuples, in any order."""

    fragments: Sequence[tuple[int, str]] = ()  # (index of a link, fragment that its target lacks)
    texts: Sequence[tuple[int, str]] = ()  # (index of a link, fragment whose `:~:text=` its target lacks)
    mails: Sequence[tuple[int, str, str]] = ()  # (place of the page, mailto: as written, what is wrong)
    malformed: Sequence[tuple[int, str]] = ()  # (place of the page, what stood where a URL belongs)
    # (place of the page, place of the translation, its language as written)
    hreflangs: Sequence[tuple[int, int, str]] = ()
    near: Sequence[NearGroup] = ()  # indices are places
    # (place of an own page that was not read, or not whole; its reason, why)
    unread: Sequence[tuple[int, Reason, str]] = ()
    # (place of the first URL that was left as part of an endless series, the pattern, how many were)
    series: Sequence[tuple[int, str, int]] = ()


@dataclass(frozen=True, slots=True)
class AuditLimits:
    """From where on a page is long, slow, heavy or deep."""

    title_chars: int = 60  # what result pages show is about 600 px; audit programs warn from 60 on
    description_chars: int = 160  # result pages show 155 to 160
    slow_s: float = 1.8  # "poor" time to first byte by the Web Vitals thresholds; ours is to the last byte of the HTML
    heavy_bytes: int = 3_000_000  # the median page of the HTTP Archive weighs about 2.6 MB
    deep_clicks: int = 6  # ours: from there on pages are found by search, not by clicking
    url_chars: int = 2_047  # sitemaps.org: a location has fewer than 2,048 characters
    chain_hops: int = 2  # the first hop that can be saved


@dataclass(frozen=True, slots=True)
class AuditInput:
    """All that the checks need."""

    urls: AuditUrls
    pages: PageTraits
    links: LinkFacts
    redirects: RedirectColumns  # sources and targets are places
    remarks: Remarks = field(default_factory=Remarks)
    limits: AuditLimits = field(default_factory=AuditLimits)


@dataclass(frozen=True, slots=True)
class IssueColumns:
    """k issues of one kind as columns; `audit.issues` puts them into words."""

    code: str
    subjects: Places  # k: pages to mend
    related: Places | None = None  # k: what the issue is about besides; -1: nothing
    numbers: NDArray[np.float64] | None = None  # k: for the detail
    links: Places | None = None  # k: indices in LinkFacts
    words: Sequence[str] | None = None  # k: for the detail

    def __len__(self) -> int:
        return len(self.subjects)


def text_keys(texts: Iterable[str]) -> NDArray[np.uint64]:
    """One number a text: equal for texts that differ in case and white space only, 0 for empty ones."""
    folded = (" ".join(text.lower().split()) for text in texts)
    return np.array(
        [xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) if text else 0 for text in folded], np.uint64
    )


def dead(known: AuditInput) -> Mask:
    """bool[u]: not there. The verdict decides; where nobody judged, what the crawl saw."""
    unchecked = known.urls.verdict == VERDICTS.index(Verdict.UNCHECKED)
    found: Mask = _IS_DEAD[known.urls.verdict] | (unchecked & _IS_INVALID[known.urls.reason])
    return found


def redirecting(known: AuditInput) -> Mask:
    """bool[u]: leads to another URL."""
    found: Mask = known.urls.reason == REASONS.index(Reason.REDIRECT)
    return found
