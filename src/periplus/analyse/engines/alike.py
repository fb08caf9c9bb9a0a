"""Which pages count, and which of them say the same, nearly the same, or share their navigation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from periplus.analyse.audit_input import NOT_FOLLOWED
from periplus.analyse.duplicates import (
    BINS,
    SHINGLES_LEAST,
    Hashes,
    band_bins,
    fill_buckets,
    led,
    shingles,
    sketch,
)
from periplus.analyse.engines.dataset_files import BLOCK_ROWS, Ints, Mask, blocks, flags, is_among, manifest_in, numbers
from periplus.analyse.engines.stages import StageTask
from periplus.analyse.linkgraph import PAGES
from periplus.document.digest import without_marks
from periplus.model.page import FOLLOWED_KINDS, LinkKind
from periplus.model.visit import FETCHED, STATE_OF, Reason, State

PAGE_REASONS = sorted(reason.value for reason in PAGES)
FETCHED_REASONS = sorted(reason.value for reason in FETCHED)
INVALID_REASONS = sorted(reason.value for reason in Reason if STATE_OF[reason] is State.INVALID)
FOLLOWED = sorted(kind.value for kind in FOLLOWED_KINDS)
ASKED = sorted(kind.value for kind in LinkKind if kind not in NOT_FOLLOWED)

DEPTH_MOST, LENGTH_MOST, NUMBER_BITS, LENGTH_BITS = 1022, 8191, 40, 13
"""What a merit has room for: it is one number of 63 bits.

