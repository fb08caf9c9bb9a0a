"""One attempt to fetch one URL, and its possible results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from enum import StrEnum

from periplus.model.web import Url
from periplus.values import Pairs, frozen


class Purpose(StrEnum):
    """Purpose of a request."""

    PAGE = "page"
    ROBOTS = "robots"
    SITEMAP = "sitemap"
    LOGIN = "login"  # login form, its submission, or a page that shows whether the session is logged in
    PART = "part"  # subresource of a rendered page: script, style or data
    HEAD = "head"  # check of a link target by HEAD, without a body
    CHECK = "check"  # check of a link target by GET; the page is not stored


BESIDE = frozenset({Purpose.PART, Purpose.LOGIN})  # requested on behalf of pages; not pages themselves
CHECKS = frozenset({Purpose.HEAD, Purpose.CHECK})


class State(StrEnum):
    """State of a URL. Every known URL has a State and a Reason."""

    FETCHED = "fetched"  # fetched and analysed
    DISCOVERED = "discovered"  # linked to but not fetched: waiting, beyond a limit, or not allowed
    EXCLUDED = "excluded"  # out of scope, against the rules, or an alias of a page
    FAILED = "failed"  # does not exist or cannot be reached


class Reason(StrEnum):
    """Reason of a URL's state. The value is what users see and filter by: stable."""

    # fetched
    OK = "ok"
    TRUNCATED = "truncated"  # the body ended early, or was cut at a limit
    # the body is complete but was read only in part: it is damaged, or exceeds the limits on links or text
    PARTIAL = "partial"
    UNREADABLE = "unreadable"  # could not be parsed at all: damaged, encrypted, or not text
    NEEDS_SCRIPT = "needs-script"  # an empty shell that a script fills in a browser; its content is unknown
    NOINDEX = "noindex"  # the page asks search engines not to index it; its content and links still count
    OTHER_MEDIA = "other-media"  # a media type that is not parsed; only the headers are stored
    # discovered
    WAITING = "waiting"
    DEPTH = "depth"  # beyond --max-depth
    ROBOTS = "robots"  # robots.txt disallows it
    ROBOTS_UNREACHABLE = "robots-unreachable"  # RFC 9309 2.3.1.4: assume complete disallow
    NOFOLLOW = "nofollow"  # reached only by nofollow links
    RESOURCE = "resource"  # an image, style or script: recorded but not fetched
    TRAP = "trap"  # URL pattern without new content
    REFUSED = "refused"  # 401, 403, 407, 429, 451, 999: refused to crawlers, perhaps not to visitors
    BOT_WALL = "bot-wall"  # a bot protection service answers in place of the site; the rule names it
    HOST_DOWN = "host-down"  # the run gave up on its host first
    ALIVE = "alive"  # failed in a crawl, alive in a later check; a refresh or a resumed crawl fetches it
    NOT_ARCHIVED = "not-in-archive"  # linked from an archive that does not contain it; a crawl of its site fetches it
    # excluded
    SCOPE = "scope"  # another site, or excluded
    OTHER_PART = "other-part"  # belongs to another part of a split crawl, and is sent there
    RULE = "rule"  # breaks the parameter rules
    REDIRECT = "redirect"  # leads to another URL
    ALIAS = "alias"  # alias of a page, by a rule or learned
    SCHEME = "scheme"  # mailto:, javascript: and other schemes that cannot be fetched
    # the user deleted the page; links to it stay, and it is fetched again only if it is named as a start
    DELETED = "deleted"
    # failed
    NOT_FOUND = "not-found"  # 404, 410
    CLIENT_ERROR = "client-error"  # another 4xx
    SERVER_ERROR = "server-error"  # 5xx, after retries
    UNREACHABLE = "unreachable"  # no name, no connection, no answer, after retries
    TLS = "tls"
    BAD_ANSWER = "bad-answer"  # not HTTP, header too long, endless redirects
    PRIVATE = "private-address"  # refused by us at connect time
    BUG = "bug"  # internal error of ours


_STATE_OF = {
    State.FETCHED: ("OK", "TRUNCATED", "PARTIAL", "UNREADABLE", "NEEDS_SCRIPT", "NOINDEX", "OTHER_MEDIA"),
    State.EXCLUDED: ("SCOPE", "OTHER_PART", "RULE", "REDIRECT", "ALIAS", "SCHEME", "DELETED"),
    State.FAILED: ("NOT_FOUND", "CLIENT_ERROR", "SERVER_ERROR", "UNREACHABLE", "TLS", "BAD_ANSWER", "PRIVATE", "BUG"),
}
STATE_OF: dict[Reason, State] = dict.fromkeys(Reason, State.DISCOVERED) | {
    Reason[name]: state for state, names in _STATE_OF.items() for name in names
}
"""The reason decides the state, so only the reason is stored."""
REASONS_OF = {state: [reason for reason in Reason if STATE_OF[reason] is state] for state in State}
"""The reasons of each state, in the order of Reason."""
BROKEN_REASONS = [reason for reason in REASONS_OF[State.FAILED] if reason not in (Reason.BUG, Reason.PRIVATE)]
"""Failures of the site, not of this program or its settings."""

