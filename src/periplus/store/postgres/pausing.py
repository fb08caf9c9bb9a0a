"""Is the crawl of a collection paused? A word in its table meta, there until the crawl is resumed or ends, or another one begins."""

from __future__ import annotations

from periplus.store.postgres.connection import Connection

PAUSED = "paused"  # in meta: since when, by the database's clock
IS_PAUSED = f"EXISTS (SELECT 1 FROM meta WHERE name = '{PAUSED}')"


def is_paused(connection: Connection) -> bool:
    row = connection.execute(f"SELECT {IS_PAUSED}").fetchone()
    return row is not None and bool(row[0])


def pause(connection: Connection) -> None:
    """Within a transaction."""
    connection.execute("INSERT INTO meta VALUES (%s, extract(epoch FROM clock_timestamp())::text) ON CONFLICT (name) DO NOTHING", (PAUSED,))


def resume(connection: Connection) -> bool:
    """Whether it was paused. Within a transaction."""
    return connection.execute("DELETE FROM meta WHERE name = %s", (PAUSED,)).rowcount > 0
