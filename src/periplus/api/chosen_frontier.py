"""What of a crawl's store is the same for all who choose their pages themselves?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from periplus.model.frontier import Candidate, Errand, FamilyRecord, Lease, ReadyHost, RunCounts, StoredRobots
from periplus.model.web import Origin
from periplus.store.sqlite.frontier import SqliteCrawlStore

EVERY_HOST = 1_000_000  # all that are ready are compared, not those that wait longest


class ChosenFrontier:
    """The part of `model.crawl_store.CrawlStore` that such a frontier leaves to the collection's. A base class, which the house has few of:
    a survey and a topical crawl would each say these lines, and no other value could say them."""

    store: SqliteCrawlStore
    most_held: int  # hosts leased at a time: each commit tells how all of them stand, and each choice compares them
    _lean: bool

    def fair_share(self, now: float) -> int:
        """All hosts with work. Where they are too many to be held, half as many in turn: so the worker gives some back, and leases those that
        are liked best of all."""
        hosts = self.store.fair_share(now)
        if hosts <= self.most_held:
            return hosts
        self._lean = not self._lean
        return self.most_held // 2 if self._lean else self.most_held

    def ready(self, most: int, horizon_s: float, now: float) -> Sequence[ReadyHost]:
        return self.store.ready(EVERY_HOST, horizon_s, now)

    def join(self, pid: int, now: float) -> str:
        return self.store.join(pid, now)

    def leave(self, worker: str, now: float) -> None:
        self.store.leave(worker, now)

    def offer(self, candidates: Iterable[Candidate], errands: Iterable[Errand], now: float, *, reopen: bool = False) -> int:
        return self.store.offer(candidates, errands, now, reopen=reopen)

    def lease(self, worker: str, host_ids: Sequence[int], now: float) -> Sequence[Lease]:
        return self.store.lease(worker, host_ids, now)

    def robots(self, origin: Origin) -> StoredRobots | None:
        return self.store.robots(origin)

    def families(self, lease: Lease) -> Sequence[FamilyRecord]:
        return self.store.families(lease)

    def idle(self, now: float) -> bool:
        return self.store.idle(now)

    def counts(self) -> RunCounts:
        return self.store.counts()
