"""What does a survey need of a collection of many sites: all URLs, links, equal contents, the order of fetching?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.model.graph import REASONS, LinkRows, UrlRows
from periplus.model.page import LinkKind
from periplus.model.web import Url
from periplus.store.sqlite.number_rows import number_blocks
from periplus.store.sqlite.reading import rows

# What a reader follows, frames among it; canonical, alternate and form are remarks of a page and no references to others.
HYPERLINKS = (LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FRAME, LinkKind.IFRAME, LinkKind.REFRESH)
_HYPERLINKS = ", ".join(f"'{kind.value}'" for kind in HYPERLINKS)
_REASON = {reason.value: place for place, reason in enumerate(REASONS)}
_BLOCK = 10_000  # rows turned into columns at once
_NOT_READ = "('redirect', 'alias', 'rule')"
Ids = NDArray[np.int64]


class ExternalLink(NamedTuple):
    """A link from a fetched page to another host, with its surroundings as far as they are kept."""

    source: Url
    target: Url
    anchor: str
    position: str
    kind: str
    title: str  # of the page that it stands on
    times: int


def every_url(connection: sqlite3.Connection) -> UrlRows:
    """Whatever the collection knows, ascending by id; layers are left out (-1)."""
    ids: list[Ids] = [np.zeros(0, np.int64)]
    texts: list[Url] = []
    codes = bytearray()
    cursor = connection.execute("SELECT id, text, reason FROM url ORDER BY id")
    while block := cursor.fetchmany(_BLOCK):
        some, names, reasons = zip(*block, strict=True)
        ids.append(np.array(some, np.int64))
        texts += names
        codes += bytes(map(_REASON.__getitem__, reasons))
    return UrlRows(np.concatenate(ids), texts, np.frombuffer(bytes(codes), np.uint8), np.full(len(texts), -1, np.int32))


def hyperlinks(connection: sqlite3.Connection) -> LinkRows:
    """Every hyperlink of every site's pages, perhaps twice, by source."""
    find = (
        f"SELECT l.source, l.target FROM url u CROSS JOIN link l ON l.source = u.id WHERE l.kind IN ({_HYPERLINKS})"
        f" AND u.reason NOT IN {_NOT_READ} ORDER BY u.id, l.target"
    )
    found = [np.zeros((0, 2), np.int64), *number_blocks(connection.execute(find), 2)]
    return LinkRows(np.concatenate([block[:, 0] for block in found]), np.concatenate([block[:, 1] for block in found]))


def contents(connection: sqlite3.Connection) -> tuple[Ids, Ids]:
    """(ids of pages whose bytes are known, 64 bits of their MD5), ascending by id; empty pages are left out."""
    ids: list[int] = []
    digests: list[bytes] = []
    cursor = connection.execute("SELECT url_id, body_md5 FROM page WHERE size > 0 ORDER BY url_id")
    while block := cursor.fetchmany(_BLOCK):
        some, md5s = zip(*block, strict=True)
        ids += some
        digests += md5s
    return np.array(ids, np.int64), np.frombuffer(b"".join(digest[:8] for digest in digests), np.int64)


def fetch_order(connection: sqlite3.Connection) -> Ids:
    """Ids of the pages that were asked for, in the order of their first visits."""
    find = "SELECT url_id, min(id) FROM visit WHERE purpose = 'page' GROUP BY url_id ORDER BY 2"
    return np.concatenate([np.zeros(0, np.int64), *(block[:, 0] for block in number_blocks(connection.execute(find), 2))])


def external_links(connection: sqlite3.Connection) -> Iterator[ExternalLink]:
    """Every hyperlink between hosts with what stands around it, by source; streamed."""
    find = (
        "SELECT u.text, t.text, l.anchor, l.position, l.kind, coalesce(p.title, ''), l.times FROM url u CROSS JOIN link l ON l.source = u.id"
        f" JOIN url t ON t.id = l.target LEFT JOIN page p ON p.url_id = u.id WHERE l.kind IN ({_HYPERLINKS})"
        f" AND t.host_id <> u.host_id AND u.reason NOT IN {_NOT_READ} ORDER BY u.id, l.target"
    )
    yield from map(ExternalLink._make, rows(connection.execute(find)))
