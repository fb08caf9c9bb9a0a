"""Which topics of a text matter, and which phrase stands for each? TopicRank and MultipartiteRank.

Topics are runs of content words that share a quarter of their stems, joined by average linkage.
Sources: Bougouin, Boudin and Daille 2013; Boudin 2018.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage

from periplus.analyse.keywords.candidates import Candidates, Ints
from periplus.analyse.keywords.counts import Counts
from periplus.analyse.keywords.graphs import Floats, ranked, runs
from periplus.analyse.keywords.reading import Reading

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
    scores[kept] = ranked(sparse.csr_array(_adjusted(weights, topics, found.places[found.first[kept]])), np.full(len(kept), 1 / len(kept)))
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
