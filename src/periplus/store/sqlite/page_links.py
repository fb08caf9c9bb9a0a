"""Storage of links in a folder: a row of columns for all links of a page that were seen at the same times.

They are read into arrays without an object per link. The view `link` offers one row per link to any SQLite program. See
docs/decisions/0054.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

from periplus.model.page import LINK_KIND_CODES, LinkKind
from periplus.store import page_links
from periplus.store.corruption import translate_errors
from periplus.store.page_links import (
    FIRST_LETTER,
    HISTORY_COLUMNS,
    KINDS,
    LANDMARKS,
    LinksRow,
    history_row,
    merged_links,
    new_and_seen_pages,
    split_words,
    unpack_links,
)
from periplus.store.rows import LinkChanges, LinkKey, NewLinks, PageLink
from periplus.store.statements import ID_WIDTH, SQLITE
from periplus.values import Row

# Targets are decimal numbers of fixed width, so that `substr` reads a part of a BLOB without scanning it. Before SQLite
# 3.42, `json_each` is the only JSON function allowed in a view of an untrusted schema.

COLUMNS = "source, first_seen, last_seen, targets, kinds, positions, nofollow, words"
TABLE = """
CREATE TABLE page_links (
    source INTEGER NOT NULL, first_seen REAL NOT NULL, last_seen REAL NOT NULL, targets BLOB NOT NULL, kinds BLOB NOT NULL,
    positions BLOB NOT NULL, nofollow BLOB, words TEXT NOT NULL);
CREATE INDEX page_links_source ON page_links (source);
"""  # noqa: E501
_TAB = "char(9)"
_FURTHER = f"substr(w.value, 2, instr(substr(w.value, 2), {_TAB}) - 1)"  # times and fragments
TO_TARGET = f"link WHERE target = ?1 AND source IN {SQLITE.linking.replace('?', '?1')}"
_STORE = f"INSERT INTO page_links ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


def _name_expression(column: str, names: Sequence[str]) -> str:
    """SQL expression: the name encoded by a link's letter."""
    cases = " ".join(f"WHEN x'{FIRST_LETTER + code:x}' THEN '{name}'" for code, name in enumerate(names))
    return f"CASE substr(p.{column}, w.key + 1, 1) {cases} END"


def _case_expression(further: str, plain: str) -> str:
    return f"CASE substr(w.value, 1, 1) WHEN {_TAB} THEN {further} ELSE {plain} END"


VIEW = f"""
CREATE VIEW link AS SELECT p.source AS source,
    CAST(substr(p.targets, {ID_WIDTH} * w.key + 1, {ID_WIDTH}) AS INTEGER) AS target,
    {_name_expression("kinds", KINDS)} AS kind,
    {_name_expression("positions", LANDMARKS)} AS position,
    CASE WHEN p.nofollow IS NULL THEN 0 ELSE CAST(substr(p.nofollow, w.key + 1, 1) AS INTEGER) END AS nofollow,
    {_case_expression(f"substr(w.value, 2 + instr(substr(w.value, 2), {_TAB}))", "w.value")} AS anchor,
    {_case_expression(f"substr({_FURTHER}, instr({_FURTHER}, ' ') + 1)", "''")} AS fragments,
    {_case_expression(f"CAST({_FURTHER} AS INTEGER)", "1")} AS times,
    p.first_seen AS first_seen, p.last_seen AS last_seen
FROM page_links p JOIN json_each(p.words) w;
"""


def new_rows(page: NewLinks, now: float) -> Iterator[Row]:
    """Rows for a page without stored links."""
    return map(_pack, page_links.new_rows(page, now))


def rows_of(source: int, links: Iterable[PageLink]) -> Iterator[Row]:
    """Rows for the links of one page."""
    return map(_pack, page_links.rows_of(source, links))


def _pack(row: LinksRow[Sequence[int]]) -> Row:
    return (*row[:3], _targets(row.targets), *row[4:])


def _targets(ids: Sequence[int]) -> bytes:
    return (f"%{ID_WIDTH}d" * len(ids) % tuple(ids)).encode("ascii")


