"""Reads the answers of a worker's requests: pace of the host, session, rendering, document, and the result to commit.

Invariant: a bug loses the page that it occurred on and no other.
"""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Iterator
from dataclasses import replace

from periplus.acquire.discovery import HostCallbacks, LoginGate, PageRenderer
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
from periplus.acquire.leases import Commits, Leases, WorkerDeps
from periplus.acquire.politeness import HeldHost, finish_request, given_up, suspend
from periplus.model.frontier import Completion, Task
from periplus.model.ports import Response, Transport
from periplus.model.visit import BESIDE, CHECKS, Cause, Failed, Purpose, Reason, Redirected, Visit
from periplus.model.web import UrlId
from periplus.settings import Settings
from periplus.urls.hosts import host_key, origin_of

log = logging.getLogger(__name__)
_NO_ANSWER = frozenset({Cause.CANCELLED, Cause.STALE})  # not a failure either: the request is started again


class RenderingTurn:
    """The pages of a worker that are in a browser. renderer: None if pages are read as sent."""

    def __init__(self, renderer: PageRenderer | None, commits: Commits, transport: Transport) -> None:
        self._renderer, self._commits, self._transport = renderer, commits, transport

    @property
    def is_busy(self) -> bool:
        return self._renderer is not None and self._renderer.is_busy

    def takes(self, host: HeldHost, task: Task, visit: Visit, read: Completion | None = None) -> bool:
        """Puts a page into the browser, if it must be rendered. read: the page as sent, once it was read."""
        renderer = self._renderer
        if renderer is None or not (renderer.wants(visit) if read is None else renderer.needs(read)):
            return False
        host.rendering += 1
        renderer.begin(host, task, visit, () if read is None else read.candidates)
        return True

    def answer(self, visit: Visit) -> None:
        """Passes the outcome of a renderer's own request to it."""
        if self._renderer is not None:
            self._renderer.answer(visit)
            self._commits.visits.append(visit)

    def run(self, answers: Answers) -> None:
        """Reads the pages that were rendered, and queues the requests of those that are being rendered."""
        if self._renderer is None:
            return
        hosts = self._commits.hosts
        for host, task, completion in self._renderer.advance():
            host.rendering -= 1
            with answers.guard(host, task):
                answers.conclude(host, completion(self._commits.discovery))
            if host.due_at is None:
                hosts.schedule(host)
        for request in self._renderer.requests():
            held = hosts.by_key(host_key(request.url))
            if held is None:
                self._commits.request_lease(request)
            else:
                held.parts.append(request)
                hosts.schedule(held)
        self._transport.attend(self._renderer.fds)


