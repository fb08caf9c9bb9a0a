"""Writes rows as tables for a terminal, a spreadsheet or a data program, always streamed."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from periplus.errors import UsageError
from periplus.model.tables import Column, ColumnKind
from periplus.present.wording import cells, fit, visible

if TYPE_CHECKING:
    import pyarrow
    import xlsxwriter


Rows = Iterable[Sequence[object]]
BLOCK_ROWS = 20_000  # of a Parquet row group: with 50,000 the export of links took 70 MB more, for a file 8 % shorter
SHEET_ROWS = 1_048_576  # Excel's limit, its heading row included
CELL_CHARS = 32_767  # Excel's limit
EXACT = 2**53  # Excel's numbers are doubles: whole numbers beyond lose their last digits
_SURROGATES = re.compile("[\ud800-\udfff]")


def write_parquet(columns: Sequence[Column], rows: Rows, path: Path) -> int:
    """Writes one Parquet file, zstd; each field carries its sentence.

    Returns the rows. Raises UsageError where pyarrow is missing.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError("Parquet needs pyarrow, which is not installed: pip install 'periplus[parquet]'") from None
    schema = pa.schema(
        [
            pa.field(column.name, arrow_type(column.kind), metadata={"description": column.sentence})
            for column in columns
        ]
    )
    written = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as file:
        for block in _blocks(rows):
            arrays = [
                _arrow_array(column.kind, values)
                for column, values in zip(columns, zip(*block, strict=True), strict=True)
            ]
            file.write_batch(pa.record_batch(arrays, schema=schema))
            written += len(block)
    return written


def arrow_type(kind: ColumnKind) -> pyarrow.DataType:
    """How Parquet holds a column of this kind."""
    import pyarrow as pa

    types = {
        ColumnKind.TEXT: pa.string(),
        ColumnKind.INTEGER: pa.int64(),
        ColumnKind.REAL: pa.float64(),
        ColumnKind.BOOLEAN: pa.bool_(),
        ColumnKind.TIME: pa.timestamp("ms", "UTC"),
    }
    return types[kind]


def _arrow_array(kind: ColumnKind, values: Sequence[Any]) -> pyarrow.Array:
    import pyarrow as pa

    if kind is ColumnKind.BOOLEAN:
        return pa.array([None if value is None else bool(value) for value in values], pa.bool_())
    if kind is ColumnKind.TIME:
        return pa.array(values, pa.string()).cast(pa.timestamp("ms", "UTC"))
    if kind is ColumnKind.TEXT:
        return pa.array([None if value is None else sound(value) for value in values], pa.string())
    return pa.array(values, arrow_type(kind))


def _blocks(rows: Rows) -> Iterator[list[Sequence[object]]]:
    rest = iter(rows)
    while block := list(islice(rest, BLOCK_ROWS)):
        yield block


def sound(text: str) -> str:
    """Without halves of characters, which no UTF-8 file can hold."""
    return text if text.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def write_xlsx(name: str, columns: Sequence[Column], rows: Rows, path: Path, sheet_rows: int = SHEET_ROWS) -> int:
    """Writes an Excel workbook; returns its sheets: what is more than sheet_rows goes on in `name 2`, `name 3`, ...

    Texts are written as texts, so that none is computed or becomes a link, whatever it begins with; longer ones than a
    cell holds are cut, and whole numbers that a double does not hold are texts.
    """
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
                    number, place, sound(value) if len(value) <= CELL_CHARS else sound(value[: CELL_CHARS - 1]) + "…"
                )
            elif place in booleans and value is not None:
                sheet.write_boolean(number, place, bool(value))
            elif isinstance(value, int | float):
                if -EXACT <= value <= EXACT:
                    sheet.write_number(number, place, value)
                else:
                    sheet.write_string(number, place, str(value))


