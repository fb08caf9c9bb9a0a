"""How much could any choice of sites within the budget have?

Give each story a price. No choice has more than all prices together plus, for the sites that the budget buys best, what their benefits exceed
the prices by; and the least such sum over all prices is the value of the linear programme. The online bound of Leskovec et al. is this sum
where the price of a story is what the choice has of it. From there prices move against the excess of offers (subgradient), and where few
sites are left in question, HiGHS finds the best prices. Whatever the prices, the sum is worked out here, so the bound never rests on a solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from periplus.analyse.influence import Coverage, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROUNDS = 400  # within 0.2 % on 6,331 stories; a thousand bring 0.05 % more
ENTRIES_IN_ALL = 60_000_000  # of all rounds together: bounds the time to a second or two, of a million entries 60 rounds
PATIENCE = 8  # rounds without a smaller bound before steps become shorter
SHORTER = 0.7
NEAR_ENOUGH = 1e-4  # of the value: no bound is worth more work
FLAT_ENTRIES, STEPPED_ENTRIES = 300_000, 40_000  # of linear programmes that HiGHS solves in some seconds
EXACT_ENTRIES, NODES_MOST = 2_000, 2_000  # of a programme in whole sites, solved within a second or two; by nodes, since time is no argument


def bound_at(cover: Coverage, prices: Floats, budget: float) -> tuple[float, Floats, Floats]:
    """(no choice has more; each site's excess over the prices; how much of each site the budget buys). prices: float64[m], >= 0."""
    excess = cover.values - prices[cover.stories]
    np.maximum(excess, 0.0, out=excess)
    worth = np.bincount(cover.sites, excess, cover.site_count).astype(np.float64, copy=False)
    share = _knapsack(worth, cover.costs, budget)
    return float(prices.sum() + (share * worth).sum()), worth, share


def _knapsack(worth: Floats, costs: Floats, budget: float) -> Floats:
    """How much of each to take, 0 to 1, so that the worth is greatest: the best for their costs first, of the last one a part."""
    order = np.argsort(-worth / costs, kind="stable")
    paid = np.cumsum(costs[order])
    share = np.zeros(len(worth))
    whole = int(np.searchsorted(paid, budget * (1 + 1e-12), side="right"))
    share[order[:whole]] = 1.0
    if whole < len(order):
        before = paid[whole - 1] if whole else 0.0
        share[order[whole]] = max(budget - before, 0.0) / costs[order[whole]]
    return share


def tightened(cover: Coverage, prices: Floats, budget: float, value: float) -> tuple[float, Floats]:
    """(the least bound found from these prices on, its prices). value: of the best choice known, which no bound can undercut."""
    least, kept = bound_at(cover, prices, budget)[0], prices
    step, idle = 1.0, 0
    for _ in range(min(ROUNDS, max(ENTRIES_IN_ALL // max(len(cover.values), 1), 40))):
        found, _, share = bound_at(cover, prices, budget)
        if found < least:
            least, kept, idle = found, prices, 0
        else:
            idle += 1
        if least - value <= NEAR_ENOUGH * value:
            break
        if idle >= PATIENCE:
            step, idle, prices = step * SHORTER, 0, kept
            found, _, share = bound_at(cover, prices, budget)
        offers = np.bincount(cover.stories, share[cover.sites] * (cover.values > prices[cover.stories]), cover.story_count)
        way = 1.0 - offers
        way[(prices <= 0) & (way > 0)] = 0.0  # a price cannot fall below nothing
        length = float((way * way).sum())
        if length == 0:
            break
        prices = np.maximum(prices - step * (found - value) / length * way, 0.0)
    return least, kept


def in_question(cover: Coverage, prices: Floats, budget: float, value: float) -> Ints:
    """The sites that a choice better than value may have: any other one costs the bound more than what lies between it and value."""
    bound, worth, share = bound_at(cover, prices, budget)
    rate = worth / cover.costs
    marginal = float(rate[share > 0].min(initial=np.inf))
    missing = (marginal - rate) * cover.costs  # what having the site takes off the bound
    return np.flatnonzero(missing <= bound - value + 1e-9 * max(bound, 1.0))


def programme_bound(cover: Coverage, budget: float, value: float, prices: Floats) -> float | None:
    """The linear programme, by HiGHS; None: it is too large, or was not solved.

    Where sites differ in the benefit that they have of a story, only over the sites in question: with value, a bound on every choice
    all the same, since a better one has sites in question only.
    """
    least, most = np.full(cover.story_count, np.inf), np.zeros(cover.story_count)
    np.minimum.at(least, cover.stories, cover.values)
    np.maximum.at(most, cover.stories, cover.values)
    if bool((most <= np.minimum(least, most)).all()):
        return _flat_bound(cover, budget, most) if len(cover.values) <= FLAT_ENTRIES else None
    return _stepped_bound(cover, budget, in_question(cover, prices, budget, value))


def _flat_bound(cover: Coverage, budget: float, value: Floats) -> float | None:
    """Of stories of which all sites have the same. Variables: how much of each site, and of each story. Rows: story <= its sites; the budget."""
    from scipy.sparse import coo_array

    sites, stories = cover.site_count, cover.story_count
    rows = np.concatenate([np.arange(stories), cover.stories, np.full(sites, stories)])
    columns = np.concatenate([sites + np.arange(stories), cover.sites, np.arange(sites)])
    factors = np.concatenate([np.ones(stories), -np.ones(len(cover.sites)), cover.costs])
    matrix = coo_array((factors, (rows, columns)), shape=(stories + 1, sites + stories)).tocsr()
    duals = _solved(np.concatenate([np.zeros(sites), -value]), matrix, np.concatenate([np.zeros(stories), [budget]]))
    return None if duals is None else bound_at(cover, np.clip(value - duals[:stories], 0.0, value), budget)[0]


def _stepped_bound(cover: Coverage, budget: float, some: Ints) -> float | None:
    """Of stories of which sites have more or less."""
    held = _entries_of(cover, some)
    if not len(held) or len(held) > STEPPED_ENTRIES:
        return None
    reduced, aim, matrix, limits = _stepped(cover, budget, some, held)
    duals = _solved(aim, matrix, limits)
    return None if duals is None else bound_at(reduced, np.maximum(duals[1 + len(held) :], 0.0), budget)[0]


def _entries_of(cover: Coverage, some: Ints) -> Ints:
    return np.flatnonzero(np.isin(cover.sites, some))


def _stepped(cover: Coverage, budget: float, some: Ints, held: Ints) -> tuple[Coverage, Floats, csr_array, Floats]:
    """(some sites alone; the programme: aim, factors, limits). held: their entries.

    Variables: how much of each site; by entry, how much of the story is taken there. Rows: the budget; taken <= had; a story is taken once.
    """
    from scipy.sparse import coo_array

    site = np.searchsorted(some, cover.sites[held])
    used, story = np.unique(cover.stories[held], return_inverse=True)
    size = len(held)
    entry = np.arange(size)
    rows = np.concatenate([np.zeros(len(some), np.int64), 1 + entry, 1 + entry, 1 + size + story])
    columns = np.concatenate([np.arange(len(some)), len(some) + entry, site, len(some) + entry])
    factors = np.concatenate([cover.costs[some], np.ones(size), -np.ones(size), np.ones(size)])
    limits = np.concatenate([[budget], np.zeros(size), np.ones(len(used))])
    matrix = coo_array((factors, (rows, columns)), shape=(len(limits), len(some) + size)).tocsr()
    aim = np.concatenate([np.zeros(len(some)), -cover.values[held]])
    reduced = Coverage(np.searchsorted(site, np.arange(len(some) + 1)), story, site, cover.values[held], 0.0, cover.costs[some], len(used))
    return reduced, aim, matrix, limits


def best_of_few(cover: Coverage, budget: float, value: float, prices: Floats) -> tuple[tuple[int, ...], bool] | None:
    """(a choice among the sites in question, whether none is better), by branch and bound; None: they are too many for that."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    some = in_question(cover, prices, budget, value)
    held = _entries_of(cover, some)
    if not len(held) or len(held) > EXACT_ENTRIES:
        return None
    _, aim, matrix, limits = _stepped(cover, budget, some, held)
    whole = np.concatenate([np.ones(len(some)), np.zeros(len(held))])
    done = milp(aim, integrality=whole, bounds=Bounds(0, 1), constraints=LinearConstraint(matrix, -np.inf, limits), options={"node_limit": NODES_MOST})
    return (tuple(some[done.x[: len(some)] > 0.5].tolist()), done.status == 0) if done.x is not None else None


def _solved(aim: Floats, matrix: csr_array, limits: Floats) -> Floats | None:
    """The prices of the rows at the least of aim, all variables 0 to 1."""
    from scipy.optimize import linprog

    # simplex: 25 s where interior points take 2. The stubs know no sparse matrices.
    done = linprog(aim, A_ub=matrix, b_ub=limits, bounds=(0, 1), method="highs-ipm")  # type: ignore[call-overload]  # see above
    return -np.asarray(done.ineqlin.marginals, np.float64) if done.status == 0 else None
