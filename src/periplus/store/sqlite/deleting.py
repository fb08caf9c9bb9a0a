"""How do pages, a site or a run leave a collection, so that it is as if they had never been there?

Each transaction takes some thousands of URLs with all that is theirs, and leaves every sum right: a kill between two loses nothing but time.
What was deleted is overwritten in the file. Depths stay as they were found: they tell how near a page once was, as after a refresh.
What runs counted as new or changed stays too: it is what they found then.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from periplus.model.deletion import Deletion, DeletionPlan
from periplus.model.frontier import LAYER_NONE
from periplus.model.visit import STATE_OF, Reason
from periplus.model.web import Url, UrlId
from periplus.store.sqlite import doomed, schema
from periplus.urls.hosts import host_key

Watch = Callable[[int, int], bool]  # (URLs done, of how many) -> stop

_BATCH = "(SELECT id FROM doomed WHERE batch = :batch)"
_LEAVING = "(SELECT id FROM doomed WHERE leaves = :batch AND NOT stays UNION ALL SELECT id FROM orphan WHERE batch = :batch)"
_STAYING = "(SELECT id FROM doomed WHERE batch = :batch AND stays)"
_LATER = "(SELECT id FROM doomed WHERE batch = :batch AND NOT stays AND leaves > batch)"
_VISITS = "(SELECT id FROM doomed_visit WHERE batch = :batch)"
_BODIES = "(SELECT id FROM doomed_body WHERE batch = :batch)"
_OWN = (  # of the pages; each by a key, so that a batch costs what it holds
    f"DELETE FROM page WHERE url_id IN {_BATCH}",
    f"DELETE FROM bad_link WHERE source IN {_BATCH}",
    f"DELETE FROM link WHERE source IN {_BATCH}",
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
    "DELETE FROM link WHERE (source, target) IN (SELECT source, target FROM inlink WHERE batch = :batch)",
    "DELETE FROM link_history WHERE (source, target) IN (SELECT source, target FROM inlink WHERE batch = :batch)",
)
_ASKED = (  # what sums of hosts, sites and runs count, by host and run
    "SELECT u.host_id AS host_id, v.run_id AS run_id, count(*) AS many, sum(v.wire_bytes) AS wire FROM doomed_visit d CROSS JOIN visit v ON v.id = d.id"
    " JOIN url u ON u.id = coalesce(nullif(v.url_id, 0), id_of(v.text)) WHERE d.batch = :batch AND v.outcome <> 'skipped'"
    " AND ((v.purpose = 'page' AND v.url_id <> 0) OR v.purpose IN ('head', 'check')) GROUP BY 1, 2"
)


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[sqlite3.Connection]:
    """A connection that may mark what goes. Raises NoCollection, StoreError."""
    with contextlib.closing(schema.connect(folder)) as connection:
        connection.execute("PRAGMA temp_store = FILE")  # of a large site the marks are many
        connection.execute("PRAGMA secure_delete = ON")
        yield connection


def texts_of(connection: sqlite3.Connection, ids: Iterable[UrlId]) -> list[Url]:
    """The addresses of those that are known, in the order given."""
    found = (connection.execute("SELECT text FROM url WHERE id = ?", (identity,)).fetchone() for identity in ids)
    return [Url(row[0]) for row in found if row]


def planned(folder: Path, wish: Deletion) -> DeletionPlan:
    """What the deletion would take; changes nothing. Raises UsageError, NoCollection, StoreError."""
    with opened(folder) as connection:
        return doomed.find(connection, wish)


def chosen(folder: Path, wish: Deletion) -> int:
    """How many URLs the deletion would take, at once. Raises as `planned`."""
    with opened(folder) as connection:
        return doomed.chosen(connection, wish)


def delete(folder: Path, wish: Deletion, watch: Watch) -> DeletionPlan:
    """Deletes, until watch says stop. Nobody may be crawling. Returns what was planned. Raises as `planned`."""
    with opened(folder) as connection, contextlib.closing(schema.WriteLock(folder)) as lock:
        plan = doomed.find(connection, wish)
        last = doomed.last_batch(connection)
        for batch in range(plan.batches):
            with lock.transaction(connection):
                newest = connection.execute("SELECT coalesce(max(id), 0) FROM visit").fetchone()[0]
                _delete_batch(connection, batch, wish)
                if batch == last:
                    _end(connection, wish)
                _renumber_last_visit(connection, newest + 1)
            if watch(min((batch + 1) * doomed.BATCH, plan.urls), plan.urls) and batch < last:
                break
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the deleted rows leave the log too
        return plan


def _renumber_last_visit(connection: sqlite3.Connection, number: int) -> None:
    """number: greater than any before. What was computed of a collection holds as long as its last visit has the same one: here it ends."""
    last = connection.execute("SELECT max(id) FROM visit").fetchone()[0]
    for table, column in (("visit", "id"), ("look", "visit_id"), ("doomed_visit", "id")):
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (number, last))


def shrink(folder: Path) -> None:
    """Gives the space of what was deleted back to the disk: the file is written anew. Nobody may be at work."""
    with contextlib.closing(schema.connect(folder)) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _delete_batch(connection: sqlite3.Connection, batch: int, wish: Deletion) -> None:
    run, this = connection.execute, {"batch": batch}
    _take_from_sums(connection, this)
    _leave_lists(connection, this)
    dictionaries = run(f"SELECT DISTINCT dictionary_id FROM body WHERE id IN {_BODIES} AND dictionary_id IS NOT NULL", this).fetchall()
    if run("SELECT 1 FROM sqlite_master WHERE name = 'portal_page'").fetchone():
        run(f"DELETE FROM portal_page WHERE url IN (SELECT text FROM url WHERE id IN {_BATCH})", this)
    for statement in _OWN:
        run(statement, this)
    for (dictionary,) in dictionaries:
        if not run("SELECT 1 FROM body WHERE dictionary_id = ? LIMIT 1", (dictionary,)).fetchone():
            run("UPDATE site SET dictionary_id = NULL WHERE dictionary_id = ?", (dictionary,))
            run("DELETE FROM dictionary WHERE id = ?", (dictionary,))
    _restate(connection, this, Reason.WAITING if wish.again else Reason.DELETED)


def _take_from_sums(connection: sqlite3.Connection, this: dict[str, int]) -> None:
    asked = connection.execute(_ASKED, this).fetchall()
    many = connection.executemany
    of_host = [(count, host_id) for host_id, _, count, _ in asked]
    many("UPDATE site SET fetched = max(0, fetched - ?) WHERE id = (SELECT site_id FROM host WHERE id = ?)", of_host)
    many("UPDATE host SET fetched = max(0, fetched - ?) WHERE id = ?", of_host)
    of_run = [(count, wire, run_id) for _, run_id, count, wire in asked]
    many("UPDATE run SET fetched = max(0, fetched - ?), wire_bytes = max(0, wire_bytes - ?) WHERE id = ?", of_run)


def _leave_lists(connection: sqlite3.Connection, this: dict[str, int]) -> None:
    run = connection.execute
    for host_id, entries in run("SELECT host_id, count(*) FROM doomed_entry WHERE batch = :batch GROUP BY host_id", this).fetchall():
        run("UPDATE host SET pending = pending - ? WHERE id = ?", (entries, host_id))
    run("DELETE FROM queue WHERE (host_id, layer, seq) IN (SELECT host_id, layer, seq FROM doomed_entry WHERE batch = :batch)", this)


def _restate(connection: sqlite3.Connection, this: dict[str, int], reason: Reason) -> None:
    """Addresses that stay get their reason, those that leave go; those that leave later are without a page until then."""
    run = connection.execute
    tallies: Counter[str] = Counter()
    groups = f"id IN {_STAYING} OR id IN {_LATER} OR id IN {_LEAVING}"
    for name, count in run(f"SELECT reason, count(*) FROM url WHERE {groups} GROUP BY reason", this):
        tallies[f"reason:{name}"] -= count
    run(f"INSERT OR IGNORE INTO gone_host SELECT DISTINCT host_id FROM url WHERE id IN {_LEAVING}", this)
    tallies["known"] -= run(f"DELETE FROM url WHERE id IN {_LEAVING}", this).rowcount
    for group, becomes in ((_STAYING, reason), (_LATER, Reason.DELETED)):
        run("INSERT OR IGNORE INTO reason VALUES (?, ?)", (becomes.value, STATE_OF[becomes].value))
        update = f"UPDATE url SET reason = :reason, rule = '', status = NULL, visited = NULL WHERE id IN {group}"
        tallies[f"reason:{becomes.value}"] += run(update, this | {"reason": becomes.value}).rowcount
    run(f"DELETE FROM url_history WHERE url_id IN {_BATCH} OR url_id IN {_LEAVING}", this)  # after it: a trigger keeps what the URL was
    upsert = "INSERT INTO tally VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
    connection.executemany(upsert, [(name, change) for name, change in tallies.items() if change])
    if reason is Reason.WAITING:
        _enqueue(connection, this)


def _enqueue(connection: sqlite3.Connection, this: dict[str, int]) -> None:
    run = connection.execute
    seq = int(run("SELECT value FROM meta WHERE name = 'seq'").fetchone()[0])
    insert = "INSERT INTO queue (host_id, layer, seq, url_id) SELECT host_id, coalesce(layer, :none), :seq + row_number() OVER (ORDER BY layer, text), id"
    added = run(f"{insert} FROM url WHERE id IN {_STAYING}", this | {"none": LAYER_NONE, "seq": seq}).rowcount
    run("UPDATE meta SET value = ? WHERE name = 'seq'", (str(seq + added + 1),))
    hosts = run(f"SELECT host_id, count(*) FROM url WHERE id IN {_STAYING} GROUP BY host_id", this).fetchall()
    connection.executemany("UPDATE host SET pending = pending + ? WHERE id = ?", [(count, host_id) for host_id, count in hosts])


def _end(connection: sqlite3.Connection, wish: Deletion) -> None:
    """What is known when all URLs are gone: hosts and sites without any, and the run's own rows."""
    run = connection.execute
    if wish.site is not None:
        run("INSERT OR IGNORE INTO gone_host SELECT h.id FROM host h JOIN site s ON s.id = h.site_id WHERE s.key = ?", (wish.site,))
        run("DELETE FROM evidence WHERE site_id = (SELECT id FROM site WHERE key = ?)", (wish.site,))
    run("DELETE FROM gone_host WHERE id IN (SELECT host_id FROM url WHERE host_id IN (SELECT id FROM gone_host))")
    run("DELETE FROM gone_host WHERE id IN (SELECT id FROM host WHERE pending > 0)")
    gone = {key for (key,) in run("SELECT key FROM host WHERE id IN (SELECT id FROM gone_host)")}
    for (origin,) in run("SELECT origin FROM robots").fetchall() if gone else ():
        if host_key(Url(f"{origin}/")) in gone:
            run("DELETE FROM robots WHERE origin = ?", (origin,))
    for table in ("family", "shown"):
        run(f"DELETE FROM {table} WHERE host_id IN (SELECT id FROM gone_host)")
    run("DELETE FROM doubtful WHERE url_id NOT IN (SELECT id FROM url)")
    sites = "SELECT site_id FROM host WHERE id IN (SELECT id FROM gone_host)"
    emptied = run(f"SELECT DISTINCT site_id FROM ({sites})").fetchall()
    run("DELETE FROM host WHERE id IN (SELECT id FROM gone_host)")
    for site in emptied:
        if not run("SELECT 1 FROM host WHERE site_id = ? LIMIT 1", site).fetchone():
            run("DELETE FROM evidence WHERE site_id = ?", site)
            run("DELETE FROM dictionary WHERE id = (SELECT dictionary_id FROM site WHERE id = ?)", site)
            run("DELETE FROM site WHERE id = ?", site)
    if wish.run:
        _end_run(connection, wish.run)


def _end_run(connection: sqlite3.Connection, run_id: int) -> None:
    """The run's record. What stood before it is kept for the run that followed, so that earlier ones can still be compared."""
    run = connection.execute
    following = run("SELECT min(id) FROM run WHERE id > ?", (run_id,)).fetchone()[0]
    for table in ("url_history", "page_history", "link_history") if following is not None else ():
        columns = [column for _, column, *_ in run(f"PRAGMA table_info({table})")]
        moved = ", ".join("?" if column == "run_id" else column for column in columns)
        run(f"INSERT OR REPLACE INTO {table} SELECT {moved} FROM {table} WHERE run_id = ?", (following, run_id))
        run(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
    for table in ("run_count", "issue"):
        run(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
    run("DELETE FROM run WHERE id = ?", (run_id,))
