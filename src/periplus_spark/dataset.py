"""Tables of a dataset in Parquet files, its manifest, and the rows of a collection in its form."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_128

from periplus.api.homes import open_reader
from periplus.errors import StoreError
from periplus.model import tables
from periplus.model.arrays import Ints, Ints16
from periplus.model.graph import LinkRows
from periplus.model.page import LINK_KINDS, POSITIONS, BlockKind, Publication
from periplus.model.ports import RunRecord
from periplus.model.tables import HAS_PAGE, Column, ColumnKind, Table, columns_of
from periplus.store.bodies import BodyCodec, blocks_of, unpack_parts
from periplus.store.corruption import translate_errors
from periplus.store.page_links import LinksRow
from periplus.store.reader import CollectionReader
from periplus.store.site_arrays import redirects
from periplus.store.views import by_key, numeric
from periplus.values import Place, Row, frozen

# URLs are numbered from 0 in the order of their texts (UTF-8 bytes); hosts and sites likewise. So every export of a
# collection has the same numbers, and engines that break ties by number agree. Each table is a folder of files
# `part-00000.parquet`, `part-00001.parquet`, ..., to be read in this order.

MANIFEST = "manifest.json"
FORMAT = 1  # version of tables and manifest; a reader refuses newer versions
TEXT, INTEGER, BOOLEAN = ColumnKind.TEXT, ColumnKind.INTEGER, ColumnKind.BOOLEAN
HOSTS = Table(
    "hosts",
    "Hosts and their sites.",
    (
        Column("host", INTEGER, "the host's number, ascending"),
        Column("name", TEXT, "host name and port", "h.key"),
        Column("site", INTEGER, "the number of its site"),
        Column("site_name", TEXT, "host name without www.", "s.key"),
    ),
)
URLS = Table(
    "urls",
    "Every known URL.",
    (
        Column("url", INTEGER, "the URL's number, ascending: 0 to n - 1 without a gap"),
        Column("id", INTEGER, "64-bit hash of the URL; the same in every collection and export", "u.id"),
        Column("text", TEXT, "the URL in canonical form", "u.text"),
        Column("host", INTEGER, "the number of its host", "u.host_id"),
        Column("site", INTEGER, "the number of its site"),
        *tables.URLS.select(("state", "reason", "depth", "status", "in_sitemap")),
        Column("is_start", BOOLEAN, "whether it is a start URL", "b.url_id IS NOT NULL"),
        *tables.URLS.select(("first_seen", "visited")),
    ),
    "url u LEFT JOIN start b ON b.url_id = u.id",
)
REDIRECTS = Table(
    "redirects",
    "Targets of redirects and of aliases.",
    (
        Column("source", INTEGER, "the number of the URL; ascending, each once"),
        Column("target", INTEGER, "the number of the URL that it leads to in one hop, as last seen"),
    ),
)
PAGES = Table(
    "pages",
    "Fetched pages.",
    (
        Column("url", INTEGER, "the number of the page's URL, ascending, each once", "u.id"),
        *tables.PAGES.select(("media_type", "size", "charset", "language", "title", "h1", "canonical", "text_chars")),
        *tables.PAGES.select(Publication._fields),
        *tables.PAGES.select(("body_digest", "text_digest", "folded_digest", "fetched_at", "last_modified")),
    ),
    "page p JOIN url u ON u.id = p.url_id",
    where=tables.HAS_PAGE,
)
TEXTS = Table(
    "texts",
    "Texts of pages.",
    columns_of("""
        url integer: the number of the page's URL, ascending, each once
        text text: the page's running text, a line a block
        content text: its content blocks, without navigation; empty if not known yet
    """),
)
# URLs looked up at a time, by table. Pages: with 100 links each, 1,000,000 links take 64 MB
URLS_AT_ONCE = {"urls": 20_000, "pages": 20_000, "links": 10_000, "texts": 2_000}
WITH_DIGEST = ("links", "texts")  # tables with a digest of their stored rows
_APART = (BlockKind.TITLE, BlockKind.ALT)  # not part of the running text


def _place(expression: str, names: Sequence[str]) -> str:
    """SQL expression: index of a text in `names`."""
    cases = (f"WHEN '{name}' THEN {place}" for place, name in enumerate(names))
    return f"CASE {expression} {' '.join(cases)} END"


LINKS = Table(
    "links",
    "Links. Repeated links of a page (same target, kind, position and nofollow) are one row.",
    (
        Column(
            "source",
            INTEGER,
            "the number of the page with the link, ascending; then by target, kind, position and nofollow",
            "l.source",
        ),
        Column("target", INTEGER, "the number of the URL that it leads to", "l.target"),
        replace(tables.LINKS.column("kind"), sql=_place("l.kind", LINK_KINDS)),
        replace(tables.LINKS.column("position"), sql=_place("l.position", POSITIONS)),
        *tables.LINKS.select(("nofollow", "times", "first_seen", "last_seen")),
    ),
    "link l LEFT JOIN freshness f ON f.url_id = l.source AND f.gone_since IS NULL",
)
TABLES: Mapping[str, Table] = {table.name: table for table in (HOSTS, URLS, REDIRECTS, PAGES, LINKS, TEXTS)}
"""Tables by name. `texts` is exported only on request."""


@frozen
class CodedColumn:
    """A dictionary-encoded column: values[i] is names[codes[i]]."""

    codes: NDArray[np.int8]
    names: tuple[str, ...]


Values: TypeAlias = "Ints | CodedColumn | Sequence[object]"
"""Values of a column in one block of rows: whole numbers (TIME in milliseconds since the epoch), coded texts, or
objects if some are None.
"""
Block: TypeAlias = tuple[Values, ...]  # columns of equal length


class UrlPlaces(NamedTuple):
    """Ids of URLs, and the database shard of each."""

    ids: Ints
    shards: Ints16


@frozen
class PartNote:
    """One file of a table.

    sha256: hexadecimal digest of the file; stored: of the collection's rows from which it was made, empty if unknown.
    """

    name: str
    rows: int
    size_bytes: int
    sha256: str
    stored: str = ""


@frozen
class TableNote:
    """One table of a folder: its files in order, and its columns with descriptions."""

    name: str
    rows: int
    parts: tuple[PartNote, ...]
    columns: Mapping[str, str]


@frozen
class Manifest:
    """Contents and origin of a folder of tables. A folder without a manifest is incomplete.

    kind: `collection` for an export, else the name of the analysis. inputs: the collection's name and last run, or
    the digests of other manifests, by name; parameters: of the export or analysis, as JSON values.
    """

    kind: str
    program: str  # version of periplus
    made: float  # seconds since the epoch, UTC
    inputs: Mapping[str, object]
    parameters: Mapping[str, object]
    tables: tuple[TableNote, ...]
    format: int = FORMAT

    def rows(self, table: str) -> int:
        """Number of rows of a table; 0 if it does not exist."""
        return next((note.rows for note in self.tables if note.name == table), 0)

    @property
    def digest(self) -> str:
        """Equal for equal tables, independent of time and origin."""
        import hashlib

        lines = [
            f"{table.name} {part.name} {part.rows} {part.sha256}\n" for table in self.tables for part in table.parts
        ]
        return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()

    def to_json(self) -> str:
        return json.dumps(asdict(self) | {"digest": self.digest}, ensure_ascii=False, indent=1) + "\n"


def manifest_of(text: str, place: str) -> Manifest:
    """Parses a manifest from JSON.

    place: where it was read, for messages. Raises StoreError if it is invalid or has a newer format.
    """
    try:
        given = json.loads(text)
        if int(given["format"]) > FORMAT:
            raise StoreError(
                f"{place} has format {given['format']}; this program supports up to {FORMAT}. Upgrade periplus."
            )
        tables = tuple(
            TableNote(
                table["name"],
                int(table["rows"]),
                tuple(PartNote(**part) for part in table["parts"]),
                dict(table["columns"]),
            )
            for table in given["tables"]
        )
        return Manifest(
            str(given["kind"]),
            str(given["program"]),
            float(given["made"]),
            dict(given["inputs"]),
            dict(given["parameters"]),
            tables,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{place} is not a valid manifest: {error!r}. Export the tables again.") from None


# Conversion of the rows of a collection to blocks of the tables. The parts of a table are created independently: a part
# contains the rows of consecutive URLs in the order of their texts. This order is read once (`numbering`); then each
# part looks up its own rows by id, in any process and at any time.


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


class StoredRows:
    """A snapshot of a whole collection as rows for a dataset.

    Rows come in any order. Rows of urls, pages and texts begin with the URL's id.
    """

    def __init__(self, reader: CollectionReader) -> None:
        self._reader, self._dialect = reader, reader.statements.dialect

    def runs(self) -> Sequence[RunRecord]:
        return self._reader.runs()

    def hosts(self) -> Sequence[tuple[int, str, str]]:
        """(id, key, key of the site), sorted by key."""
        find = "SELECT h.id, h.key, s.key FROM host h JOIN site s ON s.id = h.site_id ORDER BY h.key"
        return [(host_id, key, site) for host_id, key, site in self._reader.statements.rows(find)]

    def moment(self) -> str:
        """Name of this snapshot for other processes, valid while the reader is open; empty if not supported."""
        has_moments = self._dialect.has_shards
        return str(self._reader.statements.rows("SELECT pg_export_snapshot()")[0][0]) if has_moments else ""

    def ids(self) -> Iterator[Ints]:
        """(id, shard) of every URL as int64[rows, 2], sorted by the URLs' texts."""
        self._reader.plan(scans=True)
        shard = "u.shard" if self._dialect.has_shards else "0"
        return self._reader.numbers(f"SELECT u.id, {shard} FROM url u ORDER BY u.text{self._dialect.text_order}", 2)

    def redirects(self) -> LinkRows:
        self._reader.plan(scans=True)
        return redirects(self._reader)

    def urls(self, places: UrlPlaces) -> Sequence[Row]:
        """The columns of URLS with an SQL expression: id, text, host id, ...; times in milliseconds."""
        return self._rows(self._all_of(URLS), "u", "id", places)

    def pages(self, places: UrlPlaces) -> Sequence[Row]:
        """The columns of PAGES, with URL ids; times in milliseconds."""
        return self._rows(self._all_of(PAGES), "p", "url_id", places)

    def links(self, places: UrlPlaces) -> Ints:
        """The columns of LINKS for these sources, with URL ids, as int64[rows, 8]; times in milliseconds."""
        self._reader.plan(scans=False)
        width = len(LINKS.columns)
        blocks = self._reader.numbers(self._all_of(LINKS) + self._among("l", "source", places), width)
        return np.concatenate([np.zeros((0, width), np.int64), *blocks])

    def texts(self, places: UrlPlaces) -> Sequence[Row]:
        """(id, text, blocks, parts) in packed form, for pages with a stored text."""
        return self._texts("b.text, b.blocks", places)

    def digest(self, table: str, places: UrlPlaces) -> str:
        """Digest of what `links` or `texts` would read; much cheaper."""
        if table == "texts":
            rows = self._texts("b.id, b.digest, length(b.text), length(b.blocks)", places)
        else:
            columns = ", ".join(f"l.{name}" for name in LinksRow._fields)
            checked = f"LEFT JOIN freshness f ON {self._dialect.beside('f', 'l')}f.url_id = l.source"
            find = f"SELECT {columns}, f.checked, f.gone_since FROM page_links l {checked} WHERE 1 = 1"
            rows = self._rows(find, "l", "source", places)
        return xxh3_128("\n".join(sorted(map(repr, rows))).encode()).hexdigest()

    def _texts(self, columns: str, places: UrlPlaces) -> Sequence[Row]:
        beside = self._dialect.beside
        find = (
            f"SELECT p.url_id, {columns}, p.parts FROM page p JOIN url u ON {beside('u', 'p')}u.id = p.url_id"
            f" JOIN body b ON {beside('b', 'p')}b.id = p.body_id WHERE b.text IS NOT NULL AND {HAS_PAGE}"
        )
        return self._rows(find, "p", "url_id", places)

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


