"""Time limit and number of workers of a crawl."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from periplus.api import crawling
from periplus.settings import settings_from

LIMIT_S, TICK_S = 60.0, 0.25


def ticks_until_the_end(monkeypatch, is_paused) -> int:
    """Ticks of a crawl that only waits. is_paused: whether the crawl is paused at a given second."""
    seconds = [1000.0]
    ask = SimpleNamespace(monotonic=lambda: seconds[0], time=lambda: seconds[0], process_time=lambda: 0.0)
    monkeypatch.setattr(crawling, "time", ask)
    store = SimpleNamespace(
        counts=lambda: None,
        busiest=lambda most, now: (),
        fair_share=lambda now: 0,
        is_paused=lambda: is_paused(seconds[0] - 1000.0),
    )
    order = crawling.CrawlOrder(Path(), (), settings_from({"max_time_s": LIMIT_S, "index": False}))
    boss, ticks = crawling.Supervisor(store, order, 1, lambda progress: False), 0
    while not boss.tick():
        seconds[0] += TICK_S
        ticks += 1
    assert boss.stop_note == "max-time 60 s is over"
    return ticks


def test_a_pause_does_not_count_towards_max_time(monkeypatch):
    calm = ticks_until_the_end(monkeypatch, lambda at: False)
    assert calm == LIMIT_S / TICK_S
    held = ticks_until_the_end(monkeypatch, lambda at: 10.0 < at <= 40.0 or at > 90.0)
    assert held == calm + 30.0 / TICK_S


@pytest.mark.parametrize(("used", "waits", "hired"), [(0.9, 0.1, 1), (0.3, 0.7, 1), (0.5, 0.0, 3), (0.02, 0.0, 7)])
def test_workers_are_started_only_while_cpu_time_is_free(monkeypatch, used, waits, hired):
    """Eight workers are requested on two CPUs. used, waits: share of each second, of the first worker."""
    seconds = [1000.0]
    ask = SimpleNamespace(monotonic=lambda: seconds[0], time=lambda: seconds[0], process_time=lambda: used * seconds[0])
    monkeypatch.setattr(crawling, "time", ask)
    monkeypatch.setattr(crawling, "waited_s", lambda: waits * seconds[0])
    monkeypatch.setattr(crawling.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(crawling, "start_worker", lambda order, run_id: SimpleNamespace(poll=lambda: None))
    store = SimpleNamespace(
        counts=lambda: None, busiest=lambda most, now: (), fair_share=lambda now: 9, is_paused=lambda: False
    )
    order = crawling.CrawlOrder(Path(), (), settings_from({"workers": 8, "index": False}))
    workers = []
    boss = crawling.Supervisor(store, order, 1, lambda progress: workers.append(progress.workers) or False)
    for _ in range(40):
        boss.tick()
        seconds[0] += TICK_S
    assert max(workers) == 1 + hired


def test_the_system_reports_the_wait_for_a_cpu():
    assert 0.0 <= crawling.waited_s() <= 1e9
