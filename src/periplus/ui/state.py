"""Values that all screens share while the server runs: its collections, its queue, and its caches."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType

from starlette.requests import Request

from periplus.api import search_index, searching
from periplus.api.cache import Background, LruCache
from periplus.api.functions import open_collection
from periplus.api.homes import collections_at, full_place, home_of, open_reader
from periplus.api.page_segments import rules_mtime_ns
from periplus.api.site import Site
from periplus.api.tables import Browser
from periplus.errors import NoCollection, PeriplusError, UsageError
from periplus.features import loaded
from periplus.jobs.runner import opened_queue
from periplus.masking import without_secrets
from periplus.model.job import Job, JobOrder, JobState
from periplus.model.web import Url
from periplus.present.site_graph import SiteGraph
from periplus.retrieval.index import IndexBusy
from periplus.settings import SETTINGS_FILE, SUFFIX
from periplus.store.job_queue import JobQueue
from periplus.ui.safety import Locks
from periplus.ui.watching import Watchers
from periplus.urls.scope import site_key
from periplus.values import Place, frozen

_log = logging.getLogger(__name__)
DATABASE = "collection.db"
OPEN = (JobState.QUEUED, JobState.RUNNING)
RECENT_JOBS = 200
CACHED_LAYOUTS = 4  # of ten thousand pages each takes 10 MB
CACHED_PARTS = 50  # of screens that are watched
MAPS = 2  # of a million pages each takes 0.5 GB
READ_S = 120.0
SMALL_URLS = 10_000  # whose map is made in 0.3 s


@frozen
class Places:
    """The collections of this server, by their names.

    base: the folder of new collections and of the queue; folders: all their collections are shown, also new ones;
    single: further collections, as folders or addresses.
    """

    base: Path
    folders: tuple[Path, ...]
    single: tuple[Place, ...] = ()

    def collections(self) -> dict[str, Place]:
        """Name to folder or address, sorted by name. Equal names get a number."""
        return dict(sorted(collections_at([*self.single, *self.folders], self.base).items()))

    def place(self, name: str) -> Place:
        """Raises NoCollection."""
        place = self.collections().get(name)
        if place is None:
            raise NoCollection(f"there is no collection {name!r} here")
        return place


def places(given: Iterable[Place]) -> Places:
    """Folders of collections, and collections, as named on the command line; none: the current folder. Texts are
    addresses of collections in databases.

    Raises UsageError, NoCollection, StoreError.
    """
    named = list(given) or [Path()]
    addresses = [place for place in named if isinstance(place, str)]
    for address in addresses:
        open_collection(address).close()  # that it is there
    paths = [place for place in named if isinstance(place, Path)]
    for path in paths:
        if not path.is_dir():
            raise UsageError(f"{path} is not a folder: name a collection, or a folder of collections")
    single = [path for path in paths if (path / DATABASE).is_file()]
    folders = tuple(path for path in paths if path not in single)
    if not paths:
        return Places(Path(), (), tuple(addresses))
    base = folders[0] if folders else single[0].resolve().parent
    return Places(base, folders or (base,), (*single, *addresses))


@dataclass(slots=True)
class MovingPart:
    """The moving part of a screen, for all browsers. made: by the monotonic clock."""

    html: str = ""
    made: float = 0.0


_Key = tuple[object, ...]


class Maps:
    """The latest maps, recomputed when a collection has changed. Thread-safe; one map is computed at a time."""

    def __init__(self) -> None:
        self._sites: LruCache[_Key, Site] = LruCache(MAPS)

    def cached_site(self, place: Place, site: str) -> Site | None:
        """The map, if it takes no time: it was just looked at, or its collection is small. Raises as `of`."""
        with open_reader(place) as reader:
            key = (full_place(place), site, *reader.version(), rules_mtime_ns(place))
            is_small = reader.count_urls() <= SMALL_URLS
        return self.of(place, site) if is_small else self._sites.get(key)

    def of(self, place: Place, site: str) -> Site:
        """Raises UsageError where there is no map, NoCollection, StoreError."""
        with open_reader(place) as reader:
            key = (full_place(place), site, *reader.version(), rules_mtime_ns(place))

        def make() -> Site:
            with open_collection(place, time_limit_s=READ_S) as collection:
                return collection.map(site)

        return self._sites.get_or_make(key, make)


class Indexing:
    """Search indexes updated in the background, by one thread for the collections of a query."""

    def __init__(self) -> None:
        self._lock, self._threads = threading.Lock(), dict[tuple[Place, ...], threading.Thread]()

    def is_done(self, places: Sequence[Place], wait_s: float) -> bool:
        """Whether the indexes have all that is stored; False: not after wait_s, and the work goes on."""
        behind = tuple(place for place in places if not searching.is_indexed(place))
        if not behind:
            return True
        with self._lock:
            thread = self._threads.get(behind)
            if thread is None or not thread.is_alive():
                thread = self._threads[behind] = threading.Thread(target=_caught_up, args=behind, daemon=True)
                thread.start()
        thread.join(wait_s)
        return not thread.is_alive()


def _caught_up(*places: Place) -> None:
    """The search itself reports errors of the update."""
    for place in places:
        with contextlib.suppress(PeriplusError, IndexBusy):
            search_index.catch_up(place)


@frozen
class AppState:
    """commands: that this program has, by name; works: whether a worker was started with the server."""

    places: Places
    locks: Locks
    commands: frozenset[str]
    works: bool = False
    browser: Browser = field(default_factory=Browser)
    watchers: Watchers = field(default_factory=Watchers)
    maps: Maps = field(default_factory=Maps)
    indexing: Indexing = field(default_factory=Indexing)
    layouts: Background[tuple[object, ...], SiteGraph] = field(default_factory=lambda: Background(CACHED_LAYOUTS))
    parts: LruCache[str, MovingPart] = field(default_factory=lambda: LruCache(CACHED_PARTS))

    @contextlib.contextmanager
    def queue(self) -> Iterator[JobQueue]:
        """The queue, for one request: a reader belongs to one thread."""
        with opened_queue(self.places.base) as (queue, _):
            yield queue

    def is_healthy(self) -> bool:
        """Whether the queue and the databases answer."""
        try:
            with self.queue() as queue:
                queue.jobs(most=1)
            for place in self.places.single:
                if isinstance(place, str):
                    home_of(place).runs()
        except PeriplusError:
            return False
        return True

    def add_job(self, order: JobOrder) -> None:
        with self.queue() as queue:
            queue.add(order, now())

    def settings_files(self, place: Place | None = None) -> list[Path]:
        """Where settings of jobs are read from, the later over the earlier: beside the collections, and in one."""
        files = [self.places.base / SETTINGS_FILE, *([place / SETTINGS_FILE] if isinstance(place, Path) else [])]
        return [path for path in files if path.is_file()]

    def folder_word(self, place: Place) -> str:
        """A collection as a job's command names it: jobs run in the folder of collections."""
        if isinstance(place, str):
            return without_secrets(place)
        full = place.resolve()
        return full.name if full.parent == self.places.base.resolve() else str(full)

    def has_studies(self, name: str) -> bool:
        """Whether a feature has stored something in the collection, or it starts on several sites."""
        place = self.places.collections().get(name)
        if place is None:
            return False
        with contextlib.suppress(PeriplusError), open_collection(place) as collection:
            sites = {site_key(Url(start)) for run in collection.runs() for start in run.starts}
            uses = any(is_in_use(place) for _, is_in_use in loaded("in_use", FunctionType).values())
            return len(sites) > 1 or uses
        return False

    def jobs_of(self, name: str) -> list[Job]:
        """The collection's jobs among the last JOBS_LOOKED_AT, the latest first."""
        with self.queue() as queue:
            jobs = queue.jobs(most=RECENT_JOBS)
        place = self.places.collections().get(name)
        word = self.folder_word(place) if place else name + SUFFIX
        return [job for job in jobs if works_on(job, name, place) or word in job.order.command]

    def job_of(self, name: str) -> Job | None:
        """The latest job of the collection: an open job, else the last ended job."""
        return next(iter(self.jobs_of(name)), None)

    def stop_jobs(self, name: str) -> bool:
        """Stops the collection's open jobs; they store their answers first. False: there are none."""
        jobs = [job for job in self.jobs_of(name) if job.state in OPEN]
        with self.queue() as queue:
            for job in jobs:
                queue.cancel(job.id, now())
        return bool(jobs)


def works_on(job: Job, name: str, place: Place | None) -> bool:
    """place: of the collection, if it is there."""
    words = {name + SUFFIX, str(place.resolve())} if isinstance(place, Path) else {name + SUFFIX}
    return not words.isdisjoint(job.order.command)


def state_of(request: Request) -> AppState:
    state = request.app.state.periplus
    assert isinstance(state, AppState)
    return state


def place_read(request: Request) -> tuple[str, Place]:
    """(name, folder or address) of the collection in the address of the screen. Raises NoCollection."""
    name = request.path_params["name"]
    return name, state_of(request).places.place(name)


def now() -> float:
    return time.time()
