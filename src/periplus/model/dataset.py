"""Tables of a dataset in Parquet files, its manifest, and results of analysis engines."""

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

# Results that engines computed for a collection, and the interface of the store that takes them.


class ResultNote(NamedTuple):
    """Description of a result.

    name: of the analysis; dataset: digest of the dataset that it was computed from; parameters: JSON; made:
    seconds since the epoch.
    """

    name: str
    digest: str
    dataset: str
    parameters: str
    program: str
    made: float


class ComputedTable(NamedTuple):
    """A result table. columns: (name, kind) with kind INTEGER, REAL, TEXT or BLOB; rows: a stream without None."""

    name: str
    columns: Sequence[tuple[str, str]]
    rows: Iterable[Sequence[object]]


class ResultStore(Protocol):
    """Stores results in one transaction. Readers see the previous results until it is committed, also after a crash."""

    def runs(self) -> Sequence[RunRecord]:
        """Runs of the collection."""

    def dataset(self) -> str:
        """Digest of the dataset whose row numbers the stored results use; empty if there are no results."""

    def clear(self) -> None:
        """Drops all results, which use row numbers of another dataset. Call it before `replace`."""

    def replace(self, table: ComputedTable) -> int:
        """Replaces the table of this name; returns the number of rows.

        Raises StoreError for an invalid name.
        """

    def note(self, note: ResultNote) -> None:
        """Stores the description of an analysis."""


# URLs are numbered from 0 in the order of their texts (UTF-8 bytes); hosts and sites likewise. So every whole export
# of a collection has the same numbers, and engines that break ties by number agree. Each table is a folder of files
# `part-00000.parquet`, `part-00001.parquet`, ..., to be read in this order.

MANIFEST = "manifest.json"
FORMAT = 1  # version of tables and manifest; a reader refuses newer versions
TEXT, INTEGER, BOOLEAN = ColumnKind.TEXT, ColumnKind.INTEGER, ColumnKind.BOOLEAN


def _place(expression: str, names: Sequence[str]) -> str:
    """SQL expression: index of a text in `names`."""
    cases = (f"WHEN '{name}' THEN {place}" for place, name in enumerate(names))
    return f"CASE {expression} {' '.join(cases)} END"


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
TEXTS = Table(
    "texts",
    "Texts of pages.",
    columns_of("""
        url integer: the number of the page's URL, ascending, each once
        text text: the page's running text, a line a block
        content text: its content blocks, without navigation; empty if not known yet
    """),
)
TABLES: Mapping[str, Table] = {table.name: table for table in (HOSTS, URLS, REDIRECTS, PAGES, LINKS, TEXTS)}
"""Tables by name. `texts` is exported only on request."""


def parquet_module() -> pyarrow.parquet:
    """Imports pyarrow.parquet. Raises UsageError if it is not installed."""
    with extra_needed():
        import pyarrow.parquet
    return pyarrow.parquet


def arrow_schema(columns: Sequence[Column]) -> pyarrow.Schema:
    """Arrow schema of the columns, with their descriptions as metadata."""
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


class EarlierNumbers(NamedTuple):
    """Numbers of an earlier dataset: ids of its URLs, and names of its hosts and sites, each in order."""

    ids: Ints
    hosts: Sequence[str]
    sites: Sequence[str]


class WholeRows(Protocol):
    """A snapshot of a whole collection as rows for a dataset.

    Rows come in any order. Rows of urls, pages and texts begin with the URL's id.
    """

    def moment(self) -> str:
        """Name of this snapshot for other processes, valid while this reader is open; empty if not supported."""

    def runs(self) -> Sequence[RunRecord]: ...

    def hosts(self) -> Sequence[tuple[int, str, str]]:
        """(id, key, key of the site), sorted by key."""

    def ids(self) -> Iterator[Ints]:
        """(id, shard) of every URL as int64[rows, 2], sorted by the URLs' texts."""

    def redirects(self) -> LinkRows:
        """Target of each redirect, as last seen, and page of each alias."""

    def urls(self, places: UrlPlaces) -> Sequence[Row]:
        """The columns of URLS with an SQL expression: id, text, host id, ...; times in milliseconds."""

    def pages(self, places: UrlPlaces) -> Sequence[Row]:
        """The columns of PAGES, with URL ids; times in milliseconds."""

    def links(self, places: UrlPlaces) -> Ints:
        """The columns of LINKS for these sources, with URL ids, as int64[rows, 8]; times in milliseconds."""

    def texts(self, places: UrlPlaces) -> Sequence[Row]:
        """(id, text, blocks, parts) in packed form, for pages with a stored text."""

    def digest(self, table: str, places: UrlPlaces) -> str:
        """Digest of what `links` or `texts` would read; much cheaper."""


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
