"""Values of stories, portals, topics and keywords."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from math import ceil, isfinite
from typing import TYPE_CHECKING, NamedTuple, NewType

import numpy as np

from periplus.errors import UsageError
from periplus.model.page import DateOrigin, PageDate
from periplus.model.web import SiteKey, Url
from periplus.values import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from periplus.model.arrays import Floats32


class Order(StrEnum):
    """Evidence for a page's position in its story."""

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
    """Pages of several sites on one event, source first, and the links between them."""

    pages: tuple[StoryPage, ...]  # in cascade order
    links: tuple[tuple[int, int], ...]  # (citing page, cited page): indices into pages
    # (later page, earlier page, shared part of the smaller text): the nearest earlier page of each page
    near: tuple[tuple[int, int, float], ...]
    disordered: int  # links from a page with an earlier date to one with a later date

    @property
    def title(self) -> str:
        return next((page.title for page in self.pages if page.title), str(self.pages[0].url))

    @property
    def sites(self) -> tuple[SiteKey, ...]:
        """Distinct sites, in the order of publication."""
        return tuple(dict.fromkeys(page.site for page in self.pages))

    @property
    def order(self) -> Order:
        """Weakest evidence used to order the pages."""
        return max((page.order for page in self.pages), key=list(Order).index)


@frozen
class Stories:
    """The stories of a collection, sorted by number of sites, then number of pages, then newest first."""

    stories: tuple[Story, ...]
    pages: int  # compared pages
    digests: tuple[Url, ...]  # pages about several stories, which belong to none
    dated: tuple[tuple[DateOrigin, int], ...]  # number of pages by source of the date
    posts: tuple[tuple[SiteKey, int], ...]  # number of compared pages by site


@frozen
class Cascades:
    """Order in which sites published each story: m stories over n sites, in CSR form."""

    sites: tuple[str, ...]
    titles: tuple[str, ...]  # titles of the stories, or empty
    offsets: NDArray[np.int64]  # m + 1
    members: NDArray[np.int64]  # indices into sites, by story, earliest first, each site once
    delays_h: NDArray[np.float64]  # hours since the story's first page
    starts_h: NDArray[np.float64]  # m: hours since the epoch
    posts: NDArray[np.int64]  # n: pages of each site


class Objective(StrEnum):
    """Objective of choosing sites to read."""

    DL = "dl"  # detection likelihood: to see as many stories as possible
    DT = "dt"  # detection time: to see stories early
    PA = "pa"  # population affected: to see stories before most sites have them


@frozen
class SiteChoice:
    """A chosen site, in the order of choice."""

    site: int  # index into Cascades.sites
    gain: float  # marginal gain, as a share of the maximum
    value: float  # value of the choice up to this site, as a share of the maximum
    cost: float
    first_of: tuple[int, ...]  # stories that it adds, largest first


@frozen
class Influence:
    """Chosen sites that together detect most stories, with upper bounds on the optimum."""

    chosen: tuple[SiteChoice, ...]
    value: float  # value as a share of the value of all sites
    online_bound: float  # upper bound within the budget, computed from the choice
    lp_bound: float  # upper bound by dual prices of the linear programme, which is tighter
    budget: float
    rule: str  # benefit or ratio: the greedy rule of the initial choice
    evaluations: int  # gains computed by the lazy greedy algorithm
    most_posts: tuple[float, ...]  # value of reading the k sites with most posts, for k from 1 to the number chosen
    missed: tuple[int, ...]  # stories on none of the chosen sites, largest first


@frozen
class Holdout:
    """A choice based on the earlier half of the stories, evaluated on the later half."""

    chosen: Influence
    stories: int  # in the later half
    # share of the later half's value reached by the first 1, 2, ... sites: the chosen ones, then further ones within
    # the budget
    later: tuple[float, ...]
    costs: tuple[float, ...]  # of these sites
    hindsight: float  # value of the best choice for the later half
    # value of the sites with most posts in the earlier half, as many as the budget allows
    most_posts: tuple[float, ...]


EntryKey = NewType("EntryKey", str)
"""Key of a portal's entry: eight letters and digits.

A story keeps its key while it grows, even if its first page changes.
"""


class EditorVerdict(StrEnum):
    """An editor's decision: an entry is approved, pinned or hidden; a site is pinned or banned."""

    APPROVED = "approved"
    PINNED = "pinned"  # shown first; a pinned entry is also approved
    HIDDEN = "hidden"
    BANNED = "banned"


@frozen
class Portal:
    """Configuration of a portal, stored with its collection."""

    name: str
    title: str
    created: float  # seconds since the epoch
    lead: str = ""  # subtitle
    topic: str = ""  # name of the topic that its stories must match; empty: all stories
    period_s: float = 0.0  # update interval; 0: only on demand
    approve: bool = False  # publish only entries that the editor approved
    # public address; if empty, feeds refer to entries by relative addresses
    address: str = ""
    stories: int = 12  # on the front page
    sites: int = 20  # maximum number of chosen sites, without pinned sites


