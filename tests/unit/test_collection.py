"""The Python interface of a collection."""

import contextlib
import os
import sys
import time

import numpy as np
import pytest

import periplus
from periplus.api.comparison import compare_runs
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.model.results import OTHER_PAGES
from periplus.model.visit import Reason, State
from periplus.settings import Budget, Storage, settings_from
from periplus.store.sqlite import reading, schema
from periplus.store.sqlite.frontier import FolderHome, SqliteCrawlStore
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.views import status_range
from stored import page, stored

HOME = "https://e.org/"
WEB = {
    HOME: page(
        "Home",
        "/a",
        "/b",
        "/old",
        "/gone",
        "/moved",
        "https://other.org/x",
        "https://www.e.org/c",
        head='<link rel="stylesheet" href="/s.css">',
    ),
    "https://e.org/a": page("A", "/", "/deep", "/gone"),
    "https://e.org/b": page("B", "/a", "https://other.org/y", "https://third.org/", "mailto:x@e.org"),
    "https://e.org/old": "/a",
    "https://e.org/moved": "/lost",
    "https://e.org/lost": 410,
    "https://e.org/gone": 404,
    "https://www.e.org/c": page("A", "https://e.org/", head='<meta name="robots" content="noindex">'),
    "https://e.org/deep": page("B", "/a", "https://other.org/y", "https://third.org/", "mailto:x@e.org"),
}


@pytest.fixture
def folder(tmp_path):
    return stored(tmp_path / "e.org.periplus", WEB, [HOME])


@pytest.fixture
def collection(folder):
    with periplus.open(folder) as opened:
        yield opened


def test_the_map_has_the_pages_of_the_site_by_depth(collection):
    site = collection.map()
    depths = {url: int(depth) for url, depth in zip(site.facts.url, site.facts.depth, strict=True)}
    assert depths == {
        HOME: 0,
        "https://e.org/a": 1,
        "https://e.org/b": 1,
        "https://www.e.org/c": 1,
        "https://e.org/deep": 2,
    }
    assert (site.key, site.depth, site.complete_to, site.running) == ("e.org", 2, 2, False)
    assert site.site_map.parent[list(site.facts.url).index("https://e.org/deep")] == list(site.facts.url).index(
        "https://e.org/a"
    )


def test_facts_are_in_the_order_of_the_pages(collection):
    site = collection.map()
    place = list(site.facts.url).index("https://www.e.org/c")
    facts = site.facts.page(place)
    assert (facts.title, facts.reason, facts.state, facts.status) == ("A", Reason.NOINDEX, State.FETCHED, 200)
    assert (facts.media_type, facts.inlinks, facts.outlinks) == ("text/html", 1, 1)
    assert facts.size_bytes == len(WEB["https://www.e.org/c"])
    assert [page.url for page in site.top(1)] == [site.facts.url[int(np.argmax(site.facts.rank))]]
    assert len(site.top(100)) == 5


def test_a_folded_tree_counts_the_omitted_pages(collection):
    tree = collection.map().tree(max_nodes=2)
    assert tree.pages == 5
    assert [child.page for child in tree.children][-1] == OTHER_PAGES


def test_both_scales_of_pagerank_give_the_same_order(collection):
    site, published = collection.map(), collection.map(scale="published")
    assert site.ranking.scores.sum() == pytest.approx(1)
    assert np.array_equal(np.argsort(site.ranking.scores), np.argsort(published.ranking.scores))
    assert collection.map(scale="published", rounds=1).ranking.rounds == 1


@pytest.mark.parametrize("wrong", [{"scale": "linear"}, {"rounds": 3}, {"damping": 1.0}, {"site": "other.org"}])
def test_invalid_arguments_of_a_map_are_refused(collection, wrong):
    with pytest.raises(UsageError):
        collection.map(**wrong)


