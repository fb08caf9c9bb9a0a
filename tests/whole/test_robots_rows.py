"""Crawls obey robots.txt: every row of the table of common errors of crawlers, checked in the server log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from voyage import Collection, crawled, settings_for

from periplus.api.crawling import CrawlOrder, crawl
from periplus.errors import UsageError
from periplus.model.visit import Reason
from periplus.store.sqlite import schema
from periplus.urls.canonical import canonical
from testweb import Page, Reset, Server, Site, Web, robots, serve
from testweb.wire import Answer, raw

ROWS = robots.CASES
HOSTS = {name: f"{name.replace('.', '-')}.test" for name in ROWS}


def rows_web() -> Web:
    """A site for each row: four pages, / with links to the others, and the row's answer to /robots.txt."""
    web = Web()
    for name, case in ROWS.items():
        site = web.site(HOSTS[name])
        site.add(Page("/", f"Rules of {name}", ("Four pages and one set of rules.",)))
        for path in robots.PATHS[1:]:
            site.add(Page(path, f"Quay {path[1]} of {name}", (f"This is quay {path[1]}.",)), "/")
        site.answer("/robots.txt", case.reply, None, None)
        for host, path, reply in case.extra:
            web.site(HOSTS[name] if host == robots.HOST else host).answer(path, reply, None, None)
    return web


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Collection]]:
    """All rows, crawled at once."""
    with serve(rows_web()) as server:
        collection, _ = crawled(tmp_path_factory.mktemp("rows"), server, *HOSTS.values())
        yield server, collection


@pytest.mark.parametrize("name", ROWS)
def test_rfc9309_row(rows: tuple[Server, Collection], name: str) -> None:
    """The requests are those allowed by the row; other URLs have a reason."""
    server, collection = rows
    case, host = ROWS[name], HOSTS[name]
    asked = {target for target in server.log.targets(host) if target in robots.PATHS}
    assert asked == case.fetched, case.source
    for path in robots.PATHS:
        row = collection.urls.get(server.url(host, path))
        if path in case.fetched:
            assert row is not None and row.reason is Reason.OK
        elif row is not None:
            assert row.reason is case.reason
            assert row.rule, "which rule?"


def test_rows_leave_nothing_waiting(rows: tuple[Server, Collection]) -> None:
    assert rows[1].sane() == []
    assert not [row for row in rows[1].urls.values() if row.reason is Reason.WAITING]


def test_the_line_that_disallows_is_shown(rows: tuple[Server, Collection]) -> None:
    server, collection = rows
    url = server.url(HOSTS["bom"], "/b.html")
    assert collection.urls[url].rule == "robots.txt line 2: Disallow: /b.html"
    assert [visit[2:] for visit in collection.visits(url)] == [("skipped", 0, "robots: line 2: Disallow: /b.html")]


def test_redirected_rules_are_fetched_once_and_apply_only_to_the_first_host(rows: tuple[Server, Collection]) -> None:
    server, collection = rows
    assert server.log.targets(robots.OTHER) == ["/rules.txt"]
    assert server.url(robots.OTHER, "/rules.txt") not in collection.urls, "a robots.txt is no page"


def test_rfc9309_unreachable_rules_are_retried_and_then_given_up(rows: tuple[Server, Collection]) -> None:
    server, _ = rows
    for name in ("503", "reset", "empty-reply", "429"):
        targets = server.log.targets(HOSTS[name])
        assert set(targets) == {"/robots.txt"} and 2 <= len(targets) <= 4, name


def plain_site(host: str, rules: str, pages: int = 3) -> Site:
    site = Site(host)
    site.add(Page("/", f"Home of {host}", ("A harbour.",)))
    for number in range(1, pages):
        site.add(Page(f"/{number}.html", f"Berth {number} of {host}", (f"Berth {number}.",)), "/")
    robots.disallow(site, rules)
    return site


def test_crawl_delay_applies_from_robots_txt_on(tmp_path: Path) -> None:
    """Gaps in the server log, including the first: robots.txt is a request too."""
    with serve(plain_site("slow.test", "User-agent: *\nCrawl-delay: 0.6\n")) as server:
        crawled(tmp_path, server, "slow.test", sitemaps=False)
        assert server.log.targets("slow.test") == ["/robots.txt", "/", "/1.html", "/2.html"]
        assert min(server.log.gaps("slow.test")) >= 0.59


def test_a_crawl_delay_above_the_limit_excludes_the_host(tmp_path: Path) -> None:
    """Only for foreign hosts, here `other.test`."""
    web = Web([plain_site("a.test", ""), plain_site("other.test", "User-agent: *\nCrawl-delay: 900\n")])
    with serve(web) as server:
        collection, _ = crawled(tmp_path, server, "a.test", "other.test", mine=("a.test",))
        assert server.log.targets("other.test") == ["/robots.txt"]
        row = collection.urls[server.url("other.test")]
        assert row.reason is Reason.ROBOTS and "Crawl-delay: 900" in row.rule


def test_page_rules_meta_and_header(tmp_path: Path) -> None:
    """meta robots, X-Robots-Tag, rel=nofollow, base, frames, refresh: see `testweb.robots.page_rules_site`."""
    with serve(robots.page_rules_site()) as server:
        collection, _ = crawled(tmp_path, server, "rules-of-pages.test", delay_s=0.005)
        truth = server.truth
        for url in truth.pages:
            assert collection.reasons.get(url) is truth.reasons.get(url, Reason.OK), url
        for url, reason in truth.reasons.items():
            if reason is Reason.NOFOLLOW:
                assert server.log.count(url.partition("7.0.0.1")[2] or "/" + url.split("/", 3)[3]) == 0


