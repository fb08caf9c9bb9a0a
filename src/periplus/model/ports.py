"""Protocols for what the core needs from outside: clock, network, and the store of a collection."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from periplus.model.audit import FaultNote
from periplus.model.frontier import (
    Batch,
    Candidate,
    HandedBatch,
    HostRow,
    Lease,
    PageVisit,
    PartState,
    ReadyHost,
    RefreshFinding,
    RunCounts,
    SideRequest,
    StoredRobots,
    Task,
    TrapMemory,
    TrapTally,
)
from periplus.model.page import Document
from periplus.model.visit import Cause, Cut, Headers, Reason, Request
from periplus.model.web import HostKey, Origin, SiteKey, Url, UrlId
from periplus.settings import Settings
from periplus.values import frozen

T = TypeVar("T")


class Clock(Protocol):
    """A source of time."""

    def now(self) -> float:
        """Seconds since the epoch, UTC, for stored times."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back, for intervals."""


class Policy(Protocol):
    """Decides which hosts to request from next, and which page of a host comes next.

    All kinds of crawls use the same engine with different policies. The state of a policy depends only on its
    parameters and on the stored visits in their order, by whichever worker. So a resumed crawl continues identically,
    and all workers have the same state.
    """

    @property
    def window(self) -> int | None:
        """How the policy chooses.

        None: the policy only chooses the hosts to lease. These are served as they become due, pages are ordered by
        priority, and the policy learns nothing.

        0: the policy chooses the host of each request among those that can be requested at that moment.

        n > 0: the policy chooses single pages in sequence among all hosts with queued pages. Each choice uses the
        results of all pages except the last n - 1 that were chosen; at most one page per host is in progress. The
        worker waits for the hosts and stores results in the order of choice, so that choices depend neither on the
        clock nor on crashes. There is only one worker.
        """

    @property
    def most_hosts(self) -> int:
        """Hosts that a worker leases at a time, if the policy chooses single pages."""

    @property
    def reads_text(self) -> bool:
        """Whether the policy learns from texts of pages."""

    @property
    def mark(self) -> int:
        """Id of the last visit that it has learned from; 0 if none."""

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        """Returns the ids of up to `most` of the ready hosts, best first."""

    def next(self, host: HostKey) -> Iterator[Url]:
        """Yields the next pages of a host, best first. After them pages are ordered by priority.

        A consumer takes the next item only if the previous page is not waiting. A page that was taken stays first
        until its visit is learned, since it may be put back into the queue.
        """

    def learn(self, visits: Iterable[PageVisit]) -> None:
        """Updates the policy with visits, in the order of storage."""


class CrawlScope(Protocol):
    """Decides which URLs belong to a crawl, and to which site. See `urls.scope`."""

    @property
    def sites(self) -> frozenset[SiteKey]:
        """The crawled sites."""

    def decide(self, url: Url) -> Reason | None:
        """Reason why the URL is out of scope, or None."""

    def ruling(self, url: Url) -> tuple[bool, str]:
        """(whether the URL is in scope, the rule that decided as text for users)."""

    def exclusion_reason(self, url: Url) -> str:
        """Text of the user's limit that excludes the URL, in whichever site; or empty."""

    def site_of(self, url: Url) -> SiteKey: ...


class HostPast(NamedTuple):
    """Stored pages of one host."""

    texts: Callable[[], Iterable[tuple[Url, bytes]]]  # (URL, digest of its text) of fetched pages, oldest first
    stored_urls: Callable[[Sequence[UrlId]], frozenset[UrlId]]  # those of the URLs that are stored


class TrapLesson(Protocol):
    """Result of updating the detector of endless series with one page."""

    @property
    def fresh(self) -> bool:
        """Whether the page has new content."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The page's candidates, with `vouched` set."""

    @property
    def confirmed_urls(self) -> tuple[Url, ...]:
        """Doubtful URLs that this page takes out of doubt."""


class TrapDetection(Protocol):
    """Detects endless series of URLs on one host. See `schedule.traps`."""

    def admit(self, url: Url, doubt: int, *, last: bool = False) -> str | None:
        """Returns None if the URL may be fetched, else a text for users: the URL pattern and the reason."""

    def learn(self, url: Url, doubt: int, document: Document, candidates: tuple[Candidate, ...]) -> TrapLesson:
        """Updates the state with a fetched page."""

    def record_redirect(self, url: Url, doubt: int, candidates: tuple[Candidate, ...]) -> TrapLesson:
        """Updates the state with a redirect."""

    def changes(self) -> TrapMemory:
        """Changes since the last call, for the store."""


