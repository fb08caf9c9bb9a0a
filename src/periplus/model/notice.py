"""What is worth telling somebody who does not look, whom, and by which way?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NoticeKind(StrEnum):
    """What changed. The value is what users see and choose by: stable."""

    DEAD = "dead-links"  # addresses that are dead, and were not when it was last told
    VANISHED = "vanished-pages"  # pages that were read once and are gone
    SITES = "new-sites"  # sites that were never met before
    PORTAL = "portal-renewed"  # a portal has entries that it had not
    FAILED = "job-failed"
    SUSPICIOUS = "suspicious-end"  # a crawl ended suspicious, or failed

    __hash__ = str.__hash__


class Channel(StrEnum):
    """By which way somebody is told. Feeds need no subscription."""

    MAIL = "mail"
    WEBHOOK = "webhook"


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing that changed in one collection, or one job that failed. Told once, by its key."""

    id: int  # counts up; 0: not kept yet
    key: str
    kind: NoticeKind
    collection: str  # its folder's name; empty: of none
    made: float  # seconds since the epoch
    subjects: tuple[str, ...]  # the first of them: addresses, sites, entries, what a job said
    count: int  # of all of them


@dataclass(frozen=True, slots=True)
class Subscription:
    """Who is told of what. kinds: empty, of all; collection: empty, of all."""

    id: int
    channel: Channel
    target: str  # a mail address, or a URL
    kinds: tuple[NoticeKind, ...]
    collection: str
    made: float


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notice on its way to one subscriber. fault: of the last attempt; empty: there was none, or it arrived."""

    notice: Notice
    subscription: Subscription
    secret: str  # with which a webhook's notices are signed
    attempts: int
    state: str  # waiting, sent, given up
    fault: str


@dataclass(frozen=True, slots=True)
class MailSettings:
    """The server that takes our mail. security: tls, starttls or none."""

    server: str = ""  # empty: no mail is sent
    port: int = 587
    security: str = "starttls"
    user: str = ""
    password: str = ""
    sender: str = ""
    ca_file: str = ""


@dataclass(frozen=True, slots=True)
class NoticeSettings:
    """How notices leave. allow_private: webhooks to loopback and private addresses; address: of the interface, for links in notices."""

    mail: MailSettings = MailSettings()
    allow_private: bool = False
    ca_file: str = ""
    address: str = ""