@frozen
class Decisions:
    """Decisions of a portal's editor."""

    entries: Mapping[EntryKey, EditorVerdict]
    sites: Mapping[SiteKey, EditorVerdict]


@frozen
class Provenance:
    """Origin of a page of an entry."""

    run: str  # run that last fetched it: `crawl 3`; empty: unknown
    fetched: float  # seconds since the epoch; 0.0: unknown


@frozen
class Entry:
    """A story in a portal."""

    key: EntryKey
    story: Story
    weight: float  # number of sites, discounted by age: see analyse.edition
    relevance: float | None  # mean relevance of its pages to the topic, 0 to 1; None without a topic
    verdict: EditorVerdict | None  # None: no decision yet
    sentence: str = ""  # first sentence of the content; empty if none is suitable
    keywords: tuple[str, ...] = ()
    provenance: tuple[Provenance, ...] = ()  # one per page of the story
    words: str = ""  # editor's text, shown instead of the sentence
    picture: bytes = b""  # editor's picture: PNG, JPEG, GIF or WebP
    alt: str = ""  # alt text of the picture

    @property
    def publication_s(self) -> float:
        """Publication of the first page, as far as known; seconds since the epoch."""
        return self.story.pages[0].date.when

    @property
    def last_update_s(self) -> float:
        """Publication of the last page; seconds since the epoch."""
        return self.latest.when

    @property
    def latest(self) -> PageDate:
        """Date of the last page."""
        return max((page.date for page in self.story.pages), key=lambda date: date.when)

    @property
    def week(self) -> str:
        """The ISO 8601 week of the first page, in UTC: `2026-W47`."""
        year, week, _ = datetime.fromtimestamp(self.publication_s, UTC).isocalendar()
        return f"{year:04}-W{week:02}"


@frozen
class PortalSite:
    """A site that a portal follows."""

    key: SiteKey
    home: Url
    title: str
    feeds: tuple[Url, ...]
    stories: int  # stories on the site that the portal may show
    gain: float  # share of the stories found on this site but on none listed before it
    relevance: float | None  # mean relevance of its story pages to the topic; None without a topic
    pinned: bool


@frozen
class Edition:
    """The content of a portal at one time, for its pages and feeds."""

    portal: Portal
    made: float  # seconds since the epoch
    run: str  # the collection's last run: `crawl 3`
    run_ended: float
    pages: int  # pages compared to find the stories
    entries: tuple[Entry, ...]  # published entries: pinned entries first, then by weight
    waiting: tuple[Entry, ...]  # entries waiting for approval
    hidden: tuple[Entry, ...]
    sites: tuple[PortalSite, ...]
    covered: float | None  # share of the stories that at least one of the sites has; None without stories
    lacks: tuple[str, ...]  # missing inputs, one sentence each

    @property
    def front(self) -> tuple[Entry, ...]:
        return self.entries[: self.portal.stories]


# Topics learned from examples, and keywords.


class Example(NamedTuple):
    """A positive or negative example of a topic."""

    text: str
    positive: bool
    source: str = ""  # origin: a site, a folder, a search
    name: str = ""  # its URL or file


class ExampleMark(NamedTuple):
    """The stored trace of an example."""

    digest: str  # digest of its text, 32 hexadecimal digits
    positive: bool
    source: str


class TopicScores(NamedTuple):
    """Classification quality on held-out pages; each 0 to 1."""

    precision: float
    recall: float
    f: float
    average_precision: float  # of the ranking, independent of the threshold


class TellingWord(NamedTuple):
    """A word with a large weight for or against a topic."""

    word: str
    weight: float  # positive: for the topic
    positive_share: float  # share of positive examples with the word
    negative_share: float


@frozen
class TopicReport:
    """Quality of a learned topic."""

    scores: TopicScores  # cross-validated
    f_interval: tuple[float, float]  # 90 % confidence interval of F
    curve: tuple[tuple[int, float], ...]  # (positive examples, F on the other examples)
    held_out: tuple[tuple[str, float], ...]  # (source of positive examples, recall on it after learning without it)
    telling: tuple[TellingWord, ...]  # words for the topic, strongest first, then words against it
    warnings: tuple[str, ...]  # as sentences


@frozen
class Topic:
    """A topic as a linear model over words.

    The score of a text is the mean weight of its words, weighted by inverse document frequency and the logarithm of
    their counts. The probability of belonging to the topic is 1 / (1 + exp(-steepness (score - threshold))).
    """

    name: str
    words: tuple[str, ...]  # v, ascending
    rarities: Floats32  # v: inverse document frequencies
    weights: Floats32  # v
    usual: float  # typical score of pages outside the topic; given to pages with hardly any known word
    threshold: float
    steepness: float
    examples: tuple[ExampleMark, ...]
    background: int  # unlabelled pages used for calibration
    report: TopicReport


