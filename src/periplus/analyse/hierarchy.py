"""Where does each page stand below the home page?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from periplus.errors import UsageError
from periplus.model.graph import LinkGraph
from periplus.model.results import OTHERS, MapNode, SiteMap

TIE = 1e-12  # relative: ranks of like pages differ by rounding (about 1e-15 a link), true differences are known to 1e-9 only
Indices = NDArray[np.int32]
Places = Indices | NDArray[np.int64]


def hierarchical_map(graph: LinkGraph, home: int, rank: NDArray[np.float64]) -> SiteMap:
    """The tree of layers: each page hangs from a page one click nearer to the home page.

    graph: the indexed and registered pages of one site. rank: float64[n], greater is better. Where several pages of the
    layer before link to a page, its parent is the one with the greatest rank; ranks closer than TIE are equal, and then the
    smaller URL wins, so that the map depends neither on the order of fetching nor on rounding.
    O(links + pages log pages). Raises UsageError if home is not an indexed page.
    Source: Rimnac, Susta, Zivnustka, Webmapa, (P1)-(P5).
    """
    if not 0 <= home < len(graph.pages):
        raise UsageError(f"page {home} is not among the {len(graph.pages)} pages of the graph: name a page that was crawled")
    if not graph.indexed[home]:
        raise UsageError(f"{graph.pages[home]} was not fetched, and a map begins with a fetched page: name another home page")
    by_precedence = _by_precedence(rank)
    layer, parent, layers = _layers(graph, home, by_precedence)
    order, below = _depth_first(parent, layers, by_precedence)
    return SiteMap(home, layer, parent, order, below)


def _by_precedence(rank: NDArray[np.float64]) -> NDArray[np.int64]:
    """The pages, greatest rank first, equal ranks by URL. Equal: linked by steps smaller than TIE, never rounded,
    since rounding parts neighbours that lie on either side of a boundary."""
    if len(rank) == 0:
        return np.zeros(0, np.int64)
    descending = np.argsort(-rank)
    ordered = rank[descending]
    steps = ordered[:-1] - ordered[1:] > TIE * np.abs(ordered[:-1])
    classes = np.concatenate(([0], np.cumsum(steps)))
    by_precedence: NDArray[np.int64] = np.sort(classes * len(rank) + descending) % len(rank)
    return by_precedence


def _layers(graph: LinkGraph, home: int, by_precedence: NDArray[np.int64]) -> tuple[Indices, Indices, list[Indices]]:
    """(layer of each page, parent of each page, the pages layer by layer). Looks at each link once."""
    count = len(graph.pages)
    precedence = np.empty(count, np.int32)
    precedence[by_precedence] = np.arange(count, dtype=np.int32)
    layer = np.full(count, -1, np.int32)
    parent = np.full(count, -1, np.int32)
    frontier = np.array([home], np.int32)
    layers: list[Indices] = []
    while frontier.size:
        layer[frontier] = len(layers)
        layers.append(frontier)
        best_last = frontier[np.argsort(-precedence[frontier])]
        sources, children = _links_out(graph, best_last)
        new = layer[children] < 0
        sources, children = sources[new], children[new]
        parent[children] = sources  # of several writes to one place the last stays: the best parent's
        frontier = children[parent[children] == sources]  # links are distinct, so each child is left once
    return layer, parent, layers


def _links_out(graph: LinkGraph, pages: Indices) -> tuple[Indices, Indices]:
    """(source, target) of every link out of the pages, in their order."""
    starts = graph.offsets[pages]
    counts = graph.offsets[pages + 1] - starts
    shift = starts - (np.cumsum(counts) - counts)  # from a link's place in the answer to its place in targets
    positions = np.arange(counts.sum()) + np.repeat(shift, counts)
    return np.repeat(pages, counts), graph.targets[positions]


def _depth_first(parent: Indices, layers: list[Indices], by_precedence: NDArray[np.int64]) -> tuple[Indices, Indices]:
    """(the pages reached, depth first, siblings by precedence; how many stand below each page)."""
    position, below = depth_first_places(parent, layers, by_precedence)
    reached = np.concatenate(layers)
    order = np.empty(len(reached), np.int32)
    order[position[reached]] = reached
    return order, below


def depth_first_places(parent: Places, layers: Sequence[Places], by_precedence: NDArray[np.int64]) -> tuple[NDArray[np.int64], Indices]:
    """(each page's place in its tree, depth first, siblings by precedence; how many stand below it). Of one tree or several."""
    below = np.zeros(len(parent), np.int32)
    for pages in reversed(layers[1:]):
        np.add.at(below, parent[pages], below[pages] + 1)
    children = by_precedence[parent[by_precedence] >= 0]
    children = children[np.argsort(parent[children], kind="stable")]
    branch = below[children].astype(np.int64) + 1
    ahead = np.cumsum(branch) - branch
    first = np.diff(parent[children], prepend=-1) > 0  # the first child of each parent
    ahead -= np.repeat(ahead[first], np.diff(np.flatnonzero(np.append(first, True))))
    position = np.zeros(len(parent), np.int64)
    position[children] = ahead + 1  # within the parent's branch; below: within the whole
    for pages in layers[1:]:
        position[pages] += position[parent[pages]]
    return position, below


def map_tree(
    site_map: SiteMap,
    rank: NDArray[np.float64],
    size_bytes: NDArray[np.int64],
    indexed: NDArray[np.bool_],
    *,
    max_nodes: int = 60,
    max_depth: int = -1,
) -> MapNode:
    """The map folded to at most max_nodes pages, each with its branch's totals; what is left out is in OTHERS nodes.

    The pages kept are those whose branches hold most rank, so a well linked single page outlasts a long tail of
    calendar days. Every page of the map is in exactly one node; totals of children and the page itself add up to the node's.
    size_bytes, indexed, rank: one value a page. max_depth: the last layer named; -1: any. The home page is always named.
    """
    order = site_map.order
    after = np.arange(1, len(order) + 1) + site_map.below[order]  # where each branch ends
    unit = float(rank[order].sum()) / 2.0**50  # ranks as whole numbers: their sums are exact, and no branch exceeds its parent's
    weights = np.rint(rank[order] / unit).astype(np.int64)
    own = np.stack([np.ones(len(order), np.int64), indexed[order], size_bytes[order], weights])
    totals = np.stack([_branch_totals(row, after) for row in own])
    allowed = np.flatnonzero((site_map.layer[order] <= max_depth) | (max_depth < 0))
    heaviest = np.argsort(-totals[3, allowed], kind="stable")[: max(max_nodes, 1)]  # equal: the earlier, which is the parent
    shown = np.sort(allowed[heaviest])
    pages = order[shown]
    return _assemble(pages.tolist(), site_map.parent[pages].tolist(), totals[:, shown], own[:, shown], unit)


def _branch_totals(values: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum over each page's branch; values in depth-first order."""
    sums = np.concatenate(([0], np.cumsum(values)))
    totals: NDArray[np.int64] = sums[after] - sums[:-1]
    return totals


def _assemble(pages: list[int], parents: list[int], totals: NDArray[np.int64], own: NDArray[np.int64], unit: float) -> MapNode:
    """Nodes of the pages, which stand depth first; built from the last to the first, so each finds its children ready.
    totals, own: int64[4, pages], rows pages, indexed, bytes, rank in units."""
    waiting: dict[int, list[MapNode]] = {page: [] for page in pages}
    taken = {page: np.zeros(4, np.int64) for page in pages}  # what each page's named children hold
    for place in range(len(pages) - 1, -1, -1):
        page, parent, total = pages[place], parents[place], totals[:, place]
        left = total - own[:, place] - taken.pop(page)
        children = waiting.pop(page)[::-1]
        if left[0]:
            children.append(_node(OTHERS, left, unit, ()))
        node = _node(page, total, unit, tuple(children))
        if place:
            waiting[parent].append(node)
            taken[parent] += total
    return node


def _node(page: int, total: NDArray[np.int64], unit: float, children: tuple[MapNode, ...]) -> MapNode:
    pages, indexed, size_bytes, weight = total.tolist()
    return MapNode(page, pages, indexed, size_bytes, weight * unit, children)
