"""Chooses the next page of a million that wait on hosts that may be asked only now and then."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from periplus.errors import UsageError
from periplus.model.arrays import Floats, Ints
from periplus.model.web import HostKey, Url
from periplus.schedule.topical import policy
from periplus.schedule.topical.policy import (
    RELEVANT,
    Order,
    Pointer,
    TopicalPages,
    TopicalQueue,
    taken_from,
    weighed,
)
from periplus.urls.hosts import host_key

# States of a site:  referenced -> active, once THRESHOLD links from active sites lead to it. Only active sites are
#                    asked. The starts' sites are active.
# A site's waiting time is exp(narrowness x (1 - relevance)), where relevance is the share of its pages that were
# relevant. The source has a decreasing function and no formula; with 5 this is the one served in trials, and at 5 the
# narrowness begins. Time is that of the sites: it moves on to when the site that is served was due. So the crawl is
# never idle, and never so late that all sites are overdue alike: their rates keep their proportion. Every WINDOW pages
# it adapts to the harvest: after a fall the crawl narrows to relevant sites, after a rise it widens. Within a site
# pages are read breadth first. When no active site has a page, the one with most links to it becomes active: the
# threshold shall not end a crawl.

THRESHOLD = 3
NARROWNESS = 5.0
STEP, LEAST, MOST = 1.25, 1.0, 10.0
WINDOW = 100


@dataclass(slots=True)
class _Site:
    key: HostKey
    active: bool = False
    pages: int = 0
    relevant: int = 0
    links: int = 0  # from active sites
    due: float = 0.0
    waiting: deque[Url] = field(default_factory=deque)


@dataclass(slots=True)
class SiteWaits:
    """The pages that wait, in queues of their sites."""

    threshold: int = THRESHOLD
    narrowness: float = NARROWNESS
    _sites: dict[HostKey, _Site] = field(default_factory=dict)
    _list: list[_Site] = field(default_factory=list)
    _met: set[Url] = field(default_factory=set)
    _gone: set[Url] = field(default_factory=set)
    # of active sites with pages; passed over where it is no longer so
    _due: list[tuple[float, int]] = field(default_factory=list)
    _place: dict[HostKey, int] = field(default_factory=dict)
    _now: float = 0.0  # when the site that was served last was due
    _window: list[bool] = field(default_factory=list)
    _harvest: float = -1.0  # of the window before

    def start(self, urls: Iterable[Url]) -> None:
        for url in urls:
            site = self._site(url)
            self._meet(url, site)
            self._activate(site)

    def add(self, urls: Iterable[Url]) -> None:
        for url in urls:
            self._meet(url, self._site(url))

    def read(self, url: Url, worth: float, pointers: Sequence[Pointer]) -> None:
        """A page was read, and was worth so much."""
        self._met.add(url)
        self._gone.add(url)
        site = self._site(url)
        site.pages += 1
        site.relevant += worth >= RELEVANT
        self._book_window(worth >= RELEVANT)
        for target in dict.fromkeys(pointer.target for pointer in pointers):
            to = self._site(target)
            self._meet(target, to)
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

    def take(self, resting: Ints | None = None) -> Url | None:
        """The next page of the active site that is due longest, of those that do not rest (numbers of sites,
        in the order they were met).
        """
        asleep = set() if resting is None else set(resting.tolist())
        put_back, page = [], None
        if not self._next_active(asleep):
            self._promote(asleep)
        while self._due and page is None:
            due, place = heapq.heappop(self._due)
            site = self._list[place]
            if site.due != due or not self._settled(site):
                continue
            if place in asleep:
                put_back.append((due, place))
            else:
                page = taken_from(self, site.key)
        for entry in put_back:
            heapq.heappush(self._due, entry)
        return page

    def _next_active(self, asleep: set[int]) -> bool:
        while self._due and (
            self._list[self._due[0][1]].due != self._due[0][0] or not self._settled(self._list[self._due[0][1]])
        ):
            heapq.heappop(self._due)
        return any(place not in asleep and self._settled(self._list[place]) for _, place in self._due)

    def _promote(self, asleep: set[int]) -> None:
        candidates = [
            site
            for place, site in enumerate(self._list)
            if not site.active and place not in asleep and self._settled(site)
        ]
        if candidates:
            self._activate(max(candidates, key=lambda site: site.links))

    def peek(self, host: HostKey) -> Url | None:
        site = self._sites.get(host)
        return site.waiting[0] if site is not None and self._settled(site) else None

    def drop(self, url: Url) -> None:
        """It waits no longer, for whatever reason; its site waits for its next turn."""
        self._gone.add(url)
        site = self._site(url)
        self._now = max(self._now, site.due)
        relevance = (site.relevant + 0.5) / (site.pages + 1)
        site.due = self._now + float(np.exp(self.narrowness * (1 - relevance)))
        if site.active and self._settled(site):
            heapq.heappush(self._due, (site.due, self._place[site.key]))

    def promise_of(self, host: HostKey) -> float | None:
        """The sooner it is due, the greater; minus infinity: it is not active; None: no page waits."""
        site = self._sites.get(host)
        if site is None or not self._settled(site):
            return None
        return -site.due if site.active else -np.inf

    def moved(self, source: Url, target: Url) -> None:
        """A page lies elsewhere, on a site that is as active as its own."""
        self._gone.add(source)
        site = self._site(target)
        self._meet(target, site)
        if self._site(source).active:
            self._activate(site)

    def keep_only(self, waiting: Collection[Url]) -> None:
        """Drops all others."""
        self._gone.update(self._met.difference(waiting))

    def wake(self) -> None:
        """No active site that may be asked has a page."""
        if not self._next_active(set()):
            self._promote(set())

    def _site(self, url: Url) -> _Site:
        key = host_key(url)
        site = self._sites.get(key)
        if site is None:
            site = self._sites[key] = _Site(key)
            self._place[key] = len(self._list)
            self._list.append(site)
        return site

    def place_of(self, url: Url) -> int:
        """The number of its site."""
        return self._place[host_key(url)]

    def _meet(self, url: Url, site: _Site) -> None:
        if url in self._met:
            return
        self._met.add(url)
        was_empty = not self._settled(site)
        site.waiting.append(url)
        if site.active and was_empty:
            heapq.heappush(self._due, (site.due, self._place[site.key]))

    def _activate(self, site: _Site) -> None:
        if not site.active:
            site.active, site.due = True, self._now
            heapq.heappush(self._due, (site.due, self._place[site.key]))

    def _settled(self, site: _Site) -> bool:
        """Whether a page of the site waits."""
        while site.waiting and site.waiting[0] in self._gone:
            site.waiting.popleft()
        return bool(site.waiting)


# Each host has a heap of its pages, the best first, and the array of the hosts' best says who is best of those that may
# be asked. What is read changes what others promise: of the pages that it links to at once, and of its host's best
# SHORT_LIST before the next is taken from it. When the pages read have grown by a 32nd all are reckoned anew, or the
# best MOST_ANEW where more wait; all again when they have doubled. An order whose promises change only with links (best
# first) is so kept exactly.

SHORT_LIST = 32
GROWTH = 32  # all are scored anew when the pages read grew by one in so many
QUEUE_LEAST = 16  # and at the earliest after so many pages
MOST_ANEW = 50_000  # so that a million pages do not take a minute each time
CHUNK = 1 << 14  # pages scored at once: their evidence takes some 10 MB
CLOSE = 0.005  # a host reckoned anew is chosen when no other promises more by so much: nobody knows it better
TRIES = 8  # hosts whose best are reckoned anew for one choice
NONE = -np.inf


@dataclass(slots=True)
class PageQueue:
    """The pages that wait, by an order."""

    order: Order
    seen: TopicalPages = field(default_factory=TopicalPages)
    # of each host, its best page's promise as last reckoned
    best: Floats = field(default_factory=lambda: np.full(64, NONE))
    _scores: Floats = field(default_factory=lambda: np.zeros(64))
    _heaps: list[list[tuple[float, int]]] = field(default_factory=list)
    _read_at: list[int] = field(default_factory=list)  # pages read in all when the host's best were last reckoned
    _anew_at: int = 0  # pages read when the best were last reckoned anew
    _all_at: int = 0  # and all

    def start(self, urls: Iterable[Url]) -> None:
        """Pages to begin with."""
        self._score([self.seen.start(url) for url in urls])

    def add(self, urls: Iterable[Url]) -> None:
        """Pages of which nothing is known but their address."""
        self._score([self.seen.meet(url) for url in urls])

    def read(self, url: Url, worth: float, pointers: Sequence[Pointer]) -> None:
        """A page was read, and was worth so much."""
        touched = self.seen.book(url, worth, pointers)
        self._score(touched)
        if self.seen.read - self._anew_at >= max(QUEUE_LEAST, self._anew_at // GROWTH):
            waiting = np.flatnonzero(self.seen.waits[: len(self.seen)])
            if len(waiting) <= MOST_ANEW or self.seen.read >= 2 * self._all_at:
                self.reckon_all()
            else:
                self._anew_at = self.seen.read
                self._score(waiting[np.argpartition(-self._scores[waiting], MOST_ANEW)[:MOST_ANEW]].tolist())

    def reckon_all(self) -> None:
        """Every page that waits gets the promise that it has by now."""
        self._all_at = self._anew_at = self.seen.read
        numbers = np.flatnonzero(self.seen.waits[: len(self.seen)])
        self._reach()
        for heap in self._heaps:
            heap.clear()
        self._scores[numbers] = self._promises(numbers)
        for score, number, host in zip(
            (-self._scores[numbers]).tolist(), numbers.tolist(), self.seen.host[numbers].tolist(), strict=True
        ):
            self._heaps[host].append((score, number))
        for host, heap in enumerate(self._heaps):
            heapq.heapify(heap)
            self.best[host] = -heap[0][0] if heap else NONE
            self._read_at[host] = self.seen.read

    def take(self, resting: Ints | None = None) -> Url | None:
        """The best page of the hosts that do not rest; it waits no longer."""
        best = self.best[: len(self._heaps)].copy()
        if resting is not None:
            best[resting] = NONE
        for _ in range(TRIES):
            if not len(best) or (host := int(np.argmax(best))) < 0 or best[host] == NONE:
                return None
            if self._read_at[host] == self.seen.read:
                break
            self._renew(host)
            best[host] = self.best[host]
            if best[host] >= best.max() - CLOSE and best[host] != NONE:
                break
        else:
            host = int(np.argmax(best))
        return taken_from(self, self.seen.hosts[host])

    def peek(self, host: HostKey) -> Url | None:
        """The best page of a host."""
        place = self.seen.host_number.get(host)
        if place is None or place >= len(self._heaps):
            return None
        if self._read_at[place] != self.seen.read:
            self._renew(place)
        self._settle(place)
        heap = self._heaps[place]
        return self.seen.urls[heap[0][1]] if heap else None

    def drop(self, url: Url) -> None:
        """It waits no longer, for whatever reason."""
        number = self.seen.number_of[url]
        self.seen.take(number)
        self._settle(int(self.seen.host[number]))

    def promise_of(self, host: HostKey) -> float | None:
        """Of the host's best page, as last reckoned; None: none waits."""
        place = self.seen.host_number.get(host)
        if place is None or place >= len(self._heaps) or self.best[place] == NONE:
            return None
        return float(self.best[place])

    def moved(self, source: Url, target: Url) -> None:
        """A page lies elsewhere: what speaks for its old address speaks for the new one."""
        self._score([self.seen.move(source, target)])

    def place_of(self, url: Url) -> int:
        """The number of its host."""
        return int(self.seen.host[self.seen.number_of[url]])

    def keep_only(self, waiting: Collection[Url]) -> None:
        """Drops all others."""
        for number in np.flatnonzero(self.seen.waits[: len(self.seen)]).tolist():
            if self.seen.urls[number] not in waiting:
                self.seen.take(number)
        self.reckon_all()

    def wake(self) -> None:
        """Every host's turn has come here."""

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
        parts = [self.order(self.seen, numbers[at : at + CHUNK]) for at in range(0, len(numbers), CHUNK)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _renew(self, host: int) -> None:
        """The host's best pages are reckoned anew, for what was read meanwhile."""
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
            self.best[host] = NONE

    def _is_valid(self, score: float, number: int) -> bool:
        return bool(self.seen.waits[number]) and self._scores[number] == -score

    def _settle(self, host: int) -> None:
        heap = self._heaps[host]
        while heap and not self._is_valid(*heap[0]):
            heapq.heappop(heap)
        self.best[host] = -heap[0][0] if heap else NONE

    def _reach(self) -> None:
        hosts, pages = len(self.seen.hosts), len(self.seen)
        while len(self._heaps) < hosts:
            self._heaps.append([])
            self._read_at.append(self.seen.read)
        while len(self.best) < hosts:
            self.best = np.concatenate([self.best, np.full(len(self.best), NONE)])
        while len(self._scores) < pages:
            self._scores = np.concatenate([self._scores, np.zeros(len(self._scores))])


WEIGHED, WAITS = "weighed", "waits"
_ORDERS = {WEIGHED: weighed, **policy.ORDERS}
NAMES = (*_ORDERS, WAITS)


def queue_named(name: str) -> TopicalQueue:
    """An empty queue. Raises UsageError for a name that is none of NAMES."""
    if name == WAITS:
        return SiteWaits()
    if name not in _ORDERS:
        raise UsageError(f"There is no order {name}. Orders: {', '.join(NAMES)}.")
    return PageQueue(_ORDERS[name])
