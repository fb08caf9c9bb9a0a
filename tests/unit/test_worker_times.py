"""A worker that is suspended longer than its lease, or whose clock is set forward or back."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import random
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

import judge
from contracts.crawl_values import batch, candidate, state
from fakes import FakeClock, FakeTransport, Scripted, own_turns
from periplus.acquire.choosing import SiteTurns
from periplus.acquire.discovery import Aliases, Discovery
from periplus.acquire.leases import TICK_S, WorkerDeps
from periplus.acquire.worker import Worker
from periplus.model.visit import Purpose, Request
from periplus.model.web import Url
from periplus.schedule.traps import TrapDetector
from periplus.settings import Settings, settings_from
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import FolderHome, SqliteCrawlStore
from periplus.urls.hosts import host_name
from periplus.urls.scope import site_scope

HOSTS, PAGES, LEASE_S, LIMIT_S, DELAY_S = 3, 25, 60.0, 20.0, 0.5
STARTS = [Url(f"http://s{number}.test/0") for number in range(HOSTS)]
HOUR_S, DAY_S = 3600.0, 86_400.0


@dataclass
class SkewedClock(FakeClock):
    """A clock whose time of day can be set. The monotonic time is unaffected."""

    skew_s: float = 0.0

    def now(self) -> float:
        return self.seconds + self.skew_s


def answer(request: Request) -> Scripted:
    if request.purpose is not Purpose.PAGE:
        return Scripted(status=404)
    number = int(request.url.rpartition("/")[2])
    links = "".join(f'<a href="/{page}">{page}</a>' for page in range(number, min(number + 4, PAGES)))
    return Scripted(f"<html><body>{links}<p>words of {request.url}".encode())


class Meddling:
    """A store that calls a function of the test before and after each method, to change the time."""

    def __init__(self, store: SqliteCrawlStore, meddle) -> None:
        self._store, self._meddle = store, meddle

    def __getattr__(self, name: str):
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def call(*args, **more):
            self._meddle("before " + name)
            result = found(*args, **more)
            self._meddle("after " + name)
            return result

        return call


@dataclass
class WatchedTransport(FakeTransport):
    """Records the age of the last proof of a lease at the start of each request."""

    proof: list[float] = None
    ages: list[float] = None
    withdrawn: set[Request] = field(default_factory=set)

    def withdraw(self, requests: Collection[Request]) -> None:
        assert requests <= {response.request for _, _, response in self._flying}
        self.withdrawn |= requests

    def start(self, request: Request, before: float = math.inf) -> None:
        self.ages.append(self.clock.monotonic() - self.proof[-1])
        super().start(request, before)


def settings() -> Settings:
    return settings_from(
        {"lease_s": LEASE_S, "total_timeout_s": LIMIT_S, "sitemaps": False, "trap_window": 0, "delay_s": DELAY_S}
    )


def crawled(
    folder: Path, clock: FakeClock, meddle, turns: int = 100_000, script=answer, kind=WatchedTransport
) -> WatchedTransport:
    """A crawl of all pages by one worker. meddle(place) is called around each call of the store.

    turns: number of loops after which the worker is stopped.
    """
    chosen, proof = settings(), [clock.monotonic()]
    if not schema.exists(folder):
        schema.create(folder)
    run_id = FolderHome(folder).begin_run("crawl", STARTS, chosen, clock.now())
    store = SqliteCrawlStore(folder, run_id, chosen.budget, chosen.storage)

    def watched(place: str) -> None:
        if place in ("before commit", "before join"):
            proof.append(clock.monotonic())
        meddle(place)

    scope = site_scope(STARTS, chosen.scope)
    store.offer(Discovery(scope, chosen).of_starts(STARTS), (), clock.now())
    transport = kind(clock, script, proof=proof, ages=[])
    sense = lambda memory, past: TrapDetector(0, 0, memory, past)  # noqa: E731
    deps = WorkerDeps(
        Meddling(store, watched),
        transport,
        clock,
        SiteTurns(50),
        sense,
        scope,
        frozenset(),
        Aliases(),
        own_turns(8, 0.5),
    )
    began, looks = clock.monotonic(), itertools.count()

    def tick() -> bool:
        meddle("tick")
        return next(looks) > turns

    Worker(deps, chosen).run(tick)
    transport.took_s = clock.monotonic() - began
    FolderHome(folder).end_run(run_id, "done", "", clock.now())
    store.close()
    assert judge.unsound(partial(read, folder), judge.ALWAYS) == []
    assert turns < 1_000 or read(folder, "SELECT reason, count(*) FROM url GROUP BY 1") == [("ok", HOSTS * PAGES)]
    return transport


def read(folder: Path, select: str) -> list[tuple]:
    with contextlib.closing(schema.connect(folder, read_only=True)) as connection:
        return connection.execute(select).fetchall()


def gaps(*transports: FakeTransport) -> list[float]:
    """Seconds between the starts of two requests to a host, on the monotonic clock."""
    times: dict[str, list[float]] = {}
    for when, request in itertools.chain.from_iterable(transport.started for transport in transports):
        times.setdefault(host_name(request.url), []).append(when)
    return [later - earlier for starts in times.values() for earlier, later in itertools.pairwise(starts)]


@pytest.mark.parametrize("seed", range(6))
def test_a_suspended_worker_starts_no_request_after_its_lease(tmp_path: Path, seed: int) -> None:
    """It is suspended at random moments for up to twice its lease.

    A request starts only if it can end within the proven lease.
    """
    rng, clock = random.Random(seed), FakeClock()

    def stop(place: str) -> None:
        if rng.random() < 0.03:
            clock.seconds += rng.choice((1.0, LEASE_S * 0.7, LEASE_S * 1.75))

    transport = crawled(tmp_path, clock, stop)
    assert max(transport.ages) <= LEASE_S - LIMIT_S
    assert min(gaps(transport)) >= DELAY_S - 1e-6


def test_requests_of_a_lost_lease_are_withdrawn(tmp_path: Path) -> None:
    """They may not have been sent yet, because of a slow commit."""
    clock, commits = FakeClock(), itertools.count()

    def expire(place: str) -> None:
        if place == "before commit" and next(commits) == 10:
            with contextlib.closing(schema.connect(tmp_path)) as connection:
                (name,) = connection.execute("SELECT name FROM worker").fetchone()
            with contextlib.closing(SqliteCrawlStore(tmp_path, 1, settings().budget, settings().storage)) as other:
                other.leave(name, clock.now())

    transport = crawled(tmp_path, clock, expire, script=lambda request: replace(answer(request), took_s=0.4))
    assert 0 < len(transport.withdrawn) < HOSTS + 1
    assert min(gaps(transport)) >= DELAY_S - 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_after_a_failover_a_worker_starts_nothing_before_it_renews_its_leases(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new primary may not know the latest leases, so another worker may have the host."""
    rng, start, failovers, early = random.Random(seed), WatchedTransport.start, itertools.count(1), []
    latest, at_commit = [0], [0]

    def watched_start(self: WatchedTransport, request: Request, before: float = math.inf) -> None:
        early.extend([request.url] * (latest > at_commit))
        start(self, request, before)

    def succeed(place: str) -> None:
        if place == "before commit":
            at_commit[:] = latest
        elif place.startswith("after ") and rng.random() < 0.3:
            latest[:] = [next(failovers)]

    count = property(lambda self: latest[0], lambda self, value: None)
    monkeypatch.setattr(SqliteCrawlStore, "failovers", count, raising=False)
    monkeypatch.setattr(WatchedTransport, "start", watched_start)
    crawled(tmp_path, FakeClock(), succeed)
    assert latest[0] > 5 and early == []


