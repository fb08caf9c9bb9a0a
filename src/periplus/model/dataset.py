"""The tables of a dataset in Parquet files, its manifest, and what engines computed on its way back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from periplus.errors import StoreError
from periplus.extras import extra_needed
from periplus.model import tables
from periplus.model.arrays import Ints, Ints16
from periplus.model.graph import LinkRows
from periplus.model.page import LINK_KINDS, POSITIONS, Publication
from periplus.model.ports import RunRecord
from periplus.model.tables import Column, ColumnKind, Table, columns_of
from periplus.values import Row, frozen

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

# What engines computed of a collection, on its way back: tables, a note on each analysis, and
# the place that takes them.


class ResultNote(NamedTuple):
    """What was computed.

    name: of the analysis; dataset: the digest of what it was computed from; parameters: JSON; made:
    seconds since the epoch.
    """

    name: str
    digest: str
    dataset: str
    parameters: str
    program: str
    made: float


class ComputedTable(NamedTuple):
    """One table. columns: name and kind of each (INTEGER, REAL, TEXT, BLOB); rows: streamed, every value there."""

    name: str
    columns: Sequence[tuple[str, str]]
    rows: Iterable[Sequence[object]]


class ResultStore(Protocol):
    """Takes results within one transaction, which ends when all of them are there: until then, and after a kill,
    what was there before is read.
    """

    def runs(self) -> Sequence[RunRecord]:
        """Of the collection."""

    def dataset(self) -> str:
        """The digest of the dataset whose numbers the results here are in; empty: there are none."""

    def clear(self) -> None:
        """Drops all results: they are in numbers of another dataset. Before any `replace`."""

    def replace(self, table: ComputedTable) -> int:
        """Puts a table in place of an earlier one of its name; returns its rows.

        Raises StoreError for a name that is none.
        """

    def note(self, note: ResultNote) -> None:
        """Says what the tables of an analysis are."""


# A URL's number is its place, from 0, in the order of the URLs' texts (bytes of UTF-8); hosts and sites are numbered
# likewise. So whoever exports the same collection gives the same numbers, and engines that compare ties by number
# agree. Each table is a folder of files `part-00000.parquet`, `part-00001.parquet`, ..., to be read in this order.

MANIFEST = "manifest.json"
FORMAT = 1  # of the tables and of the manifest; a reader refuses a greater one
TEXT, INTEGER, BOOLEAN = ColumnKind.TEXT, ColumnKind.INTEGER, ColumnKind.BOOLEAN


def _place(expression: str, names: Sequence[str]) -> str:
    """A text's place among names, in SQL."""
    cases = (f"WHEN '{name}' THEN {place}" for place, name in enumerate(names))
    return f"CASE {expression} {' '.join(cases)} END"


HOSTS = Table(
    "hosts",
    "Hosts, and the sites that they belong to.",
    (
        Column("host", INTEGER, "the host's number, ascending"),
        Column("name", TEXT, "host name and port", "h.key"),
        Column("site", INTEGER, "the number of its site"),
        Column("site_name", TEXT, "host name without www.", "s.key"),
    ),
)
URLS = Table(
    "urls",
    "Every URL that was ever seen.",
    (
        Column("url", INTEGER, "the URL's number, ascending: 0 to n - 1 without a gap"),
        Column("id", INTEGER, "64-bit hash of the URL; the same in every collection and export", "u.id"),
        Column("text", TEXT, "the URL in canonical form", "u.text"),
        Column("host", INTEGER, "the number of its host", "u.host_id"),
        Column("site", INTEGER, "the number of its site"),
        *tables.URLS.select(("state", "reason", "depth", "status", "in_sitemap")),
        Column("is_start", BOOLEAN, "whether a site is crawled from it", "b.url_id IS NOT NULL"),
        *tables.URLS.select(("first_seen", "visited")),
    ),
    "url u LEFT JOIN start b ON b.url_id = u.id",
)
REDIRECTS = Table(
    "redirects",
    "Where URLs lead that redirect, or are another address of a page.",
    (
        Column("source", INTEGER, "the number of the URL; ascending, each once"),
        Column("target", INTEGER, "the number of the URL that it leads to, one hop, as last seen"),
    ),
)
PAGES = Table(
    "pages",
    "Pages that were read.",
    (
        Column("url", INTEGER, "the number of the page's URL, ascending, each once", "u.id"),
        *tables.PAGES.select(("media_type", "size", "charset", "language", "title", "h1", "canonical", "text_chars")),
        *tables.PAGES.select(Publication._fields),
        *tables.PAGES.select(("body_digest", "text_digest", "folded_digest", "fetched_at", "last_modified")),
    ),
    "page p JOIN url u ON u.id = p.url_id",
    where=tables.HAS_PAGE,
)
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
        Column("target", INTEGER, "the number of the URL where it leads", "l.target"),
        replace(tables.LINKS.column("kind"), sql=_place("l.kind", LINK_KINDS)),
        replace(tables.LINKS.column("position"), sql=_place("l.position", POSITIONS)),
        *tables.LINKS.select(("nofollow", "times", "first_seen", "last_seen")),
    ),
    "link l LEFT JOIN freshness f ON f.url_id = l.source AND f.gone_since IS NULL",
)
TEXTS = Table(
    "texts",
    "What pages say.",
    columns_of("""
        url integer: the number of the page's URL, ascending, each once
        text text: the page's running text, a line a block
        content text: its content blocks, without navigation; empty if not known yet
    """),
)
TABLES: Mapping[str, Table] = {table.name: table for table in (HOSTS, URLS, REDIRECTS, PAGES, LINKS, TEXTS)}
"""By name. `texts` is there only where it was asked for."""


