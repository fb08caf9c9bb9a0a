"""The hosts that a worker has leased: when each is due, which tasks it holds, and its results until they are stored.

Invariants:  (1) results are committed within commit_interval_s, or earlier if a host cannot continue before;  (2) only
a commit extends the leases, since only a commit returns those that were lost;  (3) a killed process loses only the
tasks that it has not committed.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from periplus.acquire.discovery import Aliases, Discovery, HostCallbacks, LoginGate, PageRenderer
from periplus.acquire.politeness import AddressTurns, HeldHost, Pace, delay_for, surplus_hosts, suspend
from periplus.acquire.robots_gate import RobotsGate
from periplus.model.frontier import PRIORITY_FIRST, Batch, Completion, Lease, SideRequest, TrapMemory
from periplus.model.ports import Clock, CrawlScope, CrawlStore, HostPast, Policy, Transport, TrapDetection
from periplus.model.visit import Request, Skipped, Visit
from periplus.model.web import HostKey, Url
from periplus.settings import Settings
from periplus.urls.canonical import canonical
from periplus.urls.folders import is_folder_host
from periplus.urls.hosts import host_key, is_named, origin_of
from periplus.values import frozen

TAKE = 64  # tasks taken from a host at a time; a kill makes all of them be fetched again
HORIZON_S = 2.0  # hosts due within this time are leased; a host that must wait longer is returned
MOST_HOSTS = 512  # hosts in one worker: at 0.5 s between requests more than it can serve
EVERY_HOST = 1_000_000  # a page-level policy compares all ready hosts, not only those that wait longest
TICK_S = 0.25  # how often the loop checks progress, stop requests and new hosts
SHARE_S = 1.0  # how often the worker's fair share of hosts is computed again
# with at most this many hosts it is computed at every tick: counting is cheap then, and a worker that joined or ran out
# of hosts waits 0.3 s for new ones instead of 1.2 s
FEW_HOSTS = 32
# pages of a site whose texts are compared when it gives out session ids: some 200 MB while they are read
TEXTS = 1_000_000


@dataclass(slots=True)
class ChosenPage:
    """A page that a policy chose ahead. is_done: it was answered, or dropped without an answer."""

    page: Url
    entry: tuple[int, int, int] = (0, 0, 0)  # host, priority and seq of its task
    answer: Completion | None = None
    is_done: bool = False


@frozen
class WorkerDeps:
    """The dependencies of a worker."""

    store: CrawlStore
    transport: Transport
    clock: Clock
    policy: Policy
    detector: Callable[[TrapMemory, HostPast], TrapDetection]
    scope: CrawlScope
    mine: frozenset[str]  # hosts declared as the user's own, in the form of `scope.own_hosts`
    aliases: Aliases
    addresses: AddressTurns
    rendering: PageRenderer | None = None  # None: pages are read as sent
    sign_in: Callable[[dict[int, HeldHost], HostCallbacks], LoginGate] | None = None  # None: no logins
    is_past: bool = False  # an archive answers, no request reaches the hosts: no delays, no robots.txt


class HeldHosts:
    """The held hosts by id, a heap of their due times, and the requests in flight with their hosts."""

    def __init__(self) -> None:
        self.by_id: dict[int, HeldHost] = {}
        self.flights: dict[Request, HeldHost] = {}
        # (monotonic time, host id); an entry that differs from its host's due_at is ignored
        self._due: list[tuple[float, int]] = []

    def schedule(self, host: HeldHost) -> None:
        """Adds a heap entry for the host; it replaces earlier ones."""
        host.due_at = host.pace.not_before
        heapq.heappush(self._due, (host.due_at, host.lease.host_id))

    @property
    def next_due_at(self) -> float:
        """Time of the first heap entry, infinity if there is none."""
        return self._due[0][0] if self._due else math.inf

    def pop_due(self, now: float) -> Iterator[HeldHost]:
        """Hosts whose request may start now, those that have been due longest first."""
        while self._due and self._due[0][0] <= now:
            due_at, host_id = heapq.heappop(self._due)
            host = self.by_id.get(host_id)
            if host is None or host.due_at != due_at:
                continue
            host.due_at = None
            if host.pace.not_before > now:
                self.schedule(host)
            else:
                yield host

    def by_key(self, key: HostKey) -> HeldHost | None:
        return next((host for host in self.by_id.values() if host.lease.host == key), None)

    def idle(self) -> list[HeldHost]:
        return [host for host in self.by_id.values() if host.is_quiet and not host.in_hand]

    def holds(self, host: HeldHost) -> bool:
        """False: its lease was lost or released."""
        return self.by_id.get(host.lease.host_id) is host


class Commits:
    """What a worker has to store. A commit is one transaction; then the hosts that waited for it continue."""

    def __init__(self, deps: WorkerDeps, settings: Settings) -> None:
        self._deps, self._store, self._clock, self._storage = deps, deps.store, deps.clock, settings.storage
        self.discovery = Discovery(deps.scope, settings, deps.aliases)
        self.gate = RobotsGate(
            deps.store, settings.politeness, deps.scope, deps.clock, sitemaps=settings.scope.sitemaps
        )
        self.hosts = HeldHosts()
        self.worker = ""  # its name in the store
        self.done: list[Completion] = []
        self.visits: list[Visit] = []
        self.choices: deque[ChosenPage] = deque()  # in order of choice
        self.is_urgent = False  # a host cannot continue before the next commit
        self.has_errands = True  # some hosts may have requests that other hosts wait for
        self.lease_end = self._committed_at = 0.0
        self._lease_requests: list[SideRequest] = []  # placeholder tasks of hosts that are not held
        self._last = 0, 0.0  # pages stored by the last commit, its duration
        self._failovers = 0  # `store.failovers` at the last commit

    @property
    def may_have_lost(self) -> bool:
        """Whether the database failed over after the last commit, so that leases may be lost."""
        return self._store.failovers > self._failovers

    def finish(self, host: HeldHost, completion: Completion) -> None:
        """Adds a result to the next commit, or to the chosen page that it answers."""
        host.uncommitted += 1
        entry = (completion.task.host_id, completion.task.priority, completion.task.seq)
        for choice in self.choices:
            if choice.entry == entry:
                if completion.retry_in_s:  # the host waits, not the task, which may be chosen at any time
                    now = self._clock.monotonic()
                    host.pace = suspend(host.pace, now + completion.retry_in_s, "further attempt")
                choice.answer, choice.is_done = replace(completion, retry_in_s=0.0), True
                return
        self.done.append(completion)

    def drop_choices(self, host: HeldHost) -> None:
        """Ends the chosen pages of a host without an answer."""
        for choice in self.choices:
            choice.is_done |= choice.entry[0] == host.lease.host_id

    def request_lease(self, request: Request) -> None:
        """Makes a worker lease the host of a renderer's or session's request, by a placeholder task of top priority.

        The to-do list stores no header fields and no secrets, so it cannot hold the request itself.
        """
        root = canonical(origin_of(request.url) + "/")
        site = self._deps.scope.site_of(request.url)
        self._lease_requests.append(SideRequest(host_key(root), site, Request(root, request.purpose), PRIORITY_FIRST))
        self.is_urgent = True

    def learn(self) -> None:
        """Feeds all visits committed since the last call (by any worker) to a page-level policy."""
        policy = self._deps.policy
        if policy.window is not None:
            policy.learn(self._store.visits(policy.mark, texts=policy.reads_text))

    def commit_if_due(self) -> bool:
        waited = self._clock.monotonic() - self._committed_at
        has_news = bool(self.done or self.hosts.by_id)  # leases must be renewed too
        due = (
            self.is_urgent
            or self.may_have_lost
            or len(self.done) >= self._storage.commit_pages
            or (waited >= self._storage.commit_interval_s and has_news)
        )
        if due:
            self.commit()
        return due

    def wait_s(self) -> float:
        """Seconds that the loop may sleep before the next commit; hosts may wait for it."""
        left = self._committed_at + self._storage.commit_interval_s - self._clock.monotonic()
        return min(TICK_S, max(0.0, left)) if self.done else TICK_S

    def commit(self, *, release: bool = False) -> None:
        """release: ends all leases."""
        now = self._clock.monotonic()
        robots, side_requests = self.gate.collect()
        done, visits, self.done, self.visits = self.done, self.visits, [], []
        side_requests += tuple(self._lease_requests)
        self._lease_requests.clear()
        side_requests += tuple(chain.from_iterable(completion.side_requests for completion in done))
        for completion in done:
            held = self.hosts.by_id.get(completion.lease.host_id)
            if held is not None and held.lease.epoch == completion.lease.epoch:
                held.in_hand.discard((completion.task.priority, completion.task.seq))
                held.uncommitted -= 1
        gone = [host for host in self.hosts.by_id.values() if release or (host.is_quiet and host.leaving)]
        states = tuple(host.state(now, release=host in gone) for host in self.hosts.by_id.values())
        self.has_errands |= bool(side_requests)
        pages = tuple(choice.page for choice in self.choices) if self._deps.policy.window else None
        in_hand, aliases = self._in_hand(), self._deps.aliases.collect()
        batch = Batch(tuple(done), states, robots, side_requests, tuple(visits), in_hand, aliases, pages, *self._last)
        failovers = self._store.failovers  # read before the commit: a later one is for the next commit
        lost = self._store.commit(self.worker, batch, self._clock.now())
        self._committed_at, self.is_urgent = self._clock.monotonic(), False
        stored = sum(completion.document is not None and completion.lease not in lost for completion in done)
        self._last = stored, self._committed_at - now
        self.lease_end = now + self._storage.lease_s
        self._end_leases(lost, gone)
        if lost or failovers > self._failovers:
            self._failovers = failovers
            self.discovery.forget()
            self._deps.aliases.forget()
        if done:
            self.learn()
        self._continue_hosts()

    def _end_leases(self, lost: frozenset[Lease], gone: Iterable[HeldHost]) -> None:
        if lost:  # after a slow commit, a request that was started before it may still be unsent
            flights = self.hosts.flights.items()
            self._deps.transport.withdraw({request for request, host in flights if host.lease in lost})
        for lease in lost | {host.lease for host in gone}:
            if (held := self.hosts.by_id.get(lease.host_id)) is not None and held.lease.epoch == lease.epoch:
                del self.hosts.by_id[lease.host_id]
                self.drop_choices(held)

    def _continue_hosts(self) -> None:
        for host in self.hosts.by_id.values():
            if self._deps.rendering is not None:
                self.visits += refused_parts(host, self._deps.rendering, self._clock.now())
            host.given_up.clear()
            if host.exhausted:
                host.exhausted = False
                self.hosts.schedule(host)

    def release(self, hosts: list[HeldHost]) -> None:
        robots, side_requests = self.gate.collect()
        for host in hosts:
            del self.hosts.by_id[host.lease.host_id]
        states = tuple(host.state(self._clock.monotonic(), release=True) for host in hosts)
        batch = Batch(hosts=states, robots=robots, side_requests=side_requests, in_hand=self._in_hand())
        self._store.commit(self.worker, batch, self._clock.now())

    def _in_hand(self) -> int:
        """Number of tasks taken and not committed: they count against max_pages."""
        answers = sum(choice.answer is not None for choice in self.choices)
        hosts = self.hosts.by_id.values()
        tasks = sum(len(host.tasks) + len(host.in_flight_tasks) + host.rendering + host.withheld for host in hosts)
        return len(self.done) + answers + tasks


def refused_parts(host: HeldHost, rendering: PageRenderer, now: float) -> Iterator[Visit]:
    """Fails the requests of rendered pages to origins that were given up."""
    for dropped in host.given_up:
        for request in rendering.pending_requests:
            if origin_of(request.url) != dropped.origin:
                continue
            host.drop_part(request)
            skipped = Visit(request, now, 0.0, Skipped(dropped.reason, dropped.rule))
            yield skipped
            rendering.answer(skipped)


class Leases:
    """Leases hosts and takes their tasks, as far as the policy and the worker's fair share allow."""

    def __init__(self, deps: WorkerDeps, settings: Settings, commits: Commits) -> None:
        self._deps, self._store, self._clock = deps, deps.store, deps.clock
        self._settings, self._commits, self._hosts = settings, commits, commits.hosts
        self._by_page = deps.policy.window == 0  # the policy chooses the host of each request
        self._shared_at = 0.0
        self._share = 1  # hosts that this worker should hold, as last computed
        self._is_lean = False

    def lease_more(self) -> None:
        wall, now = self._clock.now(), self._clock.monotonic()
        held = self._hosts.by_id
        if now - self._shared_at >= SHARE_S or len(held) <= FEW_HOSTS:
            self._shared_at = now
            self._share = self._fair_share(wall)
            self._return_surplus(len(held) - self._share)
        room = self._share - len(held)
        if room <= 0 and held:
            return
        ready = self._store.ready(EVERY_HOST if self._by_page else room * 4, HORIZON_S, wall)
        chosen = self._deps.policy.choose(ready, room) if ready else ()
        if chosen or not held:  # a worker without hosts still calls lease(), so that fair_share() counts it
            self.lease(chosen)

    def lease(self, host_ids: Sequence[int]) -> None:
        leases = self._store.lease(self._commits.worker, host_ids, self._clock.now())
        # read the monotonic clock second: a pause between the two reads can only lengthen a host's delay
        now = self._clock.monotonic()
        for lease in leases:
            self._add_host(lease, now)

    def _fair_share(self, wall: float) -> int:
        """How many hosts to hold.

        If a page-level policy has more hosts to choose from than it may hold, every second call returns half the limit:
        the worker then returns hosts and leases the ones that the policy prefers.
        """
        hosts, most = self._store.fair_share(wall), self._deps.policy.most_hosts if self._by_page else MOST_HOSTS
        self._is_lean = self._by_page and hosts > most and not self._is_lean
        return most // 2 if self._is_lean else min(most, hosts)

    def _add_host(self, lease: Lease, now: float) -> None:
        mine = self._deps.is_past or is_named(lease.host, self._deps.mine)
        # a Crawl-delay is added when robots.txt is known, before the first page is requested
        delay = delay_for(self._settings.politeness, mine, None, is_folder=is_folder_host(lease.host))
        pace = Pace(delay, lease.rate, now + lease.wait_s, lease.strikes, lease.answered)
        past = HostPast(
            lambda: (page for page in self._store.texts(lease.site, TEXTS) if host_key(page[0]) == lease.host),
            partial(self._store.stored_urls, lease),
        )
        host = HeldHost(lease, pace, mine, self._deps.detector(self._store.trap_memory(lease), past))
        self._hosts.by_id[lease.host_id] = host
        if self._deps.rendering is not None:
            parts = (part for part in self._deps.rendering.pending_requests if host_key(part.url) == lease.host)
            host.parts.extend(part for part in parts if part not in self._hosts.flights)
        self._hosts.schedule(host)

    def _return_surplus(self, surplus: int) -> None:
        """Returns the hosts beyond this worker's share: quiet hosts at once, busy ones after their next commit. At
        MOST_HOSTS hosts, quiet ones that must wait longer than HORIZON_S are returned too.

        Hosts that stay but must wait put their tasks back, since tasks in hand count against the page budget.
        """
        late_at, hosts = self._clock.monotonic() + HORIZON_S, list(self._hosts.by_id.values())
        quiet, busy = surplus_hosts(hosts, surplus, late_at if len(hosts) >= MOST_HOSTS else math.inf)
        for host in busy:
            host.leaving = True
        for host in hosts:
            if host.leaving or host.pace.not_before > late_at:
                host.put_back()
        if quiet:
            self._commits.release(quiet)

    def refill(self, host: HeldHost, pages: Iterable[Url] | None = None) -> bool:
        """Takes tasks of the host, of `pages` or as the policy prefers. Returns whether there were any."""
        # tasks that end without a request would otherwise pile up between commits
        if host.uncommitted >= self._settings.storage.commit_pages:
            host.exhausted = self._commits.is_urgent = True
            return False
        tasks, later_s = self._store.take(
            host.lease,
            TAKE if self._deps.policy.window is None else 1,
            frozenset(host.in_hand),
            self._clock.now(),
            self._deps.policy.next(host.lease.host) if pages is None else pages,
        )
        host.tasks.extend(tasks)
        host.in_hand.update((task.priority, task.seq) for task in tasks)
        if tasks:
            host.exhausted = False
            return True
        host.exhausted = True
        if later_s is not None:
            host.pace = suspend(host.pace, self._clock.monotonic() + later_s, host.pace.waits_for or "priority")
        elif host.in_flight == 0 and host.uncommitted:
            self._commits.is_urgent = True
        elif host.is_quiet and not host.tasks:
            self._commits.release([host])
        return False
