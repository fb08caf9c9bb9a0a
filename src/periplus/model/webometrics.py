"""Surveys of many sites as values: how a campaign stands, and what is found: links, figures, companion sites."""

from __future__ import annotations

from typing import NamedTuple

from periplus.model.arrays import Ints, Ints32, Mask
from periplus.model.survey import CompanionClass, DocumentModel, SiteStatus, Unit
from periplus.values import Pairs, frozen

RECENT_PAGES = 50  # the last yields say what a site still gives


@frozen
class WebFragment:
    """n units, the target set first; u documents, each of one unit; m distinct links from fetched documents to others.

    A document is a page after redirects, http and https, `www.` and its lack, and pages of equal content
    within a unit were merged.
    """

    units: tuple[Unit, ...]
    chosen: int  # the first so many units are the target set
    ids: Ints  # u: ids of the URLs that stand for the documents, ascending
    unit: Ints32  # u: places in units
    directory: Ints32  # u: a number a directory, each of one unit
    host: Ints32  # u: a number a host (www. left out), each of one unit
    fetched: Mask  # u
    waiting: Mask  # u: known, not fetched, and neither refused nor forbidden nor dead
    sources: Ints  # m: places of documents, ascending
    ends: Ints  # m: the same, ascending within a source
    merged: int  # URLs that stand for no document of their own: fetched pages of a content that another has

    @property
    def is_target(self) -> Mask:
        """u: whether the document's unit is of the target set."""
        return self.unit < self.chosen


@frozen
class UnitLinks:
    """Links between units under one document model: k pairs of units, self-links among them, by source, then end."""

    model: DocumentModel
    sources: Ints32
    ends: Ints32
    counts: Ints  # distinct pairs of documents


@frozen
class HarvestRows:
    """What pages yielded, in the order of fetching: p pages of some sites,
    q distinct pairs of a page and an item on it.

    An item is what the survey harvests: an external page, host or registered domain.
    """

    sites: tuple[str, ...]
    known: Ints  # pages known of each site, fetched or waiting to be
    site: Ints32  # p: places in sites
    page: Ints  # q: places of pages, ascending
    item: Ints  # q: a number an item, from 0


@frozen
class ImpactFactor:
    """A Web Impact Factor with the two figures that it is made of; by itself it says little."""

    linking: int  # fetched documents that link into the unit
    documents: int  # of the unit, fetched

    @property
    def value(self) -> float | None:
        """linking / documents; None where one document was fetched,
        for then it is a count of those that link to it, or none was.
        """
        return self.linking / self.documents if self.documents > 1 else None


class UnitFigures(NamedTuple):
    """One target unit under one document model. Links are distinct pairs of documents."""

    unit: int
    fetched: int  # documents
    waiting: int  # documents that are known and not fetched
    in_links: int  # from other target units
    in_units: int  # target units that these come from
    in_companion: int  # links from fetched sites outside the target set
    out_links: int  # to other target units
    out_units: int
    out_companion: int  # links to sites outside
    out_sites: int  # sites outside that are linked to
    self_links: int
    wif: ImpactFactor  # by pages of any unit, its own among them
    external_wif: ImpactFactor  # by pages of other units
    self_wif: ImpactFactor  # by its own pages

    @property
    def share(self) -> float:
        """The share of the unit's known documents that was fetched; 0.0 with none known."""
        documents = self.fetched + self.waiting
        return self.fetched / documents if documents else 0.0


@frozen
class Connectivity:
    """How a set of sites hangs together by direct links. Components are counted in vertices."""

    vertices: str  # which set: `all`, `official`, `bundles`, `with communicators`
    sites: int
    arcs: int  # linked ordered pairs
    mutual: int  # arcs whose reverse is there too
    strong: tuple[int, ...]  # sizes of the strong components, largest first
    weak: tuple[int, ...]

    @property
    def density(self) -> float:
        """Arcs of all that could be; 0.0 for less than two sites."""
        return self.arcs / (self.sites * (self.sites - 1)) if self.sites > 1 else 0.0

    @property
    def reciprocity(self) -> float:
        """The share of arcs that are returned; 0.0 with none."""
        return self.mutual / self.arcs if self.arcs else 0.0


@frozen
class Gain:
    """What one site adds to the target set's connectivity, in target units and ordered pairs of them."""

    largest_strong: int  # units in the largest strong component with it
    strong_before: int
    largest_weak: int
    weak_before: int
    pairs: int  # ordered pairs of units that reach each other both ways with it
    pairs_before: int


@frozen
class CompanionSite:
    """A site outside the target set that units of it link to."""

    unit: int
    name: str
    kind: CompanionClass
    units: int  # different target units that link to it
    pages: int  # documents of these that do
    links: int  # distinct pairs of documents
    back: int | None  # target units that it links to; None: none of its pages was fetched, so it is not known
    documents: int  # of it that are known
    fetched: int  # of them
    gain: Gain | None  # of communicators
    status: SiteStatus = SiteStatus.DISCOVERED
    tags: tuple[str, ...] = ()


class CoLink(NamedTuple):
    """Two target units that are linked from the same sites (co-inlinks), or link to the same ones (couplings)."""

    first: int
    second: int
    sites: int


class SuffixTally(NamedTuple):
    """Links to (or from) sites under one public suffix."""

    suffix: str  # `ac.uk`
    domain: str  # top level: `uk`
    country: bool  # whether that is a country's
    sites: int
    links: int


@frozen
class Estimate:
    """A number that was estimated, with its interval at the confidence named in analyse.harvest."""

    value: float
    low: float
    high: float


