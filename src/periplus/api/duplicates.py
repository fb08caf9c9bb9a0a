"""Finds pages with equal or nearly equal text, regardless of encoding and markup.

Equal digests are confirmed by comparing the texts. Near duplicates are searched among the remaining pages by content
alone: shared navigation would make unrelated pages similar.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from periplus.analyse.duplicates import (
    Hashes,
    Head,
    NearHeads,
    Same,
    best_first,
    group_duplicates,
    is_in_full,
    near_heads,
    shingles,
    sketches,
)
from periplus.api.facts import chosen_start, site_starts
from periplus.api.marks import Marks
from periplus.document.digest import without_marks
from periplus.errors import StoreError, UsageError
from periplus.model.duplicates import Contender, DuplicateGroup, Duplicates
from periplus.model.page import BlockKind, Part
from periplus.model.web import SiteKey, UrlId
from periplus.store import text_rows
from periplus.store.bodies import pack_parts, unpack_parts
from periplus.store.crawl_reads import PageBlocks
from periplus.store.reader import CollectionReader
from periplus.values import Watch

NEAR = 0.8  # Jaccard similarity of shingles
LEAST_NEAR = 0.3  # below it most candidates are false, and the pages found are not copies
AT_ONCE = 200
SHINGLE_ROOM = 4_000_000  # in memory between two passes, 8 bytes each; of other pages they are made again
_APART = (BlockKind.TITLE, BlockKind.ALT)  # not part of the running text


def _silent(what: str, done: int, total: int) -> None:
    """Default: no progress reports."""


def duplicates(reader: CollectionReader, site: str = "", near: float = NEAR, watch: Watch = _silent) -> Duplicates:
    """Duplicate groups of a collection or a site.

    site: its key; empty: all sites. near: least similarity of near duplicates; 1.0: exact duplicates only. Raises
    UsageError for an unknown site.
    """
    if not LEAST_NEAR <= near <= 1.0:
        raise UsageError(f"near is {near:g}: give a share from {LEAST_NEAR:g} to 1")
    with reader.snapshot():
        name, site_id = _site(reader, site)
        pages, unmarked = text_rows.tally(reader, site_id)
        groups = duplicate_groups(reader, site_id, near, watch)
    notes = []
    if unmarked and near < 1.0 and not reader.statements.dialect.has_shards:  # a database has no place for marks
        notes.append(
            f"The content of {unmarked:,} pages was marked for this result only; `periplus index` stores the marks."
        )
    if any(not group.is_confirmed for group in groups):
        notes.append("Texts that are not stored were compared by digest only.")
    return Duplicates(name, near, pages, tuple(groups), tuple(notes))


def mark(folder: Path, reader: CollectionReader, now: float, watch: Watch = _silent) -> None:
    """Marks content and navigation on unmarked pages, as a search does first; does nothing during a crawl."""
    from periplus.api import search_index  # imports the full-text engine
    from periplus.retrieval.index import IndexBusy

    _, unmarked = text_rows.tally(reader)
    if not unmarked or reader.activity(now).is_running:
        return

    def show(done: int, waiting: int) -> bool:
        watch("Marking content", done, done + waiting)
        return False

    # if another process is indexing or the folder is read-only, the marks are computed for this result only
    with contextlib.suppress(IndexBusy, StoreError):
        search_index.catch_up(folder, show)


def _site(reader: CollectionReader, name: str) -> tuple[str, int | None]:
    """(key, number) of the named site; ("", None) for all sites."""
    if not name:
        return "", None
    site = chosen_start(site_starts(reader), name).site
    return site, site_number(reader, site)


def site_number(reader: CollectionReader, site: SiteKey) -> int:
    """Number of a site; 0 if it is unknown."""
    return next((number for number, name in reader.site_names().items() if name == site), 0)


def duplicate_groups(
    reader: CollectionReader, site_id: int | None, near: float, watch: Watch = _silent
) -> list[DuplicateGroup]:
    """Groups of exact duplicates, and for near < 1.0 of near duplicates too; each page is in at most one group.

    Largest group first. Call within a snapshot.

    Near duplicates cost 0.3 ms for a page of 950 characters, 2.5 ms for one of 21,000, and 1 kB of memory each; pages
    without stored marks cost 20 ms more.
    """
    same: list[Same] = [
        (best_first(pages), is_confirmed) for pages, is_confirmed in text_rows.same_texts(reader, site_id)
    ]
    if near >= 1.0:
        return group_duplicates(same, ())
    others = {twin.page.url_id for pages, _ in same for twin in pages[1:]}
    pages = [page for page in text_rows.contenders(reader, site_id) if page.url_id not in others]
    copies = {pages[0].page.url_id: len(pages) - 1 for pages, _ in same}
    return group_duplicates(same, _near(reader, [(page, copies.get(page.url_id, 0)) for page in pages], near, watch))


def _near(
    reader: CollectionReader, pages: Sequence[tuple[Contender, int]], threshold: float, watch: Watch
) -> list[NearHeads]:
    """Near duplicates. pages: each with the number of its exact copies."""
    contents = _Contents(reader)
    heads: list[Head] = []
    in_memory: list[Hashes] = []  # of the first pages, as many as fit

    def page_shingles() -> Iterator[Hashes]:
        room = SHINGLE_ROOM
        for (page, copies), text in zip(pages, contents.of([page.url_id for page, _ in pages]), strict=True):
            heads.append(Head(page, is_in_full(text), copies))
            watch("Reading pages", len(heads), len(pages))
            hashes = shingles(without_marks(text))
            room -= len(hashes)
            if room >= 0:
                in_memory.append(hashes)
            yield hashes

    sketched = sketches(page_shingles())

    def shingles_of(place: int) -> Hashes:
        if place < len(in_memory):
            return in_memory[place]
        return shingles(without_marks(contents.again(heads[place].page.url_id)))

    return near_heads(heads, sketched, shingles_of, threshold)


class _Contents:
    """Content of pages as text. Pages without stored marks are marked here; their marks are cached."""

    def __init__(self, reader: CollectionReader) -> None:
        self._reader = reader
        self._marks = Marks(reader)
        self._made: dict[UrlId, bytes] = {}

    def of(self, ids: Sequence[UrlId]) -> Iterator[str]:
        """Contents in the order of the ids."""
        pages = self._reader.page_blocks(ids, text_rows.WITH_COPIES)
        while batch := list(islice(pages, AT_ONCE)):
            for page, parts in zip(batch, self._marks.of(self._marks.learn(batch)), strict=True):
                if page.parts is None:
                    self._made[page.url_id] = pack_parts(parts)
                yield _content(page, parts)

    def again(self, url_id: UrlId) -> str:
        """Content of a page that `of` has already returned."""
        page = next(self._reader.page_blocks([url_id], text_rows.WITH_COPIES))
        return _content(page, unpack_parts(self._made[url_id]) if page.parts is None else page.parts)


def _content(page: PageBlocks, parts: Sequence[Part]) -> str:
    return "\n".join(page.blocks.content(parts, _APART))
