"""Statements that SQLite and PostgreSQL share, and the words in which the two differ.

A shared statement has `?` for its values and takes the words that differ from its `Dialect`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words that one database has for what both can do."""

    greatest: str  # of several values, NULL aside
    least: str
    of_long_text: str  # a text in an index: PostgreSQL's takes 2,700 bytes, so it is a digest there
    is_false: str  # behind a column of 0 and 1, as the partial indexes of released tables have it
    for_update: str  # locks the rows that are read; SQLite has one writer at a time
    skip_locked: str  # the same, without those that somebody else has locked


SQLITE = Dialect("max", "min", "{}", "NOT {}", "", "")
POSTGRES = Dialect("greatest", "least", "md5({})", "{} = 0", " FOR UPDATE", " FOR UPDATE SKIP LOCKED")


class Statements(Protocol):
    """A connection, within a transaction or without, that takes shared statements."""

    @property
    def dialect(self) -> Dialect: ...

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Executes the statement and returns its rows; none where it gives none."""

    def change(self, statement: str, values: Sequence[object] = ()) -> int:
        """Executes the statement and returns how many rows it changed."""

    def change_each(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Executes the statement once for each row of values."""


class Database(Protocol):
    """One connection to a database, opened by whoever made it."""

    @property
    def dialect(self) -> Dialect: ...

    def run(self, action: Callable[[Statements], T]) -> T:
        """The action's result, in one transaction. The action must bear to be done twice. Raises StoreError."""

    def read(self, action: Callable[[Statements], T]) -> T:
        """The same without a transaction, for what only reads."""

    def close(self) -> None: ...
