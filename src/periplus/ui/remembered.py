"""Cache of maps, surveys and search indexes for the next click."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from periplus.api import search_index, survey
from periplus.api.cache import LruCache
from periplus.api.collection import Collection
from periplus.api.page_segments import rules_mtime_ns
from periplus.api.site import Site
from periplus.api.survey import PLAN, LinkChoice
from periplus.api.tables import TablePage, TableQuery, read_page, write_table
from periplus.api.webometrics import SurveyOrder, SurveyRows, results, survey_rows_of
from periplus.errors import PeriplusError, UsageError
from periplus.model.survey import SURVEY_LINKS, SiteMark
from periplus.model.tables import Table
from periplus.model.webometrics import SurveyResults
from periplus.present.survey_report import STANDING, standing_rows, survey_table
from periplus.retrieval.index import IndexBusy
from periplus.schedule.survey import campaign_from
from periplus.store.sqlite import reading, schema
from periplus.store.sqlite import survey as stored_survey
from periplus.store.sqlite import tables as stored_tables
from periplus.store.sqlite.listing import SqliteReader
from periplus.ui.watching import SurveyMoment
from periplus.values import frozen

MAPS = 2  # of a million pages each takes 0.5 GB
READ_S = 120.0
SMALL_URLS = 10_000  # whose map is made in 0.3 s

_Key = tuple[object, ...]


class Maps:
    """The latest maps, recomputed when a collection has changed. Thread-safe; one map is computed at a time."""

    def __init__(self) -> None:
        self._sites: LruCache[_Key, Site] = LruCache(MAPS)

    def cached_site(self, folder: Path, site: str) -> Site | None:
        """The map, if it takes no time: it was just looked at, or its collection is small. Raises as `of`."""
        with reading.open_reader(folder) as connection:
            key = (folder.resolve(), site, *stored_tables.version(connection), rules_mtime_ns(folder))
            is_small = SqliteReader(connection).count_urls() <= SMALL_URLS
        return self.of(folder, site) if is_small else self._sites.get(key)

    def of(self, folder: Path, site: str) -> Site:
        """Raises UsageError where there is no map, NoCollection, StoreError."""
        with reading.open_reader(folder) as connection:
            key = (folder.resolve(), site, *stored_tables.version(connection), rules_mtime_ns(folder))

        def make() -> Site:
            with Collection(folder, time_limit_s=READ_S) as collection:
                return collection.map(site)

        return self._sites.get_or_make(key, make)


class Indexing:
    """Search indexes updated in the background, by one thread for the collections of a query."""

    def __init__(self) -> None:
        self._lock, self._threads = threading.Lock(), dict[tuple[Path, ...], threading.Thread]()

    def is_done(self, folders: Sequence[Path], wait_s: float) -> bool:
        """Whether the indexes have all that is stored; False: not after wait_s, and the work goes on."""
        behind = tuple(folder for folder in folders if search_index.standing(folder) != (0, True))
        if not behind:
            return True
        with self._lock:
            thread = self._threads.get(behind)
            if thread is None or not thread.is_alive():
                thread = self._threads[behind] = threading.Thread(target=_caught_up, args=behind, daemon=True)
                thread.start()
        thread.join(wait_s)
        return not thread.is_alive()


def _caught_up(*folders: Path) -> None:
    """The search itself reports errors of the update."""
    for folder in folders:
        with contextlib.suppress(PeriplusError, IndexBusy):
            search_index.catch_up(folder)


SURVEYS = 4  # as they were counted
TABLES = 24
AGAIN_S = 10.0  # shortest time between recounts during a crawl
SHARE = 0.1  # and so that counting takes no more than this share of the time
LINKS = 50_000  # links shown at once: filter further, or use `periplus survey links`


@frozen
class CountedSurvey:
    """A survey's results as they were counted. key: what they follow from; made: when."""

    key: _Key
    results: SurveyResults
    marks: Mapping[str, SiteMark]
    made: float
    good_until: float  # by the monotonic clock; later they are recounted after a change


