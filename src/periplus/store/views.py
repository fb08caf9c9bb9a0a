"""The catalogue's tables in SQL: views for users of SQLite, and SELECT statements for lists in both databases.

The tables behind the views may change with any version; names and columns of the views stay. Any SQLite program can use
them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from periplus.errors import UsageError
from periplus.model.page import LinkKind, Position
from periplus.model.tables import RUNS, VIEWS, Column, ColumnKind, Table, any_of
from periplus.model.visit import REASONS_OF, Reason, State
from periplus.model.web import Url
from periplus.store.statements import SQLITE, Dialect
from periplus.urls.canonical import url_id
from periplus.values import frozen

Choice = TypeVar("Choice", bound=StrEnum)
_JOIN = re.compile(r"JOIN (\w+) (\w) ON (\w+\.\w+ = (\w)\.(\w+))")


@frozen
class PageFilter:
    """Filter of URLs. Empty and -1: any."""

    state: str = ""
    reason: str = ""
    status: str = ""  # "404", or "4xx" for 400 to 499
    media_type: str = ""  # "text/html", or "image/" for all images
    depth: int = -1
    url: str = ""  # part of the URL, or a regular expression
    host: str = ""  # with or without port
    limit: int = -1
    segment: str = ""  # needs segment_of, see CollectionReader.name_segments


@frozen
class LinkFilter:
    """Filter of links. Empty, False and -1: any."""

    source: str = ""  # canonical URL
    target: str = ""  # canonical URL; without `source` all links are scanned: 2 s for 10 M links
    kind: str = ""
    position: str = ""
    nofollow: bool = False
    broken: bool = False  # the target is dead
    external: bool = False  # the target is on another site, and is not dead
    limit: int = -1
    segment: str = ""  # segment of the source


def _expression(column: Column, dialect: Dialect) -> str:
    sql = column.postgres or column.sql if dialect.has_shards else column.sql
    if column.kind is ColumnKind.BOOLEAN and dialect.has_shards:
        return f"({sql})::int"
    return dialect.time.format(sql) if column.kind is ColumnKind.TIME else sql


def numeric(table: Table, dialect: Dialect = SQLITE) -> str:
    """SELECT statement of the columns with an expression, times in milliseconds, in any order."""
    values = (
        dialect.millis.format(column.sql) if column.kind is ColumnKind.TIME else _expression(column, dialect)
        for column in table.columns
        if column.sql
    )
    return f"SELECT {', '.join(values)} FROM {table.source} WHERE {table.where or '1 = 1'}"


def value_of(table: Table, name: str, dialect: Dialect = SQLITE) -> str:
    """SQL expression of a column, over `source_of(table)`. Raises UsageError for an unknown column."""
    column = table.column(name)
    of_view = table.group and not dialect.has_shards
    return _expression(column, dialect) if column.sql and not of_view else f'"{name}"'


def source_of(table: Table) -> str:
    """The FROM clause in SQLite, where a grouped table is read through its view, so that conditions can refer to
    totals.
    """
    return table.source if table.source and not table.group else f'"{table.name}"'


def key_of(table: Table, dialect: Dialect = SQLITE) -> str:
    """SQL expression that identifies a row, or empty. PostgreSQL has no row numbers."""
    key = table.key if table.source else "rowid"
    return "" if dialect.has_shards and key.endswith("rowid") else key


def select(
    table: Table, names: Sequence[str] = (), where: Sequence[str] = (), order: str = "", dialect: Dialect = SQLITE
) -> str:
    """SELECT statement of the named columns, or all. where: conditions besides the table's own; order: ORDER BY clause.

    Raises UsageError for an unknown column.
    """
    values = ", ".join(value_of(table, column.name, dialect) for column in table.select(names))
    if not dialect.has_shards:
        return f"SELECT {values} FROM {source_of(table)} WHERE {all_of(table, where)}{order}"
    group = f" GROUP BY {table.group}" if table.group else " ORDER BY id" if table is RUNS else order
    return f"SELECT {values} FROM {table.source} WHERE {all_of(replace(table, group=''), where)}{group}"


def by_key(table: Table, dialect: Dialect) -> Table:
    """The table for look-ups of few rows, whose joins compare shards too, so that an index finds each row.

    Only the target of a link may be in another shard: its own is tried first.
    """

    def with_shard(join: re.Match[str]) -> str:
        other, name, on, left, key = join.groups()
        if (left, key) != ("l", "target"):
            return f"JOIN {other} {name} ON {name}.shard = {left}.shard AND {on}"
        target = f"SELECT * FROM {other} t WHERE {{}}t.id = l.target"
        either = f"{target.format('t.shard = l.shard AND ')} UNION ALL {target.format(dialect.anywhere('t'))}"
        return f"JOIN LATERAL ({either} LIMIT 1) {name} ON true"

    return replace(table, source=_JOIN.sub(with_shard, table.source)) if dialect.has_shards else table


def all_of(table: Table, conditions: Sequence[str]) -> str:
    """The table's own condition combined with these."""
    own = () if table.group or not table.where else (table.where,)
    return " AND ".join((*own, *conditions)) or "1 = 1"


