"""Which pages have the same words, and which the same but for diacritics and case?

Digests find them, the texts themselves confirm it where they were kept. Of each group one page stands for all: of those that differ in
diacritics the one that has most of them, for the others were made from it; then the nearest to the start, then the shortest URL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

from periplus.document.digest import without_marks
from periplus.document.whitespace import folded
from periplus.model.freshness import READ
from periplus.model.web import Url, UrlId
from periplus.store.sqlite.contents import Contents

_READ = ", ".join(f"'{reason.value}'" for reason in sorted(READ))
_FAR = 1 << 30  # in place of a layer: no link leads there


class Twin(NamedTuple):
    """One page of a group."""

    url_id: UrlId
    url: Url
    layer: int  # clicks from the start; 2^30: no link leads there
    marks: int  # characters of its text that are no plain ASCII


class Twins(NamedTuple):
    """Pages with the same words, two at least; the first stands for all. is_confirmed: their texts were compared, not their digests alone."""

    pages: tuple[Twin, ...]
    is_confirmed: bool


def equal_texts(connection: sqlite3.Connection, site_id: int | None = None) -> Iterator[Twins]:
    """Pages whose text is the same, white space apart; of one site, or of all."""
    yield from _groups(connection, "text_md5", site_id, folded)


def equal_but_marks(connection: sqlite3.Connection, site_id: int | None = None) -> Iterator[Twins]:
    """Pages whose text is the same but for diacritics and case, and is not the same outright for all of them."""
    for twins in _groups(connection, "folded_md5", site_id, lambda text: without_marks(folded(text))):
        ids = tuple(page.url_id for page in twins.pages)
        marks = ",".join("?" * len(ids))
        if len(ids) > _VARIABLES or connection.execute(f"SELECT count(DISTINCT text_md5) FROM page WHERE url_id IN ({marks})", ids).fetchone()[0] > 1:
            yield twins


_VARIABLES = 30_000  # that SQLite takes in one statement are 32,766; so many equal pages are of no interest one by one


def _groups(connection: sqlite3.Connection, column: str, site_id: int | None, normal: Callable[[str], str]) -> Iterator[Twins]:
    """By digest, then by what the texts are when normal has been at them: equal digests of different texts make two groups."""
    of_site = "" if site_id is None else " AND u.host_id IN (SELECT id FROM host WHERE site_id = :site)"
    pages = f"FROM page p JOIN url u ON u.id = p.url_id WHERE u.reason IN ({_READ}){of_site}"
    find = (
        f"SELECT p.{column}, u.id, u.text, coalesce(u.layer, {_FAR}) {pages} AND p.{column} IN"
        f" (SELECT p.{column} {pages} GROUP BY p.{column} HAVING count(*) > 1) ORDER BY p.{column}"
    )
    contents = Contents(connection)
    for _, rows in groupby(connection.execute(find, {"site": site_id}), key=lambda row: row[0]):
        by_text: dict[str | None, list[Twin]] = {}
        for _, url_id, url, layer in rows:
            text = contents.text(url_id)
            marks = 0 if text is None else len(text) - len(text.encode("ascii", "ignore"))
            by_text.setdefault(None if text is None else normal(text), []).append(Twin(url_id, url, layer, marks))
        for text, twins in by_text.items():
            if len(twins) > 1:
                yield Twins(tuple(sorted(twins, key=lambda twin: (-twin.marks, twin.layer, len(twin.url), twin.url))), text is not None)
