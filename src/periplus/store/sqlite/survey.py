"""Reads and changes data of surveys: notes, scope, links, and visits."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np

from periplus.model.arrays import Ints
from periplus.model.frontier import LinkSighting, PageVisit
from periplus.model.graph import LinkRows, UrlRows
from periplus.model.page import LinkKind
from periplus.model.ports import CrawlScope
from periplus.model.tables import any_of
from periplus.model.visit import Reason
from periplus.model.web import HostKey, Url, UrlId
from periplus.store import crawl_reads, notes
from periplus.store.sqlite import page_links
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.sqlite.reading import rows
from periplus.store.sqlite.schema import SqliteStatements
from periplus.store.sqlite.site_rows import joined_links, link_blocks, number_blocks, row_blocks
from periplus.store.statements import Statements
from periplus.store.url_state import MAY_PASS, SITE_REMOVED_RULE, UNKNOWN_DEPTH
from periplus.urls.units import root_of

T = TypeVar("T")


def note(connection: sqlite3.Connection, name: str) -> str:
    """Value of a note, or empty."""
    return notes.note(SqliteStatements(connection), name)


def apply_scope(connection: sqlite3.Connection, scope: CrawlScope) -> None:
    """See `model.ports.RunStore.apply_scope`. Call it within a transaction."""
    _reassign_hosts(connection, scope)
    moves: Counter[str] = Counter()
    gone: list[tuple[int]] = []
    come: list[tuple[str, bool, int]] = []
    for row, text, reason, rule in connection.execute(
        "SELECT id, text, reason, rule FROM url WHERE reason IN ('waiting', 'scope', 'depth')"
    ):
        inside = scope.decide(Url(text)) is None
        if inside and reason == Reason.SCOPE:
            come.append((UNKNOWN_DEPTH, rule == SITE_REMOVED_RULE, row))
        elif not inside and reason != Reason.SCOPE:
            gone.append((row,))
            moves[reason] += 1
    connection.executemany("UPDATE url SET reason = 'depth', rule = ?, depth = iif(?, depth, NULL) WHERE id = ?", come)
    connection.executemany(
        "UPDATE url SET reason = 'scope', rule = ? WHERE id = ?", [(SITE_REMOVED_RULE, *row) for row in gone]
    )
    _count(
        connection,
        {"scope": len(gone) - len(come), "depth": len(come) - moves["depth"], "waiting": -moves["waiting"]},
    )
    _drop_entries(connection, gone)


def _reassign_hosts(connection: sqlite3.Connection, scope: CrawlScope) -> None:
    rows = connection.execute("SELECT h.id, h.key, s.key FROM host h JOIN site s ON s.id = h.site_id").fetchall()
    moved = [(site, host_id) for host_id, host, held in rows if (site := scope.site_of(root_of(HostKey(host)))) != held]
    connection.executemany("INSERT OR IGNORE INTO site (key) VALUES (?)", [(site,) for site, _ in moved])
    connection.executemany("UPDATE host SET site_id = (SELECT id FROM site WHERE key = ?) WHERE id = ?", moved)
    if moved:
        connection.execute(
            "UPDATE site SET fetched = (SELECT coalesce(sum(fetched), 0) FROM host WHERE site_id = site.id)"
        )


def _drop_entries(connection: sqlite3.Connection, gone: list[tuple[int]]) -> None:
    if not gone:
        return
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS gone (id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM gone")
    connection.executemany("INSERT INTO gone VALUES (?)", gone)
    connection.execute("DELETE FROM queue WHERE url_id IN (SELECT id FROM gone)")
    hosts = "SELECT DISTINCT u.host_id FROM gone g JOIN url u ON u.id = g.id"
    connection.execute(
        f"UPDATE host SET pending = (SELECT count(*) FROM queue q WHERE q.host_id = host.id) WHERE id IN ({hosts})"
    )


def _count(connection: sqlite3.Connection, changes: dict[str, int]) -> None:
    upsert = "INSERT INTO tally VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
    connection.executemany(upsert, [("reason:" + name, change) for name, change in changes.items() if change])


# Links that a reader follows, including frames. Canonical, alternate and form links are not references to other pages.
HYPERLINKS = (LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FRAME, LinkKind.IFRAME, LinkKind.REFRESH)
_SURVEY_KINDS = frozenset(HYPERLINKS)
_SURVEY_HYPERLINKS = any_of(HYPERLINKS)
_BLOCK = 10_000  # rows converted to columns at a time
_NOT_READ = "('redirect', 'alias', 'rule')"


class ExternalLink(NamedTuple):
    """A link from a fetched page to another host, with its context."""

    source: Url
    target: Url
    anchor: str
    position: str
    kind: str
    title: str  # title of the page
    times: int


def every_url(connection: sqlite3.Connection) -> UrlRows:
    """All URLs of the collection, ascending by id, without depths (-1)."""
    return UrlRows.of(row_blocks(connection.execute("SELECT id, text, reason, -1 FROM url ORDER BY id")))


def hyperlinks(connection: sqlite3.Connection) -> LinkRows:
    """All hyperlinks of all pages, by source; may contain duplicates."""
    of_read = f"url u CROSS JOIN page_links l ON l.source = u.id WHERE u.reason NOT IN {_NOT_READ} ORDER BY u.id"
    blocks = link_blocks(connection, of_read, kinds=_SURVEY_KINDS)
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


def external_links(connection: sqlite3.Connection) -> Iterator[ExternalLink]:
    """Streams all hyperlinks between hosts with their context, by source."""
    find = (
        "SELECT u.text, t.text, l.anchor, l.position, l.kind, coalesce(p.title, ''), l.times FROM url u CROSS"
        " JOIN link l ON l.source = u.id"
        f" JOIN url t ON t.id = l.target LEFT JOIN page p ON p.url_id = u.id WHERE l.kind IN {_SURVEY_HYPERLINKS}"
        f" AND t.host_id <> u.host_id AND u.reason NOT IN {_NOT_READ} ORDER BY u.id, l.target"
    )
    yield from map(ExternalLink._make, rows(connection.execute(find)))


_HYPERLINKS = any_of(HYPERLINKS)
_MATCHING = "(? = '' OR matches({column}, ?))"


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


_VISITS = (
    "SELECT v.id, v.url_id, u.text, u.depth, v.took_s, v.outcome <> 'skipped',"
    f" v.outcome = 'fetched' AND v.status BETWEEN 200 AND 299, {MAY_PASS}, iif(v.outcome = 'redirected', v.detail, '')"
    " FROM visit v JOIN url u ON u.id = v.url_id WHERE v.id > ? AND v.purpose = 'page' AND v.url_id <> 0 ORDER BY v.id"
)
_LINKS = (
    "SELECT u.text, l.kind, l.position, l.anchor, l.nofollow FROM link l JOIN url u ON u.id = l.target"
    f" WHERE l.source = ? AND l.kind <> '{LinkKind.REDIRECT.value}'"
)


def visits(connection: sqlite3.Connection, after: int, *, texts: bool = False) -> Iterator[PageVisit]:
    """See `model.ports.CrawlStore.visits`."""
    for visit, page, url, depth, took_s, *flags, redirect in connection.execute(_VISITS, (after,)):
        asked, read, may_pass = map(bool, flags)
        stored = PageVisit(visit, UrlId(page), Url(url), depth, took_s, asked, read, may_pass, Url(redirect))
        if read:
            links = [
                LinkSighting(Url(target), kind, position, anchor, bool(nofollow))
                for target, kind, position, anchor, nofollow in connection.execute(_LINKS, (page,))
            ]
            stored = stored._replace(links=tuple(links))
        if read and texts:
            for text in SqliteReader(connection).page_blocks([stored.url_id]):
                stored = stored._replace(title=text.title, blocks=text.blocks, parts=text.parts)
        yield stored


class SurveyReader(crawl_reads.RunReads):
    """`model.ports.VisitReader` over one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read(self, action: Callable[[Statements], T]) -> T:
        return action(SqliteStatements(self._connection))

    def visits(self, after: int, *, texts: bool = False) -> Iterator[PageVisit]:
        return visits(self._connection, after, texts=texts)
