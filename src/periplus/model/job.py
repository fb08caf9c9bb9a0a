"""Requests for work and what becomes of them, and what is worth telling somebody who does not look."""

from __future__ import annotations

from enum import StrEnum

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


class NoticeKind(StrEnum):
    """What changed. The value is what users see and choose by: stable."""

    BROKEN = "broken-links"  # new since the last notices
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
