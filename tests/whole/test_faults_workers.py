"""Workers of a crawl are killed and frozen, start and stop: nothing is lost, and politeness is kept.

Checked in the server log and the tables, in a short form; `make test-faults` runs longer.
"""

from __future__ import annotations

import fcntl
import os
import random
import signal
import time
from pathlib import Path

import crews
import pytest
from crews import crew
from voyage import Collection, Served, served_apart, until

import judge
from contracts.crawl_values import candidate
from periplus.model.visit import Reason
from periplus.settings import Budget, Settings, Storage
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import FolderHome, SqliteCrawlStore

DELAY_S = 0.1


def hosts_of(web: Served) -> tuple[str, ...]:
    return tuple(sorted({url.split("/")[2].partition(":")[0] for url in web.truth["pages"]}))


def pages_of(web: Served) -> set[tuple[str, str]]:
    """(host, target) of every existing page."""
    parts = [url.split("/", 3) for url in web.truth["pages"]]
    return {(part[2].partition(":")[0], "/" + part[3]) for part in parts}


LONG = pytest.mark.faults


@pytest.mark.parametrize(("pages", "least"), [(50, 2), pytest.param(600, 30, marks=LONG)], ids=["short", "minutes"])
def test_killed_workers_lose_nothing_and_hurry_nobody(tmp_path: Path, pages: int, least: int) -> None:
    """Three additional workers; every 0.4 s one is killed and another started. least: minimum number of kills."""
    rng, kills = random.Random(3), 0
    with (
        served_apart(f"linked seed=7 sites=6 pages={pages} links_between=12 links_per_page=8", tmp_path) as web,
        crew(web, tmp_path / "c", hosts_of(web), delay_s=DELAY_S) as workers,
    ):
        while not workers.is_over:
            workers.hire(3 - len(workers.workers))
            kills += workers.kill(rng)
            time.sleep(0.4)
        log = workers.finish()
        print(f"{kills} kills, {judge.repeats(log)} pages asked for again")
        assert kills >= least
        assert judge.never_asked(log, pages_of(web)) == []
        assert judge.repeats(log) <= kills * len(workers.hosts)
        assert judge.early_starts(log, DELAY_S) == []
        assert workers.faults() == []
        assert set(workers.collection.reasons.values()) == {Reason.OK}


