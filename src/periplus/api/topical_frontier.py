"""What may a topical crawl fetch next? The collection's frontier, in the order of a queue that learns what each page was worth."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.topic.words import content_text
from periplus.api.chosen_frontier import ChosenFrontier
from periplus.model.frontier import Completion
from periplus.model.page import FOLLOWED_KINDS, Document
from periplus.model.ports import Territory
from periplus.model.visit import Redirected, Skipped
from periplus.model.web import HostKey, Url
from periplus.schedule.topical.policy import TopicalQueue
from periplus.schedule.topical.seen import Pointer
from periplus.store.sqlite.frontier import SqliteCrawlStore

RELEVANT = 0.5  # a page of this worth counts as relevant: it is rather on the topic than not
WINDOW = 500  # pages over which the latest harvest is told: a harvest since the start says how good the seeds were
MOST_HELD = 256  # hosts leased at a time: each commit tells how all of them stand
FOLLOWED = frozenset(kind.value for kind in FOLLOWED_KINDS)

Judge = Callable[[Sequence[str]], NDArray[np.float64]]


class Said(NamedTuple):
    """A link, as it stands on a page or is stored."""

    target: Url
    kind: str
    anchor: str
    nofollow: bool


@dataclass(frozen=True, slots=True)
class Reader:
    """Says what a page is worth, and what its links promise."""

    judge: Judge
    territory: Territory

    def worth(self, text: str) -> float:
        return float(self.judge([text])[0])

    def of(self, document: Document) -> tuple[float, list[Pointer]]:
        links = [Said(link.target, link.kind.value, link.anchor, link.nofollow) for link in document.links]
        return self.worth(content_text(document.title, document.blocks, None)), self.pointers(links)

    def pointers(self, links: Iterable[Said]) -> list[Pointer]:
        """Of the links that are followed, in the order of their targets, for so they can be had again from what is stored."""
        followed = sorted(link for link in links if link.kind in FOLLOWED and not link.nofollow and self.territory.decide(link.target) is None)
        anchors = sorted({link.anchor for link in followed})
        promises = dict(zip(anchors, self.judge(anchors).tolist(), strict=True)) if anchors else {}
        return [Pointer(link.target, link.anchor, promises[link.anchor]) for link in followed]


@dataclass(slots=True)
class Gathered:
    """What was found so far, in all runs of this crawl."""

    pages: int = 0  # asked for
    relevant: int = 0
    worth: float = 0.0
    last: deque[bool] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def book(self, worth: float) -> None:
        self.pages += 1
        self.worth += worth
        self.relevant += worth >= RELEVANT
        self.last.append(worth >= RELEVANT)

    @property
    def harvest(self) -> float:
        """Relevant pages of those asked for."""
        return self.relevant / max(1, self.pages)

    @property
    def lately(self) -> float:
        """The same of the last WINDOW pages."""
        return sum(self.last) / max(1, len(self.last))


@dataclass(slots=True)
class TopicalFrontier(ChosenFrontier):
    """`model.crawl_store.CrawlStore` for the one worker of a topical crawl. What it adds is in memory only, and is made anew from what is stored."""

    store: SqliteCrawlStore
    queue: TopicalQueue
    reader: Reader
    pages: int  # budget of this run; 0: none
    gathered: Gathered = field(default_factory=Gathered)
    spent: int = 0  # pages asked for in this run
    in_hand: int = 0
    budget_spent: bool = False
    given: dict[int, Url] = field(default_factory=dict)
    most_held: int = MOST_HELD
    _lean: bool = False

    def next_of(self, host: HostKey) -> Url | None:
        if (url := self.queue.peek(host)) is not None:
            self.queue.drop(url)
        return url

    def learn(self, completion: Completion) -> None:
        url, outcome = completion.task.request.url, completion.visit.outcome
        if completion.reason is None or isinstance(outcome, Skipped):
            return
        if isinstance(outcome, Redirected):
            if self.reader.territory.decide(outcome.target) is None:
                self.queue.moved(url, outcome.target)
            return
        worth, pointers = self.reader.of(completion.document) if completion.document is not None else (0.0, [])
        self.queue.read(url, worth, pointers)
        self.gathered.book(worth)
