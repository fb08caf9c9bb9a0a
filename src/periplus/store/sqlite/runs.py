"""The runs of a collection in a folder: one at a time, with a clock that may be set back."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from periplus.children import private_files
from periplus.errors import StoreError
from periplus.model.ports import CrawlScope, RunRecord
from periplus.model.visit import Reason
from periplus.model.web import HostKey, Url
from periplus.store import runs
from periplus.store.sqlite import schema
from periplus.store.statements import Statements
from periplus.store.url_state import SITE_REMOVED_RULE, UNKNOWN_DEPTH
from periplus.urls.hosts import host_url

# If the clock is set back, stored times are moved back too; otherwise each host would wait until the old time is
# reached again. A clock that is set forward needs no handling: waiting hosts become due, and each lease that seems to
# have expired costs one page.

NOTICED_S = 1.0  # smaller steps are clock corrections, and waiting that much longer does no harm


def latest_time_s(statements: Statements) -> float:
    """Latest time recorded by runs; 0 without a run."""
    times = statements.rows("SELECT max(max(started), coalesce(max(ended), 0)) FROM run")
    times += statements.rows("SELECT started FROM (SELECT started FROM visit ORDER BY id DESC LIMIT 1)")
    return max(time_s or 0.0 for (time_s,) in times)


def follow(statements: Statements, back_s: float, now: float) -> None:
    """Moves future times back, in the transaction of the caller. now: of the changed clock."""
    if back_s <= NOTICED_S:
        return
    statements.change("UPDATE host SET next_at = next_at - ? WHERE next_at > ?", (back_s, now))
    statements.change("UPDATE queue SET not_before = not_before - ? WHERE not_before > ?", (back_s, now))
    statements.change("UPDATE worker SET lease_until = lease_until - ?", (back_s,))


CRAWL_LOCK = "crawl.lock"  # locked by the running crawl; the file itself stays


@contextlib.contextmanager
def only_crawl(folder: Path) -> Iterator[None]:
    """Locks a collection for one crawl.

    The kernel releases the lock when its holder dies; child processes do not inherit it. Raises StoreError if another
    crawl holds it, since two would each use the other's limits and run.
    """
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        file = os.open(folder / CRAWL_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(
            f"cannot store a collection in {folder}: {error.strerror}. Is the disk full, or the folder read-only?"
        ) from error
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(file, 0)
        os.write(file, str(os.getpid()).encode())
    except ImportError:  # not available on this system
        pass
    except BlockingIOError:
        who = os.read(file, 20).decode("ascii", "replace") or "?"
        os.close(file)
        raise StoreError(
            f"another crawl (process {who}) is running on {folder}. Wait for its end, stop it, or "
            "choose another folder with -o."
        ) from None
    try:
        with private_files():
            yield
    finally:
        os.close(file)


def contents(folder: Path) -> list[Path]:
    """Files of the collection in folder, which `--fresh` deletes.

    Settings (periplus.toml) are not included.
    """
    names = (
        schema.DATABASE,
        schema.DATABASE + "-wal",
        schema.DATABASE + "-shm",
        "write.lock",
        "search",
        "search.lock",
        "vectors",
        "links.book",
        "stories.read",
        "issues.read",
        "report.read",
        "site.layout",
    )
    return [folder / name for name in names if (folder / name).exists()]


def names_in(folder: Path) -> list[str] | None:
    """Names in a folder, or None if it does not exist."""
    return [path.name for path in folder.iterdir()] if folder.is_dir() else None


def delete(paths: Iterable[Path]) -> None:
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def discard(folder: Path, before: Collection[str] | None) -> bool:
    """Deletes a new collection without pages and survey; the caller holds `only_crawl`. Returns whether it was deleted.

    before: `names_in` the folder before the collection was created. These files stay.
    """
    find = "SELECT EXISTS (SELECT 1 FROM page) OR EXISTS (SELECT 1 FROM meta WHERE name = 'survey')"
    with contextlib.closing(schema.connect(folder)) as connection:
        if connection.execute(find).fetchone()[0]:
            return False
    delete(path for path in (*contents(folder), folder / CRAWL_LOCK) if path.name not in (before or ()))
    if before is None:
        with contextlib.suppress(OSError):  # the folder is not empty
            folder.rmdir()
    return True


def run_records(connection: sqlite3.Connection) -> list[RunRecord]:
    """All runs, oldest first."""
    return runs.records(schema.SqliteStatements(connection))


def apply_scope(connection: sqlite3.Connection, scope: CrawlScope) -> None:
    """See `model.ports.RunStore.apply_scope`. Call it within a transaction."""
    _reassign_hosts(connection, scope)
    moves: Counter[str] = Counter()
    gone: list[tuple[int]] = []
    come: list[tuple[str, bool, int]] = []
    for row, text, reason, rule in connection.execute(
        "SELECT id, text, reason, rule FROM url WHERE reason IN ('waiting', 'scope', 'depth')"
    ):
        inside = scope.decide(Url(text)) is None
        if inside and reason == Reason.SCOPE:
            come.append((UNKNOWN_DEPTH, rule == SITE_REMOVED_RULE, row))
        elif not inside and reason != Reason.SCOPE:
            gone.append((row,))
            moves[reason] += 1
    connection.executemany("UPDATE url SET reason = 'depth', rule = ?, depth = iif(?, depth, NULL) WHERE id = ?", come)
    connection.executemany(
        "UPDATE url SET reason = 'scope', rule = ? WHERE id = ?", [(SITE_REMOVED_RULE, *row) for row in gone]
    )
    _count(
        connection,
        {"scope": len(gone) - len(come), "depth": len(come) - moves["depth"], "waiting": -moves["waiting"]},
    )
    _drop_entries(connection, gone)


def _reassign_hosts(connection: sqlite3.Connection, scope: CrawlScope) -> None:
    rows = connection.execute("SELECT h.id, h.key, s.key FROM host h JOIN site s ON s.id = h.site_id").fetchall()
    moved = [(site, id_) for id_, host, held in rows if (site := scope.site_of(host_url(HostKey(host)))) != held]
    connection.executemany("INSERT OR IGNORE INTO site (key) VALUES (?)", [(site,) for site, _ in moved])
    connection.executemany("UPDATE host SET site_id = (SELECT id FROM site WHERE key = ?) WHERE id = ?", moved)
    if moved:
        connection.execute(
            "UPDATE site SET fetched = (SELECT coalesce(sum(fetched), 0) FROM host WHERE site_id = site.id)"
        )


def _drop_entries(connection: sqlite3.Connection, gone: list[tuple[int]]) -> None:
    if not gone:
        return
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS gone (id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM gone")
    connection.executemany("INSERT INTO gone VALUES (?)", gone)
    connection.execute("DELETE FROM queue WHERE url_id IN (SELECT id FROM gone)")
    hosts = "SELECT DISTINCT u.host_id FROM gone g JOIN url u ON u.id = g.id"
    connection.execute(
        f"UPDATE host SET pending = (SELECT count(*) FROM queue q WHERE q.host_id = host.id) WHERE id IN ({hosts})"
    )


def _count(connection: sqlite3.Connection, changes: dict[str, int]) -> None:
    upsert = "INSERT INTO tally VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
    connection.executemany(upsert, [("reason:" + name, change) for name, change in changes.items() if change])
