"""Surveys of many sites as values: units, rules, marks, campaigns, links, indicators and companion sites."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple

from periplus.model.arrays import Ints, Ints32, Mask
from periplus.model.tables import INTEGER, TEXT, Column, Table, columns_of
from periplus.values import Pairs, frozen

# Search engines, counters, social networks, software vendors. Our own list; users can edit it for their survey.
# Platforms that host other people's sites on subdomains are not included.
GLOBAL_SITES = (
    *("google.com", "google.ru", "google.cz", "google.hu", "google.de", "google.co.uk"),
    *(
        "bing.com",
        "yahoo.com",
        "duckduckgo.com",
        "baidu.com",
        "yandex.ru",
        "yandex.com",
        "rambler.ru",
        "mail.ru",
        "seznam.cz",
    ),
    *(
        "facebook.com",
        "twitter.com",
        "x.com",
        "instagram.com",
        "youtube.com",
        "youtu.be",
        "linkedin.com",
        "vk.com",
        "ok.ru",
        "t.me",
        "telegram.org",
    ),
    *(
        "whatsapp.com",
        "pinterest.com",
        "flickr.com",
        "vimeo.com",
        "tiktok.com",
        "reddit.com",
        "rutube.ru",
        "addtoany.com",
    ),
    *(
        "liveinternet.ru",
        "hotlog.ru",
        "spylog.com",
        "statcounter.com",
        "google-analytics.com",
        "googletagmanager.com",
        "goo.gl",
        "bit.ly",
    ),
    *("wordpress.org", "joomla.org", "drupal.org", "typo3.org", "1c-bitrix.ru", "cloudflare.com", "recaptcha.net"),
    *(
        "adobe.com",
        "microsoft.com",
        "apple.com",
        "mozilla.org",
        "w3.org",
        "creativecommons.org",
        "gnu.org",
        "wikipedia.org",
        "wikimedia.org",
    ),
)
_UNIT = Column("unit", TEXT, "the site of the page", facet=True)
_PAGE = Column("page", TEXT, "the page with the link", searched=True)
_TARGET = Column("target", TEXT, "the URL that it leads to", searched=True)
_ANCHOR = Column("anchor", TEXT, "link text", searched=True)
_POSITION = Column("position", TEXT, "part of the page", facet=True)
SURVEY_LINKS = {
    table.name: table
    for table in (
        Table(
            "internal",
            "Links between two pages of one of the survey's sites.",
            (
                _UNIT,
                _PAGE,
                _TARGET,
                *columns_of("""
                depth integer facet: depth of the target: clicks from the start
                processed boolean facet: whether the target was requested
                reason text facet: reason of the target's state
            """),
                _ANCHOR,
            ),
        ),
        Table(
            "external",
            "Links from one of the sites to another site, with their context if it is stored.",
            (
                _UNIT,
                _PAGE,
                _TARGET,
                _ANCHOR,
                _POSITION,
                Column("title", TEXT, "title of the page", searched=True),
                Column("times", INTEGER, "number of occurrences on the page"),
            ),
        ),
        Table(
            "bad",
            "Links whose URL cannot be fetched.",
            (
                _UNIT,
                _PAGE,
                Column("text", TEXT, "the URL as written", searched=True),
                Column("why", TEXT, "why it cannot be fetched", facet=True),
                _ANCHOR,
                _POSITION,
            ),
        ),
    )
}
"""The links that a survey collects, by kind."""
RECENT_PAGES = 50  # the last pages of a site predict its further yield


@frozen
class Unit:
    """A site as counted by a survey. It owns all URLs under its prefixes, except those under a longer prefix.

    prefixes: as written by `units.prefix_of`: `example.org`, `example.org/~ann`, or `*.example.org` for a host
    and its subdomains.
    """

    name: str
    short: str  # short name for drawings and matrices
    start: str  # start URL; empty if the site was found and not chosen
    prefixes: tuple[str, ...]
    bundle: str = ""  # organisation whose sites count as one vertex; empty: only this unit
    official: bool = True  # whether it is the organisation's official site


class DocumentModel(StrEnum):
    """What counts as one document when links are counted. A link is a distinct pair of documents (alternative document
    models).
    """

    PAGE = "page"
    DIRECTORY = "directory"  # host and path up to the last slash
    HOST = "host"
    SITE = "site"  # the unit: at most one link per pair


class SiteStatus(StrEnum):
    """The user's decision on a site, as in Hyphe."""

    IN = "in"  # in the target set
    OUT = "out"  # reviewed, and left out of all lists
    UNDECIDED = "undecided"  # to be reviewed again
    DISCOVERED = "discovered"  # not reviewed


