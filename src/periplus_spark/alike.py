"""Duplicate pages, near-duplicates, pages with shared navigation, and the spread of texts."""

from __future__ import annotations

from collections.abc import Iterator, Set
from pathlib import Path
from typing import NamedTuple

import numpy as np

from periplus.analyse.audit_input import UNFOLLOWED_KINDS
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
from periplus.analyse.linkgraph import PAGES
from periplus.document.digest import without_marks
from periplus.model.arrays import Floats, Ints, Mask
from periplus.model.page import CLICK_KINDS, FOLLOWED_KINDS, LinkKind
from periplus.model.visit import FETCHED_REASONS, REASONS_OF, State
from periplus_spark.files import BLOCK_ROWS, Span, StageTask, blocks, is_among, manifest_in, numbers

PAGE_REASONS = sorted(reason.value for reason in PAGES)
FETCHED_NAMES = sorted(reason.value for reason in FETCHED_REASONS)
FAILED_REASONS = sorted(reason.value for reason in REASONS_OF[State.FAILED])
CLICKS = sorted(kind.value for kind in CLICK_KINDS)
FOLLOWED_LINKS = sorted(kind.value for kind in FOLLOWED_KINDS)
CHECKED_LINKS = sorted(kind.value for kind in LinkKind if kind not in UNFOLLOWED_KINDS)

DEPTH_MOST, LENGTH_MOST, NUMBER_BITS, LENGTH_BITS = 1022, 8191, 40, 13
"""Limits of the fields of a merit, which is packed into 63 bits.

Longer URLs compare as equally long, deeper pages as equally deep.
"""
FOLDER = r"^[a-z]+://(?:www\.)?([^?]*)/.*$"
"""The folder of a URL, without scheme and `www.`, as in surveys."""

TEXT_ROWS = 2_000  # per read: about 10 MB
HOUR_MS = 3_600_000.0
NO_DATE = np.iinfo(np.int64).min
LIKE = ("bytes", "words", "folded")  # what a page has in common with the leader of its group


class UrlVectors(NamedTuple):
    """Values per URL: 11 bytes."""

    site: Ints
    page: Mask
    fetched: Mask
    failed: Mask


def url_vectors(dataset: Path, span: Span | None = None) -> UrlVectors:
    return UrlVectors(
        numbers(dataset, "urls", "site", span=span),
        is_among(dataset, "urls", "reason", PAGE_REASONS, span),
        is_among(dataset, "urls", "reason", FETCHED_NAMES, span),
        is_among(dataset, "urls", "reason", FAILED_REASONS, span),
    )


def end_vector(ends_folder: Path, urls: int, first: int = 0) -> Ints:
    """For each URL from `first` on, the URL at the end of its redirects: itself without redirects, -1 for a loop."""
    end = np.arange(first, first + urls)
    span = Span("source", first, first + urls)
    end[numbers(ends_folder, "ends", "source", span=span) - first] = numbers(
        ends_folder, "ends", "end", missing=-1, span=span
    )
    return end


def homes(ends: Ints, urls: UrlVectors) -> Ints:
    """The home pages of all sites that have one, ascending: the first fetched page among the targets of the site's
    start URLs.

    ends: target of each start URL, -1 for a loop.
    """
    ends = np.unique(ends[ends >= 0])
    ends = ends[urls.fetched[ends]]
    _, first = np.unique(urls.site[ends], return_index=True)
    first_ends: Ints = np.sort(ends[first])
    return first_ends


def merits(depth: Ints, length: Ints, number: Ints) -> Ints:
    """Sort keys of pages, best first: fewer clicks from the start (-1: not linked), then shorter URL, then URL text."""
    near = np.where(depth < 0, DEPTH_MOST + 1, np.minimum(depth, DEPTH_MOST))
    merit: Ints = (near << (LENGTH_BITS + NUMBER_BITS)) | (np.minimum(length, LENGTH_MOST) << NUMBER_BITS) | number
    return merit


def merits_of(dataset: Path) -> Ints:
    """The merit of each URL."""
    import pyarrow.compute as pc

    texts = blocks(dataset, "urls", ["text"])
    lengths = [np.asarray(pc.binary_length(block.column(0)), np.int64) for block in texts]
    length = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    number = np.arange(len(length))
    return merits(numbers(dataset, "urls", "depth"), length, number)


