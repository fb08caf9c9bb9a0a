"""Moves a collection from a folder into a database or back, and verifies that it arrived complete."""

from __future__ import annotations

import contextlib
import json
import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from periplus.api.rules import rules_text
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.features import is_address
from periplus.model.collection import RunNote
from periplus.model.results import ImportResult
from periplus.settings import SETTINGS_FILE, SUFFIX, segments_written
from periplus.store import runs as collection_runs
from periplus.store.notes import note, put_note
from periplus.store.sqlite import reading, runs
from periplus.store.sqlite.schema import SqliteStatements, draft_collection, exists, files_state, writing
from periplus.store.statements import Statements
from periplus.urls.parameters import rules_key
from periplus.values import Row, frozen
from periplus_postgres import copying, folder_rows, index_place, ledger, schema, table_rows
from periplus_postgres.address import Address, address_of
from periplus_postgres.connection import Connection, connect
from periplus_postgres.copying import DatabaseRows
from periplus_postgres.folder_rows import FolderRows
from periplus_postgres.frontier import DatabaseHome
from periplus_postgres.moved_tables import MOVING, USER_TABLES, MovedBody, MovedTable, RowStore, Sum, sum_of
from periplus_postgres.segments import SegmentReader, SegmentWriter, object_storage
from periplus_postgres.statements import PostgresStatements

# The target is a draft that no other command opens. Each transaction writes some thousand rows and a note of how far it
# is, so that the same command continues after an interruption, unless the source changed. At the end everything is read
# back and compared with the source, table by table. The source stays unchanged, except for a note that of its target.

log = logging.getLogger(__name__)
Watch = Callable[[str, int], None]  # (step, rows so far)
SAID_EVERY, BODIES_SAID_EVERY = 5_000, 100  # rows
ROWS_AT_ONCE, BODIES_AT_ONCE = 20_000, 1_000  # of a transaction
T = TypeVar("T")


def silent(what: str, rows: int) -> None:
    """Default: no progress reports."""


@frozen
class MoveResult:
    """Result of a move. place: target as the user knows it; rows: by table."""

    place: str
    rows: Mapping[str, int]


def move(source: str, target: str, watch: Watch = silent) -> MoveResult:
    """Moves a collection between a folder and a database address, in either direction.

    After an interruption the same call continues, unless the source changed. Raises UsageError, NoCollection and
    StoreError.
    """
    if is_address(source) == is_address(target):
        raise UsageError("a collection moves between a folder and a database: give one of each")
    if is_address(target):
        return into_database(Path(source), target, watch)

    return into_folder(source, Path(target), watch)


def report_rows(rows: Iterable[T], what: str, watch: Watch, every: int = SAID_EVERY) -> Iterator[T]:
    """Passes the rows through and reports progress."""
    count = 0
    for count, row in enumerate(rows, 1):
        yield row
        if count % every == 0:
            watch(what, count)
    watch(what, count)


class Target(NamedTuple):
    """Where a move writes. flush: makes the segments durable, before each commit."""

    rows: RowStore
    statements: Statements
    transaction: Callable[[], AbstractContextManager[object]]
    flush: Callable[[], None] = lambda: None


def transfer(source: RowStore, target: Target, tables: Sequence[MovedTable], watch: Watch) -> dict[str, Sum]:
    """Inserts the rows of these tables and all bodies, or what is missing of them; returns sums by table of the source.

    A table in which an earlier call was interrupted is read whole again for its sum, but not written again.
    """
    progress = json.loads(note(target.statements, MOVING))
    written: dict[str, Any] = progress["tables"]  # number of transactions; of a complete table its rows and digest
    if written.pop("file", None):  # in SQLite a temporary table, which is lost with its connection
        target.rows.clear("file")
    steps: list[tuple[str, bool, Iterator[Row], Callable[[Any], None]]] = [
        (table.name, table.has_bytes, source.rows(table), partial(target.rows.enter, table)) for table in tables
    ]
    steps.append(("body", True, source.bodies(), target.rows.enter_bodies))
    sent: dict[str, Sum] = {}

    def keep(name: str, done: object) -> None:
        written[name] = done
        put_note(target.statements, MOVING, json.dumps(progress))

    for name, has_bytes, rows, enter in steps:
        total, done = Sum(has_bytes=has_bytes), written.get(name, 0)
        sent[name] = total
        if isinstance(done, list):
            total.rows, total.digest = done
            continue
        for number, batch in _batches(_with_sum(rows, name, total, watch), name):
            if number >= done:  # else `groupby` reads its rows
                with target.transaction():
                    enter(row for _, row in batch)
                    target.flush()
                    keep(name, number + 1)
        with target.transaction():
            keep(name, [total.rows, total.digest])
    return sent


def _with_sum(rows: Iterator[Row], name: str, total: Sum, watch: Watch) -> Iterator[Row]:
    every = BODIES_SAID_EVERY if name == "body" else SAID_EVERY
    for row in report_rows(rows, f"Moving {name}", watch, every):
        total.add((row.row if isinstance(row, MovedBody) else row)[1:])
        yield row


