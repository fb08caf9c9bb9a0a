"""Which fetched pages are one page under several addresses."""

from __future__ import annotations

import random

import pytest

from periplus.urls.aliases import AliasPage, merged
from periplus.urls.canonical import canonical, url_id


def page(address, body="x", text="", depth=1, names=""):
    url = canonical(address)
    return AliasPage(url_id(url), url, depth, body.encode(), (text or body).encode(), names)


def found(*pages, starts=()):
    """(twin, page) of what is merged."""
    return {(merger.alias.url, merger.page.url) for merger in merged(pages, frozenset(map(canonical, starts)))}


HOME = "https://e.org/"


@pytest.mark.parametrize(
    "twin",
    [
        "http://e.org/",
        "https://www.e.org/",
        "http://www.e.org/index.html",
        "https://e.org/index.php",
        "https://e.org/Default.aspx",
    ],
)
def test_equal_bytes_at_addresses_that_differ_in_scheme_www_or_index_file_are_one_page(twin):
    assert found(page(HOME), page(twin)) == {(twin, HOME)}


@pytest.mark.parametrize(
    "other",
    [
        "https://e.org/a",
        "https://e.org/?a=1",
        "https://e.org/a/index.html",
        "https://f.org/",
        "https://e.org:8443/",
        "https://a.e.org/",
    ],
)
def test_equal_bytes_at_other_addresses_are_duplicates_and_stay_pages(other):
    assert found(page(HOME), page(other)) == set()


def test_other_bytes_at_such_an_address_are_another_page():
    assert found(page(HOME), page(HOME + "index.html", "y")) == set()


def test_a_canonical_link_counts_where_its_target_says_the_same():
    copy = page("https://e.org/print?id=1", "x1", "same", names="https://e.org/a")
    assert found(copy, page("https://e.org/a", "x2", "same")) == {(copy.url, "https://e.org/a")}
    assert found(copy, page("https://e.org/a", "x2", "same", names="https://e.org/a")) == {
        (copy.url, "https://e.org/a")
    }


@pytest.mark.parametrize(
    "target",
    [
        page("https://e.org/a", "x2", "other"),
        page("https://e.org/a", "x2", "same", names="https://e.org/third"),
        page("https://e.org/b", "x2", "same"),
    ],
)
def test_a_canonical_link_that_nothing_confirms_is_no_evidence(target):
    assert found(page("https://e.org/print", "x1", "same", names="https://e.org/a"), target) == set()


def test_a_canonical_link_to_another_site_is_no_evidence():
    assert found(page("https://e.org/a", names="https://f.org/a"), page("https://f.org/a")) == set()


@pytest.mark.parametrize(
    ("pages", "starts", "first"),
    [
        ((page("http://e.org/"), page("https://e.org/")), (), "https://e.org/"),
        ((page("http://e.org/"), page("https://e.org/")), ("http://e.org/x",), "http://e.org/"),
        (
            (page("https://e.org/index.html"), page("https://e.org/")),
            ("https://e.org/index.html",),
            "https://e.org/index.html",
        ),
        ((page("https://e.org/index.html"), page("https://e.org/", depth=None)), (), "https://e.org/"),
        (
            (page("https://e.org/", names="https://www.e.org/"), page("https://www.e.org/")),
            ("https://e.org/",),
            "https://www.e.org/",
        ),
    ],
)
def test_the_page_is_what_is_named_canonical_else_a_start_else_plainest(pages, starts, first):
    assert {one for _, one in found(*pages, starts=starts)} == {first}


def test_the_order_of_pages_does_not_matter():
    pages = [page(f"{scheme}://{www}e.org/{path}{index}", path or "home") for scheme in ("http",
        "https") for www in ("", "www.") for path in ("", "a/")
             for index in ("", "index.html")]  # fmt: skip
    expected = merged(pages, frozenset())
    assert {merger.page.url for merger in expected} == {"https://e.org/", "https://e.org/a/"}
    assert len(expected) == 14
    for seed in range(5):
        random.Random(seed).shuffle(pages)
        assert merged(pages, frozenset()) == expected


def test_why_names_the_page():
    (merger,) = merged([page(HOME), page("http://e.org/")], frozenset())
    assert merger.why == "same bytes as https://e.org/"
