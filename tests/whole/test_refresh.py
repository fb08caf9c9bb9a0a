"""Cost and results of a refresh of a web that changes between two runs."""

from __future__ import annotations

import io
import signal
import subprocess

import pytest
from voyage import Collection, command, crawled, environment, flags_for, served_apart, until

from periplus.acquire import discovery
from periplus.api.crawling import RefreshEnd, refresh, refresh_order
from periplus.api.functions import open_collection
from periplus.model.frontier import FIRST_INTERVAL_S, GROWTH, SHRINKING, RefreshFinding
from testweb import GraphRecipe, faults, graph_site, serve
from testweb.site import NOT_FOUND, Page
from testweb.wire import Answer

RECIPE = GraphRecipe(seed=3, pages=40, links_per_page=6, shape="random", page_bytes=6000, host="a.test")
HOME = "/"


def refreshed(folder, **given) -> RefreshEnd:
    return refresh(refresh_order(folder, given), lambda progress: False)


def found(end: RefreshEnd) -> dict[str, int]:
    return {finding.value: count for finding, count in end.findings.items() if count}


@pytest.fixture
def understood(monkeypatch):
    """The URLs of the documents that were analysed."""
    urls, true = [], discovery.understand

    def counted(url, fetched, **more):
        urls.append(url)
        return true(url, fetched, **more)

    monkeypatch.setattr(discovery, "understand", counted)
    return urls


def xml(folder) -> str:
    with open_collection(folder) as collection:
        out = io.StringIO()
        collection.map().without_run().write_xml(out)
        return out.getvalue()


def test_an_unchanged_site_costs_next_to_nothing_and_is_not_analysed_again(tmp_path, understood):
    with serve(graph_site(RECIPE)) as server:
        left, first = crawled(tmp_path / "c", server, "a.test", delay_s=0.0)
        before, analysed, map_before = left.tables, len(understood), xml(left.folder)
        sizes = {
            table: left.ask(f"SELECT count(*) FROM {table}")
            for table in ("visit", "url_history", "page_history", "link_history", "body", "link")
        }
        end = refreshed(left.folder)
    assert end.end.state == "done"
    assert found(end) == {"unchanged": first.counts.fetched}
    assert end.end.counts.wire_bytes <= 0.05 * first.counts.wire_bytes
    assert len(understood) == analysed
    assert left.tables == before
    assert left.sane() == []
    pages_only = "SELECT count(*) FROM visit WHERE purpose = 'page'"
    assert left.ask(pages_only) == left.ask(pages_only + " AND run_id = 1")
    for table, rows in sizes.items():
        if table != "visit":  # robots.txt and sitemaps are fetched again
            assert left.ask(f"SELECT count(*) FROM {table}") == rows
    assert set(left.ask("SELECT interval_s, gone_since FROM freshness")) == {(FIRST_INTERVAL_S * GROWTH, None)}
    assert xml(left.folder) == map_before


def test_without_validators_equal_bytes_are_not_analysed_again(tmp_path, understood):
    site = graph_site(RECIPE)
    for page in site.pages.values():
        page.validators = False
    with serve(site) as server:
        left, first = crawled(tmp_path / "c", server, "a.test", delay_s=0.0)
        analysed = len(understood)
        end = refreshed(left.folder)
    assert found(end) == {"unchanged": first.counts.fetched}
    assert len(understood) == analysed


def test_new_validators_of_the_same_bytes_are_kept_for_the_next_time(tmp_path):
    site = graph_site(RECIPE)
    for page in site.pages.values():
        page.validators = False
    with serve(site) as server:
        left, first = crawled(tmp_path / "c", server, "a.test", delay_s=0.0)
        for page in site.pages.values():
            page.validators = True
        second, third = refreshed(left.folder), refreshed(left.folder)
    assert found(second) == found(third) == {"unchanged": first.counts.fetched}
    assert second.end.counts.wire_bytes == first.counts.wire_bytes
    assert third.end.counts.wire_bytes == 0


