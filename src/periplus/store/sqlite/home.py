"""How is a collection kept in a folder, as a crawl sees it? `model.crawl_home.CrawlHome`."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from periplus.model.crawl_home import RunRecord
from periplus.model.freshness import Finding
from periplus.model.web import SiteKey, Url, UrlId
from periplus.settings import Settings
from periplus.store.sqlite import aliases, pausing, reading, rechecks, runs, schema
from periplus.store.sqlite.frontier import SqliteCrawlStore
from periplus.urls.rule_file import rules_key, rules_of


class FolderHome:
    """One folder. See the protocol."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __str__(self) -> str:
        return f"{self._folder}/"

    def only_crawl(self) -> AbstractContextManager[None]:
        schema.refuse_network_disk(self._folder)
        return runs.only_crawl(self._folder)

    def prepare(self, rules: str, now: float) -> bool:
        is_there = schema.exists(self._folder)
        if is_there:
            aliases.reapply(self._folder, rules_of(rules), rules_key(rules), now)
        else:
            schema.create(self._folder)
        return is_there

    def rules_text(self) -> str:
        return ""

    def begin_run(self, kind: str, starts: Sequence[Url], settings: Settings, now: float) -> int:
        return runs.begin_run(self._folder, kind, starts, settings, now)

    def store(self, run_id: int, settings: Settings) -> SqliteCrawlStore:
        return SqliteCrawlStore(self._folder, run_id, settings.budget, settings.keeping)

    def ask_again(self, now: float, *, due_only: bool) -> int:
        aliases.part_twins(self._folder, now)
        return rechecks.ask_again(self._folder, now, due_only=due_only)

    def add_starts(self, starts: Sequence[UrlId], sites: Sequence[SiteKey], now: float) -> None:
        runs.add_starts(self._folder, starts, now)

    def end_run(self, run_id: int, state: str, note: str, now: float) -> None:
        runs.end_run(self._folder, run_id, state, note, now)

    def pause(self, now: float) -> bool:
        with schema.writing(self._folder) as connection:
            goes_on = reading.is_being_crawled(connection, now)
            if goes_on:
                pausing.pause(connection, now)
            return goes_on

    def resume(self, now: float) -> bool:
        with schema.writing(self._folder) as connection:
            return pausing.resume(connection) and reading.is_being_crawled(connection, now)

    def runs(self) -> Sequence[RunRecord]:
        with contextlib.closing(schema.connect(self._folder, read_only=True)) as connection:
            return runs.run_records(connection)

    def findings(self, run_id: int) -> Mapping[Finding, int]:
        return rechecks.findings(self._folder, run_id)
