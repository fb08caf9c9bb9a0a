"""How many new links does each page of a manual add, breadth first, in the learned order, and with hindsight?"""

from __future__ import annotations

import numpy as np
from manuals import Manual
from numpy.typing import NDArray
from worlds import PAGES, Counts

from periplus.model.web import Url
from periplus.schedule.order import PageOrder, Sighting


def breadth_first(site: Manual, most: int = PAGES) -> list[int]:
    return site.yields()[:most]


def learned(site: Manual, most: int = PAGES) -> list[int]:
    """The order of `schedule.order`: a page is available once a page that links to it was fetched."""
    order, seen, counts = PageOrder(), set[int](), list[int]()
    pages, depths, offered = [0], [0], {0}
    order.offer(Sighting(_url(site, 0), "", "", -1, 0, 0))
    while len(counts) < most and len(best := order.best()):
        number = int(best[0])
        order.drop(number)
        page = pages[number]
        fresh = set(site.external[page]) - seen
        seen |= fresh
        counts.append(len(fresh))
        order.learn(number, len(fresh))
        for target, anchor, position in site.links[page]:
            if target not in offered:
                offered.add(target)
                pages.append(target)
                depths.append(depths[number] + 1)
                order.offer(Sighting(_url(site, target), anchor, position, page, len(fresh), depths[-1]))
    return counts


def _url(site: Manual, page: int) -> Url:
    return Url(f"http://{site.name}.test{site.paths[page]}")


def in_hindsight(site: Manual, most: int = PAGES) -> list[int]:
    """Greedy by new links: the best pages first, ignoring the links between pages."""
    left = {page: set(targets) for page, targets in enumerate(site.external) if targets}
    counts: list[int] = []
    while left and len(counts) < most:
        page = max(left, key=lambda one: (len(left[one]), -one))
        best = left.pop(page)
        if not best:
            break
        counts.append(len(best))
        for targets in left.values():
            targets.difference_update(best)
    return counts


def world(rows: list[list[int]], draws: int, sites: int, seed: int) -> tuple[Counts, NDArray[np.int64]]:
    """`draws` random sets of ten sites, and the indices of these sites."""
    table = np.full((len(rows), PAGES), -1, np.int32)
    for row, counts in zip(table, rows, strict=True):
        row[: len(counts)] = counts
    rng = np.random.default_rng(seed)
    chosen = np.array([rng.choice(len(rows), sites, replace=False) for _ in range(draws)])
    return table[chosen], chosen