Longer URLs are alike in length, and deeper pages in depth.
"""
FOLDER = r"^[a-z]+://(?:www\.)?([^?]*)/.*$"
"""Of a URL, what names the folder that it lies in: without scheme and `www.`,
as analyse.webometrics tells directories.
"""


class UrlVectors(NamedTuple):
    """What is held of each URL: 11 bytes."""

    site: Ints
    page: Mask
    fetched: Mask
    invalid: Mask


def url_vectors(dataset: Path) -> UrlVectors:
    return UrlVectors(
        numbers(dataset, "urls", "site"),
        is_among(dataset, "urls", "reason", PAGE_REASONS),
        is_among(dataset, "urls", "reason", FETCHED_REASONS),
        is_among(dataset, "urls", "reason", INVALID_REASONS),
    )


def end_vector(ends_folder: Path, urls: int) -> Ints:
    """Of each URL, where redirects lead from there: itself where there are none, -1 in a circle."""
    end = np.arange(urls)
    end[numbers(ends_folder, "ends", "source")] = numbers(ends_folder, "ends", "end", missing=-1)
    return end


def homes(dataset: Path, end: Ints, urls: UrlVectors) -> Ints:
    """The home page of each site that has one, ascending: where its first start leads."""
    ends = end[flags(dataset, "urls", "is_start")]
    ends = np.unique(ends[ends >= 0])
    ends = ends[urls.fetched[ends]]
    _, first = np.unique(urls.site[ends], return_index=True)
    first_ends: Ints = np.sort(ends[first])
    return first_ends


def merits(depth: Ints, length: Ints, number: Ints) -> Ints:
    """By which pages go in order, the least first: nearer to the start (-1: no link leads there), shorter URL,
    then by the URL's text.
    """
    near = np.where(depth < 0, DEPTH_MOST + 1, np.minimum(depth, DEPTH_MOST))
    merit: Ints = (near << (LENGTH_BITS + NUMBER_BITS)) | (np.minimum(length, LENGTH_MOST) << NUMBER_BITS) | number
    return merit


def merits_of(dataset: Path) -> Ints:
    """Of each URL."""
    import pyarrow.compute as pc

    lengths = [np.asarray(pc.binary_length(block.column(0)), np.int64) for block in blocks(dataset, "urls", ["text"])]
    length = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    return merits(numbers(dataset, "urls", "depth"), length, np.arange(len(length)))


def directory_hashes(dataset: Path) -> Ints:
    """Of each URL, 64 bits that name the folder that it lies in."""
    import pyarrow.compute as pc
    import xxhash

    parts = []
    for block in blocks(dataset, "urls", ["text"]):
        names = pc.replace_substring_regex(block.column(0), FOLDER, r"\1").dictionary_encode()
        hashes = np.fromiter(
            (xxhash.xxh3_64_intdigest(name.encode()) for name in names.dictionary.to_pylist()),
            np.uint64,
            len(names.dictionary),
        )
        parts.append(hashes.view(np.int64)[np.asarray(names.indices)])
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


# Page by page for texts, by arrays for the rest; what is large (sketches, buckets) lies in files and is
# read where it is looked at.
#
# Near pages are told by 128 MinHash values alone, since at this size no text is read twice. Each page in the
# order of merit joins the page before it that is most like it among those that stand for a group and share a
# band with it, or else stands for a group itself. So a group does not drift along a chain of small steps, and
# every engine finds the same ones.

TEXT_ROWS = 2_000  # of texts read at once: some 10 MB
HOUR_MS = 3_600_000.0
UNDATED = np.iinfo(np.int64).min
Names = Callable[[str, str | None], Hashes]  # (text, content) of a page: what it is compared by, ascending and distinct


def duplicates(task: StageTask) -> None:
    """By digests: pages of one folded text, the first by merit standing for all."""
    merit = merits_of(task.dataset)
    fetched = is_among(task.dataset, "urls", "reason", FETCHED_REASONS)
    page, folded, text, body = _digests(task)
    is_fetched = fetched[page]
    page, folded, text, body = page[is_fetched], folded[is_fetched], text[is_fetched], body[is_fetched]
    order = np.lexsort((merit[page], folded["low"], folded["high"]))
    page, folded, text, body = page[order], folded[order], text[order], body[order]
    first = np.ones(len(page), np.bool_)
    first[1:] = folded[1:] != folded[:-1]
    group = np.cumsum(first) - 1
    head = np.flatnonzero(first)[group]
    like = np.where(body == body[head], "bytes", np.where(text == text[head], "words", "folded"))
    some = (np.bincount(group, minlength=1) > 1)[group]
    rows = np.flatnonzero(some)[np.argsort(page[some])]
    task.write("duplicates", {"url": page[rows], "group": page[head[rows]], "like": like[rows].tolist()})


_DIGEST = np.dtype([("high", "<u8"), ("low", "<u8")])


def _digests(task: StageTask) -> tuple[Ints, np.ndarray, np.ndarray, np.ndarray]:
    """(page, folded, text, body digest): 56 bytes a page."""
    names = ("folded_digest", "text_digest", "body_digest")
    columns: list[list[np.ndarray]] = [[], [], []]
    for block in blocks(task.dataset, "pages", names, rows=BLOCK_ROWS // 8):
        for column, values in zip(columns, block.columns, strict=True):
            column.append(np.frombuffer(bytes.fromhex("".join(values.to_pylist())), _DIGEST))
    none = np.zeros(0, _DIGEST)
    folded, text, body = (np.concatenate([none, *column]) for column in columns)
    return numbers(task.dataset, "pages", "url"), folded, text, body


def _content(text: str, content: str | None) -> Hashes:
    return shingles(without_marks(text if content is None else content))


def _outline(text: str, content: str | None) -> Hashes:
    """The lines of a page that are no content, each as one name: pages of one template share most of them."""
    import xxhash

    own = frozenset(() if content is None else content.split("\n"))
    lines = {
        xxhash.xxh3_64_intdigest(line.encode("utf-8", "surrogatepass"))
        for line in text.split("\n")
        if line and line not in own
    }
    return np.array(sorted(lines), np.uint64)


def sketch_rows(
    names_of: Names, urls: Ints, texts: list[str], contents: list[str | None]
) -> tuple[Ints, Ints, list[bytes]]:
    """Columns of a table of sketches; pages without a text have no row."""
    hashes = [names_of(text or "", content) for text, content in zip(texts, contents, strict=True)]
    full = [place for place, names in enumerate(hashes) if len(names)]
    counts = np.array([len(hashes[place]) for place in full], np.int64)
    return urls[full], counts, [sketch(hashes[place]).astype("<u8").tobytes() for place in full]


def _sketched(names_of: Names, task: StageTask) -> None:
    with task.writer("sketches") as writer:
        for block in blocks(task.dataset, "texts", ["url", "text", "content"], rows=TEXT_ROWS):
            urls, texts, contents = block.columns
            rows = sketch_rows(names_of, np.asarray(urls, np.int64), texts.to_pylist(), contents.to_pylist())
            writer.add(dict(zip(("url", "shingles", "bins"), rows, strict=True)))


NAMES: dict[str, Names] = {"sketches": _content, "outlines": _outline}
sketches = partial(_sketched, _content)
outlines = partial(_sketched, _outline)


def near(task: StageTask) -> None:
    """Among pages that no other with the same text stands for."""
    twins = numbers(task.folders["duplicates"], "duplicates", "url")
    others = twins[twins != numbers(task.folders["duplicates"], "duplicates", "group")]
    _alike(task, "sketches", "near", task.order.near, others)


def templates(task: StageTask) -> None:
    _alike(task, "outlines", "templates", task.order.template, np.zeros(0, np.int64))


def _alike(task: StageTask, of: str, table: str, threshold: float, left_out: Ints) -> None:
    """Groups of the pages of a table of sketches."""
    urls, bins = _bins(task, of, left_out)
    order = np.argsort(merits_of(task.dataset)[urls])
    buckets = _buckets(task, bins, BINS // band_bins(threshold))
    leader, similarity = leaders(bins, order, buckets, int(np.ceil(threshold * BINS - 1e-9)))
    size = np.bincount(leader, minlength=1)[leader] > 1
    task.write(table, {"url": urls[size], "group": urls[leader[size]], "similarity": similarity[size]})


def _bins(task: StageTask, of: str, left_out: Ints) -> tuple[Ints, Hashes]:
    """(pages with enough to compare, their MinHash values: in a file, 1 kB a page)."""
    path = task.scratch / "bins"
    pages = []
    with path.open("wb") as file:
        for block in blocks(task.folders[of], "sketches", ["url", "shingles", "bins"], rows=TEXT_ROWS * 10):
            urls = np.asarray(block.column(0), np.int64)
            fit = (np.asarray(block.column(1)) >= SHINGLES_LEAST) & ~np.isin(urls, left_out)
            rows = block.column(2).filter(fit).to_pylist()
            file.write(b"".join(rows))
            pages.append(urls[fit])
    urls = np.concatenate(pages) if pages else np.zeros(0, np.int64)
    return urls, np.memmap(path, np.uint64, "r", shape=(len(urls), BINS)) if len(urls) else np.zeros(
        (0, BINS), np.uint64
    )


def _buckets(task: StageTask, bins: Hashes, bands: int) -> Ints:
    """int64[bands, pages]: as duplicates.fill_buckets, in a file."""
    if not len(bins):
        return np.zeros((bands, 0), np.int64)
    buckets = np.memmap(task.scratch / "buckets", np.int64, "w+", shape=(bands, len(bins)))
    fill_buckets(bins, np.arange(len(bins)), buckets)
    return buckets


def leaders(
    bins: Hashes, order: Ints, buckets: Ints, needed: int
) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """(of each page the one that stands for its group, the share of equal values with it).

    order: pages by merit; buckets: int64[bands, pages]; needed: values that must be equal.
    """
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(len(order))

    def nearest(page: int, candidates: Set[int]) -> tuple[int, float]:
        rows = np.array(sorted(candidates, key=turn.__getitem__))
        equal = (bins[rows] == bins[page]).sum(axis=1)
        best = int(np.argmax(equal))  # of equal ones the first by merit
        return (int(rows[best]), equal[best] / BINS) if equal[best] >= needed else (-1, 0.0)

    leader, similarity = np.arange(len(order)), np.ones(len(order))
    for page, head, share in led(_rows(order, buckets), nearest):
        leader[page], similarity[page] = head, share
    return leader, similarity


def _rows(order: Ints, buckets: Ints) -> Iterator[tuple[int, list[int]]]:
    for start in range(0, len(order), BLOCK_ROWS // 16):
        pages = order[start : start + BLOCK_ROWS // 16]
        yield from zip(pages.tolist(), buckets[:, pages].T.tolist(), strict=True)


def cascades(task: StageTask) -> None:
    """A text's pages: those of one near group with all their twins. Texts of one site are none."""
    pages = numbers(task.dataset, "pages", "url")
    story = _stories(task, manifest_in(task.dataset).rows("urls"))[pages]
    dated = numbers(task.dataset, "pages", "last_modified", missing=UNDATED)
    dated = np.where(dated == UNDATED, numbers(task.dataset, "urls", "first_seen")[pages], dated)
    site = numbers(task.dataset, "urls", "site")[pages]
    in_story = np.flatnonzero(story >= 0)
    order = in_story[np.lexsort((dated[in_story], site[in_story], story[in_story]))]
    first = np.ones(len(order), np.bool_)
    first[1:] = (story[order[1:]] != story[order[:-1]]) | (site[order[1:]] != site[order[:-1]])
    order = order[first]  # of each site its first page of each text
    order = order[np.lexsort((site[order], dated[order], story[order]))]
    begins = np.flatnonzero(np.diff(story[order], prepend=-1))
    sites = np.diff(np.append(begins, len(order)))
    start = np.repeat(begins, sites)
    spread = np.repeat(sites > 1, sites)
    place = np.arange(len(order)) - start
    delay_h = (dated[order] - dated[order[start]]) / HOUR_MS
    columns = {"story": story[order], "site": site[order], "place": place, "when": dated[order], "delay_h": delay_h}
    task.write("cascades", {name: values[spread] for name, values in columns.items()})


def _stories(task: StageTask, urls: int) -> Ints:
    """Of each URL the page that stands for all that say what it does, or nearly so; -1: it is in no group."""
    same, alike = task.folders["duplicates"], task.folders["near"]
    story = np.full(urls, -1)
    page, head = numbers(same, "duplicates", "url"), numbers(same, "duplicates", "group")
    story[page] = head
    near_page = numbers(alike, "near", "url")
    story[near_page] = numbers(alike, "near", "group")
    story[page] = story[head]  # heads may stand in a near group
    return story
