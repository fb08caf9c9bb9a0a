"""What may a campaign fetch next? The collection's frontier, with a budget over all runs and, if wished, a learned order within hosts."""

from __future__ import annotations

from dataclasses import dataclass, field

from periplus.api.chosen_frontier import ChosenFrontier
from periplus.api.survey_choice import Chooser
from periplus.api.survey_orders import seen
from periplus.model.frontier import Completion
from periplus.model.visit import Redirected
from periplus.model.web import HostKey, Url
from periplus.store.sqlite.frontier import SqliteCrawlStore

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
    given: dict[int, Url] = field(default_factory=dict)
    most_held: int = MOST_HELD
    _lean: bool = False

    def next_of(self, host: HostKey) -> Url | None:
        """By the learned order. Without one, and of what it does not know, pages come layer by layer."""
        return self.chooser.orders.next(host) if self.chooser.orders is not None else None

    def learn(self, completion: Completion) -> None:
        if (orders := self.chooser.orders) is None:
            return
        request, document, outcome = completion.task.request, completion.document, completion.visit.outcome
        new = self.chooser.last.pop(id(document), 0)
        redirect = outcome.target if isinstance(outcome, Redirected) else Url("")
        orders.read(request.url, request.layer, seen(document) if document is not None else [], new, redirect)
