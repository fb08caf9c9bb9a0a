"""Which columns do the measures of many blocks share?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from periplus.analyse.content import letters
from periplus.analyse.content.evidence import Traces
from periplus.analyse.content.paths import PathFacts
from periplus.model.page import Block, BlockKind

Array = npt.NDArray[np.generic]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

KINDS = {kind: number for number, kind in enumerate(BlockKind)}
_APART = 3  # blocks between two pages where neighbours are looked up: as far as `around` reaches


class Pages:
    """One or more pages side by side, none without blocks: the blocks of all, their different paths, and the containers of these.

    A page has ten blocks for each path, and a path is ten containers deep: what is said of paths is measured once for each of them.
    """

    def __init__(self, pages: Sequence[Sequence[Block]], traces: Sequence[Traces]) -> None:
        kinds, self.texts, _, levels, self.positions, linked, _ = zip(*chain.from_iterable(pages), strict=True)
        self.traces = traces
        sizes = np.array([len(blocks) for blocks in pages], dtype=np.intp)
        self.ends: Ints = np.cumsum(sizes)
        self.begins: Ints = self.ends - sizes
        self.sizes = sizes
        self.page: Ints = np.repeat(np.arange(len(pages)), sizes)
        self.index: Ints = np.arange(len(self.page)) - self.begins[self.page]  # within its page
        self._place_paths([trace.paths for trace in traces])
        self.kind = np.frombuffer(bytes(map(KINDS.__getitem__, kinds)), dtype=np.uint8)
        self.level: Ints = np.array(levels, dtype=np.intp)
        self.letters, self.first, self.last = letters.counts(self.texts)
        self.chars: Floats = self.letters.sum(axis=1)
        self.linked: Floats = np.minimum(np.array(linked, dtype=np.float32), self.chars) / self.chars
        self.words: Floats = 1 + self.letters[:, letters.SPACE] + self.letters[:, letters.WIDE] / np.float32(2)
        self.words[(self.kind == KINDS[BlockKind.TITLE]) | (self.kind == KINDS[BlockKind.ALT])] = 0
        self.plain: Floats = self.words * (1 - self.linked)
        self.total: Floats = np.maximum(self.totals(self.words), 1)  # words of each page

    def _place_paths(self, paths: Sequence[Sequence[PathFacts]]) -> None:
        counts = np.array([len(some) for some in paths], dtype=np.intp)
        self.path_begins: Ints = np.cumsum(counts) - counts
        own = np.array(list(chain.from_iterable([trace.path for trace in self.traces])), dtype=np.intp)
        self.path: Ints = own + self.path_begins[self.page]  # of each block
        self.path_page: Ints = np.repeat(np.arange(len(paths)), counts)
        self.depths: Ints = np.array([len(path.containers) for path in chain.from_iterable(paths)], dtype=np.intp)
        self._start: Ints = np.cumsum(self.depths) - self.depths
        self._owner: Ints = np.repeat(np.arange(len(self.depths)), self.depths)
        container: list[int] = []
        base = 0
        for some in paths:
            number: dict[int, int] = {}
            container += [number.setdefault(key, base + len(number)) for path in some for key in path.containers]
            base += len(number)
        self._container: Ints = np.array(container, dtype=np.intp)
        self.container_page: Ints = np.zeros(base, dtype=np.intp)
        self.container_page[self._container] = self.path_page[self._owner]

    def container_at(self, level: int) -> Ints:
        """For each path the container that is so many levels out, at most its outermost."""
        return self._container[self._start + np.minimum(level, self.depths - 1)]

    def sums(self, values: Array) -> Doubles:
        """The values of blocks summed over each container."""
        of_paths = np.bincount(self.path, weights=values, minlength=len(self.depths))
        return np.bincount(self._container, weights=of_paths[self._owner]).astype(np.float64)

    def within(self, marked: npt.NDArray[np.bool]) -> tuple[Doubles, Doubles]:
        """For each path: in how many of the marked containers it lies, and how many fewer that is than for the deepest of its page."""
        depth = np.bincount(self._owner, weights=marked[self._container], minlength=len(self.depths)).astype(np.float64)
        return depth, np.maximum.reduceat(depth, self.path_begins)[self.path_page] - depth

    def totals(self, values: Floats) -> Floats:
        """The values of blocks summed over each page. One by one: NumPy sums pieces of an array in another order than a whole one."""
        return np.array([values[begin:end].sum() for begin, end in zip(self.begins.tolist(), self.ends.tolist(), strict=True)], dtype=np.float32)

    def of_paths(self, rows: Sequence[Array] | Array) -> Floats:
        """Rows of paths as rows of blocks."""
        return np.array(rows, dtype=np.float32).take(self.path, axis=1)

    def of_pages(self, rows: Sequence[Array]) -> Floats:
        """Rows of pages as rows of blocks."""
        return np.array(rows, dtype=np.float32).take(self.page, axis=1)

    def means(self, rows: Sequence[Floats], widths: Sequence[int]) -> list[Floats]:
        """For each width the rows' means over so many blocks on either side, fewer at a page's ends."""
        totals = np.zeros((len(rows), len(self.page) + 1))
        np.cumsum(np.array(rows), axis=1, dtype=np.float64, out=totals[:, 1:])
        found = []
        at, begin, end = np.arange(len(self.page)), self.begins[self.page], self.ends[self.page]
        for width in widths:
            low, high = np.maximum(at - width, begin), np.minimum(at + width + 1, end)
            found += list(((totals.take(high, axis=1) - totals.take(low, axis=1)) / (high - low)).astype(np.float32))
        return found

    def around(self, rows: Sequence[Floats]) -> list[Floats]:
        """The rows' values of the third, second and first block before, and of those after; 0 where a page has none."""
        padded = np.zeros((len(rows), len(self.page) + _APART * (len(self.sizes) + 1)), dtype=np.float32)
        place = np.arange(len(self.page)) + _APART * (self.page + 1)
        padded[:, place] = rows
        return [row for step in (-3, -2, -1, 1, 2, 3) for row in padded.take(place + step, axis=1)]


def signed_distance(steps: Ints) -> Doubles:
    """So many blocks before or after, on a scale for which the next ones count most."""
    far: Doubles = np.sign(steps) * np.log1p(np.abs(steps))
    return far
