"""Finds who is near a page, a directory or a site, by links in either direction, and who of them counts most."""

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

MENU_SHARE = 0.5  # of a site's fetched pages that link to a page: then the link is one of its menu, wherever it stands
MENU_PAGES = 10  # of a smaller site no such share is told
EXPANDED = 2_000  # neighbours whose own neighbours are looked for: of a home page a million would be asked


class Grouping(StrEnum):
    """What one node of a neighbourhood stands for."""

    PAGE = "page"
    DIRECTORY = "directory"
    SITE = "site"


@frozen
class NeighbourhoodQuery:
    """Of which neighbourhood is asked. middle: a node; steps: 1 or 2; most: nodes that are named, the middle apart."""

    middle: int
    steps: int = 1
    most: int = 60


@frozen
class Web:
    """k nodes, each standing for pages of a book, and the links between them that count.

    links: (nodes, into) -> (node, other end, links) of each pair with links to (into) or from the
    nodes; never to themselves.
    """

    groups: Ints  # u: the node of each URL
    best: Ints  # k: its URL of greatest rank
    pages: Ints  # k: URLs that it stands for
    fetched: Ints  # k: of them
    weight: Floats  # k: the sum of their ranks
    links: Callable[[Ints, bool], tuple[Ints, Ints, Ints]]


@frozen
class Near:
    """A node.

    place: its URL, of several the one of greatest rank; links_here, linked: links from it to the middle,
    and from the middle to it.
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
    """Nodes, the middle first, then by step and rank; links between them as (source, end, links) by place in nodes,
    most links first.

    neighbours: how many there are within the steps; bounded: at least so many, for not all were followed.
    """

    nodes: tuple[Near, ...]
    links: tuple[tuple[int, int, int], ...]
    neighbours: int
    bounded: bool


def web_of(book: InlinkIndex, grouping: Grouping, *, menus: bool) -> Web:
    """The nodes of a book.

    menus: whether links of menus count. Of pages at once; else it looks at each link: 1 s for ten million.
    """
    menu = _menu_ends(book)
    count = len(book.ids)
    if grouping is Grouping.PAGE:
        every, one = np.arange(count), np.ones(count, np.int64)
        return Web(
            every,
            every,
            one,
            book.fetched.astype(np.int64),
            book.rank.astype(np.float64),
            partial(_page_links, book, menu, menus),
        )
    groups = book.sites if grouping is Grouping.SITE else book.directories
    nodes = int(groups.max()) + 1 if count else 0
    # of several writes to one place the last stays: the greatest rank's
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
    """Of each URL, whether so many fetched pages of its site link to it that the links are a menu's.

    Links from other sites count too, for they are few.
    """
    mine = np.bincount(book.sites, book.fetched)[book.sites] if len(book.sites) else np.zeros(0)
    is_menu: Mask = (mine >= MENU_PAGES) & (np.diff(book.in_offsets) >= MENU_SHARE * mine)
    return is_menu


def _counts(ends: Unsigned32, of: Ints, menu: Mask, menus: bool, *, into: bool) -> tuple[Mask, Ints]:
    """(which of the links to or from `of` count, their other ends)."""
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
    """Links between nodes, counted.

    source: the node that each link leaves; without: whose links are a menu's, None: menus count. In the narrow types of
    the book: widened, ten million links take twice as long.
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


def neighbourhood(web: Web, asked: NeighbourhoodQuery) -> Neighbourhood:
    """The middle and its nearest, of more than asked.most those of greatest rank, nearer ones first."""
    middle = np.array([asked.middle])
    (_, here, many_here), (_, linked, many_linked) = web.links(middle, True), web.links(middle, False)
    first = np.union1d(here, linked)
    steps = {asked.middle: 0} | dict.fromkeys(_best(first, web, asked.most), 1)
    total, bounded = len(first), False
    if asked.steps > 1:
        chosen = first[np.argsort(-web.weight[first], kind="stable")][:EXPANDED]
        further = np.setdiff1d(
            np.union1d(web.links(chosen, True)[1], web.links(chosen, False)[1]), np.append(first, asked.middle)
        )
        bounded = len(chosen) < len(first)
        total += len(further)
        steps |= dict.fromkeys(_best(further, web, asked.most + 1 - len(steps)), 2)
    counts = [
        dict(zip(ends.tolist(), many.tolist(), strict=True))
        for ends, many in ((here, many_here), (linked, many_linked))
    ]
    nodes = tuple(
        Near(
            int(web.best[n]),
            step,
            int(web.pages[n]),
            int(web.fetched[n]),
            float(web.weight[n]),
            counts[0].get(n, 0),
            counts[1].get(n, 0),
        )
        for n, step in steps.items()
    )
    return Neighbourhood(nodes, _between(web, np.array(list(steps))), total, bounded)


def _best(nodes: Ints, web: Web, most: int) -> list[int]:
    """Those of greatest weight, equal ones by number, which no order of fetching decides."""
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
    """The links between pages as the analyses take them. Its pages have no names and stand by id."""
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