class CompanionClass(StrEnum):
    """Strength of the links between a site and the target set."""

    PRIVATE = "private"  # one unit links to it
    WEAK = "weak"  # several units link to it, but fewer than for STRONG
    STRONG = "strong"
    COMMUNICATOR = "communicator"  # strong, and links back: connects the target set
    GLOBAL = "global"  # on the list of sites that everyone links to


@frozen
class CompanionRules:
    """Thresholds for the classes of companion sites. A change needs no new crawl."""

    strong_least: int = 3  # minimum number of distinct target units
    strong_share: float = 0.05  # minimum share of the target set
    back_least: int = 2  # minimum target units that a communicator links back to
    global_sites: tuple[str, ...] = GLOBAL_SITES  # domains, including subdomains


def strong_from(rules: CompanionRules, chosen: int) -> int:
    """The number of distinct target units that must link to a site to make it strong."""
    return max(rules.strong_least, math.ceil(rules.strong_share * chosen))


def class_of(units: int, back: int | None, is_global: bool, rules: CompanionRules, chosen: int) -> CompanionClass:
    """Classifies a companion.

    units: distinct target units that link to the site. back: target units it links to; None: unknown.
    """
    if is_global:
        return CompanionClass.GLOBAL
    if units >= strong_from(rules, chosen):
        return CompanionClass.COMMUNICATOR if back is not None and back >= rules.back_least else CompanionClass.STRONG
    return CompanionClass.PRIVATE if units == 1 else CompanionClass.WEAK


@frozen
class SiteMark:
    """A user's mark on a site, identified by its first prefix."""

    prefix: str
    status: SiteStatus = SiteStatus.DISCOVERED
    tags: tuple[str, ...] = ()


@frozen
class WebFragment:
    """n units, the target set first; u documents, each of one unit; m distinct links from fetched documents to others.

    A document is a page after merging redirects, http and https, `www.` variants, and pages of equal content within
    a unit.
    """

    units: tuple[Unit, ...]
    chosen: int  # number of units in the target set, which come first
    ids: Ints  # u: ids of the documents' representative URLs, ascending
    unit: Ints32  # u: indices into units
    directory: Ints32  # u: directory number; a directory belongs to one unit
    host: Ints32  # u: host number (without www.); a host belongs to one unit
    fetched: Mask  # u
    waiting: Mask  # u: known but not fetched, and not refused, forbidden or dead
    sources: Ints  # m: indices of documents, ascending
    ends: Ints  # m: indices of documents, ascending within a source
    merged: int  # fetched pages merged into a document with the same content

    @property
    def is_target(self) -> Mask:
        """u: whether the document's unit is in the target set."""
        return self.unit < self.chosen


@frozen
class UnitLinks:
    """Links between units under one document model: k pairs of units including self-links, by source, then end."""

    model: DocumentModel
    sources: Ints32
    ends: Ints32
    counts: Ints  # distinct pairs of documents


@frozen
class HarvestRows:
    """Yield of p pages in the order of fetching, with q distinct pairs of a page and an item on it.

    An item is what the survey harvests: an external page, host or registered domain.
    """

    sites: tuple[str, ...]
    known: Ints  # known pages of each site, fetched or waiting
    site: Ints32  # p: indices into sites
    page: Ints  # q: indices of pages, ascending
    item: Ints  # q: item number, from 0


@frozen
class ImpactFactor:
    """A Web Impact Factor with numerator and denominator, since the quotient alone says little."""

    linking: int  # fetched documents that link into the unit
    documents: int  # of the unit, fetched

    @property
    def value(self) -> float | None:
        """linking / documents. None if no document was fetched, or only one, since it would then be a plain count of
        links.
        """
        return self.linking / self.documents if self.documents > 1 else None


class UnitFigures(NamedTuple):
    """One target unit under one document model. Links are distinct pairs of documents."""

    unit: int
    fetched: int  # documents
    waiting: int  # known documents that are not fetched
    in_links: int  # from other target units
    in_units: int  # number of linking target units
    in_companion: int  # links from fetched sites outside the target set
    out_links: int  # to other target units
    out_units: int
    out_companion: int  # links to sites outside
    out_sites: int  # linked sites outside
    self_links: int
    wif: ImpactFactor  # links from pages of any unit, including its own
    external_wif: ImpactFactor  # links from pages of other units
    self_wif: ImpactFactor  # links from its own pages

    @property
    def share(self) -> float:
        """Share of the unit's known documents that is fetched; 0.0 if none is known."""
        documents = self.fetched + self.waiting
        return self.fetched / documents if documents else 0.0


