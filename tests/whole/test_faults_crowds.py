"""Crawls with very many hosts, very many slow servers, and nested compression bombs."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import brotli
import pytest
import zstandard
from voyage import TESTS, crawled

import judge
from periplus.model.visit import Reason
from testweb import Page, Site, Web, serve
from testweb.wire import Answer, Pause, Raw, Step, head

GOOD_HOSTS, GOOD_PAGES = 5, 12


def _a_byte_now_and_then(start: bytes) -> Iterator[Step]:
    yield start
    while True:
        yield Pause(0.5)
        yield b"x"


def slow_site(host: str, kind: int) -> Site:
    """A host with an endless home page, header or robots.txt."""
    site = Site(host)
    start = (head(200), b"HTTP/1.1 200 OK\r\nX-Slow: ", head(200))[kind]
    site.routes.exact["/robots.txt" if kind == 2 else "/"] = lambda asked: Raw(lambda: _a_byte_now_and_then(start), 200)
    return site


@pytest.mark.parametrize("number_of_slow", [30, pytest.param(200, marks=pytest.mark.faults)])
def test_very_slow_servers_do_not_block_others(tmp_path: Path, number_of_slow: int) -> None:
    """Each ends at its time limit with a reason; all pages of the other hosts are fetched."""
    web = Web(slow_site(f"slow{number}.test", number % 3) for number in range(number_of_slow))
    for number in range(GOOD_HOSTS):
        site = web.site(f"good{number}.test")
        site.add(Page("/", "Home", (f"Home of {number}.",)))
        for page in range(1, GOOD_PAGES):
            site.add(Page(f"/{page}.html", f"Page {page}", (f"Page {page} of {number}.",)), "/")
    limits = {
        "total_timeout_s": 2.0,
        "first_byte_timeout_s": 2.0,
        "retries": 0,
        "concurrency": 16 + number_of_slow // 4,
        "sitemaps": False,
        "commit_interval_s": 0.3,
    }
    with serve(web) as server:
        collection, _ = crawled(tmp_path, server, *web.sites, delay_s=0.01, **limits)
        reasons = collection.reasons
        slow = [reasons[server.url(f"slow{number}.test")] for number in range(number_of_slow)]
        assert set(slow[0::3]) == {Reason.TRUNCATED}
        assert set(slow[1::3]) <= {Reason.UNREACHABLE, Reason.HOST_DOWN}
        assert set(slow[2::3]) <= {Reason.ROBOTS_UNREACHABLE, Reason.HOST_DOWN}, "half a robots.txt is none"
        good = {url: reason for url, reason in reasons.items() if "good" in url}
        assert len(good) == GOOD_HOSTS * GOOD_PAGES and set(good.values()) == {Reason.OK}
        assert [*collection.sane(), *judge.unsound(collection.ask)] == []
        assert not [meeting for meeting in judge.meetings(server.log) if "good" in meeting]
        assert max(entry.ended - entry.arrived for entry in server.log) < 2.0 + 2.0


@pytest.mark.parametrize("hosts", [200, pytest.param(5_000, marks=pytest.mark.faults)])
def test_the_cost_per_page_does_not_grow_with_very_many_hosts(tmp_path: Path, hosts: int) -> None:
    """Time and memory depend on the open requests, not on the number of known URLs."""
    words = [sys.executable, str(Path(__file__).with_name("many_hosts.py")), str(tmp_path / "c"), str(hosts)]
    ran = subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(TESTS)}, timeout=3_600, check=False
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    print(told)
    assert (told["pages"], told["idle"]) == (2 * hosts, True)
    assert told["memory_mib"] < 300
    assert told["last_us"] < 3 * told["first_us"] + 1_000


@pytest.fixture(scope="module")
def bombs() -> dict[str, bytes]:
    """256 MiB of zeros, compressed two and three times, by content coding (outermost last)."""
    zeros = bytes(1 << 20)
    once = {
        "gzip": gzip.compress(zeros * 256, 9, mtime=0),
        "br": brotli.compress(zeros * 64, quality=5),
        "zstd": zstandard.ZstdCompressor(level=19).compress(zeros * 256),
    }
    twice = {f"{inner}, gzip": gzip.compress(body, 9, mtime=0) for inner, body in once.items()}
    return twice | {
        "gzip, br": brotli.compress(once["gzip"]),
        "gzip, gzip, gzip": gzip.compress(twice["gzip, gzip"], 9, mtime=0),
    }


@pytest.mark.parametrize("coding", ["gzip, gzip", "br, gzip", "zstd, gzip", "gzip, br", "gzip, gzip, gzip"])
def test_a_nested_bomb_is_truncated_and_the_crawl_continues(
    tmp_path: Path, coding: str, bombs: dict[str, bytes]
) -> None:
    site, body = Site("a.test"), bombs[coding]
    site.add(Page("/", "Home", ("Home.",)))
    site.add(Page("/good.html", "Good", ("A good page.",)), "/")
    site.answer("/bomb", Answer(body=body, headers=(("Content-Encoding", coding),), gzip=False), Reason.TRUNCATED)
    site.answer(
        "/bomb.xml",
        Answer(body=body, media_type="application/xml", headers=(("Content-Encoding", coding),), gzip=False),
        Reason.TRUNCATED,
    )
    with serve(site) as server:
        collection, _ = crawled(tmp_path, server, "a.test", sitemaps=False)
        row = collection.urls[server.url("a.test", "/bomb")]
        assert (row.reason, row.rule) in [
            (Reason.TRUNCATED, "ratio-limit"),
            (Reason.TRUNCATED, "inflated-limit"),
            (Reason.TRUNCATED, "bad-content-encoding"),
        ]
        assert collection.reasons[server.url("a.test", "/good.html")] is Reason.OK
        assert collection.ask("SELECT max(size) FROM body")[0][0] <= 33_554_432
