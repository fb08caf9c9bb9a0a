"""Which links do the pages of a survey hold, with level and surroundings, and how are some of them deleted?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from periplus.model.web import Url
from periplus.store.sqlite.reading import rows
from periplus.store.sqlite.survey_rows import HYPERLINKS

_HYPERLINKS = ", ".join(f"'{kind.value}'" for kind in HYPERLINKS)
_MATCHING = "(? = '' OR matches({column}, ?))"


class LinkKey(NamedTuple):
    """What names a row of the table link."""

    source: int
    target: int
    kind: str
    position: str
    nofollow: int


class KeptLink(NamedTuple):
    """A hyperlink of a fetched page, frames among them."""

    key: LinkKey
    page: Url
    target: Url
    anchor: str
    title: str
    times: int
    level: int | None
    reason: str
    visited: bool


class KeptBad(NamedTuple):
    """What stood in an href and is no address."""

    row: int
    page: Url
    text: str
    why: str
    anchor: str
    position: str


def links(connection: sqlite3.Connection, page: str, target: str, anchor: str) -> Iterator[KeptLink]:
    """Those whose page, target and anchor contain or match these; empty: any. Page by page, streamed."""
    where = " AND ".join(_MATCHING.format(column=column) for column in ("a.text", "b.text", "l.anchor"))
    find = (
        "SELECT l.source, l.target, l.kind, l.position, l.nofollow, a.text, b.text, l.anchor, coalesce(p.title, ''), l.times, b.layer, b.reason,"
        " b.visited IS NOT NULL FROM url a CROSS JOIN link l ON l.source = a.id JOIN url b ON b.id = l.target LEFT JOIN page p ON p.url_id = a.id"
        f" WHERE l.kind IN ({_HYPERLINKS}) AND {where} ORDER BY a.id, l.target"
    )
    for row in rows(connection.execute(find, (page, page, target, target, anchor, anchor))):
        yield KeptLink(LinkKey._make(row[:5]), *row[5:])  # type: ignore[arg-type]  # the columns stand in the order of the fields


def bad_links(connection: sqlite3.Connection, page: str, target: str, anchor: str) -> Iterator[KeptBad]:
    """The same of what is no address; target: what was written."""
    where = " AND ".join(_MATCHING.format(column=column) for column in ("a.text", "b.text", "b.anchor"))
    find = f"SELECT b.rowid, a.text, b.text, b.why, b.anchor, b.position FROM bad_link b JOIN url a ON a.id = b.source WHERE {where} ORDER BY a.id, b.rowid"
    for row in rows(connection.execute(find, (page, page, target, target, anchor, anchor))):
        yield KeptBad(*row)  # type: ignore[arg-type]  # the same


def delete_links(connection: sqlite3.Connection, keys: Iterable[LinkKey]) -> int:
    """How many went. Within a transaction."""
    drop = "DELETE FROM link WHERE source = ? AND target = ? AND kind = ? AND position = ? AND nofollow = ?"
    return connection.executemany(drop, keys).rowcount


def delete_bad(connection: sqlite3.Connection, numbers: Iterable[int]) -> int:
    """The same of bad links."""
    return connection.executemany("DELETE FROM bad_link WHERE rowid = ?", [(number,) for number in numbers]).rowcount
