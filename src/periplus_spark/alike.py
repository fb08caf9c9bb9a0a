"""Duplicate pages, near-duplicates, pages with shared navigation, and the spread of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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

if TYPE_CHECKING:
    import pyarrow as pa

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


def merits_of(dataset: Path, span: Span | None = None) -> Ints:
    """The merit of each URL."""
    import pyarrow.compute as pc

    texts = blocks(dataset, "urls", ["text"], span=span)
    lengths = [np.asarray(pc.binary_length(block.column(0)), np.int64) for block in texts]
    length = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    number = np.arange(len(length)) + (span.first if span else 0)
    return merits(numbers(dataset, "urls", "depth", span=span), length, number)


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

TEXT_ROWS = 2_000  # per read: about 10 MB
HOUR_MS = 3_600_000.0
NO_DATE = np.iinfo(np.int64).min
Names = Callable[[str, str | None], Hashes]  # (text, content) of a page -> hashes to compare, ascending and distinct


def duplicates(task: StageTask) -> None:
    """Groups pages with equal folded text, by digest; the page with the best merit leads."""
    write_twins(task, twins(digest_columns(task.dataset, Span("url", 0, manifest_in(task.dataset).rows("urls")))))


LIKE = ("bytes", "words", "folded")  # what a page has in common with the leader of its group


def digest_columns(dataset: Path, span: Span) -> Ints:
    """int64[8, pages] for the fetched pages with URLs in the span: URL number, merit, and two numbers each for the
    digests of the folded text, the text and the body.
    """
    names = ("folded_digest", "text_digest", "body_digest")
    parts: list[list[Ints]] = [[np.zeros((0, 2), np.int64)] for _ in names]
    for block in blocks(dataset, "pages", names, rows=BLOCK_ROWS // 8, span=span):
        for part, values in zip(parts, block.columns, strict=True):
            part.append(np.frombuffer(bytes.fromhex("".join(values.to_pylist())), "<i8").reshape(-1, 2))
    page = numbers(dataset, "pages", "url", span=span)
    merit = merits_of(dataset, span)[page - span.first]
    fetched = is_among(dataset, "urls", "reason", FETCHED_NAMES, span)[page - span.first]
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


def write_twins(task: StageTask, rows: Ints) -> None:
    page, head, like = rows[:, np.argsort(rows[0])]
    task.write("duplicates", {"url": page, "group": head, "like": np.array(LIKE)[like].tolist()})


def _content(text: str, content: str | None) -> Hashes:
    return shingles(without_marks(text if content is None else content))


def _outline(text: str, content: str | None) -> Hashes:
    """Hashes of the lines that are not content: pages made from one template share most of them."""
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
    """Columns of a table of sketches; pages without text are left out."""
    hashes = [names_of(text or "", content) for text, content in zip(texts, contents, strict=True)]
    full = [place for place, names in enumerate(hashes) if len(names)]
    counts = np.array([len(hashes[place]) for place in full], np.int64)
    return urls[full], counts, [sketch(hashes[place]).astype("<u8").tobytes() for place in full]


def _write_sketches(names_of: Names, task: StageTask, span: Span | None = None) -> None:
    with task.writer("sketches") as writer:
        for block in blocks(task.dataset, "texts", ["url", "text", "content"], rows=TEXT_ROWS, span=span):
            urls, texts, contents = block.columns
            rows = sketch_rows(names_of, np.asarray(urls, np.int64), texts.to_pylist(), contents.to_pylist())
            writer.add(dict(zip(("url", "shingles", "bins"), rows, strict=True)))


sketches = partial(_write_sketches, _content)
outlines = partial(_write_sketches, _outline)


def near(task: StageTask) -> None:
    write_alike(task, "sketches", task.order.near)


def templates(task: StageTask) -> None:
    write_alike(task, "outlines", task.order.template)


def write_alike(task: StageTask, of: str, threshold: float) -> None:
    """Writes groups of similar pages from a table of sketches."""
    with (task.scratch / "bins").open("wb") as file:
        parts = [np.zeros((2, 0), np.int64)]
        for pages, block in comparable(task, of, ["bins"]):
            file.write(b"".join(block.column(0).to_pylist()))
            parts.append(pages)
    urls, merit = np.concatenate(parts, axis=1)
    bins, bands = np.zeros((0, BINS), np.uint64), BINS // band_bins(threshold)
    buckets = np.zeros((bands, 0), np.int64)
    if len(urls):
        bins = np.memmap(task.scratch / "bins", np.uint64, "r", shape=(len(urls), BINS))
        buckets = np.memmap(task.scratch / "buckets", np.int64, "w+", shape=(bands, len(urls)))
        fill_buckets(bins, np.arange(len(urls)), buckets)
    write_led(task, urls, *leaders(bins, np.argsort(merit), buckets, needed_values(threshold)))


def comparable(
    task: StageTask, of: str, columns: Sequence[str], span: Span | None = None
) -> Iterator[tuple[Ints, pa.RecordBatch]]:
    """Yields (int64[2, pages], URLs and merits of pages with enough text to compare; the given columns of their
    sketches).

    Duplicates are left out if the stage depends on `duplicates`.
    """
    import pyarrow as pa

    merit = merits_of(task.dataset, span)
    first = span.first if span else 0
    left_out = np.zeros(len(merit), np.bool_)
    if "duplicates" in task.folders:
        page, head = (
            numbers(task.folders["duplicates"], "duplicates", column, span=span) for column in ("url", "group")
        )
        left_out[page[page != head] - first] = True
    for block in blocks(task.folders[of], "sketches", ["url", "shingles", *columns], TEXT_ROWS * 10, span):
        urls = np.asarray(block.column(0), np.int64)
        fit = (np.asarray(block.column(1)) >= SHINGLES_LEAST) & ~left_out[urls - first]
        pages = np.stack([urls[fit], merit[urls[fit] - first]])
        yield pages, block.select(list(columns)).filter(pa.array(fit))


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
    span = Span("url", 0, manifest_in(task.dataset).rows("urls"))
    head = near_heads(task, span)
    write_cascades(task, *in_stories(task, head, span))


def near_heads(task: StageTask, span: Span) -> Ints:
    """For each URL of the span, the leader of its near-duplicates; -1 if there are none."""
    head = np.full(span.after - span.first, -1)
    page = numbers(task.folders["near"], "near", "url", span=span)
    head[page - span.first] = numbers(task.folders["near"], "near", "group", span=span)
    return head


def in_stories(task: StageTask, near_head: Ints, span: Span) -> tuple[Ints, Ints, Ints]:
    """(leader of the text, site, time) for each page of the span whose text is on other pages too.

    near_head: of all URLs, as returned by `near_heads`.
    """
    pages = numbers(task.dataset, "pages", "url", span=span)
    story = near_head[span.first : span.after].copy()
    page = numbers(task.folders["duplicates"], "duplicates", "url", span=span)
    twin = numbers(task.folders["duplicates"], "duplicates", "group", span=span)
    # the leader may be in a group of near-duplicates
    story[page - span.first] = np.where(near_head[twin] >= 0, near_head[twin], twin)
    dated = numbers(task.dataset, "pages", "last_modified", NO_DATE, span)
    first_seen = numbers(task.dataset, "urls", "first_seen", span=span)
    site = numbers(task.dataset, "urls", "site", span=span)
    pages = pages - span.first
    dated = np.where(dated == NO_DATE, first_seen[pages], dated)
    has_story = story[pages] >= 0
    return story[pages][has_story], site[pages][has_story], dated[has_story]


def write_cascades(task: StageTask, story: Ints, site: Ints, dated: Ints) -> None:
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
