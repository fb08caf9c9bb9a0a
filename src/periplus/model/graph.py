"""Pages and links as arrays, the input of all analyses."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from periplus.model.arrays import Floats32, Ints, Ints32, Mask, Unsigned8, Unsigned32
from periplus.model.visit import Reason
from periplus.model.web import Url
from periplus.values import frozen

REASONS = tuple(Reason)
"""Arrays hold the index of a reason in this tuple."""
REASON_CODES = {reason.value: code for code, reason in enumerate(REASONS)}


@frozen
class LinkGraph:
    """n pages and m distinct links between them in CSR form: the links of page i are
    targets[offsets[i]:offsets[i + 1]], ascending. No self-links. Pages are sorted by URL, so that results do not
    depend on the order of fetching.
    """

    pages: Sequence[Url]  # n, ascending
    offsets: Ints  # n + 1
    targets: Ints32  # m
    fetched: Mask  # n: fetched and analysed
    depths: Ints32  # n: clicks from the start, set by the crawl; -1 if no link leads there


@frozen
class UrlRows:
    """Properties of u URLs as columns, in any order."""

    ids: Ints  # distinct
    texts: Sequence[Url]
    reasons: Unsigned8  # indices into REASONS
    depths: Ints32  # clicks from the start, set by the crawl; -1 if no link leads there

    @classmethod
    def of(cls, blocks: Iterable[Sequence[tuple[Any, ...]]]) -> UrlRows:
        """blocks: non-empty blocks of rows (id, text, reason, depth)."""
        ids: list[int] = []
        texts: list[Url] = []
        codes = bytearray()
        depths: list[int] = []
        for block in blocks:
            block_ids, block_texts, reasons, block_depths = zip(*block, strict=True)
            ids += block_ids
            texts += block_texts
            codes += bytes(map(REASON_CODES.__getitem__, reasons))
            depths += block_depths
        return cls(np.array(ids, np.int64), texts, np.frombuffer(bytes(codes), np.uint8), np.array(depths, np.int32))


@frozen
class LinkRows:
    """Links as pairs of URL ids, in any order; may contain duplicates and targets that are not pages."""

    sources: Ints
    targets: Ints


@frozen
class PageRows:
    """Properties of fetched pages as columns, ascending by id."""

    ids: Ints
    titles: Sequence[str]
    media_types: Sequence[str]
    sizes: Ints  # bytes

    @classmethod
    def of(cls, blocks: Iterable[Sequence[tuple[Any, ...]]]) -> PageRows:
        """blocks: non-empty blocks of rows (id, title, media type, size)."""
        ids: list[int] = []
        titles: list[str] = []
        media_types: list[str] = []
        sizes: list[int] = []
        for block in blocks:
            block_ids, block_titles, block_types, block_sizes = zip(*block, strict=True)
            ids += block_ids
            titles += block_titles
            media_types += map(sys.intern, block_types)  # few distinct values
            sizes += block_sizes
        return cls(np.array(ids, np.int64), titles, media_types, np.array(sizes, np.int64))


@frozen
class InlinkIndex:
    """All links of a collection in both directions: u URLs ascending by id, m linked pairs of URLs.

    An end is index * 4 + NAV (all links of the pair are in menus) + PART (no link of the pair leads to a
    page: images, styles, ...).
    """

    ids: Ints  # u
    sites: Ints32  # u: site number of each URL
    directories: Ints32  # u: number of host and first path segment, from 0
    fetched: Mask  # u
    rank: Floats32  # u: PageRank over the links between pages, sum 1
    out_offsets: Ints  # u + 1
    out_ends: Unsigned32  # m: targets, by source
    in_offsets: Ints  # u + 1
    in_ends: Unsigned32  # m: sources, by target


NAV, PART = 1, 2


def place_of_ends(ends: Unsigned32) -> Ints:
    """Indices of the URLs in ends of an InlinkIndex."""
    return (ends >> np.uint32(2)).astype(np.int64)
