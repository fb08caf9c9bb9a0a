"""A survey of many sites: its plan and scope, the rule of choice, the links that it collected,
and how its campaign stands.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, cast

import numpy as np

from periplus.analyse.harvest import RECENT_PAGES, harvest_of, harvest_rows
from periplus.analyse.units import unit_finder
from periplus.errors import UsageError
from periplus.model.frontier import ReadyHost
from periplus.model.page import FOLLOWED_KINDS, Document
from periplus.model.ports import CrawlScope
from periplus.model.survey import Unit
from periplus.model.tables import SURVEY_LINKS, Row, row_maker
from periplus.model.visit import FETCHED, Reason
from periplus.model.web import HostKey, SiteKey, Url
from periplus.model.webometrics import (
    Campaign,
    CampaignProgress,
    Harvest,
    SiteProgress,
)
from periplus.present.wording import REASON_WORDS
from periplus.schedule.bandit import CLICKED, Novelty, SitePolicy
from periplus.schedule.bandit import Unit as RewardUnit
from periplus.schedule.names import rule_named
from periplus.schedule.order import PageOrder, Sighting
from periplus.settings import Scope, Settings, settings_from
from periplus.store.sqlite import reading, runs, schema, survey
from periplus.store.sqlite.survey import LinkKey, LinkSighting, StoredLink
from periplus.urls.canonical import canonical, url_id
from periplus.urls.hosts import host_key
from periplus.urls.scope import SiteScope, site_key, site_scope


class UnitScope:
    """`model.ports.CrawlScope` of units.

    Units that share a host are one site to whoever chooses, for a host is asked as a whole.
    """

    def __init__(self, units: Sequence[Unit], rules: Scope) -> None:
        """Raises UsageError for a prefix that two units claim, and for an expression that is none."""
        self._base: SiteScope = site_scope(
            [Url(unit.start) for unit in units if unit.start], dataclasses.replace(rules, scope="any")
        )
        self._unit = unit_finder(units)
        self.site_of_unit = _sites(units)
        self.sites = frozenset(self.site_of_unit)
        self._of_host = {
            host_of(prefix): site
            for unit, site in zip(units, self.site_of_unit, strict=True)
            for prefix in unit.prefixes
        }
        self._wild = any(host.startswith("*.") for host in self._of_host)
        self._known: dict[SiteKey, SiteKey] = {}

    def decide(self, url: Url) -> Reason | None:
        if isinstance(self._unit(url), str) and url not in self._base.starts:
            return Reason.SCOPE
        return self._base.decide(url)

    def rule_for(self, url: Url) -> str:
        outside = isinstance(self._unit(url), str) and url not in self._base.starts
        return "of no site of the survey" if outside else self._base.rule_for(url)

    def refused(self, url: Url) -> str:
        return self._base.refused(url)

    def site_of(self, url: Url) -> SiteKey:
        host = site_key(url)
        found = self._of_host.get(host)
        if found is None:
            found = self._known[host] if host in self._known else self._below(host)
        return found

    def _below(self, host: SiteKey) -> SiteKey:
        """The site of the nearest `*.` prefix around a host; the host itself where there is none."""
        name = str(host)
        found = host
        while self._wild and name:
            if f"*.{name}" in self._of_host:
                found = self._of_host[f"*.{name}"]
                break
            name = name.partition(".")[2]
        self._known[host] = found
        return found


def host_of(prefix: str) -> str:
    """The host of a prefix, its `*.` included."""
    return prefix.partition("/")[0]


def _sites(units: Sequence[Unit]) -> tuple[SiteKey, ...]:
    """Of each unit: the host of its first prefix, or that of the first unit that it is tied to by a shared host."""
    leader = list(range(len(units)))

    def top(place: int) -> int:
        while leader[place] != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    holders: dict[str, int] = {}
    for place, unit in enumerate(units):
        for host in map(host_of, unit.prefixes):
            first = holders.setdefault(host, place)
            one, other = sorted((top(first), top(place)))
            leader[other] = one
    for place, unit in enumerate(units):
        for around in _wild_around(unit, holders):
            one, other = sorted((top(holders[around]), top(place)))
            leader[other] = one
    return tuple(SiteKey(host_of(units[top(place)].prefixes[0]).removeprefix("*.")) for place in range(len(units)))


def _wild_around(unit: Unit, holders: dict[str, int]) -> list[str]:
    """The `*.` prefixes around hosts of which the unit has only a folder: the rest of such a host is theirs."""
    found = []
    for prefix in unit.prefixes:
        host, slash, _ = prefix.partition("/")
        name = host.removeprefix("*.") if slash else ""
        while name:
            if f"*.{name}" in holders:
                found.append(f"*.{name}")
            name = name.partition(".")[2]
    return found


def start_of(unit: Unit) -> Url:
    """Where its reading begins."""
    return canonical(unit.start or f"https://{unit.prefixes[0].removeprefix('*.')}/")


ITEMS = ("page", "host", "domain")
WITHIN = ("breadth", "learned")
MOST_LEARNED = 1_000  # sites up to which the order within is learned unless told otherwise: each takes half a megabyte


def create(folder: Path, campaign: Campaign) -> None:
    """A survey in folder, which may hold a collection but no survey. Raises UsageError, StoreError."""
    checked(campaign)
    if not schema.exists(folder):
        schema.create(folder)

    def begun(before: str) -> str:
        if before:
            raise UsageError(
                f"{folder} holds a survey already: `periplus survey add` adds sites, `periplus survey run` goes on"
            )
        return as_text(campaign)

    survey.change_plan(folder, begun)


def campaign_of(folder: Path) -> Campaign:
    """The survey in folder. Raises UsageError where there is none, NoCollection, StoreError."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        return campaign_in(connection, folder)


