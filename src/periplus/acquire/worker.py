"""The crawl's loop in one process: lease hosts, start what is due, take what arrived, store it in batches.

No threads and no coroutines: one loop over libcurl's sockets, in which everything that waits is a time in a heap.
Promises: a host is asked only while its lease outlasts the request's time limit; never more than per_host
requests at once and never sooner than its pace allows; what was fetched is stored within commit_interval_s or
when the host can go no further without; a failure of ours costs the page in hand and no other. What is lost
with the process is what was in hand.
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
from typing import TYPE_CHECKING

from periplus.acquire.discovery import Aliases, Discovery
from periplus.acquire.fetch import (
    FirstAnswers,
    bug,
    check_of,
    completion_of,
    reason_of,
    recognised,
    second_look,
    visit_of,
    with_its_cookies,
    with_stored_sessions,
)  # fmt: skip
from periplus.acquire.politeness import (
    AddressTurns,
    HeldHost,
    Pace,
    delay_for,
    finished,
    given_up,
    preferred,
    started,
    surplus_hosts,
    suspended,
)  # fmt: skip
from periplus.acquire.robots_gate import RobotsGate
from periplus.acquire.session import LoginSessions
from periplus.acquire.signing_in import SigningIn, WaysOfHosts
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

if TYPE_CHECKING:  # for those who render alone
    from periplus.acquire.rendered import PageRendering

log = logging.getLogger(__name__)
_BROKEN = Failed(Cause.BUG)
_NO_ANSWER = frozenset({Cause.CANCELLED, Cause.STALE})  # and no failure: the request is started again
# on a to-do list it has its host leased: what is asked for there, the page or the session hands over (see `_hold`)
_CALL = Skipped(Reason.SCOPE, "its host is leased for it")

TAKE = 64  # tasks taken from a host at a time; more only widens what a kill leaves to be fetched again
HORIZON_S = 2.0  # hosts due within this time are worth a lease; one that must wait longer is given back
MOST_HELD = 512  # hosts in one worker: at 0.5 s between requests more than it can serve
EVERY_HOST = 1_000_000  # by page, all that are ready are compared, not those that wait longest
RENDER_TICK_S = 0.05  # how often it looks after pages in browsers
TICK_S = 0.25  # how often the loop looks up: progress, stop, new hosts
SHARE_S = 1.0  # how often hosts are shared out anew among workers
# up to so many, at every tick: counting them costs nothing, and a worker that came or ran dry waits 0.3 s
# for hosts instead of 1.2
FEW_HELD = 32
# pages of a site whose texts are compared when it gives out session ids: some 200 MB while they are read
TEXTS = 1_000_000
DRAIN_S = 5.0  # how long a stopping worker waits for answers under way


@dataclass(slots=True)
class _Choice:
    """A page that a policy chose ahead. is_over: there is its answer, or it was dropped without one."""

    page: Url
    entry: tuple[int, int, int] = (0, 0, 0)  # host, priority and seq of its task
    answer: Completion | None = None
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class WorkerDeps:
    """What a worker works with."""

    store: CrawlStore
    transport: Transport
    clock: Clock
    policy: Policy
    detector: Callable[[TrapMemory, HostPast], TrapDetection]
    scope: CrawlScope
    mine: frozenset[str]  # hosts declared one's own, as `scope.own_hosts` writes them
    aliases: Aliases
    addresses: AddressTurns
    rendering: PageRendering | None = None  # None: pages are what servers send
    sessions: LoginSessions | None = None  # None: nobody signs in
    is_past: bool = False  # an archive answers in place of the hosts, which nobody asks: they are not spared


class _Past:
    """What the store can be asked about a leased host."""

    def __init__(self, store: CrawlStore, lease: Lease) -> None:
        self._store, self._lease = store, lease

    def texts(self) -> Iterable[tuple[Url, bytes]]:
        return (
            (url, digest)
            for url, digest in self._store.texts(self._lease.site, TEXTS)
            if host_key(url) == self._lease.host
        )

    def seen(self, urls: Sequence[UrlId]) -> frozenset[UrlId]:
        return self._store.seen(self._lease, urls)


class Worker:
    """One worker. `run` returns when nothing is left, when told to stop, or when the budget is spent."""

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
        # (monotonic time, host id); entries of hosts that moved on are passed over
        self._due: list[tuple[float, int]] = []
        self._flights: dict[Request, HeldHost] = {}
        self._first_answers: FirstAnswers = {}
        self._rendering = deps.rendering
        self._sessions: SigningIn | None = None
        if deps.sessions is not None:
            self._sessions = SigningIn(deps.sessions, self._clock, self._held, self._ways_of_sessions())
        self._done: list[Completion] = []
        self._visits: list[Visit] = []
        self._calls: list[SideRequest] = []  # to hosts that are not held
        self._committed_at = self._shared_at = self._lease_end = 0.0
        self._commit_now = False
        self._successions = 0  # of the store, that it knows of
        self._share = 1  # hosts that this worker should hold, as last reckoned
        self._window = deps.policy.window or 0  # pages that the policy chooses ahead
        self._by_page = deps.policy.window == 0  # the policy chooses the host of each request
        self._choices: deque[_Choice] = deque()  # in their order
        self._is_all_chosen = False  # nothing else can be chosen until something is stored
        self._has_errands = True  # there may be hosts that are to be asked for what others wait for
        self._is_lean = False

    def run(self, tick: Callable[[], bool]) -> None:
        """tick: called every TICK_S at most; True asks to stop."""
        # only a commit puts it off, for only a commit tells what was lost
        self._lease_end = self._clock.monotonic() + self._storage.lease_s
        self._name = self._store.join(os.getpid(), self._clock.now())
        try:
            self._go_on()
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
            elif self._by_page:  # a choice may want to know what the last one showed
                self._commit_if_due()
            pause = self._start_due(now)
            if self._commit_if_due():
                pause = 0.0  # hosts that waited for it go on
            if self._is_over():
                return
            for response in self._transport.wait(min(pause, self._until_commit(), self._until_rendering())):
                self._arrive(response)
                self._commit_if_due()  # many answers at once may take seconds to read
            if self._rendering is not None:
                self._render(self._rendering)

    def _is_over(self) -> bool:
        if self._flights or self._done or self._choices or (self._rendering is not None and self._rendering.is_busy):
            return False
        return self._store.budget_spent or (not self._held and self._store.idle(self._clock.now()))

    def _drain(self) -> None:
        """Waits a little for what is under way: answers that were asked for are not thrown away."""
        deadline = self._clock.monotonic() + DRAIN_S
        while self._flights and self._clock.monotonic() < deadline:
            for response in self._transport.wait(deadline - self._clock.monotonic()):
                self._arrive(response)
        if self._window:
            self._choose_ahead()

    # choices made ahead of their hosts -------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Chooses again what an earlier process chose and did not store."""
        for page in map(Url, self._store.note(CHOSEN_NOTE).split() if self._window else ()):
            hosts = [host.host_id for host in self._workable() if host.host == host_key(page)]
            if not (hosts and self._pick(hosts[0], (page,))):
                self._choices.append(_Choice(page, is_over=True))  # its turn comes all the same

    def _choose_ahead(self) -> None:
        """Stores answers in the order of choice; after each, the next pages are chosen by what it brought.

        So what a choice follows from does not depend on when answers came.
        """
        while True:
            picked: bool | None = not self._is_all_chosen
            while picked and len(self._choices) < self._window:
                picked = self._choose()
            self._is_all_chosen = picked is False
            if picked is None or not self._choices or not self._choices[0].is_over:
                return
            if (answer := self._choices.popleft().answer) is not None:
                self._done.append(answer)
            self._commit()
            self._is_all_chosen = False

    def _choose(self) -> bool | None:
        """Chooses a page, whenever its host may be asked. False: there is none; None: it is not known yet."""
        is_paused = not self._store.fair_share(self._clock.now())
        if not is_paused:
            if self._done:  # whose hosts would have to wait for it
                self._commit()
            busy = {choice.entry[0] for choice in self._choices}
            hosts = [host for host in self._workable() if host.host_id not in busy]
            for host_id in self._deps.policy.choose(hosts, len(hosts)):
                if self._pick(host_id):
                    return True
                if host_id in self._held and self._held[host_id].has_errand:
                    return None
                if self._store.budget_spent:
                    break
        if not self._choices:
            self._release(self._idle())
        return None if is_paused else False

    def _workable(self) -> list[ReadyHost]:
        """Hosts with work, as far as is known without asking for it."""
        held = [host.as_ready() for host in self._held.values() if not host.exhausted]
        return [*held, *self._store.ready(EVERY_HOST, math.inf, self._clock.now())]

    def _idle(self) -> list[HeldHost]:
        return [host for host in self._held.values() if host.is_quiet and not host.in_hand]

    def _pick(self, host_id: int, pages: Iterable[Url] | None = None) -> bool:
        """Chooses a page of the host: of `pages`, or as the policy says."""
        if host_id not in self._held:
            if len(self._held) >= self._deps.policy.most_held:
                self._release(self._idle())
            self._lease([host_id])
        host = self._held.get(host_id)
        if host is None or host.has_errand or not self._refill(host, pages):
            return False
        self._schedule(host)
        task = host.tasks[-1]
        if task.priority < 0:
            host.tasks.rotate()  # before its page, which may wait for others in turn
            return False
        self._choices.append(_Choice(task.request.url, (host_id, task.priority, task.seq)))
        return True

    def _run_errands(self) -> bool:
        """Has hosts asked for what others wait for, without a choice. False: there is no such host."""
        hosts = self._store.urgent([host.host_id for host in self._workable()])
        for host_id in hosts:
            self._pick(host_id)
        return bool(hosts)

    def _drop_choice(self, host: HeldHost) -> None:
        """What was chosen of the host is not asked for."""
        for choice in self._choices:
            choice.is_over |= choice.entry[0] == host.lease.host_id

    # hosts -----------------------------------------------------------------------------------------------------------

    def _lease_more(self) -> None:
        wall, now = self._clock.now(), self._clock.monotonic()
        if now - self._shared_at >= SHARE_S or len(self._held) <= FEW_HELD:
            self._shared_at = now
            self._share = self._fair_share(wall)
            self._give_back(len(self._held) - self._share)
        room = self._share - len(self._held)
        if room <= 0 and self._held:
            return
        ready = self._store.ready(EVERY_HOST if self._by_page else room * 4, HORIZON_S, wall)
        chosen = self._deps.policy.choose(ready, room) if ready else ()
        if chosen or not self._held:  # who holds nothing says that it is there: it is counted when hosts are shared out
            self._lease(chosen)

    def _lease(self, host_ids: Sequence[int]) -> None:
        leases = self._store.lease(self._name, host_ids, self._clock.now())
        # read after it: whatever delays us between the two, a host waits rather longer
        now = self._clock.monotonic()
        for lease in leases:
            self._hold(lease, now)

    def _fair_share(self, wall: float) -> int:
        """How many hosts to hold.

        Where a policy chooses among more than can be held, half as many in turn: so the worker gives some back, and
        leases those that are liked best of all.
        """
        hosts, most = self._store.fair_share(wall), self._deps.policy.most_held if self._by_page else MOST_HELD
        self._is_lean = self._by_page and hosts > most and not self._is_lean
        return most // 2 if self._is_lean else min(most, hosts)

    def _learn(self) -> None:
        """What was stored since the last time, by whichever worker, is told to a policy that chooses page by page."""
        policy = self._deps.policy
        if policy.window is not None:
            policy.learn(self._store.visits(policy.mark, texts=policy.reads_text))

    def _hold(self, lease: Lease, now: float) -> None:
        mine = self._deps.is_past or is_named(lease.host, self._deps.mine)
        # a Crawl-delay follows when the rules are known, before they let anything pass
        delay = delay_for(self._politeness, mine, None, is_folder=is_folder_host(lease.host))
        pace = Pace(delay, lease.rate, now + lease.wait_s, lease.strikes, lease.answered)
        host = HeldHost(
            lease, pace, mine, self._deps.detector(self._store.trap_memory(lease), _Past(self._store, lease))
        )
        self._held[lease.host_id] = host
        if self._rendering is not None:
            host.parts.extend(one for one in self._rendering.asked_of_host(lease.host) if one not in self._flights)
        self._schedule(host)

    def _schedule(self, host: HeldHost) -> None:
        """A host has one valid entry in the heap: its latest."""
        host.due_at = host.pace.not_before
        heapq.heappush(self._due, (host.due_at, host.lease.host_id))

    def _give_back(self, surplus: int) -> None:
        """Returns the hosts beyond our share, quiet ones at once and busy ones when what they have under way is stored;
        and, where others need the room, those that must wait long.

        The tasks of others that must wait go back: they count against the budget of pages.
        """
        late_at, hosts = self._clock.monotonic() + HORIZON_S, list(self._held.values())
        quiet, busy = surplus_hosts(hosts, surplus, late_at if len(hosts) >= MOST_HELD else math.inf)
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
        """Tasks taken and not stored: they count against max_pages until they are."""
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
        """Starts what may start; returns the seconds until the next host is due."""
        while self._due and self._due[0][0] <= now and self._transport.in_flight < self._politeness.concurrency:
            hosts = self._due_hosts(now)
            if not hosts and self._by_page:  # a host that the policy would rather not have asked now
                return TICK_S
            for host in hosts:
                self._serve(host, now)
                # the policy says who has a page in hand: not who waits for its robots.txt
                if host.tasks and self._by_page:
                    host.put_back()
                    self._commit_now = True  # what is in hand counts against the budget
        return (
            max(0.0, self._due[0][0] - now)
            if self._due and self._transport.in_flight < self._politeness.concurrency
            else TICK_S
        )

    def _due_hosts(self, now: float) -> Sequence[HeldHost]:
        """The host that is due longest; under a policy that chooses the host of each request, those it prefers."""
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
        chosen, others = preferred(due, self._deps.policy, self._politeness.concurrency - self._transport.in_flight)
        for host in others:
            self._schedule(host)
        return chosen

    def _serve(self, host: HeldHost, now: float) -> None:
        """One turn of a host that is due: starts one request, or finds out why it cannot."""
        most = self._politeness.per_host if host.mine else 1
        if (host.leaving and not host.parts) or host.in_flight >= most or host.side_in_flight:
            return  # its turn comes when something of it ends
        if self._window and not (host.tasks or host.side or host.parts or host.withheld):
            return  # or when a page of it is chosen
        if host.pace.delay_s and host.uncommitted and host.uncommitted + host.in_flight >= most:
            # so that a kill costs a host no more pages than it may have under way; without a delay, speed counts more
            self._commit()
            if self._held.get(host.lease.host_id) is not host:
                return
        request = self._next_request(host)
        if request is None:
            if host.given_up:
                host.put_back()
                self._drop_choice(host)
                # what waits for the origin is dropped; with what is left, if anything, it goes on
                host.exhausted = self._commit_now = True
                if self._sessions is not None:
                    for one in host.given_up:
                        self._sessions.given_up(one)
            elif not host.exhausted or host.pace.not_before > now:
                self._schedule(host)
            return
        # storing may have taken long; and a process that was stopped knows of it by this alone
        now = self._clock.monotonic()
        before = self._lease_end - self._settings.limits.total_timeout_s
        if now > before or self._store.failovers > self._successions:
            host.take_back(request)
            self._commit_now = True  # renews the lease, or tells that it is lost
            host.pace = suspended(host.pace, now + TICK_S, "lease")
            self._schedule(host)
            return
        at = self._deps.addresses.turn(host.lease.host, now)
        if at > now:
            host.take_back(request)
            host.pace = suspended(host.pace, at, "address")
            self._schedule(host)
            return
        self._transport.start(request, before)
        host.pace = started(host.pace, now)
        self._flights[request] = host
        if host.in_flight < most:
            self._schedule(host)

    def _next_request(self, host: HeldHost) -> Request | None:
        """The next request that the rules allow. Tasks that they do not allow end here, without a request."""
        while not host.given_up:
            if host.side:
                request = host.side.popleft()
                host.side_in_flight = True
                return request
            if host.parts:
                host.tasks.appendleft(Task(host.lease.host_id, PRIORITY_FIRST, 0, UrlId(0), host.parts.popleft()))
            if self._sessions is not None and not self._sessions.lets_pass(host):
                if host.parts:  # what it asks for itself
                    continue
                return None
            if not host.tasks and (self._window or not self._refill(host)):
                return None
            task = host.tasks.popleft()
            ruling: Outcome | None = _BROKEN
            with self._guard(host, task):
                ruling = (
                    (_CALL if task.seq and task.request.purpose in BESIDE else None)
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
                    self._put_off(host, task, ruling)
                case Skipped():
                    self._settle(host, task, Visit(task.request, self._clock.now(), 0.0, ruling))
        return None

    def _refill(self, host: HeldHost, pages: Iterable[Url] | None = None) -> bool:
        # many that needed no request: they are not gathered without end
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
            host.pace = suspended(host.pace, self._clock.monotonic() + later_s, host.pace.waits_for or "priority")
        elif host.in_flight == 0 and host.uncommitted:
            self._commit_now = True
        elif host.is_quiet and not host.tasks:
            self._release([host])
        return False

    def _put_off(self, host: HeldHost, task: Task, ruling: Skipped) -> None:
        """Moves what looks like a trap to the end of the to-do list: with nothing else left it may look otherwise."""
        priority, visit = max(PRIORITY_DOUBT, task.priority + 1), Visit(task.request, self._clock.now(), 0.0, ruling)
        self._finish(host, Completion(host.lease, task, visit, None, retry_priority=priority))

    # answers ---------------------------------------------------------------------------------------------------------

    def _arrive(self, response: Response) -> None:
        request = response.request
        host = self._flights.pop(request, None)
        if host is None:
            return
        if response.cause in _NO_ANSWER:
            self._deps.addresses.ended(host.lease.host, "")
            if self._held.get(host.lease.host_id) is not host:  # it was withdrawn
                return
            host.take_back(request)
            now = self._clock.monotonic()
            at, why = now - response.took_s + host.pace.gap_s, "delay"
            if response.cause is Cause.CANCELLED:  # the address that it led to is asked by others now
                at, why = self._deps.addresses.turn(host.lease.host, now), "address"
            host.pace = suspended(host.pace, at, why)
        else:
            self._take_in(host, response)
        if host.leaving and not host.in_flight:
            self._commit_now = True  # somebody waits for it
        self._schedule(host)

    def _take_in(self, host: HeldHost, response: Response) -> None:
        """An answer, or that none came: to the pace of its host, and to what the task was."""
        request = response.request
        task = host.in_flight_tasks.pop(request, None)
        if task is None:
            host.side_in_flight = False
        self._deps.addresses.ended(host.lease.host, response.address)
        with self._guard(host, task or Task(host.lease.host_id, 0, 0, UrlId(0), request)):
            visit = visit_of(response, self._settings.limits)
            log.debug(
                "visit url=%s outcome=%s took_s=%.3f", request.url, type(visit.outcome).__name__.lower(), visit.took_s
            )
            self._pace(host, visit)
            if self._sessions is not None:
                visit = self._sessions.opened(visit)
            if task is None:
                self._visits.append(visit)
            elif request.purpose not in BESIDE and (again := with_its_cookies(visit)) is not None:
                host.tasks.appendleft(replace(task, request=again))
                self._visits.append(visit)
            elif self._sessions is None or self._sessions.stands(host, task, visit):
                self._settle(host, task, visit)

    def _pace(self, host: HeldHost, visit: Visit) -> None:
        """What an answer means for its host.

        The delay counts from when the request was sent, not from when we wished to send it: connecting takes time, and
        two requests would reach the server sooner one after another than they left.
        """
        now = self._clock.monotonic()
        if self._deps.is_past:
            return
        if visit.request.purpose is Purpose.ROBOTS:
            self._robots_gate.arrived(host, visit)
        else:
            origin = origin_of(visit.request.url)
            pace = finished(host.pace_of(origin), visit, self._politeness, now)
            host.keep_pace(origin, pace)
            if given_up(pace, self._politeness):
                self._robots_gate.give_up(host, origin, Reason.HOST_DOWN, pace.waits_for)
        host.pace = suspended(host.pace, now - visit.took_s + host.pace.gap_s, host.pace.waits_for)

    @contextlib.contextmanager
    def _guard(self, host: HeldHost, task: Task) -> Iterator[None]:
        """The one place where any exception is caught: a bug of ours costs this page, is recorded,
        and the crawl goes on.
        """
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the guard, see above
            log.error("bug url=%s\n%s", task.request.url, traceback.format_exc())
            self._discovery.forget()  # what this page would have offered must be offered by others
            visit = Visit(task.request, self._clock.now(), 0.0, _BROKEN)
            if task.request.purpose in BESIDE and not task.seq:
                self._take_part(host, task, visit)
                return
            self._finish(host, bug(host.lease, task, visit, f"{type(error).__name__}: {error}"))

    def _ways_of_sessions(self) -> WaysOfHosts:
        def settle(host: HeldHost, task: Task, visit: Visit) -> None:
            with self._guard(host, task):
                self._settle(host, task, visit)

        def refill(host: HeldHost) -> bool:
            return not self._window and self._refill(host)  # nothing beside what was chosen

        return WaysOfHosts(self._host_of, refill, self._schedule, self._call, settle)

    def _settle(self, host: HeldHost, task: Task, visit: Visit) -> None:
        request = task.request
        if request.purpose is Purpose.ROBOTS:  # the robots gate decides whether it is asked for again
            self._finish(host, Completion(host.lease, task, visit, reason_of(visit.outcome)))
            return
        if request.purpose in BESIDE:
            self._take_part(host, task, visit)
            return
        visit = recognised(task, visit)
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
        """A page that was read: to what learns from it, and to be stored."""
        request, task = read.visit.request, read.task
        if task.recheck and (read.document or read.candidates):
            stored = self._store.shown(read.lease, task.url_id)
            read = with_stored_sessions(read, stored, lambda target: host.traps.admit(target, 0))
            read = second_look(read, stored, self._first_answers)
            if read.retry_in_s:
                self._discovery.forget()  # what this answer would have offered the next one offers
                self._finish(host, read)
                return
        is_redirect = isinstance(read.visit.outcome, Redirected) and bool(read.candidates)
        if (read.document is not None or is_redirect) and not task.recheck:  # a page seen before teaches nothing new
            if read.document is not None:
                self._deps.aliases.learn(request.url, read.document)
                lesson = host.traps.learn(request.url, task.doubt, read.document, read.candidates)
            else:
                lesson = host.traps.redirected(request.url, task.doubt, read.candidates)
            if lesson.candidates is not read.candidates or lesson.vouched_for:
                read = replace(read, candidates=(*lesson.candidates, *self._discovery.vouched(lesson.vouched_for)))
            if lesson.fresh:
                host.fresh = (True, host.fresh[1])
        self._finish(host, completion_of(read, self._politeness))

    # rendering -------------------------------------------------------------------------------------------------------

    def _begin_rendering(
        self, rendering: PageRendering, host: HeldHost, task: Task, visit: Visit, links: tuple[Candidate, ...] = ()
    ) -> None:
        host.rendering += 1
        rendering.begin(host, task, visit, links)

    def _render(self, rendering: PageRendering) -> None:
        """Takes the pages that are rendered, and has asked for what the others need."""
        for host, task, completion in rendering.advance():
            host.rendering -= 1
            with self._guard(host, task):
                self._conclude(host, completion(self._discovery))
            if host.due_at is None:
                self._schedule(host)
        for request in rendering.requests():
            held = self._host_of(host_key(request.url))
            if held is None:
                self._call(request)
            else:
                held.parts.append(request)
                self._schedule(held)
        self._transport.attend(rendering.fds)

    def _until_rendering(self) -> float:
        """Seconds that the loop may sleep while a page is rendered, whose quiet nobody announces."""
        return RENDER_TICK_S if self._rendering is not None and self._rendering.is_busy else TICK_S

    def _call(self, request: Request) -> None:
        """Has the host of a page's or a session's own request leased: by an entry in its to-do list, before all others.

        A list holds no header fields and no secrets: so the entry is none that is asked for, but a sign that one is.
        """
        root = canonical(origin_of(request.url) + "/")
        site = self._deps.scope.site_of(request.url)
        self._calls.append(SideRequest(host_key(root), site, Request(root, request.purpose), PRIORITY_FIRST))
        self._commit_now = True

    def _host_of(self, key: HostKey) -> HeldHost | None:
        return next((host for host in self._held.values() if host.lease.host == key), None)

    def _refuse_parts(self, host: HeldHost) -> None:
        """What rendered pages want of an origin that is given up does not come."""
        if self._rendering is None:
            return
        for one in host.given_up:
            for request in self._rendering.asked_of(one.origin):
                host.drop_part(request)
                skipped = Visit(request, self._clock.now(), 0.0, Skipped(one.reason, one.rule))
                self._visits.append(skipped)
                self._rendering.answer(skipped)

    def _take_part(self, host: HeldHost, task: Task, visit: Visit) -> None:
        """The answer to a page's or a session's own request, or why there is none."""
        if task.seq:  # it was taken from a list, and has brought its host here
            self._finish(host, Completion(host.lease, task, visit, reason_of(visit.outcome)))
        elif task.request.purpose is Purpose.LOGIN:  # of what is asked to sign in nothing is stored
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
                if completion.retry_in_s:  # the host waits, not its entry: it may be chosen at any time
                    now = self._clock.monotonic()
                    host.pace = suspended(host.pace, now + completion.retry_in_s, "further attempt")
                choice.answer, choice.is_over = replace(completion, retry_in_s=0.0), True
                return
        self._done.append(completion)

    # storing ---------------------------------------------------------------------------------------------------------

    def _commit_if_due(self) -> bool:
        waited = self._clock.monotonic() - self._committed_at
        has_news = bool(self._done or self._held)  # a lease too must be renewed
        due = (
            self._commit_now
            or self._store.failovers > self._successions
            or len(self._done) >= self._storage.commit_pages
            or (waited >= self._storage.commit_interval_s and has_news)
        )
        if due:
            self._commit()
        return due

    def _until_commit(self) -> float:
        """Seconds that the loop may sleep: what was fetched must be stored in time, for hosts may wait for it."""
        left = self._committed_at + self._storage.commit_interval_s - self._clock.monotonic()
        return min(TICK_S, max(0.0, left)) if self._done else TICK_S

    def _commit(self, *, release: bool = False) -> None:
        """One transaction; then the hosts that waited for it go on."""
        now = self._clock.monotonic()
        robots, side_requests = self._robots_gate.collect()
        done, visits, self._done, self._visits = self._done, self._visits, [], []
        side_requests += tuple(self._calls)
        self._calls.clear()
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
        batch = Batch(
            tuple(done),
            states,
            robots,
            side_requests,
            tuple(visits),
            self._in_hand(),
            self._deps.aliases.collect(),
            chosen,
        )
        failovers = self._store.failovers  # one that comes later is for the next commit to tell of
        lost = self._store.commit(self._name, batch, self._clock.now())
        self._committed_at, self._commit_now = self._clock.monotonic(), False
        self._lease_end = now + self._storage.lease_s
        if lost:  # a request that was started before may still be unsent, after a commit that took long
            self._transport.withdraw({request for request, host in self._flights.items() if host.lease in lost})
        for lease in lost | {host.lease for host in gone}:
            if (held := self._held.get(lease.host_id)) is not None and held.lease.epoch == lease.epoch:
                del self._held[lease.host_id]
                self._drop_choice(held)
        if lost or failovers > self._successions:
            self._successions = failovers
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
