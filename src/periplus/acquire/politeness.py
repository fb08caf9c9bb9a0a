"""When each host that a worker holds may be asked again, and whose turn it is, of names of one address too."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC

from periplus.document.robots import Access, RobotsGroup
from periplus.model.frontier import PRIORITY_DOUBT, GivenUp, HostState, Lease, ReadyHost, Task
from periplus.model.ports import AddressPlace, AddressTable, Policy, TrapDetection
from periplus.model.visit import Cause, Failed, Fetched, Outcome, Purpose, Request, Visit
from periplus.model.web import HostKey, Origin
from periplus.settings import DELAY_FLOOR_S, Politeness
from periplus.urls.hosts import is_named, special_network
from periplus.values import frozen

# Promises, over any history: a request starts no sooner than the host's delay after the one before it started;
# a wait that the server asked for (Retry-After) is kept, and where it is longer than the limit the host is
# given up; each refusal for load (429, 503) halves the rate, though to no longer gaps than the server asked
# for, each good answer gives a tenth of it back; a failure of the server as a whole suspends it for a time that
# doubles, until it answers or is given up.

RATE_FLOOR = 1 / 64  # six refusals in a row; slower than that a host is as good as suspended
UNPACED_S = 0.1  # the delay that a refused rate is halved from where none was set (hosts of one's own)
STRIKES_IF_NEVER_SEEN = 2  # a host that never answered is most likely a wrong name: no long siege
_HOST_FAILURES = frozenset(
    {Cause.NAME, Cause.CONNECT, Cause.TLS, Cause.TIMEOUT, Cause.FIRST_BYTE, Cause.RESET, Cause.PROXY}
)


@frozen
class Pace:
    """How fast one host may be asked. Times in seconds; `not_before` on the clock that the caller uses throughout."""

    delay_s: float
    rate: float = 1.0  # share of the full rate, RATE_FLOOR to 1
    not_before: float = 0.0
    strikes: int = 0  # failures of the host in a row
    answered: bool = False  # whether the host ever answered
    waits_for: str = ""  # what a user is told while it waits

    @property
    def gap_s(self) -> float:
        """Seconds between two starts at the present rate."""
        if self.rate >= 1:
            return self.delay_s
        return max(self.delay_s, UNPACED_S) / self.rate

    def with_delay(self, delay_s: float) -> Pace:
        return replace(self, delay_s=delay_s)


def delay_for(politeness: Politeness, mine: bool, crawl_delay_s: float | None, *, is_folder: bool = False) -> float:
    """The seconds between starts that a host gets: ours or its robots.txt's, whichever is longer,
    never under the floor; none where a folder of this machine stands for a host.
    """
    if is_folder:
        return 0.0
    asked = 0.0 if crawl_delay_s is None or (mine and politeness.ignore_robots) else crawl_delay_s
    delay = max(politeness.delay_s, asked)
    return delay if mine else max(delay, DELAY_FLOOR_S)


def retry_after_s(value: str, now: float) -> float | None:
    """Seconds to wait by a Retry-After field (RFC 9110, 10.2.3: seconds or a date); None when it says nothing usable.

    now: seconds since the epoch. A date that has passed gives 0.
    """
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    from email.utils import parsedate_to_datetime  # 5 ms of a start, for what few servers send

    try:
        moment = parsedate_to_datetime(text)
        # asctime's form names no zone, and is GMT (RFC 9110, 5.6.7): never the zone of this machine
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def started(pace: Pace, now: float) -> Pace:
    """After a request was started at `now`."""
    return replace(pace, not_before=max(pace.not_before, now + pace.gap_s), waits_for="delay")


def finished(pace: Pace, visit: Visit, politeness: Politeness, now: float) -> Pace:
    """After a request ended at `now` (on the caller's clock) with this visit."""
    match visit.outcome:
        case Fetched(status=429 | 503 as status, headers=headers):
            return _refused(
                pace, status, retry_after_s(headers.get("retry-after"), visit.started + visit.took_s), politeness, now
            )
        case Failed(cause=cause) if cause in _HOST_FAILURES:
            return struck(pace, cause.value, politeness, now)
        case Failed():
            return pace
        case _:
            better = pace
            if pace.rate < 1 or pace.strikes or not pace.answered:
                better = replace(pace, rate=min(1.0, pace.rate + 0.1), strikes=0, answered=True)
            return suspended(better, _heard_at(visit, now) + better.gap_s, better.waits_for)


def _refused(pace: Pace, status: int, asked_s: float | None, politeness: Politeness, now: float) -> Pace:
    """After a refusal for load.

    asked_s: the server's Retry-After, which says how slow is slow enough: 6 pages that each refused twice with 2 s took
    342 s while every refusal halved the rate.
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


def _heard_at(visit: Visit, now: float) -> float:
    """When the answer's first byte came, for an exchange that ended at `now`.

    The delay counts from there: a request reaches the server some time after we started it (a new connection takes
    longer than a kept one), and only an answer proves that it is there. Counted from the start, the server saw gaps
    up to a tenth too short.
    """
    return now - max(0.0, visit.took_s - visit.first_byte_s)


def suspended(pace: Pace, until: float, why: str) -> Pace:
    """A pace that waits until then at least, for a reason that is shown."""
    if until <= pace.not_before and why == pace.waits_for:
        return pace
    return replace(pace, not_before=max(pace.not_before, until), waits_for=why)


def struck(pace: Pace, why: str, politeness: Politeness, now: float) -> Pace:
    """After a failure of the host as a whole: a wait that doubles with each in a row,
    as often as it takes to give the host up (where others' robots.txt lead to it, it is asked further).
    """
    wait = politeness.retry_wait_s * 2 ** min(pace.strikes, politeness.host_strikes, 16)
    return suspended(replace(pace, strikes=pace.strikes + 1), now + wait, why)


def given_up(pace: Pace, politeness: Politeness) -> bool:
    """Whether the host has failed so often in a row that this run leaves it."""
    return pace.strikes >= (
        politeness.host_strikes if pace.answered else min(STRIKES_IF_NEVER_SEEN, politeness.host_strikes)
    )


def may_pass(outcome: Outcome) -> bool:
    """Whether a later attempt may end better: throttling, server errors, lost connections."""
    match outcome:
        case Fetched(status=status):
            return status in (408, 425, 429) or 500 <= status < 600  # 999 and its kind are refusals
        case Failed(cause=cause):
            return cause in _HOST_FAILURES and cause is not Cause.TLS
        case _:
            return False


# Names are hosts to robots.txt and to the web; to the machine behind them they are one. Where more names lead to an
# address than may be asked side by side, it is treated as one host would be: one request at a time, and starts the
# delay apart. The names take turns in the order in which they come. What they agree by, a table, is shared by the
# processes of a machine: `store.addresses`.
#
# A name's address is known when it is first connected to: what must wait then is not sent.

# names, and addresses; what was met first is forgotten first, and learned anew from the next answer
MOST_KNOWN = 65_536
OWN_MACHINE = "loopback"  # its names are taken for those of a test, or of proxies and tunnels


class OwnAddresses:
    """`model.ports.AddressTable` of one process alone."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}
        self._places: dict[str, AddressPlace] = {}

    def enter(self, address: str, name: str) -> None:
        self._names.setdefault(address, set()).add(name)

    def leave(self, address: str, name: str) -> None:
        names = self._names.get(address, set())
        names.discard(name)
        if not names:
            self._names.pop(address, None)
            self._places.pop(address, None)

    def names(self, address: str) -> int:
        return len(self._names.get(address, ()))

    @contextlib.contextmanager
    def place(self, address: str) -> Iterator[AddressPlace]:
        yield self._places.setdefault(address, AddressPlace())

    def close(self) -> None:
        """Holds nothing."""


class AddressTurns:
    """The addresses that one worker's names lead to. Times on the machine's monotonic clock, in seconds."""

    def __init__(
        self, most_names: int, gap_s: float, mine: frozenset[str] = frozenset(), table: AddressTable | None = None
    ) -> None:
        """most_names: of one address that are asked side by side.

        gap_s: between two starts at an address that has more. mine: hosts that take no turns, as
        `scope.own_hosts` writes them. table: that others share; None: this worker's alone.
        """
        self._most, self._gap_s, self._mine = most_names, gap_s, mine
        self._table: AddressTable = OwnAddresses() if table is None else table
        self._address: dict[str, str] = {}
        self._slots: dict[HostKey, float] = {}  # when hosts that wait may come again
        self._flights: dict[HostKey, str] = {}

    def ended(self, host: HostKey, address: str) -> None:
        """An exchange with a host is over. address: that answered; empty: none did, or it is unknown."""
        if before := self._flights.pop(host, ""):
            with self._table.place(before) as place:
                place.asked = "" if place.asked == host else place.asked
        self._learn(host.rpartition(":")[0], address)

    def admits(self, host: HostKey, address: str, now: float) -> bool:
        """Whether a host may be asked at this address now, to which it turned out to lead; else `turn` says when."""
        self._learn(host.rpartition(":")[0], address)
        return self.turn(host, now) <= now

    def _learn(self, name: str, address: str) -> None:
        before = self._address.get(name)
        if not address or address == before or special_network(address) == OWN_MACHINE:
            return
        if before is not None:
            self._table.leave(before, name)
        elif len(self._address) >= MOST_KNOWN:
            first = next(iter(self._address))
            self._table.leave(self._address.pop(first), first)
        self._address[name] = address
        self._table.enter(address, name)

    def turn(self, host: HostKey, now: float) -> float:
        """When a host may be asked: now, and it is taken to be asked; or at a later time, which is kept for it."""
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
            if slot <= now:  # one before it came late, or is asked for longer than the delay: to the end of the line
                slot = max(place.next_slot, now + self._gap_s) if place.asked else place.free_at
            place.next_slot = max(place.next_slot, slot + self._gap_s)
        self._slots[host] = slot
        return slot


# Politeness is the host's: one pace for all that is asked at one name and port. Failure is an origin's: a port that
# speaks plain HTTP fails whoever follows a link to it by https, and is there for all others.


@frozen
class OriginRules:
    """An origin's robots.txt as it binds us now."""

    rules: RobotsGroup
    access: Access
    expires: float  # seconds since the epoch


@frozen
class OriginHealth:
    """How an origin has answered."""

    strikes: int  # failures in a row
    answered: bool  # whether it ever did


@dataclass(slots=True)
class HeldHost:
    """One leased host. The only state of a crawl that lives in a process; all of it can be lost.

    Always: in_hand holds the (priority, seq) of each task that was taken and is not yet committed; a host with
    something in flight or uncommitted is not released.
    """

    lease: Lease
    pace: Pace  # not_before on the monotonic clock; strikes and answered: of the origin asked last
    mine: bool
    traps: TrapDetection
    tasks: deque[Task] = field(default_factory=deque)
    in_hand: set[tuple[int, int]] = field(default_factory=set)
    side: deque[Request] = field(default_factory=deque)  # robots.txt asked for on the way
    side_in_flight: bool = False
    parts: deque[Request] = field(default_factory=deque)  # of pages that are rendered: they go before other pages
    rendering: int = 0  # pages in a browser
    withheld: int = 0  # pages of which it is not known yet whether they were made for who is signed in
    in_flight_tasks: dict[Request, Task] = field(default_factory=dict)
    rules: dict[Origin, OriginRules] = field(default_factory=dict)
    health: dict[Origin, OriginHealth] = field(default_factory=dict)
    given_up: list[GivenUp] = field(default_factory=list)  # origins, since the last commit
    uncommitted: int = 0
    doubt_round: int = 0  # the priority of the last task that was put off before
    fresh: tuple[bool, bool] = (True, True)  # whether a page brought something new: in this round, in the one before
    leaving: bool = False  # beyond our share: nothing more is started, and its lease ends when it is quiet
    due_at: float | None = None  # its valid entry in the worker's heap
    exhausted: bool = (
        False  # nothing to take until a commit, or until another host of the site is done with its priority
    )

    @property
    def in_flight(self) -> int:
        return len(self.in_flight_tasks) + self.side_in_flight

    @property
    def answered(self) -> bool:
        """Whether it ever did, by any of its origins."""
        return self.lease.answered or any(origin.answered for origin in self.health.values())

    @property
    def has_errand(self) -> bool:
        """Whether it is to be asked for something that another host waits for."""
        return any(priority < 0 for priority, _ in self.in_hand)

    def as_ready(self) -> ReadyHost:
        """For a policy that chooses page by page."""
        return ReadyHost(self.lease.host_id, self.lease.host, self.lease.site, len(self.tasks), 0, 0.0)

    @property
    def is_quiet(self) -> bool:
        """Nothing under way and nothing to store: the lease may end."""
        return not (self.in_flight or self.uncommitted or self.rendering or self.withheld or self.parts)

    def pace_of(self, origin: Origin) -> Pace:
        """The pace, with the failures of this origin.

        One not met since the lease began is taken for what the host was then.
        """
        health, pace = self.health.get(origin) or OriginHealth(self.lease.strikes, self.lease.answered), self.pace
        if (health.strikes, health.answered) == (pace.strikes, pace.answered):
            return pace
        return replace(pace, strikes=health.strikes, answered=health.answered)

    def keep_pace(self, origin: Origin, pace: Pace) -> None:
        self.pace, self.health[origin] = pace, OriginHealth(pace.strikes, pace.answered)

    def may_doubt_again(self, priority: int) -> bool:
        """Whether a URL of this priority that looks like a trap may be put off once more:
        while each round brings something new.
        """
        if priority >= PRIORITY_DOUBT and priority != self.doubt_round:
            self.doubt_round, self.fresh = priority, (False, self.fresh[0])
        return priority < PRIORITY_DOUBT or self.fresh[1]

    def put_back(self) -> None:
        """Tasks that are not under way are no longer in hand: they will be taken anew."""
        self.in_hand.difference_update((task.priority, task.seq) for task in self.tasks)
        # those that were never taken from a list
        own = (Purpose.PART, Purpose.LOGIN)
        self.parts += [task.request for task in self.tasks if task.request.purpose in own and not task.seq]
        self.tasks.clear()

    def drop_part(self, request: Request) -> None:
        """A part that was not asked for; what was taken of a list, the store drops."""
        self.parts = deque(one for one in self.parts if one != request)
        self.tasks = deque(task for task in self.tasks if task.request != request or task.seq)

    def take_back(self, request: Request) -> None:
        """A request that was not started after all: it is the next again."""
        if (task := self.in_flight_tasks.pop(request, None)) is not None:
            self.tasks.appendleft(task)
        else:
            self.side.appendleft(request)
            self.side_in_flight = False

    def state(self, now: float, *, release: bool = False) -> HostState:
        """For the store. now: monotonic."""
        pace, origins = self.pace, self.health.values()
        wait = max(0.0, pace.not_before - now)
        strikes = min((origin.strikes for origin in origins), default=self.lease.strikes)
        return HostState(
            self.lease,
            wait,
            pace.delay_s,
            pace.rate,
            strikes,
            self.answered,
            pace.waits_for,
            tuple(self.given_up),
            release,
            self.traps.changes(),
        )


def preferred(hosts: Sequence[HeldHost], policy: Policy, room: int) -> tuple[list[HeldHost], list[HeldHost]]:
    """Of hosts that are due: those that start now, at most `room` by the policy, and the others."""
    by_id = {host.lease.host_id: host for host in hosts}
    starting = policy.choose([host.as_ready() for host in hosts], room)
    return [by_id.pop(host_id) for host_id in starting], list(by_id.values())


def surplus_hosts(hosts: Sequence[HeldHost], surplus: int, late_at: float) -> tuple[list[HeldHost], list[HeldHost]]:
    """(quiet hosts to be released now, busy ones to be released when they are quiet),
    `surplus` together if there are so many; who waits longest goes first.

    late_at: who is due later goes in any case; monotonic.
    """
    quiet = sorted((host for host in hosts if host.is_quiet), key=lambda host: -host.pace.not_before)
    leaving = [host for at, host in enumerate(quiet) if at < surplus or host.pace.not_before > late_at]
    return leaving, [host for host in hosts if not host.is_quiet][: max(0, surplus - len(leaving))]
