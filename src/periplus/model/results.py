"""Results of analyses as values: ranks, site maps, and the data shown in maps and reports."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from periplus.model.audit import Fault, FieldGrade, IssueKind, Severity
from periplus.model.duplicates import DuplicateGroup
from periplus.model.page import MediaClass
from periplus.model.visit import Reason, State, StateTally
from periplus.model.web import SiteKey, Url
from periplus.values import Pairs, frozen

if TYPE_CHECKING:  # NumPy takes longer to import than `periplus status` to run
    from periplus.model.arrays import Floats, Ints, Ints16, Ints32, Unsigned8

OTHER_PAGES = -1  # used as a page index: the pages that a folded map does not list


@frozen
class Ranking:
    """PageRank scores, with the parameters of the computation."""

    scores: Floats  # n, in the order of LinkGraph.pages
    damping: float
    rounds: int  # iterations
    residual: float  # change of the last iteration, summed over pages, as a share of all scores; 0.0 without pages


@frozen
class SiteMap:
    """A tree of the pages that are linked from the home page, directly or not. Each of them occurs once.

    Pages are indices into LinkGraph.pages. `order` is depth first: the branch of order[i] is
    order[i : i + 1 + below[order[i]]]. Siblings are sorted by descending rank, then by URL.
    """

    home: int
    depth: Ints32  # n: clicks from the home page; -1 if no link leads there
    parent: Ints32  # n: a page one level up; -1 for the home page and if no link leads there
    order: Ints32  # reachable pages, depth first
    below: Ints32  # n: descendants at any depth

    @property
    def max_depth(self) -> int:
        """Greatest depth."""
        return int(self.depth.max())

    def walk(self, max_depth: int = -1) -> Iterator[tuple[int, int, int]]:
        """Yields (page, depth, descendants) in `order`, down to max_depth (-1: all). Bounded memory, no recursion."""
        block = 65_536  # indices converted to Python numbers at a time
        for start in range(0, len(self.order), block):
            pages = self.order[start : start + block]
            for page, depth, below in zip(
                pages.tolist(), self.depth[pages].tolist(), self.below[pages].tolist(), strict=True
            ):
                if max_depth < 0 or depth <= max_depth:
                    yield page, depth, below


@frozen
class MapNode:
    """A node of a folded map: pages, fetched, size_bytes and rank are totals of the branch.

    A node is a page with its child nodes, or (page == OTHER_PAGES) its parent's pages that are not listed.
    """

    page: int
    pages: int
    fetched: int
    size_bytes: int
    rank: float
    children: tuple[MapNode, ...] = ()


@frozen
class LinkedBytes:
    """Sizes of the targets of each page's links, which make picture galleries easy to spot."""

    # n x len(MediaClass): bytes of targets of known size, by class in the order of MediaClass
    sizes: Ints
    unsized: Ints  # n: targets of unknown size


@dataclass(frozen=True)
class Segmentation:
    """The segment of each URL of a collection.

    names: segments in the order of their rules, `other` last. codes: indices in names.
    """

    names: tuple[str, ...]
    ids: Ints  # ascending
    codes: Unsigned8

    @cached_property
    def _ids(self) -> array[int]:
        return array("q", self.ids.tobytes())  # bisect takes a third of NumPy's time for a single number

    def counts(self) -> dict[str, int]:
        """Number of URLs in each segment."""
        return {name: int((self.codes == code).sum()) for code, name in enumerate(self.names)}

    def of(self, url_id: int | None) -> str | None:
        """The segment of a URL, or None if the URL is unknown."""
        if url_id is None:
            return None
        place = bisect_left(self._ids, url_id)
        return self.names[self.codes[place]] if place < len(self._ids) and self._ids[place] == url_id else None


@frozen
class SegmentSum:
    """What a segment of a collection adds up to. issues: by severity; examples: some of its URLs."""

    name: str
    urls: int  # known
    pages: int  # fetched
    failed: int
    depth: float  # mean clicks from the start, over fetched pages that links lead to
    deepest: int
    text_chars: int  # of fetched pages
    size_bytes: int  # of fetched pages
    issues: Mapping[str, int]
    examples: tuple[Url, ...]


