"""The catalogue's tables in SQL: views for users of SQLite, and SELECT statements for lists in both databases.

The tables behind the views may change with any version; names and columns of the views stay. Any SQLite program can use
them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from periplus.model.tables import RUNS, VIEWS, Column, ColumnKind, Table
from periplus.store.statements import SQLITE, Dialect

_JOIN = re.compile(r"JOIN (\w+) (\w) ON (\w+\.\w+ = (\w)\.(\w+))")


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


def key_of(table: Table) -> str:
    """SQL expression that identifies a row, or empty."""
    return table.key if table.source else "rowid"


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
