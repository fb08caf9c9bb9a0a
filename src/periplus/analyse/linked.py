"""How many bytes, and of which kinds, lie behind each page's links?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from periplus.model.graph import LinkGraph
from periplus.model.media import MediaClass, media_class
from periplus.model.results import LinkedBytes


def linked_bytes(graph: LinkGraph, size_bytes: NDArray[np.int64], media_type: Sequence[str]) -> LinkedBytes:
    """The sizes of what each page links to, summed by MediaClass, each target once a page.

    graph: n nodes, among them every link's target whose bytes shall count. size_bytes, media_type: one a node; 0 bytes: not
    known, counted in `unsized`. O(n + m). Sums are exact up to 2^53 bytes a page.
    """
    count, kinds = len(graph.pages), len(MediaClass)
    place = {kind: index for index, kind in enumerate(MediaClass)}
    of_type = {name: place[media_class(name)] for name in set(media_type)}
    kind = np.fromiter((of_type[name] for name in media_type), np.int64, count)
    sources = np.repeat(np.arange(count), np.diff(graph.offsets))
    sizes = size_bytes[graph.targets]
    sums = np.bincount(sources * kinds + kind[graph.targets], weights=sizes, minlength=count * kinds)
    unsized = np.bincount(sources[sizes == 0], minlength=count)
    return LinkedBytes(sums.reshape(count, kinds).astype(np.int64), unsized.astype(np.int64))
