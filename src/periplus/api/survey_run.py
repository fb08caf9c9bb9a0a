"""Runs a survey's campaign: one engine and one worker, and a budget over all runs."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from periplus.acquire.clock import SystemClock
from periplus.acquire.worker import WorkerDeps
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
from periplus.api.survey import Chooser, campaign_from, campaign_of, chooser_of, seen, standing, start_of, within_of
from periplus.errors import UsageError
from periplus.model.frontier import Completion
from periplus.model.visit import Redirected
from periplus.model.web import HostKey, Url
from periplus.model.webometrics import Campaign, CampaignProgress
from periplus.settings import Settings, settings_from
from periplus.store.sqlite import reading, runs, schema, survey
from periplus.store.sqlite.frontier import SqliteCrawlStore
from periplus.store.sqlite.runs import only_crawl

MOST_HELD = 128  # hosts leased at a time: each commit tells how all of them stand, and each choice compares them


@dataclass(slots=True)
class CampaignFrontier(ChosenFrontier):
    """`model.ports.CrawlStore` for the one worker of a campaign.

    What it adds is in memory only, and is lost without harm.
    """

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
        """By the learned order. Without one, and of what it does not know, pages come by depth."""
        return self.chooser.orders.next(host) if self.chooser.orders is not None else None

    def learn(self, completion: Completion) -> None:
        if (orders := self.chooser.orders) is None:
            return
        request, document, outcome = completion.task.request, completion.document, completion.visit.outcome
        new = self.chooser.last.pop(id(document), 0)
        redirect = outcome.target if isinstance(outcome, Redirected) else Url("")
        orders.read(request.url, request.depth, seen(document) if document is not None else [], new, redirect)


SURVEY = "survey"  # kind of a run
# five levels, as in the published runs; levels are told by links alone
DEFAULTS = settings_from({"max_depth": 5, "sitemaps": False, "index": False})
LOOK_S = 0.5  # how often the plan is looked at
MOST_QUANTUM = 1_000_000  # the rule shares pages out, not the frontier


@dataclass(frozen=True, slots=True)
class Watched:
    """What whoever watches a campaign is shown; the standing is made when it is asked for, for it takes time."""

    progress: Progress
    pages: int  # of the budget, in all runs
    standing: Callable[[], CampaignProgress]


def run(folder: Path, settings: Settings, watch: Callable[[Watched], bool]) -> CrawlEnd:
    """Goes on with the campaign in folder until its pages or its time are spent, nothing is left, watch returns True,
    or `stop` is called.

    settings: as for a crawl, made over DEFAULTS; max_time_s limits this run. watch: called some times a second from
    this thread. Raises UsageError, NoCollection, StoreError.
    """
    campaign = campaign_of(folder)
    check_order(_order(folder, campaign, settings))
    with only_crawl(folder):
        survey.wish_stop(folder, stop=False)
        return _run_alone(folder, settings, watch)


def _order(folder: Path, campaign: Campaign, settings: Settings) -> CrawlOrder:
    """The campaign as the engine's order. One worker: another would not know what this one learned."""
    if not campaign.units:
        raise UsageError("the survey has no site: `periplus survey add ADDRESS` adds one")
    at_once = campaign.at_once or (1 if campaign.pages else settings.politeness.concurrency)
    settings = dataclasses.replace(
        settings,
        budget=dataclasses.replace(settings.budget, max_pages=0, quantum=MOST_QUANTUM),
        politeness=dataclasses.replace(settings.politeness, concurrency=at_once),
        storage=dataclasses.replace(
            settings.storage, workers=1, commit_pages=1 if at_once == 1 else settings.storage.commit_pages
        ),
    )
    starts = tuple(dict.fromkeys(map(start_of, campaign.units)))
    return CrawlOrder(folder, starts, workable(settings), rules_text(folder), kind=SURVEY)


def _run_alone(folder: Path, settings: Settings, watch: Callable[[Watched], bool]) -> CrawlEnd:
    clock, began = SystemClock(), time.monotonic()
    text = _plan(folder)
    campaign = campaign_from(text, folder)
    order = _order(folder, campaign, settings)
    apply_rules(folder, order.rules, clock.now())
    went_on = _asked_so_far(folder) > 0
    run_id = runs.begin_run(folder, SURVEY, order.starts, order.settings, clock.now(), _record(campaign))
    note, counts, waiting, first = "", None, False, ""
    while True:
        leg = _Leg(folder, run_id, text, settings, watch, began)
        note, changed = leg.run()
        counts, waiting, first = leg.counts, leg.waiting, leg.first
        if not changed:
            break
        text = _plan(folder)
    pages = campaign_from(text, folder).pages
    state, said = judged(counts, waiting, note, first)
    if state == "stopped" and counts.fetched and not note:
        said = f"{pages:,} pages are fetched" if pages else said
    runs.end_run(folder, run_id, state, said, clock.now())
    return CrawlEnd(run_id, state, said, counts, time.monotonic() - began, went_on)


