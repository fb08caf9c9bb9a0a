"""Which few sites detect the most stories?

The value of a set of sites is, summed over stories, the best benefit that one of them has of the story; it grows with each site, by less and
less. So lazy greedy is within 1 - 1/e of the best, `influence_search` brings it nearer, and `influence_bounds` says how near.
Source: Leskovec, Krause, Guestrin, Faloutsos, VanBriesen, Glance 2007 (CELF).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from periplus.model.story import Cascades, Objective

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HORIZON_SHARE = 0.99  # of all delays lie within the horizon of detection time: the last hundredth are posts of years later


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Selection:
    """Sites in the order of choice."""

    sites: tuple[int, ...]
    gains: tuple[float, ...]
    evaluations: int

    @property
    def value(self) -> float:
        return float(sum(self.gains))


def coverage(cascades: Cascades, objective: Objective, *, by_posts: bool = False) -> Coverage:
    """The benefit of each site for each story.

    dl: 1. dt: the share of the horizon that is left when the site has the story. pa: the sites that have it no earlier in its order than this
    one. by_posts: a site costs its posts (at least 1), else 1.
    """
    counts = np.diff(cascades.offsets)
    stories = np.repeat(np.arange(len(counts)), counts)
    values = _benefits(cascades, objective, stories, counts)
    kept = values > 0
    order = np.argsort(cascades.members[kept], kind="stable")
    sites, stories, values = cascades.members[kept][order], stories[kept][order], values[kept][order]
    best = np.zeros(len(counts))
    np.maximum.at(best, stories, values)
    size = len(cascades.sites)
    costs = np.maximum(cascades.posts, 1).astype(np.float64) if by_posts else np.ones(size)
    return Coverage(np.searchsorted(sites, np.arange(size + 1)), stories, sites, values, float(best.sum()), costs, len(counts))


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
    """The same benefits, those of the newest story worth e times those of the oldest: to choose for the stories to come."""
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
    return np.bincount(cover.sites, more, cover.site_count).astype(np.float64, copy=False)  # of no entries it counts whole


def lazy_greedy(cover: Coverage, budget: float, *, by_ratio: bool = False, among: Sequence[int] | None = None, had: Floats | None = None) -> Selection:
    """Always the site that adds most (by_ratio: most for its cost) of those that the budget still allows; of equal ones the first.

    Equal to the plain greedy: what a site adds never grows, so an old figure is a bound, and only the top of the heap is worked out anew.
    among: choose only from these. had: by story, what is had before.
    """
    best = np.zeros(cover.story_count) if had is None else had.copy()
    first = gains(cover, best)
    weight = cover.costs if by_ratio else np.ones(cover.site_count)
    some = np.arange(cover.site_count) if among is None else np.array(sorted(among), np.int64)
    heap = [(-key, site, 0) for key, site in zip((first[some] / weight[some]).tolist(), some.tolist(), strict=True) if key > 0]
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
            best[stories] = np.maximum(best[stories], values)
            continue
        evaluations += 1
        gain = float(np.maximum(values - best[stories], 0.0).sum())
        if gain > 0:
            heapq.heappush(heap, (-gain / float(weight[site]), site, len(sites)))
    return Selection(tuple(sites), tuple(added), evaluations)


def filled(cover: Coverage, sites: Sequence[int], budget: float) -> tuple[int, ...]:
    """The sites, and while the budget allows more, those that would be chosen if these were not there.

    They add nothing to these stories. Of the stories to come, more is seen by who sees these twice.
    """
    kept = list(sites)
    while True:
        held = set(kept)
        more = lazy_greedy(cover, budget - float(cover.costs[kept].sum()), among=[site for site in range(cover.site_count) if site not in held])
        if not more.sites:
            return tuple(kept)
        kept += more.sites
