"""Adds workers on other machines, or on a cluster, to a crawl whose collection is in a database."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from periplus.acquire.clock import SystemClock
from periplus.api.checking import check_settings
from periplus.api.crawling import CrawlEnd, CrawlOrder, Progress, crawl, verdict, work
from periplus.api.homes import workable
from periplus.api.secrets import resolve_secrets
from periplus.errors import StoreError, UsageError
from periplus.features import service
from periplus.logs import JsonLines
from periplus.model.ports import CHECK, RunRecord, RunStore, TasksOnCluster
from periplus.model.web import Url
from periplus.settings import Settings, last_settings, settings_from
from periplus_postgres.frontier import DatabaseHome

KINDS = ("crawl", "refresh", CHECK)  # runs of other kinds choose page by page, in one process
LOOK_S = 2.0  # how often a worker checks whether the run still goes on
# default of --workers on a cluster: tasks without a free core wait, and machines that join the cluster later take some
TASKS = 32
CARRIED_LOOK_S = 0.5
LEAVE_S = 20.0  # time for workers to commit at the end of a run


def run_in_progress(store: str) -> RunRecord | None:
    """The run that workers can join, or None. Raises UsageError, StoreError, NoCollection."""
    records = [record for record in DatabaseHome(store).runs() if record.state == "running" and record.kind in KINDS]
    return records[-1] if records else None


def settings_of_run(record: RunRecord, auth: str = "") -> Settings:
    """The run's own settings. auth: `--auth` of this worker. Raises UsageError if a required secret is missing."""
    settings = settings_from({"auth": auth} if auth else {}, last_settings(record.settings))
    resolve_secrets(settings.identity, Path())
    if record.kind == CHECK:
        settings = check_settings(settings)
    _require_many(settings)
    return workable(settings)


def _require_many(settings: Settings) -> None:
    """Raises UsageError for a crawl that several workers cannot share."""
    reasons = {
        "renders pages in the browsers of one worker": settings.rendering.render != "never",
        "has a login, whose cookies stay in the memory of one worker": settings.identity.login,
        "reads an archive, which counts as one host": settings.past.from_archive,
    }
    for reason, holds in reasons.items():
        if holds:
            raise UsageError(f"the crawl {reason}: it can have only one worker")


def join(store: str, record: RunRecord, settings: Settings, watch: Callable[[Progress], bool]) -> CrawlEnd:
    """Works on a run until no work is left, it is ended elsewhere, or watch returns True.

    Ends the run itself if the process that started it is gone, except for a check, whose results are judged by the next
    check. watch: as for `crawl`. Raises UsageError and StoreError.
    """
    JsonLines.run = record.id
    home = DatabaseHome(store)
    order = CrawlOrder(store, tuple(map(Url, record.starts)), settings, home.rules_text(), record.kind)
    crawl_store = home.store(record.id, settings)
    asked_at = time.monotonic()

    def watch_run(progress: Progress) -> bool:
        """Checks from time to time whether the run still goes on; then calls `watch`."""
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
            with (
                contextlib.suppress(StoreError),
                home.only_crawl(),
            ):  # held by the process that started the run, which then ends it
                home.end_run(record.id, state, note, SystemClock().now())
    finally:
        crawl_store.close()
    return CrawlEnd(record.id, state, note, counts, elapsed_s, went_on=True)


def carried_crawl(order: CrawlOrder, on: str, watch: Callable[[Progress], bool]) -> CrawlEnd:
    """Like `crawling.crawl`, with all workers on a cluster: this process starts, observes and ends the run.

    Leases preserve politeness if a machine fails; its pages in flight are fetched again by others. Raises UsageError,
    StoreError.
    """
    if isinstance(order.place, Path):
        raise UsageError(
            "--on needs -o ADDRESS: the cluster's machines can reach a database but not a folder on this machine"
        )
    _require_many(order.settings)
    return crawl(order, watch, partial(_carried_work, partial(service("cluster")("spark").carried, on)))


Spread = Callable[
    [int, Callable[[int], None]], AbstractContextManager[TasksOnCluster]
]  # (number of tasks, function of each)


def _carried_work(
    spread: Spread, store: RunStore, order: CrawlOrder, run_id: int, watch: Callable[[Progress], bool]
) -> tuple[str, float]:
    """Returns (reason for stopping, empty if no work was left; seconds)."""
    if order.part:
        raise UsageError(
            "--on and a part of a web exclude each other: URLs are exchanged between parts by workers on this machine"
        )
    began = time.monotonic()
    limit_s = order.settings.budget.max_time_s
    stop_note = ""
    alone = dataclasses.replace(order.settings.storage, workers=1)
    work = partial(work_in_task, str(order.place), run_id, dataclasses.replace(order.settings, storage=alone))
    with spread(order.settings.storage.workers or TASKS, work) as workers:
        paused_s = 0.0  # does not count towards max_time
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
        if not workers.is_over:  # workers notice this and leave; tasks still waiting for a core find no run to join
            order.home.end_run(run_id, *verdict(store, order, stop_note), SystemClock().now())
        workers.wait(LEAVE_S)
        store.merge_aliases()
    return stop_note, elapsed_s


def work_in_task(store: str, run_id: int, settings: Settings, number: int) -> None:
    """Runs one worker in a cluster task until the run has no work left or is ended. number: of the task, unused."""
    record = run_in_progress(store)
    if record is not None and record.id == run_id:
        join(store, record, workable(settings), lambda progress: False)
