"""Values exchanged between a worker and the store (leases, tasks, results), and the rules for refresh intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import NamedTuple

from periplus.model.audit import FragmentVerdict
from periplus.model.page import NO_BLOCKS, Blocks, Document, Part, Rendering
from periplus.model.visit import FETCHED_REASONS, REASONS_OF, Reason, Request, State, Visit
from periplus.model.web import HostKey, Origin, SiteKey, Url, UrlId
from periplus.values import frozen

# a common refresh period; adjusted by the first results
FIRST_INTERVAL_S = 86_400.0
SHORTEST_INTERVAL_S = 3_600.0  # a page that changes more often is a stream that no site map needs to follow
# Nutch's default interval; with a longer one, pages that are gone stay in the map for too long
LONGEST_INTERVAL_S = 30 * 86_400.0
GROWTH = 1.5  # unchanged pages are requested less often: seven steps from one day to 17 days
SHRINKING = 0.5  # shrinks faster than it grows: a late request costs readers, an early one costs a 304
EARLY_SHARE = 0.1  # share of the interval: a run every 24 hours must not skip a page that is due a minute later
READ = FETCHED_REASONS
ASKED_AGAIN = (
    READ
    | frozenset(REASONS_OF[State.FAILED])
    | {Reason.REFUSED, Reason.BOT_WALL, Reason.REDIRECT, Reason.ROBOTS, Reason.ROBOTS_UNREACHABLE, Reason.HOST_DOWN}
    | {Reason.ALIVE}
)
"""Reasons that a refresh requests again: fetched and failed URLs, but not aliases and URLs out of scope."""
CHOSEN_NOTE = "chosen"  # name of the collection's note that holds `Batch.chosen`
PRIORITY_FIRST = -1  # robots.txt that another host's rules depend on
PRIORITY_CHECK = 1_000_000_000  # link targets are checked after all pages are fetched
PRIORITY_SITEMAP = 1_000_000_001  # sitemaps are read after all links are followed
PRIORITY_WITHOUT_DEPTH = 1_000_000_002  # URLs known only from a sitemap
# URLs of suspected endless series are requested last; later rounds have higher numbers
PRIORITY_DOUBT = 1_000_000_003


class RefreshFinding(StrEnum):
    """Result for a page, compared with its previous state."""

    NEW = "new"  # fetched for the first time
    UNCHANGED = "unchanged"
    CHANGED = "changed"
    GONE = "gone"  # fetched before, but not available now
    BACK = "back"  # available again
    UNREACHED = "unreached"  # not requested: the run gave up on its host first


def next_interval_s(interval_s: float, finding: RefreshFinding) -> float:
    """Seconds until the next request of a page. interval_s: the previous interval."""
    if finding is RefreshFinding.UNCHANGED:
        return min(interval_s * GROWTH, LONGEST_INTERVAL_S)
    return max(interval_s * SHRINKING, SHORTEST_INTERVAL_S)


def finding_of(before: Reason, after: Reason, changed: bool) -> RefreshFinding:
    """changed: whether the content or the rule behind the reason changed."""
    if before in READ and after not in READ:
        return RefreshFinding.GONE
    if after in READ and before not in READ:
        return RefreshFinding.BACK
    return RefreshFinding.CHANGED if changed or before is not after else RefreshFinding.UNCHANGED


# Leases, tasks and their results.


@frozen
class ReadyHost:
    """A host that can be leased, with the properties that a policy uses."""

    host_id: int
    host: HostKey
    site: SiteKey
    pending: int  # queued tasks
    site_fetched: int  # fetched pages of its site
    wait_s: float  # until its next request is allowed


@frozen
class Lease:
    """Exclusive right to request from one host, until it expires. epoch: fencing token against earlier holders."""

    host_id: int
    host: HostKey
    site: SiteKey
    epoch: int
    wait_s: float  # until the next request is allowed
    delay_s: float  # last known delay between request starts
    rate: float
    strikes: int
    answered: bool


@frozen
class Task:
    """One queued request. url_id is 0 for robots.txt and sitemaps, which are not pages."""

    host_id: int
    priority: int  # lowest first: the depth of a page, or one of PRIORITY_*
    seq: int
    url_id: UrlId
    request: Request
    recheck: bool = False  # request of a refresh: the URL keeps its reason until the response
    held: bytes = b""  # digest of the stored body, which need not be parsed again; or empty
    doubt: int = 0  # 1: only pages without content link to the URL, see `schedule.traps`


@frozen
class StoredRobots:
    """Stored robots.txt of an origin. status 0: no response (see cause); body: the text of the rules."""

    origin: Origin
    status: int
    cause: str
    body: bytes
    fetched: float
    expires: float


class Candidate(NamedTuple):
    """A discovered URL. reason: WAITING if it should be fetched, else why not."""

    url: Url
    url_id: UrlId
    host: HostKey
    site: SiteKey
    reason: Reason
    depth: int | None
    rule: str = ""
    hops: int = 0
    in_sitemap: bool = False
    page: UrlId | None = None  # Reason.ALIAS: the page that it is an alias of
    learned: bool = False  # whether the alias was learned and not set by a rule
    vouched: bool = True  # False: judged by this link only, it may belong to an endless series


@frozen
class SideRequest:
    """A request that creates no page: robots.txt, a sitemap, or a link target to check. The host may be leased by
    another worker.
    """

    host: HostKey
    site: SiteKey
    request: Request
    priority: int
    in_s: float = 0.0  # minimum delay from now, in seconds


@frozen
class PatternRecord:
    """Statistics of the pages of one URL pattern of one host.

    Key ROOT: the whole host. See `schedule.traps`.
    """

    key: str
    fresh: int  # pages with new text or images
    useful: int  # pages that link to such pages
    idle: int  # consecutive pages that are neither
    dull: int  # idle pages since the last page with new numbers
    bred: int  # consecutive pages without content that link to more URLs of this pattern
    listed: int  # pages with content that link to more URLs of this pattern
    alike: int  # consecutive pages with the same text
    text: str  # start of the digest of that text
    led_from: str  # pattern of the last page without content that links to this pattern; or empty
    spent: int  # fetched pages of suspected series; only for ROOT


@frozen
class ShownLines:
    """Keys of text lines seen on a host: a part of the sequence, starting at number `first`."""

    first: int = 0
    keys: bytes = b""  # uint32, little-endian
    needed_from: int = 0  # keys with a lower number are no longer needed


@frozen
class TrapMemory:
    """Stored state of the trap detector of one host, or its changes since the last commit."""

    patterns: tuple[PatternRecord, ...] = ()
    lines: ShownLines = ShownLines()
    # (URL, doubt) of URLs that are not listed by a page with content; 0 in changes: the URL is no longer in doubt
    doubts: tuple[tuple[UrlId, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.patterns or self.lines.keys or self.doubts)


class TrapTally(NamedTuple):
    """Number of URLs skipped because their pattern looks like an endless series, or (`sid=*`) because they were fetched
    under another session id.
    """

    pattern: str
    urls: int


@frozen
class Look:
    """Data of a checked link target, whose page is not stored."""

    media_type: str
    title: str
    h1: str
    text: str  # beginning of the text
    fragments: tuple[tuple[str, FragmentVerdict], ...] = ()  # the fragments to check


@frozen
class Completion:
    """Result of one task.

    reason None: to be retried after retry_in_s, with retry_priority if it is set.
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
    side_requests: tuple[SideRequest, ...] = ()  # further requests, to this host or to others
    rendering: Rendering | None = None  # the body is the rendered page; for the original see `Rendering.sent`


