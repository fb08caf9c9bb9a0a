"""What is kept of a campaign beside its pages: the plan, the wish to stop, and how the frontier is brought in line when sites come and go?"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from periplus.model.ports import Territory
from periplus.model.visit import Reason
from periplus.model.web import Url
from periplus.store.sqlite import schema

PLAN, STOP = "survey", "survey_stop"  # names in the table meta
_UNKNOWN_LEVEL = "met before its site belonged to the survey: its level is not known yet"
_REMOVED = "its site was removed from the survey"


def plan(connection: sqlite3.Connection) -> str:
    """The plan's text; empty: the collection is no survey's."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (PLAN,)).fetchone()
    return str(row[0]) if row else ""


def change_plan(folder: Path, changed: Callable[[str], str]) -> str:
    """The plan as changed makes it, in one transaction, so that two who change it do not undo one another's."""
    with schema.writing(folder) as connection:
        text = changed(plan(connection))
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (PLAN, text))
    return text


def wish_stop(folder: Path, *, stop: bool) -> None:
    """Asks the run that is at work to stop; or forgets such a wish."""
    with schema.writing(folder) as connection:
        if stop:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", (STOP,))
        else:
            connection.execute("DELETE FROM meta WHERE name = ?", (STOP,))


def stop_is_wished(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM meta WHERE name = ?", (STOP,)).fetchone() is not None


def bring_in_line(folder: Path, territory: Territory) -> None:
    """Hosts belong to the sites that the territory says; what waits outside it waits no longer; what was left out and lies within is known,
    at a level that links will tell, or at its old one where its site comes back. What was fetched stays. Nobody may be at work."""
    with schema.writing(folder) as connection:
        _resettle_hosts(connection, territory)
        moves: Counter[str] = Counter()
        gone: list[tuple[int]] = []
        come: list[tuple[str, bool, int]] = []
        for url_id, text, reason, rule in connection.execute("SELECT id, text, reason, rule FROM url WHERE reason IN ('waiting', 'scope', 'depth')"):
            inside = territory.decide(Url(text)) is None
            if inside and reason == Reason.SCOPE:
                come.append((_UNKNOWN_LEVEL, rule == _REMOVED, url_id))
            elif not inside and reason != Reason.SCOPE:
                gone.append((url_id,))
                moves[reason] += 1
        connection.executemany("UPDATE url SET reason = 'depth', rule = ?, layer = iif(?, layer, NULL) WHERE id = ?", come)
        connection.executemany("UPDATE url SET reason = 'scope', rule = ? WHERE id = ?", [(_REMOVED, *row) for row in gone])
        _count(connection, {"scope": len(gone) - len(come), "depth": len(come) - moves["depth"], "waiting": -moves["waiting"]})
        _drop_entries(connection, gone)


def _resettle_hosts(connection: sqlite3.Connection, territory: Territory) -> None:
    rows = connection.execute("SELECT h.id, h.key, s.key FROM host h JOIN site s ON s.id = h.site_id").fetchall()
    moved = [(site, host_id) for host_id, host, held in rows if (site := territory.site_of(_root(host))) != held]
    connection.executemany("INSERT OR IGNORE INTO site (key) VALUES (?)", [(site,) for site, _ in moved])
    connection.executemany("UPDATE host SET site_id = (SELECT id FROM site WHERE key = ?) WHERE id = ?", moved)
    if moved:
        connection.execute("UPDATE site SET fetched = (SELECT coalesce(sum(fetched), 0) FROM host WHERE site_id = site.id)")


def _root(host: str) -> Url:
    """Some URL of the host: which scheme it is told by does not matter to sites, its port does."""
    name, _, port = host.rpartition(":")
    return Url(f"https://{name}/" if port in ("443", "80") else f"https://{host}/")


def _drop_entries(connection: sqlite3.Connection, gone: list[tuple[int]]) -> None:
    if not gone:
        return
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS gone (id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM gone")
    connection.executemany("INSERT INTO gone VALUES (?)", gone)
    connection.execute("DELETE FROM queue WHERE url_id IN (SELECT id FROM gone)")
    hosts = "SELECT DISTINCT u.host_id FROM gone g JOIN url u ON u.id = g.id"
    connection.execute(f"UPDATE host SET pending = (SELECT count(*) FROM queue q WHERE q.host_id = host.id) WHERE id IN ({hosts})")


def _count(connection: sqlite3.Connection, changes: dict[str, int]) -> None:
    upsert = "INSERT INTO tally VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
    connection.executemany(upsert, [("reason:" + name, change) for name, change in changes.items() if change])
