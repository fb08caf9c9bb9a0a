"""The MCP tool that crawls: within its budget, the collection's hosts and the collection's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from periplus.api.functions import crawl
from periplus.api.homes import collections_at
from periplus.errors import UsageError
from periplus.model.ports import RunRecord
from periplus.settings import Settings, as_values
from periplus_agents.answers import ServedCollections
from periplus_agents.crawling import CALL_S, CrawlBudget, order_of
from periplus_agents.tools import TOOLS, answer_call, tools_of
from periplus_postgres.address import Address
from stored import page, stored
from testweb import Page, Server, Web, serve

LARGE = "words of a long page " * 5_000


def web() -> Web:
    sites = Web()
    for host in ("a.test", "b.test"):
        site = sites.site(host)
        site.add(Page("/", f"Home of {host}"))
        for number in range(6):
            site.add(Page(f"/{number}.html", f"Page {number} of {host}", (LARGE,)), "/")
        site.link("/1.html", f"/{'secret'}.html", "secret")
        site.link("/1.html", "http://b.test:{port}/", "elsewhere")
        site.add(Page("/secret.html", "Secret"))
        site.robots = "User-agent: *\nDisallow: /secret\n"
    return sites


def collection(server: Server, place: Path | str) -> None:
    """Crawls only the home page of a.test. The linked pages wait."""
    mine = {"allow_private": True, "resolve": server.resolve, "mine": ("a.test", "b.test"), "delay_s": 0.05}
    crawl(server.url("a.test"), place, max_pages=1, index=False, **mine)


def call_crawl(place: Path | str, budget: CrawlBudget, *urls: str, **more: object) -> dict[str, object]:
    served = ServedCollections(lambda: {"a": place}, budget=budget)
    content = answer_call(served, "crawl", {"urls": list(urls), **more}).content
    assert isinstance(content, dict)
    return content


def test_named_pages_are_fetched_and_can_be_read(tmp_path):
    folder, budget = tmp_path / "a.periplus", CrawlBudget(4, 60.0, 10_000_000)
    with serve(web()) as server:
        collection(server, folder)
        done = call_crawl(folder, budget, "/3.html", server.url("a.test", "/4.html"))
        assert (done["fetched"], budget.pages) == (2, 2)
        assert done["budget_left"]["pages"] == 2
        assert server.log.targets("a.test") == ["/robots.txt", "/", "/3.html", "/4.html"]
        text = answer_call(ServedCollections(lambda: {"a": folder}), "page", {"url": "/3.html"}).content
        assert "words of a long page" in text
        call_crawl(folder, budget, "/5.html", pages=100)
        assert budget.pages == 0
        with pytest.raises(UsageError, match="budget of this server is spent"):
            call_crawl(folder, budget, "/0.html")
        assert len(server.log.targets("a.test")) == 6
        assert min(server.log.gaps("a.test")) > 0.045
        assert server.log.hosts() == {"a.test"}


def test_other_hosts_and_disallowed_pages_are_not_requested(tmp_path):
    folder = tmp_path / "a.periplus"
    with serve(web()) as server:
        server.web.sites["a.test"].answer("/robots.txt", robots(), linked_from=None)
        collection(server, folder)
        budget = CrawlBudget(20, 60.0, 10_000_000)
        for url in (
            server.url("b.test"),
            "http://127.0.0.1:1/",
            "http://a.test.evil.example/",
            "//b.test/",
            "file:///etc/passwd",
        ):
            with pytest.raises(UsageError, match=r"neither on a host of this collection|is not an address"):
                call_crawl(folder, budget, url)
        call_crawl(folder, budget, "/secret.html")
        assert "/secret.html" not in server.log.targets("a.test")
        assert server.log.hosts() == {"a.test"}
        named = CrawlBudget(1, 60.0, 10_000_000, ("b.test",))
        assert call_crawl(folder, named, server.url("b.test"))["fetched"] == 1
        assert "/" in server.log.targets("b.test")


def robots():
    from testweb.wire import Answer

    return Answer(200, b"User-agent: *\nDisallow: /secret\n", (("content-type", "text/plain"),))


def test_a_crawl_ends_at_its_limit_of_bytes(tmp_path):
    folder, budget = tmp_path / "a.periplus", CrawlBudget(100, 60.0, 1)
    with serve(web()) as server:
        collection(server, folder)
        done = call_crawl(folder, budget, "/0.html", pages=100)
        assert done["fetched"] < 6
        assert (done["state"], budget.size_bytes) == ("stopped", 0)


def test_a_collection_in_a_database_can_be_crawled_and_read(tmp_path, address: Address):
    with serve(web()) as server:
        collection(server, address.text)
        places = collections_at([address.text], tmp_path)
        assert list(places) == [address.collection]
        served = ServedCollections(lambda: places, budget=CrawlBudget(1, 60.0, 10_000_000))
        assert answer_call(served, "crawl", {"urls": ["/2.html"]}).content["fetched"] == 1
        assert "words of a long page" in answer_call(served, "page", {"url": "/2.html"}).content
        assert answer_call(served, "page", {"url": "/2.html", "as": "facts"}).content["status"] == 200
        (row,) = answer_call(served, "collections", {}).content
        assert (row["name"], row["pages"]) == (address.collection, 2)
        assert "Page 2" in answer_call(served, "map", {}).content
        assert answer_call(served, "search", {"query": "page"}).content
        assert len(answer_call(served, "rows", {"table": "pages"}).content) >= 2


def test_without_budget_or_permission_there_is_no_crawl_tool(tmp_path):
    folder = stored(tmp_path / "e.periplus", {"https://e.org/": page("Home")}, ["https://e.org/"])
    reading = ServedCollections(lambda: {"e": folder})
    crawling = ServedCollections(lambda: {"e": folder}, budget=CrawlBudget(1, 1.0, 1))
    assert tools_of(reading) == tools_of(crawling, may_crawl=False) == TOOLS
    assert tools_of(crawling).keys() == {*TOOLS, "crawl"}
    assert all(tool.reads for tool in TOOLS.values())
    assert not tools_of(crawling)["crawl"].reads
    for served, more in ((reading, {}), (crawling, {"may_crawl": False})):
        with pytest.raises(UsageError, match="no tool 'crawl'"):
            answer_call(served, "crawl", {"urls": ["https://e.org/"]}, **more)


def test_the_collections_settings_always_apply():
    def run(**settings: object) -> RunRecord:
        values = as_values(Settings()) | settings
        return RunRecord(1, "crawl", ("https://e.org/docs/",), values, 0, 0.0, 1.0, "done", "", 1, 1)

    budget = CrawlBudget(50, 500.0, 1)
    order = order_of("", [run(delay_s=3.0, scope="any", max_depth=2)], ["/x"], 7, budget)
    assert order.starts == ("https://e.org/x",)
    settings = order.settings
    assert (settings.politeness.delay_s, settings.scope.scope, settings.scope.max_depth) == (3.0, "site", 2)
    assert (settings.budget.max_pages, settings.budget.max_time_s) == (7, CALL_S)
    assert order_of("", [run(scope="prefix")], ["/x"], 1, budget).settings.scope.scope == "prefix"
    with pytest.raises(UsageError, match="a user must start it"):
        order_of("", [], ["https://e.org/"], 1, budget)
