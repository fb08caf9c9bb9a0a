"""How is a job or a schedule written as a row? The columns and their order are the same in every database."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from periplus.errors import StoreError
from periplus.model.job import Job, JobOrder, JobState, Schedule

ORDER = "command, priority, run_at, most_attempts, schedule_id, next"
JOB = f"id, {ORDER}, state, done, total, note, attempt, epoch, runner, cancel_asked, made, started, ended"
SCHEDULE = "id, command, priority, most_attempts, period_s, next_at, paused, next"
DIED_TOO_OFTEN = "given up: each of its runners died"
DIED = "its runner died; it is taken again"
Row = tuple[object, ...]


def command_text(order: JobOrder) -> str:
    """The command as it is stored: equal texts are equal requests."""
    return json.dumps(order.command, ensure_ascii=False)


def order_row(order: JobOrder, now: float) -> Row:
    """An order by the columns of ORDER."""
    return (
        command_text(order),
        order.priority,
        max(order.run_at, now),
        order.most_attempts,
        order.schedule_id,
        _then(order),
    )


def schedule_row(order: JobOrder, period_s: float, now: float) -> Row:
    """A new schedule by the columns command, priority, most_attempts, period_s, next_at, next."""
    return (command_text(order), order.priority, order.most_attempts, period_s, max(now, order.run_at), _then(order))


def job_of(row: Row | None) -> Job:
    """A job by the columns of JOB. Raises StoreError where there is none."""
    if row is None:
        raise StoreError("there is no such job; `periplus jobs list` shows what there is")
    (
        job_id,
        command,
        priority,
        run_at,
        most_attempts,
        schedule_id,
        then,
        state,
        done,
        total,
        note,
        attempt,
        epoch,
        runner,
        cancel,
        made,
        started,
        ended,
    ) = row
    # as the table holds them
    order = JobOrder(_words(command), priority, run_at, most_attempts, schedule_id, _commands(then))  # type: ignore[arg-type]
    # the same
    return Job(
        job_id, order, JobState(str(state)), done, total, note, attempt, epoch, runner,  # type: ignore[arg-type]
        bool(cancel), made, started, ended,  # type: ignore[arg-type]
    )  # fmt: skip


def schedule_of(row: Row) -> Schedule:
    """A schedule by the columns of SCHEDULE."""
    schedule_id, command, priority, most_attempts, period_s, next_at, paused, then = row
    # as the table holds them
    order = JobOrder(
        _words(command), priority, most_attempts=most_attempts, schedule_id=schedule_id, then=_commands(then)  # type: ignore[arg-type]
    )  # fmt: skip
    return Schedule(schedule_id, order, period_s, next_at, bool(paused))  # type: ignore[arg-type]  # the same


def tick_after(schedule: Schedule, now: float) -> float:
    """When a schedule that is due is due again: the first of its ticks after now."""
    return schedule.next_at + (math.floor((now - schedule.next_at) / schedule.period_s) + 1) * schedule.period_s


def successor(order: JobOrder, now: float) -> JobOrder | None:
    """What is asked for when this is done."""
    return replace(order, command=order.then[0], then=order.then[1:], run_at=now) if order.then else None


def no_schedule(schedule_id: int) -> StoreError:
    return StoreError(f"there is no schedule {schedule_id}; `periplus jobs list` shows what there is")


def _then(order: JobOrder) -> str:
    return json.dumps(order.then, ensure_ascii=False)


def _words(text: object) -> tuple[str, ...]:
    return tuple(json.loads(str(text)))


def _commands(text: object) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, json.loads(str(text))))
