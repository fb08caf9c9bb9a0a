"""Chooses the few sites that detect the most stories, with bounds on how much any choice could have."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from periplus.analyse.cascades import before_and_after
from periplus.model.arrays import Floats, Ints
from periplus.model.story import Cascades, Chosen, Influence, Objective
from periplus.values import frozen

if TYPE_CHECKING:
    from scipy.sparse import csr_array


# The value of a set of sites is, summed over stories, the best benefit that one of them has of the story; it grows with
# each site, by less and less. So lazy greedy is within 1 - 1/e of the best, `influence_search` brings it nearer, and
# `influence_bounds` says how near. Source: Leskovec, Krause, Guestrin, Faloutsos, VanBriesen, Glance 2007 (CELF).


# of all delays lie within the horizon of detection time: the last hundredth are posts of years later
HORIZON_SHARE = 0.99


@frozen
class Coverage:
    """What each site has of each story: e entries, by site (CSR), and what sites cost."""

    offsets: Ints  # n + 1
    stories: Ints  # e
    sites: Ints  # e: of each entry, ascending
    values: Floats  # e: > 0
    total: float  # what all sites together have
    costs: Floats  # n: > 0
    story_count: int

    @property
    def site_count(self) -> int:
        return len(self.offsets) - 1


@frozen
class SiteSelection:
    """Sites in the order of choice."""

    sites: tuple[int, ...]
    gains: tuple[float, ...]
    evaluations: int

    @property
    def value(self) -> float:
        return float(sum(self.gains))


def coverage(cascades: Cascades, objective: Objective, *, by_posts: bool = False) -> Coverage:
    """The benefit of each site for each story.

    dl: 1. dt: the share of the horizon that is left when the site has the story. pa: the sites that have it no earlier
    in its order than this one. by_posts: a site costs its posts (at least 1), else 1.
    """
    counts = np.diff(cascades.offsets)
    stories = np.repeat(np.arange(len(counts)), counts)
    values = _benefits(cascades, objective, stories, counts)
    positive = values > 0
    order = np.argsort(cascades.members[positive], kind="stable")
    sites, stories, values = cascades.members[positive][order], stories[positive][order], values[positive][order]
    best = np.zeros(len(counts))
    np.maximum.at(best, stories, values)
    size = len(cascades.sites)
    costs = np.maximum(cascades.posts, 1).astype(np.float64) if by_posts else np.ones(size)
    return Coverage(
        np.searchsorted(sites, np.arange(size + 1)), stories, sites, values, float(best.sum()), costs, len(counts)
    )


def _benefits(cascades: Cascades, objective: Objective, stories: Ints, counts: Ints) -> Floats:
    match objective:
        case Objective.DL:
            return np.ones(len(stories))
        case Objective.DT:
            horizon = max(float(np.quantile(cascades.delays_h, HORIZON_SHARE)), 1e-9) if len(stories) else 1.0
            return np.maximum(1.0 - cascades.delays_h / horizon, 0.0)
        case Objective.PA:
            return (counts[stories] - (np.arange(len(stories)) - cascades.offsets[:-1][stories])).astype(np.float64)


def newer_first(cover: Coverage, cascades: Cascades) -> Coverage:
    """The same benefits, those of the newest story worth e times those of the oldest:
    to choose for the stories to come.
    """
    order = np.empty(cover.story_count)
    order[np.argsort(cascades.starts_h, kind="stable")] = np.arange(cover.story_count)
    return replace(cover, values=cover.values * np.exp(order / max(cover.story_count, 1) - 1.0)[cover.stories])


def values_of(cover: Coverage, sites: Sequence[int]) -> tuple[float, ...]:
    """What the first, the first two, ... of these sites have together."""
    best = np.zeros(cover.story_count)
    added = []
    for site in sites:
        one = slice(cover.offsets[site], cover.offsets[site + 1])
        had = best[cover.stories[one]]
        better = np.maximum(cover.values[one], had)
        best[cover.stories[one]] = better
        added.append(float((better - had).sum()))
    return tuple(accumulate(added))


def value_of(cover: Coverage, sites: Sequence[int]) -> float:
    """What these sites have together."""
    return float(best_of(cover, sites).sum())


def best_of(cover: Coverage, sites: Sequence[int]) -> Floats:
    """By story, the greatest benefit among the sites."""
    best = np.zeros(cover.story_count)
    for site in sites:
        one = slice(cover.offsets[site], cover.offsets[site + 1])
        best[cover.stories[one]] = np.maximum(best[cover.stories[one]], cover.values[one])  # of a site each story once
    return best


def gains(cover: Coverage, best: Floats) -> Floats:
    """float64[n]: what each site would add. best: by story, what is had already."""
    more = cover.values - best[cover.stories]
    np.maximum(more, 0.0, out=more)
    # of no entries it counts whole
    return np.bincount(cover.sites, more, cover.site_count).astype(np.float64, copy=False)


def lazy_greedy(
    cover: Coverage,
    budget: float,
    *,
    by_ratio: bool = False,
    among: Sequence[int] | None = None,
    had: Floats | None = None,
    miss: float = 0.0,
) -> SiteSelection:
    """Always the site that adds most (by_ratio: most for its cost) of those that the budget still allows;
    of equal ones the first.

    Equal to the plain greedy: what a site adds never grows, so an old figure is a bound, and only the top of the heap
    is worked out anew. among: choose only from these. had: by story, what is had before. miss: the chance that a chosen
    site has nothing of a story after all, so that a second one is worth something; 0: what it has, it has.
    """
    best = np.zeros(cover.story_count) if had is None else had.copy()
    first = gains(cover, best)
    weight = cover.costs if by_ratio else np.ones(cover.site_count)
    some = np.arange(cover.site_count) if among is None else np.array(sorted(among), np.int64)
    heap = [
        (-key, site, 0)
        for key, site in zip((first[some] / weight[some]).tolist(), some.tolist(), strict=True)
        if key > 0
    ]
    heapq.heapify(heap)
    sites: list[int] = []
    added: list[float] = []
    evaluations, left = len(heap), budget
    offsets, costs = cover.offsets.tolist(), cover.costs.tolist()
    while heap:
        key, site, known_at = heapq.heappop(heap)
        if costs[site] > left * (1 + 1e-12):
            continue  # what is left never grows
        one = slice(offsets[site], offsets[site + 1])
        stories, values = cover.stories[one], cover.values[one]
        if known_at == len(sites):
            sites.append(site)
            added.append(-key * float(weight[site]))
            left -= costs[site]
            more = np.maximum(values - best[stories], 0.0)
            best[stories] = best[stories] + (1 - miss) * more if miss else np.maximum(best[stories], values)
            continue
        evaluations += 1
        gain = float(np.maximum(values - best[stories], 0.0).sum())
        if gain > 0:
            heapq.heappush(heap, (-gain / float(weight[site]), site, len(sites)))
    return SiteSelection(tuple(sites), tuple(added), evaluations)


def filled(cover: Coverage, sites: Sequence[int], budget: float) -> tuple[int, ...]:
    """The sites, and while the budget allows more, those that would be chosen if these were not there.

    They add nothing to these stories. Of the stories to come, more is seen by who sees these twice.
    """
    chosen = list(sites)
    while True:
        held = set(chosen)
        more = lazy_greedy(
            cover,
            budget - float(cover.costs[chosen].sum()),
            among=[site for site in range(cover.site_count) if site not in held],
        )
        if not more.sites:
            return tuple(chosen)
        chosen += more.sites


# Give each story a price. No choice has more than all prices together plus, for the sites that the budget buys best,
# what their benefits exceed the prices by; and the least such sum over all prices is the value of the linear programme.
# The online bound of Leskovec et al. is this sum where the price of a story is what the choice has of it. From there
# prices move against the excess of offers (subgradient), and where few sites are left in question, HiGHS finds the best
# prices. Whatever the prices, the sum is worked out here, so the bound never rests on a solver.

ROUNDS = 400  # within 0.2 % on 6,331 stories; a thousand bring 0.05 % more
# of all rounds together: bounds the time to a second or two, of a million entries 60 rounds
ENTRIES_IN_ALL = 60_000_000
PATIENCE = 8  # rounds without a smaller bound before steps become shorter
SHORTER = 0.7
NEAR_ENOUGH = 1e-4  # of the value: no bound is worth more work
FLAT_ENTRIES, STEPPED_ENTRIES = 300_000, 40_000  # of linear programmes that HiGHS solves in some seconds
# of a programme in whole sites, solved within a second or two; by nodes, since time is no argument
EXACT_ENTRIES, NODES_MOST = 2_000, 2_000


def bound_at(cover: Coverage, prices: Floats, budget: float) -> tuple[float, Floats, Floats]:
    """(no choice has more; each site's excess over the prices; how much of each site the budget buys).

    prices: float64[m], >= 0.
    """
    excess = cover.values - prices[cover.stories]
    np.maximum(excess, 0.0, out=excess)
    worth = np.bincount(cover.sites, excess, cover.site_count).astype(np.float64, copy=False)
    share = _knapsack(worth, cover.costs, budget)
    return float(prices.sum() + (share * worth).sum()), worth, share


def _knapsack(worth: Floats, costs: Floats, budget: float) -> Floats:
    """How much of each to take, 0 to 1, so that the worth is greatest: the best for their costs first,
    of the last one a part.
    """
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
    """(the least bound found from these prices on, its prices).

    value: of the best choice known, which no bound can undercut.
    """
    least, best_prices = bound_at(cover, prices, budget)[0], prices
    step, idle = 1.0, 0
    for _ in range(min(ROUNDS, max(ENTRIES_IN_ALL // max(len(cover.values), 1), 40))):
        bound, _, share = bound_at(cover, prices, budget)
        if bound < least:
            least, best_prices, idle = bound, prices, 0
        else:
            idle += 1
        if least - value <= NEAR_ENOUGH * value:
            break
        if idle >= PATIENCE:
            step, idle, prices = step * SHORTER, 0, best_prices
            bound, _, share = bound_at(cover, prices, budget)
        offers = np.bincount(
            cover.stories, share[cover.sites] * (cover.values > prices[cover.stories]), cover.story_count
        )
        way = 1.0 - offers
        way[(prices <= 0) & (way > 0)] = 0.0  # a price cannot fall below nothing
        length = float((way * way).sum())
        if length == 0:
            break
        prices = np.maximum(prices - step * (bound - value) / length * way, 0.0)
    return least, best_prices


def in_question(cover: Coverage, prices: Floats, budget: float, value: float) -> Ints:
    """The sites that a choice better than value may have:
    any other one costs the bound more than what lies between it and value.
    """
    bound, worth, share = bound_at(cover, prices, budget)
    rate = worth / cover.costs
    marginal = float(rate[share > 0].min(initial=np.inf))
    missing = (marginal - rate) * cover.costs  # what having the site takes off the bound
    return np.flatnonzero(missing <= bound - value + 1e-9 * max(bound, 1.0))


def programme_bound(cover: Coverage, budget: float, value: float, prices: Floats) -> float | None:
    """The linear programme, by HiGHS; None: it is too large, or was not solved.

    Where sites differ in the benefit that they have of a story, only over the sites in question: with value, a bound on
    every choice all the same, since a better one has sites in question only.
    """
    least, most = np.full(cover.story_count, np.inf), np.zeros(cover.story_count)
    np.minimum.at(least, cover.stories, cover.values)
    np.maximum.at(most, cover.stories, cover.values)
    if bool((most <= np.minimum(least, most)).all()):
        return _flat_bound(cover, budget, most) if len(cover.values) <= FLAT_ENTRIES else None
    return _stepped_bound(cover, budget, in_question(cover, prices, budget, value))


def _flat_bound(cover: Coverage, budget: float, value: Floats) -> float | None:
    """Of stories of which all sites have the same.

    Variables: how much of each site, and of each story. Rows: story <= its sites; the budget.
    """
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

    Variables: how much of each site; by entry, how much of the story is taken there. Rows: the budget; taken <=
    had; a story is taken once.
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
    reduced = Coverage(
        np.searchsorted(site, np.arange(len(some) + 1)),
        story,
        site,
        cover.values[held],
        0.0,
        cover.costs[some],
        len(used),
    )
    return reduced, aim, matrix, limits


def best_of_few(cover: Coverage, budget: float, value: float, prices: Floats) -> tuple[tuple[int, ...], bool] | None:
    """(a choice among the sites in question, whether none is better), by branch and bound; None:
    they are too many for that.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    some = in_question(cover, prices, budget, value)
    held = _entries_of(cover, some)
    if not len(held) or len(held) > EXACT_ENTRIES:
        return None
    _, aim, matrix, limits = _stepped(cover, budget, some, held)
    whole = np.concatenate([np.ones(len(some)), np.zeros(len(held))])
    done = milp(
        aim,
        integrality=whole,
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, -np.inf, limits),
        options={"node_limit": NODES_MOST},
    )
    return (tuple(some[done.x[: len(some)] > 0.5].tolist()), done.status == 0) if done.x is not None else None


