"""Words that stories and portals share: dates, stories, cascades, sites that told them, and what an editor decided."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NewType

from periplus.model.web import SiteKey, Url
from periplus.values import frozen

if TYPE_CHECKING:  # a crawl reads dates, and has no arrays
    import numpy as np
    from numpy.typing import NDArray


class DateOrigin(StrEnum):
    """On whose word a page is dated, the best first."""

    JSON_LD = "json-ld"
    META = "meta"
    TIME = "time"
    FEED = "feed"
    URL = "url"
    TEXT = "text"
    LAST_MODIFIED = "last-modified"
    FIRST_SEEN = "first seen"


@frozen
class PageDate:
    """When a page was published, as far as is known."""

    when: float  # seconds since the epoch
    source: DateOrigin
    whole_day: bool = False  # no more than the day is known: `when` is its beginning


class Order(StrEnum):
    """What decided where a page stands in its story."""

    DATES = "dates"
    LINKS = "links"
    FIRST_SEEN = "first seen"


@frozen
class StoryPage:
    """A page of a story."""

    url: Url
    site: SiteKey
    title: str  # without the site's name
    language: str
    date: PageDate
    order: Order


@frozen
class Story:
    """Pages that tell one thing, the source first, and how it went from one to the next."""

    pages: tuple[StoryPage, ...]  # in the order of the cascade
    links: tuple[tuple[int, int], ...]  # (citing page, cited page): places in pages
    # (later page, earlier page, share of the smaller text that both have), each page's nearest
    near: tuple[tuple[int, int, float], ...]
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


@frozen
class Stories:
    """The stories of a collection, the weightiest first: most sites, then most pages, then the newest."""

    stories: tuple[Story, ...]
    pages: int  # that were compared
    digests: tuple[Url, ...]  # pages that speak of several stories and belong to none
    dated: tuple[tuple[DateOrigin, int], ...]  # pages by the word on which they are dated
    posts: tuple[tuple[SiteKey, int], ...]  # pages compared, by site


@frozen
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


@frozen
class Chosen:
    """A site worth reading, in the order of choice."""

    site: int  # place in Cascades.sites
    gain: float  # what it adds to those before it, as a share of all that could be had
    value: float  # of it and those before it, the same
    cost: float
    first_of: tuple[int, ...]  # the stories that it adds, the largest first


@frozen
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


@frozen
class Holdout:
    """A choice by the earlier half of the stories, scored on the later half."""

    chosen: Influence
    stories: int  # of the later half
    # share of the later half's stories' value, by the first, the first two, ... sites: the chosen, then
    # what the budget still allows
    later: tuple[float, ...]
    costs: tuple[float, ...]  # of these sites
    hindsight: float  # what the best choice for the later half has there
    # what the sites with most posts in the earlier half have there, as many as the budget allows
    most_posts: tuple[float, ...]


EntryKey = NewType("EntryKey", str)
"""Eight letters and digits that name an entry of a portal.

A story keeps its key while it grows, whichever page turns out to be its first.
"""


class EditorVerdict(StrEnum):
    """What an editor decided: of an entry that it is approved, pinned or hidden;
    of a site that it is pinned or banned.
    """

    APPROVED = "approved"
    PINNED = "pinned"  # stands first; a pinned entry is approved
    HIDDEN = "hidden"
    BANNED = "banned"


@frozen
class Portal:
    """What a portal is to show, and how. It is kept with its collection."""

    name: str
    title: str
    created: float  # seconds since the epoch
    lead: str = ""  # a sentence below the title
    topic: str = ""  # name of the relevance model that its stories must satisfy; empty: every story
    period_s: float = 0.0  # how often it is to be made anew; 0: when somebody asks
    approve: bool = False  # only what the editor approved is published
    # where it will be published; empty: not known, and its feeds name their entries by relative addresses
    address: str = ""
    stories: int = 12  # on the front page
    sites: int = 20  # chosen at most, pinned ones apart


@frozen
class Decisions:
    """What the editor of one portal decided so far."""

    entries: Mapping[EntryKey, EditorVerdict]
    sites: Mapping[SiteKey, EditorVerdict]


@frozen
class Provenance:
    """Where a page of an entry comes from."""

    run: str  # that fetched it last: `crawl 3`; empty: not known
    fetched: float  # seconds since the epoch; 0.0: not known


@frozen
class Entry:
    """A story as a portal shows it."""

    key: EntryKey
    story: Story
    weight: float  # telling sites, each counted less the longer ago it told: analyse.edition
    relevance: float | None  # of its pages to the topic, on average, 0 to 1; None: no topic was asked for
    verdict: EditorVerdict | None  # None: nothing was decided
    sentence: str = ""  # with which its content begins; empty: none is fit
    keywords: tuple[str, ...] = ()
    provenance: tuple[Provenance, ...] = ()  # one for each page of the story
    words: str = ""  # the editor's own, shown in place of the sentence
    picture: bytes = b""  # the editor's: PNG, JPEG, GIF or WebP
    alt: str = ""  # what is seen on the picture; empty only without one

    @property
    def published(self) -> float:
        """When the first page was, as far as is known; seconds since the epoch."""
        return self.story.pages[0].date.when

    @property
    def updated(self) -> float:
        """When the last page was that told the story."""
        return self.latest.when

    @property
    def latest(self) -> PageDate:
        """Of the last page that told the story."""
        return max((page.date for page in self.story.pages), key=lambda date: date.when)

    @property
    def week(self) -> str:
        """The ISO 8601 week of the first page, in UTC: `2026-W47`."""
        year, week, _ = datetime.fromtimestamp(self.published, UTC).isocalendar()
        return f"{year:04}-W{week:02}"


@frozen
class PortalSite:
    """A site that a portal follows."""

    key: SiteKey
    home: Url
    title: str
    feeds: tuple[Url, ...]
    stories: int  # of those that the portal may show
    gain: float  # share of the stories that it has and none before it
    relevance: float | None  # of its pages in stories to the topic, on average; None: no topic was asked for
    pinned: bool


@frozen
class Edition:
    """A portal as it is at one moment: everything that its pages and feeds say."""

    portal: Portal
    made: float  # seconds since the epoch
    run: str  # the collection's last run: `crawl 3`
    run_ended: float
    pages: int  # that were compared to find the stories
    entries: tuple[Entry, ...]  # published: pinned ones first, then by weight
    waiting: tuple[Entry, ...]  # for the editor's approval
    hidden: tuple[Entry, ...]
    sites: tuple[PortalSite, ...]
    covered: float | None  # share of the stories that at least one of the sites has; None: there is no story
    lacks: tuple[str, ...]  # what the edition had to do without, a sentence each

    @property
    def front(self) -> tuple[Entry, ...]:
        return self.entries[: self.portal.stories]
