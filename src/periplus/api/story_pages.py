"""Reads the pages of a collection that may tell stories. What was read is in a file beside the tables, `stories.read`.

A page is read again when something that is stored of it changed, or when what its site repeats did: another page more,
and a text is the site's own. The file has the stories too, as they were found last. It is made anew, whole, by whoever
asks after a change; without it the answer is the same and takes longer.
"""

from __future__ import annotations

import contextlib
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from periplus.analyse.articles import (
    DATE_ORIGINS,
    Articles,
    Ragged,
    candidate_texts,
    own_places,
    own_titles,
    sampling_of,
    shingles_of,
    words_of,
)
from periplus.document.dates import feed_dates
from periplus.document.decode import decode
from periplus.document.publication import DateEvidence, page_date
from periplus.model.page import Position
from periplus.model.web import SiteKey, Url
from periplus.store import column_files
from periplus.store.sqlite import reading, site_rows, text_rows
from periplus.store.sqlite.page_rows import Contents
from periplus.store.sqlite.text_rows import PageBlocks, PageRow

VERSION = 2  # of the file, and of all that makes what is in it: dates, words, stories; another one is made anew
Watch = Callable[[int, int], None]  # is told (pages read, pages in all)
HTML = ("text/html", "application/xhtml+xml")
MENUS = frozenset({Position.NAV, Position.HEADER, Position.FOOTER, Position.ASIDE})
# a link on so many of a site's pages is the site's: a blogroll, an advertisement
TEMPLATE_LINK_PAGES, TEMPLATE_LINK_SHARE = 4, 0.2
ANCHOR_CHARS = 30  # of a link's words that are looked for in the page's own text
HOPS_MOST = 5  # of redirects between a link and its page
HELD = 2_000  # new pages of a site whose texts are held until the site's templates are known: some 50 MB; others are
# read twice

_SINGLE = {
    "ids": "q", "stamps": "Q", "inputs": "Q", "when": "d", "origins": "B", "whole_days": "B", "runs": "I",
}  # fmt: skip
# of the ragged ones those of which a page has hundreds, and that are read in parts: they grow on the disk
_SPILLED = frozenset({"marks", "words", "counts"})
_RAGGED = {"marks": "Q", "shingles": "Q", "words": "I", "counts": "H", "targets": "q"}


class PageReading(NamedTuple):
    """What was read of one page."""

    ids: int
    stamps: int  # of what is stored: `PageRow.stamp`
    inputs: int  # 64 bits that change with what else it was made from: its site's templates, its title, its feed's date
    when: float
    origins: int  # place in DATE_ORIGINS
    whole_days: bool
    runs: int  # of five words, before the sample
    marks: NDArray[np.uint64]  # of its candidate texts
    shingles: NDArray[np.uint64]  # a sample of the runs
    words: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    targets: NDArray[np.int64]  # what its own text links to on other sites


class Stored:
    """The readings in the file, by page."""

    def __init__(self, file: column_files.ColumnFile | None) -> None:
        columns: Mapping[str, NDArray[Any]] = file.columns if file else {}
        self.sampling = int(file.head["sampling"]) if file else 1
        self._columns = {name: columns.get(name, np.zeros(0, kind)) for name, kind in _SINGLE.items()}
        self._ragged = {
            name: Ragged(columns.get(f"{name}_offsets", np.zeros(1, np.int64)), columns.get(name, np.zeros(0, kind)))
            for name, kind in _RAGGED.items()
        }
        self._order = np.argsort(self._columns["ids"])

    def places(self, rows: Sequence[PageRow], stamps: Sequence[int]) -> list[int]:
        """Of each page the place of its reading; -1: there is none, or something that is stored changed."""
        ids = self._columns["ids"]
        if not len(ids) or not rows:
            return [-1] * len(rows)
        sought = np.array([row.url_id for row in rows], np.int64)
        place = self._order[np.searchsorted(ids, sought, sorter=self._order).clip(max=len(ids) - 1)]
        same = (ids[place] == sought) & (self._columns["stamps"][place] == np.array(stamps, np.uint64))
        return [int(one) for one in np.where(same, place, -1)]

    def marks(self, place: int) -> NDArray[np.uint64]:
        return np.asarray(self._ragged["marks"][place])

    def inputs(self, place: int) -> int:
        return int(self._columns["inputs"][place])

    def __getitem__(self, place: int) -> PageReading:
        single = (values[place].item() for values in self._columns.values())
        return PageReading(*single, *(values[place] for values in self._ragged.values()))


