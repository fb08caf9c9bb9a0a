"""What goes out of a collection in PostgreSQL for engines that compute over all of it? `model.dataset.WholeRows`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from periplus.model.crawl_home import RunRecord
from periplus.model.freshness import READ
from periplus.model.graph import LinkRows
from periplus.store.dataset_blocks import KINDS, PAGE_ROWS, POSITIONS, TEXT_ROWS
from periplus.store.postgres import runs
from periplus.store.postgres.address import Address
from periplus.store.postgres.connection import Connection
from periplus.store.postgres.graph_rows import redirects
from periplus.store.postgres.moment import moment, read_whole_tables
from periplus.store.postgres.schema import SHARDS
from periplus.store.postgres.streams import number_blocks, row_blocks

_READ = ", ".join(f"'{reason.value}'" for reason in sorted(READ))
_LINK_BYTES = 140  # of a row of `link` in its table: 207 with the index, docs/cluster.md
_OF_PAGE = "page p JOIN url u ON u.id = p.url_id"


class DatabaseRows:
    """One collection in a database, within `moment`. See the protocol."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def runs(self) -> Sequence[RunRecord]:
        return runs.records(self._connection)

    def hosts(self) -> Sequence[tuple[int, str, str]]:
        find = "SELECT h.id, h.key, s.key FROM host h JOIN site s ON s.id = h.site_id ORDER BY h.key"
        return [(host_id, key, site) for host_id, key, site in self._connection.execute(find).fetchall()]

    def urls(self) -> Iterator[Sequence[tuple[object, ...]]]:
        find = (
            "SELECT u.id, u.text, u.host_id, u.reason, u.layer, nullif(u.status, 0), u.in_sitemap, (s.url_id IS NOT NULL)::int,"
            f" {_millis('u.first_seen')}, {_millis('u.visited')}"
            ' FROM url u LEFT JOIN start s ON s.url_id = u.id ORDER BY u.text COLLATE "C"'
        )
        return row_blocks(self._connection, find, TEXT_ROWS)

    def redirects(self) -> LinkRows:
        return redirects(self._connection)

    def pages(self) -> Iterator[Sequence[tuple[object, ...]]]:
        find = (
            "SELECT u.id, p.media_type, p.size, nullif(p.charset, ''), coalesce(nullif(p.language, ''), nullif(p.language_found, '')), nullif(p.title, ''),"
            " nullif(p.h1, ''), nullif(p.canonical, ''), p.text_chars, encode(p.body_md5, 'hex'), encode(p.text_md5, 'hex'), encode(p.folded_md5, 'hex'),"
            f" {_millis('p.fetched')}, {_millis('nullif(p.last_modified, 0)')}"
            f' FROM {_OF_PAGE} WHERE u.reason IN ({_READ}) ORDER BY u.text COLLATE "C"'
        )
        return row_blocks(self._connection, find, TEXT_ROWS)

    def first_sources(self, most: int) -> NDArray[np.int64]:
        """Links lie by shard: of each shard the beginning is taken, as far as ids go of which there should be enough, or further."""
        row = self._connection.execute("SELECT pg_relation_size('link')").fetchone()
        rows = (row[0] if row else 0) / _LINK_BYTES
        share = min(1.0, 2 * most / max(rows, 1.0))
        while True:
            below = int(share * 2**64) - 2**63
            last = "" if share >= 1 else f" AND source < {below}"
            find = f"SELECT source FROM link WHERE shard BETWEEN 0 AND {SHARDS - 1}{last} ORDER BY source LIMIT {int(most)}"
            found = np.concatenate([np.zeros((0, 1), np.int64), *number_blocks(self._connection, find, 1)])[:, 0]
            if len(found) == most or share >= 1:
                return found
            share = min(1.0, share * 4)

    def links(self) -> Iterator[NDArray[np.int64]]:
        seen = "greatest(l.last_seen, coalesce(f.checked, 0))"  # of pages that were asked and had not changed: docs/decisions/0003
        find = (
            f"SELECT l.source, l.target, {_code('l.kind', KINDS)}, {_code('l.position', POSITIONS)}, l.nofollow, l.times,"
            f" {_millis('l.first_seen')}, {_millis(seen)}"
            " FROM link l LEFT JOIN freshness f ON f.url_id = l.source AND f.gone_since IS NULL"
        )
        return number_blocks(self._connection, find, 8)

    def texts(self) -> Iterator[Sequence[tuple[object, ...]]]:
        find = (
            f"SELECT u.id, b.text, b.blocks, p.parts FROM {_OF_PAGE} JOIN body b ON b.shard = p.shard AND b.id = p.body_id"
            f' WHERE b.text IS NOT NULL AND u.reason IN ({_READ}) ORDER BY u.text COLLATE "C"'
        )
        return row_blocks(self._connection, find, PAGE_ROWS)


@contextlib.contextmanager
def whole(address: Address) -> Iterator[DatabaseRows]:
    """The collection as it stands now, while a crawl goes on too. Raises UsageError, NoCollection, StoreError."""
    with moment(address) as connection:
        read_whole_tables(connection)
        yield DatabaseRows(connection)


def _millis(expression: str) -> str:
    """Halves away from zero, as SQLite's round does: equal collections give equal tables."""
    return f"trunc({expression} * 1000 + sign({expression}) * 0.5)::bigint"


def _code(column: str, names: Sequence[str]) -> str:
    """A text's place among names, in SQL."""
    return f"CASE {column} " + " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(names)) + " END"
