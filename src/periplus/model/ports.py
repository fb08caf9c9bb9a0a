"""What the core needs from outside, as protocols: time, the wire, the place of a collection, and its store."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

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
    TrapChanges,
    TrapMemory,
    TrapTally,
)
from periplus.model.page import Document
from periplus.model.visit import Cause, Cut, Headers, Reason, Request
from periplus.model.web import HostKey, Origin, SiteKey, Url, UrlId
from periplus.settings import Settings
from periplus.values import frozen


class Clock(Protocol):
    """Time as an argument."""

    def now(self) -> float:
        """Seconds since the epoch, UTC: for records and for what outlives a process."""

    def monotonic(self) -> float:
        """Seconds from an unknown start, never going back: for intervals."""


class Policy(Protocol):
    """Which hosts are worth the next requests, and which page of a host is next.

    Every crawl is the same engine under another policy. What a policy knows follows from what it was made with and from
    the stored visits in their order, whoever stored them: so an interrupted crawl is the same crawl, and all workers
    learn alike.
    """

    @property
    def window(self) -> int | None:
        """None: it is asked which hosts to lease; those take turns as they are due, their pages come by priority, and
        it learns nothing.

        0: it chooses the host of each single request among those that may be asked at that moment.

        Else it chooses pages one after another among all hosts with work, each of them on what all pages brought but
        the last `window` - 1 that were chosen; one page of a host at a time. The worker waits for their hosts and
        stores what became of them in the order of choice, so neither the clock nor a kill changes a choice. There is
        one worker.
        """

    @property
    def most_held(self) -> int:
        """Hosts that a worker leases at a time, where the policy chooses page by page."""

    @property
    def reads_text(self) -> bool:
        """Whether it learns from the texts of pages."""

    @property
    def mark(self) -> int:
        """The id of the last visit that it has learned from; 0: none."""

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        """The ids of at most `most` of the ready hosts, best first."""

    def next(self, host: HostKey) -> Iterator[Url]:
        """The pages of a host that are next, the best first; after them, and with none, pages come by priority.

        Whoever asks for another says that the one before does not wait. The one that was taken stays the first until
        its visit was learned: it may have been put back.
        """

    def learn(self, visits: Iterable[PageVisit]) -> None:
        """What became of pages, in the order in which that was stored."""


class CrawlScope(Protocol):
    """What belongs to a crawl, and which site each URL is of. See `urls.scope`."""

    @property
    def sites(self) -> frozenset[SiteKey]:
        """Those that are crawled."""

    def decide(self, url: Url) -> Reason | None:
        """None: in scope."""

    def rule_for(self, url: Url) -> str:
        """The rule that decided, in words for users."""

    def refused(self, url: Url) -> str:
        """What the user's own limits say against a URL, wherever it lies, in words; empty: nothing."""

    def site_of(self, url: Url) -> SiteKey: ...


class HostPast(Protocol):
    """What the store can be asked about one host."""

    def texts(self) -> Iterable[tuple[Url, bytes]]:
        """(URL, digest of its text) of the pages that were read, oldest first."""

    def seen(self, urls: Sequence[UrlId]) -> frozenset[UrlId]:
        """Those of the URLs that are stored."""


class TrapLesson(Protocol):
    """What one page taught the detector of endless series."""

    @property
    def fresh(self) -> bool:
        """Whether it brought something new."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The page's own, each with whether the page lists it."""

    @property
    def vouched_for(self) -> tuple[Url, ...]:
        """URLs known before, as doubtful, that are listed now."""


class TrapDetection(Protocol):
    """Knows which URLs of one host belong to endless series. See `schedule.traps`."""

    def admit(self, url: Url, doubt: int, *, last: bool = False) -> str | None:
        """None: may be fetched. Else what is shown to the user: the URL pattern, and why it is refused."""

    def learn(self, url: Url, doubt: int, document: Document, candidates: tuple[Candidate, ...]) -> TrapLesson:
        """Books a page that was read."""

    def redirected(self, url: Url, doubt: int, candidates: tuple[Candidate, ...]) -> TrapLesson:
        """Books a redirect."""

    def changes(self) -> TrapChanges:
        """What changed since last asked, for the store."""


