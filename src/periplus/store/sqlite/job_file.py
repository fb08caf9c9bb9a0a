"""The job queue in one file of a folder of collections."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from periplus.errors import StoreError
from periplus.store.job_queue import JobQueue
from periplus.store.sqlite.schema import SqliteStatements, connect_file, refuse_network_disk
from periplus.store.statements import SQLITE, Statements

T = TypeVar("T")
DATABASE = "jobs.db"
_TABLES = """
CREATE TABLE IF NOT EXISTS job (
    id INTEGER PRIMARY KEY AUTOINCREMENT, command TEXT NOT NULL, priority INTEGER NOT NULL, run_at REAL NOT NULL, most_attempts INTEGER NOT NULL,
    schedule_id INTEGER NOT NULL, state TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL DEFAULT 0, note TEXT NOT NULL DEFAULT '',
    attempt INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL DEFAULT 0, runner TEXT NOT NULL DEFAULT '', lease_until REAL NOT NULL DEFAULT 0,
    cancel_asked INTEGER NOT NULL DEFAULT 0, made REAL NOT NULL, started REAL, ended REAL, next TEXT NOT NULL DEFAULT '[]');
CREATE UNIQUE INDEX IF NOT EXISTS job_wanted ON job (command) WHERE state IN ('queued', 'running') AND NOT cancel_asked;
CREATE INDEX IF NOT EXISTS job_next ON job (priority DESC, id) WHERE state = 'queued';
CREATE TABLE IF NOT EXISTS schedule (
    id INTEGER PRIMARY KEY AUTOINCREMENT, command TEXT NOT NULL UNIQUE, priority INTEGER NOT NULL, most_attempts INTEGER NOT NULL,
    period_s REAL NOT NULL, next_at REAL NOT NULL, paused INTEGER NOT NULL DEFAULT 0, next TEXT NOT NULL DEFAULT '[]');
"""  # noqa: E501


def folder_queue(folder: Path) -> JobQueue:
    """Opens the job queue of a folder, which is created if missing. Raises StoreError."""
    return JobQueue(JobFile(folder))


def remove_empty_file(path: Path) -> None:
    """Removes a database file without rows, unless another process has it open."""
    if not path.is_file():
        return
    with contextlib.suppress(OSError, sqlite3.DatabaseError), contextlib.closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        tables = [name for name in names if not name.startswith("sqlite_")]
        if any(connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() for name in tables):
            return
        connection.execute("PRAGMA busy_timeout = 0")
        if connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",):  # fails if others have it open
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            path.unlink()


class JobFile:
    """`store.statements.Database` of a folder's jobs."""

    dialect = SQLITE

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            refuse_network_disk(folder)
            (folder / DATABASE).touch(0o600)
            self.connection = connect_file(folder / DATABASE)
            self.connection.executescript(_TABLES)
        except (OSError, sqlite3.DatabaseError) as error:
            raise StoreError(
                f"cannot store a job queue in {folder}: {error}. Is the disk full, or the folder read-only?"
            ) from error

    def close(self) -> None:
        self.connection.close()

    def run(self, action: Callable[[Statements], T]) -> T:
        with self._transaction():
            return action(SqliteStatements(self.connection))

    def read(self, action: Callable[[Statements], T]) -> T:
        return action(SqliteStatements(self.connection))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self.connection:  # commits at the end, or rolls back
                self.connection.execute("BEGIN IMMEDIATE")
                yield
        except sqlite3.OperationalError as error:
            raise StoreError(
                f"the job queue cannot be written: {error}. Is the disk full, or the folder read-only?"
            ) from error
