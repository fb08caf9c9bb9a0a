"""Links in PostgreSQL: a page's links in rows of columns, and the view `link` with a row per link."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from struct import Struct
from typing import Final

from periplus.store.page_links import (
    FIRST_LETTER,
    KINDS,
    LANDMARKS,
    LinksRow,
    history_row,
    merged_links,
    new_and_seen_pages,
    new_rows,
    rows_of,
    unpack_links,
)
from periplus.store.rows import LinkChanges, PageLink, StoredLinks
from periplus.store.statements import PageKey
from periplus_postgres.connection import Connection, columns_of

COLUMNS = f"shard, {', '.join(LinksRow._fields)}"
_TAB = "chr(9)"
_FURTHER = f"split_part(l.word, {_TAB}, 2)"  # times and fragments
_NOFOLLOW = "CASE WHEN p.nofollow IS NULL THEN 0 ELSE get_byte(p.nofollow, l.place::int - 1) - 48 END"
LINK_KINDS: Final = {  # types of the view, without the shard
    **{"source": "bigint", "target": "bigint", "kind": "text", "position": "text", "nofollow": "smallint"},
    **{"anchor": "text", "fragments": "text", "times": "bigint", "first_seen": "float8", "last_seen": "float8"},
}
# Rows up to 8 KB are stored uncompressed: compression took longer than everything else for a page's links.
TABLE: Final = """
CREATE TABLE page_links (
    shard smallint NOT NULL, source bigint NOT NULL, first_seen float8 NOT NULL, last_seen float8 NOT NULL, targets bigint[] NOT NULL,
    kinds bytea NOT NULL, positions bytea NOT NULL, nofollow bytea, words text NOT NULL) WITH (toast_tuple_target = 8160);
"""  # noqa: E501
INDEX: Final = "CREATE INDEX page_links_source ON page_links (shard, source);\n"
_TYPES = ("int2", "int8", "float8", "float8", "bytea", "bytea", "bytea", "bytea", "text")
_HEADER = Struct(">5i")
_NUMBER = [("length", ">i4"), ("value", ">i8")]
_INT8_OID = 20


def _name_expression(column: str, names: Sequence[str]) -> str:
    """SQL expression: the name encoded by a link's letter."""
    listed = ", ".join(f"'{name}'" for name in names)
    return f"(ARRAY[{listed}])[get_byte(p.{column}, l.place::int - 1) - {FIRST_LETTER - 1}]"


def _case_expression(further: str, plain: str) -> str:
    return f"CASE left(l.word, 1) WHEN {_TAB} THEN {further} ELSE {plain} END"


VIEW: Final = f"""
CREATE VIEW link AS SELECT p.shard, p.source, l.target, {_name_expression("kinds", KINDS)} AS kind, {_name_expression("positions", LANDMARKS)} AS position,
    ({_NOFOLLOW})::smallint AS nofollow,
    {_case_expression(f"substr(l.word, strpos(substr(l.word, 2), {_TAB}) + 2)", "l.word")} AS anchor,
    {_case_expression(f"substr({_FURTHER}, strpos({_FURTHER}, ' ') + 1)", "''")} AS fragments,
    {_case_expression(f"split_part({_FURTHER}, ' ', 1)::bigint", "1")} AS times, p.first_seen, p.last_seen
FROM page_links p,
    ROWS FROM (unnest(p.targets), json_array_elements_text(p.words::json)) WITH ORDINALITY AS l(target, word, place);
"""  # noqa: E501


def _array(ids: Sequence[int]) -> bytes:
    """Ids in the binary format of bigint[]. psycopg's own conversion needs a call per number."""
    import numpy as np  # readers do without

    numbers = np.empty(len(ids), _NUMBER)
    numbers["length"], numbers["value"] = 8, ids
    return _HEADER.pack(1, 0, _INT8_OID, len(ids), 1) + numbers.tobytes()


