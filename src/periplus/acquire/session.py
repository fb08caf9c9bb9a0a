"""The sessions of one worker: signs in, notices when it is out, keeps cookies and secrets in memory alone.

States of a session:  out -> entering -> in -> probing -> in | out;  any -> failed after MOST_TRIES in a row.
A session by headers or cookies alone, without a page to check, is in from the beginning.
Always:  (1) no page is asked for but in the state in;  (2) a page that does not show the sign is withheld until another
that was asked for later shows it, or the page to check does; where that shows that one is out, it is asked for again;
(3) headers and cookies go to the origins of their login alone;  (4) what is stored of an answer has no cookie's value.
Its own requests take turns with those of their hosts: robots.txt, delay and guard of addresses hold for them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from periplus.acquire.login import (
    Cookie,
    Login,
    LoginEvidence,
    LoginFailed,
    avoided,
    cookies_of,
    evidence,
    evidence_of_check,
    filled_in,
    masked,
    seen_instead,
)
from periplus.acquire.politeness import HeldHost
from periplus.model.frontier import GivenUp, Task
from periplus.model.ports import Clock
from periplus.model.visit import Failed, Fetched, Purpose, Reason, Redirected, Request, Skipped, Visit
from periplus.model.web import HostKey, Origin, Url
from periplus.settings import Politeness
from periplus.urls.canonical import canonical
from periplus.urls.hosts import host_key, origin_of

log = logging.getLogger(__name__)

MOST_TRIES = 3  # of signing in, one after another, before the crawl is ended
MOST_HOPS = 10  # redirects from the form to the page that it leads to
MOST_WITHHELD = 16  # pages without the sign before the page to check is asked for: each may be some MB
MOST_COOKIES = 200  # then the one that was set first goes
MOST_AGAIN = 2  # times that one page is asked for again
JUDGED = frozenset({Purpose.PAGE, Purpose.CHECK, Purpose.HEAD, Purpose.PART})


class LoginStage(Enum):
    """What the next answer to a session's own request is."""

    FORM = "form"
    SENT = "sent"  # the form was, and redirects lead on
    CHECK = "check"


class Standing(Enum):
    """What becomes of a page that was asked for with a session."""

    STANDS = "stands"
    WITHHELD = "withheld"  # until it is known whether one was in
    AGAIN = "again"  # it was asked for before one was in


@dataclass(slots=True)
class Withheld:
    """A page that may have been made for somebody who is not signed in."""

    host: HeldHost
    task: Task
    visit: Visit


