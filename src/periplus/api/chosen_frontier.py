"""What of a crawl's store is the same for all who choose their pages themselves?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from periplus.model.frontier import Batch, Candidate, Completion, Errand, Lease, ReadyHost, RunCounts, StoredRobots, Task, TrapMemory
from periplus.model.visit import Purpose, Skipped
from periplus.model.web import HostKey, Origin, SiteKey, Url, UrlId
from periplus.store.sqlite.frontier import SqliteCrawlStore
from periplus.store.standing import BARRIER_POLL_S
from periplus.urls.canonical import url_id

EVERY_HOST = 1_000_000  # all that are ready are compared, not those that wait longest


class OwnFrontier:
    """The part of `model.crawl_store.CrawlStore` that a frontier with a choice of its own leaves to the collection's. A base class, which the
    house has few of: a survey, a topical crawl and a check would each say these lines, and no other value could say them."""

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

    def trap_memory(self, lease: Lease) -> TrapMemory:
        return self.store.trap_memory(lease)

    def known(self, lease: Lease, urls: Sequence[UrlId]) -> frozenset[UrlId]:
        return self.store.known(lease, urls)

    def texts(self, site: SiteKey, most: int) -> Iterable[tuple[Url, bytes]]:
        return self.store.texts(site, most)

    def idle(self, now: float) -> bool:
        return self.store.idle(now)

    def counts(self) -> RunCounts:
        return self.store.counts()


class ChosenFrontier(OwnFrontier, ABC):
    """A frontier for one worker that gives out one page at a time, the one that is worth most by what is known now, within a budget of pages."""

    pages: int  # the budget; 0: none
    spent: int  # of it, pages asked for
    in_hand: int  # pages given out that are not stored
    budget_spent: bool
    given: dict[int, Url]  # the page that each host got last: the worker may put it back

    @abstractmethod
    def next_of(self, host: HostKey) -> Url | None:
        """The best page of a host, taken out of the order; None: the order knows none there."""

    @abstractmethod
    def learn(self, completion: Completion) -> None:
        """What became of a page, once it is stored."""

    def take(self, lease: Lease, most: int, in_hand: frozenset[tuple[int, int]], now: float) -> tuple[Sequence[Task], float | None]:
        """One page at a time, so that the budget is kept exactly; robots.txt of a host comes before its pages, what no order knows after them.
        A page that was put back is the next again."""
        if self.pages and self.spent + self.in_hand >= self.pages:
            self.budget_spent = self.spent >= self.pages
            return (), BARRIER_POLL_S
        task = None if self.store.is_urgent(lease.host_id) else self._best(lease, in_hand, now)
        tasks, later_s = ((task,), None) if task is not None else self.store.take(lease, most, in_hand, now)
        self.in_hand += len(tasks)
        return tasks, later_s

    def _best(self, lease: Lease, in_hand: frozenset[tuple[int, int]], now: float) -> Task | None:
        while (url := self.given.pop(lease.host_id, None) or self.next_of(lease.host)) is not None:
            task = self.store.take_page(lease, url_id(url), now)
            if task is not None and (task.layer, task.seq) not in in_hand:
                self.given[lease.host_id] = url
                return task
        return None

    def commit(self, worker: str, batch: Batch, now: float) -> frozenset[Lease]:
        lost = self.store.commit(worker, batch, now)
        self.in_hand = batch.in_hand
        for completion in batch.completions:
            if self.given.get(completion.task.host_id) == completion.task.request.url:
                del self.given[completion.task.host_id]
            if completion.task.request.purpose is Purpose.PAGE and completion.lease not in lost:
                self.spent += not isinstance(completion.visit.outcome, Skipped)
                self.learn(completion)
        if self.pages and self.spent >= self.pages:
            self.budget_spent = True
        return lost
