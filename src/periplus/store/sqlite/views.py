"""The catalogue's tables in SQLite's SQL: the views that anybody may read, and the statements that lists are read with.

The tables behind the views may change with any version; the views' names and columns stay. Any program that opens
SQLite files can use them.
"""

from __future__ import annotations

from collections.abc import Sequence

from periplus.model.tables import VIEWS, Column, ColumnKind, Table


def utc_time(expression: str) -> str:
    """Seconds since the epoch as a TIME."""
    return f"strftime('%Y-%m-%dT%H:%M:%SZ', nullif({expression}, 0), 'unixepoch')"


def _expression(column: Column) -> str:
    return utc_time(column.sql) if column.kind is ColumnKind.TIME else column.sql


def numeric(table: Table) -> str:
    """A SELECT of the columns that have an expression, times in milliseconds, of all rows in any order."""
    values = (
        f"CAST(round(nullif({column.sql}, 0) * 1000) AS INTEGER)" if column.kind is ColumnKind.TIME else column.sql
        for column in table.columns
        if column.sql
    )
    return f"SELECT {', '.join(values)} FROM {table.source} WHERE {table.where or 1}"


def value_of(table: Table, name: str) -> str:
    """A column's value in SQL, over `source_of` the table. Raises UsageError for a column that there is not."""
    column = table.column(name)
    return _expression(column) if column.sql and not table.group else f'"{name}"'


def source_of(table: Table) -> str:
    """What stands after FROM: a table of sums is read by its view, that conditions may be on the sums."""
    return table.source if table.source and not table.group else f'"{table.name}"'


def key_of(table: Table) -> str:
    """The expression that names a row; empty where none does."""
    return table.key if table.source else "rowid"


def select(table: Table, names: Sequence[str] = (), where: Sequence[str] = (), order: str = "") -> str:
    """A SELECT of the columns named, or all of them. where: conditions beside the table's own; order: ORDER BY ....

    Raises UsageError for a column that there is not.
    """
    values = ", ".join(value_of(table, column.name) for column in table.select(names))
    return f"SELECT {values} FROM {source_of(table)} WHERE {all_of(table, where)}{order}"


def all_of(table: Table, conditions: Sequence[str]) -> str:
    """The table's own condition and these."""
    own = () if table.group or not table.where else (table.where,)
    return " AND ".join((*own, *conditions)) or "1"


def order_by(table: Table, names: Sequence[str]) -> str:
    """What has no value stands last, either way. A leading - turns a column round; empty: no order."""
    parts = []
    for name in names:
        value = value_of(table, name.removeprefix("-"))
        parts.append(f"{value} IS NULL, {value}" + (" DESC" if name.startswith("-") else ""))
    return f" ORDER BY {', '.join(parts)}" if parts else ""


def view(table: Table) -> str:
    """The statement that makes the view of a table."""
    columns = ",\n    ".join(f"{_expression(column)} AS {column.name}" for column in table.columns)
    where = f"\nWHERE {table.where}" if table.where else ""
    group = f"\nGROUP BY {table.group}" if table.group else ""
    return f"CREATE VIEW {table.name} AS SELECT\n    {columns}\nFROM {table.source}{where}{group};\n"


CREATE_VIEWS = "".join(map(view, VIEWS.values()))
