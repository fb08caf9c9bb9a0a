"""The place of a shared search index of a collection in a database, and the lock for publishing there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import psycopg

from periplus.store.notes import note, put_note
from periplus_postgres import schema
from periplus_postgres.address import Address, address_of, noted_place
from periplus_postgres.connection import Connection, connect, try_lock
from periplus_postgres.ledger import lock_number
from periplus_postgres.statements import PostgresStatements

NAME = "index"  # key in meta


def remember(connection: Connection, place: str) -> None:
    """Stores the place of the collection's index, unless `place` is empty."""
    place = noted_place(place)
    if place and place_of_index(connection) != place:
        put_note(PostgresStatements(connection), NAME, place)


def place_of_index(connection: Connection) -> str:
    """Place of the shared index; empty if every reader has its own."""
    return note(PostgresStatements(connection), NAME)


def is_shared(place: str) -> bool:
    """Whether the collection exists and has a shared index. Raises UsageError, StoreError."""
    address = address_of(place)
    with contextlib.closing(connect(address)) as connection:
        return schema.exists(connection) and bool(address.index or place_of_index(connection))


@contextlib.contextmanager
def publishing(address: Address, what: str) -> Iterator[Callable[[], bool] | None]:
    """Takes the lock for publishing `what`. Yields None if another process has it, else a function that checks whether
    the lock is still held. The server releases it when the connection of a dead process ends. Raises UsageError,
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
