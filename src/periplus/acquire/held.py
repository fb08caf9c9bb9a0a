"""How does one host stand, while a worker holds it? Its tasks in hand, its pace, its robots.txt.

Politeness is the host's: one pace for all that is asked at one name and port. Failure is an origin's: a port that speaks plain HTTP
fails whoever follows a link to it by https, and is there for all others.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from periplus.acquire.politeness import Pace
from periplus.document.robots import Access, Rules
from periplus.model.frontier import LAYER_DOUBT, GivenUp, HostState, Lease, Task
from periplus.model.ports import TrapDetection
from periplus.model.visit import Request
from periplus.model.web import Origin


@dataclass(frozen=True, slots=True)
class OriginRules:
    """An origin's robots.txt as it binds us now."""

    rules: Rules
    access: Access
    expires: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class Standing:
    """How an origin has answered."""

    strikes: int  # failures in a row
    answered: bool  # whether it ever did


@dataclass(slots=True)
class HeldHost:
    """One leased host. The only state of a crawl that lives in a process; all of it can be lost.

    Always: in_hand holds the (layer, seq) of each task that was taken and is not yet committed; a host with something
    in flight or uncommitted is not released.
    """

    lease: Lease
    pace: Pace  # not_before on the monotonic clock; strikes and answered: of the origin asked last
    mine: bool
    traps: TrapDetection
    tasks: deque[Task] = field(default_factory=deque)
    in_hand: set[tuple[int, int]] = field(default_factory=set)
    side: deque[Request] = field(default_factory=deque)  # robots.txt asked for on the way
    side_in_flight: bool = False
    flying: dict[Request, Task] = field(default_factory=dict)
    rules: dict[Origin, OriginRules] = field(default_factory=dict)
    standings: dict[Origin, Standing] = field(default_factory=dict)
    given_up: list[GivenUp] = field(default_factory=list)  # origins, since the last commit
    uncommitted: int = 0
    doubt_round: int = 0  # the layer of the last task that was put off before
    fresh: tuple[bool, bool] = (True, True)  # whether a page brought something new: in this round, in the one before
    leaving: bool = False  # beyond our share: nothing more is started, and its lease ends when it is quiet
    due_at: float | None = None  # its valid entry in the worker's heap
    polls: bool = False  # it has nothing to ask before others get on, and looks again now and then: nobody need wait for it
    dry: bool = False  # nothing to take until a commit, or until another host of the site is done with its layer

    @property
    def in_flight(self) -> int:
        return len(self.flying) + self.side_in_flight

    @property
    def is_quiet(self) -> bool:
        """Nothing under way and nothing to store: the lease may end."""
        return not self.in_flight and not self.uncommitted

    def pace_of(self, origin: Origin) -> Pace:
        """The pace, with the failures of this origin. One not met since the lease began is taken for what the host was then."""
        standing = self.standings.get(origin) or Standing(self.lease.strikes, self.lease.answered)
        return replace(self.pace, strikes=standing.strikes, answered=standing.answered)

    def keep_pace(self, origin: Origin, pace: Pace) -> None:
        self.pace, self.standings[origin] = pace, Standing(pace.strikes, pace.answered)

    def may_doubt_again(self, layer: int) -> bool:
        """Whether a URL of this layer that looks like a trap may be put off once more: while each round brings something new."""
        if layer >= LAYER_DOUBT and layer != self.doubt_round:
            self.doubt_round, self.fresh = layer, (False, self.fresh[0])
        return layer < LAYER_DOUBT or self.fresh[1]

    def put_back(self) -> None:
        """Tasks that are not under way are no longer in hand: they will be taken anew."""
        self.in_hand.difference_update((task.layer, task.seq) for task in self.tasks)
        self.tasks.clear()

    def take_back(self, request: Request) -> None:
        """A request that was not started after all: it is the next again."""
        if (task := self.flying.pop(request, None)) is not None:
            self.tasks.appendleft(task)
        else:
            self.side.appendleft(request)
            self.side_in_flight = False

    def state(self, now: float, *, release: bool = False) -> HostState:
        """For the store. now: monotonic."""
        pace, standings = self.pace, self.standings.values()
        wait = max(0.0, pace.not_before - now)
        strikes = min((standing.strikes for standing in standings), default=self.lease.strikes)
        answered = self.lease.answered or any(standing.answered for standing in standings)
        return HostState(self.lease, wait, pace.delay_s, pace.rate, strikes, answered, pace.waits_for, tuple(self.given_up), release, self.traps.changes())
