"""SQL statements shared by SQLite and PostgreSQL, and the differences between the two.

A shared statement uses `?` for its values and takes the differing parts from its `Dialect`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol, TypeVar

import xxhash

from periplus.model.web import SiteKey
from periplus.store.rows import LinkChanges, StoredLinks
from periplus.values import frozen

T = TypeVar("T")
Row = tuple[Any, ...]
PageKey = tuple[int, int]  # (shard, id) of a page
ID_WIDTH: Final = 21  # of a target in SQLite's page_links: a space, a sign and 19 digits
_SQLITE_WORDS: Final = ("id INTEGER PRIMARY KEY", "INTEGER", "", "WITHOUT ROWID")
_POSTGRES_WORDS: Final = (
    "shard smallint NOT NULL, id bigint NOT NULL, PRIMARY KEY (id, shard)", "bigint", "shard smallint NOT NULL,", ""
)  # fmt: skip
SHARDS: Final = 256  # upper limit of concurrent merges; a smallint, and part of the stored format


def shard_of(site: SiteKey) -> int:
    """Shard of PostgreSQL's tables that contains all rows of a site."""
    return xxhash.xxh3_64_intdigest(site.encode("utf-8", "surrogatepass")) % SHARDS


@lru_cache(256)
def _expand_keys(statement: str, has_shards: bool) -> str:
    return re.sub(r"@(\w+\.)?", r"\1shard, \1" if has_shards else r"\1", statement)


@frozen
class Dialect:
    """SQL fragments of one database for features that both have.

    Rows of PostgreSQL are divided into shards, and lookups need the shard to be fast; SQLite has no shards.
    """

    greatest: str  # function: maximum of several values, ignoring NULL
    least: str
    position: str  # function: position of the second text in the first
    of_long_text: str  # a text in an index: a digest in PostgreSQL, whose index entries are limited to 2,700 bytes
    is_false: str  # condition that a 0/1 column is 0, as written in the partial indexes
    among: str  # condition: the value is in a list, see `list_value`
    linking: str  # subquery: ids of pages whose links may lead to a URL
    text_order: str  # orders texts by code points
    time: str  # a time in seconds since the epoch, as text in UTC
    millis: str  # the same in milliseconds, rounded half away from zero so that both databases give equal tables
    for_update: str  # locks the selected rows; empty in SQLite, which has one writer at a time
    skip_locked: str  # the same, but skips rows that are locked
    has_shards: bool
    has_triggers: bool  # triggers that write the history of URLs
    has_sequences: bool  # sequences that number the queue entries

    @property
    def shard(self) -> str:
        """Prefix of the columns of an INSERT or an index."""
        return "shard, " if self.has_shards else ""

    @property
    def here(self) -> str:
        """Prefix of the conditions on one row; `shard_values` supplies its value."""
        return "shard = ? AND " if self.has_shards else ""

    def here_of(self, table: str) -> str:
        """`here` for a statement with several tables."""
        return f"{table}.{self.here}" if self.has_shards else ""

    def beside(self, table: str, other: str) -> str:
        """Prefix of the conditions of a join."""
        return f"{table}.shard = {other}.shard AND " if self.has_shards else ""

    def anywhere(self, table: str, site: SiteKey | None = None) -> str:
        """Prefix of the conditions on a key whose shard is unknown: an index look-up per shard. BETWEEN would read the
        whole index. site: of all keys, if it is known.
        """
        shards = range(SHARDS) if site is None else (shard_of(site),)
        return f"{table}.shard IN ({', '.join(map(str, shards))}) AND " if self.has_shards else ""

    def expand_keys(self, statement: str) -> str:
        """The statement with `@id` replaced by the columns of a row's key, and `@u.id` by those of table `u`."""
        return _expand_keys(statement, self.has_shards)

    def temporary(self, table: str) -> str:
        """Statement that creates a temporary table.

        table: its name and columns, with `{key}` for a key `id`, `{whole}` for the type of whole numbers, `{shard}`
        before other keys, and `{by_key}` at the end of a table whose rows are stored in the order of its key.
        """
        key, whole, shard, by_key = _POSTGRES_WORDS if self.has_shards else _SQLITE_WORDS
        columns = table.format(key=key, whole=whole, shard=shard, by_key=by_key)
        return f"CREATE TEMP TABLE {self.expand_keys(columns)}"

    def list_value(self, values: Iterable[object]) -> object:
        """The parameter of the condition `among`."""
        return list(values) if self.has_shards else json.dumps(list(values))

    def shard_of(self, site: SiteKey) -> int:
        return shard_of(site) if self.has_shards else 0

    def shard_values(self, shard: int, *values: object) -> tuple[object, ...]:
        """The values, with the shard in front if the database has shards."""
        return (shard, *values) if self.has_shards else values


