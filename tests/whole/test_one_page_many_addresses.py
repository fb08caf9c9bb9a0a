"""A page with several addresses: one node in the map, no fault, and all addresses are kept."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from voyage import crawled, settings_for

from periplus.api.crawling import refresh, refresh_order
from periplus.api.positions import issues_of
from periplus.cli.main import main
from periplus.model.frontier import RefreshFinding
from periplus.model.visit import Reason
from testweb import Page, Site, Web, serve
from testweb.wire import Answer


def html(title: str, *links: str, head: str = "", note: str = "") -> Answer:
    anchors = "".join(f'<a href="{link}">to {link}</a> ' for link in links)
    about = f'<meta name="description" content="About {title}">'
    text = (
        f"<!DOCTYPE html><html lang=en><title>{title}</title>{about}{head}<h1>{title}</h1><p>{title} in "
        f"many words.{anchors}</p>{note}"
    )
    return Answer(200, text.encode())


def web() -> Web:
    """The home page has two addresses, and those with `www.`; a print version has a canonical link to its page."""
    plain, www = Site("a.test"), Site("www.a.test")
    for site in (plain, www):
        site.add(Page("/", "Home"))
        for path in ("/", "/index.html"):
            site.answer(
                path,
                html("Home", "/index.html", "/article", "/print", "/index.html#none", "http://www.a.test:{port}/"),
                linked_from=None,
            )
        site.answer("/article", html("Article", "/index.html", note="<!-- 1 -->"), linked_from=None)
        site.answer(
            "/print",
            html("Article", "/index.html", head="<link rel=canonical href=/article>", note="<!-- 2 -->"),
            linked_from=None,
        )
    return Web([plain, www])


@pytest.fixture(scope="module")
def merged_site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins")
    with serve(web()) as server:
        collection, _ = crawled(folder, server, "a.test", "www.a.test", learn_parameters=False)
        issues = issues_of(folder, settings_for(server), near=False)
        base = server.url("a.test")
    return collection, issues, base


def ran(*words: str) -> str:
    done = CliRunner().invoke(main, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_one_page_remains_and_the_others_are_its_aliases(merged_site):
    collection, _, base = merged_site
    reasons = {url: row.reason for url, row in collection.urls.items()}
    assert sorted(url for url, reason in reasons.items() if reason is Reason.OK) == [base, base + "article"]
    aliases = {url for url, reason in reasons.items() if reason is Reason.ALIAS}
    assert {base + "index.html", base + "print", base.replace("a.test", "www.a.test")} <= aliases
    assert not collection.sane()


def test_the_map_search_and_faults_know_one_page(merged_site):
    collection, issues, base = merged_site
    folder = str(collection.folder)
    shown = ran("map", "-c", folder, "-f", "json", "--site", base.split("/")[2])
    assert shown.count('"title": "Home"') == 1
    assert "index.html" not in shown
    assert not [
        issue
        for issue in issues
        if issue.code in ("duplicate", "title-duplicate", "description-duplicate", "canonical-elsewhere")
    ]
    assert [issue.related for issue in issues if issue.code == "broken-fragment"] == [base + "index.html"], (
        "places are looked for at the address that is linked to"
    )
    found = json.loads(ran("search", "-c", folder, "-f", "json", "home"))
    assert [hit["url"] for hit in found["hits"] if hit["title"] == "Home"] == [base]


def test_both_addresses_are_kept(merged_site):
    collection, _, base = merged_site
    folder = str(collection.folder)
    assert "the same bytes: " + base + "index.html" in ran("page", base, "-c", folder)
    said = ran("page", base + "index.html", "-c", folder)
    assert f"another address of a page (same bytes as {base})" in said
    assert "Home in many words." in ran("page", base + "index.html", "-c", folder, "--as", "text")
    assert f"names as canonical, with the same text, {base}article" in ran("page", base + "print", "-c", folder)


def test_a_refresh_detects_that_an_alias_became_a_page(tmp_path):
    site = Site("a.test")
    site.answer("/", html("Home", "/index.html"), linked_from=None)
    site.answer("/index.html", html("Home", "/index.html"), linked_from=None)
    with serve(site) as server:
        collection, _ = crawled(tmp_path / "c", server, "a.test")
        assert sorted(collection.reasons.values()) == [Reason.ALIAS, Reason.OK]
        same = refresh(refresh_order(collection.folder, {}), lambda progress: False)
        assert (same.findings[RefreshFinding.UNCHANGED], same.findings[RefreshFinding.CHANGED]) == (2, 0)
        assert sorted(collection.reasons.values()) == [Reason.ALIAS, Reason.OK]
        site.answer("/index.html", html("Another page", "/"), linked_from=None)
        refresh(refresh_order(collection.folder, {}), lambda progress: False)
        assert sorted(collection.reasons.values()) == [Reason.OK, Reason.OK]
        assert not collection.sane()
