"""Reads whole tables of a collection in PostgreSQL for analysis engines, and stores their results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from periplus.errors import StoreError
from periplus.model.ports import ComputedTable, ResultNote, RunRecord
from periplus.store import runs
from periplus.store.notes import count_change
from periplus.store.statements import checked_name
from periplus_postgres.address import address_of
from periplus_postgres.connection import Connection
from periplus_postgres.ledger import lock_number
from periplus_postgres.schema import LOCK_RESULTS
from periplus_postgres.statements import PostgresStatements
from periplus_postgres.table_rows import (
    writing,
)

# Results are stored in tables `result_...`. New tables are loaded under temporary names and renamed at the end, so that
# readers of earlier results wait only for the renaming.

_TABLES = """
CREATE TABLE IF NOT EXISTS result (
    name text PRIMARY KEY, digest text NOT NULL, dataset text NOT NULL, parameters text NOT NULL, program text NOT NULL, made float8 NOT NULL,
    loaded float8 NOT NULL)
"""  # noqa: E501
# time to wait for readers of earlier results: hours of loading must not be lost after half a minute
READERS_WAIT = "10min"
_TYPES = {"INTEGER": "int8", "REAL": "float8", "TEXT": "text", "BLOB": "bytea"}
_OURS = "FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname"


class DatabaseResults:
    """`model.ports.ResultStore`, within a transaction. Readers see the previous results until `settle`."""

    def __init__(self, connection: Connection, now: float) -> None:
        self._connection, self._now = connection, now
        self._doomed: dict[str, None] = {}
        self._fresh: list[str] = []
        connection.execute(_TABLES)

    def runs(self) -> Sequence[RunRecord]:
        return runs.records(PostgresStatements(self._connection))

    def dataset(self) -> str:
        row = self._connection.execute("SELECT dataset FROM result LIMIT 1").fetchone()
        return str(row[0]) if row else ""

    def clear(self) -> None:
        tables = self._connection.execute(f"SELECT relname {_OURS} LIKE 'result\\_%'").fetchall()
        self._doomed |= dict.fromkeys(str(name) for (name,) in tables)
        self._connection.execute("DELETE FROM result")

    def replace(self, table: ComputedTable) -> int:
        name = checked_name(table.name)
        columns = ", ".join(f'"{checked_name(column)}" {_TYPES[kind]} NOT NULL' for column, kind in table.columns)
        self._connection.execute(f"CREATE TABLE new_{name} ({columns})".encode())
        with self._connection.cursor() as cursor:
            # FREEZE: the table is not visible yet, so its rows need not be rewritten by a vacuum.
            with cursor.copy(f"COPY new_{name} FROM STDIN WITH (FORMAT BINARY, FREEZE)".encode()) as copy:
                copy.set_types([_TYPES[kind] for _, kind in table.columns])
                for row in table.rows:
                    copy.write_row(row)
            rows = cursor.rowcount
        self._connection.execute(f'CREATE INDEX new_{name}_first ON new_{name} ("{table.columns[0][0]}")'.encode())
        self._connection.execute(f"ANALYZE new_{name}".encode())
        self._fresh.append(name)
        return rows

    def note(self, note: ResultNote) -> None:
        self._connection.execute("DELETE FROM result WHERE name = %s", (note.name,))
        self._connection.execute("INSERT INTO result VALUES (%s, %s, %s, %s, %s, %s, %s)", (*note, self._now))

    def settle(self) -> None:
        """Replaces the previous tables by the new ones, after waiting for readers."""
        self._connection.execute(f"SET LOCAL lock_timeout = '{READERS_WAIT}'")
        for name in self._doomed | dict.fromkeys(self._fresh):
            self._connection.execute(f"DROP TABLE IF EXISTS {checked_name(name)}".encode())
        for name in self._fresh:
            self._connection.execute(f"ALTER TABLE new_{name} RENAME TO {name}".encode())
            self._connection.execute(f"ALTER INDEX new_{name}_first RENAME TO {name}_first".encode())
        count_change(PostgresStatements(self._connection))


@contextlib.contextmanager
def results(place: str, now: float) -> Iterator[DatabaseResults]:
    """Opens a transaction for storing results; only one at a time. Raises UsageError, NoCollection, StoreError."""
    address = address_of(place)
    with writing(address) as connection:
        held = connection.execute(
            "SELECT pg_try_advisory_xact_lock(%s, %s)", (LOCK_RESULTS, lock_number(address.collection))
        ).fetchone()
        if not held or not held[0]:
            raise StoreError(f"results are already being loaded into {address}: wait until that is finished")
        loading = DatabaseResults(connection, now)
        yield loading
        loading.settle()
