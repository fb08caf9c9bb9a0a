"""The synthetic web behaves on the network as its truth declares."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
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
    faults,
    graph_site,
    linked_sites,
    read_log,
    robots,
    serve,
)
from testweb.ask import exchange, get


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
def test_every_page_is_reachable_and_has_the_requested_number_of_links(shape):
    truth = graph_site(GraphRecipe(seed=5, pages=120, links_per_page=15, shape=shape, page_bytes=6000)).truth
    assert len(truth.depths) == len(truth.pages) == 120
    assert {len({link.target for link in links}) for links in truth.links.values()} == {15}


def test_shapes_differ_in_depth():
    depths = [
        max(graph_site(GraphRecipe(pages=400, links_per_page=12, shape=shape, page_bytes=3000)).truth.depths.values())
        for shape in ("flat", "deep")
    ]
    assert depths[0] <= 5
    assert depths[1] >= 20


def test_small_sites_with_few_links_work():
    for pages, links in ((1, 1), (2, 40), (3, 1), (10, 3)):
        truth = graph_site(GraphRecipe(pages=pages, links_per_page=links, page_bytes=500)).truth
        assert len(truth.depths) == pages


def test_a_web_depends_only_on_recipe_and_seed():
    assert linked_sites(3).truth.as_json() == linked_sites(3).truth.as_json() != linked_sites(4).truth.as_json()


def test_served_links_equal_those_of_the_truth():
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


# --- the server
# --------------------------------------------------------------------------------------------------------


def test_the_server_listens_on_loopback_and_keeps_connections_open():
    with serve(graph_site(GraphRecipe(pages=3))) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        for _ in range(3):
            connection.request("GET", "/", headers={"Host": f"A.test:{server.port}", "User-Agent": "sounder"})
            assert connection.getresponse().read()
        connection.close()
        assert server.resolve == (f"*:{server.port}:127.0.0.1",)
        assert {(entry.connection, entry.host, entry.user_agent, entry.at_once) for entry in server.log} == {
            (1, "a.test", "sounder", 1)
        }
        assert server.log.count("/") == 3
        assert len(server.log.gaps("a.test")) == 2


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="only Linux tells when bytes came in")
def test_a_request_to_a_busy_server_is_logged_at_its_arrival():
    """Tests read gaps from the log: a stalled server would make the next gap look too short."""
    site, stalled, asked_too = Site("a.test"), threading.Event(), threading.Event()

    def stall(asked):
        stalled.set()
        assert asked_too.wait(120)
        time.sleep(2.0)  # much longer than a loaded machine needs for two bytes
        return Answer(body=b"at last")

    site.add(Page("/", "Home"))
    site.answer("/stall", stall)
    with serve(site) as server:
        plugs = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        plugs[0].sendall(b"GET /stall HTTP/1.1\r\nHost: a.test\r\n\r\n")
        assert stalled.wait(120)
        plugs[1].sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        sent = time.monotonic()
        asked_too.set()
        assert all(plug.recv(100) for plug in plugs)
        (entry,) = [entry for entry in server.log if entry.target == "/"]
        assert abs(entry.arrived - sent) < 1.0
        for plug in plugs:
            plug.close()


def test_concurrent_requests_are_counted():
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


def test_gzip_chunks_head_and_unknown_hosts_are_served():
    site = Site("a.test")
    site.add(Page("/", "Home", ("Long enough to be worth it. " * 20,)))
    site.answer("/chunked", Answer(body=b"wave " * 2000, chunked=True))
    with serve(site) as server:
        _, fields, body = get(server, "a.test", "/", Accept_Encoding="gzip")
        assert fields["content-encoding"] == "gzip"
        assert b"Long enough" in gzip.decompress(body)
        assert get(server, "a.test", "/chunked")[2] == b"wave " * 2000
        assert get(server, "else.test", "/")[0] == 404


def test_unchanged_pages_answer_304_until_they_change():
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
    command = [
        sys.executable,
        "-m",
        "testweb",
        "linked sites=2 pages=4",
        "--port-file",
        str(port_file),
        "--log-file",
        str(log_file),
    ]
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


# --- faults
# ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [404, 410, 500, 502, 403, 451, 999])
def test_each_planted_status_is_served(faulty, code):
    assert get(faulty, "faults.test", f"/status/{code}")[0] == code


def test_the_login_page_needs_the_password(faulty):
    status, fields, _ = get(faulty, "faults.test", "/login")
    assert status == 401
    assert fields["www-authenticate"].startswith("Basic")
    assert get(faulty, "faults.test", "/login", Authorization="Basic cGlsb3Q6bGFudGVybg==")[0] == 200


def test_temporary_faults_end(faulty):
    assert [get(faulty, "faults.test", "/once-503")[0] for _ in range(3)] == [503, 200, 200]
    status, fields, _ = get(faulty, "faults.test", "/busy")
    assert status == 429
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT", fields["retry-after"])


def test_redirects_have_the_targets_of_the_truth(faulty):
    for url, target in faulty.truth.redirects.items():
        path = url.partition(".test")[2].partition("/")[2]
        status, fields, _ = get(faulty, "faults.test", "/" + path)
        assert status == 302
        assert target.endswith(fields["location"])
    assert get(faulty, "faults.test", "/r?n=41")[1]["location"] == "/r?n=42"
    assert "location" not in get(faulty, "faults.test", "/nowhere")[1]
    assert sum("/chain" in url for url in faulty.truth.redirects) == 3


@pytest.mark.parametrize("path", ["/truncated", "/reset-within"])
def test_bodies_can_be_shorter_than_declared(faulty, path):
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        get(faulty, "faults.test", path)


def test_broken_bodies_are_broken(faulty):
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


def test_endless_bodies_end_when_the_client_disconnects():
    site = Site("a.test")
    site.add(Page("/", "Home"))
    faults.drip(site, "/drip", 0.01)
    faults.flood(site, "/flood")
    with serve(site) as server:
        assert len(exchange(server, "a.test", "/flood", most=300_000)) >= 300_000
        assert exchange(server, "a.test", "/drip", most=2_000).count(b"drip") > 3
    assert server.log.count("/drip") == server.log.count("/flood") == 1


def test_the_bomb_is_a_valid_gzip_stream_of_a_thousandth_of_its_content(faulty):
    body = exchange(faulty, "faults.test", "/bomb").partition(b"\r\n\r\n")[2]
    assert len(body) < 10_000
    assert gzip.decompress(body) == bytes(8 << 20)


def test_faults_have_expected_reasons():
    truth = faults.faulty_site().truth
    expected = truth.expected(next(iter(truth.pages)))
    assert expected["http://faults.test:@PORT@/status/410"] is Reason.NOT_FOUND
    assert expected["http://faults.test:@PORT@/status/999"] is Reason.REFUSED
    assert expected["http://faults.test:@PORT@/chain/2"] is Reason.REDIRECT
    assert expected["http://faults.test:@PORT@/good.html"] is Reason.OK


# --- robots
# ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", robots.CASES)
def test_every_robots_case_has_an_answer(case):
    with serve(robots.robots_web(case)) as server:
        try:
            answer = exchange(server, robots.HOST, "/robots.txt", most=600) or b"nothing"
        except ConnectionResetError:
            answer = b"reset"
        except TimeoutError:
            pytest.fail("robots.txt kept us waiting")
    status = re.match(rb"HTTP/1.1 (\d+)", answer)
    assert (status is None) == (case in ("reset", "empty-reply"))
