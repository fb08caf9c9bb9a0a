"""How is a collection read: bounded in time, at one moment? And what does it hold in all?

Functions over a connection that only reads. A crawl may go on meanwhile: each statement sees one moment, and `snapshot`
gives several statements the same one.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from periplus.errors import StoreError, UsageError
from periplus.model.frontier import HostRow, TrapTally
from periplus.model.results import StateTally
from periplus.model.visit import STATE_OF, Reason, State
from periplus.model.web import HostKey, SiteKey
from periplus.store.sqlite import schema

Connection = sqlite3.Connection  # by this name for those who may not speak SQL
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})  # of SQLite's primary codes; others say nothing of the file
BLOCK_ROWS = 2_000  # fetched at once: rows stream, and a call a row would cost a third more
LIMIT_STEPS = 20_000  # SQLite's steps between two looks at the clock: some 2 ms
SITE_OF_URL = "u.host_id IN (SELECT h.id FROM host h JOIN site s ON s.id = h.site_id WHERE s.key = ?)"


def connect(folder: Path) -> sqlite3.Connection:
    """A connection that only reads. Sorts spill to disk, so that a long list needs little memory. Raises NoCollection, StoreError."""
    connection = schema.connect(folder, read_only=True)
    connection.create_function("matches", 2, _matches, deterministic=True)
    return connection


def _matches(text: str, wanted: str) -> bool:
    """Whether text contains wanted, or matches it as a regular expression. `page?id=1` is meant as it stands."""
    if wanted in text:
        return True
    try:
        return re.search(wanted, text) is not None
    except re.error:
        return False


@contextlib.contextmanager
def reading(limit_s: float = 0.0) -> Iterator[None]:
    """Translates SQLite's errors. limit_s: what `limited` set, to be named."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted":
            raise StoreError(f"reading took longer than {limit_s:g} s and was stopped: ask for less, or allow more time") from None
        raise StoreError(f"the collection cannot be read: {error}") from error
    except sqlite3.ProgrammingError as error:
        if "closed" not in str(error):
            raise
        raise UsageError("the collection was closed: ask it while it is open, within `with periplus.open(FOLDER) as collection`") from None
    except OverflowError:
        raise UsageError("a number is too large: SQLite counts to 2 ** 63 - 1") from None
    except sqlite3.DatabaseError as error:
        if type(error) is not sqlite3.DatabaseError or getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF not in _DAMAGE:
            raise UsageError(f"this cannot be read: {error}") from None
        raise StoreError(f"the collection is damaged: {error}. Restore it from a copy, or crawl again into another folder.") from error


@contextlib.contextmanager
def limited(connection: sqlite3.Connection, limit_s: float) -> Iterator[None]:
    """Stops what reads longer than limit_s seconds within, with StoreError; 0: no limit."""
    if not limit_s:
        with reading():
            yield
        return
    deadline = time.monotonic() + limit_s
    connection.set_progress_handler(lambda: time.monotonic() > deadline, LIMIT_STEPS)
    try:
        with reading(limit_s):
            yield
    finally:
        with contextlib.suppress(sqlite3.ProgrammingError):  # closed meanwhile, by whoever stopped listening to a stream
            connection.set_progress_handler(None, 0)


@contextlib.contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Everything within sees the collection as it is at the first statement."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def rows(cursor: sqlite3.Cursor) -> Iterator[tuple[object, ...]]:
    """A cursor's rows, a block at a time."""
    while block := cursor.fetchmany(BLOCK_ROWS):
        yield from block


def is_being_crawled(connection: sqlite3.Connection, now: float) -> bool:
    """Whether a worker of this machine lives and holds a lease; a run that was killed still stands as running."""
    workers = connection.execute("SELECT pid FROM worker WHERE lease_until >= ?", (now,)).fetchall()
    return any(_lives(pid) for (pid,) in workers)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists, and is another user's
    return True


def counts(connection: sqlite3.Connection, site: SiteKey | None = None) -> list[StateTally]:
    """URLs by state and reason, states in the order of State, most URLs first; of one site (looks at every URL), or of all."""
    if site is None:
        found = connection.execute("SELECT substr(name, 8), value FROM tally WHERE name LIKE 'reason:%' AND value > 0").fetchall()
    else:
        found = connection.execute(f"SELECT u.reason, count(*) FROM url u WHERE {SITE_OF_URL} GROUP BY u.reason", (site,)).fetchall()
    tallies = [StateTally(STATE_OF[Reason(name)], Reason(name), urls) for name, urls in found]
    states = list(State)
    return sorted(tallies, key=lambda tally: (states.index(tally.state), -tally.urls, tally.reason))


def traps(connection: sqlite3.Connection) -> list[TrapTally]:
    """The families that were left out as endless series, the largest first; looks at every URL where there are any."""
    if not connection.execute("SELECT 1 FROM tally WHERE name = 'reason:trap' AND value > 0").fetchone():
        return []
    find = "SELECT substr(rule, 1, instr(rule, ': ') - 1), count(*) FROM url WHERE reason = 'trap' GROUP BY 1 ORDER BY 2 DESC, 1"
    return [TrapTally(family, urls) for family, urls in connection.execute(find)]


def sums(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """(hosts met, hosts with work waiting, entries of their to-do lists)."""
    row = connection.execute("SELECT count(*), count(*) FILTER (WHERE pending > 0), coalesce(sum(pending), 0) FROM host").fetchone()
    return int(row[0]), int(row[1]), int(row[2])


def hosts_at_work(connection: sqlite3.Connection, most: int, now: float) -> list[HostRow]:
    """Hosts with work, those with most waiting first."""
    find = "SELECT key, pending, fetched, next_at - ?, waits_for, lease_by IS NOT NULL FROM host WHERE pending > 0 ORDER BY pending DESC, key LIMIT ?"
    found = connection.execute(find, (now, most)).fetchall()
    return [HostRow(HostKey(key), pending, fetched, max(0.0, wait), why, bool(leased)) for key, pending, fetched, wait, why, leased in found]
