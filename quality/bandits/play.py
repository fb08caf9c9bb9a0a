"""Runs a rule in many worlds at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from published import PublishedYields
from worlds import PAGES, Counts

from periplus_studies.rules import ChoiceRule, Flags, Integers, Yields


@dataclass(slots=True)
class Turns:
    """The current block in each world."""

    site: Integers
    left: Integers  # remaining pages of the block

    @classmethod
    def zeros(cls, worlds: int) -> Turns:
        return cls(np.zeros(worlds, np.int64), np.zeros(worlds, np.int64))


def choose(rule: ChoiceRule, yields: Yields, ready: Flags, turns: Turns, rng: np.random.Generator) -> Integers:
    """Chooses a site in each world. ready: worlds x sites, at least one per world. Advances `turns`."""
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


def play(
    rule: ChoiceRule, counts: Counts, *, budget: int = PAGES, seed: int = 1, again: NDArray[np.float32] | None = None
) -> NDArray[np.float64]:
    """Links found in each world.

    counts: worlds x sites x pages, -1 where there is no page; again: see `PublishedYields.book`.
    """
    number, sites, _ = counts.shape
    worlds = np.arange(number)
    sizes = (counts >= 0).sum(axis=2)
    yields, turns, rng = PublishedYields.zeros(number, sites), Turns.zeros(number), np.random.default_rng(seed)
    for _page in range(budget):
        ready = yields.pages < sizes
        going = ready.any(axis=1)
        ready[~going, 0] = True  # the world is exhausted: its choice is not counted
        chosen = choose(rule, yields, ready, turns, rng)[going]
        at = (worlds[going], chosen, yields.pages[worlds[going], chosen])
        yields.book(
            worlds[going],
            chosen,
            counts[at].astype(np.float64),
            None if again is None else again[at].astype(np.float64),
        )
    return yields.gained
