"""Ranks pages by the links between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from periplus.analyse.linkgraph import LinkTargets
from periplus.errors import NotConverged, UsageError
from periplus.model.arrays import Floats, Ints, Unsigned8
from periplus.model.graph import LinkGraph
from periplus.model.results import Ranking

# To load SciPy takes 115 ms. Of 10 M links it adds up a round in 20 ms and NumPy in 35, and 80 rounds are usual: it is
# worth loading from some million links on.
LINKS_FOR_SCIPY = 1_000_000


def pagerank(
    graph: LinkGraph | LinkTargets,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-10,
    max_rounds: int = 200,
    links_at_once: int = 0,
) -> Ranking:
    """How often a surfer who follows links at random is found on each page.

    damping: chance of following a link, 0 < damping < 1. tolerance: stop when a round changes the scores by less,
    summed over pages (L1); the scores are then within tolerance * damping / (1 - damping) of the true ones, 6e-10 with
    the defaults. links_at_once: so many are added up together, which bounds the memory and may change the last digits;
    0: all. Returns scores with sum 1; no pages give none. A page without links out gives its score to all pages
    alike. Raises NotConverged after max_rounds (the defaults need at most 150).
    Source: Page, Brin, Motwani, Winograd 1999; pages without links as in Langville and Meyer 2005.
    """
    ranking = _iterate(graph, damping, tolerance, max_rounds, links_at_once, spread=True)
    if ranking.residual > tolerance:
        raise NotConverged("PageRank", ranking.rounds, ranking.residual)
    return replace(ranking, scores=ranking.scores / ranking.scores.sum())


def published_rank(
    graph: LinkGraph,
    *,
    damping: float = 0.85,
    rounds: int | None = None,
    tolerance: float = 1e-10,
    max_rounds: int = 200,
) -> Ranking:
    """PR(p) = (1-k) + k * sum over links q->p of PR(q) / out(q), k = damping: the site mapper's own scale.

    Starts with 1 for every page and computes so many rounds, or, with None, until a round changes the scores by no more
    than tolerance per page on average. After at least one round PR(p) >= 1-k. What a page without links out holds is
    lost, hence the sum is at most n. At the end the scores are those of `pagerank` times one number.
    Raises NotConverged after max_rounds, only if rounds is None.
    Source: Rimnac, Susta, Zivnustka, Webmapa; its figure shows rounds=1.
    """
    if rounds is not None:
        return _iterate(graph, damping, -1.0, rounds, spread=False)
    ranking = _iterate(graph, damping, tolerance, max_rounds, spread=False)
    if ranking.residual > tolerance:
        raise NotConverged("the published rank", ranking.rounds, ranking.residual)
    return ranking


def _iterate(
    graph: LinkGraph | LinkTargets,
    damping: float,
    tolerance: float,
    max_rounds: int,
    links_at_once: int = 0,
    *,
    spread: bool,
) -> Ranking:
    """Rounds of x = (1-k) + k * (shares of the pages that link here [+ an even share of what
    pages without links hold]).

    x starts at 1 for every page. spread keeps the sum at n, and halves the rounds on graphs with few pages without
    links. float64 throughout: float32 takes 20 ms a round instead of 36 (1 M pages, 10 M links) but ends 1e-7 off.
    """
    if not 0 < damping < 1:
        raise UsageError(f"damping lies between 0 and 1; {damping} does not")
    count = len(graph.offsets) - 1
    scores: Floats = np.ones(count)
    if count == 0:
        return Ranking(scores, damping, 0, 0.0)
    links_out = np.diff(graph.offsets)
    sinks = np.flatnonzero(links_out == 0)
    share = np.divide(damping, links_out, out=np.zeros(count), where=links_out > 0)
    links_in = _links_in(graph, links_out, links_at_once)
    residual = np.inf
    done = 0
    while done < max_rounds and residual > tolerance:
        before = scores
        scores = links_in(before * share)
        scores += (1 - damping) + (damping * before[sinks].sum() / count if spread else 0.0)
        residual = float(np.abs(scores - before).sum()) / count
        done += 1
    return Ranking(scores, damping, done, residual)


def _links_in(graph: LinkGraph | LinkTargets, links_out: Ints, links_at_once: int) -> Callable[[Floats], Floats]:
    """A function of the pages' values: for each page the sum over the pages that link to it, added up in their order,
    so that sums do not depend on the order of discovery. links_out: of each page.
    """
    count = len(links_out)
    if links_at_once and len(graph.targets) > links_at_once:
        links = LinkTargets(graph.offsets, graph.targets)

        def added_up(values: Floats) -> Floats:
            sums = np.zeros(count)
            for places in links.runs(links_at_once):
                own = links.targets[links.offsets[places.start] : links.offsets[places.stop]]
                sums += np.bincount(own, np.repeat(values[places], links_out[places]), count)
            return sums

        return added_up
    if len(graph.targets) < LINKS_FOR_SCIPY:
        targets = graph.targets.astype(np.intp)
        # without links NumPy counts in whole numbers
        return lambda values: np.bincount(targets, np.repeat(values, links_out), count).astype(np.float64, copy=False)
    from scipy import sparse

    # scipy keeps both index arrays in the wider of their types: int64 would cost a third more per round
    offsets = graph.offsets.astype(np.int32) if len(graph.targets) < 2**31 else graph.offsets
    out = sparse.csr_array((np.ones(len(graph.targets)), graph.targets, offsets), shape=(count, count))
    links_in = out.T.tocsr()
    return lambda values: np.asarray(links_in @ values)


def link_score(rank: Floats) -> Unsigned8:
    """Ranks (all > 0) as 0 to 100 on a logarithmic scale: 0 the least of these pages, 100 the greatest; all alike: 100.

    For reading and sorting within one map; two sites' scores are not comparable. Source: Screaming Frog's link score,
    the form in which site owners know PageRank.
    """
    if len(rank) == 0:
        return np.zeros(0, np.uint8)
    logs = np.log(rank)
    low, high = logs.min(), logs.max()
    if high - low < 1e-9:  # what rounding makes of equal ranks
        return np.full(len(rank), 100, np.uint8)
    score: Unsigned8 = np.rint(100 * (logs - low) / (high - low)).astype(np.uint8)
    return score
