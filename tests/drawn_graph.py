"""Small link graphs from a list of edges."""

from __future__ import annotations

import numpy as np

from periplus.model.graph import LinkGraph


def graph_of(count, links):
    rows = [sorted(target for source, target in links if source == page) for page in range(count)]
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    targets = np.array([target for row in rows for target in row], np.int32)
    return LinkGraph(
        tuple(f"{page:03}" for page in range(count)),
        offsets,
        targets,
        np.ones(count, bool),
        np.full(count, -1, np.int32),
    )
