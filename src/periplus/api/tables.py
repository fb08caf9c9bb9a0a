"""Pages through tables of a collection: stored tables, issues and faults, and tables of stored results."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from periplus.analyse.audit import issue_kinds
from periplus.analyse.issues import Causes, IssueTable, by_severity, faults
from periplus.api.audit import issue_rows
from periplus.api.cache import Background, LruCache
from periplus.api.exporting import issues_of_sites
from periplus.api.grading import grades_now, seen_since, trends
from periplus.api.homes import full_place, open_reader, snapshot_of
from periplus.api.inlink_index import InlinkIndexes, narrow_query
from periplus.api.overview import REPAIR, FaultSums, Overview, count_by_folder, fault_sums, last_changes
from periplus.api.page_segments import (
    pages_within,
    require_segment,
    rules_at,
    rules_mtime_ns,
    segments_of,
    with_segments,
)
from periplus.api.positions import rows_with_positions
from periplus.errors import OutOfTime, UsageError
from periplus.features import loaded
from periplus.model.arrays import Ints, Mask
from periplus.model.audit import Fault, FaultNote, Severity
from periplus.model.tables import (
    FAULTS,
    ISSUES,
    SEGMENT_OTHER,
    Column,
    Table,
)
from periplus.present.issues import fault_row
from periplus.present.writers import find_writer
from periplus.store import tables as stored_tables
from periplus.store.notes import fault_notes
from periplus.store.reader import CollectionReader
from periplus.store.tables import BROWSABLE_TABLES, Count, TableFacet, TableQuery
from periplus.values import Place, Row, frozen

if TYPE_CHECKING:  # imports NumPy
    from periplus.model.results import Segmentation

__all__ = [
    "TABLES",
    "Browser",
    "TableFacet",
    "TablePage",
    "TableQuery",
    "read_page",
    "table_of",
    "write_table",
]


Rows = Iterator[Sequence[object]]
TABLES = BROWSABLE_TABLES | {table.name: table for table in (ISSUES, FAULTS)}
READ_S = 10.0  # CPU time limit for the rows of one screen
FACETS_S = 2.0  # CPU time limit for facets; without them the rows are shown alone
AUDIT_S = 120.0  # time limit for loading the input of an audit
WRITE_S = 600.0  # time limit for a file
CACHED_PAGES = 100  # cached table pages, for readers who go back or poll a finished run
CACHED_AUDITS = 2  # cached audits as columns: about 70 bytes per issue and 150 per URL
CACHED_SUMS = 100  # cached overviews, some kB each
CACHED_TABLES = 4  # cached audits and results as tables: 100 to 400 bytes per row, large ones on disk


@frozen
class ResultTable:
    """A table of results that a feature stores.

    rows, stamp: functions of (place, subject); the stamp changes with the rows. subject: what the collection may have
    several of, as "topic": each has such a table, `judged:films`; empty: the table is one of the collection.
    subjects: their names.
    """

    table: Table
    rows: Callable[[Place, str], Rows]
    stamp: Callable[[Place, str], object]
    subject: str = ""
    subjects: Callable[[Place], Sequence[str]] = lambda place: ()


def result_tables() -> Mapping[str, ResultTable]:
    """The tables of features by name."""
    return {name: result for _, tables in loaded("tables", dict).values() for name, result in tables.items()}


@frozen
class TablePage:
    """One page of a table."""

    table: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    count: Count
    facets: tuple[TableFacet, ...]
    sampled: int  # rows used for facets; 0 with rows: no facets within the time limit
    unordered: bool  # too many rows to sort: in stored order


_Key = Row


@frozen
class NotedFault:
    """A cause with its note. since: start of the first check that saw it, or None."""

    fault: Fault
    note: FaultNote
    since: float | None


@frozen
class NotedCauses:
    """All causes of a collection, most severe first, with their notes."""

    issues: IssueTable
    causes: tuple[Causes, ...]  # by kind
    notes: Mapping[tuple[str, str], FaultNote]  # by code and cause

    def faults(self, most: int) -> Iterator[NotedFault]:
        """Each cause with at most `most` of its issues."""
        for causes in self.causes:
            words = faults(causes, most, self.issues.words)
            for fault, since in zip(words, causes.since.tolist(), strict=True):
                key = (fault.code, fault.cause)
                yield NotedFault(fault, self.notes.get(key) or FaultNote(*key), None if isnan(since) else since)

    def open(self) -> Iterator[Causes]:
        """Causes that were not accepted or ignored."""
        closed = {key for key, note in self.notes.items() if note.decision}
        return (self._among(causes, lambda *key: key not in closed) for causes in self.causes)

    def only(self, code: str, cause: str) -> NotedCauses:
        of_code = (causes for causes in self.causes if causes.issues.kind.code == code)
        return replace(self, causes=tuple(self._among(causes, lambda *key: key == (code, cause)) for causes in of_code))

    def within(self, chosen: Callable[[Ints], Mask]) -> NotedCauses:
        """chosen: selects page ids."""
        pages = ((causes, self.issues.ids[causes.issues.pages]) for causes in self.causes)
        return replace(self, causes=tuple(causes.within(chosen(ids), self.issues.url) for causes, ids in pages))

    def _among(self, causes: Causes, chosen: Callable[[str, str], bool]) -> Causes:
        code, texts = causes.issues.kind.code, causes.texts(self.issues.url)
        is_chosen = np.fromiter((chosen(code, text) for text in texts), np.bool_, len(causes))
        return causes.within(np.repeat(is_chosen, np.diff(causes.starts)), self.issues.url)


@dataclass(slots=True)
class Browser:
    """Pages through tables of any collection; caches audits, which take seconds. Thread-safe."""

    _computed: LruCache[_Key, CollectionReader] = field(
        default_factory=lambda: LruCache(CACHED_TABLES, CollectionReader.close)
    )
    _pages: LruCache[_Key, TablePage] = field(default_factory=lambda: LruCache(CACHED_PAGES))
    _audited: LruCache[_Key, tuple[IssueTable, tuple[Causes, ...]]] = field(
        default_factory=lambda: LruCache(CACHED_AUDITS)
    )
    _sums: LruCache[_Key, FaultSums] = field(default_factory=lambda: LruCache(CACHED_SUMS))
    _audits: Background[_Key, bool] = field(default_factory=lambda: Background(CACHED_TABLES))
    _overviews: Background[_Key, Overview] = field(default_factory=lambda: Background(CACHED_SUMS))
    _segments: LruCache[_Key, Segmentation | None] = field(default_factory=lambda: LruCache(CACHED_TABLES))
    indexes: InlinkIndexes = field(default_factory=InlinkIndexes)
    cpu_s: Callable[[], float] = time.thread_time

    def table(self, place: Place, name: str) -> Table:
        """A table of a collection, with segment columns if rules define segments. Raises UsageError."""
        table = table_of(name)
        return with_segments(table) if rules_at(place) else table

    def page(self, place: Place, name: str, query: TableQuery, columns: Sequence[str] = ()) -> TablePage:
        """Raises UsageError, NoCollection, and OutOfTime if reading takes more CPU time than READ_S."""
        key = (_version(place), _stamp(place, name), name, query, tuple(columns))
        if (page := self._pages.get(key)) is not None:
            return page
        only, asked = _segment_apart(name, query)
        read = () if name == ISSUES.name else columns  # all columns: they are needed to find positions
        with self._open(place, name, only) as (reader, table):
            with reader.limit_reads(READ_S, self.cpu_s):
                asked = narrow_query(place, reader, name, asked, self.indexes)
            page = read_page(reader, table, asked, read, self.cpu_s)
        if name == ISSUES.name:
            page = _with_positions(place, table, page, columns)
        if name == FAULTS.name and (segments := self.segments(place)):
            page = replace(page, facets=(*page.facets, self._faults_by_segment(place, segments)))
        return page if page.rows and not page.sampled else self._pages.put(key, page)

    def segments(self, place: Place) -> Segmentation | None:
        """Segments of a collection under its current rules; None without rules.

        Raises UsageError, StoreError if it takes longer than READ_S.
        """
        if not (rules := rules_at(place)):
            return None

        def make() -> Segmentation:
            with open_reader(place, READ_S) as reader:
                return segments_of(reader, rules)

        return self._segments.get_or_make(_version(place), make)

    def _faults_by_segment(self, place: Place, segments: Segmentation) -> TableFacet:
        """Number of open causes in each segment."""
        met = Counter[str]()
        with self._computed.lock:
            noted = self._noted_causes(place)
            for causes in noted.open():
                cause = np.repeat(np.arange(len(causes)), np.diff(causes.starts))
                names = (_segment(segments, page) for page in noted.issues.ids[causes.issues.pages].tolist())
                met.update(name for _, name in set(zip(cause.tolist(), names, strict=True)))
        return TableFacet("segment", tuple((name, met[name]) for name in segments.names if met[name]))

    def overview(self, place: Place, wait_s: float) -> Overview | None:
        """The overview of a collection, after which its faults are cached as tables; None if it takes longer than
        wait_s, while the work continues. Raises NoCollection, StoreError, UsageError.
        """
        key = _version(place)

        def make() -> Overview:
            with self._computed.lock:
                issues, query = self._audit(place), TableQuery((("severity", Severity.ERROR.value),), most=-1)
                urls = {str(url) for (url,) in stored_tables.rows_of(issues, ISSUES, query, ("url",))}
            sums = self._sums.get(key) or fault_sums((), ())
            grades = grades_now(place, sums.kinds)
            return Overview(sums, trends(place), last_changes(place), grades, count_by_folder(urls))

        return self._overviews.of(key, make, wait_s)

    def prepare_audit(self, place: Place, wait_s: float) -> bool:
        """Whether faults and issues are ready; after wait_s the work continues in the background."""

        def make() -> bool:
            with self._computed.lock:
                self._audit(place)
            return True

        return self._audits.of(_version(place), make, wait_s) or False

    def write(self, place: Place, name: str, query: TableQuery, format: str, path: Path) -> None:
        """Writes all matching rows in the order shown to a file. Raises UsageError."""
        only, asked = _segment_apart(name, query)
        with self._open(place, name, only) as (reader, table), reader.limit_reads(WRITE_S):
            rows = stored_tables.rows_of(reader, table, replace(asked, first=0, most=-1))
            if name == ISSUES.name:
                rows = rows_with_positions(place, table.names, list(rows))
            find_writer(format).write(table, rows, path)

    @contextlib.contextmanager
    def _open(self, place: Place, name: str, only: str = "") -> Iterator[tuple[CollectionReader, Table]]:
        """only: for faults, the segment whose issues are counted."""
        segments = self.segments(place) if name in TABLES else None
        table = with_segments(table_of(name)) if segments else table_of(name)
        if only:
            require_segment(place, only)
        if table.source:
            # PostgreSQL ends a snapshot with the first statement that is stopped
            opened = snapshot_of if isinstance(place, Path) else open_reader
            with opened(place) as reader:
                if segments:
                    reader.name_segments(segments)
                yield reader, table
            return
        with self._computed.lock:  # one audit at a time, as each loads a site's links into memory
            yield self._result(place, name) if name not in TABLES else self._audit(place, only), table

    def _audit(self, place: Place, only: str = "") -> CollectionReader:
        """Tables of the faults of all sites, most severe first, and of their open issues; recomputed after a run or a
        change of notes. only: pages of this segment.
        """
        version = _version(place)
        key, segments = (*version, only), self.segments(place)

        def make() -> CollectionReader:
            noted = self._noted_causes(place)
            if segments and only:
                noted = noted.within(lambda pages: pages_within(segments, only, pages))
            table = noted.issues
            left = table.of(causes.issues for causes in noted.open())
            if not only:
                first = (fault for causes in noted.open() for fault in islice(faults(causes, 1, table.words), REPAIR))
                self._sums.put(version, fault_sums(left.sums(), first))
            rows: Iterator[Sequence[object]] = issue_rows(left)
            if segments:
                pages = (page for kind in left.kinds for page in table.ids[kind.pages].tolist())
                rows = ((*row, _segment(segments, page)) for row, page in zip(rows, pages, strict=True))
            return stored_tables.computed_database(
                (with_segments(ISSUES) if segments else ISSUES, rows),
                (FAULTS, (fault_row(row.fault, issue_kinds(), row.note, row.since) for row in noted.faults(1))),
            )

        return self._computed.get_or_make(key, make)

    def _noted_causes(self, place: Place) -> NotedCauses:
        """All causes with their notes. A changed note does not repeat the audit."""
        with open_reader(place) as reader:

            def make() -> tuple[IssueTable, tuple[Causes, ...]]:
                with reader.limit_reads(AUDIT_S), reader.snapshot():
                    table = issues_of_sites(reader, place, closed=True)
                    table = table.of(by_severity(table.kinds))
                    return table, tuple(seen_since(reader, table, causes) for causes in table.causes())

            audited = self._audited.get_or_make((full_place(place), *reader.version()), make)
            notes = fault_notes(reader.statements)
            return NotedCauses(*audited, {(note.code, note.cause): note for note in notes})

    def noted_faults(self, place: Place) -> tuple[NotedFault, ...]:
        """All causes with notes and their first issue, most severe first. Raises NoCollection, StoreError."""
        with self._computed.lock:
            return tuple(self._noted_causes(place).faults(1))

    def fault(self, place: Place, code: str, cause: str, most: int = 1) -> NotedFault | None:
        """A cause with at most `most` of its issues, or None if it does not exist (any more). Raises NoCollection,
        StoreError.
        """
        with self._computed.lock:
            noted = self._noted_causes(place)
        return next(noted.only(code, cause).faults(most), None)

    def _result(self, place: Place, name: str) -> CollectionReader:
        """A stored result as a table, reloaded if it changed."""
        kind, _, which = name.partition(":")
        result = result_tables()[kind]
        key = (full_place(place), name, result.stamp(place, which))
        return self._computed.get_or_make(
            key, lambda: stored_tables.computed_database((result.table, result.rows(place, which)))
        )


def _segment(segments: Segmentation, page: int) -> str:
    """Segment of an issue's page; `other` for unknown URLs."""
    return segments.of(page) or SEGMENT_OTHER


