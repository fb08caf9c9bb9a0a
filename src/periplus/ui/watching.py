"""Live state of a crawl and of its tree of directories, for any number of browsers."""

from __future__ import annotations

import heapq
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import unquote

from periplus.api.cache import LruCache
from periplus.api.collection import Status
from periplus.api.functions import open_collection
from periplus.api.homes import full_place, open_reader
from periplus.store import crawl_reads as listing
from periplus.store.crawl_reads import RecentVisit
from periplus.values import Place, frozen

STEPS = 3  # of a branch: host, and two of its path
BRANCHES = 20_000  # counted separately, some 5 MB; pages of further branches count for their parent
MOST_NODES = 40  # more is no overview
FOLDERS = 24  # that a picture names

Key = tuple[str, ...]  # host and steps of the path
LOOK_S = 0.9  # a younger result is shared
READ_S = 10.0
# visits taken up at once, some 0.1 s where they are in memory; a long run is caught up with in several looks
ROWS_A_LOOK = 10_000
ROWS_A_STEP = 500  # of these
# after which a look leaves the rest to the next: from a cold disk 10,000 took 3.4 s, in which the screen was empty
TAKE_S = 0.25
RATE_S = 10.0  # over which pages per second are averaged
NEWEST = 12
TREE_URLS = 300_000  # URLs; of larger collections, pages of earlier runs are not read for the tree: 0.5 s, once a run
HOSTS = 12
CACHED_WATCHES = 50  # collections that are watched at once


class Branch(NamedTuple):
    """A branch of the tree.

    depth: 0: a host; prefix: how the URLs of its pages begin, but for the scheme; grown: pages since the look before.
    """

    name: str
    prefix: str
    depth: int
    pages: int
    grown: int


class Folder(NamedTuple):
    """A folder of the first step, or a host where there are several. prefix: as of a branch; empty: what is left."""

    name: str
    prefix: str
    pages: int


class Tree(NamedTuple):
    """The largest branches, parents before children, largest first; more: number of unnamed branches; depths: (clicks,
    pages). folders: a partition of all pages, largest first, the rest last.
    """

    branches: tuple[Branch, ...]
    more: int
    depths: tuple[tuple[int, int], ...]
    folders: tuple[Folder, ...]
    whole: bool  # of all runs, not of the last alone


@dataclass(slots=True)
class Growth:
    """Pages by branch and by depth."""

    whole: bool = True
    pages: Counter[Key] = field(default_factory=Counter)
    grown: Counter[Key] = field(default_factory=Counter)
    depths: Counter[int] = field(default_factory=Counter)
    earlier: set[int] = field(default_factory=set)  # hashes of the URLs of earlier runs, which a refresh visits again

    def add(self, pages: Iterable[tuple[str, int | None]], *, new: bool = True) -> None:
        """Adds pages (URL, depth). new: of this run; pages of earlier runs are added once, before it."""
        for url, depth in pages:
            if hash(url) in self.earlier:
                continue
            if not new:
                self.earlier.add(hash(url))
            self.depths[-1 if depth is None else depth] += 1
            steps = branch_of(url)
            for end in range(1, len(steps) + 1):
                key = steps[:end]
                if key not in self.pages and len(self.pages) >= BRANCHES:
                    break
                self.pages[key] += 1
                if new:
                    self.grown[key] += 1

    def tree(self, most: int = MOST_NODES) -> Tree:
        """The present tree; starts the next update."""
        # a branch holds no more than what it grows on
        best = heapq.nsmallest(most, self.pages, key=lambda key: (-self.pages[key], len(key), key))
        order = {key: tuple((-self.pages[key[:end]], key[end - 1]) for end in range(1, len(key) + 1)) for key in best}
        branches = tuple(self._branch(key) for key in sorted(best, key=order.__getitem__))
        self.grown.clear()
        return Tree(
            branches,
            len(self.pages) - len(branches),
            tuple(sorted(self.depths.items(), key=lambda row: (row[0] < 0, row[0]))),
            self.folders(),
            self.whole,
        )

    def folders(self, most: int = FOLDERS) -> tuple[Folder, ...]:
        """The parts that pictures of the collection colour."""
        hosts = [key for key in self.pages if len(key) == 1]
        steps = 1 if len(hosts) > 1 else 2
        keys = sorted((key for key in self.pages if len(key) == steps), key=lambda key: (-self.pages[key], key))[:most]
        parts = []
        for key in keys:
            branch = self._branch(key)
            parts.append(Folder(branch.name, branch.prefix, branch.pages))
        left = sum(self.pages[host] for host in hosts) - sum(part.pages for part in parts)
        words = "other hosts" if steps == 1 else "other folders" if len(keys) == most else "no folder"
        return (*parts, Folder(words, "", left)) if left > 0 else tuple(parts)

    def _branch(self, key: Key) -> Branch:
        name = key[0] if len(key) == 1 else f"/{unquote(key[-1])}/"
        return Branch(name, "/".join(key) + "/", len(key) - 1, self.pages[key], self.grown[key])


