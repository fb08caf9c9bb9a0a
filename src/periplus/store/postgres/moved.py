"""Did a collection move out of the database? Then it is read as before, and crawled no more."""

from __future__ import annotations

from periplus.errors import StoreError
from periplus.store.postgres.connection import Connection

MOVED = "moved"  # in meta: where to


def mark(connection: Connection, place: str) -> None:
    """Within a transaction."""
    connection.execute("INSERT INTO meta VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (MOVED, place))


def unmark(connection: Connection) -> None:
    """It did not arrive. Within a transaction."""
    connection.execute("DELETE FROM meta WHERE name = %s", (MOVED,))


def refuse(connection: Connection, *, unless: str = "") -> None:
    """Raises StoreError if it did. unless: a place to which it may have been on its way when the power failed."""
    found = connection.execute("SELECT value FROM meta WHERE name = %s", (MOVED,)).fetchone()
    if found and found[0] != unless:
        raise StoreError(f"this collection moved to {found[0]}: crawl there. Here it stays as it was; `DROP SCHEMA` deletes it.")
