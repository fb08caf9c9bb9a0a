"""What came of the latest requests of a run, in the order in which they were stored?"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from periplus.model.visit import State
from periplus.store.sqlite.listing import names, reasons_of

_FETCHED = names(reasons_of(State.INDEXED))
_ROWS = (
    "SELECT v.id, v.run_id, coalesce(v.text, u.text, ''), v.purpose, v.started, v.took_s, v.outcome, v.status, v.detail, v.wire_bytes,"
    " coalesce(p.media_type, ''), u.layer FROM visit v LEFT JOIN url u ON u.id = v.url_id LEFT JOIN page p ON p.url_id = v.url_id"
)


class VisitRow(NamedTuple):
    """One request's end. media_type: of the page that is kept now, empty where none is."""

    id: int
    run_id: int
    url: str
    purpose: str
    started: float
    took_s: float
    outcome: str
    status: int
    detail: str
    wire_bytes: int
    media_type: str
    layer: int | None


def before_run(connection: sqlite3.Connection, run_id: int) -> int:
    """The last visit's number before a run began: numbers grow with runs, so halving finds it."""
    low, high = 0, int(connection.execute("SELECT coalesce(max(id), 0) FROM visit").fetchone()[0])
    while low < high:
        middle = (low + high + 1) // 2
        row = connection.execute("SELECT run_id FROM visit WHERE id >= ? ORDER BY id LIMIT 1", (middle,)).fetchone()
        if row[0] < run_id:
            low = middle
        else:
            high = middle - 1
    return low


def visits_after(connection: sqlite3.Connection, after: int, most: int) -> list[VisitRow]:
    """The next visits, of whatever run."""
    return [VisitRow._make(row) for row in connection.execute(f"{_ROWS} WHERE v.id > ? ORDER BY v.id LIMIT ?", (after, most))]


def newest(connection: sqlite3.Connection, run_id: int, most: int) -> list[VisitRow]:
    """A run's latest requests for pages, the last first."""
    find = f"{_ROWS} WHERE v.run_id = ? AND v.purpose = 'page' AND v.outcome <> 'skipped' ORDER BY v.id DESC LIMIT ?"
    return [VisitRow._make(row) for row in connection.execute(find, (run_id, most))]


def pages_before(connection: sqlite3.Connection, started: float, most: int) -> list[tuple[str, int | None]] | None:
    """(URL, layer) of the pages that were fetched before a run began and not in it; None: there are more URLs than `most`."""
    known = connection.execute("SELECT coalesce(sum(value), 0) FROM tally WHERE name LIKE 'reason:%'").fetchone()[0]
    if known > most:
        return None
    return connection.execute(f"SELECT text, layer FROM url WHERE reason IN ({_FETCHED}) AND visited < ?", (started,)).fetchall()
