"""Requests for work and what becomes of them, and what is worth telling somebody who does not look."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from periplus.values import frozen


class JobState(StrEnum):
    """queued -> running -> done | failed | cancelled; running -> queued when its runner died; queued -> cancelled.

    No other move.
    """

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    __hash__ = str.__hash__


PIPES = "PERIPLUS_RUNNER"
"""In the environment of a job's process: the numbers of the pipe that it tells its progress by (JSON lines with the
fields of `JobProgress`) and of the one whose end says that its runner has died: "write,read".
"""


@frozen
class JobOrder:
    """What is to be done: a command of the program with its arguments, as one would type it after `periplus`."""

    command: tuple[str, ...]
    priority: int = 0  # greater comes first
    run_at: float = 0.0  # not before; seconds since the epoch
    most_attempts: int = 3  # of runners that may die with it
    schedule_id: int = 0  # 0: asked for once
    # commands that are asked for one after the other, each when the one before it is done
    then: tuple[tuple[str, ...], ...] = ()

    @property
    def kind(self) -> str:
        """The command's name: crawl, refresh, check, ..."""
        return self.command[0]


@frozen
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


@frozen
class JobProgress:
    """How far a job is, by its own word. total 0: not known."""

    done: int = 0
    total: int = 0
    note: str = ""


@frozen
class Schedule:
    """An order that is given again each period."""

    id: int
    order: JobOrder
    period_s: float
    next_at: float
    paused: bool


class JobStore(Protocol):
    """Which requests wait, who works on them, and which come again?

    States of a job: see `JobState`. Always: (1) a job has at most one live lease, named by its epoch, and what an older
    one reports is dropped; (2) the greatest priority goes first, then the oldest; (3) equal requests that are open are
    one, but for one that was told to stop; (4) a period gives one job a tick, however many ask; (5) every lease ends,
    by finish or by time; (6) a job's successor is asked for once, when it is done. Each call is one transaction. Not
    its business: doing the work, knowing the time (seconds since the epoch, by one clock for all who share it).
    """

    def close(self) -> None: ...

    def add(self, order: JobOrder, now: float) -> Job:
        """The job that does this: a new one, or an equal one that is open and was not told to stop.

        A joined job takes the greater priority, the earlier time and the successors of the later
        order, where that has any.
        """

    def claim(self, runner: str, now: float, lease_s: float) -> Job | None:
        """The next job, leased to a runner; None: nothing is due.

        A job whose runners died as often as it may is failed instead.
        """

    def beat(self, job: Job, progress: JobProgress, now: float, lease_s: float) -> bool:
        """Renews the lease and enters the progress. False: stop, for it was cancelled or is another runner's now."""

    def finish(self, job: Job, state: JobState, note: str, now: float, wait_s: float = 0.0) -> bool:
        """The job's end, or its way back into the queue for wait_s at least (one that was cancelled has none);
        of one that is done its successor is asked for in the same moment.

        False: it is another runner's now, nothing is entered.
        """

    def cancel(self, job_id: int, now: float) -> Job:
        """A waiting job is cancelled at once, a running one at its next beat, an ended one stays as it is.

        Raises StoreError if there is none.
        """

    def job(self, job_id: int) -> Job:
        """Raises StoreError if there is none."""

    def jobs(self, *, most: int = 100) -> Sequence[Job]:
        """Running ones first, then what waits in the order of its turn, then what ended, the latest first."""

    def open_jobs(self) -> int:
        """How many wait or run."""

    def repeat(self, order: JobOrder, period_s: float, now: float) -> Schedule:
        """Gives the order each period from now on; of an equal schedule period and priority are changed."""

    def tick(self, now: float) -> Sequence[Job]:
        """The jobs of all periods that are over, each once.

        Ticks that were missed while nobody looked are not made up.
        """

    def schedules(self) -> Sequence[Schedule]: ...

    def pause(self, schedule_id: int, *, paused: bool) -> None:
        """Raises StoreError if there is none."""

    def forget(self, schedule_id: int) -> None:
        """Ends a schedule; the jobs that it made stay. Raises StoreError if there is none."""


class NoticeKind(StrEnum):
    """What changed. The value is what users see and choose by: stable."""

    DEAD = "dead-links"  # addresses that are dead, and were not when it was last told
    VANISHED = "vanished-pages"  # pages that were read once and are gone
    SITES = "new-sites"  # sites that were never met before
    PORTAL = "portal-renewed"  # a portal has entries that it had not
    FAILED = "job-failed"
    SUSPICIOUS = "suspicious-end"  # a crawl ended suspicious, or failed
    REPORT = "report"  # how a collection stands after a run, with its report; only for who asks for this kind

    __hash__ = str.__hash__


class Channel(StrEnum):
    """By which way somebody is told. Feeds need no subscription."""

    MAIL = "mail"
    WEBHOOK = "webhook"


@frozen
class Notice:
    """One thing that changed in one collection, or one job that failed. Told once, by its key."""

    id: int  # counts up; 0: not kept yet
    key: str
    kind: NoticeKind
    collection: str  # its folder's name; empty: of none
    made: float  # seconds since the epoch
    subjects: tuple[str, ...]  # the first of them: addresses, sites, entries, what a job said
    count: int  # of all of them


@frozen
class Subscription:
    """Who is told of what. kinds: empty, of all; collection: empty, of all."""

    id: int
    channel: Channel
    target: str  # a mail address, or a URL
    kinds: tuple[NoticeKind, ...]
    collection: str
    made: float


@frozen
class Delivery:
    """A notice on its way to one subscriber. fault: of the last attempt; empty: there was none, or it arrived."""

    notice: Notice
    subscription: Subscription
    secret: str  # with which a webhook's notices are signed
    attempts: int
    state: str  # waiting, sent, given up
    fault: str


@frozen
class MailSettings:
    """The server that takes our mail. security: tls, starttls or none."""

    server: str = ""  # empty: no mail is sent
    port: int = 587
    security: str = "starttls"
    user: str = ""
    password: str = ""
    sender: str = ""
    ca_file: str = ""


@frozen
class NoticeSettings:
    """How notices leave.

    allow_private: webhooks to loopback and private addresses; address: of the interface, for links in notices.
    """

    mail: MailSettings = MailSettings()
    allow_private: bool = False
    ca_file: str = ""
    address: str = ""
