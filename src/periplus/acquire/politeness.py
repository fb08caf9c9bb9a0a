"""Politeness: when each held host may be requested again, and turns of host names that share an IP address."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC

from periplus.document.robots import Access, RobotsGroup
from periplus.model.frontier import PRIORITY_DOUBT, GivenUp, HostState, Lease, ReadyHost, Task
from periplus.model.ports import AddressTable, Policy, TrapDetection
from periplus.model.visit import Cause, Cut, Failed, Fetched, Outcome, Purpose, Request, Visit
from periplus.model.web import HostKey, Origin
from periplus.settings import DELAY_FLOOR_S, Politeness
from periplus.urls.hosts import is_named, special_network
from periplus.values import frozen

# Invariants:  (1) a request starts at least the host's delay after the previous one;  (2) Retry-After is obeyed;
# if it is longer than the limit, the host is given up;  (3) each 429 or 503 halves the rate, but the gaps do not grow
# beyond the Retry-After; each good answer adds a tenth of the full rate;  (4) a failure of the whole server suspends it
# for a time that doubles with each failure in a row, until it answers or is given up.

RATE_FLOOR = 1 / 64  # after six refusals in a row
UNPACED_S = 0.1  # the delay from which a refusal halves the rate, where no delay is set (the user's own hosts)
STRIKES_WITHOUT_ANSWER = 2  # a host that never answered is most likely a wrong name: give it up early
_HOST_FAILURES = frozenset(
    {Cause.NAME, Cause.CONNECT, Cause.TLS, Cause.TIMEOUT, Cause.FIRST_BYTE, Cause.RESET, Cause.PROXY}
)
# names whose addresses are remembered; the oldest is forgotten first, and learned again from its next answer
MOST_ADDRESSES = 65_536
OWN_MACHINE = "loopback"  # names on it take no turns: they belong to tests, proxies or tunnels


@frozen
class Pace:
    """How fast one host may be requested. Times in seconds; `not_before` is on the clock that the caller uses."""

    delay_s: float
    rate: float = 1.0  # share of the full rate, RATE_FLOOR to 1
    not_before: float = 0.0
    strikes: int = 0  # failures of the host in a row
    answered: bool = False  # whether the host ever answered
    waits_for: str = ""  # why it waits, shown to users

    @property
    def gap_s(self) -> float:
        """Seconds between the starts of two requests at the current rate."""
        if self.rate >= 1:
            return self.delay_s
        return max(self.delay_s, UNPACED_S) / self.rate


def delay_for(politeness: Politeness, mine: bool, crawl_delay_s: float | None, *, is_folder: bool = False) -> float:
    """Seconds between two requests: the longer of the setting and the Crawl-delay, at least DELAY_FLOOR_S unless the
    host is the user's own; 0 for a local folder.
    """
    if is_folder:
        return 0.0
    asked = 0.0 if crawl_delay_s is None or (mine and politeness.ignore_robots) else crawl_delay_s
    delay = max(politeness.delay_s, asked)
    return delay if mine else max(delay, DELAY_FLOOR_S)


def retry_after_s(value: str, now: float) -> float | None:
    """Seconds to wait by a Retry-After field (RFC 9110, 10.2.3: seconds or a date); None if it is invalid.

    now: seconds since the epoch. A date in the past gives 0.
    """
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    from email.utils import parsedate_to_datetime  # the import takes 5 ms, and few servers send dates

    try:
        moment = parsedate_to_datetime(text)
        # the asctime form has no zone and means GMT (RFC 9110, 5.6.7), not the local time zone
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def start_request(pace: Pace, now: float) -> Pace:
    """The pace after a request was started at `now`."""
    return _put_off(pace, now + pace.gap_s, "delay")


def finish_request(pace: Pace, visit: Visit, politeness: Politeness, now: float) -> Pace:
    """The pace after a request ended at `now` (on the caller's clock) with this visit."""
    match visit.outcome:
        case Fetched(status=status, headers=headers, cut=cut) if cut is Cut.BOT_WALL or status in (429, 503):
            asked_s = retry_after_s(headers.get("retry-after"), visit.started + visit.took_s)
            if cut is Cut.BOT_WALL:  # further requests would meet it too: after some in a row the host is given up
                after = struck(pace, cut.value, politeness, now)
                return suspend(after, now + min(asked_s or 0.0, politeness.max_retry_after_s), cut.value)
            return _slow_down(pace, status, asked_s, politeness, now)
        case Failed(cause=cause) if cause in _HOST_FAILURES:
            return struck(pace, cause.value, politeness, now)
        case Failed():
            return pace
        case _:
            better = pace
            if pace.rate < 1 or pace.strikes or not pace.answered:
                better = replace(pace, rate=min(1.0, pace.rate + 0.1), strikes=0, answered=True)
            return suspend(better, _first_byte_at(visit, now) + better.gap_s, better.waits_for)


def _slow_down(pace: Pace, status: int, asked_s: float | None, politeness: Politeness, now: float) -> Pace:
    """The pace after a 429 or 503.

    asked_s: Retry-After. It bounds the slowdown: 6 pages that each refused twice with 2 s took 342 s when every refusal
    halved the rate.
    """
    most_s, why = politeness.max_retry_after_s, f"{status}"
    enough = max(pace.delay_s, UNPACED_S) / asked_s if asked_s else 0.0
    slower = replace(pace, rate=max(RATE_FLOOR, pace.rate / 2, min(pace.rate, enough)), answered=True)
    if asked_s is None:
        asked_s, slower = (
            politeness.retry_wait_s * 2 ** min(pace.strikes, 16),
            replace(slower, strikes=pace.strikes + 1),
        )
    elif asked_s > most_s:
        slower, why = (
            replace(slower, strikes=politeness.host_strikes),
            f"{status}, Retry-After {asked_s:g} s is longer than max-retry-after-s {most_s:g}",
        )
    return replace(
        slower, not_before=max(pace.not_before, now + max(slower.gap_s, min(asked_s, most_s))), waits_for=why
    )


def _first_byte_at(visit: Visit, now: float) -> float:
    """When the first byte of the answer arrived, for an exchange that ended at `now`.

    The delay counts from here: a request reaches the server some time after it was started (later on a new connection
    than on a kept one), and only the answer proves that it has. When the delay counted from the start, servers saw gaps
    up to a tenth too short.
    """
    return now - max(0.0, visit.took_s - visit.first_byte_s)


def suspend(pace: Pace, until: float, why: str) -> Pace:
    """The pace with `not_before` at least `until`. why: the reason, shown to users."""
    if until <= pace.not_before and why == pace.waits_for:
        return pace
    return _put_off(pace, until, why)


def _put_off(pace: Pace, until: float, why: str) -> Pace:
    """Built directly: `replace` takes three times as long."""
    return Pace(pace.delay_s, pace.rate, max(pace.not_before, until), pace.strikes, pace.answered, why)


def struck(pace: Pace, why: str, politeness: Politeness, now: float) -> Pace:
    """The pace after a failure of the whole host: the wait doubles with each failure in a row.

    It stops growing at the number of failures at which hosts are given up, since a host that is given up may still be
    requested for robots.txt redirects of other hosts.
    """
    wait = politeness.retry_wait_s * 2 ** min(pace.strikes, politeness.host_strikes, 16)
    return suspend(replace(pace, strikes=pace.strikes + 1), now + wait, why)


def given_up(pace: Pace, politeness: Politeness) -> bool:
    """Whether the host has failed so often in a row that this run drops it."""
    return pace.strikes >= (
        politeness.host_strikes if pace.answered else min(STRIKES_WITHOUT_ANSWER, politeness.host_strikes)
    )


def may_pass(outcome: Outcome) -> bool:
    """Whether a retry may succeed: after throttling, server errors, lost connections."""
    match outcome:
        case Fetched(status=status, cut=cut) if cut is not Cut.BOT_WALL:
            return status in (408, 425, 429) or 500 <= status < 600  # 999 and the like are refusals
        case Failed(cause=cause):
            return cause in _HOST_FAILURES and cause is not Cause.TLS
        case _:
            return False


# Many host names may share one IP address, and so one server. If more names share it than the limit, the address is
# treated as one host: one request at a time, with the delay between starts. The names take turns in order of arrival.
# The table of turns is shared by all processes of a machine: `store.addresses`.
#
# A name's address is known only when its first connection is opened: if the name must wait, that request is not sent.


class AddressTurns:
    """Turns of one worker's host names at shared IP addresses. Times in seconds, on the machine's monotonic clock."""

    def __init__(self, most_names: int, gap_s: float, mine: frozenset[str], table: AddressTable) -> None:
        """most_names: names at one address up to which they take no turns.

        gap_s: between two starts at an address with more names. mine: hosts that take no turns, in the form of
        `scope.own_hosts`. table: shared with other workers.
        """
        self._most, self._gap_s, self._mine, self._table = most_names, gap_s, mine, table
        self._address: dict[str, str] = {}
        self._slots: dict[HostKey, float] = {}  # reserved times of hosts that wait
        self._flights: dict[HostKey, str] = {}

    def end_turn(self, host: HostKey, address: str) -> None:
        """Ends a host's turn. address: the one that answered; empty: none did, or it is unknown."""
        if before := self._flights.pop(host, ""):
            with self._table.place(before) as place:
                place.asked = "" if place.asked == host else place.asked
        self._learn(host.rpartition(":")[0], address)

    def admits(self, host: HostKey, address: str, now: float) -> bool:
        """Whether a host may be requested now at the address that its name resolved to; if not, `turn` returns when."""
        self._learn(host.rpartition(":")[0], address)
        return self.turn(host, now) <= now

    def _learn(self, name: str, address: str) -> None:
        before = self._address.get(name)
        if not address or address == before or special_network(address) == OWN_MACHINE:
            return
        if before is not None:
            self._table.leave(before, name)
        elif len(self._address) >= MOST_ADDRESSES:
            first = next(iter(self._address))
            self._table.leave(self._address.pop(first), first)
        self._address[name] = address
        self._table.enter(address, name)

    def turn(self, host: HostKey, now: float) -> float:
        """When a host may be requested. If the result is `now`, its turn starts; a later time is reserved for it."""
        address = self._address.get(host.rpartition(":")[0])
        if address is None or is_named(host, self._mine) or host in self._flights:
            return now
        if self._table.names(address) <= self._most:
            return now
        with self._table.place(address) as place:
            slot = self._slots.pop(host, place.next_slot)
            if slot <= now and not place.asked and place.free_at <= now:
                place.asked, place.free_at = host, now + self._gap_s
                place.next_slot = max(place.next_slot, place.free_at)
                self._flights[host] = address
                return now
            if slot <= now:  # an earlier host started late or still runs: back to the end of the queue
                slot = max(place.next_slot, now + self._gap_s) if place.asked else place.free_at
            place.next_slot = max(place.next_slot, slot + self._gap_s)
        self._slots[host] = slot
        return slot


# Pace is per host (name and port), failures are per origin: a port that speaks plain HTTP fails for https links only.


@frozen
class OriginRules:
    """The rules of an origin's robots.txt that apply to this crawler."""

    rules: RobotsGroup
    access: Access
    expires: float  # seconds since the epoch


@frozen
class OriginHealth:
    """The failure count of an origin."""

    strikes: int  # failures in a row
    answered: bool  # whether it ever answered


@dataclass(slots=True)
class HeldHost:
    """One leased host. This is the only crawl state that a process keeps in memory; none of it is needed to resume.

    Invariants: in_hand holds the (priority, seq) of each task that was taken and not committed; a host with requests in
    flight or uncommitted results is not released.
    """

    lease: Lease
    pace: Pace  # not_before on the monotonic clock; strikes and answered: of the origin asked last
    mine: bool
    traps: TrapDetection
    tasks: deque[Task] = field(default_factory=deque)
    in_hand: set[tuple[int, int]] = field(default_factory=set)
    side: deque[Request] = field(default_factory=deque)  # robots.txt requests
    side_in_flight: bool = False
    parts: deque[Request] = field(default_factory=deque)  # requests of rendered pages and sessions, sent before pages
    rendering: int = 0  # pages in a browser
    withheld: int = 0  # pages that may be signed-out views
    in_flight_tasks: dict[Request, Task] = field(default_factory=dict)
    rules: dict[Origin, OriginRules] = field(default_factory=dict)
    health: dict[Origin, OriginHealth] = field(default_factory=dict)
    given_up: list[GivenUp] = field(default_factory=list)  # origins, since the last commit
    uncommitted: int = 0
    doubt_round: int = 0  # the priority of the last postponed task
    fresh: tuple[bool, bool] = (True, True)  # whether a page had new content: in this round, in the previous one
    leaving: bool = False  # beyond the worker's share: starts no more requests, and is released when quiet
    due_at: float | None = None  # its valid entry in the worker's heap
    exhausted: bool = False  # no tasks until a commit, or until another host of the site has finished its priority

    @property
    def in_flight(self) -> int:
        return len(self.in_flight_tasks) + self.side_in_flight

    @property
    def has_errand(self) -> bool:
        """Whether it holds a task that another host waits for."""
        return any(priority < 0 for priority, _ in self.in_hand)

    def as_ready(self) -> ReadyHost:
        """The host as a page-level policy sees it."""
        return ReadyHost(self.lease.host_id, self.lease.host, self.lease.site, len(self.tasks), 0, 0.0)

    @property
    def is_quiet(self) -> bool:
        """Nothing in flight and nothing uncommitted: the lease may end."""
        return not (self.in_flight or self.uncommitted or self.rendering or self.withheld or self.parts)

    def pace_of(self, origin: Origin) -> Pace:
        """The host's pace with this origin's failure count.

        An origin not requested during this lease has the host's count at the start of the lease.
        """
        health, pace = self.health.get(origin, self.lease), self.pace
        if health.strikes == pace.strikes and health.answered == pace.answered:
            return pace
        return replace(pace, strikes=health.strikes, answered=health.answered)

    def keep_pace(self, origin: Origin, pace: Pace) -> None:
        self.pace, former = pace, self.health.get(origin)
        if former is None or former.strikes != pace.strikes or former.answered != pace.answered:
            self.health[origin] = OriginHealth(pace.strikes, pace.answered)

    def may_doubt_again(self, priority: int) -> bool:
        """Whether a suspected trap URL of this priority may be postponed again: if the last round had new content."""
        if priority >= PRIORITY_DOUBT and priority != self.doubt_round:
            self.doubt_round, self.fresh = priority, (False, self.fresh[0])
        return priority < PRIORITY_DOUBT or self.fresh[1]

    def put_back(self) -> None:
        """Returns the tasks that are not in flight; they are taken again later."""
        self.in_hand.difference_update((task.priority, task.seq) for task in self.tasks)
        # tasks that were not taken from the to-do list
        own = (Purpose.PART, Purpose.LOGIN)
        self.parts += [task.request for task in self.tasks if task.request.purpose in own and not task.seq]
        self.tasks.clear()

    def drop_part(self, request: Request) -> None:
        """Removes an unsent request of a rendered page. The store drops placeholder tasks itself."""
        self.parts = deque(part for part in self.parts if part != request)
        self.tasks = deque(task for task in self.tasks if task.request != request or task.seq)

    def take_back(self, request: Request) -> None:
        """Puts a request that was not started back to the front of its queue."""
        if (task := self.in_flight_tasks.pop(request, None)) is not None:
            self.tasks.appendleft(task)
        else:
            self.side.appendleft(request)
            self.side_in_flight = False

    def state(self, now: float, *, release: bool = False) -> HostState:
        """The state to commit. now: monotonic."""
        pace, origins = self.pace, self.health.values()
        wait = max(0.0, pace.not_before - now)
        strikes = min((origin.strikes for origin in origins), default=self.lease.strikes)
        return HostState(
            self.lease,
            wait,
            pace.delay_s,
            pace.rate,
            strikes,
            self.lease.answered or any(origin.answered for origin in origins),
            pace.waits_for,
            tuple(self.given_up),
            release,
            self.traps.changes(),
        )


def prefer(hosts: Sequence[HeldHost], policy: Policy, room: int) -> tuple[list[HeldHost], list[HeldHost]]:
    """(at most `room` due hosts that the policy chooses, the other due hosts)."""
    by_id = {host.lease.host_id: host for host in hosts}
    starting = policy.choose([host.as_ready() for host in hosts], room)
    return [by_id.pop(host_id) for host_id in starting], list(by_id.values())


def surplus_hosts(hosts: Sequence[HeldHost], surplus: int, late_at: float) -> tuple[list[HeldHost], list[HeldHost]]:
    """(quiet hosts to release now, busy hosts to release when they are quiet): `surplus` together, if there are that
    many. Quiet hosts with the latest due time go first.

    late_at: quiet hosts due after this monotonic time are released in any case.
    """
    quiet = sorted((host for host in hosts if host.is_quiet), key=lambda host: -host.pace.not_before)
    leaving = [host for at, host in enumerate(quiet) if at < surplus or host.pace.not_before > late_at]
    return leaving, [host for host in hosts if not host.is_quiet][: max(0, surplus - len(leaving))]
