"""How often does each unit link to each, under each document model, and which are linked together or link alike?"""

from __future__ import annotations

import numpy as np

from periplus.analyse.linkgraph import distinct_sorted
from periplus.model.fragment import Ints, Mask, UnitLinks, WebFragment
from periplus.model.survey import DocumentModel
from periplus.model.webometrics import CoLink

BLOCK_ROWS = 500  # of co-links counted at once: with 10,000 sites at most 5 M pairs, 60 MB


def unit_links(fragment: WebFragment, model: DocumentModel) -> UnitLinks:
    """Every linked pair of units with its count of distinct document pairs; self-links are pairs of a unit with itself. O(links log links)."""
    units = max(len(fragment.units), 1)
    source, end = fragment.sources, fragment.ends
    if model in (DocumentModel.DIRECTORY, DocumentModel.HOST):
        number = (fragment.directory if model is DocumentModel.DIRECTORY else fragment.host).astype(np.int64)
        source, end = _distinct_documents(fragment, number)
    pairs = fragment.unit[source].astype(np.int64) * units + fragment.unit[end]
    distinct, counts = counted(pairs)
    counts = np.ones_like(counts) if model is DocumentModel.SITE else counts
    return UnitLinks(model, (distinct // units).astype(np.int32), (distinct % units).astype(np.int32), counts)


def counted(values: Ints) -> tuple[Ints, Ints]:
    """(each value once, ascending; how often it stands there)."""
    ascending = np.sort(values)
    first = np.ones(len(ascending), np.bool_)
    first[1:] = ascending[1:] != ascending[:-1]
    begins = np.flatnonzero(first)
    return ascending[begins], np.diff(np.append(begins, len(ascending))).astype(np.int64)


def _distinct_documents(fragment: WebFragment, number: Ints) -> tuple[Ints, Ints]:
    """One link of each pair of directories or hosts, without those from one to itself."""
    count = int(number.max()) + 1 if len(number) else 1
    source, end = number[fragment.sources], number[fragment.ends]
    other = source != end
    keys = distinct_sorted(source[other] * count + end[other])
    some = np.zeros(count, np.int64)  # a document of each number stands for it
    some[number] = np.arange(len(number))
    return some[keys // count], some[keys % count]


def between(links: UnitLinks, kept: Mask) -> UnitLinks:
    """The links between the units that are kept, self-links left out; kept: one value a unit."""
    chosen = kept[links.sources] & kept[links.ends] & (links.sources != links.ends)
    return UnitLinks(links.model, links.sources[chosen], links.ends[chosen], links.counts[chosen])


def matrix(links: UnitLinks, size: int) -> Ints:
    """int64[size, size] of the first units, row = source, self-links on the diagonal."""
    table = np.zeros((size, size), np.int64)
    inside = (links.sources < size) & (links.ends < size)
    table[links.sources[inside], links.ends[inside]] = links.counts[inside]
    return table


def co_inlinks(links: UnitLinks, chosen: int, left_out: Mask | None = None, most: int | None = None) -> tuple[CoLink, ...]:
    """For each two of the first `chosen` units, how many other sites link to both; the first `most` pairs of most sites. left_out: sites that do not count."""
    return _together(links.sources.astype(np.int64), links.ends.astype(np.int64), (chosen, most), left_out)


def couplings(links: UnitLinks, chosen: int, left_out: Mask | None = None, most: int | None = None) -> tuple[CoLink, ...]:
    """For each two of the first `chosen` units, how many other sites both link to; otherwise the same."""
    return _together(links.ends.astype(np.int64), links.sources.astype(np.int64), (chosen, most), left_out)


def _together(around: Ints, members: Ints, limits: tuple[int, int | None], left_out: Mask | None) -> tuple[CoLink, ...]:
    """Pairs of members that share an `around`. limits: members are less than the first; so many pairs at most.

    A product of the matrix with itself, BLOCK_ROWS of it at a time, so that a thousand sites which all link to all need no list of pairs.
    """
    from scipy.sparse import csr_array

    chosen, most = limits
    kept = (members < chosen) & (around != members)
    if left_out is not None:
        kept &= ~left_out[around]
    around, members = around[kept], members[kept]
    width = int(around.max()) + 1 if len(around) else 1
    links = csr_array((np.ones(len(members), np.int32), (members, around)), shape=(chosen, width))
    back = links.T.tocsr()
    found: list[CoLink] = []
    for start in range(0, chosen, BLOCK_ROWS):
        part = (links[start : start + BLOCK_ROWS] @ back).tocoo()
        first, second = part.coords[0] + start, part.coords[1]
        later = first < second
        first, second, counts = first[later], second[later], part.data[later]
        order = np.lexsort((second, first, -counts))[:most]
        found += map(CoLink, first[order].tolist(), second[order].tolist(), counts[order].tolist())
    return tuple(sorted(found, key=lambda pair: (-pair.sites, pair.first, pair.second))[:most])
