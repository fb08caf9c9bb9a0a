"""Does a refresh report nothing where nothing changed, though no two answers of a page are alike?"""

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
    """A home page that lists a shop whose pages carry a session id, a clock and a counter: others in each answer."""

    def __init__(self):
        self.site, self.answers, self.prices = Site("a.test"), itertools.count(1), dict.fromkeys(ITEMS, 20)
        self.words = dict.fromkeys(ITEMS, "sound")
        self.site.add(Page("/", "Home", ("Ships and what belongs to them.",)))
        self.site.answer("/shop", self.page)
        self.site.answer("/enter", self.door)
        for item in ITEMS:
            self.site.answer(f"/{item}", self.page, linked_from=None)

    def sid(self):
        return hashlib.md5(str(next(self.answers)).encode(), usedforsecurity=False).hexdigest()

    def page(self, asked):
        sid = self.sid()
        number = next(self.answers)
        links = "".join(f'<li><a href="/{item}?sid={sid}">{item}</a>' for item in ITEMS)
        item = asked.path.partition("?")[0].strip("/")
        says = f"A {self.words[item]} {item} for {self.prices[item]} crowns." if item in ITEMS else "All that we sell."
        return Answer(
            body=f"<title>{item}</title><h1>{item}</h1><p>{says}<ul>{links}</ul><form><input type=hidden value={sid}>"
            f"</form><p>You are visitor {number:,}. It is {number // 60 % 24}:{number % 60:02}.".encode()
        )

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


@pytest.mark.parametrize("change", ["price", "word"])
def test_a_number_or_a_word_that_changes_on_a_volatile_page_is_seen(shop, change):
    site, left, _ = shop
    known = set(left.urls)
    refreshed(left.folder)
    if change == "price":
        site.prices["barge"] = 21
    else:
        site.words["barge"] = "leaky"
    counts = found(refreshed(left.folder))
    pages = {url.partition("?")[0].rpartition("/")[2] for page in differences(left).changed for url in [page.url]}
    assert pages == {"barge"}
    assert counts["changed"] == sum("/barge" in url for url in known if left.reasons[url] == "ok")


def test_only_a_page_that_may_be_volatile_is_asked_for_twice(shop):
    site, left, server = shop
    before = len(server.log)
    site.site.pages["/"].paragraphs = ("Boats and what belongs to them.",)
    site.site._rendered.clear()
    refreshed(left.folder)
    asked = [entry.target for entry in list(server.log)[before:]]
    assert asked.count("/") == 1
    assert asked.count("/shop") == asked.count("/enter") == 2


def test_a_redirect_that_changes_its_session_alone_leads_where_it_led(shop):
    _, left, _ = shop
    (row,) = (row for row in left.urls.values() if row.url.endswith("/enter"))
    refreshed(left.folder)
    assert left.urls[row.url] == row
