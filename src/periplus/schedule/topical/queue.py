"""Which page is next, of a million that wait on hosts that each may be asked only now and then?

Each host has a heap of its pages, the best first, and the array of the hosts' best says who is best of those that may be asked. What is read changes
what others promise: of the pages that it links to at once, and of its host's best SHORT_LIST before the next is taken from it. When the pages read
have grown by a 32nd all are reckoned anew, or the best MOST_ANEW where more wait; all again when they have doubled. An order whose promises change
only with links (best first) is so kept exactly.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from periplus.model.web import HostKey, Url
from periplus.schedule.topical.orders import Order
from periplus.schedule.topical.seen import Floats, Numbers, Pointer, Seen

SHORT_LIST = 32
GROWTH = 32  # all are scored anew when the pages read grew by one in so many
LEAST = 16  # and at the earliest after so many pages
MOST_ANEW = 50_000  # so that a million pages do not take a minute each time
CHUNK = 1 << 14  # pages scored at once: their evidence takes some 10 MB
TRIES = 8  # hosts whose best are reckoned anew for one choice
NONE = -np.inf


@dataclass(slots=True)
class PageQueue:
    """The pages that wait, by an order."""

    order: Order
    seen: Seen = field(default_factory=Seen)
    best: Floats = field(default_factory=lambda: np.full(64, NONE))  # of each host, its best page's promise as last reckoned
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
        if self.seen.read - self._anew_at >= max(LEAST, self._anew_at // GROWTH):
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
        for score, number, host in zip((-self._scores[numbers]).tolist(), numbers.tolist(), self.seen.host[numbers].tolist(), strict=True):
            self._heaps[host].append((score, number))
        for host, heap in enumerate(self._heaps):
            heapq.heapify(heap)
            self.best[host] = -heap[0][0] if heap else NONE
            self._read_at[host] = self.seen.read

    def take(self, resting: Numbers | None = None) -> Url | None:
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
        return self.take_from(self.seen.hosts[int(np.argmax(best))])

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

    def take_from(self, host: HostKey) -> Url | None:
        """The best page of a host; it waits no longer."""
        url = self.peek(host)
        if url is not None:
            self.drop(url)
        return url

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
        for score, number, host in zip(scores.tolist(), numbers.tolist(), self.seen.host[numbers].tolist(), strict=True):
            heapq.heappush(self._heaps[host], (-score, number))
        for host in set(self.seen.host[numbers].tolist()):
            self._settle(host)

    def _promises(self, numbers: Numbers) -> Floats:
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
