"""Scores keyword candidates: language-independent measures, learnt models, and graphs of words and topics."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt
from scipy import sparse

from periplus.analyse.content.marking import Forest
from periplus.analyse.linkgraph import sort_distinct
from periplus.model.arrays import Floats, Floats32, Mask, Unsigned64
from periplus_topics.analyse.keyword_reading import (
    LINE,
    PARTED,
    Candidates,
    Counts,
    Ints,
    Reading,
    tag_measures,
    tag_words,
)

# Measures, in the order of NAMES: number of words; frequency (log), also as a share of the text; positions as shares of
# the text; sentences with it; rarity in the collection, of it and of its words; capitals within sentences; signs
# within; whether a pause or function word precedes and follows (`open`); how often it is part of a longer phrase; how
# much more often its words occur elsewhere; how many distinct words occur next to its words.


NAMES = (
    "words", "times", "share", "first", "first_word", "last", "spread", "sentences",
    "idf", "idf_least", "idf_most", "idf_mean", "tfidf", "tfidf_place", "tfidf_share", "told",
    "start", "capitals", "loud", "characters", "digits", "joined", "stops_within", "stops_share",
    "open_left", "open_right", "maximal", "longer", "rest", "cohesion", "word_times", "word_first",
    "degree", "ties", "neighbours_left", "neighbours_right", "text_words",
)  # fmt: skip
WINDOW = 4  # words on either side that count as neighbours
# Least average of a passage; three in four help pages have at most 13, nineteen in twenty abstracts at least 22
PARAGRAPH_WORDS = 14
SCALE = 1000  # leaves and borders in the table are integers: thousandths
DAMPING = 0.85
GRAPH_WINDOW = 10  # content words, including the word itself, as published


def measures(text: Reading, phrases: Candidates, counts: Counts) -> Floats32:
    """float32[len(NAMES), n]: a row for each measure."""
    rows: list[Floats] = [
        *_positions(text, phrases),
        *_rarity(text, phrases, counts),
        *_spelling_features(text, phrases),
        *_surroundings(text, phrases),
        *_of_words(text, phrases),
        np.full(len(phrases.keys), np.log1p(len(text.words))),
    ]
    return np.array(rows, np.float32)


def page_measures(text: Reading, phrases: Candidates, counts: Counts) -> Floats32:
    """As `measures`, plus a row with the number of texts in the collection.

    Rarity is divided by that of a word that occurs in a single text, so that it is comparable across collection sizes.
    Shape: float32[len(NAMES) + 1, n].
    """
    matrix = measures(text, phrases, counts)
    scale = np.float32(1 / max(1.0, np.log(max(1, counts.texts))))
    first, last, product = map(NAMES.index, ("idf", "idf_mean", "tfidf"))
    matrix[first : last + 1] *= scale
    matrix[product] = np.log1p(np.expm1(matrix[product]) * scale)
    texts = np.full((1, len(phrases.keys)), np.log1p(counts.texts), np.float32)
    return np.concatenate((matrix, texts))


def _mean(values: npt.NDArray[np.generic], phrases: Candidates) -> Floats:
    """Mean over the occurrences of each candidate."""
    return np.bincount(phrases.owner, values, len(phrases.keys)) / phrases.times


def _positions(text: Reading, phrases: Candidates) -> list[Floats]:
    n, words = len(phrases.keys), max(1, len(text.words))
    first = phrases.places[phrases.first]
    last = np.zeros(n, np.intp)
    np.maximum.at(last, phrases.owner, phrases.places)
    width = int(text.sentences.max(initial=0)) + 1
    sentences = np.bincount(sort_distinct(phrases.owner * width + text.sentences[phrases.places]) // width, minlength=n)
    return [
        phrases.sizes.astype(np.float64), np.log(phrases.times), phrases.times / words, first / words, np.log1p(first),
        last / words, (last - first) / words,
        np.log(sentences),
    ]  # fmt: skip


def idf(counts: Counts, keys: Unsigned64) -> Floats:
    """Inverse document frequency, natural logarithm; 0 for a collection of a single text."""
    return np.log(max(1, counts.texts) / np.minimum(counts.of(keys), max(1, counts.texts)))


def _rarity(text: Reading, phrases: Candidates, counts: Counts) -> list[Floats]:
    words = idf(counts, text.keys)
    own = idf(counts, phrases.keys)
    parts = np.array([_word_values(words, phrases, step) for step in range(int(phrases.sizes.max(initial=1)))])
    least, most, mean = np.nanmin(parts, 0), np.nanmax(parts, 0), np.nanmean(parts, 0)
    weight = phrases.times * own
    order = np.argsort(-weight, kind="stable")
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    share = phrases.times / np.maximum(counts.of(phrases.keys), 1)
    return [
        own,
        least,
        most,
        mean,
        np.log1p(weight),
        np.log1p(place),
        weight / max(1e-9, float(weight.max(initial=0))),
        share,
    ]


def _word_values(values: npt.NDArray[np.generic], phrases: Candidates, step: int) -> Floats:
    """The value of the candidate's word number `step`; nan if the candidate is shorter."""
    begin = phrases.places[phrases.first]
    inside = phrases.sizes > step
    result: Floats = np.where(inside, values[np.where(inside, begin + step, begin)], np.nan)
    return result


