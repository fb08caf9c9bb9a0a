"""What analyses find, as values: ranks, maps, and what a map or a report shows of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from periplus.model.arrays import Floats, Ints, Ints16, Ints32, Unsigned8
from periplus.model.audit import Fault, FieldGrade, IssueKind, Severity
from periplus.model.duplicates import DuplicateGroup
from periplus.model.page import MediaClass
from periplus.model.visit import Reason, State
from periplus.model.web import SiteKey, Url
from periplus.values import Pairs, frozen

OTHERS = -1  # in place of a page's index: the pages that a folded map does not name one by one


@frozen
class Ranking:
    """How much each page counts, and how the figure came about."""

    scores: Floats  # n, in the order of LinkGraph.pages
    damping: float
    rounds: int  # that were computed
    residual: float  # change of the last round, summed over pages, as a share of all scores; 0.0 with no pages


@frozen
class SiteMap:
    """A tree over the pages that links reach from the home page; every such page stands in it once.

    Pages are indices into LinkGraph.pages. In `order` a page stands before the pages below it, which follow at once, so
    that the branch of order[i] is order[i : i + 1 + below[order[i]]]. Siblings: greatest rank first, then by URL.
    """

    home: int
    depth: Ints32  # n: clicks from the home page; -1 where no link leads
    parent: Ints32  # n: a page of the depth before; -1 for the home page and where no link leads
    order: Ints32  # the pages reached, depth first
    below: Ints32  # n: pages under it, at any depth

    @property
    def max_depth(self) -> int:
        """The last depth's number."""
        return int(self.depth.max())

    def walk(self, max_depth: int = -1) -> Iterator[tuple[int, int, int]]:
        """(page, depth, pages below it) in `order`, down to max_depth; -1: all. Bounded memory, no recursion."""
        block = 65_536  # pages turned into Python numbers at once
        for start in range(0, len(self.order), block):
            pages = self.order[start : start + block]
            for page, depth, below in zip(
                pages.tolist(), self.depth[pages].tolist(), self.below[pages].tolist(), strict=True
            ):
                if max_depth < 0 or depth <= max_depth:
                    yield page, depth, below


@frozen
class MapNode:
    """A place in a folded map with everything in it: pages, fetched, size_bytes and rank are totals of the branch.

    A node is a page with the nodes under it, or (page == OTHERS) the pages of its parent's branch that are not named.
    """

    page: int
    pages: int
    fetched: int
    size_bytes: int
    rank: float
    children: tuple[MapNode, ...] = ()


@frozen
class LinkedBytes:
    """What lies behind each page's links: a picture gallery is seen at first sight."""

    # n x len(MediaClass): bytes of the targets whose size is known, by class in the order of MediaClass
    sizes: Ints
    unsized: Ints  # n: targets whose size is not known


@frozen
class SegmentSum:
    """What a segment of a collection adds up to. issues: by severity; examples: some of its URLs."""

    name: str
    urls: int  # ever seen
    pages: int  # of them fetched
    failed: int
    depth: float  # mean clicks from the start, of fetched pages that links reach
    deepest: int
    text_chars: int  # of fetched pages
    size_bytes: int  # of fetched pages
    issues: Mapping[str, int]
    examples: tuple[Url, ...]


@frozen
class PageOverview:
    """What is shown of one page."""

    url: Url
    title: str
    state: State
    reason: Reason
    status: int  # 0: no answer
    media_type: str
    size_bytes: int
    depth: int  # clicks from the home page, -1 where no link leads
    rank: float
    score: int  # 0 to 100, logarithmic: see analyse.pagerank.link_score
    inlinks: int  # pages that link to it
    outlinks: int  # pages that it links to
    linked: tuple[int, ...] = ()  # bytes behind its links, by class in the order of MediaClass; () when nobody counted
    unsized: int = 0  # links to what has no known size


@frozen
class PageColumns:
    """PageOverview of n pages, one sequence a fact, all in the order of LinkGraph.pages: fit for a million pages."""

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
    linked: LinkedBytes | None = None  # None: nobody counted
    # results computed later: name, one value a page; "": none
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
    """Where a result comes from: stands at the head of every map and report."""

    run: str  # the run's name in its collection
    start: Url  # where the crawl began
    created: float  # seconds since the epoch, UTC
    damping: float
    rounds: int
    ties: str = "greater rank, then smaller URL"  # which of several parents a page hangs from
    parameters: Pairs = ()  # the run's settings that differ from the defaults


@frozen
class Tally:
    """How many pages share something: a charset, a language, a media type, a host."""

    name: str
    pages: int
    size_bytes: int = 0


