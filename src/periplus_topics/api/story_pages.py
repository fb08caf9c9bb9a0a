"""Reads the pages of a collection that may belong to stories, and caches the results in the file `stories.read`.

A page is read again if its stored data changed, or if the site's repeated texts changed. The file also has the stories
found last. It is rewritten as a whole after a change; without it the result is the same but slower.
"""

from __future__ import annotations

import contextlib
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from periplus.document.dates import feed_dates
from periplus.document.decode import decode
from periplus.document.publication import DateEvidence, page_date
from periplus.model.arrays import Floats, Ints, Unsigned16, Unsigned32, Unsigned64
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store import column_files, text_rows
from periplus.store.crawl_reads import PageBlocks
from periplus.store.reader import CollectionReader
from periplus.store.site_arrays import redirects as all_redirects
from periplus.store.text_rows import PageRow
from periplus.values import Watch, frozen
from periplus_topics.analyse.articles import (
    DATE_ORIGINS,
    Articles,
    RaggedColumn,
    Texts,
    candidate_texts,
    own_places,
    own_titles,
    sampling_of,
    shingles_of,
    words_of,
)

VERSION = 4  # of the file and of the code that computes dates, words and stories
HTML = ("text/html", "application/xhtml+xml")
# a link on more of a site's pages belongs to its template, such as a blogroll or an advertisement
TEMPLATE_LINK_PAGES, TEMPLATE_LINK_SHARE = 4, 0.2
ANCHOR_CHARS = 30  # characters of an anchor text searched for in the page's own text
HOPS_MOST = 5  # redirects followed from a link
# new pages of a site kept in memory until its repeated texts are known: about 50 MB; further ones are read twice
TEXTS_MOST = 2_000
SOURCES_AT_ONCE = 20  # pages whose bytes are in memory at a time

_SINGLE = {
    "ids": "q", "stamps": "Q", "inputs": "Q", "when": "d", "origins": "B", "whole_days": "B", "runs": "I",
}  # fmt: skip
# columns with hundreds of values per page: they grow in files on disk
_DISK_COLUMNS = frozenset({"marks", "words", "counts"})
_LIST_COLUMNS = {"marks": "Q", "shingles": "Q", "words": "I", "counts": "H", "targets": "q"}


class PageReading(NamedTuple):
    """Data extracted from one page."""

    ids: int
    stamps: int  # of the stored data, see `PageRow.stamp`
    inputs: int  # 64-bit hash of further inputs: repeated texts of the site, title, date in a feed
    when: float
    origins: int  # index in DATE_ORIGINS
    whole_days: bool
    runs: int  # five-word shingles, before sampling
    marks: Unsigned64  # hashes of its candidate texts
    shingles: Unsigned64  # a sample of the shingles
    words: Unsigned32
    counts: Unsigned16
    targets: Ints  # ids of URLs that its own text links to


class StoredReadings:
    """Readings from the file, by page."""

    def __init__(self, file: column_files.ColumnFile | None) -> None:
        columns: Mapping[str, NDArray[Any]] = file.columns if file else {}
        self.sampling = int(file.head["sampling"]) if file else 1
        self._columns = {name: columns.get(name, np.zeros(0, kind)) for name, kind in _SINGLE.items()}
        self._ragged = {
            name: RaggedColumn(
                columns.get(f"{name}_offsets", np.zeros(1, np.int64)), columns.get(name, np.zeros(0, kind))
            )
            for name, kind in _LIST_COLUMNS.items()
        }
        self._order = np.argsort(self._columns["ids"])

    def places(self, ids: Ints, stamps: Unsigned64) -> Ints:
        """Index of each page's reading; -1 if there is none, or if the page's stored data changed."""
        place = _places(self._columns["ids"], self._order, ids)
        there = np.flatnonzero(place >= 0)
        place[there[self._columns["stamps"][place[there]] != stamps[there]]] = -1
        return place

    def __len__(self) -> int:
        return len(self._order)

    def marks(self, place: int) -> Unsigned64:
        return np.asarray(self._ragged["marks"][place])

    def inputs(self, place: int) -> int:
        return int(self._columns["inputs"][place])

    def __getitem__(self, place: int) -> PageReading:
        single = (values[place].item() for values in self._columns.values())
        return PageReading(*single, *(values[place] for values in self._ragged.values()))


