"""Speed and completeness of a harvest, checked by hand, with slow code, and on synthetic webs."""

import io
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_campaigns import made_campaign, made_web
from periplus_studies.harvest import (
    curve,
    harvest_of,
    harvest_rows,
    new_items,
    richness,
    round_robin,
    site_curves,
    write_yield_curves,
)
from periplus_studies.model import Estimate


def rows_of(pages, known=None, sites=None):
    """The rows of these pages. pages: (site, items) in the order of fetching."""
    count = 1 + max((site for site, _ in pages), default=-1) if sites is None else sites
    own = [sum(1 for site, _ in pages if site == place) for place in range(count)]
    pairs = [(page, item) for page, (_, items) in enumerate(pages) for item in items]
    page, item = np.array(pairs, np.int64).reshape(-1, 2).T
    return harvest_rows(
        [f"s{place}" for place in range(count)],
        np.array(own if known is None else known, np.int64),
        np.array([site for site, _ in pages], np.int32),
        (page, item * 1000 + 7),  # items can have any numbers
    )


def test_new_items_count_once_in_the_order_of_fetching():
    rows = rows_of([(0, [1, 2, 2]), (1, [2, 3]), (0, []), (1, [1, 4, 5])])
    assert new_items(rows).tolist() == [2, 1, 0, 2]
    a, b = site_curves(rows)
    assert (a.name, a.pages, a.found) == ("s1", (0, 1, 2), (0.0, 1.0, 3.0))
    assert (b.name, b.found) == ("s0", (0.0, 2.0, 2.0))


def test_the_estimated_total_equals_a_calculation_by_hand():
    """Four of eight pages were read, each with an item of its own: four more items are expected."""
    found = richness(rows_of([(0, [page]) for page in range(4)], known=[8]))
    assert (found.observed, found.once, found.twice, found.pages, found.known) == (4, 4, 0, 4, 8)
    assert found.total.value == pytest.approx(8) and found.share == pytest.approx(0.5)
    # per site: 4 missing items with a variance of 4 (1 + 4/7) + 1; the same for recent pages
    spread = 1.959964 * math.sqrt(16 + 4 * (1 + 4 / 7) + 1)
    assert found.total.low == pytest.approx(4 + 4 * math.exp(-spread / 4))
    # the upper end adds one missing item, 30.5 in all, but the four unread pages have at most twice as many
    assert found.total.high == pytest.approx(3 * found.total.low) and 3 * found.total.low < 4 + 4 * math.exp(spread / 5)


def test_an_estimate_above_the_drawing_is_named():
    rows, out = rows_of([(0, [page]) for page in range(4)], known=[12]), io.StringIO()
    write_yield_curves(harvest_of(rows, rows, "page"), "Yield", "", out)
    assert "↑ band to 44" in out.getvalue()


def test_a_completely_read_web_lacks_nothing():
    assert richness(rows_of([(0, [1]), (0, [2])])).total == Estimate(2.0, 2.0, 2.0)


def test_sites_with_repeated_items_lack_fewer_items():
    own = richness(rows_of([(0, [page]) for page in range(20)], known=[40])).total
    again = richness(rows_of([(0, [page // 2]) for page in range(20)], known=[40])).total
    assert again.value - 10 < own.value - 20
    assert richness(rows_of([(0, [1])] * 20, known=[40])).total.high == pytest.approx(1 + 3.0), (
        "nothing new on 20 pages: at most three more"
    )


def test_an_unread_site_gets_the_mean_yield():
    """Two sites were read completely, with a new item on each page; ten pages of two other sites are known."""
    pages = [(site, [100 * site + page]) for page in range(10) for site in range(2)]
    assert richness(rows_of(pages, known=[10] * 4, sites=4)).total.value == pytest.approx(40)


def test_there_is_no_total_until_half_of_the_sites_are_read():
    pages = [(0, [1]), (0, [2])]
    few = richness(rows_of(pages, known=[3, 1, 1], sites=3))
    assert (few.total, few.share, few.sites, few.sites_read) == (None, None, 3, 1)
    assert richness(rows_of(pages, known=[3, 1], sites=2)).total is not None
    assert richness(rows_of(pages, known=[3, 0, 0], sites=3)).total is not None, (
        "sites without known pages do not count"
    )


def test_the_interval_contains_the_true_total_of_random_pages():
    """60 random samples of half of 400 pages with 300 equally likely items."""
    rng = random.Random(5)
    hits = 0
    for _ in range(60):
        world = [[rng.randrange(300) for _ in range(rng.randrange(4))] for _ in range(400)]
        truth = len({item for page in world for item in page})
        found = richness(rows_of([(0, items) for items in rng.sample(world, 200)], known=[400])).total
        hits += found.low - 0.5 <= truth <= found.high + 0.5
    assert hits >= 54


def test_the_interval_contains_the_true_total_of_simulated_campaigns():
    """In at least nine of ten; quality/bandits/completeness.py measures 200 campaigns."""
    held = []
    for seed in range(3000, 3020):
        made = made_campaign(made_web(seed, most_sites=12), seed)
        if (found := richness(made.rows).total) is not None:
            held.append(found.low - 0.5 <= made.truth <= found.high + 0.5)
    assert len(held) >= 15 and sum(held) >= 0.9 * len(held)


def test_the_interval_is_at_most_three_times_wide_where_half_is_read():
    """Sites of rare rich pages and of items everywhere: 20 webs of four sites, half of each in the order of pages."""
    rng = np.random.default_rng(3)
    hits, number = 0, 0
    for rich in rng.uniform(0.02, 1.0, 20):
        web = [[[*range(i := number, number := i + int(rng.poisson(8) * (rng.random() < rich)))] for _ in range(60)]
               for _ in range(4)]  # fmt: skip
        pages = [(site, web[site][place]) for place in range(30) for site in range(4)]
        total = richness(rows_of(pages, known=[60] * 4)).total
        assert total.high <= 3 * total.low + 1e-9
        hits += total.low <= sum(len(page) for site in web for page in site) <= total.high
    assert hits >= 18


def plain_round_robin(pages, known, sites):
    """(items found, pages read) turn by turn, until a page that was not fetched."""
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
def test_the_round_robin_equals_a_plain_simulation(pages, known):
    baseline = round_robin(rows_of(pages, known, sites=4))
    assert (baseline.found, baseline.pages) == plain_round_robin(pages, known, 4)
    assert baseline.curve.found[-1] == baseline.found and baseline.curve.pages[-1] == baseline.pages
    assert baseline.beside == len({item for _, items in pages[: baseline.pages] for item in items})


def test_the_round_robin_uses_only_fetched_pages():
    """Six sites of 200 pages: two were read completely, 40 pages of each other site. 240 turns are known."""
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


def test_an_empty_harvest_has_empty_curves():
    rows = rows_of([], known=[0, 0], sites=2)
    found = harvest_of(rows, rows, "page")
    assert (found.total.found, found.baseline.found, found.recent, found.richness.total) == ((0.0,), 0, 0.0, None)
