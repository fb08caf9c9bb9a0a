"""Reads one snapshot of a collection: tables for export, a site as arrays, and record positions in segments."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import count, islice
from typing import Any

import numpy as np
import psycopg
from psycopg.rows import TupleRow

from periplus.children import process_lives
from periplus.errors import StoreError, UsageError
from periplus.model.arrays import Ints
from periplus.model.graph import LinkRows, PageRows, UrlRows
from periplus.model.page import CLICK_KINDS
from periplus.model.tables import Table, any_of
from periplus.model.web import SiteKey
from periplus.store.bodies import BodyCodec
from periplus.store.database_address import Address
from periplus.store.dialect import POSTGRES, shard_of
from periplus.store.dialect import Row as DialectRow
from periplus.store.notes import note
from periplus.store.postgres import hosts, schema
from periplus.store.postgres.connection import Connection, connect
from periplus.store.postgres.statements import PostgresStatements, translate
from periplus.store.reader import ROWS_AT_ONCE, Activity, Reader
from periplus.store.segments import RecordPlace, SegmentReader, object_storage
from periplus.store.views import select


@contextlib.contextmanager
def moment(address: Address, *, writes: bool = False, of: str = "") -> Iterator[Connection]:
    """A transaction without time limits.

    writes: at the default isolation level; otherwise a read-only snapshot. of: a snapshot exported by another
    transaction that is still open (`pg_export_snapshot`).
    Raises UsageError, NoCollection, and StoreError for database errors.
    """
    with contextlib.closing(connect(address)) as connection:
        schema.check(connection, address.collection)
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        connection.execute("SET statement_timeout = 0")
        with _translate_errors(address, writes=writes), connection.transaction():
            if not writes:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            if of:
                connection.execute(psycopg.sql.SQL("SET TRANSACTION SNAPSHOT {}").format(of))
            yield connection


@contextlib.contextmanager
def _translate_errors(address: Address, *, writes: bool = False) -> Iterator[None]:
    """Translates database errors to StoreError."""
    try:
        yield
    except psycopg.Error as error:
        message = str(error).strip().partition("\n")[0] or type(error).__name__
        raise StoreError(
            f"{address} could not be {'written: nothing was changed' if writes else 'read'}: {message}"
        ) from error


def read_whole_tables(connection: Connection) -> None:
    """Plans the following statements of this transaction for complete reads of whole tables.

    These statements join by ids only, which are unique over all shards. If the shard were compared too, the planner
    would multiply two dependent probabilities, expect one row instead of millions, and use nested loops (two million
    links: not finished after nine minutes, instead of six seconds).
    """
    _plan(connection, "enable_nestloop = off", "enable_seqscan = on", "cursor_tuple_fraction = 1", "work_mem = '64MB'")


def look_up(connection: Connection) -> None:
    """Plans the following statements of this transaction for lookups by key in tables of any size."""
    _plan(connection, "enable_nestloop = on", "enable_seqscan = off")


def _plan(connection: Connection, *settings: str) -> None:
    for setting in ("jit = off", *settings):
        connection.execute(f"SET LOCAL {setting}")


BLOCK_ROWS = 10_000
NUMBERS_AT_ONCE = 100_000  # rows converted to an array at a time
_HEAD_BYTES = 19  # header of COPY's binary format: signature, flags, length of an empty extension


def row_blocks(connection: Connection, find: str, most: int) -> Iterator[Sequence[TupleRow]]:
    """Yields the rows of a query in blocks of `most`. Call it within a transaction and read it to the end."""
    cursor: Any = connection.cursor(name="blocks")
    with cursor:
        cursor.execute(find)
        while rows := cursor.fetchmany(most):
            yield rows


def number_blocks(connection: Connection, find: str, width: int) -> Iterator[Ints]:
    """Yields the rows of a query on integers without NULL as int64[rows, width].

    In COPY's binary format such rows have a fixed length, so that an array is read without Python objects.
    """
    values = ", ".join(f"c{place}::bigint" for place in range(width))
    names = ", ".join(f"c{place}" for place in range(width))
    row = np.dtype([("count", ">i2"), ("values", [("length", ">i4"), ("value", ">i8")], (width,))])
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY (SELECT {values} FROM ({find}) t ({names})) TO STDOUT (FORMAT BINARY)".encode()) as copy,
    ):
        messages = (bytes(message) for message in copy)
        rest = next(messages)[_HEAD_BYTES:]
        while block := rest + b"".join(islice(messages, NUMBERS_AT_ONCE)):
            rest = b""
            rows = np.frombuffer(block, row, len(block) // row.itemsize)["values"]
            assert (rows["length"] == 8).all(), "a value is NULL"
            if len(rows):  # the trailer is shorter than a row
                yield rows["value"].astype(np.int64)


# All rows of a site are in one shard.

_CLICKS = any_of(CLICK_KINDS)
_LEADS = """
SELECT * FROM (SELECT DISTINCT ON (l.source) l.source, l.target FROM url u JOIN link l ON l.shard = u.shard AND l.source = u.id
    WHERE u.reason = 'redirect' AND l.kind = 'redirect' ORDER BY l.source, l.last_seen DESC, l.target) r
