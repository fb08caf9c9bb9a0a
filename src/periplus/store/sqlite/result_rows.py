"""How does a collection in a folder keep what engines computed of it? As tables `result_...`, to be asked in SQL, all of one loading at once."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from periplus.model.crawl_home import RunRecord
from periplus.model.engine_results import ComputedTable, ResultNote
from periplus.store.result_names import sound
from periplus.store.sqlite import runs
from periplus.store.sqlite.schema import writing

_TABLES = """
CREATE TABLE IF NOT EXISTS result (
    name TEXT PRIMARY KEY, digest TEXT NOT NULL, dataset TEXT NOT NULL, parameters TEXT NOT NULL, program TEXT NOT NULL, made REAL NOT NULL,
    loaded REAL NOT NULL) WITHOUT ROWID
"""


class FolderResults:
    """`model.engine_results.ResultStore`, within a transaction."""

    def __init__(self, connection: sqlite3.Connection, now: float) -> None:
        self._run, self._connection, self._now = connection.execute, connection, now

    def runs(self) -> Sequence[RunRecord]:
        return runs.run_records(self._connection)

    def dataset(self) -> str:
        if not self._run("SELECT 1 FROM sqlite_master WHERE name = 'result'").fetchone():
            return ""
        found = self._run("SELECT dataset FROM result LIMIT 1").fetchone()
        return str(found[0]) if found else ""

    def clear(self) -> None:
        self._run(_TABLES)
        names = [name for (name,) in self._run("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'result\\_%' ESCAPE '\\'")]
        for name in names:
            self._run(f"DROP TABLE {sound(name)}")
        self._run("DELETE FROM result")

    def replace(self, table: ComputedTable) -> int:
        name = sound(table.name)
        columns = ", ".join(f'"{sound(column)}" {kind}' for column, kind in table.columns)
        self._run(f"DROP TABLE IF EXISTS {name}")
        self._run(f"CREATE TABLE {name} ({columns})")
        cursor = self._connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(table.columns))})", table.rows)
        self._run(f'CREATE INDEX {name}_first ON {name} ("{table.columns[0][0]}")')
        return cursor.rowcount if cursor.rowcount > 0 else 0

    def note(self, said: ResultNote) -> None:
        self._run(_TABLES)
        self._run("INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?, ?, ?, ?)", (*said, self._now))


@contextlib.contextmanager
def results(folder: Path, now: float) -> Iterator[FolderResults]:
    """Raises NoCollection, StoreError."""
    with writing(folder) as connection:
        yield FolderResults(connection, now)
