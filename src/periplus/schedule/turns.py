"""The default policy, turns of a crawl's sites, and the chosen page of each host.

Separate from `order`, which needs NumPy: loading NumPy takes a sixth of a crawl's start, and most crawls do without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from periplus.model.frontier import PageVisit, ReadyHost
from periplus.model.web import HostKey, Url
from periplus.urls.hosts import host_key
from periplus.values import frozen


@frozen
class SiteTurns:
    """`model.ports.Policy`: sites with fewer fetched quanta of pages go first; within a quantum, hosts by due time.

    The store orders the pages within a site, by depth.
    """

    quantum: int  # pages
    window: None = None
    most_hosts: int = 0
    reads_text: bool = False
    mark: int = 0

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        turns = sorted(ready, key=lambda host: (host.site_fetched // self.quantum, host.wait_s, host.host))
        return [host.host_id for host in turns[:most]]

    def next(self, host: HostKey) -> Iterator[Url]:
        return iter(())

    def learn(self, visits: Iterable[PageVisit]) -> None:
        """Does nothing: turns do not depend on the content of pages."""


@dataclass(slots=True)
class GivenPages:
    """The page last chosen for each host. It is returned again until it was visited or is no longer in the queue."""

    _given: dict[HostKey, Url] = field(default_factory=dict)

    def next(self, host: HostKey, take: Callable[[HostKey], Url | None]) -> Iterator[Url]:
        """The host's pages, best first, for `Policy.next`. take: removes a host's next page from the queue."""
        while (url := self._given.get(host) or take(host)) is not None:
            self._given[host] = url
            yield url
            self._given.pop(host, None)  # the caller asks for another page because this one is not in the store's queue

    def remove(self, url: Url) -> None:
        host = host_key(url)
        if self._given.get(host) == url:
            del self._given[host]
