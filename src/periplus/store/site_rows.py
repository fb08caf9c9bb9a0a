"""A site's URLs, links, redirects and pages as arrays and columns, and the sizes of its pages' subresources."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.document.headers import media_type
from periplus.model.arrays import Ints, Ints16, Ints32, Mask, Unsigned8
from periplus.model.frontier import READ
from periplus.model.graph import REASON_CODES, LinkRows
from periplus.model.page import CLICK_KINDS, LINK_KIND_CODES, PULLED_KINDS, LinkKind, Position
from periplus.model.tables import HAS_PAGE, any_of
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store.bodies import unpack_headers
from periplus.store.corruption import translate_errors
from periplus.store.page_links import FIRST_LETTER, perhaps_with_fragments, split_words
from periplus.store.reader import CollectionReader
from periplus.urls.aliases import COPY
from periplus.urls.canonical import url_id
from periplus.values import Row, frozen

if TYPE_CHECKING:
    from periplus.model.results import Tally

BLOCK_ROWS = 100_000  # rows or links converted to arrays at a time
ROWS_AT_ONCE = 10_000
SITE_OF_URL = "u.host_id IN (SELECT h.id FROM host h JOIN site s ON s.id = h.site_id WHERE s.key = ?)"
OF_SITE = (
    f"url u CROSS JOIN page_links l ON l.source = u.id WHERE {SITE_OF_URL}"
    " AND u.reason NOT IN ('redirect', 'alias', 'rule') ORDER BY u.id"
)
_READ = any_of(READ)
_TALLY_COLUMNS = {"host": "h.key", "media_type": "p.media_type", "charset": "p.charset", "language": "p.language"}
KINDS = tuple(LinkKind)
POSITIONS = tuple(Position)
IS_COPY = f"u.reason = 'alias' AND substr(u.rule, 1, {len(COPY)}) = '{COPY}'"
_HTML = "('text/html', 'application/xhtml+xml')"
_WITH_PLACES = "('text/html', 'application/xhtml+xml', 'text/markdown', 'text/x-markdown')"
_URL_TYPES = (np.int64, np.uint8, np.int32, np.int16, np.bool_, np.int32)
_LENGTH_DIGITS = 18  # of a Content-Length: as many as SQLite and NumPy can store
HOPS_MOST = 101  # as for redirects in `api.audit`
_HOPS = """
SELECT source, target, status FROM (
    SELECT l.source, l.target, coalesce(u.status, 0) AS status,
        row_number() OVER (PARTITION BY l.source ORDER BY l.last_seen DESC, l.target) AS place
    FROM url u JOIN link l ON {}l.source = u.id WHERE u.reason = 'redirect' AND l.kind = 'redirect') r WHERE place = 1
