"""Measures of a candidate: without knowing its language, as learnt from authors' keywords,
and by graphs of words and topics.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage

from periplus.analyse.content.marking import Forest
from periplus.analyse.keywords.reading import (
    LINE,
    PARTED,
    Bits,
    Candidates,
    Counts,
    Ints,
    Reading,
    tag_measures,
    tagged,
)

# By NAMES: words; times it stands there (logarithm), as a share of the text; places as shares of the text; sentences
# with it; rarity in the collection, of it and of its words; capitals within sentences; signs within; whether a pause or
# a function word stands before and after it (`open`); how often it is part of a longer phrase; how much oftener its
# words stand elsewhere; how many words stand beside its words.

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
        found.sizes.astype(np.float64), np.log(found.times), found.times / words, first / words, np.log1p(first),
        last / words, (last - first) / words,
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
    return [
        own,
        least,
        most,
        mean,
        np.log1p(weight),
        np.log1p(place),
        weight / max(1e-9, float(weight.max(initial=0))),
        told,
    ]


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
    return [
        _mean(left, found),
        _mean(right, found),
        _mean(left & right, found),
        longer / found.times,
        np.log(np.maximum(found.times - longer, 0.5)),
    ]


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
    return (
        np.bincount(near // n, minlength=n).astype(np.float64),
        np.bincount(following % n, minlength=n),
        np.bincount(following // n, minlength=n),
    )


# Two forests of the same kind as those that tell content from navigation: one for passages (an abstract, one
# paragraph), whose keywords are the long phrases of a field, one for pages, whose keywords are rare in the collection.
# Learnt by quality/keywords/train.py, shipped as `forests.json`.

# at most: 97 of 100 abstracts of the sets are within, 10 of 100 help pages, 15 of 100 long news
PASSAGE_WORDS, PASSAGE_PARAGRAPHS = 320, 6
# of a passage at least on average; three in four help pages have 13 and fewer, nineteen in twenty abstracts 22 and more
PARAGRAPH_WORDS = 14
SCALE = 1000  # leaves and borders of the table are whole numbers: thousandths


def is_passage(text: Reading) -> bool:
    """Whether it is read as an abstract."""
    words = len(text.words)
    return PARAGRAPH_WORDS * text.paragraphs <= words <= PASSAGE_WORDS and text.paragraphs <= PASSAGE_PARAGRAPHS


def likelihoods(text: Reading, found: Candidates, counts: Counts) -> npt.NDArray[np.float64]:
    """float64[n], 0 to 1; alike for candidates of one text only."""
    if not len(found.keys):
        return np.zeros(0)
    matrix = measures(text, found, counts)
    if not is_passage(text):
        return forest("page").scores(matrix).astype(np.float64)
    tags = tag_measures(tagged(text), found)
    return forest("passage").scores(np.concatenate((matrix, tags))).astype(np.float64)


@cache
def forest(name: str) -> Forest:
    """One of the two that are shipped."""
    table = json.loads((files("periplus.analyse.keywords") / "forests.json").read_text(encoding="utf-8"))[name]
    shape = np.array(table["measures"], np.intp).T.copy()
    borders = np.array(table["borders"], np.float32).T.copy()[:, :, None]
    return Forest(shape, borders, np.array(table["leaves"], np.float32).ravel() / np.float32(SCALE), table["bias"])


# As published, except that runs of content words stand for noun phrases: a parser of parts of speech exists for few of
# the languages we meet. Scores are for candidates that are such runs; others get -inf.
# Sources: Mihalcea and Tarau 2004; Wan and Xiao 2008; Florescu and Caragea 2017.

DAMPING = 0.85
ROUNDS, TOLERANCE = 100, 1e-6
TEXTRANK_WINDOW, GRAPH_WINDOW = 2, 10  # words, as published
KEPT_SHARE = 1 / 3  # of the words, which TextRank joins to phrases


class WordGraph(NamedTuple):
    """Words that stand near each other."""

    owner: Ints  # of each word of the text; -1: function words
    weights: sparse.csr_array  # [n, n] symmetric: how often within the window


def word_graph(text: Reading, window: int) -> WordGraph:
    """window: content words on either side and the word itself; function words do not count."""
    free = np.flatnonzero(~text.stops)
    distinct, own = np.unique(text.keys[free], return_inverse=True)
    owner = np.full(len(text.words), -1, np.intp)
    owner[free] = own
    pairs = [(own[:-step], own[step:]) for step in range(1, window) if step < len(own)]
    left = np.concatenate([np.zeros(0, np.intp), *(pair[0] for pair in pairs)])
    right = np.concatenate([np.zeros(0, np.intp), *(pair[1] for pair in pairs)])
    apart = left != right
    rows, columns = np.concatenate((left[apart], right[apart])), np.concatenate((right[apart], left[apart]))
    return WordGraph(
        owner, sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(distinct), len(distinct)))
    )


def ranked(weights: sparse.csr_array, start: Floats) -> Floats:
    """PageRank with restarts at `start` (sum 1) over weighted links without direction. Sum 1."""
    n = weights.shape[0]
    out = np.asarray(weights.sum(axis=1)).ravel()
    scale = np.divide(1.0, out, out=np.zeros(n), where=out > 0)
    score = start.copy()
    for _ in range(ROUNDS):
        moved = weights.T @ (score * scale) + score[out == 0].sum() * start
        following: Floats = (1 - DAMPING) * start + DAMPING * moved
        if np.abs(following - score).sum() < TOLERANCE:
            return following
        score = following
    return score


def runs(text: Reading, found: Candidates) -> Bits:
    """Which candidates stand somewhere as a whole run of content words."""
    limit = np.concatenate(([True], text.stops, [True]))
    chunks = np.concatenate(([-1], text.chunks, [-1]))
    begins, ends = found.places + 1, found.places + found.counts
    left = limit[begins - 1] | (chunks[begins - 1] != chunks[begins])
    right = limit[ends + 1] | (chunks[ends + 1] != chunks[ends])
    stops = np.concatenate(([0], np.cumsum(text.stops)))
    whole = left & right & (stops[ends] == stops[begins - 1])
    return np.bincount(found.owner, whole, len(found.keys)) > 0


def _phrases(text: Reading, found: Candidates, words: Floats) -> Floats:
    """Sums of the words' scores."""
    total = np.concatenate(([0.0], np.cumsum(words)))
    begins = found.places[found.first]
    return np.where(runs(text, found), total[begins + found.sizes] - total[begins], -np.inf)


