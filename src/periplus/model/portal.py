"""Which words does a portal share: what it is to show, what its editor decided, and what an edition of it holds?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import NewType

from periplus.model.story import Story
from periplus.model.web import SiteKey, Url

EntryKey = NewType("EntryKey", str)
"""Eight letters and digits that name an entry of a portal. A story keeps its key while it grows, whichever page turns out to be its first."""


class Verdict(StrEnum):
    """What an editor decided: of an entry that it is approved, pinned or hidden; of a site that it is pinned or banned."""

    APPROVED = "approved"
    PINNED = "pinned"  # stands first; a pinned entry is approved
    HIDDEN = "hidden"
    BANNED = "banned"


@dataclass(frozen=True, slots=True)
class Portal:
    """What a portal is to show, and how. It is kept with its collection."""

    name: str
    title: str
    created: float  # seconds since the epoch
    lead: str = ""  # a sentence below the title
    topic: str = ""  # name of the relevance model that its stories must satisfy; empty: every story
    period_s: float = 0.0  # how often it is to be made anew; 0: when somebody asks
    approve: bool = False  # only what the editor approved is published
    address: str = ""  # where it will be published; empty: not known, and its feeds name their entries by relative addresses
    stories: int = 12  # on the front page
    sites: int = 20  # chosen at most, pinned ones apart


@dataclass(frozen=True, slots=True)
class Decisions:
    """What the editor of one portal decided so far."""

    entries: Mapping[EntryKey, Verdict]
    sites: Mapping[SiteKey, Verdict]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a page of an entry comes from."""

    run: str  # that fetched it last: `crawl 3`; empty: not known
    fetched: float  # seconds since the epoch; 0.0: not known


@dataclass(frozen=True, slots=True)
class Entry:
    """A story as a portal shows it."""

    key: EntryKey
    story: Story
    weight: float  # telling sites, each counted less the longer ago it told: analyse.edition
    relevance: float | None  # of its pages to the topic, on average, 0 to 1; None: no topic was asked for
    verdict: Verdict | None  # None: nothing was decided
    sentence: str = ""  # with which its content begins; empty: none is fit
    keywords: tuple[str, ...] = ()
    provenance: tuple[Provenance, ...] = ()  # one for each page of the story

    @property
    def published(self) -> float:
        """When the first page was, as far as is known; seconds since the epoch."""
        return self.story.pages[0].date.when

    @property
    def updated(self) -> float:
        """When the last page was that told the story."""
        return max(page.date.when for page in self.story.pages)

    @property
    def week(self) -> str:
        """The ISO 8601 week of the first page, in UTC: `2026-W47`."""
        year, week, _ = datetime.fromtimestamp(self.published, UTC).isocalendar()
        return f"{year:04}-W{week:02}"


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
