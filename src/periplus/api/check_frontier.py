"""What may a check ask for while pages of its crawl still wait? Only its own errands: the crawl stopped at a limit, and stays there."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from periplus.api.chosen_frontier import EVERY_HOST, OwnFrontier
from periplus.model.frontier import LAYER_FIRST, Batch, Candidate, Errand, Lease, ReadyHost, Task
from periplus.store.sqlite.frontier import SqliteCrawlStore

MOST_HELD = 512  # hosts leased at a time, as any worker's


@dataclass(slots=True)
class CheckFrontier(OwnFrontier):
    """`model.crawl_store.CrawlStore` for the one worker of such a check. Errands come before all pages here, and a host without any is passed over."""

    store: SqliteCrawlStore
    budget_spent: bool = False
    most_held: int = MOST_HELD
    _lean: bool = False

    def offer(self, candidates: Iterable[Candidate], errands: Iterable[Errand], now: float, *, reopen: bool = False) -> int:
        return self.store.offer(candidates, map(_first, errands), now, reopen=reopen)

    def ready(self, most: int, horizon_s: float, now: float) -> Sequence[ReadyHost]:
        return [host for host in self.store.ready(EVERY_HOST, horizon_s, now) if self.store.is_urgent(host.host_id)][:most]

    def take(self, lease: Lease, most: int, in_hand: frozenset[tuple[int, int]], now: float) -> tuple[Sequence[Task], float | None]:
        return self.store.take(lease, most, in_hand, now) if self.store.is_urgent(lease.host_id) else ((), None)

    def commit(self, worker: str, batch: Batch, now: float) -> frozenset[Lease]:
        return self.store.commit(worker, dataclasses.replace(batch, errands=tuple(map(_first, batch.errands))), now)

    def idle(self, now: float) -> bool:
        return not self.store.is_paused() and not self.ready(1, math.inf, now)  # what waits out a pause is not to be seen


def _first(errand: Errand) -> Errand:
    return dataclasses.replace(errand, layer=LAYER_FIRST)
