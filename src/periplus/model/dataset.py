"""The tables of a dataset in Parquet files, its manifest, and what engines computed on its way back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from periplus.errors import StoreError
from periplus.model.graph import LinkRows
from periplus.model.ports import RunRecord
from periplus.model.tables import Column, ColumnKind

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

    def note(self, said: ResultNote) -> None:
        """Says what the tables of an analysis are."""


# A URL's number is its place, from 0, in the order of the URLs' texts (bytes of UTF-8); hosts and sites are numbered
# likewise. So whoever exports the same collection gives the same numbers, and engines that compare ties by number
# agree. Each table is a folder of files `part-00000.parquet`, `part-00001.parquet`, ..., to be read in this order.

MANIFEST = "manifest.json"
FORMAT = 1  # of the tables and of the manifest; a reader refuses a greater one
TEXT, INTEGER, REAL, BOOLEAN, TIME = ColumnKind

HOSTS = (
    Column("host", INTEGER, "the host's number, ascending"),
    Column("name", TEXT, "host name and port"),
    Column("site", INTEGER, "the number of its site"),
    Column("site_name", TEXT, "host name without www."),
)
URLS = (
    Column("url", INTEGER, "the URL's number, ascending: 0 to n - 1 without a gap"),
    Column("id", INTEGER, "64-bit hash of the URL; the same in every collection and export"),
    Column("text", TEXT, "the URL in canonical form"),
    Column("host", INTEGER, "the number of its host"),
    Column("site", INTEGER, "the number of its site"),
    Column("state", TEXT, "indexed, registered, ignored or invalid"),
    Column("reason", TEXT, "why it is in its state"),
    Column("depth", INTEGER, "clicks from the start; none where no link leads"),
    Column("status", INTEGER, "HTTP status of the last answer; none where there was none"),
    Column("in_sitemap", BOOLEAN, "whether a sitemap names it"),
    Column("is_start", BOOLEAN, "whether a site is crawled from it"),
    Column("first_seen", TIME, "when it was first met"),
    Column("visited", TIME, "when it was last asked for"),
)
REDIRECTS = (
    Column(
        "source", INTEGER, "the number of a URL that redirects, or is another address of a page; ascending, each once"
    ),
    Column("target", INTEGER, "the number of the URL that it leads to, one hop, as last seen"),
)
PAGES = (
    Column("url", INTEGER, "the number of the page's URL, ascending, each once"),
    Column("media_type", TEXT, "without parameters"),
    Column("size", INTEGER, "bytes, after decompression"),
    Column("charset", TEXT, "encoding that the page was read with"),
    Column("language", TEXT, "as declared (BCP 47); where nothing is declared, as told from its text"),
    Column("title", TEXT, "the title"),
    Column("h1", TEXT, "the first main heading"),
    Column("canonical", TEXT, "the canonical URL that the page names"),
    Column("text_chars", INTEGER, "characters of text"),
    Column("body_digest", TEXT, "128-bit xxh3 of the bytes, hexadecimal"),
    Column("text_digest", TEXT, "MD5 of the text, white space folded"),
    Column("folded_digest", TEXT, "MD5 of the text without diacritics and case"),
    Column("fetched", TIME, "when this page was fetched"),
    Column("last_modified", TIME, "as the server or the page says"),
)
LINKS = (
    Column(
        "source",
        INTEGER,
        "the number of the page with the link, ascending; then by target, kind, position and nofollow",
    ),
    Column("target", INTEGER, "the number of the URL where it leads"),
    Column("kind", TEXT, "a, image, canonical, redirect, ..."),
    Column("position", TEXT, "nav, header, main, aside, footer, body or head"),
    Column("nofollow", BOOLEAN, "whether it asks not to be followed"),
    Column("times", INTEGER, "how many such links the page has"),
    Column("first_seen", TIME, "when the page first had it"),
    Column("last_seen", TIME, "when the page was last seen with it"),
)
TEXTS = (
    Column("url", INTEGER, "the number of the page's URL, ascending, each once"),
    Column("text", TEXT, "the page's running text, a line a block"),
    Column(
        "content", TEXT, "the blocks of it that are content and no navigation; none where they are not told apart yet"
    ),
)
TABLES: Mapping[str, tuple[Column, ...]] = {
    "hosts": HOSTS,
    "urls": URLS,
    "redirects": REDIRECTS,
    "pages": PAGES,
    "links": LINKS,
    "texts": TEXTS,
}
"""By name. `texts` is there only where it was asked for."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of few distinct texts: values[i] is names[codes[i]]."""

    codes: NDArray[np.int8]
    names: tuple[str, ...]


Values: TypeAlias = "NDArray[np.int64] | Coded | Sequence[object]"
"""A column's values in one block of rows: whole numbers (of TIME: milliseconds since the epoch), coded texts,
or objects where some may be None.
"""
Block: TypeAlias = tuple[Values, ...]  # the columns of a table, each as long as the others


class WholeRows(Protocol):
    """All of a collection as it stands at one moment, as rows for a dataset: each method once, in this order.

    Of urls, pages and texts blocks of rows, each in the order of the URLs' texts and beginning with the URL's id.
    """

    def runs(self) -> Sequence[RunRecord]: ...

    def hosts(self) -> Sequence[tuple[int, str, str]]:
        """(id, key, its site's key), by key."""

    def urls(self) -> Iterator[Sequence[tuple[object, ...]]]:
        """(id, text, host's id, reason, depth, status, in_sitemap, is_start, first_seen, visited)."""

    def redirects(self) -> LinkRows:
        """Where each URL that redirects leads, as last seen, and which page each alias is an address of."""

    def pages(self) -> Iterator[Sequence[tuple[object, ...]]]:
        """Those that were read: the id, and what PAGES says of them."""

    def first_sources(self, most: int) -> NDArray[np.int64]:
        """Of all links the ids of their sources, ascending: the first `most`.

        Ids are hashes, so they are drawn by chance.
        """

    def links(self) -> Iterator[NDArray[np.int64]]:
        """[rows, 8]: ids of source and target, places in LinkKind and Position, nofollow, times, first_seen, last_seen;
        in any order.
        """

    def texts(self) -> Iterator[Sequence[tuple[object, ...]]]:
        """(id, text, blocks, parts), as they are packed, of pages whose text was kept."""


@dataclass(frozen=True, slots=True)
class PartNote:
    """One file of a table. sha256: of its bytes, hexadecimal."""

    name: str
    rows: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class TableNote:
    """One table of a folder: its files in order, its columns by name with what each says."""

    name: str
    rows: int
    parts: tuple[PartNote, ...]
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
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
