"""Runs a rule in many worlds at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from published import PublishedYields
from worlds import PAGES, Counts

from periplus_studies.rules import ChoiceRule, Turns, choose


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