class PageJudgement(NamedTuple):
    """A page with the probability that it belongs to a topic."""

    url: Url
    title: str
    probability: float
    beginning: str  # beginning of its content


class Keyword(NamedTuple):
    """A word or phrase that describes a text, as written there."""

    text: str
    score: float  # higher is better; comparable only within one list
    times: int  # occurrences, in any form
    pages: int  # pages with it, among those analysed


@frozen
class KeywordList:
    """The keywords of one subject, best first."""

    subject: str  # a URL, a site, a query, or the number of pages
    method: str
    language: str  # language of most pages; empty: unknown
    pages: int  # analysed pages
    compared_with: int  # pages of the collection used as the reference corpus
    keywords: tuple[Keyword, ...]


HOUR_S = 3600.0


def cascades_of_lines(lines: Iterable[str]) -> Cascades:
    """Parses one story per line: `site,hours site,hours ...`; all stories use the same clock.

    Empty lines and `#` lines are skipped. If a site occurs twice in a story, its earliest time counts. Raises
    UsageError with the line number.
    """
    events: list[list[tuple[float, str]]] = []
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            events.append([_event(part, number) for part in line.split()])
    return _cascades(events, ("",) * len(events), {})


def _event(part: str, line: int) -> tuple[float, str]:
    site, comma, hours = part.rpartition(",")
    try:
        when = float(hours)
    except ValueError:
        when = float("nan")
    if not comma or not site or not isfinite(when):
        raise UsageError(
            f"line {line} of the cascades has {part[:60]!r} instead of site,hours, as in: "
            "example.org,338200.5 other.example,338214"
        )
    return when, site


def cascades_of_stories(stories: Stories) -> Cascades:
    """Uses the time of each site's first page of a story.

    If the order of pages contradicts the dates, a page gets the time of the page before it.
    """
    events = []
    for story in stories.stories:
        latest = 0.0
        rows = []
        for page in story.pages:
            latest = max(latest, page.date.when / HOUR_S)
            rows.append((latest, str(page.site)))
        events.append(rows)
    return _cascades(
        events, [story.title for story in stories.stories], {str(site): posts for site, posts in stories.posts}
    )


def _cascades(events: Sequence[Sequence[tuple[float, str]]], titles: Sequence[str], posts: dict[str, int]) -> Cascades:
    """events: per story, (hours, site) in any order.

    posts: by site; the default is the site's number of stories.
    """
    names: dict[str, int] = {}
    members: list[int] = []
    delays: list[float] = []
    offsets, starts = [0], []
    for rows in events:
        ordered = sorted(rows, key=lambda row: row[0])  # ties keep the given order
        first = ordered[0][0] if ordered else 0.0
        seen: set[str] = set()
        for when, site in ordered:
            if site not in seen:
                seen.add(site)
                members.append(names.setdefault(site, len(names)))
                delays.append(when - first)
        starts.append(first)
        offsets.append(len(members))
    had = np.bincount(np.array(members, np.int64), minlength=len(names))
    written = np.array([posts.get(name, had[place]) for name, place in names.items()], np.int64)
    return Cascades(
        tuple(names),
        tuple(titles),
        np.array(offsets),
        np.array(members, np.int64),
        np.array(delays, np.float64),
        np.array(starts),
        written,
    )


def halves(cascades: Cascades) -> tuple[Cascades, Cascades]:
    """(earlier half of the stories, later half): to choose sites on the past and evaluate on the future.

    Posts of the earlier half count its stories only, so nothing leaks from the future; sites keep their indices.
    """
    return before_and_after(cascades, 0.5, 1.0)


def before_and_after(cascades: Cascades, now: float, end: float) -> tuple[Cascades, Cascades]:
    """(the first stories, up to the share `now`; the following stories, up to the share `end`), by start time."""
    order = np.argsort(cascades.starts_h, kind="stable")
    middle, last = ceil(now * len(order)), ceil(end * len(order))
    return _select(cascades, np.sort(order[:middle])), _select(cascades, np.sort(order[middle:last]))


def _select(cascades: Cascades, stories: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Cascades:
    counts = np.diff(cascades.offsets)
    chosen = np.isin(np.repeat(np.arange(len(counts)), counts), stories)
    members = cascades.members[chosen]
    return Cascades(
        cascades.sites,
        tuple(cascades.titles[story] for story in stories),
        np.concatenate([[0], np.cumsum(counts[stories])]),
        members,
        cascades.delays_h[chosen],
        cascades.starts_h[stories],
        np.bincount(members, minlength=len(cascades.sites)),
    )
