"""What did the user note on the sites of a survey: in or out, with which tags?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from periplus.model.survey import SiteMark, SiteStatus

TABLES = """
CREATE TABLE IF NOT EXISTS survey_mark (prefix TEXT PRIMARY KEY, status TEXT NOT NULL, tags TEXT NOT NULL, marked REAL NOT NULL) WITHOUT ROWID;
"""


def marks(connection: sqlite3.Connection) -> dict[str, SiteMark]:
    """What was noted, by prefix."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'survey_mark'").fetchone():  # made before there were marks
        return {}
    found = connection.execute("SELECT prefix, status, tags FROM survey_mark ORDER BY prefix").fetchall()
    return {prefix: SiteMark(prefix, SiteStatus(status), tuple(tags.split("\n")) if tags else ()) for prefix, status, tags in found}


def store_marks(connection: sqlite3.Connection, noted: Iterable[SiteMark], now: float) -> None:
    """Each in place of what was noted on the site before. Within a transaction."""
    connection.execute(TABLES)
    values = ((mark.prefix, mark.status.value, "\n".join(mark.tags), now) for mark in noted)
    connection.executemany("INSERT OR REPLACE INTO survey_mark VALUES (?, ?, ?, ?)", values)
