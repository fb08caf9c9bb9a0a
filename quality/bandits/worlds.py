"""Generates new external links of ten sites, page by page: worlds of three kinds, with their offline optimum.

*Academy*: most pages of an institute have no links, a few have very many, in clusters (a page of partners, a list of
projects). *University*: few links on many pages, half of the sites have none on their first pages, and each section
dries up. *Mixed*: five of each. Sizes as published, 431 to 39,292 pages. The yield of round robin in 2,000 pages was
fitted to the published totals (417, 1,337 and 949 links); the other constants were set so that the published rules
rank as in the publication.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int32]

SITES, PAGES = 10, 2000
SMALLEST, LARGEST = 431, 39_292  # pages of a site
RICHEST = 120  # links on one page


def sizes(rng: np.random.Generator, sites: int) -> NDArray[np.int64]:
    """Log-normal with a median of 3,000, within the published range."""
    return np.clip(np.exp(rng.normal(np.log(3000), 1.1, sites)), SMALLEST, LARGEST).astype(np.int64)


def academy(rng: np.random.Generator, pages: int = PAGES) -> Counts:
    """First pages of an institute: a low background rate, and clusters of rich pages that become rarer."""
    richness = np.exp(rng.normal(0.0, 1.3) - 0.85)  # mean 1
    wear = (1 + np.arange(pages) / 150) ** -0.6
    counts = np.where(rng.random(pages) < np.minimum(0.025 * richness, 0.3) * wear, rng.geometric(0.6, pages), 0)
    for start in np.flatnonzero(rng.random(pages) < np.minimum(0.0095 * richness * wear, 0.08)):
        run = np.minimum(rng.pareto(1.4, rng.geometric(1 / 4)) * 3.5 + 1, RICHEST).astype(np.int64)[: pages - start]
        counts[start : start + len(run)] += run
    return np.minimum(counts, RICHEST).astype(np.int32)


def university(rng: np.random.Generator, pages: int = PAGES) -> Counts:
    """First pages of a university: a sequence of sections, each with its own rate, which declines while it is read."""
    first = int(rng.integers(20, 150)) if rng.random() < 0.5 else 0  # pages before the first link
    rate, at = np.zeros(pages), first
    while at < pages:
        until = min(at + int(rng.exponential(600)) + 30, pages)
        rate[at:until] = rng.gamma(0.8, 2.15) * np.exp(-np.arange(until - at) / rng.uniform(50, 150))
        at = until
    wear = (1 + np.maximum(np.arange(pages) - first, 0) / 400) ** -0.3
    return rng.poisson(rate * wear).astype(np.int32)


KINDS = {"academy": (academy,), "university": (university,), "mixed": (academy, university)}


def world(kind: str, seed: int, sites: int = SITES, pages: int = PAGES) -> Counts:
    """sites x pages new links; -1 where a site has no such page."""
    rng = np.random.default_rng([sorted(KINDS).index(kind), seed])
    makers = KINDS[kind]
    counts = np.array([makers[site % len(makers)](rng, pages) for site in range(sites)])
    counts[np.arange(pages) >= sizes(rng, sites)[:, None]] = -1
    return counts


@functools.cache
def worlds(kind: str, first: int, number: int) -> Counts:
    """number x SITES x PAGES."""
    return np.stack([world(kind, seed) for seed in range(first, first + number)])


def optimum(counts: Counts, budget: int = PAGES) -> NDArray[np.float64]:
    """Most links that one prefix per site, `budget` pages in total, can have. counts: worlds x sites x pages."""
    best = np.zeros((len(counts), budget + 1), np.float32)
    for site in range(counts.shape[1]):
        found = np.cumsum(np.maximum(counts[:, site], 0), axis=1, dtype=np.float32)
        before = best.copy()
        useful = counts[:, site] > 0  # a prefix that ends with an empty page is never better than a shorter one
        for end in np.flatnonzero(useful.any(axis=0)):
            if end < budget:
                candidate = before[:, : budget - end] + found[:, end : end + 1]
                np.maximum(best[:, end + 1 :], candidate, out=best[:, end + 1 :])
    return best[:, budget].astype(np.float64)
