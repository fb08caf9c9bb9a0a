"""Exported link graphs are read back with networkx without loss."""

import io

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from periplus.errors import UsageError
from periplus.model.graph import LinkGraph
from periplus.model.results import About, PageColumns
from periplus.model.visit import STATE_OF, Reason
from periplus.present.graphs import COLUMNS, GEXF, write_graph

HOSTILE = 'a\x00\x1b<b attr="x">&amp;\'\ud800\ufffe ]]> \u202e\t\nend'
ABOUT = About("run 1", "https://e.org/", 0.0, 0.85, 42, parameters=(("include", HOSTILE),))
REASONS = (Reason.OK, Reason.WAITING, Reason.NOT_FOUND, Reason.OTHER_MEDIA)


def graph_of(count, links, titles=()):
    rows = [sorted(target for source, target in links if source == page) for page in range(count)]
    urls = [
        f"https://www{page % 2}.e.org/{page:03}?a&b='" if page % 5 else f"http://[::1]:80{page:03}/"
        for page in range(count)
    ]
    reasons = [REASONS[page % 4] for page in range(count)]
    numbers = np.arange(count)
    offsets, targets = np.cumsum([0, *map(len, rows)]), np.array([target for row in rows for target in row], np.int32)
    graph = LinkGraph(
        urls,
        offsets,
        targets,
        np.array([STATE_OF[reason] == "indexed" for reason in reasons], bool),
        numbers.astype(np.int32),
    )
    facts = PageColumns(
        urls,
        [titles[page] if page < len(titles) else "" for page in range(count)],
        [STATE_OF[reason] for reason in reasons],
        reasons,
        numbers * 100,
        ["text/html"] * count,
        numbers * 10**10,
        numbers - 1,
        numbers / 7,
        numbers % 101,
        numbers * 2,
        numbers * 3,
    )
    return graph, facts


def written(write, *values, **options):
    out = io.StringIO(newline="")
    write(*values, out, **options)
    return out.getvalue().encode("utf-8")


def gexf(graph, facts, **options):
    return nx.read_gexf(io.BytesIO(written(write_graph, graph, facts, ABOUT, **options)), node_type=int)


def graphml(graph, facts, **options):
    found = nx.read_graphml(io.BytesIO(written(write_graph, graph, facts, ABOUT, format="graphml", **options)))
    return nx.relabel_nodes(found, {name: int(name.removeprefix("n")) for name in found})


def links_of(graph):
    return {
        (source, int(target))
        for source in range(len(graph.pages))
        for target in graph.targets[graph.offsets[source] : graph.offsets[source + 1]]
    }


def without_controls(text):
    return "".join(sign for sign in text if sign not in "\x00\x1b\ud800\ufffe")


def expected(facts, node, title):
    page = facts.page(node)
    ip = page.url.startswith("http://[")
    return {
        **{
            "url": page.url,
            "title": title,
            "host": "[::1]" if ip else f"www{node % 2}.e.org",
            "tld": "" if ip else "org",
        },
        **{
            "fetched": page.state == "fetched",
            "state": page.state,
            "reason": page.reason,
            "status": page.status,
            "media_type": "text/html",
        },
        **{
            "bytes": page.size_bytes,
            "depth": page.depth,
            "rank": page.rank,
            "score": page.score,
            "inlinks": page.inlinks,
            "outlinks": page.outlinks,
        },
    }


@pytest.mark.parametrize("read", [gexf, graphml])
def test_networkx_reads_back_every_node_edge_and_attribute(read):
    links = {(0, 1), (1, 0), (1, 7), (7, 1), (3, 4), (4, 2), (2, 6), (0, 5)}
    graph, facts = graph_of(9, links, ("Home", HOSTILE, "Ελληνικά 中文", " spaces "))
    found = read(graph, facts)
    assert isinstance(found, nx.DiGraph) and not found.is_multigraph()
    assert set(found.edges) == links
    assert {weight for *_, weight in found.edges(data="weight")} == {1}
    titles = ["Home", without_controls(HOSTILE), "Ελληνικά 中文", " spaces "] + [""] * 5
    for node in range(9):
        wanted = expected(facts, node, titles[node])
        said = found.nodes[node]
        assert {name: said.get(name, "") or wanted[name] * 0 for name in COLUMNS} == wanted
        assert type(said["fetched"]) is bool
        assert said["label"]


@pytest.mark.parametrize("read", [gexf, graphml])
def test_weights_of_edges_are_kept(read):
    graph, facts = graph_of(3, {(0, 1), (0, 2), (2, 0)})
    found = read(graph, facts, weights=np.array([2.5, 1e-9, 3.0]))
    assert {(source, target): weight for source, target, weight in found.edges(data="weight")} == {
        (0, 1): 2.5,
        (0, 2): 1e-9,
        (2, 0): 3.0,
    }


@pytest.mark.parametrize("weights", [[1.0, 0.0], [1.0], [1.0, np.nan], [np.inf, 1.0], [-1.0, 1.0]])
def test_weights_that_readers_ignore_are_refused_before_writing(weights):
    graph, facts = graph_of(3, {(0, 1), (0, 2)})
    out = io.StringIO()
    with pytest.raises(UsageError, match="greater than 0"):
        write_graph(graph, facts, ABOUT, out, weights=np.array(weights))
    assert out.getvalue() == ""


def test_facts_of_another_graph_are_refused():
    with pytest.raises(UsageError, match="facts of 2 pages"):
        write_graph(graph_of(3, ())[0], graph_of(2, ())[1], ABOUT, io.StringIO())


def test_gephi_column_names_differ_without_case_and_edges_have_no_ids():
    names = [name.lower() for name in COLUMNS]
    assert len(set(names)) == len(names)
    assert {"id", "label", "size", "type", "x", "y", "color", "weight"}.isdisjoint(names)
    root = etree.fromstring(written(write_graph, *graph_of(3, {(0, 1), (1, 2)}), ABOUT))
    edges = list(root.iter(f"{{{GEXF}}}edge"))
    assert all(set(edge.attrib) == {"source", "target", "weight"} for edge in edges)
    assert root.find(f".//{{{GEXF}}}edges").get("count") == "2"
    assert "run 1" in root.findtext(f"{{{GEXF}}}meta/{{{GEXF}}}description")
    assert root.findtext(f"{{{GEXF}}}meta/{{{GEXF}}}creator").startswith("periplus ")
    assert len(root.findall(f".//{{{GEXF}/viz}}color")) == len(root.findall(f".//{{{GEXF}/viz}}size")) == 3


@pytest.mark.parametrize("read", [gexf, graphml])
def test_an_empty_graph_can_be_read(read):
    assert len(read(*graph_of(0, ()))) == 0


@settings(max_examples=40)
@given(
    st.lists(st.text(st.characters(codec=None)), min_size=1, max_size=4),
    st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3))),
)
def test_any_titles_and_links_are_read_back(titles, pairs):
    links = {(source, target) for source, target in pairs if source != target and max(source, target) < len(titles)}
    graph, facts = graph_of(len(titles), links, titles)
    for read in (gexf, graphml):
        found = read(graph, facts)
        assert set(found.edges) == links
        assert len(found) == len(titles)