def _places(values: Ints, order: Ints, sought: Ints) -> Ints:
    """Index of each sought number in the values; -1 if missing. order: sorts the values."""
    if not len(values):
        return np.full(len(sought), -1)
    place = order[np.searchsorted(values, sought, sorter=order).clip(max=len(values) - 1)]
    return np.where(values[place] == sought, place, -1)


class Readings:
    """Columns of readings under construction, with a sample of shingles that fits in memory.

    After an exception the columns contain complete pages only.
    """

    def __init__(self, sampling: int, folder: Path) -> None:
        """folder: location of the long columns."""
        self.sampling = sampling
        self.all_runs = self._pages = 0
        self._single = {name: array(kind) for name, kind in _SINGLE.items()}
        # (values, number of values per page)
        self._ragged: dict[str, tuple[array[Any] | column_files.SpilledColumn, array[int]]] = {
            name: (column_files.SpilledColumn(kind, folder) if name in _DISK_COLUMNS else array(kind), array("I"))
            for name, kind in _LIST_COLUMNS.items()
        }

    def __len__(self) -> int:
        return self._pages

    def add(self, page: PageReading) -> None:
        for name in _SINGLE:
            self._single[name].append(getattr(page, name))
        self.all_runs += page.runs
        if sampling_of(self.all_runs) > self.sampling:
            self._thin(sampling_of(self.all_runs))
        for name in _LIST_COLUMNS:
            added = getattr(page, name)
            if name == "shingles":
                added = added[added % np.uint64(self.sampling) == 0]
            values, sizes = self._ragged[name]
            values.frombytes(np.ascontiguousarray(added).tobytes())
            sizes.append(len(added))
        self._pages += 1

    def _thin(self, sampling: int) -> None:
        self.sampling = sampling
        runs = self.list_column("shingles")
        rest = runs.values % np.uint64(sampling) == 0
        sizes = np.diff(np.concatenate(([0], np.cumsum(rest)))[runs.offsets])
        self._ragged["shingles"] = (
            array("Q", runs.values[rest].tobytes()),
            array("I", sizes.astype(np.uint32).tobytes()),
        )

    def single(self, name: str) -> NDArray[Any]:
        return np.frombuffer(self._single[name], _SINGLE[name])[: self._pages]

    def list_column(self, name: str) -> RaggedColumn:
        values, sizes = self._ragged[name]
        offsets = np.zeros(self._pages + 1, np.int64)
        np.cumsum(np.frombuffer(sizes, np.uint32)[: self._pages], out=offsets[1:])
        column = np.frombuffer(values, _LIST_COLUMNS[name]) if isinstance(values, array) else values.array()
        return RaggedColumn(offsets, column[: offsets[-1]])

    def columns(self) -> dict[str, NDArray[Any]]:
        """Columns as stored in the file."""
        ragged = {name: self.list_column(name) for name in _LIST_COLUMNS}
        return {
            **{name: self.single(name) for name in _SINGLE},
            **{name: column.values for name, column in ragged.items()},
            **{f"{name}_offsets": column.offsets for name, column in ragged.items()},
        }


@frozen
class CandidatePages:
    """Pages that may belong to stories, without their texts; sorted by site, then by id."""

    sites: tuple[SiteKey, ...]
    every: tuple[int, ...]  # a hash per site of all its pages, including those that are no candidates
    offsets: Ints  # start of each site's pages; the last value is the number of pages
    ids: Ints
    stamps: Unsigned64
    first_seen: Floats
    urls: Texts
    titles: Texts
    languages: Texts


def pages_of(reader: CollectionReader, watch: Watch) -> CandidatePages:
    """Candidates of all sites."""
    sites = text_rows.sites_with_pages(reader)
    of_site, stamps, telling = array("q"), array("Q"), bytearray()
    ids, first_seen, texts = array("q"), array("d"), (Texts(), Texts(), Texts())
    for site, row in text_rows.page_rows(reader):
        of_site.append(site)
        stamps.append(row.stamp)
        telling.append(_may_tell(row))
        watch("listing pages", len(stamps), 0)
        if telling[-1]:
            ids.append(row.url_id)
            first_seen.append(row.first_seen)
            for column, text in zip(texts, (row.url, row.title, row.language or row.language_found), strict=True):
                column.append(text)
    numbers, stamped, tells = (
        np.frombuffer(of_site, np.int64),
        np.frombuffer(stamps, np.uint64),
        np.array(telling, bool),
    )
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], list(sites))
    every = [xxh3_64_intdigest(part.tobytes()) for part in np.split(stamped[order], bounds)[1:]]
    mine = numbers[tells]
    order = np.argsort(mine, kind="stable")
    offsets = np.searchsorted(mine[order], [*sites, np.iinfo(np.int64).max])
    return CandidatePages(
        tuple(key for key, _ in sites.values()), tuple(every), offsets, np.frombuffer(ids, np.int64)[order],
        stamped[tells][order], np.frombuffer(first_seen, np.float64)[order],
        *(Texts(column[place] for place in order.tolist()) for column in texts),
    )  # fmt: skip


