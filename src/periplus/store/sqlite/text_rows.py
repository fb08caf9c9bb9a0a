"""What analyses of text read: blocks, anchors, equal texts, kept sources, and what stories need beside them."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from xxhash import xxh3_64_intdigest

from periplus.document.digest import without_marks
from periplus.document.whitespace import folded
from periplus.model.duplicates import Contender, SameText
from periplus.model.page import LinkKind, Part, Position
from periplus.model.tables import HAS_PAGE, any_of
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store.bodies import pack_parts
from periplus.store.crawl_reads import PageBlocks, page_of, pages_statement
from periplus.store.dialect import SQLITE
from periplus.store.sqlite import page_links
from periplus.store.sqlite.page_rows import Contents
from periplus.store.sqlite.reading import SITE_OF_URL, rows

BLOCK_ROWS = 100  # rows with packed texts, fetched at once: some 1 MB
_PAGES = pages_statement(SQLITE)


def pages_of(connection: sqlite3.Connection, ids: Iterable[UrlId]) -> Iterator[PageBlocks]:
    """Those of the URLs that are pages now, in the order given."""
    contents = Contents(connection)
    for url_id in ids:
        row = connection.execute(_PAGES + " AND p.url_id = ?", (url_id,)).fetchone()
        if row is not None:
            yield page_of(row, contents.codec)


def pages_of_site(connection: sqlite3.Connection, site_id: int, most: int = -1) -> Iterator[PageBlocks]:
    """The site's pages, by id. Streamed. most: no more than this, spread over them all as the ids are; -1: all."""
    contents = Contents(connection)
    cursor = connection.execute(
        _PAGES + " AND u.host_id IN (SELECT id FROM host WHERE site_id = ?) ORDER BY p.url_id LIMIT ?", (site_id, most)
    )
    while rows := cursor.fetchmany(BLOCK_ROWS):
        for row in rows:
            yield page_of(row, contents.codec)


def write_parts(connection: sqlite3.Connection, marked: Iterable[tuple[UrlId, int, Sequence[Part]]]) -> None:
    """(page, its body_id when it was read, one part for each block).

    A page that has another body by now is left alone. Within a transaction.
    """
    rows = [(pack_parts(parts), url_id, body_id) for url_id, body_id, parts in marked]
    connection.executemany("UPDATE page SET parts = ? WHERE url_id = ? AND body_id = ?", rows)


class AnchorTexts:
    """Words of links to pages, by page. `anchors_to` makes it."""

    def __init__(self, targets: Collection[UrlId], most: int) -> None:
        """most: of each page."""
        self._most = most
        self._numbers = {target: number for number, target in enumerate(targets)}
        self._texts: dict[str, int] = {}  # each once, by its number
        self._words_of = array("Q")  # of each text a digest of it without case and diacritics
        # links: the page, the words and the landmark in one number, and the text
        self._keys, self._of_links = array("Q"), array("I")
        self._counted = _NO_ANCHORS
        self._chars = 0

    def add(self, target: int, text: str, position: str) -> None:
        """Counts a link from another page."""
        number = self._texts.get(text)
        if number is None:
            if self._chars > ANCHOR_CHARS:
                return
            number = self._texts[text] = len(self._texts)
            self._chars += len(text)
            self._words_of.append(xxh3_64_intdigest(without_marks(text).encode("utf-8", "replace")) & _WORD_MASK)
        key = self._numbers[UrlId(target)] << _KEY_BITS | self._words_of[number] << _PLACE_BITS | _PLACES[position]
        self._keys.append(key)
        self._of_links.append(number)
        if len(self._keys) >= LINKS_COUNTED_AT_ONCE:
            self._count()

    def _count(self) -> None:
        """Of the links with the same key keeps the first one's text, and how many there are."""
        keys, texts, pages = self._counted
        keys = np.concatenate((keys, np.frombuffer(self._keys, np.uint64)))
        texts = np.concatenate((texts, np.frombuffer(self._of_links, np.uint32)))
        pages = np.concatenate((pages, np.ones(len(self._keys), np.int64)))
        different, first, place = np.unique(keys, return_index=True, return_inverse=True)
        self._counted = different, texts[first], np.bincount(place, pages, len(different)).astype(np.int64)
        self._keys, self._of_links = array("Q"), array("I")

    def settle(self) -> None:
        """Orders what was added: of each page the most frequent first."""
        self._count()
        keys, texts, pages = self._counted
        by_text = sorted(self._texts)
        rank = np.empty(len(by_text), np.int64)
        rank[[self._texts[text] for text in by_text]] = np.arange(len(by_text))
        numbers, places = keys >> np.uint64(_KEY_BITS), keys & np.uint64((1 << _PLACE_BITS) - 1)
        order = np.lexsort((rank[texts], places, -pages, numbers))
        numbers = numbers[order]
        at = np.arange(len(numbers)) - np.searchsorted(numbers, numbers)
        first = at < self._most
        self._of_pages, self._numbers_of = texts[order][first], numbers[first]
        self._names, self._texts = list(self._texts), {}
        self._counted = _NO_ANCHORS
        self._words_of = array("Q")

    def of(self, page: UrlId) -> list[str]:
        """The words of the links to a page from others, the most frequent first, each as it was first met; the same
        words in another landmark are others.
        """
        number = self._numbers.get(page)
        if number is None:
            return []
        begin, end = np.searchsorted(self._numbers_of, np.array([number, number + 1], np.uint64)).tolist()
        return [self._names[text] for text in self._of_pages[begin:end].tolist()]


