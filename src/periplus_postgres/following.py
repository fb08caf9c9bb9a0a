"""Writes changes made in a local copy to the database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from uuid import uuid4

from periplus.errors import StoreError
from periplus.store.notes import change_note, count_change, note
from periplus.store.reader import CollectionWriter
from periplus.store.sqlite import reading
from periplus.store.sqlite.reading import Follow
from periplus.values import Row
from periplus_postgres import copying, folder_rows, schema, table_rows
from periplus_postgres.address import address_of
from periplus_postgres.connection import Connection, columns_of, connect
from periplus_postgres.copies import brought_up
from periplus_postgres.copying import DatabaseRows
from periplus_postgres.folder_rows import FolderRows
from periplus_postgres.moved_tables import MovedTable
from periplus_postgres.moving import Watch, silent
from periplus_postgres.segments import ENDING, RecordPlace, copied_records, object_storage
from periplus_postgres.statements import PostgresStatements
from periplus_postgres.table_rows import PostgresReader

# docs/decisions/0062. A transaction on the copy records the rows that it writes and deletes. Before it commits, a
# database transaction applies the same rows and commits. A kill between the two commits leaves an outdated copy, which
# is updated before its next use like any other.

_COUNTERS = ("fetched", "wire_bytes")  # counters of runs, stored in columns of their own
_ID_TABLES = ("site", "host", "visit")  # tables whose ids are assigned by the operation
HOLES = "holes"  # name of a note: segments with bytes of deleted pages, one per line
_ADD = "DO UPDATE SET value = {0}.value + excluded.value"


def replace(
    connection: Connection, table: MovedTable, keys: Sequence[str], gone: Sequence[Row], rows: Iterable[Row]
) -> None:
    """Inserts rows and deletes others. gone: shard and keys of rows to delete; rows: see `DatabaseRows.enter`."""
    if table.name not in schema.REFERENCE:
        PostgresStatements(connection).delete(table.name, ", ".join(keys), gone)
    elif gone:
        arrays = ", ".join(f"%s::{schema.KINDS[table.name][key]}[]" for key in keys)
        same = " AND ".join(f"t.{key} = k.{key}" for key in keys)
        drop = f"DELETE FROM {table.name} t USING unnest({arrays}) k({', '.join(keys)}) WHERE {same}"
        connection.execute(drop.encode(), columns_of([row[1:] for row in gone], len(keys)))
    DatabaseRows(connection).enter(table, rows)


def add_to_tally(connection: Connection, changes: Mapping[Row, int]) -> None:
    """Adds changes by name; concurrent changes are kept."""
    upsert = f"INSERT INTO tally (name, value) VALUES (%s, %s) ON CONFLICT (part, name) {_ADD.format('tally')}"
    connection.cursor().executemany(upsert.encode(), _rows(changes))


def add_to_runs(connection: Connection, changes: Mapping[Row, int]) -> None:
    """Adds changes by run and counter, including pages and bytes; concurrent changes are kept."""
    upsert = (
        "INSERT INTO run_count (run_id, name, value) VALUES (%s, %s, %s)"
        f" ON CONFLICT (run_id, part, name) {_ADD.format('run_count')}"
    )
    connection.cursor().executemany(upsert.encode(), _rows(changes))


def _rows(changes: Mapping[Row, int]) -> list[Row]:
    return [(*key, change) for key, change in changes.items() if change]


def drop_runs(connection: Connection, ids: Iterable[object]) -> None:
    """Deletes runs. Call it after `add_to_runs`."""
    for table, column in (("run", "id"), ("run_count", "run_id")):
        connection.execute(f"DELETE FROM {table} WHERE {column} = ANY(%s)".encode(), (list(ids),))


def drop_bodies(connection: Connection, bodies: Iterable[Row]) -> None:
    """Deletes those of the bodies, given by (shard, id), that no page of their shard or its history refers to, and
    notes the segments with their bytes. Call it after all pages are written.
    """
    held = "SELECT 1 FROM {} p WHERE p.shard = k.shard AND p.body_id = k.id"
    find = (
        "SELECT k.shard, k.id FROM unnest(%s::smallint[], %s::bigint[]) AS k (shard, id)"
        f" WHERE NOT EXISTS ({held.format('page')}) AND NOT EXISTS ({held.format('page_history')})"
    )
    unheld = columns_of(connection.execute(find.encode(), columns_of(bodies, 2)).fetchall(), 2)
    among = "(SELECT * FROM unnest(%s::smallint[], %s::bigint[]))"
    connection.execute(f"DELETE FROM xml WHERE (shard, body_id) IN {among}".encode(), unheld)
    drop = f"DELETE FROM body WHERE (shard, id) IN {among} RETURNING segment"
    names = {str(name) for (name,) in connection.execute(drop.encode(), unheld).fetchall() if name}
    if names:
        change_note(PostgresStatements(connection), HOLES, lambda text: "\n".join(sorted(names.union(text.split()))))


def drop_dictionaries(connection: Connection, ids: Iterable[object]) -> None:
    """Deletes unused dictionaries. Call it after `drop_bodies`."""
    drop = (
        "DELETE FROM dictionary d WHERE id = ANY(%s)"
        " AND NOT EXISTS (SELECT 1 FROM body b WHERE b.shard = d.shard AND b.dictionary_id = d.id)"
    )
    connection.execute(drop, (list(ids),))


def advance_sequences(connection: Connection, last: Mapping[str, int], seq: int) -> None:
    """Advances sequences beyond these numbers: the last id of each table, and the last `seq` of the queue."""
    for table, number in last.items():
        sequence = f"pg_get_serial_sequence('{table}', 'id')"
        connection.execute(f"SELECT setval({sequence}, greatest(nextval({sequence}), %s))".encode(), (number,))
    connection.execute("SELECT setval('queue_seq', greatest(nextval('queue_seq'), %s))", (seq,))


def holes(connection: Connection) -> list[str]:
    """Segments with bytes of deleted pages."""
    return note(PostgresStatements(connection), HOLES).split()


def forget_hole(connection: Connection, name: str) -> None:
    """Removes a segment from the note."""
    without = lambda text: "\n".join(other for other in text.split() if other != name)  # noqa: E731
    change_note(PostgresStatements(connection), HOLES, without)


def records_in(connection: Connection, segment: str) -> list[RecordPlace]:
    """Distinct positions of bodies in a segment, in order."""
    find = "SELECT DISTINCT segment, start, length FROM body WHERE segment = %s ORDER BY start"
    return [RecordPlace(*row) for row in connection.execute(find, (segment,)).fetchall()]


def move_records(connection: Connection, moves: Sequence[tuple[RecordPlace, RecordPlace]]) -> None:
    """Updates the positions of bodies, given as (old, new), from one segment to another."""
    if moves:
        (old, new), starts = moves[0], [(before.start, after.start) for before, after in moves]
        update = (
            "UPDATE body b SET segment = %s, start = k.new FROM unnest(%s::bigint[], %s::bigint[]) AS k (old, new)"
            " WHERE b.segment = %s AND b.start = k.old"
        )
        connection.execute(update, (new.segment, *columns_of(starts, 2), old.segment))


@contextlib.contextmanager
def alone(store: str, watch: Watch = silent) -> Iterator[tuple[Path, Follow]]:
    """Yields (folder of the up-to-date copy, context for each transaction that changes the collection), for a caller
    that holds `only_crawl`. Finally removes bytes of deleted pages from the segments. Raises StoreError while workers
    run, UsageError, NoCollection.
    """
    address = address_of(store)
    with contextlib.closing(connect(address)) as database:
        schema.check(database, address.collection)
        if workers := table_rows.workers_at_work(database):
            raise StoreError(f"{workers} workers are running on {address}. Stop them, or wait for their end.")
        copying.remove_time_limits(database)
        copying.merge_inbox(database, address.collection)
        with brought_up(address, watch) as (copied, folder):
            yield folder, partial(_replicate, copied, folder)
        _fill_holes(database)


@contextlib.contextmanager
def writer(store: str) -> Iterator[CollectionWriter]:
    """See `api.homes.writer_of`. Finally removes bytes of deleted pages from the segments."""
    address = address_of(store)
    with contextlib.closing(PostgresReader(address)) as reader, copying.translate_errors():
        database = reader.statements.connection
        copying.only_caller(database, address)
        yield CollectionWriter(reader, database.transaction)
        _fill_holes(database)


def shrink(store: str) -> None:
    """Returns the space of deleted rows to the server's disk by rewriting the tables."""
    with contextlib.closing(connect(address_of(store))) as database:
        copying.remove_time_limits(database)
        schema.shrink(database)