@frozen
class Response:
    """A raw response. status 0: no header arrived."""

    request: Request
    started: float
    took_s: float
    status: int
    headers: Headers
    body: bytes  # as transferred, with content encoding
    cut: Cut
    cause: Cause | None  # None: a response arrived, complete or truncated
    detail: str
    address: str
    first_byte_s: float = 0.0  # time to the first byte; 0.0 if none arrived
    # original header, if an archive stores the body decompressed with a rewritten header; None: same as `headers`
    sent: Headers | None = None


class Transport(Protocol):
    """Sends requests. Does not follow redirects. Never raises for errors of a server or network."""

    def start(self, request: Request, before: float = math.inf) -> None:
        """Starts a request. before: monotonic time after which it is no longer sent, since another worker may then
        hold the lease of the host.
        """

    def withdraw(self, requests: Collection[Request]) -> None:
        """Cancels those requests that are not sent yet, because their hosts' leases are lost."""

    def wait(self, timeout_s: float) -> Sequence[Response]:
        """Returns finished responses; waits up to timeout_s seconds for the first, even with none in flight."""

    def attend(self, fds: Sequence[int]) -> None:
        """Makes `wait` also return, with no responses, when one of these file descriptors is readable."""

    @property
    def in_flight(self) -> int: ...

    def close(self) -> None: ...


class RunPolicy(Policy, Protocol):
    """A scheduling policy with its scope, for runs that do not simply rotate over hosts."""

    @property
    def scope(self) -> CrawlScope: ...


class PastTransport(Transport, Protocol):
    """A transport that reads from an archive: the service `archive` of a feature."""

    @property
    def failure(self) -> str:
        """Why the archive cannot be used any more, or an empty string."""


@dataclass(slots=True)
class AddressPlace:
    """An IP address shared by host names. Times in seconds of the monotonic clock."""

    asked: str = ""  # the host with a request in progress, or empty
    free_at: float = 0.0  # latest start plus its delay
    next_slot: float = 0.0


class AddressTable(Protocol):
    """Maps addresses to host names and their schedule. Entries of a process end with the process."""

    def enter(self, address: str, name: str) -> None: ...

    def leave(self, address: str, name: str) -> None:
        """Removes a name from an address."""

    def names(self, address: str) -> int:
        """Number of distinct names at the address, over all processes that share the table."""

    def place(self, address: str) -> AbstractContextManager[AddressPlace]:
        """Locks the entry of an address; changes made within the context are stored for all processes."""

    def close(self) -> None: ...


# One contract test suite runs over all implementations.


