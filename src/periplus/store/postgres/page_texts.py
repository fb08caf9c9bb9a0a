"""What is kept of pages of a collection in a database: their facts, their texts, and the bytes these were read from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from psycopg.rows import TupleRow

from periplus.model.page import Blocks, Part
from periplus.model.tables import SEEN, Row, any_of, row_maker
from periplus.model.visit import REASONS_OF, State
from periplus.model.web import SiteKey, UrlId
from periplus.store.bodies import BodyCodec, blocks_of, unpack_parts
from periplus.store.corruption import reported
from periplus.store.dialect import shard_of
from periplus.store.postgres.address import Address
from periplus.store.postgres.connection import Connection
from periplus.store.postgres.table_rows import moment, place_of_segments, read_whole_tables, value_of
from periplus.store.segments import RecordPlace, SegmentReader, object_storage

AT_ONCE = 20  # pages fetched from the server at once: their bytes stand in memory
_FROM = """
FROM url u JOIN host h ON h.shard = u.shard AND h.id = u.host_id JOIN site s ON s.shard = h.shard AND s.id = h.site_id
    LEFT JOIN page p ON p.shard = u.shard AND p.url_id = u.id
    LEFT JOIN body b ON b.shard = p.shard AND b.id = p.body_id
    LEFT JOIN dictionary d ON d.shard = b.shard AND d.id = b.dictionary_id
    LEFT JOIN xml x ON x.shard = b.shard AND x.body_id = b.id
    LEFT JOIN rendering g ON g.shard = p.shard AND g.url_id = p.url_id
"""
_FIND = f"""SELECT {", ".join(map(value_of, SEEN.columns))},
    b.text, b.blocks, p.parts, b.data, b.dictionary_id, d.data, b.segment, b.start, b.length, x.data, x.media_type
    {_FROM}
"""
_INDEXED = f"WHERE u.reason IN {any_of(REASONS_OF[State.INDEXED])} AND b.text IS NOT NULL"
_ORDER = 'ORDER BY u.depth NULLS LAST, u.text COLLATE "C"'  # as pages of a folder are listed
_FACTS = len(SEEN.columns)


class DatabaseContents(NamedTuple):
    """A page as it is kept. row: of SEEN. None, and what is empty: it was not kept, or is not there."""

    row: Row
    text: str
    blocks: Blocks
    parts: tuple[Part, ...] | None  # one for each block
    body: bytes | None  # content codings removed
    xml: tuple[bytes, str] | None  # canonical XML, and its media type


@contextlib.contextmanager
def stored_pages(address: Address) -> Iterator[tuple[int, Iterator[DatabaseContents]]]:
    """(how many pages have a text, all of them, the nearest to the start first) at one moment; streamed.

    Raises UsageError, NoCollection, StoreError.
    """
    with moment(address) as connection:
        read_whole_tables(connection)
        row = connection.execute(f"SELECT count(*) {_FROM} {_INDEXED}").fetchone()
        cursor: Any = connection.cursor(name="pages")
        with cursor:
            cursor.itersize = AT_ONCE
            cursor.execute(f"{_FIND} {_INDEXED} {_ORDER}")
            yield int(row[0]) if row else 0, map(_Reader(connection).page, cursor)


def stored_page(address: Address, shard: int, page: UrlId) -> DatabaseContents | None:
    """One URL; None: it was never seen. Raises as `stored_pages`."""
    with moment(address) as connection:
        find: Any = f"{_FIND} WHERE u.shard = %s AND u.id = %s"
        row = connection.execute(find, (shard, page)).fetchone()
        return _Reader(connection).page(row) if row else None


def blocks_of_site(address: Address, site: SiteKey, most: int) -> list[tuple[UrlId, Blocks]]:
    """(id, blocks) of pages of a site, at most so many, spread over all as the ids are. Raises as `stored_pages`."""
    with moment(address) as connection:
        find: Any = (
            f"SELECT u.id, b.text, b.blocks {_FROM} {_INDEXED} AND s.shard = %s AND s.key = %s ORDER BY u.id LIMIT %s"
        )
        rows = connection.execute(find, (shard_of(site), site, most)).fetchall()
    codec = BodyCodec()
    with reported():
        return [(url_id, blocks_of(codec.unpack(text, None).decode(), blocks)) for url_id, text, blocks in rows]


class _Reader:
    """Makes pages of rows of _FIND."""

    def __init__(self, connection: Connection) -> None:
        self._codec = BodyCodec()
        self._make = row_maker(SEEN.names)
        segments = place_of_segments(connection)
        self._segments = SegmentReader(object_storage(segments)) if segments else None

    def page(self, row: TupleRow) -> DatabaseContents:
        text, blocks, parts, data, dictionary_id, dictionary, segment, start, length, xml, xml_type = row[_FACTS:]
        if dictionary_id is not None and not self._codec.knows(dictionary_id):
            self._codec.add(dictionary_id, dictionary)
        with reported():
            plain = "" if text is None else self._codec.unpack(text, None).decode()
        body = None
        if segment is not None and self._segments is not None:
            body = self._segments.body(RecordPlace(segment, start, length))
        elif data:
            body = self._codec.unpack_body(data, dictionary_id, text)
        return DatabaseContents(
            self._make(row[:_FACTS]),
            plain,
            blocks_of(plain, blocks),
            unpack_parts(parts) if parts is not None else None,
            body,
            (self._codec.unpack(xml, None), xml_type) if xml is not None else None,
        )
