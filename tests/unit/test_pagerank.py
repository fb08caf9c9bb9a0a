"""PageRank and the published scale on small graphs, computed by hand."""

import numpy as np
import pytest

from periplus.analyse.pagerank import link_score, pagerank, published_rank
from periplus.errors import NotConverged, UsageError
from periplus.model.graph import LinkGraph


def graph_of(names, links):
    """names: letters, in order; links: "ab" for a -> b."""
    rows = [sorted(names.index(link[1]) for link in links if link[0] == name) for name in names]
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    targets = np.array([target for row in rows for target in row], np.int32)
    return LinkGraph(tuple(names), offsets, targets, np.ones(len(names), bool), np.full(len(names), -1, np.int32))


def test_published_rank_after_one_round_equals_a_calculation_by_hand():
    # a -> b, c; b -> c; c -> a; d -> c
    ranking = published_rank(graph_of("abcd", ["ab", "ac", "bc", "ca", "dc"]), rounds=1)
    assert ranking.scores == pytest.approx([0.15 + 0.85, 0.15 + 0.85 / 2, 0.15 + 0.85 * 2.5, 0.15], abs=1e-15)
    assert ranking.rounds == 1


def test_published_rank_starts_at_one():
    assert published_rank(graph_of("ab", ["ab"]), rounds=0).scores.tolist() == [1, 1]


def test_published_rank_of_a_page_without_incoming_links_is_one_minus_damping():
    assert published_rank(graph_of("ab", ["ba"]), damping=0.6).scores == pytest.approx([0.4 + 0.6 * 0.4, 0.4])


def test_pagerank_of_two_pages_that_link_to_each_other_is_equal():
    assert pagerank(graph_of("ab", ["ab", "ba"])).scores == pytest.approx([0.5, 0.5])


def test_pagerank_distributes_the_rank_of_a_page_without_links():
    # x = 0.075 + 0.425 y;  x + y = 1
    x = 0.5 / 1.425
    assert pagerank(graph_of("ab", ["ab"])).scores == pytest.approx([x, 1 - x], abs=1e-9)


def test_pagerank_of_wikipedias_example_is_reproduced():
    """Percentages of the figure in Wikipedia's article PageRank, with damping 0.85. A has no links."""
    links = ["BC", "CB", "DA", "DB", "EB", "ED", "EF", "FB", "FE", "GB", "GE", "HB", "HE", "IB", "IE", "JE", "KE"]
    scores = pagerank(graph_of("ABCDEFGHIJK", links)).scores
    assert (100 * scores).round(1).tolist() == [3.3, 38.4, 34.3, 3.9, 8.1, 3.9, 1.6, 1.6, 1.6, 1.6, 1.6]


def test_without_pages_there_are_no_scores():
    empty = LinkGraph((), np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, bool), np.zeros(0, np.int32))
    assert pagerank(empty).scores.tolist() == []
    assert published_rank(empty).scores.tolist() == []
    assert link_score(np.zeros(0)).tolist() == []


def test_not_converged_has_rounds_and_residual():
    with pytest.raises(NotConverged) as caught:
        pagerank(graph_of("abc", ["ab", "bc", "ca", "ac"]), max_rounds=3)
    assert caught.value.rounds == 3
    assert caught.value.residual > 1e-10


@pytest.mark.parametrize("damping", [0.0, 1.0, -1.0, float("nan")])
def test_damping_outside_its_range_is_refused(damping):
    with pytest.raises(UsageError):
        pagerank(graph_of("ab", ["ab"]), damping=damping)


def test_ours_link_score_is_logarithmic_from_0_to_100():
    assert link_score(np.array([0.001, 0.01, 0.1])).tolist() == [0, 50, 100]


def test_ours_link_score_of_equal_pages_is_100():
    assert link_score(np.array([0.2, 0.2 * (1 + 1e-15)])).tolist() == [100, 100]
