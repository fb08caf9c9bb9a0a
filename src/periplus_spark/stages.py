"""The stages on a cluster, with the same results as on a single machine (`streamed`), computed in blocks.

Each stage function runs a few rounds of tasks, which exchange data through files. Only a few numbers per site pass
through the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from periplus.analyse.duplicates import BINS, band_bins, band_buckets
from periplus.analyse.linkgraph import LinkTargets, count_values, sort_distinct
from periplus.errors import NotConverged
from periplus.model.arrays import Floats, Ints, Ints32, Mask, Unsigned64
from periplus_spark import alike, streamed
from periplus_spark.blocks import UrlBlocks, Vector, run_tasks
from periplus_spark.files import Span, StageTask, blocks, flags, numbers, reals

if TYPE_CHECKING:
    from pyspark import SparkContext

LINKS_AT_ONCE = 1 << 22  # sent in one file: 64 MB, which avoids many small files for large webs


def ends(context: SparkContext, cut: UrlBlocks) -> None:
    """Runs in a single task, which holds only redirects in memory: 100 bytes each."""
    run_tasks(context, partial(_ends, cut), 1)
    cut.gather()


def _ends(cut: UrlBlocks, block: int) -> None:
    with cut.part(block) as task:
        streamed.ends(task)


# Facts about each URL are in vectors that all tasks map into memory: 19 bytes per URL on the shared folder; a machine
# only loads the pages that its links need.

_URLS = {"site": "<i8", "page": "?", "fetched": "?", "failed": "?"}


def _vectors(cut: UrlBlocks) -> tuple[dict[str, Vector], Vector]:
    return {name: cut.vector(name, kind) for name, kind in _URLS.items()}, cut.vector("end")


def _write_url_vectors(context: SparkContext, cut: UrlBlocks) -> Ints:
    """Writes the vectors; returns the final targets of the start URLs."""
    of_urls, end = _vectors(cut)
    for vector in (*of_urls.values(), end):
        vector.create()
    return np.concatenate(run_tasks(context, partial(_write_block_vectors, cut), cut.count))


def _write_block_vectors(cut: UrlBlocks, block: int) -> Ints:
    span = cut.span(block)
    of_urls, end = _vectors(cut)
    for vector, values in zip(of_urls.values(), alike.url_vectors(cut.task.dataset, span), strict=True):
        vector.put(span.first, values)
    ends_here = alike.end_vector(cut.task.folders["ends"], span.after - span.first, span.first)
    end.put(span.first, ends_here)
    return ends_here[flags(cut.task.dataset, "urls", "is_start", span)]


def _urls(cut: UrlBlocks) -> tuple[alike.UrlVectors, Ints]:
    of_urls, end = _vectors(cut)
    return alike.UrlVectors(*(vector.values() for vector in of_urls.values())), end.values()


def graph(context: SparkContext, cut: UrlBlocks) -> None:
    starts = _write_url_vectors(context, cut)
    home = alike.homes(starts, _urls(cut)[0])
    homes = cut.vector("home", length=len(home)).create()
    homes.put(0, home)
    run_tasks(context, partial(_graph, cut, homes), cut.count)
    cut.gather()


def _graph(cut: UrlBlocks, home: Vector, block: int) -> None:
    with cut.part(block) as task:
        streamed.write_graph(task, *_urls(cut), home.values(), cut.span(block, "source"))


def broken_links_stage(context: SparkContext, cut: UrlBlocks) -> None:
    _write_url_vectors(context, cut)
    run_tasks(context, partial(_broken_links, cut), cut.count)
    cut.gather()


def _broken_links(cut: UrlBlocks, block: int) -> None:
    with cut.part(block) as task:
        streamed.write_broken_links(task, *_urls(cut), cut.span(block, "source"))


def external(context: SparkContext, cut: UrlBlocks) -> None:
    """Counts links and pages by block of sources, and distinct targets by block of targets."""
    _write_url_vectors(context, cut)
    sites = int(_urls(cut)[0].site.max(initial=-1)) + 1
    tallies = _sum_blocks(run_tasks(context, partial(_outward, cut), cut.count), 2, sites)
    (targets,) = _sum_blocks(run_tasks(context, partial(_targets, cut), cut.count), 1, sites)
    with cut.part(0) as task:
        streamed.write_sites(task, tallies, targets)
    cut.gather()


def _outward(cut: UrlBlocks, block: int) -> tuple[Ints, Ints]:
    tallies, led = streamed.outward_links(cut.task, *_urls(cut), cut.span(block, "source"))
    cut.deal("led", block, cut.of(led), led[None])
    sites = np.flatnonzero(tallies[0])
    return sites, tallies[:, sites]


def _targets(cut: UrlBlocks, block: int) -> tuple[Ints, Ints]:
    (led,) = cut.concatenate("led", block, 1)
    sites, counts = count_values(_urls(cut)[0].site[sort_distinct(led)])
    return sites, counts[None]


def _sum_blocks(parts: list[tuple[Ints, Ints]], rows: int, sites: int) -> Ints:
    """Sums (sites, int64[rows, len(sites)]) of each block to int64[rows, sites]."""
    tallies = np.zeros((rows, sites), np.int64)
    for own, counts in parts:
        tallies[:, own] += counts
    return tallies


# Ranks within sites, and maps: each task gets whole sites, with about the same number of pages, and computes them as a
# single machine does. The place of a page is its index among the pages of its task.


def ranks(context: SparkContext, cut: UrlBlocks) -> None:
    _deal_sites(context, cut)
    run_tasks(context, partial(_site_ranks, cut), cut.count)
    run_tasks(context, partial(_write_ranks, cut), cut.count)
    cut.gather()


def site_map(context: SparkContext, cut: UrlBlocks) -> None:
    _deal_sites(context, cut)
    run_tasks(context, partial(_site_maps, cut), cut.count)
    run_tasks(context, partial(_write_map, cut), cut.count)
    cut.gather()


def _deal_sites(context: SparkContext, cut: UrlBlocks) -> None:
    """Sends each task the pages and links of its sites."""
    sizes = run_tasks(context, partial(_site_sizes, cut), cut.count)
    sites = max((int(own[-1]) + 1 for own, _ in sizes if len(own)), default=0)
    size = _sum_blocks([(own, counts[None]) for own, counts in sizes], 1, sites)[0]
    before = np.cumsum(size) - size
    owner = before * cut.count // max(int(size.sum()), 1)  # task of each site
    dealt = np.array([np.bincount(owner[own], counts, cut.count) for own, counts in sizes], np.int64)
    first = np.cumsum(dealt, axis=0) - dealt  # [block, task]: the place of the block's first page among the task's
    owners = cut.vector("owner", length=sites).create()
    owners.put(0, owner)
    cut.vector("place").create()
    run_tasks(context, partial(_deal_pages, cut, owners, first), cut.count)
    run_tasks(context, partial(_deal_links, cut, owners), cut.count)


def _site_sizes(cut: UrlBlocks, block: int) -> tuple[Ints, Ints]:
    return count_values(numbers(cut.task.folders["graph"], "nodes", "site", span=cut.span(block)))


def _deal_pages(cut: UrlBlocks, owners: Vector, first: Ints, block: int) -> None:
    folder, span = cut.task.folders["graph"], cut.span(block)
    pages, site = (numbers(folder, "nodes", column, span=span) for column in ("url", "site"))
    home = flags(folder, "nodes", "home", span)
    ranked = cut.task.folders.get("ranks")
    rank = reals(ranked, "ranks", "rank", span) if ranked else np.zeros(len(pages))
    task = owners.values()[site]
    place = np.full(span.after - span.first, -1)
    for number in np.unique(task).tolist():
        own = pages[task == number]
        place[own - span.first] = first[block, number] + np.arange(len(own))
    cut.vector("place").put(span.first, place)
    cut.deal("pages", block, task, np.stack([pages, site, home, rank.view(np.int64)]))


def _deal_links(cut: UrlBlocks, owners: Vector, block: int) -> None:
    folder, span, owner = cut.task.folders["graph"], cut.span(block, "source"), owners.values()
    place = cut.vector("place").values()
    site = np.zeros(span.after - span.first, np.int64)
    nodes = span._replace(column="url")
    site[numbers(folder, "nodes", "url", span=nodes) - span.first] = numbers(folder, "nodes", "site", span=nodes)
    read = blocks(folder, "edges", ["source", "target", "inside"], LINKS_AT_ONCE, span)
    for number, links in enumerate(read):
        inside = np.asarray(links.column(2), np.bool_)
        source, target = (np.asarray(links.column(at), np.int64)[inside] for at in (0, 1))
        rows = np.stack([place[source], place[target]])
        cut.deal("links", (block, number), owner[site[source - span.first]], rows)


class _Sites(NamedTuple):
    """The pages and links of a task's sites, by place."""

    pages: Ints
    site: Ints
    home: Ints  # places
    rank: Floats
    links: LinkTargets


