"""In how many texts of a collection does a word or a phrase stand?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from periplus.analyse.keywords.candidates import candidates
from periplus.analyse.keywords.reading import Keys, Reading

MOST_KEYS = 4_000_000  # kept while counting: what stood in one text alone is dropped then, and is counted from nought
Floats = npt.NDArray[np.float64]


class Counts(NamedTuple):
    """Phrases by their keys (ascending), and in how many of the texts each stands; those of a single text are left out."""

    texts: int
    keys: Keys
    numbers: npt.NDArray[np.int64]

    def of(self, keys: Keys) -> Floats:
        """In how many texts; at least 1, as they are met in one."""
        if not len(self.keys):
            return np.ones(len(keys))
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.numbers[at], 1).astype(np.float64)


NOTHING = Counts(0, np.zeros(0, np.uint64), np.zeros(0, np.int64))


def counted(texts: Iterable[Reading]) -> Counts:
    """Counts of all words and candidates of the texts."""
    kept, numbers = NOTHING.keys, NOTHING.numbers
    waiting: list[Keys] = []
    number = size = 0
    for text in texts:
        number += 1
        waiting.append(np.unique(np.concatenate((candidates(text).keys, text.keys))))
        size += len(waiting[-1])
        if size > MOST_KEYS:
            kept, numbers = _added(kept, numbers, waiting)
            waiting, size = [], 0
    kept, numbers = _added(kept, numbers, waiting)
    return Counts(number, kept, numbers)


def together(one: Counts, other: Counts) -> Counts:
    """Counts of the texts of both, which share none."""
    keys, owner = np.unique(np.concatenate((one.keys, other.keys)), return_inverse=True)
    numbers = np.bincount(owner, np.concatenate((one.numbers, other.numbers)), len(keys)).astype(np.int64)
    return Counts(one.texts + other.texts, keys, numbers)


def _added(kept: Keys, numbers: npt.NDArray[np.int64], waiting: list[Keys]) -> tuple[Keys, npt.NDArray[np.int64]]:
    keys, owner = np.unique(np.concatenate((kept, *waiting)), return_inverse=True)
    weights = np.ones(len(owner), np.int64)
    weights[: len(kept)] = numbers
    totals = np.bincount(owner, weights, len(keys)).astype(np.int64)
    return keys[totals > 1], totals[totals > 1]
