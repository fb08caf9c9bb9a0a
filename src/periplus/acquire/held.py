"""How does one host stand, while a worker holds it? Its tasks in hand, its pace, its robots.txt."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from periplus.acquire.politeness import Pace
from periplus.document.robots import Access, Rules
from periplus.model.frontier import LAYER_DOUBT, HostState, Lease, Task
from periplus.model.ports import TrapDetection
from periplus.model.visit import Reason, Request
from periplus.model.web import Origin


@dataclass(frozen=True, slots=True)
class OriginRules:
    """An origin's robots.txt as it binds us now."""

    rules: Rules
    access: Access
    expires: float  # seconds since the epoch


@dataclass(slots=True)
class HeldHost:
    """One leased host. The only state of a crawl that lives in a process; all of it can be lost.

    Always: in_hand holds the (layer, seq) of each task that was taken and is not yet committed; a host with something
    in flight or uncommitted is not released.
    """

    lease: Lease
    pace: Pace  # not_before on the monotonic clock
    mine: bool
    traps: TrapDetection
    tasks: deque[Task] = field(default_factory=deque)
    in_hand: set[tuple[int, int]] = field(default_factory=set)
    side: deque[Request] = field(default_factory=deque)  # robots.txt asked for on the way
    side_in_flight: bool = False
    flying: dict[Request, Task] = field(default_factory=dict)
    rules: dict[Origin, OriginRules] = field(default_factory=dict)
    uncommitted: int = 0
    doubt_round: int = 0  # the layer of the last task that was put off before
    fresh: tuple[bool, bool] = (True, True)  # whether a page brought something new: in this round, in the one before
    down: Reason | None = None
    leaving: bool = False  # beyond our share: nothing more is started, and its lease ends when it is quiet
    due_at: float | None = None  # its valid entry in the worker's heap
    dry: bool = False  # nothing to take until a commit, or until another host of the site is done with its layer

    @property
    def in_flight(self) -> int:
        return len(self.flying) + self.side_in_flight

    @property
    def is_quiet(self) -> bool:
        """Nothing under way and nothing to store: the lease may end."""
        return not self.in_flight and not self.uncommitted

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
        pace = self.pace
        wait = max(0.0, pace.not_before - now)
        return HostState(self.lease, wait, pace.delay_s, pace.rate, pace.strikes, pace.answered, pace.waits_for, self.down, release, self.traps.changes())
