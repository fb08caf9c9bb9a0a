"""Time and memory of PageRank and of the hierarchical map of a large site, and a check of the tree."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar, overload

import numpy as np
from corpora import CACHE
from measure import MIB, load, table
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from periplus.analyse.linkgraph import hierarchical_map
from periplus.analyse.pagerank import pagerank
from periplus.model.graph import LinkGraph
from periplus.model.results import SiteMap
from periplus.model.web import Url

Value = TypeVar("Value")


class Numbered(Sequence[Url]):
    """A lazy ascending sequence of URLs: /00000000, /00000001, ..."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Url: ...
    @overload
    def __getitem__(self, place: slice) -> list[Url]: ...
    def __getitem__(self, place: int | slice) -> Url | list[Url]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(self._count))]
        if not 0 <= place < self._count:
            raise IndexError(place)
        return Url(f"http://graph.test/{place:08}")


def power_law(pages: int, links: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """(offsets, targets) of about `links` distinct links: 70 % to nearby pages,
    the others with a popularity of (rank)^-0.75.

    Out-degrees follow a power law too (1 to 600). Page 0 is the home page and links to 50 pages.
    """
    rng = np.random.default_rng(seed)
    weights = (rng.pareto(1.5, pages) + 1).clip(max=600)
    # 9 % are duplicates and are dropped
    counts = np.maximum(1, np.rint(weights * links * 1.09 / weights.sum())).astype(np.int64)
    sources = np.repeat(np.arange(pages, dtype=np.int64), counts)
    near = sources + np.rint(rng.standard_cauchy(len(sources)) * 20).clip(-pages, pages).astype(np.int64)
    far = (pages * rng.random(len(sources)) ** 4).astype(np.int64)  # density falls as (rank)^-0.75
    scattered = rng.permutation(pages)[far.clip(max=pages - 1)]
    targets = np.where(rng.random(len(sources)) < 0.7, near % pages, scattered)
    sources = np.concatenate((sources, np.zeros(50, np.int64)))
    targets = np.concatenate((targets, rng.integers(1, pages, 50)))
    keys = np.unique((sources * pages + targets)[sources != targets])
    offsets = np.zeros(pages + 1, np.int64)
    np.cumsum(np.bincount(keys // pages, minlength=pages), out=offsets[1:])
    return offsets, (keys % pages).astype(np.int32)


def kept_graph(pages: int, links: int, seed: int) -> LinkGraph:
    """The graph from the cache; another process creates it if it is missing,
    so that the memory of this process is that of the analyses only.
    """
    file = CACHE / f"graph-{pages}-{links}-{seed}.npz"
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            pool.submit(keep_graph, file, pages, links, seed).result()
    with np.load(file) as arrays:
        return LinkGraph(
            Numbered(pages),
            arrays["offsets"],
            arrays["targets"],
            np.ones(pages, np.bool_),
            np.full(pages, -1, np.int32),
        )


def keep_graph(file: Path, pages: int, links: int, seed: int) -> None:
    offsets, targets = power_law(pages, links, seed)
    unfinished = file.with_suffix(".part.npz")
    np.savez(unfinished, offsets=offsets, targets=targets)
    unfinished.rename(file)


def plain_round_s(graph: LinkGraph) -> float:
    """Baseline: one multiplication with the same links in SciPy, float64, the best of five."""
    count = len(graph.pages)
    links = sparse.csr_array(
        (np.ones(len(graph.targets)), graph.targets, graph.offsets.astype(np.int32)), shape=(count, count)
    ).T.tocsr()
    vector = np.ones(count)
    return min(timed(lambda: links @ vector)[1] for _ in range(5))


def timed(call: Callable[[], Value]) -> tuple[Value, float]:
    """(what the call returned, seconds)"""
    started = time.perf_counter()
    value = call()
    return value, time.perf_counter() - started


def faults_of(graph: LinkGraph, tree: SiteMap, rank: NDArray[np.float64]) -> list[str]:
    """Violations of the rules of the map, found with SciPy's breadth-first search and a check of every link; empty
    if correct.
    """
    count = len(graph.pages)
    links = sparse.csr_array(
        (np.ones(len(graph.targets)), graph.targets, graph.offsets.astype(np.int32)), shape=(count, count)
    )
    distance = csgraph.dijkstra(links, unweighted=True, indices=np.array([tree.home]))[0]
    depths = np.where(np.isinf(distance), -1, distance).astype(np.int64)
    sources = np.repeat(np.arange(count), np.diff(graph.offsets))
    one_nearer = (depths[sources] >= 0) & (depths[graph.targets] == depths[sources] + 1)
    best = np.zeros(count)
    np.maximum.at(best, graph.targets[one_nearer], rank[sources[one_nearer]])
    hanging = np.flatnonzero(tree.parent >= 0)
    checks = {
        "depths are not the least number of clicks": np.array_equal(tree.depth, depths),
        "a reached page is missing or twice": np.array_equal(np.sort(tree.order), np.flatnonzero(depths >= 0)),
        "a page hangs from no page": len(hanging) == np.count_nonzero(depths > 0),
        "a parent is not the best of the depth before": bool(
            np.all(rank[tree.parent[hanging]] >= best[hanging] * (1 - 1e-9))
        ),
        "a parent is not one depth nearer": bool(np.all(depths[tree.parent[hanging]] == depths[hanging] - 1)),
        "the home page does not hold all": int(tree.below[tree.home]) == len(tree.order) - 1,
    }
    return [fault for fault, fine in checks.items() if not fine]


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--links", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    graph, making = timed(lambda: kept_graph(options.pages, options.links, options.seed))
    before = peak_mib()
    ranking, ranked = timed(lambda: pagerank(graph))
    after_rank = peak_mib()
    tree, mapped = timed(lambda: hierarchical_map(graph, 0, ranking.scores))
    after_map = peak_mib()
    one_round = plain_round_s(graph)
    faults = faults_of(graph, tree, ranking.scores)
    rows = [
        ("load the graph", making, "", before),
        (
            "PageRank to 1e-10",
            ranked,
            f"{ranked / (one_round * ranking.rounds):.2f} x {ranking.rounds} plain multiplications",
            after_rank,
        ),
        ("hierarchical map", mapped, f"{mapped / one_round:.0f} x one", after_map),
        ("one plain multiplication", one_round, "1", ""),
    ]
    print(
        f"{options.pages:,} pages, {len(graph.targets):,} links, {len(tree.order):,} reached, "
        f"{tree.depth} depths deep ({load()})"
    )
    print(table(("part", "s", "against the baseline", "peak RSS MiB so far"), rows))
    print("the tree is right" if not faults else "THE TREE IS WRONG: " + "; ".join(faults))


if __name__ == "__main__":
    main()