def _fill_holes(database: Connection) -> None:
    """Rewrites segments that contain bytes of deleted pages. After a kill, the next operation continues."""
    place = table_rows.place_of_segments(database)
    names = holes(database) if place else []
    if not names:
        return
    with contextlib.closing(object_storage(place)) as storage:
        present = {name for name, _ in storage.sizes()}
        for name in names:
            if records := list(records_in(database, name)):
                moves = copied_records(storage, records, f"{uuid4().hex}-00001{ENDING}")
                with database.transaction():
                    move_records(database, moves)
            if name in present:
                storage.delete(name)
            with database.transaction():
                forget_hole(database, name)


@contextlib.contextmanager
def _replicate(database: Connection, folder: Path, connection: reading.Connection) -> Iterator[None]:
    tables = {table.name: table for table in FolderRows(connection).tables()}
    with folder_rows.trace_changes(folder, connection, tables) as past:
        before, now = FolderRows(past, has_shards=True), FolderRows(connection, has_shards=True)
        yield
        with copying.translate_errors(), database.transaction():
            for table in tables.values():
                _replicate_table(database, table, before, now)
            left = {row[1:] for row in now.touched_rows(_parts(tables["run"], "id"))}
            drop_runs(database, [key for (key,) in set(folder_rows.touched_keys(connection, "run")) - left])
            drop_bodies(database, _bodies(before, [tables["page"], tables["page_history"]]))
            drop_dictionaries(database, (key for (key,) in folder_rows.touched_keys(connection, "dictionary")))
            count_change(PostgresStatements(database))
            advance_sequences(database, folder_rows.last_ids(connection, _ID_TABLES), folder_rows.last_seq(connection))


