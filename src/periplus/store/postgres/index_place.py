"""Where all who search a collection in a database share its index, and who may publish there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import psycopg

from periplus.store.notes import note, put_note
from periplus.store.postgres import schema
from periplus.store.postgres.address import Address, noted_place
from periplus.store.postgres.connection import Connection, connect, try_lock
from periplus.store.postgres.ledger import lock_number
from periplus.store.postgres.statements import PostgresStatements

NAME = "index"  # in meta


def remember(connection: Connection, place: str) -> None:
    """Has the collection's index in that place from now on; empty: where it is."""
    place = noted_place(place)
    if place and place_of_index(connection) != place:
        put_note(PostgresStatements(connection), NAME, place)


def place_of_index(connection: Connection) -> str:
    """Empty: every reader has an index of its own."""
    return note(PostgresStatements(connection), NAME)


def is_shared(address: Address) -> bool:
    """Whether the collection is there and has such a place. Raises UsageError, StoreError."""
    with contextlib.closing(connect(address)) as connection:
        return schema.exists(connection) and bool(address.index or place_of_index(connection))


@contextlib.contextmanager
def publishing(address: Address, what: str) -> Iterator[Callable[[], bool] | None]:
    """The right to publish, for one process at a time. None: another has it; else what tells whether it is held still.

    what: is published. The server frees it when it sees the connection of a dead process end. Raises UsageError,
    StoreError.
    """
    with contextlib.closing(connect(address)) as connection:
        lock = (schema.LOCK_INDEX, lock_number(f"{address.collection} {what}"))
        with try_lock(connection, lock) as is_held:

            def is_alive() -> bool:
                try:
                    connection.execute("SELECT 1")
                except psycopg.Error:
                    return False
                return True

            yield is_alive if is_held else None
