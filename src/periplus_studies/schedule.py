"""A survey as the policy of a crawl: its units, the choice of the next site and page, and the yield of every page."""

from __future__ import annotations

import dataclasses
import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import ClassVar, Literal, cast

import numpy as np

from periplus.errors import UsageError
from periplus.masking import without_secrets
from periplus.model.arrays import Ints
from periplus.model.frontier import LinkSighting, PageVisit, ReadyHost
from periplus.model.page import CLICK_KINDS
from periplus.model.ports import CrawlScope
from periplus.model.visit import Reason
from periplus.model.web import HostKey, SiteKey, Url
from periplus.schedule.order import PageOrder, Sighting
from periplus.settings import Scope, Settings
from periplus.urls.canonical import canonical
from periplus.urls.hosts import host_key, host_url
from periplus.urls.scope import SiteScope, site_key, site_scope
from periplus_studies.model import Campaign, Unit
from periplus_studies.rules import CLICK_LINKS, Novelty, SitePolicy, parse_rule
from periplus_studies.rules import Unit as RewardUnit
from periplus_studies.units import unit_finder

PLAN = "survey"  # name of a note in the collection
ITEMS = ("page", "host", "domain")
WITHIN = ("breadth", "learned")
MOST_SITES_LEARNING = 1_000  # up to so many sites, the order within is learned by default: each takes half a megabyte
MOST_HOSTS = 128  # hosts leased at a time: each commit writes the state of all, and each choice compares them
COMPANION_PAGES = 10  # of a companion before the next one: the front page and pages linked there have the backlinks
REST = 8  # choices for which a site rests after a failure: about as many seconds as the wait before a retry


# The plan -------------------------------------------------------------------------------------------------------------


def check_campaign(campaign: Campaign) -> Campaign:
    """The campaign unchanged, if it is valid. Raises UsageError."""
    if campaign.item not in ITEMS:
        raise UsageError(f"a survey counts links by {', '.join(ITEMS)}, not by {campaign.item!r}")
    if campaign.within not in ("", *WITHIN):
        raise UsageError(f"the order within a site is {' or '.join(WITHIN)}, not {campaign.within!r}")
    if campaign.pages < 0 or campaign.at_once < 0:
        raise UsageError("pages and at-once must not be negative; 0 means no limit of pages, and at-once by the budget")
    parse_rule(campaign.rule, campaign.pages, max(len(campaign.units), 1))
    if campaign.least_pages < 0 or campaign.read_companions < 0:
        raise UsageError("the least pages of a site and the pages of companions must not be negative")
    if campaign.read_companions and campaign.read_companions >= campaign.pages:
        raise UsageError(
            f"the {campaign.read_companions:,} pages of companions are part of the total of {campaign.pages:,} pages: "
            "give a larger total"
        )
    if campaign.pages and campaign.least_pages * len(campaign.units) > target_pages(campaign):
        raise UsageError(
            f"{campaign.least_pages:,} pages of each of {len(campaign.units):,} sites exceed the budget of "
            f"{target_pages(campaign):,} pages: give more pages, or fewer of each site"
        )
    for name, times in Counter(unit.name for unit in campaign.units).items():
        if times > 1:
            raise UsageError(f"two sites have the name {name}: rename one of them")
    UnitScope(campaign.units, Scope())
    for unit in campaign.units:
        start_of(unit)
    return campaign


def target_pages(campaign: Campaign) -> int:
    """Pages for the survey's own sites; 0: no limit."""
    return campaign.pages - campaign.read_companions


def within_of(campaign: Campaign) -> str:
    """The order within a site: as set, else by the number of sites."""
    return campaign.within or ("learned" if len(campaign.units) <= MOST_SITES_LEARNING else "breadth")


def start_of(unit: Unit) -> Url:
    """The start URL of a unit."""
    return canonical(unit.start or f"https://{unit.prefixes[0].removeprefix('*.')}/")


def plan_text(campaign: Campaign) -> str:
    """The stored form of the plan: JSON."""
    return json.dumps(dataclasses.asdict(campaign), ensure_ascii=False)


def campaign_from(text: str, place: object) -> Campaign:
    """Parses the output of `plan_text`. Raises UsageError for an empty text. place: for the error message."""
    if not text:
        name = without_secrets(str(place))
        raise UsageError(f"{name} has no survey; create one with `periplus survey create -c {name} ADDRESS...`")
    values = json.loads(text)
    units, companions = (
        tuple(Unit(**(unit | {"prefixes": tuple(unit["prefixes"])})) for unit in values.pop(name, ()))
        for name in ("units", "companions")
    )
    return Campaign(units=units, companions=companions, **values)


