"""Selection of influential sites: greedy, bounds, improvements, and reading of cascades."""

import math
import random
from itertools import combinations

import numpy as np
import pytest

from periplus.errors import UsageError
from periplus_topics.analyse.influence import (
    Coverage,
    SiteSelection,
    best_of,
    bound_at,
    coverage,
    fill_budget,
    future_way,
    gains,
    influence_of,
    lazy_greedy,
    tighten_bound,
    value_of,
    values_of,
)
from periplus_topics.model import Cascades, Objective, cascades_of_lines, halves

LINES = ["a,0 b,2 c,4", "a,10 b,11", "# a remark", "", "c,20 d,20.5", "d,30 c,31 b,40", "e,50"]


def random_cascades(seed: int, stories: int = 30, sites: int = 12) -> Cascades:
    rng = random.Random(seed)
    lines = []
    for _ in range(stories):
        members = rng.sample(range(sites), rng.randint(1, min(5, sites)))
        lines.append(" ".join(f"s{site},{rng.randint(0, 200) / 4}" for site in members))
    return cascades_of_lines(lines)


def plain_greedy(cover: Coverage, budget: float, by_ratio: bool) -> SiteSelection:
    """The slow twin: computes every gain again in each round; the first of equal sites wins."""
    best, sites, added, left = np.zeros(cover.story_count), [], [], budget
    while True:
        found = gains(cover, best)
        key = found / (cover.costs if by_ratio else 1.0)
        key[sites] = 0
        key[cover.costs > left * (1 + 1e-12)] = 0
        site = int(np.argmax(key))
        if key[site] <= 0:
            return SiteSelection(tuple(sites), tuple(added), 0)
        sites.append(site)
        added.append(float(found[site]))
        left -= float(cover.costs[site])
        best = best_of(cover, sites)


def optimum(cover: Coverage, budget: float) -> float:
    sets = (sites for size in range(cover.site_count + 1) for sites in combinations(range(cover.site_count), size))
    return max(value_of(cover, sites) for sites in sets if float(cover.costs[list(sites)].sum()) <= budget + 1e-9)


@pytest.mark.parametrize("objective", Objective)
@pytest.mark.parametrize("by_posts", [False, True])
@pytest.mark.parametrize("by_ratio", [False, True])
def test_lazy_greedy_equals_plain_greedy(objective: Objective, by_posts: bool, by_ratio: bool) -> None:
    for seed in range(6):
        cover = coverage(random_cascades(seed), objective, by_posts=by_posts)
        budget = 15.0 if by_posts else 4.0
        lazy, plain = lazy_greedy(cover, budget, by_ratio=by_ratio), plain_greedy(cover, budget, by_ratio)
        assert np.allclose(np.cumsum(lazy.gains), np.cumsum(plain.gains))
        assert lazy.sites == plain.sites


@pytest.mark.parametrize("objective", Objective)
@pytest.mark.parametrize("by_posts", [False, True])
def test_the_selection_reaches_its_guarantee_and_bounds_are_valid(objective: Objective, by_posts: bool) -> None:
    for seed in range(5):
        cascades = random_cascades(seed, stories=25, sites=9)
        cover = coverage(cascades, objective, by_posts=by_posts)
        budget = 14.0 if by_posts else 3.0
        found = influence_of(cascades, cover, budget)
        best = optimum(cover, budget)
        assert (1 if not by_posts else 0.5) * (1 - 1 / math.e) * best - 1e-9 <= found.value * cover.total <= best + 1e-9
        assert found.lp_bound >= found.value - 1e-9
        assert found.online_bound >= found.lp_bound - 1e-9


@pytest.mark.parametrize("objective", Objective)
def test_bounds_are_valid_for_any_prices_and_better_prices_tighten_them(objective: Objective) -> None:
    cover = coverage(random_cascades(3, 40, 10), objective)
    best, value = optimum(cover, 3), lazy_greedy(cover, 3).value
    for seed in range(5):
        prices = np.random.default_rng(seed).random(cover.story_count) * cover.values.max()
        assert bound_at(cover, prices, 3)[0] >= best - 1e-9
    bound, _ = tighten_bound(cover, best_of(cover, lazy_greedy(cover, 3).sites), 3, value)
    assert best - 1e-9 <= bound <= bound_at(cover, best_of(cover, lazy_greedy(cover, 3).sites), 3)[0]


def test_an_example_computed_by_hand() -> None:
    """Sites c and a have all stories but one; e has that story."""
    cascades = cascades_of_lines(LINES)
    assert cascades.sites == ("a", "b", "c", "d", "e")
    found = influence_of(cascades, coverage(cascades, Objective.DL), 2)
    assert {cascades.sites[choice.site] for choice in found.chosen} == {"a", "c"} or found.value == pytest.approx(0.8)
    assert found.lp_bound == pytest.approx(0.8)
    assert found.missed == (4,)
    assert [len(choice.first_of) for choice in found.chosen] == [3, 1]
    all_sites = influence_of(cascades, coverage(cascades, Objective.DL), 9)
    assert all_sites.value == 1.0
    assert all_sites.missed == ()


