"""The traps, URL identities and contents of the synthetic web are as in their tables."""

from __future__ import annotations

import gzip
import json
import re
import socket
import ssl

import pytest

from periplus.model.visit import Reason
from testweb import (
    GraphRecipe,
    Page,
    Site,
    content,
    graph_site,
    identity,
    recipes,
    robots,
    serve,
    tls,
    traps,
)
from testweb.ask import exchange, get


def hrefs(body: bytes) -> list[str]:
    return re.findall(r'<a href="([^"]*)"', body.decode())


# --- traps
# ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trapped():
    with serve(traps.trap_site(pages=10)) as server:
        yield server


def test_session_ids_differ_per_visit(trapped):
    first, second = (hrefs(get(trapped, "traps.test", "/session/0.html")[2]) for _ in range(2))
    assert set(first).isdisjoint(second)
    assert {href.partition("?")[0] for href in first} == {href.partition("?")[0] for href in second}
    assert get(trapped, "traps.test", first[0])[0] == 200


def test_calendar_and_tree_are_endless(trapped):
    for start in ("/calendar/2026/01", "/tree/"):
        seen, path = set(), start
        for _ in range(30):
            href = hrefs(get(trapped, "traps.test", path)[2])[-1]
            path = href if href.startswith("/") else path + href
            assert path not in seen
            seen.add(path)


def test_facets_are_400_urls_of_the_same_20_products(trapped):
    seen, queue = set(), ["/shop?colour=red&size=6&order=name&view=list"]
    while queue:
        path = queue.pop()
        if path not in seen:
            seen.add(path)
            queue += [link.replace("&amp;", "&") for link in hrefs(get(trapped, "traps.test", path)[2]) if "?" in link]
    assert seen == set(traps.facet_urls())
    assert len(seen) == 400
    assert sum("/shop/" in url for url in trapped.truth.pages) == 20


# --- identity and kinds
# ----------------------------------------------------------------------------------------------------


def test_the_sixteen_hrefs_have_the_targets_of_their_table():
    site = identity.identity_site()
    with serve(site) as server:
        bodies = {}
        for pair in identity.PAIRS:
            one, other = (
                get(server, site.host, href.partition("#")[0].replace("/z/../", "/")) for href in (pair.one, pair.other)
            )
            assert one[0] == other[0] == 200
            assert (one[2] == other[2]) == (pair.relation != identity.APART)
            bodies |= {pair.one: one[2], pair.other: other[2]}
        page = get(server, site.host, "/")[2]
    assert len(hrefs(page)) == len(bodies) == 16
    assert len(set(bodies.values())) == identity.CONTENTS
    assert len({link.target for link in site.truth.links[site.url("/")]}) == identity.SPELLINGS


def test_there_are_29_link_kinds_and_all_targets_exist():
    site = identity.kinds_site()
    assert len({kind.name for kind in identity.KINDS}) == 29
    with serve(site) as server:
        assert all(get(server, site.host, f"/kinds/{kind.name}")[0] == 200 for kind in identity.KINDS)
        assert all(get(server, site.host, path)[0] == 404 for path in identity.FALSE_LINKS)


# --- content
# -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed():
    with serve(content.mixed_site()) as server:
        yield server


def test_charsets_are_declared_where_the_table_says(mixed):
    for language, names in content.CHARSETS.items():
        for charset in names:
            for where in content.DECLARED:
                _, fields, body = get(mixed, "mixed.test", f"/{language}-{charset}-{where}.html")
                assert content.TONGUES[language][0] in body.decode(charset)
                assert (charset in fields["content-type"]) == (where == "header")
                assert (f'<meta charset="{charset}">'.encode() in body) == (where == "meta")
    _, fields, body = get(mixed, "mixed.test", "/liar.html")
    assert fields["content-type"].endswith("utf-8")
    with pytest.raises(UnicodeDecodeError):
        body.decode()


def test_duplicates_share_bytes_or_text(mixed):
    assert get(mixed, "mixed.test", "/twin-1.html")[2] == get(mixed, "mixed.test", "/twin-2.html")[2]
    full, bare = (get(mixed, "mixed.test", f"/cz-{kind}.html")[2].decode() for kind in ("full", "ascii"))
    assert bare.isascii()
    assert content.plain(full).partition("<main")[2] == bare.partition("<main")[2]


def test_sitemaps_list_the_orphan_with_the_real_port(mixed):
    index = get(mixed, "mixed.test", "/sitemap.xml")[2].decode()
    assert mixed.url("mixed.test", "/sitemap-2.xml.gz") in index
    packed = get(mixed, "mixed.test", "/sitemap-2.xml.gz")[2]
    assert mixed.url("mixed.test", "/orphan.html") in gzip.decompress(packed).decode()
    assert mixed.url("mixed.test", "/sitemap.xml") in get(mixed, "mixed.test", "/robots.txt")[2].decode()
    assert mixed.url("mixed.test", "/orphan.html") in mixed.truth.orphans


def test_the_download_of_the_zip_can_be_aborted():
    site = Site("a.test")
    site.add(Page("/", "Home"))
    content.big_binary(site)
    with serve(site) as server:
        assert b"application/zip" in exchange(server, "a.test", "/charts.zip", most=1000)
    assert next(iter(server.log)).body_bytes < 32 << 20


@pytest.mark.skipif(not tls.AVAILABLE, reason="no openssl program here")
def test_the_certificate_is_not_trusted(tmp_path):
    with serve(graph_site(GraphRecipe(pages=2)), certificate=tls.self_signed(tmp_path)) as server:
        assert len(server.resolve) == 2
        for context, fine in ((ssl.create_default_context(), False), (ssl._create_unverified_context(), True)):
            with socket.create_connection(("127.0.0.1", server.tls_port), timeout=60) as plug:
                if not fine:
                    with pytest.raises(ssl.SSLCertVerificationError):
                        context.wrap_socket(plug, server_hostname="a.test")
                    continue
                with context.wrap_socket(plug, server_hostname="a.test") as secure:
                    secure.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
                    assert secure.recv(15) == b"HTTP/1.1 200 OK"


def test_every_recipe_serves_a_home_page():
    for name in recipes.RECIPES:
        web = recipes.web_of("robots case=404" if name == "robots" else name)
        host = next(iter(web.sites))
        with serve(web) as server:
            assert get(server, host, "/")[0] == 200
            assert json.loads(server.truth.as_json())["pages"]
            assert not any("@" in url for url in server.truth.pages)


def test_pages_behind_nofollow_links_are_expected_unfetched():
    site = robots.page_rules_site()
    expected = site.truth.expected(site.url("/"))
    unfollowed = {url for url, reason in expected.items() if reason is Reason.NOFOLLOW}
    assert {url.rpartition("/")[2] for url in unfollowed} == {
        *(f"meta-{name}-child.html" for name in ("nofollow", "none", "noindex-nofollow", "NOFOLLOW", "own")),
        *(f"header-{name}-child.html" for name in ("nofollow", "none", "periplus-nofollow")),
        "rel-child.html",
    }
    assert expected[site.url("/meta-none.html")] is Reason.NOINDEX
    assert expected[site.url("/meta-noindex-child.html")] is Reason.OK