ANCHOR_CHARS = (
    64_000_000  # of different texts; beyond, further ones are passed over: a hostile site must not fill the memory
)
LINKS_COUNTED_AT_ONCE = 1 << 20
_PLACES = {str(position): place for place, position in enumerate(sorted(Position))}
_PLACE_BITS, _KEY_BITS = 4, 36
_WORD_MASK = (1 << (_KEY_BITS - _PLACE_BITS)) - 1  # that two texts of one page have the same is most unlikely
_NO_ANCHORS = np.zeros(0, np.uint64), np.zeros(0, np.uint32), np.zeros(0, np.int64)


def anchors_to(connection: sqlite3.Connection, targets: Collection[UrlId], most: int = 20) -> AnchorTexts:
    """Words of the links to pages from other pages.

    most: of each page. One pass through all links, whatever the number of targets: an index on the targets would
    cost 370 us and 1.6 kB a page while crawling, so ask for many pages at once. Memory: 20 bytes for what differs in
    page, words and landmark, and each text once.
    """
    texts = AnchorTexts(targets, most)
    among = frozenset(targets)
    for source, target, text, position in page_links.hyperlinks(connection):
        if text and target != source and target in among:
            texts.add(target, text, position)
    texts.settle()
    return texts


# Digests find them, the texts themselves confirm it where they were kept.

_FAR = 1 << 30  # in place of a depth: no link leads there
_DUPLICATE_PAGES = f"FROM page p JOIN url u ON u.id = p.url_id WHERE {HAS_PAGE}"
_OF_SITE = " AND u.host_id IN (SELECT id FROM host WHERE site_id = :site)"


def contenders(connection: sqlite3.Connection, site_id: int | None = None) -> Iterator[Contender]:
    """All pages of a site, or of all sites, by id."""
    named = _named(connection)
    for row in connection.execute(
        f"SELECT u.id, u.text, p.charset, u.depth {_scope(site_id)} ORDER BY u.id", {"site": site_id}
    ):
        yield _contender(row, named)


def same_texts(connection: sqlite3.Connection, site_id: int | None = None) -> Iterator[tuple[list[SameText], bool]]:
    """(pages whose texts are the same but for diacritics and case, two at least;
    whether the texts themselves were compared).

    Equal digests of different texts make two groups. Pages without text are the same when their bytes are.
    """
    scope, named, contents = _scope(site_id), _named(connection), Contents(connection)
    find = (
        "SELECT u.id, u.text, p.charset, u.depth, p.folded_md5, p.text_md5, p.body_md5, p.body_id "
        f"{scope} AND p.folded_md5 IN"
        f" (SELECT p.folded_md5 {scope} GROUP BY 1 HAVING count(*) > 1) ORDER BY p.folded_md5, u.id"
    )
    for _, of_one_digest in groupby(connection.execute(find, {"site": site_id}), key=lambda row: row[4]):
        yield from _of_one_digest(of_one_digest, contents, named)


def _of_one_digest(
    rows: Iterable[tuple[Any, ...]], contents: Contents, named: frozenset[Url]
) -> Iterator[tuple[list[SameText], bool]]:
    groups: dict[str | None, list[SameText]] = {}
    bodies: dict[object, int] = {}
    texts: dict[str | bytes, tuple[int, int, str | None]] = {}  # (number, marks, group)
    of_body: dict[int, tuple[int, int, str | None]] = {}
    is_kept = True
    for *page, _, text_md5, body_md5, body_id in rows:
        # equal bytes are kept once, and were compared for it
        body = bodies.setdefault(body_md5 if body_id is None else body_id, len(bodies))
        if body not in of_body:
            text = contents.text(page[0])
            # without a text: the same bytes, all of them
            is_kept = is_kept and (text is not None or (body_id is not None and body == 0))
            words = text_md5 if text is None else folded(text)
            if words not in texts:
                marks = 0 if text is None else len(text) - len(text.encode("ascii", "ignore"))
                texts[words] = len(texts), marks, None if text is None else without_marks(words)
            of_body[body] = texts[words]
        number, marks, group = of_body[body]
        groups.setdefault(group, []).append(SameText(_contender(page, named), marks, number, body))
    yield from ((pages, is_kept) for pages in groups.values() if len(pages) > 1)


def tally(connection: sqlite3.Connection, site_id: int | None = None) -> tuple[int, int]:
    """(pages, those of them with a text in which content and navigation are not told apart yet)."""
    count = f"SELECT count(*), coalesce(sum(p.parts IS NULL AND p.text_chars > 0), 0) {_scope(site_id)}"
    pages, unmarked = connection.execute(count, {"site": site_id}).fetchone()
    return pages, unmarked