def test_counts_by_reason_add_up(collection):
    counts = {tally.reason: tally.urls for tally in collection.counts()}
    assert counts == {
        Reason.OK: 4, Reason.NOINDEX: 1, Reason.RESOURCE: 1, Reason.SCOPE: 3, Reason.REDIRECT: 2, Reason.NOT_FOUND: 2,
    }  # fmt: skip
    status = collection.status()
    assert sum(tally.urls for tally in status.counts) == 13
    assert (status.running, status.hosts_waiting, status.hosts, len(status.runs)) == (False, 0, 4, 1)


def test_pages_are_listed_by_depth_and_url(collection):
    rows = list(collection.pages(state="fetched"))
    assert [row.url for row in rows] == [
        HOME,
        *("https://" + row for row in ("e.org/a", "e.org/b", "www.e.org/c", "e.org/deep")),
    ]
    assert (rows[0].title, rows[0].depth, rows[0].charset, rows[0].status) == ("Home", 0, "utf-8", 200)


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"status": "4xx"}, 2), ({"status": "404"}, 1), ({"reason": "redirect"}, 2), ({"depth": 0}, 1),
        ({"host": "www.e.org"}, 1),
        ({"host": "e.org:443"}, 9), ({"url": "other.org/"}, 2), ({"url": r"/[ab]$"}, 2), ({"url": "(a"}, 0),
        ({"media_type": "text/"}, 5),
        ({"media_type": "text/plain"}, 0), ({"limit": 3}, 3), ({"state": "failed", "url": "gone"}, 1),
    ],
)  # fmt: skip
def test_filters_select_pages(collection, filters, count):
    assert len(list(collection.pages(**filters))) == count


@pytest.mark.parametrize("wrong", [{"state": "lost"}, {"reason": "none"}, {"status": "4x"}])
def test_an_invalid_filter_is_refused(collection, wrong):
    with pytest.raises(UsageError):
        list(collection.pages(**wrong))


def test_links_have_source_target_and_anchor_text(collection):
    rows = list(collection.links(target="https://e.org/gone"))
    assert [(row.source, row.anchor, row.target_reason, row.target_status) for row in rows] == [
        (HOME, "to gone", "not-found", 404),
        ("https://e.org/a", "to gone", "not-found", 404),
    ]
    assert {row.target for row in collection.links(external=True)} == {
        "https://other.org/x",
        "https://other.org/y",
        "https://third.org/",
    }
    assert {row.target for row in collection.links(broken=True)} == {"https://e.org/gone", "https://e.org/lost"}
    assert [row.kind for row in collection.links(source="https://e.org/old")] == ["redirect"]
    assert [row.target for row in collection.links(kind="style")] == ["https://e.org/s.css"]
    assert [(row.why, row.text) for row in collection.bad_links(source="https://e.org/b")] == [
        ("mailto", "mailto:x@e.org")
    ]


def test_a_status_class_is_a_range():
    assert (status_range("404"), status_range("4xx"), status_range("50X")) == ((404, 404), (400, 499), (500, 509))
    for wrong in ("", "x", "4040", "abc", "²00"):
        with pytest.raises(UsageError):
            status_range(wrong)


