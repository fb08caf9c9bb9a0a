"""Which phrases does the graph of a text's own words put first? TextRank, SingleRank, PositionRank.

As published, except that runs of content words stand for noun phrases: a parser of parts of speech exists for few of the languages we meet.
Scores are for candidates that are such runs; others get -inf.
Sources: Mihalcea and Tarau 2004; Wan and Xiao 2008; Florescu and Caragea 2017.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from periplus.analyse.keywords.candidates import Candidates, Ints
from periplus.analyse.keywords.counts import Counts
from periplus.analyse.keywords.reading import Bits, Reading

Floats = npt.NDArray[np.float64]

DAMPING = 0.85
ROUNDS, TOLERANCE = 100, 1e-6
TEXTRANK_WINDOW, WINDOW = 2, 10  # words, as published
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
    return WordGraph(owner, sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(distinct), len(distinct))))


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
    graph = word_graph(text, WINDOW)
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
    graph = word_graph(text, WINDOW)
    free = np.flatnonzero(graph.owner >= 0)
    start = np.bincount(graph.owner[free], 1 / (free + 1), graph.weights.shape[0])
    scores = ranked(graph.weights, start / max(start.sum(), 1e-12))
    return np.where(found.sizes <= 3, _phrases(text, found, _spread(graph, scores)), -np.inf)
