"""How are more numbers counted, or each taken once, than memory holds?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from periplus.analyse.engines.tables import Ints
from periplus.analyse.linkgraph import distinct_sorted

FILES = 64  # open at once
WAITING = 1 << 22  # numbers that wait to be counted together: 64 MB with their counts


def distinct_of(blocks: Iterable[Ints], most: int, scratch: Path) -> Iterator[Ints]:
    """Each number once, in ascending blocks. The numbers are dealt by size into FILES files below scratch, and each file is read whole.

    most: greater than any of the numbers, which spread evenly below it.
    """
    folder = scratch / "dealt"
    folder.mkdir()
    width = -(-most // FILES)
    with ExitStack() as opened:
        files = [opened.enter_context((folder / str(number)).open("wb")) for number in range(FILES)]
        for block in blocks:
            ascending = distinct_sorted(block)
            cuts = np.searchsorted(ascending, np.arange(1, FILES) * width)
            for file, part in zip(files, np.split(ascending, cuts), strict=True):
                file.write(part.tobytes())
    for number in range(FILES):
        yield distinct_sorted(np.fromfile(folder / str(number), np.int64))


class Tally:
    """How often each number was met. Memory: the different ones, and WAITING more."""

    def __init__(self) -> None:
        self._known = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._waiting: list[Ints] = []
        self._rows = 0

    def add(self, values: Ints) -> None:
        self._waiting.append(values)
        self._rows += len(values)
        if self._rows >= WAITING:
            self._merge()

    def counts(self) -> tuple[Ints, Ints]:
        """(numbers, ascending; how often each was met)."""
        self._merge()
        return self._known

    def _merge(self) -> None:
        values = np.concatenate([self._known[0], *self._waiting])
        times = np.concatenate([self._known[1], np.ones(len(values) - len(self._known[0]), np.int64)])
        order = np.argsort(values, kind="stable")
        values, times = values[order], times[order]
        begins = np.flatnonzero(np.diff(values, prepend=-1))
        self._known = values[begins], np.add.reduceat(times, begins) if len(begins) else times
        self._waiting, self._rows = [], 0
