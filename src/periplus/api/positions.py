"""Finds the line and column of issues in the stored sources of their pages, and keeps the issues of the last audit
beside a collection, so that the next command reads them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.audit import issue_kinds
from periplus.analyse.issues import COLUMNS, IssueTable, KindIssues, audit_rules, format_issues, texts
from periplus.analyse.linkgraph import sort_distinct
from periplus.api.facts import chosen_starts, site_starts
from periplus.api.homes import files_state, open_reader, snapshot_of
from periplus.api.page_notes import NO_FACTS, SourceFacts, take_notes
from periplus.document.header_checks import HEADER_CODES
from periplus.document.positions import PageSource, is_of_link, positions_of
from periplus.model.arrays import Unsigned8
from periplus.model.audit import Issue, Severity
from periplus.model.web import Url
from periplus.settings import VERSION, Settings
from periplus.store import column_files
from periplus.store.reader import CollectionReader
from periplus.urls.canonical import url_id
from periplus.values import Place, Row

# issues without a position in a source
WHOLE_PAGE_CODES = HEADER_CODES | {
    "bot-wall", "deep-page", "duplicate", "endless-series", "heavy-page", "missing-from-sitemap", "near-duplicate",
    "orphan", "slow-page", "url-too-long",
}  # fmt: skip
POSITION_KEYS = ("code", "url", "related_url", "anchor", "position", "cause", "detail")  # columns of ISSUES
KEPT_VERSION = 1  # of the file of issues
_TEXTS = ("words", "anchors")
_PLACES = ("pages", "related", "ends")
PAGES_AT_ONCE = 10_000  # pages per batch of issues in memory; each page is read once


def issues_with_positions(place: Place, issues: Iterable[Issue]) -> list[Issue]:
    """Like `with_positions`, for a collection."""
    with open_reader(place) as reader:
        return list(with_positions(reader, issues))


def rows_with_positions(place: Place, names: Sequence[str], rows: Sequence[Row]) -> Iterator[Row]:
    """Rows of ISSUES with line and column. names: of their columns, including LOOKED_UP_BY and these two."""
    places = {name: names.index(name) for name in (*POSITION_KEYS, "line", "column")}

    def issue_of(row: Row) -> Issue:
        code, url, related, anchor, position, cause, detail = (str(row[places[name]] or "") for name in POSITION_KEYS)
        return Issue(code, issue_kinds()[code].severity, url, detail, related, anchor, position, cause)

    for row, issue in zip(rows, issues_with_positions(place, map(issue_of, rows)), strict=True):
        values = list(row)
        values[places["line"]], values[places["column"]] = issue.line or None, issue.column or None
        yield tuple(values)


def locate_issues(reader: CollectionReader, issues: IssueTable, facts: SourceFacts = NO_FACTS) -> IssueTable:
    """All issues, with line and column where they can be found in the stored page. Bounded memory.

    facts: of pages parsed just before.
    """
    kinds = [replace(kind, lines=kind.lines.copy(), columns=kind.columns.copy()) for kind in issues.kinds]
    sorted_kinds = [
        (kind, np.argsort(kind.pages, kind="stable")) for kind in kinds if kind.kind.code not in WHOLE_PAGE_CODES
    ]
    pages = sort_distinct(np.concatenate([np.zeros(0, np.int64), *(kind.pages for kind, _ in sorted_kinds)]))
    for lot in np.split(pages, range(PAGES_AT_ONCE, len(pages), PAGES_AT_ONCE)):
        if not len(lot):
            break
        spans = [
            (kind, order[slice(*np.searchsorted(kind.pages, (lot[0], lot[-1] + 1), sorter=order))])
            for kind, order in sorted_kinds
        ]
        words = chain.from_iterable(format_issues(kind.rows(rows), issues.url) for kind, rows in spans)
        done = with_positions(reader, words, facts)
        for kind, rows in spans:
            for row, issue in zip(rows.tolist(), islice(done, len(rows)), strict=True):
                kind.lines[row], kind.columns[row] = issue.line, issue.column
    return issues.of(kinds)


def with_positions(reader: CollectionReader, issues: Iterable[Issue], facts: SourceFacts = NO_FACTS) -> Iterator[Issue]:
    """The issues in the same order, with line and column where they can be found in the stored page."""
    block, by_page = list(issues), dict[str, list[int]]()
    for place, issue in enumerate(block):
        if issue.code not in WHOLE_PAGE_CODES:
            by_page.setdefault(issue.url, []).append(place)
    stored = reader.pages_with_body([url_id(Url(url)) for url in by_page])
    for url, places in by_page.items():
        by_code = facts.positions(url_id(Url(url)))
        if by_code is not None:
            for place in places:
                if not is_of_link(block[place]) and (line_column := by_code.get(block[place].code)):
                    block[place] = replace(block[place], line=line_column[0], column=line_column[1])
        link_issues = places if by_code is None else [place for place in places if is_of_link(block[place])]
        source = _source(reader, Url(url)) if link_issues and url_id(Url(url)) in stored else None
        if source is None:
            continue
        own = [block[place] for place in link_issues]
        for place, issue, position in zip(link_issues, own, positions_of(source, own), strict=True):
            if position is not None:
                block[place] = replace(issue, line=position[0], column=position[1])
    yield from block


def _source(reader: CollectionReader, url: Url) -> PageSource | None:
    body = reader.body(url_id(url))
    read_as = reader.read_as(url_id(url)) if body else None
    return PageSource(url, body, *read_as) if read_as and body else None


def issues_of(
    place: Place,
    settings: Settings,
    site: str = "",
    *,
    fragments: bool = True,
    near: bool | None = None,
    note: Callable[[str], object] = lambda sentence: None,
) -> IssueTable:
    """All stored issues with lines and columns, most severe first, with the user's severities and without the kinds
    that the user ignores. An unchanged collection is not audited again.

    site: its key; empty: all crawled sites. fragments: include broken fragments. near: compare texts for near
    duplicates; None: only if the site is small enough. note: called with a sentence for each skipped part. Raises
    UsageError.
    """

    def key_now() -> str:
        """Everything that the answer depends on; empty in a database, whose issues are not kept."""
        if not isinstance(place, Path):
            return ""
        return repr((VERSION, sorted(issue_kinds()), files_state(place), settings.auditing, site, fragments, near))

    rules = audit_rules(settings.auditing.severity, settings.auditing.ignore)
    facts = take_notes(place)
    key = key_now()
    file = Path(place) / column_files.ISSUES
    if key and (stored := column_files.open_columns(file, KEPT_VERSION)) and stored.head["key"] == key:
        with contextlib.suppress(ValueError, KeyError):  # damaged
            table = _table_of(stored)
            for sentence in stored.head["notes"]:
                note(sentence)
            return table
    from periplus.api.audit import Urls, issue_table  # takes a third of the start of a command that reads kept issues

    if not fragments:
        rules = replace(rules, off=rules.off | {"broken-fragment", "missing-text"})
    notes = list[str]()
    with snapshot_of(place) as reader:
        starts = chosen_starts(site_starts(reader), site)
        facts.confirm(reader, [start.site for start in starts])
        table = issue_table(Urls(reader, facts), starts, rules, near=near, note=notes.append).sort()
        table = locate_issues(reader, table, facts)
    for sentence in notes:
        note(sentence)
    if key and key_now() == key:
        with contextlib.suppress(OSError):  # a folder that cannot be written
            _keep(file, key, notes, table)
    return table


def _keep(file: Path, key: str, notes: list[str], table: IssueTable) -> None:
    """Writes the issues, with the URLs that they name only."""
    kinds = [(kind.kind.code, kind.severity.value, kind.limit, len(kind)) for kind in table.kinds]
    columns: dict[str, NDArray[Any]] = dict.fromkeys(COLUMNS, np.zeros(0, np.int64))
    if table.kinds:
        columns = {name: np.concatenate([getattr(kind, name) for kind in table.kinds]) for name in COLUMNS}
    used = sort_distinct(np.concatenate([columns[name] for name in _PLACES]))
    used = used[used >= 0]
    for name in _PLACES:
        columns[name] = np.where(columns[name] < 0, columns[name], np.searchsorted(used, columns[name]))
    columns |= {name: _pack(columns[name].tolist()) for name in _TEXTS}
    columns |= {"ids": table.ids[used], "url": _pack([table.url[place] for place in used.tolist()])}
    column_files.write(file, KEPT_VERSION, {"key": key, "notes": notes, "kinds": kinds}, columns)


def _table_of(stored: column_files.ColumnFile) -> IssueTable:
    total = len(stored.columns["lines"])
    columns = stored.columns | {name: texts(_unpack(stored.columns[name]), total) for name in _TEXTS}
    kinds, start = list[KindIssues](), 0
    for code, severity, limit, count in stored.head["kinds"]:
        own = {name: columns[name][start : start + count] for name in COLUMNS}
        kinds.append(KindIssues(issue_kinds()[code], Severity(severity), limit, **own))
        start += count
    return IssueTable(tuple(kinds), [Url(text) for text in _unpack(columns["url"])], columns["ids"])


def _pack(texts: Iterable[str]) -> Unsigned8:
    return np.frombuffer("".join(f"{text}\0" for text in texts).encode("utf-8", "surrogatepass"), np.uint8)


def _unpack(column: Unsigned8) -> list[str]:
    return column.tobytes().decode("utf-8", "surrogatepass").split("\0")[:-1]
