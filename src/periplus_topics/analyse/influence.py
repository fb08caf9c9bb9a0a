"""Chooses the few sites that detect the most stories, with bounds on how much any choice could detect."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from periplus.model.arrays import Floats, Ints
from periplus.values import frozen
from periplus_topics.model import Cascades, Influence, Objective, SiteChoice, before_and_after

# The value of a set of sites is the sum over stories of the best benefit of any of them; it is monotone and submodular.
# So lazy greedy reaches 1 - 1/e of the optimum, and bounds show how close it is. Source:
# Leskovec, Krause, Guestrin, Faloutsos, VanBriesen, Glance 2007 (CELF).


# Quantile of delays used as the horizon of detection time: the last hundredth are posts years later
HORIZON_SHARE = 0.99
ROUNDS = 400  # within 0.2 % on 6,331 stories; a thousand rounds improve it by 0.05 %
# Limit over all rounds, for one or two seconds: 60 rounds with a million entries
ENTRIES_IN_ALL = 60_000_000
PATIENCE = 8  # rounds without improvement before steps become shorter
SHORTER = 0.7
NEAR_ENOUGH = 1e-4  # relative gap at which the search for a better bound stops
LEAST_GAIN = 1e-9  # less is rounding error
WHOLE = 1e-6  # tolerance when rounding a bound down to an integer
# Nothing improves the choice of greedy afterwards: a set optimised on past stories is worse on future ones (on the
# later half of 6,331 stories, at 20, 40, 100 sites: greedy .716, .809, .896; with swaps .713, .804, .892).
# Alternatives: newer stories count more, or a site may miss some stories, so that a second site per story has value.
# (newer stories count more, probability of a miss):
FUTURE_WAYS = ((False, 0.0), (True, 0.0), (True, 0.2), (False, 0.9))
FUTURE_PARTS = 4  # of the time: each way is fitted on the first parts and scored on the next, three times


@frozen
class Coverage:
    """Benefit of each site for each story: e entries, by site (CSR), and the costs of sites."""

    offsets: Ints  # n + 1
    stories: Ints  # e
    sites: Ints  # e: site of each entry, ascending
    values: Floats  # e: > 0
    total: float  # value of all sites together
    costs: Floats  # n: > 0
    story_count: int

    @property
    def site_count(self) -> int:
        return len(self.offsets) - 1


@frozen
class SiteSelection:
    """Sites in order of selection."""

    sites: tuple[int, ...]
    gains: tuple[float, ...]
    evaluations: int

    @property
    def value(self) -> float:
        return float(sum(self.gains))


def coverage(cascades: Cascades, objective: Objective, *, by_posts: bool = False) -> Coverage:
    """The benefit of each site for each story.

    dl: 1. dt: the remaining share of the horizon when the site has the story. pa: number of sites at or after it in the
    story's order. by_posts: a site costs its number of posts (at least 1), else 1.
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
    """The same benefits, weighted so that the newest story counts e times the oldest: to choose for future stories."""
    order = np.empty(cover.story_count)
    order[np.argsort(cascades.starts_h, kind="stable")] = np.arange(cover.story_count)
    return replace(cover, values=cover.values * np.exp(order / max(cover.story_count, 1) - 1.0)[cover.stories])


def entries_of(cover: Coverage, site: int) -> slice:
    """The places of a site's stories and values."""
    return slice(cover.offsets[site], cover.offsets[site + 1])


def values_of(cover: Coverage, sites: Sequence[int]) -> tuple[float, ...]:
    """The joint value of the first site, the first two, ..."""
    best = np.zeros(cover.story_count)
    added = []
    for site in sites:
        entries = entries_of(cover, site)
        stories = cover.stories[entries]
        better = np.maximum(cover.values[entries], best[stories])
        added.append(float((better - best[stories]).sum()))
        best[stories] = better
    return tuple(accumulate(added))


def value_of(cover: Coverage, sites: Sequence[int]) -> float:
    """The joint value of these sites."""
    return float(best_of(cover, sites).sum())


def best_of(cover: Coverage, sites: Sequence[int]) -> Floats:
    """By story, the greatest benefit among the sites."""
    best = np.zeros(cover.story_count)
    for site in sites:
        entries = entries_of(cover, site)
        stories = cover.stories[entries]  # a site has each story once
        best[stories] = np.maximum(best[stories], cover.values[entries])
    return best


