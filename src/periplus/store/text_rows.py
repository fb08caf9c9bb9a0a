"""Reads data for text analyses: blocks, anchors, equal texts, sources, and data for stories."""

from __future__ import annotations

import json
import tempfile
import weakref
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from xxhash import xxh3_64_intdigest

from periplus.document.digest import fold_whitespace, without_marks
from periplus.model.arrays import Ints
from periplus.model.duplicates import Contender, SameText
from periplus.model.page import LinkKind, Part, Position
from periplus.model.tables import HAS_PAGE, any_of
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store import inlinks, site_rows
from periplus.store.bodies import pack_parts
from periplus.store.reader import CollectionReader
from periplus.store.site_rows import IS_COPY, SITE_OF_URL, LinkBlock
from periplus.store.statements import Statements

PAGES_AT_ONCE = 25_000  # pages per range: 60 MB of text if each page has ten distinct link texts
ANCHOR_CHARS = (
    64_000_000  # characters of distinct texts; further texts are ignored, so that a hostile site cannot fill the memory
)
LINKS_PER_BATCH = 1 << 20
_PLACES = np.array([sorted(Position).index(position) for position in site_rows.POSITIONS], np.int64)
_IS_CLICKED = np.array([kind in (LinkKind.ANCHOR, LinkKind.AREA) for kind in site_rows.KINDS])
_NO_ANCHORS = np.zeros((3, 0), np.int64)
_FAR = 1 << 30  # instead of a depth: no link leads there
WITH_COPIES = f"({HAS_PAGE} OR {IS_COPY})"  # pages, and copies that may represent a group of duplicates
_DUPLICATE_PAGES = f"FROM page p JOIN url u ON u.id = p.url_id WHERE {WITH_COPIES}"
_LINKS = any_of((LinkKind.ANCHOR, LinkKind.AREA))
_MENUS = any_of((Position.NAV, Position.HEADER, Position.FOOTER, Position.ASIDE))
_FEEDS = "('application/rss+xml', 'application/atom+xml', 'application/rdf+xml', 'application/xml', 'text/xml')"
FEEDS_MOST = 5_000  # maximum feeds to read; a site has a few


def write_parts(statements: Statements, marked: Iterable[tuple[UrlId, int, Sequence[Part]]]) -> None:
    """Stores parts of pages, given as (page, body_id when it was read, one part per block).

    Pages with another body by now are not changed. Call it within a transaction.
    """
    rows = [(pack_parts(parts), url_id, body_id) for url_id, body_id, parts in marked]
    statements.change_rows("UPDATE page SET parts = ? WHERE url_id = ? AND body_id = ?", rows)


def evidence(reader: CollectionReader, site_id: int, name: str) -> bytes | None:
    """Data stored for a site under a name, or None. It exists only in folders."""
    find = "SELECT data FROM evidence WHERE site_id = ? AND name = ?"
    rows = [] if reader.statements.dialect.has_shards else reader.statements.rows(find, (site_id, name))
    return rows[0][0] if rows else None


def write_evidence(statements: Statements, site_id: int, name: str, data: bytes) -> None:
    """Replaces the data of a site under a name. Call it within a transaction of a folder."""
    statements.change("INSERT OR REPLACE INTO evidence VALUES (?, ?, ?)", (site_id, name, data))


# Texts of links to pages: an index on targets would cost 370 us and 1.6 kB per page while crawling. Instead links are
# scanned once and distributed to chunks of a file by the range of their target. Then each range is read once.

_PLACE_BITS, _KEY_BITS = 4, 36
_PLACE_MASK, _WORD_MASK = (1 << _PLACE_BITS) - 1, (1 << (_KEY_BITS - _PLACE_BITS)) - 1