@frozen
class LazyTable:
    """A table whose rows are computed when it is looked at. key: what they follow from."""

    table: Table
    key: _Key
    rows: Callable[[], Iterable[Sequence[object]]]


def result_table(counted: CountedSurvey, name: str) -> LazyTable:
    """One of `present.survey_report`. Raises UsageError for another name."""
    table, rows = survey_table(counted.results, name)
    return LazyTable(table, counted.key, lambda: rows)


def standing_table(folder: Path, moment: SurveyMoment, marks: Mapping[str, SiteMark]) -> LazyTable:
    """The current sites while the survey is read."""
    key = (folder.resolve(), moment.seq, tuple(marks.values()))
    return LazyTable(STANDING, key, lambda: standing_rows(moment.standing, marks))


def link_table(folder: Path, choice: LinkChoice) -> LazyTable:
    """The first LINKS links that answer. Raises UsageError, NoCollection, StoreError."""
    table = SURVEY_LINKS.get(choice.kind)
    if table is None:
        raise UsageError(f"there are links of the kinds {', '.join(SURVEY_LINKS)}, not {choice.kind!r}")
    with reading.open_reader(folder) as connection:
        key = (folder.resolve(), stored_tables.version(connection), stored_survey.note(connection, PLAN), choice)
    return LazyTable(table, key, lambda: survey.links(folder, replace(choice, limit=LINKS)))


@dataclass(slots=True)
class Surveys:
    """The latest surveys that were looked at. For many threads; one is counted at a time."""

    _counted: LruCache[_Key, CountedSurvey] = field(default_factory=lambda: LruCache(SURVEYS))
    # the last that were read: of a million pages they take half a gigabyte
    _rows: LruCache[_Key, SurveyRows] = field(default_factory=lambda: LruCache(1))
    _tables: LruCache[_Key, reading.Connection] = field(
        default_factory=lambda: LruCache(TABLES, reading.Connection.close)
    )

    def of(self, folder: Path, order: SurveyOrder) -> CountedSurvey:
        """Results of the survey in folder, counted by order; title and item are the survey's own.

        Raises UsageError, NoCollection, StoreError.
        """
        with self._counted.lock, reading.open_reader(folder) as connection:
            plan, marks = stored_survey.note(connection, PLAN), schema.marks(connection)
            campaign = campaign_from(plan, folder)
            order = replace(order, title=campaign.title, item=campaign.item)
            key = (folder.resolve(), plan, tuple(marks.values()), order)
            version = stored_tables.version(connection)
            counted = self._counted.get(key)
            if counted is not None and (counted.key[-1] == version or time.monotonic() <= counted.good_until):
                return counted
            began = time.monotonic()
            rows = self._rows.get_or_make(
                (folder.resolve(), plan, order.choice, version),
                lambda: survey_rows_of(connection, campaign.units, order),
            )
            figures = results(replace(rows, marks=marks), order, time.time())
            good_s = max(AGAIN_S, (time.monotonic() - began) / SHARE)
            return self._counted.put(
                key, CountedSurvey((*key, version), figures, marks, time.time(), time.monotonic() + good_s)
            )

    def page(self, lazy: LazyTable, query: TableQuery, columns: Sequence[str] = ()) -> TablePage:
        """Raises UsageError."""
        with self._tables.lock:
            return read_page(self._store_table(lazy), lazy.table, query, columns)

    def write(self, lazy: LazyTable, query: TableQuery, format: str, path: Path) -> None:
        """Every row that answers, as a file. Raises UsageError."""
        with self._tables.lock:
            write_table(self._store_table(lazy), lazy.table, query, format, path)

    def _store_table(self, lazy: LazyTable) -> reading.Connection:
        key = (lazy.table.name, *lazy.key)
        return self._tables.get_or_make(key, lambda: stored_tables.computed_database((lazy.table, lazy.rows())))
