"""Crawl, archive, import: the same collection without a request."""

from __future__ import annotations

from pathlib import Path

import pytest
from voyage import Collection, crawled

from periplus.api.functions import open_collection
from periplus.model.visit import Reason
from periplus_archives.api import export_warc, import_archives
from testweb import GraphRecipe, Page, PageLink, Server, Site, Web, graph_site, serve
from testweb.recipes import web_of

ASKED = "SELECT text, reason, rule, depth, status FROM url WHERE visited IS NOT NULL"
PAGES = (
    "SELECT u.text, p.title, p.media_type, p.size, p.charset, p.cut, p.body_digest, p.text_digest, p.etag FROM page p"
    " JOIN url u ON u.id = p.url_id"
)


def archived(folder: Path, server: Server, collection: Collection, **options: object) -> Collection:
    """Imports the archive of a collection without requests to the server."""
    asked = len(server.log)
    path = folder / "all.warc.gz"
    written = export_warc(collection.folder, path, **options)
    done = import_archives(folder / "imported", written.files)
    assert len(server.log) == asked
    assert (done.state, done.left_out, done.damages) == ("done", 0, ())
    return Collection(folder / "imported")


def test_a_site_survives_the_archive(tmp_path: Path) -> None:
    """Pages, links, depths, states and the map with its ranks."""
    with serve(graph_site(GraphRecipe(seed=3, pages=80, page_bytes=1500))) as server:
        first, _ = crawled(tmp_path / "c", server, "a.test", delay_s=0.005)
        again = archived(tmp_path, server, first)
    assert set(again.ask(ASKED)) == set(first.ask(ASKED))
    assert set(again.ask(PAGES)) == set(first.ask(PAGES))
    assert again.links == first.links
    assert again.sane() == []
    with open_collection(first.folder) as one, open_collection(again.folder) as other:
        before, after = one.map(), other.map()
        assert list(before.graph.pages) == list(after.graph.pages)
        assert before.ranking.scores.tolist() == after.ranking.scores.tolist()
        assert before.site_map.order.tolist() == after.site_map.order.tolist()


def test_faults_survive_the_archive(tmp_path: Path) -> None:
    """Errors, truncated bodies, encodings, redirects and failures have the states, reasons and texts of the crawl."""
    with serve(web_of("faults")) as server:
        host = next(iter(server.web.sites))
        first, _ = crawled(tmp_path / "c", server, host, delay_s=0.005, retries=0)
        again = archived(tmp_path, server, first)
    told = (
        "SELECT text, reason, status FROM url WHERE visited IS NOT NULL AND reason NOT IN ('truncated', 'bad-answer')"
    )
    assert set(again.ask(told)) == set(first.ask(told))
    whole = PAGES + " WHERE p.cut = '' OR p.cut = 'media-type-not-read'"
    assert set(again.ask(whole)) == set(first.ask(whole))
    assert again.sane() == []


@pytest.mark.parametrize("file_bytes", [0, 20_000])
def test_an_archive_in_several_files_is_read_as_one(tmp_path: Path, file_bytes: int) -> None:
    with serve(graph_site(GraphRecipe(seed=3, pages=40, page_bytes=1500))) as server:
        first, _ = crawled(tmp_path / "c", server, "a.test", delay_s=0.005)
        again = archived(tmp_path, server, first, file_bytes=file_bytes)
    assert (len(list(tmp_path.glob("*.warc.gz"))) > 1) == bool(file_bytes)
    assert again.links == first.links


def test_urls_missing_in_the_archive_are_fetched_only_by_a_crawl_of_their_site(tmp_path: Path) -> None:
    site = Site("a.test")
    for number in range(6):
        site.add(
            Page(
                f"/{number or ''}",
                f"Page {number}",
                ("Some words.",),
                [PageLink(f"/{number + 1}", "on")] if number < 5 else [],
            )
        )
    other = Site("b.test")
    other.add(Page("/", "Elsewhere", ("Some words.",)))
    with serve(Web([site, other])) as server:
        first, _ = crawled(tmp_path / "c", server, "a.test", max_pages=3, sitemaps=False)
        again = archived(tmp_path, server, first)
        missing = server.url("a.test", "/3")
        assert first.reasons[missing] is Reason.WAITING and again.reasons[missing] is Reason.NOT_ARCHIVED
        crawled(tmp_path / "imported", server, "b.test", sitemaps=False)
        assert "/3" not in server.log.targets("a.test")
        crawled(tmp_path / "imported", server, "a.test", sitemaps=False)
        assert server.log.targets("a.test").count("/3") == 1 and server.log.targets("a.test").count("/2") == 1
        assert again.reasons[server.url("a.test", "/5")] is Reason.OK
