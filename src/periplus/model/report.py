"""What does a report show beside the map: findings by kind, chains of redirects, weights, other sites?"""

from __future__ import annotations

from dataclasses import dataclass

from periplus.model.audit import Fault, Grade, IssueKind
from periplus.model.duplicates import DuplicateGroup
from periplus.model.media import MediaClass
from periplus.model.results import About, DeadLink, LayerTally, MapNode, PageColumns, StateTally, Tally
from periplus.model.web import Url


@dataclass(frozen=True, slots=True)
class IssueGroup:
    """All issues of one kind."""

    kind: IssueKind
    grade: Grade  # as the user grades it
    pages: int  # distinct pages with one
    total: int  # causes
    faults: tuple[Fault, ...]  # the first of them, those on most pages before others


@dataclass(frozen=True, slots=True)
class RedirectChain:
    """A URL that redirects, and where whoever follows ends."""

    source: Url
    target: Url  # one hop on
    end: Url  # in a loop: some URL of it
    status: int  # of the first hop
    hops: int
    loop: bool
    links: int  # pages that still link to the source


@dataclass(frozen=True, slots=True)
class ExternalSite:
    """Another site that pages link to."""

    name: str
    pages: int  # with a link there
    links: int
    targets: int  # distinct URLs


@dataclass(frozen=True, slots=True)
class PageWeight:
    """What a reader must fetch to see a page, and what lies behind its links."""

    url: Url
    title: str
    pulled: tuple[int, ...]  # bytes by class in the order of MediaClass, the page's own among them
    unsized: int  # parts whose size is not known
    linked_bytes: int


@dataclass(frozen=True, slots=True)
class ClassSize:
    """The site's URLs of one class, each once, however many pages use it."""

    kind: MediaClass
    size_bytes: int
    urls: int  # of known size
    unsized: int  # of unknown size


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything that a site's report shows. Lists stand in the order in which they are shown."""

    about: About
    finished: float  # seconds since the epoch, UTC; 0.0 while the run goes on
    counts: tuple[StateTally, ...]
    pages: PageColumns
    ranked: tuple[int, ...]  # indices of pages, greatest rank first
    tree: MapNode | None  # None: the home page was not fetched, so there is no map
    layers: tuple[LayerTally, ...]
    groups: tuple[IssueGroup, ...]  # gravest first, then by category as the table of issues has them
    dead: tuple[DeadLink, ...]
    dead_urls: int  # in all; dead names the first
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
