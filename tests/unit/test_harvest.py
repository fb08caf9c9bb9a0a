"""How fast a harvest goes and how complete it is: by hand, by a plain twin, and on worlds whose truth is known."""

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.analyse.harvest import curve, harvest_of, harvest_rows, new_items, richness, round_robin, site_curves


def rows_of(pages, known=None, sites=None):
    """pages: (site, items) in the order of fetching."""
    count = 1 + max((site for site, _ in pages), default=-1) if sites is None else sites
    own = [sum(1 for site, _ in pages if site == place) for place in range(count)]
    pairs = [(page, item) for page, (_, items) in enumerate(pages) for item in items]
    page, item = np.array(pairs, np.int64).reshape(-1, 2).T
    return harvest_rows(
        [f"s{place}" for place in range(count)],
        np.array(own if known is None else known, np.int64),
        np.array([site for site, _ in pages], np.int32),
        (page, item * 1000 + 7),  # any numbers name items
    )


def test_new_items_count_once_in_the_order_of_fetching():
    rows = rows_of([(0, [1, 2, 2]), (1, [2, 3]), (0, []), (1, [1, 4, 5])])
    assert new_items(rows).tolist() == [2, 1, 0, 2]
    a, b = site_curves(rows)
    assert (a.name, a.pages, a.found) == ("s1", (0, 1, 2), (0.0, 1.0, 3.0))
    assert (b.name, b.found) == ("s0", (0.0, 2.0, 2.0))


def test_chao2_by_hand():
    """Ten pages of a web without end: 6 items once, 3 twice, 1 thrice. Chao 1987: 10 + 9/10 * 36/6."""
    pages = [(0, [1]), (0, [2]), (0, [3]), (0, [4]), (0, [5]), (0, [6, 7]), (0, [7, 8]), (0, [8, 9, 10]), (0, [9, 10]), (0, [10])]
    found = richness(rows_of(pages, known=[10**12]))
    assert (found.observed, found.once, found.twice) == (10, 6, 3)
    assert found.estimate == pytest.approx(10 + 0.9 * 36 / 6)
    slopes = (0.9 * 6 / 3, -0.9 * 36 / (2 * 9))
    a = (1 + slopes[0], 1 + slopes[1], 1)
    variance = sum(x * x * n for x, n in zip(a, (6, 3, 1), strict=True)) - sum(x * n for x, n in zip(a, (6, 3, 1), strict=True)) ** 2 / found.estimate
    factor = math.exp(1.959964 * math.sqrt(math.log(1 + variance / 5.4**2)))
    assert (found.low, found.high) == (pytest.approx(10 + 5.4 / factor), pytest.approx(10 + 5.4 * factor))
    assert found.coverage == pytest.approx(1 - 6 / 15 * (9 * 6) / (9 * 6 + 2 * 3))


def test_a_web_that_was_read_to_its_end_lacks_nothing():
    found = richness(rows_of([(0, [1]), (0, [2])]))
    assert (found.estimate, found.low, found.high) == (2.0, 2.0, 2.0)


def test_half_a_web_lacks_less_than_an_endless_one():
    pages = [(0, [page, page // 2 + 100]) for page in range(20)]
    half, endless = richness(rows_of(pages, known=[40])), richness(rows_of(pages, known=[10**9]))
    assert half.observed < half.estimate < endless.estimate
    # Chao and Lin 2012: Q1^2 / (t/(t-1) 2 Q2 + r/(1-r) Q1), here Q1 = 20, Q2 = 10, r = 1/2
    assert half.estimate == pytest.approx(30 + 400 / (20 / 19 * 20 + 20))


def test_the_interval_holds_the_truth_on_pages_drawn_by_chance():
    """60 random samples of half of 400 pages that hold 300 items each as likely: at least 80 % of the intervals hold the truth."""
    rng = random.Random(5)
    held = 0
    for _ in range(60):
        world = [[rng.randrange(300) for _ in range(rng.randrange(4))] for _ in range(400)]
        truth = len({item for page in world for item in page})
        found = richness(rows_of([(0, items) for items in rng.sample(world, 200)], known=[400]))
        held += found.low - 0.5 <= truth <= found.high + 0.5
    assert held >= 48


def plain_round_robin(pages, known, sites, unseen):
    """Turn by turn: (items found, pages that were fetched, pages assumed)."""
    queue = [[set(items) for site, items in pages if site == place] for place in range(sites)]
    times = Counter(item for _, items in pages for item in set(items))
    recent = [sum(times[item] == 1 for items in own[-50:] for item in items) / min(len(own), 50) if own else 0.0 for own in queue]
    size = [max(known[place], len(queue[place])) for place in range(sites)]
    taken, found, measured, assumed, extra = [0] * sites, set(), 0, 0, 0.0
    while measured + assumed < len(pages):
        for place in range(sites):
            if measured + assumed < len(pages) and taken[place] < size[place]:
                if taken[place] < len(queue[place]):
                    found |= queue[place][taken[place]]
                    measured += 1
                else:
                    extra += recent[place]
                    assumed += 1
                taken[place] += 1
    return len(found) + (unseen * (1 - math.exp(-extra / unseen)) if unseen else 0.0), measured, assumed


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 12), max_size=4)), max_size=25), st.lists(st.integers(0, 12), min_size=4, max_size=4))
def test_the_round_robin_agrees_with_taking_turns(pages, known):
    rows = rows_of(pages, known, sites=4)
    baseline, rich = round_robin(rows), richness(rows)
    found, measured, assumed = plain_round_robin(pages, known, 4, rich.estimate - rich.observed)
    assert (baseline.measured, baseline.assumed) == (measured, assumed)
    assert baseline.found == pytest.approx(found)
    assert baseline.curve.found[-1] == pytest.approx(found)


def test_the_baseline_of_a_skewed_campaign_is_near_what_a_round_robin_really_finds():
    """Six sites of 200 pages; the campaign read two of them to the end and 40 pages of the others. The truth is known."""
    errors = []
    for seed in range(8):
        rng = random.Random(seed)
        worlds = [[[rng.randrange(400) + 250 * site for _ in range(rng.randrange(3))] for _ in range(200)] for site in range(6)]
        read = [200, 200, 40, 40, 40, 40]
        campaign = [(site, worlds[site][turn]) for turn in range(200) for site in range(6) if turn < read[site]]
        truth = len({item for site in range(6) for page in worlds[site][: len(campaign) // 6] for item in page})
        baseline = round_robin(rows_of(campaign, known=[200] * 6))
        assert baseline.assumed > 0
        errors.append(baseline.found / truth - 1)
    assert abs(sum(errors) / len(errors)) < 0.1
    assert max(map(abs, errors)) < 0.2


def test_a_curve_has_few_points_and_both_ends():
    found = curve("x", np.ones(10_000, np.int64))
    assert len(found.pages) <= 200
    assert (found.pages[0], found.pages[-1], found.found[-1]) == (0, 10_000, 10_000.0)


def test_a_harvest_of_nothing_has_curves_of_nothing():
    rows = rows_of([], known=[0, 0], sites=2)
    found = harvest_of(rows, rows, "page")
    assert (found.total.found, found.baseline.found, found.recent, found.richness.estimate) == ((0.0,), 0.0, 0.0, 0.0)
