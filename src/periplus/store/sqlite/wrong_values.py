"""Which value of a collection is none that we write? Asked when something broke on it: whether a forged row is to blame, or a bug of ours.

SQLite keeps a text in a column of numbers if it is told to. Reading every value with that in mind would cost every reader; so a command that
fails looks afterwards, by one pass over each table.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from periplus.model.page import LinkKind, Position
from periplus.model.visit import Purpose, Reason
from periplus.store.sqlite import reading, schema

LOOK_S = 60.0  # a collection of some million pages is looked through
_TYPES = {"INTEGER": ("integer",), "REAL": ("real", "integer"), "TEXT": ("text",), "BLOB": ("blob",)}
_WORDS: dict[tuple[str, str], Iterable[str]] = {
    ("url", "reason"): Reason,
    ("link", "kind"): LinkKind,
    ("link", "position"): Position,
    ("bad_link", "kind"): LinkKind,
    ("bad_link", "position"): Position,
    ("queue", "purpose"): Purpose,
    ("visit", "purpose"): Purpose,
}
_JSON = {("run", "starts"), ("run", "settings"), ("family", "record")}


def wrong_value(folder: Path) -> str:
    """The first column with a value of the wrong kind, and what is wrong with it, in words; empty: there is none. Raises NoCollection, StoreError."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.limited(connection, LOOK_S), reading.snapshot(connection):
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table, columns in _columns().items():
            tests = {f"{table}.{column} {said}": test for column, kind in columns for said, test in _tests(table, column, kind)}
            if table in there and tests:
                found = connection.execute(f"SELECT {', '.join(f'max({test})' for test in tests.values())} FROM {table}").fetchone()
                if wrong := [said for said, is_wrong in zip(tests, found, strict=True) if is_wrong]:
                    return wrong[0]
    return ""


def _columns() -> dict[str, list[tuple[str, str]]]:
    """Of each table of ours the columns, with their types as we declare them."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.build(connection)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
        return {table: [(row[1], row[2]) for row in connection.execute(f"PRAGMA table_info({table})")] for table in tables}


def _tests(table: str, column: str, kind: str) -> Iterable[tuple[str, str]]:
    """(what is wrong, the SQL that finds it), for one column. Where nothing is known is no wrong value."""
    if types := _TYPES.get(kind):  # without one a column holds anything
        yield f"holds a value that is no {kind.lower()}", f"typeof({column}) NOT IN ({', '.join(map(repr, types))}, 'null')"
    if words := _WORDS.get((table, column)):
        yield "holds a word that is none of ours", f"{column} NOT IN ({', '.join(repr(str(word)) for word in words)})"
    if (table, column) in _JSON:
        yield "holds what is no JSON", f"NOT json_valid({column})"
