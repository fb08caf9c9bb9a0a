"""Finds the line and column of issues in the stored sources of their pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

import numpy as np

from periplus.analyse.audit import issue_kinds
from periplus.analyse.issues import IssueTable, format_issues
from periplus.analyse.linkgraph import sort_distinct
from periplus.api.homes import open_reader
from periplus.document.header_checks import HEADER_CODES
from periplus.document.positions import PageSource, positions_of
from periplus.model.audit import Issue
from periplus.model.web import Url
from periplus.store.reader import CollectionReader
from periplus.urls.canonical import url_id
from periplus.values import Row

# issues without a position in a source
WHOLE_PAGE_CODES = HEADER_CODES | {
    "deep-page", "endless-series", "heavy-page", "missing-from-sitemap", "orphan", "slow-page", "url-too-long",
}  # fmt: skip
POSITION_KEYS = ("code", "url", "related_url", "anchor", "position", "cause", "detail")  # columns of ISSUES
_PAGES = 10_000  # pages per batch of issues in memory; each page is read once


def looked_up(folder: Path, issues: IssueTable) -> IssueTable:
    """Like `locate_issues`, for a collection's folder."""
    with open_reader(folder) as reader:
        return locate_issues(reader, issues)


def issues_with_positions(folder: Path, issues: Iterable[Issue]) -> list[Issue]:
    """Like `with_positions`, for a collection's folder."""
    with open_reader(folder) as reader:
        return list(with_positions(reader, issues))


def rows_with_positions(folder: Path, names: Sequence[str], rows: Sequence[Row]) -> Iterator[Row]:
    """Rows of ISSUES with line and column. names: of their columns, including LOOKED_UP_BY and these two."""
    places = {name: names.index(name) for name in (*POSITION_KEYS, "line", "column")}

    def issue_of(row: Row) -> Issue:
        code, url, related, anchor, position, cause, detail = (str(row[places[name]] or "") for name in POSITION_KEYS)
        return Issue(code, issue_kinds()[code].severity, url, detail, related, anchor, position, cause)

    for row, issue in zip(rows, issues_with_positions(folder, map(issue_of, rows)), strict=True):
        values = list(row)
        values[places["line"]], values[places["column"]] = issue.line or None, issue.column or None
        yield tuple(values)


def locate_issues(reader: CollectionReader, issues: IssueTable) -> IssueTable:
    """All issues, with line and column where they can be found in the stored page. Bounded memory."""
    kinds = [replace(kind, lines=kind.lines.copy(), columns=kind.columns.copy()) for kind in issues.kinds]
    sorted_kinds = [
        (kind, np.argsort(kind.pages, kind="stable")) for kind in kinds if kind.kind.code not in WHOLE_PAGE_CODES
    ]
    pages = sort_distinct(np.concatenate([np.zeros(0, np.int64), *(kind.pages for kind, _ in sorted_kinds)]))
    for lot in np.split(pages, range(_PAGES, len(pages), _PAGES)):
        if not len(lot):
            break
        spans = [
            (kind, order[slice(*np.searchsorted(kind.pages, (lot[0], lot[-1] + 1), sorter=order))])
            for kind, order in sorted_kinds
        ]
        words = chain.from_iterable(format_issues(kind.rows(rows), issues.url) for kind, rows in spans)
        done = with_positions(reader, words)
        for kind, rows in spans:
            for row, issue in zip(rows.tolist(), islice(done, len(rows)), strict=True):
                kind.lines[row], kind.columns[row] = issue.line, issue.column
    return issues.of(kinds)


def with_positions(reader: CollectionReader, issues: Iterable[Issue]) -> Iterator[Issue]:
    """The issues in the same order, with line and column where they can be found in the stored page."""
    block, by_page = list(issues), dict[str, list[int]]()
    for place, issue in enumerate(block):
        if issue.code not in WHOLE_PAGE_CODES:
            by_page.setdefault(issue.url, []).append(place)
    for url, places in by_page.items():
        source = _source(reader, Url(url))
        if source is None:
            continue
        own = [block[place] for place in places]
        for place, issue, position in zip(places, own, positions_of(source, own), strict=True):
            if position is not None:
                block[place] = replace(issue, line=position[0], column=position[1])
    yield from block


def _source(reader: CollectionReader, url: Url) -> PageSource | None:
    read_as, body = reader.read_as(url_id(url)), reader.body(url_id(url))
    return PageSource(url, body, *read_as) if read_as and body else None
