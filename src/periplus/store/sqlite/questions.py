"""What does a question in SQL bring, when it may only read, and only for so long?"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from periplus.errors import UsageError
from periplus.store.sqlite.reading import limited, rows
from periplus.store.sqlite.views import VIEWS

LONGEST_VALUE_BYTES = 64_000_000  # a longer text or blob is refused, such as zeroblob(1e9): nothing stops one step of SQLite
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_PRAGMA})
_PRAGMAS = frozenset({"table_info", "table_xinfo", "table_list", "index_list", "index_info", "database_list", "function_list"})
_FUNCTIONS_DENIED = frozenset({"load_extension", "matches"})  # matches: a regular expression may run for ever, and no limit stops it


@dataclass(frozen=True, slots=True)
class Answer:
    """columns: their names; rows: values a row, streamed, bytes as hexadecimal text."""

    columns: Sequence[str]
    rows: Iterator[tuple[object, ...]]


def ask(connection: sqlite3.Connection, question: str, limit_s: float, most: int = -1) -> Answer:
    """The answer to one statement that only reads. most: rows, -1: all. limit_s: for the statement and for reading its rows; 0: none.

    Raises UsageError for what SQLite does not understand or what would do more than read; StoreError when the time is over,
    also while the rows are read.
    """
    connection.set_authorizer(_authorised)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE_BYTES)
    found = _streamed(connection, question, limit_s, most)
    columns = next(found)
    return Answer([str(name) for name in columns], found)


def _streamed(connection: sqlite3.Connection, question: str, limit_s: float, most: int) -> Iterator[tuple[object, ...]]:
    """First the names of the columns, then the rows."""
    with limited(connection, limit_s):
        with _understood():
            cursor = connection.execute(question)
        if cursor.description is None:
            raise UsageError("the statement has no result: `periplus sql` answers questions, as in SELECT count(*) FROM urls")
        yield tuple(column[0] for column in cursor.description)
        with _understood():
            for number, row in enumerate(rows(cursor)):
                if number == most:
                    return
                yield tuple(value.hex() if isinstance(value, bytes) else value for value in row)


def _authorised(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":
        return sqlite3.SQLITE_OK  # how SQLite asks for pragma_table_info(...) and json_each(...); a true one it refuses itself
    if action not in _ALLOWED:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA and (first not in _PRAGMAS):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS_DENIED:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


@contextlib.contextmanager
def _understood() -> Iterator[None]:
    """Says what is wrong with a statement, and what there is to be asked."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise UsageError(f"this cannot be asked: {error}") from None
    except sqlite3.Warning as error:  # until Python 3.12, several statements
        raise UsageError(f"this cannot be asked: {error}") from None
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.DataError):
            raise UsageError(f"a value of the answer, or the statement, is larger than {LONGEST_VALUE_BYTES // 1_000_000} MB: ask for less") from None
        if "authorization denied" in str(error) or "not authorized" in str(error) or "prohibited" in str(error):
            raise UsageError("`periplus sql` only reads: SELECT, and PRAGMA table_info(NAME)") from None
        if isinstance(error, sqlite3.OperationalError) and str(error) != "interrupted" and _is_mistake(error):
            raise UsageError(f"SQLite does not understand this: {error}. There are the views {', '.join(VIEWS)}; docs/sql.md lists their columns.") from None
        raise


def _is_mistake(error: sqlite3.OperationalError) -> bool:
    """Whether the fault is the statement's and not the disk's: SQLITE_ERROR, with its extended codes."""
    return (error.sqlite_errorcode & 0xFF) == sqlite3.SQLITE_ERROR
