"""Which pages have the same text, diacritics and case apart, and what else tells them from one another?

Digests find them, the texts themselves confirm it where they were kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from periplus.document.digest import without_marks
from periplus.document.whitespace import folded
from periplus.model.duplicates import Contender, SameText
from periplus.model.freshness import READ
from periplus.model.web import Url
from periplus.store.sqlite.contents import Contents

_READ = ", ".join(f"'{reason.value}'" for reason in sorted(READ))
_FAR = 1 << 30  # in place of a layer: no link leads there
_PAGES = f"FROM page p JOIN url u ON u.id = p.url_id WHERE u.reason IN ({_READ})"
_OF_SITE = " AND u.host_id IN (SELECT id FROM host WHERE site_id = :site)"


def contenders(connection: sqlite3.Connection, site_id: int | None = None) -> Iterator[Contender]:
    """All pages of a site, or of all sites, by id."""
    named = _named(connection)
    for row in connection.execute(f"SELECT u.id, u.text, p.charset, u.layer {_scope(site_id)} ORDER BY u.id", {"site": site_id}):
        yield _contender(row, named)


def same_texts(connection: sqlite3.Connection, site_id: int | None = None) -> Iterator[tuple[list[SameText], bool]]:
    """(pages whose texts are the same but for diacritics and case, two at least; whether the texts themselves were compared).

    Equal digests of different texts make two groups. Pages without text are the same when their bytes are.
    """
    scope, named, contents = _scope(site_id), _named(connection), Contents(connection)
    find = (
        f"SELECT u.id, u.text, p.charset, u.layer, p.folded_md5, p.text_md5, p.body_md5, p.body_id {scope} AND p.folded_md5 IN"
        f" (SELECT p.folded_md5 {scope} GROUP BY 1 HAVING count(*) > 1) ORDER BY p.folded_md5, u.id"
    )
    for _, rows in groupby(connection.execute(find, {"site": site_id}), key=lambda row: row[4]):
        yield from _of_one_digest(rows, contents, named)


def _of_one_digest(rows: Iterable[tuple[Any, ...]], contents: Contents, named: frozenset[Url]) -> Iterator[tuple[list[SameText], bool]]:
    groups: dict[str | None, list[SameText]] = {}
    bodies: dict[object, int] = {}
    texts: dict[str | bytes, tuple[int, int, str | None]] = {}  # (number, marks, group)
    of_body: dict[int, tuple[int, int, str | None]] = {}
    is_kept = True
    for *page, _, text_md5, body_md5, body_id in rows:
        body = bodies.setdefault(body_md5 if body_id is None else body_id, len(bodies))  # equal bytes are kept once, and were compared for it
        if body not in of_body:
            text = contents.text(page[0])
            is_kept = is_kept and (text is not None or (body_id is not None and body == 0))  # without a text: the same bytes, all of them
            words = text_md5 if text is None else folded(text)
            if words not in texts:
                marks = 0 if text is None else len(text) - len(text.encode("ascii", "ignore"))
                texts[words] = len(texts), marks, None if text is None else without_marks(words)
            of_body[body] = texts[words]
        number, marks, group = of_body[body]
        groups.setdefault(group, []).append(SameText(_contender(page, named), marks, number, body))
    yield from ((pages, is_kept) for pages in groups.values() if len(pages) > 1)


def tally(connection: sqlite3.Connection, site_id: int | None = None) -> tuple[int, int]:
    """(pages, those of them with a text in which content and navigation are not told apart yet)."""
    count = f"SELECT count(*), coalesce(sum(p.parts IS NULL AND p.text_chars > 0), 0) {_scope(site_id)}"
    pages, unmarked = connection.execute(count, {"site": site_id}).fetchone()
    return pages, unmarked


def _scope(site_id: int | None) -> str:
    return _PAGES + ("" if site_id is None else _OF_SITE)


def _named(connection: sqlite3.Connection) -> frozenset[Url]:
    """What pages name as their canonical, themselves apart."""
    find = f"SELECT DISTINCT p.canonical {_PAGES} AND p.canonical NOT IN ('', u.text)"
    return frozenset(row[0] for row in connection.execute(find))


def _contender(row: list[object] | tuple[object, ...], named: frozenset[Url]) -> Contender:
    url_id, url, charset, layer = row
    return Contender(url_id, url, charset, _FAR if layer is None else layer, url in named)  # type: ignore[arg-type]  # as the columns are
