"""Which site is next? A rule as a value, and the one way in which all rules choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from periplus.schedule.bandit.yields import Flags, Floats, Integers, Yields

Score = Callable[[Yields, np.random.Generator], Floats]


@dataclass(frozen=True, slots=True)
class Rule:
    """First some pages of each site; then a block of pages of the site with the greatest score, and so on.

    A site that cannot be asked (exhausted, not available, not ready) is passed over in all of this; whoever calls sees to it that no more is
    asked for than the budget holds. Ties go to the first site.
    """

    name: str
    score: Score
    first: int = 1  # pages of each site before sites are compared
    block: int = 1  # pages of the chosen site until they are compared again
    drifts: bool = False  # the score of a site changes while others are asked


@dataclass(slots=True)
class Turns:
    """Whose block is under way in each world."""

    site: Integers
    left: Integers  # pages of its block
    scores: Floats | None = field(default=None, repr=False)

    @classmethod
    def none(cls, worlds: int) -> Turns:
        return cls(np.zeros(worlds, np.int64), np.zeros(worlds, np.int64))


def choose(rule: Rule, yields: Yields, ready: Flags, turns: Turns, rng: np.random.Generator) -> Integers:
    """One site in each world. ready: worlds x sites, in each world at least one. Advances `turns`."""
    worlds = np.arange(len(ready))
    fresh = ready & (yields.pages < rule.first)
    begins = fresh.any(axis=1)
    stays = ~begins & (turns.left > 0) & ready[worlds, turns.site]
    compares = ~begins & ~stays
    chosen = np.where(begins, fresh.argmax(axis=1), turns.site)
    if compares.any():
        best = np.where(ready, rule.score(yields, rng), -np.inf).argmax(axis=1)
        chosen = np.where(compares, best, chosen)
        turns.site = np.where(compares, best, turns.site)
        turns.left = np.where(compares, rule.block, turns.left)
    turns.left = np.where(begins, turns.left, turns.left - 1)
    return chosen