def _segment_apart(name: str, query: TableQuery) -> tuple[str, TableQuery]:
    """(segment condition of a query for faults, the query without it): a cause may be in several segments."""
    if name != FAULTS.name:
        return "", query
    only = next((text for column, text in query.conditions if column == "segment"), "")
    return only, replace(query, conditions=tuple(pair for pair in query.conditions if pair[0] != "segment"))


def table_of(name: str) -> Table:
    """A table of TABLES or `result_tables`. Raises UsageError for an unknown name."""
    result = result_tables().get(name.partition(":")[0])
    if result:
        return result.table
    if name not in TABLES:
        raise UsageError(f"unknown table {name!r}: choose among {', '.join(TABLES)}")
    return TABLES[name]


def _version(place: Place) -> _Key:
    """Cache key that changes with the stored data and the rules."""
    with open_reader(place) as reader:
        rules = rules_mtime_ns(place), reader.note("rules_text")
        return (full_place(place), *reader.version(), fault_notes(reader.statements), rules)


def _stamp(place: Place, name: str) -> object:
    """Cache key of a stored result; None for other tables, which depend on `_version` alone."""
    kind, _, which = name.partition(":")
    result = result_tables().get(kind)
    return result.stamp(place, which) if result else None


def _with_positions(place: Place, table: Table, page: TablePage, columns: Sequence[str]) -> TablePage:
    """Adds line and column to a page of ISSUES and selects columns. page: with all columns."""
    chosen = table.select(columns)
    rows = page.rows
    if {column.name for column in chosen} & {"line", "column"}:
        rows = tuple(rows_with_positions(place, table.names, rows))
    places = [table.names.index(column.name) for column in chosen]
    return replace(page, columns=chosen, rows=tuple(tuple(row[place] for place in places) for row in rows))