def order_by(table: Table, names: Sequence[str], dialect: Dialect = SQLITE) -> str:
    """ORDER BY clause. A leading `-` means descending; rows without a value always come last. Empty without names."""
    parts = []
    for name in names:
        value, kind = value_of(table, name.removeprefix("-"), dialect), table.column(name.removeprefix("-")).kind
        order = dialect.text_order * (kind is ColumnKind.TEXT) + " DESC" * name.startswith("-")
        parts.append(f"{value} IS NULL, {value}{order}")
    return f" ORDER BY {', '.join(parts)}" if parts else ""


def view(table: Table) -> str:
    """CREATE VIEW statement of a table in SQLite."""
    columns = ",\n    ".join(f"{_expression(column, SQLITE)} AS {column.name}" for column in table.columns)
    where = f"\nWHERE {table.where}" if table.where else ""
    group = f"\nGROUP BY {table.group}" if table.group else ""
    return f"CREATE VIEW {table.name} AS SELECT\n    {columns}\nFROM {table.source}{where}{group};\n"


CREATE_VIEWS = "".join(map(view, VIEWS.values()))


def page_conditions(where: PageFilter) -> tuple[list[str], list[object]]:
    """SQL conditions and their values, without that on the URL. Raises UsageError for an invalid filter."""
    parts: list[tuple[str, list[object]]] = []
    if where.state:
        parts.append((f"u.reason IN {any_of(REASONS_OF[choice(State, 'state', where.state)])}", []))
    if where.reason:
        parts.append(("u.reason = ?", [choice(Reason, "reason", where.reason).value]))
    if where.status:
        parts.append(("u.status BETWEEN ? AND ?", list(status_range(where.status))))
    if where.media_type:
        kind = where.media_type
        whole = "/" in kind and not kind.endswith("/")
        parts.append(("p.media_type = ?", [kind]) if whole else ("substr(p.media_type, 1, ?) = ?", [len(kind), kind]))
    if where.depth >= 0:
        parts.append(("u.depth = ?", [where.depth]))
    if where.host:
        parts.append(("(h.key = ? OR substr(h.key, 1, ?) = ?)", [where.host, len(where.host) + 1, f"{where.host}:"]))
    if where.segment:
        parts.append(("segment_of(u.id) = ?", [where.segment]))
    return [part for part, _ in parts], [value for _, values in parts for value in values]


def link_conditions(where: LinkFilter, dialect: Dialect = SQLITE) -> tuple[list[str], list[object]]:
    """See `page_conditions`."""
    parts: list[tuple[str, list[object]]] = []
    if where.source:
        parts.append((f"{dialect.anywhere('l')}l.source = ?", [url_id(Url(where.source))]))
    if where.target:
        target = url_id(Url(where.target))
        narrowed = "" if dialect.has_shards else f" AND l.source IN {dialect.linking}"
        parts.append((f"l.target = ?{narrowed}", [target] * (1 + bool(narrowed))))
    if where.kind:
        parts.append(("l.kind = ?", [choice(LinkKind, "kind", where.kind).value]))
    if where.position:
        parts.append(("l.position = ?", [choice(Position, "position", where.position).value]))
    if where.nofollow:
        parts.append(("l.nofollow = 1", []))
    dead = any_of(REASONS_OF[State.FAILED])
    if where.broken:
        # excludes most links before their URLs are looked up
        test = (
            f"b.reason IN {dead}" if dialect.has_shards else f"l.target IN (SELECT id FROM url WHERE reason IN {dead})"
        )
        parts.append((test, []))
    if where.external:
        parts.append((f"g.site_id <> h.site_id AND b.reason NOT IN {dead}", []))
    if where.segment:
        parts.append(("segment_of(l.source) = ?", [where.segment]))
    return [part for part, _ in parts], [value for _, values in parts for value in values]


def choice(kind: type[Choice], what: str, value: str) -> Choice:
    """Member of an enum by value. Raises UsageError with all values."""
    try:
        return kind(value)
    except ValueError:
        raise UsageError(
            f"there is no {what} {value!r}: choose among {', '.join(member.value for member in kind)}"
        ) from None


def status_range(text: str) -> tuple[int, int]:
    """(first, last) status of `404` or `4xx`. Raises UsageError."""
    lowest, highest = text.lower().replace("x", "0"), text.lower().replace("x", "9")
    if len(text) != 3 or not (lowest.isascii() and lowest.isdigit()):
        raise UsageError(f"a status must have the form 404 or 4xx, not {text!r}")
    return int(lowest), int(highest)