def campaign_here(folder: Path) -> Campaign | None:
    """The survey in folder; None: it holds none. Raises NoCollection, StoreError."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        text = survey.plan(connection)
    return campaign_from(text, folder) if text else None


def campaign_in(connection: reading.Connection, folder: Path) -> Campaign:
    return campaign_from(survey.plan(connection), folder)


def add_sites(folder: Path, units: Iterable[Unit]) -> Campaign:
    """With further sites. Raises UsageError for a name or prefix that is there."""
    return change(folder, lambda before: dataclasses.replace(before, units=(*before.units, *units)))


def remove_sites(folder: Path, names: Iterable[str]) -> tuple[Campaign, tuple[Unit, ...]]:
    """Without the sites of these names, short names or prefixes; and these. What was fetched of them stays."""
    wanted, gone = list(names), dict[str, Unit]()

    def changed(before: Campaign) -> Campaign:
        for name in wanted:
            found = [unit for unit in before.units if name in (unit.name, unit.short, unit.start, *unit.prefixes)]
            if not found:
                raise UsageError(f"there is no site {name} in the survey; `periplus survey status` names them")
            gone.update((unit.name, unit) for unit in found)
        return dataclasses.replace(before, units=tuple(unit for unit in before.units if unit.name not in gone))

    return change(folder, changed), tuple(gone.values())


def change(folder: Path, changed: Callable[[Campaign], Campaign]) -> Campaign:
    """The survey as `changed` makes it of what it was. A run that is at work takes it over within a second."""
    text = survey.change_plan(folder, lambda before: as_text(checked(changed(campaign_from(before, folder)))))
    return campaign_from(text, folder)


def stop(folder: Path) -> None:
    """Asks the run that is at work to stop; it stores what is under way."""
    survey.wish_stop(folder, stop=True)


def checked(campaign: Campaign) -> Campaign:
    """The campaign, if it can be. Raises UsageError."""
    if campaign.item not in ITEMS:
        raise UsageError(f"a survey harvests by {', '.join(ITEMS)}, not by {campaign.item!r}")
    if campaign.within not in ("", *WITHIN):
        raise UsageError(f"pages within a site are read by {' or '.join(WITHIN)}, not by {campaign.within!r}")
    if campaign.pages < 0 or campaign.at_once < 0:
        raise UsageError("pages are counted from 0: no limit; so are those at once: as many as suits the budget")
    rule_named(campaign.rule, campaign.pages, max(len(campaign.units), 1))
    for name, times in Counter(unit.name for unit in campaign.units).items():
        if times > 1:
            raise UsageError(f"two sites have the name {name}: name one of them otherwise")
    UnitScope(campaign.units, Scope())
    for unit in campaign.units:
        start_of(unit)
    return campaign


def within_of(campaign: Campaign) -> str:
    """The order within a site that holds."""
    return campaign.within or ("learned" if len(campaign.units) <= MOST_LEARNED else "breadth")


def as_text(campaign: Campaign) -> str:
    """As it is kept: JSON."""
    return json.dumps(dataclasses.asdict(campaign), ensure_ascii=False)


def campaign_from(text: str, folder: Path) -> Campaign:
    """The campaign that `as_text` wrote. Raises UsageError for an empty text: there is none."""
    if not text:
        raise UsageError(f"{folder} holds no survey: `periplus survey create -c {folder} ADDRESS...` makes one of it")
    values = json.loads(text)
    units = tuple(Unit(**(unit | {"prefixes": tuple(unit["prefixes"])})) for unit in values.pop("units"))
    return Campaign(units=units, **values)


@dataclass(frozen=True, slots=True)
class LinkChoice:
    """Which links: texts that page, target and anchor contain, or expressions that they match. Empty: any."""

    kind: str = "external"  # of SURVEY_LINKS
    site: str = ""  # name or short name of a unit
    page: str = ""
    target: str = ""
    anchor: str = ""
    limit: int = -1


def links(folder: Path, wanted: LinkChoice) -> Iterator[Row]:
    """The rows of one of SURVEY_LINKS, page by page; streamed. Raises UsageError, NoCollection, StoreError."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading(), reading.snapshot(connection):
        found = (row for _, row in _found(connection, folder, wanted))
        yield from islice(found, wanted.limit) if wanted.limit >= 0 else found


