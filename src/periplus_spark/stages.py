"""Stages that a cluster computes, with the same results as a single machine (`streamed`), in blocks.

The other stages run on one machine, which takes a third of the CPU of a cluster or less: ranks over all sites exchange
every score in each round, and near duplicates are chosen one after another.

Each stage function runs a few rounds of tasks, which exchange data through files. Only a few numbers per site pass
through the driver.

Each task computes a block of URLs. All files are in the stage's scratch folder, which has the same path on every
machine. Tasks are idempotent: a repeated task writes the same files again, so a lost machine only costs its running
tasks. Tasks exchange arrays of 64-bit numbers, not rows: a round takes 0.07 s of CPU; with Spark's own shuffle it took
0.25 s.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.linkgraph import count_values, sort_distinct
from periplus.errors import PeriplusError
from periplus.model.arrays import Ints
from periplus.values import frozen
from periplus_spark import alike, streamed
from periplus_spark.files import Span, StageTask, blocks, flags, manifest_in, numbers

if TYPE_CHECKING:
    from pyspark import SparkContext

T = TypeVar("T")

URLS_A_TASK = 4_000_000  # limited by memory, 100 bytes per URL: see docs/cluster.md
LINKS_A_TASK = 40_000_000
_NUMBER = 8  # bytes
LINKS_AT_ONCE = 1 << 22  # sent in one file: 64 MB, which avoids many small files for large webs
DRAFT = ".draft"
_URLS = {"site": "<i8", "page": "?", "fetched": "?", "failed": "?"}


class Vector(NamedTuple):
    """An array in a file, with a number for each URL. Tasks write parts of it, and map the whole file into memory."""

    path: Path
    kind: str  # of NumPy
    length: int

    def create(self) -> Vector:
        with self.path.open("wb") as file:
            file.truncate(self.length * np.dtype(self.kind).itemsize)
        return self

    def put(self, first: int, values: NDArray[Any]) -> None:
        with self.path.open("r+b") as file:
            file.seek(first * np.dtype(self.kind).itemsize)
            file.write(np.ascontiguousarray(values, self.kind).tobytes())

    def values(self) -> NDArray[Any]:
        if not self.length:
            return np.zeros(0, self.kind)
        return np.asarray(np.memmap(self.path, self.kind, "r", shape=(self.length,)))


@frozen
class UrlBlocks:
    """A stage, and `count` ranges of equal width of the dataset's URLs."""

    task: StageTask
    urls: int
    count: int

    @property
    def width(self) -> int:
        return max(-(-self.urls // self.count), 1)

    def span(self, block: int, column: str = "url") -> Span:
        first = min(block * self.width, self.urls)
        return Span(column, first, min(first + self.width, self.urls))

    def of(self, urls: Ints) -> Ints:
        """The block of each URL."""
        return urls // self.width

    def vector(self, name: str, kind: str = "<i8", length: int = -1) -> Vector:
        """A vector of `length` numbers; by default one for each URL."""
        return Vector(self.task.scratch / name, kind, self.urls if length < 0 else length)

    def deal(self, name: str, place: int | tuple[int, int], to: Ints, rows: Ints) -> None:
        """Sends rows, int64[columns, rows], to the blocks `to`.

        place: the position of these rows among all with this name: a source block, or (block, number within it).
        """
        order = np.argsort(to.astype(np.uint16 if self.count < 1 << 16 else np.int64), kind="stable")
        offsets = np.searchsorted(to[order], np.arange(self.count + 1))
        folder = self.task.scratch / name
        folder.mkdir(exist_ok=True)
        numbers = place if isinstance(place, tuple) else (place,)
        with _draft(folder / "-".join(f"{number:06}" for number in numbers)) as draft, draft.open("wb") as file:
            file.write(offsets.astype(np.int64).tobytes())
            for column in rows:
                file.write(column[order].tobytes())

    def dealt(self, name: str, block: int, columns: int) -> Iterator[Ints]:
        """The rows sent to this block, in the order of their places."""
        for path in sorted(path for path in (self.task.scratch / name).glob("*") if path.suffix != DRAFT):
            offsets = np.fromfile(path, np.int64, self.count + 1)
            count = int(offsets[block + 1] - offsets[block])
            starts = self.count + 1 + np.arange(columns) * offsets[-1] + offsets[block]
            if count:
                yield np.stack([np.fromfile(path, np.int64, count, offset=int(start) * _NUMBER) for start in starts])

    def concatenate(self, name: str, block: int, columns: int) -> Ints:
        return np.concatenate([np.zeros((columns, 0), np.int64), *self.dealt(name, block, columns)], axis=1)

    @contextlib.contextmanager
    def part(self, number: int) -> Iterator[StageTask]:
        """The stage with an output folder for a part of its tables; `gather` joins the parts in order of number."""
        with _draft(self.task.scratch / "parts" / f"{number:06}") as draft:
            scratch = draft.with_name(f"{draft.name}.scratch")
            scratch.mkdir(parents=True)
            yield replace(self.task, out=draft, scratch=scratch)
            shutil.rmtree(scratch)

    def gather(self) -> None:
        """Moves the parts of the tables to the output folder of the stage."""
        parts = sorted(path for path in (self.task.scratch / "parts").iterdir() if path.suffix != DRAFT)
        for table in self.task.stage.tables:
            (self.task.out / table).mkdir()
            paths = [path for part in parts for path in sorted((part / table).glob("*.parquet"))]
            for number, path in enumerate(paths):
                path.rename(self.task.out / table / f"part-{number:05}.parquet")


@contextlib.contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """A temporary name for a file or folder, renamed when it is complete: a task may run twice at the same time."""
    draft = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(4).hex()}{DRAFT}")
    yield draft
    if path.is_dir():
        shutil.rmtree(path)
    draft.rename(path)


def blocks_of(task: StageTask, cores: int, memory_bytes: int) -> UrlBlocks:
    """Chooses the number of blocks. memory_bytes: per core; 0: unknown."""
    manifest = manifest_in(task.dataset)
    urls = manifest.rows("urls")
    most = min(URLS_A_TASK, max(memory_bytes // 100, 1000)) if memory_bytes else URLS_A_TASK
    sizes = (cores, -(-urls // most), -(-manifest.rows("links") // LINKS_A_TASK))
    return UrlBlocks(task, urls, max(sizes))


def run_tasks(context: SparkContext, work: Callable[[int], T], count: int) -> list[T]:
    """The results of work for the numbers below `count`, in order, each computed by a task.

    work: a function of this program, which is installed on every machine, with its arguments bound. PeriplusErrors of
    tasks are raised here.
    """
    results = []
    for outcome in context.parallelize(range(count), max(count, 1)).map(partial(_outcome, work)).collect():
        if isinstance(outcome, PeriplusError):
            raise outcome
        results.append(outcome)
    return results


def _outcome(work: Callable[[int], T], number: int) -> T | PeriplusError:
    """Returns a PeriplusError as a result: if it were raised, Spark would retry the task and print a traceback."""
    try:
        return work(number)
    except PeriplusError as error:
        return error


def ends(context: SparkContext, cut: UrlBlocks) -> None:
    """Runs in a single task, which holds only redirects in memory: 100 bytes each."""
    run_tasks(context, partial(_ends, cut), 1)
    cut.gather()


def _ends(cut: UrlBlocks, block: int) -> None:
    with cut.part(block) as task:
        streamed.ends(task)


# Facts about each URL are in vectors that all tasks map into memory: 19 bytes per URL on the shared folder; a machine
# only loads the pages that its links need.


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


# Ranks within sites: each task gets whole sites, with about the same number of pages, and computes them as a
# single machine does. The place of a page is its index among the pages of its task.


def ranks(context: SparkContext, cut: UrlBlocks) -> None:
    _deal_sites(context, cut)
    run_tasks(context, partial(_site_ranks, cut), cut.count)
    run_tasks(context, partial(_write_ranks, cut), cut.count)
    cut.gather()


def _deal_sites(context: SparkContext, cut: UrlBlocks) -> None:
    """Sends each task the pages and links of its sites."""
    sizes = run_tasks(context, partial(_site_sizes, cut), cut.count)
    sites = max((int(own[-1]) + 1 for own, _ in sizes if len(own)), default=0)
    size = np.zeros(sites, np.int64)
    for own, counts in sizes:
        size[own] += counts
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
    task = owners.values()[site]
    place = np.full(span.after - span.first, -1)
    for number in np.unique(task).tolist():
        own = pages[task == number]
        place[own - span.first] = first[block, number] + np.arange(len(own))
    cut.vector("place").put(span.first, place)
    cut.deal("pages", block, task, np.stack([pages, site]))


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


def _site_ranks(cut: UrlBlocks, block: int) -> None:
    pages, site = cut.concatenate("pages", block, 2)
    edges = ((source, target) for source, target in cut.dealt("links", block, 2))
    links = streamed.links_by_source(edges, len(pages), cut.task.scratch / f"targets-{block}")
    scores = streamed.scores_in(links, np.unique(site, return_inverse=True)[1], cut.task.order)
    cut.deal("results", block, cut.of(pages), np.stack([pages, scores.view(np.int64)]))


def _write_ranks(cut: UrlBlocks, block: int) -> None:
    rows = cut.concatenate("results", block, 2)
    url, rank = rows[:, np.argsort(rows[0])]
    with cut.part(block) as task:
        task.write("ranks", {"url": url, "rank": rank.view(np.float64)})


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


def sketches(context: SparkContext, cut: UrlBlocks) -> None:
    run_tasks(context, partial(_sketch, cut), cut.count)
    cut.gather()


def _sketch(cut: UrlBlocks, block: int) -> None:
    with cut.part(block) as task:
        alike.sketches(task, cut.span(block))


STAGES: Mapping[str, Callable[[SparkContext, UrlBlocks], None]] = {
    "ends": ends,
    "graph": graph,
    "ranks": ranks,
    "sketches": sketches,
    "interlinking": interlinking,
}
