"""The system's clock; tests bring their own."""

from __future__ import annotations

import time


class SystemClock:
    """`model.ports.Clock` on the machine's clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()
