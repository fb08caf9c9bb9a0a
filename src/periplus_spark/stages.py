"""The stages on a cluster: as the engine of one machine computes them (analyse.engines), block by block.

Each function takes the cluster and the stage in blocks, and is a few rounds of tasks; what a round hands to the next
lies in files. Nothing passes through the driver but a number or two of each site.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from periplus.analyse.duplicates import BINS, band_bins, band_buckets
from periplus.analyse.engines import alike, streamed
from periplus.analyse.engines.dataset_files import Span, blocks, flags, numbers, reals
from periplus.analyse.engines.stages import StageTask
from periplus.analyse.linkgraph import LinkTargets, counted, distinct_sorted
from periplus.errors import NotConverged
from periplus.model.arrays import Floats, Ints, Ints32, Mask, Unsigned64
from periplus_spark.blocks import Blocks, Vector, everywhere

if TYPE_CHECKING:
    from pyspark import SparkContext

LINKS_AT_ONCE = 1 << 22  # dealt in one file: 64 MB, so that blocks of a large web do not end in small files


def ends(context: SparkContext, cut: Blocks) -> None:
    """By one task, which holds the redirects and no other URL: 100 bytes each."""
    everywhere(context, partial(_ends, cut), 1)
    cut.gather()


def _ends(cut: Blocks, block: int) -> None:
    with cut.part(block) as task:
        streamed.ends(task)


# What is known of each URL, in vectors that all tasks map: 19 bytes a URL of the shared folder, and of a machine's
# memory as much as its links ask for.

_URLS = {"site": "<i8", "page": "?", "fetched": "?", "failed": "?"}


def _vectors(cut: Blocks) -> tuple[dict[str, Vector], Vector]:
    return {name: cut.vector(name, kind) for name, kind in _URLS.items()}, cut.vector("end")


def _tell_urls(context: SparkContext, cut: Blocks) -> Ints:
    """Writes the vectors; returns where each start leads."""
    of_urls, end = _vectors(cut)
    for vector in (*of_urls.values(), end):
        vector.create()
    return np.concatenate(everywhere(context, partial(_tell_block, cut), cut.count))


def _tell_block(cut: Blocks, block: int) -> Ints:
    span = cut.span(block)
    of_urls, end = _vectors(cut)
    for vector, values in zip(of_urls.values(), alike.url_vectors(cut.task.dataset, span), strict=True):
        vector.put(span.first, values)
    ends_here = alike.end_vector(cut.task.folders["ends"], span.after - span.first, span.first)
    end.put(span.first, ends_here)
    return ends_here[flags(cut.task.dataset, "urls", "is_start", span)]


def _urls(cut: Blocks) -> tuple[alike.UrlVectors, Ints]:
    of_urls, end = _vectors(cut)
    return alike.UrlVectors(*(vector.values() for vector in of_urls.values())), end.values()


def graph(context: SparkContext, cut: Blocks) -> None:
    starts = _tell_urls(context, cut)
    home = alike.homes(starts, _urls(cut)[0])
    homes = cut.vector("home", length=len(home)).create()
    homes.put(0, home)
    everywhere(context, partial(_graph, cut, homes), cut.count)
    cut.gather()


def _graph(cut: Blocks, home: Vector, block: int) -> None:
    with cut.part(block) as task:
        streamed.write_graph(task, *_urls(cut), home.values(), cut.span(block, "source"))


def broken(context: SparkContext, cut: Blocks) -> None:
    _tell_urls(context, cut)
    everywhere(context, partial(_broken, cut), cut.count)
    cut.gather()


def _broken(cut: Blocks, block: int) -> None:
    with cut.part(block) as task:
        streamed.write_broken(task, *_urls(cut), cut.span(block, "source"))


def external(context: SparkContext, cut: Blocks) -> None:
    """Links and pages are counted by source, targets by block of targets."""
    _tell_urls(context, cut)
    sites = int(_urls(cut)[0].site.max(initial=-1)) + 1
    tallies = _summed(everywhere(context, partial(_outward, cut), cut.count), 2, sites)
    (targets,) = _summed(everywhere(context, partial(_targets, cut), cut.count), 1, sites)
    with cut.part(0) as task:
        streamed.write_sites(task, tallies, targets)
    cut.gather()


def _outward(cut: Blocks, block: int) -> tuple[Ints, Ints]:
    tallies, led = streamed.outward_links(cut.task, *_urls(cut), cut.span(block, "source"))
    cut.deal("led", block, cut.of(led), led[None])
    sites = np.flatnonzero(tallies[0])
    return sites, tallies[:, sites]


def _targets(cut: Blocks, block: int) -> tuple[Ints, Ints]:
    (led,) = cut.joined("led", block, 1)
    sites, counts = counted(_urls(cut)[0].site[distinct_sorted(led)])
    return sites, counts[None]


def _summed(parts: list[tuple[Ints, Ints]], rows: int, sites: int) -> Ints:
    """int64[rows, sites] of (sites, int64[rows, those sites]) of each block."""
    tallies = np.zeros((rows, sites), np.int64)
    for some, counts in parts:
        tallies[:, some] += counts
    return tallies


# Ranks within sites, and maps: sites are dealt whole to the tasks, each with about as many pages, and each task does
# what one machine does with them. A page's place is its number among the pages of its task.


def ranks(context: SparkContext, cut: Blocks) -> None:
    _deal_sites(context, cut)
    everywhere(context, partial(_site_ranks, cut), cut.count)
    everywhere(context, partial(_write_ranks, cut), cut.count)
    cut.gather()


def site_map(context: SparkContext, cut: Blocks) -> None:
    _deal_sites(context, cut)
    everywhere(context, partial(_site_maps, cut), cut.count)
    everywhere(context, partial(_write_map, cut), cut.count)
    cut.gather()


def _deal_sites(context: SparkContext, cut: Blocks) -> None:
    """Hands each task the pages and links of its sites."""
    sizes = everywhere(context, partial(_site_sizes, cut), cut.count)
    sites = max((int(some[-1]) + 1 for some, _ in sizes if len(some)), default=0)
    size = _summed([(some, counts[None]) for some, counts in sizes], 1, sites)[0]
    before = np.cumsum(size) - size
    owner = before * cut.count // max(int(size.sum()), 1)  # of each site its task
    dealt = np.array([np.bincount(owner[some], counts, cut.count) for some, counts in sizes], np.int64)
    first = np.cumsum(dealt, axis=0) - dealt  # [block, task]: the place of the block's first page among the task's
    owners = cut.vector("owner", length=sites).create()
    owners.put(0, owner)
    cut.vector("place").create()
    everywhere(context, partial(_deal_pages, cut, owners, first), cut.count)
    everywhere(context, partial(_deal_links, cut, owners), cut.count)


def _site_sizes(cut: Blocks, block: int) -> tuple[Ints, Ints]:
    return counted(numbers(cut.task.folders["graph"], "nodes", "site", span=cut.span(block)))


def _deal_pages(cut: Blocks, owners: Vector, first: Ints, block: int) -> None:
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


def _deal_links(cut: Blocks, owners: Vector, block: int) -> None:
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
    """What a task was handed of its sites, by place."""

    pages: Ints
    site: Ints
    home: Ints  # places
    rank: Floats
    links: LinkTargets


def _sites(cut: Blocks, block: int) -> _Sites:
    pages, site, home, rank = cut.joined("pages", block, 4)
    path = cut.task.scratch / f"targets-{block}"
    edges = ((source, target) for source, target in cut.dealt("links", block, 2))
    links = streamed.links_by_source(edges, len(pages), path)
    return _Sites(pages, site, np.flatnonzero(home), rank.view(np.float64), links)


def _site_ranks(cut: Blocks, block: int) -> None:
    own = _sites(cut, block)
    group = np.unique(own.site, return_inverse=True)[1]
    scores = streamed.scores_in(own.links, group, cut.task.order)
    cut.deal("results", block, cut.of(own.pages), np.stack([own.pages, scores.view(np.int64)]))


def _write_ranks(cut: Blocks, block: int) -> None:
    url, rank = _by_url(cut.joined("results", block, 2))
    with cut.part(block) as task:
        task.write("ranks", {"url": url, "rank": rank.view(np.float64)})


def _site_maps(cut: Blocks, block: int) -> None:
    own = _sites(cut, block)
    rows = streamed.map_rows(own.links, own.pages, own.site, own.rank, own.home)
    cut.deal("results", block, cut.of(rows[0]), rows)


def _write_map(cut: Blocks, block: int) -> None:
    rows = _by_url(cut.joined("results", block, len(streamed.MAP_COLUMNS)))
    with cut.part(block) as task:
        task.write("map", dict(zip(streamed.MAP_COLUMNS, rows, strict=True)))


def _by_url(rows: Ints) -> Ints:
    ascending: Ints = rows[:, np.argsort(rows[0])]
    return ascending


# Ranks over all sites: a task has the links *into* its block, and a round is one look at what each page of the web
# gives to those that it links to, in a vector that all tasks map. A round's vectors are new files, so that a task that
# is done again finds what it found before.


def web_ranks(context: SparkContext, cut: Blocks) -> None:
    order = cut.task.order
    cut.vector("share", "<f8").create()
    _begin_round(cut, 0)
    everywhere(context, partial(_deal_targets, cut), cut.count)
    pages, lost = _totals(everywhere(context, partial(_turn_links, cut), cut.count))
    residual, done, whole = np.inf, 0, pages
    while done < order.max_rounds and residual > order.tolerance:
        base = 1 - order.damping + order.damping * lost / max(pages, 1)
        _begin_round(cut, done + 1)
        change, lost, whole = _totals(everywhere(context, partial(_round, cut, done, base), cut.count))
        for name in ("score", "flow"):
            cut.vector(f"{name}-{done}").path.unlink()
        residual, done = change / max(pages, 1), done + 1
    if residual > order.tolerance:
        raise NotConverged("PageRank", done, residual)
    everywhere(context, partial(_write_shares, cut, done, whole), cut.count)
    cut.gather()


def _begin_round(cut: Blocks, done: int) -> None:
    for name in ("score", "flow"):
        cut.vector(f"{name}-{done}", "<f8").create()


def _totals(parts: list[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(sum(values) for values in zip(*parts, strict=True))


def _deal_targets(cut: Blocks, block: int) -> None:
    """Each link as one number, target * URLs + source, to its target's block."""
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