def test_rfc9309_2_4_expired_rules_are_fetched_again(tmp_path: Path) -> None:
    """A copy of robots.txt from yesterday is not used; a valid copy is."""
    with serve(plain_site("a.test", "User-agent: *\nDisallow: /2.html\n")) as server:
        collection, _ = crawled(tmp_path, server, "a.test", max_pages=1)
        crawled(tmp_path, server, "a.test", max_pages=1)
        assert server.log.count("/robots.txt") == 1
        age(collection)
        crawled(tmp_path, server, "a.test")
        assert server.log.count("/robots.txt") == 2


def age(collection: Collection) -> None:
    """Moves the stored times back by a day."""
    import sqlite3

    with sqlite3.connect(collection.folder / "collection.db") as connection:
        connection.execute("UPDATE robots SET fetched = fetched - 90000, expires = expires - 90000")
    connection.close()


def test_the_site_is_crawled_if_its_rules_recover_within_the_run(tmp_path: Path) -> None:
    """503 twice, then rules; and the same after a connection reset."""
    web = Web([plain_site("a.test", ""), plain_site("b.test", "")])
    rules = robots.text("User-agent: *\nDisallow: /2.html\n")
    web.sites["a.test"].answer("/robots.txt", lambda asked: rules if asked.times >= 2 else Answer(503), None, None)
    web.sites["b.test"].answer("/robots.txt", lambda asked: rules if asked.times >= 1 else raw(Reset()), None, None)
    with serve(web) as server:
        collection, end = crawled(tmp_path, server, "a.test", "b.test")
        assert end.state == "done"
        for host in web.sites:
            assert collection.reasons[server.url(host, "/1.html")] is Reason.OK
            assert collection.reasons[server.url(host, "/2.html")] is Reason.ROBOTS


def test_rules_redirected_to_a_failing_host_are_given_up(tmp_path: Path) -> None:
    """Regression: these rules were requested endlessly."""
    web = Web([plain_site("a.test", "")])
    web.sites["a.test"].answer(
        "/robots.txt", Answer(301, headers=(("Location", "http://b.test:@PORT@/rules.txt"),)), None, None
    )
    web.site("b.test").answer("/rules.txt", Answer(500), None, None)
    with serve(web) as server:
        schema.create(tmp_path)  # a collection that a crawl creates and cannot fill is deleted
        collection, end = crawled(tmp_path, server, "a.test")
        assert collection.reasons[server.url("a.test")] is Reason.ROBOTS_UNREACHABLE
        assert end.state == "failed" and set(server.log.targets("a.test")) == {"/robots.txt"}


def test_ours_rules_may_be_ignored_only_on_own_hosts(tmp_path: Path) -> None:
    web = Web(
        [plain_site("a.test", "User-agent: *\nDisallow: /\n"), plain_site("b.test", "User-agent: *\nDisallow: /\n")]
    )
    with serve(web) as server:
        order = CrawlOrder(
            tmp_path, (canonical(server.url("a.test")),), settings_for(server, mine=(), ignore_robots=True)
        )
        with pytest.raises(UsageError, match="--mine"):
            crawl(order, lambda progress: False)
        collection, _ = crawled(tmp_path, server, "a.test", "b.test", mine=("A.test",), ignore_robots=True)
        assert "/robots.txt" not in server.log.targets("a.test")
        assert collection.reasons[server.url("a.test", "/1.html")] is Reason.OK
        assert server.log.targets("b.test") == ["/robots.txt"]
        assert '"ignore_robots": true' in collection.ask("SELECT settings FROM run")[0][0]


def test_thousands_of_disallowed_links_are_decided_without_a_request(tmp_path: Path) -> None:
    """In batches: they are stored as they are found, not collected first."""
    site = plain_site("a.test", "User-agent: *\nDisallow: /no/\n")
    for number in range(3000):
        site.link("/", f"/no/{number}", f"No {number}")
    with serve(site) as server:
        collection, end = crawled(tmp_path, server, "a.test", commit_pages=100)
        assert end.state == "done" and len(server.log.of("a.test")) == 5
        assert sum(reason is Reason.ROBOTS for reason in collection.reasons.values()) == 3000
        assert collection.sane() == []


def test_urls_are_requested_when_robots_txt_allows_them_later(tmp_path: Path) -> None:
    """A new run checks excluded URLs again after the rules expired."""
    site = plain_site("a.test", "User-agent: *\nDisallow: /1.html\n")
    site.answer(
        "/robots.txt",
        lambda asked: robots.text("User-agent: *\nDisallow: /1.html\n" if asked.times == 0 else ""),
        None,
        None,
    )
    with serve(site) as server:
        url = server.url("a.test", "/1.html")
        collection, _ = crawled(tmp_path, server, "a.test")
        assert collection.reasons[url] is Reason.ROBOTS
        age(collection)
        crawled(tmp_path, server, "a.test")
        assert collection.reasons[url] is Reason.OK
        assert time.time() > collection.ask("SELECT fetched FROM robots")[0][0] > time.time() - 60