@frozen
class Response:
    """One exchange on the wire, before anything is made of it. status 0: no header arrived."""

    request: Request
    started: float
    took_s: float
    status: int
    headers: Headers
    body: bytes  # as it travelled: content encoding not removed
    cut: Cut
    cause: Cause | None  # None: an answer arrived, whole or cut
    detail: str
    address: str
    first_byte_s: float = 0.0  # from the request's first byte sent to the first byte read; 0.0: none came
    # what a server had sent, where an archive holds the body inflated and has written the header anew; None: `headers`
    sent: Headers | None = None


class Transport(Protocol):
    """Carries requests out. One hop each: redirects are answers. Raises nothing for what a server or network does."""

    def start(self, request: Request, before: float = math.inf) -> None:
        """before: monotonic time after which it is not sent at all, however far it has come:
        its host may be another worker's.
        """

    def withdraw(self, requests: Collection[Request]) -> None:
        """What of these is not sent yet is not sent: its answer is CANCELLED. Their hosts are not ours any more."""

    def wait(self, timeout_s: float) -> Sequence[Response]:
        """Finished exchanges; waits up to timeout_s seconds for the first. With none under way it just waits."""

    def attend(self, fds: Sequence[int]) -> None:
        """From now on `wait` returns, with nothing, as soon as one of these descriptors is readable."""

    @property
    def in_flight(self) -> int: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class AddressPlace:
    """An address at which names take turns. Times on the machine's monotonic clock, in seconds."""

    asked: str = ""  # the host that is asked there; empty: none
    free_at: float = 0.0  # the delay after the latest start
    next_slot: float = 0.0


class AddressTable(Protocol):
    """Which names lead to which address, and whose turn it is there. What a process entered goes with it."""

    def enter(self, address: str, name: str) -> None: ...

    def leave(self, address: str, name: str) -> None:
        """The name leads elsewhere, or is forgotten."""

    def names(self, address: str) -> int:
        """How many different names lead there, of all who share the table."""

    def place(self, address: str) -> AbstractContextManager[AddressPlace]:
        """What becomes of the place within becomes of it for all; nobody else sees or changes it meanwhile."""

    def close(self) -> None: ...


# One protocol; one contract suite runs over every implementation.


