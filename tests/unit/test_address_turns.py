"""Hosts at a shared IP address take turns: one request at a time, with the delay between them, and no host starves."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import random
from collections import Counter
from pathlib import Path

import pytest

from fakes import own_turns
from periplus.acquire import politeness
from periplus.acquire.politeness import AddressTurns
from periplus.errors import StoreError
from periplus.model.web import HostKey
from periplus.store import addresses
from periplus.store.addresses import SharedAddresses

A, B = "198.51.100.7", "2001:db8::7"
NAMES = [HostKey(f"s{number}.test:80") for number in range(12)]


ALIVE = {100, 200, 300}


@pytest.fixture
def tables(tmp_path):
    """A function pid -> access of that process to a shared table."""
    living = set(ALIVE)
    made = []

    def tables(pid):
        made.append(SharedAddresses(tmp_path / "run" / "addresses.db", living.__contains__, pid))
        return made[-1]

    tables.living = living
    yield tables
    for table in made:
        with contextlib.suppress(Exception):
            table.close()


def crowded(names: list[str] = NAMES, most: int = 8) -> AddressTurns:
    turns = own_turns(most, 0.5)
    for name in names:
        assert turns.turn(name, 0.0) == 0.0, "its address is not known yet"
        turns.end_turn(name, A)
    return turns


@pytest.mark.parametrize("took_s", [(0.01, 0.1), (0.3, 0.7), (1.5, 3.0)], ids=["quick", "as long as the delay", "slow"])
def test_hosts_at_a_crowded_address_take_turns_and_are_requested_equally_often(took_s: tuple[float, float]) -> None:
    rng, turns, starts, ends = random.Random(5), crowded(), [], []
    due = [(1.0 + rng.random(), "ask", name) for name in NAMES]
    heapq.heapify(due)
    asked: Counter[str] = Counter()
    while len(starts) < 600:
        now, what, name = heapq.heappop(due)
        if what == "end":
            turns.end_turn(name, A)
            heapq.heappush(due, (now + 0.01, "ask", name))
            continue
        at = turns.turn(name, now)
        if at > now:
            heapq.heappush(due, (at + rng.random() * 0.02, "ask", name))  # the worker looks at the clock a little late
            continue
        starts.append(now)
        ends.append(now + rng.uniform(*took_s))
        asked[name] += 1
        heapq.heappush(due, (ends[-1], "end", name))
    assert min(later - earlier for earlier, later in itertools.pairwise(starts)) >= 0.5 - 1e-9
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False)), "one at a time"
    assert min(asked.values()) >= 0.5 * max(asked.values()), asked
    wasted = (starts[-1] - starts[0]) / (len(starts) * max(0.5, sum(took_s) / 2))
    assert wasted < 1.6, wasted


@pytest.mark.parametrize(("names", "address"), [(8, A), (12, ""), (12, "127.0.0.1"), (12, "::1")])
def test_few_hosts_hosts_behind_a_proxy_and_local_hosts_take_no_turns(names: int, address: str) -> None:
    turns = own_turns(8, 0.5)
    for _ in range(2):
        for name in NAMES[:names]:
            assert turns.turn(name, 1.0) == 1.0
        for name in NAMES[:names]:
            turns.end_turn(name, address)


def test_a_host_that_moves_counts_at_its_new_address() -> None:
    turns = crowded(NAMES[:9])
    assert [turns.turn(name, 1.0) for name in NAMES[:3]] == [1.0, 1.5, 2.0]
    turns.end_turn(NAMES[8], B)
    assert turns.turn(NAMES[8], 1.0) == 1.0, "it has another address now"
    assert turns.turn(NAMES[3], 1.0) == 1.0, "eight hosts take no turns"


def test_the_number_of_known_hosts_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(politeness, "MOST_ADDRESSES", 20)
    turns = own_turns(1, 0.5)
    for number in range(200):
        turns.end_turn(f"s{number}.test:80", f"198.51.100.{number}")
        turns.end_turn(f"t{number}.test:80", f"198.51.100.{number}")
    for number, second in ((199, 1.5), (190, 1.5), (189, 1.0), (0, 1.0)):  # two hosts per address
        assert [turns.turn(f"{letter}{number}.test:80", 1.0) for letter in "st"] == [1.0, second]


def test_a_first_request_waits_too_but_own_hosts_and_other_ports_of_a_host_take_no_turns() -> None:
    turns = own_turns(2, 0.5, frozenset({"s9.test"}))
    assert [turns.admits(NAMES[number], A, 1.0) for number in (0, 1, 9)] == [True, True, True]
    assert turns.admits(HostKey("s0.test:8080"), A, 1.0), "s9.test is the user's own host: it takes no turns"
    assert [turns.admits(NAMES[number], A, 1.0) for number in (2, 3, 9)] == [False, False, True]
    turns.end_turn(HostKey("s0.test:8080"), A)
    assert [turns.turn(NAMES[number], 1.1) for number in (2, 3)] == [1.5, 2.0]
    assert turns.turn(NAMES[2], 1.5) == 1.5 and turns.admits(NAMES[2], A, 1.51), "its turn has come"
    assert not turns.admits(NAMES[3], A, 1.51)


@pytest.mark.parametrize("killed", [False, True])
def test_hosts_of_several_processes_take_turns_at_a_shared_address(tables, killed: bool) -> None:
    """At most one request at a time, starts the delay apart, and each host goes on when another process is killed."""
    rng = random.Random(7)
    turns = {pid: AddressTurns(8, 0.5, frozenset(), tables(pid)) for pid in sorted(ALIVE)}
    owner = {
        name: sorted(ALIVE)[number % 3] for number, name in enumerate(NAMES)
    }  # four hosts each: no process has a crowded address by its own count
    for name, pid in owner.items():
        turns[pid].end_turn(name, A)
    due = [(1.0 + rng.random(), "ask", name) for name in NAMES]
    heapq.heapify(due)
    starts: list[tuple[float, float, str]] = []
    while len(starts) < 150:
        now, what, name = heapq.heappop(due)
        if killed and len(starts) >= 40:
            tables.living.discard(100)
        if owner[name] not in tables.living:
            continue
        if what == "end":
            turns[owner[name]].end_turn(name, A)
            heapq.heappush(due, (now + 0.01, "ask", name))
        elif (at := turns[owner[name]].turn(name, now)) > now:
            heapq.heappush(due, (at + rng.random() * 0.02, "ask", name))
        else:
            starts.append((now, now + rng.uniform(0.05, 0.9), name))
            heapq.heappush(due, (starts[-1][1], "end", name))
    alone = [one for one in starts if not killed or owner[one[2]] != 100]
    last = max((one[0] for one in starts if owner[one[2]] == 100), default=0.0)
    for (before, end, name), (after, _, _) in itertools.pairwise(starts):
        if not killed or len(starts) < 40 or after <= last:
            assert after - before >= 0.5 - 1e-9
            assert end <= after or owner[name] not in tables.living
    if killed:  # the remaining eight hosts take no turns
        assert starts[-1][0] - last < 30.0
    assert len({name for *_, name in alone}) == (8 if killed else 12)


def test_a_host_of_several_processes_counts_once(tables) -> None:
    one, two = tables(100), tables(200)
    one.enter(A, "s1.test"), two.enter(A, "s1.test"), two.enter(A, "s2.test")
    assert one.names(A) == two.names(A) == 2
    two.close()
    assert one.names(A) == 1


def test_entries_of_a_killed_process_are_removed(tables) -> None:
    one, two = tables(100), tables(200)
    one.enter(A, "s1.test"), two.enter(A, "s2.test")
    with one.place(A) as place:
        place.asked, place.free_at, place.next_slot = "s1.test:80", 5.0, 900.0
    with two.place(A) as place:
        assert (place.asked, place.free_at, place.next_slot) == ("s1.test:80", 5.0, 900.0)
    tables.living.discard(100)
    with two.place(A) as place:
        assert (place.asked, place.free_at, place.next_slot) == ("", 5.0, 5.0), "its delay still counts"
    assert two.names(A) == 1


def test_entries_of_an_earlier_boot_are_deleted(tables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    boot = tmp_path / "boot_id"
    monkeypatch.setattr(addresses, "BOOT_ID", boot)
    boot.write_text("one")
    first = tables(100)
    first.enter(A, "s1.test")
    with first.place(A) as place:
        place.free_at = 1e9
    boot.write_text("two")
    later = tables(200)
    assert later.names(A) == 0
    with later.place(A) as place:
        assert place.free_at == 0.0


def test_an_unusable_file_raises_an_error_that_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "addresses.db").write_bytes(b"no database, and long enough to be looked at" * 100)
    with pytest.raises(StoreError, match="XDG_RUNTIME_DIR"):
        SharedAddresses(tmp_path / "addresses.db")
