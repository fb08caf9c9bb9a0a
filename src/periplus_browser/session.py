"""The login sessions of one worker: signs in, detects lost sessions, keeps cookies and secrets in memory only.

States of a session:  out -> entering -> in -> probing -> in | out;  any -> failed after MOST_TRIES in a row.
A session by headers or cookies only, without a page to check, starts in the state "in".
Invariants:  (1) pages are requested only in the state "in";  (2) a page without the login's sign is withheld until the
sign is seen on a page requested later or on the page to check; if that page shows that the session is out, the
withheld page is requested again;  (3) headers and cookies are sent only to the origins of their login;  (4) stored
answers contain no cookie values.
The session's own requests obey the rules of their hosts: robots.txt, delay and the guard against private addresses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from periplus.acquire.discovery import SIGNED_OUT, HostCallbacks, LoginGate
from periplus.acquire.politeness import HeldHost, suspend
from periplus.model.frontier import GivenUp, Task
from periplus.model.ports import Clock
from periplus.model.visit import Failed, Fetched, Purpose, Reason, Redirected, Request, Skipped, Visit
from periplus.model.web import HostKey, Origin, Url
from periplus.settings import Politeness
from periplus.urls.canonical import canonical
from periplus.urls.hosts import host_key, origin_of
from periplus_browser.login import (
    Cookie,
    Login,
    LoginError,
    LoginEvidence,
    avoidance_reason,
    cookies_of,
    evidence,
    evidence_of_check,
    fill_form,
    mask_cookies,
    seen_instead,
)

log = logging.getLogger(__name__)

MOST_TRIES = 3  # failed sign-ins in a row before the crawl ends
MOST_HOPS = 10  # redirects between the form and the page after it
MOST_WITHHELD = 16  # pages without the sign before the page to check is requested; each may have some MB
MOST_COOKIES = 200  # then the oldest is dropped
MOST_AGAIN = 2  # retries of one page
NO_HOST = -1  # in place of a host's id: a placeholder task asks for the host's lease
LOOK_S = 0.25  # how often a host that waits for its session is rescheduled
LIST_AGAIN_S = 30.0  # a requested lease arrives within one or two commits, of half a second each
MOST_LISTED_S = 1800.0  # the host may wait for its Retry-After; after this time the crawl ends with an error
CHECK_PURPOSES = frozenset({Purpose.PAGE, Purpose.CHECK, Purpose.HEAD, Purpose.PART})


class LoginStage(Enum):
    """What the next answer to a session's own request will be."""

    FORM = "form"
    SENT = "sent"  # the answer to the submitted form, or to a redirect from it
    CHECK = "check"


class PageVerdict(Enum):
    """What to do with a page that was requested with a session."""

    ACCEPT = "accept"
    WITHHOLD = "withhold"  # until it is known whether the session was signed in
    RETRY = "retry"  # it was requested before the current sign-in


@dataclass(slots=True)
class Withheld:
    """A page that may be the view of a visitor who is not signed in."""

    host: HeldHost
    task: Task
    visit: Visit


