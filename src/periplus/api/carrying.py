"""Has the machines of a cluster carry a crawl, each task one worker that joins it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from periplus.acquire.clock import SystemClock
from periplus.analyse.engines.stages import TasksOnCluster
from periplus.api.crawling import CrawlEnd, CrawlOrder, Progress, crawl, verdict
from periplus.api.engines import SPARK, cluster_named
from periplus.errors import UsageError
from periplus.model.ports import RunStore

# where --workers says nothing: those that find no free core wait for one, and a machine that
# joins the cluster takes some
TASKS = 32
LOOK_S = 0.5
LEAVE_S = 20.0  # for the workers to store what they have, when the run is over


def carried_crawl(order: CrawlOrder, on: str, watch: Callable[[Progress], bool]) -> CrawlEnd:
    """As `crawling.crawl`, with workers on the cluster at this address alone: this process begins the run,
    looks on, and ends it.

    Leases keep politeness, whatever becomes of a machine; what it had in hand is fetched again by others.
    Raises UsageError, StoreError.
    """
    if not order.store:
        raise UsageError("--on needs --store: the cluster's machines reach a database, and not a folder on this one")
    return crawl(order, watch, partial(_carried_work, partial(cluster_named(SPARK).carried, on)))


Spread = Callable[[int, Callable[[int], None]], AbstractContextManager[TasksOnCluster]]  # (tasks, what each does)


def _carried_work(
    spread: Spread, store: RunStore, order: CrawlOrder, run_id: int, watch: Callable[[Progress], bool]
) -> tuple[str, float]:
    """(why it was stopped, empty if nothing was left; seconds)."""
    began = time.monotonic()
    limit_s = order.settings.budget.max_time_s
    stop_note = ""
    work = partial(work_in_task, order.store, run_id, order.settings.identity.auth)
    with spread(order.settings.storage.workers or TASKS, work) as workers:
        paused_s = 0.0  # none of max_time's
        while not stop_note and not workers.is_over and not store.idle(SystemClock().now()):
            time.sleep(LOOK_S)
            now = time.monotonic() - began
            paused = store.is_paused()
            paused_s += LOOK_S * paused
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


def work_in_task(store: str, run_id: int, auth: str, number: int) -> None:
    """One worker in one task, until nothing is left of the run or it was ended.

    number: the task's, which says nothing.
    """
    from periplus.api.joining import join, run_in_progress, settings_of_run

    record = run_in_progress(store)
    if record is not None and record.id == run_id:
        settings = settings_of_run(record, auth)
        join(
            store,
            record,
            dataclasses.replace(settings, storage=dataclasses.replace(settings.storage, workers=1)),
            lambda progress: False,
        )
