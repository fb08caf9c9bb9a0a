"""The Gittins index: what a site is worth for ever, the chance to leave it at any time included.

Rewards are taken as exponential with an unknown mean, whose conjugate prior makes the index of a site with n pages (the prior's included) and
sum s equal s times a number that depends on n alone (Gittins, Glazebrook, Weber 2011, 8.6). Those numbers are computed here, by backward
induction over n for all rewards of a standard arm at once.
"""

from __future__ import annotations

import functools

import numpy as np

from periplus.schedule.bandit.rule import Rule
from periplus.schedule.bandit.yields import Floats, Yields

DISCOUNT = 0.99  # a page in a hundred pages counts a third
PRIOR_PAGES = 2  # fewer have no mean
LONGEST = 600  # pages from which on a site is taken as known: its index then is 1 % above its mean
QUANTILES = 64
STEPS = 400  # of the standard arm's reward, in logarithms


def gittins() -> Rule:
    return Rule("gittins", _gittins, drifts=True)


def _gittins(yields: Yields, _: np.random.Generator) -> Floats:
    """The prior is worth two pages: a sum of one page at the mean of all."""
    pages = np.minimum(yields.pages + PRIOR_PAGES, LONGEST)
    sums = (yields.links + yields.mean) * (pages - 1) / (yields.pages + PRIOR_PAGES - 1)  # beyond LONGEST: of the same mean
    found: Floats = sums * index_table()[pages]
    return found


@functools.cache
def index_table(discount: float = DISCOUNT, longest: int = LONGEST) -> Floats:
    """index / sum by the number of pages; entries below PRIOR_PAGES are not used.

    State: n pages with sum 1, against a standard arm of reward r per page; sums scale out: V(n, s, r) = s V(n, 1, r / s). The next
    reward x has P(x > y) = (1 + y) ** -n. V is kept on a grid of ln r relative to the mean 1 / (n - 1).
    """
    grid = 4 * np.sinh(np.linspace(-5, 5, STEPS)) / np.sinh(5)  # dense around the mean, where the indices of long histories are
    above = 1 - np.arange(QUANTILES + 1) / QUANTILES
    table = np.zeros(longest + 1)
    table[longest] = 1 / (longest - 1)
    value = np.maximum(np.exp(grid), 1.0) / (longest - 1) / (1 - discount)  # known mean: the better arm for ever
    for pages in range(longest - 1, PRIOR_PAGES - 1, -1):
        mean = 1 / (pages - 1)
        rest = above ** (1 - 1 / pages)
        rewards = (rest[:-1] - rest[1:]) * QUANTILES / (1 - 1 / pages) - 1  # the mean within each of the equally likely parts
        standard = mean * np.exp(grid)
        relative = grid[:, None] + np.log(mean * pages) - np.log1p(rewards)  # ln of r / sum, over the next state's mean 1 / pages
        later = _read(grid, value, relative, discount, pages) * (1 + rewards)
        going_on = mean + discount * later.mean(axis=1)
        leaving = standard / (1 - discount)
        crossing = int(np.argmax(leaving >= going_on))
        before = leaving[crossing - 1] - going_on[crossing - 1]
        share = -before / (leaving[crossing] - going_on[crossing] - before)
        table[pages] = standard[crossing - 1] + share * (standard[crossing] - standard[crossing - 1])
        value = np.maximum(going_on, leaving)
    return table


def _read(grid: Floats, value: Floats, at: Floats, discount: float, pages: int) -> Floats:
    """The next state's value; above the grid the standard arm is taken for ever, below it the value does not change."""
    inside = np.interp(at, grid, value)
    return np.where(at > grid[-1], np.exp(at) / pages / (1 - discount), inside)
