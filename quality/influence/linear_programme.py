"""The bound of the linear programme on influence, by the solver HiGHS.

The product proves its choices by prices alone (`influence.tighten_bound`), within a hundredth of this bound. Here the
programme is solved, to measure how near a choice is to the best.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array

from periplus.model.arrays import Floats, Ints
from periplus_topics.analyse.influence import Coverage, best_of, bound_at, tighten_bound

FLAT_ENTRIES, STEPPED_ENTRIES = 300_000, 40_000  # sizes of linear programmes that HiGHS solves in a few seconds


def least_bound(cover: Coverage, sites: list[int], budget: float) -> float:
    """The least bound on the value of any choice: by prices, and by the programme where it is small enough."""
    had = best_of(cover, sites)
    value = float(had.sum())
    bound, prices = tighten_bound(cover, had, budget, value)
    solved = programme_bound(cover, budget, value, prices)
    return bound if solved is None else min(bound, max(solved, value))


def in_question(cover: Coverage, prices: Floats, budget: float, value: float) -> Ints:
    """The sites that a better choice may contain: including any other site lowers the bound below value."""
    bound, worth, share = bound_at(cover, prices, budget)
    rate = worth / cover.costs
    marginal = float(rate[share > 0].min(initial=np.inf))
    missing = (marginal - rate) * cover.costs  # decrease of the bound if the site is included
    return np.flatnonzero(missing <= bound - value + 1e-9 * max(bound, 1.0))


def programme_bound(cover: Coverage, budget: float, value: float, prices: Floats) -> float | None:
    """Bound by the linear programme, with HiGHS; None if it is too large or was not solved.

    If sites differ in their benefit from a story, it covers only the candidate sites; together with value this still
    bounds every choice, because a better one consists of candidates only.
    """
    least, most = np.full(cover.story_count, np.inf), np.zeros(cover.story_count)
    np.minimum.at(least, cover.stories, cover.values)
    np.maximum.at(most, cover.stories, cover.values)
    if bool((most <= np.minimum(least, most)).all()):
        return _flat_bound(cover, budget, most) if len(cover.values) <= FLAT_ENTRIES else None
    return _stepped_bound(cover, budget, in_question(cover, prices, budget, value))


def _flat_bound(cover: Coverage, budget: float, value: Floats) -> float | None:
    """For stories from which all sites have the same benefit.

    Variables: share of each site and each story. Rows: story <= sum of its sites; budget.
    """
    sites, stories = cover.site_count, cover.story_count
    rows = np.concatenate([np.arange(stories), cover.stories, np.full(sites, stories)])
    columns = np.concatenate([sites + np.arange(stories), cover.sites, np.arange(sites)])
    factors = np.concatenate([np.ones(stories), -np.ones(len(cover.sites)), cover.costs])
    matrix = coo_array((factors, (rows, columns)), shape=(stories + 1, sites + stories)).tocsr()
    duals = _dual_prices(
        np.concatenate([np.zeros(sites), -value]), matrix, np.concatenate([np.zeros(stories), [budget]])
    )
    return None if duals is None else bound_at(cover, np.clip(value - duals[:stories], 0.0, value), budget)[0]


def _stepped_bound(cover: Coverage, budget: float, sites: Ints) -> float | None:
    """For stories from which sites have different benefits."""
    held = np.flatnonzero(np.isin(cover.sites, sites))
    if not len(held) or len(held) > STEPPED_ENTRIES:
        return None
    reduced, aim, matrix, limits = _linear_programme(cover, budget, sites, held)
    duals = _dual_prices(aim, matrix, limits)
    return None if duals is None else bound_at(reduced, np.maximum(duals[1 + len(held) :], 0.0), budget)[0]


def _linear_programme(
    cover: Coverage, budget: float, sites: Ints, held: Ints
) -> tuple[Coverage, Floats, csr_array, Floats]:
    """(the coverage of some sites; the programme: objective, matrix, limits). held: their entries.

    Variables: share of each site; by entry, share of the story's benefit taken there. Rows: budget; taken <= bought;
    each story is taken once.
    """
    site = np.searchsorted(sites, cover.sites[held])
    used, story = np.unique(cover.stories[held], return_inverse=True)
    size = len(held)
    entry = np.arange(size)
    rows = np.concatenate([np.zeros(len(sites), np.int64), 1 + entry, 1 + entry, 1 + size + story])
    columns = np.concatenate([np.arange(len(sites)), len(sites) + entry, site, len(sites) + entry])
    factors = np.concatenate([cover.costs[sites], np.ones(size), -np.ones(size), np.ones(size)])
    limits = np.concatenate([[budget], np.zeros(size), np.ones(len(used))])
    matrix = coo_array((factors, (rows, columns)), shape=(len(limits), len(sites) + size)).tocsr()
    aim = np.concatenate([np.zeros(len(sites)), -cover.values[held]])
    reduced = Coverage(
        np.searchsorted(site, np.arange(len(sites) + 1)),
        story,
        site,
        cover.values[held],
        0.0,
        cover.costs[sites],
        len(used),
    )
    return reduced, aim, matrix, limits


def _dual_prices(aim: Floats, matrix: csr_array, limits: Floats) -> Floats | None:
    """The dual prices of the rows at the minimum, all variables between 0 and 1."""
    # The simplex method takes 25 s, interior points 2. The stubs do not know sparse matrices.
    done = linprog(aim, A_ub=matrix, b_ub=limits, bounds=(0, 1), method="highs-ipm")  # type: ignore[call-overload]
    return -np.asarray(done.ineqlin.marginals, np.float64) if done.status == 0 else None
