"""Hosts of URLs, and their comparison."""

import pytest

from periplus.errors import UsageError
from periplus.urls import hosts
from periplus.urls.canonical import canonical
from periplus.urls.hosts import is_named
from periplus.urls.scope import own_hosts


@pytest.mark.parametrize(
    ("text", "key", "origin", "name", "path"),
    [
        ("https://example.org", "example.org:443", "https://example.org:443", "example.org", "/"),
        ("http://example.org/a?b", "example.org:80", "http://example.org:80", "example.org", "/a?b"),
        ("https://example.org:80/?x", "example.org:80", "https://example.org:80", "example.org", "/?x"),
        ("http://a", "a:80", "http://a:80", "a", "/"),
        ("https://a", "a:443", "https://a:443", "a", "/"),
        ("http://[::1]/x:y", "[::1]:80", "http://[::1]:80", "[::1]", "/x:y"),
        ("https://[2001:db8::1]:8443/", "[2001:db8::1]:8443", "https://[2001:db8::1]:8443", "[2001:db8::1]", "/"),
        ("http://example.org//x", "example.org:80", "http://example.org:80", "example.org", "//x"),
    ],
)
def test_a_url_has_a_host_origin_name_and_path(text, key, origin, name, path):
    url = canonical(text)
    assert (hosts.host_key(url), hosts.origin_of(url), hosts.host_name(url), hosts.path_and_query(url)) == (
        key,
        origin,
        name,
        path,
    )


@pytest.mark.parametrize(
    ("host", "domain", "within"),
    [
        ("example.org", "example.org", True),
        ("a.b.example.org", "example.org", True),
        ("A.Example.ORG", "example.org.", True),
        ("notexample.org", "example.org", False),
        ("example.org", "a.example.org", False),
        ("example.org.evil.com", "example.org", False),
        ("example.com", "com", False),
        ("example.co.uk", "co.uk", False),
        ("alice.github.io", "github.io", False),
        ("www.alice.github.io", "alice.github.io", True),
        ("a.example.org", "", False),
        ("", "", False),
        ("a.example.org", ".", False),
        ("1.127.0.0.1", "127.0.0.1", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "0.0.1", False),
        ("[::1]", "[::1]", True),
        ("localhost", "localhost", True),
        ("a.unknown-tld", "unknown-tld", False),
    ],
)
def test_is_within_respects_labels_and_suffixes(host, domain, within):
    assert hosts.is_within(host, domain) is within


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.example.co.uk", "example.co.uk"),
        ("example.org", "example.org"),
        ("WWW.example.org.", "example.org"),
        ("blog.alice.github.io", "alice.github.io"),
        ("co.uk", "co.uk"),
        ("www.xn--85x722f.com.cn", "xn--85x722f.com.cn"),
        ("a.host.test", "host.test"),
        ("localhost", "localhost"),
        ("10.0.0.1", "10.0.0.1"),
        ("[::1]", "[::1]"),
        ("a..b", "a..b"),
        ("", ""),
    ],
)
def test_the_registered_domain_follows_the_public_suffix_list(host, domain):
    assert hosts.registered_domain(host) == domain


def test_www_is_removed_unless_it_is_the_registered_name():
    assert hosts.without_www("www.example.org") == "example.org"
    assert hosts.without_www("www.example.org:8080") == "example.org:8080"
    assert hosts.without_www("wwwexample.org") == "wwwexample.org"
    assert hosts.without_www("www.com") == "www.com"
    assert hosts.without_www("www.com:8080") == "www.com:8080"
    assert hosts.without_www("www.co.uk") == "www.co.uk"
    assert hosts.without_www("www.") == "www."


def test_ip_addresses_are_recognized():
    assert all(map(hosts.is_ip, ("127.0.0.1", "[::1]", "::1", "2001:db8::1")))
    assert not any(map(hosts.is_ip, ("example.org", "1.2.3", "1.2.3.4.5", "", "[]", "a1")))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Example.org", "example.org"),
        ("example.org:8080", "example.org:8080"),
        ("münchen.example", "xn--mnchen-3ya.example"),
        ("*.Example.org", "*.example.org"),
        ("*.example", "*.example"),
        ("[::1]", "[::1]"),
        ("[::1]:80", "[::1]:80"),
        ("127.0.0.1", "127.0.0.1"),
    ],
)
def test_own_hosts_are_normalized_like_urls(text, names):
    assert own_hosts([text]) == (names,)


@pytest.mark.parametrize(
    "text",
    [
        *("https://example.org/", "example.org/a", "*", "*example.org", "a.*.org", "", "a b", "me@example.org"),
        *("*.com", "*.co.uk", "*.github.io", "*.example.org:80"),
    ],
)
def test_an_invalid_own_host_is_refused(text):
    with pytest.raises(UsageError, match=r"is not a host|many owners"):
        own_hosts([text])


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ("a.example.org:443", True),
        ("b.a.example.org:80", True),
        ("example.org:443", False),
        ("notexample.org:443", False),
        ("plain.net:443", True),
        ("ported.net:8080", True),
        ("ported.net:443", False),
    ],
)
def test_a_host_is_the_users_own_by_name_port_or_parent_domain(host, named):
    assert is_named(host, frozenset({"*.example.org", "plain.net", "ported.net:8080"})) is named