def delete(folder: Path, wanted: LinkChoice) -> int:
    """Deletes these links from the collection, and nothing else; returns how many.

    The pages that hold them stay as they are.

    While a campaign runs too: what is read later is kept. What the rule has learned from them stays
    learned until the run ends.
    """
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading(), reading.snapshot(connection):
        found = (key for key, _ in _found(connection, folder, wanted))
        keys = list(islice(found, wanted.limit) if wanted.limit >= 0 else found)
    with schema.writing(folder) as connection:
        if wanted.kind == "bad":
            return survey.delete_bad(connection, [key for key in keys if isinstance(key, int)])
        return survey.delete_links(connection, [key for key in keys if isinstance(key, LinkKey)])


def _found(connection: reading.Connection, folder: Path, wanted: LinkChoice) -> Iterator[tuple[LinkKey | int, Row]]:
    if wanted.kind not in SURVEY_LINKS:
        raise UsageError(f"there are links of the kinds {', '.join(SURVEY_LINKS)}, not {wanted.kind!r}")
    units = campaign_in(connection, folder).units
    only = _place(units, wanted.site)
    unit_of, row = unit_finder(units), row_maker(SURVEY_LINKS[wanted.kind].names)
    if wanted.kind == "bad":
        for bad in survey.bad_links(connection, wanted.page, wanted.target, wanted.anchor):
            place = unit_of(bad.page)
            if isinstance(place, int) and only in (None, place):
                yield bad.row, row((units[place].short, bad.page, bad.text, bad.why, bad.anchor, bad.position))
        return
    for link in survey.links(connection, wanted.page, wanted.target, wanted.anchor):
        place = unit_of(link.page)
        if (
            isinstance(place, int)
            and only in (None, place)
            and (unit_of(link.target) == place) == (wanted.kind == "internal")
        ):
            yield link.key, row(_values(units[place], link, wanted.kind))