class LinkSighting(NamedTuple):
    """A link of a stored page, with the fields that policies use."""

    target: Url
    kind: str
    position: str
    anchor: str
    nofollow: bool


class PageVisit(NamedTuple):
    """One attempt to fetch a page, or a skipped page, with the data that policies learn from."""

    id: int  # ascending
    url_id: UrlId
    url: Url
    depth: int | None
    took_s: float
    asked: bool  # a request was sent
    read: bool  # a page was fetched
    may_pass: bool  # no page was fetched, but a later attempt may succeed
    redirect: Url  # redirect target, or empty
    links: tuple[LinkSighting, ...] = ()  # links of a fetched page, without redirects
    title: str = ""  # this and the following fields only on request
    blocks: Blocks = NO_BLOCKS
    parts: tuple[Part, ...] | None = None


@frozen
class GivenUp:
    """An origin that this run gave up on: its queued URLs are dropped with this reason and rule."""

    origin: Origin
    reason: Reason
    rule: str


@frozen
class HostState:
    """State of a host at a commit. release: ends the lease."""

    lease: Lease
    wait_s: float  # until the next request is allowed
    delay_s: float
    rate: float
    strikes: int  # strikes of its origin with the fewest
    answered: bool  # whether any of its origins ever responded
    waits_for: str
    given_up: tuple[GivenUp, ...] = ()  # since the last commit
    release: bool = False
    traps: TrapMemory = TrapMemory()


@frozen
class Batch:
    """The content of one transaction. Completions and host states of a lost lease are dropped."""

    completions: tuple[Completion, ...] = ()
    hosts: tuple[HostState, ...] = ()
    robots: tuple[StoredRobots, ...] = ()
    side_requests: tuple[SideRequest, ...] = ()
    visits: tuple[Visit, ...] = ()  # robots.txt requests that are not tasks
    in_hand: int = 0  # tasks in progress after this batch
    # learned alias rules that were refuted: URLs skipped because of them are queued again
    refuted: tuple[tuple[SiteKey, str], ...] = ()
    # pages chosen in advance by a policy and not completed yet, in order; None: the policy does not choose in advance
    chosen: tuple[Url, ...] | None = None
    # of the worker's previous commit, for the metrics: pages stored, and its duration; 0: there was none
    pages: int = 0
    commit_s: float = 0.0


@frozen
class RunCounts:
    """Counts of a run so far."""

    known: int = 0
    waiting: int = 0
    fetched: int = 0  # requested pages
    wire_bytes: int = 0
    by_reason: dict[str, int] = field(default_factory=dict)


class HandedBatch(NamedTuple):
    """Messages sent from one part of a split crawl to another. number: from 1, for each pair of parts."""

    part: int  # the receiving part
    number: int
    messages: tuple[str, ...]  # in the format of the stores


class PartState(NamedTuple):
    """State of one part of a split crawl. sent, taken: number of the last batch, by part."""

    identity: str  # changes if the part is created again
    is_idle: bool  # nothing is queued, and all URLs of other parts' hosts are sent
    sent: Mapping[int, int]
    taken: Mapping[int, int]


class WorkerRow(NamedTuple):
    """A registered worker, in the order of the columns of `crawl_reads.workers`."""

    machine: str  # host name of its machine
    pid: int
    lease_s: float  # until its lease expires; negative: it has expired
    leased_hosts: int
    commits: int  # since it joined, as below
    pages: int  # stored
    commit_s: float  # duration of its commits, with retries


@frozen
class HostRow:
    """One host in the progress display."""

    host: HostKey
    pending: int
    fetched: int
    wait_s: float
    waits_for: str
    leased: bool
