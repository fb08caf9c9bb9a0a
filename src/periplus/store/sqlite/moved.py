"""Did a collection move to another place? Then this one is read as before, and crawled no more."""

from __future__ import annotations

import sqlite3

from periplus.errors import StoreError

MOVED = "moved"  # in meta: where to


def mark(connection: sqlite3.Connection, place: str) -> None:
    """Within a transaction."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (MOVED, place))


def refuse(connection: sqlite3.Connection) -> None:
    """Raises StoreError if it did."""
    found = connection.execute("SELECT value FROM meta WHERE name = ?", (MOVED,)).fetchone()
    if found:
        raise StoreError(f"this collection moved to {found[0]}: crawl there. Here it stays as it was, to be read.")