def _solved(aim: Floats, matrix: csr_array, limits: Floats) -> Floats | None:
    """The prices of the rows at the least of aim, all variables 0 to 1."""
    from scipy.optimize import linprog

    # simplex: 25 s where interior points take 2. The stubs know no sparse matrices.
    # see above
    done = linprog(aim, A_ub=matrix, b_ub=limits, bounds=(0, 1), method="highs-ipm")  # type: ignore[call-overload]
    return -np.asarray(done.ineqlin.marginals, np.float64) if done.status == 0 else None


SWAPS_MOST = 500  # a guard; on 6,331 stories and 100 sites a handful is made
LEAST_GAIN = 1e-9  # of a swap, as a share of the value: less is rounding
# on 6,331 stories 30 brought 40 sites from .8651 to .8653, 100 sites from .9496 to .9507; by posts 60 from .874 to .885
KICKS = 100
KICK_ENTRIES = 6_000_000  # of all kicks together: a second or so
KICK_SHARE = 0.15  # of the sites are given back at once
WHOLE = 1e-6  # a bound that falls short of a whole number by less is that number
PROVED = 0.998  # of the bound: the linear programme takes seconds, and is asked only where prices alone prove less


# What fits these stories best fits the next ones less, so whoever chooses for those exchanges nothing (of 6,331
# stories, the later half, at 20, 40, 100 sites: greedy .716, .809, .896; with exchanges .713, .804, .892). Newer ones
# may count more, and a site may be taken to miss some of what is like the stories that it had: then the second site of
# a story is worth something, too. (newer stories count more, chance of a miss):
FUTURE_WAYS = ((False, 0.0), (True, 0.0), (True, 0.2), (False, 0.9))
FUTURE_PARTS = 4  # of the time: each way chooses by the first ones and is scored on the next, three times


