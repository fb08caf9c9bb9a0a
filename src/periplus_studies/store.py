"""Reads and changes the links that a survey collects, and the user's marks on sites, in both databases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from periplus.model.arrays import Ints
from periplus.model.graph import LinkRows, UrlRows
from periplus.model.page import LinkKind
from periplus.model.tables import any_of
from periplus.model.web import Url
from periplus.store.page_links import drop_links
from periplus.store.reader import CollectionReader, matches
from periplus.store.site_rows import joined_links, link_blocks, row_blocks
from periplus.store.statements import Row, Statements
from periplus_studies.model import SiteMark, SiteStatus

# Links that a reader follows, including frames. Canonical, alternate and form links are not references to other pages.
HYPERLINKS = (LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FRAME, LinkKind.IFRAME, LinkKind.REFRESH)
_SURVEY_KINDS = frozenset(HYPERLINKS)
_NOT_READ = "('redirect', 'alias', 'rule')"
# Keys of links after the page, with places for the order of texts
_KEY, _BAD_KEY = "l.target, l.kind{0}, l.position{0}, l.nofollow", "l.text{0}, l.why{0}, l.anchor{0}, l.position{0}"
_LINKS = (
    "link l ON l.source = u.id JOIN url b ON b.id = l.target LEFT JOIN page p ON p.url_id = u.id"
    f" WHERE l.kind IN {any_of(HYPERLINKS)}"
)
_COLUMNS = {  # of SURVEY_LINKS, after the page
    "internal": "b.text, b.depth, CASE WHEN b.visited IS NULL THEN 0 ELSE 1 END, b.reason, l.anchor",
    "external": "b.text, l.anchor, l.position, coalesce(p.title, ''), l.times",
    "bad": "l.text, l.why, l.anchor, l.position",
}


def every_url(reader: CollectionReader) -> UrlRows:
    """All URLs of the collection, ascending by id, without depths (-1)."""
    return UrlRows.of(row_blocks(reader.stream("SELECT id, text, reason, -1 FROM url ORDER BY id")))


def hyperlinks(reader: CollectionReader) -> LinkRows:
    """All hyperlinks of all pages, by source; may contain duplicates."""
    of_read = f"url u CROSS JOIN page_links l ON l.source = u.id WHERE u.reason NOT IN {_NOT_READ} ORDER BY u.id"
    blocks = link_blocks(reader, of_read, kinds=_SURVEY_KINDS)
    links = joined_links(block.in_order() for block in blocks)
    return LinkRows(links.sources, links.targets)


def contents(reader: CollectionReader) -> tuple[Ints, Ints]:
    """(ids of non-empty pages with known content, 64 bits of their digests), ascending by id."""
    ids: list[int] = []
    digests: list[bytes] = []
    find = "SELECT url_id, body_digest FROM page WHERE size > 0 ORDER BY url_id"
    for block in row_blocks(reader.stream(find)):
        block_ids, block_digests = zip(*block, strict=True)
        ids += block_ids
        digests += block_digests
    return np.array(ids, np.int64), np.frombuffer(b"".join(digest[:8] for digest in digests), np.int64)


def fetch_order(reader: CollectionReader) -> Ints:
    """Ids of the requested pages, in the order of their first visits."""
    find = "SELECT url_id, min(id) FROM visit WHERE purpose = 'page' GROUP BY url_id ORDER BY 2"
    return np.concatenate([np.zeros(0, np.int64), *(block[:, 0] for block in reader.numbers(find, 2))])


def links(reader: CollectionReader, kind: str, page: str, target: str, anchor: str) -> Iterator[tuple[Row, Url, Row]]:
    """Streams hyperlinks and frames, or bad links, whose page, target and anchor contain or match these; empty: any.
    Grouped by page.

    Rows: key for `delete`, page, columns of SURVEY_LINKS after the page. The target of a bad link is its text.
    """
    dialect = reader.statements.dialect
    key, joins = (_BAD_KEY, "bad_link l ON l.source = u.id") if kind == "bad" else (_KEY, _LINKS)
    condition, *values = reader.matching(page) if page else ("u.text <> ''",)
    find = (
        f"SELECT {'u.shard' if dialect.has_shards else '0'}, l.source, {key.format('')}, u.text, l.anchor,"
        f" {_COLUMNS[kind]} FROM url u CROSS JOIN {joins} AND {condition}"
        f" ORDER BY u.id, {key.format(dialect.text_order)}"
    )
    for row in reader.stream(find, values):
        if all(not pattern or matches(text, pattern) for pattern, text in ((anchor, row[7]), (target, row[8]))):
            yield row[:6], row[6], row[8:]


def delete(statements: Statements, kind: str, keys: Sequence[Row]) -> int:
    """Deletes links; returns their number. Call it within a transaction."""
    if kind != "bad":
        return drop_links(statements, keys)
    dialect = statements.dialect
    drop = (
        f"DELETE FROM bad_link WHERE {dialect.here}source = ? AND text = ? AND why = ? AND anchor = ? AND position = ?"
    )
    return sum(statements.change(drop, dialect.shard_values(*key)) for key in dict.fromkeys(keys))


def marks(reader: CollectionReader) -> dict[str, SiteMark]:
    """Users' marks on sites, by prefix."""
    find = f"SELECT prefix, status, tags FROM survey_mark ORDER BY prefix{reader.statements.dialect.text_order}"
    return {
        prefix: SiteMark(prefix, SiteStatus(status), tuple(tags.split("\n")) if tags else ())
        for prefix, status, tags in reader.statements.rows(find)
    }


def store_marks(statements: Statements, noted: Iterable[SiteMark], now: float) -> None:
    """Replaces the marks of these sites. Call it within a transaction."""
    key = statements.dialect.of_long_text.format("prefix")
    upsert = (
        f"INSERT INTO survey_mark (prefix, status, tags, marked) VALUES (?, ?, ?, ?) ON CONFLICT ({key}) DO UPDATE SET"
        " status = excluded.status, tags = excluded.tags, marked = excluded.marked"
    )
    values = ((mark.prefix, mark.status.value, "\n".join(mark.tags), now) for mark in noted)
    statements.change_rows(upsert, values)
