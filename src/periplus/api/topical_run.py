"""How does a topical crawl run: seeds, a topic, an order of pages, and at the end what was found and why it stopped?"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from periplus.acquire.clock import SystemClock
from periplus.acquire.crew import Crew
from periplus.api.crawling import CrawlEnd, CrawlOrder, Progress, check_order, judged, open_run, work, workable
from periplus.api.harvest import HarvestPoint, is_due, note_harvest
from periplus.api.rules import apply_rules, rules_text
from periplus.api.topic_examples import text_of_page
from periplus.api.topical_frontier import WINDOW, Gathered, Judge, Reader, Said, TopicalFrontier
from periplus.model.visit import Reason
from periplus.model.web import Url
from periplus.schedule.topical.names import WEIGHED, queue_named
from periplus.schedule.topical.policy import BestPages, TopicalQueue
from periplus.settings import Settings, settings_from
from periplus.store.sqlite import block_rows, reading, runs, schema, survey_visits
from periplus.store.sqlite.frontier import SqliteCrawlStore
from periplus.store.sqlite.runs import only_crawl
from periplus.urls.canonical import url_id
from periplus.urls.scope import site_scope

KIND = "topical"  # of a run
DEFAULTS = settings_from({"scope": "any", "sitemaps": False, "index": False})  # a topic knows no borders; a sitemap says nothing of what its pages are about
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
class Standing:
    """A topical crawl as it stands."""

    progress: Progress
    gathered: Gathered


@dataclass(frozen=True, slots=True)
class TopicalEnd:
    """How it ended. recall: of the known relevant pages, those that were fetched; None: none were named."""

    end: CrawlEnd
    gathered: Gathered
    recall: float | None


def crawl_topic(order: TopicalOrder, watch: Callable[[Standing], bool]) -> TopicalEnd:
    """Runs or goes on with a topical crawl until its pages or its time are spent, nothing is left, the harvest falls, or watch returns True.

    What earlier runs fetched is judged again, so a topic that was taught more meanwhile holds at once. Raises UsageError, StoreError.
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
        keeping=dataclasses.replace(order.settings.keeping, workers=1),
    )
    return CrawlOrder(order.folder, order.seeds, workable(settings), rules_text(order.folder) if order.folder.is_dir() else "", kind=KIND)


class _Run:
    def __init__(self, order: TopicalOrder, watch: Callable[[Standing], bool]) -> None:
        self._order, self._watch = order, watch
        self._engine = _engine_order(order)
        self._territory = site_scope(order.seeds, self._engine.settings.scope)
        self._why = ""
        self._noted = 0  # pages, when the harvest was noted last

    def run(self) -> TopicalEnd:
        clock, folder, began = SystemClock(), self._order.folder, time.monotonic()
        went_on = schema.exists(folder)
        if went_on:
            apply_rules(folder, self._engine.rules, clock.now())
        else:
            schema.create(folder)
        record = {"topic": self._order.topic, "topical_order": self._order.order, "topical_pages": self._order.settings.budget.max_pages}
        run_id = runs.begin_run(folder, KIND, self._engine.starts, self._engine.settings, clock.now(), record)
        store = SqliteCrawlStore(folder, run_id, self._engine.settings.budget, self._engine.settings.keeping)
        try:
            open_run(store, self._engine, clock.now(), self._territory)
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
        queue, reader, gathered = queue_named(self._order.order), Reader(self._order.judge, self._territory), Gathered()
        queue.start(self._order.seeds)
        with _connected(self._order.folder) as connection:
            replay(connection, queue, reader, gathered)
        waiting = {url for url, _, _ in store.never_asked((Reason.WAITING,))}
        queue.add(sorted(waiting))
        queue.keep_only(waiting)
        return TopicalFrontier(store, queue, reader, self._order.settings.budget.max_pages, gathered)

    def _refit(self, crew: Crew) -> Crew:
        policy = BestPages(self._frontier.queue, self._frontier.store.is_urgent)
        return dataclasses.replace(crew, store=self._frontier, policy=policy, scope=self._territory)

    def _tick(self, progress: Progress) -> bool:
        gathered, least = self._frontier.gathered, self._order.least_harvest
        if is_due(gathered.pages, self._noted):
            self._note(gathered)
        if self._watch(Standing(progress, gathered)):
            return True
        if self._frontier.spent >= WINDOW and gathered.lately < least:
            self._why = f"of the last {len(gathered.last)} pages {gathered.lately:.1%} were relevant, fewer than {least:.1%}"
        return bool(self._why)

    def _note(self, gathered: Gathered) -> None:
        self._noted = gathered.pages
        note_harvest(self._order.folder, self._order.topic, HarvestPoint(SystemClock().now(), gathered.pages, gathered.relevant, gathered.lately))

    def _spent_note(self) -> str:
        return f"max-pages {self._frontier.pages} are fetched" if self._frontier.budget_spent else ""

    def _recall(self, store: SqliteCrawlStore) -> float | None:
        known = dict.fromkeys(self._order.known)
        return sum(store.was_read(url_id(url)) for url in known) / len(known) if known else None


def replay(connection: reading.Connection, queue: TopicalQueue, reader: Reader, gathered: Gathered) -> None:
    """Reads again, in the same order, what earlier runs fetched: nobody else remembers what it taught."""
    for visit in survey_visits.page_visits(connection):
        if not visit.asked:
            continue
        if visit.redirect:
            if reader.territory.decide(Url(visit.redirect)) is None:
                queue.moved(visit.url, Url(visit.redirect))
            continue
        worth, links = 0.0, []
        if visit.read:
            for page in block_rows.pages_of(connection, [visit.url_id]):
                worth = reader.worth(text_of_page(page))
            links = [Said(link.target, link.kind, link.anchor, link.nofollow) for link in survey_visits.links_of(connection, visit.url_id)]
        queue.read(visit.url, worth, reader.pointers(links))
        gathered.book(worth)


@contextlib.contextmanager
def _connected(folder: Path) -> Iterator[reading.Connection]:
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        yield connection
