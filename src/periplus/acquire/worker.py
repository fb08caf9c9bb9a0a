"""The crawl loop of one process: lease hosts, start due requests, read responses, commit them in batches.

No threads and no coroutines: one loop over libcurl's sockets. Hosts that wait are (time, host) entries in a heap.
Invariants:  (1) a request starts only if the host's lease outlasts the request's time limit;  (2) a host has at most
per_host requests in flight, and none starts before its pace allows;  (3) results are committed within
commit_interval_s, or earlier if the host cannot continue before;  (4) a bug loses the page that it occurred on and no
other;  (5) a killed process loses only the tasks that it has not committed.
"""

from __future__ import annotations

import contextlib
import heapq
import logging
import math
import os
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from periplus.acquire.discovery import Aliases, Discovery, HostCallbacks, LoginGate, PageRenderer
from periplus.acquire.fetch import (
    FirstAnswers,
    bug,
    check_of,
    compare_with_stored,
    completion_of,
    reason_of,
    second_look,
    visit_of,
    with_cookies,
    with_stored_sessions,
)  # fmt: skip
from periplus.acquire.politeness import (
    AddressTurns,
    HeldHost,
    Pace,
    delay_for,
    finish_request,
    given_up,
    prefer,
    start_request,
    surplus_hosts,
    suspend,
)  # fmt: skip
from periplus.acquire.robots_gate import RobotsGate
from periplus.model.frontier import (
    CHOSEN_NOTE,
    PRIORITY_DOUBT,
    PRIORITY_FIRST,
    Batch,
    Candidate,
    Completion,
    Lease,
    ReadyHost,
    SideRequest,
    Task,
    TrapMemory,
)  # fmt: skip
from periplus.model.ports import (
    Clock,
    CrawlScope,
    CrawlStore,
    HostPast,
    Policy,
    Response,
    Transport,
    TrapDetection,
)  # fmt: skip
from periplus.model.visit import (
    BESIDE,
    CHECKS,
    Cause,
    Failed,
    Outcome,
    Purpose,
    Reason,
    Redirected,
    Request,
    Skipped,
    Visit,
)  # fmt: skip
from periplus.model.web import HostKey, Url, UrlId
from periplus.settings import Settings
from periplus.urls.canonical import canonical
from periplus.urls.folders import is_folder_host
from periplus.urls.hosts import host_key, is_named, origin_of
from periplus.values import frozen

log = logging.getLogger(__name__)
_BUG_FAILURE = Failed(Cause.BUG)
_NO_ANSWER = frozenset({Cause.CANCELLED, Cause.STALE})  # not a failure either: the request is started again
# Outcome of a placeholder task, which only makes a worker lease the host. The renderer or the login session supplies
# the real request (see `_add_host`).
_LEASE_ONLY = Skipped(Reason.SCOPE, "its host is leased for it")

TAKE = 64  # tasks taken from a host at a time; a kill makes all of them be fetched again
HORIZON_S = 2.0  # hosts due within this time are leased; a host that must wait longer is returned
MOST_HOSTS = 512  # hosts in one worker: at 0.5 s between requests more than it can serve
EVERY_HOST = 1_000_000  # a page-level policy compares all ready hosts, not only those that wait longest
RENDER_TICK_S = 0.05  # how often pages in browsers are polled
TICK_S = 0.25  # how often the loop checks progress, stop requests and new hosts
SHARE_S = 1.0  # how often the worker's fair share of hosts is computed again
# with at most this many hosts it is computed at every tick: counting is cheap then, and a worker that joined or ran out
# of hosts waits 0.3 s for new ones instead of 1.2 s
FEW_HOSTS = 32
# pages of a site whose texts are compared when it gives out session ids: some 200 MB while they are read
TEXTS = 1_000_000
DRAIN_S = 5.0  # how long a stopping worker waits for requests in flight


@dataclass(slots=True)
class _Choice:
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


class _HostPast:
    """`model.ports.HostPast`: stored texts and URLs of a leased host."""

    def __init__(self, store: CrawlStore, lease: Lease) -> None:
        self._store, self._lease = store, lease

    def texts(self) -> Iterable[tuple[Url, bytes]]:
        return (
            (url, digest)
            for url, digest in self._store.texts(self._lease.site, TEXTS)
            if host_key(url) == self._lease.host
        )

    def stored_urls(self, urls: Sequence[UrlId]) -> frozenset[UrlId]:
        return self._store.stored_urls(self._lease, urls)