@frozen
class PageOverview:
    """The data shown for one page."""

    url: Url
    title: str
    state: State
    reason: Reason
    status: int  # 0: no answer
    media_type: str
    size_bytes: int
    depth: int  # clicks from the home page, -1 if no link leads there
    rank: float
    score: int  # 0 to 100, logarithmic: see analyse.pagerank.link_score
    inlinks: int  # pages that link to it
    outlinks: int  # pages that it links to
    linked: tuple[int, ...] = ()  # bytes of its link targets, by class in the order of MediaClass; () if not counted
    unsized: int = 0  # links to targets of unknown size


@frozen
class PageColumns:
    """PageOverview of n pages as columns, in the order of LinkGraph.pages; suited to millions of pages."""

    url: Sequence[Url]
    title: Sequence[str]
    state: Sequence[State]
    reason: Sequence[Reason]
    status: Ints16
    media_type: Sequence[str]
    size_bytes: Ints
    depth: Ints32
    rank: Floats
    score: Unsigned8
    inlinks: Ints
    outlinks: Ints
    linked: LinkedBytes | None = None  # None: not counted
    # results computed later: (name, one value per page); "" if there is none
    further: tuple[tuple[str, Sequence[str | int | float]], ...] = ()

    def page(self, index: int) -> PageOverview:
        return PageOverview(
            url=self.url[index],
            title=self.title[index],
            state=self.state[index],
            reason=self.reason[index],
            status=int(self.status[index]),
            media_type=self.media_type[index],
            size_bytes=int(self.size_bytes[index]),
            depth=int(self.depth[index]),
            rank=float(self.rank[index]),
            score=int(self.score[index]),
            inlinks=int(self.inlinks[index]),
            outlinks=int(self.outlinks[index]),
            linked=tuple(self.linked.sizes[index].tolist()) if self.linked else (),
            unsized=int(self.linked.unsized[index]) if self.linked else 0,
        )


@frozen
class About:
    """Origin of a result, shown at the top of every map and report."""

    run: str  # name of the run
    start: Url  # start URL of the crawl
    created: float  # seconds since the epoch, UTC
    damping: float
    rounds: int
    ties: str = "greater rank, then smaller URL"  # how the parent is chosen among several
    parameters: Pairs = ()  # the run's settings that differ from the defaults


@frozen
class Tally:
    """Number of pages with a value: a charset, a language, a media type, a host."""

    name: str
    pages: int
    size_bytes: int = 0


@frozen
class DepthTally:
    """Number of pages at a depth."""

    depth: int
    fetched: int
    discovered: int


@frozen
class Holder:
    """A page with a link, and the link text."""

    url: Url
    title: str
    anchor: str


@frozen
class BrokenLink:
    """A broken URL, with the pages that link to it."""

    target: Url
    reason: Reason
    status: int
    holders: tuple[Holder, ...]  # the first of these pages, by URL
    pages: int  # total number of pages that link to it


@frozen
class IssueGroup:
    """The issues of one kind."""

    kind: IssueKind
    severity: Severity  # as the user grades it
    pages: int  # distinct pages with one
    total: int  # causes
    faults: tuple[Fault, ...]  # the first of them, those on most pages before others


@frozen
class RedirectChain:
    """A URL that redirects, and the end of the chain."""

    source: Url
    target: Url  # the next hop
    end: Url  # for a loop: any URL of it
    status: int  # of the first hop
    hops: int
    loop: bool
    links: int  # pages that still link to the source


@frozen
class ExternalSite:
    """Another site that the pages link to."""

    name: str
    pages: int  # pages with a link to it
    links: int
    targets: int  # distinct URLs


@frozen
class PageWeight:
    """Bytes needed to show a page, and bytes of its link targets."""

    url: Url
    title: str
    pulled: tuple[int, ...]  # bytes by class in the order of MediaClass, including the page itself
    unsized: int  # subresources of unknown size
    linked_bytes: int


@frozen
class ClassSize:
    """Total size of a site's URLs of one class; each URL counts once."""

    kind: MediaClass
    size_bytes: int
    urls: int  # of known size
    unsized: int  # of unknown size


