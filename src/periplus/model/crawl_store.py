"""What does a crawl ask of its store? One protocol; one contract suite runs over every implementation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from periplus.model.frontier import Batch, Candidate, Errand, Lease, ReadyHost, RunCounts, StoredRobots, Task, TrapMemory
from periplus.model.web import Origin, SiteKey, Url, UrlId


class CrawlStore(Protocol):
    """What may be fetched next, and what was.

    States of a URL:  waiting -> done(reason) | dropped(reason); a URL in hand is still waiting in the store. No other move, except
    that a new run may set dropped URLs waiting again (`offer`).
    Always:  (1) a URL is offered any number of times and enters once;  (2) a host has at most one lease at a time;
    (3) two leases of a host start at least its delay apart;  (4) every lease ends, by release, expiry or the death of
    its holder;  (5) a batch is stored whole or not at all, and only as far as its leases' epochs still hold;
    (6) a page of layer i + 1 of a site is not given out while one of layer i of that site is waiting.
    While the crawl is paused no host is ready and none is leased; what is held stays held, and may be stored.
    Not its business: fetching, parsing, choosing rules, sleeping.
    Times: `now` is seconds since the epoch, UTC.
    """

    budget_spent: bool  # max_pages are fetched: nothing more will be given out

    def join(self, pid: int, now: float) -> str:
        """Registers a worker; returns its name."""

    def leave(self, worker: str, now: float) -> None:
        """Ends a worker; its leases end too."""

    def offer(self, candidates: Iterable[Candidate], errands: Iterable[Errand], now: float, *, reopen: bool = False) -> int:
        """URLs from outside a crawl (starts, lists). Returns how many are newly waiting.

        reopen: what an earlier run dropped without asking for it (scope, depth, robots, a host that was down) may wait again.
        """

    def ready(self, most: int, horizon_s: float, now: float) -> Sequence[ReadyHost]:
        """Up to `most` hosts that nobody holds, that have work, and that may be asked within horizon_s; longest due first."""

    def lease(self, worker: str, host_ids: Sequence[int], now: float) -> Sequence[Lease]:
        """Leases those of the hosts that are still free."""

    def take(self, lease: Lease, most: int, in_hand: frozenset[tuple[int, int]], now: float) -> tuple[Sequence[Task], float | None]:
        """Up to `most` tasks of a leased host in order, without those in_hand ((layer, seq)).

        With none, the seconds until there may be one (None: not before other tasks of the host end).
        """

    def robots(self, origin: Origin) -> StoredRobots | None: ...

    def trap_memory(self, lease: Lease) -> TrapMemory: ...

    def known(self, lease: Lease, urls: Sequence[UrlId]) -> frozenset[UrlId]:
        """Those of these URLs of the leased host that are stored."""

    def texts(self, site: SiteKey, most: int) -> Iterable[tuple[Url, bytes]]:
        """(URL, digest of its text) of the site's pages that were read, the latest `most`, oldest first."""

    def commit(self, worker: str, batch: Batch, now: float) -> frozenset[Lease]:
        """Stores a batch in one transaction and renews the worker's leases. Returns the leases that were lost meanwhile."""

    def fair_share(self, now: float) -> int:
        """How many hosts one worker should hold: hosts with work over workers alive, at least 1; none while the crawl is paused."""

    def idle(self, now: float) -> bool:
        """Whether nothing waits and nobody has anything in hand: the crawl is at its end."""

    def counts(self) -> RunCounts: ...
