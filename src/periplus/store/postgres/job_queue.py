"""How is the queue of jobs kept in PostgreSQL, for workers on many machines?

See `model.job.JobStore` for what it promises.

Jobs are taken with SKIP LOCKED: workers that ask at one moment get different ones, and none waits for another.
The times that they ask with should be the database's: `DatabaseClock`. A transaction that a lost server broke
is done again; each bears it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from periplus.model.job import Job, JobOrder, JobProgress, JobState, Schedule
from periplus.store.job_rows import (
    DIED,
    DIED_TOO_OFTEN,
    JOB,
    ORDER,
    SCHEDULE,
    job_of,
    no_schedule,
    order_row,
    schedule_of,
    schedule_row,
    successor,
    tick_after,
)
from periplus.store.postgres.connection import Connection, Session

_OPEN = "state IN ('queued', 'running')"
_WANTED = f"{_OPEN} AND cancel_asked = 0"  # one that is told to stop does not do what is asked for now
_ADD = (
    f"INSERT INTO job ({ORDER}, state, made) VALUES (%s, %s, %s, %s, %s, %s, 'queued', %s)"
    f" ON CONFLICT (md5(command)) WHERE {_WANTED}"
    " DO UPDATE SET priority = greatest(job.priority, excluded.priority), run_at = "
    "least(job.run_at, excluded.run_at),"
    f" next = CASE WHEN excluded.next = '[]' THEN job.next ELSE excluded.next END RETURNING {JOB}"
)
_END_DEAD = (
    "UPDATE job SET state = CASE WHEN cancel_asked <> 0 THEN 'cancelled' WHEN attempt >= most_attempts "
    "THEN 'failed' ELSE 'queued' END,"
    " note = CASE WHEN cancel_asked <> 0 THEN 'cancelled' WHEN attempt >= most_attempts THEN %s ELSE %s END,"
    " ended = CASE WHEN cancel_asked <> 0 OR attempt >= most_attempts THEN %s ELSE ended END"
    " WHERE id IN (SELECT id FROM job WHERE state = 'running' AND lease_until < %s FOR UPDATE SKIP LOCKED)"
)
_CLAIM = (
    "UPDATE job SET state = 'running', runner = %s, lease_until = %s, epoch = epoch + 1, attempt = "
    "attempt + 1, started = %s, note = '',"
    " done = 0, total = 0 WHERE id = (SELECT id FROM job WHERE state = 'queued' AND run_at <= %s"
    " ORDER BY priority DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED)"
    f" RETURNING {JOB}"
)
_MINE = "WHERE id = %s AND epoch = %s AND state = 'running'"
_TURN = (
    "CASE state WHEN 'running' THEN 0 WHEN 'queued' THEN 1 ELSE 2 END, CASE WHEN state = 'queued' THEN -priority END,"
    f" CASE WHEN {_OPEN} THEN id END, ended DESC, id DESC"
)


class DatabaseClock:
    """The time of the database, which all who share it go by, whatever their own clocks say. A `model.ports.Clock`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def now(self) -> float:
        found = self._session.run(
            lambda connection: connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        )
        return float(str(found[0])) if found else 0.0

    def monotonic(self) -> float:
        return time.monotonic()


