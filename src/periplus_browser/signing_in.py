"""Schedules the requests of login sessions among a worker's hosts, and withholds pages that may be signed-out views."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from periplus.acquire.discovery import HostCallbacks
from periplus.acquire.politeness import HeldHost, suspend
from periplus.model.frontier import GivenUp, Task
from periplus.model.ports import Clock
from periplus.model.visit import Purpose, Request, Skipped, Visit
from periplus.urls.hosts import host_key
from periplus_browser.session import MOST_WITHHELD, LoginSession, LoginSessions, PageVerdict, Withheld

NO_HOST = -1  # in place of a host's id: a placeholder task asks for the host's lease
LOOK_S = 0.25  # how often a host that waits for its session is rescheduled
LIST_AGAIN_S = 30.0  # a requested lease arrives within one or two commits, of half a second each
MOST_LISTED_S = 1800.0  # the host may wait for its Retry-After; after this time the crawl ends with an error


class SigningIn:
    """Sessions among the hosts of one worker. held: the worker's hosts by id; it changes as hosts are leased."""

    def __init__(
        self, sessions: LoginSessions, clock: Clock, held: Mapping[int, HeldHost], callbacks: HostCallbacks
    ) -> None:
        self._sessions, self._clock, self._held, self._hosts = sessions, clock, held, callbacks
        self.ruling: Callable[[Task], Skipped | None] = sessions.ruling
        self.store_cookies: Callable[[Visit], Visit] = sessions.store_cookies
        self.given_up: Callable[[GivenUp], None] = sessions.given_up

    @property
    def failure(self) -> str:
        return self._sessions.failure

    def admits(self, host: HeldHost) -> bool:
        """Whether the host's next task may be requested.

        If not, the host waits, or its `parts` hold its session's request.
        """
        session = self._sessions.of_host(host.lease.host)
        if session is None or (host.tasks and host.tasks[0].request.purpose is Purpose.LOGIN):
            return True
        now = self._clock.monotonic()
        if session.is_in:
            has_doubt = session.is_doubted or len(session.withheld) >= MOST_WITHHELD
            if not has_doubt and (not session.withheld or host.tasks or self._hosts.refill(host) or host.in_flight):
                return True  # the next page may confirm that the withheld ones are valid
            session.begin_probe()
        elif session.step is None and now >= session.not_before and not session.failure:
            if not session.withheld and not host.tasks and not self._hosts.refill(host):
                return False  # no sign-in where there is no page to fetch
            session.begin_again()
        self._hand_over(session)
        if not host.parts:
            host.pace = suspend(host.pace, now + LOOK_S, "login")
        return False

    def _hand_over(self, session: LoginSession) -> None:
        """Passes a session's request to its host; requests the host's lease if it is not held."""
        if session.step is None or session.carrier in self._held:
            return
        if (carrier := self._hosts.held_host(host_key(session.step.url))) is not None:
            session.carrier = carrier.lease.host_id
            carrier.parts.append(session.step)
            self._hosts.schedule(carrier)
        elif session.carrier == NO_HOST:
            self._list_again(session, session.step)
        else:
            if session.step.body:  # the host was lost: the form may have been sent, and its token is valid once
                session.begin()
            session.carrier = NO_HOST
            session.listed_at = session.first_listed_at = self._clock.monotonic()
            self._hosts.request_lease(session.step)

    def _list_again(self, session: LoginSession, step: Request) -> None:
        """Repeats a placeholder task that led to no lease; fails the session after MOST_LISTED_S."""
        now = self._clock.monotonic()
        if now - session.first_listed_at > MOST_LISTED_S:
            session.failure = f"{session.login}: {step.url} could not be requested in {MOST_LISTED_S / 60:.0f} minutes"
        elif now - session.listed_at > LIST_AGAIN_S:
            session.listed_at = now
            self._hosts.request_lease(step)

    def take(self, visit: Visit) -> None:
        """Processes the outcome of a session's own request."""
        session = self._sessions.take(visit)
        if session is None:
            return
        if not session.is_in:
            self._hand_over(session)
            return
        accepted, retried = self._sessions.end_of_doubt(session)
        for page in accepted:
            self._release(page)
        for page in retried:
            page.host.withheld -= 1
            self._retry(session, page)

    def accepts(self, host: HeldHost, task: Task, visit: Visit) -> bool:
        """Whether a page may be stored now. If not, it is withheld or requested again."""
        verdict, confirmed = self._sessions.judge(host, task, visit)
        for page in confirmed:
            self._release(page)
        session = self._sessions.of_url(visit.request.url)
        if verdict is PageVerdict.WITHHOLD:
            host.withheld += 1
        elif verdict is PageVerdict.RETRY and session is not None:
            self._retry(session, Withheld(host, task, visit))
        return verdict is PageVerdict.ACCEPT

    def _release(self, page: Withheld) -> None:
        page.host.withheld -= 1
        if self._is_held(page.host):
            self._hosts.settle(page.host, page.task, page.visit)
            self._hosts.schedule(page.host)

    def _retry(self, session: LoginSession, page: Withheld) -> None:
        if not self._is_held(page.host):
            return  # the task is still in the store's to-do list
        if (refusal := self._sessions.refusal_of(session, page.task)) is not None:
            self._hosts.settle(page.host, page.task, refusal)
        else:
            page.host.tasks.appendleft(page.task)
        self._hosts.schedule(page.host)

    def _is_held(self, host: HeldHost) -> bool:
        return self._held.get(host.lease.host_id) is host
