"""What other pages link to under many addresses is fetched once, whatever its families brought; traps gain nothing by it."""

from __future__ import annotations

from collections import deque

import pytest

from doubled import Site
from periplus.model.web import Url
from periplus.schedule.traps import TrapWatch
from periplus.schedule.vouching import BREEDERS, Vouching
from periplus.urls.families import families

HOST = "https://w.example"
HOME = "http://a.test/"


def shown(name: str) -> str:
    return f"{name}\nThis is the text of {name}, a page of its own."


def crawl(site: Site) -> list[str]:
    """The contents fetched, from two hosts with a watch each; those refused are asked about again until a round brings nothing."""
    watches = {host: TrapWatch(40) for host in ("a.test", "www.a.test")}
    todo, refused, seen, fetched = deque([HOME]), list[str](), {HOME}, list[str]()
    before = -1
    while todo or len(fetched) > before:
        if not todo:
            todo, refused, before = deque(refused), [], len(fetched)
            continue
        url = todo.popleft()
        host = url.split("/")[2]
        if watches[host].admit(Url(url)) is not None:
            refused.append(url)
            continue
        fetched.append(site.name(url))
        new = [link for link in dict.fromkeys(site.links(fetched[-1])) if link not in seen]
        seen.update(new)
        todo.extend(new)
        watches[host].learn(Url(url), shown(fetched[-1]), [Url(link) for link in new if link.split("/")[2] == host])
    return fetched


@pytest.mark.parametrize("seed", range(1, 6))
def test_ours_of_a_site_with_seventeen_addresses_per_page_none_is_lost(seed):
    """Its pages say nothing but their names: without a word of others 20 to 285 of 311 were lost."""
    site = Site(seed)
    fetched = crawl(site)
    assert set(site.names) <= set(fetched)
    assert len(fetched) < 1000  # of some 5,300 addresses


def linked(vouching: Vouching, source: str, *links: str) -> bool:
    return vouching.linked(Url(HOST + source), {Url(HOST + link): families(Url(HOST + link)) for link in links})


def due(vouching: Vouching, path: str) -> bool:
    return vouching.is_due(Url(HOST + path), 0)


def met_by_many(vouching: Vouching) -> None:
    """Pages enough that the host does not count as doubled."""
    linked(vouching, "/", *(f"/other/{number}" for number in range(20)))


def test_two_pages_and_two_addresses_make_a_page_due_and_one_fetch_ends_it():
    vouching = Vouching()
    met_by_many(vouching)
    linked(vouching, "/a/x", "/b/y")
    assert not due(vouching, "/b/y")
    linked(vouching, "/c/x", "/b/y/")
    assert due(vouching, "/b/y?utm_source=mail")
    assert vouching.fetched(Url(HOST + "/b/y/index.html"))
    assert not due(vouching, "/b/y")


def test_one_page_does_not_vouch_twice():
    vouching = Vouching()
    met_by_many(vouching)
    linked(vouching, "/a/x", "/b/y", "/b/y/", "/b/y/index.html")
    assert not due(vouching, "/b/y")


@pytest.mark.parametrize(("source", "link"), [("/cal?m=1", "/cal?m=2"), ("/e/2026/1", "/e/2026/2"), ("/tree/a", "/tree/a/b")])
def test_neighbours_do_not_vouch(source, link):
    vouching = Vouching()
    met_by_many(vouching)
    linked(vouching, source, link)
    linked(vouching, source.replace("1", "3").replace("tree/a", "tree/a/"), f"{link}{'&' if '?' in link else '?'}utm_source=x")
    assert not due(vouching, link)


def test_pages_that_only_breed_end_the_vouching_until_fresh_ones_outnumber_them():
    vouching = Vouching()
    met_by_many(vouching)
    linked(vouching, "/a/x", "/b/y")
    linked(vouching, "/c/x", "/b/y/")
    for _ in range(BREEDERS):
        vouching.bred()
    assert not due(vouching, "/b/y")
    assert vouching.is_due(Url(HOST + "/b/y"), 1)
