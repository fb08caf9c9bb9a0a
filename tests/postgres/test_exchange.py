"""After any kills, messages between parts of a web arrive, each batch once, and the end is detected correctly."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import periplus_postgres.exchange
from contracts.crawl_values import candidate
from periplus.model.visit import Reason
from periplus.settings import Budget, Settings, Storage
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import FolderHome, SqliteCrawlStore
from periplus.urls.hosts import WebPart, part_of
from periplus_postgres.exchange import UrlExchange

PARTS = 3
HOSTS = [f"s{number}.test" for number in range(12)]
CALLS = 44  # of a turn with data to send; killed before and after each
OWNERS = {host: part_of(f"{host}:80", PARTS) for host in HOSTS}
LATE = next(host for host in HOSTS if OWNERS[host] == 2)


class KilledError(Exception):
    """Simulates the end of a process."""


class Fragile:
    """Wraps an object; is killed at its n-th call, before or after the call."""

    def __init__(self, inner, calls):
        self._inner, self._calls = inner, calls

    def __getattr__(self, name):
        attribute = getattr(self._inner, name)
        if not callable(attribute):
            return attribute

        def called(*args, **more):
            self._die()
            done = attribute(*args, **more)
            with contextlib.ExitStack() as stack:
                stack.callback(getattr(done, "close", lambda: None))  # as at the end of a process
                self._die()
                stack.pop_all()
            return done

        return called

    def _die(self):
        self._calls[0] -= 1
        if self._calls[0] == 0:
            raise KilledError


class World:
    """Three parts in folders; each step may be killed."""

    def __init__(self, folder):
        self.folder, self.taken, self.met, self.place = folder, [], set(), str(folder / "place")
        for number in range(1, PARTS + 1):
            schema.create(folder / f"{number}")
            FolderHome(folder / f"{number}").begin_run("crawl", (), Settings(), 0.0)
            with schema.writing(folder / f"{number}") as connection:
                values = [("part", f"{number}/{PARTS}"), ("exchange-id", f"identity {number}")]
                connection.executemany("INSERT INTO meta VALUES (?, ?)", values)

    @contextlib.contextmanager
    def process(self, number, lives):
        """lives: calls until it is killed; 0: never."""
        store = SqliteCrawlStore(self.folder / f"{number}", 1, Budget(), Storage(), lambda pid: True)
        apply_batch, calls = store.apply_batch, [lives]

        def noted(sender, count, messages, now):
            is_taken = apply_batch(sender, count, messages, now)
            self.taken += [(number, sender, count)] * is_taken
            return is_taken

        store.apply_batch = noted
        storage = periplus_postgres.exchange.object_storage
        try:
            with pytest.MonkeyPatch.context() as patch, contextlib.suppress(KilledError):
                patch.setattr("periplus_postgres.exchange.object_storage", lambda place: Fragile(storage(place), calls))
                yield (
                    store,
                    lambda: UrlExchange(Fragile(store, calls), WebPart(number, PARTS), self.place),
                )
        finally:
            store.close()

    def finish(self, number, lives=0):
        with self.process(number, lives) as (_, exchange):
            return exchange().finish()
        return "killed"

    def meet(self, number, host, path):
        with self.process(number, 0) as (store, _):
            store.offer([candidate(f"http://{host}/{path}", 1)], (), 0.0)
        self.met.add((host, path))

    def urls(self, number):
        with self.process(number, 0) as (store, _):
            rows = store.read(lambda statements: statements.rows("SELECT text, reason FROM url"))
        return {tuple(text.removeprefix("http://").split("/")) for text, reason in rows if reason == Reason.WAITING}


meetings = st.tuples(st.just("meet"), st.integers(1, PARTS), st.sampled_from(HOSTS), st.sampled_from("abc"))
turns = st.tuples(st.just("finish"), st.integers(1, PARTS), st.just(0) | st.integers(1, CALLS))


def arrived(world):
    """Finishes all open steps, each part twice; then each URL must be in its part, once."""
    for number in (*range(1, PARTS + 1), *range(1, PARTS + 1)):
        world.finish(number)
    for number in range(1, PARTS + 1):
        assert world.urls(number) == {(host, path) for host, path in world.met if OWNERS[host] == number}
    pairs = {
        pair: [count for *one, count in world.taken if tuple(one) == pair] for pair in {it[:2] for it in world.taken}
    }
    assert all(counts == list(range(1, len(counts) + 1)) for counts in pairs.values())
    assert not list(world.folder.glob("place/*/*.urls.zst"))


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(meetings | turns, max_size=20))
def test_any_interleaving_of_discovery_writing_reading_and_kills(tmp_path_factory, steps):
    world = World(tmp_path_factory.mktemp("web"))
    for step, *values in steps:
        getattr(world, step)(*values)
    arrived(world)


@pytest.mark.parametrize("who", ["sender", "owner"])
def test_a_kill_at_each_call_loses_nothing(tmp_path, who):
    """Enough calls that the last run finishes."""
    host = next(host for host in HOSTS if OWNERS[host] != 1)
    world = World(tmp_path)
    for lives in range(1, CALLS + 1):
        world.meet(1, host, f"{lives}")
        if who == "owner":
            world.finish(1)
        last = world.finish(1 if who == "sender" else OWNERS[host], lives)
        arrived(world)
    assert last != "killed"


works = st.tuples(
    st.just("work"),
    st.integers(1, PARTS),
    st.lists(st.tuples(st.sampled_from(HOSTS), st.sampled_from("abcd")), max_size=3),
)
ends = st.tuples(st.just("finish"), st.integers(1, PARTS), st.just([]))


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(works | ends, max_size=25))
@example(
    steps=[
        ("work", 2, []),
        ("finish", 2, []),
        ("work", 3, []),
        ("finish", 3, []),
        ("work", 1, [(LATE, "x")]),
        ("finish", 1, []),
        ("finish", 3, []),
        ("finish", 3, []),
    ]
)
def test_no_part_reports_the_end_too_early(tmp_path_factory, steps):
    """Each part starts with a page; a work step fetches all waiting pages and discovers more."""
    world = World(tmp_path_factory.mktemp("web"))
    with contextlib.ExitStack() as stack:
        living = {number: stack.enter_context(world.process(number, 0)) for number in range(1, PARTS + 1)}
        exchanges = {number: begin() for number, (_, begin) in living.items()}
        for host, owner in OWNERS.items():
            living[owner][0].offer([candidate(f"http://{host}/")], (), 0.0)
        for step, number, links in steps:
            store = living[number][0]
            if step == "work" and not store.idle(0.0):  # otherwise it discovers nothing
                fetch_all(store)
                store.offer([candidate(f"http://{host}/{path}", 1) for host, path in links], (), 0.0)
            elif step == "finish" and not exchanges[number].finish():
                assert all(other.part_state(0.0).is_idle for other, _ in living.values())
                assert not list(world.folder.glob("place/*/*.urls.zst"))
        for _ in range(3):  # then the end comes
            for number, (store, _) in living.items():
                fetch_all(store)
                exchanges[number].finish()
        assert [exchanges[number].finish() for number in living] == [""] * PARTS


def fetch_all(store):
    """Marks all waiting pages of the part as fetched."""
    with store._transaction():
        store._connection.execute("UPDATE url SET reason = 'ok' WHERE reason = 'waiting'")
        store._connection.execute("UPDATE tally SET value = 0 WHERE name = 'reason:waiting'")
        store._connection.execute("DELETE FROM queue WHERE purpose = 'page' AND url_id <> 0")
        store._connection.execute("UPDATE host SET pending = (SELECT count(*) FROM queue q WHERE q.host_id = host.id)")


def test_parts_exchange_through_object_storage(tmp_path):
    world = World(tmp_path)
    world.place = f"memory://{tmp_path}"
    for host in HOSTS:
        world.meet(1, host, "a")
    arrived(world)
    assert len(world.taken) == PARTS - 1
