"""The tables of a collection: leafed through page by page, and those that kept results make."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from periplus.api.exporting import Table, columns_of
from periplus.api.homes import rows_of
from periplus.api.neighbours import InlinkIndexes, narrowed
from periplus.api.portal import desk_of
from periplus.api.results import judged_stamp, kept_judged, kept_stories, stories_file, when_kept
from periplus.api.topics import topic_file, topic_of
from periplus.errors import UsageError
from periplus.model.table import Column, ColumnKind
from periplus.present import issues as present_issues
from periplus.present.stories import delay
from periplus.present.tables import write_parquet, write_table, write_xlsx
from periplus.present.wording import iso
from periplus.store.sqlite import browsing, reading
from periplus.store.sqlite.browsing import SOURCES, Count, TableQuery, TableSource
from periplus.urls.scope import site_key

__all__ = [
    "AUDIT_S",
    "BOOLEAN",
    "DOWNLOADS",
    "FAULT_TABLE",
    "INTEGER",
    "ISSUE_TABLE",
    "PAGES_REMEMBERED",
    "READ_S",
    "REAL",
    "REMEMBERED",
    "RESULT_TABLES",
    "TABLES",
    "TEXT",
    "TIME",
    "WRITE_S",
    "Browser",
    "Count",
    "ResultTable",
    "Rows",
    "TableFacet",
    "TablePage",
    "TableQuery",
    "leafed",
    "stored_table",
    "written",
]


@contextlib.contextmanager
def stored_table(store: str, name: str) -> Iterator[Table]:
    """As `exporting.table` without ranks, of the collection at an address.

    Raises UsageError, NoCollection, StoreError.
    """
    if name in ("redirects", "issues"):
        raise UsageError(
            f"{name} are found in collections in folders: `periplus move` makes one of a collection in a database"
        )
    with rows_of(store, name) as rows:
        yield Table(name, columns_of(name, ranks=False), rows)


# A table of a topic or a portal is named with it: `judged:films`.

TEXT, INTEGER, REAL, BOOLEAN, TIME = ColumnKind
_RELEVANT = 0.5  # as everywhere
Rows = Iterator[Sequence[object]]


@dataclass(frozen=True, slots=True)
class ResultTable:
    """rows, stamp: of the table of a topic or portal in a collection's folder; the stamp changes when the rows do."""

    columns: tuple[Column, ...]
    rows: Callable[[Path, str], Rows]
    stamp: Callable[[Path, str], object]
    searched: tuple[str, ...]
    facets: tuple[str, ...] = ()


def _columns(*made: tuple[str, ColumnKind, str]) -> tuple[Column, ...]:
    return tuple(Column(name, kind, sentence) for name, kind, sentence in made)


def _stories(folder: Path, _: str) -> Rows:
    found = kept_stories(folder)
    for number, story in enumerate(found.stories if found else (), 1):
        first = story.pages[0]
        last = max(page.date.when for page in story.pages)
        yield (number, story.title, len(story.sites), len(story.pages), iso(first.date.when), iso(last),
            str(first.site), str(first.url), first.language,
               story.order.value, ", ".join(story.sites))  # fmt: skip


def _story_pages(folder: Path, _: str) -> Rows:
    found = kept_stories(folder)
    for number, story in enumerate(found.stories if found else (), 1):
        for place, page in enumerate(story.pages, 1):
            after = delay(page.date, story.pages[0].date) if place > 1 else ""
            yield (
                number,
                place,
                page.url,
                page.site,
                page.title,
                iso(page.date.when),
                after,
                page.date.source.value,
                page.order.value,
            )


def _judged(folder: Path, topic: str) -> Rows:
    said = {True: "relevant", False: "not", None: None}
    for one in kept_judged(folder, topic):
        page = one.page
        yield (
            page.url,
            page.title,
            str(site_key(page.url)),
            round(page.probability, 4),
            page.probability >= _RELEVANT,
            said[one.label],
            page.beginning,
        )


def _words(folder: Path, topic: str) -> Rows:
    report = topic_of(folder, topic).report
    for word in report.telling if report else ():
        yield (
            word.word,
            "for it" if word.weight > 0 else "against",
            round(word.weight, 4),
            round(word.positive_share, 4),
            round(word.negative_share, 4),
        )


