"""Computes the share of content words in each block, from the labelled content."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scoring import is_text

from periplus.model.page import Block

_WORD = re.compile(r"\w+")
_MOST = 400_000_000  # limit for words of the page times words of the gold: about a second


def shares(blocks: Sequence[Block], gold: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """float32[n] each: the share of a block's words in the longest common subsequence of page and gold,
    and its number of words.
    """
    tokens = [_WORD.findall(block.text) if is_text(block) else [] for block in blocks]
    owner = np.repeat(np.arange(len(blocks)), [len(words) for words in tokens])
    flat, wanted = [word for words in tokens for word in words], _WORD.findall(gold)
    sizes = np.array([len(words) for words in tokens], dtype=np.float32)
    hits = np.zeros(len(blocks), dtype=np.float32)
    if len(flat) * len(wanted) <= _MOST:
        np.add.at(hits, owner[common_places(flat, wanted)], 1)
    return hits / np.maximum(sizes, 1), sizes


def common_places(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """Indices in `first` of the words of a longest common subsequence.

    Bit-parallel: a number holds a row of the table (Hyyrö 2004).
    """
    places: dict[str, int] = {}
    for at, word in enumerate(second):
        places[word] = places.get(word, 0) | 1 << at
    every = (1 << len(second)) - 1
    row, rows = every, []
    for word in first:
        match = row & places.get(word, 0)
        row = ((row + match) | (row - match)) & every
        rows.append(row)
    found = []
    at, of = len(first) - 1, len(second) - 1
    while at >= 0 and of >= 0:
        if rows[at] >> of & 1:
            of -= 1
        elif at and not rows[at - 1] >> of & 1:
            at -= 1
        else:
            found.append(at)
            at -= 1
            of -= 1
    return found[::-1]