@dataclass(slots=True)
class LoginSession:
    """One login, as it stands in one worker."""

    login: Login
    cookies: dict[tuple[str, str, str], Cookie]
    is_in: bool
    since: float = 0.0  # when it was entered, seconds since the epoch
    probe: Url | None = None  # the page that shows the sign
    probing: bool = False
    stage: LoginStage = LoginStage.FORM
    step: Request | None = None  # its own next request, or the one under way
    carrier: int | None = None  # id of the host to which that was given
    listed_at: float = 0.0  # monotonic: when its host was last entered in a to-do list, to be leased
    first_listed_at: float = 0.0
    not_before: float = 0.0  # monotonic, after a try that failed
    tries: int = 0
    is_doubted: bool = False  # more than that a sign is missing speaks for being out
    failure: str = ""
    withheld: list[Withheld] = field(default_factory=list)
    again: dict[Url, int] = field(default_factory=dict)

    @property
    def hosts(self) -> frozenset[HostKey]:
        return frozenset(host_key(canonical(origin + "/")) for origin in self.login.origins)

    def begin(self) -> None:
        """Signs in; without a form, looks whether one is in."""
        self.is_in, self.probing, self.carrier = False, False, None
        if self.login.form is not None:
            self.stage, self.step = LoginStage.FORM, Request(self.login.form, Purpose.LOGIN)
        else:
            self._look()
        log.info("%s begins", self.login)

    def begin_probe(self) -> None:
        """Asks for the page that shows the sign, as long as none says otherwise the session is not in."""
        self.is_in, self.probing = False, True
        self._look()

    def begin_again(self) -> None:
        """After a try that failed, or at first."""
        if self.probing:
            self.begin_probe()
        else:
            self.begin()

    def _look(self) -> None:
        assert self.probe is not None
        self.stage, self.step = LoginStage.CHECK, Request(self.probe, Purpose.LOGIN)

    # answers ---------------------------------------------------------------------------------------------------------

    def take(self, visit: Visit, now: float) -> None:
        """The answer to its own request. now: monotonic."""
        self.carrier = None
        try:
            self.step = self._next(visit)
        except LoginFailed as error:
            self._try_again(str(error), visit, now)

    def _next(self, visit: Visit) -> Request | None:
        """What is asked for next; None: the session is in. Raises LoginFailed."""
        request, login = visit.request, self.login
        match visit.outcome:
            case Failed(detail=detail) as failed:
                raise LoginFailed(f"{login}: {request.url} cannot be reached: {failed.cause.value} {detail}".rstrip())
            case Skipped(reason=Reason.ROBOTS, rule=rule, line=line):
                raise LoginFailed(
                    f"{login}: robots.txt line {line} ({rule}) keeps {request.url} from crawlers; on a host of your "
                    "own: --mine HOST --ignore-robots"
                )
            case Skipped(reason=reason, rule=rule):
                raise LoginFailed(f"{login}: {request.url} is not asked for: {reason.value} {rule}".rstrip())
            case Fetched(status=status) if status >= 500 or status == 429:
                raise LoginFailed(f"{login}: {request.url} answers {status}")
            case Redirected(target=target) if (
                self.stage is not LoginStage.CHECK or evidence(visit, login) is LoginEvidence.NONE
            ):
                return self._onward(request, target)
            case Fetched() as fetched if self.stage is LoginStage.FORM:
                target, body = filled_in(visit, fetched, login)
                self.stage = LoginStage.SENT
                page = request.url
                return Request(
                    target, Purpose.LOGIN, body=body, fields=(f"Referer: {page}", f"Origin: {_plain(origin_of(page))}")
                )
            case _:
                return self._judged(visit)

    def _onward(self, request: Request, target: Url) -> Request:
        if request.hops >= MOST_HOPS:
            raise LoginFailed(f"{self.login}: more than {MOST_HOPS} redirects from {self.login.form or self.probe}")
        if origin_of(target) not in self.login.origins:
            raise LoginFailed(
                f"{self.login}: {request.url} leads to {origin_of(target)}, which `hosts` of the login does not name"
            )
        return Request(target, Purpose.LOGIN, hops=request.hops + 1)

    def _judged(self, visit: Visit) -> Request | None:
        url, login = visit.request.url, self.login
        sign = evidence_of_check(visit, login) if url == login.check else evidence(visit, login)
        if self.stage is LoginStage.SENT:
            if login.signed_in.address and not url.startswith(login.signed_in.address):
                raise self._missing(visit)
            if sign is not LoginEvidence.IN and (login.check is None or sign is LoginEvidence.OUT):
                raise self._missing(visit)
            if visit.request.body and login.check is None:  # the answer to the form itself: no page to ask for again
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

    def _missing(self, visit: Visit) -> LoginFailed:
        sign = str(self.login.signed_in) or "a page without the form"
        sent = "the form was sent, and " if self.stage is LoginStage.SENT else ""
        return LoginFailed(
            f"{self.login}: {sent}{sign} is missing on {visit.request.url.partition('?')[0]}; "
            f"what came: {seen_instead(visit)}"
        )

    def _enter(self, visit: Visit) -> None:
        self.is_in = True
        if not self.probing:
            self.since = visit.started
        log.info("%s is in", self.login)

    def _try_again(self, why: str, visit: Visit, now: float) -> None:
        """After an answer that shows no sign.

        A first sign-in that is refused is not repeated: a wrong password gets no better, and accounts are locked.
        """
        self.step = None
        passes = isinstance(visit.outcome, Failed) or (
            isinstance(visit.outcome, Fetched) and (visit.outcome.status >= 500 or visit.outcome.status == 429)
        )
        self.tries += 1
        log.warning("%s try=%d: %s", self.login, self.tries, why)
        if self.tries > MOST_TRIES or not (passes or (self.login.form is not None and self.since)):
            self.failure = why
        elif self.probing and not passes:  # out: in again
            self.probing = False
            self.begin()
        else:
            self.not_before = now


