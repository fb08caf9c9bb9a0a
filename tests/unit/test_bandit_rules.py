"""Rules of choice against traces of the printed algorithms, computed by hand, and against their formulas."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from periplus.schedule.bandit import (
    DISCOUNT,
    ChoiceRule,
    Turns,
    Yields,
    choose,
    gittins,
    good_ucb,
    index_table,
    kl_ucb,
    quantum,
    r1,
    r2,
    r3,
    raw_ucb,
    thompson,
    ucb1_tuned,
)

THREE = [[1, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 2, 1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 5, 5, 5, 5, 5, 5, 5]]


def trace(rule: ChoiceRule, sites: list[list[int]], budget: int, seed: int = 1) -> str:
    """The sites asked, one letter a page; a site is as long as its list."""
    yields, turns, rng = Yields.none(1, len(sites)), Turns.none(1), np.random.default_rng(seed)
    asked = ""
    for _ in range(budget):
        ready = np.array([[len(site) > pages for site, pages in zip(sites, yields.pages[0], strict=True)]])
        if not ready.any():
            break
        site = choose(rule, yields, ready, turns, rng)
        reward = sites[site[0]][yields.pages[0, site[0]]]
        yields.book(np.array([0]), site, np.array([float(reward)]))
        asked += "ABCDEFGHIJ"[site[0]]
    return asked


def booked(*histories: list[float]) -> Yields:
    """What is known when the sites brought this, site by site."""
    yields = Yields.none(1, len(histories))
    for site, history in enumerate(histories):
        for reward in history:
            yields.book(np.array([0]), np.array([site]), np.array([float(reward)]))
    return yields


def scores(rule: ChoiceRule, yields: Yields) -> list[float]:
    return [float(value) for value in rule.score(yields, np.random.default_rng(1))[0]]


def test_r1_spends_the_nearest_share_on_each_and_the_rest_on_the_best():
    """[10 / 3] = 3 pages each bring 1, 3, 0 links; the 10 - 3 * 3 = 1 page that is left goes to B."""
    assert trace(r1(10, 3), THREE, 10) == "AAABBBCCCB"


def test_r1_rounds_its_share_to_the_nearest_integer_and_keeps_the_budget():
    """[11 / 3] = 4 would ask for 12: the last site gets 3."""
    assert trace(r1(11, 3), THREE, 11) == "AAAABBBBCCC"


def test_r1_leaves_an_exhausted_site_for_the_next_best():
    assert trace(r1(8, 3), [[0, 0], [0, 9], [0, 0, 0, 0, 0, 0]], 8) == "AABBCCCC"


def test_r2_asks_the_best_mean_for_blocks_of_n():
    """AABBCC: means 1/2, 1, 0.

    B's next block brings 1 and 0: 3/4, still the best. Then 3/6, level with A: the first of both.
    """
    assert trace(r2(2), THREE, 12) == "AABBCCBBBBAA"


def test_r2_never_finds_what_begins_late():
    assert "CCCC" not in trace(r2(2), THREE, 20)


def test_r3_is_ucb1_over_the_greatest_yield_so_far():
    """m = 1, rewards A 1 0, B 0, C 0: after ABC, A has 1 + sqrt(2 ln 3) = 2.48 against 1.48.

    After its 0 it has 1/2 + sqrt(ln 4) = 1.68 against sqrt(2 ln 4) = 1.67: A again; 1/3 + sqrt(2 ln 5 / 3) = 1.37
    against 1.79: B. X_max is 1 until B's second page brings 2.
    """
    assert trace(r3(1), THREE, 6) == "ABCAAB"


def test_r3_scores_are_the_printed_formula():
    yields = booked([1, 0, 0], [0, 2])
    bonus = [math.sqrt(2 * math.log(5) / 3), math.sqrt(2 * math.log(5) / 2)]
    assert scores(r3(), yields) == pytest.approx([(1 / 3) / 2 + bonus[0], 1 / 2 + bonus[1]])


def test_the_quantum_gives_each_site_its_share_in_turn():
    assert trace(quantum(2), THREE, 14) == "AABBCCAABBCCAA"


def test_an_exhausted_site_leaves_its_block():
    assert trace(quantum(3), [[0], [0] * 9], 7) == "ABBBBBB"


def test_kl_ucb_bound_solves_its_equation():
    yields = booked([3, 1, 0, 0], [0, 0], [9])
    for bound, mean, pages in zip(scores(kl_ucb(), yields), [1.0, 0.0, 9.0], [4, 2, 1], strict=True):
        divergence = bound - mean - (mean * math.log(bound / mean) if mean else 0.0)
        assert divergence * pages == pytest.approx(math.log(7))


def test_ucb1_tuned_is_the_published_formula():
    yields = booked([4, 0], [1, 1, 1])
    variance = (1 + 0) / 2 - 0.25 + math.sqrt(2 * math.log(5) / 2)
    assert scores(ucb1_tuned(), yields)[0] == pytest.approx(0.5 + math.sqrt(math.log(5) / 2 * min(0.25, variance)))


def test_raw_ucb_forgets_what_a_site_once_brought():
    """Both brought 64 links; the first lately nothing."""
    dried, fresh = scores(raw_ucb(), booked([2] * 32 + [0] * 32, [0] * 32 + [2] * 32))
    assert dried < fresh


def test_raw_ucb_takes_the_least_of_all_windows():
    yields = booked([5, 0, 0, 1])
    width = 0.3 * math.sqrt(26 / 4 - 1.5**2) * math.sqrt(2 * math.log(4))
    windows = [1 + width, 0.5 + width / math.sqrt(2), 1.5 + width / 2]
    assert scores(raw_ucb(), yields)[0] == pytest.approx(min(windows))


def test_good_ucb_counts_only_what_was_met_once():
    yields = booked([4], [4])
    yields.book(np.array([0]), np.array([0]), np.array([0.0]), np.array([3.0]))
    yields.book(np.array([0]), np.array([1]), np.array([0.0]), np.array([0.0]))
    repeated, single = scores(good_ucb(), yields)
    assert repeated < single


def test_thompson_draws_follow_the_means():
    first = [scores(thompson(), booked([9] * 50, [1] * 50))]
    assert all(rich > poor for rich, poor in first)


def test_gittins_is_more_than_the_mean_and_falls_towards_it():
    table = index_table()
    excess = [table[pages] * (pages - 1) for pages in (2, 3, 5, 10, 30, 100, 500)]
    assert all(more > less for more, less in itertools.pairwise(excess))
    assert 1 < excess[-1] < 1.02


def test_gittins_is_the_mean_for_who_sees_one_page_ahead():
    """Without a future there is nothing to learn for."""
    table = index_table(0.0001, 30)
    assert [table[pages] * (pages - 1) for pages in (3, 10, 20)] == pytest.approx([1, 1, 1], rel=0.01)


def test_gittins_agrees_with_a_plain_simulation_of_stopping():
    """Stopping as soon as the index is below the reward r brings r per discounted page:
    its slow twin plays that out.
    """
    start, table, rng = 20, index_table(), np.random.default_rng(3)
    reward, gained, spent = table[start], 0.0, 0.0
    rates, sums = rng.gamma(start, size=20_000), np.ones(20_000)
    going = sums > 0
    for step in range(400):
        found = rng.exponential(1 / rates)
        gained += DISCOUNT**step * found[going].sum()
        spent += DISCOUNT**step * going.sum()
        sums += found
        going &= sums * table[start + step + 1] >= reward
    assert gained / spent == pytest.approx(reward, rel=0.03)


def test_gittins_rule_prefers_the_less_known_of_equal_means():
    known, unknown = scores(gittins(), booked([2] * 20, [2]))
    assert unknown > known
