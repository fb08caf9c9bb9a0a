"""The crawl loop of one process: lease hosts, start due requests, read responses, commit them in batches.

No threads and no coroutines: one loop over libcurl's sockets. Hosts that wait are (time, host) entries in a heap.
Invariants:  (1) a request starts only if the host's lease outlasts the request's time limit;  (2) a host has at most
per_host requests in flight, and none starts before its pace allows. See `leases` for leases and commits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import islice

from periplus.acquire.answers import Answers
from periplus.acquire.choosing import PagesAhead
from periplus.acquire.leases import TICK_S, Commits, Leases, WorkerDeps
from periplus.acquire.politeness import HeldHost, prefer, start_request, suspend
from periplus.model.frontier import PRIORITY_DOUBT, PRIORITY_FIRST, Completion, Task
from periplus.model.visit import BESIDE, Cause, Failed, Outcome, Reason, Request, Skipped, Visit
from periplus.model.web import UrlId
from periplus.settings import Settings

# Outcome of a placeholder task, which only makes a worker lease the host. The renderer or the login session supplies
# the real request (see `Leases`).
_LEASE_ONLY = Skipped(Reason.SCOPE, "its host is leased for it")
_FAILED_RULING = Failed(Cause.BUG)  # a rule raised an exception: the guard has ended the task
RENDER_TICK_S = 0.05  # how often pages in browsers are polled: browsers do not report idle pages
DRAIN_S = 5.0  # how long a stopping worker waits for requests in flight


class Worker:
    """One worker. `run` returns when no work is left, when `tick` asks to stop, or when the budget is spent."""

    def __init__(self, deps: WorkerDeps, settings: Settings) -> None:
        self._deps, self._settings = deps, settings
        self._store, self._transport, self._clock = deps.store, deps.transport, deps.clock
        self._commits = Commits(deps, settings)
        self._hosts = self._commits.hosts
        self._leases = Leases(deps, settings, self._commits)
        self._answers = Answers(deps, settings, self._commits, self._leases)
        self._ahead = PagesAhead(deps, self._commits, self._leases) if deps.policy.window else None
        self._by_page = deps.policy.window == 0  # the policy chooses the host of each request

    def run(self, tick: Callable[[], bool]) -> None:
        """tick: called at most once per TICK_S; True asks to stop."""
        self._commits.lease_end = self._clock.monotonic() + self._settings.storage.lease_s
        self._commits.worker = self._store.join(os.getpid(), self._clock.now())
        try:
            if self._ahead is not None:
                self._ahead.restore()
            self._loop(tick)
            self._drain()
        finally:
            self._commits.commit(release=True)
            self._store.leave(self._commits.worker, self._clock.now())

    def _loop(self, tick: Callable[[], bool]) -> None:
        tick_at, rendering = 0.0, self._answers.rendering
        while True:
            now = self._clock.monotonic()
            if now >= tick_at:
                tick_at = now + TICK_S
                if tick() or (self._answers.sessions is not None and self._answers.sessions.failure):
                    return
                self._commits.learn()
                if self._ahead is not None:
                    self._ahead.run_errands()
                else:
                    self._leases.lease_more()
            if self._ahead is not None:
                self._ahead.advance()
            elif self._by_page:  # the next choice may depend on the last result
                self._commits.commit_if_due()
            pause = self._start_due(now)
            if self._commits.commit_if_due():
                pause = 0.0  # hosts that waited for the commit continue
            if self._is_finished():
                return
            if rendering.is_busy:
                pause = min(pause, RENDER_TICK_S)
            for response in self._transport.wait(min(pause, self._commits.wait_s())):
                self._answers.receive(response)
                self._commits.commit_if_due()  # reading many responses may take seconds
            rendering.run(self._answers)

    def _is_finished(self) -> bool:
        commits = self._commits
        if self._hosts.flights or commits.done or commits.choices or self._answers.rendering.is_busy:
            return False
        return self._store.budget_spent or (not self._hosts.by_id and self._store.idle(self._clock.now()))

    def _drain(self) -> None:
        """Waits up to DRAIN_S for requests in flight, so that their responses are not lost."""
        deadline = self._clock.monotonic() + DRAIN_S
        while self._hosts.flights and self._clock.monotonic() < deadline:
            for response in self._transport.wait(deadline - self._clock.monotonic()):
                self._answers.receive(response)
        if self._ahead is not None:
            self._ahead.advance()

    def _start_due(self, now: float) -> float:
        """Starts requests of due hosts; returns the seconds until the next host is due."""
        most = self._settings.politeness.concurrency
        while self._hosts.next_due_at <= now and self._transport.in_flight < most:
            hosts = self._due_hosts(now)
            if not hosts and self._by_page:  # the policy prefers to wait for other hosts
                return TICK_S
            for host in hosts:
                self._serve(host, now)
                # the policy decides which hosts hold a page; a host that waits for its robots.txt does not
                if host.tasks and self._by_page:
                    host.put_back()
                    self._commits.is_urgent = True  # tasks in hand count against the budget
        return max(0.0, self._hosts.next_due_at - now) if self._transport.in_flight < most else TICK_S

    def _due_hosts(self, now: float) -> Sequence[HeldHost]:
        """The host that has been due longest; under a page-level policy, the hosts that it prefers."""
        due = self._hosts.pop_due(now)
        if not self._by_page:
            return list(islice(due, 1))
        hosts = list(due)
        if not hosts:
            return hosts
        room = self._settings.politeness.concurrency - self._transport.in_flight
        chosen, others = prefer(hosts, self._deps.policy, room)
        for host in others:
            self._hosts.schedule(host)
        return chosen

    def _serve(self, host: HeldHost, now: float) -> None:
        """Starts one request of a due host, or schedules the host for later."""
        most = self._settings.politeness.per_host if host.mine else 1
        if (host.leaving and not host.parts) or host.in_flight >= most or host.side_in_flight:
            return  # at its request limit; rescheduled when a request finishes
        if self._ahead is not None and not (host.tasks or host.side or host.parts or host.withheld):
            return  # rescheduled when one of its pages is chosen
        if host.pace.delay_s and host.uncommitted and host.uncommitted + host.in_flight >= most:
            # a kill then repeats at most `most` requests to the host; without a delay, speed matters more
            self._commits.commit()
            if not self._hosts.holds(host):
                return
        request = self._next_request(host)
        if request is None:
            if host.given_up:
                self._give_up(host)
            elif not host.exhausted or host.pace.not_before > now:
                self._hosts.schedule(host)
            return
        # the commit may have been slow, or the process may have been suspended: check the lease again
        now = self._clock.monotonic()
        before = self._commits.lease_end - self._settings.limits.total_timeout_s
        if now > before or self._commits.may_have_lost:
            self._commits.is_urgent = True  # renews the lease, or reports its loss
            self._put_off(host, request, now + TICK_S, "lease")
        elif (at := self._deps.addresses.turn(host.lease.host, now)) > now:
            self._put_off(host, request, at, "address")
        else:
            self._transport.start(request, before)
            host.pace = start_request(host.pace, now)
            self._hosts.flights[request] = host
            if host.in_flight < most:
                self._hosts.schedule(host)

    def _put_off(self, host: HeldHost, request: Request, until: float, why: str) -> None:
        host.take_back(request)
        host.pace = suspend(host.pace, until, why)
        self._hosts.schedule(host)

    def _give_up(self, host: HeldHost) -> None:
        """Ends the requests to origins that were given up."""
        host.put_back()
        self._commits.drop_choices(host)
        # the commit drops the origin's tasks; the host continues with its other origins
        host.exhausted = self._commits.is_urgent = True
        if self._answers.sessions is not None:
            for origin in host.given_up:
                self._answers.sessions.given_up(origin)

    def _next_request(self, host: HeldHost) -> Request | None:
        """The next request that the rules allow, or None. Tasks that are not allowed end here, without a request."""
        sessions = self._answers.sessions
        while not host.given_up:
            if host.side:
                request = host.side.popleft()
                host.side_in_flight = True
                return request
            if host.parts:
                host.tasks.appendleft(Task(host.lease.host_id, PRIORITY_FIRST, 0, UrlId(0), host.parts.popleft()))
            if sessions is not None and not sessions.admits(host):
                if host.parts:  # the session's own request
                    continue
                return None
            if not host.tasks and (self._ahead is not None or not self._leases.refill(host)):
                return None
            task = host.tasks.popleft()
            ruling: Outcome | None = _FAILED_RULING
            with self._answers.guard(host, task):
                ruling = self._ruling(host, task)
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
                    self._answers.settle(host, task, Visit(task.request, self._clock.now(), 0.0, ruling))
        return None

    def _ruling(self, host: HeldHost, task: Task) -> Skipped | None:
        """The decision of the rules on a task, as `RobotsGate.ruling` returns it."""
        return (
            (_LEASE_ONLY if task.seq and task.request.purpose in BESIDE else None)
            or (self._answers.sessions.ruling(task) if self._answers.sessions is not None else None)
            or self._deps.aliases.ruling(task)
            or self._commits.discovery.ruling(task)
            or self._commits.gate.ruling(host, task)
        )

    def _postpone(self, host: HeldHost, task: Task, ruling: Skipped) -> None:
        """Moves a URL that looks like a trap to the end of the to-do list; it is judged again there."""
        priority, visit = max(PRIORITY_DOUBT, task.priority + 1), Visit(task.request, self._clock.now(), 0.0, ruling)
        self._commits.finish(host, Completion(host.lease, task, visit, None, retry_priority=priority))
