"""The system clock; tests pass their own."""

from __future__ import annotations

import time


class SystemClock:
    """`model.ports.Clock` on the system's clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()