def future_way(
    cascades: Cascades, objective: Objective, budget: Callable[[Cascades], float], *, by_posts: bool = False
) -> tuple[bool, float]:
    """The one of FUTURE_WAYS that saw most of what was then to come, by these stories alone; plain greedy where none
    saw more.

    Differences from greedy are weighed by how much they vary from story to story. budget: of a part of the cascades.
    """
    sums, squares = np.zeros(len(FUTURE_WAYS)), np.zeros(len(FUTURE_WAYS))
    for part in range(1, FUTURE_PARTS):
        past, after = before_and_after(cascades, part / FUTURE_PARTS, (part + 1) / FUTURE_PARTS)
        cover, ahead = coverage(past, objective, by_posts=by_posts), coverage(after, objective)
        most = budget(past)
        had = [best_of(ahead, filled(cover, _greedy_for(past, cover, most, way)[1].sites, most)) for way in FUTURE_WAYS]
        differences = np.array([one - had[0] for one in had])
        sums += differences.sum(axis=1)
        squares += (differences**2).sum(axis=1)
    return FUTURE_WAYS[int(np.argmax(sums / np.sqrt(np.maximum(squares, LEAST_GAIN))))]


def _greedy_for(
    cascades: Cascades, cover: Coverage, budget: float, way: tuple[bool, float]
) -> tuple[str, SiteSelection, int]:
    """(the better rule, its choice, how many gains were worked out by both). cover: of these cascades."""
    newer, miss = way
    ranked = newer_first(cover, cascades) if newer else cover
    unit = bool((cover.costs == 1).all())
    by_rule = {
        rule: lazy_greedy(ranked, budget, by_ratio=rule == "ratio", miss=miss)
        for rule in (("benefit",) if unit else ("benefit", "ratio"))
    }
    best = max(by_rule, key=lambda name: by_rule[name].value)
    return best, by_rule[best], sum(one.evaluations for one in by_rule.values())