class CrawlStore(Protocol):
    """What may be fetched next, and what was.

    States of a URL:  waiting -> done(reason) | dropped(reason); a URL in hand is still waiting in the
                      store. No other move, except
    that a new run may set dropped URLs waiting again (`offer`).
    Always:  (1) a URL is offered any number of times and enters once;  (2) a host has at most one lease at a time;
    (3) two leases of a host start at least its delay apart;  (4) every lease ends, by release, expiry or the death of
    its holder;  (5) a batch is stored whole or not at all, and only as far as its leases' epochs still hold;
    (6) a page of depth i + 1 of a site is not given out while one of depth i of that site is waiting.
    While the crawl is paused no host is ready and none is leased; what is held stays held, and may be stored.
    Not its business: fetching, parsing, choosing rules, sleeping.
    Times: `now` is seconds since the epoch, UTC.
    """

    budget_spent: bool  # max_pages are fetched: nothing more will be given out
    # how often another server took the database's place; it may lack what was stored last, leases among it
    successions: int

    def join(self, pid: int, now: float) -> str:
        """Registers a worker; returns its name."""

    def leave(self, worker: str, now: float) -> None:
        """Ends a worker; its leases end too."""

    def offer(
        self, candidates: Iterable[Candidate], side_requests: Iterable[SideRequest], now: float, *, reopen: bool = False
    ) -> int:
        """URLs from outside a crawl (starts, lists). Returns how many are newly waiting.

        reopen: what an earlier run dropped without asking for it (scope, depth, robots, a host that
        was down) may wait again.
        """

    def ready(self, most: int, horizon_s: float, now: float) -> Sequence[ReadyHost]:
        """Up to `most` hosts that nobody holds, that have work, and that may be asked within horizon_s;
        longest due first.
        """

    def lease(self, worker: str, host_ids: Sequence[int], now: float) -> Sequence[Lease]:
        """Leases those of the hosts that are still free."""

    def take(
        self,
        lease: Lease,
        most: int,
        in_hand: frozenset[tuple[int, int]],
        now: float,
        pages: Iterable[Url] = (),
    ) -> tuple[Sequence[Task], float | None]:
        """Up to `most` tasks of a leased host in order, without those in_hand ((priority, seq)).

        With none, the seconds until there may be one (None: not before other tasks of the host end).
        pages: what a policy would have next, see `Policy.next`; the first that waits is the one task, unless the host
        has to be asked for what others wait for (PRIORITY_FIRST).
        """

    def shown(self, lease: Lease, url_id: UrlId) -> Sequence[str]:
        """What is stored of a page of the leased host: fields, text, and the targets of its links, sorted."""

    def urgent(self, host_ids: Sequence[int]) -> frozenset[int]:
        """Those of the hosts that have to be asked for something that another host's robots.txt depends on."""

    def visits(self, after: int, *, texts: bool = False) -> Iterator[PageVisit]:
        """What became of pages, in the order in which that was stored; after: the id of the last that is known.

        texts: with title and blocks of what was read.
        """

    def note(self, name: str) -> str:
        """See `CrawlHome.note`."""

    def robots(self, origin: Origin) -> StoredRobots | None: ...

    def trap_memory(self, lease: Lease) -> TrapMemory: ...

    def seen(self, lease: Lease, urls: Sequence[UrlId]) -> frozenset[UrlId]:
        """Those of these URLs of the leased host that are stored."""

    def texts(self, site: SiteKey, most: int) -> Iterable[tuple[Url, bytes]]:
        """(URL, digest of its text) of the site's pages that were read, the latest `most`, oldest first."""

    def commit(self, worker: str, batch: Batch, now: float) -> frozenset[Lease]:
        """Stores a batch in one transaction and renews the worker's leases.

        Returns the leases that were lost meanwhile.
        """

    def fair_share(self, now: float) -> int:
        """How many hosts one worker should hold: hosts with work over workers alive, at least 1;
        none while the crawl is paused.
        """

    def idle(self, now: float) -> bool:
        """Whether nothing waits and nobody has anything in hand: the crawl is at its end."""

    def counts(self) -> RunCounts: ...


# One protocol; a folder and a database each have their own.


@frozen
class RunRecord:
    """One run as stored. state: running, done, stopped, suspicious or failed; note says why."""

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


class VisitReader(Protocol):
    """How a run stands, for whoever shows it."""

    def note(self, name: str) -> str:
        """See `CrawlHome.note`."""

    def visits(self, after: int, *, texts: bool = False) -> Iterator[PageVisit]:
        """See `CrawlStore.visits`."""

    def waiting_by_host(self) -> dict[HostKey, int]:
        """Entries of the to-do lists of each host that has any."""

    def states(self, urls: Sequence[Url]) -> dict[Url, tuple[str, str]]:
        """(reason, rule) of those of the URLs that are stored."""


class RunStore(CrawlStore, VisitReader, Protocol):
    """A crawl store with what its boss asks beside: what to begin with, how it goes, how it ended."""

    def texts(self, site: SiteKey, most: int) -> Iterator[tuple[Url, bytes]]:
        """(url, digest of its text) of the site's pages that were fetched, the latest `most`, oldest first."""

    def never_asked(self, reasons: Sequence[Reason]) -> Iterator[tuple[Url, int | None, bool]]:
        """(url, depth, in sitemap) of the URLs that stand at one of these reasons,
        none of which means that they were fetched.
        """

    def traps(self) -> Sequence[TrapTally]:
        """The URL patterns that were left out as endless series, the largest first."""

    def merge_aliases(self) -> int:
        """Pages that are the same (see `urls.aliases.merged`) become one page with several addresses.

        Returns how many are aliases by it.
        """

    def bring_in_line(self, scope: CrawlScope) -> None:
        """Hosts belong to the sites that the scope says; what waits outside it waits no longer; what was left out and
        lies within is stored, at a depth that links will tell, or at its old one where its site comes back.

        What was fetched stays. Nobody may be at work.
        """

    def receivers(self, least: int) -> Sequence[int]:
        """Of a part of a web: the parts for which so many messages wait, or a batch that was begun."""

    def next_batch(self, receiver: int) -> HandedBatch | None:
        """The next batch for a part, the same one until `batch_written`; None: nothing waits for it."""

    def batch_written(self, batch: HandedBatch) -> None:
        """The batch lies where its reader finds it: it is forgotten here."""

    def take_in(self, sender: int, number: int, messages: Sequence[str], now: float) -> bool:
        """Enters a part's batch if it is the next of that part; all of it, and its number, or nothing."""

    def part_state(self, now: float) -> PartState: ...

    def peer(self, part: int, identity: str) -> str:
        """The identity by which another part was met first: this one, if it never was."""

    def is_paused(self) -> bool: ...

    def busiest(self, most: int, now: float) -> Sequence[HostRow]:
        """Hosts with work, those with most waiting first."""

    def close(self) -> None: ...


