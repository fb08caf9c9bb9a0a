"""Converts the rows of a collection to blocks of a dataset's tables. The parts of a table are created independently.

A part contains the rows of consecutive URLs in the order of their texts. This order is read once (`numbering`); then
each part looks up its own rows by id, in any process and at any time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_128

from periplus.errors import StoreError
from periplus.model.arrays import Ints, Ints16
from periplus.model.dataset import LINKS, PAGES, URLS, Block, CodedColumn, EarlierNumbers, UrlPlaces, WholeRows
from periplus.model.graph import LinkRows, PageRows, UrlRows
from periplus.model.page import LINK_KINDS, POSITIONS, BlockKind
from periplus.model.ports import RunRecord
from periplus.model.tables import HAS_PAGE, Table
from periplus.model.web import SiteKey
from periplus.store.bodies import BodyCodec, blocks_of, unpack_parts
from periplus.store.corruption import translate_errors
from periplus.store.page_links import LinksRow
from periplus.store.reader import CollectionReader
from periplus.store.views import by_key, numeric
from periplus.values import Row, frozen

# URLs looked up at a time, by table. Pages: with 100 links each, 1,000,000 links take 64 MB
URLS_AT_ONCE = {"urls": 20_000, "pages": 20_000, "links": 10_000, "texts": 2_000}
BLOCK_ROWS = 10_000
WITH_DIGEST = ("links", "texts")  # tables with a digest of their stored rows
_APART = (BlockKind.TITLE, BlockKind.ALT)  # not part of the running text


@frozen
class Numbering:
    """Numbers of URLs and hosts. Takes 26 bytes per URL."""

    ids: Ints  # URL ids, in the order of the URLs' texts
    shards: Ints16  # database shard of each URL; 0 in a folder
    sorted: Ints  # ids, ascending
    numbers: Ints  # number of each sorted id
    hosts: Ints  # [hosts, 3]: (id, number, number of the site), ascending by id

    def of(self, ids: Ints) -> Ints:
        """Numbers of URLs; -1 if unknown."""
        if not len(self.sorted):
            return np.full(len(ids), -1)
        places = np.searchsorted(self.sorted, ids).clip(max=len(self.sorted) - 1)
        return np.where(self.sorted[places] == ids, self.numbers[places], -1)

    def save(self, folder: Path) -> None:
        for field in fields(self):
            np.save(folder / f"{field.name}.npy", getattr(self, field.name))

    @classmethod
    def load(cls, folder: Path) -> Numbering:
        """Memory-maps the arrays, so that several processes share them. Raises OSError, ValueError."""
        return cls(*(_load(folder / f"{field.name}.npy") for field in fields(cls)))


def _load(path: Path) -> NDArray[Any]:
    try:
        return np.load(path, mmap_mode="r")  # type: ignore[no-any-return]
    except ValueError:  # an empty array cannot be mapped
        return np.load(path)  # type: ignore[no-any-return]


_REDIRECTS = """
SELECT source, target FROM (
    SELECT l.source, l.target, row_number() OVER (PARTITION BY l.source ORDER BY l.last_seen DESC, l.target) AS place
    FROM url u JOIN link l ON {}l.source = u.id WHERE u.reason = 'redirect' AND l.kind = 'redirect') r WHERE place = 1