FORMATS = ("table", "csv", "json", "jsonl")
SAMPLE_ROWS = 200  # decide the widths of a terminal's table; enough to see the longest usual URL, seen within a second
WIDEST = 100  # columns: one endless URL in the sample shall not push every other row off the screen
_NUMBERS = frozenset({int, float, bool})
# the full-width ones too: spreadsheets in Japanese take them for the others
_COMPUTED = frozenset("=+-@\t\r\n＝＋－＠")


def write_table(columns: Sequence[str], rows: Iterable[Sequence[object]], format: str, out: TextIO) -> None:
    """Writes the rows, each with one value a column, as they come.

    table: aligned for reading, numbers to the right; a later value that is longer than its column is written whole.
    csv: RFC 4180 with a header, lines ended by CR LF; texts that a spreadsheet would compute get a leading '.
    json: an array of an object a row; jsonl: an object a line. Raises UsageError for another format. out takes any
    text (UTF-8), newline="".
    """
    if format == "table":
        _write_aligned(columns, rows, out)
    elif format == "csv":
        _write_csv(columns, rows, out)
    elif format == "jsonl":
        out.writelines(_object(columns, row) + "\n" for row in rows)
    elif format == "json":
        before = "["
        for row in rows:
            out.write(f"{before}\n{_object(columns, row)}")
            before = ","
        out.write("[]\n" if before == "[" else "\n]\n")
    else:
        raise UsageError(f"there is no table format {format!r}: choose {', '.join(FORMATS)}")


def _object(columns: Sequence[str], row: Sequence[object]) -> str:
    # JSON has no infinity
    values = (None if isinstance(value, float) and not math.isfinite(value) else _plain(value) for value in row)
    return json.dumps(dict(zip(columns, values, strict=True)), ensure_ascii=False)


def _plain(value: object) -> object:
    """A value that JSON and CSV have: texts and Python's own numbers."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Sequence):
        return [_plain(part) for part in value]
    item = getattr(value, "item", None)  # NumPy's numbers
    return item() if item else str(value)


def _write_csv(columns: Sequence[str], rows: Iterable[Sequence[object]], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(
            [value if value is None or type(value) in _NUMBERS else harmless(_plain(value)) for value in row]
        )


def harmless(value: object) -> object:
    """A value for a spreadsheet: a text that begins like a formula would run in Excel and Calc (OWASP, CSV injection);
    numbers stay numbers.
    """
    if isinstance(value, list):
        value = " ".join(map(str, value))
    if isinstance(value, str) and value[:1] in _COMPUTED and value:
        return "'" + value
    return value


def _write_aligned(columns: Sequence[str], rows: Iterable[Sequence[object]], out: TextIO) -> None:
    rest = iter(rows)
    sample = list(islice(rest, SAMPLE_ROWS))
    numeric = [bool(sample) and all(_is_number(row[place]) for row in sample) for place in range(len(columns))]
    texts = [[_shown(value) for value in row] for row in sample]
    widths = [
        min(WIDEST, max([cells(name), *(cells(row[place]) for row in texts)])) for place, name in enumerate(columns)
    ]
    out.write(_line(columns, widths, numeric))
    out.write(_line(["-" * width for width in widths], widths, numeric))
    for row in chain(texts, ([_shown(value) for value in row] for row in rest)):
        out.write(_line(row, widths, numeric))


def _is_number(value: object) -> bool:
    return value is None or (isinstance(_plain(value), int | float) and not isinstance(value, bool))


def _shown(value: object) -> str:
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    if isinstance(plain, float):
        return f"{plain:.4g}"
    if isinstance(plain, list):
        return visible(" ".join(map(str, plain)))
    return visible(str(plain))


def _line(values: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts = []
    for text, width, right in zip(values, widths, numeric, strict=True):
        if right:
            parts.append(text.rjust(width))
        else:
            parts.append(text if cells(text) > width else fit(text, width))
    return "  ".join(parts).rstrip() + "\n"