def _sites(cut: UrlBlocks, block: int) -> _Sites:
    pages, site, home, rank = cut.concatenate("pages", block, 4)
    path = cut.task.scratch / f"targets-{block}"
    edges = ((source, target) for source, target in cut.dealt("links", block, 2))
    links = streamed.links_by_source(edges, len(pages), path)
    return _Sites(pages, site, np.flatnonzero(home), rank.view(np.float64), links)


def _site_ranks(cut: UrlBlocks, block: int) -> None:
    own = _sites(cut, block)
    group = np.unique(own.site, return_inverse=True)[1]
    scores = streamed.scores_in(own.links, group, cut.task.order)
    cut.deal("results", block, cut.of(own.pages), np.stack([own.pages, scores.view(np.int64)]))


def _write_ranks(cut: UrlBlocks, block: int) -> None:
    url, rank = _by_url(cut.concatenate("results", block, 2))
    with cut.part(block) as task:
        task.write("ranks", {"url": url, "rank": rank.view(np.float64)})


def _site_maps(cut: UrlBlocks, block: int) -> None:
    own = _sites(cut, block)
    rows = streamed.map_rows(own.links, own.pages, own.site, own.rank, own.home)
    cut.deal("results", block, cut.of(rows[0]), rows)


def _write_map(cut: UrlBlocks, block: int) -> None:
    rows = _by_url(cut.concatenate("results", block, len(streamed.MAP_COLUMNS)))
    with cut.part(block) as task:
        task.write("map", dict(zip(streamed.MAP_COLUMNS, rows, strict=True)))


