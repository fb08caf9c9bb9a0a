"""Canonical URLs by the URL Living Standard, and the three keys derived from them."""

import pytest

from periplus.errors import InvalidUrl
from periplus.model.web import Url
from periplus.urls.canonical import canonical, identity, resolve, scheme_of_href, url_id
from periplus.urls.hosts import host_key, origin_of
from periplus.urls.scope import site_key

BASE = canonical("https://example.org/a/b/c.html?q=1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HTTP://EXAMPLE.org", "http://example.org/"),
        ("https://example.org:443/x", "https://example.org/x"),
        ("http://example.org:443/x", "http://example.org:443/x"),
        ("http://example.org:80/x", "http://example.org/x"),
        ("http://example.org/a/./b/../c", "http://example.org/a/c"),
        ("http://example.org/a/%2e%2E/c", "http://example.org/c"),
        ("http://example.org/../../c", "http://example.org/c"),
        ("http://example.org/a#b", "http://example.org/a"),
        ("http://example.org/?#b", "http://example.org/?"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://EXAMPLE.org/š?č=ž", "http://example.org/%C5%A1?%C4%8D=%C5%BE"),
        ("  http://example.org/a b\n", "http://example.org/a%20b"),
        ("http://exam\tple.org/\na", "http://example.org/a"),
        ("http:\\\\example.org\\a", "http://example.org/a"),
        ("http:example.org", "http://example.org/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://[0:0:0:0:0:0:0:1]:8080/", "http://[::1]:8080/"),
        ("http://example%2Eorg/", "http://example.org/"),
    ],
)
def test_whatwg_urls_are_normalized(text, expected):
    assert canonical(text) == expected


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/a%2Fb",
        "http://example.org/a%2fb",
        "http://example.org/%7Euser/",
        "http://example.org/Foo.HTML",
        "http://example.org/u",
        "http://example.org/u/",
        "http://example.org/?b=2&a=1",
        "http://example.org/?utm_source=x",
        "http://example.org//a//b",
        "http://example.org:8080/",
        "http://www.example.org/index.html",
        "http://example.org./",
    ],
)
def test_whatwg_spellings_that_may_differ_are_kept(url):
    assert canonical(url) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.html",
        "//example.org/",
        "#x",
        "http://",
        "http:///",
        "https://exa mple.org/",
        "http://[::1/",
        "http://example.org:99999/",
        "http://1.2.3.256/",
        "mailto:a@example.org",
        "javascript:alert(1)",
        "data:text/html,x",
        "ftp://example.org/",
        "file:///etc/passwd",
        "about:blank",
        "http://example.org/\ud800",
        "\x00",
        "x" * 1_000_000,
    ],
)
def test_text_that_is_not_an_http_url_is_refused(text):
    with pytest.raises(InvalidUrl) as refusal:
        canonical(text)
    assert len(str(refusal.value)) < 1500
    str(refusal.value).encode()  # printable: no lone surrogates


def test_a_url_of_a_megabyte_is_accepted():
    assert len(canonical("http://example.org/" + "x" * 1_000_000)) == 1_000_019


@pytest.mark.parametrize("port", ["", ":65535"])
def test_ours_a_host_longer_than_dns_allows_is_invalid(port):
    longest = "a." * 125 + "com"  # 253 characters: RFC 1035, 2.3.4
    for host, is_url in ((longest, True), ("a." * 130 + "com", False), ("a." * 2000 + "com", False)):
        for ask in (lambda href: resolve(href, canonical("https://e.org/"))[0], canonical):
            if is_url:
                assert (
                    ask(f"https://user@{host}{port}/path/")
                    == ask(f"https://{host}{port}/path/")
                    == f"https://{host}{port}/path/"
                )
            else:
                with pytest.raises(InvalidUrl, match="longer than DNS allows"):
                    ask(f"https://{host}{port}/path/")


def test_ours_user_and_password_are_removed():
    """They do not identify a resource and must not be stored. Any other @ is kept."""
    assert canonical("https://user:secret@example.org:8443/a@b?c@d") == "https://example.org:8443/a@b?c@d"
    assert canonical("https://a%40b:@example.org/") == "https://example.org/"
    assert canonical("https://u@x@example.org/") == "https://example.org/"
    assert canonical("https://example.org/@user") == "https://example.org/@user"


