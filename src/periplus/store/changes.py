"""Changes of pages since a follower last read them. Followers: the search index, the classification of content.

Triggers record each page that is stored, replaced, moved to another URL, or removed, in the same transaction, so that
no change is lost in a crash. A change has no details; the current state is in the page's rows. A follower has a name
and a position. It first scans all pages by id, then reads the changes since it began, and advances its position when it
has processed them, best in the same transaction as its own output. Changes that all followers have processed are
deleted. Without followers nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from xxhash import xxh3_64_intdigest

from periplus.model.frontier import READ
from periplus.model.tables import any_of
from periplus.model.web import UrlId
from periplus.store.crawl_reads import PageBlocks
from periplus.store.reader import CollectionReader
from periplus.store.statements import Statements

UNSEEN = 0  # stamp of a page that changed since it was indexed; other pages practically never have it
_READ = any_of(READ)
_HAS_FOLLOWER = "EXISTS (SELECT 1 FROM follower)"
REASON_TRIGGER = f"""
CREATE TRIGGER page_restated AFTER UPDATE OF reason ON url
WHEN OLD.reason <> NEW.reason AND (OLD.reason IN {_READ} OR NEW.reason IN {_READ}) AND {_HAS_FOLLOWER}
    AND EXISTS (SELECT 1 FROM page WHERE url_id = NEW.id)
BEGIN INSERT INTO change (url_id) VALUES (NEW.id); END;
"""
FEED_TABLES = """
CREATE TABLE change (seq INTEGER PRIMARY KEY AUTOINCREMENT, url_id INTEGER NOT NULL);
CREATE TABLE follower (name TEXT PRIMARY KEY, seq INTEGER NOT NULL, scanned INTEGER) WITHOUT ROWID;
CREATE TABLE evidence (site_id INTEGER NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (site_id, name)) WITHOUT ROWID;
"""  # noqa: E501
TABLES = f"""{FEED_TABLES}CREATE TRIGGER page_stored AFTER INSERT ON page WHEN {_HAS_FOLLOWER}
BEGIN INSERT INTO change (url_id) VALUES (NEW.url_id); END;
CREATE TRIGGER page_moved AFTER UPDATE OF url_id ON page WHEN {_HAS_FOLLOWER}
BEGIN INSERT INTO change (url_id) VALUES (OLD.url_id), (NEW.url_id); END;
CREATE TRIGGER page_gone AFTER DELETE ON page WHEN {_HAS_FOLLOWER}
BEGIN INSERT INTO change (url_id) VALUES (OLD.url_id); END;
{REASON_TRIGGER}"""

_FIRST: Final = -(1 << 63)  # the smallest possible id
THROUGH: Final = (1 << 63) - 1  # position after the scan of all pages
INDEX: Final = "search"  # name of the follower that is the search index


class ChangeCursor(NamedTuple):
    """Position of a follower.

    seq: last processed change; scanned: last page of the initial scan, None if the scan is complete.
    """

    seq: int
    scanned: int | None

    @property
    def position(self) -> tuple[int, int]:
        """Position as stored in an index, increasing: progress of the scan, then the last change."""
        return (THROUGH if self.scanned is None else self.scanned, self.seq)


def follow(statements: Statements, name: str) -> ChangeCursor:
    """Position of a follower, which is created if it is new. Call it within a transaction."""
    newest = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'change'), 0)"
    statements.change(f"INSERT OR IGNORE INTO follower SELECT ?, {newest}, ?", (name, _FIRST))
    return ChangeCursor(*statements.rows("SELECT seq, scanned FROM follower WHERE name = ?", (name,))[0])


def place_of(statements: Statements, name: str) -> ChangeCursor | None:
    """Position of a follower, or None if it does not exist."""
    rows = statements.rows("SELECT seq, scanned FROM follower WHERE name = ?", (name,))
    return ChangeCursor(*rows[0]) if rows else None


def unfollow(statements: Statements, name: str) -> None:
    """Deletes a follower. Call it within a transaction."""
    statements.change("DELETE FROM follower WHERE name = ?", (name,))
    _prune(statements)


def after(statements: Statements, place: ChangeCursor, most: int) -> tuple[Sequence[UrlId], ChangeCursor]:
    """The next pages to process, each once, and the position after them. No pages: all are processed."""
    seq, scanned = place
    if scanned is not None:
        comparison = ">=" if scanned == _FIRST else ">"
        pages = statements.rows(
            f"SELECT url_id FROM page WHERE url_id {comparison} ? ORDER BY url_id LIMIT ?", (scanned, most)
        )
        if pages:
            return [UrlId(url_id) for (url_id,) in pages], ChangeCursor(seq, pages[-1][0])
    rows = statements.rows("SELECT seq, url_id FROM change WHERE seq > ? ORDER BY seq LIMIT ?", (seq, most))
    return list(dict.fromkeys(UrlId(url_id) for _, url_id in rows)), ChangeCursor(rows[-1][0] if rows else seq, None)


def newest(statements: Statements) -> int:
    """Number of the last recorded change; 0 if there is none."""
    rows = statements.rows("SELECT seq FROM sqlite_sequence WHERE name = 'change'")
    return int(rows[0][0]) if rows else 0


def waiting(statements: Statements, place: ChangeCursor) -> int:
    """Number of pages and changes still to be processed."""
    pages = 0
    if place.scanned is not None:
        pages = statements.rows("SELECT count(*) FROM page WHERE url_id > ?", (place.scanned,))[0][0]
    return int(pages) + int(statements.rows("SELECT count(*) FROM change WHERE seq > ?", (place.seq,))[0][0])


def set_position(statements: Statements, name: str, place: ChangeCursor) -> None:
    """Sets a follower's position. Call it within a transaction."""
    statements.change("UPDATE follower SET seq = ?, scanned = ? WHERE name = ?", (*place, name))
    _prune(statements)


