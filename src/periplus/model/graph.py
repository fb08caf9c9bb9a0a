"""Pages and the links between them as arrays, the form that every analysis takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from periplus.model.visit import Reason
from periplus.model.web import Url


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """n pages and m distinct links between them, in compressed sparse rows: links out of page i are
    targets[offsets[i]:offsets[i + 1]], ascending. No self-links. Pages stand in the order of their URLs' text, so that no
    result depends on the order of fetching.
    """

    pages: Sequence[Url]  # n, ascending
    offsets: NDArray[np.int64]  # n + 1
    targets: NDArray[np.int32]  # m
    indexed: NDArray[np.bool_]  # n: fetched and analysed; the others are registered
    layers: NDArray[np.int32]  # n: clicks from the start as the crawl found it; -1 when no link reached it


REASONS = tuple(Reason)
"""A reason's place here stands for it in arrays."""


@dataclass(frozen=True, slots=True)
class UrlRows:
    """What a collection knows of u URLs, one value a URL, in any order."""

    ids: NDArray[np.int64]  # distinct
    texts: Sequence[Url]
    reasons: NDArray[np.uint8]  # places in REASONS
    layers: NDArray[np.int32]  # clicks from the start as the crawl found them; -1 where no link leads


@dataclass(frozen=True, slots=True)
class LinkRows:
    """Links as pairs of URL ids, in any order, perhaps twice, perhaps to URLs that are no page."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LinkBook:
    """All links of a collection both ways, by place: u URLs ascending by id, m pairs of URLs that a link joins.

    An end is place * 4 + NAV (every link of the pair stands in a menu) + PART (none of them leads to a page: images, styles, ...).
    """

    ids: NDArray[np.int64]  # u
    sites: NDArray[np.int32]  # u: the number of each URL's site
    directories: NDArray[np.int32]  # u: host and first step of the path, counted from 0
    fetched: NDArray[np.bool_]  # u
    rank: NDArray[np.float32]  # u: PageRank over the links between pages, sum 1
    out_offsets: NDArray[np.int64]  # u + 1
    out_ends: NDArray[np.uint32]  # m: targets, by source
    in_offsets: NDArray[np.int64]  # u + 1
    in_ends: NDArray[np.uint32]  # m: sources, by target


NAV, PART = 1, 2


def place_of_ends(ends: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The places that ends of a LinkBook name."""
    return (ends >> np.uint32(2)).astype(np.int64)
