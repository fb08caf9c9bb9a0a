"""Stand-ins for time and the wire: a clock that moves when it is told, answers from a script."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from periplus.model.ports import Response
from periplus.model.visit import Cause, Cut, Headers, Request

# that a wait takes: less is lost in FakeClock's rounding (1e-10), and whoever waits for so little would wait for ever
LEAST_S = 1e-9


@dataclass
class FakeClock:
    """`model.ports.Clock` that stands still until something takes time."""

    seconds: float = 1_000_000.0

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds - 999_000.0


@dataclass(frozen=True)
class Scripted:
    """One answer of a FakeTransport. cause: nothing came, and why; then the other fields are not looked at."""

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
    """`model.ports.Transport` by script: URL to answer, or to answers in turn, of which the last stays;
    404 for what it lacks.

    started: each request with the monotonic time of its start, for tests of who was asked when.
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
        heard = (answer.status, Headers(answer.headers), answer.body, answer.cut, None, "", "192.0.2.1", answer.took_s)
        return Response(request, self.clock.now(), answer.took_s, *heard)

    def withdraw(self, requests: Collection[Request]) -> None:
        """They are sent as soon as they are started."""

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