def _batches(rows: Iterator[Row], name: str) -> Iterator[tuple[int, Iterator[tuple[int, Row]]]]:
    """(number, its rows with this number) of each transaction. The links of a page are in one."""
    at_once = BODIES_AT_ONCE if name == "body" else ROWS_AT_ONCE

    def with_numbers() -> Iterator[tuple[int, Row]]:
        number = count = 0
        page = None
        for row in rows:
            if count >= at_once and not (name == "link" and row[1] == page):
                number, count = number + 1, 0
            count, page = count + 1, row[1]
            yield number, row

    return groupby(with_numbers(), itemgetter(0))


def verify_rows(sent: Mapping[str, Sum], target: RowStore, tables: Iterable[MovedTable], watch: Watch) -> None:
    """Raises StoreError unless the rows that are read back equal those that were sent."""
    stored: dict[str, Iterable[Row]] = {table.name: target.rows(table) for table in tables}
    stored["body"] = (body.row for body in target.bodies())
    for name, total in sent.items():
        rows = report_rows(stored[name], f"Comparing {name}", watch)
        arrived = sum_of((row[1:] for row in rows), has_bytes=total.has_bytes)
        if arrived != total:
            raise StoreError(f"the table {name} arrived incomplete: {total} sent, {arrived} stored. Nothing was moved.")


def into_database(folder: Path, store: str, watch: Watch) -> MoveResult:
    """See `move`."""
    address = address_of(store)
    if not exists(folder):
        raise NoCollection(f"{folder} has no collection")
    with contextlib.ExitStack() as stack:
        stack.enter_context(copying.translate_errors())
        stack.enter_context(runs.only_crawl(folder))
        connection = stack.enter_context(reading.open_reader(folder))
        stack.enter_context(reading.reading())
        folder_rows.load_files(connection, folder)
        stack.enter_context(reading.snapshot(connection))
        collection_runs.refuse(SqliteStatements(connection))
        rules = _rules(folder, connection)
        target = stack.enter_context(contextlib.closing(connect(address)))
        copying.remove_time_limits(target)
        copying.only_mover(target, address.collection)
        files = connection.execute("SELECT name, changed FROM file ORDER BY name").fetchall()
        rows = _begin(target, address, str((folder.resolve(), files_state(folder), files)))
        if not rows:
            _name_left_behind(folder_rows.foreign_tables(connection))
            sent = _copy_to_database(connection, target, address, rules, watch)
            rows = {name: total.rows for name, total in sent.items()}
            schema.gather_statistics(target)
        with writing(folder) as own:
            collection_runs.mark(SqliteStatements(own), str(address))
        put_note(PostgresStatements(target), MOVING, "")
    return MoveResult(str(address), rows)


def _name_left_behind(tables: Sequence[str]) -> None:
    if tables:
        log.warning("not moved, since no installed feature declares them: tables %s", ", ".join(tables))


def _row_counts(begun: Mapping[str, Any]) -> dict[str, int]:
    """Numbers of rows by table, from the note MOVING of a complete move."""
    return {name: rows for name, (rows, _) in begun["tables"].items()}


def import_into_database(store: str, make: Callable[[Path], ImportResult]) -> ImportResult:
    """Imports into a temporary folder, then moves the result into a database. Creates nothing if no page was read.
    Raises as `move` and `make`.
    """
    address_of(store)
    with tempfile.TemporaryDirectory(prefix="periplus-") as temporary:
        folder = Path(temporary) / f"imported{SUFFIX}"
        done = make(folder)
        if done.state != "failed":
            into_database(folder, store, silent)
    return done


def _rules(folder: Path, connection: reading.Connection) -> str:
    """The URL rules applied to the collection, and its segment rules.

    Raises UsageError if periplus.toml has URL rules that are not applied yet.
    """
    text = rules_text(folder)
    if rules_key(text) != folder_rows.rules_in_force(connection):
        raise UsageError(
            f"the rules in {folder / SETTINGS_FILE} are not applied yet: run `periplus rules apply -c {folder}`"
        )
    return text if rules_key(text) else segments_written(text)


def _begin(target: Connection, address: Address, source: str) -> dict[str, int]:
    """Makes an empty draft, unless there is one of the same source. source: changes with each change of the source.

    Returns the numbers of rows by table if this source has arrived, and only the mark on it is missing; else empty.
    """
    statements = PostgresStatements(target)
    with target.transaction():
        if not (is_draft := schema.is_draft(target)):
            schema.create(target, address.collection)
        begun = json.loads(note(statements, MOVING) or "{}")
        if begun.get("source") == source:
            return {} if is_draft else _row_counts(begun)
        if is_draft:
            schema.clear(target, {})
        if not copying.is_empty(target):
            raise StoreError(f"{address} already has a collection. Choose another name: collection=NAME.")
        schema.set_version(target, schema.DRAFT)
        put_note(statements, MOVING, json.dumps({"source": source, "tables": {}}))
    return {}


