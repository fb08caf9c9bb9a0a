"""URL rules of a collection: parameters that matter, are ignored, or are required."""

import pytest

from periplus.errors import UsageError
from periplus.urls.canonical import canonical
from periplus.urls.parameters import NO_RULES, apply, rules_of

TISK = """
[[script]]
path = "/tisk.php"
required = ["clanek"]
default = { jazyk = "cz" }
"""
ALL = """
[settings]
max_depth = 3

[[site]]
ignored = ["utm_*", "sid"]
path_ignored = ["jsessionid"]
index = ["index.html", "index.php"]
slash = "drop"
www = "drop"
scheme = "https"

[[script]]
path = ["/list", "/shop/*/list"]
site = "a.test"
required = ["id"]
one_of = { kind = ["x", "y z"] }
optional = ["page", "článek"]
default = { lang = "en & cz" }

[[script]]
path = "/loose/**"
ignored = ["print"]
sort = false
"""


def rewritten(url, text):
    applied = apply(canonical(url), rules_of(text))
    return applied.url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h.cz/tisk.php?uzivatel=987&clanek=123", "http://h.cz/tisk.php?clanek=123&jazyk=cz"),
        ("http://h.cz/tisk.php?jazyk=cz", None),
        ("http://h.cz/tisk.php?clanek=123&jazyk=en", "http://h.cz/tisk.php?clanek=123&jazyk=en"),
        ("http://h.cz/tisk.php", None),
        ("http://h.cz/other.php?b=1&a=2", "http://h.cz/other.php?b=1&a=2"),
    ],
)
def test_the_example_of_rule_a3_of_the_site_mapper(url, expected):
    assert rewritten(url, TISK) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://www.a.test/x/?b=1&sid=9&a=2&utm_source=q", "https://a.test/x?b=1&a=2"),
        ("https://a.test/index.html", "https://a.test/"),
        ("https://a.test/d/index.php/", "https://a.test/d"),
        ("https://a.test/d;jsessionid=4F/index.html;jsessionid=4F?sid=1", "https://a.test/d"),
        ("https://a.test/d;v=1", "https://a.test/d;v=1"),
        ("http://a.test:8080/x", "http://a.test:8080/x"),
        ("https://a.test/list?kind=y+z&id=1", "https://a.test/list?id=1&kind=y+z&lang=en%20%26%20cz"),
        ("https://a.test/list?kind=q&id=1", None),
        ("https://a.test/shop/1/list?id=1&kind=x&lang=de&junk", "https://a.test/shop/1/list?id=1&kind=x&lang=de"),
        ("https://a.test/shop/1/2/list?junk=1", "https://a.test/shop/1/2/list?junk=1"),
        ("https://b.test/list?junk=1", "https://b.test/list?junk=1"),
        (
            "https://a.test/list?id=1&kind=x&lang=e&%C4%8Dl%C3%A1n%65k=7",
            "https://a.test/list?%C4%8Dl%C3%A1nek=7&id=1&kind=x&lang=e",
        ),
        ("https://a.test/loose/1?b=1&print=1&a=1", "https://a.test/loose/1?b=1&a=1"),
        ("https://a.test/loose/a/b?print", "https://a.test/loose/a/b"),
        ("https://a.test/.;jsessionid=1/x", "https://a.test/x"),
    ],
)
def test_rules_of_the_site_come_before_the_first_matching_script(url, expected):
    assert rewritten(url, ALL) == expected


def test_the_reason_names_the_script_and_the_missing_parameter():
    assert apply(canonical("http://h.cz/tisk.php?jazyk=cz"), rules_of(TISK)).rule == "/tisk.php: clanek is required"


def test_the_steps_list_the_changes_in_order():
    applied = apply(canonical("http://h.cz/tisk.php?uzivatel=987&jazyk=en&clanek=123"), rules_of(TISK))
    assert applied.steps == ("script /tisk.php fits", "without uzivatel", "parameters sorted by name")
    assert applied.rule == "without uzivatel; parameters sorted by name"


def test_without_rules_a_url_is_unchanged():
    url = canonical("http://h.cz/?b=1&&a=2&")
    assert apply(url, NO_RULES).url is url
    assert not rules_of("[settings]\nmax_depth = 1")


def test_www_and_slash_can_be_added():
    rules = '[[site]]\nwww = "add"\nslash = "add"\n'
    assert rewritten("http://example.org/a?q", rules) == "http://www.example.org/a/?q"
    assert rewritten("http://docs.example.org/a.html", rules) == "http://docs.example.org/a.html"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[script]]\nrequired = ['a']", "line 1, [[script]] 1: path must begin with a slash"),
        ("\n[[script]]\npath = '/a'\nrequired = 'a'", "line 2, [[script]] 1: required must be a list of texts"),
        ("[[site]]\n[[site]]\nslash = 'no'", "line 2, [[site]] 2: slash must be 'drop' or 'add'"),
        ("[[script]]\npath = '/a'\nrequred = ['a']", "unknown field requred"),
        ("[[script]]\npath = '/a'\nrequired = ['a']\noptional = ['a']", "a is listed twice"),
        ("[[script]]\npath = '/a'\ndefault = { a = 1 }", "the values of default must be texts"),
        ("[[script]]\npath = '/a'\nsort = 1", "sort must be true or false"),
        ("[[script]]\npath = '/a'\none_of = { a = 1 }", "one_of.a must be a list of texts"),
        ("[script]\npath = '/a'", "write [[script]] for each rule"),
        ("[[script]", "not valid TOML"),
    ],
)
def test_invalid_rules_are_refused_with_line_and_field(text, message):
    with pytest.raises(UsageError) as caught:
        rules_of(text, "c/periplus.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("c/periplus.toml")
