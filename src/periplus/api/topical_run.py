"""Runs a topical crawl: seeds, a topic, an order of pages, and how much of what it fetched was on the topic."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.acquire.clock import SystemClock
from periplus.acquire.worker import WorkerDeps
from periplus.analyse.topic.judging import content_text
from periplus.api.crawling import (
    ChosenFrontier,
    CrawlEnd,
    CrawlOrder,
    Progress,
    check_order,
    judged,
    open_run,
    work,
    workable,
)
from periplus.api.rules import apply_rules, rules_text
from periplus.api.topics import text_of_page, topic_file
from periplus.model.frontier import Completion
from periplus.model.page import FOLLOWED_KINDS, Document
from periplus.model.ports import CrawlScope
from periplus.model.visit import Reason, Redirected, Skipped
from periplus.model.web import HostKey, Url
from periplus.schedule.names import WEIGHED, queue_named
from periplus.schedule.topical.policy import BestPages, Pointer, TopicalQueue
from periplus.settings import Settings, settings_from
from periplus.store.sqlite import reading, runs, schema, survey, text_rows
from periplus.store.sqlite.frontier import SqliteCrawlStore
from periplus.store.sqlite.runs import only_crawl
from periplus.urls.canonical import url_id
from periplus.urls.scope import site_scope

RELEVANT = 0.5  # a page of this worth counts as relevant: it is rather on the topic than not
WINDOW = 500  # pages over which the latest harvest is told: a harvest since the start says how good the seeds were
MOST_HELD = 256  # hosts leased at a time: each commit tells how all of them stand
FOLLOWED = frozenset(kind.value for kind in FOLLOWED_KINDS)

Judge = Callable[[Sequence[str]], NDArray[np.float64]]


class TopicLink(NamedTuple):
    """A link, as it stands on a page or is stored."""

    target: Url
    kind: str
    anchor: str
    nofollow: bool


@dataclass(frozen=True, slots=True)
class TopicReader:
    """Says what a page is worth, and what its links promise."""

    judge: Judge
    crawl_scope: CrawlScope

    def worth(self, text: str) -> float:
        return float(self.judge([text])[0])

    def of(self, document: Document) -> tuple[float, list[Pointer]]:
        links = [TopicLink(link.target, link.kind.value, link.anchor, link.nofollow) for link in document.links]
        return self.worth(content_text(document.title, document.blocks, None)), self.pointers(links)

    def pointers(self, links: Iterable[TopicLink]) -> list[Pointer]:
        """Of the links that are followed, in the order of their targets,
        for so they can be had again from what is stored.
        """
        followed = sorted(
            link
            for link in links
            if link.kind in FOLLOWED and not link.nofollow and self.crawl_scope.decide(link.target) is None
        )
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
    """`model.ports.CrawlStore` for the one worker of a topical crawl.

    What it adds is in memory only, and is made anew from what is stored.
    """

    store: SqliteCrawlStore
    queue: TopicalQueue
    reader: TopicReader
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
            if self.reader.crawl_scope.decide(outcome.target) is None:
                self.queue.moved(url, outcome.target)
            return
        worth, pointers = self.reader.of(completion.document) if completion.document is not None else (0.0, [])
        self.queue.read(url, worth, pointers)
        self.gathered.book(worth)


class HarvestPoint(NamedTuple):
    """A topical crawl at one moment."""

    when: float  # seconds since the epoch
    pages: int  # judged, in all runs
    relevant: int  # of them
    lately: float  # share of the last pages


def harvest_file(folder: Path, topic: str) -> Path:
    """Raises UsageError for a name that cannot be a topic's."""
    return topic_file(folder, topic).with_suffix(".harvest.jsonl")


