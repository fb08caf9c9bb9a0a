"""What do all screens share, as long as the server runs?"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from starlette.requests import Request

from periplus.api.browsing import Browser
from periplus.api.labelling import Sessions
from periplus.api.remembered_maps import Maps
from periplus.api.remembered_surveys import Surveys
from periplus.api.survey_watching import SurveyWatchers
from periplus.api.watching import Watchers
from periplus.errors import UsageError
from periplus.store.sqlite.job_queue import JobQueue
from periplus.ui.places import Places
from periplus.ui.safety import Locks


@dataclass(frozen=True, slots=True)
class House:
    """commands: that this program has, by name; works: whether a worker was started with the server."""

    places: Places
    locks: Locks
    commands: frozenset[str]
    works: bool = False
    browser: Browser = field(default_factory=Browser)
    watchers: Watchers = field(default_factory=Watchers)
    maps: Maps = field(default_factory=Maps)
    surveys: Surveys = field(default_factory=Surveys)
    survey_watchers: SurveyWatchers = field(default_factory=SurveyWatchers)
    labelling: Sessions = field(default_factory=Sessions)
    parts: dict[str, tuple[float, str]] = field(default_factory=dict)  # of screens that are pushed: when made, and what
    part_lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def queue(self) -> Iterator[JobQueue]:
        """The queue, for one request: a connection belongs to one thread."""
        queue = JobQueue(self.places.base)
        try:
            yield queue
        finally:
            queue.close()


def house_of(request: Request) -> House:
    house = request.app.state.house
    assert isinstance(house, House)
    return house


def folder_of(request: Request) -> tuple[str, Path]:
    """(name, folder) of the collection in the address. Raises NoCollection."""
    name = request.path_params["name"]
    return name, house_of(request).places.folder(name)


def job_word(house: House, folder: Path) -> str:
    """The collection as a job of this house's queue names it."""
    full = folder.resolve()
    return full.name if full.parent == house.places.base.resolve() else str(full)


def line_or_fault(line: Callable[[], str]) -> tuple[str, str]:
    """(what a form means on a command line, why it means nothing): one of them is empty."""
    try:
        return line(), ""
    except UsageError as error:
        return "", str(error)


def now() -> float:
    return time.time()
