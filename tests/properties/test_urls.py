"""Properties of URLs and hosts for any text."""

import string

from hypothesis import example, given, settings
from hypothesis import strategies as st

from periplus.errors import InvalidUrl
from periplus.urls import hosts
from periplus.urls.canonical import _parse, canonical, resolve, scheme_of_href, url_id

LABELS = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=6)
HOSTS = st.lists(
    LABELS | st.sampled_from(["www", "com", "co", "uk", "github", "io", "example", "xn--bcher-kva"]),
    min_size=1,
    max_size=4,
).map(".".join)
MARKS = (
    "http://",
    "https://",
    "//",
    "/",
    "..",
    ".",
    "%2e",
    "%2F",
    "?",
    "#",
    "@",
    ":",
    "\\",
    " ",
    "\t",
    "%",
    "=",
    "&",
    "~",
    "-",
    "_",
)
WORDS = (
    "a",
    "B",
    "š",
    "ſ",
    "。",
    "\u00ad",
    "example.org",
    "[::1]",
    "127.1",
    "0x7f",
    "xn--",
    ":80",
    ":443",
    "index.html",
    "utm_source=x",
)
PIECES = st.sampled_from(MARKS) | st.sampled_from(WORDS)
TEXTS = st.lists(PIECES, max_size=10).map("".join) | st.text(st.characters(), max_size=30)
URLISH = TEXTS | TEXTS.map("http://example.org/".__add__) | TEXTS.map("https://".__add__)
PLAIN = st.text("abZ09._~-/?#=&+;:x@!$%(),*", max_size=14)
BASES = st.sampled_from(
    ["https://example.org/", "http://example.org:8080/a/b/c?d/e", "https://[::1]/a//b/", "https://example.org/a?b#c"]
).map(canonical)


def either(function, *args):
    """The result, or InvalidUrl as a value; other exceptions propagate."""
    try:
        return function(*args)
    except InvalidUrl:
        return InvalidUrl


@given(URLISH)
@settings(max_examples=166)
@example("http://\ud800")
@example("http://a\x00b/")
def test_canonical_is_total_and_idempotent(text):
    url = either(canonical, text)
    if url is not InvalidUrl:
        assert canonical(url) == url
        assert url.isascii()
        assert "#" not in url
        assert hosts.path_and_query(url).startswith("/")
        assert -(1 << 63) <= url_id(url) < 1 << 63


@given(TEXTS | PLAIN | PLAIN.map("https://example.org/".__add__) | PLAIN.map("http://".__add__), BASES)
@settings(max_examples=500)
@example("x/..", canonical("http://example.org/a"))
@example("https://example.org\n", canonical("http://example.org/a"))
@example("a\n", canonical("http://example.org/a"))
@example("http://a.xn", canonical("http://example.org/a"))
def test_joining_by_sight_equals_the_parser(href, base):
    assert either(resolve, href, base) == either(_parse, href, base)


@given(HOSTS, st.sampled_from(["", "/", "/a"]), BASES)
@settings(max_examples=166)
def test_hosts_taken_by_sight_equal_the_parser(host, rest, base):
    href = f"http://{host}{rest}"
    assert either(resolve, href, base) == either(_parse, href, base)


@given(URLISH, BASES)
def test_the_target_of_a_link_is_canonical(href, base):
    found = either(resolve, href, base)
    if found is not InvalidUrl:
        target, fragment = found
        assert canonical(target) == target
        assert fragment.isascii()
        assert canonical(href, base) == target


@given(st.text(st.characters(), max_size=30))
def test_scheme_of_href_is_total(href):
    assert scheme_of_href(href) == scheme_of_href(href).lower()


@given(
    st.sampled_from(["%2F", "%2f", "%41", "%7E", "//"]),
    st.integers(1, 65535),
    st.lists(st.sampled_from("ab"), max_size=4),
)
def test_canonical_keeps_escapes_ports_and_order(escape, port, names):
    query = "&".join(names)
    url = canonical(f"http://example.org:{port}/a{escape}b?{query}")
    assert url.endswith(f"/a{escape}b?{query}")
    assert hosts.host_key(url) == f"example.org:{port}"


@given(HOSTS, HOSTS)
@settings(max_examples=100)
def test_is_within_never_crosses_a_label(host, domain):
    if hosts.is_within(host, domain):
        assert host.split(".")[-len(domain.split(".")) :] == domain.split(".")
    assert not hosts.is_within("x" + domain, domain)
    assert hosts.is_within(host, host)


@given(HOSTS)
def test_nothing_is_within_a_public_suffix(host):
    suffix = hosts.registered_domain(host)
    while "." in suffix:
        suffix = suffix.partition(".")[2]
        assert not hosts.is_within(host, suffix)


@given(HOSTS)
def test_registered_domain_is_a_fixed_point_that_holds_its_host(host):
    domain = hosts.registered_domain(host)
    assert hosts.registered_domain(domain) == domain
    assert hosts.is_within(host, domain)
