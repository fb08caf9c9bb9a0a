"""The arrays of a site from which its link graph is computed, and redirects, in both databases."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from periplus.model.arrays import Ints
from periplus.model.graph import LinkRows, PageRows, UrlRows
from periplus.model.web import SiteKey
from periplus.store.reader import CollectionReader
from periplus.store.site_rows import clicks_of
from periplus.values import Row

BLOCK_ROWS = 10_000
_REDIRECTS = """
SELECT source, target FROM (
    SELECT l.source, l.target, row_number() OVER (PARTITION BY l.source ORDER BY l.last_seen DESC, l.target) AS place
    FROM url u JOIN link l ON {}l.source = u.id WHERE u.reason = 'redirect' AND l.kind = 'redirect') r WHERE place = 1
UNION ALL SELECT a.url_id, a.page_id FROM alias a JOIN url u ON {}u.id = a.url_id
WHERE u.reason = 'alias' AND a.page_id IS NOT NULL
"""


def redirects(reader: CollectionReader) -> LinkRows:
    """Target of each redirect, as last seen, and page of each alias; one link per URL."""
    beside = reader.statements.dialect.beside
    return LinkRows(*pairs(reader, _REDIRECTS.format(beside("l", "u"), beside("u", "a"))))


def pairs(reader: CollectionReader, find: str) -> tuple[Ints, Ints]:
    """Reads two integer columns."""
    rows = np.concatenate([np.zeros((0, 2), np.int64), *reader.numbers(find, 2)])
    return rows[:, 0], rows[:, 1]


class StoredSites:
    """Reads whole sites for analyses. Call it within a snapshot."""

    def __init__(self, reader: CollectionReader) -> None:
        self._reader = reader

    def redirects(self) -> LinkRows:
        return redirects(self._reader)

    def urls(self, site: SiteKey) -> UrlRows:
        find = "SELECT u.id, u.text, u.reason, coalesce(u.depth, -1) FROM url u WHERE "
        return UrlRows.of(self._blocks(find + self._reader.of_site(site)))

    def links(self, site: SiteKey) -> LinkRows:
        return clicks_of(self._reader, site)

    def pages(self, site: SiteKey) -> PageRows:
        beside = self._reader.statements.dialect.beside("p", "u")
        find = f"SELECT u.id, p.title, p.media_type, p.size FROM url u JOIN page p ON {beside}p.url_id = u.id WHERE "
        return PageRows.of(self._blocks(f"{find}{self._reader.of_site(site)} ORDER BY u.id"))

    def statuses(self, site: SiteKey) -> tuple[Ints, Ints]:
        find = f"SELECT u.id, u.status FROM url u WHERE {self._reader.of_site(site)} AND u.status > 0"
        return pairs(self._reader, find)

    def _blocks(self, find: str) -> Iterator[list[Row]]:
        rows = self._reader.stream(find)
        while block := list(islice(rows, BLOCK_ROWS)):
            yield block
