"""Comparison of two views of a site, checked with plain sets and with a small site."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.analyse.comparison import branch_of, changed_links, compare, issue_changes
from periplus.analyse.linkgraph import hierarchical_map, link_graph
from periplus.model.audit import Issue, Severity
from periplus.model.comparison import RunView
from periplus.model.graph import REASONS, LinkRows, UrlRows
from periplus.model.visit import Reason
from periplus.model.web import Url
from periplus.present.diff import diff_lines

HOST = "http://a.test"
Pairs = list[tuple[int, int]]


def link_rows(pairs: Pairs) -> LinkRows:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return LinkRows(table[:, 0], table[:, 1])


def view(pages: dict[str, str], pairs: list[tuple[str, str]], name: str = "crawl 1", issues=()) -> RunView:
    """pages: titles by path. The home page is `/`; ids are hashes of the paths."""
    paths = sorted(pages)
    identity = {path: hash_of(path) for path in paths}
    urls = UrlRows(
        np.array([identity[path] for path in paths], np.int64),
        [Url(HOST + path) for path in paths],
        np.full(len(paths), REASONS.index(Reason.OK), np.uint8),
        np.zeros(len(paths), np.int32),
    )
    links = link_rows([(hash_of(source), hash_of(target)) for source, target in pairs])
    graph = link_graph(urls, links, link_rows([]))
    site_map = hierarchical_map(graph, graph.pages.index(Url(HOST + "/")), np.ones(len(graph.pages)) / len(graph.pages))
    fields = {
        "title": [pages[url.removeprefix(HOST)] for url in graph.pages],
        "reason": ["ok"] * len(paths),
        "depth": site_map.depth.tolist(),
    }
    return RunView(name, 0.0, "done", graph, site_map, fields, links, issues, dict.fromkeys(urls.texts, "ok"))


def hash_of(path: str) -> int:
    return sum(ord(sign) * 131**place for place, sign in enumerate(path)) % (1 << 60)


def compared(before: RunView, after: RunView):
    texts = {hash_of(url.removeprefix(HOST)): url for run in (before, after) for url in run.graph.pages}
    return compare(before, after, texts)


BEFORE = view(
    {"/": "Home", "/a": "A", "/b": "B", "/c": "C", "/d": "D"}, [("/", "/a"), ("/", "/b"), ("/a", "/c"), ("/c", "/d")]
)
AFTER = view(
    {"/": "Home", "/a": "A", "/b": "Bee", "/c": "C", "/d": "D", "/e": "E"},
    [("/", "/a"), ("/", "/b"), ("/b", "/c"), ("/c", "/d"), ("/", "/e")],
    "refresh 2",
)


def test_a_moved_page_counts_the_pages_below_it():
    found = compared(BEFORE, AFTER)
    (move,) = found.moves
    assert (move.url, move.parent_before, move.parent_after) == (HOST + "/c", HOST + "/a", HOST + "/b")
    assert (move.branch_before, move.branch_after, move.depth_before, move.depth_after, move.pages) == (
        HOST + "/a",
        HOST + "/b",
        2,
        2,
        2,
    )
    assert {
        (branch.url, branch.before, branch.after, branch.moved_in, branch.moved_out) for branch in found.branches
    } == {
        (HOST + "/a", 3, 1, 0, 2),
        (HOST + "/b", 1, 3, 2, 0),
        (HOST + "/e", 0, 1, 0, 0),
    }


def test_changed_pages_links_and_fields_are_listed():
    found = compared(BEFORE, AFTER)
    assert [note.url for note in found.added] == [HOST + "/e"]
    assert found.removed == ()
    assert [
        (page.url, [(change.field, change.before, change.after) for change in page.changes]) for page in found.changed
    ] == [(HOST + "/b", [("title", "B", "Bee")])]
    assert {(note.source, note.target) for note in found.links_added} == {
        (HOST + "/", HOST + "/e"),
        (HOST + "/b", HOST + "/c"),
    }
    assert {(note.source, note.target) for note in found.links_removed} == {(HOST + "/a", HOST + "/c")}
    assert found.unchanged == 4


def test_the_text_output_lists_the_changes():
    text = "\n".join(diff_lines(compared(BEFORE, AFTER), links=True))
    assert "1 added, 0 removed, 1 changed, 4 as before" in text
    assert f"> {HOST}/c: from {HOST}/a to {HOST}/b, with 1 page below" in text
    assert f"+ {HOST}/b -> {HOST}/c" in text
    assert "title: B -> Bee" in text


def test_long_lists_are_cut_with_a_count():
    text = "\n".join(diff_lines(compared(view({"/": ""}, []), AFTER), most=2))
    assert "and 3 more" in text


def test_equal_views_do_not_differ():
    found = compared(AFTER, AFTER)
    assert found.is_empty
    assert found.branches == ()
    assert "Nothing differs" in "\n".join(diff_lines(found))


def test_issues_are_compared_by_code_page_and_related_url():
    was = [Issue("broken-link", Severity.ERROR, "p", "404", "q"), Issue("title-missing", Severity.WARNING, "p")]
    now = [Issue("broken-link", Severity.NOTICE, "p", "410", "q"), Issue("h1-missing", Severity.WARNING, "p")]
    found = issue_changes(was, now)
    assert ([issue.code for issue in found.new], [issue.code for issue in found.gone]) == (
        ["h1-missing"],
        ["title-missing"],
    )
    assert [issue.detail for issue in found.still] == ["410"]


pairs = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5), st.integers(0, 5)), max_size=30)


@settings(max_examples=60)
@given(pairs, pairs)
def test_added_and_removed_links_are_set_differences(before, after):
    came, went = changed_links(link_rows(before), link_rows(after))
    assert sorted(set(after) - set(before)) == list(zip(came.sources.tolist(), came.targets.tolist(), strict=True))
    assert sorted(set(before) - set(after)) == list(zip(went.sources.tolist(), went.targets.tolist(), strict=True))


@settings(max_examples=60)
@given(
    st.integers(2, 12).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40))
    )
)
def test_a_branch_is_the_ancestor_one_click_from_the_home_page(drawn):
    count, links = drawn
    names = {place: "/" if place == 0 else f"/{place:02}" for place in range(count)}
    run = view(dict.fromkeys(names.values(), ""), [(names[source], names[target]) for source, target in links])
    depth, parent = run.site_map.depth, run.site_map.parent

    def plain(page: int) -> int:
        while depth[page] > 1:
            page = parent[page]
        return page if depth[page] >= 0 else -1

    assert branch_of(run.site_map).tolist() == [plain(page) for page in range(count)]
