"""What is on one page of a table of a collection, and what leaves as a file when the same is downloaded?"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from periplus.api.link_books import LinkBooks, narrowed
from periplus.api.result_tables import RESULT_TABLES
from periplus.errors import UsageError
from periplus.model.table import Column
from periplus.present import issue_list
from periplus.present.table_files import write_parquet, write_xlsx
from periplus.present.tables import write_table
from periplus.store.sqlite import browsing, reading
from periplus.store.sqlite.browsing import SOURCES, Count, Source, Wish

__all__ = ["DOWNLOADS", "TABLES", "Browser", "Count", "Facet", "TablePage", "Wish"]

ISSUE_TABLE = "issues"
FAULT_TABLE = "faults"
TABLES = (*SOURCES, ISSUE_TABLE, FAULT_TABLE)
DOWNLOADS = ("csv", "xlsx", "parquet", "jsonl")
READ_S = 10.0  # longest time of one screen
AUDIT_S = 120.0  # of reading what an audit needs
WRITE_S = 600.0  # of one file
PAGES_REMEMBERED = 100  # of tables; whoever goes back, or watches what has ended, asks for the same again
REMEMBERED = 4  # audits and kept results in memory, of 100 to 400 bytes a row
_AUDIT_SOURCES = {
    ISSUE_TABLE: browsing.memory_source(ISSUE_TABLE, issue_list.COLUMNS, ("url", "detail", "cause"), ("severity", "category", "code", "position")),
    FAULT_TABLE: browsing.memory_source(FAULT_TABLE, issue_list.FAULT_COLUMNS, ("cause", "detail", "url"), ("severity", "category", "code")),
}


@dataclass(frozen=True, slots=True)
class Facet:
    """What the rows that answer have in one column, commonest first. value empty: nothing is said."""

    name: str
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class TablePage:
    """One page of a table."""

    table: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[object, ...], ...]
    count: Count
    facets: tuple[Facet, ...]
    sampled: int  # rows that the facets are counted of
    unordered: bool  # they stand as they lie on disk, for there are too many


@dataclass(slots=True)
class Browser:
    """Leafs through tables of any collection; remembers the latest audits, which take seconds to make. For many threads."""

    _audits: OrderedDict[tuple[object, ...], reading.Connection] = field(default_factory=OrderedDict)
    _pages: dict[tuple[object, ...], TablePage] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    books: LinkBooks = field(default_factory=LinkBooks)

    def page(self, folder: Path, table: str, wish: Wish, columns: Sequence[str] = ()) -> TablePage:
        """Raises UsageError, NoCollection, and StoreError when it takes longer than READ_S."""
        with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
            key = (folder.resolve(), browsing.standing(connection), _stamp(folder, table), table, wish, tuple(columns))
        found = self._pages.get(key)
        if found is None:
            found = self._pages[key] = self._page(folder, table, wish, columns)
            while len(self._pages) > PAGES_REMEMBERED:
                with contextlib.suppress(StopIteration, KeyError):  # another thread was faster
                    del self._pages[next(iter(self._pages))]
        return found

    def _page(self, folder: Path, table: str, wish: Wish, columns: Sequence[str]) -> TablePage:
        with self._opened(folder, table) as (connection, source), reading.limited(connection, READ_S):
            return leafed(connection, source, narrowed(folder, connection, table, wish, self.books), columns)

    @staticmethod
    def columns(table: str) -> tuple[Column, ...]:
        """All that a table of TABLES or RESULT_TABLES has."""
        kind = table.partition(":")[0]
        if kind in RESULT_TABLES:
            return tuple(RESULT_TABLES[kind].columns)
        return (_AUDIT_SOURCES.get(table) or SOURCES[table]).columns

    def write(self, folder: Path, table: str, wish: Wish, format: str, path: Path) -> None:
        """Every row that answers, in the order shown, as a file. Raises UsageError."""
        with self._opened(folder, table) as (connection, source), reading.limited(connection, WRITE_S):
            written(connection, source, wish, format, path)

    @contextlib.contextmanager
    def _opened(self, folder: Path, table: str) -> Iterator[tuple[reading.Connection, Source]]:
        if table.partition(":")[0] in RESULT_TABLES:
            with self._lock:
                yield self._result(folder, table)
            return
        if table not in TABLES:
            raise UsageError(f"there is no table {table!r}: choose among {', '.join(TABLES)}")
        with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
            if table not in _AUDIT_SOURCES:
                with reading.snapshot(connection):
                    yield connection, SOURCES[table]
                return
            with self._lock:  # one audit at a time: each takes a site's links into memory
                yield self._audit(folder, connection), _AUDIT_SOURCES[table]

    def _audit(self, folder: Path, connection: reading.Connection) -> reading.Connection:
        """The faults of all sites, gravest first, and their issues, as tables; made anew when a run has changed anything."""
        from periplus.analyse.audit_issues import faults
        from periplus.analyse.audit_table import KINDS_OF_ISSUES
        from periplus.api.exporting import issues_of_sites

        key = (folder.resolve(), *browsing.standing(connection))
        if key not in self._audits:
            with reading.limited(connection, AUDIT_S), reading.snapshot(connection):
                found = faults(issues_of_sites(connection))
            issues = [issue_list.issue_row(issue, KINDS_OF_ISSUES) for fault in found for issue in fault.issues]
            made = browsing.kept_in_memory(ISSUE_TABLE, issue_list.COLUMNS, issues)
            browsing.keep(made, FAULT_TABLE, issue_list.FAULT_COLUMNS, [issue_list.fault_row(fault, KINDS_OF_ISSUES) for fault in found])
            self._audits[key] = made
        return self._latest(key)

    def _result(self, folder: Path, table: str) -> tuple[reading.Connection, Source]:
        """A kept result, as a table; read anew when it has changed."""
        kind, _, which = table.partition(":")
        made = RESULT_TABLES[kind]
        source = browsing.memory_source(kind, made.columns, made.searched, made.facets)
        source = replace(source, source=f'"{kind}"')
        key = (folder.resolve(), table, made.stamp(folder, which))
        if key not in self._audits:
            self._audits[key] = browsing.kept_in_memory(kind, made.columns, list(made.rows(folder, which)))
        return self._latest(key), source

    def _latest(self, key: tuple[object, ...]) -> reading.Connection:
        """Of those remembered; the oldest are forgotten."""
        self._audits.move_to_end(key)
        while len(self._audits) > REMEMBERED:
            self._audits.popitem(last=False)[1].close()
        return self._audits[key]


def _stamp(folder: Path, table: str) -> object:
    """Of a kept result; of what the store has its standing is enough."""
    kind, _, which = table.partition(":")
    return RESULT_TABLES[kind].stamp(folder, which) if kind in RESULT_TABLES else None


def leafed(connection: reading.Connection, source: Source, wish: Wish, columns: Sequence[str] = ()) -> TablePage:
    """One page of a table. Raises UsageError."""
    shown = tuple(column for name in columns for column in source.columns if column.name == name) or source.columns
    look = browsing.looked(connection, source, wish, columns)
    content = tuple(browsing.found(connection, source, wish, columns, look))
    told = tuple(Facet(name, values) for name, values in look.facets) if content else ()
    return TablePage(source.name, shown, content, look.count, told, look.sampled, look.count.capped and not wish.sort and bool(source.order))


def written(connection: reading.Connection, source: Source, wish: Wish, format: str, path: Path) -> None:
    """Every row that answers, in the order shown, as a file. Raises UsageError."""
    content = browsing.found(connection, source, replace(wish, first=0, most=-1))
    if format == "xlsx":
        write_xlsx(source.name, source.columns, content, path)
    elif format == "parquet":
        write_parquet(source.columns, content, path)
    elif format in DOWNLOADS:
        with path.open("w", encoding="utf-8", errors="replace", newline="") as out:
            write_table([column.name for column in source.columns], content, format, out)
    else:
        raise UsageError(f"there is no file format {format!r}: choose {', '.join(DOWNLOADS)}")
