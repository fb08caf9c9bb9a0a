"""Crawls known graphs and compares the results link by link."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from voyage import Collection, crawled, flags_for, served_apart, told

from periplus.analyse.pagerank import pagerank
from periplus.model.graph import LinkGraph
from periplus.model.visit import Reason
from testweb import GraphRecipe, Truth, graph_site, linked_sites, serve


def true_links(truth: Truth) -> set[tuple]:
    """Expected links in the form of `Collection.links`."""
    return {
        (
            source,
            link.target,
            link.kind.value,
            link.position.value,
            int(link.nofollow),
            link.anchor,
            " ".join(link.fragments),
            link.times,
        )
        for source, links in truth.links.items()
        for link in links
    }


def assert_recovered(collection: Collection, truth: Truth) -> None:
    """Exactly the expected pages, titles, depths and links."""
    assert collection.titles == {url: page.title for url, page in truth.pages.items()}
    assert set(collection.reasons.values()) == {Reason.OK}
    assert collection.depths == truth.depths
    assert collection.links == true_links(truth)
    assert collection.sane() == []


@pytest.mark.parametrize("shape", ["random", "deep"])
def test_a_site_is_recovered_page_by_page_and_link_by_link(tmp_path: Path, shape: str) -> None:
    with serve(graph_site(GraphRecipe(seed=4, pages=90, shape=shape, page_bytes=1500))) as server:
        collection, end = crawled(tmp_path, server, "a.test", delay_s=0.005)
        assert (end.state, end.counts.fetched) == ("done", 90)
        assert_recovered(collection, server.truth)
        assert len(server.log) == 92  # each page once, robots.txt, sitemap.xml


def test_the_command_finds_the_same(tmp_path: Path) -> None:
    with serve(graph_site(GraphRecipe(seed=5, pages=50, page_bytes=1500))) as server:
        ran = told("crawl", server.url("a.test"), "-o", "c", *flags_for(server.resolve, delay_s=0.005), cwd=tmp_path)
        assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
        assert_recovered(Collection(tmp_path / "c"), server.truth)


def test_two_workers_and_several_sites_find_the_same(tmp_path: Path) -> None:
    web = linked_sites(seed=2, sites=4, pages=25, links_between=12)
    with serve(web) as server:
        collection, end = crawled(tmp_path, server, *web.sites, workers=2, delay_s=0.005)
        assert (end.state, end.counts.fetched) == ("done", 100)
        assert_recovered(collection, server.truth)


def test_timing_changes_nothing(tmp_path: Path) -> None:
    """One request at a time and three, one worker and two: the same tables."""
    web = linked_sites(seed=3, sites=3, pages=30, links_between=15)
    with serve(web) as server:
        slow, _ = crawled(tmp_path / "slow", server, *web.sites, delay_s=0.005)
        fast, _ = crawled(
            tmp_path / "fast",
            server,
            *web.sites,
            mine=tuple(web.sites),
            delay_s=0.0,
            per_host=4,
            workers=2,
            commit_pages=7,
        )
        assert slow.tables == fast.tables
        assert_recovered(slow, server.truth)


def graph_of(pages: list[str], edges: set[tuple[str, str]]) -> LinkGraph:
    """Edges as arrays."""
    place = {url: number for number, url in enumerate(sorted(pages))}
    pairs = sorted((place[source], place[target]) for source, target in edges)
    offsets = np.searchsorted([source for source, _ in pairs], np.arange(len(place) + 1)).astype(np.int64)
    targets = np.array([target for _, target in pairs], np.int32)
    whole = np.ones(len(place), np.bool_)
    return LinkGraph(sorted(place), offsets, targets, whole, np.zeros(len(place), np.int32))


def test_pagerank_of_the_crawled_graph_equals_that_of_the_true_graph(tmp_path: Path) -> None:
    with serve(graph_site(GraphRecipe(seed=6, pages=80, links_per_page=9, page_bytes=1500))) as server:
        collection, _ = crawled(tmp_path, server, "a.test", delay_s=0.005)
        found = pagerank(graph_of(list(collection.titles), collection.graph))
        true = pagerank(graph_of(list(server.truth.pages), server.truth.graph()))
        assert np.abs(found.scores - true.scores).max() < 1e-9


def test_the_command_crawls_a_server_in_another_process(tmp_path: Path) -> None:
    """The server runs in a separate process."""
    with served_apart("graph seed=7 pages=30 page_bytes=1500", tmp_path) as web:
        ran = told("crawl", web.url("a.test"), "-o", "c", *flags_for(web.resolve), cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
        assert set(Collection(tmp_path / "c").titles) == set(web.truth["pages"])