class Readings:
    """Readings as they are gathered: columns that grow, with a sample of the runs that memory can hold."""

    def __init__(self, sampling: int, folder: Path) -> None:
        """folder: on whose disk the longer columns grow."""
        self.sampling = sampling
        self.all_runs = 0
        self._single = {name: array(kind) for name, kind in _SINGLE.items()}
        self._values: dict[str, array[Any] | column_files.SpilledColumn] = {
            name: column_files.SpilledColumn(kind, folder) if name in _SPILLED else array(kind)
            for name, kind in _RAGGED.items()
        }
        self._sizes = {name: array("I") for name in _RAGGED}

    def __len__(self) -> int:
        return len(self._single["ids"])

    def add(self, page: PageReading) -> None:
        for name in _SINGLE:
            self._single[name].append(getattr(page, name))
        self.all_runs += page.runs
        if sampling_of(self.all_runs) > self.sampling:
            self._thin(sampling_of(self.all_runs))
        for name in _RAGGED:
            values = getattr(page, name)
            if name == "shingles":
                values = values[values % np.uint64(self.sampling) == 0]
            self._values[name].frombytes(np.ascontiguousarray(values).tobytes())
            self._sizes[name].append(len(values))

    def _thin(self, sampling: int) -> None:
        self.sampling = sampling
        runs = self.ragged("shingles")
        rest = runs.values % np.uint64(sampling) == 0
        sizes = np.diff(np.concatenate(([0], np.cumsum(rest)))[runs.offsets])
        self._values["shingles"] = array("Q", runs.values[rest].tobytes())
        self._sizes["shingles"] = array("I", sizes.astype(np.uint32).tobytes())

    def single(self, name: str) -> NDArray[Any]:
        return np.frombuffer(self._single[name], _SINGLE[name])

    def ragged(self, name: str) -> Ragged:
        sizes = np.frombuffer(self._sizes[name], np.uint32)
        offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        values = self._values[name]
        return Ragged(offsets, np.frombuffer(values, _RAGGED[name]) if isinstance(values, array) else values.array())

    def columns(self) -> dict[str, NDArray[Any]]:
        """As they lie in the file."""
        ragged = {name: self.ragged(name) for name in _RAGGED}
        return {
            **{name: self.single(name) for name in _SINGLE},
            **{name: some.values for name, some in ragged.items()},
            **{f"{name}_offsets": some.offsets for name, some in ragged.items()},
        }


@dataclass(frozen=True, slots=True)
class SitePages:
    """The pages of a site that may tell stories."""

    number: int
    key: SiteKey
    rows: tuple[PageRow, ...]
    stamps: tuple[int, ...]
    every: int  # changes with any page of the site, whatever it may tell


def site_pages(connection: reading.Connection) -> list[SitePages]:
    """Of each site with pages, without their texts."""
    sites = []
    for number, (key, _) in text_rows.sites_with_pages(connection).items():
        rows, stamps, every = [], [], []
        for row in text_rows.rows_of_site(connection, number):
            every.append(row.stamp)
            if _may_tell(row):
                rows.append(_slim(row))
                stamps.append(every[-1])
        digest = xxh3_64_intdigest(array("Q", every).tobytes())
        sites.append(SitePages(number, key, tuple(rows), tuple(stamps), digest))
    return sites


def _slim(page: PageRow) -> PageRow:
    """Without what only its stamp needs: of a million pages all rows are in memory at once."""
    return page._replace(
        media_type=sys.intern(page.media_type), language=sys.intern(page.language),
        language_found=sys.intern(page.language_found), body_md5=b"", text_md5=b"", parts=None,
    )  # fmt: skip


def _may_tell(page: PageRow) -> bool:
    """Home pages list what is new; other media are no pages of news."""
    if page.media_type not in HTML:
        return False
    parts = urlsplit(page.url)
    return parts.path.strip("/") != "" or parts.query != ""


def read(
    connection: reading.Connection, sites: Sequence[SitePages], stored: Stored, folder: Path, watch: Watch
) -> tuple[Readings, Articles, list[tuple[int, int]]]:
    """(the readings, the same as articles, their links to one another: places). Reads only what changed.

    folder: see `Readings`.
    """
    readings, titles = Readings(stored.sampling, folder), []
    reader = _Reader(connection)
    links: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    total = sum(len(site.rows) for site in sites)
    for site in sites:
        begin = len(readings)
        own = own_titles([row.title for row in site.rows])
        titles += own
        for page in _of_site(reader, site, own, stored):
            readings.add(page)
            watch(len(readings), total)
        links.append(_own_links(readings, begin))
    if sampling_of(readings.all_runs) < stored.sampling:  # pages were deleted, and there is room for more of each
        return read(connection, sites, Stored(None), folder, watch)
    rows = [row for site in sites for row in site.rows]
    words = readings.ragged("words")
    articles = Articles(
        [row.url for row in rows], titles, [_language(row) for row in rows], [site.key for site in sites],
        np.repeat(np.arange(len(sites), dtype=np.int32), [len(site.rows) for site in sites]),
        readings.single("when"), readings.single("origins"), readings.single("whole_days").astype(np.bool_),
        np.array([row.first_seen for row in rows], np.float64), readings.ragged("shingles"), words,
        readings.ragged("counts").values,
    )  # fmt: skip
    return readings, articles, _resolved(connection, links, readings.single("ids"))


def _language(row: PageRow) -> str:
    return row.language or row.language_found