def _values(unit: Unit, link: StoredLink, kind: str) -> tuple[object, ...]:
    if kind == "internal":
        return unit.short, link.page, link.target, link.depth, link.visited, link.reason, link.anchor
    return unit.short, link.page, link.target, link.anchor, link.key.position, link.title, link.times


def _place(units: tuple[Unit, ...], name: str) -> int | None:
    if not name:
        return None
    for place, unit in enumerate(units):
        if name in (unit.name, unit.short):
            return place
    raise UsageError(f"there is no site {name} in the survey; `periplus survey status` names them")


_FOLLOWED = frozenset(kind.value for kind in FOLLOWED_KINDS)


@dataclass(slots=True)
class _Host:
    """The pages of one host in the order in which they were offered."""

    order: PageOrder = field(default_factory=PageOrder)
    urls: list[Url] = field(default_factory=list)
    numbers: dict[Url, int] = field(default_factory=dict)


class PageOrders:
    """The hosts of a campaign.

    The same pages in the same order make the same orders, whether they are read or played again.
    """

    def __init__(self, crawl_scope: CrawlScope, max_depth: int) -> None:
        """max_depth: depths below the start; -1: no limit."""
        self._crawl_scope, self._max_depth = crawl_scope, max_depth
        self._hosts: dict[HostKey, _Host] = {}

    def begin(self, units: Iterable[Unit]) -> None:
        for unit in units:
            self._offer(Sighting(start_of(unit), "", "", -1, 0, 0))

    def _offer(self, sighting: Sighting) -> None:
        host = self._hosts.setdefault(host_key(sighting.url), _Host())
        if sighting.url not in host.numbers:
            host.numbers[sighting.url] = host.order.offer(sighting)
            host.urls.append(sighting.url)

    def next(self, host: HostKey) -> Url | None:
        """The most promising page of a host; it is not named again. None: nothing that was offered waits."""
        held = self._hosts.get(host)
        number = held.order.next() if held else None
        return None if held is None or number is None else held.urls[number]

    def again(self, url: Url) -> None:
        """A page was asked for in an earlier process: the order moves on as it did then."""
        held = self._hosts.get(host_key(url))
        number = held.numbers.get(url) if held else None
        if held is not None and number is not None:
            held.order.asked(number)

    def read(self, url: Url, depth: int | None, links: Sequence[LinkSighting], new_links: int, redirect: Url) -> None:
        """What a page brought, and which pages it shows."""
        host = self._hosts.get(host_key(url))
        number = host.numbers.get(url) if host else None
        if host is not None and number is not None:
            host.order.told(number, new_links)
        site, place = self._crawl_scope.site_of(url), -1 if number is None else number
        if redirect:
            self._show(
                [LinkSighting(redirect, "redirect", "", "", False)],
                site,
                Sighting(url, "", "", place, new_links, depth or 0),
            )
        if self._max_depth < 0 or depth is None or depth < self._max_depth:
            self._show(sorted(links), site, Sighting(url, "", "", place, new_links, (depth or 0) + 1))

    def _show(self, links: Iterable[LinkSighting], site: SiteKey, told: Sighting) -> None:
        """Offers the targets on the same site. By target, for so they can be had again from what is stored."""
        for link in links:
            follow = link.kind in _FOLLOWED and not link.nofollow
            if (
                follow
                and self._crawl_scope.site_of(link.target) == site
                and self._crawl_scope.decide(link.target) is None
            ):
                self._offer(dataclasses.replace(told, url=link.target, anchor=link.anchor, position=link.position))


def seen(document: Document) -> list[LinkSighting]:
    """A document's links."""
    return [
        LinkSighting(link.target, link.kind.value, link.position.value, link.anchor, link.nofollow)
        for link in document.links
    ]


