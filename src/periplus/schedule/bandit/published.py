"""Better rules than the printed ones, as their authors give them, for rewards that are counts without a known bound.

Where a rule wants rewards in [0, 1] they are divided by the greatest seen, as R3 does; where it wants a noise level, that of all pages is taken.
"""

from __future__ import annotations

import numpy as np

from periplus.schedule.bandit.rule import Rule
from periplus.schedule.bandit.yields import SINGLES_MEMORY, WINDOWS, Floats, Yields

RAW_WIDTH = 0.3  # of the confidence bounds, in standard deviations: .3 and .5 were best on sites that dry up, 1 explores too much
GOOD_WIDTH = 0.3  # the same of Good-UCB
NEWTON_ROUNDS = 6  # the bound of KL-UCB is then exact to eight digits from its normal approximation on
PRIOR_PAGES = 1.0  # weight of the pooled mean where a rule needs a prior


def ucb1_tuned() -> Rule:
    """Auer, Cesa-Bianchi, Fischer 2002, section 4."""
    return Rule("ucb1-tuned", _ucb1_tuned, drifts=True)


def kl_ucb() -> Rule:
    """Garivier, Cappe 2011, with the divergence of Poisson distributions and c = 0."""
    return Rule("kl-ucb", _kl_ucb, drifts=True)


def thompson() -> Rule:
    """A draw from each site's posterior, Gamma for Poisson counts; the prior is worth one page at the mean of all."""
    return Rule("thompson", _thompson, drifts=True)


def raw_ucb() -> Rule:
    """Seznec and others 2020: the least optimistic of all windows. Windows grow by doubling, as in their efficient form."""
    return Rule("raw-ucb", _raw_ucb, drifts=True)


def good_ucb() -> Rule:
    """Bubeck, Ernst, Garivier 2013: the chance of something new is the share of what was met once; with a fading window."""
    return Rule("good-ucb", _good_ucb, drifts=True)


def _log_asked(yields: Yields) -> Floats:
    found: Floats = np.log(np.maximum(yields.asked, 2))[:, None]
    return found


def _spread(yields: Yields) -> Floats:
    """Standard deviation of all pages, worlds x 1."""
    asked = np.maximum(yields.asked, 1)
    variance = yields.squared / asked - (yields.gained / asked) ** 2
    found: Floats = np.sqrt(np.maximum(variance, 0))[:, None]
    return found


def _ucb1_tuned(yields: Yields, _: np.random.Generator) -> Floats:
    greatest = np.where(yields.largest > 0, yields.largest, 1.0)[:, None]
    times = np.maximum(yields.pages, 1)
    means = yields.means / greatest
    rate = _log_asked(yields) / times
    variances = yields.squares / times / greatest**2 - means**2 + np.sqrt(2 * rate)
    found: Floats = means + np.sqrt(rate * np.minimum(0.25, np.maximum(variances, 0)))
    return found


def _kl_ucb(yields: Yields, _: np.random.Generator) -> Floats:
    """The greatest q with t * (q - m - m ln(q / m)) <= ln n, by Newton's method from above, where it only falls."""
    means = yields.means
    room = _log_asked(yields) / np.maximum(yields.pages, 1)
    bound = means + np.sqrt(2 * means * room) + room
    safe = np.maximum(means, 1e-300)
    for _round in range(NEWTON_ROUNDS):
        excess = bound - means - means * np.log(bound / safe) - room
        bound = bound - excess / np.maximum(1 - means / bound, 1e-9)
    return bound


def _thompson(yields: Yields, rng: np.random.Generator) -> Floats:
    shape = yields.links + PRIOR_PAGES * yields.mean
    return rng.standard_gamma(np.maximum(shape, 1e-9)) / (yields.pages + PRIOR_PAGES)


def _raw_ucb(yields: Yields, _: np.random.Generator) -> Floats:
    width = RAW_WIDTH * _spread(yields) * np.sqrt(2 * _log_asked(yields))
    times = np.maximum(yields.pages, 1)
    bounds = yields.means + width / np.sqrt(times)
    for place, window in enumerate(WINDOWS):
        within = yields.windows[:, :, place] / window + width / np.sqrt(window)
        bounds = np.where(yields.pages >= window, np.minimum(bounds, within), bounds)
    return bounds


def _good_ucb(yields: Yields, _: np.random.Generator) -> Floats:
    seen = np.maximum(SINGLES_MEMORY * (1 - (1 - 1 / SINGLES_MEMORY) ** yields.pages), 1)
    width = GOOD_WIDTH * np.sqrt(np.maximum(yields.mean, 1e-9)) * (1 + np.sqrt(2))
    found: Floats = yields.singles / seen + width * np.sqrt(np.log(4 * np.maximum(yields.asked, 1))[:, None] / np.maximum(yields.pages, 1))
    return found
