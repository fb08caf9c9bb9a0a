"""Pages and the links between them as arrays, the form that every analysis takes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from periplus.model.arrays import Floats32, Ints, Ints32, Mask, Unsigned8, Unsigned32
from periplus.model.ports import RunRecord
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, Url
from periplus.values import frozen


@frozen
class LinkGraph:
    """n pages and m distinct links between them, in compressed sparse rows: links out of page i are
    targets[offsets[i]:offsets[i + 1]], ascending. No self-links. Pages stand in the order of their URLs' text, so that
    no result depends on the order of fetching.
    """

    pages: Sequence[Url]  # n, ascending
    offsets: Ints  # n + 1
    targets: Ints32  # m
    fetched: Mask  # n: fetched and analysed; the others are discovered
    depths: Ints32  # n: clicks from the start as the crawl found it; -1 when no link reached it


REASONS = tuple(Reason)
"""A reason's place here stands for it in arrays."""
REASON_CODES = {reason.value: code for code, reason in enumerate(REASONS)}


@frozen
class UrlRows:
    """What a collection knows of u URLs, one value a URL, in any order."""

    ids: Ints  # distinct
    texts: Sequence[Url]
    reasons: Unsigned8  # places in REASONS
    depths: Ints32  # clicks from the start as the crawl found them; -1 where no link leads

    @classmethod
    def of(cls, blocks: Iterable[Sequence[tuple[Any, ...]]]) -> UrlRows:
        """blocks: rows of (id, text, reason, depth), none of them empty."""
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
    """Links as pairs of URL ids, in any order, perhaps twice, perhaps to URLs that are no page."""

    sources: Ints
    targets: Ints


@frozen
class PageRows:
    """Facts of fetched pages, one value a page, ascending by id."""

    ids: Ints
    titles: Sequence[str]
    media_types: Sequence[str]
    sizes: Ints  # bytes

    @classmethod
    def of(cls, blocks: Iterable[Sequence[tuple[Any, ...]]]) -> PageRows:
        """blocks: rows of (id, title, media type, size), none of them empty."""
        ids: list[int] = []
        titles: list[str] = []
        media_types: list[str] = []
        sizes: list[int] = []
        for block in blocks:
            block_ids, block_titles, block_types, block_sizes = zip(*block, strict=True)
            ids += block_ids
            titles += block_titles
            media_types += map(sys.intern, block_types)  # a few names, a million times
            sizes += block_sizes
        return cls(np.array(ids, np.int64), titles, media_types, np.array(sizes, np.int64))


@frozen
class UrlFacts:
    """One URL with what became of it. target: where it redirects, else empty."""

    url: Url
    reason: Reason
    status: int  # 0: no answer
    rule: str


class SiteReader(Protocol):
    """What analyses need of one site of a collection, read at one moment, wherever the collection is kept."""

    def runs(self) -> Sequence[RunRecord]:
        """Of the collection, oldest first."""

    def is_being_crawled(self, now: float) -> bool: ...

    def redirects(self) -> LinkRows:
        """Of the collection: where each URL that redirects leads, as last seen,
        and which page each alias is an address of; one link a URL.
        """

    def site_of(self, url_id: int) -> SiteKey | None:
        """The site of a known URL."""

    def url_facts(self, url_id: int) -> UrlFacts | None: ...

    def urls(self, site: SiteKey) -> UrlRows:
        """Every URL of the site that was ever seen."""

    def links(self, site: SiteKey) -> LinkRows:
        """The site's links to pages, of its own or not."""

    def pages(self, site: SiteKey) -> PageRows:
        """The pages of the site whose content is known."""

    def statuses(self, site: SiteKey) -> tuple[Ints, Ints]:
        """(ids, statuses) of the site's URLs that were answered."""


@frozen
class InlinkIndex:
    """All links of a collection both ways, by place: u URLs ascending by id, m pairs of URLs that a link joins.

    An end is place * 4 + NAV (every link of the pair stands in a menu) + PART (none of them leads to a
    page: images, styles, ...).
    """

    ids: Ints  # u
    sites: Ints32  # u: the number of each URL's site
    directories: Ints32  # u: host and first step of the path, counted from 0
    fetched: Mask  # u
    rank: Floats32  # u: PageRank over the links between pages, sum 1
    out_offsets: Ints  # u + 1
    out_ends: Unsigned32  # m: targets, by source
    in_offsets: Ints  # u + 1
    in_ends: Unsigned32  # m: sources, by target


NAV, PART = 1, 2


def place_of_ends(ends: Unsigned32) -> Ints:
    """The places that ends of a InlinkIndex name."""
    return (ends >> np.uint32(2)).astype(np.int64)
