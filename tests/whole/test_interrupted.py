"""An interrupted crawl equals an uninterrupted one: fetched pages, states, depths and map of random sites with endless
parts, stopped at random in every way.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_voyage import StoredCollection
from voyage import PATIENCE_S, PATIENT, Collection, Served, command, environment, flags_for, served_apart, told, until

from periplus.cli.crawl import IN_DOUBT
from periplus.model.visit import Reason

HOST = "series.test"
WINDOW = 6  # so small that most series have ended, and some continue, when a run is stopped
MORE_SEEDS = [pytest.param(seed, marks=pytest.mark.faults) for seed in range(3, 23)]
MOST_RUNS = 60


def run(web: Served, where: list[str], *more: str) -> subprocess.Popen[bytes]:
    """One request at a time, so that the order does not depend on the speed of the server."""
    flags = flags_for(web.resolve, (HOST,), delay_s=0.002, per_host=1, trap_window=WINDOW, **PATIENT)
    words = command("crawl", web.url(HOST), *where, "-q", *flags, *more)
    return subprocess.Popen(words, stderr=subprocess.DEVNULL, env=environment(), start_new_session=True)


def interruptions(web: Served, where: list[str], rng: random.Random) -> Iterator[str]:
    """Restarts the crawl and ends it in a different way each time, until it ends on its own."""
    for _ in range(MOST_RUNS):
        way = rng.choice(("killed", "stopped", "limited"))
        target = web.lines() + rng.randint(2, 120)
        crawl = run(web, where, *(["--max-pages", str(rng.randint(1, 80))] if way == "limited" else []))
        if way != "limited":
            until(lambda target=target, crawl=crawl: web.lines() >= target or crawl.poll() is not None, "requests")
            crawl.send_signal(signal.SIGKILL if way == "killed" else signal.SIGINT)
        code = crawl.wait(PATIENCE_S)
        yield f"{way} {code}"
        if code == IN_DOUBT and way != "limited":
            return
    raise AssertionError("the crawl does not end")


def mapped(folder: Path) -> dict[str, object]:
    """The map without its time and run."""
    ran = told("map", "-c", folder, "-f", "json", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    drawn = json.loads(ran.stdout)["map"]
    return {name: value for name, value in drawn.items() if name not in ("run", "created", "seconds")}


@pytest.mark.parametrize("seed", [1, *MORE_SEEDS])
def test_an_interrupted_crawl_equals_an_uninterrupted_one(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    with served_apart(f"series seed={seed}", tmp_path) as web:
        calm, rough = tmp_path / "calm", tmp_path / "rough"
        assert run(web, ["-o", str(calm)]).wait(PATIENCE_S) == IN_DOUBT
        print(list(interruptions(web, ["-o", str(rough)], rng)))
    assert Collection(rough).sane() == []
    assert Reason.TRAP in Collection(calm).reasons.values(), "a series must have been left"
    assert Collection(rough).tables == Collection(calm).tables
    assert mapped(rough) == mapped(calm)


@pytest.mark.parametrize("seed", [2, *MORE_SEEDS])
def test_an_interrupted_crawl_in_a_database_equals_an_uninterrupted_one(tmp_path: Path, address, seed: int) -> None:
    rng = random.Random(seed)
    with served_apart(f"series seed={seed}", tmp_path) as web:
        calm = tmp_path / "calm"
        assert run(web, ["-o", str(calm)]).wait(PATIENCE_S) == IN_DOUBT
        print(list(interruptions(web, ["-c", address.text], rng)))
    stored = StoredCollection(address.text)
    assert stored.sane() == []
    assert stored.tables == Collection(calm).tables
