"""Keeps the issues of the last audit beside a collection, so that the next command reads them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.audit import issue_kinds
from periplus.analyse.issues import COLUMNS, IssueTable, KindIssues, texts
from periplus.analyse.linkgraph import sort_distinct
from periplus.api.audit import issues_of
from periplus.api.page_notes import take_notes
from periplus.api.positions import looked_up
from periplus.model.arrays import Unsigned8
from periplus.model.audit import Severity
from periplus.model.web import Url
from periplus.settings import Settings
from periplus.store import column_files
from periplus.store.sqlite import schema

VERSION = 1
_TEXTS = ("words", "anchors")
_PLACES = ("pages", "related", "ends")


def located_issues(
    folder: Path,
    settings: Settings,
    site: str = "",
    *,
    fragments: bool = True,
    near: bool | None = None,
    note: Callable[[str], object] = lambda sentence: None,
) -> IssueTable:
    """As `audit.issues_of`, with lines and columns. An unchanged collection is not audited again. Raises UsageError."""

    def key_now() -> str:
        return repr((_state(folder), settings.auditing, site, fragments, near))

    take_notes(folder)
    key = key_now()
    file = folder / column_files.ISSUES
    if (kept := column_files.open_columns(file, VERSION)) and kept.head["key"] == key:
        with contextlib.suppress(ValueError, KeyError):  # written by another version, or damaged
            table = _table_of(kept)
            for sentence in kept.head["notes"]:
                note(sentence)
            return table
    notes = list[str]()

    def take(sentence: str) -> None:
        notes.append(sentence)
        note(sentence)

    table = looked_up(folder, issues_of(folder, settings, site, fragments=fragments, near=near, note=take))
    if key_now() == key:
        with contextlib.suppress(OSError):  # a folder that cannot be written
            _keep(file, key, notes, table)
    return table


def _state(folder: Path) -> list[tuple[int, int, int]]:
    """Changes whenever anything is written to the collection: (inode, size, time in ns) of its database's files."""
    files = [folder / schema.DATABASE, folder / f"{schema.DATABASE}-wal"]
    states = [file.stat() for file in files if file.exists()]
    return [(state.st_ino, state.st_size, state.st_mtime_ns) for state in states if state.st_size]


def _keep(file: Path, key: str, notes: list[str], table: IssueTable) -> None:
    """Writes the issues, with the URLs that they name only."""
    kinds = [(kind.kind.code, kind.severity.value, kind.limit, len(kind)) for kind in table.kinds]
    columns: dict[str, NDArray[Any]] = dict.fromkeys(COLUMNS, np.zeros(0, np.int64))
    if table.kinds:
        columns = {name: np.concatenate([getattr(kind, name) for kind in table.kinds]) for name in COLUMNS}
    used = sort_distinct(np.concatenate([columns[name] for name in _PLACES]))
    used = used[used >= 0]
    for name in _PLACES:
        columns[name] = np.where(columns[name] < 0, columns[name], np.searchsorted(used, columns[name]))
    columns |= {name: _packed(columns[name].tolist()) for name in _TEXTS}
    columns |= {"ids": table.ids[used], "url": _packed([table.url[place] for place in used.tolist()])}
    column_files.write(file, VERSION, {"key": key, "notes": notes, "kinds": kinds}, columns)


def _table_of(kept: column_files.ColumnFile) -> IssueTable:
    columns = kept.columns | {name: texts(_unpacked(kept.columns[name]), len(kept.columns["lines"])) for name in _TEXTS}
    kinds, start = list[KindIssues](), 0
    for code, severity, limit, count in kept.head["kinds"]:
        own = {name: columns[name][start : start + count] for name in COLUMNS}
        kinds.append(KindIssues(issue_kinds()[code], Severity(severity), limit, **own))
        start += count
    return IssueTable(tuple(kinds), [Url(text) for text in _unpacked(columns["url"])], columns["ids"])


def _packed(texts: Iterable[str]) -> Unsigned8:
    return np.frombuffer("".join(f"{text}\0" for text in texts).encode("utf-8", "surrogatepass"), np.uint8)


def _unpacked(column: Unsigned8) -> list[str]:
    return column.tobytes().decode("utf-8", "surrogatepass").split("\0")[:-1]
