"""The rules P1 to P5 of the hierarchical map on graphs with known maps, and folding."""

import numpy as np
import pytest

from periplus.analyse.linkgraph import hierarchical_map, map_tree
from periplus.analyse.pagerank import pagerank, published_rank
from periplus.errors import UsageError
from periplus.model.graph import LinkGraph
from periplus.model.results import OTHER_PAGES


def graph_of(names, links, registered=()):
    names = sorted(names)
    rows = [sorted(names.index(target) for source, target in links if source == name) for name in names]
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    targets = np.array([target for row in rows for target in row], np.int32)
    indexed = np.array([name not in registered for name in names])
    return LinkGraph(tuple(names), offsets, targets, indexed, np.full(len(names), -1, np.int32))


# A graph that fits the published description of Webmapa's figure. Links with their names there:
# home -a-> A, home -b-> B, home -c-> C;  A -d-> D, A -e-> F, B -f-> F, B -g-> G, C -g'-> H;  A -a'-> B;  F -h-> A.
# B has one more incoming link than A (a', from A), so that the source of f ranks higher than that of e after one round.
FIGURE = [
    *[("home", "A"), ("home", "B"), ("home", "C")],
    *[("A", "D"), ("A", "F"), ("A", "B"), ("B", "F"), ("B", "G"), ("C", "H")],
    ("F", "C"),
]


def test_the_figure_of_webmapa_is_reproduced():
    graph = graph_of({"home", *"ABCDFGH"}, FIGURE)
    rank = published_rank(graph, rounds=1).scores
    of = dict(zip(graph.pages, rank, strict=True))
    assert of["B"] > of["A"]
    found = hierarchical_map(graph, graph.pages.index("home"), rank)
    tree = {
        (graph.pages[found.parent[page]], graph.pages[page], int(found.depth[page]))
        for page in found.order[1:].tolist()
    }
    assert tree == {
        ("home", "A", 1),  # a
        ("home", "B", 1),  # b
        ("home", "C", 1),  # c
        ("A", "D", 2),  # d
        ("B", "F", 2),  # f, instead of e from A
        ("B", "G", 2),  # g
        ("C", "H", 2),  # g'; a' and h lead to placed pages
    }
    assert found.max_depth == 2


def test_p1_the_home_page_is_alone_in_depth_0():
    found = hierarchical_map(graph_of("hx", [("h", "x"), ("x", "h")]), 0, np.ones(2))
    assert found.depth.tolist() == [0, 1]
    assert found.parent.tolist() == [-1, 0]


def test_p2_a_page_without_a_path_from_the_home_page_is_not_in_the_map():
    found = hierarchical_map(graph_of("hxy", [("h", "x"), ("y", "x")]), 0, np.ones(3))
    assert found.depth.tolist() == [0, 1, -1]
    assert found.order.tolist() == [0, 1]


def test_p4_the_parent_has_the_greatest_rank():
    links = [("h", "p"), ("h", "q"), ("p", "x"), ("q", "x")]
    graph = graph_of("hpqx", links)
    assert hierarchical_map(graph, 0, np.array([0.4, 0.2, 0.1, 0.3])).parent[3] == 1
    assert hierarchical_map(graph, 0, np.array([0.4, 0.1, 0.2, 0.3])).parent[3] == 2


@pytest.mark.parametrize("noise", [0.0, 1e-16, -1e-16])
def test_ours_with_equal_rank_the_smaller_url_is_the_parent_despite_rounding(noise):
    graph = graph_of("hpqx", [("h", "p"), ("h", "q"), ("p", "x"), ("q", "x")])
    rank = pagerank(graph).scores
    rank[2] += noise
    assert hierarchical_map(graph, 0, rank).parent[3] == 1


def test_siblings_are_sorted_by_rank_then_url_and_branches_are_contiguous():
    links = [("h", "a"), ("h", "b"), ("h", "c"), ("a", "x"), ("b", "y")]
    found = hierarchical_map(graph_of("habcxy", links), 3, np.array([0.1, 0.2, 0.1, 0.4, 0.1, 0.1]))
    graph = graph_of("habcxy", links)
    assert [graph.pages[page] for page in found.order] == ["h", "b", "y", "a", "x", "c"]
    assert found.below.tolist() == [1, 1, 0, 5, 0, 0]


def test_a_home_page_that_was_not_fetched_has_no_map():
    with pytest.raises(UsageError, match="not fetched"):
        hierarchical_map(graph_of("hx", [], registered="h"), 0, np.ones(2))
    with pytest.raises(UsageError, match="not among"):
        hierarchical_map(graph_of("hx", []), 5, np.ones(2))


def test_a_deep_chain_is_walked_without_recursion():
    count = 5000
    offsets = np.minimum(np.arange(count + 1), count - 1).astype(np.int64)
    graph = LinkGraph(
        range(count), offsets, np.arange(1, count, dtype=np.int32), np.ones(count, bool), np.full(count, -1, np.int32)
    )
    found = hierarchical_map(graph, 0, np.ones(count))
    assert found.max_depth == count - 1
    assert list(found.walk())[-1] == (count - 1, count - 1, 0)
    assert list(found.walk(2)) == [(page, page, count - 1 - page) for page in range(3)]


def folded(max_nodes, max_depth=-1):
    links = [("h", "a"), ("h", "b"), *[("a", f"a{i}") for i in range(5)], ("b", "b0"), ("b0", "b1")]
    graph = graph_of({name for link in links for name in link}, links, registered={"b1"})
    rank = pagerank(graph).scores
    found = hierarchical_map(graph, graph.pages.index("h"), rank)
    tree = map_tree(found, rank, np.full(len(graph.pages), 10), graph.fetched, max_nodes=max_nodes, max_depth=max_depth)
    return graph, tree


def test_a_folded_map_has_the_totals_of_omitted_pages():
    graph, tree = folded(3)
    assert (tree.pages, tree.fetched, tree.size_bytes) == (10, 9, 100)
    assert tree.rank == pytest.approx(1)
    named = {graph.pages[child.page]: child for child in tree.children if child.page != OTHER_PAGES}
    assert set(named) == {"a", "b"}
    assert [(child.page, child.pages, child.size_bytes) for child in named["a"].children] == [(OTHER_PAGES, 5, 50)]
    assert [(child.pages, child.fetched) for child in named["b"].children] == [(2, 1)]


def test_a_map_folded_at_a_depth_has_no_deeper_page():
    _, tree = folded(60, max_depth=1)
    assert [child.page == OTHER_PAGES for node in tree.children for child in node.children] == [True, True]
    assert tree.pages == 10


def test_a_folded_map_always_has_the_home_page():
    graph, tree = folded(0, max_depth=0)
    assert graph.pages[tree.page] == "h"
    assert [(child.page, child.pages) for child in tree.children] == [(OTHER_PAGES, 9)]