class PostgresJobQueue:
    """The jobs and schedules of one collection."""

    def __init__(self, session: Session) -> None:
        """session: to a collection that has its tables; closed with the queue."""
        self._session = session
        self.clock = DatabaseClock(session)

    def close(self) -> None:
        self._session.close()

    def add(self, order: JobOrder, now: float) -> Job:
        return self._session.run(lambda connection: _added(connection, order, now))

    def claim(self, runner: str, now: float, lease_s: float) -> Job | None:
        def claimed(connection: Connection) -> Job | None:
            connection.execute(_END_DEAD, (DIED_TOO_OFTEN, DIED, now, now))
            row = connection.execute(_CLAIM.encode(), (runner, now + lease_s, now, now)).fetchone()
            return job_of(row) if row else None

        return self._session.run(claimed)

    def beat(self, job: Job, progress: JobProgress, now: float, lease_s: float) -> bool:
        update = f"UPDATE job SET lease_until = %s, done = %s, total = %s, note = %s {_MINE} RETURNING cancel_asked"
        row = (now + lease_s, progress.done, progress.total, progress.note.replace("\0", ""), job.id, job.epoch)
        found = self._session.run(lambda connection: connection.execute(update.encode(), row).fetchone())
        return found is not None and not found[0]

    def finish(self, job: Job, state: JobState, note: str, now: float, wait_s: float = 0.0) -> bool:
        update = (
            "UPDATE job SET state = CASE WHEN %s <> 'queued' OR cancel_asked = 0 THEN %s "
            "ELSE 'cancelled' END, note = %s,"
            " ended = CASE WHEN %s <> 'queued' OR cancel_asked <> 0 THEN %s END, run_at = greatest(run_at, %s), "
            f"lease_until = 0 {_MINE} RETURNING {JOB}"
        )
        row = (state.value, state.value, note.replace("\0", ""), state.value, now, now + wait_s, job.id, job.epoch)

        def finished(connection: Connection) -> bool:
            found = connection.execute(update.encode(), row).fetchone()
            if found and state is JobState.DONE and (following := successor(job_of(found).order, now)):
                _added(connection, following, now)
            return found is not None

        return self._session.run(finished)

    def cancel(self, job_id: int, now: float) -> Job:
        def cancelled(connection: Connection) -> Job:
            connection.execute(
                (
                    "UPDATE job SET state = 'cancelled', ended = %s, note = 'cancelled'"
                    " WHERE id = %s AND state = 'queued'"
                ),
                (now, job_id),
            )
            connection.execute("UPDATE job SET cancel_asked = 1 WHERE id = %s AND state = 'running'", (job_id,))
            return _job(connection, job_id)

        return self._session.run(cancelled)

    def job(self, job_id: int) -> Job:
        return self._session.run(lambda connection: _job(connection, job_id))

    def jobs(self, *, most: int = 100) -> Sequence[Job]:
        find = f"SELECT {JOB} FROM job ORDER BY {_TURN} LIMIT %s"
        return [
            job_of(row)
            for row in self._session.run(lambda connection: connection.execute(find.encode(), (most,)).fetchall())
        ]

    def open_jobs(self) -> int:
        found = self._session.run(
            lambda connection: connection.execute(f"SELECT count(*) FROM job WHERE {_OPEN}".encode()).fetchone()
        )
        return int(str(found[0])) if found else 0

    def repeat(self, order: JobOrder, period_s: float, now: float) -> Schedule:
        insert = (
            "INSERT INTO schedule (command, priority, most_attempts, period_s, next_at, next)"
            " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (md5(command))"
            " DO UPDATE SET priority = excluded.priority, period_s = excluded.period_s, "
            "paused = 0, next = excluded.next,"
            f" next_at = least(schedule.next_at, excluded.next_at + excluded.period_s) RETURNING {SCHEDULE}"
        )
        row = self._session.run(
            lambda connection: connection.execute(insert.encode(), schedule_row(order, period_s, now)).fetchone()
        )
        assert row is not None
        return schedule_of(row)

    def tick(self, now: float) -> Sequence[Job]:
        find = f"SELECT {SCHEDULE} FROM schedule WHERE next_at <= %s AND paused = 0 ORDER BY id FOR UPDATE"

        def ticked(connection: Connection) -> list[Job]:
            due = [schedule_of(row) for row in connection.execute(find.encode(), (now,)).fetchall()]
            for schedule in due:
                connection.execute(
                    "UPDATE schedule SET next_at = %s WHERE id = %s", (tick_after(schedule, now), schedule.id)
                )
            return [_added(connection, schedule.order, now) for schedule in due]

        return self._session.run(ticked)

    def schedules(self) -> Sequence[Schedule]:
        find = f"SELECT {SCHEDULE} FROM schedule ORDER BY id"
        return [
            schedule_of(row)
            for row in self._session.run(lambda connection: connection.execute(find.encode()).fetchall())
        ]

    def pause(self, schedule_id: int, *, paused: bool) -> None:
        self._change(
            schedule_id, "UPDATE schedule SET paused = %s WHERE id = %s RETURNING id", (int(paused), schedule_id)
        )

    def forget(self, schedule_id: int) -> None:
        self._change(schedule_id, "DELETE FROM schedule WHERE id = %s RETURNING id", (schedule_id,))

    def _change(self, schedule_id: int, statement: str, values: Sequence[object]) -> None:
        if not self._session.run(lambda connection: connection.execute(statement.encode(), values).fetchone()):
            raise no_schedule(schedule_id)


def _added(connection: Connection, order: JobOrder, now: float) -> Job:
    return job_of(connection.execute(_ADD.encode(), (*order_row(order, now), now)).fetchone())


def _job(connection: Connection, job_id: int) -> Job:
    return job_of(connection.execute(f"SELECT {JOB} FROM job WHERE id = %s".encode(), (job_id,)).fetchone())
