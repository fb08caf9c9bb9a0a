"""Files of columns beside a collection's tables: a line of JSON, then arrays that are mapped into memory.

A file appears whole and is never changed: a kill leaves the file before, and whoever reads one goes on with it while
another takes its place.
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

STORIES = "stories.read"  # what was read of pages for their stories: api.story_pages
ALIGNED = 64  # bytes


class SpilledColumn:
    """A column that grows in an unnamed file, not in memory; as an array it is mapped."""

    def __init__(self, kind: str, folder: Path) -> None:
        """folder: where the file lies; the system's temporary one where nothing can be written there."""
        self._kind = np.dtype(kind)
        try:
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # ended with the column
        except OSError:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self._file.close)  # what was mapped stays

    def frombytes(self, values: bytes) -> None:
        self._file.write(values)

    def array(self) -> NDArray[Any]:
        """All values so far."""
        self._file.flush()
        count = self._file.tell() // self._kind.itemsize
        return np.memmap(self._file, self._kind, "r", shape=(count,)) if count else np.zeros(0, self._kind)


class ColumnFile(NamedTuple):
    """What a file holds."""

    head: dict[str, Any]  # what was given to `write`, and `version` and `arrays`
    columns: dict[str, NDArray[Any]]


def write(file: Path, version: int, head: Mapping[str, object], columns: Mapping[str, NDArray[Any]]) -> None:
    """In place of the file before, and of drafts that killed writers left. Raises OSError where nothing can be written.

    head: values of JSON.
    """
    for left in file.parent.glob(f"{file.name}.*.new"):
        left.unlink(missing_ok=True)  # one who still writes it fails, and his file is made anew when it is asked for
    draft = file.with_name(f"{file.name}.{os.getpid()}.new")
    listed = [(name, values.dtype.str, len(values)) for name, values in columns.items()]
    try:
        draft.touch(0o600)
        with draft.open("wb") as out:
            out.write(json.dumps({"version": version, **head, "arrays": listed}).encode() + b"\n")
            for values in columns.values():
                out.write(b"\0" * (-out.tell() % ALIGNED))
                values.tofile(out)
                _let_go(values)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _let_go(values: NDArray[Any]) -> None:
    """Of a mapped file's pages in memory, which are read again where they are needed: all columns together are larger
    than all else.
    """
    if isinstance(mapped := getattr(values, "_mmap", None), mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def opened(file: Path, version: int) -> ColumnFile | None:
    """The file, its columns mapped into memory; None: there is none, it has another version, or it was cut short."""
    try:
        with file.open("rb") as lines:
            head = json.loads(lines.readline())
            if head["version"] != version:
                return None
            place, columns = lines.tell(), {}
            for name, kind_name, count in head["arrays"]:
                place += -place % ALIGNED
                kind = np.dtype(kind_name)
                columns[name] = np.memmap(file, kind, "r", place, (count,)) if count else np.zeros(0, kind)
                place += count * kind.itemsize
            return ColumnFile(head, columns)
    except (OSError, ValueError, TypeError, KeyError):
        return None