def _turn_links(cut: Blocks, block: int) -> tuple[float, ...]:
    """Writes the links into the block's pages by target, and the scores to begin with.

    Returns how many pages there are, and how many of them link to none.
    """
    span = cut.span(block)
    (links,) = cut.joined("links", block, 1)
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


def _put_scores(cut: Blocks, done: int, span: Span, score: Floats, is_page: Mask) -> tuple[float, float]:
    """Returns the sum of all scores, and of those of pages that link to none."""
    share = cut.vector("share", "<f8").values()[span.first : span.after]
    cut.vector(f"score-{done}", "<f8").put(span.first, score)
    cut.vector(f"flow-{done}", "<f8").put(span.first, score * share)
    return float(score.sum()), float(score[is_page & (share == 0)].sum())


def _round(cut: Blocks, done: int, base: float, block: int) -> tuple[float, ...]:
    """Returns by how much scores changed, the scores of pages that link to none, and all scores: sums."""
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


def _links_in(cut: Blocks, block: int) -> tuple[Ints, Ints32 | Ints, Mask]:
    names = ("offsets", "sources", "pages")
    offsets, sources, is_page = (np.load(cut.task.scratch / f"{name}-{block}.npy", mmap_mode="r") for name in names)
    return np.asarray(offsets), np.asarray(sources), np.asarray(is_page)


