"""The learned order of one site's pages."""

from __future__ import annotations

import pytest

from periplus.model.web import Url
from periplus.schedule.order import PageOrder, Sighting


def sighting(path: str, anchor: str = "", depth: int = 1) -> Sighting:
    return Sighting(Url(f"http://example.org{path}"), anchor, "main", 0, 0, depth)


def taken(order: PageOrder) -> int | None:
    """The first page of the order, which waits no longer; None: none waits."""
    for number in order.best().tolist():
        order.drop(number)
        return number
    return None


def order_of(order: PageOrder) -> list[int]:
    found = []
    while (number := taken(order)) is not None:
        found.append(number)
    return found


def test_each_page_comes_once_and_none_is_forgotten():
    order = PageOrder()
    numbers = [order.offer(sighting(f"/a/{page}.html")) for page in range(150)]
    assert sorted(order_of(order)) == numbers


def test_what_brought_links_brings_its_directory_forward():
    """Pages of two directories, one by one; only /b brings anything: soon it alone is asked for,
    but for each fifth page.
    """
    order = PageOrder()
    for page in range(100):
        order.offer(sighting(f"/{'ab'[page % 2]}/{page}.html"))
    asked = []
    for _ in range(50):
        number = taken(order)
        asked.append(number)
        order.learn(number, 4 * (number % 2))
    assert sum(number % 2 for number in asked[10:]) >= 30


def test_siblings_in_words_speak_for_one_another():
    order = PageOrder()
    for page in range(60):
        order.offer(sighting(f"/x{page}.html", anchor="Members" if page % 3 else "Minutes"))
    asked = []
    for _ in range(30):
        number = taken(order)
        asked.append(number)
        order.learn(number, 6 * (number % 3 == 0))
    assert sum(number % 3 == 0 for number in asked) >= 15


def test_nothing_known_is_breadth_first():
    order = PageOrder()
    numbers = [order.offer(sighting(f"/{page}.html")) for page in range(20)]
    assert order_of(order) == numbers


def test_a_page_that_names_links_comes_before_its_neighbours():
    order = PageOrder()
    for page in range(5):
        order.offer(sighting(f"/{page}.html"))
    links = order.offer(sighting("/6.html", anchor="Links"))
    assert taken(order) == links


def test_the_same_history_gives_the_same_order_however_often_it_is_looked_at():
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
def test_any_yield_is_taken(links: int):
    order = PageOrder()
    number = order.offer(sighting("/" + "\ud800é" * 400))
    order.drop(number)
    order.learn(number, links)
    assert taken(order) is None