def _may_tell(page: PageRow) -> bool:
    """Excludes home pages, which list news, and other media types."""
    if page.media_type not in HTML:
        return False
    parts = urlsplit(page.url)
    return parts.path.strip("/") != "" or parts.query != ""


def read(
    reader: CollectionReader, pages: CandidatePages, stored: StoredReadings, readings: Readings, watch: Watch
) -> tuple[Articles, Ints]:
    """(readings as articles, links between those of different sites: int64[k, 2], indices). Reads only changed pages.

    readings: empty at first; filled by this function.
    """
    sources, titles = _Sources(reader), Texts()
    reader.plan(scans=False)
    for site, (begin, end) in enumerate(pairwise(pages.offsets.tolist())):
        own = own_titles([pages.titles[place] for place in range(begin, end)])
        for page in _of_site(sources, pages, site, own, stored, watch):
            readings.add(page)
        for title in own:
            titles.append(title)
    words = readings.list_column("words")
    articles = Articles(
        pages.urls, titles, pages.languages, pages.sites,
        np.repeat(np.arange(len(pages.sites), dtype=np.int32), np.diff(pages.offsets)),
        readings.single("when"), readings.single("origins"), readings.single("whole_days").astype(np.bool_),
        pages.first_seen, readings.list_column("shingles"), words, readings.list_column("counts").values,
    )  # fmt: skip
    reader.plan(scans=True)
    links = _follow_redirects(reader, *_own_links(readings.list_column("targets"), pages.offsets), pages.ids)
    sites = articles.sites[links]
    return articles, links[sites[:, 0] != sites[:, 1]]


class _Sources:
    """Reads texts, bytes, links and dates of pages. bodies, links: of the pages that were loaded last."""

    def __init__(self, reader: CollectionReader) -> None:
        self.reader = reader
        self.bodies: Mapping[int, bytes] = {}
        self.links = defaultdict[UrlId, list[tuple[UrlId, str]]](list)  # (target, anchor) outside of navigation
        self.fed: dict[Url, float] = {}  # publication time of feed entries; the earliest if there are several
        for url, body in text_rows.feeds(reader):
            for entry, when in feed_dates(body, url).items():
                self.fed[entry] = min(when, self.fed.get(entry, when))

    def load(self, site: SiteKey, ids: Sequence[UrlId]) -> None:
        """Reads the bytes and links of pages of a site."""
        self.links.clear()
        self.bodies = self.reader.bodies(ids, site)
        for source, target, anchor in text_rows.content_links(self.reader, site, ids):
            self.links[source].append((target, anchor))