class EarlierNumbers(NamedTuple):
    """Numbers of an earlier dataset: ids of its URLs, and names of its hosts and sites, each in order."""

    ids: Ints
    hosts: Sequence[str]
    sites: Sequence[str]


def order_hosts(hosts: Sequence[tuple[int, str, str]], earlier: EarlierNumbers) -> Sequence[tuple[int, str, str]]:
    """The hosts in the order of their numbers. Raises StoreError if an earlier host is missing."""
    numbers = {name: number for number, name in enumerate(earlier.hosts)}
    if not numbers.keys() <= {name for _, name, _ in hosts}:
        raise _deletion_error()
    return sorted(hosts, key=lambda host: numbers.get(host[1], len(numbers)))


def _deletion_error() -> StoreError:
    return StoreError("URLs were deleted from the collection since the earlier export: start again in another folder")


def numbering(rows: StoredRows, hosts: Sequence[tuple[int, str, str]], earlier: EarlierNumbers) -> Numbering:
    """Reads the numbering; new URLs follow the earlier ones. hosts: in the order of their numbers. Raises StoreError if
    an earlier URL is missing.
    """
    blocks = [np.zeros((0, 2), np.int64), *rows.ids()]
    read, shards = (np.concatenate([block[:, column] for block in blocks]) for column in (0, 1))
    ids = np.concatenate([earlier.ids, read[~np.isin(read, earlier.ids)]])
    if len(ids) > len(read):
        raise _deletion_error()
    order, places = np.argsort(ids), np.argsort(read)
    shards = shards[places][np.argsort(order)]
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