def _write_shares(cut: Blocks, done: int, whole: float, block: int) -> None:
    span = cut.span(block)
    pages = np.flatnonzero(_links_in(cut, block)[2]) + span.first
    with cut.part(block) as task:
        task.write("ranks", {"url": pages, "rank": cut.vector(f"score-{done}", "<f8").values()[pages] / whole})


# Links between sites: a folder is named by the last of its pages, whatever scheme they have, as one number.


def interlinking(context: SparkContext, cut: Blocks) -> None:
    site, folder, _ = (cut.vector(name).create() for name in ("site", "folder", "local"))
    sites = max(everywhere(context, partial(_deal_folders, cut), cut.count), default=0)
    everywhere(context, partial(_merge_folders, cut), cut.count)
    everywhere(context, partial(_name_folders, cut), cut.count)
    for work in (_deal_pairs, _count_folders, _write_pairs):
        everywhere(context, partial(work, cut, _Places(site, folder, max(sites, 1))), cut.count)
    cut.gather()


class _Places(NamedTuple):
    """Of each URL its site and the page that names its folder; how many sites there are."""

    site: Vector
    folder: Vector
    sites: int

    def owner(self, cut: Blocks, pairs: Ints) -> Ints:
        """The block to which pairs of sites, source * sites + target, are dealt: ascending, as the rows are."""
        return pairs // self.sites * cut.count // self.sites


