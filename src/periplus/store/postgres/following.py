"""What was changed in a copy, written to the database that it shows. Within a transaction of the caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from periplus.store.moving import MovedTable
from periplus.store.notes import change_note, note
from periplus.store.postgres import schema
from periplus.store.postgres.connection import Connection, columns_of
from periplus.store.postgres.copying import enter, enter_changes
from periplus.store.postgres.statements import PostgresStatements
from periplus.store.segments import RecordPlace
from periplus.values import Row

HOLES = "holes"  # a note: the segments that hold bytes of pages that were deleted, a line each
_ADD = "DO UPDATE SET value = {0}.value + excluded.value"


def replace(
    connection: Connection, table: MovedTable, keys: Sequence[str], gone: Sequence[Row], rows: Iterable[Row]
) -> None:
    """Enters rows of a table in place of others. gone: shard and keys of each of those; rows: as of `copying.enter`."""
    if table.name not in schema.REFERENCE:
        PostgresStatements(connection).delete(table.name, ", ".join(keys), gone)
        enter(connection, table, rows)
    else:
        enter_changes(connection, table, keys, [row[1:] for row in gone], (row[1:] for row in rows))


def add_to_tally(connection: Connection, changes: Mapping[Row, int]) -> None:
    """changes: by name. What others add meanwhile stays."""
    upsert = f"INSERT INTO tally (name, value) VALUES (%s, %s) ON CONFLICT (part, name) {_ADD.format('tally')}"
    connection.cursor().executemany(upsert.encode(), _rows(changes))


def add_to_runs(connection: Connection, changes: Mapping[Row, int]) -> None:
    """changes: by run and what is counted of it, its pages and bytes too. What others add meanwhile stays."""
    upsert = (
        "INSERT INTO run_count (run_id, name, value) VALUES (%s, %s, %s)"
        f" ON CONFLICT (run_id, part, name) {_ADD.format('run_count')}"
    )
    connection.cursor().executemany(upsert.encode(), _rows(changes))


def _rows(changes: Mapping[Row, int]) -> list[Row]:
    return [(*key, change) for key, change in changes.items() if change]


def drop_runs(connection: Connection, ids: Iterable[object]) -> None:
    """After `add_to_runs`."""
    for table, column in (("run", "id"), ("run_count", "run_id")):
        connection.execute(f"DELETE FROM {table} WHERE {column} = ANY(%s)".encode(), (list(ids),))


def drop_bodies(connection: Connection, bodies: Iterable[Row]) -> None:
    """Of the bodies, given by shard and id, deletes those that no page of their shard has or had any longer, and notes
    the segments that their bytes lie in. After all pages were written.
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
    """Those that no body is packed with. After `drop_bodies`."""
    drop = (
        "DELETE FROM dictionary d WHERE id = ANY(%s)"
        " AND NOT EXISTS (SELECT 1 FROM body b WHERE b.shard = d.shard AND b.dictionary_id = d.id)"
    )
    connection.execute(drop, (list(ids),))


def outrun(connection: Connection, last: Mapping[str, int], seq: int) -> None:
    """Numbers that are given from now on are greater than these: the last id of each table, the last `seq` of lists."""
    for table, number in last.items():
        sequence = f"pg_get_serial_sequence('{table}', 'id')"
        connection.execute(f"SELECT setval({sequence}, greatest(nextval({sequence}), %s))".encode(), (number,))
    connection.execute("SELECT setval('queue_seq', greatest(nextval('queue_seq'), %s))", (seq,))


def holes(connection: Connection) -> list[str]:
    """Segments that hold bytes of pages that were deleted."""
    return note(PostgresStatements(connection), HOLES).split()


def forget_hole(connection: Connection, name: str) -> None:
    """The segment is gone."""
    without = lambda text: "\n".join(other for other in text.split() if other != name)  # noqa: E731
    change_note(PostgresStatements(connection), HOLES, without)


def records_in(connection: Connection, segment: str) -> list[RecordPlace]:
    """Where bodies lie in a segment, each place once, in order."""
    find = "SELECT DISTINCT segment, start, length FROM body WHERE segment = %s ORDER BY start"
    return [RecordPlace(*row) for row in connection.execute(find, (segment,)).fetchall()]


def move_records(connection: Connection, moves: Sequence[tuple[RecordPlace, RecordPlace]]) -> None:
    """(from, to) of bodies' bytes, all of one segment and into one."""
    if moves:
        (old, new), starts = moves[0], [(before.start, after.start) for before, after in moves]
        update = (
            "UPDATE body b SET segment = %s, start = k.new FROM unnest(%s::bigint[], %s::bigint[]) AS k (old, new)"
            " WHERE b.segment = %s AND b.start = k.old"
        )
        connection.execute(update, (new.segment, *columns_of(starts, 2), old.segment))
