"""How is the queue of jobs kept in one file of a folder of collections?

See `model.job.JobStore` for what it promises.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from periplus.errors import StoreError
from periplus.model.job import Job, JobOrder, JobProgress, JobState, Schedule
from periplus.store.job_rows import (
    DIED,
    DIED_TOO_OFTEN,
    JOB,
    ORDER,
    SCHEDULE,
    command_text,
    job_of,
    no_schedule,
    order_row,
    schedule_of,
    schedule_row,
    successor,
    tick_after,
)
from periplus.store.sqlite.schema import BUSY_TIMEOUT_S, refuse_network_disk

DATABASE = "jobs.db"
_TABLES = """
CREATE TABLE IF NOT EXISTS job (
    id INTEGER PRIMARY KEY AUTOINCREMENT, command TEXT NOT NULL, priority INTEGER NOT NULL, run_at REAL NOT NULL, most_attempts INTEGER NOT NULL,
    schedule_id INTEGER NOT NULL, state TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL DEFAULT 0, note TEXT NOT NULL DEFAULT '',
    attempt INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL DEFAULT 0, runner TEXT NOT NULL DEFAULT '', lease_until REAL NOT NULL DEFAULT 0,
    cancel_asked INTEGER NOT NULL DEFAULT 0, made REAL NOT NULL, started REAL, ended REAL, next TEXT NOT NULL DEFAULT '[]');
CREATE UNIQUE INDEX IF NOT EXISTS job_wanted ON job (command) WHERE state IN ('queued', 'running') AND NOT cancel_asked;
DROP INDEX IF EXISTS job_open;
CREATE INDEX IF NOT EXISTS job_next ON job (priority DESC, id) WHERE state = 'queued';
CREATE TABLE IF NOT EXISTS schedule (
    id INTEGER PRIMARY KEY AUTOINCREMENT, command TEXT NOT NULL UNIQUE, priority INTEGER NOT NULL, most_attempts INTEGER NOT NULL,
    period_s REAL NOT NULL, next_at REAL NOT NULL, paused INTEGER NOT NULL DEFAULT 0, next TEXT NOT NULL DEFAULT '[]');