def sums(values: npt.NDArray[np.generic], begins: Ints, sizes: Ints) -> Floats:
    """Sums of the values over `sizes` words from each begin."""
    total: Floats = np.concatenate(([0.0], np.cumsum(values)))
    sums: Floats = total[begins + sizes] - total[begins]
    return sums


def _spelling_features(text: Reading, phrases: Candidates) -> list[Floats]:
    begins = phrases.places[phrases.first]
    starts = np.ones(len(text.words), bool)
    starts[1:] = text.sentences[1:] != text.sentences[:-1]
    capital = text.capitals[phrases.places] & ~starts[phrases.places]
    inner = sums(text.stops, begins, phrases.sizes)
    joints = (text.kinds != PARTED) & (text.kinds != LINE)
    return [
        _mean(starts[phrases.places], phrases),
        _mean(capital, phrases),
        sums(text.loud, begins, phrases.sizes) / phrases.sizes,
        sums(text.lengths, begins, phrases.sizes) / phrases.sizes,
        sums(text.digits, begins, phrases.sizes) / phrases.sizes,
        sums(joints, begins, phrases.sizes - 1),
        inner,
        np.full(len(begins), text.stops.mean() if len(text.stops) else 0.0),
    ]


def _surroundings(text: Reading, phrases: Candidates) -> list[Floats]:
    """Whether the phrase could be longer: features of the words before and after it."""
    left, right = _open(text, phrases)
    longer = np.zeros(len(phrases.keys))
    for shift in (0, 1):  # the most frequent phrase with one word more, before or after
        parents = _owners(phrases, phrases.places - shift, phrases.counts + 1)
        inside = parents >= 0
        np.maximum.at(longer, phrases.owner[inside], phrases.times[parents[inside]])
    return [
        _mean(left, phrases),
        _mean(right, phrases),
        _mean(left & right, phrases),
        longer / phrases.times,
        np.log(np.maximum(phrases.times - longer, 0.5)),
    ]


def _open(text: Reading, phrases: Candidates) -> tuple[Mask, Mask]:
    """For each occurrence: whether a pause or function word precedes it, and whether one follows it."""
    stops = np.concatenate(([True], text.stops, [True]))
    chunks = np.concatenate(([-1], text.chunks, [-1]))
    before, after = phrases.places, phrases.places + phrases.counts + 1
    return stops[before] | (chunks[before] != chunks[before + 1]), stops[after] | (chunks[after] != chunks[after - 1])


def _owners(phrases: Candidates, places: Ints, counts: Ints) -> Ints:
    """Index of the candidate at (place, words); -1 if none."""
    width = int(phrases.counts.max(initial=1)) + 2
    codes = phrases.places * width + phrases.counts
    order = np.argsort(codes)
    keys = places * width + counts
    at = np.minimum(np.searchsorted(codes, keys, sorter=order), len(codes) - 1)
    return np.where(codes[order[at]] == keys, phrases.owner[order[at]], -1)


def _of_words(text: Reading, phrases: Candidates) -> list[Floats]:
    """Features of the words: how often, how early, how connected."""
    _, first, owner, times = np.unique(text.keys, return_index=True, return_inverse=True, return_counts=True)
    degree, left, right = _ties(text, owner, len(times))
    begins = phrases.places[phrases.first]
    logs = np.log(times)[owner]
    of_words = sums(logs, begins, phrases.sizes) / phrases.sizes
    ends = begins + phrases.sizes - 1
    return [
        np.log(phrases.times) - of_words,
        of_words,
        sums((first / max(1, len(text.words)))[owner], begins, phrases.sizes) / phrases.sizes,
        sums(np.log1p(degree)[owner], begins, phrases.sizes),
        sums((degree / np.maximum(times, 1))[owner], begins, phrases.sizes) / phrases.sizes,
        (left / np.maximum(times, 1))[owner[begins]],
        (right / np.maximum(times, 1))[owner[ends]],
    ]


