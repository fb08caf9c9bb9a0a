"""How do more rows of whole numbers come into order than memory holds? Rows are dealt into files by their first number, then each file is sorted."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]  # [rows, width]
FILES = 64  # open at once; each is read whole: of 10 M rows about 160,000, of a thousand million 16 M
BUFFER_BYTES = 1 << 18  # of each file
HELD_ROWS = 500_000  # up to here memory holds them all; of more, these tell where to cut


def in_order(blocks: Iterable[Rows], by: tuple[int, ...], folder: Path, sample: NDArray[np.int64] | None = None) -> Iterator[Rows]:
    """The rows ascending by the columns `by`, of which the first is 0, block by block; two blocks share no number of column 0.

    Files are cut where HELD_ROWS numbers of column 0 say, which must be drawn by chance from all: the `sample`; None: those of the first rows,
    whose order then says nothing of column 0, as that of hashes. folder: for temporary files, deleted at the end; not touched where there
    are no more rows. Memory: the rows of the fullest file, four times.
    """
    rest = iter(blocks)
    held: list[Rows] = []
    count = 0
    for block in rest:
        held.append(block)
        count += len(block)
        if count > HELD_ROWS:
            first = np.concatenate([block[:, 0] for block in held])[:HELD_ROWS] if sample is None else sample
            yield from _dealt(held, rest, (by, np.sort(first)), folder)
            return
    if held:
        yield _sorted(np.concatenate(held), by)


def _dealt(held: list[Rows], rest: Iterator[Rows], order: tuple[tuple[int, ...], NDArray[np.int64]], folder: Path) -> Iterator[Rows]:
    """order: the columns, and the sample, ascending."""
    by, seen = order
    width = held[0].shape[1]
    cuts = seen[np.arange(1, FILES) * len(seen) // FILES]
    with tempfile.TemporaryDirectory(prefix="sort-", dir=folder) as place, ExitStack() as stack:
        paths = [Path(place) / f"{number:02}" for number in range(FILES)]
        files = [stack.enter_context(path.open("wb", buffering=BUFFER_BYTES)) for path in paths]
        while held:
            _deal(held.pop(), cuts, files)
        for block in rest:
            _deal(block, cuts, files)
        stack.close()
        for path in paths:
            rows = np.fromfile(path, np.int64).reshape(-1, width)
            path.unlink()
            if len(rows):
                yield _sorted(rows, by)


def _deal(block: Rows, cuts: NDArray[np.int64], files: list[BinaryIO]) -> None:
    numbers = np.searchsorted(cuts, block[:, 0], side="right")
    order = np.argsort(numbers, kind="stable")
    rows, ends = block[order], np.searchsorted(numbers[order], np.arange(FILES + 1))
    for number, file in enumerate(files):
        if ends[number] < ends[number + 1]:
            rows[ends[number] : ends[number + 1]].tofile(file)


def _sorted(rows: Rows, by: tuple[int, ...]) -> Rows:
    return rows[np.lexsort([rows[:, column] for column in reversed(by)])]
