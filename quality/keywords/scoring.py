"""How good is a list of keywords beside the gold? Exact match of stems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def f1(right: npt.NDArray[np.bool_] | Sequence[bool], gold: int, most: int) -> float:
    """Of the first `most` of a list: right says of each in order whether it is in the gold, which has so many,
    those absent from the text included.
    """
    hits = int(np.sum(right[:most]))
    return 2 * hits / (most + gold) if hits else 0.0