def read_page(
    reader: CollectionReader,
    table: Table,
    query: TableQuery,
    columns: Sequence[str] = (),
    cpu_s: Callable[[], float] = time.thread_time,
) -> TablePage:
    """One page of a table; without facets if they take more CPU time than FACETS_S. Raises UsageError, OutOfTime."""
    try:
        with reader.limit_reads(FACETS_S, cpu_s):
            sample = stored_tables.sample_of(reader, table, query, columns)
    except OutOfTime:
        sample = stored_tables.NO_SAMPLE
    with reader.limit_reads(READ_S, cpu_s):
        rows = tuple(stored_tables.rows_of(reader, table, query, columns, sample))
    return TablePage(
        table.name,
        table.select(columns),
        rows,
        sample.count
        if sample is not stored_tables.NO_SAMPLE
        else Count(query.first + len(rows), len(rows) == query.most),
        sample.facets if rows else (),
        sample.sampled,
        sample.count.capped and not query.sort and bool(table.order),
    )


def write_table(reader: CollectionReader, table: Table, query: TableQuery, format: str, path: Path) -> None:
    """Writes all matching rows in the order shown to a file. Raises UsageError."""
    rows = stored_tables.rows_of(reader, table, replace(query, first=0, most=-1))
    find_writer(format).write(table, rows, path)