def note(statements: Statements, ids: Sequence[UrlId]) -> None:
    """Records changes of pages that are not in their rows, for the other followers.

    Call it within a transaction.
    """
    statements.change_rows(f"INSERT INTO change (url_id) SELECT ? WHERE {_HAS_FOLLOWER}", [(url_id,) for url_id in ids])


def note_from(statements: Statements, find: str) -> None:
    """Records changes of the pages that a statement selects. Call it within a transaction."""
    statements.change(f"INSERT INTO change (url_id) SELECT url_id FROM ({find}) WHERE {_HAS_FOLLOWER}")


def _prune(statements: Statements) -> None:
    statements.change("DELETE FROM change WHERE seq <= coalesce((SELECT min(seq) FROM follower), 1 << 62)")


# Pages of a search index: described so that other readers of a database can use it.


class IndexedPage(NamedTuple):
    """A page as indexed.

    stamp: 64 bits that change when the page is fetched again or its URL's state changes; parts: parts of its blocks,
    packed, None if not classified.
    """

    url_id: UrlId
    stamp: int
    parts: bytes | None


def collection_key(statements: Statements) -> str:
    """Start of the first run, which identifies a collection even if it is created again. Empty without runs."""
    rows = statements.rows("SELECT started FROM run ORDER BY id LIMIT 1")
    return str(rows[0][0]) if rows else ""


def stamp_of(fetched: float, body_id: int | None, reason: str) -> int:
    """Stamp of a stored page, from the time of fetching, the body, and the URL's state."""
    return xxh3_64_intdigest(repr((fetched, body_id, reason)).encode()) - (1 << 63)


def stamp_of_page(page: PageBlocks) -> int:
    return stamp_of(page.fetched, page.body_id or None, page.reason)


def indexed_pages(records: CollectionReader, place: ChangeCursor) -> Iterator[IndexedPage]:
    """All pages of an index up to a position, ascending by id; UNSEEN for pages that changed later. records: see
    `index_feed.DatabaseFeed`.
    """
    changed = {UrlId(row[0]) for row in records.stream("SELECT url_id FROM change WHERE seq > ?", (place.seq,))}
    for page in map(IndexedPage._make, records.stream("SELECT url_id, stamp, parts FROM page ORDER BY url_id")):
        is_seen = page.url_id not in changed and (place.scanned is None or page.url_id <= place.scanned)
        changed.discard(page.url_id)
        yield page if is_seen else page._replace(stamp=UNSEEN, parts=None)
    yield from (
        IndexedPage(url_id, UNSEEN, None) for url_id in sorted(changed)
    )  # removed pages that are still in the index


def pages_after(reader: CollectionReader, place: ChangeCursor, most: int) -> Iterator[int]:
    """The next pages to process, ascending: the rest of the initial scan, else up to `most` changed pages."""
    if place.scanned is None:
        return iter(sorted(set(after(reader.statements, place, most)[0])))
    pages = reader.stream("SELECT url_id FROM page WHERE url_id >= ? ORDER BY url_id", (place.scanned,))
    return chain.from_iterable(pages)
