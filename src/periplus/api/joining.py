"""How does a worker on any machine join a crawl whose collection is in a database, and leave it?"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from periplus.acquire.clock import SystemClock
from periplus.api.crawling import CrawlEnd, CrawlOrder, Progress, verdict, work, workable
from periplus.api.refreshing import last_settings
from periplus.errors import StoreError, UsageError
from periplus.model.ports import RunRecord
from periplus.model.web import Url
from periplus.settings import Settings, settings_from
from periplus.store.postgres.address import address_of
from periplus.store.postgres.frontier import DatabaseHome, PostgresCrawlStore

KINDS = ("crawl", "refresh")  # others choose page by page, in one process
LOOK_S = 2.0  # how often a worker asks whether the run still goes on


def run_in_progress(store: str) -> RunRecord | None:
    """The run that workers may join; None: none goes on. Raises UsageError, StoreError, NoCollection."""
    found = [
        record
        for record in DatabaseHome(address_of(store)).runs()
        if record.state == "running" and record.kind in KINDS
    ]
    return found[-1] if found else None


def settings_of_run(record: RunRecord, auth: str) -> Settings:
    """The run's own settings.

    auth: what is kept of none: the password that it signs in with. Raises UsageError where that is missing.
    """
    if record.settings.get("auth") and not auth:
        raise UsageError(
            "the crawl signs in to its site, and passwords are not stored: give this worker the same --auth"
        )
    settings = last_settings(record.settings)
    return workable(settings_from({"auth": auth}, settings) if auth else settings)


def join(store: str, record: RunRecord, settings: Settings, watch: Callable[[Progress], bool]) -> CrawlEnd:
    """Works on a run until nothing is left of it, it is ended elsewhere, or watch returns True.

    If whoever began it is gone, ends it.

    watch: as for `crawl`. Raises UsageError and StoreError.
    """
    home = DatabaseHome(address_of(store))
    order = CrawlOrder(Path(), tuple(map(Url, record.starts)), settings, home.rules_text(), record.kind, store=store)
    crawl_store = home.store(record.id, settings)
    try:
        stop_note, elapsed_s = work(crawl_store, order, record.id, _Watch(crawl_store, watch))
        counts = crawl_store.counts()
        state, note = verdict(crawl_store, order, stop_note)
        if not stop_note and crawl_store.is_running():
            with contextlib.suppress(StoreError), home.only_crawl():  # whoever began it holds this, and ends it
                home.end_run(record.id, state, note, SystemClock().now())
    finally:
        crawl_store.close()
    return CrawlEnd(record.id, state, note, counts, elapsed_s, went_on=True)


class _Watch:
    """Asks now and then whether the run still goes on; then what the caller says."""

    def __init__(self, store: PostgresCrawlStore, watch: Callable[[Progress], bool]) -> None:
        self._store, self._watch, self._looked = store, watch, time.monotonic()

    def __call__(self, progress: Progress) -> bool:
        if time.monotonic() - self._looked >= LOOK_S:
            self._looked = time.monotonic()
            if not self._store.is_running():
                return True
        return self._watch(progress)