def of_page(connection: sqlite3.Connection, source: int) -> dict[LinkKey, PageLink]:
    """Stored links of a page. Raises StoreError if columns are inconsistent."""
    find = f"SELECT {COLUMNS} FROM page_links WHERE source = ? ORDER BY rowid"
    with translate_errors():
        rows = [LinksRow[bytes](*row) for row in connection.execute(find, (source,)).fetchall()]
        return {link.key: link for row in rows for link in unpack_links(row, map(int, row.targets.split()))}


def letters_of(*kinds: LinkKind) -> bytes:
    return bytes(FIRST_LETTER + LINK_KIND_CODES[kind] for kind in kinds)


class LinkColumns(NamedTuple):
    """Links of several pages as columns."""

    pages: Sequence[Sequence[Any]]  # requested expressions for each row of page_links
    many: Sequence[int]  # number of links of each row
    targets: Sequence[int]
    kinds: Sequence[str]
    positions: Sequence[str]
    nofollow: Sequence[int]
    anchors: Sequence[str]
    fragments: Sequence[str]
    times: Sequence[int]


def in_columns(connection: sqlite3.Connection, asked: str, joins: str, at_once: int) -> Iterator[LinkColumns]:
    """All links in the order of the view, by `at_once` rows. asked: expressions over page_links l and the joins.

    Raises StoreError if columns are inconsistent.
    """
    cursor = connection.execute(f"SELECT targets, kinds, positions, nofollow, words, {asked} FROM page_links l {joins}")
    while rows := cursor.fetchmany(at_once):
        with translate_errors():
            targets, kinds, positions, nofollow, words, *pages = map(list, zip(*rows, strict=True))
            many = list(map(len, kinds))
            bars = b"".join(bar or b"0" * links for bar, links in zip(nofollow, many, strict=True))
            texts = json.loads(f"[{','.join(words)}]")
            if list(map(len, positions)) != many or list(map(len, texts)) != many:
                raise ValueError("columns of different lengths")
            parts = [split_words(text) if text[:1] == "\t" else (text, "", 1) for text in chain.from_iterable(texts)]
            columns: tuple[Sequence[Any], ...] = (
                list(map(int, b"".join(targets).split())),
                [KINDS[letter - FIRST_LETTER] for letter in b"".join(kinds)],
                [LANDMARKS[letter - FIRST_LETTER] for letter in b"".join(positions)],
                [digit - ord("0") for digit in bars],
                *zip(*parts, strict=True),
            )
            if any(len(column) != sum(many) for column in columns):
                raise ValueError("columns of different lengths")
        yield LinkColumns(list(zip(*pages, strict=True)), many, *columns)


def insert(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    connection.executemany(_STORE, rows)


def replace(connection: sqlite3.Connection, source: int, links: Iterable[PageLink]) -> None:
    """Replaces the stored links of a page."""
    connection.execute("DELETE FROM page_links WHERE source = ?", (source,))
    insert(connection, rows_of(source, links))


def fill(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Inserts rows of LINK_COLUMNS, grouped by page, into an empty table."""
    for source, of_source in groupby(rows, itemgetter(0)):
        insert(connection, rows_of(source, (PageLink(*row[1:]) for row in of_source)))  # type: ignore[arg-type]


# commits -------------------------------------------------------------------------------------------------------------


def enter(connection: sqlite3.Connection, changes: LinkChanges) -> None:
    """Stores the link changes of a transaction."""
    new, again = new_and_seen_pages(changes)
    insert(connection, chain.from_iterable(new_rows(page, changes.now) for page in new))
    for change in again:
        source = change.page.source
        links, past = merged_links(change, changes.now, of_page(connection, source))
        if past:
            checked = connection.execute("SELECT checked FROM freshness WHERE url_id = ?", (source,)).fetchone()
            latest = checked[0] if checked else 0.0
            connection.executemany(
                f"INSERT OR IGNORE INTO link_history ({HISTORY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [history_row(source, link, changes.run_id, latest) for link in past],
            )
        replace(connection, source, links.values())
