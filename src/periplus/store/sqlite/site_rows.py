"""What does an audit need of a site: every URL, page and link with its facts, as columns?

Each table is read once, in the order in which it lies on disk, in blocks: a million pages and ten million links are arrays
before the next block is asked for.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.model.graph import REASONS
from periplus.model.page import LinkKind, Position
from periplus.model.web import SiteKey, Url
from periplus.store.sqlite.number_rows import number_blocks
from periplus.store.sqlite.reading import SITE_OF_URL, rows

KINDS = tuple(LinkKind)
POSITIONS = tuple(Position)
_BLOCK = 10_000  # rows turned into arrays at once: a larger one costs memory and saves nothing
_REASON = {reason.value: place for place, reason in enumerate(REASONS)}
_HTML = "('text/html', 'application/xhtml+xml')"
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AllUrls:
    """Every URL of the collection, ascending by id."""

    ids: Ids
    texts: list[Url]
    reasons: NDArray[np.uint8]  # places in REASONS
    layers: NDArray[np.int32]  # -1 where no link leads
    statuses: NDArray[np.int16]  # 0: no answer
    in_sitemap: NDArray[np.bool_]
    sites: NDArray[np.int32]  # numbers of site.id


@dataclass(frozen=True, slots=True)
class SiteLinks:
    """Every link of one site's fetched pages and redirects, ascending by source, then target."""

    sources: Ids
    targets: Ids
    kinds: NDArray[np.uint8]  # places in KINDS
    positions: NDArray[np.uint8]  # places in POSITIONS
    nofollow: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AnyPages:
    """Every page of the collection, of whatever site: type and size, ascending by id."""

    ids: Ids
    media_types: list[str]
    sizes: Ids  # bytes


class PageTexts(NamedTuple):
    """What an HTML page of the site says of itself. A tuple: a million dataclasses take 3 s longer to make."""

    url_id: int
    title: str
    description: str
    h1: str
    canonical: str
    language: str
    robots: str
    took_s: float
    text_chars: int
    folded_md5: bytes
    h1s: int
    images_without_alt: int
    other_charset: str  # what the page says of itself, where its header says otherwise
    translations: str  # JSON: [[hreflang, URL], ...]; empty: none


def _blocks(cursor: sqlite3.Cursor) -> Iterator[tuple[tuple[object, ...], ...]]:
    """The columns of block after block."""
    while block := cursor.fetchmany(_BLOCK):
        yield tuple(zip(*block, strict=True))


def _joined(parts: list[NDArray[np.generic]], kind: type[np.generic]) -> NDArray[np.generic]:
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def all_urls(connection: sqlite3.Connection) -> AllUrls:
    """Whatever the collection knows: the site's own URLs, and what they lead to."""
    find = (
        "SELECT u.id, u.text, u.reason, coalesce(u.layer, -1), coalesce(u.status, 0), u.in_sitemap, h.site_id"
        " FROM url u CROSS JOIN host h ON h.id = u.host_id ORDER BY u.id"
    )
    texts: list[Url] = []
    parts: tuple[list[NDArray[np.generic]], ...] = ([], [], [], [], [], [])
    for ids, some, reasons, layers, statuses, listed, sites in _blocks(connection.execute(find)):
        texts += some  # type: ignore[arg-type]  # a column of texts
        codes = np.fromiter(map(_REASON.__getitem__, reasons), np.uint8, len(ids))  # type: ignore[arg-type]  # a column of texts
        answers = np.array(statuses).clip(0, 999)
        for part, column, kind in zip(parts, (ids, codes, layers, answers, listed, sites), _URL_TYPES, strict=True):
            part.append(np.asarray(column, kind))
    first, *others = (_joined(part, kind) for part, kind in zip(parts, _URL_TYPES, strict=True))
    return AllUrls(first, texts, *others)  # type: ignore[arg-type]  # each of its own type


_URL_TYPES = (np.int64, np.uint8, np.int32, np.int16, np.bool_, np.int32)
_LINK_TYPES = (np.int64, np.int64, np.uint8, np.uint8, np.bool_)


def _case(column: str, names: Iterable[str]) -> str:
    """SQL for a name's place among the names: as a number it needs no object in Python."""
    cases = " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(names))
    return f"CASE {column} {cases} END"


_LINK_CODE = f"({_case('l.kind', KINDS)} * 16 + {_case('l.position', POSITIONS)} * 2 + l.nofollow)"


def site_links(connection: sqlite3.Connection, site: SiteKey) -> SiteLinks:
    """Every link of the site's pages; what an alias or a URL against the rules once held is left out."""
    find = (
        f"SELECT l.source, l.target, {_LINK_CODE} FROM url u CROSS JOIN link l ON l.source = u.id WHERE {SITE_OF_URL}"
        " AND u.reason NOT IN ('redirect', 'alias', 'rule') ORDER BY u.id, l.target"
    )
    parts: tuple[list[NDArray[np.generic]], ...] = ([], [], [], [], [])
    for sources, targets, codes in (block.T for block in number_blocks(connection.execute(find, (site,)), 3)):
        for part, column, kind in zip(parts, (sources, targets, codes >> 4, codes >> 1 & 7, codes & 1), _LINK_TYPES, strict=True):
            part.append(column.astype(kind))
    return SiteLinks(*(_joined(part, kind) for part, kind in zip(parts, _LINK_TYPES, strict=True)))  # type: ignore[arg-type]  # each of its own type


