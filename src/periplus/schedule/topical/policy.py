"""Which ready hosts are worth the next requests, when each page that waits has a promise?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from periplus.model.frontier import ReadyHost
from periplus.model.page import Document
from periplus.model.web import HostKey, SiteKey, Url
from periplus.schedule.topical.seen import Pointer


class TopicalQueue(Protocol):
    """The pages that wait, in the order of a topical crawl. One suite of tests runs over every implementation.

    Always: a page waits from when it is first met until it is dropped or read, and never again.
    """

    def start(self, urls: Iterable[Url]) -> None:
        """Pages to begin with."""

    def add(self, urls: Iterable[Url]) -> None:
        """Pages of which nothing is known but their address."""

    def read(self, url: Url, worth: float, pointers: Sequence[Pointer]) -> None:
        """A page was read. worth: how relevant it is, 0 to 1; pointers: its links."""

    def moved(self, source: Url, target: Url) -> None:
        """A page lies elsewhere: what speaks for its old address speaks for the new one."""

    def peek(self, host: HostKey) -> Url | None:
        """The best page of a host; it still waits."""

    def drop(self, url: Url) -> None:
        """It waits no longer, for whatever reason."""

    def keep_only(self, waiting: Collection[Url]) -> None:
        """Drops all others."""

    def promise_of(self, host: HostKey) -> float | None:
        """Of the host's best page; None: none waits; minus infinity: the host's turn has not come."""

    def wake(self) -> None:
        """No host whose turn has come has a page."""


@dataclass(frozen=True, slots=True)
class BestPages:
    """`model.ports.Policy`: hosts by the promise of their best page; nobody is waited for while others are ready.

    Urgent hosts come first, for others may wait for what they are to be asked; last come those with tasks that are no page of the queue (a second
    attempt, what looked like a trap).
    """

    queue: TopicalQueue
    is_urgent: Callable[[int], bool] = lambda host_id: False
    patience_s: float = 0.0

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        ranked = self._ranked(ready)
        if ready and not ranked:
            self.queue.wake()
            ranked = self._ranked(ready)
        return [host_id for *_, host_id in sorted(ranked)[:most]]

    def _ranked(self, ready: Sequence[ReadyHost]) -> list[tuple[bool, float, HostKey, int]]:
        found = []
        for host in ready:
            promise = np.inf if self.is_urgent(host.host_id) else self.queue.promise_of(host.host)
            if promise != -np.inf:
                found.append((host.wait_s > self.patience_s, np.inf if promise is None else -promise, host.host, host.host_id))
        return found

    def told(self, site: SiteKey, document: Document | None, took_s: float) -> None:
        """What a page brought is learned where it is stored: see `api.topical_frontier`."""
