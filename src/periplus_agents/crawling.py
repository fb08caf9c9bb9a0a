"""The tool `crawl`: fetches pages for a model, within a budget for the whole server.

Invariants: (1) all calls together stay within the budget of pages, bytes and time, except for running requests; (2)
only hosts of the collection and hosts given by the user are fetched; (3) the collection's own settings apply (delay,
robots.txt, limits, guard against private addresses); a model cannot change them.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from periplus.acquire.choosing import SiteTurns
from periplus.api.crawling import CrawlOrder, Progress, crawl, work
from periplus.api.homes import home_of
from periplus.errors import InvalidUrl, UsageError
from periplus.model.frontier import PageVisit, ReadyHost
from periplus.model.ports import CHECK, CrawlScope, RunRecord, RunStore
from periplus.model.web import HostKey, Url
from periplus.settings import SETTINGS_FILE, Settings, last_settings, read_settings, settings_from
from periplus.urls.canonical import resolve
from periplus.urls.hosts import host_key, is_named
from periplus.urls.scope import own_hosts, site_key, site_scope
from periplus.values import Place, frozen

CALL_S = 45.0  # per call: clients time out after a minute
URLS_MOST = 20  # per call
_KNOWN_SCOPES = ("site", "prefix")  # scopes without further hosts


@dataclass(slots=True)
class CrawlBudget:
    """The remaining budget for all calls of a server.

    hosts: allowed in addition to the collection's own; `*.example.org` for all subdomains.
    """

    pages: int
    time_s: float
    size_bytes: int
    hosts: tuple[str, ...] = ()
    lock: threading.Lock = field(default_factory=threading.Lock)

    def spend(self, progress: Progress) -> None:
        self.pages = max(0, self.pages - progress.counts.fetched)
        self.time_s = max(0.0, self.time_s - progress.elapsed_s)
        self.size_bytes = max(0, self.size_bytes - progress.counts.wire_bytes)

    @property
    def is_spent(self) -> bool:
        return not self.pages or self.time_s < 1.0 or not self.size_bytes

    def left(self) -> dict[str, int]:
        return {"pages": self.pages, "seconds": round(self.time_s), "bytes": self.size_bytes}


@frozen
class NamedFirst:
    """`api.crawling.RunPolicy`: turns of hosts as in other crawls; on each host the requested URLs come first."""

    urls: tuple[Url, ...]
    scope: CrawlScope
    turns: SiteTurns
    window: None = None
    most_hosts: int = 0
    reads_text: bool = False
    mark: int = 0

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        return self.turns.choose(ready, most)

    def next(self, host: HostKey) -> Iterator[Url]:
        """The requested URLs of the host; the store skips fetched ones."""
        return (url for url in self.urls if host_key(url) == host)

    def learn(self, visits: Iterable[PageVisit]) -> None:
        """The result of a page does not change the order."""


def _crawl_named_first(
    store: RunStore, order: CrawlOrder, run_id: int, watch: Callable[[Progress], bool]
) -> tuple[str, float]:
    scope, turns = site_scope(order.starts, order.settings.scope), SiteTurns(order.settings.budget.quantum)
    return work(store, order, run_id, watch, NamedFirst(order.starts, scope, turns))


def crawl_urls(place: Place, urls: Sequence[str], pages: int, budget: CrawlBudget) -> dict[str, Any]:
    """Fetches these URLs into a collection, then other waiting URLs, up to a number of pages. Returns the result.

    place: a folder or an address. pages: 0: the number of URLs. Raises UsageError for other hosts, a spent budget, and
    during another call; StoreError during another crawl.
    """
    if not budget.lock.acquire(blocking=False):
        raise UsageError("another crawl is running: try again when it has ended")
    try:
        if budget.is_spent:
            left = ", ".join(f"{number:,} {what}" for what, number in budget.left().items())
            raise UsageError(f"the budget of this server is spent; remaining: {left}")
        runs = home_of(place).runs()
        order = order_of(place, runs, urls, min(pages or len(urls), budget.pages), budget)
        progress: list[Progress] = []

        def watch(now: Progress) -> bool:
            progress[:] = [now]
            return now.counts.wire_bytes >= budget.size_bytes

        try:
            end = crawl(order, watch, _crawl_named_first)
        finally:
            gc.unfreeze()  # a crawl freezes all objects, but this server keeps running
            for now in progress:
                budget.spend(now)
        unseen = end.counts.fetched - (progress[-1].counts.fetched if progress else 0)
        budget.pages = max(0, budget.pages - unseen)  # pages after the last call of `watch`
        return {
            "state": end.state, "note": end.note, "fetched": end.counts.fetched, "bytes": end.counts.wire_bytes,
            "waiting": end.counts.waiting, "seconds": round(end.elapsed_s, 1), "budget_left": budget.left(),
        }  # fmt: skip
    finally:
        budget.lock.release()


def order_of(
    place: Place, runs: Sequence[RunRecord], urls: Sequence[str], pages: int, budget: CrawlBudget
) -> CrawlOrder:
    """A crawl of these URLs with the settings of the collection's last crawl, overridden by its periplus.toml.

    Links are followed on the URLs' own sites only. Raises UsageError.
    """
    crawls = [run for run in runs if run.kind != CHECK]
    starts = [Url(start) for run in crawls for start in run.starts]
    if not starts:
        raise UsageError("this collection has no crawl yet: a user must start it with `periplus crawl URL`")
    chosen = tuple(dict.fromkeys(_url(text, starts[0]) for text in urls))
    hosts, named = {site_key(start) for start in starts}, frozenset(own_hosts(budget.hosts))
    for url in chosen:
        if site_key(url) not in hosts and not is_named(host_key(url), named):
            raise UsageError(
                f"{url} is neither on a host of this collection ({', '.join(sorted(hosts)[:10])}) nor on one that the "
                "user allowed (--crawl-host)"
            )
    settings = _settings(place, crawls[-1].settings)
    given = {
        "max_pages": pages,
        "max_time_s": min(CALL_S, budget.time_s),
        "workers": 1,
        "scope": settings.scope.scope if settings.scope.scope in _KNOWN_SCOPES else "site",
    }
    return CrawlOrder(place, chosen, settings_from(given, settings))


def _url(text: str, start: Url) -> Url:
    try:
        return resolve(text, start)[0]
    except InvalidUrl as error:
        raise UsageError(f"{text[:200]!r} is not an address: {error}") from None


def _settings(place: Place, stored: Mapping[str, object]) -> Settings:
    settings = last_settings(stored)
    return settings if isinstance(place, str) else read_settings(place / SETTINGS_FILE, settings)
