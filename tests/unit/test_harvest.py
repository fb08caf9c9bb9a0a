"""How fast a harvest goes and how complete it is: by hand, by a plain twin, and on worlds whose truth is known."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_campaigns import made_campaign, made_web
from periplus.analyse.harvest import curve, harvest_of, harvest_rows, new_items, richness, round_robin, site_curves
from periplus.model.webometrics import Estimate


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


def test_the_total_by_hand():
    """Four of eight pages, each with one item of its own: as many more, by the most and by the least that it may be."""
    found = richness(rows_of([(0, [page]) for page in range(4)], known=[8]))
    assert (found.observed, found.once, found.twice, found.pages, found.known) == (4, 4, 0, 4, 8)
    assert found.total.value == pytest.approx(8) and found.share == pytest.approx(0.5)
    # by site: 4 items lacking, and 4 (1 + 4/7) + 1 of a count; lately the same; the upper end has one more for each
    spread = 1.959964 * math.sqrt(16 + 4 * (1 + 4 / 7) + 1)
    assert found.total.low == pytest.approx(4 + 4 * math.exp(-spread / 4))
    assert found.total.high == pytest.approx(4 + 4 * math.exp(spread / 5))


def test_a_web_that_was_read_to_its_end_lacks_nothing():
    assert richness(rows_of([(0, [1]), (0, [2])])).total == Estimate(2.0, 2.0, 2.0)


def test_sites_that_repeat_themselves_lack_less():
    own = richness(rows_of([(0, [page]) for page in range(20)], known=[40])).total
    again = richness(rows_of([(0, [page // 2]) for page in range(20)], known=[40])).total
    assert again.value - 10 < own.value - 20
    assert richness(rows_of([(0, [1])] * 20, known=[40])).total.high == pytest.approx(1 + 3.0), (
        "nothing new on 20 pages: three more at most"
    )


def test_an_unread_site_has_the_pooled_yield():
    """Two sites were read to their end, an item of its own on each page; of two others ten pages are known."""
    pages = [(site, [100 * site + page]) for page in range(10) for site in range(2)]
    assert richness(rows_of(pages, known=[10] * 4, sites=4)).total.value == pytest.approx(40)


def test_nothing_is_said_of_all_while_less_than_half_of_the_sites_are_read():
    pages = [(0, [1]), (0, [2])]
    few = richness(rows_of(pages, known=[3, 1, 1], sites=3))
    assert (few.total, few.share, few.sites, few.sites_read) == (None, None, 3, 1)
    assert richness(rows_of(pages, known=[3, 1], sites=2)).total is not None
    assert richness(rows_of(pages, known=[3, 0, 0], sites=3)).total is not None, (
        "sites that are not there count for nothing"
    )


def test_the_interval_holds_the_truth_on_pages_drawn_by_chance():
    """60 random samples of half of 400 pages that hold 300 items each as likely."""
    rng = random.Random(5)
    held = 0
    for _ in range(60):
        world = [[rng.randrange(300) for _ in range(rng.randrange(4))] for _ in range(400)]
        truth = len({item for page in world for item in page})
        found = richness(rows_of([(0, items) for items in rng.sample(world, 200)], known=[400])).total
        held += found.low - 0.5 <= truth <= found.high + 0.5
    assert held >= 54


def test_the_interval_holds_the_truth_on_made_campaigns():
    """As quality/bandits/completeness.py measures it on 200: at least nine in ten."""
    held = []
    for seed in range(3000, 3020):
        made = made_campaign(made_web(seed, most_sites=12), seed)
        if (found := richness(made.rows).total) is not None:
            held.append(found.low - 0.5 <= made.truth <= found.high + 0.5)
    assert len(held) >= 15 and sum(held) >= 0.9 * len(held)


def plain_round_robin(pages, known, sites):
    """Turn by turn: (items found, turns) until a page comes that was not fetched."""
    queue = [[set(items) for site, items in pages if site == place] for place in range(sites)]
    found, turns = set(), 0
    for turn in range(len(pages)):
        for place in range(sites):
            if turn < len(queue[place]):
                found |= queue[place][turn]
                turns += 1
            elif turn < known[place]:
                return len(found), turns
    return len(found), turns


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 12), max_size=4)), max_size=25),
    st.lists(st.integers(0, 12), min_size=4, max_size=4),
)
def test_the_round_robin_agrees_with_taking_turns(pages, known):
    baseline = round_robin(rows_of(pages, known, sites=4))
    assert (baseline.found, baseline.pages) == plain_round_robin(pages, known, 4)
    assert baseline.curve.found[-1] == baseline.found and baseline.curve.pages[-1] == baseline.pages
    assert baseline.beside == len({item for _, items in pages[: baseline.pages] for item in items})


def test_the_round_robin_assumes_nothing():
    """Six sites of 200 pages; the campaign read two of them to the end and 40 pages of the others: 240 turns are known,
    and they alone are told.
    """
    rng = random.Random(1)
    worlds = [
        [[rng.randrange(400) + 250 * site for _ in range(rng.randrange(3))] for _ in range(200)] for site in range(6)
    ]
    campaign = [
        (site, worlds[site][turn]) for site, read in enumerate([200, 200, 40, 40, 40, 40]) for turn in range(read)
    ]
    baseline = round_robin(rows_of(campaign, known=[200] * 6))
    assert baseline.pages == 240 + 2
    assert baseline.found == len(
        {item for site in range(6) for page in worlds[site][: 40 + (site < 2)] for item in page}
    )


def test_a_curve_has_few_points_and_both_ends():
    found = curve("x", np.ones(10_000, np.int64))
    assert len(found.pages) <= 200
    assert (found.pages[0], found.pages[-1], found.found[-1]) == (0, 10_000, 10_000.0)


def test_a_harvest_of_nothing_has_curves_of_nothing():
    rows = rows_of([], known=[0, 0], sites=2)
    found = harvest_of(rows, rows, "page")
    assert (found.total.found, found.baseline.found, found.recent, found.richness.total) == ((0.0,), 0, 0.0, None)