class AnchorTexts:
    """Texts of links to pages, by page. Created by `anchors_to`."""

    def __init__(self, targets: Ints, folder: Path, most: int) -> None:
        """targets: ascending ids; folder: for the temporary file; most: maximum texts per page."""
        self._targets, self._most = targets, most
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed with the object
        weakref.finalize(self, self._file.close)
        self._chunks = [
            array("Q") for _ in range(-(-len(targets) // PAGES_AT_ONCE))
        ]  # offsets of the chunks of each range
        self._range = -1  # range in memory
        self._names: list[str] = []
        self._pages = self._texts = np.zeros(0, np.int64)

    def add(self, links: LinkBlock, texts: Sequence[str]) -> None:
        """Adds links from other pages."""
        places = inlinks.places_in(self._targets, links.targets)
        is_counted = (places >= 0) & (links.targets != links.sources) & _IS_CLICKED[links.kinds]
        rows = np.flatnonzero(is_counted & np.fromiter(map(bool, texts), np.bool_, len(texts)))
        numbers: dict[str, int] = {}
        of_rows = [numbers.setdefault(texts[row], len(numbers)) for row in rows.tolist()]
        keys = places[rows] << _KEY_BITS | np.array(of_rows, np.int64) << _PLACE_BITS | _PLACES[links.positions[rows]]
        different, first, counts = np.unique(keys, return_index=True, return_counts=True)
        ranges = (different >> _KEY_BITS) // PAGES_AT_ONCE
        order = np.lexsort((first, ranges))  # in order of occurrence
        ends = np.searchsorted(ranges, np.arange(len(self._chunks) + 1)).tolist()
        names = list(numbers)
        for number, (begin, end) in enumerate(pairwise(ends)):
            if begin < end:
                rows_of_range = order[begin:end]
                of_links = different[rows_of_range] >> _PLACE_BITS & _WORD_MASK
                words = json.dumps([names[text] for text in of_links.tolist()]).encode()
                self._chunks[number].append(self._file.tell())
                self._file.write(np.array([len(rows_of_range), len(words)], np.int64).tobytes())
                self._file.write(
                    np.array([different[rows_of_range], counts[rows_of_range]], np.int64).tobytes() + words
                )

    def _read(self, number: int) -> None:
        """Reads the texts of links to the pages of a range, most frequent first for each page. Of texts in the same
        landmark that differ only in case and diacritics, the first is kept.
        """
        self._names, self._pages, self._texts = [], _NO_ANCHORS[0], _NO_ANCHORS[0]  # frees the previous range first
        numbers: dict[str, int] = {}
        digests, counted, waiting = array("q"), _NO_ANCHORS, [_NO_ANCHORS]
        chars = links = 0
        for at in self._chunks[number]:
            keys, counts, texts = self._chunk(at)
            for text in texts:
                if text not in numbers and chars <= ANCHOR_CHARS:
                    numbers[text] = len(numbers)
                    chars += len(text)
                    digests.append(_word_digest(text))
            of_links = np.array([numbers.get(text, -1) for text in texts], np.int64)
            words = np.frombuffer(digests, np.int64)[of_links] << _PLACE_BITS
            keys = keys >> _KEY_BITS << _KEY_BITS | words | keys & _PLACE_MASK
            waiting.append(np.array([keys, of_links, counts])[:, of_links >= 0])
            del words  # releases the buffer, otherwise `digests` cannot grow
            links += len(keys)
            if links >= LINKS_PER_BATCH:
                counted, waiting, links = _merge_links([counted, *waiting]), [], 0
        keys, texts_of, counts = _merge_links([counted, *waiting])
        self._names = list(numbers)
        rank = np.empty(len(numbers), np.int64)
        rank[[numbers[text] for text in sorted(numbers)]] = np.arange(len(numbers))
        pages = keys >> _KEY_BITS
        order = np.lexsort((rank[texts_of], keys & _PLACE_MASK, -counts, pages))
        pages = pages[order]
        first = np.arange(len(pages)) - np.searchsorted(pages, pages) < self._most
        self._range, self._pages, self._texts = number, pages[first], texts_of[order][first]

    def _chunk(self, at: int) -> tuple[Ints, Ints, list[str]]:
        """Reads (keys, counts, texts) as written by `add`."""
        self._file.seek(at)
        links, size = np.frombuffer(self._file.read(16), np.int64).tolist()
        keys, counts = np.frombuffer(self._file.read(16 * links), np.int64).reshape(2, -1)
        return keys, counts, json.loads(self._file.read(size))

    def of(self, page: UrlId) -> list[str]:
        """Texts of the links to a page from other pages, most frequent first, as first seen. The same text in another
        landmark is a different one. Request pages in order, since one range is in memory at a time.
        """
        place = int(np.searchsorted(self._targets, page))
        if place == len(self._targets) or self._targets[place] != page:
            return []
        if place // PAGES_AT_ONCE != self._range:
            self._read(place // PAGES_AT_ONCE)
        begin, end = np.searchsorted(self._pages, (place, place + 1)).tolist()
        return [self._names[text] for text in self._texts[begin:end].tolist()]


def _word_digest(text: str) -> int:
    """Digest of a text without case and diacritics; practically unique within a page."""
    return xxh3_64_intdigest(without_marks(text).encode("utf-8", "replace")) & _WORD_MASK


def _merge_links(blocks: Sequence[Ints]) -> Ints:
    """(keys, texts, counts): merges links with equal keys, keeping the first text and adding up the counts."""
    keys, texts, counts = np.concatenate(blocks, axis=1)
    different, first, place = np.unique(keys, return_index=True, return_inverse=True)
    sums = np.bincount(place, counts, len(different)).astype(np.int64)
    return np.array([different, texts[first], sums])


def anchors_to(reader: CollectionReader, targets: Ints, folder: Path, most: int = 20) -> AnchorTexts:
    """Texts of links to pages from other pages, in one scan of all links for any number of targets.

    targets: ascending ids; folder: for a temporary file; most: maximum texts per page. Raises OSError, StoreError.
    """
    texts = AnchorTexts(targets, folder, most)
    for links, words in site_rows.anchor_blocks(reader):
        texts.add(links, words)
    return texts


# Duplicates are found by digest and confirmed by comparing the texts if they are stored.


def contenders(reader: CollectionReader, site_id: int | None = None) -> Iterator[Contender]:
    """All pages of a site or of all sites, by id."""
    named = _canonical_urls(reader)
    for row in reader.stream(f"SELECT u.id, u.text, p.charset, u.depth {_scope(site_id)} ORDER BY u.id"):
        yield _contender(row, named)


def same_texts(reader: CollectionReader, site_id: int | None = None) -> Iterator[tuple[list[SameText], bool]]:
    """Groups of two or more pages whose texts differ at most in diacritics and case: (pages, whether the texts were
    compared).

    Different texts with equal digests form separate groups. Pages without text are equal if their bytes are.
    """
    scope, named, contents = _scope(site_id), _canonical_urls(reader), reader
    find = (
        "SELECT u.id, u.text, p.charset, u.depth, p.folded_digest, p.text_digest, p.body_digest, p.body_id "
        f"{scope} AND p.folded_digest IN"
        f" (SELECT p.folded_digest {scope} GROUP BY 1 HAVING count(*) > 1) ORDER BY p.folded_digest, u.id"
    )
    for _, of_one_digest in groupby(reader.stream(find), key=lambda row: row[4]):
        yield from _of_one_digest(of_one_digest, contents, named)


def _of_one_digest(
    rows: Iterable[tuple[Any, ...]], contents: CollectionReader, named: frozenset[Url]
) -> Iterator[tuple[list[SameText], bool]]:
    groups: dict[str | None, list[SameText]] = {}
    bodies: dict[object, int] = {}
    texts: dict[str | bytes, tuple[int, int, str | None]] = {}  # (number, marks, group)
    of_body: dict[int, tuple[int, int, str | None]] = {}
    is_kept = True
    for *page, _, text_digest, body_digest, body_id in rows:
        # equal bytes are stored once, after comparison
        body = bodies.setdefault(body_digest if body_id is None else body_id, len(bodies))
        if body not in of_body:
            text = contents.text(page[0])
            # without text all must have the same bytes
            is_kept = is_kept and (text is not None or (body_id is not None and body == 0))
            words = text_digest if text is None else fold_whitespace(text)
            if words not in texts:
                marks = 0 if text is None else len(text) - len(text.encode("ascii", "ignore"))
                texts[words] = len(texts), marks, None if text is None else without_marks(words)
            of_body[body] = texts[words]
        number, marks, group = of_body[body]
        groups.setdefault(group, []).append(SameText(_contender(page, named), marks, number, body))
    yield from ((pages, is_kept) for pages in groups.values() if len(pages) > 1)


def tally(reader: CollectionReader, site_id: int | None = None) -> tuple[int, int]:
    """(pages, pages with text that are not classified yet)."""
    count = f"SELECT count(*), count(CASE WHEN p.parts IS NULL AND p.text_chars > 0 THEN 1 END) {_scope(site_id)}"
    pages, unmarked = reader.statements.rows(count)[0]
    return pages, unmarked


def _scope(site_id: int | None) -> str:
    of_site = f" AND u.host_id IN (SELECT id FROM host WHERE site_id = {site_id})"
    return _DUPLICATE_PAGES + ("" if site_id is None else of_site)


def _canonical_urls(reader: CollectionReader) -> frozenset[Url]:
    """Canonical URLs declared by pages, except their own."""
    find = f"SELECT DISTINCT p.canonical {_DUPLICATE_PAGES} AND p.canonical NOT IN ('', u.text)"
    return frozenset(row[0] for row in reader.stream(find))


def _contender(row: list[object] | tuple[object, ...], named: frozenset[Url]) -> Contender:
    url_id, url, charset, depth = row
    # types as in the columns
    return Contender(url_id, url, charset, _FAR if depth is None else depth, url in named)  # type: ignore[arg-type]


def sites_with_pages(reader: CollectionReader) -> dict[int, tuple[SiteKey, int]]:
    """(site key, number of fetched pages) by site id, ascending."""
    find = (
        "SELECT s.id, s.key, count(*) FROM page p JOIN url u ON u.id = p.url_id JOIN host h ON h.id = u.host_id"
        " JOIN site s ON s.id = h.site_id"
        " GROUP BY s.id, s.key ORDER BY s.id"
    )
    return {number: (SiteKey(key), pages) for number, key, pages in reader.stream(find)}


def content_links(reader: CollectionReader, site: SiteKey, sources: Sequence[UrlId]) -> list[tuple[UrlId, UrlId, str]]:
    """(source, target, anchor) of the hyperlinks of pages of a site outside of navigation."""
    dialect = reader.statements.dialect
    find = (
        f"SELECT l.source, l.target, l.anchor FROM link l WHERE {dialect.anywhere('l', site)}l.source {dialect.among}"
        f" AND l.kind IN {_LINKS} AND l.position NOT IN {_MENUS}"
    )
    return reader.statements.rows(find, (dialect.list_value(sources),))


class PageRow(NamedTuple):
    """Stored properties of a page without its text; times in seconds since the epoch."""

    url_id: UrlId
    url: Url
    title: str
    language: str  # as declared
    language_found: str  # detected from the text
    media_type: str
    last_modified: float
    first_seen: float  # time when its URL was first seen
    body_id: int
    body_digest: bytes
    text_digest: bytes
    parts: bytes | None

    @property
    def stamp(self) -> int:
        """64 bits that change with the stored properties and text of the page, but not if it is only fetched again."""
        return xxh3_64_intdigest(repr(self).encode("utf-8", "replace"))


def page_rows(reader: CollectionReader) -> Iterator[tuple[int, PageRow]]:
    """(site id, page) of all pages, by page id. One scan, since pages have no index by site."""
    find = (
        "SELECT h.site_id, u.id, u.text, p.title, p.language, p.language_found, p.media_type, p.last_modified,"
        " u.first_seen, coalesce(p.body_id, 0), p.body_digest, p.text_digest, p.parts FROM page p"
        " CROSS JOIN url u ON u.id = p.url_id CROSS JOIN host h ON h.id = u.host_id"
        f" WHERE {HAS_PAGE} ORDER BY p.url_id"
    )
    for site, *row in reader.stream(find):
        yield site, PageRow._make(row)


def feeds(reader: CollectionReader) -> Iterator[tuple[Url, bytes]]:
    """Pages that may be feeds, with their bytes."""
    find = (
        "SELECT u.id, u.text FROM page p JOIN url u ON u.id = p.url_id"
        f" WHERE p.media_type IN {_FEEDS} ORDER BY u.id LIMIT ?"
    )
    for url_id, url in reader.statements.rows(find, (FEEDS_MOST,)):
        body = reader.body(url_id)
        if body:
            yield Url(url), body


class SourceRow(NamedTuple):
    """A page with the data needed to decode its body."""

    url_id: UrlId
    url: Url
    title: str
    charset: str
    media_type: str


def source_rows(reader: CollectionReader, site: SiteKey) -> list[SourceRow]:
    """The site's HTML pages with status 200 and stored bytes, by URL."""
    find = (
        "SELECT u.id, u.text, p.title, p.charset, p.media_type FROM url u CROSS"
        f" JOIN page p ON p.url_id = u.id WHERE {SITE_OF_URL}"
        " AND u.reason IN ('ok', 'partial', 'noindex') AND u.status = 200"
        " AND p.media_type IN ('text/html', 'application/xhtml+xml')"
        f" AND p.body_id IS NOT NULL ORDER BY u.text{reader.statements.dialect.text_order}"
    )
    return list(map(SourceRow._make, reader.statements.rows(find, (site,))))
