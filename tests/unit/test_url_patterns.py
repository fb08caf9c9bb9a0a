"""Patterns of a URL, derived from its text."""

from __future__ import annotations

import pytest

from periplus.model.web import Url
from periplus.urls.url_patterns import (
    fold_cycles,
    is_paging,
    mask,
    plain,
    url_patterns,
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", ("/*", "/**")),
        ("/about", ("/*", "/**")),
        ("/wiki/Foo", ("/wiki/*", "/wiki/**", "/**")),
        ("/wiki/%D0%9F%D1%83", ("/wiki/*", "/wiki/**", "/**")),
        ("/page12.html", ("/page*.html", "/**")),
        ("/calendar?year=2026&month=3", ("/calendar?month=*&year=*", "/calendar?**", "/**")),
        ("/shop/?b=1&a=2&a=3", ("/shop?a=*&b=*", "/shop?**", "/**")),
        ("/p;jsessionid=AB12CD34?x=1", ("/p?x=*", "/p?**", "/**")),
        ("/p?PHPSESSID=abcdef123", ("/*", "/**")),
        ("/events/2026/11/3/", ("/events/(*/)+*", "/events/(*/)+**", "/events/**", "/**")),
        ("/x/a/b/a/b/a/q", ("/x/(a/b/)+*", "/x/(a/b/)+**", "/x/**", "/**")),
        ("/get/0123456789abcdef0123", ("/get/*", "/get/**", "/**")),
        ("/1/2/3/4/5/6", ("/(*/)+*", "/(*/)+**", "/**")),
    ],
)
def test_patterns_are_listed_from_the_narrowest_to_the_host(path, expected):
    assert url_patterns(Url("https://a.example" + path)) == expected


def test_long_paths_have_a_limited_number_of_patterns():
    url = "https://a.example/" + "/".join(f"w{chr(97 + i % 26)}{'x' * i}" for i in range(60))
    assert len(url_patterns(Url(url))) == 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b c", "a b c"),
        ("a a a", "(a/)+"),
        ("a b a b a", "(a/b/)+"),
        ("x a b a b y", "x (a/b/)+ y"),
        ("a b c a b", "a b c a b"),
        ("", ""),
    ],
)
def test_repeated_segments_are_folded(text, expected):
    assert " ".join(fold_cycles(text.split())) == expected


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        ("index", "index"),
        ("3_25_2.html", "*_*_*.html"),
        ("550e8400-e29b-41d4-a716-446655440000", "*"),
        ("%D0%9F1", "%D0%9F1"),
        ("item-7", "item-*"),
    ],
)
def test_numbers_and_tokens_are_masked(segment, expected):
    assert mask(segment) == expected


@pytest.mark.parametrize(
    ("path", "bare", "names"),
    [
        ("/a?x=1&PHPSESSID=abcdef12", "/a?x=1", "phpsessid"),
        ("/a;jsessionid=12AB34CD.node1?x=1", "/a?x=1", "jsessionid"),
        ("/(S(lit3py55t21z5v55vlm25s55))/page.aspx", "/page.aspx", "cookieless"),
        ("/a?CFID=1234567&CFTOKEN=88776655", "/a", "cfid&cftoken"),
        ("/a?v=0123456789abcdef", "/a", "v"),
        ("/a?sid=421", "/a?sid=421", ""),
        ("/a?title=A_long_title_without_numbers", "/a?title=A_long_title_without_numbers", ""),
    ],
)
def test_ours_possible_session_tokens_are_removed(path, bare, names):
    found = plain(Url("https://a.example" + path))
    assert (found.url, found.names) == ("https://a.example" + bare, names)
    assert not found.names or found.well_known == (found.names != "v")
    assert bool(found.values) == bool(names)


def test_patterns_of_paging_are_recognized():
    assert is_paging("/news?page=*")
    assert is_paging("/news/page/*")
    assert not is_paging("/news/*")
    assert not is_paging("/news?page=*&tag=*")
