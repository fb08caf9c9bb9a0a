"""Politeness of crawls, checked only on the server: arrival of requests, and number of open requests.

A request arrives some time after it was sent, so a measured gap may be shorter than the real one: by at most LATENESS_S
on a busy machine.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from voyage import PATIENCE_S, crawled, environment, flags_for, until

from testweb import GraphRecipe, Page, Site, Web, content, graph_site, linked_sites, robots, serve

LATENESS_S = 0.02


def test_over_many_hosts_and_two_workers_no_gap_is_short_and_no_requests_overlap(tmp_path: Path) -> None:
    """robots.txt and sitemaps are requests too. 10 hosts of 9 pages."""
    web = linked_sites(seed=4, sites=10, pages=9, links_between=6, links_per_page=6)
    for site in web.sites.values():
        site.latency_s = 0.01
        content.sitemaps(site, orphans=())
    with serve(web) as server:
        _, end = crawled(tmp_path, server, *web.sites, workers=2, delay_s=0.1, commit_pages=10)
        assert end.state == "done" and end.counts.fetched == 90
        for host in web.sites:
            assert min(server.log.gaps(host)) >= 0.1 - LATENESS_S, host
            assert server.log.max_at_once(host) == 1
            assert len(server.log.of(host)) == 9 + 4, "pages, robots.txt, three sitemaps"


def test_a_slow_host_gets_one_request_at_a_time(tmp_path: Path) -> None:
    """A foreign host: answers take longer than the delay; the limit of one request applies to all hosts."""
    site = graph_site(GraphRecipe(seed=1, pages=8, page_bytes=500))
    site.latency_s = 0.15
    with serve(site) as server:
        crawled(tmp_path, server, "a.test", delay_s=0.02)
        assert server.log.max_at_once("a.test") == 1


def test_the_minimum_delay_holds_for_foreign_hosts(tmp_path: Path, floor: float) -> None:
    """Independent of the requested delay and concurrency: only `a.test` is our own."""
    web = Web([graph_site(GraphRecipe(seed=1, pages=4, page_bytes=500, host=host)) for host in ("a.test", "b.test")])
    with serve(web) as server:
        crawled(tmp_path, server, "a.test", "b.test", mine=("a.test",), delay_s=0.0, per_host=3, sitemaps=False)
        assert len(server.log.of("b.test")) == 5
        assert min(server.log.gaps("b.test")) >= floor - LATENESS_S
        assert server.log.max_at_once("b.test") == 1
        assert min(server.log.gaps("a.test")) < 0.3


def test_concurrent_requests_only_to_own_hosts(tmp_path: Path) -> None:
    web = Web([graph_site(GraphRecipe(seed=1, pages=20, page_bytes=500, host=host)) for host in ("a.test", "b.test")])
    for site in web.sites.values():
        site.latency_s = 0.5
    with serve(web) as server:
        crawled(
            tmp_path,
            server,
            "a.test",
            "b.test",
            mine=("a.test",),
            per_host=3,
            delay_s=0.0,
            max_pages=8,
            quantum=4,
            sitemaps=False,
        )
        assert server.log.max_at_once("a.test") == 3
        assert server.log.max_at_once("b.test") == 1


def test_many_names_of_an_address_are_treated_like_one_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All names resolve to this machine; they are treated as foreign, without the exemption of loopback.

    The first names are requested before the address counts as crowded.
    """
    monkeypatch.setattr("periplus.acquire.politeness.OWN_MACHINE", "")
    web = Web([graph_site(GraphRecipe(seed=1, pages=2, page_bytes=500, host=f"s{number}.test")) for number in range(5)])
    with serve(web) as server:
        _, end = crawled(tmp_path, server, *web.sites, delay_s=0.3, per_address=2, sitemaps=False)
        assert end.counts.fetched == 10
        starts = sorted(entry.arrived for host in web.sites for entry in server.log.of(host))
        assert len(starts) == 5 * 3
        assert min(later - earlier for earlier, later in itertools.pairwise(starts[2:])) >= 0.3 - LATENESS_S


def test_a_longer_delay_holds_from_the_first_request_and_in_the_next_run(tmp_path: Path) -> None:
    """A delay above the default; a second run knows the last request of the first."""
    with serve(graph_site(GraphRecipe(seed=1, pages=6, page_bytes=500))) as server:
        for pages in (2, 2):
            crawled(tmp_path, server, "a.test", delay_s=0.6, max_pages=pages, sitemaps=False)
        assert len(server.log.of("a.test")) == 5
        assert min(server.log.gaps("a.test")) >= 0.6 - LATENESS_S


