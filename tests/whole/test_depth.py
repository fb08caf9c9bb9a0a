"""Depth is the number of clicks; `link rel=index`, `next` and feeds do not count as clicks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from postgres_voyage import crawled_into
from test_archive import archived
from voyage import crawled, told

from periplus.model.visit import Reason
from testweb import Page, Site, serve
from testweb.content import manual_site

HOST = "manual.test"
UNCLICKED = ("/unclicked.html", "/beyond.html")


def mapped(*collection: str | Path, cwd: Path) -> dict[str, int]:
    """The depth of each page in the map."""
    ran = told("map", *collection, "-f", "json", cwd=cwd)
    assert ran.returncode == 0, ran.stderr
    depths, nodes = dict[str, int](), [(json.loads(ran.stdout)["home"], 0)]
    for node, depth in nodes:  # grows
        depths[node["url"]] = depth
        nodes += [(child, depth + 1) for child in node.get("children", ())]
    return depths


@pytest.mark.parametrize("kind", ["folder", "database"])
def test_depth_is_the_number_of_clicks_in_the_crawl_and_in_the_map(tmp_path, address, kind) -> None:
    with serve(manual_site()) as server:
        unclicked = {server.url(HOST, path) for path in UNCLICKED}
        if kind == "folder":
            collection, _ = crawled(tmp_path / "c", server, HOST)
            where = ("-c", tmp_path / "c")
        else:
            collection, _ = crawled_into(address.text, server, HOST)
            where = ("-c", address.text)
        clicks = server.truth.depths
        assert max(clicks.values()) > 4, "else no head link is a short cut"
        assert {url: collection.depths[url] for url in clicks} == clicks
        assert {collection.reasons[url] for url in unclicked} == {Reason.OK}
        assert {collection.depths[url] for url in unclicked} == {None}
        assert mapped(*where, cwd=tmp_path) == clicks


def test_a_depth_limit_excludes_unreachable_pages_until_a_run_without_a_limit(tmp_path) -> None:
    with serve(manual_site()) as server:
        clicks = server.truth.depths
        collection, _ = crawled(tmp_path, server, HOST, max_depth=2)
        read = {url for url, reason in collection.reasons.items() if reason is Reason.OK}
        assert read == {url for url, depth in clicks.items() if depth <= 2}
        row = collection.urls[server.url(HOST, "/unclicked.html")]
        assert (row.reason, row.depth, row.rule) == (Reason.DEPTH, None, "max-depth 2")
        crawled(tmp_path, server, HOST)
        assert {url: collection.depths[url] for url in clicks} == clicks
        assert {collection.reasons[server.url(HOST, path)] for path in UNCLICKED} == {Reason.OK}


def test_a_page_linked_in_a_head_gets_its_depth_from_the_first_click(tmp_path) -> None:
    site = Site("a.test")
    for number, path in enumerate(("/", "/1.html", "/2.html", "/3.html")):
        head = '<link rel="next" href="/3.html"><link rel="canonical" href="/2.html">' if not number else ""
        site.add(Page(path, f"Page {number}", (f"The text of page {number}.",), head=head))
    for source, target in (("/", "/1.html"), ("/1.html", "/2.html"), ("/2.html", "/3.html")):
        site.link(source, target, "on")
    with serve(site) as server:
        collection, _ = crawled(tmp_path, server, "a.test")
        assert [collection.depths[server.url("a.test", path)] for path in site.pages] == [0, 1, 2, 3]
        assert [server.log.count(path) for path in site.pages] == [1, 1, 1, 1]


def test_an_archive_has_the_depths_of_its_crawl(tmp_path) -> None:
    with serve(manual_site()) as server:
        collection, _ = crawled(tmp_path / "c", server, HOST)
        again = archived(tmp_path, server, collection)
    read = [url for url, reason in collection.reasons.items() if reason is Reason.OK]
    assert {url: again.depths[url] for url in read} == {url: collection.depths[url] for url in read}