"""


def number_blocks(rows: Iterator[Row], width: int) -> Iterator[Ints]:
    """Rows of integers as int64[rows, width], in blocks; width: number of columns.

    All numbers are read into one flat array: twice as fast as by column, three times as fast as a structured array.
    """
    while len(block := np.fromiter(chain.from_iterable(islice(rows, BLOCK_ROWS)), np.int64)):
        yield block.reshape(-1, width)


class LinkBlock(NamedTuple):
    """Links as arrays of equal length; all links of a page are in one block."""

    sources: Ints
    targets: Ints
    kinds: Unsigned8  # indices into KINDS
    positions: Unsigned8  # indices into POSITIONS
    nofollow: Mask

    def of(self, chosen: NDArray[np.generic]) -> LinkBlock:
        """Selects links by a mask or by indices."""
        return LinkBlock(*(column[chosen] for column in self))

    def in_order(self) -> LinkBlock:
        """The links sorted by source, then target."""
        return self.of(np.lexsort((self.targets, self.sources)))


_NO_LINKS = LinkBlock(
    np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.uint8), np.zeros(0, np.bool_)
)


def link_blocks(
    reader: CollectionReader, where: str, values: Sequence[object] = (), kinds: frozenset[LinkKind] | None = None
) -> Iterator[LinkBlock]:
    """Links of some kinds, or of all. where: what follows FROM, with the table `page_links l`, and with rows grouped by
    page.

    Takes 0.1 us per link; rows of two numbers take 0.3. Raises StoreError if columns are inconsistent.
    """
    find = f"SELECT l.source, l.targets, l.kinds, l.positions, l.nofollow FROM {where}"
    taken = None if kinds is None else np.isin(np.arange(256), [LINK_KIND_CODES[kind] for kind in kinds])
    return (_link_block(rows, taken) for rows in _rows_of_blocks(reader.stream(find, values)))


def anchor_blocks(reader: CollectionReader) -> Iterator[tuple[LinkBlock, list[str]]]:
    """All links in storage order, with their anchors. 1 us per link. Raises StoreError as above."""
    find = "SELECT source, targets, kinds, positions, nofollow, words FROM page_links"
    for page_rows in _rows_of_blocks(reader.stream(find)):
        with translate_errors():
            words = json.loads(f"[{','.join(row[5] for row in page_rows)}]")
            if list(map(len, words)) != [len(row[2]) for row in page_rows]:
                raise ValueError("columns of different lengths")
        block = _link_block(page_rows, None)
        yield block, [text if text[:1] != "\t" else split_words(text)[0] for text in chain.from_iterable(words)]


def _rows_of_blocks(links: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Rows of `page_links` in blocks of at least BLOCK_ROWS links, never splitting a page. The first column is the
    source, the third the kinds.
    """
    rows: list[tuple[Any, ...]] = []
    count = 0
    for row in links:
        if count >= BLOCK_ROWS and row[0] != rows[-1][0]:
            yield rows
            rows, count = [], 0
        rows.append(row)
        count += len(row[2])
    if rows:
        yield rows


def _link_block(rows: list[tuple[Any, ...]], taken: Mask | None) -> LinkBlock:
    sources, targets, letters, landmarks, bars, *_ = zip(*rows, strict=True)
    counts = np.fromiter(map(len, letters), np.int64, len(letters))
    with translate_errors():
        block = LinkBlock(
            np.repeat(np.array(sources, np.int64), counts),
            _ids_of(targets),
            codes_of(b"".join(letters)),
            codes_of(b"".join(landmarks)),
            np.concatenate([_bars(bar, count) for bar, count in zip(bars, counts.tolist(), strict=True)]),
        )
        if len({len(column) for column in block}) > 1:
            raise ValueError("a page with links of unequal columns")
    return block if taken is None else block.of(taken[block.kinds])


def _ids_of(targets: Sequence[bytes] | Sequence[list[int]]) -> Ints:
    """Ids from the column `targets`: decimal numbers in SQLite, an array in PostgreSQL."""
    if isinstance(targets[0], bytes):
        return np.fromstring(b"".join(targets), np.int64, sep=" ")  # type: ignore[arg-type]  # all are bytes
    return np.fromiter(chain.from_iterable(targets), np.int64)


def codes_of(letters: bytes) -> Unsigned8:
    """Decodes letters of `page_links` to indices."""
    return np.frombuffer(letters, np.uint8) - np.uint8(FIRST_LETTER)


def _bars(digits: bytes | None, count: int) -> Mask:
    return np.zeros(count, np.bool_) if digits is None else np.frombuffer(digits, np.uint8) == ord("1")


def joined_links(blocks: Iterable[LinkBlock]) -> LinkBlock:
    return LinkBlock(*map(np.concatenate, zip(_NO_LINKS, *blocks, strict=True)))


