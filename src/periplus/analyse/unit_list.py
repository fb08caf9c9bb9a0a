"""Which units does a file name? CSV with a heading, or an address a line."""

from __future__ import annotations

import csv
import io

from periplus.analyse.units import unit_of
from periplus.errors import UsageError
from periplus.model.survey import Unit

COLUMNS = ("start", "name", "short", "prefixes", "bundle", "official")
_NO = frozenset({"no", "false", "0"})


def unit_list(text: str) -> tuple[Unit, ...]:
    """The units of a file: columns COLUMNS in any order, of which only `start` must be there; prefixes parted by blanks.

    A file whose first line is no heading has an address a line; empty lines and those that begin with # are passed over.
    Raises UsageError, naming the line.
    """
    lines = [line for line in text.lstrip("\ufeff").splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise UsageError("the list of sites is empty: give an address a line, or CSV with the column `start`")
    mark = max(",;\t", key=lines[0].count)
    head = [cell.strip().lower() for cell in lines[0].split(mark)]
    if "start" not in head:
        return tuple(_unit({"start": line.strip()}, number) for number, line in enumerate(lines, 1))
    unknown = sorted(set(head) - set(COLUMNS))
    if unknown:
        raise UsageError(f"the list of sites has columns that mean nothing: {', '.join(unknown)}. There are {', '.join(COLUMNS)}")
    found = csv.DictReader(io.StringIO("\n".join(lines[1:])), fieldnames=head, delimiter=mark, restval="")
    return tuple(_unit({name: str(value).strip() for name, value in row.items() if name}, number) for number, row in enumerate(found, 2))


def _unit(row: dict[str, str], line: int) -> Unit:
    try:
        return unit_of(
            row["start"],
            row.get("name", ""),
            row.get("short", ""),
            row.get("prefixes", "").split(),
            bundle=row.get("bundle", ""),
            official=row.get("official", "").lower() not in _NO,
        )
    except UsageError as error:
        raise UsageError(f"line {line} of the list of sites: {error}") from None
