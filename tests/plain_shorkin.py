"""Shorkin's rules D3 to D6 exactly as published, comparing all pairs: the slow twin of `analyse.shorkin`."""

from __future__ import annotations

from itertools import combinations

from periplus.model.duplicates import TemplateRules

Set = frozenset[int]


def size(chains: Set) -> int:
    """Size in bytes: the sum of the lower halves of the numbers."""
    return sum(chain & 0xFFFFFFFF for chain in chains)


def plain_clusters(pages: list[Set], rules: TemplateRules) -> list[tuple[tuple[int, ...], Set]]:
    """(pages in the order of joining, navigation part) of each cluster."""
    left, found, percent = set(range(len(pages))), [], rules.min_nav_length
    while percent >= rules.least_nav_length and len(left) >= rules.cluster_pages:
        live = set(left)
        while len(live) >= rules.cluster_pages and (pair := best_pair(pages, live, rules)):
            cluster, navigation = grown(pages, pair, live, percent)
            live -= set(cluster)
            if len(cluster) >= rules.cluster_pages:
                left -= set(cluster)
                found.append((cluster, navigation))
        percent -= rules.nav_length_step
    return found


def best_pair(pages: list[Set], live: set[int], rules: TemplateRules) -> tuple[int, int] | None:
    pairs = [
        (size(pages[a] & pages[b]), -a, -b)
        for a, b in combinations(sorted(live), 2)
        if 0 < 100 * size(pages[a] & pages[b]) <= rules.duplicates * size(pages[a] | pages[b])
    ]
    return (-max(pairs)[1], -max(pairs)[2]) if pairs else None


def grown(pages: list[Set], pair: tuple[int, int], live: set[int], percent: int) -> tuple[tuple[int, ...], Set]:
    cluster, navigation = pair, pages[pair[0]] & pages[pair[1]]
    needed = percent * size(navigation) / 100
    while others := live - set(cluster):
        most, page = max((size(navigation & pages[page]), -page) for page in others)
        if most < needed:
            break
        cluster, navigation = (*cluster, -page), navigation & pages[-page]
    return cluster, navigation
