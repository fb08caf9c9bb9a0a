"""Site by site, as published: how long does each site wait between two of its pages, when relevant sites shall wait less?

States of a site:  referenced -> active, once THRESHOLD links from active sites lead to it. Only active sites are asked. The starts' sites are active.
A site's waiting time is exp(narrowness x (1 - relevance)), where relevance is the share of its pages that were relevant. The source has a decreasing
function and no formula; with 5 this is the one served in trials, and at 5 the narrowness begins. Time is that of the sites: it moves on to when
the site that is served was due. So the crawl is never idle, and never so late that all sites are overdue alike: their rates keep their proportion.
Every WINDOW pages it adapts to the harvest: after a fall the crawl narrows to relevant sites, after a rise it widens. Within a site pages are read
breadth first. When no active site has a page, the one with most links to it becomes active: the threshold shall not end a crawl.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from periplus.model.web import HostKey, Url
from periplus.schedule.topical.seen import Numbers, Pointer
from periplus.urls.hosts import host_key

THRESHOLD = 3
NARROWNESS = 5.0
STEP, LEAST, MOST = 1.25, 1.0, 10.0
WINDOW = 100
RELEVANT = 0.5  # a page of this worth counts as relevant


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
    _due: list[tuple[float, int]] = field(default_factory=list)  # of active sites with pages; passed over where it is no longer so
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

    def take(self, resting: Numbers | None = None) -> Url | None:
        """The next page of the active site that is due longest, of those that do not rest (numbers of sites, in the order they were met)."""
        asleep = set() if resting is None else set(resting.tolist())
        put_back, found = [], None
        if not self._next_active(asleep):
            self._promote(asleep)
        while self._due and found is None:
            due, place = heapq.heappop(self._due)
            site = self._list[place]
            if site.due != due or not self._settled(site):
                continue
            if place in asleep:
                put_back.append((due, place))
            else:
                found = self.take_from(site.key)
        for entry in put_back:
            heapq.heappush(self._due, entry)
        return found

    def _next_active(self, asleep: set[int]) -> bool:
        while self._due and (self._list[self._due[0][1]].due != self._due[0][0] or not self._settled(self._list[self._due[0][1]])):
            heapq.heappop(self._due)
        return any(place not in asleep and self._settled(self._list[place]) for _, place in self._due)

    def _promote(self, asleep: set[int]) -> None:
        candidates = [site for place, site in enumerate(self._list) if not site.active and place not in asleep and self._settled(site)]
        if candidates:
            self._activate(max(candidates, key=lambda site: site.links))

    def peek(self, host: HostKey) -> Url | None:
        site = self._sites.get(host)
        return site.waiting[0] if site is not None and self._settled(site) else None

    def take_from(self, host: HostKey) -> Url | None:
        url = self.peek(host)
        if url is not None:
            self.drop(url)
        return url

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
