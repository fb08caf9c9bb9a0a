"""What does a worker do when time does not pass as it should?

It is stopped for longer than its lease; the clock is set forward and back.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import random
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import judge
from contracts.crawl_values import batch, candidate, state
from fakes import FakeClock, FakeTransport, Scripted
from periplus.acquire.discovery import Aliases, Discovery
from periplus.acquire.politeness import AddressTurns
from periplus.acquire.worker import TICK_S, Worker, WorkerDeps
from periplus.model.visit import Purpose, Request
from periplus.model.web import Url
from periplus.schedule.traps import TrapDetector
from periplus.schedule.turns import SiteTurns
from periplus.settings import Settings, settings_from
from periplus.store.sqlite import runs, schema
from periplus.store.sqlite.frontier import FolderHome, SqliteCrawlStore
from periplus.urls.hosts import host_name
from periplus.urls.scope import site_scope

HOSTS, PAGES, LEASE_S, LIMIT_S, DELAY_S = 3, 25, 60.0, 20.0, 0.5
STARTS = [Url(f"http://s{number}.test/0") for number in range(HOSTS)]
HOUR_S, DAY_S = 3600.0, 86_400.0


@dataclass
class SkewedClock(FakeClock):
    """Its time of day is set forward and back; its seconds are as long as ever."""

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
    """A store all of whose answers may come late: what the test does to time, it does before or after them."""

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
    """Notes how old the last proof of a lease was when each request started."""

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
    """A crawl of all pages by one worker, in as much time as it takes;
    meddle(place) is called at each turn of the store.

    turns: looks at whether to stop, after which it is told to.
    """
    chosen, proof = settings(), [clock.monotonic()]
    if not schema.exists(folder):
        schema.create(folder)
    run_id = runs.begin_run(folder, "crawl", STARTS, chosen, clock.now())
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
        AddressTurns(8, 0.5),
    )
    began, looks = clock.monotonic(), itertools.count()

    def tick() -> bool:
        meddle("tick")
        return next(looks) > turns

    Worker(deps, chosen).run(tick)
    transport.took_s = clock.monotonic() - began
    runs.end_run(folder, run_id, "done", "", clock.now())
    ask = store._connection.execute
    assert judge.unsound(lambda select: ask(select).fetchall(), judge.ALWAYS) == []
    assert turns < 1_000 or ask("SELECT reason, count(*) FROM url GROUP BY 1").fetchall() == [("ok", HOSTS * PAGES)]
    store.close()
    return transport


def read(folder: Path, select: str) -> list[tuple]:
    with contextlib.closing(schema.connect(folder, read_only=True)) as connection:
        return connection.execute(select).fetchall()


def gaps(*transports: FakeTransport) -> list[float]:
    """Seconds between the starts of two requests to a host, on the clock that nobody sets."""
    times: dict[str, list[float]] = {}
    for when, request in itertools.chain.from_iterable(transport.started for transport in transports):
        times.setdefault(host_name(request.url), []).append(when)
    return [later - earlier for ones in times.values() for earlier, later in itertools.pairwise(ones)]


@pytest.mark.parametrize("seed", range(6))
def test_a_worker_that_was_stopped_starts_nothing_under_a_lease_that_may_be_over(tmp_path: Path, seed: int) -> None:
    """Stopped at random moments for up to twice its lease.

    A request starts only while the last proof of its lease leaves it time to end.
    """
    rng, clock = random.Random(seed), FakeClock()

    def stop(place: str) -> None:
        if rng.random() < 0.03:
            clock.seconds += rng.choice((1.0, LEASE_S * 0.7, LEASE_S * 1.75))

    transport = crawled(tmp_path, clock, stop)
    assert max(transport.ages) <= LEASE_S - LIMIT_S
    assert min(gaps(transport)) >= DELAY_S - 1e-6


def test_what_was_started_under_a_lease_that_is_lost_is_withdrawn(tmp_path: Path) -> None:
    """It may not have been sent yet: a commit that took long comes between."""
    clock, commits = FakeClock(), itertools.count()

    def bury(place: str) -> None:
        if place == "before commit" and next(commits) == 10:
            with contextlib.closing(schema.connect(tmp_path)) as connection:
                (name,) = connection.execute("SELECT name FROM worker").fetchone()
            with contextlib.closing(SqliteCrawlStore(tmp_path, 1, settings().budget, settings().storage)) as other:
                other.leave(name, clock.now())

    transport = crawled(tmp_path, clock, bury, script=lambda request: replace(answer(request), took_s=0.4))
    assert 0 < len(transport.withdrawn) < HOSTS + 1
    assert min(gaps(transport)) >= DELAY_S - 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_a_worker_whose_database_was_succeeded_starts_nothing_before_it_asked_what_it_holds(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it leased last the successor may not know: the host is free there, and may be another's by then."""
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
def test_a_host_of_others_is_never_asked_twice_at_once_however_long_it_takes(tmp_path: Path, took_s: float) -> None:
    """Longer than the delay: the next request waits for the answer, and for the delay after its first byte."""
    slow = crawled(
        tmp_path, FakeClock(), lambda place: None, script=lambda request: replace(answer(request), took_s=took_s)
    )
    assert min(gaps(slow)) >= took_s - 1e-6
    assert len(slow.started) == HOSTS * (1 + PAGES)


