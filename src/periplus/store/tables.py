"""Tables for browsing: rows of the catalogue's tables filtered, sorted, counted, and by page.

A query has conditions by column, an order and an offset. A sample of the first matching rows, at most SAMPLE_ROWS,
gives the facets. If there are fewer rows, the sample contains them all, and they are sorted by their keys. If there
are more than MOST_COUNTED_ROWS and no order is requested, they are shown in storage order: sorting a million rows for
the first fifty took most of the time. Each call is bounded by its caller's time limit.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from periplus.errors import UsageError
from periplus.model.tables import (
    ALL_URLS,
    BAD_LINKS,
    EMPTY,
    HOSTS,
    LINKS,
    REDIRECTS,
    RUNS,
    SITES,
    VISITS,
    Column,
    ColumnKind,
    Table,
)
from periplus.model.web import Url
from periplus.store.reader import NO_LIMIT, CollectionReader
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.statements import SQLITE, Dialect, Statements
from periplus.store.views import all_of, key_of, order_by, select, source_of, value_of
from periplus.urls.canonical import url_id
from periplus.values import Pairs, Row, frozen

MOST_COUNTED_ROWS = 100_000  # maximum counted rows: 20 ms
SAMPLE_ROWS = 10_000  # sampled rows for facets: 0.1 s; ids are hashes, so that the first rows are a random sample
# number of URLs; in larger collections links are sampled and counted only up to FEW, since finding links of a rare kind
# takes a whole scan
LARGE = 100_000
FEW = 2_000
FACET_VALUES = 12
DEEPEST = 1_000_000  # greatest offset
_RANGE = re.compile(r"(-?[0-9.]*)\.\.(-?[0-9.]*)")
_CLASS = re.compile(r"[1-5]xx", re.IGNORECASE)
# if only one site was fetched, its URLs are looked up once, instead of two sites for each of ten million links
_ALONE = "(SELECT count(DISTINCT site_id) FROM host WHERE fetched > 0) = 1"
_URLS = (
    "SELECT id FROM url WHERE host_id {} (SELECT id FROM host WHERE site_id = (SELECT site_id FROM host"
    " WHERE fetched > 0 LIMIT 1))"
)
BROWSABLE_TABLES = {"pages": ALL_URLS} | {
    table.name: table for table in (LINKS, BAD_LINKS, HOSTS, SITES, RUNS, REDIRECTS, VISITS)
}
"""Tables of a collection that can be browsed, by name."""


@frozen
class TableQuery:
    """A query for rows of a table.

    conditions: (column, text) as parsed by `condition`, all must match; text: substring of any searched column; sort:
    columns, a leading `-` means descending; most: maximum rows, -1: all. within: (column, integers): only rows whose
    value, or whose URL's id, is among them, if the caller has an index.
    """

    conditions: Pairs = ()
    text: str = ""
    sort: tuple[str, ...] = ()
    first: int = 0
    most: int = 50
    within: tuple[str, tuple[int, ...]] | None = None


@frozen
class Count:
    """Number of matching rows; capped: it is a lower bound."""

    rows: int
    capped: bool


@frozen
class TableFacet:
    """Values of one column in matching rows, most frequent first. An empty value means no value."""

    name: str
    values: tuple[tuple[str, int], ...]


@frozen
class TableSample:
    """A sample of the matching rows.

    sampled: number of rows behind the facets; keys: of all matching rows, None if there are too many or no keys.
    """

    count: Count
    sampled: int
    facets: tuple[TableFacet, ...]
    keys: list[object] | None
    # the requested rows, if they are in the sample; None: not read yet
    rows: tuple[Row, ...] | None = None


NO_SAMPLE = TableSample(Count(0, True), 0, (), None)
"""Used if there was no time for a sample: rows are then shown in storage order."""


def condition(table: Table, name: str, text: str, dialect: Dialect = SQLITE) -> tuple[str, list[object]]:
    """(SQL condition, values) of a condition on one column.

    Text: `word` for equality, `~part` for a substring; numbers: `404`, `4xx`, `100..200`, `5..`; booleans: `yes`, `no`;
    times: a prefix such as `2026-11`; all: `-` for no value; a leading `!` negates.

    Raises UsageError for an invalid condition.
    """
    value, kind = value_of(table, name, dialect), table.column(name).kind
    if text.startswith("!"):
        where, values = condition(table, name, text[1:], dialect)
        return f"NOT coalesce({where}, FALSE)", values
    if (quick := _quick(table, name, text, dialect)) is not None:
        return quick
    if text == EMPTY:
        return f"coalesce(CAST({value} AS TEXT), '') = ''", []
    if kind is ColumnKind.BOOLEAN:
        if text not in ("yes", "no"):
            raise UsageError(f"{name} is yes or no, not {text!r}")
        return f"({value}) = ?", [int(text == "yes")]
    if kind in (ColumnKind.INTEGER, ColumnKind.REAL):
        return _numeric(value, name, text)
    if kind is ColumnKind.TIME:
        return f"substr({value}, 1, ?) = ?", [len(text), text]
    if text.startswith("~"):
        return _holds(value, dialect), [_pattern(text[1:])]
    return f"{value} = ?", [text]


def keys_with(statements: Statements, table: Table, name: str, text: str) -> list[int]:
    """Keys of the rows that match a condition, in any order. Raises UsageError as `condition`."""
    where, values = condition(table, name, text, statements.dialect)
    find = f"SELECT {key_of(table)} FROM {source_of(table)} WHERE {all_of(table, [where])}"
    return [key for (key,) in statements.rows(find, values)]


def _holds(value: str, dialect: Dialect) -> str:
    """SQL condition: contains a text, ignoring case; takes two thirds of the time of instr() on lower()."""
    return f"{value} {'ILIKE' if dialect.has_shards else 'LIKE'} ? ESCAPE '\\'"


def _pattern(text: str) -> str:
    return "%" + re.sub(r"([%_\\])", r"\\\1", text) + "%"


def _quick(table: Table, name: str, text: str, dialect: Dialect) -> tuple[str, list[object]] | None:
    """An equivalent condition that does not read texts, or None."""
    column = table.column(name)
    if column.url_id and text.startswith(("http://", "https://")):
        source = column.url_id.partition(".")[0]
        anywhere = "" if column.url_id == "l.target" else dialect.anywhere(source)
        return f"({anywhere}{column.url_id} = ?)", [url_id(Url(text))]
    if table.name == LINKS.name and name == "internal" and text in ("yes", "no") and not dialect.has_shards:
        inside = text == "yes"
        targets = _URLS.format("IN" if inside else "NOT IN")
        return f"CASE WHEN {_ALONE} THEN l.target IN ({targets}) ELSE ({column.sql}) = {int(inside)} END", []
    if (
        column.of_target
        and text != EMPTY
        and text[:1] != "~"
        and not (_RANGE.fullmatch(text) or _CLASS.fullmatch(text))
    ):
        return f"l.target IN (SELECT id FROM url WHERE {column.of_target})", [text]
    return None


def _numeric(value: str, name: str, text: str) -> tuple[str, list[object]]:
    try:
        if _CLASS.fullmatch(text):
            return f"{value} BETWEEN ? AND ?", [int(text[0]) * 100, int(text[0]) * 100 + 99]
        if span := _RANGE.fullmatch(text):
            low, high = float(span[1] or "-inf"), float(span[2] or "inf")
            return f"{value} BETWEEN ? AND ?", [low, high]
        return f"{value} = ?", [float(text)]
    except ValueError:
        raise UsageError(f"{name} is a number, or a range like 100..200, not {text!r}") from None


def _conditions(table: Table, query: TableQuery, dialect: Dialect) -> tuple[list[str], list[object]]:
    """SQL conditions and their values."""
    parts = [condition(table, name, text, dialect) for name, text in query.conditions]
    if query.text:
        searched = [column.name for column in table.columns if column.searched]
        holds = [_holds(value_of(table, name, dialect), dialect) for name in searched]
        parts.append((f"({' OR '.join(holds)})", [_pattern(query.text)] * len(holds)))
    if query.within is not None:
        name, numbers = query.within
        value = table.column(name).url_id or value_of(table, name, dialect)
        anywhere = dialect.anywhere(value.partition(".")[0])
        parts.append((f"({anywhere}{value} {dialect.among})", [dialect.list_value(numbers)]))
    return [part for part, _ in parts], [value for _, values in parts for value in values]


def _without_groups(table: Table, dialect: Dialect) -> Table:
    """The table as conditions see it: SQLite has views of grouped tables, PostgreSQL reads them from a subquery."""
    if not (dialect.has_shards and table.group):
        return replace(table)  # whose order is free, also that of runs
    names = ", ".join(f'"{name}"' for name in table.names)
    values = ", ".join(column.postgres or column.sql for column in table.columns)
    totals = f"SELECT {values} FROM {table.source} WHERE {table.where or '1 = 1'} GROUP BY {table.group}"
    columns = tuple(replace(column, sql=f'"{column.name}"', postgres="", url_id="") for column in table.columns)
    return replace(table, columns=columns, source=f'({totals}) "{table.name}" ({names})', where="", group="")


def rows_of(
    reader: CollectionReader,
    table: Table,
    query: TableQuery,
    names: Sequence[str] = (),
    sample: TableSample | None = None,
) -> Iterator[Row]:
    """The requested rows, with the named columns, or all.

    sample: of the same query; saves a second search. Raises UsageError.
    """
    if query.first > DEEPEST:
        raise UsageError(f"cannot browse beyond {DEEPEST:,} rows: use a filter, or download the table")
    if sample is not None and sample.rows is not None:
        yield from sample.rows
        return
    statements, dialect = reader.statements, reader.statements.dialect
    table = _without_groups(table, dialect)
    key, (where, values) = key_of(table), _conditions(table, query, dialect)
    unordered = sample is not None and sample.count.capped and not query.sort
    order = "" if unordered else order_by(table, query.sort or table.order, dialect)
    place = (query.most if query.most >= 0 else NO_LIMIT, query.first)
    if not key or query.most < 0 or dialect.has_shards:
        find = f"{select(table, names, where, order, dialect)} LIMIT ? OFFSET ?"
        read = reader.stream if query.most < 0 else statements.rows
        yield from read(find, (*values, *place))
        return
    if sample is not None and sample.keys is not None:
        where, values = [f"{key} {dialect.among}"], [dialect.list_value(sample.keys)]
    find = f"SELECT {key} FROM {source_of(table)} WHERE {all_of(table, where)}{order} LIMIT ? OFFSET ?"
    of_key = select(table, names, [f"{key} = ?"])
    for (number,) in statements.rows(find, (*values, *place)):
        yield statements.rows(of_key, (number,))[0]


def sample_of(reader: CollectionReader, table: Table, query: TableQuery, names: Sequence[str] = ()) -> TableSample:
    """Counts matching rows and their facets.

    names: columns of the rows that will be requested. In large tables of links the sample contains these rows, since
    finding a rare kind again takes as long as the sample.
    """
    statements, dialect = reader.statements, reader.statements.dialect
    table = _without_groups(table, dialect)
    key, (conditions, values) = key_of(table, dialect), _conditions(table, query, dialect)
    where = all_of(table, conditions)
    facets = [column for column in table.columns if column.facet]
    briefly = not key and reader.count_urls() > LARGE
    most = FEW if briefly else SAMPLE_ROWS
    ordered = query.sort or table.order
    brings = briefly and not ordered and 0 <= query.most <= most - query.first
    shown = [value_of(table, column.name, dialect) for column in table.select(names)] if brings else []
    looked_at = [key or "NULL", *(value_of(table, column.name, dialect) for column in facets), *shown]
    keys: list[object] = []
    page: list[Row] = []
    tallies = [Counter[object]() for _ in facets]
    find = f"SELECT {', '.join(looked_at)} FROM {source_of(table)} WHERE {where} LIMIT ?"
    for number, *shared in statements.rows(find, (*values, most)):
        if brings and query.first <= len(keys) < query.first + query.most:
            page.append(tuple(shared[len(tallies) :]))
        keys.append(number)
        for tally, value in zip(tallies, shared[: len(tallies)], strict=True):
            tally[value] += 1
    brought = tuple(page) if brings else None
    shares = tuple(
        TableFacet(column.name, _commonest(column, tally)) for column, tally in zip(facets, tallies, strict=True)
    )
    if len(keys) < most:
        return TableSample(Count(len(keys), False), len(keys), shares, keys if key else None, brought)
    if briefly:
        return TableSample(Count(FEW, True), FEW, shares, None, brought)
    count = f"SELECT count(*) FROM (SELECT 1 FROM {source_of(table)} WHERE {where} LIMIT ?) t"
    many = int(statements.rows(count, (*values, MOST_COUNTED_ROWS + 1))[0][0])
    return TableSample(Count(min(many, MOST_COUNTED_ROWS), many > MOST_COUNTED_ROWS), SAMPLE_ROWS, shares, None)


def _commonest(column: Column, tally: Counter[object]) -> tuple[tuple[str, int], ...]:
    """The most frequent values as text; an empty text means no value."""
    words = {0: "no", 1: "yes"} if column.kind is ColumnKind.BOOLEAN else {}
    texts = [
        ("" if value is None else words.get(value, str(value)) if isinstance(value, int) else str(value), count)
        for value, count in tally.items()
    ]
    return tuple(sorted(texts, key=lambda pair: (-pair[1], pair[0]))[:FACET_VALUES])


def computed_database(*tables: tuple[Table, Iterable[Sequence[object]]]) -> CollectionReader:
    """A reader of computed tables, to be browsed like stored ones: in memory while they are small, else in a temporary
    file that is deleted with the connection.
    """
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = OFF")  # an incomplete database is of no use
    with connection:
        connection.execute("BEGIN")
        for table, content in tables:
            names = ", ".join(f'"{name}"' for name in table.names)
            connection.execute(f'CREATE TABLE "{table.name}" ({names})')
            connection.executemany(f'INSERT INTO "{table.name}" VALUES ({", ".join("?" * len(table.names))})', content)
    return SqliteReader(connection)