def _entries(folder: Path, portal: str) -> Rows:
    for entry in desk_of(folder, portal).entries:
        yield (entry.key, entry.kind, entry.verdict or None, entry.title, entry.published, len(entry.sites),
            len(entry.pages), round(entry.weight, 4),
               entry.relevance, entry.sentence, ", ".join(entry.keywords), entry.pages[0].url)  # fmt: skip


def _sources(folder: Path, portal: str) -> Rows:
    for site in desk_of(folder, portal).sites:
        yield site.key, site.chosen, site.verdict or None, site.stories, round(site.gain, 4), site.relevance


def _desk_stamp(folder: Path, portal: str) -> object:
    desk = desk_of(folder, portal)
    return desk.gathered, hash(desk.entries), hash(desk.sites)


def _stories_stamp(folder: Path, _: str) -> object:
    return when_kept(stories_file(folder))


RESULT_TABLES = {
    "stories": ResultTable(
        _columns(
            ("story", INTEGER, "its number, the weightiest first"), ("title", TEXT, "of its first page that has one"),
            ("sites", INTEGER, "that tell it"),
            ("pages", INTEGER, "that tell it"), ("first", TIME, "when its first page was published"),
            ("last", TIME, "when its last page was"),
            ("first_site", TEXT, "the site that had it first"), ("url", TEXT, "its first page"),
            ("language", TEXT, "of the first page"),
            ("ordered", TEXT, "the weakest word on which a page stands where it stands: dates, links, first seen"),
            ("told_by", TEXT, "sites, in order"),
        ),
        _stories, _stories_stamp, ("title", "told_by", "url"), ("first_site", "language", "ordered", "sites"),
    ),
    "story-pages": ResultTable(
        _columns(
            ("story", INTEGER, "number of its story"), ("place", INTEGER, "in the story, from 1"),
            ("url", TEXT, "the address"), ("site", TEXT, "the site"),
            ("title", TEXT, "without the site's name"), ("date", TIME, "when it was published"),
            ("after", TEXT, "the first page: how much later"),
            ("dated_by", TEXT, "on whose word it is dated"),
            ("placed_by", TEXT, "what decided its place: dates, links, first seen"),
        ),
        _story_pages, _stories_stamp, ("url", "title"), ("site", "dated_by", "placed_by"),
    ),
    "judged": ResultTable(
        _columns(
            ("url", TEXT, "the address"), ("title", TEXT, "the title"), ("site", TEXT, "the site"),
            ("probability", REAL, "that it belongs to the topic, 0 to 1"),
            ("relevant", BOOLEAN, "whether it belongs rather than not"),
            ("label", TEXT, "what a person said: relevant, not"),
            ("beginning", TEXT, "of its content"),
        ),
        _judged, judged_stamp, ("url", "title", "beginning"), ("relevant", "label", "site"),
    ),
    "words": ResultTable(
        _columns(
            ("word", TEXT, "the word, folded"), ("speaks", TEXT, "for the topic, or against it"),
            ("weight", REAL, "above 0: for it"),
            ("positive_share", REAL, "of positive examples that have it"),
            ("negative_share", REAL, "of negative examples that have it"),
        ),
        _words, lambda folder, topic: when_kept(topic_file(folder, topic)), ("word",), ("speaks",),
    ),
    "entries": ResultTable(
        _columns(
            ("key", TEXT, "of the entry"), ("kind", TEXT, "what becomes of it: published, waiting, hidden"),
            ("verdict", TEXT, "what the editor decided"),
            ("title", TEXT, "of the story"), ("published", TIME, "when the first page was"),
            ("sites", INTEGER, "that tell it"),
            ("pages", INTEGER, "that tell it"), ("weight", REAL, "telling sites, each counted less the older"),
            ("relevance", REAL, "to the portal's topic, 0 to 1"), ("sentence", TEXT, "with which its content begins"),
            ("keywords", TEXT, "what it is about"), ("url", TEXT, "its first page"),
        ),
        _entries, _desk_stamp, ("title", "sentence", "keywords", "url"), ("kind", "verdict", "sites"),
    ),
    "sources": ResultTable(
        _columns(
            ("site", TEXT, "the site"), ("chosen", BOOLEAN, "whether the portal follows it"),
            ("verdict", TEXT, "what the editor decided: pinned, banned"),
            ("stories", INTEGER, "that it tells"),
            ("gain", REAL, "share of the stories that it has and none before it"),
            ("relevance", REAL, "of its pages to the portal's topic, 0 to 1"),
        ),
        _sources, _desk_stamp, ("site",), ("chosen", "verdict"),
    ),
}  # fmt: skip


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
    ISSUE_TABLE: browsing.memory_source(
        ISSUE_TABLE, present_issues.COLUMNS, ("url", "detail", "cause"), ("severity", "category", "code", "position")
    ),
    FAULT_TABLE: browsing.memory_source(
        FAULT_TABLE, present_issues.FAULT_COLUMNS, ("cause", "detail", "url"), ("severity", "category", "code")
    ),
}