def insert(connection: Connection, rows: Iterable[tuple[int, LinksRow[Sequence[int]]]]) -> None:
    """Inserts rows, given as (shard, row)."""
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY page_links ({COLUMNS}) FROM STDIN (FORMAT BINARY)".encode()) as copy,
    ):
        copy.set_types(_TYPES)
        for shard, row in rows:
            words = _without_nul(row.words) if "\\u0000" in row.words else row.words
            copy.write_row((shard, *row[:3], _array(row.targets), *row[4:7], words))


def _without_nul(words: str) -> str:
    """Replaces U+0000, which PostgreSQL stores in JSON text but cannot read."""
    return json.dumps([word.replace("\0", "\ufffd") for word in json.loads(words)], ensure_ascii=False)


def of_pages(connection: Connection, pages: Iterable[PageKey]) -> dict[PageKey, StoredLinks]:
    """Stored links of pages."""
    places = sorted(set(pages))
    stored: dict[PageKey, StoredLinks] = {place: {} for place in places}
    names = ", ".join(f"p.{name}" for name in LinksRow._fields)
    find = (
        f"SELECT p.shard, {names} FROM unnest(%s::smallint[], %s::bigint[]) k(shard, source)"
        " JOIN page_links p ON p.shard = k.shard AND p.source = k.source"
    )
    for shard, *columns in connection.execute(find.encode(), columns_of(places, 2)) if places else ():
        row = LinksRow[list[int]](*columns)
        stored[shard, row.source].update((link.key, link) for link in unpack_links(row, row.targets))
    return stored


def replace(connection: Connection, pages: Mapping[PageKey, StoredLinks]) -> None:
    """Replaces the stored links of pages."""
    if pages:
        connection.execute(
            "DELETE FROM page_links p USING unnest(%s::smallint[], %s::bigint[]) k(shard, source)"
            " WHERE p.shard = k.shard AND p.source = k.source",
            columns_of(pages, 2),
        )
        insert(
            connection,
            ((shard, row) for (shard, source), links in pages.items() for row in rows_of(source, links.values())),
        )


def enter(connection: Connection, changes: LinkChanges) -> list[tuple[object, ...]]:
    """Stores the link changes of a transaction. Returns closed links: the shard, then HISTORY_COLUMNS."""
    new, again = new_and_seen_pages(changes)
    if new:
        insert(connection, ((page.shard, row) for page in new for row in new_rows(page, changes.now)))
    stored = of_pages(connection, ((change.page.shard, change.page.source) for change in again))
    ended: list[tuple[PageKey, PageLink]] = []
    for change in again:
        place = (change.page.shard, change.page.source)
        stored[place], past = merged_links(change, changes.now, stored[place])
        ended += [(place, link) for link in past]
    replace(connection, stored)
    checked = _last_refreshes(connection, [place for place, _ in ended])
    return [(place[0], *history_row(place[1], link, changes.run_id, checked.get(place, 0.0))) for place, link in ended]


def _last_refreshes(connection: Connection, pages: Iterable[PageKey]) -> dict[PageKey, float]:
    """Time of the last refresh of pages, if any."""
    places = sorted(set(pages))
    find = (
        "SELECT f.shard, f.url_id, f.checked FROM unnest(%s::smallint[], %s::bigint[]) k(shard, id)"
        " JOIN freshness f ON f.shard = k.shard AND f.url_id = k.id"
    )
    rows = connection.execute(find, columns_of(places, 2)) if places else ()
    return {(shard, page): checked for shard, page, checked in rows}


def fill(connection: Connection, rows: Iterable[Sequence[object]]) -> None:
    """Inserts links, given as rows: the shard, then the columns of the view. Links of a page must be consecutive."""

    def make_rows() -> Iterator[tuple[int, LinksRow[Sequence[int]]]]:
        for (shard, source), of_page in groupby(rows, itemgetter(0, 1)):
            for row in rows_of(source, (PageLink(*row[2:]) for row in of_page)):  # type: ignore[arg-type]
                yield shard, row

    insert(connection, make_rows())
