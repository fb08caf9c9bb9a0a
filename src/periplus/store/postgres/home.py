"""How is a collection kept in PostgreSQL, as a crawl sees it? `model.crawl_home.CrawlHome`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from periplus.errors import StoreError, UsageError
from periplus.model.crawl_home import RunRecord
from periplus.model.freshness import Finding
from periplus.model.web import SiteKey, Url, UrlId
from periplus.settings import Settings
from periplus.store.postgres import pausing, rechecks, runs, schema, status
from periplus.store.postgres.address import Address
from periplus.store.postgres.connection import FIRST_PATIENCE_S, PATIENCE_S, Connection, connect
from periplus.store.postgres.frontier import PostgresCrawlStore
from periplus.store.postgres.inbox import lock_number
from periplus.store.shelves import shelf_of
from periplus.urls.rule_file import rules_key

T = TypeVar("T")
_MEANT = "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class DatabaseHome:
    """One collection in a database. See the protocol."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._patience_s = FIRST_PATIENCE_S

    def __str__(self) -> str:
        return str(self.address)

    def _connected(self) -> contextlib.closing[Connection]:
        connection = connect(self.address, patience_s=self._patience_s)
        self._patience_s = PATIENCE_S
        return contextlib.closing(connection)

    def _do(self, action: Callable[[Connection], T]) -> T:
        with self._connected() as connection:
            schema.check(connection, self.address.collection)
            with connection.transaction():
                return action(connection)

    @contextlib.contextmanager
    def only_crawl(self) -> Iterator[None]:
        """The server frees it when the connection ends; workers that join need no such hold."""
        with self._connected() as connection:
            held = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", (schema.LOCK_CRAWL, lock_number(self.address.collection))).fetchone()
            if not held or not held[0]:
                raise StoreError(f"another crawl is at work on {self}. `periplus worker --store` joins it; or wait for its end, or name another collection.")
            yield

    def prepare(self, rules: str, now: float) -> bool:
        """The first crawl's rules hold for good: to apply others to what is stored takes a folder."""
        with self._connected() as connection:
            is_new = schema.create(connection, self.address.collection)
            self._agree_on_segments(connection, is_new=is_new)
            went_on = connection.execute("SELECT 1 FROM run LIMIT 1").fetchone() is not None
            known = connection.execute("SELECT value FROM meta WHERE name = 'rules'").fetchone()
            if went_on and (known[0] if known else "") != rules_key(rules):
                raise UsageError(f"{self} was crawled with other rules for its URLs. Move it to a folder (periplus move), apply them there, and move it back.")
            if not went_on:
                connection.execute(_MEANT, ("rules", rules_key(rules)))
                connection.execute(_MEANT, ("rules_text", rules))
            return went_on

    def _agree_on_segments(self, connection: Connection, *, is_new: bool) -> None:
        """Where the bytes of pages are kept is said once: workers on other machines take it from here."""
        said = self.address.segments
        if not said:
            return
        known = connection.execute("SELECT value FROM meta WHERE name = 'segments'").fetchone()
        if known is not None and known[0] != said:
            raise UsageError(f"{self} keeps its pages' bytes in {known[0]}, not in {said}: leave segments= out of the address")
        if known is None and not is_new and connection.execute("SELECT 1 FROM body LIMIT 1").fetchone():
            raise UsageError(f"{self} keeps its pages' bytes in the database already: leave segments= out of the address")
        shelf_of(said).close()  # it can be reached
        connection.execute(_MEANT, ("segments", said))

    def rules_text(self) -> str:
        with self._connected() as connection:
            if not schema.exists(connection):
                return ""
            row = connection.execute("SELECT value FROM meta WHERE name = 'rules_text'").fetchone()
            return str(row[0]) if row else ""

    def begin_run(self, kind: str, starts: Sequence[Url], settings: Settings, now: float) -> int:
        return self._do(lambda connection: runs.begin(connection, kind, starts, settings))

    def store(self, run_id: int, settings: Settings) -> PostgresCrawlStore:
        return PostgresCrawlStore(self.address, run_id, settings.budget, settings.keeping)

    def ask_again(self, now: float, *, due_only: bool) -> int:
        return self._do(lambda connection: rechecks.ask_again(connection, due_only=due_only))

    def add_starts(self, starts: Sequence[UrlId], sites: Sequence[SiteKey], now: float) -> None:
        self._do(lambda connection: runs.add_starts(connection, starts, sites))

    def end_run(self, run_id: int, state: str, note: str, now: float) -> None:
        self._do(lambda connection: runs.end(connection, run_id, state, note))

    def pause(self, now: float) -> bool:
        def paused(connection: Connection) -> bool:
            goes_on = status.workers_at_work(connection) > 0
            if goes_on:
                pausing.pause(connection)
            return goes_on

        return self._do(paused)

    def resume(self, now: float) -> bool:
        return self._do(lambda connection: pausing.resume(connection) and status.workers_at_work(connection) > 0)

    def runs(self) -> Sequence[RunRecord]:
        return self._do(runs.records)

    def findings(self, run_id: int) -> Mapping[Finding, int]:
        return self._do(lambda connection: runs.findings(connection, run_id))
