"""Common code for moving a collection to another database: which tables move, and checksums that prove it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import xxhash

from periplus.model.collection import Exchange
from periplus.values import Row, frozen

WRITTEN_BACK = ("survey_mark", "portal", "portal_verdict", "portal_page", "portal_words", "certificate", "file")
"""Tables that are changed in the local copy of a database's collection and then in the database: users' decisions, and
certificates seen by a check. `file` contains FILES of a folder by path; in SQLite it is a temporary table.
"""
TABLES = (
    "meta", "run", "run_count", "tally", "site", "dictionary", "host", "robots", "family", "doubtful", "shown", "url",
    "start", "alias", "queue", "page",
    "visit", "look", "issue", "verdict", "link", "bad_link", "url_history", "page_history", "link_history", "freshness",
    "rendering", "outbox", *WRITTEN_BACK,
)  # fmt: skip
"""Tables in the order in which they move, followed by `body` and `xml`: crawl state, crawl results, and users'
decisions.

Not moved: workers and leases (nobody holds any), the search index and its state, which exist only in folders, and
computed results.
"""
FILES = tuple(  # files of a folder that are stored in the table `file`
    f"topics/*.{ending}" for ending in ("json", "examples.gz", "labels.jsonl", "judged.jsonl", "harvest.jsonl")
)
CHANGES = "changes"  # key of `meta`: number of changes of a collection in a database by others than crawls
# keys of `meta` that belong to one database
OWN_META = frozenset(
    {"schema", "seq", "segments", "index", "moved", "paused", "rules_text", "holes"}
    | {"copied", "busy_until", "as_of"}  # keys of a local copy
    | {CHANGES}
)
LONG_BYTES = 64  # longer values are digested before the checksum
_BITS = (1 << 64) - 1


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


@frozen
class MovedBody:
    """The stored content of one or more pages; text and blocks are compressed.

    data: the compressed bytes, with the dictionary of this id; empty if they are stored elsewhere or not at all.
    content: the uncompressed bytes. shards: of the pages with this body. exchange: the visit that fetched it, as far as
    known, to be written as a WARC record.
    """

    id: int
    md5: bytes
    size: int
    text: bytes | None
    blocks: bytes | None
    data: bytes
    dictionary_id: int | None
    content: bytes
    shards: tuple[int, ...]
    xml: tuple[str, bytes] | None  # (media type, compressed XML)
    exchange: Exchange | None

    @property
    def row(self) -> Row:
        """Values that must be equal after the move."""
        return (self.id, self.md5, self.size, self.text, self.blocks, self.content, self.xml)


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


def sum_rows(rows: Iterable[Row], total: Sum, *, skip: int = 0) -> Iterator[Row]:
    """Yields the rows and adds them to a sum, without their first `skip` values."""
    for row in rows:
        total.add(row[skip:])
        yield row


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
_TYPES: dict[str, type] = {"int": int, "float": float, "text": str, "bytes": bytes}
