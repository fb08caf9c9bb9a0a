"""What may a campaign fetch next? The collection's frontier, with a budget over all runs and, if wished, a learned order within hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from periplus.api.chosen_frontier import ChosenFrontier
from periplus.api.survey_choice import Chooser
from periplus.api.survey_orders import PageOrders, seen
from periplus.model.frontier import Batch, Completion, Lease, Task
from periplus.model.visit import Purpose, Redirected, Skipped
from periplus.model.web import Url
from periplus.store.sqlite.frontier import SqliteCrawlStore
from periplus.store.standing import BARRIER_POLL_S
from periplus.urls.canonical import url_id

MOST_HELD = 128  # hosts leased at a time: each commit tells how all of them stand, and each choice compares them


@dataclass(slots=True)
class CampaignFrontier(ChosenFrontier):
    """`model.crawl_store.CrawlStore` for the one worker of a campaign. What it adds is in memory only, and is lost without harm."""

    store: SqliteCrawlStore
    chooser: Chooser
    pages: int  # budget in all runs together; 0: none
    spent: int  # of it, pages asked for
    in_hand: int = 0  # pages given out that are not stored
    budget_spent: bool = False
    most_held: int = MOST_HELD
    _lean: bool = False

    def take(self, lease: Lease, most: int, in_hand: frozenset[tuple[int, int]], now: float) -> tuple[Sequence[Task], float | None]:
        """One page at a time: the budget is kept exactly."""
        if self.pages and self.spent + self.in_hand >= self.pages:
            self.budget_spent = self.spent >= self.pages
            return (), BARRIER_POLL_S
        orders = self.chooser.orders if not self.store.is_urgent(lease.host_id) else None  # robots.txt of a host comes before its pages
        task = self._preferred(orders, lease, in_hand, now) if orders is not None else None
        tasks, later_s = ((task,), None) if task is not None else self.store.take(lease, most, in_hand, now)
        self.in_hand += len(tasks)
        return tasks, later_s

    def _preferred(self, orders: PageOrders, lease: Lease, in_hand: frozenset[tuple[int, int]], now: float) -> Task | None:
        """By the learned order; None: nothing of it waits, and what else does comes layer by layer."""
        while (url := orders.next(lease.host)) is not None:
            task = self.store.take_page(lease, url_id(url), now)
            if task is not None and (task.layer, task.seq) not in in_hand:
                return task
        return None

    def commit(self, worker: str, batch: Batch, now: float) -> frozenset[Lease]:
        lost = self.store.commit(worker, batch, now)
        self.in_hand = batch.in_hand
        for completion in batch.completions:
            if completion.task.request.purpose is not Purpose.PAGE or completion.lease in lost:
                continue
            if not isinstance(completion.visit.outcome, Skipped):
                self.spent += 1
            if self.chooser.orders is not None:
                self._learn(self.chooser.orders, completion)
        if self.pages and self.spent >= self.pages:
            self.budget_spent = True
        return lost

    def _learn(self, orders: PageOrders, completion: Completion) -> None:
        request, document, outcome = completion.task.request, completion.document, completion.visit.outcome
        new = self.chooser.last.pop(id(document), 0)
        redirect = outcome.target if isinstance(outcome, Redirected) else Url("")
        orders.read(request.url, request.layer, seen(document) if document is not None else [], new, redirect)