def test_changed_pages_are_replaced_and_their_history_is_kept(tmp_path, understood):
    site = graph_site(RECIPE)
    path = next(iter(site.pages[HOME].links)).href
    with serve(site) as server:
        left, _ = crawled(tmp_path / "c", server, "a.test", delay_s=0.0)
        understood.clear()
        site.pages[path].title = "Another title"
        server.bump("a.test", path)
        end = refreshed(left.folder)
        url = server.url("a.test", path)
    assert found(end)["changed"] == 1
    assert understood == [url]
    assert left.titles[url] == "Another title"
    assert len(left.ask("SELECT 1 FROM page_history WHERE title <> 'Another title' AND body_id IS NOT NULL")) == 1
    assert left.ask("SELECT f.interval_s FROM freshness f JOIN url u ON u.id = f.url_id WHERE u.text = ?", url) == [
        (FIRST_INTERVAL_S * SHRINKING,)
    ]
    assert [row[2] for row in left.visits(url)] == ["fetched", "fetched"]


def test_other_bytes_with_the_same_text_leave_no_history(tmp_path):
    site = graph_site(RECIPE)
    with serve(site) as server:
        left, first = crawled(tmp_path / "c", server, "a.test", delay_s=0.0)
        for page in site.pages.values():
            page.head = '<meta name="token" content="another each time">'
        site.rendered.clear()
        end = refreshed(left.folder)
    assert found(end) == {"unchanged": first.counts.fetched}
    assert left.ask("SELECT count(*) FROM page_history") == [(0,)]


def test_new_pages_are_added_removed_links_closed_and_gone_pages_kept(tmp_path):
    site = graph_site(RECIPE)
    home = site.pages[HOME]
    gone = home.links[0].href
    with serve(site) as server:
        left, _ = crawled(tmp_path / "c", server, "a.test", delay_s=0.0)
        links_before = left.links
        home.links = home.links[1:]
        site.add(Page("/brand-new.html", "A new page", ("It was not there before.",)), linked_from=HOME)
        server.bump("a.test", HOME)
        site.routes.exact[gone] = lambda asked: NOT_FOUND
        end = refreshed(left.folder)
        gone_url, home_url, new_url = (server.url("a.test", path) for path in (gone, HOME, "/brand-new.html"))
        assert found(end) == {"new": 1, "changed": 1, "gone": 1, "unchanged": len(site.pages) - 3}
        assert left.reasons[gone_url] == "not-found"
        assert left.reasons[new_url] == "ok"
        assert gone_url in left.titles
        assert left.ask("SELECT count(*) FROM freshness WHERE gone_since IS NOT NULL") == [(1,)]
        closed = "SELECT a.text, b.text FROM link_history l JOIN url a ON a.id = l.source JOIN url b ON b.id = l.target"
        assert left.ask(closed) == [(home_url, gone_url)]
        assert {row[:2] for row in links_before} - {row[:2] for row in left.links} == {(home_url, gone_url)}
        was = "SELECT h.reason, h.status, h.run_id FROM url_history h JOIN url u ON u.id = h.url_id WHERE u.text = ?"
        assert left.ask(was, gone_url) == [("ok", 200, 2)]

        page = site.pages[gone]
        site.routes.exact[gone] = lambda asked: site.page_answer(page, asked)
        end = refreshed(left.folder)
    assert found(end) == {"back": 1, "unchanged": len(site.pages) - 1}
    assert left.ask("SELECT count(*) FROM freshness WHERE gone_since IS NOT NULL") == [(0,)]
    assert left.sane() == []


def test_a_redirect_is_requested_again_and_may_change(tmp_path):
    site = graph_site(RECIPE)
    first, second = (link.href for link in site.pages[HOME].links[:2])
    site.answer("/moved", lambda asked: Answer(302, b"", "", (("Location", leads[0]),)))
    leads = [first]
    with serve(site) as server:
        left, _ = crawled(tmp_path / "c", server, "a.test", delay_s=0.0)
        assert found(refreshed(left.folder)).keys() == {"unchanged"}
        leads[0] = second
        end = refreshed(left.folder)
        assert found(end)["changed"] == 1
        row = left.urls[server.url("a.test", "/moved")]
        assert (row.reason, row.rule) == ("redirect", server.url("a.test", second))
        query = "SELECT b.text FROM {} l JOIN url b ON b.id = l.target WHERE l.kind = 'redirect'"
        assert left.ask(query.format("link")) == [(server.url("a.test", second),)]
        assert left.ask(query.format("link_history")) == [(server.url("a.test", first),)]


def test_due_requests_only_pages_that_are_due(tmp_path):
    with serve(graph_site(RECIPE)) as server:
        left, _ = crawled(tmp_path / "c", server, "a.test", delay_s=0.0)
        end = refresh(refresh_order(left.folder, {}, due_only=True), lambda progress: False)
    assert found(end) == {"unchanged": 1}  # the start; all others were fetched recently


