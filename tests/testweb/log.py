"""Log of the requests to the synthetic web, in memory, and as JSON lines for other processes."""

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
    """A request and its answer."""

    # seconds since the epoch when its header was complete, as recorded by the system
    wall: float
    arrived: float  # the same moment on the monotonic clock
    ended: float  # monotonic: last byte handed to the system, or the connection lost
    host: str
    method: str
    target: str  # path and query as written
    user_agent: str
    headers: tuple[tuple[str, str], ...]  # the fields in HEADERS_KEPT
    status: int  # 0: no status line was sent
    body_bytes: int  # transferred bytes of the body
    at_once: int  # open requests to this host at its arrival, itself included
    connection: int  # number of the connection, from 1


@dataclass(slots=True)
class Log:
    """All requests, ordered by end."""

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
        """The host's requests, ordered by arrival."""
        with self._lock:
            return sorted((entry for entry in self.entries if entry.host == host), key=lambda entry: entry.arrived)

    def targets(self, host: str) -> list[str]:
        """Targets requested from the host, ordered by arrival, with repetitions."""
        return [entry.target for entry in self.of(host)]

    def gaps(self, host: str) -> list[float]:
        """Seconds between the arrivals of the host's requests, one fewer than there are requests."""
        times = [entry.arrived for entry in self.of(host)]
        return [later - earlier for earlier, later in itertools.pairwise(times)]

    def max_at_once(self, host: str) -> int:
        """Largest number of simultaneous requests; 0 without requests."""
        return max((entry.at_once for entry in self.of(host)), default=0)

    def count(self, target: str, host: str | None = None) -> int:
        """Number of requests for path and query, to one host or to all."""
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
    """The log of another process, without a last line truncated by a kill."""
    log = Log()
    for line in path.read_text("utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            values = json.loads(line)
            values["headers"] = tuple((name, value) for name, value in values["headers"])
            log.entries.append(Entry(**values))
    return log
