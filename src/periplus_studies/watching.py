"""Surveys as the screens show them: read and counted for the next click, and live, for any number of browsers."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from periplus.api.cache import LruCache
from periplus.api.homes import full_place, home_of, open_reader, snapshot_of
from periplus.api.tables import TablePage, TableQuery, read_page, write_table
from periplus.errors import UsageError
from periplus.model.ports import VisitReader
from periplus.model.tables import Table
from periplus.store import tables as stored_tables
from periplus.store.reader import CollectionReader
from periplus.values import Place, frozen
from periplus_studies import api, store
from periplus_studies.api import LinkChoice, depth_settings, standing
from periplus_studies.model import SURVEY_LINKS, CampaignProgress, SiteMark, SurveyResults
from periplus_studies.report import STANDING, standing_rows, survey_table
from periplus_studies.results import SurveyOrder, SurveyRows, results, survey_rows_of
from periplus_studies.schedule import PLAN, SurveyPolicy, campaign_from, survey_policy

_Key = tuple[object, ...]


SURVEYS = 4  # as they were counted
TABLES = 24
AGAIN_S = 10.0  # shortest time between recounts during a crawl
SHARE = 0.1  # of the time at most goes into counting or looking: a look that took 0.3 s is shown for 3 s
LINKS = 50_000  # links shown at once: filter further, or use `periplus survey links`
LEAST_S = 1.0  # so long each look is shown
CATCH_UP_S = 0.7  # time of one update; a long unread survey takes several
CACHED_SURVEYS = 20  # campaigns that are watched at once: 8 bytes a link each


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
    """One of `report`. Raises UsageError for another name."""
    table, rows = survey_table(counted.results, name)
    return LazyTable(table, counted.key, lambda: rows)


def standing_table(place: Place, moment: SurveyMoment, marks: Mapping[str, SiteMark]) -> LazyTable:
    """The current sites while the survey is read."""
    key = (full_place(place), moment.seq, tuple(marks.values()))
    return LazyTable(STANDING, key, lambda: standing_rows(moment.standing, marks))


def link_table(place: Place, choice: LinkChoice) -> LazyTable:
    """The first LINKS links that answer. Raises UsageError, NoCollection, StoreError."""
    table = SURVEY_LINKS.get(choice.kind)
    if table is None:
        raise UsageError(f"there are links of the kinds {', '.join(SURVEY_LINKS)}, not {choice.kind!r}")
    with open_reader(place) as reader:
        key = (full_place(place), reader.version(), reader.note(PLAN), choice)
    return LazyTable(table, key, lambda: api.links(place, replace(choice, limit=LINKS)))


@dataclass(slots=True)
class Surveys:
    """The latest surveys that were looked at. For many threads; one is counted at a time."""

    _counted: LruCache[_Key, CountedSurvey] = field(default_factory=lambda: LruCache(SURVEYS))
    # the last that were read: of a million pages they take half a gigabyte
    _rows: LruCache[_Key, SurveyRows] = field(default_factory=lambda: LruCache(1))
    _tables: LruCache[_Key, CollectionReader] = field(default_factory=lambda: LruCache(TABLES, CollectionReader.close))

    def of(self, place: Place, order: SurveyOrder) -> CountedSurvey:
        """Results of the survey of a collection, counted by order; title and item are the survey's own.

        Raises UsageError, NoCollection, StoreError.
        """
        with self._counted.lock, open_reader(place) as reader:
            plan, marks = reader.note(PLAN), store.marks(reader)
            campaign = campaign_from(plan, home_of(place))
            order = replace(order, title=campaign.title, item=campaign.item)
            key = (full_place(place), plan, tuple(marks.values()), order)
            version = reader.version()
            counted = self._counted.get(key)
            if counted is not None and (counted.key[-1] == version or time.monotonic() <= counted.good_until):
                return counted
            began = time.monotonic()
            rows = self._rows.get_or_make(
                (full_place(place), plan, order.choice, version),
                lambda: survey_rows_of(reader, campaign.units, order),
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

    def _store_table(self, lazy: LazyTable) -> CollectionReader:
        key = (lazy.table.name, *lazy.key)
        return self._tables.get_or_make(key, lambda: stored_tables.computed_database((lazy.table, lazy.rows())))


@frozen
class SurveyMoment:
    """A survey now. seq: grows with every change; behind: stored pages that are not in it yet."""

    seq: int
    standing: CampaignProgress
    behind: bool


@dataclass(slots=True)
class _SurveyWatch:
    """State of a survey between updates."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    plan: str = ""
    policy: SurveyPolicy | None = None
    seen: tuple[int, int, str] = (0, 0, "")  # runs, visits, plan of the last look
    fetched: int = 0  # by all runs: less than before, if pages were deleted
    moment: SurveyMoment | None = None
    good_until: float = 0.0


class SurveyWatchers:
    """Reads surveys for all browsers. Thread-safe."""

    def __init__(self) -> None:
        self._watches: LruCache[Place, _SurveyWatch] = LruCache(CACHED_SURVEYS)

    def look(self, place: Place) -> SurveyMoment:
        """Raises UsageError where there is no survey, NoCollection, StoreError."""
        watch = self._watches.get_or_make(full_place(place), _SurveyWatch)
        with watch.lock, snapshot_of(place) as reader:
            plan = reader.note(PLAN)
            if watch.moment is None or plan != watch.plan or time.monotonic() > watch.good_until:
                began = time.monotonic()
                watch.moment = _survey_moment(place, watch, reader)
                watch.good_until = time.monotonic() + max(LEAST_S, (time.monotonic() - began) / SHARE)
                if watch.moment.behind:
                    watch.good_until = 0.0
            return watch.moment


def _survey_moment(place: Place, watch: _SurveyWatch, reader: CollectionReader) -> SurveyMoment:
    plan, home = reader.note(PLAN), home_of(place)
    campaign = campaign_from(plan, home)
    seen = (*reader.version(), plan)
    if watch.moment is not None and seen == watch.seen and not watch.moment.behind:
        return watch.moment
    records = reader.runs()
    fetched = sum(run.fetched for run in records)
    deleted, watch.fetched = fetched < watch.fetched, fetched
    if watch.policy is None or plan != watch.plan or deleted:
        watch.plan = plan
        # pages of a site need not be distinguished: orders take half a megabyte a site
        by_depth = dataclasses.replace(campaign, within="breadth")
        watch.policy = survey_policy(by_depth, depth_settings(records))
    with home.reader() as visits:
        behind = _caught_up(watch.policy, visits)
        watch.seen, seq = seen, watch.moment.seq + 1 if watch.moment else 1
        return SurveyMoment(seq, standing(campaign, watch.policy, visits), behind)


def _caught_up(policy: SurveyPolicy, reader: VisitReader) -> bool:
    """Books what is new, for CATCH_UP_S at most. Whether more is there."""
    end = time.monotonic() + CATCH_UP_S
    for visit in reader.visits(policy.mark):
        policy.learn([visit])
        if time.monotonic() > end:
            return True
    return False