def test_the_report_lists_broken_links_and_redirects(folder):
    from periplus.api.report import report_data

    with contextlib.closing(reading.connect(folder)) as connection:
        data = report_data(SqliteReader(connection), "", 0.0)
    dead = [(link.target, link.reason, [holder.url for holder in link.holders]) for link in data.broken]
    assert dead == [
        ("https://e.org/gone", Reason.NOT_FOUND, [HOME, "https://e.org/a"]),
        ("https://e.org/moved", Reason.NOT_FOUND, [HOME]),  # as in the page; it redirects to a missing page
    ]
    assert data.broken[0].holders[0].anchor == "to gone"
    assert [(item.source, item.target, item.links) for item in data.chains] == [
        ("https://e.org/moved", "https://e.org/lost", 1), ("https://e.org/old", "https://e.org/a", 1),
    ]  # fmt: skip
    assert [(tally.name, tally.pages) for tally in data.external] == [("other.org", 3), ("third.org", 2)]
    assert [(group.url, [page.url for page in group.pages]) for group in data.duplicates] == [
        ("https://e.org/b", ["https://e.org/deep"])
    ]
    assert [(depth.fetched, depth.discovered) for depth in data.depths] == [(1, 0), (3, 0), (1, 0)]
    assert [(tally.name, tally.pages) for tally in data.hosts] == [("e.org:443", 4), ("www.e.org:443", 1)]
    assert {tally.name for tally in data.media} == {"text/html"}
    assert data.finished > 0
    broken = next(group for group in data.groups if group.kind.code == "broken-link")
    assert (broken.total, broken.pages) == (1, 2)
    assert [(fault.cause, fault.pages, [issue.url for issue in fault.issues]) for fault in broken.faults] == [
        ("https://e.org/gone", 2, [HOME, "https://e.org/a"])
    ]


def test_links_to_a_redirect_loop_are_broken(tmp_path):
    folder = stored(tmp_path, {HOME: page("Home", "/1"), "https://e.org/1": "/2", "https://e.org/2": "/1"}, [HOME])
    from periplus.api.report import report_data

    with contextlib.closing(reading.connect(folder)) as connection:
        dead = report_data(SqliteReader(connection), "", 0.0).broken
    assert [(link.target, link.reason) for link in dead] == [("https://e.org/1", Reason.BAD_ANSWER)]


def test_the_report_is_written_to_the_given_path(collection, folder, tmp_path):
    assert collection.report() == folder / "report.html"
    assert collection.report(tmp_path / "r.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_a_start_that_redirects_leads_to_the_home_page(tmp_path):
    folder = stored(
        tmp_path, {"http://e.org/": "https://www.e.org/", "https://www.e.org/": page("Home", "/a")}, ["http://e.org/"]
    )
    with periplus.open(folder) as collection:
        site = collection.map()
    assert (site.facts.url[site.site_map.home], site.key) == ("https://www.e.org/", "e.org")
    assert site.complete_to == 0


def test_a_map_of_several_sites_needs_the_name_of_one(tmp_path):
    web = {HOME: page("E", "/a"), "http://localhost:8000/": page("L", "/b", "https://e.org/a")}
    folder = stored(tmp_path, web, [HOME, "http://localhost:8000/"])
    with periplus.open(folder) as collection:
        with pytest.raises(UsageError, match=r"2 sites:\n  e\.org\n  localhost:8000"):
            collection.map()
        assert list(collection.map("localhost:8000").facts.url) == ["http://localhost:8000/", "http://localhost:8000/b"]
        assert list(collection.map("e.org").facts.url) == [HOME, "https://e.org/a"]


@pytest.mark.parametrize(
    ("web", "said"),
    [
        ({HOME: 404}, "not found"),
        ({HOME: 0}, "no answer"),
        ({}, "waiting"),
        ({HOME: "https://else.org/"}, "Start there"),
    ],
)
def test_a_site_without_home_page_has_no_map_and_the_error_says_why(tmp_path, web, said):
    folder = stored(tmp_path, web, [HOME], state="failed")
    with periplus.open(folder) as collection:
        with pytest.raises(UsageError, match=said):
            collection.map()
        assert "No page was fetched" in collection.report().read_text("utf-8")


def test_a_single_run_cannot_be_compared_and_the_error_says_what_to_do(folder):
    with pytest.raises(UsageError, match=r"run 1 is the only one.*periplus refresh"):
        compare_runs(folder)


def test_during_a_crawl_the_map_ends_at_the_last_complete_depth(tmp_path):
    web = {HOME: page("Home", "/a", "/b"), "https://e.org/a": page("A", "/c"), "https://e.org/b": page("B")}
    folder = stored(tmp_path, web, [HOME], state="running")
    with periplus.open(folder) as collection:
        stopped = collection.map()
        with contextlib.closing(SqliteCrawlStore(folder, 1, Budget(), Storage())) as store:
            store.join(os.getpid(), time.time())
            running = collection.map()
    assert (stopped.complete_to, stopped.shown_depth, stopped.depth) == (1, -1, 2)
    assert (running.complete_to, running.shown_depth) == (1, 1)
    assert "running; complete down to depth 1" in "\n".join(running.head())
    assert "stopped; complete down to depth 1" in "\n".join(stopped.head())
    assert [child.page == OTHER_PAGES for child in running.tree().children[0].children] == [True]


def test_a_crawl_can_write_while_a_collection_is_read(folder):
    with periplus.open(folder) as collection:
        rows = iter(collection.pages())
        next(rows)
        stored(folder, {"https://e.org/new": page("New")}, ["https://e.org/new"])
        assert len(list(rows)) == 12
        assert len(collection.runs()) == 2


def test_a_time_limit_stops_a_long_query(folder):
    with (
        contextlib.closing(reading.connect(folder)) as connection,
        pytest.raises(StoreError, match=r"longer than 0\.05 s"),
        reading.limit_reads(connection, 0.05),
    ):
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        ).fetchone()


