"""The link graph screen: neighbours in drawing, table, JSON and files. The URL has the whole state."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from interface import client
from periplus.api.inlink_index import InlinkIndexes
from stored import page, stored

HOME = "https://e.org/"
MENU = '<nav><a href="/">home</a><a href="/a">alpha</a></nav>'
SITE = {
    HOME: page("Home", "/a", "/d/b", "https://other.org/x"),
    "https://e.org/a": page("Alpha <b>", "/d/b"),
    "https://e.org/d/b": page("Beta", "/d/c") + MENU,
    "https://e.org/d/c": page("Gamma", "/a"),
}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    stored(tmp_path / "e.periplus", SITE, [HOME])
    return tmp_path


def near(folder: Path, query: str) -> dict[str, int]:
    found = client(folder).get(f"/c/e/graph?format=json&{query}").json()["graph"]
    return {node["url"]: node["step"] for node in found["nodes"]}


def test_the_graph_starts_at_the_start_page_and_marks_unfetched_pages(folder: Path) -> None:
    text = client(folder).get("/c/e/graph").text
    assert "Links around Home" in text
    assert "Alpha &lt;b&gt;" in text
    assert text.count('class="near grey cited"') + text.count(" cited") >= 2, (
        "the page that was not fetched, and the legend"
    )
    assert near(folder, "") == {HOME: 0, "https://e.org/a": 1, "https://e.org/d/b": 1, "https://other.org/x": 1}


def test_two_steps_reach_further_and_menus_can_be_hidden(folder: Path) -> None:
    node = "node=https://e.org/d/c"
    assert near(folder, node) == {"https://e.org/d/c": 0, "https://e.org/a": 1, "https://e.org/d/b": 1}
    assert near(folder, f"{node}&steps=2")[HOME] == 2
    beta = near(folder, "node=https://e.org/d/b")
    assert beta == {"https://e.org/d/b": 0, HOME: 1, "https://e.org/a": 1, "https://e.org/d/c": 1}
    (a,) = [
        n
        for n in client(folder).get("/c/e/graph?format=json&node=https://e.org/d/b").json()["graph"]["nodes"]
        if n["url"].endswith("/a")
    ]
    (b,) = [
        n
        for n in client(folder).get("/c/e/graph?format=json&menus=hide&node=https://e.org/d/b").json()["graph"]["nodes"]
        if n["url"].endswith("/a")
    ]
    assert (a["links_here"], a["linked"]) == (1, 1)
    assert (b["links_here"], b["linked"]) == (1, 0)


def test_directories_and_sites_are_grouped(folder: Path) -> None:
    for by, count in (("directory", 3), ("site", 2)):
        found = client(folder).get(f"/c/e/graph?format=json&by={by}").json()["graph"]
        assert len(found["nodes"]) == count
        assert sum(node["pages"] for node in found["nodes"]) == 5


def test_a_limit_is_stated(folder: Path) -> None:
    text = client(folder).get("/c/e/graph?most=1").text
    assert "1 of 3 neighbours, by rank" in text


def test_each_circle_is_a_link_that_keeps_the_other_parameters(folder: Path) -> None:
    text = client(folder).get("/c/e/graph?steps=2&menus=hide").text
    drawing = re.search(r"<svg.*?</svg>", text, re.DOTALL)
    assert drawing
    links = re.findall(r'<a href="([^"]+)" aria-label="([^"]+)"', drawing[0])
    assert len(links) == 5
    assert all("steps=2&amp;menus=hide" in href for href, _ in links)
    assert "style=" not in drawing[0], "the policy allows only the style sheet"
    assert "<style" not in drawing[0]


def test_the_files_are_self_contained(folder: Path) -> None:
    svg = client(folder).get("/c/e/graph.svg")
    assert "attachment" in svg.headers["content-disposition"]
    root = ElementTree.fromstring(svg.text)
    assert root.find(f"{SVG}style") is not None
    assert not root.findall(f".//{SVG}a")
    gexf = ElementTree.fromstring(client(folder).get("/c/e/graph.gexf?steps=2").text)
    assert len(gexf.findall(".//{*}node")) == 5
    assert gexf.findall(".//{*}edge")
    assert (
        client(folder).get("/c/e/graph.gexf?steps=2").text[:200]
        == client(folder).get("/c/e/graph.gexf?steps=2").text[:200]
    )


@pytest.mark.parametrize(
    "query", ["by=galaxy", "steps=3", "menus=yes", "most=0", "most=9999", "node=https://nowhere.org/", "node=%00"]
)
def test_an_invalid_parameter_is_refused(folder: Path, query: str) -> None:
    answer = client(folder).get(f"/c/e/graph?{query}")
    assert answer.status_code == 400
    assert "Request failed" in answer.text


def test_a_large_collection_says_that_its_links_are_being_indexed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InlinkIndexes, "of", lambda *_: None)
    assert "being indexed" in client(folder).get("/c/e/graph").text
    assert client(folder).get("/c/e/graph.svg").status_code == 400
