"""The stages that read links, computed in memory with the analyses of a single site's map and report.
They are the oracle for the engine that streams links from disk.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from periplus.analyse.linkgraph import (
    LinksOfDomains,
    count_values,
    external_domains,
    hierarchical_map,
    sort_distinct,
)
from periplus.analyse.pagerank import pagerank
from periplus.model.graph import LinkGraph
from periplus.model.web import Url
from periplus_spark import streamed
from periplus_spark.alike import (
    CHECKED_LINKS,
    CLICKS,
    FOLLOWED_LINKS,
    directory_hashes,
    end_vector,
    homes,
    url_vectors,
)
from periplus_spark.files import Engine, Ints, Mask, StageTask, blocks, flags, is_among, numbers, reals


def invalid_links(links: LinksOfDomains) -> Ints:
    """Indices of the links from an indexed page to an invalid URL, by target, then source. O(m log m)."""
    rows = np.flatnonzero(links.fetched[links.sources] & links.failed[links.targets])
    return rows[np.lexsort((links.sources[rows], links.targets[rows]))]


def graph(task: StageTask) -> None:
    urls = url_vectors(task.dataset)
    count = len(urls.site)
    end = end_vector(task.folders["ends"], count)
    source, target = _links(task, CLICKS)
    target = end[target]
    edges = (target >= 0) & (source != target)
    source, target = source[edges], target[edges]
    edges = urls.fetched[source] & urls.page[target]
    pairs = sort_distinct(source[edges] * max(count, 1) + target[edges])
    source, target = pairs // max(count, 1), pairs % max(count, 1)
    pages, home = np.flatnonzero(urls.page), homes(end[flags(task.dataset, "urls", "is_start")], urls)
    nodes = {"url": pages, "site": urls.site[pages], "fetched": urls.fetched[pages], "home": np.isin(pages, home)}
    task.write("nodes", nodes)
    task.write("edges", {"source": source, "target": target, "inside": urls.site[source] == urls.site[target]})


def _links(task: StageTask, kinds: list[str]) -> tuple[Ints, Ints]:
    kept = is_among(task.dataset, "links", "kind", kinds)
    return numbers(task.dataset, "links", "source")[kept], numbers(task.dataset, "links", "target")[kept]


def graphs_by_site(task: StageTask) -> list[tuple[Ints, LinkGraph]]:
    """(numbers of its pages, graph) of each site."""
    folder = task.folders["graph"]
    pages, site, indexed = (
        numbers(folder, "nodes", "url"),
        numbers(folder, "nodes", "site"),
        flags(folder, "nodes", "fetched"),
    )
    order = np.lexsort((pages, site))
    # index of each page in the order by site and number
    place = np.zeros(int(pages.max(initial=-1)) + 1, np.int64)
    place[pages[order]] = np.arange(len(pages))
    inside = flags(folder, "edges", "inside")
    source, target = (
        place[numbers(folder, "edges", "source")[inside]],
        place[numbers(folder, "edges", "target")[inside]],
    )
    by_source = np.lexsort((target, source))
    offsets = np.searchsorted(source[by_source], np.arange(len(pages) + 1))
    target = target[by_source]
    begins = np.flatnonzero(np.diff(site[order], prepend=-1))
    found = []
    afters = np.append(begins[1:], len(pages))[: len(begins)]
    for begin, after in zip(begins.tolist(), afters.tolist(), strict=True):
        own = order[begin:after]
        links = target[offsets[begin] : offsets[after]] - begin
        found.append((pages[own], _graph_of(offsets[begin : after + 1] - offsets[begin], links, indexed[own])))
    return found


def _graph_of(offsets: Ints, targets: Ints, indexed: Mask) -> LinkGraph:
    count = len(indexed)
    unnamed = cast("list[Url]", range(count))  # only the number of URLs is used here, not their texts
    return LinkGraph(unnamed, offsets, targets.astype(np.int32), indexed, np.full(count, -1, np.int32))


def ranks(task: StageTask) -> None:
    parts = [(pages, _ranked(task, graph)) for pages, graph in graphs_by_site(task)]
    pages = np.concatenate([pages for pages, _ in parts]) if parts else np.zeros(0, np.int64)
    rank = np.concatenate([rank for _, rank in parts]) if parts else np.zeros(0)
    order = np.argsort(pages)
    task.write("ranks", {"url": pages[order], "rank": rank[order]})


def web_ranks(task: StageTask) -> None:
    folder = task.folders["graph"]
    pages = numbers(folder, "nodes", "url")
    source, target = (np.searchsorted(pages, numbers(folder, "edges", name)) for name in ("source", "target"))
    offsets = np.searchsorted(source, np.arange(len(pages) + 1))
    rank = _ranked(task, _graph_of(offsets, target, flags(folder, "nodes", "fetched")))
    task.write("ranks", {"url": pages, "rank": rank})


def _ranked(task: StageTask, graph: LinkGraph) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    order = task.order
    return pagerank(graph, damping=order.damping, tolerance=order.tolerance, max_rounds=order.max_rounds).scores


def site_map(task: StageTask) -> None:
    nodes, found = task.folders["graph"], task.folders["ranks"]
    home = numbers(nodes, "nodes", "url")[flags(nodes, "nodes", "home")]
    rank = np.zeros(int(numbers(nodes, "nodes", "url").max(initial=-1)) + 1)
    rank[numbers(found, "ranks", "url")] = reals(found, "ranks", "rank")
    rows = [np.zeros((0, 5), np.int64)]
    for pages, one in graphs_by_site(task):
        start = np.flatnonzero(np.isin(pages, home))
        if len(start):
            placed = hierarchical_map(one, int(start[0]), rank[pages])
            reached, parent = placed.order, placed.parent[placed.order]
            above = np.where(parent >= 0, pages[parent], -1)
            rows.append(
                np.stack(
                    [pages[reached], placed.depth[reached], above, placed.below[reached], np.arange(len(reached))],
                    axis=1,
                )
            )
    write_map(task, np.concatenate(rows))


def write_map(task: StageTask, rows: Ints) -> None:
    """rows: one per page, with the columns of the table."""
    rows = rows[np.argsort(rows[:, 0])]
    task.write("map", dict(zip(("url", "depth", "parent", "below", "place"), rows.T.copy(), strict=True)))


def broken(task: StageTask) -> None:
    import pyarrow as pa

    urls = url_vectors(task.dataset)
    end = end_vector(task.folders["ends"], len(urls.site))
    source, target = numbers(task.dataset, "links", "source"), numbers(task.dataset, "links", "target")
    followed = np.flatnonzero(is_among(task.dataset, "links", "kind", CHECKED_LINKS) & (end[target] >= 0))
    known = LinksOfDomains(urls.site, urls.fetched, urls.failed, source[followed], end[target[followed]])
    rows = np.sort(followed[invalid_links(known)])
    words = pa.Table.from_batches(_words(task, rows))
    columns = {"source": source[rows], "target": target[rows], "end": end[target[rows]]}
    task.write("broken", columns | {name: words.column(name).combine_chunks() for name in ("kind", "position")})


def _words(task: StageTask, rows: Ints) -> list[object]:
    """Kind and position of the links with these row numbers, ascending."""
    import pyarrow as pa

    names = ("kind", "position")
    found: list[object] = [pa.RecordBatch.from_arrays([pa.array([], pa.string())] * 2, names=list(names))]
    at = 0
    for block in blocks(task.dataset, "links", names):
        own = rows[(rows >= at) & (rows < at + len(block))] - at
        found.append(block.take(pa.array(own)))
        at += len(block)
    return found


def external(task: StageTask) -> None:
    urls = url_vectors(task.dataset)
    end = end_vector(task.folders["ends"], len(urls.site))
    source, target = _links(task, FOLLOWED_LINKS)
    target = end[target]
    source, target = source[target >= 0], target[target >= 0]
    found = external_domains(LinksOfDomains(urls.site, urls.fetched, urls.failed, source, target))
    order = np.argsort(found.domain)
    columns = {"site": found.domain, "links": found.links, "pages": found.pages, "targets": found.targets}
    task.write("sites", {name: values[order] for name, values in columns.items()})


def interlinking(task: StageTask) -> None:
    folder = task.folders["graph"]
    nodes = numbers(folder, "nodes", "url")
    site = numbers(folder, "nodes", "site")
    source, target = (np.searchsorted(nodes, numbers(folder, "edges", name)) for name in ("source", "target"))
    sites = int(site.max(initial=0)) + 1
    pairs, counts = count_values(site[source] * sites + site[target])
    directory = np.unique(directory_hashes(task.dataset)[nodes], return_inverse=True)[1]
    span = int(directory.max(initial=0)) + 1
    folders = sort_distinct((directory[source] * span + directory[target])[directory[source] != directory[target]])
    site_of = np.zeros(span, np.int64)
    site_of[directory] = site
    of_folders, folder_counts = count_values(site_of[folders // span] * sites + site_of[folders % span])
    write_links(
        task,
        sites,
        {"page": (pairs, counts), "directory": (of_folders, folder_counts), "site": (pairs, np.ones_like(counts))},
    )


def write_links(task: StageTask, sites: int, found: dict[str, tuple[Ints, Ints]]) -> None:
    """found: by model, the pairs as source * sites + target, and their counts."""
    with task.writer("links") as writer:
        for model, (pairs, counts) in found.items():
            writer.add(
                {"model": [model] * len(pairs), "source": pairs // sites, "target": pairs % sites, "count": counts}
            )


ENGINE: Engine = {
    **streamed.ENGINE,  # provides the stages that read no links
    "graph": graph,
    "ranks": ranks,
    "web_ranks": web_ranks,
    "map": site_map,
    "broken": broken,
    "external": external,
    "interlinking": interlinking,
}
