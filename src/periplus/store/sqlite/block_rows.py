"""What do the pages say, block by block, and in which words do others speak of them?"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from periplus.document.digest import without_marks
from periplus.model.freshness import READ
from periplus.model.page import Block, Part, Position
from periplus.model.web import Url, UrlId
from periplus.store.sqlite.contents import Contents
from periplus.store.structure import pack_parts, unpack_parts

ANCHORS_HEEDED = 1_000  # different ones of one page: a home page has hundreds, and a hostile site must not fill the memory
LINKS_AT_ONCE = 5_000  # rows without packed texts
BLOCK_ROWS = 100  # rows with packed texts, fetched at once: some 1 MB
_READ = ", ".join(f"'{reason.value}'" for reason in sorted(READ))
_PAGES = (
    "SELECT u.id, u.text, h.site_id, u.reason, coalesce(p.body_id, 0), b.text, b.blocks, p.parts, p.title, p.language, p.language_found, p.media_type,"
    " p.last_modified, p.fetched, p.text_md5, p.folded_md5"
    " FROM page p JOIN url u ON u.id = p.url_id JOIN host h ON h.id = u.host_id LEFT JOIN body b ON b.id = p.body_id"
    f" WHERE u.reason IN ({_READ})"
)
_ANCHORS = "SELECT target, source, anchor, position FROM link"
_OF_PAGES = "kind IN ('a', 'area') AND anchor <> '' AND target <> source"


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
    """Words in which pages speak of another, case and diacritics apart, in one landmark."""

    text: str  # as it was first met
    position: Position
    pages: int  # that have such a link
    source: UrlId  # one of them


def anchors_to(connection: sqlite3.Connection, targets: Collection[UrlId], most: int = 20) -> dict[UrlId, list[Anchor]]:
    """By page, the words of the links to it from other pages, the most frequent first; pages without any are left out. most: of each page.

    One pass through all links, whatever the number of targets: 0.4 s for a million. An index on the targets would cost 370 us and 1.6 kB
    a page while crawling, so ask for many pages at once; or keep count by `anchors_from`, page by page as they come.
    """
    found: dict[int, dict[tuple[str, str], list[Any]]] = {}
    of_targets = "target IN (SELECT value FROM json_each(?))"
    for target, source, text, position in _rows(connection.execute(f"{_ANCHORS} WHERE {_OF_PAGES} AND {of_targets}", (json.dumps(list(targets)),))):
        words = found.setdefault(target, {})
        key = (without_marks(text), position)
        if (row := words.get(key)) is not None:
            row[1] += 1
        elif len(words) < ANCHORS_HEEDED:
            words[key] = [text, 1, source]
    return {UrlId(target): _most_frequent(words, most) for target, words in found.items()}


def _most_frequent(words: dict[tuple[str, str], list[Any]], most: int) -> list[Anchor]:
    anchors = [Anchor(text, Position(position), pages, UrlId(source)) for (_, position), (text, pages, source) in words.items()]
    return sorted(anchors, key=lambda anchor: (-anchor.pages, anchor.position, anchor.text))[:most]


def anchors_from(connection: sqlite3.Connection, sources: Iterable[UrlId]) -> Iterator[tuple[UrlId, UrlId, str, Position]]:
    """(target, source, words, landmark) of each page's links to other pages: what a follower needs to keep count of what it saw."""
    for source in sources:
        for target, _, text, position in connection.execute(f"{_ANCHORS} WHERE source = ? AND {_OF_PAGES}", (source,)):
            yield UrlId(target), source, text, Position(position)


def _rows(cursor: sqlite3.Cursor) -> Iterator[tuple[int, int, str, str]]:
    while rows := cursor.fetchmany(LINKS_AT_ONCE):
        yield from rows
