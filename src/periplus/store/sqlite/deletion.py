"""Deletes pages, a site or a run from a collection without leaving traces."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np

from periplus.errors import UsageError
from periplus.features import stored_tables
from periplus.model.arrays import Ints
from periplus.model.collection import Deletion, DeletionPlan
from periplus.model.frontier import PRIORITY_WITHOUT_DEPTH
from periplus.model.tables import HAS_PAGE
from periplus.model.visit import STATE_OF, Reason
from periplus.model.web import Url, UrlId
from periplus.store.site_rows import number_blocks
from periplus.store.sqlite import page_links, schema
from periplus.store.sqlite.reading import Follow
from periplus.urls.canonical import url_id
from periplus.urls.hosts import host_key

# URLs per transaction: takes about a second, during which other writers wait but readers do not
BATCH = 5_000
TABLES = """
CREATE TEMP TABLE doomed (id INTEGER PRIMARY KEY, batch INTEGER NOT NULL, leaves INTEGER NOT NULL, stays INTEGER NOT NULL DEFAULT 0);
CREATE TEMP TABLE orphan (id INTEGER PRIMARY KEY, batch INTEGER NOT NULL);
CREATE TEMP TABLE doomed_visit (id INTEGER PRIMARY KEY, batch INTEGER NOT NULL);
CREATE TEMP TABLE doomed_body (id INTEGER PRIMARY KEY, batch INTEGER NOT NULL);
CREATE TEMP TABLE doomed_entry (host_id INTEGER, priority INTEGER, seq INTEGER, batch INTEGER NOT NULL, PRIMARY KEY (host_id, priority, seq)) WITHOUT ROWID;
CREATE TEMP TABLE inlink (source INTEGER, target INTEGER, batch INTEGER NOT NULL, PRIMARY KEY (source, target)) WITHOUT ROWID;
CREATE TEMP TABLE gone_host (id INTEGER PRIMARY KEY);
"""  # noqa: E501
_DOOMED_IDS = "(SELECT id FROM doomed)"
_OF_SITE = "(SELECT h.id FROM host h JOIN site s ON s.id = h.site_id WHERE s.key = ?)"
_ONLY_IN_RUN = (
    "SELECT v.url_id FROM visit v LEFT JOIN freshness f ON f.url_id = v.url_id"
    " WHERE v.purpose = 'page' AND v.url_id <> 0"
    " GROUP BY v.url_id HAVING min(v.run_id) = :run AND max(v.run_id) = :run AND sum(v.outcome <> 'skipped') > 0"
    # and no later run found it unchanged
    " AND coalesce(max(f.checked), 0) < coalesce((SELECT min(started) FROM run WHERE id > :run), 1e99)"
)
# scans check the source first: links are stored in its order, so that this costs a tenth of checking the target
_LINKS = ("link", "link_history")
_BATCH = "(SELECT id FROM doomed WHERE batch = :batch)"
_LEAVING = (
    "(SELECT id FROM doomed WHERE leaves = :batch AND NOT stays UNION ALL SELECT id FROM orphan WHERE batch = :batch)"
)
_STAYING = "(SELECT id FROM doomed WHERE batch = :batch AND stays)"
_LATER = "(SELECT id FROM doomed WHERE batch = :batch AND NOT stays AND leaves > batch)"
_VISITS = "(SELECT id FROM doomed_visit WHERE batch = :batch)"
_BODIES = "(SELECT id FROM doomed_body WHERE batch = :batch)"
_OWN = (  # rows of the pages; all by key, so that the cost depends only on the batch
    f"DELETE FROM page WHERE url_id IN {_BATCH}",
    f"DELETE FROM rendering WHERE url_id IN {_BATCH}",
    f"DELETE FROM bad_link WHERE source IN {_BATCH}",
    f"DELETE FROM page_links WHERE source IN {_BATCH}",
    f"DELETE FROM link_history WHERE source IN {_BATCH}",
    f"DELETE FROM page_history WHERE url_id IN {_BATCH}",
    f"DELETE FROM freshness WHERE url_id IN {_BATCH}",
    f"DELETE FROM start WHERE url_id IN {_LEAVING}",
    f"DELETE FROM verdict WHERE url_id IN {_LEAVING}",
    f"DELETE FROM issue WHERE url_id IN {_BATCH} OR related_id IN {_BATCH}",
    f"DELETE FROM alias WHERE url_id IN {_BATCH} OR url_id IN {_LEAVING}",
    f"DELETE FROM look WHERE visit_id IN {_VISITS}",
    f"DELETE FROM visit WHERE id IN {_VISITS}",
    f"DELETE FROM xml WHERE body_id IN {_BODIES}",
    f"DELETE FROM body WHERE id IN {_BODIES}",
    "DELETE FROM link_history WHERE (source, target) IN (SELECT source, target FROM inlink WHERE batch = :batch)",
)
_REQUEST_COUNTS = (  # requests counted in totals, by host and run
    "SELECT u.host_id AS host_id, v.run_id AS run_id, count(*) AS many, sum(v.wire_bytes) AS wire"
    " FROM doomed_visit d CROSS JOIN visit v ON v.id = d.id"
    " JOIN url u ON u.id = coalesce(nullif(v.url_id, 0), id_of(v.text))"
    " WHERE d.batch = :batch AND v.outcome <> 'skipped'"
    " AND ((v.purpose = 'page' AND v.url_id <> 0) OR v.purpose IN ('head', 'check')) GROUP BY 1, 2"
)


def fill(connection: sqlite3.Connection, tables: Iterable[str]) -> None:
    """Sets `leaves` of each row of doomed: its own batch, or the last batch of a page that links to it, since a link
    must not lead to a missing URL in between.

    Stores other link targets of those pages in orphan, with the last of their batches. tables: tables of links.
    """
    doomed = np.concatenate(
        [np.zeros((0, 2), np.int64), *number_blocks(connection.execute("SELECT id, batch FROM doomed ORDER BY id"), 2)]
    )
    ids, leaves = doomed[:, 0].copy(), doomed[:, 1].copy()
    outside = [np.zeros((0, 2), np.int64)]
    for table in tables if len(ids) else ():
        links = connection.execute(f"SELECT l.target, d.batch FROM doomed d CROSS JOIN {table} l ON l.source = d.id")
        for block in number_blocks(links, 2):
            target, batch = block[:, 0], block[:, 1]
            place = np.minimum(np.searchsorted(ids, target), len(ids) - 1)
            goes = ids[place] == target
            np.maximum.at(leaves, place[goes], batch[goes])
            outside.append(_latest(block[~goes]))
    late = leaves > doomed[:, 1]
    connection.executemany(
        "UPDATE doomed SET leaves = ? WHERE id = ?", zip(leaves[late].tolist(), ids[late].tolist(), strict=True)
    )
    connection.executemany("INSERT INTO orphan VALUES (?, ?)", _latest(np.concatenate(outside)).tolist())


def _latest(rows: Ints) -> Ints:
    """Distinct targets, each with its greatest batch."""
    ordered = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    last = np.ones(len(ordered), bool)
    last[:-1] = ordered[1:, 0] != ordered[:-1, 0]
    return ordered[last]


# A few scans of the tables find the rows to delete, before anything is changed.
#
# The result is stored in temporary tables. Each row has the number of the transaction that deletes it: bodies with the
# last page that has them, URLs with the last page that links to them. So a crash between two transactions leaves a
# consistent collection, and repeating the deletion deletes the rest.


def find(connection: sqlite3.Connection, deletion: Deletion) -> DeletionPlan:
    """Fills the temporary tables. Raises UsageError if the site or run does not exist."""
    connection.create_function("id_of", 1, lambda text: url_id(Url(text)), deterministic=True)
    connection.executescript(TABLES)
    # one snapshot; and otherwise each row would be a transaction of the temporary file
    connection.execute("BEGIN")
    _urls(connection, deletion)
    if not deletion.links_to:
        stays = " UNION ".join(
            f"SELECT target FROM {table} WHERE +source NOT IN {_DOOMED_IDS} AND target IN {_DOOMED_IDS}"
            for table in _LINKS
        )
        stays += f" UNION SELECT id FROM url WHERE in_sitemap AND id IN {_DOOMED_IDS} UNION SELECT url_id FROM start"
        connection.execute(f"UPDATE doomed SET stays = 1 WHERE id IN ({stays})")
    else:
        for table in _LINKS:
            into = (
                f"SELECT l.source, l.target, d.batch FROM {table} l CROSS JOIN doomed d ON d.id = l.target"
                f" WHERE l.source NOT IN {_DOOMED_IDS}"
            )
            connection.execute(f"INSERT OR IGNORE INTO inlink {into}")
    fill(connection, _LINKS)
    _orphans(connection)
    _bodies(connection)
    _visits(connection, deletion)
    _entries(connection, deletion)
    plan = _plan(connection, deletion)
    connection.execute("COMMIT")
    return plan


def count_urls(connection: sqlite3.Connection, deletion: Deletion) -> int:
    """Number of URLs that `find` would select. Raises the same errors."""
    connection.executescript(TABLES)
    _urls(connection, deletion)
    return int(connection.execute("SELECT count(*) FROM doomed").fetchone()[0])


def last_batch(connection: sqlite3.Connection) -> int:
    """Number of the last transaction, from 0."""
    return int(connection.execute("SELECT coalesce(max(batch), 0) FROM doomed").fetchone()[0])


def _urls(connection: sqlite3.Connection, deletion: Deletion) -> None:
    connection.execute("CREATE TEMP TABLE chosen (id INTEGER PRIMARY KEY)")
    connection.executemany(
        "INSERT OR IGNORE INTO chosen SELECT id FROM url WHERE id = ?", [(page,) for page in deletion.pages]
    )
    if deletion.site is not None:
        if not connection.execute("SELECT 1 FROM site WHERE key = ?", (deletion.site,)).fetchone():
            raise UsageError(
                f"the collection has no site {deletion.site!r}; list its sites by `periplus sql 'SELECT name"
                " FROM sites'`"
            )
        connection.execute(
            f"INSERT OR IGNORE INTO chosen SELECT id FROM url WHERE host_id IN {_OF_SITE}", (deletion.site,)
        )
    if deletion.run:
        if not connection.execute("SELECT 1 FROM run WHERE id = ?", (deletion.run,)).fetchone():
            raise UsageError(f"there is no run {deletion.run}; list the runs by `periplus status`")
        if deletion.run_pages:
            connection.execute(f"INSERT OR IGNORE INTO chosen {_ONLY_IN_RUN}", {"run": deletion.run})
    connection.execute("INSERT OR IGNORE INTO chosen SELECT url_id FROM alias WHERE page_id IN (SELECT id FROM chosen)")
    connection.execute(
        (
            "INSERT INTO doomed (id, batch, leaves) SELECT id, batch, batch"
            " FROM (SELECT id, (row_number() OVER (ORDER BY id) - 1) / ? AS batch FROM chosen)"
        ),
        (BATCH,),
    )
    connection.execute("DROP TABLE chosen")


def _orphans(connection: sqlite3.Connection) -> None:
    """Keeps only orphans that were never requested and that nothing else refers to."""
    connection.execute(
        "DELETE FROM orphan WHERE id NOT IN (SELECT id FROM url WHERE id IN (SELECT id FROM orphan)"
        " AND visited IS NULL AND NOT in_sitemap)"
    )
    among = "IN (SELECT id FROM orphan)"
    for need in (
        f"SELECT url_id FROM page WHERE url_id {among}",
        f"SELECT url_id FROM start WHERE url_id {among}",
        f"SELECT page_id FROM alias WHERE page_id {among} AND url_id NOT IN {_DOOMED_IDS}",
        f"SELECT url_id FROM visit WHERE url_id {among} AND outcome <> 'skipped'",
        *(f"SELECT target FROM {table} WHERE +source NOT IN {_DOOMED_IDS} AND target {among}" for table in _LINKS),
    ):
        connection.execute(f"DELETE FROM orphan WHERE id IN ({need})")


def _bodies(connection: sqlite3.Connection) -> None:
    for table in ("page", "page_history"):
        held = (
            f"SELECT p.body_id, max(d.batch) FROM doomed d JOIN {table} p ON p.url_id = d.id"
            " WHERE p.body_id IS NOT NULL GROUP BY p.body_id"
        )
        connection.execute(
            f"INSERT INTO doomed_body {held} ON CONFLICT (id) DO UPDATE SET batch = max(batch, excluded.batch)"
        )
    for table in ("page", "page_history"):
        others = (
            f"SELECT body_id FROM {table} WHERE url_id NOT IN {_DOOMED_IDS} AND body_id IN (SELECT id FROM doomed_body)"
        )
        connection.execute(f"DELETE FROM doomed_body WHERE id IN ({others})")


def _visits(connection: sqlite3.Connection, deletion: Deletion) -> None:
    """Selects visits of the pages, and all other visits of a site or run."""
    last = last_batch(connection)
    insert = "INSERT OR IGNORE INTO doomed_visit"
    for table in ("doomed", "orphan"):
        connection.execute(
            f"{insert} SELECT v.id, d.batch FROM visit v JOIN {table} d ON d.id = "
            "coalesce(nullif(v.url_id, 0), id_of(v.text))"
        )
    if deletion.run:
        connection.execute(f"{insert} SELECT id, ? FROM visit WHERE run_id = ?", (last, deletion.run))
    if deletion.site is not None:
        hosts = {key for (key,) in connection.execute(f"SELECT key FROM host WHERE id IN {_OF_SITE}", (deletion.site,))}
        asked = connection.execute("SELECT id, text FROM visit WHERE url_id = 0").fetchall()
        connection.executemany(
            f"{insert} VALUES (?, ?)", [(visit, last) for visit, text in asked if host_key(Url(text)) in hosts]
        )


def _entries(connection: sqlite3.Connection, deletion: Deletion) -> None:
    """Selects queue entries."""
    insert = "INSERT OR IGNORE INTO doomed_entry"
    for table in ("doomed", "orphan"):
        connection.execute(
            f"{insert} SELECT q.host_id, q.priority, q.seq, d.batch FROM queue q JOIN {table} d ON d.id = q.url_id"
        )
    if deletion.site is not None:
        connection.execute(
            f"{insert} SELECT host_id, priority, seq, ? FROM queue WHERE host_id IN {_OF_SITE}",
            (last_batch(connection), deletion.site),
        )


def _plan(connection: sqlite3.Connection, deletion: Deletion) -> DeletionPlan:
    def total(statement: str, *values: object) -> int:
        return int(connection.execute(statement, values).fetchone()[0] or 0)

    urls, staying, orphans = (
        total("SELECT count(*) FROM doomed"),
        total("SELECT sum(stays) FROM doomed"),
        total("SELECT count(*) FROM orphan"),
    )
    pages, marks = connection.execute(
        f"SELECT count(*), sum(parts IS NOT NULL) FROM page WHERE url_id IN {_DOOMED_IDS}"
    ).fetchone()
    read = f"SELECT count(*) FROM page p JOIN url u ON u.id = p.url_id WHERE p.url_id IN {_DOOMED_IDS} AND {HAS_PAGE}"
    bodies, texts, held = connection.execute(
        "SELECT count(*), sum(b.text IS NOT NULL), sum(length(b.data) + coalesce(length(b.text), 0) + "
        "coalesce(length(b.blocks), 0))"
        " FROM doomed_body d JOIN body b ON b.id = d.id"
    ).fetchone()
    size = held or 0
    size += total("SELECT sum(length(x.data)) FROM doomed_body d JOIN xml x ON x.body_id = d.id")
    size += total(f"SELECT sum(length(parts)) FROM page WHERE url_id IN {_DOOMED_IDS}")
    rendered = "sum(length(sent) + coalesce(length(screenshot), 0))"
    size += total(f"SELECT {rendered} FROM rendering WHERE url_id IN {_DOOMED_IDS}")
    size += total("SELECT sum(length(v.head)) FROM doomed_visit d JOIN visit v ON v.id = d.id")
    past = sum(
        total(f"SELECT count(*) FROM {table} WHERE url_id IN {_DOOMED_IDS}")
        for table in ("url_history", "page_history")
    )
    past += total("SELECT count(*) FROM doomed d JOIN link_history l ON l.source = d.id")
    return DeletionPlan(
        urls, int(pages), urls - staying + orphans, orphans, staying, total("SELECT count(*) FROM doomed_visit"),
        total("SELECT count(*) FROM doomed d JOIN link l ON l.source = d.id"),
        total("SELECT count(*) FROM inlink i CROSS JOIN link l ON l.source = i.source AND l.target = i.target"),
        bodies, int(texts or 0), int(marks or 0), total(read), past, size,
        last_batch(connection) + 1 if urls or deletion.run else 0,
    )  # fmt: skip


# Each transaction deletes some thousand URLs with all their rows and keeps all totals correct, so that a crash loses
# nothing but time. Deleted rows are overwritten in the file. Depths are not recomputed, as after a refresh. The counts
# of new and changed pages of runs stay too, since they describe the past.

Watch = Callable[[int, int], bool]  # (URLs done, total) -> stop


@contextlib.contextmanager
def open_connection(folder: Path) -> Iterator[sqlite3.Connection]:
    """Opens a connection for a deletion. Raises NoCollection, StoreError."""
    with contextlib.closing(schema.connect(folder)) as connection:
        connection.execute("PRAGMA temp_store = FILE")  # for large sites
        connection.execute("PRAGMA secure_delete = ON")
        yield connection


def texts_of(connection: sqlite3.Connection, ids: Iterable[UrlId]) -> list[Url]:
    """Texts of the known URLs, in the order given."""
    rows = (connection.execute("SELECT text FROM url WHERE id = ?", (identity,)).fetchone() for identity in ids)
    return [Url(row[0]) for row in rows if row]


def plan_deletion(folder: Path, deletion: Deletion) -> DeletionPlan:
    """Plan of a deletion, without changes. Raises UsageError, NoCollection, StoreError."""
    with open_connection(folder) as connection:
        return find(connection, deletion)


def count_deletion(folder: Path, deletion: Deletion) -> int:
    """Number of URLs selected by a deletion; fast. Raises as `plan_deletion`."""
    with open_connection(folder) as connection:
        return count_urls(connection, deletion)


def delete(
    folder: Path,
    deletion: Deletion,
    watch: Watch,
    follow: Follow = contextlib.nullcontext,
) -> DeletionPlan:
    """Deletes until watch returns True. No crawl may be running. Returns the plan. Raises as `plan_deletion`.

    follow: context for each transaction, given its connection.
    """
    with open_connection(folder) as connection, contextlib.closing(schema.WriteLock(folder)) as lock:
        plan = find(connection, deletion)
        last = last_batch(connection)
        for batch in range(plan.batches):
            with lock.transaction(connection), follow(connection):
                newest = connection.execute("SELECT coalesce(max(id), 0) FROM visit").fetchone()[0]
                _delete_batch(connection, batch, deletion)
                if batch == last:
                    _end(connection, deletion)
                _renumber_last_visit(connection, newest + 1)
            if watch(min((batch + 1) * BATCH, plan.urls), plan.urls) and batch < last:
                break
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # removes deleted rows from the log
        return plan


def _renumber_last_visit(connection: sqlite3.Connection, number: int) -> None:
    """Changes the id of the last visit to `number`, which is greater than all ids used before.

    Computed results are valid as long as the last visit has the same id, so this invalidates them.
    """
    last = connection.execute("SELECT max(id) FROM visit").fetchone()[0]
    for table, column in (("visit", "id"), ("look", "visit_id"), ("doomed_visit", "id")):
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (number, last))


def shrink(folder: Path) -> None:
    """Rewrites the file to free the space of deleted rows. No process may be using the collection."""
    with contextlib.closing(schema.connect(folder)) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _delete_batch(connection: sqlite3.Connection, batch: int, deletion: Deletion) -> None:
    this = {"batch": batch}
    _reduce_totals(connection, this)
    _delete_queue_entries(connection, this)
    dictionaries = connection.execute(
        f"SELECT DISTINCT dictionary_id FROM body WHERE id IN {_BODIES} AND dictionary_id IS NOT NULL", this
    ).fetchall()
    for table in stored_tables():
        if table.url:
            of_pages = f"{table.url} IN (SELECT text FROM url WHERE id IN {_BATCH})"
            connection.execute(f"DELETE FROM {table.name} WHERE {of_pages}", this)
    for statement in _OWN:
        connection.execute(statement, this)
    listed = connection.execute(
        "SELECT source, target FROM inlink WHERE batch = :batch ORDER BY source", this
    ).fetchall()
    for source, pairs in groupby(listed, itemgetter(0)):
        page_links.drop(connection, source, frozenset(target for _, target in pairs))
    for (dictionary,) in dictionaries:
        if not connection.execute("SELECT 1 FROM body WHERE dictionary_id = ? LIMIT 1", (dictionary,)).fetchone():
            connection.execute("UPDATE site SET dictionary_id = NULL WHERE dictionary_id = ?", (dictionary,))
            connection.execute("DELETE FROM dictionary WHERE id = ?", (dictionary,))
    _restate(connection, this, Reason.WAITING if deletion.again else Reason.DELETED)


def _reduce_totals(connection: sqlite3.Connection, this: dict[str, int]) -> None:
    asked = connection.execute(_REQUEST_COUNTS, this).fetchall()
    many = connection.executemany
    of_host = [(count, host_id) for host_id, _, count, _ in asked]
    many("UPDATE site SET fetched = max(0, fetched - ?) WHERE id = (SELECT site_id FROM host WHERE id = ?)", of_host)
    many("UPDATE host SET fetched = max(0, fetched - ?) WHERE id = ?", of_host)
    of_run = [(count, wire, run_id) for _, run_id, count, wire in asked]
    many("UPDATE run SET fetched = max(0, fetched - ?), wire_bytes = max(0, wire_bytes - ?) WHERE id = ?", of_run)


def _delete_queue_entries(connection: sqlite3.Connection, this: dict[str, int]) -> None:
    for host_id, entries in connection.execute(
        "SELECT host_id, count(*) FROM doomed_entry WHERE batch = :batch GROUP BY host_id", this
    ).fetchall():
        connection.execute("UPDATE host SET pending = pending - ? WHERE id = ?", (entries, host_id))
    connection.execute(
        (
            "DELETE FROM queue WHERE (host_id, priority, seq) IN (SELECT host_id, priority, seq"
            " FROM doomed_entry WHERE batch = :batch)"
        ),
        this,
    )


def _restate(connection: sqlite3.Connection, this: dict[str, int], reason: Reason) -> None:
    """Sets the reason of URLs that stay and deletes those that leave; URLs that leave later get DELETED until then."""
    tallies: Counter[str] = Counter()
    groups = f"id IN {_STAYING} OR id IN {_LATER} OR id IN {_LEAVING}"
    for name, count in connection.execute(f"SELECT reason, count(*) FROM url WHERE {groups} GROUP BY reason", this):
        tallies[f"reason:{name}"] -= count
    connection.execute(f"INSERT OR IGNORE INTO gone_host SELECT DISTINCT host_id FROM url WHERE id IN {_LEAVING}", this)
    tallies["known"] -= connection.execute(f"DELETE FROM url WHERE id IN {_LEAVING}", this).rowcount
    for group, becomes in ((_STAYING, reason), (_LATER, Reason.DELETED)):
        connection.execute("INSERT OR IGNORE INTO reason VALUES (?, ?)", (becomes.value, STATE_OF[becomes].value))
        update = f"UPDATE url SET reason = :reason, rule = '', status = NULL, visited = NULL WHERE id IN {group}"
        tallies[f"reason:{becomes.value}"] += connection.execute(update, this | {"reason": becomes.value}).rowcount
    # after the update, since a trigger writes the previous state
    connection.execute(f"DELETE FROM url_history WHERE url_id IN {_BATCH} OR url_id IN {_LEAVING}", this)
    upsert = "INSERT INTO tally VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
    connection.executemany(upsert, [(name, change) for name, change in tallies.items() if change])
    if reason is Reason.WAITING:
        _enqueue(connection, this)


def _enqueue(connection: sqlite3.Connection, this: dict[str, int]) -> None:
    seq = int(connection.execute("SELECT value FROM meta WHERE name = 'seq'").fetchone()[0])
    insert = (
        "INSERT INTO queue (host_id, priority, seq, url_id) SELECT host_id, coalesce(depth, :none),"
        " :seq + row_number() OVER (ORDER BY depth, text), id"
    )
    added = connection.execute(
        f"{insert} FROM url WHERE id IN {_STAYING}", this | {"none": PRIORITY_WITHOUT_DEPTH, "seq": seq}
    ).rowcount
    connection.execute("UPDATE meta SET value = ? WHERE name = 'seq'", (str(seq + added + 1),))
    hosts = connection.execute(
        f"SELECT host_id, count(*) FROM url WHERE id IN {_STAYING} GROUP BY host_id", this
    ).fetchall()
    connection.executemany(
        "UPDATE host SET pending = pending + ? WHERE id = ?", [(count, host_id) for host_id, count in hosts]
    )


def _end(connection: sqlite3.Connection, deletion: Deletion) -> None:
    """Deletes hosts and sites without URLs, and the run's own rows."""
    if deletion.site is not None:
        connection.execute(
            "INSERT OR IGNORE INTO gone_host SELECT h.id FROM host h JOIN site s ON s.id = h.site_id WHERE s.key = ?",
            (deletion.site,),
        )
        connection.execute("DELETE FROM evidence WHERE site_id = (SELECT id FROM site WHERE key = ?)", (deletion.site,))
    connection.execute(
        "DELETE FROM gone_host WHERE id IN (SELECT host_id FROM url WHERE host_id IN (SELECT id FROM gone_host))"
    )
    connection.execute("DELETE FROM gone_host WHERE id IN (SELECT id FROM host WHERE pending > 0)")
    gone = {key for (key,) in connection.execute("SELECT key FROM host WHERE id IN (SELECT id FROM gone_host)")}
    for (origin,) in connection.execute("SELECT origin FROM robots").fetchall() if gone else ():
        if host_key(Url(f"{origin}/")) in gone:
            connection.execute("DELETE FROM robots WHERE origin = ?", (origin,))
    for table in ("family", "shown"):
        connection.execute(f"DELETE FROM {table} WHERE host_id IN (SELECT id FROM gone_host)")
    connection.execute("DELETE FROM doubtful WHERE url_id NOT IN (SELECT id FROM url)")
    sites = "SELECT site_id FROM host WHERE id IN (SELECT id FROM gone_host)"
    emptied = connection.execute(f"SELECT DISTINCT site_id FROM ({sites})").fetchall()
    connection.execute("DELETE FROM host WHERE id IN (SELECT id FROM gone_host)")
    for site in emptied:
        if not connection.execute("SELECT 1 FROM host WHERE site_id = ? LIMIT 1", site).fetchone():
            connection.execute("DELETE FROM evidence WHERE site_id = ?", site)
            connection.execute("DELETE FROM dictionary WHERE id = (SELECT dictionary_id FROM site WHERE id = ?)", site)
            connection.execute("DELETE FROM site WHERE id = ?", site)
    if deletion.run:
        _end_run(connection, deletion.run)


def _end_run(connection: sqlite3.Connection, run_id: int) -> None:
    """Deletes a run's record.

    Its history rows are moved to the next run, so that earlier runs can still be compared.
    """
    following = connection.execute("SELECT min(id) FROM run WHERE id > ?", (run_id,)).fetchone()[0]
    for table in ("url_history", "page_history", "link_history") if following is not None else ():
        columns = [column for _, column, *_ in connection.execute(f"PRAGMA table_info({table})")]
        moved = ", ".join("?" if column == "run_id" else column for column in columns)
        connection.execute(
            f"INSERT OR REPLACE INTO {table} SELECT {moved} FROM {table} WHERE run_id = ?", (following, run_id)
        )
        connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
    for table in ("run_count", "issue"):
        connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
    connection.execute("DELETE FROM run WHERE id = ?", (run_id,))
