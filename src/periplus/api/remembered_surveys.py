"""What did somebody just see of a survey? Figures and tables that are asked for again with the next click, and may take seconds to count."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from periplus.api import survey_links
from periplus.api.browsing import TablePage, Wish, leafed, written
from periplus.api.survey_links import LinkChoice
from periplus.api.survey_plan import campaign_from
from periplus.api.survey_watching import SurveyMoment
from periplus.api.webometrics import SurveyOrder, SurveyRows, results, survey_rows_of
from periplus.errors import UsageError
from periplus.model.survey import SiteMark, Unit
from periplus.model.table import Column, ColumnKind
from periplus.model.webometrics import SurveyResults
from periplus.present.survey_tables import STANDING, standing_rows, survey_table
from periplus.store.sqlite import browsing, reading, survey_marks, survey_plan
from periplus.store.sqlite.browsing import Source

KEPT = 4  # surveys as they were counted
TABLES_KEPT = 24
AGAIN_S = 10.0  # while pages come in, figures are counted anew after so long at the soonest
SHARE = 0.1  # and so that counting takes no more than this share of the time
LINKS = 50_000  # of one look at links: more are filtered first, or written by `periplus survey links`
_KINDS = {"level": ColumnKind.INTEGER, "times": ColumnKind.INTEGER, "processed": ColumnKind.BOOLEAN}
_LINK_WORDS = {
    "unit": "the site whose page it is", "page": "the page that holds the link", "target": "where it leads", "level": "of the target: links from the start",
    "processed": "whether the target was asked for", "reason": "what became of the target", "anchor": "its words", "position": "part of the page",
    "title": "of the page", "times": "how often the page holds it", "text": "what stood where an address belongs", "why": "why that is none",
}  # fmt: skip
_SEARCHED = {
    "sites": ("site", "prefixes", "bundle"), "companions": ("site", "tags"), "colinks": ("first", "second"), "suffixes": ("suffix",),
    "connectivity": ("vertices",), "interlinking": ("source", "target"), "records": ("site", "prefixes", "state"), "standing": ("site", "prefixes", "tags"),
    "internal": ("page", "target", "anchor"), "external": ("page", "target", "anchor", "title"), "bad": ("page", "text", "anchor"),
}  # fmt: skip
_FACETS = {
    "sites": ("bundle", "official", "state"), "companions": ("class", "units", "status"), "colinks": ("kind",), "suffixes": ("direction", "country"),
    "records": ("state",), "standing": ("state",), "internal": ("unit", "level", "processed", "reason"), "external": ("unit", "position"),
    "bad": ("unit", "why"),
}  # fmt: skip
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
class Computed:
    """A table whose rows are computed when it is looked at. key: what they follow from."""

    name: str
    columns: tuple[Column, ...]
    key: _Key
    rows: Callable[[], Iterable[Sequence[object]]]

    @property
    def source(self) -> Source:
        return browsing.memory_source(self.name, self.columns, _SEARCHED.get(self.name, ()), _FACETS.get(self.name, ()))


def result_table(counted: Counted, name: str) -> Computed:
    """One of `present.survey_tables`. Raises UsageError for another name."""
    columns, rows = survey_table(counted.found, name)
    return Computed(name, columns, counted.key, lambda: rows)


def standing_table(folder: Path, moment: SurveyMoment, marks: Mapping[str, SiteMark]) -> Computed:
    """The sites as they stand while the survey is read."""
    key = (folder.resolve(), moment.seq, tuple(marks.values()))
    return Computed("standing", STANDING, key, lambda: standing_rows(moment.standing, marks))


def link_table(folder: Path, wanted: LinkChoice) -> Computed:
    """The first LINKS links that answer. Raises UsageError, NoCollection, StoreError."""
    kinds = survey_links.KINDS.get(wanted.kind)
    if kinds is None:
        raise UsageError(f"there are links of the kinds {', '.join(survey_links.KINDS)}, not {wanted.kind!r}")
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        key = (folder.resolve(), browsing.standing(connection), survey_plan.plan(connection), wanted)
    columns = tuple(Column(name, _KINDS.get(name, ColumnKind.TEXT), _LINK_WORDS[name]) for name in kinds)
    return Computed(wanted.kind, columns, key, lambda: survey_links.links(folder, dataclasses.replace(wanted, limit=LINKS)))


@dataclass(slots=True)
class Surveys:
    """The latest surveys that were looked at. For many threads; one is counted at a time."""

    _counted: OrderedDict[_Key, Counted] = field(default_factory=OrderedDict)
    _rows: tuple[_Key, SurveyRows] | None = None  # the last that were read: of a million pages they take half a gigabyte
    _tables: OrderedDict[_Key, reading.Connection] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, folder: Path, order: SurveyOrder) -> Counted:
        """What the survey in folder finds, counted as order says; title and item are the survey's own. Raises UsageError, NoCollection, StoreError."""
        with self._lock, contextlib.closing(reading.connect(folder)) as connection, reading.reading():
            plan, marks = survey_plan.plan(connection), survey_marks.marks(connection)
            campaign = campaign_from(plan, folder)
            order = dataclasses.replace(order, title=campaign.title, item=campaign.item)
            asked = (folder.resolve(), plan, tuple(marks.values()), order)
            now = browsing.standing(connection)
            kept = self._counted.get(asked)
            if kept is None or (kept.key[-1] != now and time.monotonic() > kept.good_until):
                began = time.monotonic()
                rows = self._read(connection, (folder.resolve(), plan, order.choice, now), campaign.units, order)
                found = results(dataclasses.replace(rows, marks=marks), order, time.time())
                good_s = max(AGAIN_S, (time.monotonic() - began) / SHARE)
                kept = Counted((*asked, now), found, marks, time.time(), time.monotonic() + good_s)
            self._counted[asked] = kept
            self._counted.move_to_end(asked)
            while len(self._counted) > KEPT:
                self._counted.popitem(last=False)
            return kept

    def _read(self, connection: reading.Connection, key: _Key, units: Sequence[Unit], order: SurveyOrder) -> SurveyRows:
        if self._rows is None or self._rows[0] != key:
            self._rows = None  # before others take their place in memory
            self._rows = key, survey_rows_of(connection, units, order)
        return self._rows[1]

    def page(self, table: Computed, wish: Wish, columns: Sequence[str] = ()) -> TablePage:
        """Raises UsageError."""
        with self._lock:
            return leafed(self._held(table), table.source, wish, columns)

    def write(self, table: Computed, wish: Wish, format: str, path: Path) -> None:
        """Every row that answers, as a file. Raises UsageError."""
        with self._lock:
            written(self._held(table), table.source, wish, format, path)

    def _held(self, table: Computed) -> reading.Connection:
        key = (table.name, *table.key)
        if key not in self._tables:
            self._tables[key] = browsing.kept_in_memory(table.name, table.columns, list(table.rows()))
            while len(self._tables) > TABLES_KEPT:
                self._tables.popitem(last=False)[1].close()
        self._tables.move_to_end(key)
        return self._tables[key]