@frozen
class TrendPoint:
    """State of a collection at the end of a run. None: not measured by that run."""

    run_id: int
    kind: str
    started: float  # seconds since the epoch, UTC
    pages: int  # fetched so far
    failed: int  # URLs
    urls: int  # known
    fetched: int  # this and the next three: by this run only
    bytes: int  # bytes transferred
    depth: int | None  # clicks to the deepest page
    response_s: float | None  # mean of a page, to its last byte
    pages_with_errors: int | None
    grades: tuple[FieldGrade, ...] = ()


@frozen
class SiteSum:
    """Summary of one site in a report on several sites."""

    site: SiteKey
    start: Url
    counts: tuple[StateTally, ...]
    groups: tuple[IssueGroup, ...]  # highest grade first, without faults
    broken_urls: int
    depth: int  # clicks to the deepest page
    size_bytes: int  # of its pages and their targets, each URL once
    grades: tuple[FieldGrade, ...]


@frozen
class SitesReport:
    """Data of the report on a collection with several sites. about: for the first start and the last run."""

    about: About
    finished: float  # see ReportData
    sites: tuple[SiteSum, ...]  # in the order of their start URLs
    notes: tuple[str, ...]


@frozen
class ReportData:
    """Data of the report on one site. Lists are in display order."""

    about: About
    finished: float  # seconds since the epoch, UTC; 0.0 while the run is in progress
    counts: tuple[StateTally, ...]
    pages: PageColumns
    ranked: tuple[int, ...]  # page indices, greatest rank first
    tree: MapNode | None  # None: no map, because the home page was not fetched
    depths: tuple[DepthTally, ...]
    groups: tuple[IssueGroup, ...]  # highest grade first, then by category in the order of the issue table
    broken: tuple[BrokenLink, ...]
    broken_urls: int  # total number; `broken` lists the first
    chains: tuple[RedirectChain, ...]
    sizes: tuple[ClassSize, ...]
    heaviest: tuple[PageWeight, ...]
    hosts: tuple[Tally, ...]
    external: tuple[ExternalSite, ...]
    media: tuple[Tally, ...]
    charsets: tuple[Tally, ...]
    languages: tuple[Tally, ...]
    duplicates: tuple[DuplicateGroup, ...]
    notes: tuple[str, ...]  # what was not analysed, and why
    grades: tuple[FieldGrade, ...] = ()  # by field; empty if not graded
    trends: tuple[TrendPoint, ...] = ()  # oldest run first
    segments: tuple[SegmentSum, ...] = ()  # in the order of the rules; empty without rules
    # (URL, WebP) of rendered pages: the home page, then those with the highest rank; empty if none are stored
    screenshots: tuple[tuple[str, bytes], ...] = ()


@frozen
class ImportResult:
    """Result of an import. state: done, stopped or failed. damages: position of the damage in each broken file."""

    state: str
    note: str
    starts: tuple[Url, ...]
    runs: int
    records: int
    answers: int
    failures: int  # visits without a response
    left_out: int  # unusable responses: not HTTP, no URL, no date, or a revisit of a response that is not stored
    damages: tuple[str, ...]


class SamePage(NamedTuple):
    """A page with the same bytes, the same words, or words that differ only in diacritics and case."""

    url: str
    same: str  # bytes, words, folded


@frozen
class PageSummary:
    """A row of `model.tables.PAGE`. None: not declared, or not fetched."""

    url: str
    state: State
    reason: Reason
    rule: str | None
    status: int | None
    depth: int | None
    fetched_at: str | None  # None: never fetched
    media_type: str | None
    size: int | None
    cut: str | None
    title: str | None
    description: str | None
    h1: str | None
    language: str | None
    declared_language: str | None
    charset: str | None
    charset_source: str | None
    author: str | None
    author_source: str | None
    date_published: str | None
    date_published_source: str | None
    date_modified: str | None
    date_modified_source: str | None
    types: str | None
    other_charset: str | None
    canonical: str | None
    robots: str | None
    text_chars: int | None
    body_digest: str | None
    text_digest: str | None
    folded_digest: str | None
    rendered: bool  # rendered in a browser
    paint_s: float | None  # largest contentful paint (LCP)
    shift: float | None  # cumulative layout shift (CLS)
    kept: tuple[str, ...]  # subset of bytes, text, xml, screenshot
    inlinks: int  # pages that link to it
    outlinks: int  # URLs that it links to
    duplicates: tuple[SamePage, ...]
