"""Has the sessions of a worker ask between the pages of their hosts, and keeps back what may be made for strangers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from periplus.acquire.politeness import HeldHost, suspended
from periplus.acquire.session import MOST_WITHHELD, LoginSession, LoginSessions, Standing, Withheld
from periplus.model.frontier import GivenUp, Task
from periplus.model.ports import Clock
from periplus.model.visit import Purpose, Request, Skipped, Visit
from periplus.model.web import HostKey
from periplus.urls.hosts import host_key

LISTED = -1  # in place of a host's id: an entry in its to-do list has it leased
LOOK_S = 0.25  # how often a host that waits for its session looks
LIST_AGAIN_S = 30.0  # a host that was called to hold is held within one or two commits, of half a second each
MOST_LISTED_S = (
    1800.0  # in which the host may wait for its Retry-After; then the crawl ends, and says for what it waits
)


class WaysOfHosts(NamedTuple):
    """What a worker does with its hosts."""

    of_key: Callable[[HostKey], HeldHost | None]
    refill: Callable[[HeldHost], bool]  # takes tasks; False: there is none
    schedule: Callable[[HeldHost], None]
    call: Callable[[Request], None]  # has a host leased that is not held
    settle: Callable[[HeldHost, Task, Visit], None]


class SigningIn:
    """Sessions among the hosts of one worker. held: its hosts, by id, as they come and go."""

    def __init__(self, sessions: LoginSessions, clock: Clock, held: Mapping[int, HeldHost], ways: WaysOfHosts) -> None:
        self._sessions, self._clock, self._held, self._ways = sessions, clock, held, ways
        self.ruling: Callable[[Task], Skipped | None] = sessions.ruling
        self.opened: Callable[[Visit], Visit] = sessions.opened
        self.given_up: Callable[[GivenUp], None] = sessions.given_up

    @property
    def failure(self) -> str:
        return self._sessions.failure

    def lets_pass(self, host: HeldHost) -> bool:
        """Whether the host's next task may be asked for. If not, it waits, or its session's request is in its parts."""
        session = self._sessions.of_host(host.lease.host)
        if session is None or (host.tasks and host.tasks[0].request.purpose is Purpose.LOGIN):
            return True
        now = self._clock.monotonic()
        if session.is_in:
            has_doubt = session.is_doubted or len(session.withheld) >= MOST_WITHHELD
            if not has_doubt and (not session.withheld or host.tasks or self._ways.refill(host) or host.in_flight):
                return True  # another page may vouch for those that are withheld
            session.begin_probe()
        elif session.step is None and now >= session.not_before and not session.failure:
            if not session.withheld and not host.tasks and not self._ways.refill(host):
                return False  # nobody signs in where nothing is to be asked for
            session.begin_again()
        self._hand_over(session)
        if not host.parts:
            host.pace = suspended(host.pace, now + LOOK_S, "login")
        return False

    def _hand_over(self, session: LoginSession) -> None:
        """Gives a session's request to the host that it is for; where that is not held, has it leased."""
        if session.step is None or session.carrier in self._held:
            return
        if (carrier := self._ways.of_key(host_key(session.step.url))) is not None:
            session.carrier = carrier.lease.host_id
            carrier.parts.append(session.step)
            self._ways.schedule(carrier)
        elif session.carrier == LISTED:
            self._list_again(session, session.step)
        else:
            if (
                session.step.body
            ):  # the host was lost with it: nobody knows whether it was sent, and its token holds once
                session.begin()
            session.carrier = LISTED
            session.listed_at = session.first_listed_at = self._clock.monotonic()
            self._ways.call(session.step)

    def _list_again(self, session: LoginSession, step: Request) -> None:
        """An entry that leads to no lease is made anew, where it stands already without effect; not for ever."""
        now = self._clock.monotonic()
        if now - session.first_listed_at > MOST_LISTED_S:
            session.failure = f"{session.login}: {step.url} was not asked for in {MOST_LISTED_S / 60:.0f} minutes"
        elif now - session.listed_at > LIST_AGAIN_S:
            session.listed_at = now
            self._ways.call(step)

    def take(self, visit: Visit) -> None:
        """The answer to a session's own request, or why there is none."""
        session = self._sessions.take(visit)
        if session is None:
            return
        if not session.is_in:
            self._hand_over(session)
            return
        standing, again = self._sessions.end_of_doubt(session)
        for one in standing:
            self._release(one)
        for one in again:
            one.host.withheld -= 1
            self._ask_again(session, one)

    def stands(self, host: HeldHost, task: Task, visit: Visit) -> bool:
        """Whether a page may be stored now. Else it is withheld, or asked for again."""
        standing, vouched = self._sessions.standing(host, task, visit)
        for one in vouched:
            self._release(one)
        session = self._sessions.of_url(visit.request.url)
        if standing is Standing.WITHHELD:
            host.withheld += 1
        elif standing is Standing.AGAIN and session is not None:
            self._ask_again(session, Withheld(host, task, visit))
        return standing is Standing.STANDS

    def _release(self, one: Withheld) -> None:
        one.host.withheld -= 1
        if self._is_held(one.host):
            self._ways.settle(one.host, one.task, one.visit)
            self._ways.schedule(one.host)

    def _ask_again(self, session: LoginSession, one: Withheld) -> None:
        if not self._is_held(one.host):
            return  # it waits in the store
        if (refusal := self._sessions.asked_too_often(session, one.task)) is not None:
            self._ways.settle(one.host, one.task, refusal)
        else:
            one.host.tasks.appendleft(one.task)
        self._ways.schedule(one.host)

    def _is_held(self, host: HeldHost) -> bool:
        return self._held.get(host.lease.host_id) is host