class Worker:
    """One worker. `run` returns when no work is left, when `tick` asks to stop, or when the budget is spent."""

    def __init__(self, deps: WorkerDeps, settings: Settings) -> None:
        self._store, self._transport, self._clock = deps.store, deps.transport, deps.clock
        self._deps, self._settings = deps, settings
        self._politeness, self._storage = settings.politeness, settings.storage
        self._discovery = Discovery(deps.scope, settings, deps.aliases)
        self._robots_gate = RobotsGate(
            deps.store, settings.politeness, deps.scope, deps.clock, sitemaps=settings.scope.sitemaps
        )
        self._name = ""
        self._held: dict[int, HeldHost] = {}
        # heap of (monotonic time, host id); an entry that differs from its host's due_at is ignored
        self._due: list[tuple[float, int]] = []
        self._flights: dict[Request, HeldHost] = {}
        self._first_answers: FirstAnswers = {}
        self._rendering = deps.rendering
        self._sessions = deps.sign_in(self._held, self._host_callbacks()) if deps.sign_in is not None else None
        self._done: list[Completion] = []
        self._visits: list[Visit] = []
        self._lease_requests: list[SideRequest] = []  # placeholder tasks of hosts that are not held
        self._committed_at = self._shared_at = self._lease_end = 0.0
        self._last_commit = 0, 0.0  # pages stored, duration
        self._commit_now = False
        self._failovers = 0  # `store.failovers` at the last commit
        self._share = 1  # hosts that this worker should hold, as last computed
        self._window = deps.policy.window or 0  # pages that the policy chooses ahead
        self._by_page = deps.policy.window == 0  # the policy chooses the host of each request
        self._choices: deque[_Choice] = deque()  # in order of choice
        self._is_all_chosen = False  # no further page can be chosen until the next commit
        self._has_errands = True  # some hosts may have requests that other hosts wait for
        self._is_lean = False

    def run(self, tick: Callable[[], bool]) -> None:
        """tick: called at most once per TICK_S; True asks to stop."""
        # only a commit extends it, since only a commit returns the leases that were lost
        self._lease_end = self._clock.monotonic() + self._storage.lease_s
        self._name = self._store.join(os.getpid(), self._clock.now())
        try:
            self._restore_choices()
            self._loop(tick)
            self._drain()
        finally:
            self._commit(release=True)
            self._store.leave(self._name, self._clock.now())

    def _loop(self, tick: Callable[[], bool]) -> None:
        tick_at = 0.0
        while True:
            now = self._clock.monotonic()
            if now >= tick_at:
                tick_at = now + TICK_S
                if tick() or (self._sessions is not None and self._sessions.failure):
                    return
                self._learn()
                if self._window:
                    self._has_errands = self._has_errands and self._run_errands()
                else:
                    self._lease_more()
            if self._window:
                self._choose_ahead()
            elif self._by_page:  # the next choice may depend on the last result
                self._commit_if_due()
            pause = self._start_due(now)
            if self._commit_if_due():
                pause = 0.0  # hosts that waited for the commit continue
            if self._is_finished():
                return
            for response in self._transport.wait(min(pause, self._commit_wait_s(), self._rendering_wait_s())):
                self._on_response(response)
                self._commit_if_due()  # reading many responses may take seconds
            if self._rendering is not None:
                self._render(self._rendering)

    def _is_finished(self) -> bool:
        if self._flights or self._done or self._choices or (self._rendering is not None and self._rendering.is_busy):
            return False
        return self._store.budget_spent or (not self._held and self._store.idle(self._clock.now()))

    def _drain(self) -> None:
        """Waits up to DRAIN_S for requests in flight, so that their responses are not lost."""
        deadline = self._clock.monotonic() + DRAIN_S
        while self._flights and self._clock.monotonic() < deadline:
            for response in self._transport.wait(deadline - self._clock.monotonic()):
                self._on_response(response)
        if self._window:
            self._choose_ahead()

    # choices made ahead of their hosts -------------------------------------------------------------------------------

    def _restore_choices(self) -> None:
        """Chooses again the pages that an earlier process chose but did not commit."""
        for page in map(Url, self._store.note(CHOSEN_NOTE).split() if self._window else ()):
            hosts = [host.host_id for host in self._hosts_with_work() if host.host == host_key(page)]
            if not (hosts and self._pick(hosts[0], (page,))):
                self._choices.append(_Choice(page, is_done=True))  # keeps its place in the order

    def _choose_ahead(self) -> None:
        """Commits answers in the order of choice, and chooses further pages after each commit.

        So choices do not depend on the order in which responses arrive.
        """
        while True:
            picked: bool | None = not self._is_all_chosen
            while picked and len(self._choices) < self._window:
                picked = self._choose()
            self._is_all_chosen = picked is False
            if picked is None or not self._choices or not self._choices[0].is_done:
                return
            if (answer := self._choices.popleft().answer) is not None:
                self._done.append(answer)
            self._commit()
            self._is_all_chosen = False

    def _choose(self) -> bool | None:
        """Chooses a page, even if its host's delay still runs. False: no page is left; None: not known yet."""
        is_paused = not self._store.fair_share(self._clock.now())
        if not is_paused:
            if self._done:  # their hosts cannot continue before the commit
                self._commit()
            busy = {choice.entry[0] for choice in self._choices}
            hosts = [host for host in self._hosts_with_work() if host.host_id not in busy]
            for host_id in self._deps.policy.choose(hosts, len(hosts)):
                if self._pick(host_id):
                    return True
                if host_id in self._held and self._held[host_id].has_errand:
                    return None
                if self._store.budget_spent:
                    break
        if not self._choices:
            self._release(self._idle_hosts())
        return None if is_paused else False

    def _hosts_with_work(self) -> list[ReadyHost]:
        """Hosts that have tasks, as far as the store knows without a request."""
        held = [host.as_ready() for host in self._held.values() if not host.exhausted]
        return [*held, *self._store.ready(EVERY_HOST, math.inf, self._clock.now())]

    def _idle_hosts(self) -> list[HeldHost]:
        return [host for host in self._held.values() if host.is_quiet and not host.in_hand]

    def _pick(self, host_id: int, pages: Iterable[Url] | None = None) -> bool:
        """Chooses a page of the host, from `pages` or by the policy. Returns whether a page was chosen."""
        if host_id not in self._held:
            if len(self._held) >= self._deps.policy.most_hosts:
                self._release(self._idle_hosts())
            self._lease([host_id])
        host = self._held.get(host_id)
        if host is None or host.has_errand or not self._refill(host, pages):
            return False
        self._schedule(host)
        task = host.tasks[-1]
        if task.priority < 0:
            host.tasks.rotate()  # before the host's page, which may itself wait for other hosts
            return False
        self._choices.append(_Choice(task.request.url, (host_id, task.priority, task.seq)))
        return True

    def _run_errands(self) -> bool:
        """Takes the requests that other hosts wait for, without a choice. False: there are none."""
        hosts = self._store.urgent([host.host_id for host in self._hosts_with_work()])
        for host_id in hosts:
            self._pick(host_id)
        return bool(hosts)

    def _drop_choice(self, host: HeldHost) -> None:
        """Ends the choices of a host without an answer."""
        for choice in self._choices:
            choice.is_done |= choice.entry[0] == host.lease.host_id

    # hosts -----------------------------------------------------------------------------------------------------------

    def _lease_more(self) -> None:
        wall, now = self._clock.now(), self._clock.monotonic()
        if now - self._shared_at >= SHARE_S or len(self._held) <= FEW_HOSTS:
            self._shared_at = now
            self._share = self._fair_share(wall)
            self._return_surplus(len(self._held) - self._share)
        room = self._share - len(self._held)
        if room <= 0 and self._held:
            return
        ready = self._store.ready(EVERY_HOST if self._by_page else room * 4, HORIZON_S, wall)
        chosen = self._deps.policy.choose(ready, room) if ready else ()
        if chosen or not self._held:  # a worker without hosts still calls lease(), so that fair_share() counts it
            self._lease(chosen)

    def _lease(self, host_ids: Sequence[int]) -> None:
        leases = self._store.lease(self._name, host_ids, self._clock.now())
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

    def _learn(self) -> None:
        """Feeds all visits committed since the last call (by any worker) to a page-level policy."""
        policy = self._deps.policy
        if policy.window is not None:
            policy.learn(self._store.visits(policy.mark, texts=policy.reads_text))

    def _add_host(self, lease: Lease, now: float) -> None:
        mine = self._deps.is_past or is_named(lease.host, self._deps.mine)
        # a Crawl-delay is added when robots.txt is known, before the first page is requested
        delay = delay_for(self._politeness, mine, None, is_folder=is_folder_host(lease.host))
        pace = Pace(delay, lease.rate, now + lease.wait_s, lease.strikes, lease.answered)
        host = HeldHost(
            lease, pace, mine, self._deps.detector(self._store.trap_memory(lease), _HostPast(self._store, lease))
        )
        self._held[lease.host_id] = host
        if self._rendering is not None:
            parts = (part for part in self._rendering.pending_requests if host_key(part.url) == lease.host)
            host.parts.extend(part for part in parts if part not in self._flights)
        self._schedule(host)

    def _schedule(self, host: HeldHost) -> None:
        """Adds a heap entry for the host; it replaces earlier ones."""
        host.due_at = host.pace.not_before
        heapq.heappush(self._due, (host.due_at, host.lease.host_id))

    def _return_surplus(self, surplus: int) -> None:
        """Returns the hosts beyond this worker's share: quiet hosts at once, busy ones after their next commit. At
        MOST_HOSTS hosts, quiet ones that must wait longer than HORIZON_S are returned too.

        Hosts that stay but must wait put their tasks back, since tasks in hand count against the page budget.
        """
        late_at, hosts = self._clock.monotonic() + HORIZON_S, list(self._held.values())
        quiet, busy = surplus_hosts(hosts, surplus, late_at if len(hosts) >= MOST_HOSTS else math.inf)
        for host in busy:
            host.leaving = True
        for host in hosts:
            if host.leaving or host.pace.not_before > late_at:
                host.put_back()
        if quiet:
            self._release(quiet)

    def _release(self, hosts: list[HeldHost]) -> None:
        robots, side_requests = self._robots_gate.collect()
        for host in hosts:
            del self._held[host.lease.host_id]
        states = tuple(host.state(self._clock.monotonic(), release=True) for host in hosts)
        batch = Batch(hosts=states, robots=robots, side_requests=side_requests, in_hand=self._in_hand())
        self._store.commit(self._name, batch, self._clock.now())

    def _in_hand(self) -> int:
        """Number of tasks taken and not committed: they count against max_pages."""
        answers = sum(choice.answer is not None for choice in self._choices)
        return (
            len(self._done)
            + answers
            + sum(
                len(host.tasks) + len(host.in_flight_tasks) + host.rendering + host.withheld
                for host in self._held.values()
            )
        )

    # requests --------------------------------------------------------------------------------------------------------

    def _start_due(self, now: float) -> float:
        """Starts requests of due hosts; returns the seconds until the next host is due."""
        while self._due and self._due[0][0] <= now and self._transport.in_flight < self._politeness.concurrency:
            hosts = self._due_hosts(now)
            if not hosts and self._by_page:  # the policy prefers to wait for other hosts
                return TICK_S
            for host in hosts:
                self._serve(host, now)
                # the policy decides which hosts hold a page; a host that waits for its robots.txt does not
                if host.tasks and self._by_page:
                    host.put_back()
                    self._commit_now = True  # tasks in hand count against the budget
        return (
            max(0.0, self._due[0][0] - now)
            if self._due and self._transport.in_flight < self._politeness.concurrency
            else TICK_S
        )

    def _due_hosts(self, now: float) -> Sequence[HeldHost]:
        """The host that has been due longest; under a page-level policy, the hosts that it prefers."""
        due: list[HeldHost] = []
        while self._due and self._due[0][0] <= now and (self._by_page or not due):
            due_at, host_id = heapq.heappop(self._due)
            host = self._held.get(host_id)
            if host is None or host.due_at != due_at:
                continue
            host.due_at = None
            if host.pace.not_before > now:
                self._schedule(host)
            else:
                due.append(host)
        if not self._by_page or not due:
            return due
        chosen, others = prefer(due, self._deps.policy, self._politeness.concurrency - self._transport.in_flight)
        for host in others:
            self._schedule(host)
        return chosen

    def _serve(self, host: HeldHost, now: float) -> None:
        """Starts one request of a due host, or schedules the host for later."""
        most = self._politeness.per_host if host.mine else 1
        if (host.leaving and not host.parts) or host.in_flight >= most or host.side_in_flight:
            return  # at its request limit; rescheduled when a request finishes
        if self._window and not (host.tasks or host.side or host.parts or host.withheld):
            return  # rescheduled when one of its pages is chosen
        if host.pace.delay_s and host.uncommitted and host.uncommitted + host.in_flight >= most:
            # a kill then repeats at most `most` requests to the host; without a delay, speed matters more
            self._commit()
            if self._held.get(host.lease.host_id) is not host:
                return
        request = self._next_request(host)
        if request is None:
            if host.given_up:
                host.put_back()
                self._drop_choice(host)
                # the commit drops the origin's tasks; the host continues with its other origins
                host.exhausted = self._commit_now = True
                if self._sessions is not None:
                    for origin in host.given_up:
                        self._sessions.given_up(origin)
            elif not host.exhausted or host.pace.not_before > now:
                self._schedule(host)
            return
        # the commit may have been slow, or the process may have been suspended: check the lease again
        now = self._clock.monotonic()
        before = self._lease_end - self._settings.limits.total_timeout_s
        if now > before or self._store.failovers > self._failovers:
            host.take_back(request)
            self._commit_now = True  # renews the lease, or reports its loss
            host.pace = suspend(host.pace, now + TICK_S, "lease")
            self._schedule(host)
            return
        at = self._deps.addresses.turn(host.lease.host, now)
        if at > now:
            host.take_back(request)
            host.pace = suspend(host.pace, at, "address")
            self._schedule(host)
            return
        self._transport.start(request, before)
        host.pace = start_request(host.pace, now)
        self._flights[request] = host
        if host.in_flight < most:
            self._schedule(host)

    def _next_request(self, host: HeldHost) -> Request | None:
        """The next request that the rules allow, or None. Tasks that are not allowed end here, without a request."""
        while not host.given_up:
            if host.side:
                request = host.side.popleft()
                host.side_in_flight = True
                return request
            if host.parts:
                host.tasks.appendleft(Task(host.lease.host_id, PRIORITY_FIRST, 0, UrlId(0), host.parts.popleft()))
            if self._sessions is not None and not self._sessions.admits(host):
                if host.parts:  # the session's own request
                    continue
                return None
            if not host.tasks and (self._window or not self._refill(host)):
                return None
            task = host.tasks.popleft()
            ruling: Outcome | None = _BUG_FAILURE
            with self._guard(host, task):
                ruling = (
                    (_LEASE_ONLY if task.seq and task.request.purpose in BESIDE else None)
                    or (self._sessions.ruling(task) if self._sessions is not None else None)
                    or self._deps.aliases.ruling(task)
                    or self._discovery.ruling(task)
                    or self._robots_gate.ruling(host, task)
                )
            match ruling:
                case None:
                    host.tasks.appendleft(task)
                    if not host.side:
                        return None
                case Skipped(reason=Reason.OK):
                    host.in_flight_tasks[task.request] = task
                    return task.request
                case Skipped(reason=Reason.TRAP) if host.may_doubt_again(task.priority):
                    self._postpone(host, task, ruling)
                case Skipped():
                    self._settle(host, task, Visit(task.request, self._clock.now(), 0.0, ruling))
        return None

    def _refill(self, host: HeldHost, pages: Iterable[Url] | None = None) -> bool:
        # tasks that end without a request would otherwise pile up between commits
        if host.uncommitted >= self._storage.commit_pages:
            host.exhausted = self._commit_now = True
            return False
        tasks, later_s = self._store.take(
            host.lease,
            1 if self._by_page or self._window else TAKE,
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
            self._commit_now = True
        elif host.is_quiet and not host.tasks:
            self._release([host])
        return False

    def _postpone(self, host: HeldHost, task: Task, ruling: Skipped) -> None:
        """Moves a URL that looks like a trap to the end of the to-do list; it is judged again there."""
        priority, visit = max(PRIORITY_DOUBT, task.priority + 1), Visit(task.request, self._clock.now(), 0.0, ruling)
        self._finish(host, Completion(host.lease, task, visit, None, retry_priority=priority))

    # answers ---------------------------------------------------------------------------------------------------------

    def _on_response(self, response: Response) -> None:
        request = response.request
        host = self._flights.pop(request, None)
        if host is None:
            return
        if response.cause in _NO_ANSWER:
            self._deps.addresses.end_turn(host.lease.host, "")
            if self._held.get(host.lease.host_id) is not host:  # it was withdrawn
                return
            host.take_back(request)
            now = self._clock.monotonic()
            at, why = now - response.took_s + host.pace.gap_s, "delay"
            if response.cause is Cause.CANCELLED:  # other hosts use the address that its name resolved to
                at, why = self._deps.addresses.turn(host.lease.host, now), "address"
            host.pace = suspend(host.pace, at, why)
        else:
            self._read_response(host, response)
        if host.leaving and not host.in_flight:
            self._commit_now = True  # another worker waits for the host
        self._schedule(host)

    def _read_response(self, host: HeldHost, response: Response) -> None:
        """Updates the host's pace by a response or failure, and passes the visit on by its purpose."""
        request = response.request
        task = host.in_flight_tasks.pop(request, None)
        if task is None:
            host.side_in_flight = False
        self._deps.addresses.end_turn(host.lease.host, response.address)
        with self._guard(host, task or Task(host.lease.host_id, 0, 0, UrlId(0), request)):
            visit = visit_of(response, self._settings.limits)
            log.debug(
                "visit url=%s outcome=%s took_s=%.3f", request.url, type(visit.outcome).__name__.lower(), visit.took_s
            )
            self._pace(host, visit)
            if self._sessions is not None:
                visit = self._sessions.store_cookies(visit)
            if task is None:
                self._visits.append(visit)
            elif request.purpose not in BESIDE and (again := with_cookies(visit)) is not None:
                host.tasks.appendleft(replace(task, request=again))
                self._visits.append(visit)
            elif self._sessions is None or self._sessions.accepts(host, task, visit):
                self._settle(host, task, visit)

    def _pace(self, host: HeldHost, visit: Visit) -> None:
        """Updates the host's pace and failure count.

        The delay counts from when the request was sent, not from when it was started: connecting takes time, so two
        requests would otherwise reach the server closer together than the delay.
        """
        now = self._clock.monotonic()
        if self._deps.is_past:
            return
        if visit.request.purpose is Purpose.ROBOTS:
            self._robots_gate.process_answer(host, visit)
        else:
            origin = origin_of(visit.request.url)
            pace = finish_request(host.pace_of(origin), visit, self._politeness, now)
            host.keep_pace(origin, pace)
            if given_up(pace, self._politeness):
                why = Reason.BOT_WALL if pace.waits_for == Reason.BOT_WALL else Reason.HOST_DOWN
                self._robots_gate.give_up(host, origin, why, pace.waits_for)
        host.pace = suspend(host.pace, now - visit.took_s + host.pace.gap_s, host.pace.waits_for)

    @contextlib.contextmanager
    def _guard(self, host: HeldHost, task: Task) -> Iterator[None]:
        """The only place that catches every exception: records a bug as the page's outcome; the crawl continues."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the guard, see above
            log.error("bug url=%s\n%s", task.request.url, traceback.format_exc())
            self._discovery.forget()  # other pages must offer this page's links again
            visit = Visit(task.request, self._clock.now(), 0.0, _BUG_FAILURE)
            if task.request.purpose in BESIDE and not task.seq:
                self._deliver_part(host, task, visit)
                return
            self._finish(host, bug(host.lease, task, visit, f"{type(error).__name__}: {error}"))

    def _host_callbacks(self) -> HostCallbacks:
        def settle(host: HeldHost, task: Task, visit: Visit) -> None:
            with self._guard(host, task):
                self._settle(host, task, visit)

        def refill(host: HeldHost) -> bool:
            return not self._window and self._refill(host)  # only chosen pages are fetched

        return HostCallbacks(self._held_host, refill, self._schedule, self._request_lease, settle)

    def _settle(self, host: HeldHost, task: Task, visit: Visit) -> None:
        request = task.request
        if request.purpose is Purpose.ROBOTS:  # the robots gate decides about retries
            self._finish(host, Completion(host.lease, task, visit, reason_of(visit.outcome)))
            return
        if request.purpose in BESIDE:
            self._deliver_part(host, task, visit)
            return
        visit = compare_with_stored(task, visit)
        if request.purpose in CHECKS:
            self._finish(host, check_of(host.lease, task, visit, self._settings))
            return
        if self._rendering is not None and self._rendering.wants(visit):
            self._begin_rendering(self._rendering, host, task, visit)
            return
        read = self._discovery.of(host.lease, task, visit)
        if self._rendering is not None and self._rendering.needs(read):
            self._begin_rendering(self._rendering, host, task, visit, read.candidates)
            return
        self._conclude(host, read)

    def _conclude(self, host: HeldHost, read: Completion) -> None:
        """Feeds a page to alias and trap detection, and adds it to the next commit."""
        request, task = read.visit.request, read.task
        if task.recheck and (read.document or read.candidates):
            stored = self._store.stored_content(read.lease, task.url_id)
            read = with_stored_sessions(read, stored, lambda target: host.traps.admit(target, 0))
            read = second_look(read, stored, self._first_answers)
            if read.retry_in_s:
                self._discovery.forget()  # the next answer must offer its links again
                self._finish(host, read)
                return
        is_redirect = isinstance(read.visit.outcome, Redirected) and bool(read.candidates)
        if (read.document is not None or is_redirect) and not task.recheck:  # a refreshed page was learned from before
            if read.document is not None:
                self._deps.aliases.learn(request.url, read.document)
                lesson = host.traps.learn(request.url, task.doubt, read.document, read.candidates)
            else:
                lesson = host.traps.record_redirect(request.url, task.doubt, read.candidates)
            if lesson.candidates is not read.candidates or lesson.confirmed_urls:
                read = replace(
                    read, candidates=(*lesson.candidates, *self._discovery.confirmed_candidates(lesson.confirmed_urls))
                )
            if lesson.fresh:
                host.fresh = (True, host.fresh[1])
        self._finish(host, completion_of(read, self._politeness))

    # rendering -------------------------------------------------------------------------------------------------------

    def _begin_rendering(
        self, rendering: PageRenderer, host: HeldHost, task: Task, visit: Visit, links: tuple[Candidate, ...] = ()
    ) -> None:
        host.rendering += 1
        rendering.begin(host, task, visit, links)

    def _render(self, rendering: PageRenderer) -> None:
        """Reads the pages that were rendered, and queues the requests of those that are being rendered."""
        for host, task, completion in rendering.advance():
            host.rendering -= 1
            with self._guard(host, task):
                self._conclude(host, completion(self._discovery))
            if host.due_at is None:
                self._schedule(host)
        for request in rendering.requests():
            held = self._held_host(host_key(request.url))
            if held is None:
                self._request_lease(request)
            else:
                held.parts.append(request)
                self._schedule(held)
        self._transport.attend(rendering.fds)

    def _rendering_wait_s(self) -> float:
        """Seconds that the loop may sleep: fewer while pages are rendered, since browsers do not report idle pages."""
        return RENDER_TICK_S if self._rendering is not None and self._rendering.is_busy else TICK_S

    def _request_lease(self, request: Request) -> None:
        """Makes a worker lease the host of a renderer's or session's request, by a placeholder task of top priority.

        The to-do list stores no header fields and no secrets, so it cannot hold the request itself.
        """
        root = canonical(origin_of(request.url) + "/")
        site = self._deps.scope.site_of(request.url)
        self._lease_requests.append(SideRequest(host_key(root), site, Request(root, request.purpose), PRIORITY_FIRST))
        self._commit_now = True

    def _held_host(self, key: HostKey) -> HeldHost | None:
        return next((host for host in self._held.values() if host.lease.host == key), None)

    def _refuse_parts(self, host: HeldHost) -> None:
        """Fails the requests of rendered pages to origins that were given up."""
        if self._rendering is None:
            return
        for dropped in host.given_up:
            for request in self._rendering.pending_requests:
                if origin_of(request.url) != dropped.origin:
                    continue
                host.drop_part(request)
                skipped = Visit(request, self._clock.now(), 0.0, Skipped(dropped.reason, dropped.rule))
                self._visits.append(skipped)
                self._rendering.answer(skipped)

    def _deliver_part(self, host: HeldHost, task: Task, visit: Visit) -> None:
        """Passes the outcome of a renderer's or session's own request to it."""
        if task.seq:  # a placeholder task from the to-do list: the host is leased now
            self._finish(host, Completion(host.lease, task, visit, reason_of(visit.outcome)))
        elif task.request.purpose is Purpose.LOGIN:  # never stored
            if self._sessions is not None:
                self._sessions.take(visit)
        elif self._rendering is not None:
            self._rendering.answer(visit)
            self._visits.append(visit)

    def _finish(self, host: HeldHost, completion: Completion) -> None:
        host.uncommitted += 1
        entry = (completion.task.host_id, completion.task.priority, completion.task.seq)
        for choice in self._choices:
            if choice.entry == entry:
                if completion.retry_in_s:  # the host waits, not the task, which may be chosen at any time
                    now = self._clock.monotonic()
                    host.pace = suspend(host.pace, now + completion.retry_in_s, "further attempt")
                choice.answer, choice.is_done = replace(completion, retry_in_s=0.0), True
                return
        self._done.append(completion)

    # storing ---------------------------------------------------------------------------------------------------------

    def _commit_if_due(self) -> bool:
        waited = self._clock.monotonic() - self._committed_at
        has_news = bool(self._done or self._held)  # leases must be renewed too
        due = (
            self._commit_now
            or self._store.failovers > self._failovers
            or len(self._done) >= self._storage.commit_pages
            or (waited >= self._storage.commit_interval_s and has_news)
        )
        if due:
            self._commit()
        return due

    def _commit_wait_s(self) -> float:
        """Seconds that the loop may sleep before the next commit; hosts may wait for it."""
        left = self._committed_at + self._storage.commit_interval_s - self._clock.monotonic()
        return min(TICK_S, max(0.0, left)) if self._done else TICK_S

    def _commit(self, *, release: bool = False) -> None:
        """Commits in one transaction; then the hosts that waited for it continue."""
        now = self._clock.monotonic()
        robots, side_requests = self._robots_gate.collect()
        done, visits, self._done, self._visits = self._done, self._visits, [], []
        side_requests += tuple(self._lease_requests)
        self._lease_requests.clear()
        side_requests += tuple(chain.from_iterable(completion.side_requests for completion in done))
        for completion in done:
            held = self._held.get(completion.lease.host_id)
            if held is not None and held.lease.epoch == completion.lease.epoch:
                held.in_hand.discard((completion.task.priority, completion.task.seq))
                held.uncommitted -= 1
        gone = [host for host in self._held.values() if release or (host.is_quiet and host.leaving)]
        states = tuple(host.state(now, release=host in gone) for host in self._held.values())
        self._has_errands |= bool(side_requests)
        chosen = tuple(choice.page for choice in self._choices) if self._window else None
        in_hand, aliases = self._in_hand(), self._deps.aliases.collect()
        batch = Batch(
            tuple(done), states, robots, side_requests, tuple(visits), in_hand, aliases, chosen, *self._last_commit
        )
        failovers = self._store.failovers  # read before the commit: a later one is for the next commit
        lost = self._store.commit(self._name, batch, self._clock.now())
        self._committed_at, self._commit_now = self._clock.monotonic(), False
        pages = sum(completion.document is not None and completion.lease not in lost for completion in done)
        self._last_commit = pages, self._committed_at - now
        self._lease_end = now + self._storage.lease_s
        if lost:  # after a slow commit, a request that was started before it may still be unsent
            self._transport.withdraw({request for request, host in self._flights.items() if host.lease in lost})
        for lease in lost | {host.lease for host in gone}:
            if (held := self._held.get(lease.host_id)) is not None and held.lease.epoch == lease.epoch:
                del self._held[lease.host_id]
                self._drop_choice(held)
        if lost or failovers > self._failovers:
            self._failovers = failovers
            self._discovery.forget()
            self._deps.aliases.forget()
        if done:
            self._learn()
        for host in self._held.values():
            self._refuse_parts(host)
            host.given_up.clear()
            if host.exhausted:
                host.exhausted = False
                self._schedule(host)
