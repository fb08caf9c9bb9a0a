"""Lets workers on any machine join a crawl whose collection is in a database, and a cluster's machines carry it."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from periplus.acquire.clock import SystemClock
from periplus.analyse.engines.stages import TasksOnCluster
from periplus.api.checking import for_a_check
from periplus.api.crawling import CrawlEnd, CrawlOrder, Progress, crawl, verdict, work
from periplus.api.engines import SPARK, cluster_named
from periplus.api.homes import workable
from periplus.api.logins import revealed
from periplus.errors import StoreError, UsageError
from periplus.model.ports import RunRecord, RunStore
from periplus.model.web import Url
from periplus.settings import Settings, last_settings, settings_from
from periplus.store.postgres.address import address_of
from periplus.store.postgres.frontier import DatabaseHome
from periplus.store.sqlite.checks import CHECK

KINDS = ("crawl", "refresh", CHECK)  # others choose page by page, in one process
LOOK_S = 2.0  # how often a worker asks whether the run still goes on
# where --workers says nothing: those that find no free core wait for one, and a machine that
# joins the cluster takes some
TASKS = 32
CARRIED_LOOK_S = 0.5
LEAVE_S = 20.0  # for the workers to store what they have, when the run is over


def run_in_progress(store: str) -> RunRecord | None:
    """The run that workers may join; None: none goes on. Raises UsageError, StoreError, NoCollection."""
    records = [
        record
        for record in DatabaseHome(address_of(store)).runs()
        if record.state == "running" and record.kind in KINDS
    ]
    return records[-1] if records else None


def settings_of_run(record: RunRecord, auth: str = "") -> Settings:
    """The run's own settings. auth: `--auth` of this worker. Raises UsageError where a secret was not stored."""
    settings = settings_from({"auth": auth} if auth else {}, last_settings(record.settings))
    revealed(settings.identity, Path())
    if record.kind == CHECK:
        settings = for_a_check(settings)
    _require_many(settings)
    return workable(settings)


def _require_many(settings: Settings) -> None:
    """Raises UsageError for a crawl that several workers cannot share."""
    reasons = {
        "renders pages, and its browsers belong to that one": settings.rendering.render != "never",
        "has a login, and the session's cookies stay in that one's memory": settings.identity.login,
        "reads an archive, which is one host": settings.past.from_archive,
    }
    for reason, holds in reasons.items():
        if holds:
            raise UsageError(f"the crawl {reason}: it has one worker")


def join(store: str, record: RunRecord, settings: Settings, watch: Callable[[Progress], bool]) -> CrawlEnd:
    """Works on a run until nothing is left of it, it is ended elsewhere, or watch returns True.

    If whoever began it is gone, ends it; but for a check, whose findings wait to be judged by the next one.

    watch: as for `crawl`. Raises UsageError and StoreError.
    """
    home = DatabaseHome(address_of(store))
    order = CrawlOrder(Path(), tuple(map(Url, record.starts)), settings, home.rules_text(), record.kind, store=store)
    crawl_store = home.store(record.id, settings)
    asked_at = time.monotonic()

    def watch_run(progress: Progress) -> bool:
        """Asks now and then whether the run still goes on; then the caller."""
        nonlocal asked_at
        if time.monotonic() - asked_at >= LOOK_S:
            asked_at = time.monotonic()
            if not crawl_store.is_running():
                return True
        return watch(progress)

    try:
        stop_note, elapsed_s = work(crawl_store, order, record.id, watch_run)
        counts = crawl_store.counts()
        state, note = verdict(crawl_store, order, stop_note)
        if not stop_note and record.kind != CHECK and crawl_store.is_running():
            with contextlib.suppress(StoreError), home.only_crawl():  # whoever began it holds this, and ends it
                home.end_run(record.id, state, note, SystemClock().now())
    finally:
        crawl_store.close()
    return CrawlEnd(record.id, state, note, counts, elapsed_s, went_on=True)


def carried_crawl(order: CrawlOrder, on: str, watch: Callable[[Progress], bool]) -> CrawlEnd:
    """As `crawling.crawl`, with workers on the cluster at this address alone: this process begins the run,
    looks on, and ends it.

    Leases keep politeness, whatever becomes of a machine; what it had in hand is fetched again by others.
    Raises UsageError, StoreError.
    """
    if not order.store:
        raise UsageError("--on needs -o ADDRESS: the cluster's machines reach a database, and not a folder on this one")
    _require_many(order.settings)
    return crawl(order, watch, partial(_carried_work, partial(cluster_named(SPARK).carried, on)))


Spread = Callable[[int, Callable[[int], None]], AbstractContextManager[TasksOnCluster]]  # (tasks, what each does)


def _carried_work(
    spread: Spread, store: RunStore, order: CrawlOrder, run_id: int, watch: Callable[[Progress], bool]
) -> tuple[str, float]:
    """(why it was stopped, empty if nothing was left; seconds)."""
    if order.part:
        raise UsageError("--on and a part of a web exclude each other: the parts' URLs are handed over by workers here")
    began = time.monotonic()
    limit_s = order.settings.budget.max_time_s
    stop_note = ""
    alone = dataclasses.replace(order.settings.storage, workers=1)
    work = partial(work_in_task, order.store, run_id, dataclasses.replace(order.settings, storage=alone))
    with spread(order.settings.storage.workers or TASKS, work) as workers:
        paused_s = 0.0  # none of max_time's
        while not stop_note and not workers.is_over and not store.idle(SystemClock().now()):
            time.sleep(CARRIED_LOOK_S)
            now = time.monotonic() - began
            paused = store.is_paused()
            paused_s += CARRIED_LOOK_S * paused
            if watch(Progress(store.counts(), tuple(store.busiest(8, time.time())), now, workers.at_work, paused)):
                stop_note = "stopped by the user"
            elif limit_s and now - paused_s >= limit_s:
                stop_note = f"max-time {limit_s:g} s is over"
        elapsed_s = time.monotonic() - began
        if not workers.is_over:  # the workers look for it, and leave; tasks that waited for a core find no run to join
            order.home.end_run(run_id, *verdict(store, order, stop_note), SystemClock().now())
        workers.wait(LEAVE_S)
        store.merge_aliases()
    return stop_note, elapsed_s


def work_in_task(store: str, run_id: int, settings: Settings, number: int) -> None:
    """One worker in one task, until nothing is left of the run or it was ended.

    number: the task's, which says nothing.
    """
    record = run_in_progress(store)
    if record is not None and record.id == run_id:
        join(store, record, workable(settings), lambda progress: False)