@dataclass(frozen=True, slots=True)
class TableFacet:
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
    facets: tuple[TableFacet, ...]
    sampled: int  # rows that the facets are counted of
    unordered: bool  # they stand as they lie on disk, for there are too many


@dataclass(slots=True)
class Browser:
    """Leafs through tables of any collection; remembers the latest audits, which take seconds to make.

    For many threads.
    """

    _audits: OrderedDict[tuple[object, ...], reading.Connection] = field(default_factory=OrderedDict)
    _pages: dict[tuple[object, ...], TablePage] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    books: InlinkIndexes = field(default_factory=InlinkIndexes)

    def page(self, folder: Path, table: str, wish: TableQuery, columns: Sequence[str] = ()) -> TablePage:
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

    def _page(self, folder: Path, table: str, wish: TableQuery, columns: Sequence[str]) -> TablePage:
        with self._opened(folder, table) as (connection, source), reading.limited(connection, READ_S):
            return leafed(connection, source, narrowed(folder, connection, table, wish, self.books), columns)

    @staticmethod
    def columns(table: str) -> tuple[Column, ...]:
        """All that a table of TABLES or RESULT_TABLES has."""
        kind = table.partition(":")[0]
        if kind in RESULT_TABLES:
            return tuple(RESULT_TABLES[kind].columns)
        return (_AUDIT_SOURCES.get(table) or SOURCES[table]).columns

    def write(self, folder: Path, table: str, wish: TableQuery, format: str, path: Path) -> None:
        """Every row that answers, in the order shown, as a file. Raises UsageError."""
        with self._opened(folder, table) as (connection, source), reading.limited(connection, WRITE_S):
            written(connection, source, wish, format, path)

    @contextlib.contextmanager
    def _opened(self, folder: Path, table: str) -> Iterator[tuple[reading.Connection, TableSource]]:
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
        """The faults of all sites, gravest first, and their issues, as tables;
        made anew when a run has changed anything.
        """
        from periplus.analyse.audit import faults
        from periplus.analyse.issues import KINDS_OF_ISSUES
        from periplus.api.exporting import issues_of_sites

        key = (folder.resolve(), *browsing.standing(connection))
        if key not in self._audits:
            with reading.limited(connection, AUDIT_S), reading.snapshot(connection):
                found = faults(issues_of_sites(connection))
            issues = [present_issues.issue_row(issue, KINDS_OF_ISSUES) for fault in found for issue in fault.issues]
            made = browsing.kept_in_memory(ISSUE_TABLE, present_issues.COLUMNS, issues)
            browsing.keep(
                made,
                FAULT_TABLE,
                present_issues.FAULT_COLUMNS,
                [present_issues.fault_row(fault, KINDS_OF_ISSUES) for fault in found],
            )
            self._audits[key] = made
        return self._latest(key)

    def _result(self, folder: Path, table: str) -> tuple[reading.Connection, TableSource]:
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


def leafed(
    connection: reading.Connection, source: TableSource, wish: TableQuery, columns: Sequence[str] = ()
) -> TablePage:
    """One page of a table. Raises UsageError."""
    shown = tuple(column for name in columns for column in source.columns if column.name == name) or source.columns
    look = browsing.looked(connection, source, wish, columns)
    content = tuple(browsing.found(connection, source, wish, columns, look))
    told = tuple(TableFacet(name, values) for name, values in look.facets) if content else ()
    return TablePage(
        source.name,
        shown,
        content,
        look.count,
        told,
        look.sampled,
        look.count.capped and not wish.sort and bool(source.order),
    )


def written(connection: reading.Connection, source: TableSource, wish: TableQuery, format: str, path: Path) -> None:
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
