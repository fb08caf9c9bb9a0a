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
