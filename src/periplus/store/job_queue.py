"""The job queue and its schedules, in a file of a folder or in PostgreSQL."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

from periplus.errors import StoreError
from periplus.masking import masked_command
from periplus.model.job import Job, JobOrder, JobProgress, JobState, Schedule
from periplus.store.statements import Database, Dialect, Row, Statements

GIVEN_UP_NOTE = "given up: all of its runners died"
RUNNER_DIED_NOTE = "its runner died; it is queued again"
_OPEN = "state IN ('queued', 'running')"
_MINE = "WHERE id = ? AND epoch = ? AND state = 'running'"
# running jobs first, then queued jobs by turn, then ended jobs, latest first
_TURN = (
    "CASE state WHEN 'running' THEN 0 WHEN 'queued' THEN 1 ELSE 2 END, CASE WHEN state = 'queued' THEN -priority END,"
    f" CASE WHEN {_OPEN} THEN id END, ended DESC, id DESC"
)


_ORDER = "command, priority, run_at, most_attempts, schedule_id, next"
_JOB = f"{_ORDER}, id, state, done, total, note, attempt, epoch, runner, cancel_asked, made, started, ended"
_SCHEDULE = f"{_ORDER.replace('run_at', 'next_at').replace('schedule_id', 'id')}, period_s, paused"


def _order_of(row: Row) -> JobOrder:
    """The order in the columns _ORDER. command and next are JSON; equal texts mean equal orders."""
    command, *rest, further = row
    values = (tuple(json.loads(command)), *rest, tuple(map(tuple, json.loads(further))))
    return JobOrder(*values)


def _job_of(row: Row) -> Job:
    identity, state, *progress, cancel_asked, made, started, ended = row[6:]
    values = (identity, _order_of(row[:6]), JobState(state), *progress, bool(cancel_asked), made, started, ended)
    return Job(*values)


def _schedule_of(row: Row) -> Schedule:
    order = replace(_order_of(row[:6]), run_at=0.0)
    return Schedule(order.schedule_id, order, row[6], row[2], bool(row[7]))


class JobQueue:
    """The jobs and schedules of a folder or of a collection in a database.

    For the states of a job see `JobState`. Invariants: (1) a job has at most one live lease, identified by its epoch;
    reports with an older epoch are ignored; (2) the job with the highest priority runs first, then the oldest; (3)
    equal open orders share one job, unless it is to be cancelled; (4) a schedule creates one job per period, however
    many processes call `tick`; (5) every lease ends, by `finish` or by expiry; (6) the successor of a job is queued
    exactly once, when it is done. Each call is one transaction; workers that call `claim` concurrently get different
    jobs without waiting. Times are seconds since the epoch, by a clock that all processes share.
    """

    def __init__(self, database: Database) -> None:
        """database: with the tables `job` and `schedule`; closed by `close`."""
        self.database = database

    def close(self) -> None:
        self.database.close()

    def add(self, order: JobOrder, now: float) -> Job:
        """Queues an order. Returns the new job, or an equal open job that is not to be cancelled.

        An existing job gets the higher priority, the earlier time, and the new order's successors if it has any.
        """
        return self.database.run(lambda statements: _add(statements, order, now))

    def claim(self, runner: str, now: float, lease_s: float) -> Job | None:
        """Leases the next due job to a runner, or returns None.

        A job with too many dead runners fails instead.
        """

        def claim_job(statements: Statements) -> Job | None:
            _end_dead_leases(statements, now)
            next_job = (
                "SELECT id FROM job WHERE state = 'queued' AND run_at <= ? ORDER BY priority DESC, id LIMIT 1"
                + statements.dialect.skip_locked
            )
            update = (
                "UPDATE job SET state = 'running', runner = ?, lease_until = ?, epoch = epoch + 1,"
                " attempt = attempt + 1, started = ?, note = '', done = 0, total = 0"
                f" WHERE id = ({next_job}) RETURNING {_JOB}"
            )
            rows = statements.rows(update, (runner, now + lease_s, now, now))
            return _job_of(rows[0]) if rows else None

        return self.database.run(claim_job)

    def beat(self, job: Job, progress: JobProgress, now: float, lease_s: float) -> bool:
        """Renews the lease and stores the progress. False: stop, as the job is cancelled or leased elsewhere."""
        update = f"UPDATE job SET lease_until = ?, done = ?, total = ?, note = ? {_MINE} RETURNING cancel_asked"
        values = (now + lease_s, progress.done, progress.total, _note(progress.note), job.id, job.epoch)
        rows = self.database.run(lambda statements: statements.rows(update, values))
        return bool(rows) and not rows[0][0]

    def finish(self, job: Job, state: JobState, note: str, now: float, wait_s: float = 0.0) -> bool:
        """Ends a job, or queues it again after at least wait_s (unless it is to be cancelled). If it is done, its
        successor is queued in the same transaction.

        Returns False without any change if the job is leased to another runner.
        """
        update = (
            "UPDATE job SET state = CASE WHEN ? <> 'queued' OR cancel_asked = 0 THEN ? ELSE 'cancelled' END, note = ?,"
            " ended = CASE WHEN ? <> 'queued' OR cancel_asked <> 0 THEN ? END,"
            f" run_at = {self.database.dialect.greatest}(run_at, ?), lease_until = 0 {_MINE} RETURNING {_JOB}"
        )
        values = (state.value, state.value, _note(note), state.value, now, now + wait_s, job.id, job.epoch)

        def finish_job(statements: Statements) -> bool:
            rows = statements.rows(update, values)
            if rows and state is JobState.DONE:
                order = _job_of(rows[0]).order
                if order.then:
                    _add(statements, replace(order, command=order.then[0], then=order.then[1:], run_at=now), now)
            return bool(rows)

        return self.database.run(finish_job)

    def cancel(self, job_id: int, now: float) -> Job:
        """Cancels a queued job at once and a running job at its next beat; an ended job stays unchanged.

        Raises StoreError if the job does not exist.
        """

        def cancel_job(statements: Statements) -> Job:
            end = "UPDATE job SET state = 'cancelled', ended = ?, note = 'cancelled' WHERE id = ? AND state = 'queued'"
            statements.change(end, (now, job_id))
            statements.change("UPDATE job SET cancel_asked = 1 WHERE id = ? AND state = 'running'", (job_id,))
            return _job(statements, job_id)

        return self.database.run(cancel_job)

    def job(self, job_id: int) -> Job:
        return self.database.read(lambda statements: _job(statements, job_id))

    def jobs(self, *, most: int = 100) -> Sequence[Job]:
        """Running jobs first, then queued jobs by turn, then ended jobs, latest first."""
        find = f"SELECT {_JOB} FROM job ORDER BY {_TURN} LIMIT ?"
        rows = self.database.read(lambda statements: statements.rows(find, (most,)))
        return [_job_of(row) for row in rows]

    def open_jobs(self) -> int:
        """Number of queued and running jobs."""
        rows = self.database.read(lambda statements: statements.rows(f"SELECT count(*) FROM job WHERE {_OPEN}"))
        return int(rows[0][0])

    def repeat(self, order: JobOrder, period_s: float, now: float) -> Schedule:
        """Schedules an order each period from now on; an equal schedule gets the new period and priority."""
        dialect = self.database.dialect
        upsert = (
            "INSERT INTO schedule (command, priority, most_attempts, period_s, next_at, next) VALUES (?, ?, ?, ?, ?, ?)"
            f" ON CONFLICT ({dialect.of_long_text.format('command')}) DO UPDATE SET priority = excluded.priority,"
            " period_s = excluded.period_s, paused = 0, next = excluded.next,"
            f" next_at = {dialect.least}(schedule.next_at, excluded.next_at + excluded.period_s) RETURNING {_SCHEDULE}"
        )
        command, priority, next_at, most_attempts, _, further = _order_row(order, now)
        values = (command, priority, most_attempts, period_s, next_at, further)
        rows = self.database.run(lambda statements: statements.rows(upsert, values))
        return _schedule_of(rows[0])

    def tick(self, now: float) -> Sequence[Job]:
        """Queues the jobs of all due schedules, each once, and returns them.

        Missed periods are not made up.
        """

        def queue_due_jobs(statements: Statements) -> list[Job]:
            due = f"WHERE next_at <= ? AND paused = 0 ORDER BY id{statements.dialect.for_update}"
            schedules = _schedules(statements, due, (now,))
            for schedule in schedules:
                values = (_tick_after(schedule, now), schedule.id)
                statements.change("UPDATE schedule SET next_at = ? WHERE id = ?", values)
            return [_add(statements, schedule.order, now) for schedule in schedules]

        return self.database.run(queue_due_jobs)

    def schedules(self) -> Sequence[Schedule]:
        return self.database.read(lambda statements: _schedules(statements, "ORDER BY id"))

    def pause(self, schedule_id: int, *, paused: bool) -> None:
        """Pauses or resumes a schedule. Raises StoreError if it does not exist."""
        self._change(schedule_id, "UPDATE schedule SET paused = ? WHERE id = ?", (int(paused), schedule_id))

    def forget(self, schedule_id: int) -> None:
        """Deletes a schedule but not its jobs. Raises StoreError if it does not exist."""
        self._change(schedule_id, "DELETE FROM schedule WHERE id = ?", (schedule_id,))

    def _change(self, schedule_id: int, statement: str, values: Sequence[object]) -> None:
        if not self.database.run(lambda statements: statements.change(statement, values)):
            raise StoreError(f"there is no schedule {schedule_id}; see `periplus jobs list`")


def _is_wanted(dialect: Dialect) -> str:
    """SQL condition: open jobs that are not to be cancelled."""
    return f"{_OPEN} AND {dialect.is_false.format('cancel_asked')}"


def _add(statements: Statements, order: JobOrder, now: float) -> Job:
    dialect = statements.dialect
    upsert = (
        f"INSERT INTO job ({_ORDER}, state, made) VALUES (?, ?, ?, ?, ?, ?, 'queued', ?)"
        f" ON CONFLICT ({dialect.of_long_text.format('command')}) WHERE {_is_wanted(dialect)} DO UPDATE SET"
        f" priority = {dialect.greatest}(job.priority, excluded.priority),"
        f" run_at = {dialect.least}(job.run_at, excluded.run_at),"
        f" next = CASE WHEN excluded.next = '[]' THEN job.next ELSE excluded.next END RETURNING {_JOB}"
    )
    return _job_of(statements.rows(upsert, (*_order_row(order, now), now))[0])


def _end_dead_leases(statements: Statements, now: float) -> None:
    dead = f"SELECT id FROM job WHERE state = 'running' AND lease_until < ?{statements.dialect.skip_locked}"
    update = (
        "UPDATE job SET"
        " state = CASE WHEN cancel_asked <> 0 THEN 'cancelled' WHEN attempt >= most_attempts THEN 'failed'"
        " ELSE 'queued' END,"
        " note = CASE WHEN cancel_asked <> 0 THEN 'cancelled' WHEN attempt >= most_attempts THEN ? ELSE ? END,"
        " ended = CASE WHEN cancel_asked <> 0 OR attempt >= most_attempts THEN ? ELSE ended END"
        f" WHERE id IN ({dead})"
    )
    statements.change(update, (GIVEN_UP_NOTE, RUNNER_DIED_NOTE, now, now))


def _job(statements: Statements, job_id: int) -> Job:
    rows = statements.rows(f"SELECT {_JOB} FROM job WHERE id = ?", (job_id,))
    if not rows:
        raise StoreError("there is no such job; see `periplus jobs list`")
    return _job_of(rows[0])


def _schedules(statements: Statements, clauses: str, values: Sequence[object] = ()) -> list[Schedule]:
    rows = statements.rows(f"SELECT {_SCHEDULE} FROM schedule {clauses}", values)
    return [_schedule_of(row) for row in rows]


def _tick_after(schedule: Schedule, now: float) -> float:
    """Next time of a due schedule: its first tick after now."""
    return schedule.next_at + (math.floor((now - schedule.next_at) / schedule.period_s) + 1) * schedule.period_s


def _order_row(order: JobOrder, now: float) -> Row:
    """Values of _ORDER."""
    command, further = (
        json.dumps(part, ensure_ascii=False)
        for part in (masked_command(order.command), tuple(map(masked_command, order.then)))
    )
    return command, order.priority, max(order.run_at, now), order.most_attempts, order.schedule_id, further


def _note(text: str) -> str:
    """The note without U+0000, which PostgreSQL does not accept."""
    return text.replace("\0", "")
