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


def read_whole_tables(connection: Connection) -> None:
    """Tells the planner that what is asked from here on is read to its end, of whole tables. Within a transaction.

    Such questions join by ids alone, which are unique over all shards: told the shard too, the planner multiplies two likelihoods that are one,
    expects a row where there are millions, and looks them up one by one (two million links: not done after nine minutes, instead of six seconds).
    """
    for setting in ("enable_nestloop = off", "cursor_tuple_fraction = 1", "work_mem = '64MB'"):
        connection.execute(f"SET LOCAL {setting}")
