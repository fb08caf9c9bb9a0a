"""Common code for moving a collection to another database: which tables move, and checksums that prove it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import xxhash

from periplus.features import stored_tables
from periplus.model.collection import Exchange
from periplus.store.notes import CHANGES
from periplus.values import Row

USER_TABLES = (*(table.name for table in stored_tables()), "file")
"""Users' decisions. `file` has the `periplus.files.USER_FILES` of a folder by path; a temporary table in SQLite."""
TABLES = (
    "meta", "run", "run_count", "tally", "site", "dictionary", "host", "robots", "family", "doubtful", "shown", "url",
    "start", "alias", "queue", "page",
    "visit", "look", "issue", "verdict", "link", "bad_link", "url_history", "page_history", "link_history", "freshness",
    "rendering", "outbox", "certificate", *USER_TABLES,
)  # fmt: skip
"""Tables in the order in which they move, followed by `body` and `xml`: crawl state, crawl results, and users'
decisions.

Not moved: workers and leases (nobody holds any), the search index and its state, which exist only in folders, and
computed results.
"""
OWNERS = {
    **dict.fromkeys(("url", "queue", "family", "doubtful", "shown"), "host_id"),
    **dict.fromkeys(("start", "alias", "page", "url_history", "page_history"), "url_id"),
    **dict.fromkeys(("freshness", "verdict", "rendering"), "url_id"),
    **dict.fromkeys(("link", "bad_link", "link_history"), "source"),
}
"""The column that refers to a row's host, or to its URL, and so decides its shard and its part of the web."""
MOVING = "moving"  # key of `meta` of an incomplete target: its source, and what is written
# keys of `meta` that belong to one database
OWN_META = frozenset(
    {"schema", "seq", "segments", "index", "moved", "paused", "rules_text", "holes"} | {CHANGES, MOVING}
)
LONG_BYTES = 64  # longer values are digested before the checksum
_BITS = (1 << 64) - 1
BODY_COLUMNS = "b.id, b.digest, b.size, b.blocks, x.media_type, x.data, b.data, b.dictionary_id, b.text"
"""Values of a MovedBody up to `text`, from `body b LEFT JOIN xml x`."""
_TYPES: dict[str, type] = {"int": int, "float": float, "text": str, "bytes": bytes}


class MovedTable(NamedTuple):
    """A table to move.

    columns: columns that both databases have, including ids; kinds: `int`, `float`, `text` or `bytes` of each.
    """

    name: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def has_bytes(self) -> bool:
        return "bytes" in self.kinds


class MovedBody(NamedTuple):
    """The stored content of one or more pages; text, blocks and xml are compressed.

    data: the compressed bytes, with the dictionary of this id; empty if they are stored elsewhere or not at all.
    content: the uncompressed bytes. shards: of the pages with this body. exchange: the visit that fetched it, as far as
    known, to be written as a WARC record.
    """

    id: int
    digest: bytes
    size: int
    blocks: bytes | None
    media_type: str | None  # of xml
    xml: bytes | None
    data: bytes
    dictionary_id: int | None
    text: bytes | None
    content: bytes
    shards: tuple[int, ...] = ()
    exchange: Exchange | None = None

    @property
    def row(self) -> Row:
        """Values that must be equal after the move, as a row of a table without shards."""
        return (0, *self[:6], self.text, self.content)


class RowStore(Protocol):
    """Rows of a collection in a folder or a database. Each row starts with its shard, 0 if the table has no shards."""

    def rows(self, table: MovedTable) -> Iterator[Row]: ...
    def bodies(self) -> Iterator[MovedBody]: ...
    def clear(self, name: str) -> None: ...
    def enter(self, table: MovedTable, rows: Iterable[Row]) -> None: ...
    def enter_bodies(self, bodies: Iterable[MovedBody]) -> None: ...


class Sum:
    """Counts rows and adds up their digests: equal for equal rows in any order."""

    def __init__(self, *, has_bytes: bool = True) -> None:
        """has_bytes: False if no row contains bytes, which is twice as fast."""
        self.rows = self.digest = 0
        self.has_bytes = has_bytes

    def add(self, row: Row) -> None:
        text = repr(tuple([_short(value) for value in row]) if self.has_bytes else row)
        self.rows += 1
        self.digest = (self.digest + xxhash.xxh3_64_intdigest(text.encode())) & _BITS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and (self.rows, self.digest) == (other.rows, other.digest)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __str__(self) -> str:
        return f"{self.rows:,} rows ({self.digest:016x})"


def _short(value: object) -> object:
    return xxhash.xxh3_128_digest(value) if isinstance(value, bytes) and len(value) > LONG_BYTES else value


def sum_of(rows: Iterable[Row], *, has_bytes: bool = True) -> Sum:
    total = Sum(has_bytes=has_bytes)
    for row in rows:
        total.add(row)
    return total


def exact(kinds: Sequence[str]) -> Callable[[Row], Row]:
    """Returns a function that makes rows equal in both databases: it converts numbers to their column's type and
    removes characters that PostgreSQL does not accept.
    """
    makers = [_MAKERS[kind] for kind in kinds]
    types = tuple(_TYPES[kind] for kind in kinds)
    texts = [place for place, kind in enumerate(kinds) if kind == "text"]

    def make(row: Row) -> Row:
        # these are texts
        if tuple(map(type, row)) == types and not any("\0" in row[place] for place in texts):  # type: ignore[operator]
            return row
        return tuple(None if value is None else make(value) for make, value in zip(makers, row, strict=True))

    return make


def clean(value: object) -> str:
    """The text without U+0000, which PostgreSQL does not accept."""
    return str(value).replace("\0", "\N{REPLACEMENT CHARACTER}")


_MAKERS: dict[str, Callable[[Any], object]] = {"int": int, "float": float, "text": clean, "bytes": bytes}
