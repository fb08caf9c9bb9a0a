"""One attempt to fetch one URL, and everything that can come of it."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from periplus.model.web import Url
from periplus.values import Pairs, frozen


class Purpose(StrEnum):
    """Why a URL is asked for."""

    PAGE = "page"
    ROBOTS = "robots"
    SITEMAP = "sitemap"
    LOGIN = "login"  # a form that a user signs in by, what is sent of it, or a page that shows whether one is in
    PART = "part"  # a script, style or answer to a script that a page needs to be rendered
    HEAD = "head"  # whether a link's target is there, by HEAD: no body comes
    CHECK = "check"  # the same by GET; the page is looked at and not kept


BESIDE = frozenset({Purpose.PART, Purpose.LOGIN})  # asked for on behalf of pages, and no pages of the crawl themselves
CHECKS = frozenset({Purpose.HEAD, Purpose.CHECK})


class State(StrEnum):
    """The states of a URL. Every URL that was ever seen has one, and a Reason."""

    FETCHED = "fetched"  # fetched and analysed
    DISCOVERED = "discovered"  # linked to, not fetched: waiting, beyond a limit, or not ours to take
    EXCLUDED = "excluded"  # out of scope, against the rules, or only another name of a page
    FAILED = "failed"  # does not exist or cannot be reached


class Reason(StrEnum):
    """Why a URL is in its state. The value is what users see and filter by: stable."""

    # fetched
    OK = "ok"
    TRUNCATED = "truncated"  # the body ended early, or was cut at a limit
    # the body is whole, but not all of it was read: it is damaged, or has more links or text than are recorded
    PARTIAL = "partial"
    UNREADABLE = "unreadable"  # nothing of it could be read: it is damaged, encrypted, or no text at all
    NEEDS_SCRIPT = "needs-script"  # an empty shell that a script fills in a browser: what it shows there is not known
    NOINDEX = "noindex"  # the page asks search engines not to index it; its content and links count all the same
    OTHER_MEDIA = "other-media"  # a media type that we do not read: headers kept, body not
    # discovered
    WAITING = "waiting"
    DEPTH = "depth"  # beyond --max-depth
    ROBOTS = "robots"  # robots.txt disallows it
    ROBOTS_UNREACHABLE = "robots-unreachable"  # RFC 9309 2.3.1.4: assume complete disallow
    NOFOLLOW = "nofollow"  # reached by nofollow links only
    RESOURCE = "resource"  # an image, style or script: recorded, not fetched
    TRAP = "trap"  # its pattern of URLs kept yielding nothing new
    REFUSED = "refused"  # 401, 403, 407, 429, 451, 999: refused to us, perhaps not to others
    HOST_DOWN = "host-down"  # its host was given up before its turn came
    ALIVE = "alive"  # a crawl found it dead and a check since then alive: a refresh, or a crawl that goes on, reads it
    NOT_ARCHIVED = "not-in-archive"  # linked to in an archive that does not hold it; a crawl of its site asks for it
    # excluded
    SCOPE = "scope"  # another site, or excluded
    OTHER_PART = "other-part"  # of a web that several collections share, another one's; handed over to it
    RULE = "rule"  # breaks the parameter rules
    REDIRECT = "redirect"  # leads to another URL
    ALIAS = "alias"  # another address of a page, by a rule or as learned
    SCHEME = "scheme"  # mailto:, javascript: and other schemes that no crawler fetches
    # the user deleted its page; links to it stay, and it is not asked for until it is named as a start
    DELETED = "deleted"
    # failed
    NOT_FOUND = "not-found"  # 404, 410
    CLIENT_ERROR = "client-error"  # another 4xx
    SERVER_ERROR = "server-error"  # 5xx, after retries
    UNREACHABLE = "unreachable"  # no name, no connection, no answer, after retries
    TLS = "tls"
    BAD_ANSWER = "bad-answer"  # not HTTP, header too long, endless redirects
    PRIVATE = "private-address"  # refused by us at connect time
    BUG = "bug"  # we failed, and know it


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

FETCHED = frozenset(REASONS_OF[State.FETCHED])


class Cause(StrEnum):
    """Why an exchange brought no usable answer."""

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
    CANCELLED = "cancelled"  # we did not send it after all
    STALE = "kept-connection-closed"  # before an answer began: to be repeated, see RFC 9112, 9.3.1
    NOT_ARCHIVED = "not-in-archive"  # an archive answers in place of the web, and does not hold it
    BUG = "bug"


class Cut(StrEnum):
    """Why a body is not the whole body."""

    NONE = ""
    SHORT = "shorter-than-declared"  # the connection ended before Content-Length or the last chunk
    BODY_LIMIT = "body-limit"
    INFLATED_LIMIT = "inflated-limit"
    RATIO_LIMIT = "ratio-limit"
    BAD_ENCODING = "bad-content-encoding"
    TIME_LIMIT = "time-limit"
    NOT_WANTED = "media-type-not-read"  # we stopped after the header on purpose


@frozen
class Request:
    """What to ask for, and where the wish came from."""

    url: Url
    purpose: Purpose = Purpose.PAGE
    depth: int | None = None  # clicks from the start; None while no link reaches it (sitemap)
    hops: int = 0  # redirects followed to get here
    attempt: int = 0  # earlier attempts in this run
    # ROBOTS: the origin whose rules are sought; SITEMAP: the site; CHECK: the fragments to look for, parted by spaces
    about: str = ""
    etag: str = ""  # validators of a conditional request, empty when none
    last_modified: str = ""
    body: bytes = field(default=b"", repr=False)  # sent by POST: a notice, or the form that a user signs in by
    fields: tuple[str, ...] = ()  # further header lines


@frozen
class Headers:
    """A response's header fields, in order, names in lower case, values as latin-1 text."""

    fields: Pairs = ()
    status_line: str = ""  # as the server wrote it, "HTTP/1.1 200 OK"; empty when unknown

    def get(self, name: str, default: str = "") -> str:
        """The first value of a field; name in lower case."""
        for own, value in self.fields:
            if own == name:
                return value
        return default

    def all(self, name: str) -> list[str]:
        """Every value of a field; name in lower case."""
        return [value for field, value in self.fields if field == name]


