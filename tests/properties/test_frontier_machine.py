"""The frontier under random histories: invariants hold, and it equals the reference implementation, on each database.

Workers follow the rules of real workers: they request from a host only during their lease, and not before its
delay has passed.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from contracts.crawl_values import batch, candidate, completion, given_up, side_request, state
from contracts.crawl_worlds import PlainWorld, PostgresWorld, SqliteWorld
from periplus.model.frontier import PRIORITY_FIRST, PRIORITY_SITEMAP
from periplus.model.visit import Cause, Failed, Purpose, Reason, Skipped
from periplus.settings import Budget, Storage
from periplus_postgres.address import address_of
from postgres_server import empty_collection

LEASE_S = 20.0
DELAY_S = 0.5
ORIGINS = ("http://a.test", "http://www.a.test", "http://b.test", "http://c.test:8000", "https://c.test:8000")
URLS = st.builds("{}/{}".format, st.sampled_from(ORIGINS), st.integers(0, 3))
WEAK = (Reason.DEPTH, Reason.NOFOLLOW, Reason.RESOURCE, Reason.SCOPE)
CANDIDATES = st.builds(
    lambda url, depth, reason: candidate(url, depth, reason, in_sitemap=depth is None),
    URLS,
    st.sampled_from((None, 0, 1, 2, 3)),
    st.sampled_from((Reason.WAITING,) * 5 + WEAK),
)
ERRANDS = st.builds(
    lambda origin, first: side_request(
        f"{origin}/x", Purpose.ROBOTS if first else Purpose.SITEMAP, PRIORITY_FIRST if first else PRIORITY_SITEMAP
    ),
    st.sampled_from(ORIGINS),
    st.booleans(),
)
START = (
    candidate("http://a.test/0"),
    candidate("http://a.test/1", None, in_sitemap=True),
    candidate("http://a.test/2", None, in_sitemap=True),
    candidate("http://www.a.test/0", 1),
    candidate("http://b.test/0"),
)
FATES = st.sampled_from((Reason.OK, Reason.OK, Reason.NOT_FOUND, None, Reason.ROBOTS))


@dataclass
class Held:
    """A host leased by a worker.

    Tasks are pairs, one of each world: their ids differ between stores.
    """

    lease: object
    allowed_at: float
    tasks: list = field(default_factory=list)
    asked: list = field(default_factory=list)

    def in_hand(self, world):
        return frozenset((pair[world].priority, pair[world].seq) for pair in self.tasks + self.asked)


@dataclass
class Hand:
    """A worker: its ids in both worlds, the hosts that it believes to hold, the end of its lease."""

    pid: int
    names: tuple[str, str]
    until: float
    held: dict[int, Held] = field(default_factory=dict)


class Frontier(RuleBasedStateMachine):
    """On SQLite; below it is one on PostgreSQL."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.now, self.living, self.pid = 1000.0, set(), 0
        self.hands: list[Hand] = []
        self.last_asked: dict[int, float] = {}  # by host: when a request last started
        self.settled: dict[int, Reason] = {}  # URLs that are done

    @initialize(max_pages=st.sampled_from((0, 4)))
    def begin(self, max_pages):
        budget, storage = Budget(max_pages=max_pages, quantum=2), Storage(lease_s=LEASE_S)
        self.max_pages = max_pages
        self.worlds = (self.real_world(budget, storage), PlainWorld(self.folder, self.living, budget, storage))
        self.stores = [world.open() for world in self.worlds]
        self.both(lambda store: store.offer([*START], (), self.now))

    def real_world(self, budget, storage):
        return SqliteWorld(self.folder, self.living, budget, storage)

    def teardown(self):
        if hasattr(self, "worlds"):
            self.worlds[0].close()
        shutil.rmtree(self.folder)

    def both(self, act, per=(None, None)):
        """Calls both stores; the answers must be equal."""
        real, plain = (
            act(store) if name is None else act(store, name) for store, name in zip(self.stores, per, strict=True)
        )
        if isinstance(real, list | tuple):
            real, plain = list(real), list(plain)
        assert real == plain
        return real

    # time, and the ends of workers: one rule, so that most steps are work

    @rule(seconds=st.sampled_from((0.1, 0.5, 2.0, LEASE_S * 0.6)))
    def time_passes(self, seconds):
        self.now += seconds

    @rule(paused=st.sampled_from((False, False, False, True)))
    def the_crawl_is_paused_or_resumed(self, paused):
        for world in self.worlds:
            world.pause(paused)

    @precondition(lambda self: self.hands)
    @rule(data=st.data(), how=st.sampled_from(("dies", "leaves", "the store is reopened")))
    def a_worker_ends(self, data, how):
        hand = self.hands.pop(data.draw(st.integers(0, len(self.hands) - 1)))
        if how == "leaves":
            self.both(lambda store, name: store.leave(name, self.now), hand.names)
        self.living.discard(hand.pid)
        if how == "the store is reopened":  # worker ids are specific to the store, so all workers end
            for other in self.hands:
                self.living.discard(other.pid)
            self.hands.clear()
            self.stores = [world.open() for world in self.worlds]

    def _someone(self, data):
        if len(self.hands) < 2 and (not self.hands or data.draw(st.booleans())):
            self.pid += 1
            self.living.add(self.pid)
            self.hands.append(
                Hand(self.pid, tuple(store.join(self.pid, self.now) for store in self.stores), self.now + LEASE_S)
            )
        return data.draw(st.sampled_from(self.hands))

    # URLs from outside

    @rule(
        candidates=st.lists(CANDIDATES, max_size=4), side_requests=st.lists(ERRANDS, max_size=1), reopen=st.booleans()
    )
    def urls_are_offered(self, candidates, side_requests, reopen):
        self.both(lambda store: store.offer(candidates, side_requests, self.now, reopen=reopen))

    # actions of workers

    @rule(data=st.data(), most=st.integers(1, 4), horizon=st.sampled_from((0.0, 5.0)))
    def a_worker_leases(self, data, most, horizon):
        hand = self._someone(data)
        ready = [sorted(store.ready(99, horizon, self.now), key=lambda host: host.host_id) for store in self.stores]
        assert ready[0] == ready[1]
        ids = [host.host_id for host in ready[0]][:most]
        leases = self.both(lambda store, name: store.lease(name, ids, self.now), hand.names)
        if self.now > hand.until:
            hand.held.clear()  # the hosts were reclaimed; the worker requests nothing more until a commit reports it
        hand.until = self.now + LEASE_S
        for lease in leases:
            start = self.now + lease.wait_s
            assert start >= self.last_asked.get(lease.host_id, 0.0) + DELAY_S - 1e-6, (
                "two leases start at least the delay apart"
            )
            others = [
                other
                for other in self.hands
                if other is not hand and self.now <= other.until and lease.host_id in other.held
            ]
            assert not others, "a host has one lease"
            hand.held[lease.host_id] = Held(lease, start)

    def _held(self, data):
        hand = data.draw(st.sampled_from([hand for hand in self.hands if hand.held]))
        return hand, hand.held[data.draw(st.sampled_from(sorted(hand.held)))]

    @precondition(lambda self: any(hand.held for hand in self.hands))
    @rule(data=st.data(), most=st.integers(1, 5), asks=st.integers(0, 3))
    def a_worker_takes_and_asks(self, data, most, asks):
        hand, held = self._held(data)
        taken = [store.take(held.lease, most, held.in_hand(world), self.now) for world, store in enumerate(self.stores)]
        assert _plain(taken[0][1]) == _plain(taken[1][1])
        assert [replace(task, seq=0) for task in taken[0][0]] == [replace(task, seq=0) for task in taken[1][0]]
        pairs = list(zip(taken[0][0], taken[1][0], strict=True))
        pages = [task.url_id for task, _ in (*pairs, *held.tasks, *held.asked) if task.url_id]
        assert len(pages) == len(set(pages)), "a URL is taken once"
        assert not self.settled.keys() & {task.url_id for task, _ in pairs}, "a done URL is not given out"
        held.tasks.extend(pairs)
        for _ in range(min(asks, len(held.tasks))):
            self._ask(hand, held)

    def _ask(self, hand, held):
        if max(self.now, held.allowed_at) >= hand.until:
            return
        self.now, host_id = max(self.now, held.allowed_at), held.lease.host_id
        assert self.now >= self.last_asked.get(host_id, 0.0) + DELAY_S - 1e-6
        self.last_asked[host_id], held.allowed_at = self.now, self.now + DELAY_S
        held.asked.append(held.tasks.pop(0))

    @precondition(lambda self: any(hand.held for hand in self.hands))
    @rule(
        data=st.data(),
        links=st.lists(CANDIDATES, max_size=3),
        side_requests=st.lists(ERRANDS, max_size=1),
        release=st.booleans(),
        down=st.sampled_from(("http", "https", "", "", "", "")),
    )
    def a_worker_commits(self, data, links, side_requests, release, down):
        hand, held = self._held(data)
        done = []
        for pair in held.asked:
            fate = data.draw(FATES)
            outcome = {None: Failed(Cause.TIMEOUT), Reason.ROBOTS: Skipped(Reason.ROBOTS)}.get(fate)
            more = {"candidates": tuple(links), "retry_in_s": data.draw(st.sampled_from((0.0, 3.0)))} | (
                {} if outcome is None else {"outcome": outcome}
            )
            done.append([completion(held.lease, task, fate, **more) for task in pair])
        wait_s = max(0.0, held.allowed_at - self.now)
        host = state(
            held.lease,
            wait_s,
            release=release and not held.tasks,
            given_up=given_up(f"{down}://{held.lease.host}/") if down else (),
        )
        in_hand = sum(len(other.tasks) + len(other.asked) for other in hand.held.values() if other is not held) + len(
            held.tasks
        )
        works = [
            batch(*parts, hosts=[host], side_requests=tuple(side_requests), in_hand=in_hand)
            for parts in (zip(*done, strict=True) if done else ((), ()))
        ]
        lost = self.both(
            lambda store, own: store.commit(own[0], own[1], self.now), list(zip(hand.names, works, strict=True))
        )
        held.asked.clear()
        if held.lease in lost:
            del hand.held[held.lease.host_id]
            return
        hand.until = max(hand.until, self.now + LEASE_S)
        self.settled |= {
            part.task.url_id: part.reason
            for part, _ in done
            if part.reason in (Reason.OK, Reason.NOT_FOUND) and part.task.url_id
        }
        if host.release:
            del hand.held[held.lease.host_id]

    # invariants

    @invariant()
    def sums_are_right_and_nothing_vanishes(self):
        if not hasattr(self, "worlds"):
            return
        wrong, tally, true, orphans = self.worlds[0].recount()
        assert not wrong, "pending is the number of entries"
        assert tally == true, "tallies equal a recount"
        assert not orphans, "every waiting URL is in a list"
        counts = self.both(lambda store: store.counts())
        self.both(lambda store: store.idle(self.now))
        paused = self.both(lambda store: store.is_paused())
        assert (self.both(lambda store: store.fair_share(self.now)) == 0) == paused
        if self.max_pages:
            assert counts.fetched <= self.max_pages, "the budget is kept"


def _plain(seconds):
    return None if seconds is None else round(seconds, 6)


class FrontierOnPostgres(Frontier):
    """One collection for all examples, emptied before each: creating one takes longer than an example."""

    address = None

    def real_world(self, budget, storage):
        PostgresWorld.empty(self.address)
        return PostgresWorld(self.address, self.living, budget, storage)


Frontier.TestCase.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
FrontierOnPostgres.TestCase.settings = settings(max_examples=15, stateful_step_count=40, deadline=None)
TestFrontier = Frontier.TestCase


class TestFrontierOnPostgres(FrontierOnPostgres.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.collection = empty_collection()
        FrontierOnPostgres.address = address_of(cls.collection.__enter__())

    @classmethod
    def tearDownClass(cls):
        cls.collection.__exit__(None, None, None)
