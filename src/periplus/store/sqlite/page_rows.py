"""What is known of one URL, and what was kept of its page: bytes and text as they were."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from periplus.model.page import NO_BLOCKS, Blocks, Part, SamePage
from periplus.model.tables import PAGE, Row, row_maker
from periplus.model.visit import Headers, Reason
from periplus.model.web import UrlId
from periplus.store.bodies import BodyCodec, blocks_of, unpack_headers, unpack_parts, unpack_sent
from periplus.store.corruption import reported
from periplus.store.sqlite.page_links import TO_TARGET
from periplus.store.sqlite.views import select

DUPLICATES_MOST = 50  # that are named


def page_row(connection: sqlite3.Connection, url_id: UrlId) -> Row | None:
    """A row of PAGE; None: the URL is not known."""
    row = connection.execute(select(PAGE, where=("u.id = ?",)), (url_id,)).fetchone()
    return row_maker(PAGE.names)(row) if row else None


class Brief(NamedTuple):
    """A URL in a few words. Empty, 0 and -1: not known."""

    id: int
    url: str
    title: str
    reason: str
    status: int
    media_type: str
    size: int
    depth: int


def briefs(connection: sqlite3.Connection, ids: Sequence[int]) -> list[Brief]:
    """What is known of these URLs, in their order; of what was deleted meanwhile nothing but its id."""
    find = (
        "SELECT u.id, u.text, coalesce(p.title, ''), u.reason, coalesce(u.status, 0), "
        "coalesce(p.media_type, ''), coalesce(p.size, 0),"
        " coalesce(u.depth, -1) FROM url u LEFT JOIN page p ON p.url_id = u.id"
        " WHERE u.id IN (SELECT value FROM json_each(?))"
    )
    by_id = {row[0]: Brief(*row) for row in connection.execute(find, (json.dumps(list(ids)),))}
    return [by_id.get(identity, Brief(identity, "", "", Reason.WAITING.value, 0, "", 0, -1)) for identity in ids]


def read_as(connection: sqlite3.Connection, url_id: UrlId) -> tuple[str, str] | None:
    """(media type, charset) that a page was read as, empty where it has none; None: it is no page."""
    row = connection.execute("SELECT media_type, charset FROM page WHERE url_id = ?", (url_id,)).fetchone()
    return (row[0] or "", row[1] or "") if row else None


def answer(
    connection: sqlite3.Connection, url_id: UrlId, among: Sequence[int] | None = None
) -> tuple[int, Headers] | None:
    """Status and header of the answer that brought the page's body; of the last answer where none did;
    None where none is known.

    among: the visits to look at; None: all, one by one.
    """
    find = (
        "SELECT v.status, v.head FROM visit v WHERE v.url_id = ? AND v.purpose = 'page'"
        f" AND v.head IS NOT NULL{_one_of('v.id', among)}"
        " ORDER BY v.outcome = 'fetched' AND v.status BETWEEN 200 AND 299 DESC, v.id DESC LIMIT 1"
    )
    row = connection.execute(find, (url_id, *_as_json(among))).fetchone()
    return (row[0], unpack_headers(row[1])) if row else None


def _one_of(column: str, among: Sequence[int] | None) -> str:
    return "" if among is None else f" AND {column} IN (SELECT value FROM json_each(?))"


def _as_json(among: Sequence[int] | None) -> tuple[str, ...]:
    return () if among is None else (json.dumps(among),)


def first_seen(connection: sqlite3.Connection, url_id: UrlId) -> float | None:
    """When a URL was first seen, in seconds since the epoch; None: never."""
    row = connection.execute("SELECT first_seen FROM url WHERE id = ?", (url_id,)).fetchone()
    return float(row[0]) if row else None


def leads_to(connection: sqlite3.Connection, url_id: UrlId) -> str | None:
    """Where a redirect leads, or the page that a URL is another address of; None: it is neither."""
    find = (
        "SELECT t.text FROM url u LEFT JOIN alias a ON a.url_id = u.id"
        " LEFT JOIN link l ON l.source = u.id AND l.kind = 'redirect'"
        " JOIN url t ON t.id = coalesce(l.target, a.page_id)"
        " WHERE u.id = ? AND u.reason IN ('redirect', 'alias') ORDER BY l.last_seen DESC LIMIT 1"
    )
    row = connection.execute(find, (url_id,)).fetchone()
    return str(row[0]) if row else None


def is_shown(connection: sqlite3.Connection, url_id: UrlId) -> bool:
    """Whether its bytes were kept, or it leads on to another URL."""
    find = (
        "SELECT u.reason IN ('redirect', 'alias') OR length(b.data) > 0 FROM url u"
        " LEFT JOIN page p ON p.url_id = u.id LEFT JOIN body b ON b.id = p.body_id WHERE u.id = ?"
    )
    row = connection.execute(find, (url_id,)).fetchone()
    return bool(row and row[0])


def count_inlinks(connection: sqlite3.Connection, url_id: UrlId) -> int:
    """Pages that link to it, itself not. Looks at every link."""
    return int(
        connection.execute(
            f"SELECT count(DISTINCT source) FROM {TO_TARGET} AND source <> ?", (url_id, url_id)
        ).fetchone()[0]
    )


def count_outlinks(connection: sqlite3.Connection, url_id: UrlId) -> int:
    """URLs that it links to, itself not."""
    return int(
        connection.execute(
            "SELECT count(DISTINCT target) FROM link WHERE source = ? AND target <> ?", (url_id, url_id)
        ).fetchone()[0]
    )


def folded_digest(connection: sqlite3.Connection, url_id: UrlId) -> bytes:
    """The digest of the page's folded words. It has a page."""
    return bytes(connection.execute("SELECT folded_md5 FROM page WHERE url_id = ?", (url_id,)).fetchone()[0])


