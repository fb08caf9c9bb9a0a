"""What passes between a worker and the store: leases, tasks, what became of them,
and when a page is asked for again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import NamedTuple

from periplus.model.audit import FragmentVerdict
from periplus.model.page import NO_BLOCKS, Blocks, Document, Part, Rendering
from periplus.model.visit import FETCHED, STATE_OF, Reason, Request, State, Visit
from periplus.model.web import HostKey, Origin, SiteKey, Url, UrlId
from periplus.values import frozen

# what people expect of a refresh that repeats by itself, and what the first figures are corrected from
FIRST_INTERVAL_S = 86_400.0
SHORTEST_INTERVAL_S = 3_600.0  # a page that changes more often is a stream, and nobody's map shows it
# Nutch's default interval; beyond it what vanished would stay in the map for too long
LONGEST_INTERVAL_S = 30 * 86_400.0
GROWTH = 1.5  # unchanged pages are asked ever more seldom: seven steps from a day to two weeks and a half
SHRINKING = 0.5  # a changed page's interval falls faster than it grew: being late costs the reader, being early one 304
EARLY_SHARE = 0.1  # of the interval: a run every 24 hours must not pass over what is due a minute later


class RefreshFinding(StrEnum):
    """What a run found out about a page, compared with what was known before."""

    NEW = "new"  # fetched for the first time
    UNCHANGED = "unchanged"
    CHANGED = "changed"
    GONE = "gone"  # was fetched before, and cannot be now
    BACK = "back"  # the other way round
    UNREACHED = "unreached"  # not asked for: its host was given up before its turn


READ = FETCHED
ASKED_AGAIN = (
    READ
    | {reason for reason in Reason if STATE_OF[reason] is State.FAILED}
    | {Reason.REFUSED, Reason.REDIRECT, Reason.ROBOTS, Reason.ROBOTS_UNREACHABLE, Reason.HOST_DOWN, Reason.ALIVE}
)
"""What a refresh asks for: what was fetched, and what could not be. Aliases and what is out of scope are left aside."""


def next_interval_s(interval_s: float, finding: RefreshFinding) -> float:
    """Seconds until a page should be asked for again. interval_s: as it was until now."""
    if finding is RefreshFinding.UNCHANGED:
        return min(interval_s * GROWTH, LONGEST_INTERVAL_S)
    return max(interval_s * SHRINKING, SHORTEST_INTERVAL_S)


def finding_of(before: Reason, after: Reason, changed: bool) -> RefreshFinding:
    """changed: the content did, or the rule behind the reason."""
    if before in READ and after not in READ:
        return RefreshFinding.GONE
    if after in READ and before not in READ:
        return RefreshFinding.BACK
    return RefreshFinding.CHANGED if changed or before is not after else RefreshFinding.UNCHANGED


# What passes between a worker and the store: leases, tasks, and what became of them.

CHOSEN_NOTE = "chosen"  # name of the collection's note of `Batch.chosen`
PRIORITY_FIRST = -1  # robots.txt that another host's rules depend on
PRIORITY_CHECK = 1_000_000_000  # links' targets are checked when no page is left to fetch
PRIORITY_SITEMAP = 1_000_000_001  # sitemaps are read when no link is left to follow
PRIORITY_NONE = 1_000_000_002  # what only a sitemap knows
# what looks like a trap is asked about again when nothing else is left; further rounds follow
PRIORITY_DOUBT = 1_000_000_003


@frozen
class ReadyHost:
    """A host that could be leased, as a policy sees it."""

    host_id: int
    host: HostKey
    site: SiteKey
    pending: int  # entries of its to-do list
    site_fetched: int  # pages of its site so far
    wait_s: float  # until it may be asked


@frozen
class Lease:
    """The right to ask one host, until the worker falls silent. epoch: fences off whoever held it before."""

    host_id: int
    host: HostKey
    site: SiteKey
    epoch: int
    wait_s: float  # until the host may be asked
    delay_s: float  # between starts, as last known
    rate: float
    strikes: int
    answered: bool


@frozen
class Task:
    """One row of the to-do list. url_id is 0 for robots.txt and sitemaps, which are not pages."""

    host_id: int
    priority: int  # of the queue, the least first: the depth of a page, or one of PRIORITY_*
    seq: int
    url_id: UrlId
    request: Request
    recheck: bool = False  # a refresh asks: the URL keeps its reason until it is answered
    held: bytes = b""  # digest of the body that we hold, and that need not be understood again; empty: none
    doubt: int = 0  # 1: only pages without content name the URL, see `schedule.traps`


@frozen
class StoredRobots:
    """What is remembered of an origin's robots.txt. status 0: no answer (cause says why); body: the rules' text."""

    origin: Origin
    status: int
    cause: str
    body: bytes
    fetched: float
    expires: float


@frozen
class Candidate:
    """A URL that was seen, with what should become of it: Reason.WAITING to be fetched, else why not."""

    url: Url
    url_id: UrlId
    host: HostKey
    site: SiteKey
    reason: Reason
    depth: int | None
    rule: str = ""
    hops: int = 0
    in_sitemap: bool = False
    page: UrlId | None = None  # Reason.ALIAS: the page that it is another address of
    learned: bool = False  # and whether that was learned, not ruled
    vouched: bool = True  # False: by this link alone it may be part of an endless series


@frozen
class SideRequest:
    """What to fetch from a host that may be another's without making a page of it: robots.txt, a sitemap,
    a link's target to be checked.
    """

    host: HostKey
    site: SiteKey
    request: Request
    priority: int
    in_s: float = 0.0  # not before so many seconds from now


@frozen
class PatternRecord:
    """What the pages of one URL pattern of one host brought, for the store.

    Key ROOT: the whole host. See `schedule.traps`.
    """

    key: str
    fresh: int  # pages that said or showed something new
    useful: int  # pages that led to such pages
    idle: int  # pages in a row that were neither
    dull: int  # of them, those since the latest with new numbers
    bred: int  # pages in a row without content that led to more of this pattern
    listed: int  # pages with content that named more of it
    alike: int  # pages in a row with the same text
    text: str  # what these pages say: the start of its digest
    led_from: str  # the pattern of the latest page without content that led to one of these; empty: none did
    spent: int  # pages that were read although their series was in doubt; of ROOT alone


@frozen
class ShownLines:
    """Keys of texts that a host has shown, in order: a part of the sequence that begins with number `first`."""

    first: int = 0
    keys: bytes = b""  # uint32, little-endian
    needed_from: int = 0  # those of smaller number are needed no longer


@frozen
class TrapMemory:
    """What the store keeps of one host for its trap detector."""

    patterns: tuple[PatternRecord, ...] = ()
    lines: ShownLines = ShownLines()
    doubts: tuple[tuple[UrlId, int], ...] = ()  # URLs that nothing vouches for


@frozen
class TrapChanges:
    """What changed of it since the last commit. A doubt of 0: something vouches for the URL now."""

    patterns: tuple[PatternRecord, ...] = ()
    lines: ShownLines = ShownLines()
    doubts: tuple[tuple[UrlId, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.patterns or self.lines.keys or self.doubts)


class TrapTally(NamedTuple):
    """How many URLs were left out because their URL pattern looks like an endless series,
    or (`sid=*`) was read under another session id.
    """

    pattern: str
    urls: int


@frozen
class Look:
    """What was seen of a link's target, whose page is not kept."""

    media_type: str
    title: str
    h1: str
    text: str  # its beginning
    fragments: tuple[tuple[str, FragmentVerdict], ...] = ()  # those that were to be looked for


