"""What goes from one database to another when a collection moves, and how is it known that all of it arrived?

Apart from any database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import xxhash

from periplus.model.collection import Exchange
from periplus.model.web import Url, UrlId
from periplus.values import Row, frozen

WRITTEN_BACK = ("survey_mark", "portal", "portal_verdict", "portal_page", "portal_words", "certificate", "file")
"""What is changed in a database's copy and then in the database: what persons decide, certificates that a check saw.
`file`: FILES of a folder by their paths in it, there a table of one connection alone.
"""
TABLES = (
    "meta", "run", "run_count", "tally", "site", "dictionary", "host", "robots", "family", "doubtful", "shown", "url",
    "start", "alias", "queue", "page",
    "visit", "look", "issue", "verdict", "link", "bad_link", "url_history", "page_history", "link_history", "freshness",
    "rendering", "outbox", *WRITTEN_BACK,
)  # fmt: skip
"""In the order in which they move, and `body`, with `xml`, after them: all that a crawl needs or has brought, and what
persons decided.

What stays: workers and leases, which nobody holds then; the search index and its followers, which live with folders;
computed results.
"""
FILES = tuple(  # of a folder, in the table `file`
    f"topics/*.{ending}" for ending in ("json", "examples.gz", "labels.jsonl", "judged.jsonl", "harvest.jsonl")
)
# what each database says of itself
OWN_META = frozenset(
    {"schema", "seq", "segments", "index", "moved", "paused", "rules_text", "holes"}
    | {"copied", "edited", "busy_until", "as_of"}  # of a copy
)
LONG_BYTES = 64  # of which a checksum takes the digest
_BITS = (1 << 64) - 1


class MovedTable(NamedTuple):
    """One table.

    columns: those that both databases have, ids included; kinds: `int`, `float`, `text` or `bytes` of each.
    """

    name: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def has_bytes(self) -> bool:
        return "bytes" in self.kinds


@frozen
class MovedBody:
    """What was kept of one or several pages; text and blocks are packed.

    data: the bytes packed, with the dictionary of this id; empty where they lie elsewhere or were not kept. content:
    the bytes themselves. shards: of the pages that have it. exchange: the visit that brought it, as far as it is known,
    to be written as a record of an archive.
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
    xml: tuple[str, bytes] | None  # media type, packed
    exchange: Exchange | None

    @property
    def row(self) -> Row:
        """What must arrive."""
        return (self.id, self.md5, self.size, self.text, self.blocks, self.content, self.xml)


class PageBody(NamedTuple):
    """A page that is there still, with its bytes, content codings removed."""

    url_id: UrlId
    url: Url
    media_type: str
    charset: str  # that it is read in
    body: bytes


class Sum:
    """Counts rows, and adds up their digests: equal for equal rows in whatever order."""

    def __init__(self, *, has_bytes: bool = True) -> None:
        """has_bytes: False for rows without any, which takes half the time."""
        self.rows = self.digest = 0
        self.has_bytes = has_bytes

    def add(self, row: Row) -> None:
        text = repr(tuple([_short(value) for value in row]) if self.has_bytes else row)
        self.rows += 1
        self.digest = (self.digest + xxhash.xxh3_64_intdigest(text.encode())) & _BITS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and (self.rows, self.digest) == (other.rows, other.digest)

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __str__(self) -> str:
        return f"{self.rows:,} rows ({self.digest:016x})"


def _short(value: object) -> object:
    return xxhash.xxh3_128_digest(value) if isinstance(value, bytes) and len(value) > LONG_BYTES else value


def summed(rows: Iterable[Row], total: Sum, *, skip: int = 0) -> Iterator[Row]:
    """The rows as they pass, added up without their first `skip` values."""
    for row in rows:
        total.add(row[skip:])
        yield row


def changed_rows(
    before: Iterable[Row], after: Iterable[Row], places: Sequence[int]
) -> tuple[Sequence[Row], Sequence[Row]]:
    """(keys of the rows that are gone or became others, rows that are new or became others).

    places: of the values that name a row.
    """
    old, new = ({tuple(row[place] for place in places): row for row in rows} for rows in (before, after))
    gone = [name for name, row in old.items() if new.get(name) != row]
    return gone, [row for name, row in new.items() if old.get(name) != row]


def exact(kinds: Sequence[str]) -> Callable[[Row], Row]:
    """What makes values of a row the same in both databases: numbers of their column's kind,
    texts that PostgreSQL takes.
    """
    makers = [_MAKERS[kind] for kind in kinds]
    types = tuple(_TYPES[kind] for kind in kinds)
    texts = [place for place, kind in enumerate(kinds) if kind == "text"]

    def made(row: Row) -> Row:
        # texts, as was just seen
        if tuple(map(type, row)) == types and not any("\0" in row[place] for place in texts):  # type: ignore[operator]
            return row
        return tuple(None if value is None else make(value) for make, value in zip(makers, row, strict=True))

    return made


def clean(value: object) -> str:
    """A text without U+0000, which PostgreSQL does not know."""
    return str(value).replace("\0", "\N{REPLACEMENT CHARACTER}")


_MAKERS: dict[str, Callable[[Any], object]] = {"int": int, "float": float, "text": clean, "bytes": bytes}
_TYPES: dict[str, type] = {"int": int, "float": float, "text": str, "bytes": bytes}