def read_units(campaign: Campaign) -> tuple[Unit, ...]:
    """The survey's sites, then the companions that are read, without those that were added to the survey."""
    if not campaign.companions:
        return campaign.units
    scope = UnitScope(campaign.units, Scope())
    outside = (unit for unit in campaign.companions if scope.site_of(start_of(unit)) not in scope.sites)
    return (*campaign.units, *outside)


# The scope ------------------------------------------------------------------------------------------------------------


class UnitScope:
    """`model.ports.CrawlScope` of units.

    Units that share a host count as one site in choices, since politeness is per host.
    """

    def __init__(self, units: Sequence[Unit], rules: Scope) -> None:
        """Raises UsageError for a prefix of two units, and for an invalid expression in the rules."""
        self._base: SiteScope = site_scope(
            [Url(unit.start) for unit in units if unit.start], dataclasses.replace(rules, scope="any")
        )
        self._unit = unit_finder(units)
        self.site_of_unit = _sites(units)
        self.order = {site: place for place, site in enumerate(dict.fromkeys(self.site_of_unit))}
        self.sites = frozenset(self.order)
        self._of_host = {
            host_of(prefix): site
            for unit, site in zip(units, self.site_of_unit, strict=True)
            for prefix in unit.prefixes
        }
        self._wild = any(host.startswith("*.") for host in self._of_host)
        self._below: dict[SiteKey, SiteKey] = {}

    def decide(self, url: Url) -> Reason | None:
        return Reason.SCOPE if self._is_outside(url) else self._base.decide(url)

    def ruling(self, url: Url) -> tuple[bool, str]:
        return (False, "of no site of the survey") if self._is_outside(url) else self._base.ruling(url)

    def exclusion_reason(self, url: Url) -> str:
        return self._base.exclusion_reason(url)

    def site_of(self, url: Url) -> SiteKey:
        host = site_key(url)
        site = self._of_host.get(host) or self._below.get(host)
        if site is None:
            site = self._below[host] = self._wild_site(host)
        return site

    def _is_outside(self, url: Url) -> bool:
        return isinstance(self._unit(url), str) and url not in self._base.starts

    def _wild_site(self, host: SiteKey) -> SiteKey:
        """The site of the longest `*.` prefix that contains the host; the host itself if there is none."""
        name = str(host) if self._wild else ""
        while name and f"*.{name}" not in self._of_host:
            name = name.partition(".")[2]
        return self._of_host[f"*.{name}"] if name else host


def host_of(prefix: str) -> str:
    """The host of a prefix, including `*.`."""
    return prefix.partition("/")[0]


def _sites(units: Sequence[Unit]) -> tuple[SiteKey, ...]:
    """Site of each unit: the host of its first prefix, or of the first unit with which it shares a host."""
    leader = list(range(len(units)))

    def top(place: int) -> int:
        while leader[place] != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    def tie(place: int, other: int) -> None:
        first, second = sorted((top(place), top(other)))
        leader[second] = first

    holders: dict[str, int] = {}
    for place, unit in enumerate(units):
        for host in map(host_of, unit.prefixes):
            tie(holders.setdefault(host, place), place)
    for place, unit in enumerate(units):
        for around in _wild_around(unit, holders):
            tie(holders[around], place)
    return tuple(SiteKey(host_of(units[top(place)].prefixes[0]).removeprefix("*.")) for place in range(len(units)))


def _wild_around(unit: Unit, holders: dict[str, int]) -> list[str]:
    """The `*.` prefixes that contain a host of which the unit has only a folder: the rest of the host is theirs."""
    around = []
    for prefix in unit.prefixes:
        host, slash, _ = prefix.partition("/")
        name = host.removeprefix("*.") if slash else ""
        while name:
            if f"*.{name}" in holders:
                around.append(f"*.{name}")
            name = name.partition(".")[2]
    return around


# Which page of a site is next -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Host:
    """The pages of one host, numbered in the order of `offer`."""

    order: PageOrder = field(default_factory=PageOrder)
    urls: list[Url] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    numbers: dict[Url, int] = field(default_factory=dict)


