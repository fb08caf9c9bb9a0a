"""Scores a list of keywords against the gold: exact match of stems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def f1(right: npt.NDArray[np.bool_] | Sequence[bool], gold: int, most: int) -> float:
    """F1 of the first `most` keywords.

    right: whether each keyword, in order, is in the gold; gold: number of gold keywords, including those absent from
    the text.
    """
    hits = int(np.sum(right[:most]))
    return 2 * hits / (most + gold) if hits else 0.0