@pytest.mark.parametrize("took_s", [0.7, 2.0])
def test_a_foreign_host_never_gets_two_concurrent_requests(tmp_path: Path, took_s: float) -> None:
    """The response takes longer than the delay. The next waits for its end and for the delay after its first byte."""
    slow = crawled(
        tmp_path, FakeClock(), lambda place: None, script=lambda request: replace(answer(request), took_s=took_s)
    )
    assert min(gaps(slow)) >= took_s - 1e-6
    assert len(slow.started) == HOSTS * (1 + PAGES)


@pytest.mark.parametrize("held_up_s", [0.05, 0.1, 0.125, 0.2])
@pytest.mark.parametrize("turns", range(15, 20))
def test_a_worker_delayed_before_leasing_requests_no_host_too_early(
    tmp_path: Path, turns: int, held_up_s: float
) -> None:
    """The remaining delay of a host counts from its lease."""
    clock = FakeClock()
    first = crawled(tmp_path, clock, lambda place: None, turns=turns)

    def hold_up(place: str) -> None:
        clock.seconds += held_up_s * (place == "tick")

    assert min(gaps(first, crawled(tmp_path, clock, hold_up))) >= DELAY_S - 1e-6


@pytest.mark.parametrize("leap_s", [-DAY_S, -HOUR_S, -5.0, 5.0, HOUR_S, 30 * DAY_S])
def test_setting_the_clock_costs_no_page_no_politeness_and_little_time(tmp_path: Path, leap_s: float) -> None:
    """It is set once during the crawl, as by a user, by NTP, or after a suspension of the machine."""
    calm = crawled(tmp_path / "calm", FakeClock(), lambda place: None)
    clock, calls = SkewedClock(), itertools.count()

    def leap(place: str) -> None:
        if next(calls) == 150:
            clock.skew_s += leap_s

    transport = crawled(tmp_path / "leapt", clock, leap)
    assert min(gaps(transport)) >= DELAY_S - 1e-6
    assert len(transport.started) <= len(calm.started) + HOSTS * (1 + HOSTS), (
        "a few are asked again, robots.txt among them"
    )
    assert transport.took_s <= calm.took_s + 2 * LEASE_S