_CHOICE_FOLLOWED = frozenset(kind.value for kind in CLICKED)
SHORTEST_PATIENCE_S = 2.0  # with a budget of pages: hosts further off are given back by the engine


@dataclass(slots=True)
class YieldRecord:
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
        rows = harvest_rows(
            called, known, site.astype(np.int32), (np.array(self.page, np.int64), np.array(self.item, np.int64))
        )
        outside = (np.array(self.outside_page, np.int64), np.array(self.outside, np.int64))
        return harvest_of(rows, harvest_rows(called, known, site.astype(np.int32), outside), item)


@dataclass(slots=True)
class Chooser:
    """`model.ports.Policy` of a campaign: a rule of choice that remembers what pages brought."""

    rule: SitePolicy
    crawl_scope: UnitScope
    record: YieldRecord = field(default_factory=YieldRecord)
    orders: PageOrders | None = None  # None: by depth
    last: dict[int, int] = field(default_factory=dict)  # new links of documents that are not stored yet, by identity

    @property
    def patience_s(self) -> float:
        return self.rule.patience_s

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        """Whoever was never read is not waited for: a host that does not answer would hold up all others."""
        read = self.record.sites
        hosts = [
            host if not host.wait_s or host.site in read else dataclasses.replace(host, wait_s=math.inf)
            for host in ready
        ]
        return self.rule.choose(hosts, most)

    def told(self, site: SiteKey, document: Document | None, took_s: float) -> None:
        ends = () if document is None else document.links.targets_of(CLICKED)
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
        return {
            site
            for end in ends
            if (site := self.crawl_scope.site_of(end)) not in self.crawl_scope.sites and site == site_key(end)
        }


def chooser_of(campaign: Campaign, settings: Settings, connection: reading.Connection | None = None) -> Chooser:
    """The campaign's chooser as it stands after all stored pages. Raises UsageError."""
    crawl_scope = UnitScope(campaign.units, settings.scope)
    pages = campaign.pages
    patience_s = campaign.patience_s
    if patience_s < 0:
        patience_s = max(2 * settings.politeness.delay_s, SHORTEST_PATIENCE_S) if pages else 0.0
    cost: Literal["pages", "seconds"] = "pages" if pages else "seconds"
    novelty = Novelty(cast(RewardUnit, campaign.item), crawl_scope.site_of)  # checked when the campaign was made
    rule = SitePolicy(
        rule_named(campaign.rule, pages, max(len(crawl_scope.sites), 1)), novelty, campaign.seed, cost, patience_s
    )
    orders = PageOrders(crawl_scope, settings.scope.max_depth) if within_of(campaign) == "learned" else None
    chooser = Chooser(rule, crawl_scope, orders=orders)
    if orders is not None:
        orders.begin(campaign.units)
    if connection is not None:
        played = replay(chooser, connection)
        chooser.rule = _further(chooser.rule, campaign.seed + played)
    return chooser


def _further(rule: SitePolicy, seed: int) -> SitePolicy:
    """The same rule; a seed of its own, so that no draw is made twice."""
    going_on = dataclasses.replace(rule, seed=seed)
    going_on._block = rule._block
    return going_on


def replay(chooser: Chooser, connection: reading.Connection) -> int:
    """Books all stored pages of the territory's sites, as if they had been read now; returns how many.

    0.1 ms a link.
    """
    return sum(again(chooser, connection, visit) for visit in survey.page_visits(connection))


def again(chooser: Chooser, connection: reading.Connection, visit: survey.PageVisit) -> bool:
    """Books one stored page; whether it was asked for and is a site's of the survey."""
    site = chooser.crawl_scope.site_of(visit.url)
    if site not in chooser.crawl_scope.sites:
        return False
    links = survey.links_of(connection, visit.url_id) if visit.read else []
    new = 0
    if visit.asked:
        chooser.rule.resume(site)
        new = chooser.book(site, [link.target for link in links if link.kind in _CHOICE_FOLLOWED], visit.took_s)
    if chooser.orders is not None:
        chooser.orders.again(visit.url)
        chooser.orders.read(visit.url, visit.depth, links, new, Url(visit.redirect))
    return visit.asked


