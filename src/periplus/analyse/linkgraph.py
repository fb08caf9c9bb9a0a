"""The link graph of a site: built from stored rows, arranged as a tree below the home page, and its external links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.errors import UsageError
from periplus.model.arrays import Floats, Ints, Ints32, Mask
from periplus.model.graph import REASONS, LinkGraph, LinkRows, UrlRows
from periplus.model.results import OTHER_PAGES, MapNode, SiteMap
from periplus.model.visit import FETCHED_REASONS, STATE_OF, Reason, State
from periplus.model.web import Url
from periplus.values import frozen

PAGES = frozenset(reason for reason in Reason if STATE_OF[reason] in (State.FETCHED, State.DISCOVERED)) - {
    Reason.RESOURCE
}
LOOKUP_BLOCK = 200_000  # ids per block; below this, binary search is faster than building buckets
Places = NDArray[np.signedinteger[Any]]  # 32-bit if the numbers fit
IS_FETCHED = np.array([reason in FETCHED_REASONS for reason in REASONS])
IS_PAGE = np.array([reason in PAGES for reason in REASONS])


def link_graph(urls: UrlRows, links: LinkRows, redirects: LinkRows) -> LinkGraph:
    """The pages among urls (of one site) and the links between them.

    links: of CLICK_KINDS. redirects: at most one per URL, of any site. Links to redirects are resolved to their end.
    Redirect loops, links from pages that were not fetched, links to unknown URLs and self-links are dropped; parallel
    links are merged. The order of rows does not matter. O(urls log urls + links log links).
    """
    page_rows = np.flatnonzero(IS_PAGE[urls.reasons])
    texts = [urls.texts[row] for row in page_rows.tolist()]
    # Canonical URLs are ASCII: text order is byte order
    by_text = np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64)
    rows = page_rows[by_text]
    fetched = IS_FETCHED[urls.reasons[rows]]
    ids = urls.ids[rows]
    targets, is_somewhere = resolve_redirects(links.targets, redirects)
    source = places(ids, links.sources[is_somewhere])
    target = places(ids, targets[is_somewhere])
    edges = (source >= 0) & (target >= 0) & (source != target)
    edges &= fetched[source] if len(fetched) else False
    count = len(rows)
    distinct = sort_distinct(source[edges] * count + target[edges])
    offsets = np.searchsorted(distinct, np.arange(count + 1, dtype=np.int64) * count)
    return LinkGraph(
        pages=[Url(texts[place]) for place in by_text.tolist()],
        offsets=offsets.astype(np.int64),
        targets=(distinct % max(count, 1)).astype(np.int32),
        fetched=fetched,
        depths=urls.depths[rows],
    )


class LinkTargets(NamedTuple):
    """Distinct links between pages, by source: page i links to targets[offsets[i]:offsets[i + 1]].

    targets: may be memory-mapped.
    """

    offsets: Ints
    targets: Places

    def runs(self, links_at_once: int) -> Iterator[slice]:
        """Consecutive slices of pages with at most this many links together, or of a single page."""
        count = len(self.offsets) - 1
        begin = 0
        while begin < count:
            after = int(np.searchsorted(self.offsets, self.offsets[begin] + links_at_once, "right")) - 1
            after = max(after, begin + 1)
            yield slice(begin, after)
            begin = after


def links_in_file(
    ids: Ints,
    fetched: Mask,
    blocks: Iterable[LinkRows],
    redirects: LinkRows,
    file: BinaryIO,
) -> LinkTargets:
    """The links of `link_graph`, with 30 bytes of memory per page and none per link; pages are numbered as in ids.

    ids: ascending. blocks: ascending by source, all links of a source in one block. file: empty; it must stay open as
    long as the result is used.
    """
    moved = np.sort(redirects.sources)
    ends, is_somewhere = resolve_redirects(moved, redirects)
    ends = np.where(is_somewhere, places_in_sorted(ids, ends), -1)
    count, links_out = len(ids), np.zeros(len(ids) + 1, np.int64)
    for block in blocks:
        source, target = places_in_sorted(ids, block.sources), places_in_sorted(ids, block.targets)
        redirect = places_in_sorted(moved, block.targets)
        target = np.where(redirect >= 0, ends[redirect], target) if len(moved) else target
        edges = (source >= 0) & (target >= 0) & (source != target)
        edges[edges] = fetched[source[edges]]
        distinct = sort_distinct(source[edges] * count + target[edges])
        np.add.at(links_out, distinct // max(count, 1) + 1, 1)
        file.write((distinct % max(count, 1)).astype(np.int32).tobytes())
    file.flush()
    offsets = np.cumsum(links_out)
    return LinkTargets(offsets, np.memmap(file, np.int32, "r") if offsets[-1] else np.zeros(0, np.int32))


def resolve_redirects(ids: Ints, redirects: LinkRows) -> tuple[Ints, Mask]:
    """(end of each id's redirects; False for ids in a redirect loop).

    redirects: at most one per source. Each round doubles the distance, so a chain of n takes log n rounds.
    """
    order = np.argsort(redirects.sources)
    sources, ends = redirects.sources[order], redirects.targets[order]
    following = places_in_sorted(sources, ends)  # index of the redirect at the end of this one; -1: none
    for _ in range(len(sources).bit_length()):
        goes_on = following >= 0
        ends = np.where(goes_on, ends[following], ends)
        following = np.where(goes_on, following[following], -1)
    first = places_in_sorted(sources, ids)
    moved = first >= 0
    if not len(sources):
        return ids, ~moved
    return np.where(moved, ends[first], ids), ~(moved & (following[first] >= 0))


def places(ids: Ints, queries: Ints) -> Ints:
    """The index of each query in ids, which are distinct; -1 if missing."""
    order = np.argsort(ids)
    positions = places_in_sorted(ids[order], queries)
    return np.where(positions >= 0, order[positions], -1) if len(ids) else positions


def places_in_sorted(ids: Ints, queries: Ints) -> Ints:
    """As `places`, for ascending ids."""
    if not len(ids):
        return np.full(len(queries), -1, np.int64)
    if len(queries) < LOOKUP_BLOCK:
        return _search_ids(ids, queries)
    first = _first_places(ids)
    blocks = [queries[start : start + LOOKUP_BLOCK] for start in range(0, len(queries), LOOKUP_BLOCK)]
    return np.concatenate([_search_buckets(ids, first, block) for block in blocks])


def _search_ids(ids: Ints, queries: Ints) -> Ints:
    place = np.searchsorted(ids, queries).clip(max=len(ids) - 1)
    return np.where(ids[place] == queries, place, -1)


def _first_places(ids: Ints) -> Ints32:
    """The index of the first id of each bucket, or 0 past the last id.

    A bucket is the leading bits of an id. Ids are digests, so with four to eight buckets per id most buckets have at
    most one.
    """
    bits = _bucket_bits(ids)
    counts = np.bincount((ids >> (64 - bits)) + (1 << (bits - 1)), minlength=1 << bits)
    begins = np.cumsum(counts) - counts
    return np.where(begins < len(ids), begins, 0).astype(np.int32)


def _bucket_bits(ids: Ints) -> int:
    return 2 + len(ids).bit_length()


def _search_buckets(ids: Ints, first: Ints32, queries: Ints) -> Ints:
    """As `_search_ids`, but tries the first id of the bucket first: 10 M queries among 1 M ids
    take 0.8 s instead of 3.8 s.
    """
    bits = _bucket_bits(ids)
    place: Ints = first[(queries >> (64 - bits)) + (1 << (bits - 1))].astype(np.int64)
    missed = np.flatnonzero(ids[place] != queries)
    place[missed] = _search_ids(ids, queries[missed])
    return place


def sort_distinct(values: Ints) -> Ints:
    """Distinct values, ascending. As np.unique, which takes 17 s for 11 M values instead of 0.3 s (NumPy 2.4)."""
    ascending = np.sort(values)
    return ascending[_firsts(ascending)]


def count_values(values: Ints) -> tuple[Ints, Ints]:
    """(distinct values, ascending; count of each)."""
    ascending = np.sort(values)
    begins = np.flatnonzero(_firsts(ascending))
    return ascending[begins], np.diff(np.append(begins, len(ascending))).astype(np.int64)


def _firsts(ascending: Ints) -> Mask:
    """Whether each value differs from the previous one."""
    first = np.ones(len(ascending), np.bool_)
    first[1:] = ascending[1:] != ascending[:-1]
    return first


# Relative: equal ranks differ by rounding (about 1e-15 per link); true differences are only known to 1e-9
TIE = 1e-12


def hierarchical_map(graph: LinkGraph, home: int, rank: Floats) -> SiteMap:
    """The tree of shortest click paths: each page's parent is one click nearer to the home page.

    graph: the fetched and discovered pages of one site. rank: float64[n], greater is better. If several pages of the
    previous depth link to a page, the one with the greatest rank is the parent; ranks closer than TIE are equal, and
    then the smaller URL wins, so that the map depends neither on the order of fetching nor on rounding. O(links + pages
    log pages). Raises UsageError if home is not a fetched page. Source: Rimnac, Susta, Zivnustka, Webmapa, (P1)-(P5).
    """
    if not 0 <= home < len(graph.pages):
        raise UsageError(
            f"page {home} is not among the {len(graph.pages)} pages of the graph: name a page that was crawled"
        )
    if not graph.fetched[home]:
        raise UsageError(
            f"{graph.pages[home]} was not fetched, and a map begins with a fetched page: name another home page"
        )
    order = by_precedence(rank)
    depth, parent, depths = depths_below(graph.offsets, graph.targets, np.array([home], np.int32), order)
    position, below = depth_first_places(parent, depths, order)
    reached = np.concatenate(depths)
    depth_first = np.empty(len(reached), np.int32)
    depth_first[position[reached]] = reached
    return SiteMap(home, depth.astype(np.int32), parent.astype(np.int32), depth_first, below)


def by_precedence(rank: Floats, site: Ints | None = None) -> Ints:
    """The pages by rank, descending, equal ranks by URL; with sites given, site by site.

    Ranks are equal if connected by steps smaller than TIE; they are never rounded, since that would separate neighbours
    at a boundary.
    """
    if len(rank) == 0:
        return np.zeros(0, np.int64)
    order = np.argsort(-rank) if site is None else np.lexsort((-rank, site))
    ordered = rank[order]
    steps = ordered[:-1] - ordered[1:] > TIE * np.abs(ordered[:-1])
    if site is not None:
        steps |= site[order[1:]] != site[order[:-1]]
    classes = np.concatenate(([0], np.cumsum(steps)))
    pages: Ints = np.sort(classes * len(rank) + order) % len(rank)
    return pages


def depths_below(
    offsets: Ints, targets: Places, homes: Places, order: Ints, links_at_once: int = 1 << 62
) -> tuple[Places, Places, list[Places]]:
    """(depth of each page, its parent, the pages by depth); -1: not reached, no parent.

    Reads each link once. offsets, targets: distinct links by source. order: the pages by precedence. links_at_once:
    most links processed together, except for a single page.
    """
    kind: type[np.signedinteger[Any]] = np.int32 if len(order) < 2**31 else np.int64
    precedence = np.empty(len(order), kind)
    precedence[order] = np.arange(len(order), dtype=kind)
    depth, parent = np.full(len(order), -1, kind), np.full(len(order), -1, kind)
    frontier = homes.astype(kind)
    depths: list[Places] = []
    while frontier.size:
        depth[frontier] = len(depths)
        depths.append(frontier)
        met = []
        # Best last: of several writes to one index the last remains
        for pages in _parts(offsets, frontier[np.argsort(-precedence[frontier])], links_at_once):
            sources, places = row_places(offsets, pages)
            children = targets[places]
            below = depth[children] < 0
            sources, children = sources[below], children[below]
            fresh = parent[children] < 0
            parent[children] = sources
            met.append(children[fresh & (parent[children] == sources)])  # links are distinct: each child once
        frontier = np.concatenate(met).astype(kind)
    return depth, parent, depths


def _parts(offsets: Ints, pages: Places, links_at_once: int) -> Iterator[Places]:
    ends = np.cumsum(offsets[pages + 1] - offsets[pages])
    begin = 0
    while begin < len(pages):
        before = int(ends[begin - 1]) if begin else 0
        after = max(int(np.searchsorted(ends, before + links_at_once, "right")), begin + 1)
        yield pages[begin:after]
        begin = after


def row_places(offsets: Ints, rows: Places) -> tuple[Places, Ints]:
    """(row, index) of every value in these rows of compressed sparse rows, in order."""
    starts = offsets[rows]
    counts = offsets[rows + 1] - starts
    shift = starts - (np.cumsum(counts) - counts)  # from the position in the result to the position in the rows
    return np.repeat(rows, counts), np.arange(counts.sum()) + np.repeat(shift, counts)


def depth_first_places(parent: Places, depths: Sequence[Places], by_precedence: Ints) -> tuple[Ints, Ints32]:
    """(depth-first position of each page in its tree, siblings by precedence; number of descendants).

    For one or several trees.
    """
    below = np.zeros(len(parent), np.int32)
    for pages in reversed(depths[1:]):
        np.add.at(below, parent[pages], below[pages] + 1)
    children = by_precedence[parent[by_precedence] >= 0]
    children = children[np.argsort(parent[children], kind="stable")]
    branch = below[children].astype(np.int64) + 1
    ahead = np.cumsum(branch) - branch
    first = np.diff(parent[children], prepend=-1) > 0  # the first child of each parent
    ahead -= np.repeat(ahead[first], np.diff(np.flatnonzero(np.append(first, True))))
    position = np.zeros(len(parent), np.int64)
    position[children] = ahead + 1  # relative to the parent's position; made absolute below
    for pages in depths[1:]:
        position[pages] += position[parent[pages]]
    return position, below


def shortest_way(graph: LinkGraph, source: int, target: int) -> list[int]:
    """A shortest path of links, including both ends; [] if there is none.

    Deterministic: every page is reached from the first page that links to it.
    """
    before = np.full(len(graph.pages), -1, np.int64)
    before[source] = source
    frontier = np.array([source], np.int64)
    while len(frontier) and before[target] < 0:
        sources, places = row_places(graph.offsets, frontier)
        ends = graph.targets[places]
        fresh = before[ends] < 0
        reached, rows = np.unique(ends[fresh], return_index=True)
        before[reached] = sources[fresh][rows]
        frontier = reached.astype(np.int64)
    if before[target] < 0:
        return []
    way = [target]
    while way[-1] != source:
        way.append(int(before[way[-1]]))
    return way[::-1]


def map_tree(
    site_map: SiteMap,
    rank: Floats,
    size_bytes: Ints,
    fetched: Mask,
    *,
    max_nodes: int = 60,
    max_depth: int = -1,
) -> MapNode:
    """Folds the map to at most max_nodes pages, each with the totals of its branch; the rest is summed in OTHERS nodes.

    Keeps the pages whose branches have most rank, so that a well linked single page outlasts a long tail of calendar
    days. Every page of the map is in exactly one node; a node's totals are the sum of its children and itself.
    size_bytes, fetched, rank: one value per page. max_depth: of named pages; -1: unlimited. The home page is always
    named.
    """
    order = site_map.order
    after = np.arange(1, len(order) + 1) + site_map.below[order]  # end of each branch
    # Integer ranks: sums are exact, and no branch exceeds its parent's
    unit = float(rank[order].sum()) / 2.0**50
    weights = np.rint(rank[order] / unit).astype(np.int64)
    own = np.stack([np.ones(len(order), np.int64), fetched[order], size_bytes[order], weights])
    totals = np.stack([_branch_totals(row, after) for row in own])
    allowed = np.flatnonzero((site_map.depth[order] <= max_depth) | (max_depth < 0))
    # Stable: of equal branches the earlier, which is the parent
    heaviest = np.argsort(-totals[3, allowed], kind="stable")[: max(max_nodes, 1)]
    shown = np.sort(allowed[heaviest])
    pages = order[shown]
    return _assemble(pages.tolist(), site_map.parent[pages].tolist(), totals[:, shown], own[:, shown], unit)


def _branch_totals(values: Ints, after: Ints) -> Ints:
    """Sum over each page's branch; values in depth-first order."""
    sums = np.concatenate(([0], np.cumsum(values)))
    totals: Ints = sums[after] - sums[:-1]
    return totals


def _assemble(pages: list[int], parents: list[int], totals: Ints, own: Ints, unit: float) -> MapNode:
    """Nodes of the pages, given in depth-first order; built backwards, so that children exist before their parents.

    totals, own: int64[4, pages], rows pages, fetched, bytes, rank in units.
    """
    waiting: dict[int, list[MapNode]] = {page: [] for page in pages}
    taken = {page: np.zeros(4, np.int64) for page in pages}  # totals of each page's named children
    for place in range(len(pages) - 1, -1, -1):
        page, parent, total = pages[place], parents[place], totals[:, place]
        left = total - own[:, place] - taken.pop(page)
        children = waiting.pop(page)[::-1]
        if left[0]:
            children.append(_node(OTHER_PAGES, left, unit, ()))
        node = _node(page, total, unit, tuple(children))
        if place:
            waiting[parent].append(node)
            taken[parent] += total
    return node


def _node(page: int, total: Ints, unit: float, children: tuple[MapNode, ...]) -> MapNode:
    pages, fetched, size_bytes, weight = total.tolist()
    return MapNode(page, pages, fetched, size_bytes, weight * unit, children)


# The list of external links, as specified for the site mapper (Rimnac, Susta, Zivnustka).


@frozen
class LinksOfDomains:
    """u URLs, m links between them by index."""

    domain: Ints  # u: number of the domain (or site)
    fetched: Mask  # u: fetched and analysed
    failed: Mask  # u: failed; by verdict if there is one
    sources: Ints  # m
    targets: Ints  # m


@frozen
class ExternalDomains:
    """k external domains, by linking pages, descending; ties by number."""

    domain: Ints  # k
    links: Ints  # k: links to it
    pages: Ints  # k: distinct pages with such links
    targets: Ints  # k: distinct URLs linked to
    rows: Ints  # indices of all these links, domain by domain in this order, then by target and source
    offsets: Ints  # k + 1: the rows of domain i are rows[offsets[i]:offsets[i + 1]]


def external_domains(rows_of: LinksOfDomains) -> ExternalDomains:
    """Links from fetched pages to URLs of other domains that did not fail, grouped by domain.

    O(m log m). A failed URL is an error of the site, therefore never listed as external.
    """
    outward = rows_of.domain[rows_of.sources] != rows_of.domain[rows_of.targets]
    rows = np.flatnonzero(outward & rows_of.fetched[rows_of.sources] & ~rows_of.failed[rows_of.targets])
    domain = rows_of.domain[rows_of.targets[rows]]
    names, group, links = np.unique(domain, return_inverse=True, return_counts=True)
    pages = _distinct(group, rows_of.sources[rows], len(names))
    targets = _distinct(group, rows_of.targets[rows], len(names))
    order = np.lexsort((names, -pages))
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    grouped = rows[np.lexsort((rows_of.sources[rows], rows_of.targets[rows], rank[group]))]
    offsets = np.concatenate(([0], np.cumsum(links[order])))
    return ExternalDomains(names[order], links[order], pages[order], targets[order], grouped, offsets)


def _distinct(group: Ints, values: Ints, groups: int) -> Ints:
    """The number of distinct values in each group."""
    if not len(values):
        return np.zeros(groups, np.int64)
    span = int(values.max()) + 1
    return np.bincount(np.unique(group * span + values) // span, minlength=groups)