def gains(cover: Coverage, best: Floats) -> Floats:
    """float64[n]: marginal gain of each site. best: current benefit by story."""
    more = cover.values - best[cover.stories]
    np.maximum(more, 0.0, out=more)
    # Without entries bincount returns integers
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
    """Repeatedly adds the site with the greatest gain (by_ratio: gain per cost) that the budget allows; ties go to the
    first.

    Same result as plain greedy: gains never increase, so a stale gain is an upper bound, and only the top of the heap
    is recomputed. among: candidates. had: current benefit by story. miss: probability that a chosen site lacks a story
    after all, so that a second site has some value; 0: no misses.
    """
    best = np.zeros(cover.story_count) if had is None else had.copy()
    first = gains(cover, best)
    weight = cover.costs if by_ratio else np.ones(cover.site_count)
    numbers = np.arange(cover.site_count) if among is None else np.array(sorted(among), np.int64)
    heap = [
        (-key, site, 0)
        for key, site in zip((first[numbers] / weight[numbers]).tolist(), numbers.tolist(), strict=True)
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
            continue  # the remaining budget never grows
        entries = slice(offsets[site], offsets[site + 1])
        stories, values = cover.stories[entries], cover.values[entries]
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


def fill_budget(cover: Coverage, sites: Sequence[int], budget: float) -> tuple[int, ...]:
    """The sites, and as long as the budget allows more, those that greedy would choose without them.

    They add nothing for these stories, but a second site per story finds more of future ones.
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


# Give each story a price. The value of any choice is at most the sum of prices plus the excess of benefits over prices,
# for the sites that maximise it within the budget; the minimum over all prices is the value of the linear programme.
# The online bound of Leskovec et al. uses the current benefits as prices. From there prices move by subgradient steps.


def bound_at(cover: Coverage, prices: Floats, budget: float) -> tuple[float, Floats, Floats]:
    """(upper bound of all choices; each site's excess over the prices; share of each site in the best purchase).

    prices: float64[m], >= 0.
    """
    excess = cover.values - prices[cover.stories]
    np.maximum(excess, 0.0, out=excess)
    worth = np.bincount(cover.sites, excess, cover.site_count).astype(np.float64, copy=False)
    share = _knapsack(worth, cover.costs, budget)
    return float(prices.sum() + (share * worth).sum()), worth, share


def _knapsack(worth: Floats, costs: Floats, budget: float) -> Floats:
    """Fractional knapsack: share of each item, 0 to 1, with maximal worth; the last one in part."""
    order = np.argsort(-worth / costs, kind="stable")
    paid = np.cumsum(costs[order])
    share = np.zeros(len(worth))
    whole = int(np.searchsorted(paid, budget * (1 + 1e-12), side="right"))
    share[order[:whole]] = 1.0
    if whole < len(order):
        before = paid[whole - 1] if whole else 0.0
        share[order[whole]] = max(budget - before, 0.0) / costs[order[whole]]
    return share


def tighten_bound(cover: Coverage, prices: Floats, budget: float, value: float) -> tuple[float, Floats]:
    """(the least bound found, its prices).

    value: of the best known choice, a lower limit of all bounds.
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
        way[(prices <= 0) & (way > 0)] = 0.0  # prices stay non-negative
        length = float((way * way).sum())
        if length == 0:
            break
        prices = np.maximum(prices - step * (bound - value) / length * way, 0.0)
    return least, best_prices


def future_way(
    cascades: Cascades, objective: Objective, budget: Callable[[Cascades], float], *, by_posts: bool = False
) -> tuple[bool, float]:
    """The element of FUTURE_WAYS that detected most later stories in backtests on these cascades; plain greedy if none
    was better.

    Differences from greedy are weighed by their variance over stories. budget: of a part of the cascades.
    """
    sums, squares = np.zeros(len(FUTURE_WAYS)), np.zeros(len(FUTURE_WAYS))
    for part in range(1, FUTURE_PARTS):
        past, after = before_and_after(cascades, part / FUTURE_PARTS, (part + 1) / FUTURE_PARTS)
        cover, ahead = coverage(past, objective, by_posts=by_posts), coverage(after, objective)
        most = budget(past)
        had = [
            best_of(ahead, fill_budget(cover, _greedy_for(past, cover, most, way)[1].sites, most))
            for way in FUTURE_WAYS
        ]
        differences = np.array([value - had[0] for value in had])
        sums += differences.sum(axis=1)
        squares += (differences**2).sum(axis=1)
    return FUTURE_WAYS[int(np.argmax(sums / np.sqrt(np.maximum(squares, LEAST_GAIN))))]


def _greedy_for(
    cascades: Cascades, cover: Coverage, budget: float, way: tuple[bool, float]
) -> tuple[str, SiteSelection, int]:
    """(the better rule, its selection, number of gains computed for both). cover: of these cascades."""
    newer, miss = way
    ranked = newer_first(cover, cascades) if newer else cover
    unit = bool((cover.costs == 1).all())
    by_rule = {
        rule: lazy_greedy(ranked, budget, by_ratio=rule == "ratio", miss=miss)
        for rule in (("benefit",) if unit else ("benefit", "ratio"))
    }
    best = max(by_rule, key=lambda name: by_rule[name].value)
    return best, by_rule[best], sum(result.evaluations for result in by_rule.values())


def influence_of(
    cascades: Cascades,
    cover: Coverage,
    budget: float,
    future: tuple[bool, float] = FUTURE_WAYS[0],
) -> Influence:
    """The sites of greatest value within the budget. cover: of these cascades.

    future: one of FUTURE_WAYS; others than the first choose for future stories.
    """
    rule, greedy, evaluations = _greedy_for(cascades, cover, budget, future)
    sites = greedy.sites
    online, _, _ = bound_at(cover, best_of(cover, sites), budget)
    bound = _bound(cover, sites, budget)
    value = value_of(cover, sites)
    if bool((cover.values == np.floor(cover.values)).all()):  # then every choice has an integer value
        online, bound = (max(float(np.floor(part + WHOLE)), value) for part in (online, bound))
    total = cover.total or 1.0
    return Influence(
        chosen=_greedy_order(cascades, cover, sites),
        value=value / total,
        online_bound=min(online / total, 1.0),
        lp_bound=min(bound / total, 1.0),
        budget=budget,
        rule=rule,
        evaluations=evaluations,
        most_posts=tuple(part / total for part in values_of(cover, most_posts(cascades, cover, budget))),
        missed=_largest(cascades, np.flatnonzero(~np.isin(np.arange(cover.story_count), _stories_of(cover, sites)))),
    )


def _bound(cover: Coverage, sites: tuple[int, ...], budget: float) -> float:
    """A bound on the value of every choice."""
    had = best_of(cover, sites)
    return tighten_bound(cover, had, budget, float(had.sum()))[0]


def most_posts(cascades: Cascades, cover: Coverage, budget: float) -> list[int]:
    """The naive choice: the sites with most posts, within the budget."""
    order = np.argsort(-cascades.posts, kind="stable")
    paid = np.cumsum(cover.costs[order])
    return [int(site) for site in order[: int(np.searchsorted(paid, budget * (1 + 1e-12), side="right"))]]


def _greedy_order(cascades: Cascades, cover: Coverage, sites: Sequence[int]) -> tuple[SiteChoice, ...]:
    """The chosen sites in greedy order."""
    picked = lazy_greedy(cover, float("inf"), among=sites)
    values = values_of(cover, picked.sites)
    seen = np.zeros(cover.story_count, np.bool_)
    choices = []
    for site, before, after in zip(picked.sites, (0.0, *values), values, strict=False):
        own = cover.stories[entries_of(cover, site)]
        fresh = own[~seen[own]]
        seen[own] = True
        gain = (after - before) / (cover.total or 1.0)
        choices.append(
            SiteChoice(site, gain, after / (cover.total or 1.0), float(cover.costs[site]), _largest(cascades, fresh))
        )
    return tuple(choices)


def _stories_of(cover: Coverage, sites: Sequence[int]) -> Ints:
    parts = [cover.stories[entries_of(cover, site)] for site in sites]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _largest(cascades: Cascades, stories: Ints) -> tuple[int, ...]:
    """The stories, those on most sites first."""
    sizes = np.diff(cascades.offsets)[stories]
    return tuple(int(story) for story in stories[np.argsort(-sizes, kind="stable")])
