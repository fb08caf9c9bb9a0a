"""Which records of segments do pages in PostgreSQL point at?"""

from __future__ import annotations

from collections.abc import Iterator

from periplus.store.postgres import hosts
from periplus.store.postgres.connection import Connection
from periplus.store.processes import process_lives
from periplus.store.segments import Place

BLOCK_ROWS = 10_000


def place_of_segments(connection: Connection) -> str:
    """Where the collection's segments are kept; empty: their bytes are in the database."""
    found = connection.execute("SELECT value FROM meta WHERE name = 'segments'").fetchone()
    return str(found[0]) if found else ""


def claimed(connection: Connection) -> Iterator[Place]:
    """Every place that a body names, each once, in the order of segments. Within a transaction; streamed."""
    with connection.cursor(name="claimed") as cursor:
        cursor.itersize = BLOCK_ROWS
        cursor.execute('SELECT DISTINCT segment COLLATE "C", start, length FROM body WHERE segment IS NOT NULL ORDER BY 1, 2, 3')
        for row in cursor:
            yield Place(*row)


def workers_at_work(connection: Connection) -> int:
    """Workers whose lease has not run out, and whose process lives as far as one can see from here."""
    fallen = hosts.fallen(connection, process_lives, None)
    found = connection.execute("SELECT count(*) FROM worker WHERE name <> ALL(%s)", (list(fallen),)).fetchone()
    return int(found[0]) if found else 0