def _spread(graph: WordGraph, scores: Floats) -> Floats:
    """Of each word of the text; function words 0."""
    return np.append(scores, 0.0)[graph.owner]


def _even(n: int) -> Floats:
    return np.full(n, 1 / max(1, n))


def singlerank(text: Reading, found: Candidates, counts: Counts) -> Floats:
    """Every run, by the sum of its words."""
    graph = word_graph(text, GRAPH_WINDOW)
    return _phrases(text, found, _spread(graph, ranked(graph.weights, _even(graph.weights.shape[0]))))


def textrank(text: Reading, found: Candidates, counts: Counts) -> Floats:
    """The best third of the words; phrases are runs of them."""
    graph = word_graph(text, TEXTRANK_WINDOW)
    links = graph.weights.copy()
    links.data[:] = 1.0
    scores = ranked(links, _even(links.shape[0]))
    kept = np.zeros(len(scores), bool)
    kept[np.argsort(-scores, kind="stable")[: max(1, round(len(scores) * KEPT_SHARE))]] = True
    of_words = np.append(kept, False)[graph.owner]
    return _phrases(text._replace(stops=~of_words), found, _spread(graph, scores))


def positionrank(text: Reading, found: Candidates, counts: Counts) -> Floats:
    """The surfer starts anew at words that stand early and often; phrases of at most three words."""
    graph = word_graph(text, GRAPH_WINDOW)
    free = np.flatnonzero(graph.owner >= 0)
    start = np.bincount(graph.owner[free], 1 / (free + 1), graph.weights.shape[0])
    scores = ranked(graph.weights, start / max(start.sum(), 1e-12))
    return np.where(found.sizes <= 3, _phrases(text, found, _spread(graph, scores)), -np.inf)


