"""Published selection rules, used only by measurements, compared with their formulas and a simulation."""

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from periplus_studies.rules import ChoiceRule

_SPEC = importlib.util.spec_from_file_location(
    "published", Path(__file__).parents[2] / "quality" / "bandits" / "published.py"
)
assert _SPEC is not None and _SPEC.loader is not None
published = sys.modules["published"] = importlib.util.module_from_spec(_SPEC)  # needed by dataclasses
_SPEC.loader.exec_module(published)


def yields_after(*histories: list[float]):
    """The state after these rewards, by site."""
    yields = published.PublishedYields.zeros(1, len(histories))
    for site, history in enumerate(histories):
        for reward in history:
            yields.book(np.array([0]), np.array([site]), np.array([float(reward)]))
    return yields


def scores(rule: ChoiceRule, yields) -> list[float]:
    return [float(value) for value in rule.score(yields, np.random.default_rng(1))[0]]


def test_kl_ucb_bound_solves_its_equation():
    yields = yields_after([3, 1, 0, 0], [0, 0], [9])
    for bound, mean, pages in zip(scores(published.kl_ucb(), yields), [1.0, 0.0, 9.0], [4, 2, 1], strict=True):
        divergence = bound - mean - (mean * math.log(bound / mean) if mean else 0.0)
        assert divergence * pages == pytest.approx(math.log(7))


def test_ucb1_tuned_follows_the_published_formula():
    yields = yields_after([4, 0], [1, 1, 1])
    variance = (1 + 0) / 2 - 0.25 + math.sqrt(2 * math.log(5) / 2)
    assert scores(published.ucb1_tuned(), yields)[0] == pytest.approx(
        0.5 + math.sqrt(math.log(5) / 2 * min(0.25, variance))
    )


def test_raw_ucb_prefers_recent_yields():
    """Both sites yielded 64 links, the first one none recently."""
    dried, fresh = scores(published.raw_ucb(), yields_after([2] * 32 + [0] * 32, [0] * 32 + [2] * 32))
    assert dried < fresh


def test_raw_ucb_is_the_minimum_over_all_windows():
    yields = yields_after([5, 0, 0, 1])
    width = 0.3 * math.sqrt(26 / 4 - 1.5**2) * math.sqrt(2 * math.log(4))
    windows = [1 + width, 0.5 + width / math.sqrt(2), 1.5 + width / 2]
    assert scores(published.raw_ucb(), yields)[0] == pytest.approx(min(windows))


def test_good_ucb_counts_only_items_seen_once():
    yields = yields_after([4], [4])
    yields.book(np.array([0]), np.array([0]), np.array([0.0]), np.array([3.0]))
    yields.book(np.array([0]), np.array([1]), np.array([0.0]), np.array([0.0]))
    repeated, single = scores(published.good_ucb(), yields)
    assert repeated < single


def test_thompson_draws_follow_the_means():
    first = [scores(published.thompson(), yields_after([9] * 50, [1] * 50))]
    assert all(rich > poor for rich, poor in first)


def test_gittins_indices_are_above_the_mean_and_decrease_towards_it():
    table = published.index_table()
    excess = [table[pages] * (pages - 1) for pages in (2, 3, 5, 10, 30, 100, 500)]
    assert all(more > less for more, less in itertools.pairwise(excess))
    assert 1 < excess[-1] < 1.02


def test_gittins_index_without_future_is_the_mean():
    """Without a future, learning has no value."""
    table = published.index_table(0.0001, 30)
    assert [table[pages] * (pages - 1) for pages in (3, 10, 20)] == pytest.approx([1, 1, 1], rel=0.01)


def test_gittins_agrees_with_a_simulation_of_stopping():
    """The slow twin simulates it: stopping when the index falls below the reward r yields r per discounted page."""
    start, table, rng = 20, published.index_table(), np.random.default_rng(3)
    reward, gained, spent = table[start], 0.0, 0.0
    rates, sums = rng.gamma(start, size=20_000), np.ones(20_000)
    going = sums > 0
    for step in range(400):
        found = rng.exponential(1 / rates)
        gained += published.DISCOUNT**step * found[going].sum()
        spent += published.DISCOUNT**step * going.sum()
        sums += found
        going &= sums * table[start + step + 1] >= reward
    assert gained / spent == pytest.approx(reward, rel=0.03)


def test_gittins_rule_prefers_the_less_known_site_of_equal_means():
    known, unknown = scores(published.gittins(), yields_after([2] * 20, [2]))
    assert unknown > known
