"""The graph drawing of a whole site, and shortest paths between pages."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from interface import client
from periplus.analyse.linkgraph import hierarchical_map, map_tree, shortest_way
from periplus.analyse.pagerank import pagerank
from periplus.files import keep_text
from periplus.model.graph import LinkGraph
from periplus.model.results import PageColumns, SiteMap
from periplus.model.visit import Reason, State
from periplus.model.web import Url
from periplus.present import site_graph as drawing
from periplus.present.charts import write_chart
from periplus.present.site_graph import SiteGraph, site_graph
from periplus.ui import maps
from stored import page, stored

HOME = "https://e.org/"


def made(folders: dict[str, int]) -> tuple[PageColumns, LinkGraph, SiteMap]:
    """Folders with these numbers of pages. The home page links to the first page of each folder, which links to the
    others.
    """
    urls = sorted({HOME, *(f"{HOME}{folder}{n:03}" for folder, count in folders.items() for n in range(count))})
    place = {url: at for at, url in enumerate(urls)}
    pairs = set()
    for folder, count in folders.items():
        first = place[f"{HOME}{folder}000"]
        pairs.add((place[HOME], first))
        pairs |= {(first, place[f"{HOME}{folder}{n:03}"]) for n in range(1, count)}
    source, target = np.array(sorted(pairs), np.int64).T
    offsets = np.concatenate(([0], np.cumsum(np.bincount(source, minlength=len(urls)))))
    known = np.ones(len(urls), np.bool_)
    graph = LinkGraph(list(map(Url, urls)), offsets, target.astype(np.int32), known, np.zeros(len(urls), np.int32))
    rank = pagerank(graph).scores
    tree = hierarchical_map(graph, place[HOME], rank)
    zeros = np.zeros(len(urls), np.int64)
    facts = PageColumns(
        graph.pages, [f"Page {url[-3:]} - Site" for url in urls], [State.FETCHED] * len(urls), [Reason.OK] * len(urls),
        zeros.astype(np.int16), ["text/html"] * len(urls), zeros, tree.depth, rank, zeros.astype(np.uint8), zeros,
        zeros,
    )  # fmt: skip
    return facts, graph, tree


SITE = made({"a/": 60, "b/": 30, "c/d/": 12})


def test_every_page_is_a_circle_with_its_parent() -> None:
    facts, graph, tree = SITE
    drawn = site_graph(facts, graph, tree)
    assert drawn.url == tuple(graph.pages)
    assert list(drawn.parent) == tree.parent.tolist()
    assert drawn.parts == ("/a/", "/b/", "/c/", "/")
    assert [drawn.parts[part] for part in drawn.part][:2] == ["/", "/a/"]
    assert len({*drawn.hues[:3]}) == 3 and drawn.hues[3] == "grey"
    assert not any("Site" in name for name in drawn.name), "titles have no site name"
    assert site_graph(facts, graph, tree) == drawn


def test_circles_do_not_overlap_and_folders_are_grouped() -> None:
    drawn = site_graph(*SITE)
    place = np.array([drawn.x, drawn.y]).T
    far = np.sqrt(((place[:, None] - place[None]) ** 2).sum(axis=2))
    np.fill_diagonal(far, np.inf)
    assert np.median(far.min(axis=1)) > drawing.STEP * 0.5
    part = np.array(drawn.part)
    for one in (0, 1):
        own, other = place[part == one].mean(axis=0), place[part == 1 - one].mean(axis=0)
        mine = place[part == one]
        nearer = ((mine - own) ** 2).sum(axis=1) < ((mine - other) ** 2).sum(axis=1)
        assert nearer.mean() > 0.9


def test_a_folder_can_be_drawn_alone_and_a_large_graph_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    under = site_graph(*SITE, under=f"{HOME}b/")
    assert len(under.url) == 30 and set(under.parts) == {"/b/"}
    assert max(under.parent) < 30
    monkeypatch.setattr(drawing, "MOST", 20)
    folders = site_graph(*SITE)
    assert folders.of_folders and sum(folders.pages) == len(SITE[0].url)
    assert f"{HOME}c/d/" in folders.url
    best = site_graph(*SITE, under=f"{HOME}a/")
    assert len(best.url) == 20 and "20 pages of 60" in best.about


def test_no_page_and_a_single_page_can_be_drawn() -> None:
    facts, graph, tree = SITE
    assert site_graph(facts, graph, tree, under="https://nowhere/").url == ()
    assert len(site_graph(facts, graph, tree, under=f"{HOME}a/007").url) == 1


def test_a_folder_has_the_same_colour_in_all_pictures() -> None:
    facts, graph, tree = SITE
    drawn, out = site_graph(facts, graph, tree), io.StringIO()
    colours = dict(zip(drawn.parts, drawn.hues, strict=True))
    nodes = map_tree(tree, facts.rank, facts.size_bytes, graph.fetched, max_nodes=100)
    write_chart(nodes, facts, out, ("pages", "folder"))
    link = r'<a href="https://e.org(/[a-z]/)[^"]*"[^>]*>\s*(?:<title>[^<]*</title>)?\s*<\w+ class="(\w+)'
    places = re.findall(link, out.getvalue())
    assert {colours[folder] for folder, _ in places} == {hue for _, hue in places} == set(colours.values()) - {"grey"}
    assert all(colours[folder] == hue for folder, hue in places)


def test_the_shortest_path_has_the_fewest_links() -> None:
    _, graph, _ = SITE
    place = {url: at for at, url in enumerate(graph.pages)}
    way = shortest_way(graph, place[Url(HOME)], place[Url(f"{HOME}b/007")])
    assert [graph.pages[page] for page in way] == [HOME, f"{HOME}b/000", f"{HOME}b/007"]
    assert shortest_way(graph, place[Url(f"{HOME}b/007")], place[Url(HOME)]) == []
    assert shortest_way(graph, 3, 3) == [3]


@pytest.fixture(autouse=True)
def _patient_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen waits a minute for its layout."""
    monkeypatch.setattr(maps, "SITE_WAIT_S", 60.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = {
        HOME: page("Home", "/a/", "/b"),
        f"{HOME}a/": page("A", "/a/x"),
        f"{HOME}a/x": page("X", "/"),
        f"{HOME}b": 404,
    }
    stored(tmp_path / "e.periplus", site, [HOME])
    return tmp_path


def test_the_screen_has_the_graph_and_paths_between_pages(folder: Path) -> None:
    asking = client(folder)
    assert 'data-graph="/c/e/site.json' in asking.get("/c/e/site").text
    columns = asking.get("/c/e/site.json").json()
    assert set(columns) == set(SiteGraph.__dataclass_fields__)
    assert columns["url"] == [HOME, f"{HOME}a/", f"{HOME}a/x"], "what is dead is no page of the map"
    found = asking.get(f"/c/e/site-links.json?url={HOME}").json()
    assert (found["out"], found["in"]) == (1, 1) and f"{HOME}a/x" in found["ends"]
    assert asking.get("/c/e/site-way.json?from=/&to=/a/x").json()["way"] == [HOME, f"{HOME}a/", f"{HOME}a/x"]
    assert asking.get("/c/e/site-way.json?from=/&to=/none").status_code == 400


def test_circles_of_equal_rank_do_not_overlap(tmp_path: Path) -> None:
    names = [f"/{number}" for number in range(20)]
    pages = {f"https://e.org{name}": page(name, *names) for name in ("/", *names)}
    stored(tmp_path / "e.periplus", pages, ["https://e.org/"])
    columns = client(tmp_path).get("/c/e/site.json").json()
    assert len(columns["r"]) == 21 and sorted(columns["r"])[10] <= drawing.STEP / 2


def test_the_layout_is_cached_until_the_collection_changes(folder: Path) -> None:
    path = folder / "e.periplus" / "site.layout"
    first = client(folder).get("/c/e/site.json").json()
    head, text = path.read_text("utf-8").split("\n")
    keep_text(path, head.partition(" ")[2], json.dumps({**json.loads(text), "title": "kept"}))
    assert client(folder).get("/c/e/site.json").json() == {**first, "title": "kept"}
    path.write_text("no JSON", "utf-8")
    assert client(folder).get("/c/e/site.json").json() == first
    keep_text(path, head.partition(" ")[2], "no JSON")
    assert client(folder).get("/c/e/site.json").json() == first
    stored(folder / "e.periplus", {f"{HOME}c": page("C")}, [f"{HOME}c"])
    assert len(client(folder).get("/c/e/site.json").json()["url"]) == 4


def test_directories_have_the_sums_of_their_pages(folder: Path) -> None:
    lines = client(folder).get("/c/e/map?tree=folders&format=json").json()["places"]
    assert [(line["step"], line["label"], line["pages"]) for line in lines] == [
        ("open", "https://e.org", 3),
        ("leaf", "/a/", 2),
        ("close", "", 0),
    ]
