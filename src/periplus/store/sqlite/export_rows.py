"""What goes out of a collection as whole tables? Views from end to end, redirects as columns, texts of URLs by id."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from periplus.store.sqlite.reading import rows
from periplus.store.sqlite.views import View


def whole(connection: sqlite3.Connection, view: View) -> Iterator[tuple[object, ...]]:
    """Every row of a view, in the order in which the table behind it lies on disk."""
    return rows(connection.execute(f"SELECT * FROM {view.name}"))


def redirect_hops(connection: sqlite3.Connection) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int16]]:
    """(sources, targets, statuses) of all redirects as last seen, one a source."""
    find = (
        "SELECT l.source, l.target, coalesce(u.status, 0), max(l.last_seen) FROM url u CROSS JOIN link l ON l.source = u.id"
        " WHERE u.reason = 'redirect' AND l.kind = 'redirect' GROUP BY l.source"
    )
    found = connection.execute(find).fetchall()
    sources, targets, statuses, _ = zip(*found, strict=True) if found else ((), (), (), ())
    return np.array(sources, np.int64), np.array(targets, np.int64), np.array(statuses, np.int64).clip(0, 999).astype(np.int16)


def text_of(connection: sqlite3.Connection, url_id: int) -> str | None:
    found = connection.execute("SELECT text FROM url WHERE id = ?", (url_id,)).fetchone()
    return str(found[0]) if found else None


def statuses_of(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, int]:
    """The last status of those of the URLs that answered."""
    find = "SELECT status FROM url WHERE id = ? AND status > 0"
    found = {url_id: connection.execute(find, (url_id,)).fetchone() for url_id in ids}
    return {url_id: int(row[0]) for url_id, row in found.items() if row}
