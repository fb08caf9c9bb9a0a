"""Maps and surveys that somebody just looked at, remembered for the next click."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from periplus.api import survey
from periplus.api.collection import open_collection
from periplus.api.site import Site
from periplus.api.survey import LinkChoice, campaign_from
from periplus.api.tables import TablePage, TableQuery, leafed, written
from periplus.api.watching import SurveyMoment
from periplus.api.webometrics import SurveyOrder, SurveyRows, results, survey_rows_of
from periplus.errors import UsageError
from periplus.model.survey import SiteMark, Unit
from periplus.model.tables import Column, ColumnKind, Table
from periplus.model.webometrics import SurveyResults
from periplus.present.survey_report import STANDING, standing_rows, survey_table
from periplus.store.sqlite import reading, schema
from periplus.store.sqlite import survey as stored_survey
from periplus.store.sqlite import tables as stored_tables

KEPT = 2  # of a million pages each takes 0.5 GB
READ_S = 120.0
SMALL_URLS = 10_000  # whose map is made in 0.3 s


class Maps:
    """The latest maps, made anew when a collection has changed. For many threads; one map is made at a time."""

    def __init__(self) -> None:
        self._sites: OrderedDict[tuple[Path, str, int, int], Site] = OrderedDict()
        self._lock = threading.Lock()

    def at_hand(self, folder: Path, site: str) -> Site | None:
        """The map, if it takes no time: it was just looked at, or its collection is small. Raises as `of`."""
        with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
            key = (folder.resolve(), site, *stored_tables.version(connection))
            small = stored_tables.urls_seen(connection) <= SMALL_URLS
        return self.of(folder, site) if small or key in self._sites else None

    def of(self, folder: Path, site: str) -> Site:
        """Raises UsageError where there is no map, NoCollection, StoreError."""
        with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
            standing = stored_tables.version(connection)
        key = (folder.resolve(), site, *standing)
        with self._lock:
            if key not in self._sites:
                with open_collection(folder, time_limit_s=READ_S) as kept:
                    self._sites[key] = kept.map(site)
                while len(self._sites) > KEPT:
                    self._sites.popitem(last=False)
            self._sites.move_to_end(key)
            return self._sites[key]


SURVEYS_KEPT = 4  # surveys as they were counted
TABLES_KEPT = 24
AGAIN_S = 10.0  # while pages come in, figures are counted anew after so long at the soonest
SHARE = 0.1  # and so that counting takes no more than this share of the time
LINKS = 50_000  # of one look at links: more are filtered first, or written by `periplus survey links`
_KINDS = {"level": ColumnKind.INTEGER, "times": ColumnKind.INTEGER, "processed": ColumnKind.BOOLEAN}
_LINK_WORDS = {
    "unit": "the site whose page it is", "page": "the page that holds the link", "target": "where it leads",
    "level": "of the target: links from the start",
    "processed": "whether the target was asked for", "reason": "what became of the target", "anchor": "its words",
    "position": "part of the page",
    "title": "of the page", "times": "how often the page holds it", "text": "what stood where an address belongs",
    "why": "why that is none",
}  # fmt: skip
_SEARCHED = {
    "sites": ("site", "prefixes", "bundle"), "companions": ("site", "tags"), "colinks": ("first", "second"),
    "suffixes": ("suffix",),
    "connectivity": ("vertices",), "interlinking": ("source", "target"), "records": ("site", "prefixes", "state"),
    "standing": ("site", "prefixes", "tags"),
    "internal": ("page", "target", "anchor"), "external": ("page", "target", "anchor", "title"),
    "bad": ("page", "text", "anchor"),
}  # fmt: skip
_FACETS = {
    "sites": ("bundle", "official", "state"), "companions": ("class", "units", "status"), "colinks": ("kind",),
    "suffixes": ("direction", "country"),
    "records": ("state",), "standing": ("state",), "internal": ("unit", "level", "processed", "reason"),
    "external": ("unit", "position"),
    "bad": ("unit", "why"),
}  # fmt: skip
_WIDE = ("site", "first", "second", "prefixes", "page", "state", "source", "target", "anchor", "title", "text")
_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """A survey's results as they were counted. key: what they follow from; made: when."""

    key: _Key
    found: SurveyResults
    marks: Mapping[str, SiteMark]
    made: float
    good_until: float  # by the monotonic clock; later they are counted anew, if anything has changed


@dataclass(frozen=True, slots=True)
class LazyTable:
    """A table whose rows are computed when it is looked at. key: what they follow from."""

    table: Table
    key: _Key
    rows: Callable[[], Iterable[Sequence[object]]]


