"""Statements that SQLite and PostgreSQL share, and the words and ways in which the two differ.

A shared statement has `?` for its values and takes the words that differ from its `Dialect`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

import xxhash

from periplus.model.web import SiteKey
from periplus.store.rows import LinkChanges
from periplus.values import frozen

T = TypeVar("T")
Row = tuple[Any, ...]
SHARDS: Final = 256  # so many workers may merge side by side; a smallint, and part of the stored form


def shard_of(site: SiteKey) -> int:
    """The shard of PostgreSQL's tables that holds all of a site."""
    return xxhash.xxh3_64_intdigest(site.encode("utf-8", "surrogatepass")) % SHARDS


@frozen
class Dialect:
    """The words that one database has for what both can do.

    Rows of PostgreSQL lie in shards, and are looked up fast only with theirs; SQLite has none.
    """

    greatest: str  # of several values, NULL aside
    least: str
    position: str  # of a text in another, which comes first
    of_long_text: str  # a text in an index: PostgreSQL's takes 2,700 bytes, so it is a digest there
    is_false: str  # behind a column of 0 and 1, as the partial indexes of released tables have it
    for_update: str  # locks the rows that are read; SQLite has one writer at a time
    skip_locked: str  # the same, without those that somebody else has locked
    has_shards: bool
    has_triggers: bool  # that keep the history of URLs
    has_sequences: bool  # that number the entries of lists

    @property
    def shard(self) -> str:
        """Before the columns of an INSERT or an index."""
        return "shard, " if self.has_shards else ""

    @property
    def here(self) -> str:
        """Before the further conditions on one row's table; its value is that of `placed`."""
        return "shard = ? AND " if self.has_shards else ""

    def here_of(self, table: str) -> str:
        """The same, where several tables have shards."""
        return f"{table}.{self.here}" if self.has_shards else ""

    def beside(self, table: str, other: str) -> str:
        """Before the further conditions of a join."""
        return f"{table}.shard = {other}.shard AND " if self.has_shards else ""

    def shard_of(self, site: SiteKey) -> int:
        return shard_of(site) if self.has_shards else 0

    def placed(self, shard: int, *values: object) -> tuple[object, ...]:
        """The values behind their shard, where there are shards."""
        return (shard, *values) if self.has_shards else values


SQLITE = Dialect(
    greatest="max",
    least="min",
    position="instr",
    of_long_text="{}",
    is_false="NOT {}",
    for_update="",
    skip_locked="",
    has_shards=False,
    has_triggers=True,
    has_sequences=False,
)
POSTGRES = Dialect(
    greatest="greatest",
    least="least",
    position="strpos",
    of_long_text="md5({})",
    is_false="{} = 0",
    for_update=" FOR NO KEY UPDATE",
    skip_locked=" FOR UPDATE SKIP LOCKED",
    has_shards=True,
    has_triggers=False,
    has_sequences=True,
)


class Statements(Protocol):
    """A connection, within a transaction or without, that takes shared statements.

    Rows that are entered, and keys, stand behind their shard (0 in SQLite), which is not among the columns.
    """

    @property
    def dialect(self) -> Dialect: ...

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Executes the statement and returns its rows; none where it gives none."""

    def change(self, statement: str, values: Sequence[object] = ()) -> int:
        """Executes the statement and returns how many rows it changed."""

    def change_each(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Executes the statement once for each row of values."""

    def at(self, columns: str, table: str, key: str, keys: Sequence[Sequence[object]]) -> Iterable[Row]:
        """The columns of the rows with these keys: (shard, value of the column `key`)."""

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[object]], *, key: str = "") -> None:
        """Enters rows that are not there.

        key: the first of the columns, where several rows may have the same: the last of them is entered.
        """

    def replace(
        self, table: str, columns: str, rows: Sequence[Sequence[object]], before: Sequence[Sequence[object]]
    ) -> None:
        """Enters rows by their key, the first column. before: the keys of those that are there, and go."""

    def upsert(
        self, table: str, columns: str, rows: Sequence[Sequence[object]], *, key: str = "", update: str = ""
    ) -> None:
        """Enters rows, of which those with the same key get the columns `update`; without such they stay as they are.

        key: the first of the columns; of several rows with one key the last is entered.
        """

    def update(self, table: str, columns: str, rows: Sequence[Sequence[object]]) -> None:
        """Sets columns of rows. columns: of the key `id`, then those to be set."""

    def delete(self, table: str, key: str, rows: Sequence[Sequence[object]]) -> Sequence[Sequence[object]]:
        """Deletes the rows with these keys; returns those that were there."""

    def links_of(self, pages: Sequence[Sequence[object]]) -> Iterable[Row]:
        """(source, target, kind, position, nofollow, when last seen) of the links of pages, given by (shard, id)."""

    def enter_links(self, changes: LinkChanges) -> None:
        """Enters what a transaction says of links."""


class Database(Protocol):
    """One connection to a database, opened by whoever made it."""

    @property
    def dialect(self) -> Dialect: ...

    def run(self, action: Callable[[Statements], T]) -> T:
        """The action's result, in one transaction. The action must bear to be done twice. Raises StoreError."""

    def read(self, action: Callable[[Statements], T]) -> T:
        """The same without a transaction, for what only reads."""

    def close(self) -> None: ...
