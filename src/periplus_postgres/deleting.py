"""Changes of a collection in a database in several transactions, and its segments with bytes of deleted pages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from uuid import uuid4

from periplus.store.deletion import HOLES
from periplus.store.notes import change_note, note
from periplus.store.reader import CollectionWriter
from periplus_postgres import copying, schema, table_rows
from periplus_postgres.address import address_of
from periplus_postgres.connection import Connection, columns_of, connect
from periplus_postgres.segments import ENDING, RecordPlace, copied_records, object_storage
from periplus_postgres.statements import PostgresStatements
from periplus_postgres.table_rows import PostgresReader


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
