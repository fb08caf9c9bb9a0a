"""Published selection rules that `periplus_studies.rules` does not use: none is better on all kinds of sites."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from periplus_studies.rules import ChoiceRule, Floats, Integers, Yields, parse_rule

# pages: 1 to 256, the geometric grid of Seznec's efficient RAW-UCB; beyond them the whole history
WINDOWS = 2 ** np.arange(9)
SINGLES_MEMORY = 100.0  # pages; the window with which Good-UCB did best on real manuals


@dataclass(slots=True)
class PublishedYields(Yields):
    """Further statistics that these rules need."""

    squares: Floats  # of each site: sum of the squares of its rewards
    windows: Floats  # worlds x sites x WINDOWS: sum of the rewards of the last pages
    singles: Floats  # links found on exactly one page of their site, discounted by age
    ring: Floats  # the last 256 rewards of each site

    @classmethod
    def zeros(cls, worlds: int, sites: int) -> PublishedYields:
        shape, plain = (worlds, sites), Yields.zeros(worlds, sites)
        return cls(
            **{name: getattr(plain, name) for name in Yields.__slots__},
            squares=np.zeros(shape),
            windows=np.zeros((*shape, len(WINDOWS))),
            singles=np.zeros(shape),
            ring=np.zeros((*shape, WINDOWS[-1])),
        )

    def book(self, worlds: Integers, sites: Integers, rewards: Floats, met_again: Floats | None = None) -> None:
        """met_again: links found on one earlier page only and on this page, discounted by the age of the first
        occurrence.
        """
        at, number = (worlds, sites), self.pages[worlds, sites]
        # zero until it is filled
        leaving = self.ring[worlds[:, None], sites[:, None], (number[:, None] - WINDOWS) % WINDOWS[-1]]
        self.windows[at] += rewards[:, None] - leaving
        self.ring[worlds, sites, number % WINDOWS[-1]] = rewards
        lost = 0.0 if met_again is None else met_again
        self.singles[at] = np.maximum(self.singles[at] * (1 - 1 / SINGLES_MEMORY) - lost, 0) + rewards
        self.squares[at] += rewards * rewards
        Yields.book(self, worlds, sites, rewards)


# Rules better than those of the survey paper, as published, for rewards that are counts without a known bound.
#
# If a rule needs rewards in [0, 1], they are divided by the largest one so far, as R3 does; if it needs a noise level,
# the noise of all pages is used.

# of the confidence bounds, in standard deviations: .3 and .5 were best on sites that dry up, 1 explores too much
RAW_WIDTH = 0.3
GOOD_WIDTH = 0.3  # the same of Good-UCB
NEWTON_ROUNDS = 6  # the bound of KL-UCB is then exact to eight digits from its normal approximation on
PUBLISHED_PRIOR_PAGES = 1.0  # weight of the pooled mean where a rule needs a prior


def ucb1_tuned() -> ChoiceRule:
    """Auer, Cesa-Bianchi, Fischer 2002, section 4."""
    return ChoiceRule("ucb1-tuned", _ucb1_tuned, drifts=True)


def kl_ucb() -> ChoiceRule:
    """Garivier, Cappe 2011, with the divergence of Poisson distributions and c = 0."""
    return ChoiceRule("kl-ucb", _kl_ucb, drifts=True)


def thompson() -> ChoiceRule:
    """A draw from each site's posterior, Gamma for Poisson counts; the prior is worth one page at the mean of all."""
    return ChoiceRule("thompson", _thompson, drifts=True)


def raw_ucb() -> ChoiceRule:
    """Seznec and others 2020: the least optimistic of all windows.

    Windows grow by doubling, as in their efficient form.
    """
    return ChoiceRule("raw-ucb", _raw_ucb, drifts=True)


def good_ucb() -> ChoiceRule:
    """Bubeck, Ernst, Garivier 2013: the probability of a new item is the share of items seen once;
    with a discounting window.
    """
    return ChoiceRule("good-ucb", _good_ucb, drifts=True)


def _log_asked(yields: PublishedYields) -> Floats:
    return np.log(np.maximum(yields.asked, 2))[:, None]


def _spread(yields: PublishedYields) -> Floats:
    """Standard deviation of all pages, worlds x 1."""
    asked = np.maximum(yields.asked, 1)
    variance = yields.squared / asked - (yields.gained / asked) ** 2
    return np.sqrt(np.maximum(variance, 0))[:, None]


def _ucb1_tuned(yields: PublishedYields, _: np.random.Generator) -> Floats:
    greatest = np.where(yields.largest > 0, yields.largest, 1.0)[:, None]
    times = np.maximum(yields.pages, 1)
    means = yields.means / greatest
    rate = _log_asked(yields) / times
    variances = yields.squares / times / greatest**2 - means**2 + np.sqrt(2 * rate)
    return means + np.sqrt(rate * np.minimum(0.25, np.maximum(variances, 0)))