def _ties(text: Reading, owner: Ints, n: int) -> tuple[Floats, Ints, Ints]:
    """For each distinct word: the number of words near it, directly before it, and directly after it."""
    if not n:
        return np.zeros(0), np.zeros(0, np.intp), np.zeros(0, np.intp)
    free = np.flatnonzero(~text.stops)
    owners = owner[free]
    pairs = [owners[:-step] * n + owners[step:] for step in range(1, WINDOW) if len(owners) > step]
    near = sort_distinct(np.concatenate([*pairs, *(pair % n * n + pair // n for pair in pairs), np.zeros(0, np.intp)]))
    following = sort_distinct(owner[:-1] * n + owner[1:])
    return (
        np.bincount(near // n, minlength=n).astype(np.float64),
        np.bincount(following % n, minlength=n),
        np.bincount(following // n, minlength=n),
    )


# Two forests of the kind that `analyse.content` uses: `passage` for an abstract or a paragraph, whose keywords are the
# long terms of a field, and `page` for pages, whose keywords are rare in the collection. Trained by
# quality/keywords/train.py, shipped as `forests.json`.

# Upper limits: 97 of 100 abstracts of the sets are within, 10 of 100 help pages, 15 of 100 long news articles
PASSAGE_WORDS, PASSAGE_PARAGRAPHS = 320, 6


def is_passage(text: Reading) -> bool:
    """Whether the text is scored as a passage, for example an abstract."""
    words = len(text.words)
    return PARAGRAPH_WORDS * text.paragraphs <= words <= PASSAGE_WORDS and text.paragraphs <= PASSAGE_PARAGRAPHS


def likelihoods(text: Reading, phrases: Candidates, counts: Counts) -> Floats:
    """The likelihood of each candidate, float64[n], 0 to 1; comparable only within the same text."""
    if not len(phrases.keys):
        return np.zeros(0)
    if not is_passage(text):
        return forest("page").scores(page_measures(text, phrases, counts)).astype(np.float64)
    matrix, tags = measures(text, phrases, counts), tag_measures(tag_words(text), phrases)
    return forest("passage").scores(np.concatenate((matrix, tags))).astype(np.float64)


@cache
def forest(name: str) -> Forest:
    """One of the two shipped forests."""
    table = json.loads((files("periplus_topics.analyse") / "forests.json").read_text(encoding="utf-8"))[name]
    measures, borders = np.array(table["measures"], np.intp).T, np.array(table["borders"], np.float32).T
    leaves = np.array(table["leaves"], np.float32).ravel() / np.float32(SCALE)
    return Forest.of(measures, borders, leaves, table["bias"])


# As published, except that noun phrases are approximated by runs of content words: part-of-speech taggers exist for few
# of the languages we crawl. Only candidates that are such runs get a score; others get -inf. Source: Wan and Xiao 2008.

ROUNDS, TOLERANCE = 100, 1e-6


def singlerank(text: Reading, phrases: Candidates, counts: Counts) -> Floats:
    """PageRank in the graph of words that occur near one another; a run of words has the sum of its words' scores."""
    free = np.flatnonzero(~text.stops)
    distinct, own = np.unique(text.keys[free], return_inverse=True)
    pairs = [(own[:-step], own[step:]) for step in range(1, GRAPH_WINDOW) if step < len(own)]
    left = np.concatenate([np.zeros(0, np.intp), *(pair[0] for pair in pairs)])
    right = np.concatenate([np.zeros(0, np.intp), *(pair[1] for pair in pairs)])
    apart = left != right
    rows, columns = np.concatenate((left[apart], right[apart])), np.concatenate((right[apart], left[apart]))
    links = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(distinct), len(distinct)))
    words = np.zeros(len(text.words))
    words[free] = _page_rank(links)[own]
    return np.where(_runs(text, phrases), sums(words, phrases.places[phrases.first], phrases.sizes), -np.inf)


def _page_rank(weights: sparse.csr_array) -> Floats:
    """PageRank over weighted undirected links. Sums to 1."""
    n = weights.shape[0]
    score = start = np.full(n, 1 / max(1, n))
    out = np.asarray(weights.sum(axis=1)).ravel()
    scale = np.divide(1.0, out, out=np.zeros(n), where=out > 0)
    for _ in range(ROUNDS):
        moved = weights.T @ (score * scale) + score[out == 0].sum() * start
        following: Floats = (1 - DAMPING) * start + DAMPING * moved
        if np.abs(following - score).sum() < TOLERANCE:
            return following
        score = following
    return score


def _runs(text: Reading, phrases: Candidates) -> Mask:
    """Whether each candidate occurs at least once as a complete run of content words."""
    left, right = _open(text, phrases)
    whole = left & right & (sums(text.stops, phrases.places, phrases.counts) == 0)
    return np.bincount(phrases.owner, whole, len(phrases.keys)) > 0