def _replicate_table(database: Connection, table: MovedTable, before: FolderRows, now: FolderRows) -> None:
    """Replicates the touched rows of a table."""
    touched = folder_rows.touched_keys(now.connection, table.name)
    folder_rows.touch(before.connection, table.name, touched)
    if not touched or table.name == "dictionary":
        return
    if table.name == "tally":
        add_to_tally(database, _changes(table, before, now))
    elif table.name == "run_count":
        add_to_runs(database, _changes(table, before, now))
    elif table.name == "run":
        for name in _COUNTERS:
            changes = _changes(_parts(table, "id", name), before, now)
            add_to_runs(database, {(*key, name): change for key, change in changes.items()})
    else:
        keys = folder_rows.keys_of(now.connection, table.name)
        gone = set(before.touched_rows(_parts(table, *keys)))
        replace(database, table, keys, list(gone), now.touched_rows(table))


def _parts(table: MovedTable, *columns: str) -> MovedTable:
    kinds = dict(zip(table.columns, table.kinds, strict=True))
    return MovedTable(table.name, columns, tuple(kinds[column] for column in columns))


def _changes(table: MovedTable, before: FolderRows, now: FolderRows) -> dict[Row, int]:
    """Growth of each counter (the last column)."""
    old, new = ({row[1:-1]: int(str(row[-1])) for row in side.touched_rows(table)} for side in (before, now))
    return {key: new.get(key, 0) - old.get(key, 0) for key in old.keys() | new.keys()}


def _bodies(before: FolderRows, tables: Iterable[MovedTable]) -> list[Row]:
    """(shard, body) of pages whose rows were touched, before the change."""
    rows = (row for table in tables for row in before.touched_rows(_parts(table, "body_id")))
    return list(dict.fromkeys(row for row in rows if row[1] is not None))
