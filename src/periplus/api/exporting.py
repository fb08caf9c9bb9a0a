"""Exports of tables as rows, and the results of SQL queries."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from periplus.api.homes import folder_of, open_reader
from periplus.api.page_columns import extra_columns
from periplus.api.page_segments import SegmentedRows, require_segment, rules_at, segments_at
from periplus.errors import UsageError
from periplus.model.page import HTML_TYPES
from periplus.model.tables import (
    CHAINS,
    EXPORTS,
    ISSUES,
    PAGES,
    RANKED_PAGES,
    STRUCTURED_DATA,
    Column,
    Table,
    with_segments,
)
from periplus.settings import SETTINGS_FILE, read_settings
from periplus.store.sqlite import reading
from periplus.store.sqlite.reading import Answer, ask
from periplus.values import Place, Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from periplus.analyse.issues import IssueTable
    from periplus.store.reader import PageBody


@contextlib.contextmanager
def run_query(folder: Path, question: str, time_limit_s: float = 10.0, most: int = -1) -> Iterator[Answer]:
    """Runs one SQL query; read the answer within the context.

    most: rows, -1: all. time_limit_s: 0: no limit. Raises UsageError, StoreError.
    """
    with reading.open_reader(folder) as connection:
        answer = ask(connection, question, time_limit_s, most)
        # closing the generator ends its time limit before the connection closes
        with contextlib.closing(answer.rows):  # type: ignore[type-var]
            yield answer


TableRows = tuple[Table, Iterator[Row]]  # the rows are streamed: read them while the collection is open


@contextlib.contextmanager
def export_rows(place: Place, name: str, *, ranks: bool = True, segment: str = "") -> Iterator[TableRows]:
    """A table of EXPORTS from a snapshot of the collection, with segment columns if rules define segments.

    place: a folder or a database address. ranks: include computed page columns, for which all links of a site are
    loaded. For a database, these, chains and issues are read from the local copy; other tables are streamed. segment:
    only rows of its pages. Raises UsageError, NoCollection, StoreError.
    """
    if segment:
        require_segment(place, segment)
    segments = segments_at(place)
    with _stored_rows(place, name, ranks=ranks) as (stored, stored_rows):
        made = SegmentedRows(stored, segments)
        table, rows = made.full_table, made.rows(stored_rows, segment)
        if not (extras := extra_columns(place) if name == PAGES.name else ()):
            yield table, rows
            return
        with open_reader(place) as reader:
            for extra in extras:
                table = table.with_columns(extra.columns)
                rows = extra.rows(rows, PAGES.names.index("id"), reader, extra.names)
            yield table, rows


def export_file(place: Place, name: str, path: Path, *, format: str = "", ranks: bool = True, segment: str = "") -> str:
    """Writes the rows of `export_rows` to a file; returns the message of the format's writer, if any.

    format: file extension; empty: that of the path. Raises UsageError, NoCollection, StoreError.
    """
    from periplus.present.writers import find_writer

    writer = find_writer(format or path.suffix.removeprefix(".").lower())
    with export_rows(place, name, ranks=ranks, segment=segment) as (table, rows):
        try:
            return writer.write(table, rows, path)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None


@contextlib.contextmanager
def _stored_rows(place: Place, name: str, *, ranks: bool) -> Iterator[TableRows]:
    if name == STRUCTURED_DATA.name:
        with open_reader(place) as reader, reader.snapshot():
            yield STRUCTURED_DATA, _structured_rows(reader.stored_pages())
        return
    exported = exported_table(name, ranks=ranks)
    if exported not in (RANKED_PAGES, CHAINS, ISSUES):
        with open_reader(place) as reader, reader.snapshot():
            yield exported, reader.whole(exported)
        return
    folder = folder_of(place)
    with reading.moment(folder) as connection:
        yield exported, _rows(connection, folder, exported)


def _structured_rows(pages: Iterator[PageBody]) -> Iterator[Row]:
    """Structured data of HTML pages, parsed from their stored bodies, in the order of the pages."""
    from periplus.document import html
    from periplus.document.decode import decode
    from periplus.document.structured_data import values_of

    for page in pages:
        if page.media_type in HTML_TYPES:
            text, _ = decode(page.body, page.charset, page.media_type)
            for value in values_of(html.parse(text), page.url):
                yield (page.url, *value)


def exported_table(name: str, *, ranks: bool = True) -> Table:
    """A table of EXPORTS. ranks: pages with computed columns. Raises UsageError for an unknown name."""
    if name not in EXPORTS:
        raise UsageError(f"unknown table {name!r}: choose among {', '.join(EXPORTS)}")
    return PAGES if name == PAGES.name and not ranks else EXPORTS[name]


def exported_columns(place: Place, name: str) -> tuple[Column, ...]:
    """The columns of `export_rows`. Raises UsageError."""
    table = exported_table(name, ranks=True)
    table = with_segments(table) if rules_at(place) else table
    extras = extra_columns(place) if name == PAGES.name else ()
    return (*table.columns, *(column for extra in extras for column in extra.columns))


def _rows(connection: reading.Connection, folder: Path, exported: Table) -> Iterator[Row]:
    if exported is RANKED_PAGES:
        return _ranked_pages(connection)
    if exported is CHAINS:
        return _chains(connection)
    return issue_rows(connection, folder)


def _chains(connection: reading.Connection) -> Iterator[Row]:
    from periplus.analyse.verdicts import RedirectColumns, chain_rows
    from periplus.store.sqlite.listing import SqliteReader, statuses_of
    from periplus.store.sqlite.site_rows import redirect_hops

    hops = RedirectColumns(*redirect_hops(connection))
    ends = set(hops.targets.tolist()) - set(hops.sources.tolist())
    reader = SqliteReader(connection)
    for row in chain_rows(hops, statuses_of(connection, ends)):
        yield row.chain_id, row.order, reader.text_of(row.url_id), row.status, row.role.value


def _ranked_pages(connection: reading.Connection) -> Iterator[Row]:
    from periplus.store.sqlite.listing import whole

    ends, ranks = _ends(connection), _Ranks(connection)
    id_place, url_place = PAGES.names.index("id"), PAGES.names.index("url")
    for row in whole(connection, PAGES):
        page_id = row[id_place]
        assert isinstance(page_id, int)
        yield (*row, ends.get(page_id, row[url_place]), *ranks.of(page_id))


def _ends(connection: reading.Connection) -> dict[int, str | None]:
    """Final target of each redirecting URL; None for a loop."""
    from periplus.analyse.verdicts import RedirectColumns, chain_ends
    from periplus.store.sqlite.listing import SqliteReader
    from periplus.store.sqlite.site_rows import redirect_hops

    hops = RedirectColumns(*redirect_hops(connection))
    chains = chain_ends(hops)
    rows = zip(hops.sources.tolist(), chains.ends.tolist(), chains.loops.tolist(), strict=True)
    reader = SqliteReader(connection)
    return {source: None if loop else reader.text_of(end) for source, end, loop in rows}


class _Ranks:
    """Computed columns of the pages of all crawled sites."""

    def __init__(self, connection: reading.Connection) -> None:
        import numpy as np

        from periplus.api.facts import RankOrder, analyse_site, read_site, site_starts
        from periplus.store.sqlite.listing import SqliteReader
        from periplus.urls.canonical import url_id

        self._parts: list[
            tuple[
                NDArray[np.int64], tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.uint8]]
            ]
        ] = []
        for start in site_starts(connection):
            facts = analyse_site(read_site(SqliteReader(connection), start, 0.0), RankOrder()).facts
            ids = np.fromiter(map(url_id, facts.url), np.int64, len(facts.url))
            order = np.argsort(ids)
            self._parts.append(
                (ids[order], (facts.inlinks[order], facts.outlinks[order], facts.rank[order], facts.score[order]))
            )

    def of(self, identity: int) -> Row:
        """(inlinks, outlinks, pagerank, link score); None for URLs that are not pages of a crawled site."""
        for ids, values in self._parts:
            place = int(ids.searchsorted(identity))
            if place < len(ids) and ids[place] == identity:
                return tuple(value[place].item() for value in values)
        return (None,) * 4


def issue_rows(connection: reading.Connection, folder: Path) -> Iterator[Row]:
    """Rows of ISSUES."""
    from periplus.api import audit
    from periplus.api.positions import locate_issues
    from periplus.store.sqlite.listing import SqliteReader

    yield from audit.issue_rows(locate_issues(SqliteReader(connection), issues_of_sites(connection, folder)))


def issues_of_sites(connection: reading.Connection, folder: Path, *, closed: bool = False) -> IssueTable:
    """Issues of all crawled sites, under the collection's own severity and ignore settings.

    closed: include causes that were accepted or ignored.
    """
    from periplus.analyse.issues import audit_rules
    from periplus.api.audit import issue_table
    from periplus.api.facts import site_starts

    auditing = read_settings(folder / SETTINGS_FILE).auditing
    rules = audit_rules(auditing.severity, auditing.ignore)
    return issue_table(connection, site_starts(connection), rules, closed=closed)
