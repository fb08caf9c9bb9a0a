"""What goes when pages, a site or a run are deleted? Found by a few passes through the tables, before anything is changed.

The answer stands in temporary tables, each row with the number of the transaction that it goes in: bodies with the last page that has them,
addresses with the last page that links to them. So a kill between two transactions leaves nothing half deleted, and the
same wish, given again, deletes the rest.
"""

from __future__ import annotations

import sqlite3

from periplus.errors import UsageError
from periplus.model.deletion import Deletion, DeletionPlan
from periplus.model.freshness import READ
from periplus.model.web import Url
from periplus.store.sqlite import departures
from periplus.store.sqlite.listing import names
from periplus.urls.canonical import url_id
from periplus.urls.hosts import host_key

BATCH = 5_000  # URLs of one transaction: a second, in which a reader of the newest state waits for nothing and a writer for this
TABLES = """
CREATE TEMP TABLE doomed (id INTEGER PRIMARY KEY, batch INTEGER NOT NULL, leaves INTEGER NOT NULL, stays INTEGER NOT NULL DEFAULT 0);
CREATE TEMP TABLE orphan (id INTEGER PRIMARY KEY, batch INTEGER NOT NULL);
CREATE TEMP TABLE doomed_visit (id INTEGER PRIMARY KEY, batch INTEGER NOT NULL);
CREATE TEMP TABLE doomed_body (id INTEGER PRIMARY KEY, batch INTEGER NOT NULL);
CREATE TEMP TABLE doomed_entry (host_id INTEGER, layer INTEGER, seq INTEGER, batch INTEGER NOT NULL, PRIMARY KEY (host_id, layer, seq)) WITHOUT ROWID;
CREATE TEMP TABLE inlink (source INTEGER, target INTEGER, batch INTEGER NOT NULL, PRIMARY KEY (source, target)) WITHOUT ROWID;
CREATE TEMP TABLE gone_host (id INTEGER PRIMARY KEY);
"""
_DOOMED = "(SELECT id FROM doomed)"
_OF_SITE = "(SELECT h.id FROM host h JOIN site s ON s.id = h.site_id WHERE s.key = ?)"
_ONLY_IN_RUN = (
    "SELECT v.url_id FROM visit v LEFT JOIN freshness f ON f.url_id = v.url_id WHERE v.purpose = 'page' AND v.url_id <> 0"
    " GROUP BY v.url_id HAVING min(v.run_id) = :run AND max(v.run_id) = :run AND sum(v.outcome <> 'skipped') > 0"
    " AND coalesce(max(f.checked), 0) < coalesce((SELECT min(started) FROM run WHERE id > :run), 1e99)"  # later runs found it as it was
)
_LINKS = ("link", "link_history")  # a pass through them looks at the source first: they are in its order, so that finding it costs a tenth of the target


def find(connection: sqlite3.Connection, wish: Deletion) -> DeletionPlan:
    """Fills the temporary tables. Raises UsageError for a site or run that is not there."""
    connection.create_function("id_of", 1, lambda text: url_id(Url(text)), deterministic=True)
    connection.executescript(TABLES)
    connection.execute("BEGIN")  # all is of one moment; and each row by itself would be a transaction of the temporary file
    _urls(connection, wish)
    if not wish.links_to:
        stays = " UNION ".join(f"SELECT target FROM {table} WHERE +source NOT IN {_DOOMED} AND target IN {_DOOMED}" for table in _LINKS)
        stays += f" UNION SELECT id FROM url WHERE in_sitemap AND id IN {_DOOMED} UNION SELECT url_id FROM start"
        connection.execute(f"UPDATE doomed SET stays = 1 WHERE id IN ({stays})")
    else:
        for table in _LINKS:
            into = f"SELECT l.source, l.target, d.batch FROM {table} l CROSS JOIN doomed d ON d.id = l.target WHERE l.source NOT IN {_DOOMED}"
            connection.execute(f"INSERT OR IGNORE INTO inlink {into}")
    departures.fill(connection, _LINKS)
    _orphans(connection)
    _bodies(connection)
    _visits(connection, wish)
    _entries(connection, wish)
    plan = _counted(connection, wish)
    connection.execute("COMMIT")
    return plan