"""  # noqa: E501
# one that is told to stop does not do what is asked for now
_WANTED = "state IN ('queued', 'running') AND NOT cancel_asked"


class JobQueue:
    """The jobs and schedules of one folder. Each call is one transaction."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            refuse_network_disk(folder)
            self._connection = sqlite3.connect(folder / DATABASE, isolation_level=None, timeout=BUSY_TIMEOUT_S)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.executescript(_TABLES)
            self._widen()
        except (OSError, sqlite3.DatabaseError) as error:
            raise StoreError(
                f"no job queue can be kept in {folder}: {error}. Is the disk full, or the folder read-only?"
            ) from error

    def _widen(self) -> None:
        """A queue that was made before jobs had successors gets the column for them."""
        for table in ("job", "schedule"):
            if "next" not in {row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")}:
                with contextlib.suppress(sqlite3.OperationalError):  # another process was faster
                    self._connection.execute(f"ALTER TABLE {table} ADD COLUMN next TEXT NOT NULL DEFAULT '[]'")

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._connection:  # commits what is open at its end, or rolls it back
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
        except sqlite3.OperationalError as error:
            raise StoreError(
                f"the job queue cannot be written: {error}. Is the disk full, or the folder read-only?"
            ) from error

    def add(self, order: JobOrder, now: float) -> Job:
        with self._changing() as connection:
            return self._add(connection, order, now)

    def _add(self, connection: sqlite3.Connection, order: JobOrder, now: float) -> Job:
        connection.execute(
            f"INSERT INTO job ({ORDER}, state, made) VALUES (?, ?, ?, ?, ?, ?, 'queued', ?)"
            f" ON CONFLICT (command) WHERE {_WANTED}"
            " DO UPDATE SET priority = max(priority, excluded.priority), run_at = min(run_at, excluded.run_at),"
            " next = CASE WHEN excluded.next = '[]' THEN next ELSE excluded.next END",
            (*order_row(order, now), now),
        )
        return self._one(f"SELECT {JOB} FROM job WHERE command = ? AND {_WANTED}", command_text(order))

    def claim(self, runner: str, now: float, lease_s: float) -> Job | None:
        with self._changing() as connection:
            self._end_dead_leases(connection, now)
            found = connection.execute(
                "SELECT id FROM job WHERE state = 'queued' AND run_at <= ? ORDER BY priority DESC, id LIMIT 1", (now,)
            ).fetchone()
            if found is None:
                return None
            connection.execute(
                "UPDATE job SET state = 'running', runner = ?, lease_until = ?, epoch = epoch + 1, attempt = attempt "
                "+ 1, started = ?, note = '',"
                " done = 0, total = 0 WHERE id = ?",
                (runner, now + lease_s, now, found[0]),
            )
            return self._one(f"SELECT {JOB} FROM job WHERE id = ?", found[0])

    @staticmethod
    def _end_dead_leases(connection: sqlite3.Connection, now: float) -> None:
        dead = "state = 'running' AND lease_until < ?"
        connection.execute(
            f"UPDATE job SET state = 'cancelled', ended = ?, note = 'cancelled' WHERE {dead} AND cancel_asked",
            (now, now),
        )
        connection.execute(
            f"UPDATE job SET state = 'failed', ended = ?, note = ? WHERE {dead} AND attempt >= most_attempts",
            (now, DIED_TOO_OFTEN, now),
        )
        connection.execute(f"UPDATE job SET state = 'queued', note = ? WHERE {dead}", (DIED, now))

    def beat(self, job: Job, progress: JobProgress, now: float, lease_s: float) -> bool:
        with self._changing() as connection:
            mine = "WHERE id = ? AND epoch = ? AND state = 'running'"
            row = (now + lease_s, progress.done, progress.total, progress.note, job.id, job.epoch)
            if not connection.execute(
                f"UPDATE job SET lease_until = ?, done = ?, total = ?, note = ? {mine}", row
            ).rowcount:
                return False
            return not connection.execute("SELECT cancel_asked FROM job WHERE id = ?", (job.id,)).fetchone()[0]

    def finish(self, job: Job, state: JobState, note: str, now: float, wait_s: float = 0.0) -> bool:
        with self._changing() as connection:
            if state is JobState.QUEUED and self.job(job.id).cancel_asked:
                state = JobState.CANCELLED
            ended = None if state is JobState.QUEUED else now
            update = (
                "UPDATE job SET state = ?, note = ?, ended = ?, run_at = max(run_at, ?), lease_until = 0 WHERE id = ?"
                " AND epoch = ? AND state = 'running'"
            )
            entered = bool(
                connection.execute(update, (state.value, note, ended, now + wait_s, job.id, job.epoch)).rowcount
            )
            if entered and state is JobState.DONE:
                following = successor(self.job(job.id).order, now)
                if following:
                    self._add(connection, following, now)
            return entered

    def cancel(self, job_id: int, now: float) -> Job:
        with self._changing() as connection:
            connection.execute(
                "UPDATE job SET state = 'cancelled', ended = ?, note = 'cancelled' WHERE id = ? AND state = 'queued'",
                (now, job_id),
            )
            connection.execute("UPDATE job SET cancel_asked = 1 WHERE id = ? AND state = 'running'", (job_id,))
        return self.job(job_id)

    def job(self, job_id: int) -> Job:
        return self._one(f"SELECT {JOB} FROM job WHERE id = ?", job_id)

    def jobs(self, *, most: int = 100) -> list[Job]:
        turn = "CASE state WHEN 'running' THEN 0 WHEN 'queued' THEN 1 ELSE 2 END"
        order = (
            f"{turn}, CASE WHEN state = 'queued' THEN -priority END, CASE WHEN state IN ('queued', 'running') "
            "THEN id END, ended DESC, id DESC"
        )
        return [
            job_of(row) for row in self._connection.execute(f"SELECT {JOB} FROM job ORDER BY {order} LIMIT ?", (most,))
        ]

    def open_jobs(self) -> int:
        return int(
            self._connection.execute("SELECT count(*) FROM job WHERE state IN ('queued', 'running')").fetchone()[0]
        )

    def repeat(self, order: JobOrder, period_s: float, now: float) -> Schedule:
        with self._changing() as connection:
            connection.execute(
                "INSERT INTO schedule (command, priority, most_attempts, period_s, next_at, "
                "next) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (command) DO UPDATE SET priority = excluded.priority, period_s = excluded.period_s, "
                "paused = 0, next = excluded.next,"
                " next_at = min(next_at, excluded.next_at + excluded.period_s)",
                schedule_row(order, period_s, now),
            )
        return next(schedule for schedule in self.schedules() if schedule.order.command == order.command)

    def tick(self, now: float) -> list[Job]:
        made = []
        with self._changing() as connection:
            due = [schedule for schedule in self.schedules() if schedule.next_at <= now and not schedule.paused]
            for schedule in due:
                connection.execute(
                    "UPDATE schedule SET next_at = ? WHERE id = ?", (tick_after(schedule, now), schedule.id)
                )
                made.append(self._add(connection, schedule.order, now))
        return made

    def schedules(self) -> list[Schedule]:
        return [schedule_of(row) for row in self._connection.execute(f"SELECT {SCHEDULE} FROM schedule ORDER BY id")]

    def pause(self, schedule_id: int, *, paused: bool) -> None:
        with self._changing() as connection:
            if not connection.execute("UPDATE schedule SET paused = ? WHERE id = ?", (paused, schedule_id)).rowcount:
                raise no_schedule(schedule_id)

    def forget(self, schedule_id: int) -> None:
        with self._changing() as connection:
            if not connection.execute("DELETE FROM schedule WHERE id = ?", (schedule_id,)).rowcount:
                raise no_schedule(schedule_id)

    def _one(self, find: str, value: object) -> Job:
        return job_of(self._connection.execute(find, (value,)).fetchone())