def test_a_time_limit_counts_cpu_time(folder):
    """A query that waits, as on a loaded machine, is not stopped."""
    steps = 3 * reading.LIMIT_STEPS
    with contextlib.closing(reading.connect(folder)) as connection, reading.limit_reads(connection, 0.5):
        connection.create_function("wait", 0, lambda: time.sleep(0.3) or 1)
        question = (
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {steps}) "
            f"SELECT sum(wait()) FROM n WHERE i % {steps // 3} = 0"
        )
        assert connection.execute(question).fetchone() == (3,)


def test_a_missing_collection_and_an_unknown_attribute_raise(tmp_path):
    with pytest.raises(NoCollection):
        periplus.open(tmp_path)
    with pytest.raises(AttributeError):
        periplus.nothing  # noqa: B018
    assert all(getattr(periplus, name) for name in periplus.__all__)


def test_the_map_has_the_parameters_of_the_run(tmp_path):
    folder = stored(tmp_path, WEB, [HOME], settings=settings_from({"max_depth": 7, "include": ("a", "b")}))
    with periplus.open(folder) as collection:
        assert collection.map().about.parameters == (("include", "a b"), ("max_depth", "7"))
    assert "numpy" in sys.modules


def test_a_run_killed_before_its_first_page_has_no_map(tmp_path):
    schema.create(tmp_path)
    with periplus.open(tmp_path) as collection:
        assert (collection.counts(), list(collection.pages()), list(collection.links())) == ([], [], [])
        with pytest.raises(UsageError, match="no run yet"):
            collection.map()
    FolderHome(tmp_path).begin_run("crawl", [HOME], settings_from({}), 1.0)
    with periplus.open(tmp_path) as collection:
        with pytest.raises(UsageError, match="never requested"):
            collection.map()
        assert "No page was fetched" in collection.report().read_text("utf-8")


def test_a_url_without_scheme_gets_the_scheme_of_a_known_page(tmp_path):
    seen = {"http://e.org/": page("Home"), "https://f.org/": page("Far"), "http://f.org/": "https://f.org/"}
    folder = stored(tmp_path / "plain.periplus", seen, list(seen))
    with periplus.open(folder) as opened:
        assert opened.page("e.org").url == "http://e.org/"
        assert opened.page("f.org").url == "https://f.org/"
        with pytest.raises(UsageError, match=r"https://g\.org/"):
            opened.page("g.org")


def test_a_closed_collection_and_a_too_large_number_have_their_own_errors(folder):
    with periplus.open(folder) as opened, pytest.raises(UsageError, match="too large"):
        list(opened.pages(limit=2**63))
    with pytest.raises(UsageError, match="was closed"):
        opened.status()
    with pytest.raises(UsageError, match="was closed"):
        list(opened.pages())