def _plan(folder: Path) -> str:
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        return survey.plan(connection)


def _asked_so_far(folder: Path) -> int:
    """Pages that all runs of the campaign asked for."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        return sum(record.fetched for record in runs.run_records(connection) if record.kind == SURVEY)


def _record(campaign: Campaign) -> dict[str, object]:
    """What decides the choices, for the run's record."""
    said = {
        "survey_rule": campaign.rule,
        "survey_within": within_of(campaign),
        "survey_item": campaign.item,
        "survey_pages": campaign.pages,
    }
    return {**said, "survey_at_once": campaign.at_once, "survey_patience_s": campaign.patience_s, "seed": campaign.seed}


class _Leg:
    """A part of a run in which the plan stays as it is."""

    def __init__(
        self, folder: Path, run_id: int, plan: str, settings: Settings, watch: Callable[[Watched], bool], began: float
    ) -> None:
        self._folder, self._run_id, self._plan, self._watch, self._began = folder, run_id, plan, watch, began
        self._campaign = campaign_from(plan, folder)
        self._limit_s = settings.budget.max_time_s  # of the run, not of its parts
        timeless = dataclasses.replace(settings, budget=dataclasses.replace(settings.budget, max_time_s=0.0))
        self._order = _order(folder, self._campaign, timeless)
        self._looked, self._why = 0.0, ""

    def run(self) -> tuple[str, bool]:
        """(why it was stopped; empty: nothing is left or the pages are spent. Whether the plan has changed)."""
        settings = self._order.settings
        with _reading(self._folder) as self._connection:
            self._chooser = chooser_of(self._campaign, settings, self._connection)
            survey.bring_in_line(self._folder, self._chooser.crawl_scope)
            store = SqliteCrawlStore(self._folder, self._run_id, settings.budget, settings.storage)
            try:
                open_run(store, self._order, time.time(), self._chooser.crawl_scope)
                most_held = max(MOST_HELD, 4 * settings.politeness.concurrency)
                self._frontier = CampaignFrontier(
                    store, self._chooser, self._campaign.pages, _asked_so_far(self._folder), most_held=most_held
                )
                note, _ = work(store, self._order, self._run_id, self._tick, self._refit)
                self.counts, self.waiting = store.counts(), not store.idle(time.time())
                reason, rule = store.standing(self._order.starts[0])
            finally:
                store.close()
        self.first = f"{self._order.starts[0]}: {reason}" + (f" ({rule})" if rule else "")
        return ("", True) if self._why == "changed" else (self._why or note, False)

    def _refit(self, deps: WorkerDeps) -> WorkerDeps:
        return dataclasses.replace(deps, store=self._frontier, policy=self._chooser, scope=self._chooser.crawl_scope)

    def _tick(self, progress: Progress) -> bool:
        """Whether to stop: the watcher says so, another process asks for it, or the plan is another."""
        progress = dataclasses.replace(progress, elapsed_s=time.monotonic() - self._began)
        if self._watch(Watched(progress, self._frontier.spent, lambda: self._standing(progress.elapsed_s))):
            return True
        if self._limit_s and progress.elapsed_s >= self._limit_s:
            self._why = f"max-time {self._limit_s:g} s is over"
            return True
        now = time.monotonic()
        if now - self._looked >= LOOK_S:
            self._looked = now
            if survey.stop_is_wished(self._connection):
                self._why = "stopped by `periplus survey stop`"
            elif survey.plan(self._connection) != self._plan:
                self._why = "changed"
        return bool(self._why)

    def _standing(self, elapsed_s: float) -> CampaignProgress:
        return standing(self._campaign, self._chooser, self._connection, elapsed_s)


@contextlib.contextmanager
def _reading(folder: Path) -> Iterator[reading.Connection]:
    with contextlib.closing(schema.connect(folder, read_only=True)) as connection, reading.reading():
        yield connection