def parquet_module() -> pyarrow.parquet:
    """pyarrow.parquet. Raises UsageError where it is missing."""
    with extra_needed():
        import pyarrow.parquet
    return pyarrow.parquet


def arrow_schema(columns: Sequence[Column]) -> pyarrow.Schema:
    """How Parquet holds these columns; each field carries its sentence."""
    import pyarrow as pa

    types = {
        ColumnKind.TEXT: pa.string(),
        ColumnKind.INTEGER: pa.int64(),
        ColumnKind.REAL: pa.float64(),
        ColumnKind.BOOLEAN: pa.bool_(),
        ColumnKind.TIME: pa.timestamp("ms", "UTC"),
        ColumnKind.BYTES: pa.binary(),
    }
    return pa.schema(
        [pa.field(column.name, types[column.kind], metadata={"description": column.sentence}) for column in columns]
    )


@frozen
class Coded:
    """A column of few distinct texts: values[i] is names[codes[i]]."""

    codes: NDArray[np.int8]
    names: tuple[str, ...]


Values: TypeAlias = "Ints | Coded | Sequence[object]"
"""A column's values in one block of rows: whole numbers (of TIME: milliseconds since the epoch), coded texts,
or objects where some may be None.
"""
Block: TypeAlias = tuple[Values, ...]  # the columns of a table, each as long as the others


class UrlPlaces(NamedTuple):
    """URLs, by what finds their rows: ids, and the shard of a database that each lies in."""

    ids: Ints
    shards: Ints16


class WholeRows(Protocol):
    """All of a collection as it stands at one moment, as rows for a dataset.

    What is asked of some URLs comes in any order; of urls, pages and texts each row begins with the URL's id.
    """

    def moment(self) -> str:
        """A name by which another process reads the same moment as long as this one does; empty: there is none."""

    def runs(self) -> Sequence[RunRecord]: ...

    def hosts(self) -> Sequence[tuple[int, str, str]]:
        """(id, key, its site's key), by key."""

    def ids(self) -> Iterator[Ints]:
        """(id, shard) of every URL as int64[rows, 2], in the order of the URLs' texts."""

    def redirects(self) -> LinkRows:
        """Where each URL that redirects leads, as last seen, and which page each alias is an address of."""

    def urls(self, some: UrlPlaces) -> Sequence[Row]:
        """The columns of URLS that have an expression: id, text, the host's id, ...; times in milliseconds."""

    def pages(self, some: UrlPlaces) -> Sequence[Row]:
        """The columns of PAGES, with the URL's id; times in milliseconds."""

    def links(self, some: UrlPlaces) -> Ints:
        """The columns of LINKS of these sources, with the URLs' ids, as int64[rows, 8]; times in milliseconds."""

    def texts(self, some: UrlPlaces) -> Sequence[Row]:
        """(id, text, blocks, parts), as they are packed, of pages whose text was kept."""


@frozen
class PartNote:
    """One file of a table. sha256: of its bytes, hexadecimal."""

    name: str
    rows: int
    size_bytes: int
    sha256: str


@frozen
class TableNote:
    """One table of a folder: its files in order, its columns by name with what each says."""

    name: str
    rows: int
    parts: tuple[PartNote, ...]
    columns: Mapping[str, str]


@frozen
class Manifest:
    """What a folder of tables holds, of what it was made, and by what. A folder without one is not whole.

    kind: `collection` for an export, else the name of the analysis whose results these are. inputs: what it was
    made of, by name: the collection's name and last run, or the digests of other manifests; parameters: what it
    was asked, as JSON has it.
    """

    kind: str
    program: str  # version of periplus
    made: float  # seconds since the epoch, UTC
    inputs: Mapping[str, object]
    parameters: Mapping[str, object]
    tables: tuple[TableNote, ...]
    format: int = FORMAT

    def rows(self, table: str) -> int:
        """Rows of a table; 0 where there is none."""
        return next((note.rows for note in self.tables if note.name == table), 0)

    @property
    def digest(self) -> str:
        """Equal for equal tables, whenever and of whatever they were made."""
        import hashlib

        lines = [
            f"{table.name} {part.name} {part.rows} {part.sha256}\n" for table in self.tables for part in table.parts
        ]
        return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()

    def to_json(self) -> str:
        return json.dumps(asdict(self) | {"digest": self.digest}, ensure_ascii=False, indent=1) + "\n"


def manifest_of(text: str, place: str) -> Manifest:
    """A manifest from its JSON.

    place: where it was read, for messages. Raises StoreError for what is none, or newer.
    """
    try:
        given = json.loads(text)
        if int(given["format"]) > FORMAT:
            raise StoreError(
                f"{place} was written in format {given['format']}; this program knows {FORMAT}. Upgrade periplus."
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
        raise StoreError(f"{place} is no manifest of a folder of tables: {error!r}. Export it again.") from None