UNION ALL SELECT a.url_id, a.page_id FROM alias a JOIN url u ON {}u.id = a.url_id
WHERE u.reason = 'alias' AND a.page_id IS NOT NULL
"""


def redirects(reader: CollectionReader) -> LinkRows:
    """Target of each redirect, as last seen, and page of each alias; one link per URL."""
    beside = reader.statements.dialect.beside
    return LinkRows(*pairs(reader, _REDIRECTS.format(beside("l", "u"), beside("u", "a"))))


def pairs(reader: CollectionReader, find: str) -> tuple[Ints, Ints]:
    """Reads two integer columns."""
    rows = np.concatenate([np.zeros((0, 2), np.int64), *reader.numbers(find, 2)])
    return rows[:, 0], rows[:, 1]


class StoredSites:
    """`model.graph.SiteArrays` of a collection."""

    def __init__(self, reader: CollectionReader) -> None:
        self._reader = reader

    def redirects(self) -> LinkRows:
        return redirects(self._reader)

    def urls(self, site: SiteKey) -> UrlRows:
        find = "SELECT u.id, u.text, u.reason, coalesce(u.depth, -1) FROM url u WHERE "
        return UrlRows.of(self._blocks(find + self._reader.of_site(site)))

    def links(self, site: SiteKey) -> LinkRows:
        return self._reader.clicks_of(site)

    def pages(self, site: SiteKey) -> PageRows:
        beside = self._reader.statements.dialect.beside("p", "u")
        find = f"SELECT u.id, p.title, p.media_type, p.size FROM url u JOIN page p ON {beside}p.url_id = u.id WHERE "
        return PageRows.of(self._blocks(f"{find}{self._reader.of_site(site)} ORDER BY u.id"))

    def statuses(self, site: SiteKey) -> tuple[Ints, Ints]:
        find = f"SELECT u.id, u.status FROM url u WHERE {self._reader.of_site(site)} AND u.status > 0"
        return pairs(self._reader, find)

    def _blocks(self, find: str) -> Iterator[list[Row]]:
        rows = self._reader.stream(find)
        while block := list(islice(rows, BLOCK_ROWS)):
            yield block


class StoredRows:
    """`model.dataset.WholeRows` of a collection, within a snapshot."""

    def __init__(self, reader: CollectionReader) -> None:
        self._reader, self._dialect = reader, reader.statements.dialect

    def runs(self) -> Sequence[RunRecord]:
        return self._reader.runs()

    def hosts(self) -> Sequence[tuple[int, str, str]]:
        find = "SELECT h.id, h.key, s.key FROM host h JOIN site s ON s.id = h.site_id ORDER BY h.key"
        return [(host_id, key, site) for host_id, key, site in self._reader.statements.rows(find)]

    def moment(self) -> str:
        has_moments = self._dialect.has_shards
        return str(self._reader.statements.rows("SELECT pg_export_snapshot()")[0][0]) if has_moments else ""

    def ids(self) -> Iterator[Ints]:
        self._reader.plan(scans=True)
        shard = "u.shard" if self._dialect.has_shards else "0"
        return self._reader.numbers(f"SELECT u.id, {shard} FROM url u ORDER BY u.text{self._dialect.text_order}", 2)

    def redirects(self) -> LinkRows:
        self._reader.plan(scans=True)
        return redirects(self._reader)

    def urls(self, places: UrlPlaces) -> Sequence[Row]:
        return self._rows(self._all_of(URLS), "u", "id", places)

    def pages(self, places: UrlPlaces) -> Sequence[Row]:
        return self._rows(self._all_of(PAGES), "p", "url_id", places)

    def links(self, places: UrlPlaces) -> Ints:
        self._reader.plan(scans=False)
        width = len(LINKS.columns)
        blocks = self._reader.numbers(self._all_of(LINKS) + self._among("l", "source", places), width)
        return np.concatenate([np.zeros((0, width), np.int64), *blocks])

    def texts(self, places: UrlPlaces) -> Sequence[Row]:
        return self._rows(self._texts("b.text, b.blocks"), "p", "url_id", places)

    def digest(self, table: str, places: UrlPlaces) -> str:
        if table == "texts":
            rows = self._rows(self._texts("b.id, b.md5, length(b.text), length(b.blocks)"), "p", "url_id", places)
        else:
            columns = ", ".join(f"l.{name}" for name in LinksRow._fields)
            checked = f"LEFT JOIN freshness f ON {self._dialect.beside('f', 'l')}f.url_id = l.source"
            find = f"SELECT {columns}, f.checked, f.gone_since FROM page_links l {checked} WHERE 1 = 1"
            rows = self._rows(find, "l", "source", places)
        return xxh3_128("\n".join(sorted(map(repr, rows))).encode()).hexdigest()

    def _texts(self, columns: str) -> str:
        beside = self._dialect.beside
        return (
            f"SELECT p.url_id, {columns}, p.parts FROM page p JOIN url u ON {beside('u', 'p')}u.id = p.url_id"
            f" JOIN body b ON {beside('b', 'p')}b.id = p.body_id WHERE b.text IS NOT NULL AND {HAS_PAGE}"
        )

    def _all_of(self, table: Table) -> str:
        return numeric(by_key(table, self._dialect), self._dialect)

    def _rows(self, find: str, table: str, key: str, places: UrlPlaces) -> Sequence[Row]:
        self._reader.plan(scans=False)
        return self._reader.statements.rows(find + self._among(table, key, places))

    def _among(self, table: str, key: str, places: UrlPlaces) -> str:
        """SQL condition. The numbers are part of the text, since COPY takes no parameters."""
        shards, ids = (",".join(map(str, numbers.tolist())) for numbers in (places.shards, places.ids))
        if not self._dialect.has_shards:
            return f" AND {table}.{key} IN (SELECT value FROM json_each('[{ids}]'))"
        rows = f"unnest('{{{shards}}}'::smallint[], '{{{ids}}}'::bigint[])"
        return f" AND ({table}.shard, {table}.{key}) IN (SELECT * FROM {rows})"


def order_hosts(hosts: Sequence[tuple[int, str, str]], earlier: EarlierNumbers) -> Sequence[tuple[int, str, str]]:
    """The hosts in the order of their numbers. Raises StoreError if an earlier host is missing."""
    numbers = {name: number for number, name in enumerate(earlier.hosts)}
    if not numbers.keys() <= {name for _, name, _ in hosts}:
        raise _deletion_error()
    return sorted(hosts, key=lambda host: numbers.get(host[1], len(numbers)))


def _deletion_error() -> StoreError:
    return StoreError("URLs were deleted from the collection since the earlier export: start again in another folder")


def numbering(rows: WholeRows, hosts: Sequence[tuple[int, str, str]], earlier: EarlierNumbers) -> Numbering:
    """Reads the numbering. New URLs follow those of the earlier dataset. hosts: in the order of their numbers. Raises
    StoreError if an earlier URL is missing.
    """
    blocks = [np.zeros((0, 2), np.int64), *rows.ids()]
    ids, shards = (np.concatenate([block[:, column] for block in blocks]) for column in (0, 1))
    if len(earlier.ids):
        order = np.argsort(ids)
        if not np.isin(earlier.ids, ids).all():
            raise _deletion_error()
        first = order[np.searchsorted(ids, earlier.ids, sorter=order)]
        places = np.concatenate([first, np.flatnonzero(~np.isin(ids, earlier.ids))])
        ids, shards = ids[places], shards[places]
    order = np.argsort(ids)
    sites = _sites(hosts, earlier)
    of_hosts = [(host_id, number, sites[site]) for number, (host_id, _, site) in enumerate(hosts)]
    return Numbering(
        ids, shards.astype(np.int16), ids[order], order, np.array(sorted(of_hosts), np.int64).reshape(-1, 3)
    )


def _sites(hosts: Sequence[tuple[int, str, str]], earlier: EarlierNumbers) -> dict[str, int]:
    new = {site for _, _, site in hosts}.difference(earlier.sites)
    return {key: number for number, key in enumerate((*earlier.sites, *sorted(new)))}


def host_block(hosts: Sequence[tuple[int, str, str]], earlier: EarlierNumbers) -> Block:
    """The whole table of hosts, which are in the order of their numbers."""
    sites = _sites(hosts, earlier)
    return (
        np.arange(len(hosts)),
        [name for _, name, _ in hosts],
        np.array([sites[site] for _, _, site in hosts], np.int64),
        [site for _, _, site in hosts],
    )


def redirect_block(rows: WholeRows, numbers: Numbering) -> Block:
    """The whole table of redirects."""
    hops = rows.redirects()
    sources, targets = numbers.of(hops.sources), numbers.of(hops.targets)
    numbered = (sources >= 0) & (targets >= 0)
    order = np.argsort(sources[numbered])
    return sources[numbered][order], targets[numbered][order]


def part_blocks(table: str, rows: WholeRows, numbers: Numbering, first: int, end: int) -> Iterator[Block]:
    """Rows of a table in URLS_AT_ONCE for the URLs with numbers first <= n < end."""
    make = {"urls": _urls, "pages": _pages, "links": _links, "texts": _texts}[table]
    for start in range(first, end, URLS_AT_ONCE[table]):
        span = slice(start, min(start + URLS_AT_ONCE[table], end))
        yield from make(rows, numbers, UrlPlaces(numbers.ids[span], numbers.shards[span]))


def part_digest(table: str, rows: WholeRows, numbers: Numbering, first: int, end: int) -> str:
    """Digest of the stored rows from which `part_blocks` makes a part; empty if it is not known."""
    digests = xxh3_128()
    for start in range(first, end, URLS_AT_ONCE[table]) if table in WITH_DIGEST else ():
        span = slice(start, min(start + URLS_AT_ONCE[table], end))
        digests.update(rows.digest(table, UrlPlaces(numbers.ids[span], numbers.shards[span])).encode())
    return digests.hexdigest() if table in WITH_DIGEST else ""


def _urls(rows: WholeRows, numbers: Numbering, places: UrlPlaces) -> Iterator[Block]:
    ids, texts, host_ids, *others = _columns(rows.urls(places), numbers)
    if len(ids) < len(places.ids):
        raise _deletion_error()
    hosts = numbers.hosts[np.searchsorted(numbers.hosts[:, 0], np.array(host_ids, np.int64))]
    yield numbers.of(ids), ids, texts, hosts[:, 1], hosts[:, 2], *others


def _pages(rows: WholeRows, numbers: Numbering, places: UrlPlaces) -> Iterator[Block]:
    if read := rows.pages(places):
        ids, *others = _columns(read, numbers)
        yield numbers.of(ids), *others


def _columns(rows: Sequence[tuple[object, ...]], numbers: Numbering) -> tuple[Any, ...]:
    """Sorts rows that begin with a URL id by the URL's number; returns columns."""
    ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    order = np.argsort(numbers.of(ids))
    _, *columns = zip(*(rows[place] for place in order.tolist()), strict=True)
    return ids[order], *columns


