"""Where do redirects lead, hop by hop?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.linkgraph import places_in_sorted

Ids = NDArray[np.int64]


class ChainRole(StrEnum):
    """A row's place in its chain."""

    REQUESTED = "requested"
    INTERMEDIATE = "intermediate"
    FINAL = "final"
    LOOP = "loop"  # stood in the chain before: the redirects never end


@dataclass(frozen=True, slots=True)
class ChainRow:
    """One URL of one chain of redirects. A chain's rows follow one another; order counts from 0."""

    chain_id: int  # the id of the URL that was asked for, so it means the same in the next run
    order: int
    url_id: int
    status: int  # of a redirect its own, of the last URL what it answered; 0: not asked
    role: ChainRole


@dataclass(frozen=True, slots=True)
class RedirectColumns:
    """r redirects as they are known: source answers status and names target. At most one a source, in any order."""

    sources: Ids
    targets: Ids
    statuses: NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class ChainEnds:
    """Where each redirect ends, in the order of RedirectColumns."""

    ends: Ids  # the last URL; in a loop: some URL of it
    hops: NDArray[np.int32]  # redirects until there, 1 or more
    loops: NDArray[np.bool_]  # never ends
    permanent: NDArray[np.bool_]  # each hop is a 301 or 308


def chain_ends(redirects: RedirectColumns) -> ChainEnds:
    """Follows all redirects at once, twice as far in each round: O(r log r) however long the chains are."""
    order = np.argsort(redirects.sources, kind="stable")
    sources, ends = redirects.sources[order], redirects.targets[order].copy()
    permanent = np.isin(redirects.statuses[order], (301, 308))
    hops = np.ones(len(order), np.int64)
    following = places_in_sorted(sources, ends)
    for _ in range(len(order).bit_length()):
        on = np.flatnonzero(following >= 0)
        if not on.size:
            break
        step = following[on]
        ends[on], hops[on], permanent[on] = ends[step], np.minimum(hops[on] + hops[step], len(order)), permanent[on] & permanent[step]
        following[on] = following[step]
    loops = following >= 0
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return ChainEnds(ends[back], hops[back].astype(np.int32), loops[back], permanent[back])


def chain_rows(redirects: RedirectColumns, final_status: dict[int, int], wanted: Ids | None = None) -> Iterator[ChainRow]:
    """The chains as tidy rows, one a URL, the requested one first. Cost: the rows.

    wanted: ids of requested URLs; None: those redirects that no other redirect leads to, so that each chain is told once from
    its beginning, and of each loop that nothing leads into, its smallest id. final_status: what ids that do not redirect
    answered; not in it: 0.
    """
    hop = {source: (target, status) for source, target, status in zip(*_lists(redirects), strict=True)}
    for start in _starts(hop) if wanted is None else wanted.tolist():
        if start not in hop:
            continue
        place = start
        met: set[int] = set()
        while place in hop and place not in met:
            yield ChainRow(start, len(met), place, hop[place][1], ChainRole.INTERMEDIATE if met else ChainRole.REQUESTED)
            met.add(place)
            place = hop[place][0]
        role, status = (ChainRole.LOOP, hop[place][1]) if place in met else (ChainRole.FINAL, final_status.get(place, 0))
        yield ChainRow(start, len(met), place, status, role)


def _lists(redirects: RedirectColumns) -> tuple[list[int], list[int], list[int]]:
    return redirects.sources.tolist(), redirects.targets.tolist(), redirects.statuses.tolist()


def _starts(hop: dict[int, tuple[int, int]]) -> Iterator[int]:
    """Ascending: redirects that nothing leads to, then one of each loop that is reached from none of these."""
    led_to = {target for target, _ in hop.values()}
    seen: set[int] = set()
    for loops in (False, True):
        for start in sorted(hop):
            if start in seen or (start in led_to and not loops):
                continue
            yield start
            place = start
            while place in hop and place not in seen:
                seen.add(place)
                place = hop[place][0]