@frozen
class StateTally:
    """How many URLs are in a state for a reason."""

    state: State
    reason: Reason
    urls: int


@frozen
class DepthTally:
    """How many pages stand so many clicks from the home page."""

    depth: int
    fetched: int
    discovered: int


@frozen
class Holder:
    """A page with a link, and the words that carry it."""

    url: Url
    title: str
    anchor: str


@frozen
class BrokenLink:
    """A URL that leads nowhere, with every page that links to it."""

    target: Url
    reason: Reason
    status: int
    holders: tuple[Holder, ...]  # the first of them, by URL
    pages: int  # that link to it, in all


@frozen
class IssueGroup:
    """All issues of one kind."""

    kind: IssueKind
    severity: Severity  # as the user grades it
    pages: int  # distinct pages with one
    total: int  # causes
    faults: tuple[Fault, ...]  # the first of them, those on most pages before others


@frozen
class RedirectChain:
    """A URL that redirects, and where whoever follows ends."""

    source: Url
    target: Url  # one hop on
    end: Url  # in a loop: some URL of it
    status: int  # of the first hop
    hops: int
    loop: bool
    links: int  # pages that still link to the source


@frozen
class ExternalSite:
    """Another site that pages link to."""

    name: str
    pages: int  # with a link there
    links: int
    targets: int  # distinct URLs


@frozen
class PageWeight:
    """What a reader must fetch to see a page, and what lies behind its links."""

    url: Url
    title: str
    pulled: tuple[int, ...]  # bytes by class in the order of MediaClass, the page's own among them
    unsized: int  # parts whose size is not known
    linked_bytes: int


@frozen
class ClassSize:
    """The site's URLs of one class, each once, however many pages use it."""

    kind: MediaClass
    size_bytes: int
    urls: int  # of known size
    unsized: int  # of unknown size


@frozen
class TrendPoint:
    """A collection at the end of a run. None: that run did not look."""

    run_id: int
    kind: str
    started: float  # seconds since the epoch, UTC
    pages: int  # that were read, up to now
    failed: int  # URLs
    urls: int  # that were known
    fetched: int  # by this run, as the three that follow
    bytes: int  # as they travelled
    depth: int | None  # clicks to the deepest page
    response_s: float | None  # mean of a page, to its last byte
    pages_with_errors: int | None
    grades: tuple[FieldGrade, ...] = ()


@frozen
class SiteSum:
    """One site of several: the figures that its own report has."""

    site: SiteKey
    start: Url
    counts: tuple[StateTally, ...]
    groups: tuple[IssueGroup, ...]  # gravest first; they name no faults
    broken_urls: int
    depth: int  # clicks to the deepest page
    size_bytes: int  # of its pages and of what they show or link to, each URL once
    grades: tuple[FieldGrade, ...]


@frozen
class SitesReport:
    """What the report of a collection with several sites shows. about: of the first start and the last run."""

    about: About
    finished: float  # as in ReportData
    sites: tuple[SiteSum, ...]  # in the order of their starts
    notes: tuple[str, ...]


@frozen
class ReportData:
    """Everything that a site's report shows. Lists stand in the order in which they are shown."""

    about: About
    finished: float  # seconds since the epoch, UTC; 0.0 while the run goes on
    counts: tuple[StateTally, ...]
    pages: PageColumns
    ranked: tuple[int, ...]  # indices of pages, greatest rank first
    tree: MapNode | None  # None: the home page was not fetched, so there is no map
    depths: tuple[DepthTally, ...]
    groups: tuple[IssueGroup, ...]  # gravest first, then by category as the table of issues has them
    broken: tuple[BrokenLink, ...]
    broken_urls: int  # in all; broken names the first
    chains: tuple[RedirectChain, ...]
    sizes: tuple[ClassSize, ...]
    heaviest: tuple[PageWeight, ...]
    hosts: tuple[Tally, ...]
    external: tuple[ExternalSite, ...]
    media: tuple[Tally, ...]
    charsets: tuple[Tally, ...]
    languages: tuple[Tally, ...]
    duplicates: tuple[DuplicateGroup, ...]
    notes: tuple[str, ...]  # what was not looked at, and why
    grades: tuple[FieldGrade, ...] = ()  # by field; none: nothing was graded
    trends: tuple[TrendPoint, ...] = ()  # oldest run first
    segments: tuple[SegmentSum, ...] = ()  # in the order of their rules; none: nobody wrote rules
    # (URL, WebP) of rendered pages: the home page, then those that count most; none: no crawl kept any
    screenshots: tuple[tuple[str, bytes], ...] = ()