# Topics are runs of content words that share a quarter of their stems, joined by average linkage.
# Sources: Bougouin, Boudin and Daille 2013; Boudin 2018.

FARTHEST = 0.74  # 1 - the share of stems, as published
MOST_PHRASES = 1_000  # the graph is full: of a longer text, its first ones
EARLY = 1.1  # weight of a topic's first phrase (alpha of MultipartiteRank)


def _kept(text: Reading, found: Candidates) -> Ints:
    """The candidates that are runs, in the order of the text."""
    whole = np.flatnonzero(runs(text, found))
    return whole[np.argsort(found.places[found.first[whole]], kind="stable")][:MOST_PHRASES]


def _topics(text: Reading, found: Candidates, kept: Ints) -> Ints:
    """The topic of each phrase, from 0."""
    if len(kept) < 2:
        return np.zeros(len(kept), np.intp)
    begins, sizes = found.places[found.first[kept]], found.sizes[kept]
    rows = np.repeat(np.arange(len(kept)), sizes)
    words = np.concatenate([np.arange(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)])
    distinct, columns = np.unique(text.keys[words], return_inverse=True)
    table = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(kept), len(distinct)))
    table.data[:] = 1.0
    shared = (table @ table.T).toarray()
    number = shared.diagonal()
    distance = 1 - shared / (number[:, None] + number[None, :] - shared)
    joined = linkage(distance[np.triu_indices(len(kept), 1)], "average")
    return fcluster(joined, FARTHEST, "distance").astype(np.intp) - 1


def _nearness(found: Candidates, kept: Ints) -> Floats:
    """float64[n, n]: sum of 1 / distance over all pairs of places."""
    number = np.full(len(found.keys), -1)
    number[kept] = np.arange(len(kept))
    at = np.flatnonzero(number[found.owner] >= 0)
    places, owners = found.places[at].astype(np.float64), number[found.owner[at]]
    far = np.abs(places[:, None] - places[None, :])
    near = np.divide(1.0, far, out=np.zeros_like(far), where=far > 0)
    member = sparse.csr_array((np.ones(len(at)), (owners, np.arange(len(at)))), shape=(len(kept), len(at)))
    return np.asarray((member @ (member @ near).T).T)


def topicrank(text: Reading, found: Candidates, counts: Counts) -> Floats:
    """One phrase for each topic: the one that stands first."""
    scores = np.full(len(found.keys), -np.inf)
    kept = _kept(text, found)
    if not len(kept):
        return scores
    topics = _topics(text, found, kept)
    member = np.zeros((int(topics.max()) + 1, len(kept)))
    member[topics, np.arange(len(kept))] = 1.0
    between = member @ _nearness(found, kept) @ member.T
    np.fill_diagonal(between, 0)
    of_topics = ranked(sparse.csr_array(between), np.full(len(between), 1 / len(between)))
    _, first = np.unique(topics, return_index=True)
    scores[kept[first]] = of_topics
    return scores


def multipartiterank(text: Reading, found: Candidates, counts: Counts) -> Floats:
    """All phrases in one graph without links within a topic; what leads to a topic's first phrase weighs more."""
    scores = np.full(len(found.keys), -np.inf)
    kept = _kept(text, found)
    if not len(kept):
        return scores
    topics = _topics(text, found, kept)
    weights = np.where(topics[:, None] == topics[None, :], 0.0, _nearness(found, kept))
    scores[kept] = ranked(
        sparse.csr_array(_adjusted(weights, topics, found.places[found.first[kept]])), np.full(len(kept), 1 / len(kept))
    )
    return scores


def _adjusted(weights: Floats, topics: Ints, places: npt.NDArray[np.intp]) -> Floats:
    """Links to the first phrase of each topic gain what led from there to its other phrases."""
    result = weights.copy()
    _, firsts = np.unique(topics, return_index=True)
    for first in firsts.tolist():
        others = np.flatnonzero((topics == topics[first]) & (np.arange(len(topics)) != first))
        if len(others):
            gained = EARLY * np.exp(1 / (1 + places[first])) * weights[others].sum(0)
            result[:, first] += np.where(topics == topics[first], 0.0, gained)
    return result