def _deal_folders(cut: Blocks, block: int) -> int:
    """Each folder to the block of its name. Returns one more than the last site."""
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


def _merge_folders(cut: Blocks, block: int) -> None:
    """Tells each block which page names the folders that it has, too."""
    names, local = cut.joined("names", block, 2)
    order = np.lexsort((-local, names))
    begins = np.flatnonzero(np.diff(names[order], prepend=names[order[:1]] - 1))
    last = np.repeat(local[order[begins]], np.diff(np.append(begins, len(order))))
    cut.deal("folders", block, cut.of(local[order]), np.stack([local[order], last]))


def _name_folders(cut: Blocks, block: int) -> None:
    span = cut.span(block)
    local, last = cut.joined("folders", block, 2)
    name = np.zeros(span.after - span.first, np.int64)
    name[local - span.first] = last
    own = cut.vector("local").values()[span.first : span.after]
    cut.vector("folder").put(span.first, name[np.maximum(own - span.first, 0)])


def _deal_pairs(cut: Blocks, places: _Places, block: int) -> None:
    site, folder = places.site.values(), places.folder.values()
    tally, folders = streamed.NumberTally(), [np.zeros(0, np.int64)]
    span = cut.span(block, "source")
    for links in blocks(cut.task.folders["graph"], "edges", ["source", "target"], LINKS_AT_ONCE, span):
        source, target = (np.asarray(column, np.int64) for column in links.columns)
        tally.add(site[source] * places.sites + site[target])
        one, other = folder[source], folder[target]
        folders.append(distinct_sorted((one * cut.urls + other)[one != other]))
    pairs, counts = tally.counts()
    cut.deal("page", block, places.owner(cut, pairs), np.stack([pairs, counts]))
    both = distinct_sorted(np.concatenate(folders))
    cut.deal("both", block, cut.of(both // max(cut.urls, 1)), both[None])


def _count_folders(cut: Blocks, places: _Places, block: int) -> None:
    site = places.site.values()
    both = distinct_sorted(cut.joined("both", block, 1)[0])
    pairs, counts = counted(site[both // max(cut.urls, 1)] * places.sites + site[both % max(cut.urls, 1)])
    cut.deal("directory", block, places.owner(cut, pairs), np.stack([pairs, counts]))


def _write_pairs(cut: Blocks, places: _Places, block: int) -> None:
    of_pages, of_folders = (_merged(cut.joined(name, block, 2)) for name in ("page", "directory"))
    for model, rows in enumerate(streamed.interlinking_rows(places.sites, of_pages, of_folders)):
        with cut.part(model * cut.count + block) as task:
            task.write("links", rows)


def _merged(tallies: Ints) -> tuple[Ints, Ints]:
    """(numbers, ascending; the sum of their counts)."""
    values, own = np.unique(tallies[0], return_inverse=True)
    return values, np.bincount(own, tallies[1], len(values)).astype(np.int64)


# What says the same, or nearly so.


def duplicates(context: SparkContext, cut: Blocks) -> None:
    for work in (_deal_digests, _deal_twins, _write_twins):
        everywhere(context, partial(work, cut), cut.count)
    cut.gather()


def _deal_digests(cut: Blocks, block: int) -> None:
    pages = alike.digested(cut.task.dataset, cut.span(block))
    cut.deal("digests", block, pages[2] % cut.count, pages)


def _deal_twins(cut: Blocks, block: int) -> None:
    rows = alike.twins(cut.joined("digests", block, 8))
    cut.deal("twins", block, cut.of(rows[0]), rows)


def _write_twins(cut: Blocks, block: int) -> None:
    with cut.part(block) as task:
        alike.write_twins(task, cut.joined("twins", block, 3))


def sketches(context: SparkContext, cut: Blocks) -> None:
    everywhere(context, partial(_sketch, alike.sketches, cut), cut.count)
    cut.gather()


def outlines(context: SparkContext, cut: Blocks) -> None:
    everywhere(context, partial(_sketch, alike.outlines, cut), cut.count)
    cut.gather()


def _sketch(write: Callable[[StageTask, Span], None], cut: Blocks, block: int) -> None:
    with cut.part(block) as task:
        write(task, cut.span(block))


def near(context: SparkContext, cut: Blocks) -> None:
    _alike(context, cut, "sketches", cut.task.order.near)


def templates(context: SparkContext, cut: Blocks) -> None:
    _alike(context, cut, "outlines", cut.task.order.template)


def _alike(context: SparkContext, cut: Blocks, of: str, threshold: float) -> None:
    """Buckets are filled band by band; which pages stand for groups is decided by one task, page after page, since
    each decision depends on those before: 40 bytes and some 50 us a page.
    """
    counts = everywhere(context, partial(_comparable, cut, of), cut.count)
    pages, bands = sum(counts), BINS // band_bins(threshold)
    vectors = _Sketched(
        cut.vector("urls", length=pages).create(),
        cut.vector("merits", length=pages).create(),
        cut.vector("bins", "<u8", pages * BINS).create(),
        cut.vector("buckets", length=pages * bands).create(),
    )
    everywhere(context, partial(_tell_sketches, cut, of, vectors, np.cumsum([0, *counts]).tolist()), cut.count)
    everywhere(context, partial(_fill_band, vectors, bands), bands)
    everywhere(context, partial(_lead, cut, vectors, bands, alike.needed_values(threshold)), 1)
    cut.gather()


class _Sketched(NamedTuple):
    """The pages that are compared, by URL."""

    urls: Vector
    merits: Vector
    bins: Vector  # BINS of each page
    buckets: Vector  # of all pages for each band

    def rows(self) -> Unsigned64:
        return self.bins.values().reshape(-1, BINS)


def _comparable(cut: Blocks, of: str, block: int) -> int:
    return sum(pages.shape[1] for pages, _ in alike.comparable(cut.task, of, [], cut.span(block)))


def _tell_sketches(cut: Blocks, of: str, vectors: _Sketched, firsts: list[int], block: int) -> None:
    at = firsts[block]
    for (urls, merits), rows in alike.comparable(cut.task, of, ["bins"], cut.span(block)):
        vectors.urls.put(at, urls)
        vectors.merits.put(at, merits)
        vectors.bins.put(at * BINS, np.frombuffer(b"".join(rows.column(0).to_pylist()), "<u8"))
        at += len(urls)


def _fill_band(vectors: _Sketched, bands: int, band: int) -> None:
    pages = vectors.urls.length
    vectors.buckets.put(band * pages, band_buckets(vectors.rows(), np.arange(pages), band, bands))


def _lead(cut: Blocks, vectors: _Sketched, bands: int, needed: int, block: int) -> None:
    order, buckets = np.argsort(vectors.merits.values()), vectors.buckets.values().reshape(bands, -1)
    with cut.part(block) as task:
        alike.write_led(task, vectors.urls.values(), *alike.leaders(vectors.rows(), order, buckets, needed))


def cascades(context: SparkContext, cut: Blocks) -> None:
    cut.vector("near").create()
    for work in (_tell_near, _deal_stories, _write_cascades):
        everywhere(context, partial(work, cut), cut.count)
    cut.gather()


def _tell_near(cut: Blocks, block: int) -> None:
    span = cut.span(block)
    cut.vector("near").put(span.first, alike.near_heads(cut.task, span))


def _deal_stories(cut: Blocks, block: int) -> None:
    rows = np.stack(alike.in_stories(cut.task, cut.vector("near").values(), cut.span(block)))
    cut.deal("stories", block, cut.of(rows[0]), rows)


def _write_cascades(cut: Blocks, block: int) -> None:
    with cut.part(block) as task:
        alike.write_cascades(task, *cut.joined("stories", block, 3))


STAGES: Mapping[str, Callable[[SparkContext, Blocks], None]] = {
    "ends": ends,
    "graph": graph,
    "ranks": ranks,
    "web_ranks": web_ranks,
    "map": site_map,
    "broken": broken,
    "external": external,
    "duplicates": duplicates,
    "sketches": sketches,
    "near": near,
    "outlines": outlines,
    "templates": templates,
    "interlinking": interlinking,
    "cascades": cascades,
}