def redirect_block(rows: StoredRows, numbers: Numbering) -> Block:
    """The whole table of redirects."""
    hops = rows.redirects()
    sources, targets = numbers.of(hops.sources), numbers.of(hops.targets)
    numbered = (sources >= 0) & (targets >= 0)
    order = np.argsort(sources[numbered])
    return sources[numbered][order], targets[numbered][order]


def part_blocks(table: str, rows: StoredRows, numbers: Numbering, first: int, end: int) -> Iterator[Block]:
    """Rows of a table in URLS_AT_ONCE for the URLs with numbers first <= n < end."""
    make = {"urls": _urls, "pages": _pages, "links": _links, "texts": _texts}[table]
    for start in range(first, end, URLS_AT_ONCE[table]):
        span = slice(start, min(start + URLS_AT_ONCE[table], end))
        yield from make(rows, numbers, UrlPlaces(numbers.ids[span], numbers.shards[span]))


def part_digest(table: str, rows: StoredRows, numbers: Numbering, first: int, end: int) -> str:
    """Digest of the stored rows from which `part_blocks` makes a part; empty if it is not known."""
    digests = [
        rows.digest(table, UrlPlaces(numbers.ids[start:stop], numbers.shards[start:stop]))
        for start in range(first, end, URLS_AT_ONCE[table])
        for stop in [min(start + URLS_AT_ONCE[table], end)]
        if table in WITH_DIGEST
    ]
    return xxh3_128(" ".join(digests).encode()).hexdigest() if table in WITH_DIGEST else ""


