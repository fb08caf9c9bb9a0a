"""Properties of the hierarchical map, on random graphs with many equal ranks."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from drawn_graph import graph_of
from periplus.analyse.linkgraph import hierarchical_map, map_tree
from periplus.model.results import OTHER_PAGES


@st.composite
def webs(draw):
    count = draw(st.integers(1, 14))
    pair = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda link: link[0] != link[1])
    links = draw(st.sets(pair, max_size=50) if count > 1 else st.just(set()))
    rank = draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
    return count, links, np.array(rank) / sum(rank)


def plain_map(links, home, rank):
    """Reference implementation: P1 to P5 literally; the smaller URL on equal rank."""
    parent = {home: -1}
    depths = [{home}]
    while depths[-1]:
        following = {target for source, target in links if source in depths[-1]} - set(parent)
        for page in following:
            parent[page] = min(
                (source for source, target in links if target == page and source in depths[-1]),
                key=lambda q: (-rank[q], q),
            )
        depths.append(following)
    return depths[:-1], parent


@settings(max_examples=50, deadline=None)
@given(webs())
def test_equals_the_reference(web):
    count, links, rank = web
    found = hierarchical_map(graph_of(count, links), 0, rank)
    depths, parent = plain_map(links, 0, rank)
    assert [set(np.flatnonzero(found.depth == number).tolist()) for number in range(found.max_depth + 1)] == depths
    assert found.parent.tolist() == [parent.get(page, -1) for page in range(count)]


@settings(max_examples=100, deadline=None)
@given(webs())
def test_every_reached_page_once_depth_first_below_a_page_that_links_to_it(web):
    count, links, rank = web
    found = hierarchical_map(graph_of(count, links), 0, rank)
    order = found.order.tolist()
    assert sorted(order) == np.flatnonzero(found.depth >= 0).tolist()
    path = []
    for page, depth, _ in found.walk():
        del path[depth:]
        assert (path[-1] if path else -1) == found.parent[page]
        assert depth == 0 or (found.parent[page], page) in links
        path.append(page)
    for place, page in enumerate(order):
        branch = order[place : place + 1 + found.below[page]]
        assert all(found.depth[other] > found.depth[page] for other in branch[1:])


@settings(max_examples=60, deadline=None)
@given(webs(), st.randoms(use_true_random=False))
def test_follows_a_renaming_that_keeps_ranks_apart(web, rng):
    count, links, _ = web
    name = list(range(count))
    rng.shuffle(name)
    rank = np.arange(1, count + 1) / count
    renamed_rank = np.empty(count)
    renamed_rank[name] = rank
    found = hierarchical_map(graph_of(count, links), 0, rank)
    renamed = hierarchical_map(graph_of(count, {(name[a], name[b]) for a, b in links}), name[0], renamed_rank)
    assert renamed.order.tolist() == [name[page] for page in found.order]
    assert renamed.depth[name].tolist() == found.depth.tolist()


@settings(max_examples=100, deadline=None)
@given(webs(), st.integers(1, 15), st.integers(-1, 4))
def test_a_folded_map_holds_every_page_in_one_node_and_its_totals_add_up(web, max_nodes, max_depth):
    count, links, rank = web
    found = hierarchical_map(graph_of(count, links), 0, rank)
    size_bytes = np.arange(count) * 7
    tree = map_tree(found, rank, size_bytes, np.arange(count) % 3 > 0, max_nodes=max_nodes, max_depth=max_depth)
    named = []

    def check(node):
        if node.page == OTHER_PAGES:
            assert not node.children
            return
        named.append(node.page)
        assert node.pages == 1 + sum(child.pages for child in node.children)
        assert node.fetched == (node.page % 3 > 0) + sum(child.fetched for child in node.children)
        assert node.size_bytes == size_bytes[node.page] + sum(child.size_bytes for child in node.children)
        assert abs(node.rank - rank[node.page] - sum(child.rank for child in node.children)) < 1e-12
        assert sum(child.page == OTHER_PAGES for child in node.children) <= 1
        for child in node.children:
            assert child.page == OTHER_PAGES or found.parent[child.page] == node.page
            assert child.pages > 0
            check(child)

    check(tree)
    assert tree.pages == len(found.order)
    assert len(named) == len(set(named)) <= max_nodes
    assert max_depth < 0 or all(found.depth[page] <= max_depth for page in named)
    assert len(named) == max_nodes or max_depth >= 0 or len(named) == len(found.order)
