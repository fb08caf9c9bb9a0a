"""The catalogue's tables in SQLite: views for users, and SELECT statements for lists.

The tables behind the views may change with any version; names and columns of the views stay. Any SQLite program can use
them.
"""

from __future__ import annotations

from collections.abc import Sequence

from periplus.model.tables import VIEWS, Column, ColumnKind, Table


def utc_time(expression: str) -> str:
    """SQL expression: converts seconds since the epoch to a TIME."""
    return f"strftime('%Y-%m-%dT%H:%M:%SZ', nullif({expression}, 0), 'unixepoch')"


def _expression(column: Column) -> str:
    return utc_time(column.sql) if column.kind is ColumnKind.TIME else column.sql


def numeric(table: Table) -> str:
    """SELECT statement of the columns with an expression, times in milliseconds, in any order."""
    values = (
        f"CAST(round(nullif({column.sql}, 0) * 1000) AS INTEGER)" if column.kind is ColumnKind.TIME else column.sql
        for column in table.columns
        if column.sql
    )
    return f"SELECT {', '.join(values)} FROM {table.source} WHERE {table.where or 1}"


def value_of(table: Table, name: str) -> str:
    """SQL expression of a column, over `source_of(table)`. Raises UsageError for an unknown column."""
    column = table.column(name)
    return _expression(column) if column.sql and not table.group else f'"{name}"'


def source_of(table: Table) -> str:
    """The FROM clause. A grouped table is read through its view, so that conditions can refer to totals."""
    return table.source if table.source and not table.group else f'"{table.name}"'


def key_of(table: Table) -> str:
    """SQL expression that identifies a row, or empty."""
    return table.key if table.source else "rowid"


def select(table: Table, names: Sequence[str] = (), where: Sequence[str] = (), order: str = "") -> str:
    """SELECT statement of the named columns, or all. where: conditions besides the table's own; order: ORDER BY clause.

    Raises UsageError for an unknown column.
    """
    values = ", ".join(value_of(table, column.name) for column in table.select(names))
    return f"SELECT {values} FROM {source_of(table)} WHERE {all_of(table, where)}{order}"


def all_of(table: Table, conditions: Sequence[str]) -> str:
    """The table's own condition combined with these."""
    own = () if table.group or not table.where else (table.where,)
    return " AND ".join((*own, *conditions)) or "1"


def order_by(table: Table, names: Sequence[str]) -> str:
    """ORDER BY clause. A leading `-` means descending; rows without a value always come last. Empty without names."""
    parts = []
    for name in names:
        value = value_of(table, name.removeprefix("-"))
        parts.append(f"{value} IS NULL, {value}" + (" DESC" if name.startswith("-") else ""))
    return f" ORDER BY {', '.join(parts)}" if parts else ""


def view(table: Table) -> str:
    """CREATE VIEW statement of a table."""
    columns = ",\n    ".join(f"{_expression(column)} AS {column.name}" for column in table.columns)
    where = f"\nWHERE {table.where}" if table.where else ""
    group = f"\nGROUP BY {table.group}" if table.group else ""
    return f"CREATE VIEW {table.name} AS SELECT\n    {columns}\nFROM {table.source}{where}{group};\n"


CREATE_VIEWS = "".join(map(view, VIEWS.values()))