def directory_hashes(dataset: Path, span: Span | None = None) -> Ints:
    """For each URL, a 64-bit hash of its folder."""
    import pyarrow.compute as pc
    import xxhash

    parts = []
    for block in blocks(dataset, "urls", ["text"], span=span):
        names = pc.replace_substring_regex(block.column(0), FOLDER, r"\1").dictionary_encode()
        hashes = np.fromiter(
            (xxhash.xxh3_64_intdigest(name.encode()) for name in names.dictionary.to_pylist()),
            np.uint64,
            len(names.dictionary),
        )
        parts.append(hashes.view(np.int64)[np.asarray(names.indices)])
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


# Texts are processed page by page, everything else as arrays; large data (sketches, buckets) is in files and is read
# when needed.
# Near-duplicates are determined by 128 MinHash values only, since at this size no text can be read twice. In the order
# of merit, each page joins the most similar earlier page that leads a group and shares a band with it; otherwise it
# leads a new group. So groups do not drift along chains of small differences, and every engine finds the same groups.


def duplicates(task: StageTask) -> None:
    """Groups pages with equal folded text, by digest; the page with the best merit leads."""
    rows = twins(digest_columns(task.dataset))
    page, head, like = rows[:, np.argsort(rows[0])]
    task.write("duplicates", {"url": page, "group": head, "like": np.array(LIKE)[like].tolist()})


