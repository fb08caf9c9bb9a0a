"""What counts against the time that a crawl may take?"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from periplus.api import crawling
from periplus.settings import settings_from

LIMIT_S, TICK_S = 60.0, 0.25


def ticks_until_the_end(monkeypatch, is_paused) -> int:
    """Of a crawl that waits only; is_paused: whether it is at a given second."""
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


def test_the_time_of_a_pause_is_none_of_max_time(monkeypatch):
    calm = ticks_until_the_end(monkeypatch, lambda at: False)
    assert calm == LIMIT_S / TICK_S
    held = ticks_until_the_end(monkeypatch, lambda at: 10.0 < at <= 40.0 or at > 90.0)
    assert held == calm + 30.0 / TICK_S