class Answers:
    """The answers of one worker, from the response to the result."""

    def __init__(self, deps: WorkerDeps, settings: Settings, commits: Commits, leases: Leases) -> None:
        self._deps, self._settings, self._clock = deps, settings, deps.clock
        self._commits, self._leases, self._hosts = commits, leases, commits.hosts
        self._discovery = commits.discovery
        self._first: FirstAnswers = {}
        self.rendering = RenderingTurn(deps.rendering, commits, deps.transport)
        self.sessions: LoginGate | None = None
        if deps.sign_in is not None:
            self.sessions = deps.sign_in(self._hosts.by_id, self._host_callbacks())

    def _host_callbacks(self) -> HostCallbacks:
        def settle(host: HeldHost, task: Task, visit: Visit) -> None:
            with self.guard(host, task):
                self.settle(host, task, visit)

        def refill(host: HeldHost) -> bool:
            return not self._deps.policy.window and self._leases.refill(host)  # only chosen pages are fetched

        return HostCallbacks(self._hosts.by_key, refill, self._hosts.schedule, self._commits.request_lease, settle)

    def receive(self, response: Response) -> None:
        request = response.request
        host = self._hosts.flights.pop(request, None)
        if host is None:
            return
        if response.cause in _NO_ANSWER:
            self._deps.addresses.end_turn(host.lease.host, "")
            if not self._hosts.holds(host):  # it was withdrawn
                return
            host.take_back(request)
            now = self._clock.monotonic()
            at, why = now - response.took_s + host.pace.gap_s, "delay"
            if response.cause is Cause.CANCELLED:  # other hosts use the address that its name resolved to
                at, why = self._deps.addresses.turn(host.lease.host, now), "address"
            host.pace = suspend(host.pace, at, why)
        else:
            self._read(host, response)
        if host.leaving and not host.in_flight:
            self._commits.is_urgent = True  # another worker waits for the host
        self._hosts.schedule(host)

    def _read(self, host: HeldHost, response: Response) -> None:
        """Updates the host's pace by a response or failure, and passes the visit on by its purpose."""
        request = response.request
        task = host.in_flight_tasks.pop(request, None)
        if task is None:
            host.side_in_flight = False
        self._deps.addresses.end_turn(host.lease.host, response.address)
        with self.guard(host, task or Task(host.lease.host_id, 0, 0, UrlId(0), request)):
            visit = visit_of(response, self._settings.limits)
            log.debug(
                "visit url=%s outcome=%s took_s=%.3f", request.url, type(visit.outcome).__name__.lower(), visit.took_s
            )
            self._pace(host, visit)
            if self.sessions is not None:
                visit = self.sessions.store_cookies(visit)
            if task is None:
                self._commits.visits.append(visit)
            elif request.purpose not in BESIDE and (again := with_cookies(visit)) is not None:
                host.tasks.appendleft(replace(task, request=again))
                self._commits.visits.append(visit)
            elif self.sessions is None or self.sessions.accepts(host, task, visit):
                self.settle(host, task, visit)

    def _pace(self, host: HeldHost, visit: Visit) -> None:
        """Updates the host's pace and failure count.

        The delay counts from when the request was sent, not from when it was started: connecting takes time, so two
        requests would otherwise reach the server closer together than the delay.
        """
        now, politeness = self._clock.monotonic(), self._settings.politeness
        if self._deps.is_past:
            return
        if visit.request.purpose is Purpose.ROBOTS:
            self._commits.gate.process_answer(host, visit)
        else:
            origin = origin_of(visit.request.url)
            pace = finish_request(host.pace_of(origin), visit, politeness, now)
            host.keep_pace(origin, pace)
            if given_up(pace, politeness):
                why = Reason.BOT_WALL if pace.waits_for == Reason.BOT_WALL else Reason.HOST_DOWN
                self._commits.gate.give_up(host, origin, why, pace.waits_for)
        host.pace = suspend(host.pace, now - visit.took_s + host.pace.gap_s, host.pace.waits_for)

    @contextlib.contextmanager
    def guard(self, host: HeldHost, task: Task) -> Iterator[None]:
        """The only place that catches every exception: records a bug as the page's outcome; the crawl continues."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the guard, see above
            log.error("bug url=%s\n%s", task.request.url, traceback.format_exc())
            self._discovery.forget()  # other pages must offer this page's links again
            visit = Visit(task.request, self._clock.now(), 0.0, Failed(Cause.BUG))
            if task.request.purpose in BESIDE and not task.seq:
                self._deliver_part(host, task, visit)
                return
            self._commits.finish(host, bug(host.lease, task, visit, f"{type(error).__name__}: {error}"))

    def settle(self, host: HeldHost, task: Task, visit: Visit) -> None:
        """Ends a task by its visit, or starts the rendering of its page."""
        request = task.request
        if request.purpose is Purpose.ROBOTS:  # the robots gate decides about retries
            self._commits.finish(host, Completion(host.lease, task, visit, reason_of(visit.outcome)))
            return
        if request.purpose in BESIDE:
            self._deliver_part(host, task, visit)
            return
        visit = compare_with_stored(task, visit)
        if request.purpose in CHECKS:
            self._commits.finish(host, check_of(host.lease, task, visit, self._settings))
            return
        if self.rendering.takes(host, task, visit):
            return
        read = self._discovery.of(host.lease, task, visit)
        if not self.rendering.takes(host, task, visit, read):
            self.conclude(host, read)

    def conclude(self, host: HeldHost, read: Completion) -> None:
        """Feeds a page to alias and trap detection, and adds it to the next commit."""
        request, task = read.visit.request, read.task
        if task.recheck and (read.document or read.candidates):
            stored = self._deps.store.stored_content(read.lease, task.url_id)
            read = with_stored_sessions(read, stored, lambda target: host.traps.admit(target, 0))
            read = second_look(read, stored, self._first)
            if read.retry_in_s:
                self._discovery.forget()  # the next answer must offer its links again
                self._commits.finish(host, read)
                return
        is_redirect = isinstance(read.visit.outcome, Redirected) and bool(read.candidates)
        if (read.document is not None or is_redirect) and not task.recheck:  # a refreshed page was learned from before
            if read.document is not None:
                self._deps.aliases.learn(request.url, read.document)
                lesson = host.traps.learn(request.url, task.doubt, read.document, read.candidates)
            else:
                lesson = host.traps.record_redirect(request.url, task.doubt, read.candidates)
            if lesson.candidates is not read.candidates or lesson.confirmed_urls:
                confirmed = (self._discovery.candidate(url, None) for url in lesson.confirmed_urls)
                read = replace(read, candidates=(*lesson.candidates, *confirmed))
            if lesson.fresh:
                host.fresh = (True, host.fresh[1])
        self._commits.finish(host, completion_of(read, self._settings.politeness))

    def _deliver_part(self, host: HeldHost, task: Task, visit: Visit) -> None:
        """Passes the outcome of a renderer's or session's own request to it."""
        if task.seq:  # a placeholder task from the to-do list: the host is leased now
            self._commits.finish(host, Completion(host.lease, task, visit, reason_of(visit.outcome)))
        elif task.request.purpose is Purpose.LOGIN:  # never stored
            if self.sessions is not None:
                self.sessions.take(visit)
        else:
            self.rendering.answer(visit)
