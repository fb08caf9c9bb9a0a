"""Does a keyword begin, end or go on at each word of a text? For languages with enough labelled texts; it stands in for parts of speech.

A linear model over the word, its endings and its neighbours, learnt by quality/keywords/train.py and shipped as `tags.json`.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from periplus.analyse.keywords.candidates import Candidates
from periplus.analyse.keywords.reading import END, PAUSE, Reading

Floats = npt.NDArray[np.float32]

NAMES = ("tag_begin", "tag_end", "tag_mean", "tag_least", "tag_before", "tag_after", "tag_sum")
BEGIN, FINISH, WITHIN = range(3)  # columns of what `tagged` returns
OUTSIDE = -3.0  # log-odds of what stands before the first and after the last word
SCALE = 100  # weights are stored as whole numbers


@cache
def _weights(language: str) -> tuple[dict[str, int], Floats]:
    """(row of each trait, float32[rows, 3]); the last row is for traits that are not known."""
    stored = json.loads((files("periplus.analyse.keywords") / "tags.json").read_text(encoding="utf-8")).get(language, {})
    rows = {trait: row for row, trait in enumerate(stored)}
    return rows, np.array([*stored.values(), [0, 0, 0]], np.float32) / np.float32(SCALE)


def traits(text: Reading) -> list[list[str]]:
    """What is seen of each word; `*` is seen of all."""
    kinds = text.kinds.tolist()
    words = ["", *[word.lower() for word in text.words], ""]
    paused = [True, *[kind in (PAUSE, END) for kind in kinds[:-1]], True]
    found = []
    for at, word in enumerate(words[1:-1]):
        before = "|" if paused[at] else words[at]
        after = "|" if paused[at + 1] else words[at + 2]
        end = word[-3:]
        seen = [
            "*", "w " + word, "2 " + word[-2:], "3 " + end, "4 " + word[-4:], "b " + before, "a " + after,
            "b3 " + before[-3:], "a3 " + after[-3:], "bw " + before[-3:] + " " + end, "wa " + end + " " + after[-3:],
        ]  # fmt: skip
        if text.capitals[at]:
            seen.append("loud" if text.loud[at] else "capital")
        if text.digits[at]:
            seen.append("digit")
        found.append(seen)
    return found


def tagged(text: Reading) -> Floats | None:
    """float32[words, 3]: log-odds that a keyword begins at, ends at, contains the word; None: nothing was learnt of its language."""
    rows, weights = _weights(text.language)
    if not rows or not text.words:
        return None
    seen = traits(text)
    unknown = len(weights) - 1
    flat = np.fromiter((rows.get(trait, unknown) for word in seen for trait in word), np.intp)
    bounds = np.cumsum([0, *map(len, seen)])
    return np.add.reduceat(weights[flat], bounds[:-1], axis=0)


def tag_measures(odds: Floats | None, found: Candidates) -> Floats:
    """float32[len(NAMES), n]: a row for each measure, at the first place of each candidate; noughts where there are no tags."""
    if odds is None:
        return np.zeros((len(NAMES), len(found.keys)), np.float32)
    begins, ends = found.places[found.first], found.places[found.first] + found.sizes
    edge = np.full((1, 3), OUTSIDE, np.float32)
    padded = np.concatenate((edge, odds, edge))
    total = np.concatenate((np.zeros(1), np.cumsum(odds[:, WITHIN], dtype=np.float64)))
    mean = (total[ends] - total[begins]) / found.sizes
    bounds = np.stack((begins, ends), 1).ravel()
    least = np.minimum.reduceat(np.append(odds[:, WITHIN], np.float32(np.inf)), bounds)[::2]
    begin, end = odds[begins, BEGIN], odds[ends - 1, FINISH]
    return np.array([begin, end, mean, least, padded[begins, WITHIN], padded[ends + 1, WITHIN], begin + end + mean], np.float32)
