"""Which words of many texts count, how much by their rarity, and what are texts as rows of these?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from periplus.analyse.topic.words import GRAM_BUCKETS, WORD_CHARS, grams

Floats = NDArray[np.float64]
Counts = Mapping[str, int]

LEAST_TEXTS = 2  # a word of one text is its own
WORDS_MOST = 60_000  # the most frequent: a model of 1 MB; beyond, words of 4,000 pages stand in two or three of them


class Space(NamedTuple):
    """The words, ascending, with their rarities: ln((1 + n) / (1 + texts that have it)) + 1, as tf-idf is usually smoothed."""

    places: dict[str, int]
    rarities: Floats
    unknown_rarity: float  # of a word that no text has


def space_of(texts: Sequence[Counts]) -> Space:
    """The words that count in these texts."""
    known = Counter(word for counts in texts for word in counts if len(word) <= WORD_CHARS)
    least = LEAST_TEXTS if len(texts) > LEAST_TEXTS else 1
    often = sorted((word for word, number in known.items() if number >= least), key=lambda word: (-known[word], word))[:WORDS_MOST]
    words = sorted(often)
    found = np.array([known[word] for word in words], dtype=np.float64)
    return Space({word: place for place, word in enumerate(words)}, np.log((1 + len(texts)) / (1 + found)) + 1, float(np.log(1 + len(texts)) + 1))


def rows_of(texts: Sequence[Counts], space: Space) -> csr_array:
    """float64[n, v]: (1 + ln of the count) times rarity, over the length of the row with all its words, also those that do not count."""
    starts, columns, values = [0], list[NDArray[np.int32]](), list[Floats]()
    for counts in texts:
        found = np.array([(space.places.get(word, -1), times) for word, times in counts.items()], dtype=np.int64).reshape(-1, 2)
        known = found[:, 0] >= 0
        row = (1 + np.log(found[:, 1])) * np.where(known, space.rarities[found[:, 0]], space.unknown_rarity) if len(space.places) else np.zeros(len(found))
        columns.append(found[known, 0].astype(np.int32))
        values.append(row[known] / max(float(np.sqrt(row @ row)), 1e-12))
        starts.append(starts[-1] + int(known.sum()))
    data = np.concatenate([*values, np.zeros(0)])
    return csr_array((data, np.concatenate([*columns, np.zeros(0, np.int32)]), np.array(starts, dtype=np.int32)), shape=(len(texts), len(space.places)))


def gram_rows(space: Space) -> csr_array:
    """float64[v, GRAM_BUCKETS]: which grams each word has; squares of a row add up to about 1."""
    starts, columns, values = [0], list[int](), list[float]()
    for word in space.places:
        own = grams(word)
        columns += own
        values += [float(len(own) ** -0.5)] * len(own)
        starts.append(len(columns))
    return csr_array(
        (np.array(values, dtype=np.float64), np.array(columns, dtype=np.int32), np.array(starts, dtype=np.int32)), shape=(len(space.places), GRAM_BUCKETS)
    )
