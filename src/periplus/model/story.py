"""Which words do stories share: dates of pages, stories, their cascades, and the sites that are worth reading for them?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from periplus.model.web import SiteKey, Url


class DateSource(StrEnum):
    """On whose word a page is dated, the best first."""

    JSON_LD = "json-ld"
    META = "meta"
    TIME = "time"
    FEED = "feed"
    URL = "url"
    TEXT = "text"
    LAST_MODIFIED = "last-modified"
    FIRST_SEEN = "first seen"


@dataclass(frozen=True, slots=True)
class PageDate:
    """When a page was published, as far as is known."""

    when: float  # seconds since the epoch
    source: DateSource
    whole_day: bool = False  # no more than the day is known: `when` is its beginning


class Order(StrEnum):
    """What decided where a page stands in its story."""

    DATES = "dates"
    LINKS = "links"
    FIRST_SEEN = "first seen"


@dataclass(frozen=True, slots=True)
class StoryPage:
    """A page of a story."""

    url: Url
    site: SiteKey
    title: str  # without the site's name
    language: str
    date: PageDate
    order: Order


@dataclass(frozen=True, slots=True)
class Story:
    """Pages that tell one thing, the source first, and how it went from one to the next."""

    pages: tuple[StoryPage, ...]  # in the order of the cascade
    links: tuple[tuple[int, int], ...]  # (citing page, cited page): places in pages
    near: tuple[tuple[int, int, float], ...]  # (later page, earlier page, share of the smaller text that both have), each page's nearest
    disordered: int  # links whose citing page is dated before the page that it cites

    @property
    def title(self) -> str:
        return next((page.title for page in self.pages if page.title), str(self.pages[0].url))

    @property
    def sites(self) -> tuple[SiteKey, ...]:
        """Each once, in the order in which they had the story."""
        return tuple(dict.fromkeys(page.site for page in self.pages))

    @property
    def order(self) -> Order:
        """The weakest word on which a page after the source stands where it stands."""
        return max((page.order for page in self.pages), key=list(Order).index)


@dataclass(frozen=True, slots=True)
class Stories:
    """The stories of a collection, the weightiest first: most sites, then most pages, then the newest."""

    stories: tuple[Story, ...]
    pages: int  # that were compared
    digests: tuple[Url, ...]  # pages that speak of several stories and belong to none
    dated: tuple[tuple[DateSource, int], ...]  # pages by the word on which they are dated
    posts: tuple[tuple[SiteKey, int], ...]  # pages compared, by site


@dataclass(frozen=True, slots=True)
class Cascades:
    """In which order the sites had each story: m stories over n sites, CSR."""

    sites: tuple[str, ...]
    titles: tuple[str, ...]  # of the stories; empty where they have none
    offsets: NDArray[np.int64]  # m + 1
    members: NDArray[np.int64]  # places in sites, by story the earliest first, each site once
    delays_h: NDArray[np.float64]  # hours since the story's first page
    starts_h: NDArray[np.float64]  # m: hours since the epoch
    posts: NDArray[np.int64]  # n: pages of each site


class Objective(StrEnum):
    """What the reader of some sites wants of the stories."""

    DL = "dl"  # detection likelihood: to see them at all
    DT = "dt"  # detection time: to see them early
    PA = "pa"  # population affected: to see them before most sites have them


@dataclass(frozen=True, slots=True)
class Chosen:
    """A site worth reading, in the order of choice."""

    site: int  # place in Cascades.sites
    gain: float  # what it adds to those before it, as a share of all that could be had
    value: float  # of it and those before it, the same
    cost: float
    first_of: tuple[int, ...]  # the stories that it adds, the largest first


@dataclass(frozen=True, slots=True)
class Influence:
    """The sites that together detect the most, and how near that is to the best there can be."""

    chosen: tuple[Chosen, ...]
    value: float  # share of all that could be had with every site
    online_bound: float  # no choice within the budget has more: from the choice alone
    lp_bound: float  # the same, from the linear programme: the smaller one
    budget: float
    rule: str  # benefit or ratio: which one began the choice
    swaps: int
    evaluations: int  # gains that the lazy greedy worked out
    most_posts: tuple[float, ...]  # value of reading the sites with most posts, 1 to as many as were chosen
    missed: tuple[int, ...]  # stories on none of the chosen sites, the largest first


@dataclass(frozen=True, slots=True)
class Holdout:
    """A choice by the earlier half of the stories, scored on the later half."""

    chosen: Influence
    stories: int  # of the later half
    later: tuple[float, ...]  # share of the later half's stories' value, by the first, the first two, ... sites: the chosen, then what the budget still allows
    costs: tuple[float, ...]  # of these sites
    hindsight: float  # what the best choice for the later half has there
    most_posts: tuple[float, ...]  # what the sites with most posts in the earlier half have there, as many as the budget allows
