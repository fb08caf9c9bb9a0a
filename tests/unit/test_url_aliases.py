"""Which fetched pages are one page under several addresses."""

from __future__ import annotations

import random

import pytest

from periplus.urls.aliases import AliasPage, find_aliases
from periplus.urls.canonical import canonical, url_id


def page(address, body="x", text="", depth=1, names=""):
    url = canonical(address)
    return AliasPage(url_id(url), url, depth, body.encode(), (text or body).encode(), names)


def links_as(links):
    """What `find_aliases` asks for. links: {page's URL: URLs that it links to}; of others none."""
    targets = {url_id(canonical(page)): [url_id(canonical(link)) for link in to] for page, to in links.items()}
    return lambda pages: [(page, targets.get(page, ())) for page in pages]


def found(*pages, starts=(), links=None):
    """(twin, page) of what is merged."""
    mergers = find_aliases(pages, frozenset(map(canonical, starts)), links_as(links or {}))
    return {(merger.alias.url, merger.page.url) for merger in mergers}


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
    ["https://e.org/a", "https://e.org/?a=1", "https://e.org/a/index.html", "http://www.e.org/b"],
)
def test_equal_bytes_at_any_address_of_a_site_are_one_page(other):
    """SPEC C6; that it is one by its place too is told apart."""
    assert found(page(HOME), page(other)) == {(other, HOME)}
    (merger,) = find_aliases([page(HOME), page(other)], frozenset(), links_as({}))
    assert merger.why == "same bytes and links as https://e.org/"


@pytest.mark.parametrize("other", ["https://f.org/", "https://e.org:8443/", "https://a.e.org/"])
def test_equal_bytes_on_other_sites_are_pages_of_their_own(other):
    assert found(page(HOME), page(other)) == set()


def test_equal_bytes_whose_relative_links_lead_elsewhere_are_two_pages():
    a, b = page("https://e.org/a/x"), page("https://e.org/b/x")
    assert found(a, b, links={a.url: ["https://e.org/a/y"], b.url: ["https://e.org/b/y"]}) == set()
    assert found(a, b, links={a.url: ["https://e.org/y"], b.url: ["https://e.org/y"]}) == {(b.url, a.url)}
    assert found(a, b, links={a.url: ["https://e.org/y"]}) == set()


def test_copies_that_link_to_themselves_and_to_one_another_are_one_page():
    a, b, c = (page(f"https://e.org/{name}") for name in "abc")
    assert found(a, b, c, links={a.url: [a.url, b.url], b.url: [b.url], c.url: [a.url]}) == {
        (b.url, a.url),
        (c.url, a.url),
    }


def test_a_folder_and_its_copy_are_the_same_page_by_page_where_every_page_is():
    """One page that differs parts what leads to it, and no more."""
    names = ("x", "y", "z")
    folders = [[page(f"https://e.org/{folder}/{name}", name) for name in names] for folder in "ab"]
    links = {one.url: [of[(at + 1) % 3].url] for of in folders for at, one in enumerate(of)}
    assert found(*folders[0], *folders[1], links=links) == {
        (copy.url, own.url) for own, copy in zip(*folders, strict=True)
    }
    links[folders[1][0].url].append("https://e.org/b/picture")
    assert found(*folders[0], *folders[1], links=links) == set()
    links = {one.url: [] for of in folders for one in of} | {folders[1][0].url: ["https://e.org/b/picture"]}
    assert len(found(*folders[0], *folders[1], links=links)) == 2


def test_bytes_without_text_tell_nothing():
    """Empty answers and pages that a script fills."""
    pages = [page(f"https://e.org/{name}")._replace(has_text=False) for name in "ab"]
    assert found(*pages) == set()


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
    expected = find_aliases(pages, frozenset(), links_as({}))
    assert {merger.page.url for merger in expected} == {"https://e.org/", "https://e.org/a/"}
    assert len(expected) == 14
    for seed in range(5):
        random.Random(seed).shuffle(pages)
        assert find_aliases(pages, frozenset(), links_as({})) == expected


def test_why_names_the_page():
    (merger,) = find_aliases([page(HOME), page("http://e.org/")], frozenset(), links_as({}))
    assert merger.why == "same bytes as https://e.org/"