def _by_url(rows: Ints) -> Ints:
    ascending: Ints = rows[:, np.argsort(rows[0])]
    return ascending


# Ranks over all sites: a task has the links *into* its block. A round reads the score that each page of the web passes
# to its link targets from a vector that all tasks map. Each round writes new files, so that a repeated task reads the
# same input.


def web_ranks(context: SparkContext, cut: UrlBlocks) -> None:
    order = cut.task.order
    cut.vector("share", "<f8").create()
    _begin_round(cut, 0)
    run_tasks(context, partial(_deal_targets, cut), cut.count)
    pages, lost = _totals(run_tasks(context, partial(_turn_links, cut), cut.count))
    residual, done, whole = np.inf, 0, pages
    while done < order.max_rounds and residual > order.tolerance:
        base = 1 - order.damping + order.damping * lost / max(pages, 1)
        _begin_round(cut, done + 1)
        change, lost, whole = _totals(run_tasks(context, partial(_round, cut, done, base), cut.count))
        for name in ("score", "flow"):
            cut.vector(f"{name}-{done}").path.unlink()
        residual, done = change / max(pages, 1), done + 1
    if residual > order.tolerance:
        raise NotConverged("PageRank", done, residual)
    run_tasks(context, partial(_write_shares, cut, done, whole), cut.count)
    cut.gather()


def _begin_round(cut: UrlBlocks, done: int) -> None:
    for name in ("score", "flow"):
        cut.vector(f"{name}-{done}", "<f8").create()


