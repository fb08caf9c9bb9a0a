"""What if the server goes away in the middle? A transaction that its absence broke is done again, whole, on a new connection."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

import psycopg
from psycopg import errors

from periplus.errors import StoreError
from periplus.store.postgres.address import Address
from periplus.store.postgres.connection import LOST, PATIENCE_S, Connection, connect, pauses

log = logging.getLogger(__name__)
T = TypeVar("T")

_SENTENCES: dict[type[psycopg.Error], str] = {  # what doing it again does not mend, and the user can
    errors.DiskFull: "the database's disk is full: make room there; the crawl goes on where it was",
    errors.InsufficientPrivilege: "the user of the database may not do this: grant it, or name another user in the address",
    errors.UndefinedTable: "the collection's tables are gone from the database: was it dropped or renamed? See `periplus status --store`",
    errors.InvalidSchemaName: "the collection is gone from the database: was it dropped or renamed? See `periplus status --store`",
}


class Session:
    """One connection to a collection, renewed when it breaks."""

    def __init__(self, address: Address, patience_s: float = PATIENCE_S) -> None:
        self.address, self._patience_s = address, patience_s
        self._connection = connect(address, patience_s=patience_s)

    def run(self, action: Callable[[Connection], T]) -> T:
        """action in one transaction. It must bear to be done twice: when the answer to COMMIT is lost, nobody knows whether it was.

        Raises StoreError when the server stays away, or for what only a person can mend.
        """

        def whole(connection: Connection) -> T:
            with connection.transaction():
                return action(connection)

        return self.read(whole)

    def read(self, action: Callable[[Connection], T]) -> T:
        """The same without a transaction, for what only asks: one way to the server and back instead of three."""
        for pause_s in pauses(self._patience_s):
            try:
                connection = self._connected()
            except StoreError as error:
                away: psycopg.Error | StoreError = error
            else:
                try:
                    return action(connection)
                except psycopg.Error as error:
                    if not self._is_passing(error):
                        raise _sentence(error) from error
                    away = error
            if pause_s is None:
                raise _sentence(away) from away
            log.warning("database trouble=%s pause_s=%.1f", str(away).strip().partition("\n")[0], pause_s)
            time.sleep(pause_s)
        raise AssertionError("pauses ends with None")

    def _connected(self) -> Connection:
        if self._connection.closed:
            self._connection.close()  # of a broken one the rest
            self._connection = connect(self.address, patience_s=0)
        return self._connection

    def _is_passing(self, error: psycopg.Error) -> bool:
        """Whether to do it again: the server was away, or another transaction was in the way."""
        if isinstance(error, errors.ReadOnlySqlTransaction):  # it is a standby now: its successor is looked for
            self._connection.close()
        return type(error) not in _SENTENCES and (isinstance(error, LOST) or self._connection.closed)

    def close(self) -> None:
        self._connection.close()


def _sentence(error: psycopg.Error | StoreError) -> psycopg.Error | StoreError:
    """For what is a user's trouble, a sentence; what is a mistake of ours stays as it is."""
    if type(error) in _SENTENCES:
        return StoreError(_SENTENCES[type(error)])  # type: ignore[index]  # of the types in the table
    if isinstance(error, LOST):
        return StoreError(f"the database does not answer: {str(error).strip().partition(chr(10))[0]}. Is the server running? The crawl goes on where it was.")
    return error
