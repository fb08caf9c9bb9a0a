"""Which requests wait, who works on them, and which come again? One file in a folder of collections.

States of a job: see `JobState`. Always: (1) a job has at most one live lease, named by its epoch, and what an older one reports is
dropped; (2) the greatest priority goes first, then the oldest; (3) equal requests that are open are one; (4) a period gives one job a
tick, however many ask; (5) every lease ends, by finish or by time; (6) a job's successor is asked for once, when it is done. Not its
business: doing the work, knowing the time.
"""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from periplus.errors import StoreError
from periplus.model.job import Job, JobOrder, JobProgress, JobState, Schedule
from periplus.store.sqlite.schema import BUSY_TIMEOUT_S, refuse_network_disk

DATABASE = "jobs.db"
_ORDER = "command, priority, run_at, most_attempts, schedule_id, next"
_JOB = f"id, {_ORDER}, state, done, total, note, attempt, epoch, runner, cancel_asked, made, started, ended"
_TABLES = """
CREATE TABLE IF NOT EXISTS job (
    id INTEGER PRIMARY KEY AUTOINCREMENT, command TEXT NOT NULL, priority INTEGER NOT NULL, run_at REAL NOT NULL, most_attempts INTEGER NOT NULL,
    schedule_id INTEGER NOT NULL, state TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL DEFAULT 0, note TEXT NOT NULL DEFAULT '',
    attempt INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL DEFAULT 0, runner TEXT NOT NULL DEFAULT '', lease_until REAL NOT NULL DEFAULT 0,
    cancel_asked INTEGER NOT NULL DEFAULT 0, made REAL NOT NULL, started REAL, ended REAL, next TEXT NOT NULL DEFAULT '[]');
CREATE UNIQUE INDEX IF NOT EXISTS job_open ON job (command) WHERE state IN ('queued', 'running');
CREATE INDEX IF NOT EXISTS job_next ON job (priority DESC, id) WHERE state = 'queued';
CREATE TABLE IF NOT EXISTS schedule (
    id INTEGER PRIMARY KEY AUTOINCREMENT, command TEXT NOT NULL UNIQUE, priority INTEGER NOT NULL, most_attempts INTEGER NOT NULL,
    period_s REAL NOT NULL, next_at REAL NOT NULL, paused INTEGER NOT NULL DEFAULT 0, next TEXT NOT NULL DEFAULT '[]');
"""


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
            raise StoreError(f"no job queue can be kept in {folder}: {error}. Is the disk full, or the folder read-only?") from error

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
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:  # commits, or rolls back what raised
            yield self._connection

    def add(self, order: JobOrder, now: float) -> Job:
        """The job that does this: a new one, or an equal one that is open. A joined job takes the greater priority, the earlier time
        and the successors of the later order, where that has any."""
        with self._changing() as connection:
            return self._add(connection, order, now)

    def _add(self, connection: sqlite3.Connection, order: JobOrder, now: float) -> Job:
        command = json.dumps(order.command, ensure_ascii=False)
        run_at = max(order.run_at, now)
        connection.execute(
            f"INSERT INTO job ({_ORDER}, state, made) VALUES (?, ?, ?, ?, ?, ?, 'queued', ?) ON CONFLICT (command) WHERE state IN ('queued', 'running')"
            " DO UPDATE SET priority = max(priority, excluded.priority), run_at = min(run_at, excluded.run_at),"
            " next = CASE WHEN excluded.next = '[]' THEN next ELSE excluded.next END",
            (command, order.priority, run_at, order.most_attempts, order.schedule_id, json.dumps(order.then, ensure_ascii=False), now),
        )
        return self._one(connection.execute(f"SELECT {_JOB} FROM job WHERE command = ? AND state IN ('queued', 'running')", (command,)))

    def claim(self, runner: str, now: float, lease_s: float) -> Job | None:
        """The next job, leased to a runner; None: nothing is due. A job whose runners died as often as it may is failed instead."""
        with self._changing() as connection:
            self._end_dead_leases(connection, now)
            found = connection.execute("SELECT id FROM job WHERE state = 'queued' AND run_at <= ? ORDER BY priority DESC, id LIMIT 1", (now,)).fetchone()
            if found is None:
                return None
            connection.execute(
                "UPDATE job SET state = 'running', runner = ?, lease_until = ?, epoch = epoch + 1, attempt = attempt + 1, started = ?, note = '',"
                " done = 0, total = 0 WHERE id = ?",
                (runner, now + lease_s, now, found[0]),
            )
            return self._one(connection.execute(f"SELECT {_JOB} FROM job WHERE id = ?", found))

    @staticmethod
    def _end_dead_leases(connection: sqlite3.Connection, now: float) -> None:
        dead = "state = 'running' AND lease_until < ?"
        connection.execute(f"UPDATE job SET state = 'cancelled', ended = ?, note = 'cancelled' WHERE {dead} AND cancel_asked", (now, now))
        note = "given up: each of its runners died"
        connection.execute(f"UPDATE job SET state = 'failed', ended = ?, note = ? WHERE {dead} AND attempt >= most_attempts", (now, note, now))
        connection.execute(f"UPDATE job SET state = 'queued', note = 'its runner died; it is taken again' WHERE {dead}", (now,))

    def beat(self, job: Job, progress: JobProgress, now: float, lease_s: float) -> bool:
        """Renews the lease and enters the progress. False: stop, for it was cancelled or is another runner's now."""
        with self._changing() as connection:
            mine = "WHERE id = ? AND epoch = ? AND state = 'running'"
            row = (now + lease_s, progress.done, progress.total, progress.note, job.id, job.epoch)
            if not connection.execute(f"UPDATE job SET lease_until = ?, done = ?, total = ?, note = ? {mine}", row).rowcount:
                return False
            return not connection.execute("SELECT cancel_asked FROM job WHERE id = ?", (job.id,)).fetchone()[0]

    def finish(self, job: Job, state: JobState, note: str, now: float, wait_s: float = 0.0) -> bool:
        """The job's end, or its way back into the queue for wait_s at least; of one that is done its successor is asked for in the same moment.
        False: it is another runner's now, nothing is entered."""
        ended = None if state is JobState.QUEUED else now
        with self._changing() as connection:
            update = "UPDATE job SET state = ?, note = ?, ended = ?, run_at = max(run_at, ?), lease_until = 0 WHERE id = ? AND epoch = ? AND state = 'running'"
            entered = bool(connection.execute(update, (state.value, note, ended, now + wait_s, job.id, job.epoch)).rowcount)
            if entered and state is JobState.DONE:
                order = self._one(connection.execute(f"SELECT {_JOB} FROM job WHERE id = ?", (job.id,))).order
                if order.then:
                    self._add(connection, replace(order, command=order.then[0], then=order.then[1:], run_at=now), now)
            return entered

    def cancel(self, job_id: int, now: float) -> Job:
        """A waiting job is cancelled at once, a running one at its next beat, an ended one stays as it is. Raises StoreError if there is none."""
        with self._changing() as connection:
            connection.execute("UPDATE job SET state = 'cancelled', ended = ?, note = 'cancelled' WHERE id = ? AND state = 'queued'", (now, job_id))
            connection.execute("UPDATE job SET cancel_asked = 1 WHERE id = ? AND state = 'running'", (job_id,))
        return self.job(job_id)

    def job(self, job_id: int) -> Job:
        """Raises StoreError if there is none."""
        return self._one(self._connection.execute(f"SELECT {_JOB} FROM job WHERE id = ?", (job_id,)))

    def jobs(self, *, most: int = 100) -> list[Job]:
        """Running ones first, then what waits in the order of its turn, then what ended, the latest first."""
        turn = "CASE state WHEN 'running' THEN 0 WHEN 'queued' THEN 1 ELSE 2 END"
        order = f"{turn}, CASE WHEN state = 'queued' THEN -priority END, CASE WHEN state IN ('queued', 'running') THEN id END, ended DESC, id DESC"
        return [_job(row) for row in self._connection.execute(f"SELECT {_JOB} FROM job ORDER BY {order} LIMIT ?", (most,))]

    def open_jobs(self) -> int:
        """How many wait or run."""
        return int(self._connection.execute("SELECT count(*) FROM job WHERE state IN ('queued', 'running')").fetchone()[0])

    def repeat(self, order: JobOrder, period_s: float, now: float) -> Schedule:
        """Gives the order each period from now on; of an equal schedule period and priority are changed."""
        command = json.dumps(order.command, ensure_ascii=False)
        with self._changing() as connection:
            connection.execute(
                "INSERT INTO schedule (command, priority, most_attempts, period_s, next_at, next) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (command) DO UPDATE SET priority = excluded.priority, period_s = excluded.period_s, paused = 0, next = excluded.next,"
                " next_at = min(next_at, excluded.next_at + excluded.period_s)",
                (command, order.priority, order.most_attempts, period_s, max(now, order.run_at), json.dumps(order.then, ensure_ascii=False)),
            )
        return next(schedule for schedule in self.schedules() if schedule.order.command == order.command)

    def tick(self, now: float) -> list[Job]:
        """The jobs of all periods that are over, each once. Ticks that were missed while nobody looked are not made up."""
        made = []
        with self._changing() as connection:
            due = [schedule for schedule in self.schedules() if schedule.next_at <= now and not schedule.paused]
            for schedule in due:
                passed = math.floor((now - schedule.next_at) / schedule.period_s) + 1
                connection.execute("UPDATE schedule SET next_at = ? WHERE id = ?", (schedule.next_at + passed * schedule.period_s, schedule.id))
                made.append(self._add(connection, schedule.order, now))
        return made

    def schedules(self) -> list[Schedule]:
        rows = self._connection.execute("SELECT id, command, priority, most_attempts, period_s, next_at, paused, next FROM schedule ORDER BY id")
        return [
            Schedule(row[0], JobOrder(_words(row[1]), row[2], most_attempts=row[3], schedule_id=row[0], then=_commands(row[7])), row[4], row[5], bool(row[6]))
            for row in rows
        ]

    def pause(self, schedule_id: int, *, paused: bool) -> None:
        """Raises StoreError if there is none."""
        with self._changing() as connection:
            if not connection.execute("UPDATE schedule SET paused = ? WHERE id = ?", (paused, schedule_id)).rowcount:
                raise StoreError(f"there is no schedule {schedule_id}; `periplus jobs list` shows what there is")

    def forget(self, schedule_id: int) -> None:
        """Ends a schedule; the jobs that it made stay. Raises StoreError if there is none."""
        with self._changing() as connection:
            if not connection.execute("DELETE FROM schedule WHERE id = ?", (schedule_id,)).rowcount:
                raise StoreError(f"there is no schedule {schedule_id}; `periplus jobs list` shows what there is")

    def _one(self, rows: sqlite3.Cursor) -> Job:
        row = rows.fetchone()
        if row is None:
            raise StoreError("there is no such job; `periplus jobs list` shows what there is")
        return _job(row)


def _words(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def _commands(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, json.loads(text)))


def _job(row: tuple[object, ...]) -> Job:
    job_id, command, priority, run_at, most_attempts, schedule_id, then, state, done, total, note, attempt, epoch, runner, cancel, made, started, ended = row
    order = JobOrder(_words(str(command)), priority, run_at, most_attempts, schedule_id, _commands(str(then)))  # type: ignore[arg-type]  # as the table holds them
    return Job(job_id, order, JobState(str(state)), done, total, note, attempt, epoch, runner, bool(cancel), made, started, ended)  # type: ignore[arg-type]  # the same