@frozen
class Richness:
    """How many items were found, and how many the known pages may hold in all."""

    observed: int
    once: int  # items on one page only
    twice: int
    total: Estimate | None  # items on all known pages; None: too few of the sites were read to say
    coverage: float  # share of all occurrences that belongs to the items seen (Good and Turing)
    pages: int  # read
    known: int  # pages there are, as far as known
    sites: int  # of which a page is known
    sites_read: int

    @property
    def share(self) -> float | None:
        """Of all items on the known pages, those that were found, by estimate."""
        return self.observed / self.total.value if self.total is not None and self.total.value else None


@frozen
class Curve:
    """A count over pages fetched: found[i] after pages[i] pages."""

    name: str
    pages: tuple[int, ...]
    found: tuple[float, ...]


@frozen
class Baseline:
    """What a round robin finds on pages that were fetched, as far as they reach."""

    curve: Curve
    found: int
    pages: int  # turns until it comes to a page that was not fetched; 0: not every site was asked
    beside: int  # what was found in as many pages in fact


@frozen
class Harvest:
    """How many items were found, how fast, and how many may be missing."""

    item: str  # page, host or domain
    sites: tuple[Curve, ...]  # items new to the whole harvest, over the site's own pages; most found first
    total: Curve
    baseline: Baseline
    richness: Richness
    companions: Curve  # sites outside the target set, over pages
    recent: float  # new items a page in the last pages (RECENT_PAGES)


class SetRelation(NamedTuple):
    """The links from one set of sites to another; `target` is the target set, others are classes of companion sites."""

    source: str
    end: str
    links: int
    pairs: int  # linked pairs of sites
    density: float  # of all pairs that could be


@frozen
class SiteSet:
    """The target set or one class of companion sites. probed: those of which a page was fetched."""

    name: str
    sites: tuple[int, ...]
    probed: int
    documents: int
    fetched: int


@frozen
class FragmentModel:
    """The conceptual model of a web fragment: target set, subsets of the companion set,
    and the relations between them.
    """

    sets: tuple[SiteSet, ...]
    relations: tuple[SetRelation, ...]


class UnitRecord(NamedTuple):
    """What became of a unit's URLs: part of the method sheet."""

    unit: int
    fetched: int
    waiting: int
    robots: int  # forbidden by robots.txt, or by its absence
    refused: int
    failed: int
    redirects: int
    state: str  # empty, or why the unit is not available


@frozen
class MethodSheet:
    """How the figures came about, so that they can be compared with others."""

    title: str
    runs: Pairs  # name of a run, its dates and state
    run: str  # the last one: every figure names it
    created: float
    model: DocumentModel
    parameters: Pairs
    units: tuple[UnitRecord, ...]
    merged: int  # pages whose content another page of the unit has
    documents: int
    links: int


@frozen
class SurveyResults:
    """Everything that a survey's report shows. Numbers of units are places in `units`, the target set first."""

    units: tuple[Unit, ...]
    chosen: int
    method: MethodSheet
    figures: tuple[UnitFigures, ...]  # of the target set, in its order
    totals: tuple[tuple[DocumentModel, int], ...]  # links between different target units by model
    matrix: UnitLinks  # under method.model
    connectivity: tuple[Connectivity, ...]
    companions: tuple[CompanionSite, ...]  # those of most units first
    co_inlinks: tuple[CoLink, ...]
    couplings: tuple[CoLink, ...]
    suffixes_out: tuple[SuffixTally, ...]
    suffixes_in: tuple[SuffixTally, ...]
    harvest: Harvest
    model: FragmentModel


@frozen
class Campaign:
    """A survey's sites, and how its pages are spent on them. It outlives runs: each goes on with it."""

    title: str = ""
    units: tuple[Unit, ...] = ()
    rule: str = "scout"  # of choice among sites: see `schedule.bandit`
    within: str = ""  # order within a site: breadth or learned; empty: learned, for many sites breadth
    item: str = "page"  # what is harvested: an external page, host or (registered) domain
    pages: int = 0  # in all runs together; 0: no limit
    seed: int = 1
    # pages under way at most, each of another host; 1: each choice knows what the page before it brought; 0: 1 where
    # pages are the budget, else as many as can
    at_once: int = 0
    least_pages: int = 0  # of each site before the rule compares them
    read_companions: int = 0  # of the pages, those read of companion sites once the others are spent
    companions: tuple[Unit, ...] = ()  # that are read: chosen by a run when their turn comes


class SiteProgress(NamedTuple):
    """One site of a campaign: one unit, or several that share a host."""

    name: str
    short: str
    state: str  # reading, read, waiting, or `not available: ...`
    pages: int  # that were asked for
    links: int  # external items that its pages were the first of the site to show
    recent: float  # of them a page, over the last pages (RECENT_PAGES)
    score: float | None  # what the rule thinks of it; None: too early
    waiting: int  # pages that are known and not asked for
    prefixes: tuple[str, ...] = ()  # the first of each of its units

    @property
    def share(self) -> float:
        """Of the known pages, those that were asked for; 0.0 with none known."""
        return self.pages / (self.pages + self.waiting) if self.pages else 0.0


@frozen
class CampaignProgress:
    """A campaign at one moment."""

    campaign: Campaign
    pages: int
    sites: tuple[SiteProgress, ...]  # in the order of the campaign
    harvest: Harvest  # curve, estimated round robin, completeness
    elapsed_s: float = 0.0  # of this run; 0: none is watched
    companion_pages: tuple[tuple[str, int], ...] = ()  # (companion, pages asked for)