@dataclass(slots=True)
class LoginSession:
    """The state of one login in one worker."""

    login: Login
    cookies: dict[tuple[str, str, str], Cookie]
    is_in: bool
    since: float = 0.0  # time of the sign-in, seconds since the epoch
    probe: Url | None = None  # the page that shows the sign
    probing: bool = False
    stage: LoginStage = LoginStage.FORM
    step: Request | None = None  # its own next request, or the one in flight
    carrier: int | None = None  # id of the host that sends `step`
    listed_at: float = 0.0  # monotonic: when its host's lease was last requested
    first_listed_at: float = 0.0
    not_before: float = 0.0  # monotonic, after a failed try
    tries: int = 0
    is_doubted: bool = False  # a page showed that the session is out, not only that a sign is missing
    failure: str = ""
    withheld: list[Withheld] = field(default_factory=list)
    again: dict[Url, int] = field(default_factory=dict)

    @property
    def hosts(self) -> frozenset[HostKey]:
        return frozenset(host_key(canonical(origin + "/")) for origin in self.login.origins)

    def begin(self) -> None:
        """Starts signing in; without a form, requests the page to check."""
        self.is_in, self.probing, self.carrier = False, False, None
        if self.login.form is not None:
            self.stage, self.step = LoginStage.FORM, Request(self.login.form, Purpose.LOGIN)
        else:
            self._look()
        log.info("%s begins", self.login)

    def begin_probe(self) -> None:
        """Requests the page that shows the sign. Until it is answered, the session counts as out."""
        self.is_in, self.probing = False, True
        self._look()

    def begin_again(self) -> None:
        """First try, or the next one after a failure."""
        if self.probing:
            self.begin_probe()
        else:
            self.begin()

    def _look(self) -> None:
        assert self.probe is not None
        self.stage, self.step = LoginStage.CHECK, Request(self.probe, Purpose.LOGIN)

    # answers ---------------------------------------------------------------------------------------------------------

    def take(self, visit: Visit, now: float) -> None:
        """Processes the outcome of the session's own request. now: monotonic."""
        self.carrier = None
        try:
            self.step = self._next(visit)
        except LoginError as error:
            self._try_again(str(error), visit, now)

    def _next(self, visit: Visit) -> Request | None:
        """The next request; None: the session is in. Raises LoginFailed."""
        request, login = visit.request, self.login
        match visit.outcome:
            case Failed(detail=detail) as failed:
                raise LoginError(f"{login}: {request.url} cannot be reached: {failed.cause.value} {detail}".rstrip())
            case Skipped(reason=Reason.ROBOTS, rule=rule, line=line):
                raise LoginError(
                    f"{login}: robots.txt line {line} ({rule}) disallows {request.url}; "
                    "on your own host use --mine HOST --ignore-robots"
                )
            case Skipped(reason=reason, rule=rule):
                raise LoginError(f"{login}: {request.url} was not requested: {reason.value} {rule}".rstrip())
            case Fetched(status=status) if status >= 500 or status == 429:
                raise LoginError(f"{login}: {request.url} answers {status}")
            case Redirected(target=target) if (
                self.stage is not LoginStage.CHECK or evidence(visit, login) is LoginEvidence.NONE
            ):
                return self._onward(request, target)
            case Fetched() as fetched if self.stage is LoginStage.FORM:
                target, body = fill_form(visit, fetched, login)
                self.stage = LoginStage.SENT
                page = request.url
                return Request(
                    target, Purpose.LOGIN, body=body, fields=(f"Referer: {page}", f"Origin: {_plain(origin_of(page))}")
                )
            case _:
                return self._judge_answer(visit)

    def _onward(self, request: Request, target: Url) -> Request:
        if request.hops >= MOST_HOPS:
            raise LoginError(f"{self.login}: more than {MOST_HOPS} redirects from {self.login.form or self.probe}")
        if origin_of(target) not in self.login.origins:
            raise LoginError(
                f"{self.login}: {request.url} redirects to {origin_of(target)}, which is not in the login's `hosts`"
            )
        return Request(target, Purpose.LOGIN, hops=request.hops + 1)

    def _judge_answer(self, visit: Visit) -> Request | None:
        url, login = visit.request.url, self.login
        sign = evidence_of_check(visit, login) if url == login.check else evidence(visit, login)
        if self.stage is LoginStage.SENT:
            if login.signed_in.address and not url.startswith(login.signed_in.address):
                raise self._missing(visit)
            if sign is not LoginEvidence.IN and (login.check is None or sign is LoginEvidence.OUT):
                raise self._missing(visit)
            if visit.request.body and login.check is None:  # the form's answer has no URL that could be fetched again
                self.probe = canonical(origin_of(url) + "/")
            else:
                self.probe = login.check or url
            if login.check is not None or visit.request.body:
                self._look()
                return self.step
        elif sign is not LoginEvidence.IN and not (sign is LoginEvidence.NONE and not login.signed_in):
            raise self._missing(visit)
        self._enter(visit)
        return None

    def _missing(self, visit: Visit) -> LoginError:
        sign = str(self.login.signed_in) or "a page without the form"
        sent = "the form was sent, and " if self.stage is LoginStage.SENT else ""
        return LoginError(
            f"{self.login}: {sent}{sign} is missing on {visit.request.url.partition('?')[0]}; got {seen_instead(visit)}"
        )

    def _enter(self, visit: Visit) -> None:
        self.is_in = True
        if not self.probing:
            self.since = visit.started
        log.info("%s is in", self.login)

    def _try_again(self, why: str, visit: Visit, now: float) -> None:
        """Plans the next try after an answer without the sign.

        A first sign-in that is refused is not repeated: the password is probably wrong, and servers lock accounts.
        """
        self.step = None
        passes = isinstance(visit.outcome, Failed) or (
            isinstance(visit.outcome, Fetched) and (visit.outcome.status >= 500 or visit.outcome.status == 429)
        )
        self.tries += 1
        log.warning("%s try=%d: %s", self.login, self.tries, why)
        if self.tries > MOST_TRIES or not (passes or (self.login.form is not None and self.since)):
            self.failure = why + (SIGNED_OUT if self.since else "")
        elif self.probing and not passes:  # signed out: sign in again
            self.probing = False
            self.begin()
        else:
            self.not_before = now


def _plain(origin: Origin) -> str:
    """The origin without the scheme's default port, as browsers send it."""
    scheme, _, rest = origin.partition("://")
    return origin.removesuffix(":443" if scheme == "https" else ":80") if rest else origin


