"""What was, before a run changed it? The tables beside the present ones, and how they are filled: docs/decisions/0003.

url_history is written by a trigger: the row as it stood before the first change that a run made to it. Of URLs first seen in the same
run there is nothing to keep. Between two runs (rules applied anew) a change counts to the run that follows.
"""

from __future__ import annotations

import sqlite3
from collections import Counter

from periplus.model.freshness import FIRST_INTERVAL_S, Finding, next_interval_s
from periplus.store.versions import FIELDS, is_another

HISTORY = f"""
CREATE TABLE url_history (
    url_id INTEGER NOT NULL, run_id INTEGER NOT NULL, reason TEXT NOT NULL, rule TEXT NOT NULL, status INTEGER, layer INTEGER,
    PRIMARY KEY (url_id, run_id)) WITHOUT ROWID;
CREATE TABLE page_history (url_id INTEGER NOT NULL, run_id INTEGER NOT NULL, {", ".join(FIELDS)}, PRIMARY KEY (url_id, run_id));
CREATE TABLE link_history (
    source INTEGER NOT NULL, target INTEGER NOT NULL, kind TEXT NOT NULL, position TEXT NOT NULL, nofollow INTEGER NOT NULL,
    run_id INTEGER NOT NULL, anchor TEXT NOT NULL, times INTEGER NOT NULL, first_seen REAL NOT NULL, last_seen REAL NOT NULL,
    PRIMARY KEY (source, target, kind, position, nofollow, run_id)) WITHOUT ROWID;
CREATE TABLE freshness (url_id INTEGER PRIMARY KEY, checked REAL NOT NULL, interval_s REAL NOT NULL, gone_since REAL);
CREATE TABLE run_count (run_id INTEGER NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (run_id, name)) WITHOUT ROWID;
CREATE TRIGGER url_keeps_history AFTER UPDATE OF reason, rule, status ON url
WHEN (OLD.reason <> NEW.reason OR OLD.rule <> NEW.rule OR OLD.status IS NOT NEW.status)
    AND OLD.first_seen < (SELECT CASE state WHEN 'running' THEN started ELSE 1e99 END FROM run ORDER BY id DESC LIMIT 1)
BEGIN
    INSERT OR IGNORE INTO url_history SELECT OLD.id, id + (state <> 'running'), OLD.reason, OLD.rule, OLD.status, OLD.layer
    FROM run ORDER BY id DESC LIMIT 1;
END;
"""


class History:
    """Writes within a transaction of its owner, for one run."""

    def __init__(self, connection: sqlite3.Connection, run_id: int) -> None:
        self._run, self._many, self._run_id = connection.execute, connection.executemany, run_id
        self._found: Counter[Finding] = Counter()

    def open(self) -> None:
        self._found.clear()

    def close(self) -> None:
        upsert = "INSERT INTO run_count VALUES (?, ?, ?) ON CONFLICT (run_id, name) DO UPDATE SET value = value + excluded.value"
        self._many(upsert, [(self._run_id, finding.value, count) for finding, count in self._found.items() if count])

    def page(self, url_id: int) -> tuple[object, ...] | None:
        """The page as it stands, for `replaced`; None: there is none."""
        found: tuple[object, ...] | None = self._run(f"SELECT {', '.join(FIELDS)} FROM page WHERE url_id = ?", (url_id,)).fetchone()
        return found

    def replaced(self, url_id: int, before: tuple[object, ...]) -> bool:
        """Whether the page is another one now; then what it was is kept."""
        after = self.page(url_id)
        changed = is_another(before, after)
        if changed:
            marks = ", ".join("?" * (len(FIELDS) + 2))
            self._run(f"INSERT OR IGNORE INTO page_history VALUES ({marks})", (url_id, self._run_id, *before))
        return changed

    def close_links(self, source: int, now: float, *, only: str = "") -> int:
        """Ends the page's links that were not seen at `now`; returns how many. only: of this kind."""
        where = "source = ? AND last_seen < ?" + (" AND kind = ?" if only else "")
        values = (source, now, only) if only else (source, now)
        seen = "max(last_seen, coalesce((SELECT checked FROM freshness WHERE url_id = source), 0))"
        keep = f"SELECT source, target, kind, position, nofollow, ?, anchor, times, first_seen, {seen} FROM link WHERE {where}"
        self._run(f"INSERT OR IGNORE INTO link_history {keep}", (self._run_id, *values))
        return self._run(f"DELETE FROM link WHERE {where}", values).rowcount

    def opened_links(self, source: int, now: float) -> int:
        """How many links of the page were first seen at `now`."""
        return int(self._run("SELECT count(*) FROM link WHERE source = ? AND first_seen = ?", (source, now)).fetchone()[0])

    def unreached(self, count: int) -> None:
        self._found[Finding.UNREACHED] += count

    def note(self, url_id: int, finding: Finding, now: float) -> None:
        """Counts what was found, and books when the URL should be asked for again."""
        self._found[finding] += 1
        if finding is Finding.NEW:
            return
        row = self._run("SELECT interval_s, gone_since FROM freshness WHERE url_id = ?", (url_id,)).fetchone()
        interval_s, gone = row or (FIRST_INTERVAL_S, None)
        if finding is Finding.GONE:
            gone = now
        elif finding is Finding.BACK:
            gone = None
        self._run("INSERT OR REPLACE INTO freshness VALUES (?, ?, ?, ?)", (url_id, now, next_interval_s(interval_s, finding), gone))
