"""The learned order of a site's pages."""

from __future__ import annotations

import pytest

from periplus.model.web import Url
from periplus.schedule.order import PageOrder, Sighting


def sighting(path: str, anchor: str = "", depth: int = 1) -> Sighting:
    return Sighting(Url(f"http://example.org{path}"), anchor, "main", 0, 0, depth)


def taken(order: PageOrder) -> int | None:
    """Removes and returns the first page of the order, or None."""
    for number in order.best().tolist():
        order.drop(number)
        return number
    return None


def order_of(order: PageOrder) -> list[int]:
    found = []
    while (number := taken(order)) is not None:
        found.append(number)
    return found


def test_each_page_is_returned_once():
    order = PageOrder()
    numbers = [order.offer(sighting(f"/a/{page}.html")) for page in range(150)]
    assert sorted(order_of(order)) == numbers


def test_a_directory_whose_pages_have_links_comes_first():
    """Of two directories only /b has links, so except for every fifth page only /b is requested."""
    order = PageOrder()
    for page in range(100):
        order.offer(sighting(f"/{'ab'[page % 2]}/{page}.html"))
    asked = []
    for _ in range(50):
        number = taken(order)
        asked.append(number)
        order.learn(number, 4 * (number % 2))
    assert sum(number % 2 for number in asked[10:]) >= 30


def test_pages_with_the_same_anchor_text_share_evidence():
    order = PageOrder()
    for page in range(60):
        order.offer(sighting(f"/x{page}.html", anchor="Members" if page % 3 else "Minutes"))
    asked = []
    for _ in range(30):
        number = taken(order)
        asked.append(number)
        order.learn(number, 6 * (number % 3 == 0))
    assert sum(number % 3 == 0 for number in asked) >= 15


def test_without_evidence_the_order_is_breadth_first():
    order = PageOrder()
    numbers = [order.offer(sighting(f"/{page}.html")) for page in range(20)]
    assert order_of(order) == numbers


def test_a_page_with_the_anchor_text_links_comes_first():
    order = PageOrder()
    for page in range(5):
        order.offer(sighting(f"/{page}.html"))
    links = order.offer(sighting("/6.html", anchor="Links"))
    assert taken(order) == links


def test_looking_at_the_order_does_not_change_it():
    def played(looks: int) -> list[int]:
        order = PageOrder()
        asked = []
        for page in range(200):
            order.offer(sighting(f"/{page % 7}/{page}.html", anchor=f"word{page % 5}"))
        while (number := taken(order)) is not None:
            asked.append(number)
            order.learn(number, number % 4)
            for _ in range(looks):
                order.best()
        return asked

    assert played(0) == played(3)


def test_an_empty_order_has_no_next_page():
    assert taken(PageOrder()) is None


@pytest.mark.parametrize("links", [0, 1, 10**9])
def test_any_yield_is_accepted(links: int):
    order = PageOrder()
    number = order.offer(sighting("/" + "\ud800é" * 400))
    order.drop(number)
    order.learn(number, links)
    assert taken(order) is None
