"""Stores results of analysis engines in a collection in a folder."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from periplus.model.ports import ComputedTable, ResultNote, RunRecord
from periplus.store.sqlite import runs
from periplus.store.sqlite.schema import writing
from periplus.store.statements import checked_name

# Results are stored in tables `result_...`, which can be queried in SQL. A load is one transaction.

_TABLES = """
CREATE TABLE IF NOT EXISTS result (
    name TEXT PRIMARY KEY, digest TEXT NOT NULL, dataset TEXT NOT NULL, parameters TEXT NOT NULL, program TEXT NOT NULL, made REAL NOT NULL,
    loaded REAL NOT NULL) WITHOUT ROWID
"""  # noqa: E501


class FolderResults:
    """`model.ports.ResultStore`, within a transaction."""

    def __init__(self, connection: sqlite3.Connection, now: float) -> None:
        self._connection, self._now = connection, now

    def runs(self) -> Sequence[RunRecord]:
        return runs.run_records(self._connection)

    def dataset(self) -> str:
        if not self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'result'").fetchone():
            return ""
        row = self._connection.execute("SELECT dataset FROM result LIMIT 1").fetchone()
        return str(row[0]) if row else ""

    def clear(self) -> None:
        self._connection.execute(_TABLES)
        names = [
            name
            for (name,) in self._connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'result\\_%' ESCAPE '\\'"
            )
        ]
        for name in names:
            self._connection.execute(f"DROP TABLE {checked_name(name)}")
        self._connection.execute("DELETE FROM result")

    def replace(self, table: ComputedTable) -> int:
        name = checked_name(table.name)
        columns = ", ".join(f'"{checked_name(column)}" {kind}' for column, kind in table.columns)
        self._connection.execute(f"DROP TABLE IF EXISTS {name}")
        self._connection.execute(f"CREATE TABLE {name} ({columns})")
        cursor = self._connection.executemany(
            f"INSERT INTO {name} VALUES ({', '.join('?' * len(table.columns))})", table.rows
        )
        self._connection.execute(f'CREATE INDEX {name}_first ON {name} ("{table.columns[0][0]}")')
        return cursor.rowcount if cursor.rowcount > 0 else 0

    def note(self, note: ResultNote) -> None:
        self._connection.execute(_TABLES)
        self._connection.execute("INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?, ?, ?, ?)", (*note, self._now))


@contextlib.contextmanager
def results(folder: Path, now: float) -> Iterator[FolderResults]:
    """Opens a transaction for storing results. Raises NoCollection, StoreError."""
    with writing(folder) as connection:
        yield FolderResults(connection, now)
