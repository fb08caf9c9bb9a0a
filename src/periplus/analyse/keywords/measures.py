"""What can be said of a candidate without knowing its language?

By NAMES: words; times it stands there (logarithm), as a share of the text; places as shares of the text; sentences with it; rarity in the collection, of
it and of its words; capitals within sentences; signs within; whether a pause or a function word stands before and after it (`open`); how
often it is part of a longer phrase; how much oftener its words stand elsewhere; how many words stand beside its words.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from periplus.analyse.keywords.candidates import Candidates, Ints
from periplus.analyse.keywords.counts import Counts
from periplus.analyse.keywords.reading import LINE, PARTED, Reading

Floats = npt.NDArray[np.float64]

NAMES = (
    "words", "times", "share", "first", "first_word", "last", "spread", "sentences",
    "idf", "idf_least", "idf_most", "idf_mean", "tfidf", "tfidf_place", "tfidf_share", "told",
    "start", "capitals", "loud", "characters", "digits", "joined", "stops_within", "stops_share",
    "open_left", "open_right", "maximal", "longer", "rest", "cohesion", "word_times", "word_first",
    "degree", "ties", "neighbours_left", "neighbours_right", "text_words",
)  # fmt: skip
WINDOW = 4  # words to either side that count as neighbours


def measures(text: Reading, found: Candidates, counts: Counts) -> npt.NDArray[np.float32]:
    """float32[len(NAMES), n]: a row for each measure."""
    rows: list[Floats] = [
        *_where(text, found),
        *_rarity(text, found, counts),
        *_looks(text, found),
        *_surroundings(text, found),
        *_of_words(text, found),
        np.full(len(found.keys), np.log1p(len(text.words))),
    ]
    return np.array(rows, np.float32)


def _mean(values: npt.NDArray[np.generic], found: Candidates) -> Floats:
    """Over the places of each candidate."""
    return np.bincount(found.owner, values, len(found.keys)) / found.times


def _where(text: Reading, found: Candidates) -> list[Floats]:
    n, words = len(found.keys), max(1, len(text.words))
    first = found.places[found.first]
    last = np.zeros(n, np.intp)
    np.maximum.at(last, found.owner, found.places)
    width = int(text.sentences.max(initial=0)) + 1
    sentences = np.bincount(_distinct(found.owner * width + text.sentences[found.places]) // width, minlength=n)
    return [
        found.sizes.astype(np.float64), np.log(found.times), found.times / words, first / words, np.log1p(first), last / words, (last - first) / words,
        np.log(sentences),
    ]  # fmt: skip


def idf(counts: Counts, keys: npt.NDArray[np.uint64]) -> Floats:
    """Natural logarithm of the share of texts, turned; of a collection of one text 0."""
    return np.log(max(1, counts.texts) / np.minimum(counts.of(keys), max(1, counts.texts)))


def _rarity(text: Reading, found: Candidates, counts: Counts) -> list[Floats]:
    words = idf(counts, text.keys)
    own = idf(counts, found.keys)
    parts = np.array([_at(words, found, step) for step in range(int(found.sizes.max(initial=1)))])
    least, most, mean = np.nanmin(parts, 0), np.nanmax(parts, 0), np.nanmean(parts, 0)
    weight = found.times * own
    order = np.argsort(-weight, kind="stable")
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    told = found.times / np.maximum(counts.of(found.keys), 1)
    return [own, least, most, mean, np.log1p(weight), np.log1p(place), weight / max(1e-9, float(weight.max(initial=0))), told]


def _at(values: npt.NDArray[np.generic], found: Candidates, step: int) -> Floats:
    """The value of the candidate's word number `step`; nan of shorter ones."""
    begin = found.places[found.first]
    inside = found.sizes > step
    result: Floats = np.where(inside, values[np.where(inside, begin + step, begin)], np.nan)
    return result


def _sums(values: npt.NDArray[np.generic], begins: Ints, sizes: Ints) -> Floats:
    """Over the words from each beginning."""
    total: Floats = np.concatenate(([0.0], np.cumsum(values)))
    sums: Floats = total[begins + sizes] - total[begins]
    return sums


