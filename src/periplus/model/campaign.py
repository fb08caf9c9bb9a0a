"""What is a campaign over many sites told, and how does it stand?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from periplus.model.survey import Unit
from periplus.model.webometrics import Harvest


@dataclass(frozen=True, slots=True)
class Campaign:
    """A survey's sites, and how its pages are spent on them. It outlives runs: each goes on with it."""

    title: str = ""
    units: tuple[Unit, ...] = ()
    rule: str = "scout"  # of choice among sites: see `schedule.bandit.names`
    within: str = ""  # order within a site: breadth or learned; empty: learned, for many sites breadth
    item: str = "page"  # what is harvested: an external page, host or (registered) domain
    pages: int = 0  # in all runs together; 0: no limit
    seed: int = 1
    at_once: int = 0  # pages under way at most; 1: each choice knows what the page before it brought; 0: 1 where pages are the budget, else as many as can
    patience_s: float = -1.0  # longest wait for a favourite while others are ready; -1: two delays where pages are the budget, else none


class SiteStanding(NamedTuple):
    """One site of a campaign: one unit, or several that share a host."""

    name: str
    short: str
    state: str  # reading, read, waiting, or `not available: ...`
    pages: int  # that were asked for
    links: int  # external items that its pages were the first of the site to show
    recent: float  # of them a page, over the last pages (analyse.harvest.RECENT_PAGES)
    score: float | None  # what the rule thinks of it; None: too early
    waiting: int  # pages that are known and not asked for
    prefixes: tuple[str, ...] = ()  # the first of each of its units

    @property
    def share(self) -> float:
        """Of the known pages, those that were asked for; 0.0 with none known."""
        return self.pages / (self.pages + self.waiting) if self.pages else 0.0


@dataclass(frozen=True, slots=True)
class CampaignStanding:
    """A campaign at one moment."""

    campaign: Campaign
    pages: int
    sites: tuple[SiteStanding, ...]  # in the order of the campaign
    harvest: Harvest  # curve, estimated round robin, completeness
    elapsed_s: float = 0.0  # of this run; 0: none is watched


class InternalLink(NamedTuple):
    """A link between two pages of one unit, as the campaign's first table has it."""

    unit: str
    page: str
    target: str
    level: int | None  # of the target: least number of links from the start; None: not known
    processed: bool  # whether the target was asked for
    reason: str  # what became of the target
    anchor: str


class OutwardLink(NamedTuple):
    """A link from a unit to another or to a site outside, with its surroundings as far as they are kept."""

    unit: str
    page: str
    target: str
    anchor: str
    position: str  # part of the page
    title: str  # of the page
    times: int


class BadHref(NamedTuple):
    """What stood where an address belongs, and is none."""

    unit: str
    page: str
    text: str
    why: str
    anchor: str
    position: str
