"""Periodic runs, and the syntax of a period."""

import click
import pytest

from periplus.cli.crawl import Period, repeat


class Day:
    """A clock that advances only during sleeps and runs."""

    def __init__(self):
        self.now, self.starts = 0.0, []

    def time(self):
        return self.now

    def sleep(self, seconds):
        assert 0 < seconds <= 1
        self.now += 1800  # a suspended laptop: more time passes than the sleep

    def run(self, took_s):
        def once():
            self.starts.append(self.now)
            self.now += took_s
            return "done"

        return once

    def repeat(self, took_s, every_s, runs):
        return repeat(self.run(took_s), every_s, lambda: len(self.starts) >= runs, (self.time, self.sleep))


def test_runs_start_once_per_period():
    day = Day()
    assert day.repeat(3600, 86_400, 4) == "done"
    assert day.starts == [0, 86_400, 172_800, 259_200]


def test_a_run_longer_than_the_period_is_followed_immediately():
    day = Day()
    day.repeat(7200, 3600, 3)
    assert day.starts == [0, 7200, 14_400]


def test_a_stop_does_not_wait_for_the_next_period():
    day = Day()
    day.repeat(10, 86_400, 1)
    assert day.now == 10


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("24h", 86_400), ("90m", 5400), ("7d", 604_800), ("24", 86_400), ("1.5h", 5400), ("3600s", 3600), (" 2 H ", 7200)],
)
def test_a_period_is_parsed(text, seconds):
    assert Period().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "h", "0h", "30s", "-1h", "1w", "1h30m", "1e9h"])
def test_an_invalid_period_is_refused(text):
    with pytest.raises(click.BadParameter, match="24h, 90m or 7d"):
        Period().convert(text, None, None)