def chosen(connection: sqlite3.Connection, wish: Deletion) -> int:
    """How many URLs `find` would take, without what goes with them. Raises as that."""
    connection.executescript(TABLES)
    _urls(connection, wish)
    return int(connection.execute("SELECT count(*) FROM doomed").fetchone()[0])


def last_batch(connection: sqlite3.Connection) -> int:
    """The number of the last transaction; the first is 0."""
    return int(connection.execute("SELECT coalesce(max(batch), 0) FROM doomed").fetchone()[0])


def _urls(connection: sqlite3.Connection, wish: Deletion) -> None:
    run = connection.execute
    run("CREATE TEMP TABLE chosen (id INTEGER PRIMARY KEY)")
    connection.executemany("INSERT OR IGNORE INTO chosen SELECT id FROM url WHERE id = ?", [(page,) for page in wish.pages])
    if wish.site is not None:
        if not run("SELECT 1 FROM site WHERE key = ?", (wish.site,)).fetchone():
            raise UsageError(f"the collection knows no site {wish.site!r}; `periplus sql 'SELECT name FROM sites'` lists those it knows")
        run(f"INSERT OR IGNORE INTO chosen SELECT id FROM url WHERE host_id IN {_OF_SITE}", (wish.site,))
    if wish.run:
        if not run("SELECT 1 FROM run WHERE id = ?", (wish.run,)).fetchone():
            raise UsageError(f"there is no run {wish.run}; `periplus status` lists the runs")
        if wish.run_pages:
            run(f"INSERT OR IGNORE INTO chosen {_ONLY_IN_RUN}", {"run": wish.run})
    run("INSERT OR IGNORE INTO chosen SELECT url_id FROM alias WHERE page_id IN (SELECT id FROM chosen)")
    run(
        "INSERT INTO doomed (id, batch, leaves) SELECT id, batch, batch FROM (SELECT id, (row_number() OVER (ORDER BY id) - 1) / ? AS batch FROM chosen)",
        (BATCH,),
    )
    run("DROP TABLE chosen")


def _orphans(connection: sqlite3.Connection) -> None:
    """Of what deleted pages link to those URLs stay that were never asked for, and that nothing else names."""
    run = connection.execute
    run("DELETE FROM orphan WHERE id NOT IN (SELECT id FROM url WHERE id IN (SELECT id FROM orphan) AND visited IS NULL AND NOT in_sitemap)")
    among = "IN (SELECT id FROM orphan)"
    for need in (
        f"SELECT url_id FROM page WHERE url_id {among}",
        f"SELECT url_id FROM start WHERE url_id {among}",
        f"SELECT page_id FROM alias WHERE page_id {among} AND url_id NOT IN {_DOOMED}",
        f"SELECT url_id FROM visit WHERE url_id {among} AND outcome <> 'skipped'",
        *(f"SELECT target FROM {table} WHERE +source NOT IN {_DOOMED} AND target {among}" for table in _LINKS),
    ):
        run(f"DELETE FROM orphan WHERE id IN ({need})")


def _bodies(connection: sqlite3.Connection) -> None:
    run = connection.execute
    for table in ("page", "page_history"):
        held = f"SELECT p.body_id, max(d.batch) FROM doomed d JOIN {table} p ON p.url_id = d.id WHERE p.body_id IS NOT NULL GROUP BY p.body_id"
        run(f"INSERT INTO doomed_body {held} ON CONFLICT (id) DO UPDATE SET batch = max(batch, excluded.batch)")
    for table in ("page", "page_history"):
        others = f"SELECT body_id FROM {table} WHERE url_id NOT IN {_DOOMED} AND body_id IN (SELECT id FROM doomed_body)"
        run(f"DELETE FROM doomed_body WHERE id IN ({others})")


