"""What do analyses need of a site in PostgreSQL: its URLs, links, redirects and pages as arrays? All of a site lies in one shard."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from periplus.model.crawl_home import RunRecord
from periplus.model.graph import REASONS, LinkRows, PageRows, UrlFacts, UrlRows
from periplus.model.page import FOLLOWED_KINDS
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, Url
from periplus.store.postgres import runs, status
from periplus.store.postgres.address import Address
from periplus.store.postgres.connection import Connection
from periplus.store.postgres.moment import moment
from periplus.store.postgres.schema import SHARDS, shard_of
from periplus.store.postgres.streams import number_blocks, row_blocks

ROWS_AT_ONCE = 10_000
_FOLLOWED = ", ".join(f"'{kind.value}'" for kind in sorted(FOLLOWED_KINDS))
_CODE = {reason.value: code for code, reason in enumerate(REASONS)}
_ANYWHERE = f"u.shard BETWEEN 0 AND {SHARDS - 1} AND u.id = %s"  # in whatever shard
_LEADS = """
SELECT * FROM (SELECT DISTINCT ON (l.source) l.source, l.target FROM url u JOIN link l ON l.shard = u.shard AND l.source = u.id
    WHERE u.reason = 'redirect' AND l.kind = 'redirect' ORDER BY l.source, l.last_seen DESC, l.target) r
UNION ALL SELECT a.url_id, a.page_id FROM alias a JOIN url u ON u.shard = a.shard AND u.id = a.url_id WHERE u.reason = 'alias' AND a.page_id IS NOT NULL
"""


def redirects(connection: Connection) -> LinkRows:
    """Where each URL that redirects leads, as last seen, and which page each alias is an address of: one link a URL."""
    return LinkRows(*_pairs(connection, _LEADS))


def _pairs(connection: Connection, find: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two columns of whole numbers."""
    found = np.concatenate([np.zeros((0, 2), np.int64), *number_blocks(connection, find, 2)])
    return found[:, 0], found[:, 1]


class DatabaseSite:
    """Within `moment`. See `model.graph.SiteReader`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def runs(self) -> Sequence[RunRecord]:
        return runs.records(self._connection)

    def is_being_crawled(self, now: float) -> bool:
        """By the database's clock."""
        return status.workers_at_work(self._connection) > 0

    def redirects(self) -> LinkRows:
        return redirects(self._connection)

    def site_of(self, url_id: int) -> SiteKey | None:
        find = (
            "SELECT s.key FROM url u JOIN host h ON h.shard = u.shard AND h.id = u.host_id JOIN site s ON s.shard = h.shard AND s.id = h.site_id"
            f" WHERE {_ANYWHERE}"
        )
        found = self._connection.execute(find, (url_id,)).fetchone()
        return SiteKey(found[0]) if found else None

    def url_facts(self, url_id: int) -> UrlFacts | None:
        found = self._connection.execute(f"SELECT u.text, u.reason, u.status, u.rule FROM url u WHERE {_ANYWHERE}", (url_id,)).fetchone()
        return UrlFacts(Url(found[0]), Reason(found[1]), found[2] or 0, found[3]) if found else None

    def urls(self, site: SiteKey) -> UrlRows:
        ids: list[int] = []
        texts: list[Url] = []
        codes = bytearray()
        layers: list[int] = []
        for block in row_blocks(self._connection, f"SELECT u.id, u.text, u.reason, coalesce(u.layer, -1) FROM url u WHERE {self._of(site)}", ROWS_AT_ONCE):
            for url_id, text, reason, layer in block:
                ids.append(url_id)
                texts.append(text)
                codes.append(_CODE[reason])
                layers.append(layer)
        return UrlRows(np.array(ids, np.int64), texts, np.frombuffer(bytes(codes), np.uint8), np.array(layers, np.int32))

    def links(self, site: SiteKey) -> LinkRows:
        find = (
            "SELECT l.source, l.target FROM url u JOIN link l ON l.shard = u.shard AND l.source = u.id"
            f" WHERE {self._of(site)} AND l.kind IN ({_FOLLOWED}) AND u.reason NOT IN ('redirect', 'alias', 'rule')"
        )
        return LinkRows(*_pairs(self._connection, find))

    def pages(self, site: SiteKey) -> PageRows:
        ids: list[int] = []
        titles: list[str] = []
        media_types: list[str] = []
        sizes: list[int] = []
        find = (
            f"SELECT u.id, p.title, p.media_type, p.size FROM url u JOIN page p ON p.shard = u.shard AND p.url_id = u.id WHERE {self._of(site)} ORDER BY u.id"
        )
        for block in row_blocks(self._connection, find, ROWS_AT_ONCE):
            for url_id, title, media_type, size in block:
                ids.append(url_id)
                titles.append(title)
                media_types.append(sys.intern(media_type))  # a few names, a million times
                sizes.append(size)
        return PageRows(np.array(ids, np.int64), titles, media_types, np.array(sizes, np.int64))

    def statuses(self, site: SiteKey) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return _pairs(self._connection, f"SELECT u.id, u.status FROM url u WHERE {self._of(site)} AND u.status > 0")

    def _of(self, site: SiteKey) -> str:
        """The URLs u of a site, in SQL; by numbers, since COPY takes no parameters."""
        shard = shard_of(site)
        found = self._connection.execute("SELECT id FROM site WHERE shard = %s AND key = %s", (shard, site)).fetchone()
        return f"u.shard = {shard} AND u.host_id IN (SELECT h.id FROM host h WHERE h.shard = {shard} AND h.site_id = {int(found[0]) if found else -1})"


@contextlib.contextmanager
def site_reader(address: Address) -> Iterator[DatabaseSite]:
    """The collection as it stands now. Raises UsageError, NoCollection, StoreError."""
    with moment(address) as connection:
        yield DatabaseSite(connection)
