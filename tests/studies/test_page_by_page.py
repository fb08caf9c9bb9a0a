"""A worker with a policy that selects page by page."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import pytest

from contracts.plain_store import PlainStore
from fakes import FakeClock, FakeTransport, Scripted, own_turns
from periplus.acquire.discovery import Aliases, Discovery
from periplus.acquire.leases import WorkerDeps
from periplus.acquire.politeness import HeldHost, Pace, prefer
from periplus.acquire.worker import Worker
from periplus.model.frontier import Lease, ReadyHost
from periplus.model.visit import Purpose, Request
from periplus.model.web import HostKey, SiteKey, Url
from periplus.schedule.traps import TrapDetector
from periplus.settings import settings_from
from periplus.urls.hosts import host_name
from periplus.urls.scope import site_scope
from periplus_studies.model import Campaign
from periplus_studies.schedule import SurveyPolicy, survey_policy
from periplus_studies.units import unit_of


class Favourites:
    """A policy that prefers hosts with greater ids."""

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        return sorted((host.host_id for host in ready), reverse=True)[:most]


def held(number: int, not_before: float) -> HeldHost:
    name = f"s{number}.test"
    lease = Lease(number, HostKey(f"{name}:80"), SiteKey(name), 1, 0.0, 0.5, 0.0, 0, False)
    return HeldHost(lease, Pace(0.5, 0.0, not_before, 0, False), False, None)


def test_the_policy_selects_among_the_due_hosts():
    starting, others = prefer([held(number, 10.0) for number in range(4)], Favourites(), 2)
    assert [[host.lease.host_id for host in hosts] for hosts in (starting, others)] == [[3, 2], [0, 1]]


def crawled(pages: int, delay_s: float = 0.5) -> tuple[list[str], SurveyPolicy, FakeTransport]:
    """Hosts of the page requests in order, with one request at a time. Three sites have a hundred pages each; each page
    of s1 has two new links.
    """

    def answer(request: Request) -> Scripted:
        if request.purpose is not Purpose.PAGE:
            return Scripted(status=404)
        host, number = host_name(request.url), int(request.url.rpartition("/")[2])
        inner = "".join(f'<a href="/{page}">{page}</a>' for page in range(100))
        outer = "".join(
            f'<a href="http://out.org/{number}-{one}">x</a>' for one in range(2 if host == "s1.test" else 0)
        )
        return Scripted(f"<html><body>{inner}{outer}<p>words of {number}".encode())

    return campaign_run(answer, pages, delay_s)


def campaign_run(
    answer: Callable[[Request], Scripted], pages: int, delay_s: float
) -> tuple[list[str], SurveyPolicy, FakeTransport]:
    """Hosts of the page requests of a campaign of three sites, in order, with one request at a time."""
    starts = [Url(f"http://s{number}.test/0") for number in range(3)]
    values = {
        "max_pages": pages,
        "quantum": 1_000_000,
        "concurrency": 1,
        "delay_s": delay_s,
        "sitemaps": False,
        "trap_window": 0,
        "commit_pages": 1,
    }
    settings = settings_from(values)
    clock = FakeClock()
    transport = FakeTransport(clock, answer)
    scope = site_scope(starts, settings.scope)
    store = PlainStore(settings.budget, settings.storage, lambda pid: True)
    store.offer(Discovery(scope, settings).of_starts(starts), (), clock.now())
    units = tuple(unit_of(start) for start in starts)
    campaign = Campaign("made", units, "r2:1", "breadth", pages=pages)
    policy = survey_policy(campaign, settings)
    deps = WorkerDeps(
        store,
        transport,
        clock,
        policy,
        lambda memory, past: TrapDetector(0, 0, memory, past),
        scope,
        frozenset(),
        Aliases(),
        own_turns(8, 0.5),
    )
    Worker(deps, settings).run(lambda: False)
    return (
        [host_name(request.url) for _, request in transport.started if request.purpose is Purpose.PAGE],
        policy,
        transport,
    )


def test_a_crawl_keeps_the_budget_and_reports_each_page_to_the_policy():
    asked, policy, _ = crawled(40)
    assert len(asked) == 40 and set(asked) == {"s0.test", "s1.test", "s2.test"}
    yields = policy.rule.yields
    pages = {site: int(yields.pages[0, place]) for site, place in policy.rule.places.items()}
    assert pages == {host: asked.count(host) for host in sorted(set(asked))}
    assert yields.gained[0] == 2 * asked.count("s1.test")


def test_a_crawl_waits_for_the_preferred_host_and_keeps_its_delay():
    """The delay is 0.5 s and a page takes 0.1 s, so other hosts are ready during the delay."""
    asked, _, transport = crawled(40)
    assert asked.count("s1.test") >= 35
    starts = [when for when, request in transport.started if host_name(request.url) == "s1.test"]
    assert all(later - sooner >= 0.5 - 1e-6 for sooner, later in itertools.pairwise(starts))


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_pages_does_not_depend_on_response_times(seed: int):
    """Each page links only to the next page of another site, so that only one host has work at a time."""

    def answer(rng: random.Random) -> Callable[[Request], Scripted]:
        def answered(request: Request) -> Scripted:
            if request.purpose is not Purpose.PAGE:
                return Scripted(status=404, took_s=rng.uniform(0.001, 0.6))
            host, number = int(host_name(request.url)[1]), int(request.url.rpartition("/")[2])
            ends = [f"http://s{(host + 1) % 3}.test/{number + 1}", f"http://out{number % 5}.org/{host}"]
            body = "".join(f'<a href="{end}">{end}</a>' for end in ends)
            return Scripted(f"<html><body>{body}<p>words of {host} {number}".encode(), took_s=rng.uniform(0.001, 0.6))

        return answered

    steady = campaign_run(answer(random.Random(0)), 40, 0.2)
    other = campaign_run(answer(random.Random(1 + seed)), 40, 0.2)
    first, second = ([r.url for _, r in run[2].started if r.purpose is Purpose.PAGE] for run in (steady, other))
    assert len(first) == 40 and first == second


@pytest.mark.parametrize("delay_s", [0.5, 2.5, 11.0])
def test_a_crawl_ends_for_any_delay_of_the_preferred_host(delay_s: float):
    """Also with delays longer than the 2 s for which hosts are leased ahead."""
    asked, _, transport = crawled(20, delay_s)
    assert len(asked) == 20 and asked.count("s1.test") >= 17
    assert transport.clock.monotonic() - transport.started[0][0] <= 21 * (delay_s + 0.2)