def _visits(connection: sqlite3.Connection, wish: Deletion) -> None:
    """Visits of the pages, and what else was asked of a site or in a run."""
    run, last = connection.execute, last_batch(connection)
    insert = "INSERT OR IGNORE INTO doomed_visit"
    for table in ("doomed", "orphan"):
        run(f"{insert} SELECT v.id, d.batch FROM visit v JOIN {table} d ON d.id = coalesce(nullif(v.url_id, 0), id_of(v.text))")
    if wish.run:
        run(f"{insert} SELECT id, ? FROM visit WHERE run_id = ?", (last, wish.run))
    if wish.site is not None:
        hosts = {key for (key,) in run(f"SELECT key FROM host WHERE id IN {_OF_SITE}", (wish.site,))}
        asked = run("SELECT id, text FROM visit WHERE url_id = 0").fetchall()
        connection.executemany(f"{insert} VALUES (?, ?)", [(visit, last) for visit, text in asked if host_key(Url(text)) in hosts])


def _entries(connection: sqlite3.Connection, wish: Deletion) -> None:
    """Rows of the to-do lists."""
    run = connection.execute
    insert = "INSERT OR IGNORE INTO doomed_entry"
    for table in ("doomed", "orphan"):
        run(f"{insert} SELECT q.host_id, q.layer, q.seq, d.batch FROM queue q JOIN {table} d ON d.id = q.url_id")
    if wish.site is not None:
        run(f"{insert} SELECT host_id, layer, seq, ? FROM queue WHERE host_id IN {_OF_SITE}", (last_batch(connection), wish.site))


def _counted(connection: sqlite3.Connection, wish: Deletion) -> DeletionPlan:
    def one(statement: str, *values: object) -> int:
        return int(connection.execute(statement, values).fetchone()[0] or 0)

    urls, staying, orphans = one("SELECT count(*) FROM doomed"), one("SELECT sum(stays) FROM doomed"), one("SELECT count(*) FROM orphan")
    pages, marks = connection.execute(f"SELECT count(*), sum(parts IS NOT NULL) FROM page WHERE url_id IN {_DOOMED}").fetchone()
    read = f"SELECT count(*) FROM page p JOIN url u ON u.id = p.url_id WHERE p.url_id IN {_DOOMED} AND u.reason IN ({names(sorted(READ))})"
    bodies, texts, held = connection.execute(
        "SELECT count(*), sum(b.text IS NOT NULL), sum(length(b.data) + coalesce(length(b.text), 0) + coalesce(length(b.blocks), 0))"
        " FROM doomed_body d JOIN body b ON b.id = d.id"
    ).fetchone()
    size = held or 0
    size += one("SELECT sum(length(x.data)) FROM doomed_body d JOIN xml x ON x.body_id = d.id")
    size += one(f"SELECT sum(length(parts)) FROM page WHERE url_id IN {_DOOMED}")
    size += one("SELECT sum(length(v.head)) FROM doomed_visit d JOIN visit v ON v.id = d.id")
    past = sum(one(f"SELECT count(*) FROM {table} WHERE url_id IN {_DOOMED}") for table in ("url_history", "page_history"))
    past += one("SELECT count(*) FROM doomed d JOIN link_history l ON l.source = d.id")
    return DeletionPlan(
        urls, int(pages), urls - staying + orphans, orphans, staying, one("SELECT count(*) FROM doomed_visit"),
        one("SELECT count(*) FROM doomed d JOIN link l ON l.source = d.id"),
        one("SELECT count(*) FROM inlink i CROSS JOIN link l ON l.source = i.source AND l.target = i.target"),
        bodies, int(texts or 0), int(marks or 0), one(read), past, size, last_batch(connection) + 1 if urls or wish.run else 0,
    )  # fmt: skip