class PageOrders:
    """The learned orders of the hosts of a campaign. The same visits in the same order make the same orders."""

    def __init__(self, scope: CrawlScope, max_depth: int, units: Iterable[Unit]) -> None:
        """max_depth: clicks below the start; -1: no limit."""
        self._scope, self._max_depth = scope, max_depth
        self._hosts: dict[HostKey, _Host] = {}
        for unit in units:
            self._offer(Sighting(start_of(unit), "", "", -1, 0, 0))

    def _offer(self, sighting: Sighting) -> None:
        host = self._hosts.setdefault(host_key(sighting.url), _Host())
        number = host.numbers.get(sighting.url)
        if number is None:
            host.numbers[sighting.url] = host.order.offer(sighting)
            host.urls.append(sighting.url)
            host.depths.append(sighting.depth)
        else:
            host.depths[number] = min(host.depths[number], sighting.depth)

    def best(self, host: HostKey) -> Iterator[Url]:
        """The waiting pages of a host, most promising first."""
        if (pages := self._hosts.get(host)) is not None:
            yield from (pages.urls[number] for number in pages.order.best())

    def learn(self, visit: PageVisit, new_links: int) -> None:
        """Learns the new links of a page, and offers the pages that it links to.

        Depths are counted along the learned links, since stored depths may change after a page was read.
        """
        pages = self._hosts.get(host_key(visit.url))
        number = pages.numbers.get(visit.url) if pages else None
        source, depth = -1, 0
        if pages is not None and number is not None:
            source, depth = number, pages.depths[number]
            pages.order.drop(number)
            if visit.asked:
                pages.order.learn(number, new_links)
        site = self._scope.site_of(visit.url)
        if visit.redirect:
            self._show([LinkSighting(visit.redirect, "redirect", "", "", False)], site, source, new_links, depth)
        if self._max_depth < 0 or depth < self._max_depth:
            self._show(sorted(visit.links), site, source, new_links, depth + 1)

    def _show(self, links: Iterable[LinkSighting], site: SiteKey, source: int, new_links: int, depth: int) -> None:
        """Offers the targets on the same site. Callers sort links, so that stored links give the same order again."""
        for link in links:
            follow = link.kind in CLICK_KINDS and not link.nofollow
            if follow and self._scope.site_of(link.target) == site and self._scope.decide(link.target) is None:
                self._offer(Sighting(link.target, link.anchor, link.position, source, new_links, depth))


# The yield of every page ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class YieldRecord:
    """The items that every page links to, for curves and estimates: 8 bytes per link."""

    sites: dict[SiteKey, int] = field(default_factory=dict)
    site: array[int] = field(default_factory=lambda: array("q"))  # of each page
    page: array[int] = field(default_factory=lambda: array("q"))  # of each item
    item: array[int] = field(default_factory=lambda: array("q"))
    outside_page: array[int] = field(default_factory=lambda: array("q"))
    outside: array[int] = field(default_factory=lambda: array("q"))  # sites outside the survey
    _numbers: dict[int | str, int] = field(default_factory=dict)
    _outside_numbers: dict[str, int] = field(default_factory=dict)

    def book(self, site: SiteKey, targets: Iterable[int | str], outside: Iterable[SiteKey]) -> None:
        """Adds the next page."""
        page = len(self.site)
        self.site.append(self.sites.setdefault(site, len(self.sites)))
        for target in targets:
            self.page.append(page)
            self.item.append(self._numbers.setdefault(target, len(self._numbers)))
        for name in outside:
            self.outside_page.append(page)
            self.outside.append(self._outside_numbers.setdefault(name, len(self._outside_numbers)))

    def pairs(self, *, outside: bool = False) -> tuple[Ints, Ints]:
        """(page, item) pairs as two arrays; with outside=True, (page, site outside the survey)."""
        pages, items = (self.outside_page, self.outside) if outside else (self.page, self.item)
        return np.array(pages, np.int64), np.array(items, np.int64)