def influence_of(
    cascades: Cascades,
    cover: Coverage,
    budget: float,
    rng: random.Random,
    *,
    future: tuple[bool, float] | None = None,
) -> Influence:
    """The sites of most value within the budget. cover: of these cascades. Same generator, same choice.

    future: one of FUTURE_WAYS, to choose for the stories to come; None: for these.
    """
    rule, greedy, evaluations = _greedy_for(cascades, cover, budget, future or FUTURE_WAYS[0])
    sites, swaps = (greedy.sites, 0) if future else swapped(cover, greedy.sites, budget)
    sites = sites if future else kicked(cover, sites, budget, rng)
    online, _, _ = bound_at(cover, best_of(cover, sites), budget)
    proved, bound = _proved(cover, sites, budget)
    sites = sites if future else proved
    value = value_of(cover, sites)
    if bool((cover.values == np.floor(cover.values)).all()):  # then so is the value of every choice
        online, bound = (max(float(np.floor(part + WHOLE)), value) for part in (online, bound))
    total = cover.total or 1.0
    return Influence(
        chosen=_in_order(cascades, cover, sites),
        value=value / total,
        online_bound=min(online / total, 1.0),
        lp_bound=min(bound / total, 1.0),
        budget=budget,
        rule=rule,
        swaps=swaps,
        evaluations=evaluations,
        most_posts=tuple(part / total for part in values_of(cover, most_posts(cascades, cover, budget))),
        missed=_largest(cascades, np.flatnonzero(~np.isin(np.arange(cover.story_count), _stories_of(cover, sites)))),
    )


