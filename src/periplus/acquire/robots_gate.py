"""Decides whether a URL may be requested, by robots.txt, the origin's failures and trap detection.

States of an origin's rules: unknown -> requested -> known, until they expire -> unknown. If robots.txt redirects to
another host, a side request is added to that host's to-do list, and the worker that holds that host fetches it. Until
then the origin's rules count as requested, and its host waits.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from periplus.acquire.politeness import (
    HeldHost,
    OriginHealth,
    OriginRules,
    delay_for,
    finish_request,
    given_up,
    struck,
    suspend,
)
from periplus.document.robots import ERROR_LIFE_S, Access, RobotsAnswer, robots_from_answer
from periplus.errors import InvalidUrl
from periplus.model.frontier import (
    PRIORITY_DOUBT,
    PRIORITY_FIRST,
    PRIORITY_SITEMAP,
    GivenUp,
    SideRequest,
    StoredRobots,
    Task,
)
from periplus.model.ports import Clock, CrawlScope, CrawlStore
from periplus.model.visit import Cause, Cut, Failed, Fetched, Purpose, Reason, Redirected, Request, Skipped, Visit
from periplus.model.web import Origin, Url
from periplus.settings import Politeness
from periplus.urls.canonical import canonical
from periplus.urls.folders import is_folder_host
from periplus.urls.hosts import host_key, origin_of, path_and_query

log = logging.getLogger(__name__)

# a truncated robots.txt is a network error (RFC 9309, 2.3.1.4): the missing part may have the rule that disallows
TRUNCATIONS = (Cut.SHORT, Cut.TIME_LIMIT)
MOST_HOPS = 5  # RFC 9309, 2.3.1.2: at least five
PENDING = "pending"  # the cause of a stored answer that the worker of another host will fetch
PENDING_LIFE_S = 60.0  # then it is requested again
POLL_S = 0.2  # how often a host that waits for such an answer checks the store
MOST_GIVEN_UP = 4096  # origins remembered as given up; a forgotten one costs one more request
# causes that are a failure of the whole host, not only of its robots.txt
_DOWN = {
    Cause.NAME.value: Reason.HOST_DOWN,
    Cause.CONNECT.value: Reason.HOST_DOWN,
    Cause.PROXY.value: Reason.HOST_DOWN,
    Cause.TLS.value: Reason.TLS,
    Cut.BOT_WALL.value: Reason.BOT_WALL,
}
_PERMISSION = Skipped(Reason.OK)
_NO_RULES = OriginRules(RobotsAnswer(404, "", b"").robots().group_for(), Access.ALL, float("inf"))


class RobotsGate:
    """The robots.txt rules of the hosts that one worker holds. `collect` returns what must be stored."""

    def __init__(
        self, store: CrawlStore, politeness: Politeness, scope: CrawlScope, clock: Clock, *, sitemaps: bool
    ) -> None:
        self._store, self._politeness, self._scope, self._clock = store, politeness, scope, clock
        self._sitemaps = sitemaps
        self._stored: list[StoredRobots] = []
        self._side_requests: list[SideRequest] = []
        # origins whose robots.txt is a side request of another host, with the time of that request
        self._sent: dict[Origin, float] = {}
        self._given_up: dict[Origin, GivenUp] = {}  # in this run

    def collect(self) -> tuple[tuple[StoredRobots, ...], tuple[SideRequest, ...]]:
        """Answers and side requests to store since the last call."""
        collected = tuple(self._stored), tuple(self._side_requests)
        self._stored, self._side_requests = [], []
        return collected

    def give_up(self, host: HeldHost, origin: Origin, reason: Reason, why: str) -> None:
        """Drops an origin for the rest of this run.

        Ends the wait that its failure caused: the host may have other origins.
        """
        given_up = self._given_up[origin] = GivenUp(origin, reason, why)
        if len(self._given_up) > MOST_GIVEN_UP:
            del self._given_up[next(iter(self._given_up))]
        host.given_up.append(given_up)
        now = self._clock.monotonic()
        host.pace = suspend(
            replace(host.pace, not_before=min(host.pace.not_before, now)), now + host.pace.gap_s, "delay"
        )
        log.warning("host=%s given_up=%s why=%s", origin, reason, why)

    def ruling(self, host: HeldHost, task: Task) -> Skipped | None:
        """Skipped(OK): the task may be requested. Skipped with another reason: it may not.

        None: the host's robots.txt must be known first, or its origin is given up.
        """
        url = task.request.url
        if (given_up := self._given_up.get(origin_of(url))) is not None:
            if task.request.purpose is Purpose.ROBOTS:  # store a failure for the host that waits for the answer
                self._keep(
                    host, Origin(task.request.about), robots_from_answer(0, given_up.reason.value), ERROR_LIFE_S, 0
                )
                return Skipped(given_up.reason, given_up.rule)
            host.given_up.append(given_up)
            return None
        if task.request.purpose is Purpose.ROBOTS:
            return _PERMISSION
        rules = self.rules_for(host, url)
        if rules is None or host.given_up:
            return None
        if rules.access is Access.NONE:
            until = self._clock.monotonic() + rules.expires - self._clock.now()
            host.pace = suspend(host.pace, until, "robots.txt unreachable")
            return None
        verdict = rules.rules.decide(path_and_query(url))
        if not verdict.allowed:
            return Skipped(Reason.ROBOTS, verdict.rule, verdict.line)
        trap = (
            host.traps.admit(url, task.doubt, last=task.priority >= PRIORITY_DOUBT)
            if task.request.purpose is Purpose.PAGE and task.priority != 0 and not task.recheck
            else None
        )
        return _PERMISSION if trap is None else Skipped(Reason.TRAP, trap)

    def rules_for(self, host: HeldHost, url: Url) -> OriginRules | None:
        """The rules for a URL. None: not known yet; the request for them is in host.side, or the host waits."""
        origin = origin_of(url)
        if host.mine and self._politeness.ignore_robots:
            return _NO_RULES
        now = self._clock.now()
        held = host.rules.get(origin)
        if held is not None and held.expires > now:
            return held
        stored = self._store.robots(origin)
        sent_at = self._sent.get(origin)
        if stored is not None and stored.cause != PENDING:
            answer = RobotsAnswer(stored.status, stored.cause, stored.body)
            if sent_at is not None and stored.fetched >= sent_at:  # the side request's answer
                del self._sent[origin]
                if answer.access is Access.NONE:
                    self._suspend(host, origin, answer, host.pace_of(origin).strikes)
                    return None
            if stored.expires > now:
                return self._adopt(host, origin, answer, stored.expires)
        elif (sent_at or (stored.fetched if stored is not None else 0.0)) + PENDING_LIFE_S > now:
            host.pace = suspend(
                host.pace, self._clock.monotonic() + POLL_S, "robots.txt, which redirects to another host"
            )
            return None
        self._sent.pop(origin, None)
        if stored is None and host.health:
            # an answer over the other scheme shows nothing about this origin
            host.health.setdefault(origin, OriginHealth(0, False))
        host.side.append(Request(canonical(origin + "/robots.txt"), Purpose.ROBOTS, about=origin))
        return None

    def _adopt(self, host: HeldHost, origin: Origin, answer: RobotsAnswer, expires: float) -> OriginRules:
        rules = answer.robots().group_for()
        adopted = OriginRules(rules, answer.access, expires)
        most_s = self._politeness.max_crawl_delay_s
        if (rules.crawl_delay or 0.0) > most_s and not host.mine:
            self.give_up(
                host,
                origin,
                Reason.ROBOTS,
                f"Crawl-delay: {rules.crawl_delay:g} is longer than max-crawl-delay-s {most_s:g}",
            )
            return adopted
        host.rules[origin] = adopted
        slowest = max(entry.rules.crawl_delay or 0.0 for entry in host.rules.values())
        is_folder = is_folder_host(host.lease.host)
        delay_s = delay_for(self._politeness, host.mine, slowest, is_folder=is_folder)
        slower = replace(host.pace, delay_s=delay_s)
        # a longer delay applies already after the previous request
        longer_s = max(0.0, slower.gap_s - host.pace.gap_s)
        host.pace = replace(slower, not_before=slower.not_before + longer_s)
        return adopted

    def process_answer(self, host: HeldHost, visit: Visit) -> None:
        """Processes the outcome of a robots.txt request, for this host or another one."""
        request, about = visit.request, Origin(visit.request.about)
        origin = about if host_key(canonical(about + "/")) == host.lease.host else origin_of(request.url)
        pace = host.pace_of(origin)
        before = pace.strikes
        host.keep_pace(origin, finish_request(pace, visit, self._politeness, self._clock.monotonic()))
        cache_control = ""
        match visit.outcome:
            case Redirected(target=target) if request.hops < MOST_HOPS:
                # a redirect is not a final robots.txt answer, so it does not reset the failure count
                host.keep_pace(origin, replace(host.pace, strikes=before))
                self._follow(host, Request(target, Purpose.ROBOTS, hops=request.hops + 1, about=request.about))
                return
            case Fetched(status=status, cut=cut) if cut in TRUNCATIONS and status < 300:
                answer = robots_from_answer(status, cut.value)
            case Fetched(status=status, cut=Cut.BOT_WALL) if status == 429 or status >= 500:
                answer = robots_from_answer(status, Cut.BOT_WALL.value)
            case Fetched(status=status, body=body, headers=headers):
                answer, cache_control = robots_from_answer(status, "", body), headers.get("cache-control")
            case Redirected(status=status):
                answer = robots_from_answer(status)
            case Failed(cause=cause):
                answer = robots_from_answer(0, cause.value)
            case _:
                answer = robots_from_answer(0, "unexpected")
        self._keep(host, about, answer, answer.life_s(cache_control), before)

    def _follow(self, host: HeldHost, onward: Request) -> None:
        target = host_key(onward.url)
        if target == host.lease.host:
            host.side.append(onward)
            return
        now = self._clock.now()
        self._sent[Origin(onward.about)] = now
        self._side_requests.append(SideRequest(target, self._scope.site_of(onward.url), onward, PRIORITY_FIRST))
        self._stored.append(StoredRobots(Origin(onward.about), 0, PENDING, b"", now, now + PENDING_LIFE_S))

    def _keep(self, host: HeldHost, origin: Origin, answer: RobotsAnswer, life_s: float, strikes: int) -> None:
        """Stores an answer. A failed one suspends the host, and is requested again afterwards."""
        now = self._clock.now()
        if answer.access is Access.NONE:
            life_s = min(life_s, self._politeness.retry_wait_s)
        self._stored.append(StoredRobots(origin, answer.status, answer.cause, answer.body, now, now + life_s))
        if host_key(canonical(origin + "/")) != host.lease.host:
            return
        adopted = self._adopt(host, origin, answer, now + life_s)
        if adopted.access is Access.NONE:
            self._suspend(host, origin, answer, strikes)
        elif self._sitemaps:
            self._side_requests.extend(self._sitemap_side_requests(origin, answer))

    def _suspend(self, host: HeldHost, origin: Origin, answer: RobotsAnswer, strikes: int) -> None:
        """RFC 9309, 2.3.1.4: unreachable rules disallow everything.

        strikes: the failure count before the answer.
        """
        if answer.cause == Cause.PRIVATE:  # no request was sent: nothing to wait for
            self.give_up(host, origin, Reason.PRIVATE, "")
            return
        pace = host.pace_of(origin)
        if pace.strikes <= strikes:  # an answer such as 500, which is not a failure of the host itself
            why = f"robots.txt: {answer.cause or answer.status}"
            pace = struck(replace(pace, strikes=strikes), why, self._politeness, self._clock.monotonic())
            host.keep_pace(origin, pace)
        if given_up(pace, self._politeness):
            self.give_up(host, origin, _DOWN.get(answer.cause, Reason.ROBOTS_UNREACHABLE), pace.waits_for)

    def _sitemap_side_requests(self, origin: Origin, answer: RobotsAnswer) -> list[SideRequest]:
        """Requests for the sitemaps in robots.txt, or for /sitemap.xml; only for sites that are crawled."""
        home = canonical(origin + "/")
        if self._scope.site_of(home) not in self._scope.sites:
            return []
        side_requests = []
        for text in answer.robots().sitemaps or ("/sitemap.xml",):
            try:
                url = canonical(text, home)
            except InvalidUrl:
                continue
            request = Request(url, Purpose.SITEMAP, about=self._scope.site_of(home))
            side_requests.append(SideRequest(host_key(url), self._scope.site_of(url), request, PRIORITY_SITEMAP))
        return side_requests