FETCHED_REASONS = frozenset(REASONS_OF[State.FETCHED])


class Cause(StrEnum):
    """Why a request got no usable response."""

    NAME = "name-not-found"
    CONNECT = "connection-failed"
    TLS = "tls"
    TIMEOUT = "timeout"
    FIRST_BYTE = "no-first-byte"
    RESET = "connection-lost"
    NOT_HTTP = "not-http"
    HEADER_LIMIT = "header-too-long"
    PRIVATE = "private-address"
    PROXY = "proxy"
    CANCELLED = "cancelled"  # not sent
    STALE = "kept-connection-closed"  # closed before a response began; retried, see RFC 9112, 9.3.1
    NOT_ARCHIVED = "not-in-archive"  # read from an archive that does not contain it
    BUG = "bug"


class Cut(StrEnum):
    """Why a body is incomplete."""

    NONE = ""
    SHORT = "shorter-than-declared"  # the connection ended before Content-Length or the last chunk
    BODY_LIMIT = "body-limit"
    INFLATED_LIMIT = "inflated-limit"
    RATIO_LIMIT = "ratio-limit"
    BAD_ENCODING = "bad-content-encoding"
    TIME_LIMIT = "time-limit"
    NOT_WANTED = "media-type-not-read"  # stopped after the header on purpose
    BOT_WALL = "bot-wall"  # the body is of a bot protection service, and nothing of the page: `headers.bot_wall`


@frozen
class Request:
    """A request for a URL, with its origin."""

    url: Url
    purpose: Purpose = Purpose.PAGE
    depth: int | None = None  # clicks from the start; None if no link leads there (sitemap)
    hops: int = 0  # redirects followed to get here
    attempt: int = 0  # earlier attempts in this run
    # ROBOTS: the origin of the rules; SITEMAP: the site; CHECK: the fragments to check, separated by spaces
    about: str = ""
    etag: str = ""  # validators of a conditional request, or empty
    last_modified: str = ""
    body: bytes = field(default=b"", repr=False)  # sent by POST: a notice or a login form
    fields: tuple[str, ...] = ()  # further header lines


@frozen
class Headers:
    """A response's header fields, in order, names in lower case, values as latin-1 text."""

    fields: Pairs = ()
    status_line: str = ""  # as sent: "HTTP/1.1 200 OK"; empty if unknown

    def get(self, name: str, default: str = "") -> str:
        """First value of a field; name in lower case."""
        for own, value in self.fields:
            if own == name:
                return value
        return default

    def all(self, name: str) -> list[str]:
        """All values of a field; name in lower case."""
        return [value for field, value in self.fields if field == name]


@frozen
class Fetched:
    """Any response except a redirect or 304. body: decompressed, perhaps truncated. sent: the body in gzip format, if
    the server sent all of it so; else empty.
    """

    status: int
    headers: Headers
    body: bytes
    cut: Cut = Cut.NONE
    sent: bytes = b""


@frozen
class Redirected:
    """A 301, 302, 303, 307 or 308 with a usable Location. target: canonical; fragment: the part after its `#`."""

    status: int
    headers: Headers
    target: Url
    fragment: str = ""


@frozen
class Unchanged:
    """The stored page is still current: 304, or 200 with the same bytes."""

    headers: Headers
    status: int = 304


@frozen
class Failed:
    """No usable response. detail: message of the transport."""

    cause: Cause
    detail: str = ""


@frozen
class Skipped:
    """Not requested. rule: the deciding line of robots.txt or setting; line: its line number, or 0."""

    reason: Reason
    rule: str = ""
    line: int = 0


Outcome = Fetched | Redirected | Unchanged | Failed | Skipped


@frozen
class Visit:
    """One attempt to fetch one URL, with the result."""

    request: Request
    started: float  # seconds since the epoch, UTC
    took_s: float  # from the request's first byte sent to the last byte read
    outcome: Outcome
    wire_bytes: int = 0  # body bytes as transferred
    address: str = ""  # IP address of the server; empty behind a proxy or without a response
    first_byte_s: float = 0.0  # from the request's first byte sent to the first byte read; 0.0 if none arrived


@frozen
class Certificate:
    """TLS properties of a server. ends: expiry of the certificate, seconds since the epoch, UTC; 0.0: unknown."""

    ends: float
    old_tls: bool  # whether it accepts TLS 1.0 or 1.1
    fault: str = ""  # why it is not trusted, from the TLS library; empty if it is trusted


@frozen
class StateTally:
    """Number of URLs in a state for a reason."""

    state: State
    reason: Reason
    urls: int


def urls_by_state(tallies: Iterable[StateTally]) -> dict[State, int]:
    """How many URLs are in each state."""
    counts = dict.fromkeys(State, 0)
    for tally in tallies:
        counts[tally.state] += tally.urls
    return counts


@frozen
class UrlFacts:
    """Result for one URL. target: redirect target, or empty."""

    url: Url
    reason: Reason
    status: int  # 0: no answer
    rule: str
