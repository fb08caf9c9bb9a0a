"""What is a request for work, and what becomes of it?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class JobState(StrEnum):
    """queued -> running -> done | failed | cancelled; running -> queued when its runner died; queued -> cancelled. No other move."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    __hash__ = str.__hash__


PIPES = "PERIPLUS_RUNNER"
"""In the environment of a job's process: the numbers of the pipe that it tells its progress by (JSON lines with the fields of
`JobProgress`) and of the one whose end says that its runner has died: "write,read"."""


@dataclass(frozen=True, slots=True)
class JobOrder:
    """What is to be done: a command of the program with its arguments, as one would type it after `periplus`."""

    command: tuple[str, ...]
    priority: int = 0  # greater comes first
    run_at: float = 0.0  # not before; seconds since the epoch
    most_attempts: int = 3  # of runners that may die with it
    schedule_id: int = 0  # 0: asked for once
    then: tuple[tuple[str, ...], ...] = ()  # commands that are asked for one after the other, each when the one before it is done

    @property
    def kind(self) -> str:
        """The command's name: crawl, refresh, check, ..."""
        return self.command[0]


@dataclass(frozen=True, slots=True)
class Job:
    """An order in the queue, as it stands."""

    id: int
    order: JobOrder
    state: JobState
    done: int  # of total; 0 of 0: it does not say
    total: int
    note: str  # what it does now; at its end, what came of it
    attempt: int  # runners that took it
    epoch: int  # of its present or last lease
    runner: str
    cancel_asked: bool
    made: float
    started: float | None  # by its last runner
    ended: float | None


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a job is, by its own word. total 0: not known."""

    done: int = 0
    total: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Schedule:
    """An order that is given again each period."""

    id: int
    order: JobOrder
    period_s: float
    next_at: float
    paused: bool
