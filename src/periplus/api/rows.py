"""Query results: rows with named values, read from the store on demand."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from periplus.errors import UsageError
from periplus.extras import extra_needed
from periplus.model.tables import Column, ColumnKind, Row, row_maker

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Rows"]

MOST_ROWS = 20  # in a notebook


class Rows:
    """Rows of a table. Each iteration reads them from the store again; nothing is held in memory.

    name: of the table. columns: names of the values, which are also attributes of a row. The collection must stay open
    while rows are read. `list(rows)` reads all rows; `rows.to_pandas()` and `rows.to_arrow()` return columns.
    """

    def __init__(
        self, name: str, columns: Sequence[Column], read: Callable[[Sequence[str]], Iterator[Sequence[object]]]
    ) -> None:
        """read: yields the values of each row for the given column names."""
        self.name = name
        self._columns, self._read = columns, read

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of a row's values."""
        return tuple(column.name for column in self._columns)

    def __iter__(self) -> Iterator[Row]:
        return map(row_maker(self.columns), self._read(self.columns))

    def __repr__(self) -> str:
        return f"<{self.name}: {', '.join(self.columns[:6])}{', …' if len(self.columns) > 6 else ''}>"

    def _repr_html_(self) -> str:
        """The first rows as an HTML table, for notebooks."""
        rows = list(islice(self, MOST_ROWS + 1))
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows[:MOST_ROWS])
        more = f"<p>The first {MOST_ROWS} rows.</p>" if len(rows) > MOST_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def to_dicts(self) -> list[dict[str, Any]]:
        """All rows, each as a dictionary from column to value."""
        return [dict(zip(self.columns, row, strict=True)) for row in self]

    def to_arrow(self) -> pyarrow.Table:
        """All rows as an Arrow table: text, 64-bit integers, doubles, timestamps in UTC; missing values are null.

        Raises UsageError if pyarrow is not installed.
        """
        with extra_needed():
            import pyarrow
        from periplus.present.writers import arrow_batches, arrow_schema

        schema = arrow_schema(self._columns)
        return pyarrow.Table.from_batches(arrow_batches(self._columns, schema, self), schema)

    def to_polars(self) -> polars.DataFrame:
        """All rows as a Polars data frame, converted from the Arrow table.

        Raises UsageError if polars or pyarrow is not installed.
        """
        try:
            import polars
        except ImportError:
            raise UsageError("Polars data frames need polars: pip install polars") from None
        return polars.from_arrow(self.to_arrow())

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a data frame of nullable columns: string, Int64, Float64, boolean, timestamps in UTC.

        Raises UsageError if pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise UsageError("data frames need pandas: pip install pandas") from None
        types = {"integer": "Int64", "real": "Float64", "boolean": "boolean", "time": "datetime64[s, UTC]"}
        rows = [*self]
        values = zip(*rows, strict=True) if rows else ((),) * len(self.columns)
        return pandas.DataFrame(
            {
                column.name: pandas.Series(_values(part, column), dtype=types.get(column.kind, "string"))
                for column, part in zip(self._columns, values, strict=True)
            }
        )


def _values(values: Sequence[Any], column: Column) -> list[Any]:
    """Values of a column; booleans, which are 0 and 1 in SQL, become bool."""
    if column.kind is ColumnKind.BOOLEAN:
        return [None if value is None else bool(value) for value in values]
    return list(values)


def _cell(value: object) -> str:
    return "" if value is None else html.escape(str(value))