@pytest.mark.parametrize("leap_s", [-10 * DAY_S, -HOUR_S, HOUR_S, 30 * DAY_S])
def test_setting_the_clock_between_two_runs_causes_no_wait(tmp_path: Path, leap_s: float) -> None:
    """The next request time of a host is stored as time of day. A time too far in the future is ignored."""
    clock = SkewedClock()
    crawled(tmp_path, clock, lambda place: None, turns=20)
    assert len(read(tmp_path, "SELECT id FROM url WHERE reason = 'waiting'")) > HOSTS
    clock.skew_s += leap_s
    clock.seconds += 1.0
    assert crawled(tmp_path, clock, lambda place: None).took_s < 60.0


def test_a_worker_gives_hosts_to_a_new_worker_within_two_loops(tmp_path: Path) -> None:
    """Before, a new or idle worker waited a second and a commit for hosts if there were few."""
    clock, looks = FakeClock(), itertools.count()
    came: list[tuple[SqliteCrawlStore, str, float]] = []
    waited: list[float] = []

    def join(place: str) -> None:
        if place != "tick" or waited:
            return
        if not came and next(looks) == 9:
            other = SqliteCrawlStore(tmp_path, 1, settings().budget, settings().storage)
            came.append((other, other.join(os.getpid(), clock.now()), clock.monotonic()))
        elif came and came[0][0].ready(HOSTS, 2.0, clock.now()):
            other, name, since = came[0]
            waited.append(clock.monotonic() - since)
            other.leave(name, clock.now())
            other.close()

    crawled(tmp_path, clock, join)
    assert waited and waited[0] <= 2 * TICK_S + 0.01