class _Reader:
    """Reads pages' texts, sources and dates."""

    def __init__(self, connection: reading.Connection) -> None:
        self.connection = connection
        self._contents = Contents(connection)
        self.fed: dict[Url, float] = {}  # when feeds say that their entries were published; of several, the earliest
        for url, body in text_rows.feeds(connection, self._contents):
            for entry, when in feed_dates(body, url).items():
                self.fed[entry] = min(when, self.fed.get(entry, when))

    def blocks(self, row: PageRow) -> PageBlocks:
        return next(text_rows.pages_of(self.connection, [row.url_id]))

    def with_source(self, row: PageRow, evidence: DateEvidence) -> DateEvidence:
        body = self._contents.body(row.url_id)
        if not body:
            return evidence
        _, charset = site_rows.type_and_charset_of(self.connection, row.url_id)
        return replace(evidence, source=decode(body, charset, row.media_type)[0])


def _of_site(reader: _Reader, site: SitePages, titles: Sequence[str], stored: Stored) -> Iterator[PageReading]:
    places = stored.places(site.rows, site.stamps)
    held: dict[int, PageBlocks] = {}
    marks: list[NDArray[np.uint64]] = []
    for number, (row, place) in enumerate(zip(site.rows, places, strict=True)):
        if place >= 0:
            marks.append(stored.marks(place))
        else:
            page = reader.blocks(row)
            marks.append(candidate_texts(page.blocks, page.parts)[1])
            if len(held) < HELD:
                held[number] = page
    contents, bylines = own_places(marks), own_places(marks, content=False)  # a byline may pass for navigation
    for number, (row, place, content, byline) in enumerate(zip(site.rows, places, contents, bylines, strict=True)):
        given = f"{titles[number]}\n{reader.fed.get(row.url, 0.0)!r}\n".encode("utf-8", "replace")
        inputs = xxh3_64_intdigest(given + np.packbits((content, byline)).tobytes())
        if place >= 0 and stored.inputs(place) == inputs:
            yield stored[place]
            continue
        page = held.pop(number) if number in held else reader.blocks(row)
        texts = candidate_texts(page.blocks, page.parts)[0]
        own = [text for text, is_own in zip(texts, content, strict=True) if is_own]
        dated_texts = [text for text, is_own in zip(texts, byline, strict=True) if is_own]
        yield _made(reader, row, titles[number], own, dated_texts)._replace(
            stamps=site.stamps[number], inputs=inputs, marks=marks[number]
        )


def _made(reader: _Reader, row: PageRow, title: str, own: Sequence[str], dated_texts: Sequence[str]) -> PageReading:
    """Of a page's own texts, and of those in which its date may stand."""
    evidence = DateEvidence(
        row.url, "", row.title, dated_texts, _language(row), reader.fed.get(row.url, 0.0), row.last_modified,
        row.first_seen,
    )  # fmt: skip
    date = page_date(reader.with_source(row, evidence))
    whole = "\n".join(own)
    targets = {
        int(link.target)
        for link in text_rows.cross_links_of(reader.connection, row.url_id)
        if link.position not in MENUS and link.anchor[:ANCHOR_CHARS] in whole
    }
    shingles, (words, counts) = shingles_of(own), words_of(title, own)
    return PageReading(
        row.url_id, 0, 0, date.when, DATE_ORIGINS.index(date.source), date.whole_day, len(shingles),
        np.zeros(0, np.uint64), shingles, words, counts, np.array(sorted(targets), np.int64),
    )  # fmt: skip


def _own_links(readings: Readings, begin: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(place of the page, what it links to) of the pages from begin on, all of one site, without what many of them
    link to.
    """
    targets = readings.ragged("targets")
    to = targets.values[targets.offsets[begin] :].copy()
    page = np.repeat(np.arange(begin, len(readings)), np.diff(targets.offsets[begin:]))
    most = max(TEMPLATE_LINK_PAGES, TEMPLATE_LINK_SHARE * (len(readings) - begin))
    _, place, pages = np.unique(to, return_inverse=True, return_counts=True)
    own = pages[place] < most
    return page[own], to[own]


def _resolved(
    connection: reading.Connection,
    links: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    ids: NDArray[np.int64],
) -> list[tuple[int, int]]:
    """The links as places, redirects and aliases followed."""
    moved = site_rows.redirects(connection)
    leads = dict(zip(moved.sources.tolist(), moved.targets.tolist(), strict=True))
    order = np.argsort(ids)
    resolved: list[tuple[int, int]] = []
    for pages, targets in links:
        ends = targets.tolist()
        for _ in range(HOPS_MOST):
            ends = [leads.get(end, end) for end in ends]
        sought = np.array(ends, np.int64)
        if len(sought):
            place = order[np.searchsorted(ids, sought, sorter=order).clip(max=len(ids) - 1)]
            there = ids[place] == sought
            resolved += zip(pages[there].tolist(), place[there].tolist(), strict=True)
    return resolved


def stored_readings(folder: Path) -> column_files.ColumnFile | None:
    """The file; None: there is none that this program reads."""
    return column_files.opened(folder / column_files.STORIES, VERSION)


def store_readings(folder: Path, head: Mapping[str, object], readings: Readings) -> None:
    """In place of the file before; where nothing can be written, nothing is."""
    with contextlib.suppress(OSError):
        column_files.write(
            folder / column_files.STORIES, VERSION, {**head, "sampling": readings.sampling}, readings.columns()
        )