@pytest.mark.parametrize("held_up_s", [0.05, 0.1, 0.125, 0.2])
@pytest.mark.parametrize("turns", range(15, 20))
def test_a_worker_that_was_kept_waiting_before_it_leased_asks_no_host_too_soon(
    tmp_path: Path, turns: int, held_up_s: float
) -> None:
    """Hosts come with seconds to wait, from the moment of the lease: not from one before it."""
    clock = FakeClock()
    first = crawled(tmp_path, clock, lambda place: None, turns=turns)

    def hold_up(place: str) -> None:
        clock.seconds += held_up_s * (place == "tick")

    assert min(gaps(first, crawled(tmp_path, clock, hold_up))) >= DELAY_S - 1e-6


@pytest.mark.parametrize("leap_s", [-DAY_S, -HOUR_S, -5.0, 5.0, HOUR_S, 30 * DAY_S])
def test_a_clock_that_is_set_costs_no_page_no_politeness_and_little_time(tmp_path: Path, leap_s: float) -> None:
    """Once in the middle of the crawl, by a user, by a server of time, or because the machine slept."""
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
def test_a_clock_that_was_set_between_two_runs_keeps_nobody_waiting(tmp_path: Path, leap_s: float) -> None:
    """When a host may be asked next is kept by the time of day: a time that lies too far ahead is none that we gave."""
    clock = SkewedClock()
    crawled(tmp_path, clock, lambda place: None, turns=20)
    assert len(read(tmp_path, "SELECT id FROM url WHERE reason = 'waiting'")) > HOSTS
    clock.skew_s += leap_s
    clock.seconds += 1.0
    assert crawled(tmp_path, clock, lambda place: None).took_s < 60.0


def test_a_worker_gives_hosts_to_one_that_joins_within_two_looks(tmp_path: Path) -> None:
    """With few hosts; one that came or ran dry waited a second and a commit for them."""
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


def test_a_clock_that_was_set_back_keeps_no_free_host_waiting_and_cuts_no_wait_short(tmp_path: Path) -> None:
    """Two workers' stores: the one that sees it first moves what is kept, the other leaves it alone."""
    schema.create(tmp_path)
    run_id = runs.begin_run(tmp_path, "crawl", STARTS, settings(), 0.0)
    one, other = (SqliteCrawlStore(tmp_path, run_id, settings().budget, settings().storage) for _ in range(2))
    one.offer([candidate(url) for url in STARTS], (), 5.0)
    names = [store.join(os.getpid(), 100_000.0) for store in (one, other)]
    leases = one.lease(names[0], [host.host_id for host in one.ready(9, 0.0, 100_000.0)], 100_000.0)
    one.commit(names[0], batch(hosts=[state(lease, 30.0) for lease in leases]), 100_001.0)
    other.commit(names[1], batch(), 100_001.0)
    assert (one.ready(9, 0.0, 100_001.0), other.ready(9, 0.0, 100_001.5)) == ([], [])
    for store in (one, other):
        assert store.ready(9, 0.0, 50_002.0) == []
        assert store.ready(9, 0.0, 50_029.0) == []
    for store in (one, other):
        assert len(store.ready(9, 0.0, 50_032.0)) == HOSTS
        store.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_clock_that_is_set_all_the_time_ends_no_crawl(tmp_path: Path, seed: int) -> None:
    rng, clock = random.Random(seed), SkewedClock()

    def leap(place: str) -> None:
        if rng.random() < 0.05:
            clock.skew_s = rng.uniform(-DAY_S, DAY_S)

    assert min(gaps(crawled(tmp_path, clock, leap))) >= DELAY_S - 1e-6


@pytest.mark.parametrize("begins", [4, 40])
def test_a_pause_longer_than_the_lease_starts_nothing_and_keeps_the_worker(tmp_path: Path, begins: int) -> None:
    """What is under way when it begins is stored; no host stays held;
    and the worker is back at once when it is over.
    """
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
    assert len(transport.started) == HOSTS * (1 + PAGES), "nothing was asked twice"
    assert not home.resume(clock.now()), "nothing is left of the pause"


@pytest.mark.parametrize("reading_s", [0.0, 0.4])
def test_an_answer_is_stored_within_a_second_however_long_others_take_to_be_read(tmp_path, reading_s) -> None:
    """So a kill costs what is in flight and the answers of one second."""
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
