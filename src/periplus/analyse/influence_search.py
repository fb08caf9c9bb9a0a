"""Which sites are chosen in the end: what the greedy rules give, made better by exchanges, with the bounds beside it?"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from periplus.analyse.influence import Coverage, Floats, Ints, best_of, gains, lazy_greedy, newer_first, value_of, values_of
from periplus.analyse.influence_bounds import NEAR_ENOUGH, best_of_few, bound_at, programme_bound, tightened
from periplus.model.story import Cascades, Chosen, Influence

SWAPS_MOST = 500  # a guard; on 6,331 stories and 100 sites a handful is made
LEAST_GAIN = 1e-9  # of a swap, as a share of the value: less is rounding
KICKS = 100  # on 6,331 stories 30 brought 40 sites from .8651 to .8653, 100 sites from .9496 to .9507; by posts 60 from .874 to .885
KICK_ENTRIES = 6_000_000  # of all kicks together: a second or so
KICK_SHARE = 0.15  # of the sites are given back at once
WHOLE = 1e-6  # a bound that falls short of a whole number by less is that number
PROVED = 0.998  # of the bound: the linear programme takes seconds, and is asked only where prices alone prove less


def influence_of(cascades: Cascades, cover: Coverage, budget: float, rng: random.Random, *, for_future: bool = False) -> Influence:
    """The sites of most value within the budget. cover: of these cascades. Same generator, same choice.

    for_future: newer stories count more, and nothing is exchanged, since what fits these stories best fits the next ones less (of 6,331
    stories, the later half: .722, .811, .894 at 20, 40, 100 sites, with exchanges .713, .804, .892).
    """
    unit = bool((cover.costs == 1).all())
    ranked = newer_first(cover, cascades) if for_future else cover
    by_rule = {rule: lazy_greedy(ranked, budget, by_ratio=rule == "ratio") for rule in (("benefit",) if unit else ("benefit", "ratio"))}
    rule = max(by_rule, key=lambda name: by_rule[name].value)
    sites, swaps = (by_rule[rule].sites, 0) if for_future else swapped(cover, by_rule[rule].sites, budget)
    sites = sites if for_future else kicked(cover, sites, budget, rng)
    online, _, _ = bound_at(cover, best_of(cover, sites), budget)
    proved, bound = _proved(cover, sites, budget)
    sites = sites if for_future else proved
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
        evaluations=sum(found.evaluations for found in by_rule.values()),
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
        made.append(Chosen(site, gain, after / (cover.total or 1.0), float(cover.costs[site]), _largest(cascades, fresh)))
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
    kept, value = tuple(sites), value_of(cover, sites)
    for _ in range(min(KICKS, KICK_ENTRIES // max(len(cover.values), 1))):
        held = [site for site in kept if rng.random() >= KICK_SHARE]
        had = best_of(cover, held)
        filled = lazy_greedy(cover, budget - float(cover.costs[held].sum()), by_ratio=by_ratio, had=had)
        tried: tuple[int, ...] = (*held, *filled.sites)
        if not by_ratio:
            tried, _ = swapped(cover, tried, budget)
        if (reached := value_of(cover, tried)) >= value:
            kept, value = tried, reached
    return kept


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

    Taking out s loses, by story that it has best, the best less the second best; of that the site that comes in may give some back.
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
