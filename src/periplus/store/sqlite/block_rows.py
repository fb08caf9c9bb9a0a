"""What do the pages say, block by block, and in which words do others speak of them?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from periplus.model.freshness import READ
from periplus.model.page import Block, Part, Position
from periplus.model.web import Url, UrlId
from periplus.store.sqlite.contents import Contents
from periplus.store.structure import pack_parts, unpack_parts

BLOCK_ROWS = 100  # rows with packed texts, fetched at once: some 1 MB
_READ = ", ".join(f"'{reason.value}'" for reason in sorted(READ))
_PAGES = (
    "SELECT u.id, u.text, h.site_id, u.reason, coalesce(p.body_id, 0), b.text, b.blocks, p.parts, p.title, p.language, p.language_found, p.media_type,"
    " p.last_modified, p.fetched, p.text_md5, p.folded_md5"
    " FROM page p JOIN url u ON u.id = p.url_id JOIN host h ON h.id = u.host_id LEFT JOIN body b ON b.id = p.body_id"
    f" WHERE u.reason IN ({_READ})"
)


class PageBlocks(NamedTuple):
    """A page and its text. body_id: 0: nothing was kept; parts: None: not marked yet; times in seconds since the epoch, 0.0: not known."""

    url_id: UrlId
    url: Url
    site_id: int
    reason: str
    body_id: int
    blocks: tuple[Block, ...]
    parts: tuple[Part, ...] | None
    title: str
    language: str  # as declared
    language_found: str  # as its words tell
    media_type: str
    last_modified: float
    fetched: float
    text_md5: bytes
    folded_md5: bytes


def pages_of(connection: sqlite3.Connection, ids: Iterable[UrlId]) -> Iterator[PageBlocks]:
    """Those of the URLs that are pages now, in the order given."""
    contents = Contents(connection)
    for url_id in ids:
        row = connection.execute(_PAGES + " AND p.url_id = ?", (url_id,)).fetchone()
        if row is not None:
            yield _page(contents, row)


def pages_of_site(connection: sqlite3.Connection, site_id: int, most: int = -1) -> Iterator[PageBlocks]:
    """The site's pages, by id. Streamed. most: no more than this, spread over them all as the ids are; -1: all."""
    contents = Contents(connection)
    cursor = connection.execute(_PAGES + " AND u.host_id IN (SELECT id FROM host WHERE site_id = ?) ORDER BY p.url_id LIMIT ?", (site_id, most))
    while rows := cursor.fetchmany(BLOCK_ROWS):
        for row in rows:
            yield _page(contents, row)


def _page(contents: Contents, row: Sequence[object]) -> PageBlocks:
    identity, url, site_id, reason, body_id, text, blocks, parts, *said = row
    found = contents.blocks_of(text, blocks)  # type: ignore[arg-type]  # as the columns are
    return PageBlocks(identity, url, site_id, reason, body_id, found, None if parts is None else unpack_parts(parts), *said)  # type: ignore[arg-type]


def write_parts(connection: sqlite3.Connection, marked: Iterable[tuple[UrlId, int, Sequence[Part]]]) -> None:
    """(page, its body_id when it was read, one part for each block). A page that has another body by now is left alone. Within a transaction."""
    rows = [(pack_parts(parts), url_id, body_id) for url_id, body_id, parts in marked]
    connection.executemany("UPDATE page SET parts = ? WHERE url_id = ? AND body_id = ?", rows)


class Anchor(NamedTuple):
    """Words in which pages speak of another."""

    text: str
    position: Position
    pages: int  # that have such a link
    source: UrlId  # one of them
