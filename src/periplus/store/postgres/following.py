"""Writes changes made in a local copy to the database, within a transaction of the caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from periplus.store.moving import MovedTable
from periplus.store.notes import change_note, note
from periplus.store.postgres import schema
from periplus.store.postgres.connection import Connection, columns_of
from periplus.store.postgres.copying import enter
from periplus.store.postgres.statements import PostgresStatements
from periplus.store.segments import RecordPlace
from periplus.values import Row

HOLES = "holes"  # name of a note: segments with bytes of deleted pages, one per line
_ADD = "DO UPDATE SET value = {0}.value + excluded.value"


def replace(
    connection: Connection, table: MovedTable, keys: Sequence[str], gone: Sequence[Row], rows: Iterable[Row]
) -> None:
    """Inserts rows and deletes others. gone: shard and keys of rows to delete; rows: see `copying.enter`."""
    if table.name not in schema.REFERENCE:
        PostgresStatements(connection).delete(table.name, ", ".join(keys), gone)
        enter(connection, table, rows)
    else:
        if gone:
            arrays = ", ".join(f"%s::{schema.KINDS[table.name][key]}[]" for key in keys)
            same = " AND ".join(f"t.{key} = k.{key}" for key in keys)
            drop = f"DELETE FROM {table.name} t USING unnest({arrays}) k({', '.join(keys)}) WHERE {same}"
            connection.execute(drop.encode(), columns_of([row[1:] for row in gone], len(keys)))
        enter(connection, table, rows)


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
