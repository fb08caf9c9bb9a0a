"""The scope of a crawl."""

import pytest

from periplus.errors import UsageError
from periplus.model.visit import Reason
from periplus.settings import Scope
from periplus.urls.canonical import canonical
from periplus.urls.scope import site_key, site_scope


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("https://www.example.org/a", "example.org"),
        ("http://example.org/", "example.org"),
        ("http://example.org:443/", "example.org"),
        ("https://www.example.org:8443/", "example.org:8443"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("https://[::1]/", "[::1]"),
        ("https://www.com/", "www.com"),
        ("https://docs.example.org/", "docs.example.org"),
    ],
)
def test_the_site_of_a_url_follows_the_public_suffix_list(text, key):
    assert site_key(canonical(text)) == key


START = "https://www.example.org/docs/intro.html"


@pytest.mark.parametrize(
    ("scope", "text", "inside"),
    [
        ("site", "http://example.org/", True),
        ("site", "https://www.example.org/other", True),
        ("site", "https://docs.example.org/", False),
        ("site", "https://notexample.org/", False),
        ("site", "https://example.org:8443/", False),
        ("domain", "https://docs.example.org/", True),
        ("domain", "https://example.org:8443/", True),
        ("domain", "https://notexample.org/", False),
        ("domain", "https://example.org.evil.com/", False),
        ("prefix", "http://example.org/docs/", True),
        ("prefix", "https://example.org/docs/a/b?c", True),
        ("prefix", "https://example.org/docs", False),
        ("prefix", "https://example.org/docs2/", False),
        ("prefix", "https://example.org/docs/../x", False),
        ("prefix", "https://docs.example.org/docs/", False),
        ("any", "https://elsewhere.example/", True),
    ],
)
def test_each_kind_of_scope_includes_its_urls(scope, text, inside):
    here = site_scope([canonical(START)], Scope(scope=scope))
    assert here.decide(canonical(text)) is (None if inside else Reason.SCOPE)


def test_ours_a_last_segment_without_a_dot_is_a_folder():
    here = site_scope([canonical("https://example.org/docs")], Scope(scope="prefix"))
    inside = [
        url
        for url in ("/docs", "/docs/", "/docs/a", "/docs?x", "/docs2", "/")
        if here.decide(canonical("https://example.org" + url)) is None
    ]
    assert inside == ["/docs", "/docs/", "/docs/a", "/docs?x"]


def test_prefix_of_a_host_is_the_host():
    here = site_scope([canonical("https://example.org/?q=a.b")], Scope(scope="prefix"))
    assert here.decide(canonical("https://example.org/x")) is None


def test_hosts_below_a_private_suffix_are_different_domains():
    here = site_scope([canonical("https://alice.github.io/")], Scope(scope="domain"))
    assert here.decide(canonical("https://bob.github.io/")) is Reason.SCOPE


def test_the_scope_includes_the_sites_of_all_starts():
    here = site_scope(map(canonical, ("https://a.example/", "https://b.example/")), Scope())
    assert [here.decide(canonical(f"https://{name}.example/x")) for name in "abc"] == [None, None, Reason.SCOPE]


def test_the_deciding_rule_is_written_in_words():
    here = site_scope(
        [canonical("https://example.org/start?x")],
        Scope(include=("/start", r"\.html$"), exclude=(r"\?",), url_bytes=64),
    )
    expected = {
        "https://example.org/start?x": (None, "a start"),
        "https://example.org/a.html": (None, "the start's site"),
        "https://example.org/a.html?y": (Reason.SCOPE, r"excluded by \?"),
        "https://example.org/a": (Reason.SCOPE, "matches no include expression"),
        "https://b.example/a.html": (Reason.SCOPE, "outside the start's site"),
        "https://example.org/" + "a" * 60: (Reason.SCOPE, "longer than 64 bytes (url_bytes)"),
    }
    assert {text: (here.decide(canonical(text)), here.ruling(canonical(text))[1]) for text in expected} == expected


def test_an_invalid_regular_expression_is_named():
    with pytest.raises(UsageError, match=r"exclude: '\(' is not a regular expression"):
        site_scope([], Scope(exclude=("ok", "(")))


def test_site_of_is_the_site_key():
    url = canonical("http://www.example.org/a")
    assert site_scope([url], Scope()).site_of(url) == "example.org"