def standing_of(folder: Path) -> CampaignProgress:
    """How the campaign in folder stands, by what is stored; a run may be at work.

    Raises UsageError, NoCollection, StoreError.
    """
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading(), reading.snapshot(connection):
        campaign = campaign_in(connection, folder)
        chooser = chooser_of(campaign, last_settings(connection), connection)
        return standing(campaign, chooser, connection)


def last_settings(connection: reading.Connection) -> Settings:
    """Of the last run: the levels that it read."""
    records = runs.run_records(connection)
    return settings_from({"max_depth": records[-1].settings.get("max_depth", -1)}) if records else Settings()


def standing(
    campaign: Campaign, chooser: Chooser, connection: reading.Connection, elapsed_s: float = 0.0
) -> CampaignProgress:
    """The same of a chooser that is at work."""
    waiting = survey.waiting_by_site(connection)
    starts = survey.standings(connection, [url_id(start_of(unit)) for unit in campaign.units])
    names: dict[SiteKey, str] = {}
    for unit, site in zip(campaign.units, chooser.crawl_scope.site_of_unit, strict=True):
        names[site] = f"{names[site]} + {unit.short}" if site in names else unit.short
    harvest = chooser.record.harvest(names, waiting, campaign.item)
    return CampaignProgress(
        campaign, len(chooser.record.site), _live_sites(campaign, chooser, waiting, starts), harvest, elapsed_s
    )


def _live_sites(
    campaign: Campaign, chooser: Chooser, waiting: Mapping[SiteKey, int], starts: Mapping[int, tuple[str, str]]
) -> tuple[SiteProgress, ...]:
    found: dict[SiteKey, SiteProgress] = {}
    scores = chooser.rule.scores()
    for unit, site in zip(campaign.units, chooser.crawl_scope.site_of_unit, strict=True):
        if site in found:  # units that share a host
            before = found[site]
            prefixes = (*before.prefixes, unit.prefixes[0])
            found[site] = before._replace(
                name=f"{before.name} + {unit.name}", short=f"{before.short} + {unit.short}", prefixes=prefixes
            )
            continue
        place = chooser.rule.places.get(site)
        pages = 0 if place is None else int(chooser.rule.yields.pages[0, place])
        links = 0 if place is None else int(chooser.rule.yields.links[0, place])
        left = waiting.get(site, 0)
        state = _state(starts.get(int(url_id(start_of(unit)))), pages, left)
        score = scores.get(site) if pages >= chooser.rule.rule.first else None
        found[site] = SiteProgress(
            unit.name, unit.short, state, pages, links, _recent(chooser, site, pages), score, left, unit.prefixes[:1]
        )
    return tuple(found.values())


def _recent(chooser: Chooser, site: SiteKey, pages: int) -> float:
    """Items a page over the site's last pages."""
    if not pages:
        return 0.0
    ring = chooser.rule.yields.ring[0, chooser.rule.places[site]]
    last = (pages - 1 - np.arange(min(pages, RECENT_PAGES))) % len(ring)
    return float(ring[last].mean())


_GOOD = FETCHED | {Reason.REDIRECT, Reason.ALIAS}


def _state(start: tuple[str, str] | None, pages: int, waiting: int) -> str:
    """By what became of the start, as (reason, rule)."""
    if start is None or start[0] == Reason.WAITING:
        return "waiting" if not pages else "reading"
    reason = Reason(start[0])
    if reason not in _GOOD:
        return f"not available: {REASON_WORDS[reason]}" + (f" ({start[1]})" if start[1] else "")
    return "reading" if waiting else "read"