UNION ALL SELECT a.url_id, a.page_id FROM alias a JOIN url u ON u.shard = a.shard AND u.id = a.url_id WHERE u.reason = 'alias' AND a.page_id IS NOT NULL
"""  # noqa: E501


def redirects(connection: Connection) -> LinkRows:
    """Target of each redirect, as last seen, and page of each alias; one link per URL."""
    return LinkRows(*_pairs(connection, _LEADS))


def _pairs(connection: Connection, find: str) -> tuple[Ints, Ints]:
    """Reads two integer columns."""
    pairs = np.concatenate([np.zeros((0, 2), np.int64), *number_blocks(connection, find, 2)])
    return pairs[:, 0], pairs[:, 1]


class DatabaseSite:
    """`model.graph.SiteArrays` of a database."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def redirects(self) -> LinkRows:
        return redirects(self._connection)

    def urls(self, site: SiteKey) -> UrlRows:
        find = f"SELECT u.id, u.text, u.reason, coalesce(u.depth, -1) FROM url u WHERE {self._of(site)}"
        return UrlRows.of(row_blocks(self._connection, find, BLOCK_ROWS))

    def links(self, site: SiteKey) -> LinkRows:
        find = (
            "SELECT l.source, l.target FROM url u JOIN link l ON l.shard = u.shard AND l.source = u.id"
            f" WHERE {self._of(site)} AND l.kind IN {_CLICKS} AND u.reason NOT IN ('redirect', 'alias', 'rule')"
        )
        return LinkRows(*_pairs(self._connection, find))

    def pages(self, site: SiteKey) -> PageRows:
        find = (
            "SELECT u.id, p.title, p.media_type, p.size FROM url u JOIN page p ON p.shard = u.shard"
            f" AND p.url_id = u.id WHERE {self._of(site)} ORDER BY u.id"
        )
        return PageRows.of(row_blocks(self._connection, find, BLOCK_ROWS))

    def statuses(self, site: SiteKey) -> tuple[Ints, Ints]:
        return _pairs(self._connection, f"SELECT u.id, u.status FROM url u WHERE {self._of(site)} AND u.status > 0")

    def _of(self, site: SiteKey) -> str:
        """SQL condition: URL u belongs to the site. Numbers are part of the text, since COPY takes no parameters."""
        shard = shard_of(site)
        row = self._connection.execute("SELECT id FROM site WHERE shard = %s AND key = %s", (shard, site)).fetchone()
        return (
            f"u.shard = {shard} AND u.host_id IN (SELECT h.id FROM host h WHERE h.shard = {shard}"
            f" AND h.site_id = {int(row[0]) if row else -1})"
        )


class PostgresReader(Reader):
    """`store.reader.Reader` over a connection of its own."""

    def __init__(self, address: Address) -> None:
        """Raises UsageError, NoCollection, StoreError."""
        self._address, self._streams = address, count()
        self._connection = connect(address)
        self.statements, self.codec = PostgresStatements(self._connection), BodyCodec()
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            schema.check(self._connection, address.collection)
            self._connection.execute("SET idle_in_transaction_session_timeout = 0")
            self._connection.execute("SET jit = off")  # compiling a look-up takes longer than running it
            stack.pop_all()

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def limit_reads(self, limit_s: float) -> Iterator[None]:
        with _translate_errors(self._address):
            if self._connection.closed:
                raise UsageError("the collection was closed: use it within `with periplus.open(ADDRESS) as collection`")
            self._connection.execute(f"SET statement_timeout = {round(limit_s * 1000)}".encode())
            yield

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._connection.transaction():
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def activity(self, now: float) -> Activity:
        workers = hosts.workers_with_lease(self._connection)
        size_bytes = hosts.size_bytes(self._connection)
        return Activity(hosts.time_now(self._connection, None), workers > 0, size_bytes, workers)

    def stream(self, find: str, values: Sequence[object] = (), at_once: int = ROWS_AT_ONCE) -> Iterator[DialectRow]:
        with self._connection.transaction():
            read_whole_tables(self._connection)
            cursor: Any = self._connection.cursor(name=f"stream{next(self._streams)}")
            with cursor:
                cursor.itersize = at_once
                cursor.execute(translate(find), values or None)
                _plan(self._connection, "enable_nestloop = on")  # look-ups between its rows
                yield from cursor

    def whole(self, table: Table) -> Iterator[DialectRow]:
        return self.stream(select(table, dialect=POSTGRES))

    def arrays(self) -> DatabaseSite:
        return DatabaseSite(self._connection)

    def body_in_segment(self, segment: str, start: int, length: int) -> bytes:
        return self._segments.body(RecordPlace(segment, start, length))

    @cached_property
    def _segments(self) -> SegmentReader:
        return SegmentReader(object_storage(place_of_segments(self._connection)))


def place_of_segments(connection: Connection) -> str:
    """Place of the collection's segments; empty if bytes are stored in the database."""
    return note(PostgresStatements(connection), "segments")


def segments_of_pages(connection: Connection) -> list[str]:
    """All segments that bodies refer to."""
    rows = connection.execute("SELECT DISTINCT segment FROM body WHERE segment IS NOT NULL").fetchall()
    return [str(row[0]) for row in rows]


def record_places(connection: Connection) -> Iterator[RecordPlace]:
    """Streams the distinct record positions of bodies, sorted by segment, within a transaction."""
    with connection.cursor(name="claimed") as cursor:
        cursor.itersize = BLOCK_ROWS
        cursor.execute(
            'SELECT DISTINCT segment COLLATE "C", start, length FROM body WHERE segment IS NOT NULL ORDER BY 1, 2, 3'
        )
        for row in cursor:
            yield RecordPlace(*row)


def workers_at_work(connection: Connection) -> int:
    """Number of workers with a valid lease whose process is not known to be dead."""
    expired = hosts.expired_workers(connection, process_lives, None)
    row = connection.execute("SELECT count(*) FROM worker WHERE name <> ALL(%s)", (list(expired),)).fetchone()
    return int(row[0]) if row else 0
