"""What was asked of the synthetic web, when, and how politely?

Kept in memory, and as JSON lines for other processes.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

HEADERS_KEPT = ("if-none-match", "if-modified-since", "accept-encoding", "authorization", "cookie", "accept", "referer")


@dataclass(frozen=True, slots=True)
class Entry:
    """One request and what was sent back."""

    # seconds since the epoch when its header was complete, by the system's account and not by when we came to look
    wall: float
    arrived: float  # the same moment on the monotonic clock
    ended: float  # monotonic: last byte handed to the system, or the connection lost
    host: str
    method: str
    target: str  # path and query as written
    user_agent: str
    headers: tuple[tuple[str, str], ...]  # those of HEADERS_KEPT that were there
    status: int  # 0: no status line was sent
    body_bytes: int  # of the body as it travelled
    at_once: int  # requests under way on this host when it arrived, itself among them
    connection: int  # number of the connection, from 1


@dataclass(slots=True)
class Log:
    """All requests in the order of their ends."""

    entries: list[Entry] = field(default_factory=list)
    sink: TextIO | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, entry: Entry) -> None:
        with self._lock:
            self.entries.append(entry)
            if self.sink is not None:
                self.sink.write(json.dumps(dataclasses.asdict(entry)) + "\n")
                self.sink.flush()

    def of(self, host: str) -> list[Entry]:
        """The host's requests in the order of arrival."""
        with self._lock:
            return sorted((entry for entry in self.entries if entry.host == host), key=lambda entry: entry.arrived)

    def targets(self, host: str) -> list[str]:
        """What was asked of the host, in the order of arrival, repeats included."""
        return [entry.target for entry in self.of(host)]

    def gaps(self, host: str) -> list[float]:
        """Seconds between the arrivals of the host's requests, one fewer than there are requests."""
        times = [entry.arrived for entry in self.of(host)]
        return [later - earlier for earlier, later in itertools.pairwise(times)]

    def max_at_once(self, host: str) -> int:
        """The most requests that were under way together; 0 for a host never asked."""
        return max((entry.at_once for entry in self.of(host)), default=0)

    def count(self, target: str, host: str | None = None) -> int:
        """How often path and query were asked for, of one host or of all."""
        with self._lock:
            return sum(entry.target == target and host in (None, entry.host) for entry in self.entries)

    def hosts(self) -> set[str]:
        with self._lock:
            return {entry.host for entry in self.entries}

    def __iter__(self) -> Iterator[Entry]:
        with self._lock:
            return iter(list(self.entries))

    def __len__(self) -> int:
        return len(self.entries)


def read_log(path: Path) -> Log:
    """The log that another process wrote; a last line that a kill cut short is left out."""
    log = Log()
    for line in path.read_text("utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            values = json.loads(line)
            values["headers"] = tuple((name, value) for name, value in values["headers"])
            log.entries.append(Entry(**values))
    return log
