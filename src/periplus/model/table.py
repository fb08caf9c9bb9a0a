"""What does a table that leaves the program look like?

Its columns as values: for SQL's views, for files, for the documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ColumnKind(StrEnum):
    """What stands in a column."""

    TEXT = "text"
    INTEGER = "integer"  # 64 bits
    REAL = "real"
    BOOLEAN = "boolean"  # in SQL 0 or 1
    TIME = "time"  # text, ISO 8601, UTC, to the second: 2026-06-01T12:00:00Z


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. Without a value (SQL's NULL, an empty cell): not known, or not applicable."""

    name: str
    kind: ColumnKind
    sentence: str  # what it says, with its unit