def _copy_to_database(
    connection: reading.Connection, target: Connection, address: Address, rules: str, watch: Watch
) -> Mapping[str, Sum]:
    """Fills the draft and makes it the collection; returns sums by table."""
    source, statements = FolderRows(connection, has_shards=True), PostgresStatements(target)
    tables = source.tables()
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(_writer(connection, address)) if address.segments else None
        reader = SegmentReader(object_storage(address.segments)) if address.segments else None
        rows = DatabaseRows(target, reader, writer.append if writer else None)
        flush = writer.flush if writer else lambda: None
        sent = transfer(source, Target(rows, statements, target.transaction, flush), tables, watch)
        meta = {"segments": address.segments, "rules_text": rules}
        try:
            with target.transaction():
                index_place.remember(target, address.index)
                copying.complete(
                    target, folder_rows.last_seq(connection), {name: value for name, value in meta.items() if value}
                )
                verify_rows(sent, rows, tables, watch)
                schema.set_version(target, schema.VERSION)
        except StoreError:
            with target.transaction():
                schema.clear(target, {})
                schema.set_version(target, schema.VERSION)
            raise
    return sent


def _writer(connection: reading.Connection, address: Address) -> SegmentWriter:
    """Writer of segments. Their metadata describe the last run, although they hold pages of all runs."""
    records = runs.run_records(connection)
    if not records:
        return SegmentWriter(
            object_storage(address.segments), f"moved-{uuid4().hex}", RunNote(0, 0.0, "", (), "{}", True)
        )
    last = records[-1]
    agent, robots = str(last.settings.get("user_agent", "")), not last.settings.get("ignore_robots", False)
    note = RunNote(last.id, last.started, agent, last.starts, json.dumps(last.settings), robots)
    return SegmentWriter(object_storage(address.segments), f"moved-{uuid4().hex}", note)


def into_folder(store: str, folder: Path, watch: Watch) -> MoveResult:
    """See `move`."""
    address, place = address_of(store), str(folder.resolve())
    with (
        copying.translate_errors(),
        DatabaseHome(address).only_crawl(),
        contextlib.closing(connect(address)) as connection,
    ):
        schema.check(connection, address.collection)
        copying.remove_time_limits(connection)
        copying.only_mover(connection, address.collection)
        collection_runs.refuse(PostgresStatements(connection), unless=place)
        with contextlib.ExitStack() as stack:
            # first, so that no worker can join a crawl from now on
            collection_runs.mark(PostgresStatements(connection), place)
            stack.callback(collection_runs.unmark, PostgresStatements(connection))
            copying.merge_inbox(connection, address.collection)
            with copying.one_moment(connection):
                if (workers := table_rows.workers_at_work(connection)) or not ledger.is_empty(connection):
                    raise UsageError(
                        f"{workers or 'some'} workers are running on {address}. Stop them first with SIGTERM or "
                        "`periplus jobs cancel`."
                    )
                if not exists(folder):
                    _name_left_behind(schema.foreign_tables(connection))
                    _copy_to_folder(connection, address, folder, watch)
            with writing(folder) as done:  # last, since without the note the draft would look empty
                if not (begun := json.loads(note(SqliteStatements(done), MOVING) or "{}")):
                    raise StoreError(f"{folder} holds a collection already. Choose another folder.")
                put_note(SqliteStatements(done), MOVING, "")
            stack.pop_all()
    return MoveResult(str(folder), _row_counts(begun))


def _copy_to_folder(connection: Connection, address: Address, folder: Path, watch: Watch) -> None:
    """Fills the draft of the new folder, which becomes visible after the comparison."""
    state = f"{address} {copying.version(connection)} {copying.digests(connection, USER_TABLES)}"
    with draft_collection(folder, sha256(state.encode()).hexdigest()[:16]) as draft:
        folder_rows.load_files(draft, folder)
        rows, statements = FolderRows(draft), SqliteStatements(draft)
        tables = rows.tables()
        if not note(statements, MOVING):
            if draft.execute("SELECT 1 FROM file").fetchone():
                raise StoreError(f"{folder} already has topics: choose another folder")
            put_note(statements, MOVING, '{"tables": {}}')
        target = Target(rows, statements, partial(folder_rows.transaction, draft))
        sent = transfer(DatabaseRows(connection, segment_reader(connection)), target, tables, watch)
        with folder_rows.transaction(draft):
            folder_rows.complete(draft, copying.last_seq(connection))
            verify_rows(sent, rows, tables, watch)
        _keep_rules(copying.rules_text(connection), folder)
        folder_rows.write_files(draft, folder)


def segment_reader(connection: Connection) -> SegmentReader | None:
    """Reader of the collection's segments; None if page bodies are in the database."""
    place = table_rows.place_of_segments(connection)
    return SegmentReader(object_storage(place)) if place else None


def _keep_rules(text: str, folder: Path) -> None:
    """Writes the rules to the folder's periplus.toml. Raises StoreError if that exists already."""
    path = folder / SETTINGS_FILE
    if text and path.exists() and path.read_text("utf-8") != text:
        raise StoreError(
            f"{path} already exists, and the collection has its own rules: move the file away, or choose another folder"
        )
    if text:
        path.write_text(text, "utf-8")