class LoginSessions:
    """All logins of one worker."""

    def __init__(self, logins: Iterable[Login], clock: Clock, politeness: Politeness) -> None:
        self._clock, self._wait_s = clock, politeness.retry_wait_s
        self._all = [
            LoginSession(
                login,
                {(cookie.domain, cookie.path, cookie.name): cookie for cookie in login.cookies},
                login.form is None and login.check is None,
                probe=login.check,
            )
            for login in logins
        ]
        self._of_origin = {origin: session for session in self._all for origin in session.login.origins}
        self._of_host = {host: session for session in self._all for host in session.hosts}

    def gate(self, held: Mapping[int, HeldHost], callbacks: HostCallbacks) -> LoginGate:
        """These sessions among a worker's hosts: see `_Gate`."""
        return _Gate(self, self._clock, held, callbacks)

    @property
    def failure(self) -> str:
        """Why the crawl cannot continue, or ""."""
        return next((session.failure for session in self._all if session.failure), "")

    def credentials(self, url: Url) -> Sequence[str] | None:
        """The header lines to send with a request for this URL; None: its origin has no session."""
        session = self._of_origin.get(origin_of(url))
        if session is None:
            return None
        now = self._clock.now()
        cookies = sorted(
            (cookie for cookie in session.cookies.values() if cookie.is_for(url, now)),
            key=lambda cookie: -len(cookie.path),
        )
        line = "; ".join(f"{cookie.name}={cookie.value}" for cookie in cookies)
        return [*session.login.headers, f"Cookie: {line}"] if line else session.login.headers

    def of_host(self, host: HostKey) -> LoginSession | None:
        return self._of_host.get(host)

    def of_url(self, url: Url) -> LoginSession | None:
        return self._of_origin.get(origin_of(url))

    def ruling(self, task: Task) -> Skipped | None:
        """Refuses URLs that would log out or delete something; None: allowed."""
        session = self.of_url(task.request.url)
        if session is None or task.request.purpose in (Purpose.LOGIN, Purpose.ROBOTS):
            return None
        why = avoidance_reason(task.request.url, session.login)
        return Skipped(Reason.SCOPE, why) if why else None

    def store_cookies(self, visit: Visit) -> Visit:
        """Adds the answer's cookies to its session. Returns the visit without cookie values."""
        session = self.of_url(visit.request.url)
        headers = getattr(visit.outcome, "headers", None)
        if session is None or headers is None:
            return visit
        for cookie in cookies_of(visit, headers, self._clock.now()):
            session.cookies.pop((cookie.domain, cookie.path, cookie.name), None)
            session.cookies[cookie.domain, cookie.path, cookie.name] = cookie
            if len(session.cookies) > MOST_COOKIES:
                del session.cookies[next(iter(session.cookies))]
        return mask_cookies(visit)

    def take(self, visit: Visit) -> LoginSession | None:
        """Passes an answer to the session that made the request, and returns that session."""
        asked = (visit.request.url, visit.request.body)
        session = next((each for each in self._all if each.step and (each.step.url, each.step.body) == asked), None)
        if session is not None:
            session.take(visit, self._clock.monotonic())
            session.not_before += self._wait_s * 2**session.tries if session.tries and session.step is None else 0.0
        return session

    def judge(self, host: HeldHost, task: Task, visit: Visit) -> tuple[PageVerdict, list[Withheld]]:
        """What to do with a page, and the withheld pages that it confirms."""
        session = self.of_url(visit.request.url)
        if session is None or task.request.purpose not in CHECK_PURPOSES:
            return PageVerdict.ACCEPT, []
        if visit.started < session.since:  # it was requested before the current sign-in
            return PageVerdict.RETRY, []
        sign = evidence(visit, session.login)
        # data that a page's script fetches need not show the sign; a refusal still means that the session is out
        if sign is LoginEvidence.NONE or (task.request.purpose is Purpose.PART and sign is not LoginEvidence.OUT):
            return PageVerdict.ACCEPT, []
        if sign is LoginEvidence.IN:
            session.tries = 0
            session.again.pop(task.request.url, None)
            released = [page for page in session.withheld if page.visit.started <= visit.started]
            session.withheld = [page for page in session.withheld if page.visit.started > visit.started]
            return PageVerdict.ACCEPT, released
        if session.probe is None:  # no page to check, as with a header only: the answer is accepted as it is
            return PageVerdict.ACCEPT, []
        session.withheld.append(Withheld(host, task, visit))
        session.is_doubted = session.is_doubted or sign is LoginEvidence.OUT
        return PageVerdict.WITHHOLD, []

    def given_up(self, origin: GivenUp) -> None:
        """Fails the session whose next request goes to an origin that was given up."""
        session = self._of_origin.get(origin.origin)
        if session is not None and session.step is not None and origin_of(session.step.url) == origin.origin:
            session.failure = (
                f"{session.login}: {session.step.url} was not requested: {origin.reason.value} {origin.rule}"
            )

    def end_of_doubt(self, session: LoginSession) -> tuple[list[Withheld], list[Withheld]]:
        """(withheld pages to accept, withheld pages to request again), once a session is in."""
        withheld, session.withheld, session.is_doubted = session.withheld, [], False
        if session.probing:
            session.probing = False
            return withheld, []
        return [], withheld

    def refusal_of(self, session: LoginSession, task: Task) -> Visit | None:
        """A refusal, for a page that still asks to sign in after MOST_AGAIN retries; None: retry it."""
        url = task.request.url
        times = session.again[url] = session.again.get(url, 0) + 1
        if times <= MOST_AGAIN:
            return None
        refusal = Skipped(Reason.REFUSED, f"{session.login}: the page asks to sign in although the session is in")
        return Visit(task.request, self._clock.now(), 0.0, refusal)


class _Gate:
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
