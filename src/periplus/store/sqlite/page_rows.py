"""Reads the data of one URL, and the stored content of its page."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from periplus.model.page import NO_BLOCKS, Blocks, Part, SamePage
from periplus.model.tables import PAGE, Row, row_maker
from periplus.model.visit import Headers, Reason
from periplus.model.web import UrlId
from periplus.store.bodies import BodyCodec, blocks_of, unpack_headers, unpack_original, unpack_parts
from periplus.store.corruption import translate_errors
from periplus.store.sqlite.page_links import TO_TARGET
from periplus.store.sqlite.views import select

DUPLICATES_MOST = 50  # maximum listed


def page_row(connection: sqlite3.Connection, url_id: UrlId) -> Row | None:
    """A row of PAGE, or None if the URL is unknown."""
    row = connection.execute(select(PAGE, where=("u.id = ?",)), (url_id,)).fetchone()
    return row_maker(PAGE.names)(row) if row else None


class Brief(NamedTuple):
    """Short description of a URL. Empty, 0 and -1: unknown."""

    id: int
    url: str
    title: str
    reason: str
    status: int
    media_type: str
    size: int
    depth: int


def briefs(connection: sqlite3.Connection, ids: Sequence[int]) -> list[Brief]:
    """Short descriptions of URLs, in the order given; of a deleted URL only the id."""
    find = (
        "SELECT u.id, u.text, coalesce(p.title, ''), u.reason, coalesce(u.status, 0), "
        "coalesce(p.media_type, ''), coalesce(p.size, 0),"
        " coalesce(u.depth, -1) FROM url u LEFT JOIN page p ON p.url_id = u.id"
        " WHERE u.id IN (SELECT value FROM json_each(?))"
    )
    by_id = {row[0]: Brief(*row) for row in connection.execute(find, (json.dumps(list(ids)),))}
    return [by_id.get(identity, Brief(identity, "", "", Reason.WAITING.value, 0, "", 0, -1)) for identity in ids]


def read_as(connection: sqlite3.Connection, url_id: UrlId) -> tuple[str, str] | None:
    """(media type, charset) used to parse a page, may be empty; None if it is not a page."""
    row = connection.execute("SELECT media_type, charset FROM page WHERE url_id = ?", (url_id,)).fetchone()
    return (row[0] or "", row[1] or "") if row else None


def answer(
    connection: sqlite3.Connection, url_id: UrlId, among: Sequence[int] | None = None
) -> tuple[int, Headers] | None:
    """Status and headers of the response with the page's body, else of the last response; None if there is none.

    among: visit ids to consider; None: all.
    """
    find = (
        "SELECT v.status, v.head FROM visit v WHERE v.url_id = ? AND v.purpose = 'page'"
        f" AND v.head IS NOT NULL{_in_list('v.id', among)}"
        " ORDER BY v.outcome = 'fetched' AND v.status BETWEEN 200 AND 299 DESC, v.id DESC LIMIT 1"
    )
    row = connection.execute(find, (url_id, *_as_json(among))).fetchone()
    return (row[0], unpack_headers(row[1])) if row else None


def _in_list(column: str, among: Sequence[int] | None) -> str:
    return "" if among is None else f" AND {column} IN (SELECT value FROM json_each(?))"


def _as_json(among: Sequence[int] | None) -> tuple[str, ...]:
    return () if among is None else (json.dumps(among),)


def first_seen_s(connection: sqlite3.Connection, url_id: UrlId) -> float | None:
    """Time when a URL was first seen, in seconds since the epoch, or None."""
    row = connection.execute("SELECT first_seen FROM url WHERE id = ?", (url_id,)).fetchone()
    return float(row[0]) if row else None


def leads_to(connection: sqlite3.Connection, url_id: UrlId) -> str | None:
    """Target of a redirect, or page of an alias, or None."""
    find = (
        "SELECT t.text FROM url u LEFT JOIN alias a ON a.url_id = u.id"
        " LEFT JOIN link l ON l.source = u.id AND l.kind = 'redirect'"
        " JOIN url t ON t.id = coalesce(l.target, a.page_id)"
        " WHERE u.id = ? AND u.reason IN ('redirect', 'alias') ORDER BY l.last_seen DESC LIMIT 1"
    )
    row = connection.execute(find, (url_id,)).fetchone()
    return str(row[0]) if row else None


def is_shown(connection: sqlite3.Connection, url_id: UrlId) -> bool:
    """Whether its bytes are stored, or it leads to another URL."""
    find = (
        "SELECT u.reason IN ('redirect', 'alias') OR length(b.data) > 0 FROM url u"
        " LEFT JOIN page p ON p.url_id = u.id LEFT JOIN body b ON b.id = p.body_id WHERE u.id = ?"
    )
    row = connection.execute(find, (url_id,)).fetchone()
    return bool(row and row[0])


def count_inlinks(connection: sqlite3.Connection, url_id: UrlId) -> int:
    """Number of pages that link to it, without itself. Scans all links."""
    return int(
        connection.execute(
            f"SELECT count(DISTINCT source) FROM {TO_TARGET} AND source <> ?", (url_id, url_id)
        ).fetchone()[0]
    )


def count_outlinks(connection: sqlite3.Connection, url_id: UrlId) -> int:
    """Number of URLs that it links to, without itself."""
    return int(
        connection.execute(
            "SELECT count(DISTINCT target) FROM link WHERE source = ? AND target <> ?", (url_id, url_id)
        ).fetchone()[0]
    )


def folded_digest(connection: sqlite3.Connection, url_id: UrlId) -> bytes:
    """Digest of the page's folded words. The page must exist."""
    return bytes(connection.execute("SELECT folded_md5 FROM page WHERE url_id = ?", (url_id,)).fetchone()[0])


