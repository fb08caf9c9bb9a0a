"""Writes tables as files: the formats of exports and downloads, and formats of installed packages.

A new format is a function and a row of WRITERS, or one of the `writers` of a feature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from periplus.errors import UsageError
from periplus.extras import extra_needed
from periplus.features import blame, loaded
from periplus.model.tables import Column, ColumnKind, Table, without_surrogates
from periplus.present.tables import write_table
from periplus.present.wording import count_of
from periplus.values import frozen

if TYPE_CHECKING:
    import pyarrow
    import xlsxwriter

Rows = Iterable[Sequence[object]]
BLOCK_ROWS = 20_000  # of a Parquet row group: with 50,000 the export of links took 70 MB more, for a file 8 % shorter
SHEET_ROWS = 1_048_576  # Excel's limit, its heading row included
CELL_CHARS = 32_767  # Excel's limit
EXACT = 2**53  # Excel's numbers are doubles: whole numbers beyond lose their last digits


@frozen
class Writer:
    """A file format of tables.

    media_type: as HTTP names it. write: takes the table, its rows (values in the order of its columns; streamed, so to
    be read once) and the path of the file to write; returns a note for the user, such as "3 rows", or nothing. It
    raises OSError for a file that cannot be written, UsageError if a package is missing.
    """

    media_type: str
    write: Callable[[Table, Rows, Path], str]


@cache
def writers() -> Mapping[str, Writer]:
    """Every writer by the ending of its files: ours, then writers of installed packages, which never replace ours."""
    added = {
        name: replace(writer, write=blame(package)(writer.write))
        for name, (package, writer) in loaded("writers", Writer).items()
    }
    return WRITERS | {name: writer for name, writer in added.items() if name not in WRITERS}


def find_writer(ending: str) -> Writer:
    """Raises UsageError for an ending that no writer has."""
    if ending not in writers():
        raise UsageError(f"there is no file format {ending!r}: choose {', '.join(writers())}")
    return writers()[ending]


def _write_text(format: str, table: Table, rows: Rows, path: Path) -> str:
    with path.open("w", encoding="utf-8", errors="replace", newline="") as out:
        write_table(table.names, rows, format, out)
    return ""


def _write_parquet(table: Table, rows: Rows, path: Path) -> str:
    return count_of(write_parquet(table.columns, rows, path), "row")


def _write_xlsx(table: Table, rows: Rows, path: Path) -> str:
    return count_of(write_xlsx(table.name, table.columns, rows, path), "sheet")


WRITERS = {
    "csv": Writer("text/csv; charset=utf-8", partial(_write_text, "csv")),
    "jsonl": Writer("application/x-ndjson", partial(_write_text, "jsonl")),
    "parquet": Writer("application/vnd.apache.parquet", _write_parquet),
    "xlsx": Writer("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", _write_xlsx),
}


def write_parquet(columns: Sequence[Column], rows: Rows, path: Path) -> int:
    """Writes one Parquet file, zstd; each field carries its sentence.

    Returns the rows. Raises UsageError where pyarrow is missing.
    """
    parquet, schema = parquet_module(), arrow_schema(columns)
    written = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        for batch in arrow_batches(columns, schema, rows):
            file.write_batch(batch)
            written += len(batch)
    return written


def arrow_batches(columns: Sequence[Column], schema: pyarrow.Schema, rows: Rows) -> Iterator[pyarrow.RecordBatch]:
    """The rows as columns, some thousand at a time. schema: `arrow_schema`, or with times as texts."""
    import pyarrow as pa

    rest = iter(rows)
    while block := list(islice(rest, BLOCK_ROWS)):
        arrays = [
            _arrow_array(column.kind, field.type, values)
            for column, field, values in zip(columns, schema, zip(*block, strict=True), strict=True)
        ]
        yield pa.record_batch(arrays, schema=schema)


def _arrow_array(kind: ColumnKind, type: pyarrow.DataType, values: Sequence[Any]) -> pyarrow.Array:
    import pyarrow as pa

    if kind is ColumnKind.BOOLEAN:
        return pa.array([None if value is None else bool(value) for value in values], pa.bool_())
    if kind is ColumnKind.TIME:
        return pa.array(values, pa.string()).cast(type)
    if kind is ColumnKind.TEXT:
        return pa.array([None if value is None else without_surrogates(value) for value in values], pa.string())
    return pa.array(values, type)


def write_xlsx(name: str, columns: Sequence[Column], rows: Rows, path: Path, sheet_rows: int = SHEET_ROWS) -> int:
    """Writes an Excel workbook; returns its sheets: rows beyond sheet_rows are in `name 2`, `name 3`, ...

    Texts are written as texts, so that none is computed or becomes a link; texts too long for a cell are cut, and
    integers that a double cannot represent are texts.
    """
    with extra_needed():
        import xlsxwriter

    options = {
        "constant_memory": True,
        "strings_to_formulas": False,
        "strings_to_numbers": False,
        "strings_to_urls": False,
    }
    sheets = 0
    with path.open("wb") as file, xlsxwriter.Workbook(file, options) as book:
        book.use_zip64()
        bold = book.add_format({"bold": True})
        rest = iter(rows)
        block = list(islice(rest, 1))
        while block or not sheets:
            sheets += 1
            _fill(
                book.add_worksheet(name if sheets == 1 else f"{name} {sheets}"),
                columns,
                chain(block, islice(rest, sheet_rows - 1 - len(block))),
                bold,
            )
            block = list(islice(rest, 1))
    return sheets


def _fill(
    sheet: xlsxwriter.worksheet.Worksheet, columns: Sequence[Column], rows: Rows, bold: xlsxwriter.format.Format
) -> None:
    sheet.freeze_panes(1, 0)
    for place, column in enumerate(columns):
        sheet.set_column(place, place, 60 if column.wide else 16)
        sheet.write_string(0, place, column.name, bold)
    booleans = {place for place, column in enumerate(columns) if column.kind is ColumnKind.BOOLEAN}
    for number, row in enumerate(rows, 1):
        for place, value in enumerate(row):
            if isinstance(value, str):
                sheet.write_string(
                    number,
                    place,
                    without_surrogates(value)
                    if len(value) <= CELL_CHARS
                    else without_surrogates(value[: CELL_CHARS - 1]) + "…",
                )
            elif place in booleans and value is not None:
                sheet.write_boolean(number, place, bool(value))
            elif isinstance(value, int | float):
                if -EXACT <= value <= EXACT:
                    sheet.write_number(number, place, value)
                else:
                    sheet.write_string(number, place, str(value))


def parquet_module() -> pyarrow.parquet:
    """Imports pyarrow.parquet. Raises UsageError if it is not installed."""
    with extra_needed():
        import pyarrow.parquet
    return pyarrow.parquet


def arrow_schema(columns: Sequence[Column]) -> pyarrow.Schema:
    """Arrow schema of the columns, with their descriptions as metadata."""
    import pyarrow as pa

    types = {
        ColumnKind.TEXT: pa.string(),
        ColumnKind.INTEGER: pa.int64(),
        ColumnKind.REAL: pa.float64(),
        ColumnKind.BOOLEAN: pa.bool_(),
        ColumnKind.TIME: pa.timestamp("ms", "UTC"),
        ColumnKind.BYTES: pa.binary(),
    }
    return pa.schema(
        [pa.field(column.name, types[column.kind], metadata={"description": column.sentence}) for column in columns]
    )
