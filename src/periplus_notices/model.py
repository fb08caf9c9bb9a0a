"""Notices, subscriptions and the settings for sending them, as values."""

from __future__ import annotations

from enum import StrEnum

from periplus.values import frozen


class NoticeKind(StrEnum):
    """Kind of change. The value is what users see and select by: stable."""

    BROKEN = "broken-links"  # links that broke since the last notice
    VANISHED = "vanished-pages"  # pages that were fetched before and are gone
    SITES = "new-sites"  # sites found for the first time
    PORTAL = "portal-renewed"  # a portal has new entries
    FAILED = "job-failed"
    SUSPICIOUS = "suspicious-end"  # a crawl ended as suspicious or failed
    REPORT = "report"  # summary of a collection after a run, with its report; only sent if subscribed to explicitly

    __hash__ = str.__hash__


class Channel(StrEnum):
    """How a notice is delivered. Feeds need no subscription."""

    MAIL = "mail"
    WEBHOOK = "webhook"


@frozen
class Notice:
    """A change in a collection, or a failed job. Sent only once for each key."""

    id: int  # ascending; 0: not stored yet
    key: str
    kind: NoticeKind
    collection: str  # name of its folder, or empty
    made: float  # seconds since the epoch
    subjects: tuple[str, ...]  # the first subjects: URLs, sites, entries, a job's message
    count: int  # number of all subjects


@frozen
class Subscription:
    """A subscription to notices. kinds, collection: empty for all."""

    id: int
    channel: Channel
    target: str  # a mail address, or a URL
    kinds: tuple[NoticeKind, ...]
    collection: str
    made: float


@frozen
class Delivery:
    """Delivery of a notice to one subscriber. fault: error of the last attempt, or empty."""

    notice: Notice
    subscription: Subscription
    secret: str  # key that signs webhook requests
    attempts: int
    state: str  # waiting, sent, given up
    fault: str


@frozen
class MailSettings:
    """The outgoing mail server. security: tls, starttls or none."""

    server: str = ""  # empty: mail is disabled
    port: int = 0  # 0: the usual one for the kind of security
    security: str = "starttls"
    user: str = ""
    password: str = ""
    sender: str = ""
    ca_file: str = ""


@frozen
class NoticeSettings:
    """Settings for sending notices.

    allow_private: allow webhooks to loopback and private addresses; address: of the interface, for links in notices.
    """

    mail: MailSettings = MailSettings()
    allow_private: bool = False
    ca_file: str = ""
    address: str = ""
