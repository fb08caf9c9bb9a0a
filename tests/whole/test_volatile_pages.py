"""A refresh reports no change for pages whose answers always differ."""

from __future__ import annotations

import hashlib
import itertools

import pytest
from test_refresh import found, refreshed
from voyage import crawled

from periplus.api.comparison import compare_runs
from testweb import Site, serve
from testweb.site import Page
from testweb.wire import Answer

ITEMS = ("anchor", "barge", "compass", "dinghy")


class Shop:
    """Pages with session ids in links, and one with a clock and a counter: different in each answer."""

    def __init__(self):
        self.site, self.answers = Site("a.test"), itertools.count(1)
        self.prices, self.words = dict.fromkeys((*ITEMS, "ferry"), 20), dict.fromkeys((*ITEMS, "ferry"), "sound")
        self.site.add(Page("/", "Home", ("Ships and what belongs to them.",)))
        self.site.answer("/shop", self.page)
        self.site.answer("/enter", self.door)
        self.site.answer("/ferry", self.ferry)
        for item in ITEMS:
            self.site.answer(f"/{item}", self.page, linked_from=None)

    def sid(self):
        return hashlib.md5(str(next(self.answers)).encode(), usedforsecurity=False).hexdigest()

    def offer(self, item):
        return f"<title>{item}</title><h1>{item}</h1><p>A {self.words[item]} {item} for {self.prices[item]} crowns."

    def page(self, asked):
        sid, item = self.sid(), asked.path.partition("?")[0].strip("/")
        links = "".join(f'<li><a href="/{item}?sid={sid}">{item}</a>' for item in ITEMS)
        says = self.offer(item) if item in ITEMS else "<title>Shop</title><p>All that we sell."
        return Answer(body=f"{says}<ul>{links}</ul><form><input type=hidden value={sid}></form>".encode())

    def ferry(self, asked):
        number = next(self.answers)
        clock = f"<p>You are visitor {number:,}. It is {number // 60 % 24}:{number % 60:02}. Request {self.sid()}."
        return Answer(body=(self.offer("ferry") + clock).encode())

    def door(self, asked):
        return Answer(302, headers=(("Location", f"/shop?sid={self.sid()}"),))


@pytest.fixture
def shop(tmp_path):
    shop = Shop()
    with serve(shop.site) as server:
        left, _ = crawled(tmp_path / "c", server, "a.test", delay_s=0.0)
        yield shop, left, server


def differences(left):
    return compare_runs(left.folder)


def test_three_refreshes_of_an_unchanged_site_store_and_report_nothing(shop):
    _, left, _ = shop
    urls, links = left.urls, left.links
    kept = "SELECT (SELECT count(*) FROM page_history), (SELECT count(*) FROM link_history), (SELECT count(*) FROM url)"
    before, visits = left.ask(kept), left.ask("SELECT count(*) FROM visit WHERE url_id <> 0")
    for _ in range(3):
        assert found(refreshed(left.folder)).keys() == {"unchanged"}
        assert differences(left).is_empty
    assert (left.urls, left.links, left.ask(kept)) == (urls, links, before)
    assert left.ask("SELECT count(*) FROM visit WHERE url_id <> 0") == visits
    assert left.sane() == []


@pytest.mark.parametrize("item", ["barge", "ferry"])
@pytest.mark.parametrize("change", ["price", "word"])
def test_only_the_changed_number_or_word_of_a_volatile_page_is_reported(shop, change, item):
    site, left, _ = shop
    known = set(left.urls)
    if change == "price":
        site.prices[item] = 21
    else:
        site.words[item] = "leaky"
    counts, changes = found(refreshed(left.folder)), differences(left)
    pages = {url for url in known if f"/{item}" in url and left.reasons[url] == "ok"}
    assert {page.url for page in changes.changed} == pages
    assert {field.field for page in changes.changed for field in page.changes} - {"size"} == {"text"}
    assert not changes.links_added
    assert not changes.links_removed
    assert counts == {"changed": len(pages), "unchanged": counts["unchanged"]}
    assert set(left.urls) == known
    assert found(refreshed(left.folder)).keys() == {"unchanged"}


def test_only_possibly_volatile_pages_are_requested_twice(shop):
    site, left, server = shop
    before = len(server.log)
    site.site.pages["/"].paragraphs = ("Boats and what belongs to them.",)
    site.site.rendered.clear()
    refreshed(left.folder)
    asked = [entry.target for entry in list(server.log)[before:]]
    assert asked.count("/") == 1
    assert asked.count("/ferry") == asked.count("/enter") == 2


def test_a_redirect_with_a_new_session_id_is_unchanged(shop):
    _, left, _ = shop
    (row,) = (row for row in left.urls.values() if row.url.endswith("/enter"))
    refreshed(left.folder)
    assert left.urls[row.url] == row
