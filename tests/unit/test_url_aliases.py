"""Merging of pages that are the same page under several URLs."""

from __future__ import annotations

import random

import pytest

from periplus.urls.aliases import AliasPage, Difference, find_aliases, is_well_known
from periplus.urls.canonical import canonical, url_id


def page(address, body="x", text="", depth=1, names=""):
    url = canonical(address)
    return AliasPage(url_id(url), url, depth, body.encode(), (text or body).encode(), names)


def links_as(links):
    """The look-up of links for `merged`. links: linked URLs by page URL; other pages have none."""
    targets = {url_id(canonical(page)): [url_id(canonical(link)) for link in to] for page, to in links.items()}
    return lambda pages: [(page, targets.get(page, ())) for page in pages]


def found(*pages, starts=(), links=None):
    """The merged pairs (alias, page)."""
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
def test_equal_bodies_at_urls_that_differ_in_scheme_www_or_index_file_are_merged(twin):
    assert found(page(HOME), page(twin)) == {(twin, HOME)}


@pytest.mark.parametrize(
    "other",
    ["https://e.org/a", "https://e.org/?a=1", "https://e.org/a/index.html", "http://www.e.org/b"],
)
def test_equal_bodies_at_any_urls_of_a_site_are_merged(other):
    """SPEC C6. The reason differs from that of similar URLs."""
    assert found(page(HOME), page(other)) == {(other, HOME)}
    (merger,) = find_aliases([page(HOME), page(other)], frozenset(), links_as({}))
    assert merger.why == "same bytes and links as https://e.org/"


@pytest.mark.parametrize("other", ["https://f.org/", "https://e.org:8443/", "https://a.e.org/"])
def test_equal_bodies_on_other_sites_are_not_merged(other):
    assert found(page(HOME), page(other)) == set()


def test_equal_bodies_with_different_link_targets_are_not_merged():
    a, b = page("https://e.org/a/x"), page("https://e.org/b/x")
    assert found(a, b, links={a.url: ["https://e.org/a/y"], b.url: ["https://e.org/b/y"]}) == set()
    assert found(a, b, links={a.url: ["https://e.org/y"], b.url: ["https://e.org/y"]}) == {(b.url, a.url)}
    assert found(a, b, links={a.url: ["https://e.org/y"]}) == set()


def test_copies_that_link_to_themselves_and_each_other_are_merged():
    a, b, c = (page(f"https://e.org/{name}") for name in "abc")
    assert found(a, b, c, links={a.url: [a.url, b.url], b.url: [b.url], c.url: [a.url]}) == {
        (b.url, a.url),
        (c.url, a.url),
    }


def test_a_folder_and_its_copy_are_merged_page_by_page():
    """A page that differs separates only the pages that link to it."""
    names = ("x", "y", "z")
    folders = [[page(f"https://e.org/{folder}/{name}", name) for name in names] for folder in "ab"]
    links = {member.url: [of[(at + 1) % 3].url] for of in folders for at, member in enumerate(of)}
    assert found(*folders[0], *folders[1], links=links) == {
        (copy.url, own.url) for own, copy in zip(*folders, strict=True)
    }
    links[folders[1][0].url].append("https://e.org/b/picture")
    assert found(*folders[0], *folders[1], links=links) == set()
    links = {member.url: [] for of in folders for member in of} | {folders[1][0].url: ["https://e.org/b/picture"]}
    assert len(found(*folders[0], *folders[1], links=links)) == 2


def test_pages_without_text_are_not_merged():
    """Empty responses, and pages that a script fills."""
    pages = [page(f"https://e.org/{name}")._replace(has_text=False) for name in "ab"]
    assert found(*pages) == set()


def test_different_bodies_are_not_merged():
    assert found(page(HOME), page(HOME + "index.html", "y")) == set()


def test_a_canonical_link_merges_pages_with_the_same_text():
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
def test_an_unconfirmed_canonical_link_merges_nothing(target):
    assert found(page("https://e.org/print", "x1", "same", names="https://e.org/a"), target) == set()


def test_a_canonical_link_to_another_site_merges_nothing():
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
def test_the_page_is_the_canonical_one_or_a_start_or_has_the_simplest_url(pages, starts, first):
    assert {target for _, target in found(*pages, starts=starts)} == {first}


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


def test_the_reason_names_the_page():
    (merger,) = find_aliases([page(HOME), page("http://e.org/")], frozenset(), links_as({}))
    assert merger.why == "same bytes as https://e.org/"


def test_parameters_of_sessions_and_campaigns_are_well_known():
    session, campaign, page = (Difference("parameter", name) for name in ("PHPSESSID", "utm_source", "page"))
    assert is_well_known({session, campaign}) and not is_well_known({session, page})