def test_each_objective_has_its_benefits() -> None:
    cascades = cascades_of_lines(["a,0 b,50 c,100"])
    assert coverage(cascades, Objective.DL).values.tolist() == [1, 1, 1]
    assert coverage(cascades, Objective.PA).values.tolist() == [3, 2, 1]
    early = coverage(cascades, Objective.DT)
    assert early.sites.tolist() == [0, 1]  # the last one is beyond the horizon
    assert early.values[0] == 1.0
    assert early.values[1] == pytest.approx(1 - 50 / np.quantile([0, 50, 100], 0.99))


def test_with_costs_by_posts_the_better_of_two_rules_is_used() -> None:
    cascades = cascades_of_lines(["big,0 s1,1", "big,0 s2,1", "big,0 s3,1", "big,0", "s4,0"])
    cover = coverage(cascades, Objective.DL, by_posts=True)
    assert cover.costs.tolist() == [4, 1, 1, 1, 1]
    found = influence_of(cascades, cover, 4)
    assert sum(choice.cost for choice in found.chosen) <= 4
    assert found.value == pytest.approx(0.8)


def test_a_remaining_budget_goes_to_sites_with_repeated_stories() -> None:
    cascades = cascades_of_lines(["a,0 b,1 c,2", "a,0 b,1", "a,0 d,1"])
    cover = coverage(cascades, Objective.DL)
    assert lazy_greedy(cover, 4).sites == (0,)
    assert fill_budget(cover, (0,), 3) == (0, 1, 3)
    assert sorted(fill_budget(cover, (0,), 9)) == [0, 1, 2, 3]


def test_newer_stories_can_have_more_weight() -> None:
    cascades = cascades_of_lines(["old,0", "old,1", "new,1000", "new,1001"])
    cover = coverage(cascades, Objective.DL)
    assert influence_of(cascades, cover, 1).chosen[0].site == 0
    assert influence_of(cascades, cover, 1, (True, 0.0)).chosen[0].site == 1


def test_a_second_site_has_value_if_sites_can_miss_stories() -> None:
    cascades = cascades_of_lines(["a,0 b,1", "a,0 b,1", "a,0 b,1", "c,0"])
    cover = coverage(cascades, Objective.DL)
    assert lazy_greedy(cover, 2).sites == (0, 2)
    assert lazy_greedy(cover, 2, miss=0.5).sites == (0, 1)


def test_the_selection_for_the_future_is_greedy_unless_history_favours_another_rule() -> None:
    assert future_way(random_cascades(4, 1), Objective.DL, lambda part: 2.0) == (False, 0.0)
    # a declines and b grows: in the middle a still has more stories in total, but b has more new ones
    tellers = "aaaa" + "ab" * 8 + "ab" * 8 + "bbbc" + 2 * ("abb" * 6 + "bb")
    passing = cascades_of_lines([f"{site},{day}" for day, site in enumerate(tellers)])
    assert future_way(passing, Objective.DL, lambda part: 1.0) == (True, 0.0)


def test_values_are_sums_of_gains() -> None:
    cover = coverage(random_cascades(2), Objective.DT)
    picked = lazy_greedy(cover, 5)
    assert np.allclose(values_of(cover, picked.sites), np.cumsum(picked.gains))


def test_halves_are_split_by_the_start_of_stories() -> None:
    earlier, later = halves(cascades_of_lines(["a,9 b,10", "c,1", "d,5 a,6", "e,20"]))
    assert earlier.starts_h.tolist() == [1, 5]
    assert later.starts_h.tolist() == [9, 20]
    assert earlier.posts.tolist() == [1, 0, 1, 1, 0]


def test_a_site_counts_where_it_is_earliest() -> None:
    cascades = cascades_of_lines(["b,5 a,3 b,1 www.x.org:80,2"])
    assert [cascades.sites[site] for site in cascades.members] == ["b", "www.x.org:80", "a"]
    assert cascades.delays_h.tolist() == [0, 1, 2]


@pytest.mark.parametrize("line", ["a", "a,", ",3", "a,b", "a,nan", "a,1 b,inf"])
def test_an_invalid_line_is_named(line: str) -> None:
    with pytest.raises(UsageError, match="line 2"):
        cascades_of_lines(["a,0", line])


def test_without_stories_no_site_is_selected() -> None:
    cascades = cascades_of_lines([])
    found = influence_of(cascades, coverage(cascades, Objective.DT), 3)
    assert (found.chosen, found.value, found.missed) == ((), 0.0, ())