@dataclass(slots=True)
class SurveyPolicy:
    """`model.ports.Policy` of a campaign: a rule of choice among its sites, and an order of the pages of each.

    Only `learn` changes it: its state follows from the plan and the stored visits in their order, by whichever process
    they were stored.

    After a failure that may pass, a site rests for REST choices, twice as many with each further failure in a row,
    unless no other site is ready. Rests are counted in choices, not seconds.
    """

    rule: SitePolicy
    scope: UnitScope
    orders: PageOrders | None  # None: pages by depth
    window: int
    most_hosts: int = MOST_HOSTS
    record: YieldRecord = field(default_factory=YieldRecord)
    mark: int = 0
    # number of requested pages by companion, the strongest first; companions are read after companions_from pages of
    # the survey's sites
    companions: dict[SiteKey, int] = field(default_factory=dict)
    companions_from: int = 0
    reads_text: ClassVar[bool] = False
    _asked: int = 0  # requested pages, with those of companions
    _rests: dict[SiteKey, tuple[int, int]] = field(default_factory=dict)  # (failures in a row, end as value of _asked)
    _sites: dict[HostKey, SiteKey] = field(default_factory=dict)

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        groups: tuple[list[ReadyHost], list[ReadyHost]] = ([], [])  # (active, resting)
        for host in ready:
            site = self.site_of(host.host)  # the store may have assigned the host before its site joined the survey
            rests = self._rests.get(site, (0, 0))[1] > self._asked
            groups[rests].append(host if host.site == site else dataclasses.replace(host, site=site))
        return [host_id for group in groups if group for host_id in self._rank_hosts(group, most)][:most]

    def _rank_hosts(self, hosts: list[ReadyHost], most: int) -> Sequence[int]:
        # the store may return the same hosts in another order when a survey is continued
        hosts.sort(key=lambda host: (self.scope.order.get(host.site, -1), host.host))
        rank = {site: (pages // COMPANION_PAGES, place) for place, (site, pages) in enumerate(self.companions.items())}
        own = self.rule.choose([host for host in hosts if host.site not in rank], most)
        companions = sorted((host for host in hosts if host.site in rank), key=lambda host: rank[host.site])
        others = [host.host_id for host in companions]
        return [*own, *others] if len(self.record.site) < self.companions_from else [*others, *own]

    def site_of(self, host: HostKey) -> SiteKey:
        """The host's site in the scope."""
        site = self._sites.get(host)
        if site is None:
            site = self._sites[host] = self.scope.site_of(host_url(host))
        return site

    def next(self, host: HostKey) -> Iterator[Url]:
        """Pages by the learned order. Without it, and for pages unknown to it, the store chooses by depth."""
        return iter(()) if self.orders is None else self.orders.best(host)

    def learn(self, visits: Iterable[PageVisit]) -> None:
        """Takes 0.1 ms per link."""
        for visit in visits:
            self.mark = max(self.mark, visit.id)
            site = self.scope.site_of(visit.url)
            self._rest(site, visit)
            if site in self.companions:
                self._book_companion(site, visit)
            elif site in self.scope.sites:
                self._book(site, visit)

    def _rest(self, site: SiteKey, visit: PageVisit) -> None:
        self._asked += visit.asked
        if visit.may_pass:
            failures, _ = self._rests.get(site, (0, 0))
            self._rests[site] = failures + 1, self._asked + REST * 2**failures
        elif visit.asked:
            self._rests.pop(site, None)

    def _book_companion(self, site: SiteKey, visit: PageVisit) -> None:
        """The yield of a companion's page is the number of survey sites that it links to."""
        self.companions[site] += visit.asked
        if self.orders is not None:
            ends = {self.scope.site_of(link.target) for link in visit.links if link.kind in CLICK_LINKS}
            self.orders.learn(visit, len((ends & self.scope.sites) - self.companions.keys()))

    def _book(self, site: SiteKey, visit: PageVisit) -> None:
        new = 0
        if visit.asked:
            new = self.book(site, [link.target for link in visit.links if link.kind in CLICK_LINKS], visit.took_s)
        if self.orders is not None:
            self.orders.learn(visit, new)

    def book(self, site: SiteKey, ends: Sequence[Url], took_s: float) -> int:
        """Records a page with the targets of its links; returns how many are new."""
        targets = self.rule.novelty.targets(site, ends)
        new = self.rule.novelty.count(site, targets)
        self.rule.book(site, float(new), took_s)
        self.record.book(site, targets, self._outside(ends) if targets else ())
        return new

    def _outside(self, ends: Iterable[Url]) -> Set[SiteKey]:
        return {
            site
            for end in ends
            if ((site := self.scope.site_of(end)) not in self.scope.sites or site in self.companions)
            and site == site_key(end)
        }


def survey_policy(campaign: Campaign, settings: Settings) -> SurveyPolicy:
    """The campaign's policy in its initial state. Raises UsageError."""
    units = read_units(campaign)
    scope = UnitScope(units, settings.scope)
    companions = scope.site_of_unit[len(campaign.units) :]
    cost: Literal["pages", "seconds"] = "pages" if campaign.pages else "seconds"
    novelty = Novelty(cast(RewardUnit, campaign.item), scope.site_of)  # checked when the campaign was made
    rule = parse_rule(campaign.rule, target_pages(campaign), max(len(scope.sites) - len(companions), 1))
    rule = dataclasses.replace(rule, first=max(rule.first, campaign.least_pages))
    sites = SitePolicy(rule, novelty, campaign.seed, cost)
    for site in scope.order:  # all at once: the staleness of scores must not depend on when sites were discovered
        if site not in companions:
            sites.place(site)
    learned = within_of(campaign) == "learned"
    return SurveyPolicy(
        sites,
        scope,
        PageOrders(scope, settings.scope.max_depth, units) if learned else None,
        (campaign.at_once or 1) if campaign.pages else 0,
        max(MOST_HOSTS, 4 * settings.politeness.concurrency),
        companions=dict.fromkeys(companions, 0),
        companions_from=target_pages(campaign),
    )