def test_setting_the_clock_back_delays_no_free_host_and_shortens_no_wait(tmp_path: Path) -> None:
    """Of two workers, the first to notice adjusts the stored times, and the other does not."""
    schema.create(tmp_path)
    run_id = FolderHome(tmp_path).begin_run("crawl", STARTS, settings(), 0.0)
    first, second = (SqliteCrawlStore(tmp_path, run_id, settings().budget, settings().storage) for _ in range(2))
    first.offer([candidate(url) for url in STARTS], (), 5.0)
    names = [store.join(os.getpid(), 100_000.0) for store in (first, second)]
    leases = first.lease(names[0], [host.host_id for host in first.ready(9, 0.0, 100_000.0)], 100_000.0)
    first.commit(names[0], batch(hosts=[state(lease, 30.0) for lease in leases]), 100_001.0)
    second.commit(names[1], batch(), 100_001.0)
    assert (first.ready(9, 0.0, 100_001.0), second.ready(9, 0.0, 100_001.5)) == ([], [])
    for store in (first, second):
        assert store.ready(9, 0.0, 50_002.0) == []
        assert store.ready(9, 0.0, 50_029.0) == []
    for store in (first, second):
        assert len(store.ready(9, 0.0, 50_032.0)) == HOSTS
        store.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_clock_that_is_set_often_does_not_end_a_crawl(tmp_path: Path, seed: int) -> None:
    rng, clock = random.Random(seed), SkewedClock()

    def leap(place: str) -> None:
        if rng.random() < 0.05:
            clock.skew_s = rng.uniform(-DAY_S, DAY_S)

    assert min(gaps(crawled(tmp_path, clock, leap))) >= DELAY_S - 1e-6


@pytest.mark.parametrize("begins", [4, 40])
def test_a_pause_longer_than_the_lease_starts_nothing_and_keeps_the_worker(tmp_path: Path, begins: int) -> None:
    """Running requests are stored, no host stays leased, and the worker continues immediately after the pause."""
    clock, looks, home, seen = FakeClock(), itertools.count(), FolderHome(tmp_path), {}

    def pause(place: str) -> None:
        if place != "tick":
            return
        if next(looks) == begins:
            assert home.pause(clock.now())
            seen["paused"] = clock.monotonic()
        elif "paused" in seen and "resumed" not in seen and clock.monotonic() > seen["paused"] + 3 * LEASE_S:
            assert read(tmp_path, "SELECT key FROM host WHERE lease_by IS NOT NULL") == []
            assert home.resume(clock.now())
            seen["resumed"] = clock.monotonic()

    transport = crawled(tmp_path, clock, pause)
    times = [when for when, _ in transport.started]
    assert [when for when in times if seen["paused"] + TICK_S < when < seen["resumed"]] == []
    assert min(when for when in times if when >= seen["resumed"]) <= seen["resumed"] + TICK_S + 0.01
    assert min(gaps(transport)) >= DELAY_S - 1e-6
    assert len(transport.started) == HOSTS * (1 + PAGES), "no page was requested twice"
    assert not home.resume(clock.now()), "the pause is over"


@pytest.mark.parametrize("reading_s", [0.0, 0.4])
def test_a_response_is_stored_within_a_second_although_others_are_slow_to_read(tmp_path, reading_s) -> None:
    """So a kill loses only requests in flight and the responses of one second."""
    clock, unstored, worst = FakeClock(), [], []

    class Slow(WatchedTransport):
        def wait(self, timeout_s: float):
            for response in super().wait(timeout_s):
                unstored.append(clock.monotonic())
                yield response
                clock.seconds += reading_s

    def meddle(place: str) -> None:
        if place == "before commit" and unstored:
            worst.append(clock.monotonic() - unstored[0])
            unstored.clear()

    transport = crawled(tmp_path, clock, meddle, kind=Slow)
    assert len(transport.started) >= HOSTS * PAGES
    assert max(worst) <= 1.0
    assert not unstored
