"""Runs a topical crawl with seeds, a topic and an order of pages, and records its harvest rate."""

from __future__ import annotations

import dataclasses
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from periplus.acquire.clock import SystemClock
from periplus.api.crawling import (
    CrawlEnd,
    CrawlOrder,
    Progress,
    check_order,
    open_run,
    run_outcome,
    work,
)
from periplus.api.homes import files_of, leave_nothing, place_at, workable
from periplus.api.rules import rules_text
from periplus.errors import PeriplusError, UsageError
from periplus.model.frontier import READ, PageVisit
from periplus.model.ports import CrawlHome, RunStore
from periplus.model.visit import Reason
from periplus.model.web import Url
from periplus.present.wording import why_not
from periplus.settings import Settings, settings_from
from periplus.urls.scope import site_scope
from periplus.values import Place, frozen
from periplus_topics.analyse.judging import content_text
from periplus_topics.api.topics import HARVEST, judge_of, topic_file
from periplus_topics.schedule.policy import HarvestTally, Judge, TopicalPolicy
from periplus_topics.schedule.queue import WEIGHED, make_queue

_log = logging.getLogger(__name__)
KIND = "topical"  # kind of run
# no limits of scope, since topics cross sites; no sitemaps, since they do not describe pages
DEFAULTS = settings_from({"scope": "any", "sitemaps": False, "index": False})
QUANTUM = 1_000_000  # the queue allocates pages, not the frontier


class HarvestPoint(NamedTuple):
    """State of a topical crawl at one time."""

    when: float  # seconds since the epoch
    pages: int  # classified, in all runs
    relevant: int  # of these pages
    lately: float  # share of relevant pages among the last ones


