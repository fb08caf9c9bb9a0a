"""The comparison of two runs shows the changes of the web between them, independent of later runs."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest
from voyage import crawled, environment, told

from periplus.api.collection import Collection
from periplus.api.comparison import compare_runs
from periplus.api.crawling import refresh, refresh_order
from periplus.errors import UsageError
from testweb import GraphRecipe, Site, graph_site, serve
from testweb.site import NOT_FOUND, Page

RECIPE = GraphRecipe(seed=3, pages=40, links_per_page=6, shape="deep", page_bytes=2000, host="a.test")
HOME = "/"


def diff(folder, before="last-1", after="last", other=None):
    return compare_runs(folder, before, after, other=other)


def refreshed(folder):
    return refresh(refresh_order(folder, {}), lambda progress: False)


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """Three runs: a crawl, a refresh after many changes, a refresh after part of them was undone."""
    site = graph_site(RECIPE)
    folder = tmp_path_factory.mktemp("story") / "c"
    home = site.pages[HOME]
    with serve(site) as server:
        url = lambda path: server.url("a.test", path)  # noqa: E731
        crawled(folder, server, "a.test", delay_s=0.0)
        gone, renamed = home.links[0].href, home.links[1].href
        deepest = max(server.truth.depths.items(), key=lambda item: item[1])[0]
        path = urlsplit(deepest).path
        old_title = site.pages[renamed].title
        site.pages[renamed].title = "Another title"
        server.bump("a.test", renamed)
        page = site.pages[gone]
        site.routes.exact[gone] = lambda asked: NOT_FOUND
        site.add(Page("/brand-new.html", "A new page", ("It was not there before.",)), linked_from=HOME)
        site.link(HOME, path, "Straight there")
        server.bump("a.test", HOME)
        refreshed(folder)
        site.routes.exact[gone] = lambda asked: site.page_answer(page, asked)
        site.pages[renamed].title = old_title
        server.bump("a.test", renamed)
        refreshed(folder)
        other = folder.with_name("other")
        crawled(other, server, "a.test", delay_s=0.0)
    return {
        "folder": folder,
        "other": other,
        "gone": url(gone),
        "renamed": url(renamed),
        "new": url("/brand-new.html"),
        "lifted": deepest,
        "home": url(HOME),
    }


def test_added_and_removed_pages(story):
    found = diff(story["folder"], "1", "2")
    assert [note.url for note in found.added] == [story["new"]]
    assert [(note.url, note.reason) for note in found.removed] == [(story["gone"], "not-found")]


def test_changed_fields_have_both_values(story):
    found = diff(story["folder"], "1", "2")
    changed = {
        page.url: {change.field: (change.before, change.after) for change in page.changes} for page in found.changed
    }
    assert changed[story["renamed"]]["title"][1] == "Another title"
    assert "text" in changed[story["renamed"]]
    assert "title" not in changed.get(story["home"], {})


def test_added_and_removed_links(story):
    found = diff(story["folder"], "1", "2")
    assert (story["home"], story["new"]) in {(note.source, note.target) for note in found.links_added}
    assert all(note.source == story["gone"] for note in found.links_removed)


def test_a_page_with_a_shorter_way_moves_in_the_map(story):
    found = diff(story["folder"], "1", "2")
    move = next(move for move in found.moves if move.url == story["lifted"])
    assert (move.parent_after, move.depth_after) == (story["home"], 1)
    assert move.depth_before > 1
    assert move.branch_after == move.url
    assert next(branch for branch in found.branches if branch.url == move.url).before == 0


def test_new_gone_and_remaining_issues(story):
    new = diff(story["folder"], "1", "2").issues
    assert {issue.related for issue in new.new if issue.code == "broken-link"} == {story["gone"]}
    back = diff(story["folder"], "2", "3").issues
    assert {issue.key for issue in back.gone} == {issue.key for issue in new.new if issue.code == "broken-link"}
    assert {issue.key for issue in new.still} <= {issue.key for issue in back.still}


def test_any_two_runs_are_compared_not_only_neighbours(story):
    found = diff(story["folder"], "1", "3")
    assert [note.url for note in found.added] == [story["new"]]
    assert not found.removed
    changed = {page.url: [change.field for change in page.changes] for page in found.changed}
    assert "title" not in changed.get(story["renamed"], [])


def test_backwards_is_the_mirror_image(story):
    there, back = diff(story["folder"], "1", "2"), diff(story["folder"], "2", "1")
    assert [note.url for note in there.added] == [note.url for note in back.removed]
    assert there.links_added == back.links_removed
    assert {move.url for move in there.moves} == {move.url for move in back.moves}


def test_a_run_does_not_differ_from_itself_nor_from_another_collection_of_the_same_web(story):
    assert diff(story["folder"], "2", "2").is_empty
    found = diff(story["folder"], "last", "last", other=story["other"])
    assert found.is_empty, found


def test_the_command_in_two_formats(story, tmp_path):
    told_text = told("diff", "1", "2", "-c", story["folder"], cwd=tmp_path)
    assert told_text.returncode == 0, told_text.stderr
    assert "1 added, 1 removed" in told_text.stdout
    assert "Another title" in told_text.stdout
    as_json = json.loads(told("diff", "1", "2", "-c", story["folder"], "-f", "json", cwd=tmp_path).stdout)
    assert as_json["added"][0]["url"] == story["new"]
    assert told("diff", "1", "2", "-c", story["folder"], "--exit-code", cwd=tmp_path).returncode == 5
    assert told("diff", "--other", story["other"], "-c", story["folder"], "--exit-code", cwd=tmp_path).returncode == 0
    assert environment()


def test_from_python(story):
    with Collection(story["folder"]) as collection:
        assert collection.diff("1", "2") == diff(story["folder"], "1", "2")
        assert collection.diff("last", "last", other=story["other"]).is_empty


def test_a_missing_run_is_refused_with_a_list_of_runs(story):
    with pytest.raises(UsageError, match="choose among 1, 2, 3"):
        diff(story["folder"], "7", "last")
    with pytest.raises(UsageError, match="no run 'last-3'"):
        diff(story["folder"], "last-3", "last")


def test_a_page_without_inlinks_has_no_depth(tmp_path):
    site = Site("a.test")
    site.add(Page("/", "Home"))
    site.add(Page("/left", "Left alone"), linked_from="/")
    with serve(site) as server:
        crawled(tmp_path, server, "a.test")
        site.pages["/"].links.clear()
        server.bump("a.test", "/")
        refreshed(tmp_path)
        changed = {
            page.url: [(change.field, change.before, change.after) for change in page.changes]
            for page in diff(tmp_path).changed
        }
        assert changed[server.url("a.test", "/left")] == [("depth", "1", "")]
