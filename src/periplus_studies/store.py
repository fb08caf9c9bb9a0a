"""Reads and changes the links that a survey collects, and the user's marks on sites, in both databases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from periplus.model.arrays import Ints
from periplus.model.graph import LinkRows, UrlRows
from periplus.model.page import LinkKind
from periplus.model.tables import any_of
from periplus.model.web import Url
from periplus.store.reader import CollectionReader, matches
from periplus.store.site_rows import joined_links, link_blocks, row_blocks
from periplus.store.statements import Dialect, Row, Statements
from periplus_studies.model import SiteMark, SiteStatus

# Links that a reader follows, including frames. Canonical, alternate and form links are not references to other pages.
HYPERLINKS = (LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FRAME, LinkKind.IFRAME, LinkKind.REFRESH)
_SURVEY_KINDS = frozenset(HYPERLINKS)
_NOT_READ = "('redirect', 'alias', 'rule')"
_HYPERLINKS = any_of(HYPERLINKS)
_BAD_COLUMNS = ("source", "text", "why", "anchor", "position")


def every_url(reader: CollectionReader) -> UrlRows:
    """All URLs of the collection, ascending by id, without depths (-1)."""
    return UrlRows.of(row_blocks(reader.stream("SELECT id, text, reason, -1 FROM url ORDER BY id")))


def hyperlinks(reader: CollectionReader) -> LinkRows:
    """All hyperlinks of all pages, by source; may contain duplicates."""
    of_read = f"url u CROSS JOIN page_links l ON l.source = u.id WHERE u.reason NOT IN {_NOT_READ} ORDER BY u.id"
    blocks = link_blocks(reader, of_read, kinds=_SURVEY_KINDS)
    links = joined_links(block.in_order() for block in blocks)
    return LinkRows(links.sources, links.targets)


def contents(reader: CollectionReader) -> tuple[Ints, Ints]:
    """(ids of non-empty pages with known content, 64 bits of their digests), ascending by id."""
    ids: list[int] = []
    digests: list[bytes] = []
    find = "SELECT url_id, body_md5 FROM page WHERE size > 0 ORDER BY url_id"
    for block in row_blocks(reader.stream(find)):
        block_ids, md5s = zip(*block, strict=True)
        ids += block_ids
        digests += md5s
    return np.array(ids, np.int64), np.frombuffer(b"".join(digest[:8] for digest in digests), np.int64)


def fetch_order(reader: CollectionReader) -> Ints:
    """Ids of the requested pages, in the order of their first visits."""
    find = "SELECT url_id, min(id) FROM visit WHERE purpose = 'page' GROUP BY url_id ORDER BY 2"
    return np.concatenate([np.zeros(0, np.int64), *(block[:, 0] for block in reader.numbers(find, 2))])


class StoredLink(NamedTuple):
    """A hyperlink or frame of a fetched page. key: shard, source, target, kind, position, nofollow."""

    key: Row
    page: Url
    target: Url
    anchor: str
    title: str
    times: int
    depth: int | None
    reason: str
    visited: int

    @property
    def position(self) -> str:
        return str(self.key[4])


class BadHrefRow(NamedTuple):
    """A link whose URL cannot be fetched. key: shard, then _BAD_COLUMNS."""

    key: Row
    page: Url

    @property
    def written(self) -> Row:
        """(text, why, anchor, position)."""
        return self.key[2:]


def links(reader: CollectionReader, page: str, target: str, anchor: str) -> Iterator[StoredLink]:
    """Streams links whose page, target and anchor contain or match these; empty: any. Grouped by page."""
    dialect = reader.statements.dialect
    find = (
        f"SELECT {_shard('a', dialect)}, l.source, l.target, l.kind, l.position, l.nofollow, a.text, b.text, l.anchor,"
        " coalesce(p.title, ''), l.times, b.depth, b.reason, CASE WHEN b.visited IS NULL THEN 0 ELSE 1 END"
        " FROM url a CROSS JOIN link l ON l.source = a.id JOIN url b ON b.id = l.target"
        f" LEFT JOIN page p ON p.url_id = a.id WHERE l.kind IN {_HYPERLINKS}"
        f" ORDER BY a.id, l.target, l.kind{dialect.text_order}, l.position{dialect.text_order}, l.nofollow"
    )
    for row in reader.stream(find):
        if _match((page, row[6]), (target, row[7]), (anchor, row[8])):
            yield StoredLink(row[:6], *row[6:])


def bad_links(reader: CollectionReader, page: str, target: str, anchor: str) -> Iterator[BadHrefRow]:
    """As `links`, for links that cannot be fetched; target: the text as written."""
    dialect = reader.statements.dialect
    columns = ", ".join(f"b.{name}" for name in _BAD_COLUMNS)
    order = ", ".join(f"b.{name}{dialect.text_order}" for name in _BAD_COLUMNS[1:])
    find = (
        f"SELECT {_shard('b', dialect)}, {columns}, a.text FROM bad_link b JOIN url a ON a.id = b.source"
        f" ORDER BY a.id, {order}"
    )
    for *key, url in reader.stream(find):
        if _match((page, url), (target, key[2]), (anchor, key[4])):
            yield BadHrefRow(tuple(key), url)


def _shard(table: str, dialect: Dialect) -> str:
    return f"{table}.shard" if dialect.has_shards else "0"


def _match(*pairs: tuple[str, str]) -> bool:
    """Whether each text contains or matches its pattern. pairs: (pattern, text)."""
    return all(not pattern or matches(text, pattern) for pattern, text in pairs)


def delete_bad(statements: Statements, keys: Iterable[Row]) -> int:
    """Deletes bad links; returns their number. Call it within a transaction."""
    dialect = statements.dialect
    drop = f"DELETE FROM bad_link WHERE {dialect.here}{' AND '.join(f'{name} = ?' for name in _BAD_COLUMNS)}"
    return sum(statements.change(drop, dialect.shard_values(*key)) for key in dict.fromkeys(keys))


def marks(reader: CollectionReader) -> dict[str, SiteMark]:
    """Users' marks on sites, by prefix."""
    find = f"SELECT prefix, status, tags FROM survey_mark ORDER BY prefix{reader.statements.dialect.text_order}"
    return {
        prefix: SiteMark(prefix, SiteStatus(status), tuple(tags.split("\n")) if tags else ())
        for prefix, status, tags in reader.statements.rows(find)
    }


def store_marks(statements: Statements, noted: Iterable[SiteMark], now: float) -> None:
    """Replaces the marks of these sites. Call it within a transaction."""
    key = statements.dialect.of_long_text.format("prefix")
    upsert = (
        f"INSERT INTO survey_mark (prefix, status, tags, marked) VALUES (?, ?, ?, ?) ON CONFLICT ({key}) DO UPDATE SET"
        " status = excluded.status, tags = excluded.tags, marked = excluded.marked"
    )
    values = ((mark.prefix, mark.status.value, "\n".join(mark.tags), now) for mark in noted)
    statements.change_rows(upsert, values)