def any_pages(connection: sqlite3.Connection) -> AnyPages:
    """Of every page that was fetched, its type and size."""
    ids: list[int] = []
    media_types: list[str] = []
    sizes: list[int] = []
    for some_ids, types, some_sizes in _blocks(connection.execute("SELECT url_id, media_type, size FROM page ORDER BY url_id")):
        ids += some_ids  # type: ignore[arg-type]  # a column of whole numbers
        media_types += map(sys.intern, types)  # type: ignore[arg-type]  # a few names, a million times
        sizes += some_sizes  # type: ignore[arg-type]
    return AnyPages(np.array(ids, np.int64), media_types, np.array(sizes, np.int64))


def page_texts(connection: sqlite3.Connection, site: SiteKey) -> Iterator[PageTexts]:
    """The site's HTML pages that answered 200 and were read, ascending by id."""
    find = (
        "SELECT u.id, p.title, p.description, p.h1, p.canonical, p.language, p.robots, p.took_s, p.text_chars, p.folded_md5,"
        " p.h1s, p.images_without_alt, p.other_charset, p.translations"
        f" FROM url u CROSS JOIN page p ON p.url_id = u.id WHERE {SITE_OF_URL} AND u.reason IN ('ok', 'partial', 'noindex') AND u.status = 200"
        f" AND p.media_type IN {_HTML} ORDER BY u.id"
    )
    yield from map(PageTexts._make, rows(connection.execute(find, (site,))))


def bad_link_rows(connection: sqlite3.Connection, site: SiteKey) -> Iterator[tuple[int, str, str]]:
    """(page, what stood there, why it is no link) of the site's mail links and malformed ones."""
    find = f"SELECT u.id, b.text, b.why FROM url u CROSS JOIN bad_link b ON b.source = u.id WHERE {SITE_OF_URL} AND b.why IN ('mailto', 'malformed')"
    yield from rows(connection.execute(find, (site,)))  # type: ignore[misc]  # three columns


def unread_pages(connection: sqlite3.Connection, site: SiteKey) -> Iterator[tuple[int, str, str]]:
    """(page, reason, why) of the site's pages that were fetched and not read, or not whole, by URL."""
    unread = "u.reason IN ('truncated', 'partial', 'unreadable', 'needs-script') OR (u.reason = 'noindex' AND instr(u.rule, '; '))"
    find = f"SELECT u.id, u.reason, u.rule FROM url u WHERE {SITE_OF_URL} AND ({unread}) ORDER BY u.text"
    yield from rows(connection.execute(find, (site,)))  # type: ignore[misc]  # three columns


def trap_families(connection: sqlite3.Connection, site: SiteKey) -> list[tuple[int, str, int]]:
    """(its first URL, family, how many) of what was left of the site as endless series, by family."""
    family = "substr(u.rule, 1, instr(u.rule, ': ') - 1)"
    find = f"SELECT u.id, {family} AS family, count(*), min(u.text) FROM url u WHERE {SITE_OF_URL} AND u.reason = 'trap' GROUP BY family ORDER BY family"
    return [(first, name, left) for first, name, left, _ in connection.execute(find, (site,))]


def fragment_rows(connection: sqlite3.Connection, site: SiteKey) -> Iterator[tuple[int, int, str, str, str]]:
    """(source, target, kind, position, fragments parted by blanks) of the site's links into HTML pages that were kept, by target."""
    find = (
        "SELECT l.source, l.target, l.kind, l.position, l.fragments FROM url u CROSS JOIN link l ON l.source = u.id"
        f" JOIN page p ON p.url_id = l.target JOIN url t ON t.id = l.target WHERE {SITE_OF_URL} AND l.fragments <> ''"
        f" AND u.reason NOT IN ('redirect', 'alias', 'rule') AND t.reason IN ('ok', 'partial', 'noindex', 'alias') AND p.media_type IN {_HTML}"
        " AND p.body_id IS NOT NULL ORDER BY l.target"
    )
    yield from rows(connection.execute(find, (site,)))  # type: ignore[misc]  # five columns


def anchors_of(connection: sqlite3.Connection, pairs: Iterable[tuple[int, int]]) -> Iterator[str]:
    """The words of the links from a page to a URL, in the order of the pairs."""
    find = "SELECT anchor FROM link WHERE source = ? AND target = ? ORDER BY anchor = '' LIMIT 1"
    for pair in pairs:
        found = connection.execute(find, pair).fetchone()
        yield str(found[0]) if found else ""


def findable_pages(connection: sqlite3.Connection, site: SiteKey) -> Iterator[tuple[Url, float, bytes]]:
    """(URL, when its content last changed by the server's word or 0.0, its content's digest) of what search engines may show, by URL."""
    find = (
        f"SELECT u.text, p.last_modified, p.body_md5 FROM url u CROSS JOIN page p ON p.url_id = u.id WHERE {SITE_OF_URL} AND u.reason IN ('ok', 'partial')"
        f" AND u.status = 200 AND (p.canonical = '' OR p.canonical = u.text) AND (p.media_type IN {_HTML} OR p.media_type = 'application/pdf') ORDER BY u.text"
    )
    yield from rows(connection.execute(find, (site,)))  # type: ignore[misc]  # three columns


def charset_of(connection: sqlite3.Connection, url_id: int) -> str:
    """The charset that a page was read in; empty where it is not known."""
    found = connection.execute("SELECT charset FROM page WHERE url_id = ?", (url_id,)).fetchone()
    return str(found[0]) if found else ""