class Centrality(NamedTuple):
    """A target unit's place in the network of links between target units."""

    unit: int
    hub: float  # HITS, by counts of links; 1 in sum over the units
    authority: float
    community: int | None = None  # Louvain, from 1, the largest first; None: networkx is not installed
    betweenness: float | None = None  # share of the shortest paths between two others that lead through it
    core: int | None = None  # k-core: the largest k of a part in which each site is linked with k others


@frozen
class Connectivity:
    """Connectivity of a set of sites by direct links. Component sizes are numbers of vertices."""

    vertices: str  # which set: `all`, `official`, `bundles`, `with communicators`
    sites: int
    arcs: int  # ordered pairs with a link
    mutual: int  # arcs whose reverse also exists
    strong: tuple[int, ...]  # sizes of the strong components, largest first
    weak: tuple[int, ...]

    @property
    def density(self) -> float:
        """Share of possible arcs that exist; 0.0 for fewer than two sites."""
        return self.arcs / (self.sites * (self.sites - 1)) if self.sites > 1 else 0.0

    @property
    def reciprocity(self) -> float:
        """Share of arcs whose reverse exists; 0.0 without arcs."""
        return self.mutual / self.arcs if self.arcs else 0.0


@frozen
class Gain:
    """Increase of the target set's connectivity through one site, in target units and ordered pairs of them."""

    largest_strong: int  # units in the largest strong component with it
    strong_before: int
    largest_weak: int
    weak_before: int
    pairs: int  # ordered pairs of units that reach each other both ways, with the site
    pairs_before: int


@frozen
class CompanionSite:
    """A site outside the target set that target units link to."""

    unit: int
    name: str
    kind: CompanionClass
    units: int  # distinct target units that link to it
    pages: int  # documents of target units that link to it
    links: int  # distinct pairs of documents
    back: int | None  # target units that it links to; None: unknown, since none of its pages is fetched
    documents: int  # known documents of the site
    fetched: int  # fetched documents of the site
    gain: Gain | None  # only for communicators
    status: SiteStatus = SiteStatus.DISCOVERED
    tags: tuple[str, ...] = ()


class CoLink(NamedTuple):
    """Two target units linked from the same sites (co-inlinks), or linking to the same sites (couplings)."""

    first: int
    second: int
    sites: int


class SuffixTally(NamedTuple):
    """Links to (or from) sites under one public suffix."""

    suffix: str  # `ac.uk`
    domain: str  # top-level domain: `uk`
    country: bool  # whether it is a country's top-level domain
    sites: int
    links: int


@frozen
class Estimate:
    """An estimate with its confidence interval; the level is set in analyse.harvest."""

    value: float
    low: float
    high: float


@frozen
class Richness:
    """Number of items found, and estimated number on all known pages."""

    observed: int
    once: int  # items on only one page
    twice: int
    total: Estimate | None  # items on all known pages; None: too few sites were read
    coverage: float  # share of all occurrences that belong to the found items (Good-Turing)
    pages: int  # pages read
    known: int  # known pages
    sites: int  # sites with a known page
    sites_read: int

    @property
    def share(self) -> float | None:
        """Estimated share of the items on known pages that is found, or None."""
        return self.observed / self.total.value if self.total is not None and self.total.value else None


@frozen
class Curve:
    """A count by fetched pages: found[i] after pages[i] pages."""

    name: str
    pages: tuple[int, ...]
    found: tuple[float, ...]


@frozen
class Baseline:
    """Simulated yield of a round robin over the fetched pages."""

    curve: Curve
    found: int
    pages: int  # pages until it reaches a page that is not fetched; 0 if a site was not requested
    beside: int  # items actually found in as many pages


@frozen
class Harvest:
    """Yield of a survey: items found, speed, and estimated completeness."""

    item: str  # page, host or domain
    sites: tuple[Curve, ...]  # items new to the whole harvest, by the site's own pages; largest yield first
    total: Curve
    baseline: Baseline
    richness: Richness
    companions: Curve  # sites outside the target set, by pages
    recent: float  # new items per page in the last RECENT_PAGES pages


class SetRelation(NamedTuple):
    """Links from one set of sites to another: the target set (`target`) or a class of companion sites."""

    source: str
    end: str
    links: int
    pairs: int  # linked pairs of sites
    density: float  # share of possible pairs


