"""Operations on the runs of a collection: begin, end, pause, move away. Call them within a transaction."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from periplus.errors import StoreError
from periplus.masking import masked_setting
from periplus.model.audit import FaultNote
from periplus.model.frontier import RefreshFinding
from periplus.model.ports import RunRecord
from periplus.model.web import SiteKey, Url, UrlId
from periplus.settings import Settings, as_values
from periplus.store import notes
from periplus.store.notes import note, put_note
from periplus.store.statements import Row, Statements

T = TypeVar("T")
# A pause is an entry in the table meta until the crawl is resumed or ends, or another one begins.
PAUSE_KEY = "paused"  # key in meta; value: time of the pause
IS_PAUSED = f"EXISTS (SELECT 1 FROM meta WHERE name = '{PAUSE_KEY}')"
# A collection that moved away can be read but not crawled.
NEW_PLACE_KEY = "moved"  # key in meta; value: the new place
_SUM = (
    "{0} + CAST((SELECT coalesce(sum(c.value), 0) FROM run_count c WHERE c.run_id = r.id AND c.name = '{0}') AS bigint)"
)
_AS_CRAWLED, _AS_CHECKED = ("was", "was_rule", "was_status"), ("reason", "rule", "status")


def is_paused(statements: Statements) -> bool:
    return bool(statements.rows(f"SELECT 1 WHERE {IS_PAUSED}"))


def pause(statements: Statements, now: float) -> bool:
    """Returns True."""
    statements.change("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", (PAUSE_KEY, repr(now)))
    return True


def resume(statements: Statements) -> bool:
    """Ends a pause. Returns whether there was one."""
    return statements.change("DELETE FROM meta WHERE name = ?", (PAUSE_KEY,)) > 0


def mark(statements: Statements, place: str) -> None:
    """Marks the collection as moved to a place."""
    put_note(statements, NEW_PLACE_KEY, place)


def unmark(statements: Statements) -> None:
    """Removes the mark after a failed move."""
    put_note(statements, NEW_PLACE_KEY, "")


def refuse(statements: Statements, *, unless: str = "") -> None:
    """Raises StoreError if the collection has moved. unless: accept this place, the target of an interrupted move."""
    place = note(statements, NEW_PLACE_KEY)
    if place and place != unless:
        use = "; delete it by `DROP SCHEMA`" if statements.dialect.has_shards else ", to be read"
        raise StoreError(f"this collection moved to {place}: crawl there. The old copy is unchanged{use}.")


class HomeRecords(Protocol):
    """The part of `model.ports.CrawlHome` that is the same for every database: its runs and notes."""

    @abstractmethod
    def read(self, action: Callable[[Statements], T]) -> T:
        """Runs a read-only action and returns its result. Raises NoCollection, StoreError."""

    @abstractmethod
    def change(self, action: Callable[[Statements], T]) -> T:
        """Runs an action in one transaction and returns its result. Raises as `read`."""

    @abstractmethod
    def change_at(self, now: float, action: Callable[[Statements, float], T]) -> T:
        """As `change`, with the time of the store: `now`, or that of its server."""

    def is_crawled(self, statements: Statements, now: float) -> bool:
        """Whether a live worker has a lease."""
        return bool(statements.rows("SELECT 1 FROM worker WHERE lease_until >= ?", (now,)))

    @abstractmethod
    def prepare_run(self, statements: Statements, now: float, *, is_watched: bool) -> None:
        """Called before a run is created. is_watched: its visits are read in order, as by a survey."""

    def begin_run(
        self,
        kind: str,
        starts: Sequence[Url],
        settings: Settings,
        now: float,
        further: Mapping[str, object] | None = None,
    ) -> int:
        def begin_at(statements: Statements, moment: float) -> int:
            self.prepare_run(statements, moment, is_watched=further is not None)
            return begin(statements, kind, starts, settings, moment, further)

        return self.change_at(now, begin_at)

    def add_starts(self, starts: Sequence[UrlId], sites: Sequence[SiteKey], now: float) -> None:
        self.change_at(now, lambda statements, moment: add_starts(statements, starts, sites, moment))

    def end_run(self, run_id: int, state: str, note: str, now: float) -> None:
        self.change_at(now, lambda statements, moment: end(statements, run_id, state, note, moment))

    def pause(self, now: float) -> bool:
        return self.change_at(
            now, lambda statements, moment: self.is_crawled(statements, moment) and pause(statements, moment)
        )

    def resume(self, now: float) -> bool:
        return self.change_at(
            now, lambda statements, moment: resume(statements) and self.is_crawled(statements, moment)
        )

    def note(self, name: str) -> str:
        return self.read(lambda statements: notes.note(statements, name))

    def change_note(self, name: str, changed: Callable[[str], str]) -> str:
        return self.change(lambda statements: notes.change_note(statements, name, changed))

    def note_fault(self, note: FaultNote) -> None:
        self.change(lambda statements: notes.put_fault_note(statements, note))

    def fault_notes(self) -> tuple[FaultNote, ...]:
        return self.read(notes.fault_notes)

    def runs(self) -> Sequence[RunRecord]:
        return self.read(records)

    def findings(self, run_id: int) -> Mapping[RefreshFinding, int]:
        return self.read(lambda statements: findings(statements, run_id))


def begin(
    statements: Statements,
    kind: str,
    starts: Sequence[Url],
    settings: Settings,
    now: float,
    further: Mapping[str, object] | None = None,
) -> int:
    """Creates a run and returns its id. Failures of hosts in earlier runs are reset.

    further: more values stored with the settings; `seed` has its own column. Hosts are locked in key order, since
    workers of the last run may still be running.
    """
    dialect = statements.dialect
    refuse(statements)
    resume(statements)
    if dialect.has_triggers:  # that write history for the last run
        _restate(statements, 0, _AS_CHECKED, _AS_CRAWLED)
    stop = "UPDATE run SET state = 'stopped', note = 'it was interrupted', ended = ? WHERE state = 'running'"
    statements.change(stop, (now,))
    failing = "strikes <> 0 OR waits_for <> ''"
    if dialect.for_update:
        statements.rows(f"SELECT 1 FROM host WHERE {failing} ORDER BY {dialect.shard}id{dialect.for_update}")
    statements.change(f"UPDATE host SET strikes = 0, waits_for = '' WHERE {failing}")
    statements.change("DELETE FROM robots WHERE cause <> '' OR status >= 500 OR status = 429")
    given = as_values(settings) | dict(further or {})
    values = {name: masked_setting(name, value) for name, value in given.items()}
    insert = (
        "INSERT INTO run (kind, starts, settings, seed, started, state) VALUES (?, ?, ?, ?, ?, 'running') RETURNING id"
    )
    row = (kind, json.dumps(list(starts)), json.dumps(values), values.get("seed", 0), now)
    run_id = int(statements.rows(insert, row)[0][0])
    if not dialect.has_triggers:
        _restate(statements, run_id, _AS_CHECKED, _AS_CRAWLED)
    return run_id


def end(statements: Statements, run_id: int, state: str, note: str, now: float) -> None:
    resume(statements)
    _restate(statements, run_id, _AS_CRAWLED, _AS_CHECKED)  # before the run ends, so that the history refers to it
    statements.change("UPDATE run SET state = ?, note = ?, ended = ? WHERE id = ?", (state, note, now, run_id))


def add_starts(statements: Statements, starts: Sequence[UrlId], sites: Sequence[SiteKey], now: float) -> None:
    shards = [statements.dialect.shard_of(site) for site in sites]
    rows = [(shard, url_id, now) for shard, url_id in zip(shards, starts, strict=True)]
    statements.upsert("start", "url_id, added", rows)


def records(statements: Statements) -> list[RunRecord]:
    """All runs, oldest first."""
    sums = f"{_SUM.format('fetched')}, {_SUM.format('wire_bytes')}, {_SUM.format('http2').partition('+ ')[2]}"
    find = f"SELECT id, kind, starts, settings, seed, started, ended, state, note, {sums} FROM run r ORDER BY id"
    return [
        RunRecord(run_id, kind, tuple(json.loads(starts)), json.loads(settings), *others)
        for run_id, kind, starts, settings, *others in statements.rows(find)
    ]


def findings(statements: Statements, run_id: int) -> Mapping[RefreshFinding, int]:
    """Number of each kind of finding of a run, including zeros."""
    find = "SELECT name, sum(value) FROM run_count WHERE run_id = ? GROUP BY name"
    counts = {name: int(value) for name, value in statements.rows(find, (run_id,))}
    return {finding: counts.get(finding.value, 0) for finding in RefreshFinding}


# What checks found dead that a crawl did not ask for is failed between runs, and within one as the crawl left it.


def _restate(statements: Statements, run_id: int, now: tuple[str, str, str], then: tuple[str, str, str]) -> None:
    """Switches between the two. now, then: columns of `verdict`. URLs that a crawl changed since stay unchanged."""
    dialect = statements.dialect
    verdicts = f"verdict v JOIN url u ON {dialect.beside('u', 'v')}u.id = v.url_id"
    if dialect.for_update:
        hosts = f"SELECT {'u.shard, ' if dialect.has_shards else ''}u.host_id FROM {verdicts}"
        statements.rows(
            f"SELECT 1 FROM host WHERE ({dialect.shard}id) IN ({hosts}) ORDER BY {dialect.shard}id{dialect.for_update}"
        )
    find = (
        f"SELECT {url_before(statements)}, v.{then[0]}, v.{then[1]}, v.{then[2]} FROM {verdicts}"
        f" WHERE u.reason = v.{now[0]} AND u.rule = v.{now[1]}"
    )
    change_states(statements, run_id, statements.rows(find))


def url_before(statements: Statements) -> str:
    """Columns of a URL `u` before `change_states`."""
    shard = "u.shard" if statements.dialect.has_shards else "0"
    return f"{shard}, u.id, u.reason, u.rule, u.status, u.depth, u.first_seen"


def change_states(statements: Statements, run_id: int, rows: Iterable[Row]) -> None:
    """Changes URLs in a run, with their history and the tallies. rows: `url_before`, then reason, rule and status."""
    dialect = statements.dialect
    past, urls, tallies = [], [], Counter[str]()
    for shard, url_id, reason, rule, status, depth, first_seen, *new in rows:
        past.append((first_seen, (shard, url_id, run_id, reason, rule, status, depth)))
        urls.append((shard, url_id, *new))
        tallies["reason:" + reason] -= 1
        tallies["reason:" + new[0]] += 1
    if past and not dialect.has_triggers:
        started = statements.rows("SELECT started FROM run WHERE id = ?", (run_id,))[0][0]
        history = [row for first_seen, row in past if first_seen < started]
        statements.upsert("url_history", "url_id, run_id, reason, rule, status, depth", history)
    statements.update("url", "id, reason, rule, status", urls)
    add_tallies(statements, tallies)


def add_tallies(statements: Statements, tallies: Mapping[str, int]) -> None:
    """Adds changes to the counters of the collection: `known`, and `reason:...` by reason."""
    part, its_part = ("part, ", "0, ") if statements.dialect.has_shards else ("", "")
    add = f"ON CONFLICT ({part}name) DO UPDATE SET value = tally.value + excluded.value"
    changes = [(name, change) for name, change in tallies.items() if change]
    statements.change_rows(f"INSERT INTO tally ({part}name, value) VALUES ({its_part}?, ?) {add}", changes)
