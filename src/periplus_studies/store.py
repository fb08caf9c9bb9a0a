"""Reads and changes the links that a survey collects, and the user's marks on sites."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from periplus.model.arrays import Ints
from periplus.model.graph import LinkRows, UrlRows
from periplus.model.page import LinkKind
from periplus.model.tables import any_of
from periplus.model.web import Url
from periplus.store.site_rows import joined_links, link_blocks, number_blocks, row_blocks
from periplus.store.sqlite import page_links
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.sqlite.reading import rows
from periplus_studies.model import SiteMark, SiteStatus

# Links that a reader follows, including frames. Canonical, alternate and form links are not references to other pages.
HYPERLINKS = (LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FRAME, LinkKind.IFRAME, LinkKind.REFRESH)
_SURVEY_KINDS = frozenset(HYPERLINKS)
_BLOCK = 10_000  # rows converted to columns at a time
_NOT_READ = "('redirect', 'alias', 'rule')"
_HYPERLINKS = any_of(HYPERLINKS)
_MATCHING = "(? = '' OR matches({column}, ?))"


def every_url(connection: sqlite3.Connection) -> UrlRows:
    """All URLs of the collection, ascending by id, without depths (-1)."""
    return UrlRows.of(row_blocks(connection.execute("SELECT id, text, reason, -1 FROM url ORDER BY id")))


def hyperlinks(connection: sqlite3.Connection) -> LinkRows:
    """All hyperlinks of all pages, by source; may contain duplicates."""
    of_read = f"url u CROSS JOIN page_links l ON l.source = u.id WHERE u.reason NOT IN {_NOT_READ} ORDER BY u.id"
    blocks = link_blocks(SqliteReader(connection), of_read, kinds=_SURVEY_KINDS)
    links = joined_links(block.in_order() for block in blocks)
    return LinkRows(links.sources, links.targets)


def contents(connection: sqlite3.Connection) -> tuple[Ints, Ints]:
    """(ids of non-empty pages with known content, 64 bits of their digests), ascending by id."""
    ids: list[int] = []
    digests: list[bytes] = []
    cursor = connection.execute("SELECT url_id, body_md5 FROM page WHERE size > 0 ORDER BY url_id")
    while block := cursor.fetchmany(_BLOCK):
        block_ids, md5s = zip(*block, strict=True)
        ids += block_ids
        digests += md5s
    return np.array(ids, np.int64), np.frombuffer(b"".join(digest[:8] for digest in digests), np.int64)


def fetch_order(connection: sqlite3.Connection) -> Ints:
    """Ids of the requested pages, in the order of their first visits."""
    find = "SELECT url_id, min(id) FROM visit WHERE purpose = 'page' GROUP BY url_id ORDER BY 2"
    return np.concatenate(
        [np.zeros(0, np.int64), *(block[:, 0] for block in number_blocks(connection.execute(find), 2))]
    )


class LinkKey(NamedTuple):
    """Key of a link."""

    source: int
    target: int
    kind: str
    position: str
    nofollow: int


class StoredLink(NamedTuple):
    """A hyperlink or frame of a fetched page."""

    key: LinkKey
    page: Url
    target: Url
    anchor: str
    title: str
    times: int
    depth: int | None
    reason: str
    visited: bool


class BadHrefRow(NamedTuple):
    """A link whose URL cannot be fetched."""

    row: int
    page: Url
    text: str
    why: str
    anchor: str
    position: str


def links(connection: sqlite3.Connection, page: str, target: str, anchor: str) -> Iterator[StoredLink]:
    """Streams links whose page, target and anchor contain or match these; empty: any. Grouped by page."""
    where = " AND ".join(_MATCHING.format(column=column) for column in ("a.text", "b.text", "l.anchor"))
    find = (
        "SELECT l.source, l.target, l.kind, l.position, l.nofollow, a.text, b.text, l.anchor, coalesce(p.title, "
        "''), l.times, b.depth, b.reason,"
        " b.visited IS NOT NULL FROM url a CROSS JOIN link l ON l.source = a.id JOIN url b ON b.id = l.target LEFT"
        " JOIN page p ON p.url_id = a.id"
        f" WHERE l.kind IN {_HYPERLINKS} AND {where} ORDER BY a.id, l.target"
    )
    for row in rows(connection.execute(find, (page, page, target, target, anchor, anchor))):
        # columns are in the order of the fields
        yield StoredLink(LinkKey._make(row[:5]), *row[5:])  # type: ignore[arg-type]


def bad_links(connection: sqlite3.Connection, page: str, target: str, anchor: str) -> Iterator[BadHrefRow]:
    """As `links`, for links that cannot be fetched; target: the text as written."""
    where = " AND ".join(_MATCHING.format(column=column) for column in ("a.text", "b.text", "b.anchor"))
    find = (
        "SELECT b.rowid, a.text, b.text, b.why, b.anchor, b.position FROM bad_link b JOIN url a ON a.id = b.source"
        f" WHERE {where} ORDER BY a.id, b.rowid"
    )
    for row in rows(connection.execute(find, (page, page, target, target, anchor, anchor))):
        yield BadHrefRow(*row)  # type: ignore[arg-type]  # as above


def delete_links(connection: sqlite3.Connection, keys: Iterable[LinkKey]) -> int:
    """Deletes links; returns their number. Call it within a transaction."""
    return page_links.drop_links(connection, ((key.source, key[1:]) for key in keys))


def delete_bad(connection: sqlite3.Connection, numbers: Iterable[int]) -> int:
    """Deletes bad links; returns their number."""
    return connection.executemany("DELETE FROM bad_link WHERE rowid = ?", [(number,) for number in numbers]).rowcount


def marks(connection: sqlite3.Connection) -> dict[str, SiteMark]:
    """Users' marks on sites, by prefix."""
    rows = connection.execute("SELECT prefix, status, tags FROM survey_mark ORDER BY prefix").fetchall()
    return {
        prefix: SiteMark(prefix, SiteStatus(status), tuple(tags.split("\n")) if tags else ())
        for prefix, status, tags in rows
    }


def store_marks(connection: sqlite3.Connection, noted: Iterable[SiteMark], now: float) -> None:
    """Replaces the marks of these sites. Call it within a transaction."""
    values = ((mark.prefix, mark.status.value, "\n".join(mark.tags), now) for mark in noted)
    connection.executemany("INSERT OR REPLACE INTO survey_mark VALUES (?, ?, ?, ?)", values)