class CrawlStore(Protocol):
    """The queue and the results of a crawl.

    States of a URL: waiting -> done(reason) | dropped(reason). A URL whose request is in progress is still waiting in
    the store. There is no other transition, except that a new run may queue dropped URLs again (`offer`).

    Invariants: (1) a URL may be offered many times and is stored once; (2) a host has at most one lease at a time;
    (3) two leases of a host start at least its delay apart; (4) every lease ends, by release, expiry or the death of
    its holder; (5) a batch is stored completely or not at all, and only for leases whose epochs are still valid;
    (6) a page of depth i + 1 of a site is not handed out while one of depth i of that site is waiting.

    While the crawl is paused, no host is ready and none is leased; existing leases stay valid, and their results can
    be stored. The store does not fetch, parse, choose rules or sleep. `now` is in seconds since the epoch, UTC.
    """

    budget_spent: bool  # max_pages are fetched: no more tasks are handed out
    # number of database failovers; after one, the last commits may be lost, including leases
    failovers: int

    def join(self, pid: int, now: float) -> str:
        """Registers a worker and returns its name."""

    def leave(self, worker: str, now: float) -> None:
        """Removes a worker and its leases."""

    def offer(
        self, candidates: Iterable[Candidate], side_requests: Iterable[SideRequest], now: float, *, reopen: bool = False
    ) -> int:
        """Stores URLs from outside the crawl (starts, lists). Returns how many are newly waiting.

        reopen: queue again what an earlier run dropped without a request (scope, depth, robots, host down).
        """

    def ready(self, most: int, horizon_s: float, now: float) -> Sequence[ReadyHost]:
        """Up to `most` hosts without a lease, with queued tasks, and whose next request is allowed within horizon_s;
        longest due first.
        """

    def lease(self, worker: str, host_ids: Sequence[int], now: float) -> Sequence[Lease]:
        """Leases the hosts that are still free."""

    def take(
        self,
        lease: Lease,
        most: int,
        in_hand: frozenset[tuple[int, int]],
        now: float,
        pages: Iterable[Url] = (),
    ) -> tuple[Sequence[Task], float | None]:
        """Returns up to `most` tasks of a leased host in order, except those in_hand ((priority, seq)).

        If there are none, also returns the seconds until there may be one (None: not before other tasks of the host
        end). pages: preferred pages, see `Policy.next`; the first one that is waiting is the only task returned,
        unless the host has a task of PRIORITY_FIRST, which other hosts wait for.
        """

    def stored_content(self, lease: Lease, url_id: UrlId) -> Sequence[str]:
        """Stored content of a page of the leased host: fields, text, and link targets, sorted."""

    def urgent(self, host_ids: Sequence[int]) -> frozenset[int]:
        """Returns the hosts with a queued request that another host's robots.txt depends on."""

    def visits(self, after: int, *, texts: bool = False) -> Iterator[PageVisit]:
        """Visits in the order of storage, with ids greater than `after`.

        texts: with title and blocks of fetched pages.
        """

    def note(self, name: str) -> str:
        """See `CrawlHome.note`."""

    def robots(self, origin: Origin) -> StoredRobots | None: ...

    def trap_memory(self, lease: Lease) -> TrapMemory: ...

    def stored_urls(self, lease: Lease, urls: Sequence[UrlId]) -> frozenset[UrlId]:
        """Returns those of the leased host's URLs that are stored."""

    def texts(self, site: SiteKey, most: int) -> Iterable[tuple[Url, bytes]]:
        """(URL, digest of its text) of the last `most` fetched pages of the site, oldest first."""

    def commit(self, worker: str, batch: Batch, now: float) -> frozenset[Lease]:
        """Stores a batch in one transaction and renews the worker's leases.

        Returns the leases that are lost.
        """

    def fair_share(self, now: float) -> int:
        """Number of hosts that each worker should lease: hosts with tasks divided by live workers, at least 1; 0 while
        the crawl is paused.
        """

    def idle(self, now: float) -> bool:
        """Whether the crawl is finished: no URL is waiting, and no worker has a task."""

    def counts(self) -> RunCounts: ...


# Implemented for SQLite folders and for PostgreSQL.


CHECK = "check"  # the kind of run that checks links


@frozen
class RunRecord:
    """A stored run. state: running, done, stopped, suspicious or failed; note: the reason."""

    id: int
    kind: str
    starts: tuple[str, ...]
    settings: dict[str, object]
    seed: int
    started: float  # seconds since the epoch, UTC
    ended: float | None
    state: str
    note: str
    fetched: int
    wire_bytes: int
    http2: int = 0  # of the fetched: over HTTP/2


class VisitReader(Protocol):
    """Reads the progress of a run."""

    def note(self, name: str) -> str:
        """See `CrawlHome.note`."""

    def visits(self, after: int, *, texts: bool = False) -> Iterator[PageVisit]:
        """See `CrawlStore.visits`."""

    def waiting_by_host(self) -> dict[HostKey, int]:
        """Number of queued tasks of each host with any."""

    def states(self, urls: Sequence[Url]) -> dict[Url, tuple[str, str]]:
        """(reason, rule) of each of the URLs that is stored."""


class RunStore(CrawlStore, VisitReader, Protocol):
    """A crawl store with the operations of the coordinating process."""

    def texts(self, site: SiteKey, most: int) -> Iterator[tuple[Url, bytes]]:
        """(URL, digest of its text) of the last `most` fetched pages of the site, oldest first."""

    def unrequested_urls(self, reasons: Sequence[Reason]) -> Iterator[tuple[Url, int | None, bool]]:
        """(URL, depth, in sitemap) of the URLs with one of these reasons. The reasons must not be those of fetched
        URLs.
        """

    def traps(self) -> Sequence[TrapTally]:
        """URL patterns that were skipped as endless series, largest first."""

    def merge_aliases(self) -> int:
        """Merges pages that are the same (see `urls.aliases.find_aliases`) into one page with aliases.

        Returns the number of new aliases.
        """

    def apply_scope(self, scope: CrawlScope) -> None:
        """Applies a changed scope: assigns hosts to their sites, removes URLs out of scope from the queue, and stores
        skipped URLs that are now in scope. Their depth is computed from links; a site that returns keeps its depths.

        Fetched pages stay. No worker may be running.
        """

    def receivers(self, least: int) -> Sequence[int]:
        """Parts of a split crawl with at least `least` unsent messages or an unfinished batch."""

    def next_batch(self, receiver: int) -> HandedBatch | None:
        """Next unsent batch for a part, the same until `delete_batch` is called; None if there is none."""

    def delete_batch(self, batch: HandedBatch) -> None:
        """Marks a batch as delivered and deletes its messages."""

    def apply_batch(self, sender: int, number: int, messages: Sequence[str], now: float) -> bool:
        """Applies a batch of another part, with its number, if it is the next one. Returns whether it was applied."""

    def part_state(self, now: float) -> PartState: ...

    def peer(self, part: int, identity: str) -> str:
        """The first identity seen of another part; stores the given one if there is none."""

    def is_paused(self) -> bool: ...

    def busiest(self, most: int, now: float) -> Sequence[HostRow]:
        """Hosts with queued tasks, most tasks first."""

    def close(self) -> None: ...