SQLITE = Dialect(
    greatest="max",
    least="min",
    position="instr",
    of_long_text="{}",
    is_false="NOT {}",
    among="IN (SELECT value FROM json_each(?))",
    # pages whose targets contain the id as text: checking only their links takes half the time
    linking=f"(SELECT source FROM page_links WHERE instr(targets, CAST(printf('%{ID_WIDTH}d', ?) AS BLOB)))",
    text_order="",
    time="strftime('%Y-%m-%dT%H:%M:%SZ', nullif({}, 0), 'unixepoch')",
    millis="CAST(round(nullif({}, 0) * 1000) AS INTEGER)",
    for_update="",
    skip_locked="",
    has_shards=False,
    has_triggers=True,
    has_sequences=False,
)


class Statements(Protocol):
    """A connection that executes shared statements, within a transaction or not.

    Inserted rows and keys start with their shard (0 in SQLite), which is not listed among the columns.
    """

    @property
    def dialect(self) -> Dialect: ...

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Executes the statement and returns its rows, if any."""

    def change(self, statement: str, values: Sequence[object] = ()) -> int:
        """Executes the statement and returns the number of changed rows."""

    def change_rows(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Executes the statement once per row of values."""

    def at(self, columns: str, table: str, key: str, keys: Sequence[Sequence[object]]) -> Iterable[Row]:
        """Selects rows by keys: (shard, value of the column `key`)."""

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[object]], *, key: str = "") -> None:
        """Inserts rows that do not exist yet.

        key: the first columns, if several of the rows may have the same key; then the last of them is inserted.
        """

    def replace(
        self, table: str, columns: str, rows: Sequence[Sequence[object]], before: Sequence[Sequence[object]]
    ) -> None:
        """Replaces rows by key, which is the first column. before: keys of existing rows to delete."""

    def upsert(
        self, table: str, columns: str, rows: Sequence[Sequence[object]], *, key: str = "", update: str = ""
    ) -> None:
        """Inserts rows; rows with an existing key get the columns `update`, or stay unchanged if it is empty.

        key: the first columns; of several rows with the same key the last is used.
        """

    def update(self, table: str, columns: str, rows: Sequence[Sequence[object]]) -> None:
        """Updates rows. columns: the key `id`, then the columns to set."""

    def delete(self, table: str, key: str, rows: Sequence[Sequence[object]]) -> Sequence[Sequence[object]]:
        """Deletes rows by key; returns the keys of deleted rows."""

    def links_of(self, pages: Sequence[Sequence[object]]) -> Iterable[Row]:
        """(source, target, kind, position, nofollow, last_seen) of the links of pages. pages: (shard, id)."""

    def enter_links(self, changes: LinkChanges) -> None:
        """Stores the link changes of a transaction."""

    def stored_links(self, pages: Iterable[PageKey]) -> dict[PageKey, StoredLinks]:
        """Stored links of pages. Raises StoreError if columns are inconsistent."""

    def store_links(self, pages: Mapping[PageKey, StoredLinks]) -> None:
        """Replaces the stored links of pages."""


class Database(Protocol):
    """A connection to a database."""

    @property
    def dialect(self) -> Dialect: ...

    def run(self, action: Callable[[Statements], T]) -> T:
        """Runs an idempotent action in one transaction and returns its result. Raises StoreError."""

    def read(self, action: Callable[[Statements], T]) -> T:
        """Runs a read-only action without a transaction."""

    def close(self) -> None: ...