def _of_site(
    sources: _Sources, pages: CandidatePages, at: int, titles: Sequence[str], stored: StoredReadings, watch: Watch
) -> Iterator[PageReading]:
    """Readings of a site's pages, in order. at: index of the site; titles: without its name."""
    site, where = pages.sites[at], range(*pages.offsets[at : at + 2].tolist())
    ids = list(map(UrlId, pages.ids[where.start : where.stop].tolist()))
    stamps = pages.stamps[where.start : where.stop]
    places = stored.places(pages.ids[where.start : where.stop], stamps).tolist()
    new = sources.reader.page_blocks((ids[number] for number, place in enumerate(places) if place < 0), site=site)
    held: dict[UrlId, PageBlocks] = {}
    marks, sizes = array("Q"), array("q")
    for number, place in enumerate(places):
        if place >= 0:
            texts_marks = stored.marks(place)
        else:
            page = next(new)
            texts_marks = candidate_texts(page.blocks, page.parts)[1]
            if len(held) < TEXTS_MOST:
                held[page.url_id] = page
        marks.frombytes(texts_marks.tobytes())
        sizes.append(len(texts_marks))
        watch("reading pages", where.start + number // 2, len(pages.ids))
    of_pages = RaggedColumn(np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))), np.frombuffer(marks, np.uint64))
    contents = RaggedColumn(of_pages.offsets, own_places(of_pages))
    bylines = RaggedColumn(of_pages.offsets, own_places(of_pages, content=False))  # a byline may look like navigation
    inputs = []
    for number, title in enumerate(titles):
        fed = sources.fed.get(Url(pages.urls[where.start + number]), 0.0)
        given = f"{title}\n{fed!r}\n".encode("utf-8", "replace")
        inputs.append(xxh3_64_intdigest(given + np.packbits((contents[number], bylines[number])).tobytes()))
    is_new = [place < 0 or stored.inputs(place) != state for place, state in zip(places, inputs, strict=True)]
    changed = list(compress(ids, is_new))
    others = sources.reader.page_blocks([url_id for url_id in changed if url_id not in held], site=site)
    read = 0
    for number, place in enumerate(places):
        watch("reading pages", where.start + (len(ids) + number) // 2, len(pages.ids))
        if not is_new[number]:
            yield stored[place]
            continue
        if read % SOURCES_AT_ONCE == 0:
            sources.load(site, changed[read : read + SOURCES_AT_ONCE])
        read += 1
        page = held.pop(ids[number]) if ids[number] in held else next(others)
        texts = candidate_texts(page.blocks, page.parts)[0]
        yield _read_page(
            sources, page, float(pages.first_seen[where.start + number]), titles[number],
            list(compress(texts, contents[number])), list(compress(texts, bylines[number])),
        )._replace(stamps=int(stamps[number]), inputs=inputs[number], marks=of_pages[number])  # fmt: skip


def _read_page(
    sources: _Sources, page: PageBlocks, first_seen: float, title: str, own: Sequence[str], dated_texts: Sequence[str]
) -> PageReading:
    """Reading from a page's own texts and from texts that may contain its date."""
    body = sources.bodies.get(page.url_id)
    evidence = DateEvidence(
        page.url, decode(body, page.charset, page.media_type)[0] if body else "", page.title, dated_texts,
        page.language or page.language_found, sources.fed.get(page.url, 0.0), page.last_modified, first_seen,
    )  # fmt: skip
    date = page_date(evidence)
    whole = "\n".join(own)
    targets = {int(target) for target, anchor in sources.links[page.url_id] if anchor[:ANCHOR_CHARS] in whole}
    shingles, (words, counts) = shingles_of(own), words_of(title, own)
    return PageReading(
        page.url_id, 0, 0, date.when, DATE_ORIGINS.index(date.source), date.whole_day, len(shingles),
        np.zeros(0, np.uint64), shingles, words, counts, np.array(sorted(targets), np.int64),
    )  # fmt: skip


def _own_links(targets: RaggedColumn, sites: Ints) -> tuple[Ints, Ints]:
    """(page index, link target) without targets that many pages of the site link to.

    sites: start of each site's pages.
    """
    page = np.repeat(np.arange(len(targets.offsets) - 1), np.diff(targets.offsets))
    own = [np.zeros(0, np.bool_)]
    for begin, end in pairwise(sites.tolist()):
        to = targets.values[targets.offsets[begin] : targets.offsets[end]]
        _, place, pages = np.unique(to, return_inverse=True, return_counts=True)
        own.append(pages[place] < max(TEMPLATE_LINK_PAGES, TEMPLATE_LINK_SHARE * (end - begin)))
    is_own = np.concatenate(own)
    return page[is_own], targets.values[is_own]


def _follow_redirects(reader: CollectionReader, pages: Ints, targets: Ints, ids: Ints) -> Ints:
    """The links as page indices, after following redirects and aliases."""
    moved = all_redirects(reader)
    order = np.argsort(moved.sources)
    for _ in range(HOPS_MOST):
        hop = _places(moved.sources, order, targets)
        targets = np.where(hop >= 0, moved.targets[hop], targets) if len(moved.sources) else targets
    place = _places(ids, np.argsort(ids), targets)
    return np.stack((pages, place), axis=1)[place >= 0]


def stored_readings(folder: Path) -> column_files.ColumnFile | None:
    """The file, or None if it is missing or of another version."""
    return column_files.open_columns(folder / column_files.STORIES, VERSION)


def store_readings(
    folder: Path, head: Mapping[str, object], readings: Readings, columns: Mapping[str, NDArray[Any]]
) -> None:
    """Replaces the file, except in a read-only folder. columns: besides those of the readings."""
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
        column_files.write(
            folder / column_files.STORIES, VERSION, {**head, "sampling": readings.sampling},
            {**readings.columns(), **columns},
        )  # fmt: skip
