"""Writes rows as text tables for a terminal, a spreadsheet or a data program, always streamed."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TextIO

from periplus.errors import UsageError
from periplus.model.tables import without_surrogates
from periplus.present.wording import cells, visible

FORMATS = ("table", "csv", "json", "jsonl")
SAMPLE_ROWS = 200  # decide the widths of a terminal's table; enough to see the longest usual URL, seen within a second
WIDEST = 100  # columns: one endless URL in the sample shall not push every other row off the screen
_NUMBERS = frozenset({int, float, bool, type(None)})
_CELL_TYPES = frozenset({int, str, type(None)})
ROWS_AT_ONCE = 500  # written at once
MOST_CELLS = 50_000  # some 10 MB
# full-width characters too: Japanese spreadsheets treat them alike
_FORMULA_STARTS = frozenset("=+-@\t\r\n＝＋－＠")


def write_table(columns: Sequence[str], rows: Iterable[Sequence[object]], format: str, out: TextIO) -> None:
    """Writes the rows, each with one value a column, as they come.

    table: aligned for reading, numbers to the right; a later value that is longer than its column is written whole.
    csv: RFC 4180 with a header, lines ended by CR LF; texts that a spreadsheet would compute get a leading '.
    json: an array of an object a row; jsonl: an object a line. Raises UsageError for another format. out takes any
    text (UTF-8), newline="".
    """
    if format == "table":
        _write_columns(columns, rows, out)
    elif format == "csv":
        _write_csv(columns, rows, out)
    elif format == "jsonl":
        line = "{" + ", ".join(f"{_json_cell(name)}: ".replace("%", "%%") + "%s" for name in columns) + "}"
        line_of = line.__mod__ if len(set(columns)) == len(columns) else None
        _write_rows(rows, out, line_of, "\n", _Cells(_json_cell), lambda row: out.write(_object(columns, row) + "\n"))
    elif format == "json":
        before = "["
        for row in rows:
            out.write(f"{before}\n{_object(columns, row)}")
            before = ","
        out.write("[]\n" if before == "[" else "\n]\n")
    else:
        raise UsageError(f"there is no table format {format!r}: choose {', '.join(FORMATS)}")


def json_text(value: object) -> str:
    """The value as one JSON document, indented."""
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def align(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """Lines of short tables: columns two blanks apart, each as wide as its widest text; right: those to be right."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield _line(row, widths, [place in right for place in range(len(row))])


def _object(columns: Sequence[str], row: Sequence[object]) -> str:
    # JSON has no infinity
    values = (None if isinstance(value, float) and not math.isfinite(value) else _plain(value) for value in row)
    return json.dumps(dict(zip(columns, values, strict=True)), ensure_ascii=False)


def _plain(value: object) -> object:
    """A value that JSON and CSV have: texts and Python's own numbers."""
    if isinstance(value, str):
        return without_surrogates(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Sequence):
        return [_plain(part) for part in value]
    item = getattr(value, "item", None)  # NumPy's numbers
    return item() if item else str(value)


def _write_csv(columns: Sequence[str], rows: Iterable[Sequence[object]], out: TextIO) -> None:
    write = csv.writer(out, lineterminator="\r\n").writerow
    write(columns)

    def write_row(row: Sequence[object]) -> None:
        write([value if type(value) in _NUMBERS else harmless(_plain(value)) for value in row])

    line_of = ",".join if len(columns) > 1 else None  # an empty cell alone is quoted
    _write_rows(rows, out, line_of, "\r\n", _Cells(_csv_cell), write_row)


def _write_rows(
    rows: Iterable[Sequence[object]],
    out: TextIO,
    line_of: Callable[[tuple[str, ...]], str] | None,
    end: str,
    cells: _Cells,
    write_row: Callable[[Sequence[object]], object],
) -> None:
    """line_of: a line of cells, without its end; None: each row is written by write_row."""
    rest = iter(rows)
    while block := list(islice(rest, ROWS_AT_ONCE)):
        # one table of cells serves where no two values are equal that are written otherwise, as 1 and 1.0
        values = list(chain.from_iterable(block))
        if line_of is not None and _CELL_TYPES.issuperset(map(type, values)):
            lines = map(line_of, zip(*[map(cells.__getitem__, values)] * len(block[0]), strict=True))
            out.write(end.join((*lines, "")))
        else:
            for row in block:
                write_row(row)


class _Cells(dict[object, str]):
    """Values as texts of a file, each converted once: a table of links repeats most values."""

    def __init__(self, text_of: Callable[[object], str]) -> None:
        self._text_of = text_of

    def __missing__(self, value: object) -> str:
        if len(self) >= MOST_CELLS:
            self.clear()
        text = self[value] = self._text_of(value)
        return text


def _json_cell(value: object) -> str:
    return json.dumps(_plain(value), ensure_ascii=False)


def _csv_cell(value: object) -> str:
    if type(value) is str and value.isascii() and value[:1] not in _FORMULA_STARTS:  # a third of the time
        text = value
    else:
        text = "" if value is None else str(harmless(_plain(value)))
    return '"{}"'.format(text.replace('"', '""')) if _is_quoted(text) else text


def _is_quoted(text: str) -> bool:
    return "," in text or '"' in text or "\n" in text or "\r" in text


def harmless(value: object) -> object:
    """A value for a spreadsheet: a text that begins like a formula would run in Excel and Calc (OWASP, CSV injection);
    numbers stay numbers.
    """
    if isinstance(value, list):
        value = " ".join(map(str, value))
    if isinstance(value, str) and value[:1] in _FORMULA_STARTS and value:
        return "'" + value
    return value


def _write_columns(columns: Sequence[str], rows: Iterable[Sequence[object]], out: TextIO) -> None:
    rest = iter(rows)
    sample = list(islice(rest, SAMPLE_ROWS))
    numeric = [bool(sample) and all(_is_number(row[place]) for row in sample) for place in range(len(columns))]
    texts = [[_cell_text(value) for value in row] for row in sample]
    widths = [
        min(WIDEST, max([cells(name), *(cells(row[place]) for row in texts)])) for place, name in enumerate(columns)
    ]
    further = ([_cell_text(value) for value in row] for row in rest)
    for row in chain((columns, ["-" * width for width in widths]), texts, further):
        out.write(_line(row, widths, numeric) + "\n")


def _is_number(value: object) -> bool:
    return value is None or (isinstance(_plain(value), int | float) and not isinstance(value, bool))


def _cell_text(value: object) -> str:
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
    padding = [" " * max(width - cells(text), 0) for text, width in zip(values, widths, strict=True)]
    parts = (pad + text if right else text + pad for text, pad, right in zip(values, padding, numeric, strict=True))
    return "  ".join(parts).rstrip()
