"""The unit of a URL: the longest prefix by folders, without `www.`; platforms with sites in folders."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.errors import UsageError
from periplus.urls.canonical import canonical
from periplus_studies.units import UnitChoice, prefix_of, unit_list, unit_of, units_of, without_repetitions


def names(urls, units, choice=None):
    found = units_of([canonical(url) for url in urls], units, choice)
    return [found.units[number].name for number in found.numbers]


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("https://www.Example.org/", "example.org"),
        ("http://example.org:8080/~ann/", "example.org:8080/~ann"),
        ("example.org/a/b", "example.org/a/b"),
        ("*.example.org", "*.example.org"),
        ("https://www.com/", "www.com"),
        ("https://example.org/a?b=1#c", "example.org/a"),
    ],
)
def test_prefixes_are_normalized(text, prefix):
    assert prefix_of(text) == prefix
    assert prefix_of(prefix) == prefix


@pytest.mark.parametrize(
    ("start", "short"),
    [
        ("http://127.0.0.1:8701/", "127.0.0.1:8701"),
        ("https://kestrel-haven.example/", "kestrel-haven"),
        ("https://e.org/", "e.org"),
    ],
)
def test_a_short_name_is_a_label_or_a_whole_ip_address(start, short):
    assert unit_of(start).short == short


def test_short_names_are_unique():
    found = units_of(
        [canonical(f"https://github.com/{name}/x") for name in ("ann", "bob")]
        + [canonical("https://blog.one-site.example/")],
        [unit_of("https://blog.other-site.example/"), unit_of("https://kestrel-haven.example/")],
    )
    assert [unit.short for unit in found.units] == [
        "blog.other-site.example", "kestrel-haven", "blog.one-site.example", "github.com/ann", "github.com/bob",
    ]  # fmt: skip


def test_a_site_that_is_listed_twice_is_merged_with_a_word():
    units, sentences = without_repetitions(unit_list("https://e.org/\nhttps://f.org/\nhttp://www.e.org/\n"))
    assert [unit.name for unit in units] == ["e.org", "f.org"]
    assert sentences == ("site 3 of the list, http://www.e.org/, is site 1, https://e.org/: merged",)


def test_the_longest_prefix_wins():
    units = [
        unit_of("https://uni.example/", "university"),
        unit_of("https://uni.example/physics/", "physics", prefixes=["uni.example/physics"]),
        unit_of("https://uni.example/~ann", "ann", prefixes=["uni.example/~ann", "ann.example"]),
    ]
    urls = [
        "http://www.uni.example/",
        "https://uni.example/physics",
        "https://uni.example/physics?x",
        "https://uni.example/physicsal/",
    ]
    assert names(urls, units) == ["university", "physics", "physics", "university"]
    assert names(["https://uni.example/~ann/cv", "https://www.ann.example/", "https://uni.example/~anna"], units) == [
        "ann",
        "ann",
        "university",
    ]


def test_a_wildcard_prefix_includes_subdomains_except_more_specific_ones():
    units = [
        unit_of("https://uni.example/", "university", prefixes=["*.uni.example"]),
        unit_of("https://lab.uni.example/", "lab"),
    ]
    urls = ["https://uni.example/", "https://a.b.uni.example/", "https://lab.uni.example/x", "https://notuni.example/"]
    assert names(urls, units) == ["university", "university", "lab", "notuni.example"]


def test_other_hosts_are_their_own_units():
    assert names(["https://www.x.example/a", "http://x.example/b", "https://y.x.example/"], []) == [
        "x.example",
        "x.example",
        "y.x.example",
    ]
    by_domain = names(["https://a.x.co.uk/", "https://x.co.uk/", "https://ann.github.io/"], [], UnitChoice("domain"))
    assert by_domain == ["x.co.uk", "x.co.uk", "ann.github.io"]


def test_platforms_have_sites_in_folders():
    urls = [
        "https://github.com/ann/code/issues",
        "https://github.com/",
        "https://github.com/features/actions",
        "https://uni.example/%7Ebob/x",
    ]
    assert names(urls, []) == ["github.com/ann", "github.com", "github.com", "uni.example/~bob"]
    assert names(["https://sites.google.com/view/lab/home", "https://medium.com/@ann/post"], []) == [
        "sites.google.com/view/lab",
        "medium.com/@ann",
    ]
    assert unit_of("https://github.com/ann/").prefixes == ("github.com/ann",)


def test_a_prefix_of_two_units_is_refused():
    with pytest.raises(UsageError, match=r"x\.example is a prefix of both a and b"):
        units_of([], [unit_of("https://x.example/", "a"), unit_of("https://www.x.example/", "b")])


_HOSTS = st.sampled_from(["a.example", "b.a.example", "c.example"])
_PATHS = st.lists(st.sampled_from(["x", "xy", "y"]), max_size=3).map(lambda parts: "/".join(["", *parts]))


@settings(max_examples=60)
@given(st.lists(st.tuples(_HOSTS, _PATHS), max_size=6, unique=True), st.lists(st.tuples(_HOSTS, _PATHS), max_size=8))
def test_matching_equals_a_search_of_all_prefixes(prefixes, places):
    """The slow twin: the longest of all prefixes of a URL, compared by folders."""
    units = [
        unit_of(f"https://{host}/", f"unit {number}", prefixes=[host + path])
        for number, (host, path) in enumerate(prefixes)
    ]
    urls = [canonical(f"https://{host}{path}") for host, path in places]
    found = units_of(urls, units)
    for (host, path), number in zip(places, found.numbers.tolist(), strict=True):
        holding = [
            (len(p), place) for place, (h, p) in enumerate(prefixes) if h == host and (path + "/").startswith(p + "/")
        ]
        if holding:
            assert number == max(holding)[1]
        else:
            assert found.units[number].name == host


def test_a_list_of_sites_is_csv_or_a_url_per_line():
    plain = unit_list("# ours\nhttps://a.example/\n\nb.example/x\n")
    assert [unit.prefixes for unit in plain] == [("a.example",), ("b.example",)]
    table = unit_list("name;start;prefixes;bundle;official\nAnn;https://a.example/;a.example *.a.example;uni;no\n")
    assert (table[0].name, table[0].prefixes, table[0].bundle, table[0].official) == (
        "Ann",
        ("a.example", "*.a.example"),
        "uni",
        False,
    )
    with pytest.raises(UsageError, match="line 3"):
        unit_list("start\nhttps://a.example/\nhttp://[::zz/\n")
    with pytest.raises(UsageError, match="colour"):
        unit_list("start,colour\nhttps://a.example/,red\n")
