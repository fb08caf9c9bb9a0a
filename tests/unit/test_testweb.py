"""The synthetic web does on the wire what its truth says."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from periplus.model.visit import Reason
from testweb import (
    Answer,
    GraphRecipe,
    Page,
    Server,
    Site,
    Web,
    content,
    faults,
    graph_site,
    identity,
    linked_sites,
    read_log,
    recipes,
    robots,
    serve,
    tls,
    traps,
)


def get(server: Server, host: str, target: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """One exchange on a connection of its own: status, header fields (lower case), body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        fields = {"Host": f"{host}:{server.port}"} | {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", target, headers=fields)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def exchange(server: Server, host: str, target: str, *, most: int = 1 << 20) -> bytes:
    """What comes back on a raw socket, up to `most` bytes; ends with the connection. Raises ConnectionResetError for a reset."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as plug:
        plug.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}:{server.port}\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n".encode())
        got = b""
        while len(got) < most and (part := plug.recv(65_536)):
            got += part
        return got


def hrefs(body: bytes) -> list[str]:
    return re.findall(r'<a href="([^"]*)"', body.decode())


@pytest.fixture(scope="module")
def faulty():
    site = faults.faulty_site()
    faults.gzip_bomb(site, "/bomb", 8)
    faults.passing(site, "/busy", 429, 1, "date+30")
    faults.redirect_without_end(site)
    with serve(site) as server:
        yield server


# --- graphs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["flat", "random", "deep"])
def test_every_page_is_reachable_and_has_the_links_asked_for(shape):
    truth = graph_site(GraphRecipe(seed=5, pages=120, links_per_page=15, shape=shape, page_bytes=6000)).truth
    assert len(truth.layers) == len(truth.pages) == 120
    assert {len({link.target for link in links}) for links in truth.links.values()} == {15}


def test_shapes_differ_in_depth():
    depths = [max(graph_site(GraphRecipe(pages=400, links_per_page=12, shape=shape, page_bytes=3000)).truth.layers.values()) for shape in ("flat", "deep")]
    assert depths[0] <= 5
    assert depths[1] >= 20


def test_small_sites_and_small_allowances_work():
    for pages, links in ((1, 1), (2, 40), (3, 1), (10, 3)):
        truth = graph_site(GraphRecipe(pages=pages, links_per_page=links, page_bytes=500)).truth
        assert len(truth.layers) == pages


def test_same_recipe_same_web_and_another_seed_another():
    assert linked_sites(3).truth.as_json() == linked_sites(3).truth.as_json() != linked_sites(4).truth.as_json()


def test_served_links_are_those_of_the_truth():
    with serve(linked_sites(2, sites=2, pages=8)) as server:
        for url, links in server.truth.links.items():
            host, path = re.fullmatch(r"http://(\w+\.test):\d+(/.*)", url).groups()
            status, _, body = get(server, host, path)
            absolute = [href if "://" in href else server.url(host, href) for href in hrefs(body)]
            assert status == 200
            assert sorted(set(absolute)) == sorted({link.target for link in links})
            assert len(absolute) == sum(link.times for link in links)


def test_bench_pages_are_25_kb_with_exactly_40_links():
    site = graph_site(GraphRecipe(pages=60, links_per_page=40, page_bytes=25_000))
    with serve(site) as server:
        bodies = [get(server, site.host, path)[2] for path in list(site.pages)[:10]]
    assert all(24_000 < len(body) < 27_000 and len(hrefs(body)) == 40 for body in bodies)


# --- the server --------------------------------------------------------------------------------------------------------


def test_it_listens_on_loopback_only_and_keeps_connections():
    with serve(graph_site(GraphRecipe(pages=3))) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        for _ in range(3):
            connection.request("GET", "/", headers={"Host": f"A.test:{server.port}", "User-Agent": "sounder"})
            assert connection.getresponse().read()
        connection.close()
        assert server.resolve == (f"*:{server.port}:127.0.0.1",)
        assert {(entry.connection, entry.host, entry.user_agent, entry.at_once) for entry in server.log} == {(1, "a.test", "sounder", 1)}
        assert server.log.count("/") == 3
        assert len(server.log.gaps("a.test")) == 2


def test_requests_at_once_are_counted():
    site = Site("a.test", latency_s=0.05)
    site.add(Page("/", "Home"))
    with serve(site) as server:
        plugs = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
        for plug in plugs:
            plug.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        for plug in plugs:
            assert plug.recv(100).startswith(b"HTTP/1.1 200")
            plug.close()
        assert server.log.max_at_once("a.test") == 5


def test_gzip_chunks_head_and_unknown_hosts():
    site = Site("a.test")
    site.add(Page("/", "Home", ("Long enough to be worth it. " * 20,)))
    site.answer("/chunked", Answer(body=b"wave " * 2000, chunked=True))
    with serve(site) as server:
        _, fields, body = get(server, "a.test", "/", Accept_Encoding="gzip")
        assert fields["content-encoding"] == "gzip"
        assert b"Long enough" in gzip.decompress(body)
        assert get(server, "a.test", "/chunked")[2] == b"wave " * 2000
        assert get(server, "else.test", "/")[0] == 404


def test_unchanged_pages_answer_304_until_they_are_bumped():
    with serve(graph_site(GraphRecipe(pages=3))) as server:
        _, fields, before = get(server, "a.test", "/")
        assert get(server, "a.test", "/", If_None_Match=fields["etag"])[::2] == (304, b"")
        assert get(server, "a.test", "/", If_Modified_Since=fields["last-modified"])[0] == 304
        server.bump("a.test", "/")
        status, _, after = get(server, "a.test", "/", If_None_Match=fields["etag"])
        assert status == 200
        assert after != before


def test_a_child_process_serves_a_recipe_and_leaves_its_log(tmp_path):
    port_file, log_file = tmp_path / "port", tmp_path / "log"
    command = [sys.executable, "-m", "testweb", "linked sites=2 pages=4", "--port-file", str(port_file), "--log-file", str(log_file)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE) as child:
        try:
            told = json.loads(child.stdout.readline())
            server = Server(Web(), port=told["port"])
            before = get(server, "b.test", "/")[2]
            connection = http.client.HTTPConnection("127.0.0.1", told["port"])
            connection.request("BUMP", "/", headers={"Host": "b.test"})
            assert connection.getresponse().read() == b""
            connection.close()
            assert get(server, "b.test", "/")[2] != before
        finally:
            child.send_signal(signal.SIGTERM)
    assert child.returncode == 0
    assert json.loads(port_file.read_text()) == told
    assert told["pid"] == child.pid
    assert [(entry.host, entry.target) for entry in read_log(log_file)] == [("b.test", "/")] * 3


# --- faults ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [404, 410, 500, 502, 403, 451, 999])
def test_statuses(faulty, code):
    assert get(faulty, "faults.test", f"/status/{code}")[0] == code


def test_login_wants_the_password(faulty):
    status, fields, _ = get(faulty, "faults.test", "/login")
    assert status == 401
    assert fields["www-authenticate"].startswith("Basic")
    assert get(faulty, "faults.test", "/login", Authorization="Basic cGlsb3Q6bGFudGVybg==")[0] == 200


def test_passing_faults_pass(faulty):
    assert [get(faulty, "faults.test", "/once-503")[0] for _ in range(3)] == [503, 200, 200]
    status, fields, _ = get(faulty, "faults.test", "/busy")
    assert status == 429
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT", fields["retry-after"])


def test_redirects_go_where_the_truth_says(faulty):
    for url, target in faulty.truth.redirects.items():
        path = url.partition(".test")[2].partition("/")[2]
        status, fields, _ = get(faulty, "faults.test", "/" + path)
        assert status == 302
        assert target.endswith(fields["location"])
    assert get(faulty, "faults.test", "/r?n=41")[1]["location"] == "/r?n=42"
    assert "location" not in get(faulty, "faults.test", "/nowhere")[1]
    assert sum("/chain" in url for url in faulty.truth.redirects) == 3


@pytest.mark.parametrize("path", ["/truncated", "/reset-within"])
def test_bodies_shorter_than_declared(faulty, path):
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        get(faulty, "faults.test", path)


def test_other_broken_bodies(faulty):
    assert not exchange(faulty, "faults.test", "/truncated-chunks").endswith(b"0\r\n\r\n")
    with pytest.raises(EOFError):
        gzip.decompress(get(faulty, "faults.test", "/truncated-gzip")[2])
    with pytest.raises(gzip.BadGzipFile):
        gzip.decompress(get(faulty, "faults.test", "/wrong-encoding")[2])
    assert len(exchange(faulty, "faults.test", "/long-header", most=2 << 20)) > 1 << 20
    assert exchange(faulty, "faults.test", "/not-http").startswith(b"220 ")
    assert exchange(faulty, "faults.test", "/empty-reply") == b""
    with pytest.raises(ConnectionResetError):
        exchange(faulty, "faults.test", "/reset")


def test_endless_bodies_end_when_the_reader_leaves():
    site = Site("a.test")
    site.add(Page("/", "Home"))
    faults.drip(site, "/drip", 0.01)
    faults.flood(site, "/flood")
    with serve(site) as server:
        assert len(exchange(server, "a.test", "/flood", most=300_000)) >= 300_000
        assert exchange(server, "a.test", "/drip", most=2_000).count(b"drip") > 3
    assert server.log.count("/drip") == server.log.count("/flood") == 1


def test_the_bomb_is_a_valid_gzip_stream_of_about_a_thousandth(faulty):
    body = exchange(faulty, "faults.test", "/bomb").partition(b"\r\n\r\n")[2]
    assert len(body) < 10_000
    assert gzip.decompress(body) == bytes(8 << 20)


def test_faults_have_reasons():
    truth = faults.faulty_site().truth
    expected = truth.expected(next(iter(truth.pages)))
    assert expected["http://faults.test:@PORT@/status/410"] is Reason.NOT_FOUND
    assert expected["http://faults.test:@PORT@/status/999"] is Reason.REFUSED
    assert expected["http://faults.test:@PORT@/chain/2"] is Reason.REDIRECT
    assert expected["http://faults.test:@PORT@/good.html"] is Reason.OK


# --- robots ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", robots.CASES)
def test_robots_cases_answer_something(case):
    with serve(robots.robots_web(case)) as server:
        try:
            answer = exchange(server, robots.HOST, "/robots.txt", most=600) or b"nothing"
        except ConnectionResetError:
            answer = b"reset"
        except TimeoutError:
            pytest.fail("robots.txt kept us waiting")
    status = re.match(rb"HTTP/1.1 (\d+)", answer)
    assert (status is None) == (case in ("reset", "empty-reply"))


# --- traps ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trapped():
    with serve(traps.trap_site(pages=10)) as server:
        yield server


def test_session_ids_differ_per_visit(trapped):
    one, other = (hrefs(get(trapped, "traps.test", "/session/0.html")[2]) for _ in range(2))
    assert set(one).isdisjoint(other)
    assert {href.partition("?")[0] for href in one} == {href.partition("?")[0] for href in other}
    assert get(trapped, "traps.test", one[0])[0] == 200


def test_calendar_and_tree_go_on(trapped):
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


# --- identity and kinds ----------------------------------------------------------------------------------------------------


def test_the_sixteen_hrefs_lead_where_their_table_says():
    site = identity.identity_site()
    with serve(site) as server:
        bodies = {}
        for pair in identity.PAIRS:
            one, other = (get(server, site.host, href.partition("#")[0].replace("/z/../", "/")) for href in (pair.one, pair.other))
            assert one[0] == other[0] == 200
            assert (one[2] == other[2]) == (pair.relation != identity.APART)
            bodies |= {pair.one: one[2], pair.other: other[2]}
        page = get(server, site.host, "/")[2]
    assert len(hrefs(page)) == len(bodies) == 16
    assert len(set(bodies.values())) == identity.CONTENTS
    assert len({link.target for link in site.truth.links[site.url("/")]}) == identity.FETCHES_MOST


def test_there_are_29_link_kinds_and_all_targets_exist():
    site = identity.kinds_site()
    assert len({kind.name for kind in identity.KINDS}) == 29
    with serve(site) as server:
        assert all(get(server, site.host, f"/kinds/{kind.name}")[0] == 200 for kind in identity.KINDS)
        assert all(get(server, site.host, path)[0] == 404 for path in identity.FALSE_LINKS)


# --- content -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed():
    with serve(content.mixed_site()) as server:
        yield server


def test_charsets_are_what_they_say_where_they_say(mixed):
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


def test_sitemaps_name_the_orphan_with_the_real_port(mixed):
    index = get(mixed, "mixed.test", "/sitemap.xml")[2].decode()
    assert mixed.url("mixed.test", "/sitemap-2.xml.gz") in index
    packed = get(mixed, "mixed.test", "/sitemap-2.xml.gz")[2]
    assert mixed.url("mixed.test", "/orphan.html") in gzip.decompress(packed).decode()
    assert mixed.url("mixed.test", "/sitemap.xml") in get(mixed, "mixed.test", "/robots.txt")[2].decode()
    assert mixed.url("mixed.test", "/orphan.html") in mixed.truth.orphans


def test_nobody_needs_to_read_the_zip():
    site = Site("a.test")
    site.add(Page("/", "Home"))
    content.big_binary(site)
    with serve(site) as server:
        assert b"application/zip" in exchange(server, "a.test", "/charts.zip", most=1000)
    assert next(iter(server.log)).body_bytes < 32 << 20


@pytest.mark.skipif(not tls.AVAILABLE, reason="no openssl program here")
def test_the_certificate_is_trusted_by_nobody(tmp_path):
    with serve(graph_site(GraphRecipe(pages=2)), certificate=tls.self_signed(tmp_path)) as server:
        assert len(server.resolve) == 2
        for context, fine in ((ssl.create_default_context(), False), (ssl._create_unverified_context(), True)):
            with socket.create_connection(("127.0.0.1", server.tls_port), timeout=5) as plug:
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


def test_pages_behind_nofollow_are_expected_not_to_be_fetched():
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