@frozen
class Completion:
    """What became of one task.

    reason None: to be tried again, not before retry_in_s from now, and with another priority if that is named.
    """

    lease: Lease
    task: Task
    visit: Visit
    reason: Reason | None
    rule: str = ""
    document: Document | None = None
    candidates: tuple[Candidate, ...] = ()
    retry_in_s: float = 0.0
    retry_priority: int | None = None
    look: Look | None = None  # Purpose.CHECK
    side_requests: tuple[SideRequest, ...] = ()  # what is to be asked besides, of this host or of others
    rendering: Rendering | None = None  # the body is what a browser made of the page: see `Rendering.sent`


class LinkSighting(NamedTuple):
    """A link of a stored page, as far as a policy asks."""

    target: Url
    kind: str
    position: str
    anchor: str
    nofollow: bool


class PageVisit(NamedTuple):
    """One attempt at a page, or its being passed over, with what policies learn from it."""

    id: int  # grows with time
    url_id: UrlId
    url: Url
    depth: int | None
    took_s: float
    asked: bool  # a request was made
    read: bool  # and a page came
    may_pass: bool  # none came, and a later attempt may end better
    redirect: Url  # where it led; empty: nowhere
    links: tuple[LinkSighting, ...] = ()  # of a page that was read, redirects left out
    title: str = ""  # the rest where texts are asked for
    blocks: Blocks = NO_BLOCKS
    parts: tuple[Part, ...] | None = None


@frozen
class GivenUp:
    """An origin that is left alone for the rest of this run: what waits for it is dropped with this reason and rule."""

    origin: Origin
    reason: Reason
    rule: str


@frozen
class HostState:
    """How a host stands at the moment of a commit. release: the lease ends with it."""

    lease: Lease
    wait_s: float  # until it may be asked again
    delay_s: float
    rate: float
    strikes: int  # of its origin that fails least
    answered: bool  # whether any of its origins ever did
    waits_for: str
    given_up: tuple[GivenUp, ...] = ()  # since the last commit
    release: bool = False
    traps: TrapChanges = TrapChanges()


@frozen
class Batch:
    """One transaction: all of it is stored, or none. Completions and host states of a lost lease are dropped."""

    completions: tuple[Completion, ...] = ()
    hosts: tuple[HostState, ...] = ()
    robots: tuple[StoredRobots, ...] = ()
    side_requests: tuple[SideRequest, ...] = ()
    visits: tuple[Visit, ...] = ()  # of robots.txt asked for on the way, which are no tasks
    in_hand: int = 0  # tasks that the worker still holds after this batch
    # learned findings that proved wrong: what was skipped because of them waits again
    fallen: tuple[tuple[SiteKey, str], ...] = ()
    # the pages that a policy chose ahead and that have no answer yet, in their order; None: it does not choose ahead
    chosen: tuple[Url, ...] | None = None


@frozen
class RunCounts:
    """The counts of a run so far, from the store."""

    known: int = 0
    waiting: int = 0
    fetched: int = 0  # pages asked for, whatever came of it
    wire_bytes: int = 0
    by_reason: dict[str, int] = field(default_factory=dict)


class HandedBatch(NamedTuple):
    """What one part of a web hands over to another at once. number: counts up from 1 for each pair of parts."""

    part: int  # that gets it
    number: int
    messages: tuple[str, ...]  # as the sender's store wrote them and the other's reads them


class PartState(NamedTuple):
    """How a part of a web stands, at one moment. sent, taken: by part the number of the last batch."""

    identity: str  # another one where the part was begun anew
    is_idle: bool  # nothing waits there, and all that was met of others' hosts is handed over
    sent: Mapping[int, int]
    taken: Mapping[int, int]


@frozen
class HostRow:
    """One host as the progress display shows it."""

    host: HostKey
    pending: int
    fetched: int
    wait_s: float
    waits_for: str
    leased: bool
