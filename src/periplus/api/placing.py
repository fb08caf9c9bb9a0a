"""Where does a page stand in its site's map: by which way from the home page, beside whom, above whom?"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from periplus.api.site import Site
from periplus.model.web import Url
from periplus.present.wording import labels, without_site_name

BESIDE = 12  # siblings and pages below that are named


class Step(NamedTuple):
    """A page on the way, beside or below."""

    url: str
    label: str
    score: int  # 0 to 100
    below: int  # pages under it


@dataclass(frozen=True, slots=True)
class MapPlace:
    """way: from the home page to the page itself; empty: no link reaches it. beside, below: the greatest by rank; siblings, children: how many there are."""

    site: str
    pages: int  # of the map
    layer: int
    rank: float  # share of a surfer's time
    score: int
    better: int  # pages of greater rank
    way: tuple[Step, ...]
    beside: tuple[Step, ...]
    siblings: int
    below: tuple[Step, ...]
    children: int


def place_in(site: Site, url: Url) -> MapPlace | None:
    """None: the map's site has no such page."""
    pages = site.facts.url
    page = bisect_left(pages, url)
    if page == len(pages) or pages[page] != url:
        return None
    rank, parent = site.facts.rank, site.site_map.parent
    way = [page] if site.site_map.layer[page] >= 0 else []
    while way and parent[way[-1]] >= 0:
        way.append(int(parent[way[-1]]))
    beside = np.flatnonzero(parent == parent[page]) if len(way) > 1 else np.zeros(0, np.int64)
    below = np.flatnonzero(parent == page)
    best = [group[np.argsort(-rank[group], kind="stable")][:BESIDE].tolist() for group in (beside[beside != page], below)]
    return MapPlace(
        str(site.key), len(site.site_map.order), int(site.site_map.layer[page]), float(rank[page]), int(site.facts.score[page]), int((rank > rank[page]).sum()),
        _steps(site, way[::-1]), _steps(site, best[0]), max(len(beside) - 1, 0), _steps(site, best[1]), len(below),
    )  # fmt: skip


def _steps(site: Site, pages: list[int]) -> tuple[Step, ...]:
    urls = [site.facts.url[page] for page in pages]
    names = labels(urls, without_site_name([site.facts.title[page] for page in pages]))
    return tuple(Step(url, name, int(site.facts.score[page]), int(site.site_map.below[page])) for url, name, page in zip(urls, names, pages, strict=True))