def _distinct(values: Ints) -> Ints:
    """Ascending; by sorting, which for the thousands of a text takes half the time of NumPy's table."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def _looks(text: Reading, found: Candidates) -> list[Floats]:
    begins = found.places[found.first]
    starts = np.ones(len(text.words), bool)
    starts[1:] = text.sentences[1:] != text.sentences[:-1]
    capital = text.capitals[found.places] & ~starts[found.places]
    inner = _sums(text.stops, begins, found.sizes)
    joints = (text.kinds != PARTED) & (text.kinds != LINE)
    return [
        _mean(starts[found.places], found),
        _mean(capital, found),
        _sums(text.loud, begins, found.sizes) / found.sizes,
        _sums(text.lengths, begins, found.sizes) / found.sizes,
        _sums(text.digits, begins, found.sizes) / found.sizes,
        _sums(joints, begins, found.sizes - 1),
        inner,
        np.full(len(begins), text.stops.mean() if len(text.stops) else 0.0),
    ]


def _surroundings(text: Reading, found: Candidates) -> list[Floats]:
    """Whether it could be longer: what stands before and after it."""
    stops = np.concatenate(([True], text.stops, [True]))
    chunks = np.concatenate(([-1], text.chunks, [-1]))
    after = found.places + found.counts + 1
    left = stops[found.places] | (chunks[found.places] != chunks[found.places + 1])
    right = stops[after] | (chunks[after] != chunks[after - 1])
    longer = np.zeros(len(found.keys))
    for shift in (0, 1):  # the most frequent phrase of one word more, before or after
        parents = _owners(found, found.places - shift, found.counts + 1)
        inside = parents >= 0
        np.maximum.at(longer, found.owner[inside], found.times[parents[inside]])
    return [_mean(left, found), _mean(right, found), _mean(left & right, found), longer / found.times, np.log(np.maximum(found.times - longer, 0.5))]


def _owners(found: Candidates, places: Ints, counts: Ints) -> Ints:
    """Which candidate stands at (place, words); -1: none."""
    width = int(found.counts.max(initial=1)) + 2
    codes = found.places * width + found.counts
    order = np.argsort(codes)
    wanted = places * width + counts
    at = np.minimum(np.searchsorted(codes, wanted, sorter=order), len(codes) - 1)
    return np.where(codes[order[at]] == wanted, found.owner[order[at]], -1)


def _of_words(text: Reading, found: Candidates) -> list[Floats]:
    """By its words: how often, how early, how tied to others."""
    _, first, owner, times = np.unique(text.keys, return_index=True, return_inverse=True, return_counts=True)
    degree, left, right = _ties(text, owner, len(times))
    begins = found.places[found.first]
    logs = np.log(times)[owner]
    of_words = _sums(logs, begins, found.sizes) / found.sizes
    ends = begins + found.sizes - 1
    return [
        np.log(found.times) - of_words,
        of_words,
        _sums((first / max(1, len(text.words)))[owner], begins, found.sizes) / found.sizes,
        _sums(np.log1p(degree)[owner], begins, found.sizes),
        _sums((degree / np.maximum(times, 1))[owner], begins, found.sizes) / found.sizes,
        (left / np.maximum(times, 1))[owner[begins]],
        (right / np.maximum(times, 1))[owner[ends]],
    ]


def _ties(text: Reading, owner: Ints, n: int) -> tuple[Floats, Ints, Ints]:
    """Of each distinct word: how many others stand near it, how many directly before and after it."""
    if not n:
        return np.zeros(0), np.zeros(0, np.intp), np.zeros(0, np.intp)
    free = np.flatnonzero(~text.stops)
    kept = owner[free]
    pairs = [kept[:-step] * n + kept[step:] for step in range(1, WINDOW) if len(kept) > step]
    near = _distinct(np.concatenate([*pairs, *(pair % n * n + pair // n for pair in pairs), np.zeros(0, np.intp)]))
    following = _distinct(owner[:-1] * n + owner[1:])
    return np.bincount(near // n, minlength=n).astype(np.float64), np.bincount(following % n, minlength=n), np.bincount(following // n, minlength=n)