def test_crawl_delay_over_several_hosts(tmp_path: Path) -> None:
    """Each host has its own."""
    web = Web()
    for number, delay in enumerate((0.2, 0.4)):
        site = graph_site(GraphRecipe(seed=number, pages=4, page_bytes=500, host=f"s{number}.test"))
        robots.disallow(site, f"User-agent: *\nCrawl-delay: {delay}\n")
        web.sites[site.host] = site
    with serve(web) as server:
        crawled(tmp_path, server, *web.sites, sitemaps=False, workers=2)
        for number, delay in enumerate((0.2, 0.4)):
            gaps = server.log.gaps(f"s{number}.test")
            assert len(gaps) == 4 and min(gaps) >= delay - LATENESS_S


def test_refusals_slow_the_host_down(tmp_path: Path) -> None:
    """After two answers of 429 the gaps are four times as long, and shrink again."""
    from testweb import faults

    site = Site("a.test")
    site.add(Page("/", "Home", ("Home.",)))
    for number in range(2):
        faults.passing(site, f"/busy/{number}", 429, 1, "0")
    for number in range(12):
        site.add(Page(f"/{number}.html", f"Page {number}", (f"Page {number}.",)), "/")
    with serve(site) as server:
        crawled(tmp_path, server, "a.test", delay_s=0.05, sitemaps=False)
        entries = server.log.of("a.test")
        last = max(number for number, entry in enumerate(entries) if entry.status == 429)
        after = [
            later.arrived - earlier.arrived for earlier, later in zip(entries[last:], entries[last + 1 :], strict=False)
        ]
        assert after[0] >= 0.2 - LATENESS_S and min(after) >= 0.05 - LATENESS_S
        assert after[-1] < after[0] / 2, after


def test_the_quantum_divides_pages_among_sites(tmp_path: Path) -> None:
    """30 pages of three sites with 40 pages: ten each, plus or minus one quantum."""
    web = linked_sites(seed=6, sites=3, pages=40, links_between=5, links_per_page=10)
    with serve(web) as server:
        _, end = crawled(tmp_path, server, *web.sites, max_pages=30, quantum=5, delay_s=0.0)
        assert end.counts.fetched == 30
        shares = [
            sum(target not in ("/robots.txt", "/sitemap.xml") for target in server.log.targets(host))
            for host in web.sites
        ]
        assert sum(shares) == 30 and max(shares) - min(shares) <= 5


def test_a_dead_host_does_not_hold_up_the_quantum(tmp_path: Path) -> None:
    """Sites that wait for an unresponsive host must not block others."""
    web = Web([graph_site(GraphRecipe(seed=1, pages=30, page_bytes=500))])
    with serve(web) as server:
        _, end = crawled(
            tmp_path, server, "a.test", "http://127.0.0.1:1/", max_pages=20, quantum=5, delay_s=0.0, retry_wait_s=4.0
        )
        assert end.counts.fetched == 20
        arrivals = [entry.arrived for entry in server.log.of("a.test")]
        assert arrivals[-1] - arrivals[0] < 3


def test_names_of_an_address_are_treated_like_one_host_by_two_crawls(tmp_path: Path) -> None:
    """Two collections; the first has too few names to count as crowded, and is killed and restarted."""
    names = [f"s{number}.test" for number in range(6)]
    web = Web([graph_site(GraphRecipe(seed=1, pages=3, page_bytes=500, host=name)) for name in names])
    program = "import periplus.acquire.politeness as p; p.OWN_MACHINE = ''; from periplus.cli.main import main; main()"
    with serve(web) as server:

        def begin(place: str, hosts: list[str]) -> subprocess.Popen[bytes]:
            flags = flags_for(server.resolve, delay_s=0.5, per_address=3)
            words = ["crawl", *map(server.url, hosts), "-o", place, "-q", "--no-sitemaps", *flags]
            environ = {**environment(), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
            return subprocess.Popen([sys.executable, "-c", program, *words], env=environ, cwd=tmp_path)

        few, many = names[:2], names[2:]
        crawls = [begin("few", few), begin("many", many)]
        until(lambda: server.log.hosts() == set(names), "both ask")
        crawls[0].kill()
        crawls[0].wait()
        crawls[0] = begin("few", few)
        assert [crawl.wait(PATIENCE_S) for crawl in crawls] == [0, 0]
        starts = {host: [entry.arrived for entry in server.log.of(host)] for host in names}
        begun = max(times[0] for times in starts.values())
        ended = min(max(starts[host][-1] for host in hosts) for hosts in (few, many))
        shared = sorted(time for times in starts.values() for time in times if begun <= time <= ended)
        assert len(shared) > 5
        # half of the delay, since processes of a loaded machine are late: crawls that do not share it ask at once
        assert min(later - earlier for earlier, later in itertools.pairwise(shared)) >= 0.25
        assert all(len(set(server.log.targets(host))) == 3 + 1 for host in names)
