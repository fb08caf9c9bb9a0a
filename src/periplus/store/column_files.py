"""Files of arrays beside a collection's tables: a line of JSON, then arrays that are mapped into memory.

A file is replaced atomically and never modified: after a crash the previous file is intact, and readers keep the file
that they opened.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ISSUES = "issues.read"  # api.positions
STORIES = "stories.read"  # page data for stories
ENTRIES = "portals/entries.json"  # descriptions of stories for all portals
ALIGNMENT_BYTES = 64  # bytes


class SpilledColumn:
    """A growing column in a temporary file instead of memory. The array is memory-mapped."""

    def __init__(self, kind: str, folder: Path) -> None:
        """folder: where the file is created; if it is not writable, the system's temporary folder."""
        self._kind = np.dtype(kind)
        try:
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed with the column
        except OSError:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self._file.close)  # existing memory maps stay valid

    def frombytes(self, values: bytes) -> None:
        self._file.write(values)

    def array(self) -> NDArray[Any]:
        """All values so far."""
        self._file.flush()
        count = self._file.tell() // self._kind.itemsize
        return np.memmap(self._file, self._kind, "r", shape=(count,)) if count else np.zeros(0, self._kind)


class ColumnFile(NamedTuple):
    """Content of a file."""

    head: dict[str, Any]  # the head passed to `write`, with `version` and `arrays`
    columns: dict[str, NDArray[Any]]


def write(file: Path, version: int, head: Mapping[str, object], columns: Mapping[str, NDArray[Any]]) -> None:
    """Replaces the file and removes drafts of crashed writers. Raises OSError if it cannot be written.

    head: JSON values.
    """
    for left in file.parent.glob(f"{file.name}.*.new"):
        left.unlink(missing_ok=True)  # a concurrent writer fails; its file is written again when needed
    draft = file.with_name(f"{file.name}.{os.getpid()}.new")
    listed = [(name, values.dtype.str, len(values)) for name, values in columns.items()]
    try:
        draft.touch(0o600)
        with draft.open("wb") as out:
            out.write(json.dumps({"version": version, **head, "arrays": listed}).encode() + b"\n")
            for values in columns.values():
                out.write(b"\0" * (-out.tell() % ALIGNMENT_BYTES))
                values.tofile(out)
                _free_memory(values)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _free_memory(values: NDArray[Any]) -> None:
    """Drops the memory pages of a memory-mapped array, since all columns together exceed the other memory use. They are
    read again when needed.
    """
    if isinstance(mapped := getattr(values, "_mmap", None), mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def open_columns(file: Path, version: int) -> ColumnFile | None:
    """Opens a file with memory-mapped columns; None if it is missing, truncated or of another version."""
    try:
        with file.open("rb") as lines:
            head = json.loads(lines.readline())
            if head["version"] != version:
                return None
            mapped = mmap.mmap(lines.fileno(), 0, access=mmap.ACCESS_READ)  # one file descriptor for all columns
            place, columns = lines.tell(), {}
            for name, kind_name, count in head["arrays"]:
                place += -place % ALIGNMENT_BYTES
                kind = np.dtype(kind_name)
                columns[name] = np.frombuffer(mapped, kind, count, place) if count else np.zeros(0, kind)
                place += count * kind.itemsize
            return ColumnFile(head, columns)
    except (OSError, ValueError, TypeError, KeyError):
        return None