@pytest.mark.parametrize("store", ["folder", "postgres"])
def test_hosts_of_a_killed_worker_are_leased_at_once(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    """Its lease lasts an hour, longer than the wait for other workers; the remaining workers have their fair share
    while the killed worker is counted.
    """
    address = request.getfixturevalue("address").text if store == "postgres" else ""
    with (
        served_apart("linked seed=7 sites=2 pages=60 links_between=12 links_per_page=8", tmp_path) as web,
        crew(web, tmp_path / "c", hosts_of(web), store=address, delay_s=0.15, lease_s=3_600) as workers,
    ):
        workers.hire()
        (victim,) = workers.workers
        until(
            lambda: victim.pid in workers.holders() and workers.boss.pid in workers.holders(),
            "a host in each one's hands",
        )
        assert workers.kill(random.Random(0))
        until(lambda: victim.pid not in workers.holders(), "another holder")
        log = workers.finish()
        assert judge.never_asked(log, pages_of(web)) == []
        assert judge.early_starts(log, 0.15) == []


def freeze(pid: int, folder: Path) -> None:
    """Stops a worker outside of a transaction: within one it would hold the lock of the file."""
    with (folder / "write.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.kill(pid, signal.SIGSTOP)
        state = Path(f"/proc/{pid}/stat")
        until(lambda: not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "TZ", "the stop")


@pytest.mark.parametrize("freezes", [1, pytest.param(5, marks=LONG)])
def test_a_frozen_worker_loses_its_hosts_and_writes_nothing_when_it_comes_back(tmp_path: Path, freezes: int) -> None:
    """Stopped for 1.75 times its lease.

    Another worker fetches its tasks; its late results have an old epoch.
    """
    lease_s = 1.6
    limits = {"total_timeout_s": 0.8, "first_byte_timeout_s": 0.8, "connect_timeout_s": 0.8, "lease_s": lease_s}
    with (
        served_apart(
            f"linked seed=8 sites=4 pages={12 * freezes + 6} links_between=8 links_per_page=6", tmp_path
        ) as web,
        crew(web, tmp_path / "c", hosts_of(web), delay_s=0.25, **limits) as workers,
    ):
        workers.hire(1)
        (victim,) = workers.workers
        for _ in range(freezes):
            until(lambda: victim.pid in workers.holders() or workers.is_over, "a host in the victim's hands")
            freeze(victim.pid, tmp_path / "c")
            frozen = time.monotonic()
            time.sleep(1.75 * lease_s)
            until(lambda: victim.pid not in workers.holders(), "its hosts are others' when its lease is over")
            assert time.monotonic() - frozen <= 4 * lease_s
            os.kill(victim.pid, signal.SIGCONT)
        log = workers.finish()
        assert judge.never_asked(log, pages_of(web)) == []
        assert judge.repeats(log) <= freezes * len(workers.hosts)
        assert judge.early_starts(log, 0.25) == []
        assert len(judge.meetings(log)) <= freezes * len(workers.hosts), "what was on the wire when it froze"
        assert workers.faults() == []
        assert set(workers.collection.reasons.values()) == {Reason.OK}


@LONG
@pytest.mark.parametrize("pages", [30, 150])
def test_workers_come_and_go_and_every_host_is_served(tmp_path: Path, pages: int) -> None:
    """One, then four, then two workers: no host waits longer than a lease and its delay, and all share the work."""
    with (
        served_apart(f"linked seed=9 sites=8 pages={pages} links_between=8 links_per_page=8", tmp_path) as web,
        crew(web, tmp_path / "c", hosts_of(web), delay_s=0.2, lease_s=8) as workers,
    ):
        until(lambda: web.lines() >= pages, "the first pages")
        workers.hire(3)
        until(lambda: len(workers.holders()) == 4 or workers.is_over, "work for all four")
        assert not workers.is_over, "four hold hosts at once"
        workers.dismiss(2)
        assert not workers.is_over
        log = workers.finish()
        began, ended = min(entry.arrived for entry in log), max(entry.arrived for entry in log)
        for host in workers.hosts:
            last = log.of(host)[-1].arrived
            assert judge.longest_pause(log, host, began, last) <= 8 + 0.2, host
            assert last > ended - 10 - 0.2 * pages
        assert judge.never_asked(log, pages_of(web)) == []
        assert judge.repeats(log) == 0, "a stopped worker stores its results"
        assert judge.early_starts(log, 0.2) == []
        assert judge.meetings(log) == []
        assert workers.faults() == []


def crowded(folder: Path, workers: int, pages: int) -> tuple[float, list[str]]:
    """(pages per second, faults) of workers without network whose pages all link to the same 20 hosts."""
    schema.create(folder)
    run_id = FolderHome(folder).begin_run("crawl", (), Settings(), time.time())
    store = SqliteCrawlStore(folder, run_id, Budget(), Storage())
    store.offer([candidate(f"http://h{at % 40}.test/{at}") for at in range(pages)], (), time.time())
    store.close()
    return crews.crowded(str(folder), run_id, workers, Collection(folder))


@pytest.mark.parametrize(("workers", "pages"), [(4, 200), pytest.param(8, 8_000, marks=LONG)])
def test_workers_whose_pages_all_link_to_the_same_hosts_do_not_stand_in_each_others_way(
    tmp_path: Path, workers: int, pages: int
) -> None:
    """Regression: an earlier schema had a hundredth of one worker's speed.

    The speed is checked only in long runs.
    """
    alone, wrong = crowded(tmp_path / "alone", 1, pages)
    assert wrong == []
    together, wrong = crowded(tmp_path / "together", workers, pages)
    assert wrong == []
    print(f"{alone:.0f} pages/s alone, {together:.0f} by {workers}")
    assert pages < 1_000 or together >= 0.5 * alone