def _scope(site_id: int | None) -> str:
    return _DUPLICATE_PAGES + ("" if site_id is None else _OF_SITE)


def _named(connection: sqlite3.Connection) -> frozenset[Url]:
    """What pages name as their canonical, themselves apart."""
    find = f"SELECT DISTINCT p.canonical {_DUPLICATE_PAGES} AND p.canonical NOT IN ('', u.text)"
    return frozenset(row[0] for row in connection.execute(find))


def _contender(row: list[object] | tuple[object, ...], named: frozenset[Url]) -> Contender:
    url_id, url, charset, depth = row
    # as the columns are
    return Contender(url_id, url, charset, _FAR if depth is None else depth, url in named)  # type: ignore[arg-type]


_LINKS = any_of((LinkKind.ANCHOR, LinkKind.AREA))
_FEEDS = "('application/rss+xml', 'application/atom+xml', 'application/rdf+xml', 'application/xml', 'text/xml')"
FEEDS_MOST = 5_000  # that are looked at; a site has a handful


class CrossLink(NamedTuple):
    """A link from a page to another site."""

    source: UrlId
    target: UrlId
    position: str
    anchor: str


def sites_with_pages(connection: sqlite3.Connection) -> dict[int, tuple[SiteKey, int]]:
    """By number: the site's key and how many pages of it were fetched; ascending by number."""
    find = (
        "SELECT s.id, s.key, count(*) FROM page p JOIN url u ON u.id = p.url_id JOIN host h ON h.id = u.host_id"
        " JOIN site s ON s.id = h.site_id"
        " GROUP BY s.id ORDER BY s.id"
    )
    return {number: (SiteKey(key), pages) for number, key, pages in connection.execute(find)}


def cross_links_of(connection: sqlite3.Connection, source: UrlId) -> Iterator[CrossLink]:
    """Every hyperlink of a fetched page to another site, by target."""
    find = (
        "SELECT l.source, l.target, l.position, l.anchor FROM url u CROSS JOIN host h ON h.id = u.host_id"
        " CROSS JOIN link l ON l.source = u.id JOIN url t ON t.id = l.target JOIN host th ON th.id = t.host_id"
        f" WHERE u.id = ? AND l.kind IN {_LINKS} AND th.site_id <> h.site_id ORDER BY l.target"
    )
    yield from map(CrossLink._make, connection.execute(find, (source,)))


class PageRow(NamedTuple):
    """What is stored of a page but its text; times in seconds since the epoch."""

    url_id: UrlId
    url: Url
    title: str
    language: str  # as declared
    language_found: str  # as its words tell
    media_type: str
    last_modified: float
    first_seen: float  # when the crawl first met its URL
    body_id: int
    body_md5: bytes
    text_md5: bytes
    parts: bytes | None

    @property
    def stamp(self) -> int:
        """64 bits that change with all that is stored of the page, its text too, but not when it is fetched again."""
        return xxh3_64_intdigest(repr(self).encode("utf-8", "replace"))


def page_rows(connection: sqlite3.Connection) -> Iterator[tuple[int, PageRow]]:
    """(the site's number, the page) of all pages, by id. One pass: no index leads from a site to its pages."""
    find = (
        "SELECT h.site_id, u.id, u.text, p.title, p.language, p.language_found, p.media_type, p.last_modified,"
        " u.first_seen, coalesce(p.body_id, 0), p.body_md5, p.text_md5, p.parts FROM page p"
        " CROSS JOIN url u ON u.id = p.url_id CROSS JOIN host h ON h.id = u.host_id"
        f" WHERE {HAS_PAGE} ORDER BY p.url_id"
    )
    for site, *row in rows(connection.execute(find)):
        yield site, PageRow._make(row)  # type: ignore[misc]  # as the column is


def feeds(connection: sqlite3.Connection, contents: Contents) -> Iterator[tuple[Url, bytes]]:
    """Pages that may be feeds, with their bytes."""
    find = (
        "SELECT u.id, u.text FROM page p JOIN url u ON u.id = p.url_id"
        f" WHERE p.media_type IN {_FEEDS} ORDER BY u.id LIMIT ?"
    )
    for url_id, url in connection.execute(find, (FEEDS_MOST,)).fetchall():
        body = contents.body(url_id)
        if body:
            yield Url(url), body


class SourceRow(NamedTuple):
    """One page and what is needed to decode its body."""

    url_id: UrlId
    url: Url
    title: str
    charset: str
    media_type: str


def source_rows(connection: sqlite3.Connection, site: SiteKey) -> list[SourceRow]:
    """The site's HTML pages that answered 200 and whose bytes were kept, by URL."""
    find = (
        "SELECT u.id, u.text, p.title, p.charset, p.media_type FROM url u CROSS"
        f" JOIN page p ON p.url_id = u.id WHERE {SITE_OF_URL}"
        " AND u.reason IN ('ok', 'partial', 'noindex') AND u.status = 200"
        " AND p.media_type IN ('text/html', 'application/xhtml+xml')"
        " AND p.body_id IS NOT NULL ORDER BY u.text"
    )
    return list(map(SourceRow._make, connection.execute(find, (site,)).fetchall()))
