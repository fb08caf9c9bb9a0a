"""Which pages of a site were made by one template, and what of them is navigation, by Shorkin's rules of 2013?

1. Of all pairs of pages the one whose common chains are longest begins a cluster, unless the two are duplicates; what they share is
   its navigation part. 2. The page that shares most of it joins, if that is at least `min_nav_length` of the pair's; the navigation
   part becomes what is shared; and again. 3. A cluster of four pages is valid. 4. The same with the rest, while it has four; where no
   pair begins a valid cluster, the threshold is lowered. What the source leaves open is settled in docs/decisions/0005: ties go to
   the pages that come first, and a cluster that stays too small is set aside until the threshold is lowered.
The rules compare all pairs of pages again and again. Here a page's best partner is computed when its bound is the greatest of all,
and a bound only falls as pages leave; the tests hold a plain transcription against it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from periplus.analyse.chain_index import Columns, Index, Numbers, common_bytes, first_index, nearest, pages_of, shared_chains, smaller_index
from periplus.analyse.fragmenters import Chains, Mask, lengths
from periplus.model.template import TemplateRules

Watch = Callable[[int, int], None]  # (pages in clusters, clusters so far)


@dataclass(frozen=True, slots=True)
class ChainCluster:
    """Pages of one template."""

    pages: tuple[int, ...]  # in the order in which they joined
    navigation: Chains  # ascending
    min_nav_bytes: int  # what a page must share of it to join

    @property
    def chain_bytes(self) -> int:
        """The navigation part's length as the rules measure it."""
        return int(lengths(self.navigation).sum())


@dataclass(slots=True)
class _Growth:
    """A cluster while it grows."""

    pages: list[int]
    navigation: Columns
    scores: Numbers  # by page: bytes of the navigation part that it holds; -1 for those that are in, or not live
    bytes: int  # of the navigation part


def clusters_of(pages: Sequence[Chains], rules: TemplateRules, watch: Watch = lambda taken, found: None) -> list[ChainCluster]:
    """In the order in which they are found. pages: the chains of each, in any order. Pages in no cluster are the rest."""
    shared = shared_chains(pages)
    index = first_index(pages, shared)
    left = np.ones(len(pages), np.bool_)
    found: list[ChainCluster] = []
    percent = rules.min_nav_length
    while percent >= rules.least_nav_length and left.sum() >= rules.cluster_pages:
        live = left.copy()  # without what was set aside
        bounds = [(-int(index.weights[index.rows[page]].sum()), page, -1) for page in np.flatnonzero(left).tolist()]
        heapq.heapify(bounds)
        while live.sum() >= rules.cluster_pages and (pair := _best_pair(index, bounds, live, rules.duplicates)):
            growth, needed = _grown(index, pair, live, percent)
            live[growth.pages] = False
            if len(growth.pages) >= rules.cluster_pages:
                left[growth.pages] = False
                chosen = np.zeros(len(index.weights) + 1, np.bool_)
                chosen[growth.navigation] = True
                found.append(ChainCluster(tuple(growth.pages), shared[chosen[index.labels]], needed))
                watch(int((~left).sum()), len(found))
                if left.sum() * 2 <= len(index.rows):
                    index = smaller_index(index, left)
        percent -= rules.nav_length_step
    return found


def _best_pair(index: Index, bounds: list[tuple[int, int, int]], live: Mask, duplicates: int) -> tuple[int, int] | None:
    """The two live pages that have most in common and are no duplicates; of equals those that come first. None: no two have anything.

    bounds: a heap of (minus the most that a page can share with a live one, page, the partner with whom it does or did; -1 where the bound
    is no more than that).
    """
    while bounds:
        _, page, partner = bounds[0]
        if not live[page]:
            heapq.heappop(bounds)
        elif partner >= 0 and live[partner]:
            return page, partner
        else:
            most, partner = nearest(index, page, live, duplicates)
            if partner < 0:
                heapq.heappop(bounds)
            else:
                heapq.heapreplace(bounds, (-most, page, partner))
    return None


def _grown(index: Index, pair: tuple[int, int], live: Mask, percent: int) -> tuple[_Growth, int]:
    """(the cluster that a pair begins, bytes of its navigation part that a page needs to join)."""
    navigation = np.intersect1d(index.rows[pair[0]], index.rows[pair[1]], assume_unique=True)
    scores = np.where(live, common_bytes(index, navigation), -1)
    scores[list(pair)] = -1
    growth = _Growth(list(pair), navigation, scores, int(index.weights[navigation].sum()))
    needed = -(-growth.bytes * percent // 100)
    while True:
        best = int(growth.scores.max(initial=-1))
        if best < max(needed, 1):
            return growth, needed
        if best == growth.bytes:  # they hold all of it: one after another joins and nothing changes
            joining = np.flatnonzero(growth.scores == best)
        else:
            joining = np.argmax(growth.scores, keepdims=True)
            _narrow(index, growth, int(joining[0]))
        growth.pages += joining.tolist()
        growth.scores[joining] = -1


def _narrow(index: Index, growth: _Growth, page: int) -> None:
    """Leaves of the navigation part what the page holds."""
    held = np.isin(growth.navigation, index.rows[page], assume_unique=True)
    for column in growth.navigation[~held].tolist():
        pages = pages_of(index, column)
        inside = pages[growth.scores[pages] >= 0]
        growth.scores[inside] -= index.weights[column]
        growth.bytes -= int(index.weights[column])
    growth.navigation = growth.navigation[held]


def matched(page: Chains, clusters: Sequence[ChainCluster]) -> int:
    """Which cluster a later page joins: the one of whose navigation part it holds most, if that is enough; -1: none."""
    shares = [int(lengths(np.intersect1d(page, cluster.navigation)).sum()) for cluster in clusters]
    fitting = [at for at, share in enumerate(shares) if share >= max(clusters[at].min_nav_bytes, 1)]
    return max(fitting, key=lambda at: (shares[at], -at), default=-1)


def joined(page: int, chains: Chains, cluster: ChainCluster) -> ChainCluster:
    """The cluster with one page more, by its number: the navigation part becomes what it shares."""
    shared = np.intersect1d(chains, cluster.navigation)
    return replace(cluster, pages=(*cluster.pages, page), navigation=shared)


def extended(pages: Sequence[Chains], clusters: Sequence[ChainCluster], rules: TemplateRules) -> list[ChainCluster]:
    """Known clusters brought up to date: each page that is in none is matched, and what none takes makes clusters of its own, as after a redesign.

    pages: the chains of every page, old ones first; clusters name pages by their place in it.
    """
    found = list(clusters)
    taken = {page for cluster in clusters for page in cluster.pages}
    others: list[int] = []
    for page in (page for page in range(len(pages)) if page not in taken):
        at = matched(pages[page], found)
        if at >= 0:
            found[at] = joined(page, pages[page], found[at])
        else:
            others.append(page)
    for new in clusters_of([pages[page] for page in others], rules):
        found.append(replace(new, pages=tuple(others[page] for page in new.pages)))
    return found


def navigation_of(count: int, clusters: Sequence[ChainCluster]) -> list[Chains]:
    """The chains to leave out of each page: its cluster's, or for pages that no cluster took those of all clusters."""
    every = np.unique(np.concatenate([cluster.navigation for cluster in clusters])) if clusters else np.zeros(0, np.uint64)
    found = [every] * count
    for cluster in clusters:
        for page in cluster.pages:
            found[page] = cluster.navigation
    return found
