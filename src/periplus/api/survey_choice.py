"""Who is next in a campaign, and what did each page bring? The rule of choice, its memory, and the same again from what is stored."""

from __future__ import annotations

import dataclasses
import math
from array import array
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, cast

import numpy as np

from periplus.analyse.harvest import harvest_of, harvest_rows
from periplus.api.survey_orders import PageOrders
from periplus.api.survey_plan import within_of
from periplus.api.survey_scope import UnitTerritory
from periplus.model.campaign import Campaign
from periplus.model.frontier import ReadyHost
from periplus.model.page import Document
from periplus.model.web import SiteKey, Url
from periplus.model.webometrics import Harvest
from periplus.schedule.bandit.names import rule_named
from periplus.schedule.bandit.policy import SiteRule
from periplus.schedule.bandit.reward import CLICKED, Novelty, Unit
from periplus.settings import Settings
from periplus.store.sqlite import reading, survey_visits
from periplus.urls.scope import site_key

_FOLLOWED = frozenset(kind.value for kind in CLICKED)
SHORTEST_PATIENCE_S = 2.0  # with a budget of pages: hosts further off are given back by the engine


@dataclass(slots=True)
class Record:
    """What every page brought, for curves and estimates: 8 bytes a link."""

    sites: dict[SiteKey, int] = field(default_factory=dict)
    site: array[int] = field(default_factory=lambda: array("q"))  # of each page
    page: array[int] = field(default_factory=lambda: array("q"))  # of each item
    item: array[int] = field(default_factory=lambda: array("q"))
    outside_page: array[int] = field(default_factory=lambda: array("q"))
    outside: array[int] = field(default_factory=lambda: array("q"))  # sites outside the survey
    _numbers: dict[int | str, int] = field(default_factory=dict)
    _outside_numbers: dict[str, int] = field(default_factory=dict)

    def book(self, site: SiteKey, targets: Iterable[int | str], outside: Iterable[SiteKey]) -> None:
        """The next page."""
        page = len(self.site)
        self.site.append(self.sites.setdefault(site, len(self.sites)))
        for target in targets:
            self.page.append(page)
            self.item.append(self._numbers.setdefault(target, len(self._numbers)))
        for name in outside:
            self.outside_page.append(page)
            self.outside.append(self._outside_numbers.setdefault(name, len(self._outside_numbers)))

    def harvest(self, names: dict[SiteKey, str], waiting: dict[SiteKey, int], item: str) -> Harvest:
        """Curves, the round robin, completeness. O(links log links)."""
        site = np.array(self.site, np.int64)
        sites = [*self.sites, *(key for key in names if key not in self.sites)]  # also those of which nothing was read
        known = np.bincount(site, minlength=len(sites)) + np.array([waiting.get(key, 0) for key in sites], np.int64)
        called = [names.get(key, key) for key in sites]
        rows = harvest_rows(called, known, site.astype(np.int32), (np.array(self.page, np.int64), np.array(self.item, np.int64)))
        outside = (np.array(self.outside_page, np.int64), np.array(self.outside, np.int64))
        return harvest_of(rows, harvest_rows(called, known, site.astype(np.int32), outside), item)


@dataclass(slots=True)
class Chooser:
    """`model.ports.Policy` of a campaign: a rule of choice that remembers what pages brought."""

    rule: SiteRule
    territory: UnitTerritory
    record: Record = field(default_factory=Record)
    orders: PageOrders | None = None  # None: layer by layer
    last: dict[int, int] = field(default_factory=dict)  # new links of documents that are not stored yet, by identity

    @property
    def patience_s(self) -> float:
        return self.rule.patience_s

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        """Whoever was never read is not waited for: a host that does not answer would hold up all others."""
        read = self.record.sites
        hosts = [host if not host.wait_s or host.site in read else dataclasses.replace(host, wait_s=math.inf) for host in ready]
        return self.rule.choose(hosts, most)

    def told(self, site: SiteKey, document: Document | None, took_s: float) -> None:
        ends = () if document is None else [link.target for link in document.links if link.kind in CLICKED]
        new = self.book(site, ends, took_s)
        if document is not None and self.orders is not None:
            self.last[id(document)] = new

    def book(self, site: SiteKey, ends: Sequence[Url], took_s: float) -> int:
        """A page with the ends of its links; returns how many are new."""
        targets = self.rule.novelty.targets(site, ends)
        reward = self.rule.novelty.count(site, targets)
        self.rule.book(site, float(reward.new), reward.met_again, took_s)
        self.record.book(site, targets, self._outside(ends) if targets else ())
        return reward.new

    def _outside(self, ends: Iterable[Url]) -> Set[SiteKey]:
        return {site for end in ends if (site := self.territory.site_of(end)) not in self.territory.sites and site == site_key(end)}


def chooser_of(campaign: Campaign, settings: Settings, connection: reading.Connection | None = None) -> Chooser:
    """The campaign's chooser as it stands after all stored pages. Raises UsageError."""
    territory = UnitTerritory(campaign.units, settings.scope)
    pages = campaign.pages
    patience_s = campaign.patience_s
    if patience_s < 0:
        patience_s = max(2 * settings.manners.delay_s, SHORTEST_PATIENCE_S) if pages else 0.0
    cost: Literal["pages", "seconds"] = "pages" if pages else "seconds"
    novelty = Novelty(cast(Unit, campaign.item), territory.site_of)  # checked when the campaign was made
    rule = SiteRule(rule_named(campaign.rule, pages, max(len(territory.sites), 1)), novelty, campaign.seed, cost, patience_s)
    orders = PageOrders(territory, settings.scope.max_depth) if within_of(campaign) == "learned" else None
    chooser = Chooser(rule, territory, orders=orders)
    if orders is not None:
        orders.begin(campaign.units)
    if connection is not None:
        played = replay(chooser, connection)
        chooser.rule = _further(chooser.rule, campaign.seed + played)
    return chooser


def _further(rule: SiteRule, seed: int) -> SiteRule:
    """The same rule; a seed of its own, so that no draw is made twice."""
    going_on = dataclasses.replace(rule, seed=seed)
    going_on._block = rule._block
    return going_on


def replay(chooser: Chooser, connection: reading.Connection) -> int:
    """Books all stored pages of the territory's sites, as if they had been read now; returns how many. 0.1 ms a link."""
    return sum(again(chooser, connection, visit) for visit in survey_visits.page_visits(connection))


def again(chooser: Chooser, connection: reading.Connection, visit: survey_visits.PageVisit) -> bool:
    """Books one stored page; whether it was asked for and is a site's of the survey."""
    site = chooser.territory.site_of(visit.url)
    if site not in chooser.territory.sites:
        return False
    links = survey_visits.links_of(connection, visit.url_id) if visit.read else []
    new = 0
    if visit.asked:
        chooser.rule.resume(site)
        new = chooser.book(site, [link.target for link in links if link.kind in _FOLLOWED], visit.took_s)
    if chooser.orders is not None:
        chooser.orders.again(visit.url)
        chooser.orders.read(visit.url, visit.layer, links, new, Url(visit.redirect))
    return visit.asked