def _proved(cover: Coverage, sites: tuple[int, ...], budget: float) -> tuple[tuple[int, ...], float]:
    """(the sites, or better ones where few are in question; a bound on every choice)."""
    had = best_of(cover, sites)
    value = float(had.sum())
    bound, prices = tightened(cover, had, budget, value)
    if bound - value > NEAR_ENOUGH * value and (few := best_of_few(cover, budget, value, prices)) is not None:
        tried, is_best = few
        if (reached := value_of(cover, tried)) > value:
            sites, value = tried, reached
        if is_best:
            return sites, value
    if value < PROVED * bound and (solved := programme_bound(cover, budget, value, prices)) is not None:
        bound = min(bound, max(solved, value))
    return sites, bound


def most_posts(cascades: Cascades, cover: Coverage, budget: float) -> list[int]:
    """What one would read without choosing: the sites with most posts, as far as the budget goes."""
    order = np.argsort(-cascades.posts, kind="stable")
    paid = np.cumsum(cover.costs[order])
    return [int(site) for site in order[: int(np.searchsorted(paid, budget * (1 + 1e-12), side="right"))]]


def _in_order(cascades: Cascades, cover: Coverage, sites: Sequence[int]) -> tuple[Chosen, ...]:
    """The chosen sites, each time the one that adds most."""
    picked = lazy_greedy(cover, float("inf"), among=sites)
    values = values_of(cover, picked.sites)
    seen = np.zeros(cover.story_count, np.bool_)
    made = []
    for site, before, after in zip(picked.sites, (0.0, *values), values, strict=False):
        own = cover.stories[cover.offsets[site] : cover.offsets[site + 1]]
        fresh = own[~seen[own]]
        seen[own] = True
        gain = (after - before) / (cover.total or 1.0)
        made.append(
            Chosen(site, gain, after / (cover.total or 1.0), float(cover.costs[site]), _largest(cascades, fresh))
        )
    return tuple(made)


def _stories_of(cover: Coverage, sites: Sequence[int]) -> Ints:
    parts = [cover.stories[cover.offsets[site] : cover.offsets[site + 1]] for site in sites]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _largest(cascades: Cascades, stories: Ints) -> tuple[int, ...]:
    """The stories, those on most sites first."""
    sizes = np.diff(cascades.offsets)[stories]
    return tuple(int(story) for story in stories[np.argsort(-sizes, kind="stable")])


