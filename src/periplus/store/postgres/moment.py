"""How is all of a collection read at one moment, or written in one transaction, whatever time it takes and while a crawl goes on?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg

from periplus.errors import StoreError
from periplus.store.postgres import schema
from periplus.store.postgres.address import Address
from periplus.store.postgres.connection import Connection, connect


@contextlib.contextmanager
def moment(address: Address, *, writes: bool = False) -> Iterator[Connection]:
    """One transaction without limits of time. writes: at the usual isolation; else everything within is of one moment, and nothing can be written.

    Raises UsageError, NoCollection, and StoreError for what the server or the way to it did.
    """
    with contextlib.closing(connect(address)) as connection:
        schema.check(connection, address.collection)
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        connection.execute("SET statement_timeout = 0")
        try:
            with connection.transaction():
                if not writes:
                    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                yield connection
        except psycopg.Error as error:
            said = str(error).strip().partition("\n")[0] or type(error).__name__
            raise StoreError(f"{address} could not be {'written: nothing was changed' if writes else 'read'}: {said}") from error
