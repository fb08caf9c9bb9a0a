"""Properties of PageRank, on random graphs."""

from unittest import mock

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawn_graph import graph_of
from periplus.analyse.pagerank import LINKS_FOR_SCIPY, pagerank, published_rank


@st.composite
def links_between_pages(draw):
    count = draw(st.integers(1, 12))
    pair = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda link: link[0] != link[1])
    return count, draw(st.sets(pair, max_size=40) if count > 1 else st.just(set()))


def plain_published(count, links, damping, rounds):
    """Reference implementation."""
    out = {page: sum(source == page for source, _ in links) for page in range(count)}
    scores = [1.0] * count
    for _ in range(rounds):
        scores = [
            (1 - damping) + damping * sum(scores[q] / out[q] for q, p in links if p == page) for page in range(count)
        ]
    return scores


def dense_pagerank(count, links, damping):
    move = np.full((count, count), 1 / count)
    for page in range(count):
        targets = [target for source, target in links if source == page]
        if targets:
            move[:, page] = 0
            move[targets, page] = 1 / len(targets)
    return np.linalg.solve(np.eye(count) - damping * move, np.full(count, (1 - damping) / count))


dampings = st.sampled_from([0.5, 0.85, 0.9])


@settings(max_examples=60, deadline=None)
@given(links_between_pages(), dampings)
def test_equals_a_dense_solution_and_networkx_and_sums_to_one(web, damping):
    count, links = web
    scores = pagerank(graph_of(count, links), damping=damping, max_rounds=400).scores
    assert abs(scores.sum() - 1) < 1e-9
    assert np.abs(scores - dense_pagerank(count, links, damping)).sum() < 1e-9
    other = networkx.DiGraph()
    other.add_nodes_from(range(count))
    other.add_edges_from(links)
    theirs = networkx.pagerank(other, alpha=damping, tol=1e-12, max_iter=1000)
    assert np.abs(scores - [theirs[page] for page in range(count)]).max() < 1e-9


@settings(max_examples=60, deadline=None)
@given(links_between_pages(), dampings, st.integers(0, 5))
def test_published_rank_equals_the_reference_after_any_number_of_rounds(web, damping, rounds):
    count, links = web
    ranking = published_rank(graph_of(count, links), damping=damping, rounds=rounds)
    assert ranking.scores.tolist() == pytest.approx(plain_published(count, links, damping, rounds), abs=1e-12)
    assert rounds == 0 or (ranking.scores >= 1 - damping - 1e-15).all()


@settings(max_examples=40, deadline=None)
@given(links_between_pages(), dampings)
def test_both_scales_agree_up_to_one_factor(web, damping):
    graph = graph_of(*web)
    published = published_rank(graph, damping=damping, max_rounds=400).scores
    assert published.sum() <= len(published) + 1e-9
    assert np.abs(published / published.sum() - pagerank(graph, damping=damping, max_rounds=400).scores).sum() < 1e-8


@settings(max_examples=40, deadline=None)
@given(links_between_pages(), st.randoms(use_true_random=False))
def test_follows_a_renaming_of_the_pages(web, rng):
    count, links = web
    name = list(range(count))
    rng.shuffle(name)
    scores = pagerank(graph_of(count, links)).scores
    renamed = pagerank(graph_of(count, {(name[a], name[b]) for a, b in links})).scores
    assert np.abs(renamed[name] - scores).max() < 1e-12


@settings(max_examples=40, deadline=None)
@given(links_between_pages(), dampings)
def test_small_and_large_graphs_are_added_up_alike(web, damping):
    """Sums have the same order with and without SciPy, so that even their last bits are equal."""
    graph = graph_of(*web)
    assert len(graph.targets) < LINKS_FOR_SCIPY
    by_numpy = pagerank(graph, damping=damping, max_rounds=400).scores
    with mock.patch("periplus.analyse.pagerank.LINKS_FOR_SCIPY", 0):
        by_scipy = pagerank(graph, damping=damping, max_rounds=400).scores
    assert by_numpy.tolist() == by_scipy.tolist()
