"""Finds the neighbourhood of a page, directory or site by links in both directions, ranked."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial

import numpy as np
from scipy import sparse

from periplus.analyse.linkgraph import row_places
from periplus.model.arrays import Floats, Ints, Ints32, Mask, Unsigned32
from periplus.model.graph import NAV, PART, InlinkIndex, LinkGraph, place_of_ends
from periplus.model.web import Url
from periplus.values import frozen

# A page linked from this share of its site's fetched pages is in a menu, regardless of where the link is
MENU_SHARE = 0.5
MENU_PAGES = 10  # smaller sites are too small for this estimate
MOST_EXPANSIONS = 2_000  # neighbours that are expanded in the second step: a home page may have a million


class Grouping(StrEnum):
    """What a node represents."""

    PAGE = "page"
    DIRECTORY = "directory"
    SITE = "site"


@frozen
class Web:
    """k nodes, each for a set of pages of a book, and the links between them.

    links: (nodes, into) -> (node, other end, links) for each pair with links to (into) or from the nodes, without
    self-links.
    """

    groups: Ints  # u: node of each URL
    best: Ints  # k: the URL with the greatest rank
    pages: Ints  # k: number of URLs
    fetched: Ints  # k: fetched URLs
    weight: Floats  # k: sum of ranks
    links: Callable[[Ints, bool], tuple[Ints, Ints, Ints]]


@frozen
class Near:
    """A node of the result.

    place: its URL with the greatest rank. links_here, linked: links from it to the middle, and from the middle to it.
    """

    place: int
    step: int  # 0: the middle
    pages: int
    fetched: int
    rank: float
    links_here: int
    linked: int


@frozen
class Neighbourhood:
    """Nodes: the middle first, then by step and rank.

    Links between them as (source, end, links) by index in nodes, most links first.

    neighbours: their number within the steps. bounded: neighbours is a lower bound, because not all were expanded.
    """

    nodes: tuple[Near, ...]
    links: tuple[tuple[int, int, int], ...]
    neighbours: int
    bounded: bool


def web_of(book: InlinkIndex, grouping: Grouping, *, menus: bool) -> Web:
    """The nodes of a book.

    menus: whether links in menus count. Immediate for pages; for other groupings it reads each link: 1 s for ten
    million.
    """
    menu = _menu_ends(book)
    count = len(book.ids)
    if grouping is Grouping.PAGE:
        every, ones = np.arange(count), np.ones(count, np.int64)
        return Web(
            every,
            every,
            ones,
            book.fetched.astype(np.int64),
            book.rank.astype(np.float64),
            partial(_page_links, book, menu, menus),
        )
    groups = book.sites if grouping is Grouping.SITE else book.directories
    nodes = int(groups.max()) + 1 if count else 0
    # of several writes to one index the last remains: the greatest rank
    by_rank = np.lexsort((-np.arange(count), book.rank))
    best = np.full(nodes, -1, np.int64)
    best[groups[by_rank]] = by_rank
    pages, fetched = (np.bincount(groups, values, nodes).astype(np.int64) for values in (np.ones(count), book.fetched))
    joined = _matrix(np.repeat(groups, np.diff(book.out_offsets)), book, groups, menu if not menus else None)
    return Web(
        groups.astype(np.int64),
        best,
        pages,
        fetched,
        np.bincount(groups, book.rank, nodes).astype(np.float64),
        partial(_node_links, joined, joined.T.tocsr()),
    )


def _menu_ends(book: InlinkIndex) -> Mask:
    """Whether each URL is linked from so many fetched pages of its site that the links are in a menu.

    Links from other sites are included; they are few.
    """
    mine = np.bincount(book.sites, book.fetched)[book.sites] if len(book.sites) else np.zeros(0)
    is_menu: Mask = (mine >= MENU_PAGES) & (np.diff(book.in_offsets) >= MENU_SHARE * mine)
    return is_menu


def _counts(ends: Unsigned32, of: Ints, menu: Mask, menus: bool, *, into: bool) -> tuple[Mask, Ints]:
    """(mask of the links to or from `of` that count, their other ends)."""
    places = place_of_ends(ends)
    counted = ((ends & np.uint32(PART)) == 0) & (places != of)
    if not menus:
        counted &= ((ends & np.uint32(NAV)) == 0) & ~menu[of if into else places]
    return counted, places


def _page_links(book: InlinkIndex, menu: Mask, menus: bool, nodes: Ints, into: bool) -> tuple[Ints, Ints, Ints]:
    offsets, ends = (book.in_offsets, book.in_ends) if into else (book.out_offsets, book.out_ends)
    of, rows = row_places(offsets, nodes)
    counted, places = _counts(ends[rows], of, menu, menus, into=into)
    return of[counted], places[counted], np.ones(int(counted.sum()), np.int64)


def _matrix(source: Ints32, book: InlinkIndex, groups: Ints32, without: Mask | None) -> sparse.csr_array:
    """Number of links between nodes.

    source: source node of each link. without: URLs whose incoming links are menu links; None: menus count. Keeps the
    narrow types of the book: widened, ten million links take twice as long.
    """
    ends = book.out_ends
    places = ends >> np.uint32(2)
    end = groups[places]
    counted = (source != end) & ((ends & np.uint32(PART)) == 0)
    if without is not None:
        counted &= ((ends & np.uint32(NAV)) == 0) & ~without[places]
    nodes = int(groups.max()) + 1 if len(groups) else 0
    source, end = source[counted], end[counted]
    return sparse.coo_array((np.ones(len(source), np.int64), (source, end)), shape=(nodes, nodes)).tocsr()


def _node_links(out: sparse.csr_array, back: sparse.csr_array, nodes: Ints, into: bool) -> tuple[Ints, Ints, Ints]:
    matrix = back if into else out
    of, rows = row_places(matrix.indptr.astype(np.int64), nodes)
    return of, matrix.indices[rows].astype(np.int64), matrix.data[rows]


def neighbourhood(web: Web, centre: int, steps: int = 1, most: int = 60) -> Neighbourhood:
    """The central node and its neighbours within 1 or 2 steps; at most `most`, greatest rank first, step 1 before 2."""
    middle = np.array([centre])
    (_, here, many_here), (_, linked, many_linked) = web.links(middle, True), web.links(middle, False)
    first = np.union1d(here, linked)
    step_of = {centre: 0} | dict.fromkeys(_best(first, web, most), 1)
    total, bounded = len(first), False
    if steps > 1:
        chosen = first[np.argsort(-web.weight[first], kind="stable")][:MOST_EXPANSIONS]
        further = np.setdiff1d(
            np.union1d(web.links(chosen, True)[1], web.links(chosen, False)[1]), np.append(first, centre)
        )
        bounded = len(chosen) < len(first)
        total += len(further)
        step_of |= dict.fromkeys(_best(further, web, most + 1 - len(step_of)), 2)
    links_here, links_out = (
        dict(zip(ends.tolist(), many.tolist(), strict=True))
        for ends, many in ((here, many_here), (linked, many_linked))
    )
    nodes = tuple(
        Near(
            int(web.best[n]),
            step,
            int(web.pages[n]),
            int(web.fetched[n]),
            float(web.weight[n]),
            links_here.get(n, 0),
            links_out.get(n, 0),
        )
        for n, step in step_of.items()
    )
    return Neighbourhood(nodes, _between(web, np.array(list(step_of))), total, bounded)


def _best(nodes: Ints, web: Web, most: int) -> list[int]:
    """The nodes with the greatest weight; ties by number, independent of the order of fetching."""
    heaviest: list[int] = nodes[np.lexsort((nodes, -web.weight[nodes]))][: max(most, 0)].tolist()
    return heaviest


def _between(web: Web, shown: Ints) -> tuple[tuple[int, int, int], ...]:
    source, end, many = web.links(shown, False)
    order = np.argsort(shown)
    place = np.searchsorted(shown[order], end).clip(max=len(shown) - 1)
    inside = shown[order][place] == end
    begin = order[np.searchsorted(shown[order], source[inside])]
    rows = zip(begin.tolist(), order[place[inside]].tolist(), many[inside].tolist(), strict=True)
    return tuple(sorted(rows, key=lambda row: (-row[2], row[0], row[1])))


def book_graph(book: InlinkIndex) -> LinkGraph:
    """The link graph of the pages, without names: pages are identified by index."""
    source = np.repeat(np.arange(len(book.ids)), np.diff(book.out_offsets))
    places = place_of_ends(book.out_ends)
    counted = ((book.out_ends & np.uint32(PART)) == 0) & (places != source)
    counts = np.bincount(source[counted], minlength=len(book.ids))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return LinkGraph(
        [Url("")] * len(book.ids),
        offsets,
        places[counted].astype(np.int32),
        book.fetched,
        np.full(len(book.ids), -1, np.int32),
    )