def _plain(origin: Origin) -> str:
    """As a browser writes it: without the scheme's own port."""
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
        self._of_origin = {origin: one for one in self._all for origin in one.login.origins}
        self._of_host = {host: one for one in self._all for host in one.hosts}

    @property
    def failure(self) -> str:
        """Why the crawl cannot go on; empty: it can."""
        return next((one.failure for one in self._all if one.failure), "")

    def credentials(self, url: Url) -> Sequence[str] | None:
        """The header lines that a request for this URL is sent with; None: its origin has no session."""
        session = self._of_origin.get(origin_of(url))
        if session is None:
            return None
        now = self._clock.now()
        cookies = sorted(
            (one for one in session.cookies.values() if one.is_for(url, now)), key=lambda one: -len(one.path)
        )
        line = "; ".join(f"{one.name}={one.value}" for one in cookies)
        return [*session.login.headers, f"Cookie: {line}"] if line else session.login.headers

    def of_host(self, host: HostKey) -> LoginSession | None:
        return self._of_host.get(host)

    def of_url(self, url: Url) -> LoginSession | None:
        return self._of_origin.get(origin_of(url))

    def ruling(self, task: Task) -> Skipped | None:
        """What is never asked for: an address that logs out or deletes."""
        session = self.of_url(task.request.url)
        if session is None or task.request.purpose in (Purpose.LOGIN, Purpose.ROBOTS):
            return None
        why = avoided(task.request.url, session.login)
        return Skipped(Reason.SCOPE, why) if why else None

    def opened(self, visit: Visit) -> Visit:
        """Takes the cookies of an answer, and returns it as it may be stored."""
        session = self.of_url(visit.request.url)
        headers = getattr(visit.outcome, "headers", None)
        if session is None or headers is None:
            return visit
        for cookie in cookies_of(visit, headers, self._clock.now()):
            session.cookies.pop((cookie.domain, cookie.path, cookie.name), None)
            session.cookies[cookie.domain, cookie.path, cookie.name] = cookie
            if len(session.cookies) > MOST_COOKIES:
                del session.cookies[next(iter(session.cookies))]
        return masked(visit)

    def take(self, visit: Visit) -> LoginSession | None:
        """An answer to a session's own request. Returns the session that it was of."""
        asked = (visit.request.url, visit.request.body)
        session = next((one for one in self._all if one.step and (one.step.url, one.step.body) == asked), None)
        if session is not None:
            session.take(visit, self._clock.monotonic())
            session.not_before += self._wait_s * 2**session.tries if session.tries and session.step is None else 0.0
        return session

    def standing(self, host: HeldHost, task: Task, visit: Visit) -> tuple[Standing, list[Withheld]]:
        """What becomes of a page, and those withheld that are vouched for by it."""
        session = self.of_url(visit.request.url)
        if session is None or task.request.purpose not in JUDGED:
            return Standing.STANDS, []
        if visit.started < session.since:  # it was under way when one was signed in anew
            return Standing.AGAIN, []
        sign = evidence(visit, session.login)
        # what a page's script fetches need not show the sign; that it is refused says that one is out
        if sign is LoginEvidence.NONE or (task.request.purpose is Purpose.PART and sign is not LoginEvidence.OUT):
            return Standing.STANDS, []
        if sign is LoginEvidence.IN:
            session.tries = 0
            session.again.pop(task.request.url, None)
            released = [one for one in session.withheld if one.visit.started <= visit.started]
            session.withheld = [one for one in session.withheld if one.visit.started > visit.started]
            return Standing.STANDS, released
        if session.probe is None:  # nothing more can be asked, as with a header alone: it is what the server says
            return Standing.STANDS, []
        session.withheld.append(Withheld(host, task, visit))
        session.is_doubted = session.is_doubted or sign is LoginEvidence.OUT
        return Standing.WITHHELD, []

    def given_up(self, origin: GivenUp) -> None:
        """An origin is asked for nothing more: so is its session."""
        session = self._of_origin.get(origin.origin)
        if session is not None and session.step is not None and origin_of(session.step.url) == origin.origin:
            session.failure = (
                f"{session.login}: {session.step.url} is not asked for: {origin.reason.value} {origin.rule}"
            )

    def end_of_doubt(self, session: LoginSession) -> tuple[list[Withheld], list[Withheld]]:
        """Once a session is in: (pages that stand as they are, pages to be asked for again)."""
        withheld, session.withheld, session.is_doubted = session.withheld, [], False
        if session.probing:
            session.probing = False
            return withheld, []
        return [], withheld

    def asked_too_often(self, session: LoginSession, task: Task) -> Visit | None:
        """That a page asks to sign in, however often one does; None: it may be asked for again."""
        url = task.request.url
        times = session.again[url] = session.again.get(url, 0) + 1
        if times <= MOST_AGAIN:
            return None
        refusal = Skipped(Reason.REFUSED, f"{session.login}: it asks to sign in, though one is in")
        return Visit(task.request, self._clock.now(), 0.0, refusal)
