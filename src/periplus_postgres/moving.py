"""Moves a collection from a folder into a database or back, and verifies that it arrived complete."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
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
from periplus.store.statements import shard_of
from periplus.urls.parameters import rules_key
from periplus.values import Row, frozen
from periplus_postgres import copying as database_copying
from periplus_postgres import folder_rows as folder_copying
from periplus_postgres import index_place, ledger, schema, table_rows
from periplus_postgres.address import Address, address_of
from periplus_postgres.connection import Connection, connect
from periplus_postgres.copying import BodyTarget
from periplus_postgres.frontier import DatabaseHome
from periplus_postgres.moved_tables import MovedBody, MovedTable, Sum, sum_rows
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


def sum_bodies(bodies: Iterable[MovedBody], total: Sum, watch: Watch) -> Iterator[MovedBody]:
    """Passes the bodies through, adds them to a sum, and reports progress."""
    for body in report_rows(bodies, "Moving bodies", watch, BODIES_SAID_EVERY):
        total.add(body.row)
        yield body


def verify_rows(sent: Mapping[str, Sum], read_back: Callable[[str], Iterable[Row]], watch: Watch) -> None:
    """Raises StoreError unless each table equals what was sent. arrived: rows of a table, read back."""
    for name, total in sent.items():
        sums = Sum(has_bytes=total.has_bytes)
        for row in report_rows(read_back(name), f"Comparing {name}", watch):
            sums.add(row)
        if sums != total:
            raise StoreError(f"the table {name} arrived incomplete: {total} sent, {sums} stored. Nothing was moved.")


def into_database(folder: Path, store: str, watch: Watch) -> MoveResult:
    """See `move`."""
    address = address_of(store)
    if not exists(folder):
        raise NoCollection(f"{folder} has no collection")
    with contextlib.ExitStack() as stack:
        stack.enter_context(database_copying.translate_errors())
        stack.enter_context(runs.only_crawl(folder))
        connection = stack.enter_context(reading.open_reader(folder))
        stack.enter_context(reading.reading())
        folder_copying.load_files(connection, folder)
        stack.enter_context(reading.snapshot(connection))
        collection_runs.refuse(SqliteStatements(connection))
        rules = _rules(folder, connection)
        folder_copying.register_shard_functions(connection, shard_of)
        target = stack.enter_context(contextlib.closing(connect(address)))
        database_copying.remove_time_limits(target)
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
    if rules_key(text) != folder_copying.rules_in_force(connection):
        raise UsageError(
            f"the rules in {folder / SETTINGS_FILE} are not applied yet: run `periplus rules apply -c {folder}`"
        )
    return text if rules_key(text) else segments_written(text)


def _copy_to_database(
    connection: reading.Connection, target: Connection, address: Address, rules: str, watch: Watch
) -> Mapping[str, Sum]:
    """Writes the whole collection in one transaction; returns sums by table."""
    sent: dict[str, Sum] = {}
    with target.transaction(), contextlib.ExitStack() as stack:
        schema.create(target, address.collection)
        if not database_copying.is_empty(target):
            raise StoreError(f"{address} already has a collection. Choose another name: collection=NAME.")
        tables = {
            table.name: table
            for table in database_copying.tables(target, partial(folder_copying.columns_of, connection))
        }
        for name, table in tables.items():
            sent[name] = Sum(has_bytes=table.has_bytes)
            database_copying.enter(
                target,
                table,
                report_rows(
                    sum_rows(folder_copying.rows_out(connection, table), sent[name], skip=1), f"Moving {name}", watch
                ),
            )
        writer = stack.enter_context(_writer(connection, address)) if address.segments else None
        sent["body"] = Sum()
        bodies = sum_bodies(folder_copying.bodies_out(connection), sent["body"], watch)
        database_copying.enter_bodies(
            target, bodies, BodyTarget(writer.append if writer else None, database_copying.dictionary_shards(target))
        )
        if writer:
            writer.flush()
        meta = {"segments": address.segments, "rules_text": rules}
        index_place.remember(target, address.index)
        database_copying.complete(
            target, folder_copying.last_seq(connection), {name: value for name, value in meta.items() if value}
        )
        reader = SegmentReader(object_storage(address.segments)) if address.segments else None

        def read_back(name: str) -> Iterator[Row]:
            if name == "body":
                return (body.row for body in database_copying.bodies_out(target, reader))
            return database_copying.rows_out(target, tables[name])

        verify_rows(sent, read_back, watch)
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
        database_copying.translate_errors(),
        DatabaseHome(address).only_crawl(),
        contextlib.closing(connect(address)) as connection,
    ):
        schema.check(connection, address.collection)
        database_copying.remove_time_limits(connection)
        database_copying.only_editor(connection, address.collection)
        collection_runs.refuse(PostgresStatements(connection), unless=place)
        with contextlib.ExitStack() as stack:
            # first, so that no worker can join a crawl from now on
            collection_runs.mark(PostgresStatements(connection), place)
            stack.callback(collection_runs.unmark, PostgresStatements(connection))
            database_copying.merge_inbox(connection, address.collection)
            with database_copying.one_moment(connection):
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
    reader = segment_reader(connection)
    sent: dict[str, Sum] = {}
    with draft_collection(folder) as draft:
        folder_copying.load_files(draft, folder)
        if draft.execute("SELECT 1 FROM file").fetchone():
            raise StoreError(f"{folder} already has topics: choose another folder")
        tables = {table.name: table for table in moved_tables(connection, draft)}
        with folder_copying.transaction(draft):
            for name, table in tables.items():
                sent[name] = Sum(has_bytes=table.has_bytes)
                folder_copying.enter(
                    draft,
                    table,
                    report_rows(
                        sum_rows(database_copying.rows_out(connection, table), sent[name]), f"Moving {name}", watch
                    ),
                )
            sent["body"] = Sum()
            bodies = database_copying.bodies_out(connection, reader)
            folder_copying.enter_bodies(draft, sum_bodies(bodies, sent["body"], watch))
            folder_copying.complete(draft, database_copying.last_seq(connection))
            verify_rows(
                sent,
                lambda name: (
                    folder_copying.bodies_back(draft)
                    if name == "body"
                    else folder_copying.rows_back(draft, tables[name])
                ),
                watch,
            )
        _keep_rules(database_copying.rules_text(connection), folder)
        folder_copying.write_files(draft, folder)
    return sent


def moved_tables(connection: Connection, folder: reading.Connection) -> list[MovedTable]:
    """The tables that both databases have, see `MovedTable`."""
    return database_copying.tables(connection, partial(folder_copying.columns_of, folder))


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