@frozen
class Fetched:
    """The server answered, and not with a redirect or 304. body: content decoded (inflated), perhaps cut."""

    status: int
    headers: Headers
    body: bytes
    cut: Cut = Cut.NONE


@frozen
class Redirected:
    """A 301, 302, 303, 307 or 308 with a usable Location. target: canonical; fragment: what stood behind its `#`."""

    status: int
    headers: Headers
    target: Url
    fragment: str = ""


@frozen
class Unchanged:
    """What we hold is still right: 304, or 200 with the same bytes."""

    headers: Headers
    status: int = 304


@frozen
class Failed:
    """No usable answer. detail: the transport's own words."""

    cause: Cause
    detail: str = ""


@frozen
class Skipped:
    """Not asked for. rule: the line of robots.txt or the setting that decided; line: its number there, 0 if none."""

    reason: Reason
    rule: str = ""
    line: int = 0


Outcome = Fetched | Redirected | Unchanged | Failed | Skipped


@frozen
class Visit:
    """One attempt to fetch one URL, whatever came of it."""

    request: Request
    started: float  # seconds since the epoch, UTC
    took_s: float  # from the request's first byte sent to the last byte read
    outcome: Outcome
    wire_bytes: int = 0  # body bytes as they travelled
    address: str = ""  # the IP address that answered; empty behind a proxy or without an answer
    first_byte_s: float = 0.0  # from the request's first byte sent to the first byte read; 0.0: none came


@frozen
class Certificate:
    """What a server shows when a connection by TLS is opened. ends: seconds since the epoch, UTC; 0.0: not known."""

    ends: float
    old_tls: bool  # whether it agrees to TLS 1.0 or 1.1
    fault: str = ""  # why it cannot be trusted, in the library's words; empty: it can
