"""The runs of a collection in a folder: how each begins and ends, and whether it is paused or moved away."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from periplus.errors import StoreError
from periplus.model.ports import RunRecord
from periplus.model.web import Url, UrlId
from periplus.settings import Settings, as_values
from periplus.store.sqlite import checks, schema

__all__ = [
    "CRAWL_LOCK",
    "MOVED",
    "NOTICED_S",
    "PAUSED",
    "RunRecord",
    "add_starts",
    "begin_run",
    "end_run",
    "follow",
    "is_paused",
    "last_known",
    "mark",
    "only_crawl",
    "pause",
    "refuse",
    "resume",
    "run_records",
]


# A pause is a word in the table meta, there until the crawl is resumed or ends, or another one begins.

PAUSED = "paused"  # in meta: since when


def is_paused(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM meta WHERE name = ?", (PAUSED,)).fetchone() is not None


def pause(connection: sqlite3.Connection, now: float) -> None:
    """Within a transaction."""
    connection.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (PAUSED, repr(now)))


def resume(connection: sqlite3.Connection) -> bool:
    """Whether it was paused. Within a transaction."""
    return connection.execute("DELETE FROM meta WHERE name = ?", (PAUSED,)).rowcount > 0


# A collection that moved away is read as before, and crawled no more.

MOVED = "moved"  # in meta: where to


def mark(connection: sqlite3.Connection, place: str) -> None:
    """Within a transaction."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (MOVED, place))


def refuse(connection: sqlite3.Connection) -> None:
    """Raises StoreError if it did."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (MOVED,)).fetchone()
    if row:
        raise StoreError(f"this collection moved to {row[0]}: crawl there. Here it stays as it was, to be read.")


# When the clock is set back, times that were kept move with it: else each host would wait until
# the old time comes again.
#
# A clock that is set forward needs nothing: what waited is due, and leases that seem to be over cost a page each.

NOTICED_S = 1.0  # less is a clock being kept right; what waits for so much longer is no harm


def last_known(connection: sqlite3.Connection) -> float:
    """The latest time that the runs so far are known to have reached; 0 without a run."""
    run = connection.execute("SELECT max(max(started), coalesce(max(ended), 0)) FROM run").fetchone()[0]
    visit = connection.execute("SELECT started FROM visit ORDER BY id DESC LIMIT 1").fetchone()
    return max(run or 0.0, visit[0] if visit else 0.0)


def follow(connection: sqlite3.Connection, back_s: float, now: float) -> None:
    """Moves what waits for a time to come, in the transaction of the caller. now: by the clock as it is set now."""
    if back_s <= NOTICED_S:
        return
    connection.execute("UPDATE host SET next_at = next_at - ? WHERE next_at > ?", (back_s, now))
    connection.execute("UPDATE queue SET not_before = not_before - ? WHERE not_before > ?", (back_s, now))
    connection.execute("UPDATE worker SET lease_until = lease_until - ?", (back_s,))


CRAWL_LOCK = "crawl.lock"  # held by whoever crawls; the file itself says nothing, and stays


@contextlib.contextmanager
def only_crawl(folder: Path) -> Iterator[None]:
    """Holds a collection for one crawl.

    The kernel frees it when its holder dies, however that happens; child processes do not inherit it. Raises StoreError
    when another crawl holds it: two would each take the other's limits and run for their own.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / CRAWL_LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(
            f"no collection can be kept in {folder}: {error.strerror}. Is the disk full, or the folder read-only?"
        ) from error
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(file, 0)
        os.write(file, str(os.getpid()).encode())
    except ImportError:  # no such locks on this system
        pass
    except BlockingIOError:
        who = os.read(file, 20).decode("ascii", "replace") or "?"
        os.close(file)
        raise StoreError(
            f"another crawl (process {who}) is at work on {folder}. Wait for its end, stop it, or "
            "choose another folder with -o."
        ) from None
    try:
        yield
    finally:
        os.close(file)


def begin_run(
    folder: Path,
    kind: str,
    starts: Sequence[Url],
    settings: Settings,
    now: float,
    further: Mapping[str, object] | None = None,
) -> int:
    """A new run; returns its id. What earlier runs knew of hosts' failures is forgotten: they are asked anew.

    further: what else decides how it goes, kept among its settings; `seed` stands in a column of its own.
    """
    with schema.writing(folder) as connection:
        refuse(connection)
        resume(connection)
        checks.lift(connection)
        follow(connection, last_known(connection) - now, now)
        connection.execute(
            "UPDATE run SET state = 'stopped', note = 'it did not end by itself', ended = ? WHERE state = 'running'",
            (now,),
        )
        connection.execute("UPDATE host SET strikes = 0, waits_for = ''")
        connection.execute("DELETE FROM robots WHERE cause <> '' OR status >= 500 OR status = 429")
        insert = "INSERT INTO run (kind, starts, settings, seed, started, state) VALUES (?, ?, ?, ?, ?, 'running')"
        # a password is no part of the record
        values = as_values(settings) | {"auth": "***" if settings.identity.auth else ""}
        values |= further or {}
        row = connection.execute(
            insert, (kind, json.dumps(list(starts)), json.dumps(values), values.get("seed", 0), now)
        )
        return int(row.lastrowid or 0)


def add_starts(folder: Path, ids: Sequence[UrlId], now: float) -> None:
    with schema.writing(folder) as connection:
        connection.executemany("INSERT OR IGNORE INTO start VALUES (?, ?)", [(url_id, now) for url_id in ids])


def end_run(folder: Path, run_id: int, state: str, note: str, now: float) -> None:
    with schema.writing(folder) as connection:
        resume(connection)
        checks.settle(connection)  # before the run ends: history tells it by its run
        connection.execute("UPDATE run SET state = ?, note = ?, ended = ? WHERE id = ?", (state, note, now, run_id))


def run_records(connection: sqlite3.Connection) -> list[RunRecord]:
    """All runs, oldest first."""
    columns = "id, kind, starts, settings, seed, started, ended, state, note, fetched, wire_bytes"
    return [
        RunRecord(row[0], row[1], tuple(json.loads(row[2])), json.loads(row[3]), *row[4:])
        for row in connection.execute(f"SELECT {columns} FROM run ORDER BY id")
    ]
