"""What is known of one URL: its row, what was read of it, the answer that brought it, links, and pages that are the same?"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from periplus.model.visit import Headers
from periplus.model.web import UrlId
from periplus.store.heads import unpack_head
from periplus.store.sqlite.listing import PAGE_COLUMNS, PageRow, utc_time

TWINS_MOST = 50  # that are named


class Reading(NamedTuple):
    """What was read of a fetched page, beyond its row."""

    fetched: str  # ISO 8601, UTC
    other_charset: str
    language_found: str
    body_digest: str  # hexadecimal, like the two below
    text_digest: str
    folded_digest: str
    has_body: bool
    has_text: bool
    has_xml: bool


class Twin(NamedTuple):
    """Another page with the same bytes, words, or words but for diacritics and case."""

    url: str
    same: str  # bytes, words, folded


def page_row(connection: sqlite3.Connection, url_id: UrlId) -> PageRow | None:
    find = (
        f"SELECT {', '.join(PAGE_COLUMNS[name] for name in PageRow._fields)} FROM url u JOIN host h ON h.id = u.host_id JOIN site s ON s.id = h.site_id"
        " JOIN reason r ON r.name = u.reason LEFT JOIN page p ON p.url_id = u.id WHERE u.id = ?"
    )
    row = connection.execute(find, (url_id,)).fetchone()
    return PageRow._make(row) if row else None


def reading_of(connection: sqlite3.Connection, url_id: UrlId) -> Reading | None:
    """None: the URL has no page."""
    find = (
        f"SELECT {utc_time('p.fetched')}, p.other_charset, p.language_found, lower(hex(p.body_md5)), lower(hex(p.text_md5)), lower(hex(p.folded_md5)),"
        " coalesce(length(b.data) > 0, 0), b.text IS NOT NULL, x.body_id IS NOT NULL"
        " FROM page p LEFT JOIN body b ON b.id = p.body_id LEFT JOIN xml x ON x.body_id = p.body_id WHERE p.url_id = ?"
    )
    row = connection.execute(find, (url_id,)).fetchone()
    return Reading(*row[:6], *map(bool, row[6:])) if row else None


def answer(connection: sqlite3.Connection, url_id: UrlId) -> tuple[int, Headers] | None:
    """Status and header of the answer that brought the page's body; of the last answer where none did; None where none is known."""
    find = (
        "SELECT v.status, v.head FROM visit v WHERE v.url_id = ? AND v.purpose = 'page' AND v.head IS NOT NULL"
        " ORDER BY v.outcome = 'fetched' AND v.status BETWEEN 200 AND 299 DESC, v.id DESC LIMIT 1"
    )
    row = connection.execute(find, (url_id,)).fetchone()
    return (row[0], unpack_head(row[1])) if row else None


def link_counts(connection: sqlite3.Connection, url_id: UrlId) -> tuple[int, int]:
    """(pages that link to it, URLs that it links to), each counted once."""
    into = connection.execute("SELECT count(DISTINCT source) FROM link WHERE target = ? AND source <> ?", (url_id, url_id)).fetchone()[0]
    out = connection.execute("SELECT count(DISTINCT target) FROM link WHERE source = ? AND target <> ?", (url_id, url_id)).fetchone()[0]
    return into, out


def twins(connection: sqlite3.Connection, url_id: UrlId) -> tuple[Twin, ...]:
    """Other pages that say the same, the most alike first, at most TWINS_MOST."""
    find = (
        "SELECT u.text, CASE WHEN o.body_md5 = p.body_md5 THEN 'bytes' WHEN o.text_md5 = p.text_md5 THEN 'words' ELSE 'folded' END AS same"
        " FROM page p JOIN page o ON o.folded_md5 = p.folded_md5 AND o.url_id <> p.url_id JOIN url u ON u.id = o.url_id"
        " WHERE p.url_id = ? ORDER BY same, u.text LIMIT ?"
    )
    return tuple(Twin._make(row) for row in connection.execute(find, (url_id, TWINS_MOST)))
