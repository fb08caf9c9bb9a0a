"""The rules of Pechnikov and Chernobrovkin (2012) as printed, with their budget kept.

R1 spends its remainder, N - K [N/K], on the site with the greatest sum; as printed ("N - [N/K]") it would ask for 3,800 pages of 2,000. What
they call a Gittins index is the mean so far. None of them says what becomes of an exhausted site: it leaves.
"""

from __future__ import annotations

import numpy as np

from periplus.schedule.bandit.rule import Rule
from periplus.schedule.bandit.yields import Floats, Yields


def r1(budget: int, sites: int) -> Rule:
    """[N/K] pages of each site, to the nearest integer; what is left on the site that brought most until then."""
    share = max(1, (2 * budget + sites) // (2 * sites))
    return Rule("r1", lambda yields, _: yields.links, first=share, block=budget)


def r2(n: int = 20) -> Rule:
    """n pages of each site; then n more of the site with the greatest mean so far."""
    return Rule("r2", lambda yields, _: yields.means, first=n, block=n)


def r3(m: int = 1) -> Rule:
    """UCB1: m pages of each site; then one page at a time by mean / greatest yield + sqrt(2 ln n / t)."""
    return Rule("r3", ucb1, first=m, drifts=True)


def quantum(n: int = 50) -> Rule:
    """Each site in turn gets n pages."""
    return Rule("quantum", lambda yields, _: -(yields.pages // n).astype(np.float64), first=n, block=n)


def ucb1(yields: Yields, _: np.random.Generator) -> Floats:
    greatest = np.where(yields.largest > 0, yields.largest, 1.0)[:, None]  # while nothing was found, the means are 0 as well
    times = np.maximum(yields.pages, 1)
    return yields.means / greatest + np.sqrt(2 * np.log(np.maximum(yields.asked, 1))[:, None] / times)
