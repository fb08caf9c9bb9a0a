"""Our own rule: one setting for all kinds of sites, which tells from the pages read so far of what kind they are.

A site's promise is a power mean of its fading means over 4 to 256 pages and all, each drawn towards the mean of all sites' pages (empirical
Bayes), plus a premium for sites that are little known, which fades as the budget is spent. How long the memory is, how strong the prior, how
great the premium depends on the *unevenness* of all pages together, variance over mean: near 3 where many pages bring a few links and sections
dry up, so that it pays to move on and look everywhere; tens to hundreds where a few pages bring nearly everything, so that it pays to stay
with sites that have shown any. All in it is relative to the mean, so links, hosts and links per second are treated alike.
"""

from __future__ import annotations

import numpy as np

from periplus.schedule.bandit.rule import Rule
from periplus.schedule.bandit.yields import Floats, Yields

PAGES_PER_SITE = 200  # budget where none is given: that of the published runs
EPSILON_LINKS = 0.1  # found before the first page, so that the first means are not 0

# Fitted by an evolution strategy on 96 worlds and other manuals than those that are reported (docs/rules-of-choice.md).
TURN, STEEPNESS = 2.04, 1.61  # ln unevenness where the two settings weigh alike, and ln of how sharply they part
# Each: ln of the prior's pages, ln premium, power, ln of the premium's pages, ln of how it fades, ln weights of the memories and of all pages.
EVEN = np.array([5.32, 0.83, 0.55, 2.16, -0.59, 5.48, 0.27, 0.7, -0.59, 0.51])
UNEVEN = np.array([0.97, -2.87, -1.23, 1.67, -3.49, 1.76, 0.25, 2.35, 0.86, -0.11])


def scout(budget: int = 0) -> Rule:
    """budget: pages in all; 0: not known."""
    return Rule("scout", lambda yields, _: _promise(yields, budget or PAGES_PER_SITE * yields.pages.shape[1]), drifts=True)


def _promise(yields: Yields, budget: int) -> Floats:
    asked = yields.asked + 1.0
    mean = ((yields.gained + EPSILON_LINKS) / asked)[:, None]
    setting = _setting(np.maximum(yields.squared / asked - mean[:, 0] ** 2, 0) / mean[:, 0])
    prior, premium, width, fading = (np.exp(setting[:, [column]]) for column in (0, 1, 3, 4))
    power = setting[:, 2, None, None]
    weights = np.exp(setting[:, None, 5:] - setting[:, None, 5:].max(axis=2, keepdims=True))
    sums = np.concatenate([yields.faded, yields.links[:, :, None]], axis=2)
    pages = np.concatenate([yields.faded_pages, yields.pages[:, :, None]], axis=2)
    means = power * np.log((sums + (prior * mean)[:, :, None]) / (pages + prior[:, :, None]))
    top = means.max(axis=2, keepdims=True)
    joined = (np.exp(means - top) * weights).sum(axis=2) / weights.sum(axis=2)
    expected = np.exp((np.log(joined) + top[:, :, 0]) / power[:, :, 0])
    left = np.maximum(1 - yields.asked / budget, 0)[:, None]
    promise: Floats = expected + premium * left**fading * mean * np.sqrt(width / (yields.pages + width))
    return promise


def _setting(unevenness: Floats) -> Floats:
    """worlds x 10, within bounds that keep exponentials sane."""
    share = 1 / (1 + np.exp(-np.exp(STEEPNESS) * (np.log(unevenness + 0.5) - TURN)))[:, None]
    mixed: Floats = EVEN * (1 - share) + UNEVEN * share
    mixed[:, 2] = np.where(np.abs(mixed[:, 2]) < 0.05, 0.05, mixed[:, 2])
    mixed[:, [0, 1, 3, 4]] = np.clip(mixed[:, [0, 1, 3, 4]], (-2, -6, -1, -4), (7, 3, 7, 3))
    return mixed
