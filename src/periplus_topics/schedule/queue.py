"""Priority queues of a topical crawl: choose the next of up to a million pages on rate-limited hosts."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from periplus.errors import UsageError
from periplus.model.arrays import Floats, Ints
from periplus.model.web import HostKey, Url
from periplus.urls.hosts import host_key
from periplus_topics.schedule.policy import (
    RELEVANT,
    Order,
    Pointer,
    TopicalPages,
    TopicalQueue,
    expected_relevance,
)

# States of a site:  referenced -> active, after THRESHOLD links from active sites. The sites of start URLs are active.
# Pages are requested from active sites only.
# A site's waiting time is exp(narrowness x (1 - relevance)), where relevance is the share of its pages that were
# relevant. The source requires a decreasing function and gives no formula; narrowness starts at 5, which worked best in
# trials. Time is virtual: it advances to the due time of the served site. So the crawl is never idle, and sites are
# never all overdue: their rates keep their proportion. Every WINDOW pages the narrowness adapts to the harvest rate:
# after a fall the crawl narrows to relevant sites, after a rise it widens. Within a site the order is breadth first. If
# no active site has a page, the site with most links becomes active, so that the threshold does not end the crawl.

THRESHOLD = 3
NARROWNESS = 5.0
STEP, LEAST, MOST = 1.25, 1.0, 10.0
WINDOW = 100
SHORT_LIST = 32
GROWTH = 32  # all pages are scored again when the number of read pages has grown by 1/32
QUEUE_LEAST = 16  # but not before so many further pages
MOST_ANEW = 50_000  # scoring a million pages each time would take a minute
CHUNK = 1 << 14  # pages scored at once: their evidence takes some 10 MB
LOWEST = -np.inf


@dataclass(slots=True)
class _Site:
    active: bool = False
    pages: int = 0
    relevant: int = 0
    links: int = 0  # from active sites
    due: float = 0.0
    waiting: deque[Url] = field(default_factory=deque)


@dataclass(slots=True)
class SiteWaits:
    """`TopicalQueue` with a queue per site."""

    threshold: int = THRESHOLD
    narrowness: float = NARROWNESS
    _sites: dict[HostKey, _Site] = field(default_factory=dict)
    _discovered: set[Url] = field(default_factory=set)
    _gone: set[Url] = field(default_factory=set)
    _now: float = 0.0  # due time of the site that was served last
    _window: list[bool] = field(default_factory=list)
    _harvest: float = -1.0  # of the previous window

    def start(self, urls: Iterable[Url]) -> None:
        for url in urls:
            self.add([url])
            self._activate(self._site(url))

    def add(self, urls: Iterable[Url]) -> None:
        for url in urls:
            self._discover(url, self._site(url))

    def read(self, url: Url, worth: float, pointers: Sequence[Pointer]) -> None:
        """Records a page that was read. worth: its relevance, 0 to 1."""
        self._discovered.add(url)
        self._gone.add(url)
        site = self._site(url)
        site.pages += 1
        site.relevant += worth >= RELEVANT
        self._book_window(worth >= RELEVANT)
        for target in dict.fromkeys(pointer.target for pointer in pointers):
            to = self._site(target)
            self._discover(target, to)
            if to is not site and site.active:
                to.links += 1
                if to.links >= self.threshold:
                    self._activate(to)

    def _book_window(self, relevant: bool) -> None:
        self._window.append(relevant)
        if len(self._window) == WINDOW:
            harvest = sum(self._window) / WINDOW
            if self._harvest >= 0 and harvest != self._harvest:
                changed = self.narrowness * STEP if harvest < self._harvest else self.narrowness / STEP
                self.narrowness = min(MOST, max(LEAST, changed))
            self._harvest = harvest
            self._window.clear()

    def peek(self, host: HostKey) -> Url | None:
        site = self._sites.get(host)
        return site.waiting[0] if site is not None and self._has_pages(site) else None

    def drop(self, url: Url) -> None:
        """Removes a URL from the queue, and sets the next due time of its site."""
        self._gone.add(url)
        site = self._site(url)
        self._now = max(self._now, site.due)
        relevance = (site.relevant + 0.5) / (site.pages + 1)
        site.due = self._now + float(np.exp(self.narrowness * (1 - relevance)))

    def promise_of(self, host: HostKey) -> float | None:
        """The greater, the sooner the site is due; minus infinity: not active; None: no page waits."""
        site = self._sites.get(host)
        if site is None or not self._has_pages(site):
            return None
        return -site.due if site.active else -np.inf

    def apply_redirect(self, source: Url, target: Url) -> None:
        """Replaces a page by its redirect target, whose site becomes active if the source's is."""
        self._gone.add(source)
        site = self._site(target)
        self._discover(target, site)
        if self._site(source).active:
            self._activate(site)

    def keep_only(self, waiting: Collection[Url]) -> None:
        """Drops all other pages."""
        self._gone.update(self._discovered.difference(waiting))

    def wake(self) -> None:
        """Activates a site if no active one has a page."""
        waiting = [site for site in self._sites.values() if self._has_pages(site)]
        if waiting and not any(site.active for site in waiting):
            self._activate(max(waiting, key=lambda site: site.links))

    def _site(self, url: Url) -> _Site:
        key = host_key(url)
        site = self._sites.get(key)
        if site is None:
            site = self._sites[key] = _Site()
        return site

    def _discover(self, url: Url, site: _Site) -> None:
        if url not in self._discovered:
            self._discovered.add(url)
            site.waiting.append(url)

    def _activate(self, site: _Site) -> None:
        if not site.active:
            site.active, site.due = True, self._now

    def _has_pages(self, site: _Site) -> bool:
        """Whether a page of the site waits."""
        while site.waiting and site.waiting[0] in self._gone:
            site.waiting.popleft()
        return bool(site.waiting)