def _totals(parts: list[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(sum(values) for values in zip(*parts, strict=True))


def _deal_targets(cut: UrlBlocks, block: int) -> None:
    """Sends each link, as the number target * URLs + source, to the block of its target."""
    span = cut.span(block, "source")
    links_out = np.zeros(span.after - span.first, np.int64)
    for number, links in enumerate(
        blocks(cut.task.folders["graph"], "edges", ["source", "target"], LINKS_AT_ONCE, span)
    ):
        source, target = (np.asarray(column, np.int64) for column in links.columns)
        links_out += np.bincount(source - span.first, minlength=len(links_out))
        cut.deal("links", (block, number), cut.of(target), (target * cut.urls + source)[None])
    share = np.divide(cut.task.order.damping, links_out, out=np.zeros(len(links_out)), where=links_out > 0)
    cut.vector("share", "<f8").put(span.first, share)


def _turn_links(cut: UrlBlocks, block: int) -> tuple[float, ...]:
    """Writes the links into the block's pages, by target, and the initial scores.

    Returns (number of pages, number of pages without links).
    """
    span = cut.span(block)
    (links,) = cut.concatenate("links", block, 1)
    links.sort()
    offsets = np.searchsorted(links, np.arange(span.first, span.after + 1) * cut.urls)
    is_page = np.zeros(span.after - span.first, np.bool_)
    is_page[numbers(cut.task.folders["graph"], "nodes", "url", span=span) - span.first] = True
    kind = np.int32 if cut.urls < 2**31 else np.int64
    for name, values in (
        ("offsets", offsets),
        ("sources", (links % max(cut.urls, 1)).astype(kind)),
        ("pages", is_page),
    ):
        np.save(cut.task.scratch / f"{name}-{block}.npy", values)
    _, lost = _put_scores(cut, 0, span, is_page.astype(np.float64), is_page)
    return float(is_page.sum()), lost


def _put_scores(cut: UrlBlocks, done: int, span: Span, score: Floats, is_page: Mask) -> tuple[float, float]:
    """Returns (sum of all scores, sum of the scores of pages without links)."""
    share = cut.vector("share", "<f8").values()[span.first : span.after]
    cut.vector(f"score-{done}", "<f8").put(span.first, score)
    cut.vector(f"flow-{done}", "<f8").put(span.first, score * share)
    return float(score.sum()), float(score[is_page & (share == 0)].sum())


def _round(cut: UrlBlocks, done: int, base: float, block: int) -> tuple[float, ...]:
    """Returns sums: (changes of scores, scores of pages without links, all scores)."""
    span = cut.span(block)
    offsets, sources, is_page = _links_in(cut, block)
    flow = cut.vector(f"flow-{done}", "<f8").values()
    before = cut.vector(f"score-{done}", "<f8").values()[span.first : span.after]
    fresh = np.zeros(len(is_page))
    for pages in LinkTargets(offsets, sources).runs(streamed.LINKS_AT_ONCE):
        begins = offsets[pages.start : pages.stop + 1]
        linked = np.flatnonzero(np.diff(begins))
        if len(linked):
            given = flow[sources[begins[0] : begins[-1]]]
            fresh[pages.start + linked] = np.add.reduceat(given, begins[linked] - begins[0])
    fresh = np.where(is_page, fresh + base, 0.0)
    whole, lost = _put_scores(cut, done + 1, span, fresh, is_page)
    return float(np.abs(fresh - before).sum()), lost, whole


def _links_in(cut: UrlBlocks, block: int) -> tuple[Ints, Ints32 | Ints, Mask]:
    names = ("offsets", "sources", "pages")
    offsets, sources, is_page = (np.load(cut.task.scratch / f"{name}-{block}.npy", mmap_mode="r") for name in names)
    return np.asarray(offsets), np.asarray(sources), np.asarray(is_page)


def _write_shares(cut: UrlBlocks, done: int, whole: float, block: int) -> None:
    span = cut.span(block)
    pages = np.flatnonzero(_links_in(cut, block)[2]) + span.first
    with cut.part(block) as task:
        task.write("ranks", {"url": pages, "rank": cut.vector(f"score-{done}", "<f8").values()[pages] / whole})


# Links between sites: a folder is identified by the number of its last page, for http and https together.


def interlinking(context: SparkContext, cut: UrlBlocks) -> None:
    site, folder, _ = (cut.vector(name).create() for name in ("site", "folder", "local"))
    sites = max(run_tasks(context, partial(_deal_folders, cut), cut.count), default=0)
    run_tasks(context, partial(_merge_folders, cut), cut.count)
    run_tasks(context, partial(_name_folders, cut), cut.count)
    for work in (_deal_pairs, _count_folders, _write_pairs):
        run_tasks(context, partial(work, cut, _Places(site, folder, max(sites, 1))), cut.count)
    cut.gather()


class _Places(NamedTuple):
    """By URL: its site, and the page that identifies its folder. sites: number of sites."""

    site: Vector
    folder: Vector
    sites: int

    def owner(self, cut: UrlBlocks, pairs: Ints) -> Ints:
        """The block for pairs of sites, source * sites + target; ascending, in the order of the rows."""
        return pairs // self.sites * cut.count // self.sites


def _deal_folders(cut: UrlBlocks, block: int) -> int:
    """Sends each folder to the block of its hash. Returns one more than the greatest site."""
    span = cut.span(block)
    pages = numbers(cut.task.folders["graph"], "nodes", "url", span=span)
    site = numbers(cut.task.dataset, "urls", "site", span=span)
    hashes = alike.directory_hashes(cut.task.dataset, span)[pages - span.first]
    names, last, own = np.unique(hashes[::-1], return_index=True, return_inverse=True)
    local = np.zeros(span.after - span.first, np.int64)
    local[pages - span.first] = pages[::-1][last][own][::-1]
    cut.vector("local").put(span.first, local)
    cut.vector("site").put(span.first, site)
    to = (names.view(np.uint64) % np.uint64(cut.count)).astype(np.int64)
    cut.deal("names", block, to, np.stack([names, pages[::-1][last]]))
    return int(site[pages - span.first].max(initial=-1)) + 1


def _merge_folders(cut: UrlBlocks, block: int) -> None:
    """Sends each block the pages that identify its folders."""
    names, local = cut.concatenate("names", block, 2)
    order = np.lexsort((-local, names))
    begins = np.flatnonzero(np.diff(names[order], prepend=names[order[:1]] - 1))
    last = np.repeat(local[order[begins]], np.diff(np.append(begins, len(order))))
    cut.deal("folders", block, cut.of(local[order]), np.stack([local[order], last]))


def _name_folders(cut: UrlBlocks, block: int) -> None:
    span = cut.span(block)
    local, last = cut.concatenate("folders", block, 2)
    name = np.zeros(span.after - span.first, np.int64)
    name[local - span.first] = last
    own = cut.vector("local").values()[span.first : span.after]
    cut.vector("folder").put(span.first, name[np.maximum(own - span.first, 0)])


def _deal_pairs(cut: UrlBlocks, places: _Places, block: int) -> None:
    site, folder = places.site.values(), places.folder.values()
    tally, folders = streamed.NumberTally(), [np.zeros(0, np.int64)]
    span = cut.span(block, "source")
    for links in blocks(cut.task.folders["graph"], "edges", ["source", "target"], LINKS_AT_ONCE, span):
        source, target = (np.asarray(column, np.int64) for column in links.columns)
        tally.add(site[source] * places.sites + site[target])
        start, end = folder[source], folder[target]
        folders.append(sort_distinct((start * cut.urls + end)[start != end]))
    pairs, counts = tally.counts()
    cut.deal("page", block, places.owner(cut, pairs), np.stack([pairs, counts]))
    both = sort_distinct(np.concatenate(folders))
    cut.deal("both", block, cut.of(both // max(cut.urls, 1)), both[None])


def _count_folders(cut: UrlBlocks, places: _Places, block: int) -> None:
    site = places.site.values()
    both = sort_distinct(cut.concatenate("both", block, 1)[0])
    pairs, counts = count_values(site[both // max(cut.urls, 1)] * places.sites + site[both % max(cut.urls, 1)])
    cut.deal("directory", block, places.owner(cut, pairs), np.stack([pairs, counts]))


def _write_pairs(cut: UrlBlocks, places: _Places, block: int) -> None:
    of_pages, of_folders = (_merge_counts(cut.concatenate(name, block, 2)) for name in ("page", "directory"))
    for model, rows in enumerate(streamed.interlinking_rows(places.sites, of_pages, of_folders)):
        with cut.part(model * cut.count + block) as task:
            task.write("links", rows)


def _merge_counts(tallies: Ints) -> tuple[Ints, Ints]:
    """(distinct numbers in ascending order, sums of their counts)."""
    values, own = np.unique(tallies[0], return_inverse=True)
    return values, np.bincount(own, tallies[1], len(values)).astype(np.int64)


# Duplicates and near duplicates.


def duplicates(context: SparkContext, cut: UrlBlocks) -> None:
    for work in (_deal_digests, _deal_twins, _write_twins):
        run_tasks(context, partial(work, cut), cut.count)
    cut.gather()


def _deal_digests(cut: UrlBlocks, block: int) -> None:
    pages = alike.digest_columns(cut.task.dataset, cut.span(block))
    cut.deal("digests", block, pages[2] % cut.count, pages)


def _deal_twins(cut: UrlBlocks, block: int) -> None:
    rows = alike.twins(cut.concatenate("digests", block, 8))
    cut.deal("twins", block, cut.of(rows[0]), rows)


def _write_twins(cut: UrlBlocks, block: int) -> None:
    with cut.part(block) as task:
        alike.write_twins(task, cut.concatenate("twins", block, 3))


def sketches(context: SparkContext, cut: UrlBlocks) -> None:
    run_tasks(context, partial(_sketch, alike.sketches, cut), cut.count)
    cut.gather()


def outlines(context: SparkContext, cut: UrlBlocks) -> None:
    run_tasks(context, partial(_sketch, alike.outlines, cut), cut.count)
    cut.gather()


def _sketch(write: Callable[[StageTask, Span], None], cut: UrlBlocks, block: int) -> None:
    with cut.part(block) as task:
        write(task, cut.span(block))


def near(context: SparkContext, cut: UrlBlocks) -> None:
    _alike(context, cut, "sketches", cut.task.order.near)


def templates(context: SparkContext, cut: UrlBlocks) -> None:
    _alike(context, cut, "outlines", cut.task.order.template)


def _alike(context: SparkContext, cut: UrlBlocks, of: str, threshold: float) -> None:
    """Fills LSH buckets, a task per band. A single task then chooses the representative pages, since each choice
    depends on earlier ones: 40 bytes and some 50 us per page.
    """
    counts = run_tasks(context, partial(_comparable, cut, of), cut.count)
    pages, bands = sum(counts), BINS // band_bins(threshold)
    vectors = _PageSketches(
        cut.vector("urls", length=pages).create(),
        cut.vector("merits", length=pages).create(),
        cut.vector("bins", "<u8", pages * BINS).create(),
        cut.vector("buckets", length=pages * bands).create(),
    )
    run_tasks(context, partial(_write_sketches, cut, of, vectors, np.cumsum([0, *counts]).tolist()), cut.count)
    run_tasks(context, partial(_fill_band, vectors, bands), bands)
    run_tasks(context, partial(_lead, cut, vectors, bands, alike.needed_values(threshold)), 1)
    cut.gather()


class _PageSketches(NamedTuple):
    """The compared pages, by URL."""

    urls: Vector
    merits: Vector
    bins: Vector  # BINS of each page
    buckets: Vector  # of all pages for each band

    def rows(self) -> Unsigned64:
        return self.bins.values().reshape(-1, BINS)


def _comparable(cut: UrlBlocks, of: str, block: int) -> int:
    return sum(pages.shape[1] for pages, _ in alike.comparable(cut.task, of, [], cut.span(block)))


def _write_sketches(cut: UrlBlocks, of: str, vectors: _PageSketches, firsts: list[int], block: int) -> None:
    at = firsts[block]
    for (urls, merits), rows in alike.comparable(cut.task, of, ["bins"], cut.span(block)):
        vectors.urls.put(at, urls)
        vectors.merits.put(at, merits)
        vectors.bins.put(at * BINS, np.frombuffer(b"".join(rows.column(0).to_pylist()), "<u8"))
        at += len(urls)


def _fill_band(vectors: _PageSketches, bands: int, band: int) -> None:
    pages = vectors.urls.length
    vectors.buckets.put(band * pages, band_buckets(vectors.rows(), np.arange(pages), band, bands))


def _lead(cut: UrlBlocks, vectors: _PageSketches, bands: int, needed: int, block: int) -> None:
    order, buckets = np.argsort(vectors.merits.values()), vectors.buckets.values().reshape(bands, -1)
    with cut.part(block) as task:
        alike.write_led(task, vectors.urls.values(), *alike.leaders(vectors.rows(), order, buckets, needed))


def cascades(context: SparkContext, cut: UrlBlocks) -> None:
    cut.vector("near").create()
    for work in (_write_near, _deal_stories, _write_cascades):
        run_tasks(context, partial(work, cut), cut.count)
    cut.gather()


def _write_near(cut: UrlBlocks, block: int) -> None:
    span = cut.span(block)
    cut.vector("near").put(span.first, alike.near_heads(cut.task, span))


def _deal_stories(cut: UrlBlocks, block: int) -> None:
    rows = np.stack(alike.in_stories(cut.task, cut.vector("near").values(), cut.span(block)))
    cut.deal("stories", block, cut.of(rows[0]), rows)


def _write_cascades(cut: UrlBlocks, block: int) -> None:
    with cut.part(block) as task:
        alike.write_cascades(task, *cut.concatenate("stories", block, 3))


STAGES: Mapping[str, Callable[[SparkContext, UrlBlocks], None]] = {
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
    "outlines": outlines,
    "templates": templates,
    "interlinking": interlinking,
    "cascades": cascades,
}