def digest_columns(dataset: Path) -> Ints:
    """int64[8, pages] for the fetched pages: URL number, merit, and two numbers each for the
    digests of the folded text, the text and the body.
    """
    names = ("folded_digest", "text_digest", "body_digest")
    parts: list[list[Ints]] = [[np.zeros((0, 2), np.int64)] for _ in names]
    for block in blocks(dataset, "pages", names, rows=BLOCK_ROWS // 8):
        for part, values in zip(parts, block.columns, strict=True):
            part.append(np.frombuffer(bytes.fromhex("".join(values.to_pylist())), "<i8").reshape(-1, 2))
    page = numbers(dataset, "pages", "url")
    merit = merits_of(dataset)[page]
    fetched = is_among(dataset, "urls", "reason", FETCHED_NAMES)[page]
    columns: Ints = np.vstack([page, merit, *(np.concatenate(part).T for part in parts)])
    return columns[:, fetched]


def twins(pages: Ints) -> Ints:
    """int64[3, rows] for pages that share their folded text: the page, the leader of its group, and what they have in
    common, as an index in LIKE.

    pages: as returned by `digest_columns`.
    """
    pages = pages[:, np.lexsort((pages[1], pages[3], pages[2]))]
    first = np.ones(pages.shape[1], np.bool_)
    first[1:] = (pages[2:4, 1:] != pages[2:4, :-1]).any(axis=0)
    group = np.cumsum(first) - 1
    heads = pages[:, np.flatnonzero(first)[group]]
    same = pages == heads
    like = np.where(same[6:8].all(axis=0), 0, np.where(same[4:6].all(axis=0), 1, 2))
    is_shared = (np.bincount(group, minlength=1) > 1)[group]
    rows: Ints = np.stack([pages[0], heads[0], like])[:, is_shared]
    return rows


def _content(text: str, content: str | None) -> Hashes:
    return shingles(without_marks(text if content is None else content))


def sketch_rows(urls: Ints, texts: list[str], contents: list[str | None]) -> tuple[Ints, Ints, list[bytes]]:
    """Columns of a table of sketches; pages without text are left out."""
    hashes = [_content(text or "", content) for text, content in zip(texts, contents, strict=True)]
    full = [place for place, names in enumerate(hashes) if len(names)]
    counts = np.array([len(hashes[place]) for place in full], np.int64)
    return urls[full], counts, [sketch(hashes[place]).astype("<u8").tobytes() for place in full]


def sketches(task: StageTask, span: Span | None = None) -> None:
    with task.writer("sketches") as writer:
        for block in blocks(task.dataset, "texts", ["url", "text", "content"], rows=TEXT_ROWS, span=span):
            urls, texts, contents = block.columns
            rows = sketch_rows(np.asarray(urls, np.int64), texts.to_pylist(), contents.to_pylist())
            writer.add(dict(zip(("url", "shingles", "bins"), rows, strict=True)))


def near(task: StageTask) -> None:
    """Writes groups of similar pages from the table of sketches."""
    threshold = task.order.near
    with (task.scratch / "bins").open("wb") as file:
        parts = [np.zeros((2, 0), np.int64)]
        for pages, sketches_there in _comparable(task):
            file.write(b"".join(sketches_there))
            parts.append(pages)
    urls, merit = np.concatenate(parts, axis=1)
    bins, bands = np.zeros((0, BINS), np.uint64), BINS // band_bins(threshold)
    buckets = np.zeros((bands, 0), np.int64)
    if len(urls):
        bins = np.memmap(task.scratch / "bins", np.uint64, "r", shape=(len(urls), BINS))
        buckets = np.memmap(task.scratch / "buckets", np.int64, "w+", shape=(bands, len(urls)))
        fill_buckets(bins, np.arange(len(urls)), buckets)
    write_led(task, urls, *leaders(bins, np.argsort(merit), buckets, needed_values(threshold)))


def _comparable(task: StageTask) -> Iterator[tuple[Ints, list[bytes]]]:
    """Yields (int64[2, pages]: URLs and merits of pages with enough text to compare; their sketches).

    Duplicates are left out.
    """
    import pyarrow as pa

    merit = merits_of(task.dataset)
    is_left_out = np.zeros(len(merit), np.bool_)
    page, head = (numbers(task.folders["duplicates"], "duplicates", column) for column in ("url", "group"))
    is_left_out[page[page != head]] = True
    for block in blocks(task.folders["sketches"], "sketches", ["url", "shingles", "bins"], TEXT_ROWS * 10):
        urls = np.asarray(block.column(0), np.int64)
        fit = (np.asarray(block.column(1)) >= SHINGLES_LEAST) & ~is_left_out[urls]
        yield np.stack([urls[fit], merit[urls[fit]]]), block.column(2).filter(pa.array(fit)).to_pylist()


def needed_values(threshold: float) -> int:
    """The least number of equal MinHash values of two pages in a group."""
    return int(np.ceil(threshold * BINS - 1e-9))


def write_led(task: StageTask, urls: Ints, leader: Ints, similarity: Floats) -> None:
    """Writes the stage's table of groups of at least two pages. leader: index in urls."""
    size = np.bincount(leader, minlength=1)[leader] > 1
    columns = {"url": urls[size], "group": urls[leader[size]], "similarity": similarity[size]}
    task.write(task.stage.name, columns)


def leaders(bins: Hashes, order: Ints, buckets: Ints, needed: int) -> tuple[Ints, Floats]:
    """(leader of each page's group, share of MinHash values equal to the leader's).

    order: pages by merit. buckets: int64[bands, pages]. needed: values that must be equal.
    """
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(len(order))

    def nearest(page: int, candidates: Set[int]) -> tuple[int, float]:
        rows = np.array(sorted(candidates, key=turn.__getitem__))
        equal = (bins[rows] == bins[page]).sum(axis=1)
        best = int(np.argmax(equal))  # the best merit among equals
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
    """Groups all duplicates and near-duplicates of a text; texts on a single site are left out."""
    _write_cascades(task, *_in_stories(task))


def _in_stories(task: StageTask) -> tuple[Ints, Ints, Ints]:
    """(leader of the text, site, time) for each page whose text is on other pages too."""
    dataset, story = task.dataset, np.full(manifest_in(task.dataset).rows("urls"), -1)
    for stage in ("near", "duplicates"):
        page, head = (numbers(task.folders[stage], stage, column) for column in ("url", "group"))
        story[page] = np.where(story[head] >= 0, story[head], head)  # a leader may be in a group of near duplicates
    page, site = numbers(dataset, "pages", "url"), numbers(dataset, "urls", "site")
    dated = numbers(dataset, "pages", "last_modified", NO_DATE)
    dated = np.where(dated == NO_DATE, numbers(dataset, "urls", "first_seen")[page], dated)
    has_story = story[page] >= 0
    return story[page][has_story], site[page][has_story], dated[has_story]


def _write_cascades(task: StageTask, story: Ints, site: Ints, dated: Ints) -> None:
    order = np.lexsort((dated, site, story))
    first = np.ones(len(order), np.bool_)
    first[1:] = (story[order[1:]] != story[order[:-1]]) | (site[order[1:]] != site[order[:-1]])
    order = order[first]  # the first page of each site with each text
    order = order[np.lexsort((site[order], dated[order], story[order]))]
    begins = np.flatnonzero(np.diff(story[order], prepend=-1))
    sites = np.diff(np.append(begins, len(order)))
    start = np.repeat(begins, sites)
    spread = np.repeat(sites > 1, sites)
    place = np.arange(len(order)) - start
    delay_h = (dated[order] - dated[order[start]]) / HOUR_MS
    columns = {"story": story[order], "site": site[order], "place": place, "when": dated[order], "delay_h": delay_h}
    task.write("cascades", {name: values[spread] for name, values in columns.items()})
