"""Is the crawl of a collection paused? A word in its table meta, there until the crawl is resumed or ends, or another one begins."""

from __future__ import annotations

import sqlite3

PAUSED = "paused"  # in meta: since when


def is_paused(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM meta WHERE name = ?", (PAUSED,)).fetchone() is not None


def pause(connection: sqlite3.Connection, now: float) -> None:
    """Within a transaction."""
    connection.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (PAUSED, repr(now)))


def resume(connection: sqlite3.Connection) -> bool:
    """Whether it was paused. Within a transaction."""
    return connection.execute("DELETE FROM meta WHERE name = ?", (PAUSED,)).rowcount > 0
