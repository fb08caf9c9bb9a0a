"""Fakes for clock and network: a clock that advances only when a test or a wait moves it, and scripted responses."""

from __future__ import annotations

import contextlib
import heapq
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from periplus.acquire.politeness import AddressTurns
from periplus.model.ports import AddressPlace, Response
from periplus.model.visit import Cause, Cut, Headers, Request

# Shortest wait. Less would be lost in the rounding of FakeClock (1e-10), and a loop of such waits would never end.
LEAST_S = 1e-9


@dataclass
class FakeClock:
    """`model.ports.Clock` whose time changes only when `seconds` is set."""

    seconds: float = 1_000_000.0

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds - 999_000.0


@dataclass(frozen=True)
class Scripted:
    """A response of FakeTransport. cause: why there was no response; then only `took_s` of the other fields is used."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "text/html"),)
    took_s: float = 0.1
    cut: Cut = Cut.NONE
    cause: Cause | None = None


Script = Mapping[str, Scripted | Sequence[Scripted]] | Callable[[Request], Scripted]
LOST = Scripted(status=404)


@dataclass
class FakeTransport:
    """`model.ports.Transport` with scripted responses by URL: one, or a sequence whose last response repeats.
    A URL without a script gets a 404.

    started: each request with the monotonic time of its start.
    """

    clock: FakeClock
    script: Script
    started: list[tuple[float, Request]] = field(default_factory=list)
    closed: bool = False
    _flying: list[tuple[float, int, Response]] = field(default_factory=list)

    def start(self, request: Request, before: float = math.inf) -> None:
        now = self.clock.monotonic()
        answer = self._answer(request)
        self.started.append((now, request))
        heapq.heappush(self._flying, (now + answer.took_s, len(self.started), self._response(request, answer)))

    def _answer(self, request: Request) -> Scripted:
        if callable(self.script):
            return self.script(request)
        answer = self.script.get(request.url, LOST)
        if isinstance(answer, Scripted):
            return answer
        before = sum(earlier.url == request.url for _, earlier in self.started)
        return answer[min(before, len(answer) - 1)]

    def _response(self, request: Request, answer: Scripted) -> Response:
        if answer.cause is not None:
            return Response(
                request, self.clock.now(), answer.took_s, 0, Headers(), b"", Cut.NONE, answer.cause, "as scripted", ""
            )
        received = (answer.status, Headers(answer.headers), answer.body, answer.cut, None, "", "192.0.2.1")
        return Response(request, self.clock.now(), answer.took_s, *received, answer.took_s)

    def withdraw(self, requests: Collection[Request]) -> None:
        """Does nothing: a request is sent as soon as it is started."""

    def wait(self, timeout_s: float) -> Sequence[Response]:
        deadline = self.clock.monotonic() + timeout_s
        if not self._flying or self._flying[0][0] > deadline:
            self.clock.seconds += max(LEAST_S, timeout_s)
            return ()
        self.clock.seconds += max(0.0, self._flying[0][0] - self.clock.monotonic())
        done = []
        while self._flying and self._flying[0][0] <= self.clock.monotonic() + 1e-9:
            done.append(heapq.heappop(self._flying)[2])
        return done

    @property
    def in_flight(self) -> int:
        return len(self._flying)

    def close(self) -> None:
        self._flying.clear()
        self.closed = True


class OwnAddresses:
    """`model.ports.AddressTable` of a single process."""

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


def own_turns(most_names: int, gap_s: float, mine: frozenset[str] = frozenset()) -> AddressTurns:
    """Turns of a worker that shares no table with others."""
    return AddressTurns(most_names, gap_s, mine, OwnAddresses())