def is_due(pages: int, noted: int) -> bool:
    """Whether a crawl of so many pages is worth a point, when the last was at `noted`:
    600 points for 100,000 pages draw a smooth line.
    """
    return pages >= noted + max(10, noted // 100)


def note_harvest(folder: Path, topic: str, point: HarvestPoint) -> None:
    """Adds a point; a crawl on a full disk goes on without."""
    file = harvest_file(folder, topic)
    try:
        file.parent.mkdir(exist_ok=True)
        with file.open("a", encoding="ascii") as lines:
            lines.write(json.dumps(point._asdict()) + "\n")
    except OSError:
        return


def harvest_of(folder: Path, topic: str) -> list[HarvestPoint]:
    """In order; empty where no crawl went. Of two runs that judged the same pages the later one counts."""
    found: list[HarvestPoint] = []
    try:
        lines = harvest_file(folder, topic).read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    for line in lines:
        try:
            point = HarvestPoint(**json.loads(line))
        except (ValueError, TypeError):  # a kill came between
            continue
        while found and found[-1].pages >= point.pages:
            found.pop()
        found.append(point)
    return found


KIND = "topical"  # of a run
# a topic knows no borders; a sitemap says nothing of what its pages are about
DEFAULTS = settings_from({"scope": "any", "sitemaps": False, "index": False})
QUANTUM = 1_000_000  # promises share pages out, not the frontier


@dataclass(frozen=True, slots=True)
class TopicalOrder:
    """What to crawl for."""

    folder: Path
    seeds: tuple[Url, ...]
    topic: str  # its name, for the record
    judge: Judge  # of texts, 0 to 1
    settings: Settings = DEFAULTS  # max_pages is the budget of this run
    order: str = WEIGHED
    least_harvest: float = 0.0  # of the last WINDOW pages: below it the crawl stops; 0: never
    known: tuple[Url, ...] = ()  # relevant pages that are known from elsewhere, to tell recall by


@dataclass(frozen=True, slots=True)
class TopicalProgress:
    """A topical crawl as it stands."""

    progress: Progress
    gathered: Gathered


@dataclass(frozen=True, slots=True)
class TopicalEnd:
    """How it ended. recall: of the known relevant pages, those that were fetched; None: none were named."""

    end: CrawlEnd
    gathered: Gathered
    recall: float | None


def crawl_topic(order: TopicalOrder, watch: Callable[[TopicalProgress], bool]) -> TopicalEnd:
    """Runs or goes on with a topical crawl until its pages or its time are spent, nothing is left, the harvest falls,
    or watch returns True.

    What earlier runs fetched is judged again, so a topic that was taught more meanwhile holds at once.
    Raises UsageError, StoreError.
    """
    check_order(_engine_order(order))
    queue_named(order.order)
    schema.refuse_network_disk(order.folder)
    with only_crawl(order.folder):
        return _Run(order, watch).run()


def _engine_order(order: TopicalOrder) -> CrawlOrder:
    """One worker: another would not know what this one learned."""
    settings = dataclasses.replace(
        order.settings,
        budget=dataclasses.replace(order.settings.budget, max_pages=0, quantum=QUANTUM),
        storage=dataclasses.replace(order.settings.storage, workers=1),
    )
    return CrawlOrder(
        order.folder,
        order.seeds,
        workable(settings),
        rules_text(order.folder) if order.folder.is_dir() else "",
        kind=KIND,
    )


class _Run:
    def __init__(self, order: TopicalOrder, watch: Callable[[TopicalProgress], bool]) -> None:
        self._order, self._watch = order, watch
        self._engine = _engine_order(order)
        self._crawl_scope = site_scope(order.seeds, self._engine.settings.scope)
        self._why = ""
        self._noted = 0  # pages, when the harvest was noted last

    def run(self) -> TopicalEnd:
        clock, folder, began = SystemClock(), self._order.folder, time.monotonic()
        went_on = schema.exists(folder)
        if went_on:
            apply_rules(folder, self._engine.rules, clock.now())
        else:
            schema.create(folder)
        record = {
            "topic": self._order.topic,
            "topical_order": self._order.order,
            "topical_pages": self._order.settings.budget.max_pages,
        }
        run_id = runs.begin_run(folder, KIND, self._engine.starts, self._engine.settings, clock.now(), record)
        store = SqliteCrawlStore(folder, run_id, self._engine.settings.budget, self._engine.settings.storage)
        try:
            open_run(store, self._engine, clock.now(), self._crawl_scope)
            self._frontier = self._opened(store)
            note, _ = work(store, self._engine, run_id, self._tick, self._refit)
            counts, waiting = store.counts(), not store.idle(clock.now())
            reason, rule = store.standing(self._order.seeds[0])
            recall = self._recall(store)
        finally:
            store.close()
        first = f"{self._order.seeds[0]}: {reason}" + (f" ({rule})" if rule else "")
        state, said = judged(counts, waiting, self._why or note or self._spent_note(), first)
        runs.end_run(folder, run_id, state, said or "nothing is left to fetch", clock.now())
        self._note(self._frontier.gathered)
        end = CrawlEnd(run_id, state, said or "nothing is left to fetch", counts, time.monotonic() - began, went_on)
        return TopicalEnd(end, self._frontier.gathered, recall)

    def _opened(self, store: SqliteCrawlStore) -> TopicalFrontier:
        queue, reader, gathered = (
            queue_named(self._order.order),
            TopicReader(self._order.judge, self._crawl_scope),
            Gathered(),
        )
        queue.start(self._order.seeds)
        with _connected(self._order.folder) as connection:
            replay(connection, queue, reader, gathered)
        waiting = {url for url, _, _ in store.never_asked((Reason.WAITING,))}
        queue.add(sorted(waiting))
        queue.keep_only(waiting)
        return TopicalFrontier(store, queue, reader, self._order.settings.budget.max_pages, gathered)

    def _refit(self, deps: WorkerDeps) -> WorkerDeps:
        policy = BestPages(self._frontier.queue, self._frontier.store.is_urgent)
        return dataclasses.replace(deps, store=self._frontier, policy=policy, scope=self._crawl_scope)

    def _tick(self, progress: Progress) -> bool:
        gathered, least = self._frontier.gathered, self._order.least_harvest
        if is_due(gathered.pages, self._noted):
            self._note(gathered)
        if self._watch(TopicalProgress(progress, gathered)):
            return True
        if self._frontier.spent >= WINDOW and gathered.lately < least:
            self._why = (
                f"of the last {len(gathered.last)} pages {gathered.lately:.1%} were relevant, fewer than {least:.1%}"
            )
        return bool(self._why)

    def _note(self, gathered: Gathered) -> None:
        self._noted = gathered.pages
        note_harvest(
            self._order.folder,
            self._order.topic,
            HarvestPoint(SystemClock().now(), gathered.pages, gathered.relevant, gathered.lately),
        )

    def _spent_note(self) -> str:
        return f"max-pages {self._frontier.pages} are fetched" if self._frontier.budget_spent else ""

    def _recall(self, store: SqliteCrawlStore) -> float | None:
        known = dict.fromkeys(self._order.known)
        return sum(store.was_read(url_id(url)) for url in known) / len(known) if known else None


def replay(connection: reading.Connection, queue: TopicalQueue, reader: TopicReader, gathered: Gathered) -> None:
    """Reads again, in the same order, what earlier runs fetched: nobody else remembers what it taught."""
    for visit in survey.page_visits(connection):
        if not visit.asked:
            continue
        if visit.redirect:
            if reader.crawl_scope.decide(Url(visit.redirect)) is None:
                queue.moved(visit.url, Url(visit.redirect))
            continue
        worth, links = 0.0, []
        if visit.read:
            for page in text_rows.pages_of(connection, [visit.url_id]):
                worth = reader.worth(text_of_page(page))
            links = [
                TopicLink(link.target, link.kind, link.anchor, link.nofollow)
                for link in survey.links_of(connection, visit.url_id)
            ]
        queue.read(visit.url, worth, reader.pointers(links))
        gathered.book(worth)


@contextlib.contextmanager
def _connected(folder: Path) -> Iterator[reading.Connection]:
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        yield connection
