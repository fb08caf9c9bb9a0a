"""Looks up where issues stand in the sources of their pages, as they are kept: for whoever shows or lists them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from periplus.analyse.audit import issue_kinds
from periplus.document.header_checks import HEADER_CODES
from periplus.document.positions import PageSource, positions_of
from periplus.model.audit import Issue
from periplus.model.web import Url
from periplus.store.sqlite import page_rows, reading, site_rows
from periplus.store.sqlite.page_rows import Contents
from periplus.urls.canonical import url_id

LOOKED_UP_BY = ("code", "url", "related_url", "anchor", "position", "cause", "detail")  # columns of ISSUES
_BLOCK = 50_000  # issues of a stream that are held at once: each page with one of them is read once for them


def looked_up(folder: Path, issues: Iterable[Issue]) -> list[Issue]:
    """`with_positions` of a collection's folder."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        some = list(issues)
        return list(with_positions(connection, some, at_once=len(some) + 1))


def rows_with_positions(
    folder: Path, names: Sequence[str], rows: Sequence[tuple[object, ...]]
) -> Iterator[tuple[object, ...]]:
    """Rows of ISSUES with their lines and columns. names: of their columns, with LOOKED_UP_BY and those two."""
    places = {name: names.index(name) for name in (*LOOKED_UP_BY, "line", "column")}

    def issue_of(row: tuple[object, ...]) -> Issue:
        code, url, related, anchor, position, cause, detail = (str(row[places[name]] or "") for name in LOOKED_UP_BY)
        return Issue(code, issue_kinds()[code].grade, url, detail, related, anchor, position, cause)

    for row, issue in zip(rows, looked_up(folder, map(issue_of, rows)), strict=True):
        values = list(row)
        values[places["line"]], values[places["column"]] = issue.line or None, issue.column or None
        yield tuple(values)


def with_positions(
    connection: reading.Connection, issues: Iterable[Issue], *, at_once: int = _BLOCK
) -> Iterator[Issue]:
    """The issues in their order, with line and column where their page is kept and has such a place.

    at_once: they come finding by finding, so that a page is read again for each lot of so many.
    """
    issues = iter(issues)
    while block := list(islice(issues, at_once)):
        by_page: dict[str, list[int]] = {}
        for place, issue in enumerate(block):
            if issue.code not in HEADER_CODES:
                by_page.setdefault(issue.url, []).append(place)
        pages = {issue.related for issue in block if issue.related}
        page_of = {other: own for other, own in site_rows.alias_texts(connection) if own in pages}
        contents = Contents(connection)
        for url, places in by_page.items():
            source = _source(connection, contents, Url(url))
            if source is None:
                continue
            some = [block[place] for place in places]
            for place, issue, position in zip(places, some, positions_of(source, some, page_of), strict=True):
                if position is not None:
                    block[place] = replace(issue, line=position[0], column=position[1])
        yield from block


def _source(connection: reading.Connection, contents: Contents, url: Url) -> PageSource | None:
    read_as, body = page_rows.read_as(connection, url_id(url)), contents.body(url_id(url))
    return PageSource(url, body, *read_as) if read_as and body else None
