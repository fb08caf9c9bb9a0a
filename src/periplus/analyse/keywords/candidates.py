"""Which phrases of a text could be its keywords? Every run of at most MOST words that nothing parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from periplus.analyse.keywords.reading import Keys, Reading

Ints = npt.NDArray[np.intp]

MOST = 5  # words; of the authors' keywords in the sets of quality/keywords one in forty is longer
LONG = 300  # words: in longer texts ...
ONCE = 3  # ... a phrase of more words counts if it is repeated: else they are half of all candidates, and hardly one is a keyword
_STEP = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no factor is lost


class Candidates(NamedTuple):
    """Phrases of a text, those with the same stems as one, and where each stands."""

    keys: Keys  # [n] ascending; of a single word its own
    first: Ints  # [n] the first place, as an index into `places`
    times: Ints  # [n]
    sizes: Ints  # [n] words
    places: Ints  # [m] the word that it begins with
    counts: Ints  # [m] its words
    owner: Ints  # [m] which of the n it is


def candidates(text: Reading) -> Candidates:
    """Those that neither begin nor end with a function word."""
    places, counts, keys = _found(text)
    found = _grouped(places, counts, keys)
    if len(text.words) <= LONG:
        return found
    return _those(found, (found.times > 1) | (found.sizes <= ONCE))


def _grouped(places: Ints, counts: Ints, keys: Keys) -> Candidates:
    distinct, first, owner, times = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    return Candidates(distinct, first, times, counts[first], places, counts, owner)


def _those(found: Candidates, kept: npt.NDArray[np.bool_]) -> Candidates:
    """Some of the candidates."""
    at = kept[found.owner]
    number, place = np.cumsum(kept) - 1, np.cumsum(at) - 1
    return Candidates(
        found.keys[kept], place[found.first[kept]], found.times[kept], found.sizes[kept], found.places[at], found.counts[at], number[found.owner[at]]
    )


def _found(text: Reading) -> tuple[Ints, Ints, Keys]:
    """(first word, words, key) of each, by the number of words and then in the order of the text: the first of a key is the earliest."""
    free = np.flatnonzero(~text.stops)
    places, counts, keys = [], [], []
    begins, key = free, text.keys[free]
    for count in range(1, MOST + 1):
        if count > 1:
            inside = begins + count - 1 < len(text.words)
            begins, key = begins[inside], key[inside]
            last = begins + count - 1
            whole = text.chunks[last] == text.chunks[begins]
            begins, last, key = begins[whole], last[whole], key[whole]
            key = key * _STEP + text.keys[last]
        ends = ~text.stops[begins + count - 1]
        places.append(begins[ends])
        counts.append(np.full(len(places[-1]), count, np.intp))
        keys.append(key[ends])
    return np.concatenate(places), np.concatenate(counts), np.concatenate(keys)