def first_of_pairs(sources: Ints, targets: Ints) -> Mask:
    """Mask of the first link of each pair, for sorted links."""
    first = np.ones(len(sources), np.bool_)
    first[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    return first


def row_blocks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Rows in blocks of ROWS_AT_ONCE. More rows at a time need more memory and are not faster."""
    while block := list(islice(rows, ROWS_AT_ONCE)):
        yield block


# Tables are read in storage order (URLs by id, links by source), so that each is read once, sequentially.


def page_numbers(reader: CollectionReader, site: SiteKey) -> tuple[Ints, Unsigned8]:
    """(ids, indices of their reasons in REASONS) of all known URLs of the site, ascending by id."""
    find = f"SELECT u.id, u.reason FROM url u WHERE {SITE_OF_URL} ORDER BY u.id"
    ids, codes = [np.zeros(0, np.int64)], bytearray()
    for block in row_blocks(reader.stream(find, (site,))):
        block_ids, reasons = zip(*block, strict=True)
        ids.append(np.array(block_ids, np.int64))
        codes += bytes(map(REASON_CODES.__getitem__, reasons))
    return np.concatenate(ids), np.frombuffer(bytes(codes), np.uint8)


def page_link_blocks(reader: CollectionReader, site: SiteKey) -> Iterator[LinkRows]:
    """As `clicks_of`, in blocks, ascending by source; may contain duplicates."""
    for block in link_blocks(reader, OF_SITE, (site,), CLICK_KINDS):
        yield LinkRows(block.sources, block.targets)


def clicks_of(reader: CollectionReader, site: SiteKey) -> LinkRows:
    """Links of the site's pages to pages of any site, distinct and ascending."""
    return _pairs_of(link_blocks(reader, OF_SITE, (site,), CLICK_KINDS))


def _pairs_of(blocks: Iterable[LinkBlock]) -> LinkRows:
    """Distinct pairs, ascending; the blocks must be ascending."""
    pairs = joined_links(
        block.of(first_of_pairs(block.sources, block.targets)) for block in (links.in_order() for links in blocks)
    )
    return LinkRows(pairs.sources, pairs.targets)


def sites_read(reader: CollectionReader) -> list[SiteKey]:
    """Sites with a fetched page. Most sites known to a crawl are only linked to."""
    read = f"SELECT h.site_id FROM host h WHERE h.id IN (SELECT host_id FROM url WHERE reason IN {_READ})"
    return [SiteKey(key) for (key,) in reader.stream(f"SELECT key FROM site WHERE id IN ({read}) ORDER BY id")]


def tallies(reader: CollectionReader, site: SiteKey, by: str) -> tuple[Tally, ...]:
    """Number and total size of the site's fetched pages by host, media_type, charset or language; most pages first."""
    column, order = _TALLY_COLUMNS[by], reader.statements.dialect.text_order
    find = (
        f"SELECT {column}, count(*), CAST(sum(p.size) AS bigint) FROM url u CROSS JOIN page p ON p.url_id = u.id"
        f" JOIN host h ON h.id = u.host_id WHERE {SITE_OF_URL} AND {HAS_PAGE}"
        f" GROUP BY 1 ORDER BY 2 DESC, {column}{order}"
    )
    from periplus.model.results import Tally  # crawls do not load the values of reports

    return tuple(Tally(*row) for row in reader.stream(find, (site,)))


# Each table is read once, in storage order and in blocks: a million pages and ten million links are converted to arrays
# before the next block is read.


@frozen
class AllUrls:
    """All URLs of the collection, ascending by id."""

    ids: Ints
    texts: list[Url]
    reasons: Unsigned8  # indices into REASONS
    depths: Ints32  # -1 if no link leads there
    statuses: Ints16  # 0: no response
    in_sitemap: Mask
    sites: Ints32  # numbers of site.id


@frozen
class AnyPages:
    """Type and size of all pages of the collection, ascending by id."""

    ids: Ints
    media_types: list[str]
    sizes: Ints  # bytes


class PageTexts(NamedTuple):
    """Properties of an HTML page. A tuple, since a million dataclasses take 3 s longer."""

    url_id: int
    title: str
    description: str
    h1: str
    canonical: str
    language: str
    robots: str
    took_s: float
    text_chars: int
    folded_digest: bytes
    h1s: int
    images_without_alt: int
    other_charset: str  # charset declared by the page, if its header differs
    translations: str  # JSON: [[hreflang, URL], ...]; or empty


def _blocks(rows: Iterator[Row]) -> Iterator[tuple[tuple[object, ...], ...]]:
    """The columns of each block."""
    return (tuple(zip(*block, strict=True)) for block in row_blocks(rows))


def _concatenate(parts: list[NDArray[np.generic]], kind: type[np.generic]) -> NDArray[np.generic]:
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def all_urls(reader: CollectionReader) -> AllUrls:
    """All URLs of the collection, which include the link targets of each site."""
    find = (
        "SELECT u.id, u.text, u.reason, coalesce(u.depth, -1), coalesce(u.status, 0), u.in_sitemap, h.site_id"
        " FROM url u CROSS JOIN host h ON h.id = u.host_id ORDER BY u.id"
    )
    texts: list[Url] = []
    parts: tuple[list[NDArray[np.generic]], ...] = ([], [], [], [], [], [])
    for ids, block_texts, reasons, depths, statuses, listed, sites in _blocks(reader.stream(find)):
        texts += block_texts  # type: ignore[arg-type]  # a column of texts
        # a column of texts
        codes = np.fromiter(map(REASON_CODES.__getitem__, reasons), np.uint8, len(ids))  # type: ignore[arg-type]
        answers = np.array(statuses).clip(0, 999)
        for part, column, kind in zip(parts, (ids, codes, depths, answers, listed, sites), _URL_TYPES, strict=True):
            part.append(np.asarray(column, kind))
    first, *others = (_concatenate(part, kind) for part, kind in zip(parts, _URL_TYPES, strict=True))
    return AllUrls(first, texts, *others)  # type: ignore[arg-type]  # each of its own type


def site_links(reader: CollectionReader, site: SiteKey) -> LinkBlock:
    """All links of the site's fetched pages and redirects, ascending by source, then target; without links of aliases
    and of URLs that break a rule.
    """
    return joined_links(block.in_order() for block in link_blocks(reader, OF_SITE, (site,)))


def any_pages(reader: CollectionReader) -> AnyPages:
    """Type and size of every fetched page."""
    ids: list[int] = []
    media_types: list[str] = []
    sizes: list[int] = []
    for some_ids, types, some_sizes in _blocks(
        reader.stream("SELECT url_id, media_type, size FROM page ORDER BY url_id")
    ):
        ids += some_ids  # type: ignore[arg-type]  # a column of integers
        media_types += map(sys.intern, types)  # type: ignore[arg-type]  # few distinct values
        sizes += some_sizes  # type: ignore[arg-type]
    return AnyPages(np.array(ids, np.int64), media_types, np.array(sizes, np.int64))


def page_texts(reader: CollectionReader, site: SiteKey) -> Iterator[PageTexts]:
    """The site's fetched HTML pages with status 200, ascending by id."""
    find = (
        "SELECT u.id, p.title, p.description, p.h1, p.canonical, p.language, p.robots, "
        "p.took_s, p.text_chars, p.folded_digest,"
        " p.h1s, p.images_without_alt, p.other_charset, p.translations"
        f" FROM url u CROSS JOIN page p ON p.url_id = u.id WHERE {SITE_OF_URL}"
        " AND u.reason IN ('ok', 'partial', 'noindex') AND u.status = 200"
        f" AND p.media_type IN {_HTML} ORDER BY u.id"
    )
    yield from map(PageTexts._make, reader.stream(find, (site,)))


def copies(reader: CollectionReader, site: SiteKey) -> list[tuple[int, int]]:
    """(page, alias) of the site's aliases with the same bytes and links, by URL."""
    find = (
        f"SELECT a.page_id, u.id FROM alias a JOIN url u ON u.id = a.url_id WHERE {SITE_OF_URL} AND {IS_COPY}"
        f" ORDER BY u.text{reader.statements.dialect.text_order}"
    )
    return reader.statements.rows(find, (site,))


def pages_with_screenshot(reader: CollectionReader, site: SiteKey) -> frozenset[Url]:
    """The site's pages with a screenshot."""
    find = (
        f"SELECT u.text FROM rendering g JOIN url u ON u.id = g.url_id WHERE g.screenshot IS NOT NULL AND {SITE_OF_URL}"
    )
    return frozenset(Url(text) for (text,) in reader.stream(find, (site,)))


def bad_link_rows(reader: CollectionReader, site: SiteKey) -> Iterator[tuple[int, str, str]]:
    """(page, text, why) of the site's mailto and malformed links."""
    find = (
        f"SELECT u.id, b.text, b.why FROM url u CROSS JOIN bad_link b ON b.source = u.id WHERE {SITE_OF_URL}"
        " AND b.why IN ('mailto', 'malformed') AND u.reason NOT IN ('alias', 'rule')"
    )
    yield from reader.stream(find, (site,))


def unread_pages(reader: CollectionReader, site: SiteKey) -> Iterator[tuple[int, str, str]]:
    """(page, reason, rule) of the site's fetched pages that were parsed not at all or in part, by URL."""
    unread = (
        "u.reason IN ('truncated', 'partial', 'unreadable', 'needs-script') OR (u.reason = "
        f"'noindex' AND {reader.statements.dialect.position}(u.rule, '; ') > 0)"
    )
    find = (
        f"SELECT u.id, u.reason, u.rule FROM url u WHERE {SITE_OF_URL} AND ({unread})"
        f" ORDER BY u.text{reader.statements.dialect.text_order}"
    )
    yield from reader.stream(find, (site,))


def trap_patterns(reader: CollectionReader, site: SiteKey) -> list[tuple[int, str, int]]:
    """(first URL, URL pattern, number of URLs) of the site's skipped endless series, by pattern."""
    find = (
        f"SELECT u.id, u.rule FROM url u WHERE {SITE_OF_URL} AND u.reason = 'trap'"
        f" ORDER BY u.text{reader.statements.dialect.text_order}"
    )
    patterns: dict[str, tuple[int, int]] = {}
    for url, rule in reader.stream(find, (site,)):
        first, left = patterns.get(pattern := rule.partition(": ")[0], (url, 0))
        patterns[pattern] = first, left + 1
    return [(first, pattern, left) for pattern, (first, left) in sorted(patterns.items())]


def fragment_rows(reader: CollectionReader, site: SiteKey) -> Iterator[tuple[int, int, str, str, str]]:
    """(source, target, kind, position, fragments separated by spaces) of the site's links with fragments, by target."""
    find = (
        "SELECT l.source, l.target, l.kind, l.position, l.fragments FROM url u CROSS JOIN link l ON l.source = u.id"
        f" WHERE {SITE_OF_URL} AND l.fragments <> '' AND u.id IN {perhaps_with_fragments(reader.statements.dialect)}"
        " AND u.reason NOT IN ('redirect', 'alias', 'rule') ORDER BY l.target"
    )
    yield from reader.stream(find, (site,))


def anchors_of(reader: CollectionReader, pairs: Iterable[tuple[int, int]]) -> Iterator[str]:
    """Link texts from a page to a URL, in the order of the pairs."""
    here = reader.statements.dialect.anywhere("l")
    find = f"SELECT l.target, l.anchor FROM link l WHERE {here}l.source = ? ORDER BY l.anchor <> ''"
    page, anchors = None, dict[int, str]()  # cache for consecutive pairs of one page
    for source, target in pairs:
        if source != page:
            page, anchors = source, dict(reader.statements.rows(find, (source,)))
        yield anchors.get(target, "")


def findable_pages(reader: CollectionReader, site: SiteKey) -> Iterator[tuple[Url, float, bytes]]:
    """(URL, last modified as declared by the server or 0.0, digest of the body) of pages that search engines may show,
    by URL.
    """
    find = (
        "SELECT u.text, p.last_modified, p.body_digest FROM url u CROSS JOIN page p ON p.url_id = u.id"
        f" WHERE {SITE_OF_URL} AND u.reason IN ('ok', 'partial')"
        " AND u.status = 200 AND (p.canonical = '' OR p.canonical = u.text)"
        f" AND (p.media_type IN {_HTML} OR p.media_type = 'application/pdf') ORDER BY u.text"
        f"{reader.statements.dialect.text_order}"
    )
    yield from reader.stream(find, (site,))


def type_with_places(reader: CollectionReader, url_id: int) -> tuple[str, str]:
    """(media type, charset) used to parse a stored HTML or Markdown page; empty for others."""
    dialect = reader.statements.dialect
    find = (
        f"SELECT 1 FROM page p JOIN url u ON {dialect.beside('u', 'p')}u.id = p.url_id"
        f" WHERE {dialect.anywhere('p')}p.url_id = ? AND p.body_id IS NOT NULL"
        f" AND u.reason IN ('ok', 'partial', 'noindex', 'alias') AND p.media_type IN {_WITH_PLACES}"
    )
    is_kept = bool(reader.statements.rows(find, (url_id,)))
    return (reader.read_as(UrlId(url_id)) or ("", "")) if is_kept else ("", "")


# A subresource (an image, a style) that the crawl did not fetch has no row in `page`: its size is read from the headers
# of a check's response.


@frozen
class ServerAnswer:
    """Headers of a response to a check."""

    media_type: str
    size_bytes: int  # as transferred (possibly compressed); 0: unknown


def are_sizes_requested(reader: CollectionReader) -> bool:
    """Whether any check requested the sizes of subresources."""
    settings_of_checks = reader.stream("SELECT DISTINCT settings FROM run WHERE kind = 'check'")
    return any(json.loads(settings).get("part_sizes") == "head" for (settings,) in settings_of_checks)


def part_sizes(reader: CollectionReader) -> dict[int, ServerAnswer]:
    """Type and size of each URL with a successful check, by id; for a redirect, of its final URL.

    About 10 us per visit, measured over 100,000.
    """
    sizes: dict[int, ServerAnswer] = {}
    moved: dict[int, int] = {}
    find = (
        "SELECT text, purpose, outcome, status, detail, wire_bytes, head FROM visit"
        " WHERE purpose IN ('head', 'check') AND text IS NOT NULL"
        " AND outcome IN ('fetched', 'redirected') ORDER BY id"
    )
    for text, purpose, outcome, status, detail, wire_bytes, head in reader.stream(find):
        url = url_id(Url(text))
        if outcome == "redirected":
            moved[url] = url_id(Url(detail))
            sizes.pop(url, None)
        elif 200 <= status < 300:
            moved.pop(url, None)
            sizes[url] = _answer_of(head, wire_bytes if purpose == "check" and not detail else 0)
        elif purpose == "check":  # gone; a failed HEAD is not evidence
            moved.pop(url, None)
            sizes.pop(url, None)
    ends = {url: _end(url, moved) for url in moved}
    return sizes | {url: sizes[end] for url, end in ends.items() if end in sizes}


def _answer_of(head: bytes | None, whole_bytes: int) -> ServerAnswer:
    """Reads type and size. whole_bytes: size of a complete body, else 0.

    A HEAD response may have a length of 0 for a non-empty body; it counts as unknown.
    """
    headers = unpack_headers(head)
    declared = headers.get("content-length")
    length = int(declared[:_LENGTH_DIGITS]) if declared.isascii() and declared.isdigit() else 0
    return ServerAnswer(media_type(headers)[0], length or whole_bytes)


def _end(url: int, moved: dict[int, int]) -> int:
    for _ in range(HOPS_MOST):
        if url not in moved:
            break
        url = moved[url]
    return url


def parts(reader: CollectionReader, site: SiteKey) -> LinkRows:
    """(page, subresource) of all subresources of the site's pages, distinct and ascending."""
    blocks = link_blocks(reader, OF_SITE, (site,), PULLED_KINDS)
    return _pairs_of(block.of(block.sources != block.targets) for block in blocks)


def redirect_hops(reader: CollectionReader) -> tuple[Ints, Ints, Ints16]:
    """(sources, targets, statuses) of all redirects as last seen, one per source, ascending."""
    find = _HOPS.format(reader.statements.dialect.beside("l", "u"))
    hops = np.concatenate([np.zeros((0, 3), np.int64), *reader.numbers(find, 3)])
    hops = hops[np.argsort(hops[:, 0])]
    return hops[:, 0], hops[:, 1], hops[:, 2].clip(0, 999).astype(np.int16)