# Each host has a heap of its pages, and an array has the score of each host's best page. A page that is read changes
# the scores of other pages: the pages that it links to are scored again at once, and the best SHORT_LIST of a host
# before its next page is taken. When the number of read pages has grown by 1/32, all pages are scored again; if more
# than MOST_ANEW wait, only the best MOST_ANEW, and all when the number has doubled. So orders whose scores change only
# with links (best first) are exact.


@dataclass(slots=True)
class PageQueue:
    """`TopicalQueue` by an order: a score for each page."""

    order: Order = expected_relevance
    seen: TopicalPages = field(default_factory=TopicalPages)
    # by host: the score of its best page, as last computed
    best: Floats = field(default_factory=lambda: np.full(64, LOWEST))
    _scores: Floats = field(default_factory=lambda: np.zeros(64))
    _heaps: list[list[tuple[float, int]]] = field(default_factory=list)
    _read_at: list[int] = field(default_factory=list)  # by host: total of read pages when its best were last scored
    _anew_at: int = 0  # read pages when the best pages were last scored
    _all_at: int = 0  # read pages when all pages were last scored

    def start(self, urls: Iterable[Url]) -> None:
        """Adds start URLs."""
        self._score([self.seen.start(url) for url in urls])

    def add(self, urls: Iterable[Url]) -> None:
        """Adds pages of which only the URL is known."""
        self._score([self.seen.meet(url) for url in urls])

    def read(self, url: Url, worth: float, pointers: Sequence[Pointer]) -> None:
        """Records a page that was read. worth: its relevance, 0 to 1."""
        self._score(self.seen.book(url, worth, pointers))
        if self.seen.read - self._anew_at >= max(QUEUE_LEAST, self._anew_at // GROWTH):
            waiting = np.flatnonzero(self.seen.waits[: len(self.seen)])
            if len(waiting) <= MOST_ANEW or self.seen.read >= 2 * self._all_at:
                self.score_all()
            else:
                self._anew_at = self.seen.read
                self._score(waiting[np.argpartition(-self._scores[waiting], MOST_ANEW)[:MOST_ANEW]].tolist())

    def score_all(self) -> None:
        """Scores every waiting page again."""
        self._all_at = self._anew_at = self.seen.read
        self._heaps = [[] for _ in self._heaps]
        self._read_at = [self.seen.read] * len(self._heaps)
        self.best[:] = LOWEST
        self._score(np.flatnonzero(self.seen.waits[: len(self.seen)]).tolist())

    def peek(self, host: HostKey) -> Url | None:
        """The best page of a host; it stays in the queue."""
        place = self.seen.host_number.get(host)
        if place is None or place >= len(self._heaps):
            return None
        if self._read_at[place] != self.seen.read:
            self._renew(place)
        self._settle(place)
        heap = self._heaps[place]
        return self.seen.urls[heap[0][1]] if heap else None

    def drop(self, url: Url) -> None:
        """Removes a URL from the queue."""
        number = self.seen.number_of[url]
        self.seen.take(number)
        self._settle(int(self.seen.host[number]))

    def promise_of(self, host: HostKey) -> float | None:
        """Score of the host's best page, as last computed; None: no page waits."""
        place = self.seen.host_number.get(host)
        if place is None or place >= len(self._heaps) or self.best[place] == LOWEST:
            return None
        return float(self.best[place])

    def apply_redirect(self, source: Url, target: Url) -> None:
        """Replaces a page by its redirect target, which inherits its evidence."""
        self._score([self.seen.move(source, target)])

    def keep_only(self, waiting: Collection[Url]) -> None:
        """Drops all other pages."""
        for number in np.flatnonzero(self.seen.waits[: len(self.seen)]).tolist():
            if self.seen.urls[number] not in waiting:
                self.seen.take(number)
        self.score_all()

    def wake(self) -> None:
        """Does nothing: all hosts are active in this queue."""

    def _score(self, touched: list[int]) -> None:
        self._reach()
        numbers = np.array(touched, np.int64)
        numbers = numbers[self.seen.waits[numbers]]
        if not len(numbers):
            return
        scores = self._promises(numbers)
        self._scores[numbers] = scores
        for score, number, host in zip(
            scores.tolist(), numbers.tolist(), self.seen.host[numbers].tolist(), strict=True
        ):
            heapq.heappush(self._heaps[host], (-score, number))
        for host in set(self.seen.host[numbers].tolist()):
            self._settle(host)

    def _promises(self, numbers: Ints) -> Floats:
        return np.concatenate([self.order(self.seen, numbers[at : at + CHUNK]) for at in range(0, len(numbers), CHUNK)])

    def _renew(self, host: int) -> None:
        """Scores the host's best pages again, after other pages were read."""
        self._read_at[host] = self.seen.read
        heap = self._heaps[host]
        taken: list[int] = []
        while heap and len(taken) < SHORT_LIST:
            score, number = heapq.heappop(heap)
            if self._is_valid(score, number):
                taken.append(number)
        if taken:
            self._score(list(dict.fromkeys(taken)))
        else:
            self.best[host] = LOWEST

    def _is_valid(self, score: float, number: int) -> bool:
        return bool(self.seen.waits[number]) and self._scores[number] == -score

    def _settle(self, host: int) -> None:
        heap = self._heaps[host]
        while heap and not self._is_valid(*heap[0]):
            heapq.heappop(heap)
        self.best[host] = -heap[0][0] if heap else LOWEST

    def _reach(self) -> None:
        hosts, pages = len(self.seen.hosts), len(self.seen)
        further = hosts - len(self._heaps)
        self._heaps += [[] for _ in range(further)]
        self._read_at += [self.seen.read] * further
        if hosts > len(self.best):
            self.best = np.pad(self.best, (0, hosts), constant_values=LOWEST)
        if pages > len(self._scores):
            self._scores = np.pad(self._scores, (0, pages))


WEIGHED, WAITS = "weighed", "waits"
_QUEUES: dict[str, Callable[[], TopicalQueue]] = {WEIGHED: PageQueue, WAITS: SiteWaits}


def make_queue(name: str) -> TopicalQueue:
    """An empty queue. Raises UsageError for a name that is not in _QUEUES."""
    if name not in _QUEUES:
        raise UsageError(f"There is no order {name}. Orders: {', '.join(_QUEUES)}.")
    return _QUEUES[name]()