class CrawlHome(Protocol):
    """The place of one collection: operations before, after and around a run.

    Each call is a transaction of its own. str() is the name that users know it by. `now` is in seconds since the
    epoch, UTC; a database uses its own clock.
    """

    def only_crawl(self) -> AbstractContextManager[None]:
        """Locks the collection for one crawl. Raises StoreError if another crawl holds the lock."""

    def prepare(self, rules: str, now: float) -> bool:
        """Creates the collection, or applies changed URL rules (TOML) to an existing one.

        Returns whether a crawl goes on with it. Raises StoreError, and UsageError if the rules cannot be changed.
        """

    def rules_text(self) -> str:
        """The stored URL rules in TOML; empty if none are stored. A folder keeps them in its periplus.toml."""

    def begin_run(
        self,
        kind: str,
        starts: Sequence[Url],
        settings: Settings,
        now: float,
        further: Mapping[str, object] | None = None,
    ) -> int:
        """Creates a run and returns its id. Failures of hosts in earlier runs are reset.

        further: more values stored with the settings; `seed` has its own column.
        """

    def note(self, name: str) -> str:
        """Value of a named note of the collection, or empty. Raises NoCollection."""

    def change_note(self, name: str, changed: Callable[[str], str]) -> str:
        """Replaces a note by `changed(note)` in one transaction, so that concurrent changes are not lost. Returns the
        new note; an empty one is deleted.
        """

    def alias_ledger(self) -> AbstractContextManager[Any]:
        """A `store.aliases.AliasLedger` within one transaction. The caller holds `only_crawl`. Raises NoCollection, and
        StoreError while workers run.
        """

    def reader(self) -> AbstractContextManager[VisitReader]:
        """Opens a snapshot of the collection. Raises NoCollection."""

    def change(self, action: Callable[[Any], T]) -> T:
        """Runs an action on the database's `store.statements.Statements` in one transaction; returns its result."""

    def store(self, run_id: int, settings: Settings) -> RunStore:
        """Opens the crawl store of a run, for one process."""

    def ask_again(self, now: float, *, due_only: bool) -> int:
        """Queues the URLs of a refresh; returns how many."""

    def add_starts(self, starts: Sequence[UrlId], sites: Sequence[SiteKey], now: float) -> None:
        """Marks URLs as starts. sites: the site of each."""

    def end_run(self, run_id: int, state: str, note: str, now: float) -> None: ...

    def discard(self) -> bool:
        """Deletes the collection if `prepare` of this object created it and no page was stored since.

        Returns whether it was deleted. The caller holds `only_crawl` of this object.
        """

    def pause(self, now: float) -> bool:
        """Pauses the running crawl until `resume`, its end, or the start of another.

        Returns False if no crawl is running. Raises NoCollection.
        """

    def resume(self, now: float) -> bool:
        """Returns False if no paused crawl is running. Raises NoCollection."""

    def note_fault(self, note: FaultNote) -> None:
        """Replaces the note on a cause; an empty note deletes it. Raises NoCollection."""

    def fault_notes(self) -> tuple[FaultNote, ...]:
        """Users' notes on causes of faults, sorted by code and cause. Raises NoCollection."""

    def runs(self) -> Sequence[RunRecord]:
        """All runs, oldest first. Raises NoCollection."""

    def findings(self, run_id: int) -> Mapping[RefreshFinding, int]:
        """Number of each kind of finding of a run, including zeros."""


class TasksOnCluster(Protocol):
    """Tasks that run on a cluster: some running, the rest waiting for a core."""

    @property
    def at_work(self) -> int:
        """Number of running tasks."""

    @property
    def is_over(self) -> bool:
        """Whether all tasks have ended. Raises StoreError if the cluster failed."""

    def wait(self, limit_s: float) -> None:
        """Waits up to limit_s for all tasks to end; then terminates the rest."""
