"""The engine for a single machine: holds a few numbers per URL in memory and streams the links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from periplus.analyse.linkgraph import (
    LinkTargets,
    by_precedence,
    depth_first_places,
    depths_below,
    resolve_redirects,
    sort_distinct,
)
from periplus.errors import NotConverged, StoreError
from periplus.model.arrays import Floats, Ints
from periplus.model.graph import LinkRows
from periplus_spark.alike import (
    CHECKED_LINKS,
    CLICKS,
    FOLLOWED_LINKS,
    UrlVectors,
    cascades,
    directory_hashes,
    duplicates,
    end_vector,
    homes,
    near,
    sketches,
    url_vectors,
)
from periplus_spark.files import (
    Engine,
    Span,
    StageParameters,
    StageTask,
    blocks,
    flags,
    numbers,
    stored_ranks,
    text_mask,
)

FILES = 64  # open at once
WAITING = 1 << 22  # numbers buffered before counting: 64 MB with their counts
LINKS_AT_ONCE = 1 << 22  # per step of a map: 100 MB
MODELS = ("page", "directory", "site")


def distinct_of(blocks: Iterable[Ints], most: int, scratch: Path) -> Iterator[Ints]:
    """Yields the distinct numbers in ascending blocks.

    The numbers are partitioned by size into FILES files below scratch, and each file is read as a whole.

    most: greater than all numbers, which should be evenly distributed below it.
    """
    folder = scratch / "dealt"
    folder.mkdir()
    width = -(-most // FILES)
    with ExitStack() as opened:
        files = [opened.enter_context((folder / str(number)).open("wb")) for number in range(FILES)]
        for block in blocks:
            ascending = sort_distinct(block)
            cuts = np.searchsorted(ascending, np.arange(1, FILES) * width)
            for file, part in zip(files, np.split(ascending, cuts), strict=True):
                file.write(part.tobytes())
    for number in range(FILES):
        yield sort_distinct(np.fromfile(folder / str(number), np.int64))


class NumberTally:
    """Counts how often each number occurs. Memory: the distinct numbers and WAITING more."""

    def __init__(self) -> None:
        self._known = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._waiting: list[Ints] = []
        self._rows = 0

    def add(self, values: Ints) -> None:
        self._waiting.append(values)
        self._rows += len(values)
        if self._rows >= WAITING:
            self._merge()

    def counts(self) -> tuple[Ints, Ints]:
        """(distinct numbers, ascending; count of each)."""
        self._merge()
        return self._known

    def _merge(self) -> None:
        values = np.concatenate([self._known[0], *self._waiting])
        times = np.concatenate([self._known[1], np.ones(len(values) - len(self._known[0]), np.int64)])
        order = np.argsort(values, kind="stable")
        values, times = values[order], times[order]
        begins = np.flatnonzero(np.diff(values, prepend=-1))
        self._known = values[begins], np.add.reduceat(times, begins) if len(begins) else times
        self._waiting, self._rows = [], 0


def ends(task: StageTask) -> None:
    redirects = LinkRows(numbers(task.dataset, "redirects", "source"), numbers(task.dataset, "redirects", "target"))
    end, is_somewhere = resolve_redirects(redirects.sources, redirects)
    task.write("ends", {"source": redirects.sources, "end": np.where(is_somewhere, end, -1)})


def graph(task: StageTask) -> None:
    urls = url_vectors(task.dataset)
    end = end_vector(task.folders["ends"], len(urls.site))
    home = homes(end[flags(task.dataset, "urls", "is_start")], urls)
    write_graph(task, urls, end, home, Span("source", 0, len(end)))


def write_graph(task: StageTask, urls: UrlVectors, end: Ints, home: Ints, sources: Span) -> None:
    """Writes the nodes among these URLs and their outgoing edges."""
    pages = np.flatnonzero(urls.page[sources.first : sources.after]) + sources.first
    nodes = {"url": pages, "site": urls.site[pages], "fetched": urls.fetched[pages], "home": np.isin(pages, home)}
    task.write("nodes", nodes)
    with task.writer("edges") as writer:
        for source, target in _whole_sources(_edges(task, urls, end, sources), max(len(end), 1)):
            writer.add({"source": source, "target": target, "inside": urls.site[source] == urls.site[target]})


def _edges(task: StageTask, urls: UrlVectors, end: Ints, sources: Span) -> Iterator[tuple[Ints, Ints]]:
    for source, target in _links(task, CLICKS, sources):
        led = end[target]
        followed = (led >= 0) & (source != led) & urls.fetched[source]
        followed &= urls.page[led]  # -1 indexes the last URL, but is already excluded
        yield source[followed], led[followed]


def _links(task: StageTask, kinds: list[str], sources: Span | None = None) -> Iterator[tuple[Ints, Ints]]:
    for block in blocks(task.dataset, "links", ["source", "target", "kind"], span=sources):
        of_kinds = text_mask(block, "kind", kinds)
        yield np.asarray(block.column(0), np.int64)[of_kinds], np.asarray(block.column(1), np.int64)[of_kinds]


def _whole_sources(edges: Iterator[tuple[Ints, Ints]], span: int) -> Iterator[tuple[Ints, Ints]]:
    """Yields the distinct pairs, ascending.

    Links come sorted by source, so only a source that a block splits has to be held back. Raises StoreError if they are
    not sorted.
    """
    left = np.zeros(0, np.int64)
    last = -1
    for source, target in edges:
        pairs = sort_distinct(np.concatenate([left, source * span + target]))
        if len(pairs) and pairs[0] <= last:
            raise StoreError("the dataset's links are not sorted by source, as its columns specify: export it again")
        cut = int(np.searchsorted(pairs, pairs[-1] // span * span)) if len(pairs) else 0
        pairs, left = pairs[:cut], pairs[cut:]
        last = int(pairs[-1]) if len(pairs) else last
        yield pairs // span, pairs % span
    yield left // span, left % span


class _Nodes(NamedTuple):
    """The URLs that are pages."""

    pages: Ints  # numbers of the URLs, ascending
    place: Ints  # for each URL, its index in pages
    group: Ints  # for each page: the group within which a random jump from a dead end stays


def _nodes(task: StageTask, *, by_site: bool) -> _Nodes:
    folder = task.folders["graph"]
    pages = numbers(folder, "nodes", "url")
    place = np.zeros(int(pages.max(initial=-1)) + 1, np.int64)
    place[pages] = np.arange(len(pages))
    group = numbers(folder, "nodes", "site") if by_site else np.zeros(len(pages), np.int64)
    return _Nodes(pages, place, group)


def _placed_edges(task: StageTask, nodes: _Nodes, *, inside: bool) -> Iterator[tuple[Ints, Ints]]:
    for block in blocks(task.folders["graph"], "edges", ["source", "target", "inside"]):
        source, target = (nodes.place[np.asarray(block.column(at), np.int64)] for at in (0, 1))
        is_inside = np.asarray(block.column(2), np.bool_)
        yield (source[is_inside], target[is_inside]) if inside else (source, target)


def links_by_source(edges: Iterable[tuple[Ints, Ints]], pages: int, path: Path) -> LinkTargets:
    """Stores the targets in a file as small integers, so that rounds need not decode Parquet again.

    edges: (sources, targets), indices of pages, ascending by source. path: file for the targets.
    """
    kind = np.int32 if pages < 2**31 else np.int64
    counts = np.zeros(pages + 1, np.int64)
    with path.open("wb") as file:
        for source, target in edges:
            np.add.at(counts, source + 1, 1)
            file.write(target.astype(kind).tobytes())
    offsets = np.cumsum(counts)
    return LinkTargets(offsets, np.memmap(path, kind, "r") if offsets[-1] else np.zeros(0, np.int64))


def ranks(task: StageTask) -> None:
    _ranks(task, by_site=True)


def web_ranks(task: StageTask) -> None:
    _ranks(task, by_site=False)


def _ranks(task: StageTask, *, by_site: bool) -> None:
    nodes = _nodes(task, by_site=by_site)
    edges = _placed_edges(task, nodes, inside=by_site)
    links = links_by_source(edges, len(nodes.pages), task.scratch / "targets")
    task.write("ranks", {"url": nodes.pages, "rank": scores_in(links, nodes.group, task.order)})


def scores_in(links: LinkTargets, group: Ints, order: StageParameters) -> Floats:
    """PageRank of all groups at once: 60 bytes per page.

    group: of each page; random jumps from dead ends stay within it, and its scores sum to 1. Raises NotConverged.
    """
    count, groups = len(group), int(group.max(initial=-1)) + 1
    links_out = np.diff(links.offsets)
    sinks = np.flatnonzero(links_out == 0)
    share = np.divide(order.damping, links_out, out=np.zeros(count), where=links_out > 0)
    size = np.maximum(np.bincount(group, minlength=groups), 1)
    scores = np.ones(count)
    residual, done = np.inf, 0
    while done < order.max_rounds and residual > order.tolerance:
        lost = order.damping * np.bincount(group[sinks], scores[sinks], groups) / size
        fresh = (1 - order.damping + lost)[group]
        flow = scores * share
        for pages in links.runs(LINKS_AT_ONCE):
            own = slice(links.offsets[pages.start], links.offsets[pages.stop])
            np.add.at(fresh, links.targets[own], np.repeat(flow[pages], links_out[pages]))
        change = np.bincount(group, np.abs(fresh - scores), groups) / size
        scores, residual, done = fresh, float(change.max(initial=0.0)), done + 1
    if residual > order.tolerance:
        raise NotConverged("PageRank", done, residual)
    scores /= np.bincount(group, scores, groups)[group]
    return scores


def site_map(task: StageTask) -> None:
    nodes = _nodes(task, by_site=True)
    rank = stored_ranks(task.folders["ranks"])
    home = np.flatnonzero(flags(task.folders["graph"], "nodes", "home"))
    edges = _placed_edges(task, nodes, inside=True)
    links = links_by_source(edges, len(nodes.pages), task.scratch / "targets")
    order = by_precedence(rank, nodes.group)
    depth, parent, depths = depths_below(links.offsets, links.targets, home, order, LINKS_AT_ONCE)
    place, below = depth_first_places(parent, depths, order)
    reached = np.flatnonzero(depth >= 0)
    above = np.where(parent[reached] >= 0, nodes.pages[parent[reached]], -1)
    rows = (nodes.pages[reached], depth[reached], above, below[reached], place[reached])
    task.write("map", dict(zip(("url", "depth", "parent", "below", "place"), rows, strict=True)))


def broken_links_stage(task: StageTask) -> None:
    urls = url_vectors(task.dataset)
    end = end_vector(task.folders["ends"], len(urls.site))
    with task.writer("broken") as writer:
        for block in blocks(task.dataset, "links", ["source", "target", "kind", "position"]):
            source, target = np.asarray(block.column(0), np.int64), np.asarray(block.column(1), np.int64)
            led = end[target]
            rows = np.flatnonzero(
                text_mask(block, "kind", CHECKED_LINKS) & urls.fetched[source] & (led >= 0) & urls.failed[led]
            )
            words = {name: block.column(name).take(rows) for name in ("kind", "position")}
            writer.add({"source": source[rows], "target": target[rows], "end": led[rows], **words})


def external(task: StageTask) -> None:
    """Counts links, and distinct targets, as links stream; and pages, since the links of a page are consecutive."""
    urls = url_vectors(task.dataset)
    end = end_vector(task.folders["ends"], len(urls.site))
    count = int(urls.site.max(initial=-1)) + 1
    links, pages = np.zeros(count, np.int64), np.zeros(count, np.int64)
    is_target = np.zeros(len(end), np.bool_)

    def outgoing() -> Iterator[tuple[Ints, Ints]]:
        for source, target in _links(task, FOLLOWED_LINKS):
            led = end[target]
            rows = (led >= 0) & urls.fetched[source] & ~urls.failed[led] & (urls.site[source] != urls.site[led])
            np.add.at(links, urls.site[led[rows]], 1)
            is_target[led[rows]] = True
            yield source[rows], urls.site[led[rows]]

    for _, site in _whole_sources(outgoing(), max(count, 1)):
        np.add.at(pages, site, 1)
    sites, targets = np.flatnonzero(links), np.bincount(urls.site[is_target], minlength=count)
    task.write("sites", {"site": sites, "links": links[sites], "pages": pages[sites], "targets": targets[sites]})


def interlinking(task: StageTask) -> None:
    nodes = _nodes(task, by_site=True)
    sites = max(int(nodes.group.max(initial=-1)) + 1, 1)
    directory = np.unique(directory_hashes(task.dataset)[nodes.pages], return_inverse=True)[1]
    span = int(directory.max(initial=0)) + 1
    site_of = np.zeros(span, np.int64)
    site_of[directory] = nodes.group
    of_pages, of_folders = NumberTally(), NumberTally()

    def folders() -> Iterator[Ints]:
        for source, target in _placed_edges(task, nodes, inside=False):
            of_pages.add(nodes.group[source] * sites + nodes.group[target])
            pairs = directory[source] * span + directory[target]
            yield pairs[directory[source] != directory[target]]

    for pairs in distinct_of(folders(), span * span, task.scratch):
        of_folders.add(site_of[pairs // span] * sites + site_of[pairs % span])
    with task.writer("links") as writer:
        for rows in interlinking_rows(sites, of_pages.counts(), of_folders.counts()):
            writer.add(rows)


NumberCounts = tuple[Ints, Ints]  # distinct numbers, ascending; count of each


def interlinking_rows(sites: int, of_pages: NumberCounts, of_folders: NumberCounts) -> Iterator[dict[str, object]]:
    """UrlBlocks of rows, ordered as MODELS. A pair of sites is encoded as source * sites + target."""
    pairs, counts = of_pages
    for model, (both, times) in zip(MODELS, (of_pages, of_folders, (pairs, np.ones_like(counts))), strict=True):
        ends_of = {"source": both // sites, "target": both % sites}
        yield {"model": [model] * len(times), **ends_of, "count": times}


ENGINE: Engine = {
    "ends": ends,
    "graph": graph,
    "ranks": ranks,
    "web_ranks": web_ranks,
    "map": site_map,
    "broken": broken_links_stage,
    "external": external,
    "duplicates": duplicates,
    "sketches": sketches,
    "near": near,
    "interlinking": interlinking,
    "cascades": cascades,
}