def _urls(rows: StoredRows, numbers: Numbering, places: UrlPlaces) -> Iterator[Block]:
    ids, texts, host_ids, *others = _columns(rows.urls(places), numbers)
    if len(ids) < len(places.ids):
        raise _deletion_error()
    hosts = numbers.hosts[np.searchsorted(numbers.hosts[:, 0], np.array(host_ids, np.int64))]
    yield numbers.of(ids), ids, texts, hosts[:, 1], hosts[:, 2], *others


def _pages(rows: StoredRows, numbers: Numbering, places: UrlPlaces) -> Iterator[Block]:
    if read := rows.pages(places):
        ids, *others = _columns(read, numbers)
        yield numbers.of(ids), *others


def _columns(rows: Sequence[tuple[object, ...]], numbers: Numbering) -> tuple[Any, ...]:
    """Sorts rows that begin with a URL id by the URL's number; returns columns."""
    ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    order = np.argsort(numbers.of(ids))
    _, *columns = zip(*(rows[place] for place in order.tolist()), strict=True)
    return ids[order], *columns


def _links(rows: StoredRows, numbers: Numbering, places: UrlPlaces) -> Iterator[Block]:
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


def _texts(rows: StoredRows, numbers: Numbering, places: UrlPlaces) -> Iterator[Block]:
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


@contextlib.contextmanager
def whole_of(place: Place, moment: str = "") -> Iterator[StoredRows]:
    """Opens a snapshot of a collection for a dataset. moment: name of a snapshot exported by another process.

    Raises as `open_reader`.
    """
    with open_reader(place) as reader, reader.snapshot(moment):
        yield StoredRows(reader)