def duplicates(
    connection: sqlite3.Connection, url_id: UrlId, among: Sequence[int] | None = None
) -> tuple[SamePage, ...]:
    """Pages with the same words, most similar first, at most DUPLICATES_MOST.

    among: page ids to consider; None: all.
    """
    find = (
        "SELECT u.text, CASE WHEN o.body_md5 = p.body_md5 THEN 'bytes' WHEN o.text_md5 = p.text_md5 THEN "
        "'words' ELSE 'folded' END AS same"
        " FROM page p JOIN page o ON o.folded_md5 = p.folded_md5 AND o.url_id <> p.url_id"
        " JOIN url u ON u.id = o.url_id"
        f" WHERE p.url_id = ?{_in_list('o.url_id', among)} ORDER BY o.body_md5 <> p.body_md5, o.text_md5 "
        "<> p.text_md5, u.text LIMIT ?"
    )
    return tuple(SamePage._make(row) for row in connection.execute(find, (url_id, *_as_json(among), DUPLICATES_MOST)))


_TITLES_AND_TEXTS = (
    "SELECT p.title, b.text FROM page p LEFT JOIN body b ON b.id = p.body_id"
    " WHERE p.url_id = coalesce((SELECT page_id FROM alias WHERE url_id = ? AND moved <> ''), ?)"
)
_OF_PAGE = "FROM page p JOIN body b ON b.id = p.body_id WHERE p.url_id = ?"


class Contents:
    """Reads bodies over one connection. Dictionaries are loaded on demand.

    Raises StoreError for damaged data.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.codec = BodyCodec()

    def body(self, url_id: UrlId) -> bytes | None:
        """The page's bytes, without content codings; None if not stored."""
        row = self._connection.execute(f"SELECT b.data, b.dictionary_id, b.text {_OF_PAGE}", (url_id,)).fetchone()
        return self.restore(*row) if row and row[0] else None

    def original_body(self, url_id: UrlId) -> bytes | None:
        """Original bytes of a rendered page; None if it is not rendered or they are not stored."""
        row = self._connection.execute("SELECT sent FROM rendering WHERE url_id = ?", (url_id,)).fetchone()
        return unpack_original(row[0]) or None if row else None

    def screenshot(self, url_id: UrlId) -> bytes | None:
        """Screenshot of a rendered page, as WebP, or None."""
        row = self._connection.execute("SELECT screenshot FROM rendering WHERE url_id = ?", (url_id,)).fetchone()
        return row[0] if row else None

    def text(self, url_id: UrlId) -> str | None:
        """The page's text; None if there is none or it is not stored."""
        row = self._connection.execute(f"SELECT b.text {_OF_PAGE}", (url_id,)).fetchone()
        return self._decode(row[0]) if row and row[0] is not None else None

    def title_and_text(self, url_id: UrlId) -> tuple[str, str]:
        """(title, text) of a page, which may be given by an alias; empty if there is none or it is not stored."""
        row = self._connection.execute(_TITLES_AND_TEXTS, (url_id, url_id)).fetchone()
        return (row[0], "" if row[1] is None else self._decode(row[1])) if row else ("", "")

    def _decode(self, packed_text: bytes) -> str:
        with translate_errors():
            return self.codec.unpack(packed_text, None).decode()

    def blocks(self, url_id: UrlId) -> Blocks:
        """The page's blocks.

        If only the text is stored, each line is a block; no blocks if there is no text.
        """
        row = self._connection.execute(f"SELECT b.text, b.blocks {_OF_PAGE}", (url_id,)).fetchone()
        return self.blocks_of(*row) if row else NO_BLOCKS

    def blocks_of(self, packed_text: bytes | None, packed_blocks: bytes | None) -> Blocks:
        """Blocks from the columns `text` and `blocks` of a body."""
        return blocks_of("" if packed_text is None else self._decode(packed_text), packed_blocks)

    def parts(self, url_id: UrlId) -> tuple[Part, ...] | None:
        """Part of each of the page's blocks; None if they are not classified yet."""
        row = self._connection.execute("SELECT parts FROM page WHERE url_id = ?", (url_id,)).fetchone()
        return unpack_parts(row[0]) if row and row[0] is not None else None

    def xml(self, url_id: UrlId) -> tuple[bytes, str] | None:
        """(canonical XML, media type) of the page, or None."""
        row = self._connection.execute(
            "SELECT x.data, x.media_type FROM page p JOIN xml x ON x.body_id = p.body_id WHERE p.url_id = ?", (url_id,)
        ).fetchone()
        return (self.codec.unpack(row[0], None), row[1]) if row else None

    def restore(self, data: bytes, dictionary_id: int | None, text: bytes | None) -> bytes:
        """Decompresses a body from the columns `data`, `dictionary_id` and `text`."""
        if dictionary_id is not None:
            self.learn(dictionary_id)
        return self.codec.unpack_body(data, dictionary_id, text)

    def learn(self, dictionary_id: int) -> None:
        """Loads a stored dictionary into the codec."""
        if not self.codec.knows(dictionary_id):
            row = self._connection.execute("SELECT data FROM dictionary WHERE id = ?", (dictionary_id,)).fetchone()
            self.codec.add(dictionary_id, row[0] if row else b"")