def _table(name: str, columns: Iterable[Column]) -> Table:
    searched, facets = _SEARCHED.get(name, ()), _FACETS.get(name, ())

    def marked(column: Column) -> Column:
        name = column.name
        return replace(column, searched=name in searched, facet=name in facets, wide=name in _WIDE)

    return Table(name, "", tuple(map(marked, columns)))


def result_table(counted: Counted, name: str) -> LazyTable:
    """One of `present.survey_report`. Raises UsageError for another name."""
    columns, rows = survey_table(counted.found, name)
    return LazyTable(_table(name, columns), counted.key, lambda: rows)


def standing_table(folder: Path, moment: SurveyMoment, marks: Mapping[str, SiteMark]) -> LazyTable:
    """The sites as they stand while the survey is read."""
    key = (folder.resolve(), moment.seq, tuple(marks.values()))
    return LazyTable(_table("standing", STANDING), key, lambda: standing_rows(moment.standing, marks))


def link_table(folder: Path, wanted: LinkChoice) -> LazyTable:
    """The first LINKS links that answer. Raises UsageError, NoCollection, StoreError."""
    kinds = survey.KINDS.get(wanted.kind)
    if kinds is None:
        raise UsageError(f"there are links of the kinds {', '.join(survey.KINDS)}, not {wanted.kind!r}")
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        key = (folder.resolve(), stored_tables.version(connection), stored_survey.plan(connection), wanted)
    columns = (Column(name, _KINDS.get(name, ColumnKind.TEXT), _LINK_WORDS[name]) for name in kinds)
    return LazyTable(_table(wanted.kind, columns), key, lambda: survey.links(folder, replace(wanted, limit=LINKS)))


@dataclass(slots=True)
class Surveys:
    """The latest surveys that were looked at. For many threads; one is counted at a time."""

    _counted: OrderedDict[_Key, Counted] = field(default_factory=OrderedDict)
    # the last that were read: of a million pages they take half a gigabyte
    _rows: tuple[_Key, SurveyRows] | None = None
    _tables: OrderedDict[_Key, reading.Connection] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, folder: Path, order: SurveyOrder) -> Counted:
        """What the survey in folder finds, counted as order says; title and item are the survey's own.

        Raises UsageError, NoCollection, StoreError.
        """
        with self._lock, contextlib.closing(reading.connect(folder)) as connection, reading.reading():
            plan, marks = stored_survey.plan(connection), schema.marks(connection)
            campaign = campaign_from(plan, folder)
            order = replace(order, title=campaign.title, item=campaign.item)
            asked = (folder.resolve(), plan, tuple(marks.values()), order)
            now = stored_tables.version(connection)
            kept = self._counted.get(asked)
            if kept is None or (kept.key[-1] != now and time.monotonic() > kept.good_until):
                began = time.monotonic()
                rows = self._read(connection, (folder.resolve(), plan, order.choice, now), campaign.units, order)
                found = results(replace(rows, marks=marks), order, time.time())
                good_s = max(AGAIN_S, (time.monotonic() - began) / SHARE)
                kept = Counted((*asked, now), found, marks, time.time(), time.monotonic() + good_s)
            self._counted[asked] = kept
            self._counted.move_to_end(asked)
            while len(self._counted) > SURVEYS_KEPT:
                self._counted.popitem(last=False)
            return kept

    def _read(self, connection: reading.Connection, key: _Key, units: Sequence[Unit], order: SurveyOrder) -> SurveyRows:
        if self._rows is None or self._rows[0] != key:
            self._rows = None  # before others take their place in memory
            self._rows = key, survey_rows_of(connection, units, order)
        return self._rows[1]

    def page(self, lazy: LazyTable, query: TableQuery, columns: Sequence[str] = ()) -> TablePage:
        """Raises UsageError."""
        with self._lock:
            return leafed(self._held(lazy), lazy.table, query, columns)

    def write(self, lazy: LazyTable, query: TableQuery, format: str, path: Path) -> None:
        """Every row that answers, as a file. Raises UsageError."""
        with self._lock:
            written(self._held(lazy), lazy.table, query, format, path)

    def _held(self, lazy: LazyTable) -> reading.Connection:
        key = (lazy.table.name, *lazy.key)
        if key not in self._tables:
            self._tables[key] = stored_tables.in_memory((lazy.table, lazy.rows()))
            while len(self._tables) > TABLES_KEPT:
                self._tables.popitem(last=False)[1].close()
        self._tables.move_to_end(key)
        return self._tables[key]