def duplicates(
    connection: sqlite3.Connection, url_id: UrlId, among: Sequence[int] | None = None
) -> tuple[SamePage, ...]:
    """Other pages that say the same, the most alike first, at most DUPLICATES_MOST.

    among: the pages to look at; None: all.
    """
    find = (
        "SELECT u.text, CASE WHEN o.body_md5 = p.body_md5 THEN 'bytes' WHEN o.text_md5 = p.text_md5 THEN "
        "'words' ELSE 'folded' END AS same"
        " FROM page p JOIN page o ON o.folded_md5 = p.folded_md5 AND o.url_id <> p.url_id"
        " JOIN url u ON u.id = o.url_id"
        f" WHERE p.url_id = ?{_one_of('o.url_id', among)} ORDER BY o.body_md5 <> p.body_md5, o.text_md5 "
        "<> p.text_md5, u.text LIMIT ?"
    )
    return tuple(SamePage._make(row) for row in connection.execute(find, (url_id, *_as_json(among), DUPLICATES_MOST)))


_NAMED = (
    "SELECT p.title, b.text FROM page p LEFT JOIN body b ON b.id = p.body_id"
    " WHERE p.url_id = coalesce((SELECT page_id FROM alias WHERE url_id = ? AND moved <> ''), ?)"
)
_OF_PAGE = "FROM page p JOIN body b ON b.id = p.body_id WHERE p.url_id = ?"


class Contents:
    """Reads bodies over one connection; the sites' dictionaries are loaded as they are met.

    What is damaged raises StoreError.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.codec = BodyCodec()

    def body(self, url_id: UrlId) -> bytes | None:
        """The page's bytes, content codings removed; None if none were kept."""
        row = self._connection.execute(f"SELECT b.data, b.dictionary_id, b.text {_OF_PAGE}", (url_id,)).fetchone()
        return self.restore(*row) if row and row[0] else None

    def sent(self, url_id: UrlId) -> bytes | None:
        """Of a rendered page, its bytes as the server sent them; None: it is no rendered one, or they were not kept."""
        row = self._connection.execute("SELECT sent FROM rendering WHERE url_id = ?", (url_id,)).fetchone()
        return unpack_sent(row[0]) or None if row else None

    def screenshot(self, url_id: UrlId) -> bytes | None:
        """A picture of a rendered page, as WebP; None: there is none."""
        row = self._connection.execute("SELECT screenshot FROM rendering WHERE url_id = ?", (url_id,)).fetchone()
        return row[0] if row else None

    def text(self, url_id: UrlId) -> str | None:
        """The page's text; None if it was not kept, or there is none."""
        row = self._connection.execute(f"SELECT b.text {_OF_PAGE}", (url_id,)).fetchone()
        return self._decoded(row[0]) if row and row[0] is not None else None

    def title_and_text(self, url_id: UrlId) -> tuple[str, str]:
        """Of a page, also by another of its addresses; empty: it has none, or it was not kept."""
        row = self._connection.execute(_NAMED, (url_id, url_id)).fetchone()
        return (row[0], "" if row[1] is None else self._decoded(row[1])) if row else ("", "")

    def _decoded(self, packed_text: bytes) -> str:
        with reported():
            return self.codec.unpack(packed_text, None).decode()

    def blocks(self, url_id: UrlId) -> Blocks:
        """The page's blocks.

        Of a page whose text alone was kept each line is one; none: there is no text, or it was not kept.
        """
        row = self._connection.execute(f"SELECT b.text, b.blocks {_OF_PAGE}", (url_id,)).fetchone()
        return self.blocks_of(*row) if row else NO_BLOCKS

    def blocks_of(self, packed_text: bytes | None, packed_blocks: bytes | None) -> Blocks:
        """Blocks from the columns `text` and `blocks` of a body."""
        return blocks_of("" if packed_text is None else self._decoded(packed_text), packed_blocks)

    def parts(self, url_id: UrlId) -> tuple[Part, ...] | None:
        """One part for each of the page's blocks; None: they are not marked yet."""
        row = self._connection.execute("SELECT parts FROM page WHERE url_id = ?", (url_id,)).fetchone()
        return unpack_parts(row[0]) if row and row[0] is not None else None

    def xml(self, url_id: UrlId) -> tuple[bytes, str] | None:
        """The page's canonical XML and the media type of that, if it was kept."""
        row = self._connection.execute(
            "SELECT x.data, x.media_type FROM page p JOIN xml x ON x.body_id = p.body_id WHERE p.url_id = ?", (url_id,)
        ).fetchone()
        return (self.codec.unpack(row[0], None), row[1]) if row else None

    def restore(self, data: bytes, dictionary_id: int | None, text: bytes | None) -> bytes:
        """A stored body as it was, of the columns `data`, `dictionary_id` and `text`."""
        if dictionary_id is not None:
            self.learn(dictionary_id)
        return self.codec.unpack_body(data, dictionary_id, text)

    def learn(self, dictionary_id: int) -> None:
        """Makes a stored dictionary known to the codec."""
        if not self.codec.knows(dictionary_id):
            row = self._connection.execute("SELECT data FROM dictionary WHERE id = ?", (dictionary_id,)).fetchone()
            self.codec.add(dictionary_id, row[0] if row else b"")