@frozen
class SiteSet:
    """The target set or one class of companion sites. probed: number of sites with a fetched page."""

    name: str
    sites: tuple[int, ...]
    probed: int
    documents: int
    fetched: int


@frozen
class FragmentModel:
    """The conceptual model of a web fragment: target set, companion sites, and relations between them."""

    sets: tuple[SiteSet, ...]
    relations: tuple[SetRelation, ...]


class UnitRecord(NamedTuple):
    """Results for a unit's URLs; part of the method sheet."""

    unit: int
    fetched: int
    waiting: int
    robots: int  # disallowed by robots.txt, or because it is unreachable
    refused: int
    failed: int
    redirects: int
    state: str  # why the unit is not available, or empty


@frozen
class MethodSheet:
    """Method of a survey, so that its results can be compared with others."""

    title: str
    runs: Pairs  # (name of a run, its dates and state)
    run: str  # the last run, shown with every figure
    created: float
    model: DocumentModel
    parameters: Pairs
    units: tuple[UnitRecord, ...]
    merged: int  # pages with the same content as another page of the unit
    documents: int
    links: int
    data: str  # SHA-256 of the URLs, their states, units and links that the figures follow from


@frozen
class OutsideColumn:
    """A figure of the sites from another source. values: by target unit; NaN: the source has none."""

    name: str
    values: tuple[float, ...]


@frozen
class SurveyResults:
    """Data of a survey's report. Unit numbers are indices into `units`, the target set first."""

    units: tuple[Unit, ...]
    chosen: int
    method: MethodSheet
    figures: tuple[UnitFigures, ...]  # of the target units, in order
    totals: tuple[tuple[DocumentModel, int], ...]  # links between distinct target units, by model
    matrix: UnitLinks  # under method.model
    connectivity: tuple[Connectivity, ...]
    companions: tuple[CompanionSite, ...]  # most linking units first
    co_inlinks: tuple[CoLink, ...]
    couplings: tuple[CoLink, ...]
    suffixes_out: tuple[SuffixTally, ...]
    suffixes_in: tuple[SuffixTally, ...]
    harvest: Harvest
    model: FragmentModel
    centralities: tuple[Centrality, ...] = ()  # of the target units, in order
    wif: tuple[Estimate, ...] = ()  # on all known documents, of the target units, in order
    external_wif: tuple[Estimate, ...] = ()
    density: Estimate | None = None  # None: too few sites were read
    outside: tuple[OutsideColumn, ...] = ()
    earlier: SurveyResults | None = None  # of the same field, for a comparison


@frozen
class Campaign:
    """Sites of a survey and the rules for choosing pages. A campaign continues over several runs."""

    title: str = ""
    units: tuple[Unit, ...] = ()
    rule: str = "scout"  # rule for choosing among sites: see `rules`
    within: str = ""  # order within a site: breadth or learned; empty: learned, but breadth for many sites
    item: str = "page"  # what is harvested: an external page, host or (registered) domain
    pages: int = 0  # page budget of all runs together; 0: no limit
    seed: int = 1
    # maximum pages in progress, each of another host; 1: every choice uses the result of the previous page; 0: 1 with a
    # page budget, else unlimited
    at_once: int = 0
    least_pages: int = 0  # minimum pages of each site before the rule compares sites
    read_companions: int = 0  # part of the budget that is spent on companion sites at the end
    companions: tuple[Unit, ...] = ()  # companion sites to read; chosen by a run after the other pages


class SiteProgress(NamedTuple):
    """One site of a campaign: one unit, or several units on one host."""

    name: str
    short: str
    state: str  # reading, read, waiting, or `not available: ...`
    pages: int  # requested pages
    links: int  # distinct external items found on its pages
    recent: float  # new items per page over the last RECENT_PAGES pages
    score: float | None  # score given by the rule; None: too early
    waiting: int  # known pages that are not requested
    prefixes: tuple[str, ...] = ()  # first prefix of each of its units

    @property
    def share(self) -> float:
        """Share of its known pages that is requested; 0.0 if none is known."""
        return self.pages / (self.pages + self.waiting) if self.pages else 0.0


@frozen
class CampaignProgress:
    """Progress of a campaign."""

    campaign: Campaign
    pages: int
    sites: tuple[SiteProgress, ...]  # in campaign order
    harvest: Harvest  # curves, round-robin baseline, completeness
    elapsed_s: float = 0.0  # duration of this run; 0: no run is observed
    companion_pages: tuple[tuple[str, int], ...] = ()  # (companion, requested pages)
