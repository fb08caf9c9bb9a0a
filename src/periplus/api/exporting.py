"""Exports of tables as rows, and the results of SQL queries."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from periplus.api.homes import open_reader, snapshot_of
from periplus.api.page_columns import extra_columns
from periplus.api.page_segments import SegmentedRows, require_segment, rules_at, rules_file, segments_at, with_segments
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
)
from periplus.settings import read_settings
from periplus.store.reader import Answer, CollectionReader
from periplus.values import Place, Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from periplus.analyse.issues import IssueTable
    from periplus.store.reader import PageBody


@contextlib.contextmanager
def run_query(place: Place, question: str, time_limit_s: float = 10.0, most: int = -1) -> Iterator[Answer]:
    """Runs one SQL query; read the answer within the context.

    most: rows, -1: all. time_limit_s: 0: no limit. Raises UsageError, StoreError.
    """
    with open_reader(place) as reader:
        answer = reader.ask(question, time_limit_s, most)
        # closing the generator ends its time limit before the reader closes
        with contextlib.closing(answer.rows):  # type: ignore[type-var]
            yield answer


TableRows = tuple[Table, Iterator[Row]]  # the rows are streamed: read them while the collection is open


@contextlib.contextmanager
def export_rows(place: Place, name: str, *, ranks: bool = True, segment: str = "") -> Iterator[TableRows]:
    """A table of EXPORTS from a snapshot of the collection, with segment columns if rules define segments.

    place: a folder or a database address. ranks: include computed page columns, for which all links of a site are
    loaded. segment: only rows of its pages. Raises UsageError, NoCollection, StoreError.
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
    with snapshot_of(place) as reader:
        yield exported, _rows(reader, place, exported)


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


def _rows(reader: CollectionReader, place: Place, exported: Table) -> Iterator[Row]:
    if exported is RANKED_PAGES:
        return _ranked_pages(reader)
    if exported is CHAINS:
        return _chains(reader)
    return issue_rows(reader, place)


def _chains(reader: CollectionReader) -> Iterator[Row]:
    from periplus.analyse.verdicts import RedirectColumns, chain_rows
    from periplus.store.site_rows import redirect_hops

    hops = RedirectColumns(*redirect_hops(reader))
    ends = set(hops.targets.tolist()) - set(hops.sources.tolist())
    for row in chain_rows(hops, reader.statuses_of(ends)):
        yield row.chain_id, row.order, reader.text_of(row.url_id), row.status, row.role.value


def _ranked_pages(reader: CollectionReader) -> Iterator[Row]:
    ends, ranks = _ends(reader), _Ranks(reader)
    id_place, url_place = PAGES.names.index("id"), PAGES.names.index("url")
    for row in reader.whole(PAGES):
        page_id = row[id_place]
        assert isinstance(page_id, int)
        yield (*row, ends.get(page_id, row[url_place]), *ranks.of(page_id))


def _ends(reader: CollectionReader) -> dict[int, str | None]:
    """Final target of each redirecting URL; None for a loop."""
    from periplus.analyse.verdicts import RedirectColumns, chain_ends
    from periplus.store.site_rows import redirect_hops

    hops = RedirectColumns(*redirect_hops(reader))
    chains = chain_ends(hops)
    rows = zip(hops.sources.tolist(), chains.ends.tolist(), chains.loops.tolist(), strict=True)
    return {source: None if loop else reader.text_of(end) for source, end, loop in rows}


class _Ranks:
    """Computed columns of the pages of all crawled sites."""

    def __init__(self, reader: CollectionReader) -> None:
        import numpy as np

        from periplus.api.facts import RankOrder, analyse_site, read_site, site_starts
        from periplus.urls.canonical import url_id

        self._parts: list[
            tuple[
                NDArray[np.int64], tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.uint8]]
            ]
        ] = []
        for start in site_starts(reader):
            facts = analyse_site(read_site(reader, start, 0.0), RankOrder()).facts
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


def issue_rows(reader: CollectionReader, place: Place) -> Iterator[Row]:
    """Rows of ISSUES."""
    from periplus.api import audit
    from periplus.api.positions import locate_issues

    yield from audit.issue_rows(locate_issues(reader, issues_of_sites(reader, place)))


def issues_of_sites(reader: CollectionReader, place: Place, *, closed: bool = False) -> IssueTable:
    """Issues of all crawled sites, under the collection's own severity and ignore settings.

    closed: include causes that were accepted or ignored.
    """
    from periplus.analyse.issues import audit_rules
    from periplus.api.audit import Urls, issue_table
    from periplus.api.facts import site_starts

    auditing = read_settings(rules_file(place)).auditing
    rules = audit_rules(auditing.severity, auditing.ignore)
    return issue_table(Urls(reader), site_starts(reader), rules, closed=closed)
