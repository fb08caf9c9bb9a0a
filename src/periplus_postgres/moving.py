"""Moves a collection from a folder into a database or back, and verifies that it arrived complete."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from periplus.api.rules import rules_text
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.features import is_address
from periplus.model.collection import RunNote
from periplus.model.results import ImportResult
from periplus.settings import SETTINGS_FILE, SUFFIX, segments_written
from periplus.store import runs as collection_runs
from periplus.store.sqlite import reading, runs
from periplus.store.sqlite.schema import SqliteStatements, draft_collection, exists, writing
from periplus.urls.parameters import rules_key
from periplus.values import Row, frozen
from periplus_postgres import copying, folder_rows, index_place, ledger, schema, table_rows
from periplus_postgres.address import Address, address_of
from periplus_postgres.connection import Connection, connect
from periplus_postgres.copying import DatabaseRows
from periplus_postgres.folder_rows import FolderRows
from periplus_postgres.frontier import DatabaseHome
from periplus_postgres.moved_tables import MovedTable, RowStore, Sum, sum_of
from periplus_postgres.segments import SegmentReader, SegmentWriter, object_storage
from periplus_postgres.statements import PostgresStatements

# The target is written in one transaction, read back and compared with the source table by table before the commit. The
# source stays unchanged, except for a note that names the target.

Watch = Callable[[str, int], None]  # (step, rows so far)
SAID_EVERY, BODIES_SAID_EVERY = 5_000, 100  # rows
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

    Raises UsageError, NoCollection and StoreError; the target then stays empty.
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


def transfer(source: RowStore, target: RowStore, tables: Iterable[MovedTable], watch: Watch) -> dict[str, Sum]:
    """Inserts the rows of these tables and all bodies into empty tables; returns sums by table of what was sent."""
    sent: dict[str, Sum] = {}

    def with_sum(name: str, rows: Iterable[T], total: Sum, row_of: Callable[[T], Row], every: int) -> Iterator[T]:
        sent[name] = total
        for row in report_rows(rows, f"Moving {name}", watch, every):
            total.add(row_of(row)[1:])
            yield row

    for table in tables:
        total = Sum(has_bytes=table.has_bytes)
        target.enter(table, with_sum(table.name, source.rows(table), total, lambda row: row, SAID_EVERY))
    target.enter_bodies(with_sum("body", source.bodies(), Sum(), lambda body: body.row, BODIES_SAID_EVERY))
    return sent


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
        sent = _copy_to_database(connection, target, address, rules, watch)
        with writing(folder) as own:
            collection_runs.mark(SqliteStatements(own), str(address))
    return MoveResult(str(address), {name: total.rows for name, total in sent.items()})


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


def _copy_to_database(
    connection: reading.Connection, target: Connection, address: Address, rules: str, watch: Watch
) -> Mapping[str, Sum]:
    """Writes the whole collection in one transaction; returns sums by table."""
    source = FolderRows(connection, has_shards=True)
    tables = source.tables()
    with target.transaction(), contextlib.ExitStack() as stack:
        schema.create(target, address.collection)
        if not copying.is_empty(target):
            raise StoreError(f"{address} already has a collection. Choose another name: collection=NAME.")
        writer = stack.enter_context(_writer(connection, address)) if address.segments else None
        reader = SegmentReader(object_storage(address.segments)) if address.segments else None
        rows = DatabaseRows(target, reader, writer.append if writer else None)
        sent = transfer(source, rows, tables, watch)
        if writer:
            writer.flush()
        meta = {"segments": address.segments, "rules_text": rules}
        index_place.remember(target, address.index)
        copying.complete(
            target, folder_rows.last_seq(connection), {name: value for name, value in meta.items() if value}
        )
        verify_rows(sent, rows, tables, watch)
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
        copying.only_editor(connection, address.collection)
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
                sent = _copy_to_folder(connection, folder, watch)
            stack.pop_all()
    return MoveResult(str(folder), {name: total.rows for name, total in sent.items()})


def _copy_to_folder(connection: Connection, folder: Path, watch: Watch) -> Mapping[str, Sum]:
    """Fills the new folder, which becomes visible after the comparison; returns sums by table."""
    with draft_collection(folder) as draft:
        folder_rows.load_files(draft, folder)
        if draft.execute("SELECT 1 FROM file").fetchone():
            raise StoreError(f"{folder} already has topics: choose another folder")
        rows = FolderRows(draft)
        tables = rows.tables()
        with folder_rows.transaction(draft):
            sent = transfer(DatabaseRows(connection, segment_reader(connection)), rows, tables, watch)
            folder_rows.complete(draft, copying.last_seq(connection))
            verify_rows(sent, rows, tables, watch)
        _keep_rules(copying.rules_text(connection), folder)
        folder_rows.write_files(draft, folder)
    return sent


def segment_reader(connection: Connection) -> SegmentReader | None:
    """Reader of the collection's segments; None if page bodies are in the database."""
    place = table_rows.place_of_segments(connection)
    return SegmentReader(object_storage(place)) if place else None


def _keep_rules(text: str, folder: Path) -> None:
    """Writes the rules to the folder's periplus.toml. Raises StoreError if that exists already."""
    path = folder / SETTINGS_FILE
    if text and path.exists():
        raise StoreError(
            f"{path} already exists, and the collection has its own rules: move the file away, or choose another folder"
        )
    if text:
        path.write_text(text, "utf-8")
