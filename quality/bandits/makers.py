"""More generators of sites than worlds.py has: sites that dry up, never end, differ permanently, or are alike.

Each generates the numbers of new external links of ten sites, page by page: *heavy* tails (rare pages, some with
hundreds of links, not clustered), *dead* (half of the sites yield nothing, the others a constant rate until they end),
*calendar* (a constant rate interrupted by long stretches without links), *depth* (the yield rises or falls with
depth), *groups* (sites of one system are alike) and *steady* (constant means that differ by site, with variance).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from worlds import PAGES, SITES, Counts, sizes

_Rows = NDArray[np.float64]


def heavy(rng: np.random.Generator) -> _Rows:
    rates = np.minimum(0.02 * (1 + rng.pareto(0.9, SITES)).clip(max=60), 0.5)[:, None]
    rich = np.minimum(1 + rng.pareto(1.1, (SITES, PAGES)) * 1.5, 300)
    return np.where(rng.random((SITES, PAGES)) < rates, rich, 0.0)


def dead(rng: np.random.Generator) -> _Rows:
    rows = np.zeros((SITES, PAGES))
    for row in rows:
        if rng.random() < 0.5:
            row[: rng.integers(1, 8)] = rng.poisson(2) if rng.random() < 0.5 else 0
        else:
            end = int(rng.integers(100, PAGES))
            row[:end] = rng.poisson(rng.gamma(1.5, 0.4), end)
    return rows


def calendar(rng: np.random.Generator) -> _Rows:
    rows = np.zeros((SITES, PAGES))
    for row in rows:
        at, rate = 0, rng.gamma(1, 0.8)
        while at < PAGES:
            length = int(rng.exponential(250)) + 20
            row[at : at + length] = rng.poisson(rate, min(length, PAGES - at))
            at += length
            if rng.random() < 0.5:
                at += PAGES if rng.random() < 0.3 else int(rng.exponential(500))
    return rows


def depth(rng: np.random.Generator) -> _Rows:
    rows = np.zeros((SITES, PAGES))
    for row in rows:
        below = np.cumprod(rng.uniform(2, 12, 7)) * rng.uniform(2, 8)
        ends = np.cumsum(np.concatenate([[1], below])).astype(int)
        level = np.searchsorted(ends, np.arange(PAGES), side="right").clip(max=11)
        trend = rng.normal(0, 0.8) * (np.arange(12) - 2)
        rates = np.exp(rng.normal(-1.2, 1) + trend + rng.normal(0, 0.4, 12)).clip(max=8)
        row[:] = rng.poisson(rates[level] * rng.gamma(0.5, 2, PAGES))
    return rows


def groups(rng: np.random.Generator) -> _Rows:
    rates, wear = np.exp(rng.normal(-0.8, 1.2, 3)), rng.uniform(100, 1500, 3)
    clumps = rng.choice([0.05, 0.3, 1.0], 3)
    rows = np.zeros((SITES, PAGES))
    for row in rows:
        system = rng.integers(3)
        rate = rates[system] * np.exp(rng.normal(0, 0.3)) / (1 + np.arange(PAGES) / wear[system])
        row[:] = np.where(rng.random(PAGES) < clumps[system], rng.poisson(rate / clumps[system]), 0)
    return rows


def steady(rng: np.random.Generator) -> _Rows:
    means = rng.lognormal(-1.5, 1.2, SITES)[:, None]
    return rng.poisson(means * rng.gamma(0.3, 1 / 0.3, (SITES, PAGES))).astype(np.float64)


MAKERS: dict[str, Callable[[np.random.Generator], _Rows]] = {
    "heavy": heavy,
    "dead": dead,
    "calendar": calendar,
    "depth": depth,
    "groups": groups,
    "steady": steady,
}


def made(kind: str, first: int, number: int) -> Counts:
    """number x SITES x PAGES; -1 where a site has no such page. first: seed of the first world."""
    place, worlds = list(MAKERS).index(kind), []
    for seed in range(first, first + number):
        rng = np.random.default_rng([50 + place, seed])
        counts = MAKERS[kind](rng).astype(np.int32)
        counts[np.arange(PAGES) >= sizes(rng, SITES)[:, None]] = -1
        worlds.append(counts)
    return np.stack(worlds)
