"""Describes the pages of a search index, so that the index can be used with another copy of the collection."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from xxhash import xxh3_64_intdigest

from periplus.model.arrays import Ints
from periplus.model.web import UrlId
from periplus.store import changes
from periplus.store.changes import ChangeCursor
from periplus.store.reader import CollectionReader
from periplus.store.statements import Statements

UNSEEN = 0  # stamp of a page that changed since it was indexed; other pages practically never have it


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


def stored_pages(reader: CollectionReader) -> Iterator[IndexedPage]:
    """All stored pages, ascending by id."""
    find = (
        "SELECT p.url_id, p.fetched, p.body_id, u.reason, p.parts FROM page p JOIN url u ON u.id = p.url_id"
        " ORDER BY p.url_id"
    )
    for url_id, *state, parts in reader.stream(find):
        yield IndexedPage(url_id, stamp_of(*state), parts)


def indexed_pages(reader: CollectionReader, place: ChangeCursor) -> Iterator[IndexedPage]:
    """All pages of an index up to a position, ascending by id; UNSEEN for pages that changed later."""
    changed = {UrlId(row[0]) for row in reader.stream("SELECT url_id FROM change WHERE seq > ?", (place.seq,))}
    for page in stored_pages(reader):
        is_seen = page.url_id not in changed and (place.scanned is None or page.url_id <= place.scanned)
        changed.discard(page.url_id)
        yield page if is_seen else page._replace(stamp=UNSEEN, parts=None)
    yield from (
        IndexedPage(url_id, UNSEEN, None) for url_id in sorted(changed)
    )  # removed pages that are still in the index


def pages_after(statements: Statements, place: ChangeCursor, most: int) -> Ints:
    """The next pages to process, ascending: the rest of the initial scan, else up to `most` changed pages."""
    if place.scanned is None:
        return np.unique(np.array(changes.after(statements, place, most)[0], np.int64))
    pages = statements.rows("SELECT url_id FROM page WHERE url_id >= ? ORDER BY url_id", (place.scanned,))
    return np.fromiter(chain.from_iterable(pages), np.int64)
