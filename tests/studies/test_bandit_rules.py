"""Selection rules compared with traces of the published algorithms, computed by hand, and with their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from periplus.model.frontier import ReadyHost
from periplus.model.web import HostKey, SiteKey
from periplus_studies.rules import ChoiceRule, Novelty, SitePolicy, Yields, quantum, r1, r2, r3, raw_ucb

THREE = [[1, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 2, 1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 5, 5, 5, 5, 5, 5, 5]]


def trace(rule: ChoiceRule, sites: list[list[int]], budget: int, seed: int = 1) -> str:
    """The sites in the order of their requests, a letter per page. A site has as many pages as its list."""
    names = [SiteKey(f"{letter}.org") for letter in "abcdefghij"[: len(sites)]]
    policy, order = SitePolicy(rule, Novelty("page", SiteKey), seed), ""
    hosts = [ReadyHost(place, HostKey(f"{name}:443"), name, 1, 0, 0.0) for place, name in enumerate(names)]
    for host in hosts:
        policy.place(host.site)
    for _ in range(budget):
        ready = [host for host in hosts if order.count("ABCDEFGHIJ"[host.host_id]) < len(sites[host.host_id])]
        if not ready:
            break
        (place,) = policy.choose(ready, 1)
        letter = "ABCDEFGHIJ"[place]
        policy.book(names[place], float(sites[place][order.count(letter)]))
        order += letter
    return order


def yields_after(*histories: list[float]) -> Yields:
    """The state after these rewards, by site."""
    yields = Yields.zeros(1, len(histories))
    for site, history in enumerate(histories):
        for reward in history:
            yields.book(np.array([0]), np.array([site]), np.array([float(reward)]))
    return yields


def scores(rule: ChoiceRule, yields: Yields) -> list[float]:
    return [float(value) for value in rule.score(yields, np.random.default_rng(1))[0]]


def test_r1_spends_the_nearest_share_on_each_and_the_rest_on_the_best():
    """[10 / 3] = 3 pages of each site yield 1, 3, 0 links; the remaining 10 - 3 * 3 = 1 page is of B."""
    assert trace(r1(10, 3), THREE, 10) == "AAABBBCCCB"


def test_r1_rounds_its_share_to_the_nearest_integer_and_keeps_the_budget():
    """[11 / 3] = 4 would be 12 pages, so the last site gets 3."""
    assert trace(r1(11, 3), THREE, 11) == "AAAABBBBCCC"


def test_r1_leaves_an_exhausted_site_for_the_next_best():
    assert trace(r1(8, 3), [[0, 0], [0, 9], [0, 0, 0, 0, 0, 0]], 8) == "AABBCCCC"


def test_r2_requests_blocks_of_n_from_the_site_with_the_best_mean():
    """AABBCC: means 1/2, 1, 0.

    B's next block yields 1 and 0: 3/4, still the best. Then 3/6, equal to A: the first site wins.
    """
    assert trace(r2(2), THREE, 12) == "AABBCCBBBBAA"


def test_r2_never_finds_a_late_yield():
    assert "CCCC" not in trace(r2(2), THREE, 20)


def test_r3_is_ucb1_over_the_greatest_yield_so_far():
    """m = 1, rewards A 1 0, B 0, C 0: after ABC, A has 1 + sqrt(2 ln 3) = 2.48 against 1.48.

    After its 0 it has 1/2 + sqrt(ln 4) = 1.68 against sqrt(2 ln 4) = 1.67: A again; 1/3 + sqrt(2 ln 5 / 3) = 1.37
    against 1.79: B. X_max is 1 until B's second page yields 2.
    """
    assert trace(r3(1), THREE, 6) == "ABCAAB"


def test_r3_scores_follow_the_published_formula():
    yields = yields_after([1, 0, 0], [0, 2])
    bonus = [math.sqrt(2 * math.log(5) / 3), math.sqrt(2 * math.log(5) / 2)]
    assert scores(r3(), yields) == pytest.approx([(1 / 3) / 2 + bonus[0], 1 / 2 + bonus[1]])


def test_raw_ucb_leaves_a_site_whose_last_pages_yielded_nothing():
    """Both sites have the same mean. The fading mean over 4 pages bounds the score of the site that ran dry."""
    dry, fresh = scores(raw_ucb(), yields_after([2] * 32 + [0] * 32, [0] * 32 + [2] * 32))
    assert dry < 0.6 < fresh


def test_raw_ucb_is_the_least_bound_of_all_memories():
    """The pages of each memory are faded like its rewards: 1 + 3/4 + 9/16 for a memory of 4 pages."""
    yields = yields_after([5, 0, 1])
    faded = [(1 + 5 * keep**2) / (1 + keep + keep**2) for keep in (3 / 4, 15 / 16, 63 / 64, 255 / 256)]
    pages = [1 + keep + keep**2 for keep in (3 / 4, 15 / 16, 63 / 64, 255 / 256)]
    mean = (6 + 0.1) / 4  # with the first links added and one page more, as in all rules of ours
    width = 0.3 * math.sqrt(2 * (26 / 4 - mean**2) * math.log(4))
    bounds = [value + width / math.sqrt(count) for value, count in zip([*faded, 2], [*pages, 3], strict=True)]
    assert scores(raw_ucb(), yields) == pytest.approx([min(bounds)])


def test_the_quantum_gives_each_site_its_share_in_turn():
    assert trace(quantum(2), THREE, 14) == "AABBCCAABBCCAA"


def test_an_exhausted_site_ends_its_block():
    assert trace(quantum(3), [[0], [0] * 9], 7) == "ABBBBBB"