class CrawlHome(Protocol):
    """Where one collection is kept: what happens there before, after and around a run.

    Each call is a transaction of its own.

    Its text in an error or a summary is what a user calls it. Times: `now` is seconds since the epoch, UTC; a
    database has its own clock.
    """

    def only_crawl(self) -> AbstractContextManager[None]:
        """Holds the collection for one crawl, until its holder dies. Raises StoreError when another one holds it."""

    def prepare(self, rules: str, now: float) -> bool:
        """Makes the collection if there is none; else brings it into accord with its rules for URLs (TOML).

        True: a crawl goes on with it.

        Raises StoreError, and UsageError where rules cannot be changed.
        """

    def rules_text(self) -> str:
        """The rules for URLs that were stored with it, in TOML; empty where none were:
        a folder has them in its periplus.toml.
        """

    def begin_run(
        self,
        kind: str,
        starts: Sequence[Url],
        settings: Settings,
        now: float,
        further: Mapping[str, object] | None = None,
    ) -> int:
        """A new run; returns its id. What earlier runs knew of hosts' failures is forgotten: they are asked anew.

        further: what else decides how it goes, kept among its settings; `seed` stands in a column of its own.
        """

    def note(self, name: str) -> str:
        """What was noted in the collection under a name; empty: nothing. Raises NoCollection."""

    def change_note(self, name: str, changed: Callable[[str], str]) -> str:
        """The note as `changed` makes it, in one transaction, so that two who change it do not undo one another's;
        an empty one goes.
        """

    def reader(self) -> AbstractContextManager[VisitReader]:
        """Reads the collection at one moment. Raises NoCollection."""

    def store(self, run_id: int, settings: Settings) -> RunStore:
        """The crawl store of a run, for one process."""

    def ask_again(self, now: float, *, due_only: bool) -> int:
        """Enters what a refresh asks for again into the to-do lists; returns how many."""

    def add_starts(self, starts: Sequence[UrlId], sites: Sequence[SiteKey], now: float) -> None:
        """Notes which URLs are starts. sites: of each."""

    def end_run(self, run_id: int, state: str, note: str, now: float) -> None: ...

    def discard(self) -> bool:
        """Deletes the collection if `prepare` of this object made it and no page was stored since.

        False: it stays. The caller holds `only_crawl` of this object.
        """

    def pause(self, now: float) -> bool:
        """Has the crawl that goes on ask for nothing more until `resume`, its end, or the beginning of another.

        False: none goes on. Raises NoCollection.
        """

    def resume(self, now: float) -> bool:
        """False: no crawl goes on that was paused. Raises NoCollection."""

    def note_fault(self, note: FaultNote) -> None:
        """In place of what was noted on its cause before; an empty note takes that away. Raises NoCollection."""

    def fault_notes(self) -> tuple[FaultNote, ...]:
        """What persons noted on causes of faults, by code and cause. Raises NoCollection."""

    def runs(self) -> Sequence[RunRecord]:
        """All runs, oldest first. Raises NoCollection."""

    def findings(self, run_id: int) -> Mapping[RefreshFinding, int]:
        """What a run found, by kind; every kind is named."""
