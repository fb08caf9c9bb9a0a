"""What does a crawl ask of the place where its collection is kept? One protocol; a folder and a database each have their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from periplus.model.crawl_store import CrawlStore
from periplus.model.freshness import Finding
from periplus.model.frontier import HostRow, TrapTally
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, Url, UrlId
from periplus.settings import Settings


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run as stored. state: running, done, stopped, suspicious or failed; note says why."""

    id: int
    kind: str
    starts: tuple[str, ...]
    settings: dict[str, object]
    seed: int
    started: float  # seconds since the epoch, UTC
    ended: float | None
    state: str
    note: str
    fetched: int
    wire_bytes: int


class RunStore(CrawlStore, Protocol):
    """A crawl store with what its boss asks beside: what to begin with, how it goes, how it ended."""

    def texts(self, site: SiteKey, most: int) -> Iterator[tuple[Url, bytes]]:
        """(url, digest of its text) of the site's pages that were fetched, the latest `most`, oldest first."""

    def standing(self, url: Url) -> tuple[Reason, str]:
        """How a known URL stands, and by which rule."""

    def never_asked(self, reasons: Sequence[Reason]) -> Iterator[tuple[Url, int | None, bool]]:
        """(url, layer, in sitemap) of the URLs that stand at one of these reasons, none of which means that they were fetched."""

    def traps(self) -> Sequence[TrapTally]:
        """The families that were left out as endless series, the largest first."""

    def merge_twins(self) -> int:
        """Pages that are the same (see `urls.twins.merged`) become one page with several addresses. Returns how many are aliases by it."""

    def is_paused(self) -> bool: ...

    def busiest(self, most: int, now: float) -> Sequence[HostRow]:
        """Hosts with work, those with most waiting first."""

    def close(self) -> None: ...


class CrawlHome(Protocol):
    """Where one collection is kept: what happens there before, after and around a run. Each call is a transaction of its own.

    Its text in an error or a summary is what a user calls it. Times: `now` is seconds since the epoch, UTC; a database has its own clock.
    """

    def only_crawl(self) -> AbstractContextManager[None]:
        """Holds the collection for one crawl, until its holder dies. Raises StoreError when another one holds it."""

    def prepare(self, rules: str, now: float) -> bool:
        """Makes the collection if there is none; else brings it into accord with its rules for URLs (TOML). True: a crawl goes on with it.

        Raises StoreError, and UsageError where rules cannot be changed.
        """

    def rules_text(self) -> str:
        """The rules for URLs that were stored with it, in TOML; empty where none were: a folder has them in its periplus.toml."""

    def begin_run(self, kind: str, starts: Sequence[Url], settings: Settings, now: float) -> int:
        """A new run; returns its id. What earlier runs knew of hosts' failures is forgotten: they are asked anew."""

    def store(self, run_id: int, settings: Settings) -> RunStore:
        """The crawl store of a run, for one process."""

    def ask_again(self, now: float, *, due_only: bool) -> int:
        """Enters what a refresh asks for again into the to-do lists; returns how many."""

    def add_starts(self, starts: Sequence[UrlId], sites: Sequence[SiteKey], now: float) -> None:
        """Notes which URLs are starts. sites: of each."""

    def end_run(self, run_id: int, state: str, note: str, now: float) -> None: ...

    def pause(self, now: float) -> bool:
        """Has the crawl that goes on ask for nothing more until `resume`, its end, or the beginning of another. False: none goes on. Raises NoCollection."""

    def resume(self, now: float) -> bool:
        """False: no crawl goes on that was paused. Raises NoCollection."""

    def runs(self) -> Sequence[RunRecord]:
        """All runs, oldest first. Raises NoCollection."""

    def findings(self, run_id: int) -> Mapping[Finding, int]:
        """What a run found, by kind; every kind is named."""
