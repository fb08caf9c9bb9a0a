"""An index file beside the tables, for three questions: which pages link to a URL, which visits requested it, and which
pages have the same words?

A crawl maintains no such index: one on link targets would cost 367 us and 1.6 kB per page. The file is created once,
after the crawl, and takes 12 bytes per link. It has a fixed state; later visits, a few thousand at most, are read from
the tables. With more of them the file is no longer used.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.model.arrays import Ints, Ints32, Mask, Unsigned32
from periplus.model.graph import NAV, PART, REASON_CODES, REASONS, InlinkIndex
from periplus.model.page import FOLLOWED_KINDS, LINK_KINDS, POSITION_CODES, Position
from periplus.model.visit import FETCHED_REASONS
from periplus.model.web import Url
from periplus.store import column_files
from periplus.store.reader import CollectionReader
from periplus.store.site_rows import link_blocks, row_blocks
from periplus.urls.canonical import url_id
from periplus.values import frozen

FILE = "links.book"
VERSION = 2  # format version; a file of another version is created again
NEWER_MOST = 20_000  # visits since the file was created: reading their links takes 0.1 s
_NAV_CODE = POSITION_CODES[Position.NAV]
_IS_PART = np.array([kind not in FOLLOWED_KINDS for kind in LINK_KINDS])
_IS_FETCHED = np.array([reason in FETCHED_REASONS for reason in REASONS])


class InlinkIndexVersion(NamedTuple):
    """State of the collection when an index file was created.

    visit: id of the last visit; started: its start, since the id of a deleted visit is used again.
    """

    visit: int
    started: float
    runs: int


@frozen
class VisitColumns:
    """Visits by URL, in the order of an InlinkIndex."""

    offsets: Ints  # u + 1
    visits: Unsigned32  # visit ids


@frozen
class Same:
    """p pages with the first half of the digest of their folded words, ascending by digest."""

    digests: Ints  # p
    pages: Ints  # p: page ids


@frozen
class StoredInlinkIndex:
    """An index file, or its content in memory."""

    moment: InlinkIndexVersion
    links: InlinkIndex
    visited: VisitColumns
    same: Same

    def linking(self, reader: CollectionReader, target: int, most: int) -> tuple[int, list[int]]:
        """(number of pages that link to a URL, ids of up to `most` of them, greatest rank first). Includes later
        visits, but not the URL itself.
        """
        place, links, dialect = place_of(self, target), self.links, reader.statements.dialect
        sources = (
            links.in_ends[links.in_offsets[place] : links.in_offsets[place + 1]] >> np.uint32(2)
            if place >= 0
            else np.zeros(0, np.uint32)
        )
        newer = np.array(self._later_urls(reader), np.int64)
        if len(newer):
            sources = sources[~np.isin(links.ids[sources], newer)]
        find = (
            f"SELECT DISTINCT source FROM link WHERE target = ? AND source IN {dialect.linking}"
            f" AND source {dialect.among}"
        )
        listed = reader.statements.rows(find, (target, target, dialect.list_value(newer.tolist())))
        fresh = [source for (source,) in listed if source != target]
        sources = sources[sources != place]
        best = np.lexsort((sources, -links.rank[sources]))[:most]
        return len(sources) + len(fresh), (fresh + links.ids[sources[best]].tolist())[:most]

    def _later_urls(self, reader: CollectionReader) -> list[int]:
        """Ids of URLs visited since the index was created."""
        return [
            identity
            for (identity,) in reader.statements.rows(
                "SELECT DISTINCT url_id FROM visit WHERE id > ?", (self.moment.visit,)
            )
        ]

    def perhaps_same(self, reader: CollectionReader, folded_digest: bytes) -> list[int]:
        """Ids of candidate pages, which include all pages with this digest of the folded words."""
        digest = np.frombuffer(folded_digest[:8], np.int64)
        first, end = (int(np.searchsorted(self.same.digests, digest, side)[0]) for side in ("left", "right"))
        return [*self.same.pages[first:end].tolist(), *self._later_urls(reader)]

    def visits_of(self, reader: CollectionReader, url: Url) -> list[int]:
        """Ids of the visits that requested a URL, ascending."""
        place, visited = place_of(self, url_id(url)), self.visited
        visits = visited.visits[visited.offsets[place] : visited.offsets[place + 1]].tolist() if place >= 0 else []
        newer = reader.statements.rows(
            "SELECT id FROM visit WHERE id > ? AND (url_id = ? OR text = ?) ORDER BY id",
            (self.moment.visit, url_id(url), url),
        )
        return [*visits, *(number for (number,) in newer)]


def moment_of(reader: CollectionReader) -> InlinkIndexVersion:
    """Current state of the collection."""
    (visit, started), *_ = [
        *reader.statements.rows("SELECT id, started FROM visit ORDER BY id DESC LIMIT 1"), (0, 0.0)
    ]  # fmt: skip
    runs = reader.statements.rows("SELECT coalesce(max(id), 0) FROM run")
    return InlinkIndexVersion(int(visit), float(started), int(runs[0][0]))


def still_holds(reader: CollectionReader, moment: InlinkIndexVersion) -> bool:
    """Whether an index of this state is valid except for later visits; False if there are too many, or if visits were
    deleted.
    """
    if moment_of(reader).visit - moment.visit > NEWER_MOST:
        return False
    rows = reader.statements.rows("SELECT started FROM visit WHERE id = ?", (moment.visit,))
    return rows == [(moment.started,)] if moment.visit else not rows


def few_links(reader: CollectionReader, most: int) -> bool:
    """Whether there are at most `most` links."""
    return len(reader.statements.rows("SELECT 1 FROM link LIMIT ?", (most + 1,))) <= most


def read(reader: CollectionReader) -> StoredInlinkIndex:
    """Builds the index of the current state, with all ranks 0. Concurrent changes count as later.

    Reads each link once: 17 s of one core for ten million.
    """
    moment = moment_of(reader)
    ids, sites, directories, fetched = _urls(reader)
    sources, targets = _pairs(reader, ids)
    count = len(ids)
    out_places = sources >> np.uint32(2)
    flags = targets & np.uint32(3)
    by_target = np.argsort(targets >> np.uint32(2), kind="stable")
    in_ends = (out_places[by_target] << np.uint32(2)) | flags[by_target]
    links = InlinkIndex(
        ids,
        sites,
        directories,
        fetched,
        np.zeros(count, np.float32),
        _offsets(out_places, count),
        targets,
        _offsets(targets >> np.uint32(2), count),
        in_ends,
    )
    return StoredInlinkIndex(moment, links, _visit_columns(reader, ids, moment), _same(reader))


def _offsets(places: Unsigned32, count: int) -> Ints:
    return np.concatenate(([0], np.cumsum(np.bincount(places, minlength=count)))).astype(np.int64)


def _urls(
    reader: CollectionReader,
) -> tuple[Ints, Ints32, Ints32, Mask]:
    """(ids, sites, directories, whether fetched) of all URLs, ascending by id, which is the storage order."""
    site_of_host: dict[int, int] = dict(reader.stream("SELECT id, site_id FROM host"))
    ids, sites, directories, codes = (
        [np.zeros(0, np.int64)],
        [np.zeros(0, np.int32)],
        [np.zeros(0, np.int32)],
        [np.zeros(0, np.uint8)],
    )
    numbers: dict[str, int] = {}
    for block in row_blocks(reader.stream("SELECT id, host_id, text, reason FROM url ORDER BY id")):
        block_ids, hosts, texts, reasons = zip(*block, strict=True)
        ids.append(np.array(block_ids, np.int64))
        sites.append(np.array([site_of_host.get(host, 0) for host in hosts], np.int32))
        directories.append(np.array([numbers.setdefault(directory(text), len(numbers)) for text in texts], np.int32))
        codes.append(np.array([REASON_CODES[reason] for reason in reasons], np.uint8))
    return np.concatenate(ids), np.concatenate(sites), np.concatenate(directories), _IS_FETCHED[np.concatenate(codes)]


def directory(url: str) -> str:
    """Host and first path segment: `https://e.org/docs/`, or `https://e.org/` for top-level files."""
    top = url.find("/", 8) + 1
    end = url.find("/", top)
    question = url.find("?", top)
    return url[: end + 1] if end > 0 and not 0 <= question < end else url[:top]


def _pairs(reader: CollectionReader, ids: Ints) -> tuple[Unsigned32, Unsigned32]:
    """(sources, targets) of each linked pair of URLs, by source and target, as ends. Each pair occurs once, with the
    flags that all its links share.
    """
    sources: list[Unsigned32] = [np.zeros(0, np.uint32)]
    targets: list[Unsigned32] = [np.zeros(0, np.uint32)]
    for block in (links.in_order() for links in link_blocks(reader, "page_links l ORDER BY l.source")):
        source, target = places_in(ids, block.sources), places_in(ids, block.targets)
        flags = (block.positions == _NAV_CODE) * NAV + _IS_PART[block.kinds] * PART
        is_known = (source >= 0) & (target >= 0)
        sources.append((source[is_known] << 2).astype(np.uint32))
        targets.append(((target[is_known] << 2) | flags[is_known]).astype(np.uint32))
    begin, end = np.concatenate(sources), np.concatenate(targets)
    if not len(begin):
        return begin, end
    first = np.ones(len(begin), np.bool_)
    first[1:] = (begin[1:] != begin[:-1]) | (end[1:] >> np.uint32(2) != end[:-1] >> np.uint32(2))
    firsts = np.flatnonzero(first)
    shared: Unsigned32 = np.bitwise_and.reduceat(end, firsts)  # ends of a pair differ only in their flags
    return begin[firsts], shared


def places_in(ids: Ints, sought: Ints) -> Ints:
    """Index of each id in the ascending ids; -1 if it is missing."""
    if not len(ids):
        return np.full(len(sought), -1, np.int64)
    # sorted lookups take a third of the time, because of memory locality
    order = np.argsort(sought)
    ordered = sought[order]
    place = np.searchsorted(ids, ordered).clip(max=len(ids) - 1)
    places = np.empty(len(sought), np.int64)
    places[order] = np.where(ids[place] == ordered, place, -1)
    return places


def _visit_columns(reader: CollectionReader, ids: Ints, moment: InlinkIndexVersion) -> VisitColumns:
    named = [
        (url_id(Url(text)), number)
        for text, number in reader.stream(
            "SELECT text, id FROM visit WHERE text IS NOT NULL AND id <= ?", (moment.visit,)
        )
    ]
    blocks = reader.numbers(f"SELECT url_id, id FROM visit WHERE text IS NULL AND id <= {moment.visit}", 2)
    pairs = np.concatenate([np.array(named, np.int64).reshape(-1, 2), *blocks])
    places = places_in(ids, pairs[:, 0])
    pairs, places = pairs[places >= 0], places[places >= 0]
    order = np.lexsort((pairs[:, 1], places))
    return VisitColumns(_offsets(places.astype(np.uint32), len(ids)), pairs[order, 1].astype(np.uint32))


def _same(reader: CollectionReader) -> Same:
    rows = reader.stream("SELECT substr(folded_digest, 1, 8), url_id FROM page WHERE length(folded_digest) >= 8")
    digests, pages = array("q"), array("q")
    for digest, page in rows:
        digests.frombytes(digest)
        pages.append(page)
    halves = np.frombuffer(digests, np.int64)
    order = np.argsort(halves, kind="stable")
    return Same(halves[order], np.frombuffer(pages, np.int64)[order])


def write(folder: Path, book: StoredInlinkIndex) -> None:
    """Replaces the file. Raises OSError if it cannot be written."""
    column_files.write(folder / FILE, VERSION, {"moment": list(book.moment)}, dict(_arrays(book)))


def _arrays(book: StoredInlinkIndex) -> Iterator[tuple[str, NDArray[np.generic]]]:
    for part in (book.links, book.visited, book.same):
        for field in fields(part):
            yield field.name, getattr(part, field.name)


def open_index(folder: Path) -> StoredInlinkIndex | None:
    """Opens the folder's file, memory-mapped; None if it is missing or has another version."""
    file = column_files.open_columns(folder / FILE, VERSION)
    if file is None:
        return None
    try:
        links, visited, same = (
            tuple(file.columns[field.name] for field in fields(part)) for part in (InlinkIndex, VisitColumns, Same)
        )
        return StoredInlinkIndex(
            InlinkIndexVersion(*file.head["moment"]), InlinkIndex(*links), VisitColumns(*visited), Same(*same)
        )
    except (TypeError, KeyError):  # the head is damaged
        return None


def place_of(book: StoredInlinkIndex, identity: int) -> int:
    """Index of a URL; -1 if it was not known then."""
    return int(places_in(book.links.ids, np.array([identity], np.int64))[0])
