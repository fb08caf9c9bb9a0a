"""Jobs and schedules, as values."""

from __future__ import annotations

from enum import StrEnum

from periplus.values import frozen


class JobState(StrEnum):
    """States of a job.

    queued -> running -> done | failed | cancelled; running -> queued if its runner died; queued -> cancelled. No other
    transition.
    """

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    __hash__ = str.__hash__


@frozen
class JobOrder:
    """What a job runs: a command of `periplus` with its arguments."""

    command: tuple[str, ...]
    priority: int = 0  # higher runs first
    run_at: float = 0.0  # earliest start; seconds since the epoch
    most_attempts: int = 3  # attempts, if runners die with it
    schedule_id: int = 0  # 0: not scheduled
    # further commands, each started when the previous command is done
    then: tuple[tuple[str, ...], ...] = ()

    @property
    def kind(self) -> str:
        """Name of the command: crawl, refresh, check, ..."""
        return self.command[0]


@frozen
class Job:
    """A job in the queue, with its state."""

    id: int
    order: JobOrder
    state: JobState
    done: int  # steps done of total; 0 of 0: unknown
    total: int
    note: str  # current step; after its end, the result
    attempt: int  # number of attempts
    epoch: int  # epoch of its current or last lease
    runner: str
    cancel_asked: bool
    made: float
    started: float | None  # start of the last attempt
    ended: float | None


@frozen
class JobProgress:
    """Progress reported by a job. total 0: unknown."""

    done: int = 0
    total: int = 0
    note: str = ""


@frozen
class Schedule:
    """An order that is queued again each period."""

    id: int
    order: JobOrder
    period_s: float
    next_at: float
    paused: bool