def is_due(pages: int, noted: int) -> bool:
    """Whether to record a point after `pages` pages, when the last was recorded at `noted`. Yields 600 points for
    100,000 pages, enough for a smooth curve.
    """
    return pages >= noted + max(10, noted // 100)


def note_harvest(place: Place, topic: str, point: HarvestPoint) -> None:
    """Appends a point to the stored harvest curve. If the disk is full or the database unavailable, the crawl continues
    without the point.
    """
    try:
        files_of(place).append(topic_file(topic, HARVEST), json.dumps(point._asdict()).encode("ascii") + b"\n")
    except PeriplusError as error:
        _log.warning("curve topic=%s error=%s", topic, error)


def harvest_of(place: Place, topic: str) -> list[HarvestPoint]:
    """The points in order; empty without crawls. If two runs classified the same pages, the later run counts."""
    points: list[HarvestPoint] = []
    lines = (files_of(place).read(topic_file(topic, HARVEST)) or b"").splitlines()
    for line in lines:
        try:
            point = HarvestPoint(**json.loads(line))
        except (ValueError, TypeError):  # line truncated by a kill
            continue
        while points and points[-1].pages >= point.pages:
            points.pop()
        points.append(point)
    return points


@frozen
class TopicalOrder:
    """What to crawl."""

    place: Place  # a folder, or a database address
    seeds: tuple[Url, ...]
    topic: str  # name, for the record of the run
    judge: Judge  # scores texts from 0 to 1
    settings: Settings = DEFAULTS  # max_pages is the budget of this run
    order: str = WEIGHED
    least_harvest: float = 0.0  # stops when the harvest rate of the last WINDOW pages falls below it; 0: never
    known: tuple[Url, ...] = ()  # relevant pages known from elsewhere, to measure recall
    topic_place: Place | None = None  # the collection that has the topic; None: this process works alone


@frozen
class TopicalProgress:
    """State of a running topical crawl."""

    progress: Progress
    gathered: HarvestTally


@frozen
class TopicalEnd:
    """How a topical crawl ended. recall: fetched share of the known relevant pages; None if none were given."""

    end: CrawlEnd
    gathered: HarvestTally
    recall: float | None


def crawl_topic(order: TopicalOrder, watch: Callable[[TopicalProgress], bool]) -> TopicalEnd:
    """Runs or continues a topical crawl until its page budget or time is used up, no work is left, the harvest rate
    falls below the limit, or watch returns True.

    Pages of earlier runs are classified again, so that changes of the topic apply at once. Raises UsageError,
    StoreError.
    """
    engine = _engine_order(order)
    check_order(engine)
    make_queue(order.order)
    if not order.settings.storage.keep_text:
        raise UsageError("a topical crawl needs stored texts: do not turn keep_text off")
    home = engine.home
    with home.only_crawl():
        return _Run(order, engine, home, watch).run()


def _engine_order(order: TopicalOrder) -> CrawlOrder:
    """Uses one worker, unless more are requested and can load the topic."""
    workers = (order.settings.storage.workers or 1) if order.topic_place else 1
    settings = dataclasses.replace(
        order.settings,
        budget=dataclasses.replace(order.settings.budget, quantum=QUANTUM),
        storage=dataclasses.replace(order.settings.storage, workers=workers),
    )
    return CrawlOrder(
        order.place,
        order.seeds,
        workable(settings),
        rules_text(order.place) if isinstance(order.place, Path) and order.place.is_dir() else "",
        kind=KIND,
        further=(("topic_place", str(order.topic_place or "")), ("topic", order.topic), ("order", order.order)),
    )


def policy_of(store: RunStore, order: CrawlOrder) -> TopicalPolicy:
    """The policy for a further worker of a topical crawl."""
    further = dict(order.further)
    return _policy(store, order, judge_of(place_at(further["topic_place"]), further["topic"]).judge)


def _policy(store: RunStore, order: CrawlOrder, judge: Judge) -> TopicalPolicy:
    """The policy after all stored visits. Waiting URLs without a stored link to them are scored by URL alone."""
    queue = make_queue(dict(order.further)["order"])
    policy = TopicalPolicy(queue, site_scope(order.starts, order.settings.scope), judge, text_of_visit, store.urgent)
    queue.start(order.starts)
    policy.learn(store.visits(0, texts=True))
    waiting = {url for url, _, _ in store.unrequested_urls((Reason.WAITING,))}
    queue.add(sorted(waiting))
    queue.keep_only(waiting)
    return policy


def text_of_visit(visit: PageVisit) -> str:
    """The text of a page that is classified; empty without text."""
    return content_text(visit.title, visit.blocks, visit.parts) if visit.blocks else ""


class _Run:
    def __init__(
        self, order: TopicalOrder, engine: CrawlOrder, home: CrawlHome, watch: Callable[[TopicalProgress], bool]
    ) -> None:
        self._order, self._engine, self._home, self._watch = order, engine, home, watch
        self._why = ""
        self._noted = 0  # pages at the last recorded point

    def run(self) -> TopicalEnd:
        clock, engine, home, began = SystemClock(), self._engine, self._home, time.monotonic()
        went_on = home.prepare(engine.rules, clock.now())
        pages = engine.settings.budget.max_pages
        record = {"topic": self._order.topic, "topical_order": self._order.order, "topical_pages": pages}
        # a refresh uses the settings of the last run, without its page budget
        unlimited = dataclasses.replace(engine.settings.budget, max_pages=0)
        recorded = dataclasses.replace(engine.settings, budget=unlimited)
        run_id = home.begin_run(KIND, engine.starts, recorded, clock.now(), record)
        store = home.store(run_id, engine.settings)
        try:
            scope = site_scope(engine.starts, engine.settings.scope)
            open_run(store, engine, clock.now(), scope)
            self._policy = _policy(store, engine, self._order.judge)
            note, _ = work(store, engine, run_id, self._tick, self._policy)
            self._policy.learn(store.visits(self._policy.mark, texts=True))
            counts, waiting = store.counts(), not store.idle(clock.now())
            seed = self._order.seeds[0]
            first = why_not(seed, *store.states([seed])[seed])
            recall = self._recall(store)
        finally:
            store.close()
        spent = f"max-pages {pages} reached" if pages and counts.fetched >= pages else ""
        state, text = run_outcome(counts, waiting, self._why or note or spent, first)
        text = text or "no page is left to fetch"
        home.end_run(run_id, state, text, clock.now())
        tally = self._policy.tally
        left = state != "failed" or not leave_nothing(home, engine.part)
        if left:
            self._note(tally)
        end = CrawlEnd(run_id, state, text, counts, time.monotonic() - began, went_on, is_kept=left)
        return TopicalEnd(end, tally, recall)

    def _tick(self, progress: Progress) -> bool:
        tally, least = self._policy.tally, self._order.least_harvest
        if is_due(tally.pages, self._noted):
            self._note(tally)
        if self._watch(TopicalProgress(progress, tally)):
            return True
        if progress.counts.fetched >= (tally.last.maxlen or 0) and tally.lately < least:
            self._why = f"of the last {len(tally.last)} pages {tally.lately:.1%} were relevant, fewer than {least:.1%}"
        return bool(self._why)

    def _note(self, tally: HarvestTally) -> None:
        self._noted = tally.pages
        point = HarvestPoint(SystemClock().now(), tally.pages, tally.relevant, tally.lately)
        note_harvest(self._order.place, self._order.topic, point)

    def _recall(self, store: RunStore) -> float | None:
        pages = list(dict.fromkeys(self._order.known))
        states = store.states(pages)
        return sum(reason in READ for reason, _ in states.values()) / len(pages) if pages else None