def test_an_unavailable_server_removes_nothing_from_the_collection(tmp_path):
    with serve(graph_site(RECIPE)) as server:
        left, first = crawled(tmp_path / "c", server, "a.test", delay_s=0.0)
    end = refreshed(left.folder, retries=0, host_strikes=2, connect_timeout_s=0.5)
    assert end.end.state == "failed"
    assert found(end) == {"unreached": first.counts.fetched}  # robots.txt was requested first, and then no page
    kept = left.ask("SELECT count(*) FROM url WHERE reason = 'ok'")[0][0]
    assert kept >= first.counts.fetched - 2  # pages requested before the host was given up
    assert left.sane() == []


def test_a_temporary_failure_is_retried(tmp_path):
    site = graph_site(RECIPE)
    path = site.pages[HOME].links[0].href
    page, tries = site.pages[path], []

    def reply(asked):
        tries.append(asked)
        return Answer(500, b"", "text/html") if len(tries) == 2 else site.page_answer(page, asked)

    site.routes.exact[path] = reply
    with serve(site) as server:
        left, _ = crawled(tmp_path / "c", server, "a.test", delay_s=0.0)
        end = refreshed(left.folder)
    assert found(end).keys() == {"unchanged"}
    assert len(tries) == 3
    assert tries[2].headers.get("if-none-match")


def test_traps_and_urls_out_of_scope_are_not_requested(tmp_path):
    site = graph_site(RECIPE)
    faults.status(site, "/gone", 410)
    with serve(site) as server:
        left, _ = crawled(tmp_path / "c", server, "a.test", delay_s=0.0, max_depth=1)
        before = len(server.log)
        end = refreshed(left.folder)
        asked = {entry.target for entry in list(server.log)[before:]}
    assert "/gone" in asked
    beyond = [url for url, reason in left.reasons.items() if reason == "depth"]
    assert beyond
    assert not {url.partition("a.test")[2].partition("/")[2] for url in beyond} & {
        target.lstrip("/") for target in asked
    }
    assert found(end).keys() == {"unchanged"}


def test_a_killed_refresh_continues_and_the_map_stays_complete(tmp_path):
    folder = tmp_path / "c"
    with served_apart("graph seed=3 pages=50 links_per_page=6 page_bytes=2000 host=a.test", tmp_path) as web:
        flags = flags_for(web.resolve, delay_s=0.02)
        subprocess.run(
            command("crawl", web.url("a.test"), "-o", folder, "-q", *flags),
            env=environment(),
            check=True,
            capture_output=True,
        )
        left = Collection(folder)
        before, whole, lines = left.tables, xml(folder), web.lines()
        run = subprocess.Popen(command("refresh", "-c", folder, "-q"), env=environment(), stderr=subprocess.DEVNULL)
        until(lambda: web.lines() > lines + 20, "requests")
        run.send_signal(signal.SIGKILL)
        run.wait()
        assert left.tables == before
        assert xml(folder) == whole
        lines = web.lines()
        told = subprocess.run(
            command("refresh", "-c", folder, "--due", "-q"),
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 0, told.stderr
        assert web.lines() - lines < 50  # pages requested before the kill are not requested again, except the start
    assert left.tables == before
    assert left.sane() == []
    assert sum(count for (count,) in left.ask("SELECT value FROM run_count WHERE name = 'unchanged'")) >= 50


def test_two_crawls_of_an_unchanged_site_give_byte_equal_maps(tmp_path):
    with serve(graph_site(RECIPE)) as server:
        one, _ = crawled(tmp_path / "one", server, "a.test")
        two, _ = crawled(tmp_path / "two", server, "a.test", mine=("a.test",), per_host=4, delay_s=0.0)
        first, second = xml(one.folder), xml(two.folder)
    assert first == second
    with open_collection(one.folder) as collection:
        out = io.StringIO()
        collection.map().write_xml(out)
    assert ' run="crawl 1"' in out.getvalue()


def test_every_result_is_reported_even_if_nothing_changed(tmp_path):
    with serve(graph_site(RECIPE)) as server:
        left, _ = crawled(tmp_path / "c", server, "a.test", delay_s=0.0)
        assert set(refreshed(left.folder).findings) == set(RefreshFinding)
