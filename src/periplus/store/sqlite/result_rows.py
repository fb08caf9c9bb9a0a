"""How does a collection keep what engines computed of it? As tables `result_...`, to be asked in SQL, all of one loading at once."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from periplus.errors import StoreError

_TABLES = """
CREATE TABLE IF NOT EXISTS result (
    name TEXT PRIMARY KEY, digest TEXT NOT NULL, dataset TEXT NOT NULL, parameters TEXT NOT NULL, program TEXT NOT NULL, made REAL NOT NULL,
    loaded REAL NOT NULL) WITHOUT ROWID
"""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,60}")


class ResultNote(NamedTuple):
    """What was computed. name: of the analysis; dataset: the digest of what it was computed from; parameters: JSON; made: seconds since the epoch."""

    name: str
    digest: str
    dataset: str
    parameters: str
    program: str
    made: float


class ResultTable(NamedTuple):
    """One table. columns: name and kind of each (INTEGER, REAL, TEXT, BLOB); rows: streamed."""

    name: str
    columns: Sequence[tuple[str, str]]
    rows: Iterable[Sequence[object]]


def dataset_of(connection: sqlite3.Connection) -> str:
    """The digest of the dataset whose numbers the results here are in; empty: there are none."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'result'").fetchone():
        return ""
    found = connection.execute("SELECT dataset FROM result LIMIT 1").fetchone()
    return str(found[0]) if found else ""


def clear(connection: sqlite3.Connection) -> None:
    """Drops all results: they are in numbers of another dataset. Within a transaction."""
    connection.execute(_TABLES)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'result\\_%' ESCAPE '\\'")]
    for name in names:
        connection.execute(f"DROP TABLE {_sound(name)}")
    connection.execute("DELETE FROM result")


def replace(connection: sqlite3.Connection, table: ResultTable) -> int:
    """Puts a table in place of an earlier one of its name; returns its rows. Within a transaction."""
    name = _sound(table.name)
    columns = ", ".join(f'"{_sound(column)}" {kind}' for column, kind in table.columns)
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(f"CREATE TABLE {name} ({columns})")
    cursor = connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(table.columns))})", table.rows)
    connection.execute(f'CREATE INDEX {name}_first ON {name} ("{_sound(table.columns[0][0])}")')
    return cursor.rowcount if cursor.rowcount > 0 else 0


def note(connection: sqlite3.Connection, said: ResultNote, now: float) -> None:
    """Says what the tables of an analysis are. Within a transaction."""
    connection.execute(_TABLES)
    connection.execute("INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?, ?, ?, ?)", (*said, now))


def _sound(name: str) -> str:
    """A name that a manifest gave, which anybody may have written."""
    if not _NAME.fullmatch(name):
        raise StoreError(f"{name!r} is no name for a table or a column of results")
    return name
