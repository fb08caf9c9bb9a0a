"""What does a survey find out? Figures of units, links between them, companion sites, completeness, and how all of it was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from periplus.model.fragment import UnitLinks
from periplus.model.survey import CompanionClass, DocumentModel, SiteStatus, Unit


@dataclass(frozen=True, slots=True)
class ImpactFactor:
    """A Web Impact Factor with the two figures that it is made of; by itself it says little."""

    linking: int  # fetched documents that link into the unit
    documents: int  # of the unit, fetched

    @property
    def value(self) -> float | None:
        """linking / documents; None where one document was fetched, for then it is a count of those that link to it, or none was."""
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
        known = self.fetched + self.waiting
        return self.fetched / known if known else 0.0


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Gain:
    """What one site adds to the target set's connectivity, in target units and ordered pairs of them."""

    largest_strong: int  # units in the largest strong component with it
    strong_before: int
    largest_weak: int
    weak_before: int
    pairs: int  # ordered pairs of units that reach each other both ways with it
    pairs_before: int


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that was estimated, with its interval at the confidence named in analyse.harvest."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Curve:
    """A count over pages fetched: found[i] after pages[i] pages."""

    name: str
    pages: tuple[int, ...]
    found: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a round robin finds on pages that were fetched, as far as they reach."""

    curve: Curve
    found: int
    pages: int  # turns until it comes to a page that was not fetched; 0: not every site was asked
    beside: int  # what was found in as many pages in fact


@dataclass(frozen=True, slots=True)
class Harvest:
    """How many items were found, how fast, and how many may be missing."""

    item: str  # page, host or domain
    sites: tuple[Curve, ...]  # items new to the whole harvest, over the site's own pages; most found first
    total: Curve
    baseline: Baseline
    richness: Richness
    companions: Curve  # sites outside the target set, over pages
    recent: float  # new items a page in the last pages (analyse.harvest.RECENT_PAGES)


class SetRelation(NamedTuple):
    """The links from one set of sites to another; `target` is the target set, others are classes of companion sites."""

    source: str
    end: str
    links: int
    pairs: int  # linked pairs of sites
    density: float  # of all pairs that could be


@dataclass(frozen=True, slots=True)
class SiteSet:
    """The target set or one class of companion sites. probed: those of which a page was fetched."""

    name: str
    sites: tuple[int, ...]
    probed: int
    documents: int
    fetched: int


@dataclass(frozen=True, slots=True)
class FragmentModel:
    """The conceptual model of a web fragment: target set, subsets of the companion set, and the relations between them."""

    sets: tuple[SiteSet, ...]
    relations: tuple[SetRelation, ...]


class UnitRecord(NamedTuple):
    """What became of a unit's URLs: part of the method sheet."""

    unit: int
    fetched: int
    waiting: int
    robots: int  # forbidden by robots.txt, or by its absence
    refused: int
    dead: int
    redirects: int
    state: str  # empty, or why the unit is not available


@dataclass(frozen=True, slots=True)
class Method:
    """How the figures came about, so that they can be compared with others."""

    title: str
    runs: tuple[tuple[str, str], ...]  # name of a run, its dates and state
    run: str  # the last one: every figure names it
    created: float
    model: DocumentModel
    parameters: tuple[tuple[str, str], ...]
    units: tuple[UnitRecord, ...]
    merged: int  # pages whose content another page of the unit has
    documents: int
    links: int


@dataclass(frozen=True, slots=True)
class SurveyResults:
    """Everything that a survey's report shows. Numbers of units are places in `units`, the target set first."""

    units: tuple[Unit, ...]
    chosen: int
    method: Method
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
