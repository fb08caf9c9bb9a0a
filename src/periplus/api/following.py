"""Write operations on a collection in a database: done on the local copy and replicated to the database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

from periplus.api.copies import brought_up
from periplus.api.moving import Watch, moved_tables, silent
from periplus.errors import StoreError
from periplus.store.database_address import address_of
from periplus.store.dialect import shard_of
from periplus.store.moving import MovedTable
from periplus.store.postgres import copying as database_copying
from periplus.store.postgres import following, schema, table_rows
from periplus.store.postgres.connection import Connection, connect
from periplus.store.segments import ENDING, copied_records, object_storage
from periplus.store.sqlite import copying as folder_copying
from periplus.store.sqlite import reading
from periplus.store.sqlite.reading import Follow
from periplus.values import Row

# docs/decisions/0062. A transaction on the copy records the rows that it writes and deletes. Before it commits, a
# database transaction applies the same rows and commits. A kill between the two commits leaves an outdated copy, which
# is updated before its next use like any other.

_COUNTERS = ("fetched", "wire_bytes")  # counters of runs, stored in columns of their own
_ID_TABLES = ("site", "host", "visit")  # tables whose ids are assigned by the operation


@contextlib.contextmanager
def alone(store: str, watch: Watch = silent) -> Iterator[tuple[Path, Follow]]:
    """Like `changing`, for a caller that holds `only_crawl`. Finally removes bytes of deleted pages from the segments.
    Raises StoreError while workers run, UsageError, NoCollection.
    """
    address = address_of(store)
    with contextlib.closing(connect(address)) as database:
        schema.check(database, address.collection)
        if workers := table_rows.workers_at_work(database):
            raise StoreError(f"{workers} workers are running on {address}. Stop them, or wait for their end.")
        database_copying.remove_time_limits(database)
        database_copying.merge_inbox(database, address.collection)
        with changing(store, watch) as (folder, follow):
            yield folder, follow
        _fill_holes(database)


def shrink(store: str) -> None:
    """Returns the space of deleted rows to the server's disk by rewriting the tables."""
    with contextlib.closing(connect(address_of(store))) as database:
        database_copying.remove_time_limits(database)
        schema.shrink(database)


def _fill_holes(database: Connection) -> None:
    """Rewrites segments that contain bytes of deleted pages. After a kill, the next operation continues."""
    place = table_rows.place_of_segments(database)
    names = following.holes(database) if place else []
    if not names:
        return
    with contextlib.closing(object_storage(place)) as storage:
        present = {name for name, _ in storage.sizes()}
        for name in names:
            if records := list(following.records_in(database, name)):
                moves = copied_records(storage, records, f"{uuid4().hex}-00001{ENDING}")
                with database.transaction():
                    following.move_records(database, moves)
            if name in present:
                storage.delete(name)
            with database.transaction():
                following.forget_hole(database, name)


@contextlib.contextmanager
def changing(store: str, watch: Watch = silent) -> Iterator[tuple[Path, Follow]]:
    """Yields (folder of the up-to-date copy, context for each transaction that changes the collection).

    store: the database address. Raises UsageError, NoCollection, StoreError.
    """
    with brought_up(address_of(store), watch) as (database, folder):
        yield folder, partial(_replicate, database, folder)


@contextlib.contextmanager
def _replicate(database: Connection, folder: Path, connection: reading.Connection) -> Iterator[None]:
    tables = {table.name: table for table in moved_tables(database, connection)}
    with folder_copying.trace_changes(folder, connection, tables) as before:
        for side in (before, connection):
            folder_copying.register_shard_functions(side, shard_of)
        yield
        with database_copying.translate_errors(), database.transaction():
            for table in tables.values():
                _replicate_table(database, table, before, connection)
            runs = _parts(tables["run"], "id")
            left = {row[1:] for row in folder_copying.touched_rows(connection, runs)}
            following.drop_runs(
                database, [key for (key,) in set(folder_copying.touched_keys(connection, "run")) - left]
            )
            following.drop_bodies(database, _bodies(before, [tables["page"], tables["page_history"]]))
            following.drop_dictionaries(
                database, (key for (key,) in folder_copying.touched_keys(connection, "dictionary"))
            )
            database_copying.note_change(database)
            following.advance_sequences(
                database, folder_copying.last_ids(connection, _ID_TABLES), folder_copying.last_seq(connection)
            )


def _replicate_table(
    database: Connection, table: MovedTable, before: reading.Connection, now: reading.Connection
) -> None:
    """Replicates the touched rows of a table."""
    touched = folder_copying.touched_keys(now, table.name)
    folder_copying.touch(before, table.name, touched)
    if not touched or table.name == "dictionary":
        return
    if table.name == "tally":
        following.add_to_tally(database, _changes(table, before, now))
    elif table.name == "run_count":
        following.add_to_runs(database, _changes(table, before, now))
    elif table.name == "run":
        for name in _COUNTERS:
            changes = _changes(_parts(table, "id", name), before, now)
            following.add_to_runs(database, {(*key, name): change for key, change in changes.items()})
    else:
        keys = folder_copying.keys_of(now, table.name)
        gone = set(folder_copying.touched_rows(before, _parts(table, *keys)))
        following.replace(database, table, keys, list(gone), folder_copying.touched_rows(now, table))


def _parts(table: MovedTable, *columns: str) -> MovedTable:
    kinds = dict(zip(table.columns, table.kinds, strict=True))
    return MovedTable(table.name, columns, tuple(kinds[column] for column in columns))


def _changes(table: MovedTable, before: reading.Connection, now: reading.Connection) -> dict[Row, int]:
    """Growth of each counter (the last column)."""
    old, new = (
        {row[1:-1]: int(str(row[-1])) for row in folder_copying.touched_rows(side, table)} for side in (before, now)
    )
    return {key: new.get(key, 0) - old.get(key, 0) for key in old.keys() | new.keys()}


def _bodies(before: reading.Connection, tables: Iterable[MovedTable]) -> list[Row]:
    """(shard, body) of pages whose rows were touched, before the change."""
    rows = (row for table in tables for row in folder_copying.touched_rows(before, _parts(table, "body_id")))
    return list(dict.fromkeys(row for row in rows if row[1] is not None))