def _kl_ucb(yields: PublishedYields, _: np.random.Generator) -> Floats:
    """The greatest q with t * (q - m - m ln(q / m)) <= ln n, by Newton's method from above, where it only falls."""
    means = yields.means
    room = _log_asked(yields) / np.maximum(yields.pages, 1)
    bound = means + np.sqrt(2 * means * room) + room
    safe = np.maximum(means, 1e-300)
    for _round in range(NEWTON_ROUNDS):
        excess = bound - means - means * np.log(bound / safe) - room
        bound = bound - excess / np.maximum(1 - means / bound, 1e-9)
    return bound


def _thompson(yields: PublishedYields, rng: np.random.Generator) -> Floats:
    shape = yields.links + PUBLISHED_PRIOR_PAGES * yields.mean
    return rng.standard_gamma(np.maximum(shape, 1e-9)) / (yields.pages + PUBLISHED_PRIOR_PAGES)


def _raw_ucb(yields: PublishedYields, _: np.random.Generator) -> Floats:
    width = RAW_WIDTH * _spread(yields) * np.sqrt(2 * _log_asked(yields))
    times = np.maximum(yields.pages, 1)
    bounds = yields.means + width / np.sqrt(times)
    for place, window in enumerate(WINDOWS):
        within = yields.windows[:, :, place] / window + width / np.sqrt(window)
        bounds = np.where(yields.pages >= window, np.minimum(bounds, within), bounds)
    return bounds


def _good_ucb(yields: PublishedYields, _: np.random.Generator) -> Floats:
    seen = np.maximum(SINGLES_MEMORY * (1 - (1 - 1 / SINGLES_MEMORY) ** yields.pages), 1)
    width = GOOD_WIDTH * np.sqrt(np.maximum(yields.mean, 1e-9)) * (1 + np.sqrt(2))
    return yields.singles / seen + width * np.sqrt(
        np.log(4 * np.maximum(yields.asked, 1))[:, None] / np.maximum(yields.pages, 1)
    )


# The Gittins index: the value of a site over an infinite horizon, with the option to leave it at any time.
#
# Rewards are modelled as exponential with an unknown mean, whose conjugate prior makes the index of a site with n pages
# (the prior's included) and sum s equal s times a number that depends on n alone (Gittins, Glazebrook, Weber 2011,
# 8.6). Those numbers are computed here, by backward induction over n for all rewards of a standard arm at once.

DISCOUNT = 0.99  # a page a hundred pages later has about a third of the weight
PRIOR_PAGES = 2  # with fewer the mean is infinite
LONGEST = 600  # pages after which the mean of a site is considered known: its index then is 1 % above its mean
QUANTILES = 64
STEPS = 400  # of the standard arm's reward, in logarithms


def gittins() -> ChoiceRule:
    return ChoiceRule("gittins", _gittins, drifts=True)


def _gittins(yields: PublishedYields, _: np.random.Generator) -> Floats:
    """The prior has the weight of two pages: a sum of one page at the mean of all."""
    pages = np.minimum(yields.pages + PRIOR_PAGES, LONGEST)
    # beyond LONGEST: scaled to the same mean
    sums = (yields.links + yields.mean) * (pages - 1) / (yields.pages + PRIOR_PAGES - 1)
    return sums * index_table()[pages]


@functools.cache
def index_table(discount: float = DISCOUNT, longest: int = LONGEST) -> Floats:
    """index / sum by the number of pages; entries below PRIOR_PAGES are not used.

    State: n pages with sum 1, against a standard arm of reward r per page; sums scale out: V(n, s, r) = s V(n, 1, r /
    s). The next reward x has P(x > y) = (1 + y) ** -n. V is kept on a grid of ln r relative to the mean 1 / (n - 1).
    """
    # dense around the mean, where the indices of long histories are
    grid = 4 * np.sinh(np.linspace(-5, 5, STEPS)) / np.sinh(5)
    above = 1 - np.arange(QUANTILES + 1) / QUANTILES
    table = np.zeros(longest + 1)
    table[longest] = 1 / (longest - 1)
    value = np.maximum(np.exp(grid), 1.0) / (longest - 1) / (1 - discount)  # known mean: always the better arm
    for pages in range(longest - 1, PRIOR_PAGES - 1, -1):
        mean = 1 / (pages - 1)
        rest = above ** (1 - 1 / pages)
        # the mean within each of the equally likely parts
        rewards = (rest[:-1] - rest[1:]) * QUANTILES / (1 - 1 / pages) - 1
        standard = mean * np.exp(grid)
        # ln of r / sum, over the next state's mean 1 / pages
        relative = grid[:, None] + np.log(mean * pages) - np.log1p(rewards)
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
    """Value of the next state; above the grid the standard arm is always chosen, below it the value is constant."""
    inside = np.interp(at, grid, value)
    return np.where(at > grid[-1], np.exp(at) / pages / (1 - discount), inside)


RULES = {
    "ucb1-tuned": ucb1_tuned,
    "kl-ucb": kl_ucb,
    "thompson": thompson,
    "gittins": gittins,
    "raw-ucb": raw_ucb,
    "good-ucb": good_ucb,
}


def rule_of(name: str, budget: int, sites: int) -> ChoiceRule:
    """A rule of this module, or a rule of campaigns."""
    return RULES[name]() if name in RULES else parse_rule(name, budget, sites)