def _links(rows: WholeRows, numbers: Numbering, places: UrlPlaces) -> Iterator[Block]:
    links = rows.links(places)
    links[:, 0], links[:, 1] = numbers.of(links[:, 0]), numbers.of(links[:, 1])
    links = links[(links[:, 0] >= 0) & (links[:, 1] >= 0)]
    if len(links):
        columns = links[np.lexsort([links[:, column] for column in (4, 3, 2, 1, 0)])].T
        kinds, positions = (
            CodedColumn(columns[2].astype(np.int8), LINK_KINDS),
            CodedColumn(columns[3].astype(np.int8), POSITIONS),
        )
        yield columns[0], columns[1], kinds, positions, columns[4], columns[5], columns[6], columns[7]


def _texts(rows: WholeRows, numbers: Numbering, places: UrlPlaces) -> Iterator[Block]:
    if read := rows.texts(places):
        ids, *packed = _columns(read, numbers)
        codec = BodyCodec()
        texts = [_text_and_content(codec, *row) for row in zip(*packed, strict=True)]
        yield numbers.of(ids), [text for text, _ in texts], [content for _, content in texts]


def _text_and_content(
    codec: BodyCodec, packed_text: bytes, packed_blocks: bytes | None, packed_parts: bytes | None
) -> tuple[str, str | None]:
    """(text, content); content is None if the blocks are not classified yet."""
    with translate_errors():
        text = codec.unpack(packed_text, None).decode()
    if packed_parts is None:
        return text, None
    return text, "\n".join(blocks_of(text, packed_blocks).content(unpack_parts(packed_parts), _APART))


# PostgreSQL truncates names at 63 bytes, and derived names are up to 10 bytes longer
_NAME = re.compile(r"[a-z][a-z0-9_]{0,49}")


def checked_name(name: str) -> str:
    """Returns the name. Raises StoreError if it is not safe in an SQL statement."""
    if not _NAME.fullmatch(name):
        raise StoreError(f"{name!r} is not a valid name for a table or column of results")
    return name
