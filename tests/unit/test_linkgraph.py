"""The link graph of a site, independent of the order of rows."""

import random
import tempfile
from itertools import groupby
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from periplus.analyse import linkgraph
from periplus.analyse.linkgraph import link_graph, links_in_file, places_in_sorted, resolve_redirects
from periplus.analyse.pagerank import pagerank
from periplus.model.graph import REASONS, LinkRows, UrlRows
from periplus.model.visit import Reason


def rows(*pairs):
    return LinkRows(
        np.array([source for source, _ in pairs], np.int64), np.array([target for _, target in pairs], np.int64)
    )


def urls(known, depths=None):
    """known: id -> Reason; id 7 is /07."""
    ids = list(known)
    codes = np.array([REASONS.index(known[one]) for one in ids], np.uint8)
    return UrlRows(
        np.array(ids, np.int64),
        [f"https://e.org/{one:02}" for one in ids],
        codes,
        np.array(depths or [0] * len(ids), np.int32),
    )


def shown(graph):
    """The links as pairs of URL numbers."""
    number = [int(url[-2:]) for url in graph.pages]
    return [
        (number[page], number[target])
        for page in range(len(number))
        for target in graph.targets[graph.offsets[page] : graph.offsets[page + 1]]
    ]


def graph_of(known, links, redirects=()):
    return link_graph(urls(known), rows(*links), rows(*redirects))


def test_pages_are_the_fetched_and_registered_urls_in_order():
    known = {
        9: Reason.OK,
        4: Reason.WAITING,
        5: Reason.NOT_FOUND,
        3: Reason.RESOURCE,
        2: Reason.NOINDEX,
        1: Reason.SCOPE,
        6: Reason.ROBOTS,
        8: Reason.TRAP,
    }
    graph = graph_of(known, [])
    assert [url[-2:] for url in graph.pages] == ["02", "04", "06", "08", "09"]
    assert graph.fetched.tolist() == [True, False, False, False, True]


def test_links_are_merged_and_self_links_and_external_links_dropped():
    known = {1: Reason.OK, 2: Reason.OK, 3: Reason.NOT_FOUND}
    assert shown(graph_of(known, [(1, 2), (1, 2), (1, 1), (2, 3), (2, 99), (99, 1), (2, 1)])) == [(1, 2), (2, 1)]


def test_pages_that_were_not_fetched_have_no_links():
    assert shown(graph_of({1: Reason.OK, 2: Reason.WAITING}, [(1, 2), (2, 1)])) == [(1, 2)]


def test_a_link_to_a_redirect_counts_as_a_link_to_its_end():
    known = {1: Reason.OK, 2: Reason.REDIRECT, 3: Reason.REDIRECT, 4: Reason.OK, 5: Reason.OK}
    redirects = [(2, 3), (3, 77), (77, 4)]  # the chain leaves the site and comes back
    assert shown(graph_of(known, [(1, 2), (1, 4), (5, 3), (4, 2)], redirects)) == [(1, 4), (5, 4)]


def test_redirect_loops_have_no_end():
    known = {1: Reason.OK, 2: Reason.REDIRECT, 3: Reason.REDIRECT, 4: Reason.REDIRECT, 5: Reason.OK}
    redirects = [(2, 3), (3, 2), (4, 2)]
    assert shown(graph_of(known, [(1, 2), (1, 4), (1, 5)], redirects)) == [(1, 5)]
    assert resolve_redirects(np.array([1, 2, 4]), rows(*redirects))[1].tolist() == [True, False, False]


def test_a_long_chain_of_redirects_is_followed_to_its_end():
    chain = [(one, one + 1) for one in range(1000)]
    random.Random(1).shuffle(chain)
    ends, known = resolve_redirects(np.array([0, 500, 1000, 2000]), rows(*chain))
    assert ends.tolist() == [1000, 1000, 1000, 2000]
    assert known.all()


def test_without_pages_the_graph_is_empty():
    graph = graph_of({}, [(1, 2)])
    assert (len(graph.pages), graph.offsets.tolist(), len(graph.targets)) == (0, [0], 0)
    graph = graph_of({1: Reason.OK}, [])
    assert graph.offsets.tolist() == [0, 0]


def slow(known, links, redirects):
    """The slow twin."""
    onward = dict(redirects)
    fetched = {one for one, reason in known.items() if reason in (Reason.OK, Reason.NOINDEX)}
    pages = fetched | {one for one, reason in known.items() if reason is Reason.WAITING}
    edges = set()
    for source, target in links:
        passed, end = set(), target
        while end in onward and end not in passed:
            passed.add(end)
            end = onward[end]
        if end not in passed and source in fetched and end in pages and source != end:
            edges.add((source, end))
    return sorted(edges)


NUMBERS = st.integers(0, 15)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=40)


@given(
    st.dictionaries(NUMBERS, st.sampled_from([Reason.OK, Reason.NOINDEX, Reason.WAITING, Reason.NOT_FOUND])),
    PAIRS,
    PAIRS,
    st.randoms(),
)
def test_the_graph_equals_slow_code_for_any_order_of_rows(known, links, redirects, rng):
    redirects = [(source, target) for source, target in dict(redirects).items() if source not in known]
    depths = list(range(len(known)))
    graph = link_graph(urls(known, depths), rows(*links), rows(*redirects))
    assert shown(graph) == slow(known, links, redirects)
    mixed = list(known.items())
    rng.shuffle(mixed)
    rng.shuffle(links)
    rng.shuffle(redirects)
    depth_of = dict(zip(known, depths, strict=True))
    again = link_graph(urls(dict(mixed), [depth_of[one] for one, _ in mixed]), rows(*links), rows(*redirects))
    assert list(again.pages) == list(graph.pages)
    for name in ("offsets", "targets", "fetched", "depths"):
        assert np.array_equal(getattr(again, name), getattr(graph, name))


KNOWN = st.dictionaries(NUMBERS, st.sampled_from([Reason.OK, Reason.WAITING, Reason.NOT_FOUND]), min_size=1)


@given(KNOWN, PAIRS, PAIRS)
def test_links_in_a_file_equal_the_graph_and_give_the_same_ranks(known, links, redirects):
    redirects = [(source, target) for source, target in dict(redirects).items() if source not in known]
    graph = link_graph(urls(known), rows(*links), rows(*redirects))
    ids = sorted(one for one, reason in known.items() if reason is not Reason.NOT_FOUND)
    fetched = np.array([known[one] is Reason.OK for one in ids], np.bool_)
    blocks = [rows(*of_source) for _, of_source in groupby(sorted(links), itemgetter(0))]
    with tempfile.TemporaryFile() as file:
        in_file = links_in_file(np.array(ids, np.int64), fetched, blocks, rows(*redirects), file)
        assert in_file.offsets.tolist() == graph.offsets.tolist()
        assert in_file.targets.tolist() == graph.targets.tolist()
        scores = pagerank(in_file, links_at_once=2).scores
    assert scores.tolist() == pytest.approx(pagerank(graph).scores.tolist(), abs=1e-12)


# spread like digests, and all in one bucket
IDS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3))


@given(st.sets(IDS, max_size=40), st.lists(IDS, max_size=40))
def test_look_up_of_many_ids_equals_slow_search(ids, others):
    ascending = np.array(sorted(ids), np.int64)
    wanted = np.array([*others, *ids], np.int64)
    slowly = [ascending.tolist().index(one) if one in ids else -1 for one in wanted.tolist()]
    assert places_in_sorted(ascending, wanted).tolist() == slowly
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linkgraph, "LOOKUP_BLOCK", 7)
        assert places_in_sorted(ascending, wanted).tolist() == slowly