@pytest.mark.parametrize(
    ("href", "target", "fragment"),
    [
        ("d.html", "https://example.org/a/b/d.html", ""),
        ("../d.html#part-2", "https://example.org/a/d.html", "part-2"),
        ("../../../../d", "https://example.org/d", ""),
        ("./d", "https://example.org/a/b/d", ""),
        ("d/..", "https://example.org/a/b/", ""),
        ("/", "https://example.org/", ""),
        ("", "https://example.org/a/b/c.html?q=1", ""),
        ("#", "https://example.org/a/b/c.html?q=1", ""),
        ("#top", "https://example.org/a/b/c.html?q=1", "top"),
        ("#š “x”", "https://example.org/a/b/c.html?q=1", "%C5%A1%20%E2%80%9Cx%E2%80%9D"),
        ("?x", "https://example.org/a/b/c.html?x", ""),
        ("//other.example/x", "https://other.example/x", ""),
        ("http://other.example", "http://other.example/", ""),
        ("http:d", "http://d/", ""),
        ("https:d", "https://example.org/a/b/d", ""),
        ("d:e", None, ""),
        ("mailto:x@y", None, ""),
    ],
)
def test_whatwg_hrefs_are_resolved(href, target, fragment):
    if target is None:
        with pytest.raises(InvalidUrl):
            resolve(href, BASE)
    else:
        assert resolve(href, BASE) == (target, fragment)
        assert canonical(href, BASE) == target


@pytest.mark.parametrize(
    ("href", "scheme"),
    [
        ("javascript:void(0)", "javascript"),
        (" \x00JavaScript:x", "javascript"),
        ("java\nscri\tpt:x", "javascript"),
        ("MAILTO:a@b", "mailto"),
        ("tel:+420", "tel"),
        ("/a:b", ""),
        ("a/b:c", ""),
        ("?a:b", ""),
        ("1a:b", ""),
        (":x", ""),
        ("", ""),
    ],
)
def test_whatwg_a_scheme_is_read_as_browsers_do(href, scheme):
    assert scheme_of_href(href) == scheme


def test_url_id_is_signed_and_stable():
    """A changed id would make every stored collection unusable."""
    assert url_id(canonical("https://example.org/")) == -8202114674208552119
    ids = [url_id(canonical(f"https://example.org/{n}")) for n in range(100)]
    assert len(set(ids)) == 100
    assert all(-(1 << 63) <= number < 1 << 63 for number in ids)
    assert min(ids) < 0 < max(ids)


@pytest.mark.parametrize(
    "spellings",
    [
        ("http://example.org/~u", "http://example.org/%7Eu", "http://example.org/%7eu"),
        ("http://example.org/%C3%A9?a=%C3", "http://example.org/%c3%a9?a=%c3"),
        ("http://example.org/a-b_c.d1?x=y", "http://example.org/%61%2Db%5fc%2Ed%31?%78=%79"),
        ("http://example.org/", "http://example.org./"),
        ("https://example.org/a./b", "https://example.org./a./b"),
        ("http://example.org:8080/", "http://example.org.:8080/"),
        ("http://[::1]:8080/a", "http://[::1]:8080/%61"),
    ],
)
def test_rfc3986_6_2_2_equivalent_spellings_are_one_url(spellings):
    urls = [canonical(text) for text in spellings]
    assert {identity(url) for url in urls} == {urls[0]}
    for name in (url_id, host_key, origin_of, site_key):
        assert len(set(map(name, urls))) == 1, name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.org/a%2Fb", "http://example.org/a/b"),
        ("http://example.org/?a=b%26c", "http://example.org/?a=b&c"),
        ("http://example.org/%25", "http://example.org/%"),
        ("http://example.org/a%20b", "http://example.org/a+b"),
        ("http://example.org/A", "http://example.org/a"),
        ("http://example.org/a", "http://example.org/a/"),
        ("http://example.org/a.", "http://example.org/a"),
    ],
)
def test_rfc3986_2_2_reserved_characters_and_their_escapes_differ(one, other):
    assert url_id(canonical(one)) != url_id(canonical(other))


def test_rfc3986_2_3_escapes_are_decoded_if_unreserved_and_upper_case_otherwise():
    unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
    for code in range(256):
        char = chr(code)
        expected = char if char in unreserved else f"%{code:02X}"
        for escape in (f"%{code:02X}", f"%{code:02x}"):
            assert identity(Url(f"http://example.org/x{escape}y")) == f"http://example.org/x{expected}y"


def test_the_requested_url_keeps_its_escapes():
    assert canonical("http://example.org./%7Eu/%c3") == "http://example.org./%7Eu/%c3"