def kicked(cover: Coverage, sites: Sequence[int], budget: float, rng: random.Random) -> tuple[int, ...]:
    """At least as good: again and again some sites are given back by chance, and the budget is filled anew."""
    by_ratio = bool((cover.costs != 1).any())
    best_sites, value = tuple(sites), value_of(cover, sites)
    for _ in range(min(KICKS, KICK_ENTRIES // max(len(cover.values), 1))):
        held = [site for site in best_sites if rng.random() >= KICK_SHARE]
        had = best_of(cover, held)
        filled = lazy_greedy(cover, budget - float(cover.costs[held].sum()), by_ratio=by_ratio, had=had)
        tried: tuple[int, ...] = (*held, *filled.sites)
        if not by_ratio:
            tried, _ = swapped(cover, tried, budget)
        if (reached := value_of(cover, tried)) >= value:
            best_sites, value = tried, reached
    return best_sites


def swapped(cover: Coverage, sites: Sequence[int], budget: float) -> tuple[tuple[int, ...], int]:
    """(the sites after the best exchanges of one for another, as long as one helps; how many were made)."""
    chosen = list(sites)
    least = LEAST_GAIN * cover.total
    for made in range(SWAPS_MOST):
        out, into, gain = _best_swap(cover, chosen, budget - float(cover.costs[chosen].sum()))
        if gain <= least:
            return tuple(chosen), made
        chosen[out] = into
    return tuple(chosen), SWAPS_MOST


def _best_swap(cover: Coverage, chosen: Sequence[int], slack: float) -> tuple[int, int, float]:
    """(place in chosen, site to put there, what that adds). slack: what the budget leaves.

    Taking out s loses, by story that it has best, the best less the second best; of that the site that
    comes in may give some back.
    """
    if not chosen:
        return 0, 0, 0.0
    best, second, owner = _two_best(cover, chosen)
    held = owner >= 0
    lost = np.bincount(owner[held], (best - second)[held], len(chosen)).astype(np.float64, copy=False)
    more = gains(cover, best)
    more[list(chosen)] = 0.0
    room = slack + cover.costs[list(chosen)]
    place, site, gain = _swap_apart(cover, more, lost, room)
    back = np.minimum(cover.values, best[cover.stories]) - second[cover.stories]
    given = np.flatnonzero((back > 0) & held[cover.stories] & ~np.isin(cover.sites, chosen))
    if len(given):
        keys = owner[cover.stories[given]] * cover.site_count + cover.sites[given]
        pairs, inverse = np.unique(keys, return_inverse=True)
        outs, ins = np.divmod(pairs, cover.site_count)
        together = np.bincount(inverse, back[given]) + more[ins] - lost[outs]
        together[cover.costs[ins] > room[outs] * (1 + 1e-12)] = -np.inf
        at = int(np.argmax(together))
        if together[at] > gain:
            place, site, gain = int(outs[at]), int(ins[at]), float(together[at])
    return place, site, gain


def _swap_apart(cover: Coverage, more: Floats, lost: Floats, room: Floats) -> tuple[int, int, float]:
    """The best swap of a site for one that shares no story with it."""
    order = np.argsort(cover.costs, kind="stable")
    ends = np.searchsorted(cover.costs[order], room * (1 + 1e-12), side="right")
    top = np.maximum.accumulate(more[order])
    value = np.where(ends > 0, top[np.maximum(ends - 1, 0)], 0.0) - lost
    place = int(np.argmax(value))
    allowed = order[: int(ends[place])]
    return place, int(allowed[int(np.argmax(more[allowed]))]), float(value[place])


def _two_best(cover: Coverage, chosen: Sequence[int]) -> tuple[Floats, Floats, Ints]:
    """By story: the best benefit, the second best, and which place in chosen has the best (-1: none)."""
    best, second = np.zeros(cover.story_count), np.zeros(cover.story_count)
    owner = np.full(cover.story_count, -1)
    for place, site in enumerate(chosen):
        one = slice(cover.offsets[site], cover.offsets[site + 1])
        stories, values = cover.stories[one], cover.values[one]
        was = best[stories]
        second[stories] = np.maximum(second[stories], np.minimum(was, values))
        better = values > was
        best[stories[better]] = values[better]
        owner[stories[better]] = place
    return best, second, owner
