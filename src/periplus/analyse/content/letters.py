"""Of which characters does each text consist?"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

OTHER, LOWER, UPPER, DIGIT, SPACE, COMMA, STOP, WIDE, MARK = range(9)
CLASSES = 9
"""Letters without case are LOWER; WIDE are ideographs and kana, of which two make a word; MARK are the signs that part links: | » · and others."""

_STOPS = ".!?…。！？।؟։;"
_COMMAS = ",:،、，：；"
_MARKS = "|»›«‹•·→←↑↓©®™/\\▶►>*#"


@cache
def _table() -> npt.NDArray[np.uint8]:
    table = np.zeros(65_536, dtype=np.uint8)
    by_category = {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Lm": LOWER, "Lo": LOWER, "Nd": DIGIT, "Zs": SPACE}
    for code in range(65_536):
        table[code] = by_category.get(unicodedata.category(chr(code)), OTHER)
    table[0x3041:0xA000] = WIDE
    table[0xF900:0xFB00] = WIDE
    for letters, kind in ((_STOPS, STOP), (_COMMAS, COMMA), (_MARKS, MARK), ("\n\t", SPACE)):
        table[[ord(letter) for letter in letters]] = kind
    return table


def counts(texts: Sequence[str]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """float32[n, CLASSES]: characters of each class; uint8[n]: classes of the first and of the last character. No text is empty."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    kinds = _table()[np.minimum(codes, 0xFFFF)]
    ends = np.cumsum(np.fromiter(map(len, texts), dtype=np.intp, count=len(texts)))
    starts = np.concatenate((np.zeros(1, dtype=np.intp), ends[:-1]))
    owner = np.repeat(np.arange(0, len(texts) * CLASSES, CLASSES), ends - starts)
    table = np.bincount(owner + kinds, minlength=len(texts) * CLASSES).reshape(-1, CLASSES)
    return table.astype(np.float32), kinds[starts], kinds[ends - 1]
