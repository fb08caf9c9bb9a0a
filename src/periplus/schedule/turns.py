"""Whose turn it is among the sites of a crawl, and which page a host was given by name.

Apart from `order`, whose arrays no plain crawl needs: loading NumPy takes as long as a sixth of a crawl's start.
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
    """`model.ports.Policy`: sites that had fewer quanta of pages go first; within a quantum, who is due first.

    The order within a site is the store's: by depth.
    """

    quantum: int  # pages
    window: None = None
    most_held: int = 0
    reads_text: bool = False
    mark: int = 0

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        turns = sorted(ready, key=lambda host: (host.site_fetched // self.quantum, host.wait_s, host.host))
        return [host.host_id for host in turns[:most]]

    def next(self, host: HostKey) -> Iterator[Url]:
        return iter(())

    def learn(self, visits: Iterable[PageVisit]) -> None:
        """What a page brought changes no turn."""


@dataclass(slots=True)
class GivenPages:
    """The page that each host was last given by name. It is named again until it was visited, or waits no longer."""

    _given: dict[HostKey, Url] = field(default_factory=dict)

    def next(self, host: HostKey, take: Callable[[HostKey], Url | None]) -> Iterator[Url]:
        """The host's pages, best first, for `Policy.next`. take: the next of a host, taken from what waits."""
        while (url := self._given.get(host) or take(host)) is not None:
            self._given[host] = url
            yield url
            self._given.pop(host, None)  # whoever asks for another one found that it does not wait

    def visited(self, url: Url) -> None:
        host = host_key(url)
        if self._given.get(host) == url:
            del self._given[host]
