"""How does a collection in PostgreSQL keep what engines computed of it? As tables `result_...`, which take the places of earlier ones at one moment.

They are written under other names and renamed in the end, so that nobody who asks for the earlier ones waits longer than for that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from periplus.errors import StoreError
from periplus.model.crawl_home import RunRecord
from periplus.model.engine_results import ComputedTable, ResultNote
from periplus.store.postgres import runs
from periplus.store.postgres.address import Address
from periplus.store.postgres.connection import Connection
from periplus.store.postgres.inbox import lock_number
from periplus.store.postgres.moment import moment
from periplus.store.postgres.schema import LOCK_RESULTS
from periplus.store.result_names import sound

_TABLES = """
CREATE TABLE IF NOT EXISTS result (
    name text PRIMARY KEY, digest text NOT NULL, dataset text NOT NULL, parameters text NOT NULL, program text NOT NULL, made float8 NOT NULL,
    loaded float8 NOT NULL)
"""
READERS_WAIT = "10min"  # for whoever reads earlier results when the new ones are there: hours of loading are not given up after half a minute
_TYPES = {"INTEGER": "int8", "REAL": "float8", "TEXT": "text", "BLOB": "bytea"}
_OURS = "FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname"


class DatabaseResults:
    """`model.engine_results.ResultStore`, within a transaction. What is cleared and replaced is read until `settle`."""

    def __init__(self, connection: Connection, now: float) -> None:
        self._connection, self._now = connection, now
        self._doomed: dict[str, None] = {}
        self._fresh: list[str] = []
        connection.execute(_TABLES)

    def runs(self) -> Sequence[RunRecord]:
        return runs.records(self._connection)

    def dataset(self) -> str:
        found = self._connection.execute("SELECT dataset FROM result LIMIT 1").fetchone()
        return str(found[0]) if found else ""

    def clear(self) -> None:
        found = self._connection.execute(f"SELECT relname {_OURS} LIKE 'result\\_%'").fetchall()
        self._doomed |= dict.fromkeys(str(name) for (name,) in found)
        self._connection.execute("DELETE FROM result")

    def replace(self, table: ComputedTable) -> int:
        name = sound(table.name)
        columns = ", ".join(f'"{sound(column)}" {_TYPES[kind]} NOT NULL' for column, kind in table.columns)
        self._connection.execute(f"CREATE TABLE new_{name} ({columns})".encode())
        with self._connection.cursor() as cursor:
            # FREEZE: nobody saw the table yet, so its rows need no second writing by a vacuum.
            with cursor.copy(f"COPY new_{name} FROM STDIN WITH (FORMAT BINARY, FREEZE)".encode()) as copy:
                copy.set_types([_TYPES[kind] for _, kind in table.columns])
                for row in table.rows:
                    copy.write_row(row)
            rows = cursor.rowcount
        self._connection.execute(f'CREATE INDEX new_{name}_first ON new_{name} ("{table.columns[0][0]}")'.encode())
        self._connection.execute(f"ANALYZE new_{name}".encode())
        self._fresh.append(name)
        return rows

    def note(self, said: ResultNote) -> None:
        self._connection.execute("DELETE FROM result WHERE name = %s", (said.name,))
        self._connection.execute("INSERT INTO result VALUES (%s, %s, %s, %s, %s, %s, %s)", (*said, self._now))

    def settle(self) -> None:
        """Lets the new tables take their places, when nobody reads the earlier ones."""
        self._connection.execute(f"SET LOCAL lock_timeout = '{READERS_WAIT}'")
        for name in self._doomed | dict.fromkeys(self._fresh):
            self._connection.execute(f"DROP TABLE IF EXISTS {sound(name)}".encode())
        for name in self._fresh:
            self._connection.execute(f"ALTER TABLE new_{name} RENAME TO {name}".encode())
            self._connection.execute(f"ALTER INDEX new_{name}_first RENAME TO {name}_first".encode())


@contextlib.contextmanager
def results(address: Address, now: float) -> Iterator[DatabaseResults]:
    """One import at a time. Raises UsageError, NoCollection, StoreError."""
    with moment(address, writes=True) as connection:
        held = connection.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", (LOCK_RESULTS, lock_number(address.collection))).fetchone()
        if not held or not held[0]:
            raise StoreError(f"results are being loaded into {address} already: wait for the end of that")
        found = DatabaseResults(connection, now)
        yield found
        found.settle()
