"""How does a crawl stand at this moment, for however many who watch it? Read once a second, whoever asks; only what is new is read."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from periplus.api.collection import Status, open_collection
from periplus.api.growth import Growth, Tree
from periplus.store.sqlite import reading, watch_rows
from periplus.store.sqlite.watch_rows import VisitRow

__all__ = ["Moment", "TypeTally", "VisitRow", "Watchers"]

LOOK_S = 0.9  # a younger look serves all who ask
READ_S = 10.0
ROWS_A_LOOK = 10_000  # visits taken up at once, some 0.1 s where they are in memory; a long run is caught up with in several looks
ROWS_A_STEP = 500  # of these
TAKE_S = 0.25  # after which a look leaves the rest to the next: from a cold disk 10,000 took 3.4 s, in which the screen was empty
RATE_S = 10.0  # over which pages per second are averaged
NEWEST = 12
TREE_URLS = 300_000  # known; of more, what earlier runs brought is not read for the tree: 0.5 s, once a run
HOSTS = 12
REMEMBERED = 50  # collections that are watched at once


@dataclass(frozen=True, slots=True)
class TypeTally:
    """What a run brought of one media type."""

    media_type: str
    pages: int
    wire_bytes: int


@dataclass(frozen=True, slots=True)
class Moment:
    """A collection as it stands, its last run in detail. seq: grows with every change that is seen; by_type: most bytes first."""

    seq: int
    status: Status
    state: str  # of the last run: running, paused, killed, done, stopped, suspicious, failed; empty: there was none
    note: str
    rate: float  # pages a second
    elapsed_s: float
    asked: int  # requests of the run that were counted so far
    behind: bool  # there are more
    by_type: tuple[TypeTally, ...]
    newest: tuple[VisitRow, ...]  # the latest first
    errors: tuple[VisitRow, ...]
    tree: Tree


@dataclass(slots=True)
class _Watch:
    """What is remembered of one collection between two looks."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    run_id: int = -1
    last: int = 0  # visit
    asked: int = 0
    types: dict[str, tuple[int, int]] = field(default_factory=dict)
    newest: deque[VisitRow] = field(default_factory=lambda: deque(maxlen=NEWEST))
    errors: deque[VisitRow] = field(default_factory=lambda: deque(maxlen=NEWEST))
    growth: Growth = field(default_factory=Growth)
    ends: deque[float] = field(default_factory=lambda: deque(maxlen=5_000))  # of the latest requests for pages
    moment: Moment | None = None
    looked: float = 0.0

    def take(self, rows: list[VisitRow]) -> None:
        for row in rows:
            self.last = row.id
            if row.run_id != self.run_id or row.outcome == "skipped":
                continue
            self.asked += 1
            if row.purpose != "page":
                continue
            self.newest.append(row)
            self.ends.append(row.started + row.took_s)
            if row.outcome == "failed" or row.status >= 400:
                self.errors.append(row)
            elif row.outcome == "fetched":
                pages, wire_bytes = self.types.get(row.media_type, (0, 0))
                self.types[row.media_type] = (pages + 1, wire_bytes + row.wire_bytes)
                self.growth.add(((row.url, row.layer),))

    def begin(self, run_id: int, last: int, before: Sequence[tuple[str, int | None]] | None) -> None:
        """before: pages of earlier runs; None: too many to be read."""
        self.run_id, self.last, self.asked, self.growth = run_id, last, 0, Growth(whole=before is not None)
        self.growth.add(before or (), new=False)
        for kept in (self.types, self.newest, self.errors, self.ends):
            kept.clear()

    def rate(self, now: float) -> float:
        return sum(end > now - RATE_S for end in self.ends) / RATE_S


class Watchers:
    """Looks at collections for all who watch. For many threads."""

    def __init__(self) -> None:
        self._watches: dict[Path, _Watch] = {}
        self._lock = threading.Lock()

    def look(self, folder: Path) -> Moment:
        """The collection's moment, not older than LOOK_S. Raises NoCollection, StoreError."""
        with self._watch(folder) as watch:
            if watch.moment is None or time.monotonic() - watch.looked > LOOK_S:
                watch.moment = _looked(folder, watch, time.time())
                watch.looked = time.monotonic()
            return watch.moment

    @contextlib.contextmanager
    def _watch(self, folder: Path) -> Iterator[_Watch]:
        with self._lock:
            if len(self._watches) > REMEMBERED:
                self._watches.clear()
            watch = self._watches.setdefault(folder.resolve(), _Watch())
        with watch.lock:
            yield watch


def _looked(folder: Path, watch: _Watch, now: float) -> Moment:
    with open_collection(folder, time_limit_s=READ_S) as kept:
        status = kept.status(HOSTS)
    run = status.runs[-1] if status.runs else None
    with contextlib.closing(reading.connect(folder)) as connection, reading.limited(connection, READ_S):
        run_id = run.id if run else 0
        if run_id != watch.run_id:
            before = watch_rows.pages_before(connection, run.started if run else now, TREE_URLS)
            watch.begin(run_id, watch_rows.before_run(connection, run_id), before)
        behind = _takes_up(watch, lambda last: watch_rows.visits_after(connection, last, ROWS_A_STEP))
        newest = tuple(watch_rows.newest(connection, run_id, NEWEST)) if behind else tuple(reversed(watch.newest))
    state, note, elapsed_s = status.state, "", 0.0
    if run is not None:
        note = "" if status.running else run.note
        elapsed_s = max(0.0, (run.ended or now) - run.started) if state != "killed" else 0.0
    types = sorted((TypeTally(name, *counts) for name, counts in watch.types.items()), key=lambda tally: -tally.wire_bytes)
    rate = watch.rate(now) if state == "running" else 0.0
    errors = tuple(reversed(watch.errors))
    made = Moment(0, status, state, note, rate, elapsed_s, watch.asked, behind, tuple(types), newest, errors, watch.growth.tree())
    return _numbered(made, watch.moment)


def _takes_up(watch: _Watch, read: Callable[[int], list[VisitRow]]) -> bool:
    """Whether there are more visits than one look takes up. read: at most ROWS_A_STEP that follow the one given."""
    ends = time.monotonic() + TAKE_S
    for _ in range(ROWS_A_LOOK // ROWS_A_STEP):
        rows = read(watch.last)
        watch.take(rows)
        if len(rows) < ROWS_A_STEP:
            return False
        if time.monotonic() > ends:
            break
    return True


def _numbered(made: Moment, before: Moment | None) -> Moment:
    """With the number before where nothing changed, else with the next."""
    if before is None:
        return replace(made, seq=1)
    same = replace(made, seq=before.seq)
    return same if same == before else replace(made, seq=before.seq + 1)