def branch_of(url: str) -> Key:
    """The branch that a page grows on: its directory, or one above."""
    place = url.partition("://")[2].partition("?")[0]
    return tuple(place.split("/")[:-1][:STEPS])


# A crawl is read once a second for all clients; only new rows are read.


@frozen
class Moment:
    """A collection now, its last run in detail.

    seq: grows with every change that is seen; by_type: (media type, pages, bytes received), most bytes first.
    """

    seq: int
    status: Status
    state: str  # of the last run: running, paused, killed, done, stopped, suspicious, failed; empty: there was none
    note: str
    rate: float  # pages a second
    elapsed_s: float
    asked: int  # requests of the run that were counted so far
    behind: bool  # there are more
    by_type: tuple[tuple[str, int, int], ...]
    newest: tuple[RecentVisit, ...]  # the latest first
    errors: tuple[RecentVisit, ...]
    tree: Tree


@dataclass(slots=True)
class _Watch:
    """State of a collection between updates."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    run_id: int = -1
    began: float = 0.0  # the run: a failed first run left nothing, and the next has its number
    last: int = 0  # visit
    asked: int = 0
    types: dict[str, tuple[int, int]] = field(default_factory=dict)
    newest: deque[RecentVisit] = field(default_factory=lambda: deque(maxlen=NEWEST))
    errors: deque[RecentVisit] = field(default_factory=lambda: deque(maxlen=NEWEST))
    growth: Growth = field(default_factory=Growth)
    ends: deque[float] = field(default_factory=lambda: deque(maxlen=5_000))  # of the latest requests for pages
    moment: Moment | None = None
    made: float = 0.0  # by the monotonic clock

    def take(self, rows: list[RecentVisit]) -> None:
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
                self.growth.add(((row.url, row.depth),))

    def begin(self, run_id: int, last: int, before: Sequence[tuple[str, int | None]] | None) -> None:
        """before: pages of earlier runs; None: too many to be read."""
        self.run_id, self.last, self.asked, self.growth = run_id, last, 0, Growth(whole=before is not None)
        self.growth.add(before or (), new=False)
        for rows in (self.types, self.newest, self.errors, self.ends):
            rows.clear()

    def rate(self, now: float) -> float:
        return sum(end > now - RATE_S for end in self.ends) / RATE_S


class Watchers:
    """Reads collections for all browsers. Thread-safe."""

    def __init__(self) -> None:
        self._watches: LruCache[Place, _Watch] = LruCache(CACHED_WATCHES)

    def look(self, place: Place) -> Moment:
        """The collection's moment, not older than LOOK_S. Raises NoCollection, StoreError."""
        watch = self._watches.get_or_make(full_place(place), _Watch)
        with watch.lock:
            if watch.moment is None or time.monotonic() - watch.made > LOOK_S:
                watch.moment = _moment(place, watch, time.time())
                watch.made = time.monotonic()
            return watch.moment


def _moment(place: Place, watch: _Watch, now: float) -> Moment:
    with open_collection(place, time_limit_s=READ_S) as collection:
        status = collection.status(HOSTS)
    run = status.runs[-1] if status.runs else None
    with open_reader(place, READ_S) as reader:
        run_id, began = (run.id, run.started) if run else (0, 0.0)
        if (run_id, began) != (watch.run_id, watch.began):
            watch.began = began
            before = listing.pages_before(reader.statements, began or now, TREE_URLS)
            watch.begin(run_id, listing.before_run(reader.statements, run_id), before)
        behind = _take_new(watch, lambda last: listing.visits_after(reader.statements, last, ROWS_A_STEP))
        newest = tuple(listing.newest(reader.statements, run_id, NEWEST)) if behind else tuple(reversed(watch.newest))
    state, note, elapsed_s = status.state, "", 0.0
    if run is not None:
        note = "" if status.running else run.note
        elapsed_s = max(0.0, (run.ended or now) - run.started) if state != "killed" else 0.0
    types = sorted(((name, *counts) for name, counts in watch.types.items()), key=lambda tally: -tally[2])
    rate = watch.rate(now) if state == "running" else 0.0
    errors = tuple(reversed(watch.errors))
    made = Moment(
        0, status, state, note, rate, elapsed_s, watch.asked, behind, tuple(types), newest, errors, watch.growth.tree()
    )
    return _number(made, watch.moment)


def _take_new(watch: _Watch, read: Callable[[int], list[RecentVisit]]) -> bool:
    """Whether there are more visits than one update reads. read: at most ROWS_A_STEP rows after the given visit."""
    ends = time.monotonic() + TAKE_S
    for _ in range(ROWS_A_LOOK // ROWS_A_STEP):
        rows = read(watch.last)
        watch.take(rows)
        if len(rows) < ROWS_A_STEP:
            return False
        if time.monotonic() > ends:
            break
    return True


def _number(made: Moment, before: Moment | None) -> Moment:
    """With the number before where nothing changed, else with the next."""
    if before is None:
        return replace(made, seq=1)
    same = replace(made, seq=before.seq)
    return same if same == before else replace(made, seq=before.seq + 1)
