"""Reads one snapshot of a collection: tables for export, a site as arrays, and record positions in segments."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import psycopg
from psycopg.rows import TupleRow

from periplus.children import process_lives
from periplus.errors import StoreError
from periplus.model.arrays import Ints
from periplus.model.graph import LinkRows, PageRows, UrlFacts, UrlRows
from periplus.model.page import CLICK_KINDS
from periplus.model.ports import RunRecord
from periplus.model.tables import RUNS, Column, ColumnKind, Table, any_of
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store import runs
from periplus.store.bodies import BodyCodec
from periplus.store.crawl_reads import PageBlocks, page_of, pages_statement
from periplus.store.database_address import Address
from periplus.store.dialect import POSTGRES, SHARDS, shard_of
from periplus.store.notes import note
from periplus.store.postgres import hosts, index_place, schema
from periplus.store.postgres.connection import Connection, columns_of, connect
from periplus.store.postgres.statements import PostgresStatements
from periplus.store.segments import RecordPlace


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
        with _reported(address, writes=writes), connection.transaction():
            if not writes:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            if of:
                connection.execute(psycopg.sql.SQL("SET TRANSACTION SNAPSHOT {}").format(of))
            yield connection


@contextlib.contextmanager
def _reported(address: Address, *, writes: bool = False) -> Iterator[None]:
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

ROWS_AT_ONCE = 10_000
_CLICKS = any_of(CLICK_KINDS)
# in any shard: one index lookup per shard, whereas BETWEEN would read the whole index
_ANYWHERE = f"u.shard IN ({', '.join(map(str, range(SHARDS)))}) AND u.id = %s"
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
    """`model.graph.SiteReader` within `moment`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def runs(self) -> Sequence[RunRecord]:
        return runs.records(PostgresStatements(self._connection))

    def is_being_crawled(self, now: float) -> bool:
        """Uses the database's clock."""
        return hosts.workers_with_lease(self._connection) > 0

    def redirects(self) -> LinkRows:
        return redirects(self._connection)

    def site_of(self, url_id: int) -> SiteKey | None:
        find = (
            "SELECT s.key FROM url u JOIN host h ON h.shard = u.shard AND h.id = u.host_id"
            " JOIN site s ON s.shard = h.shard AND s.id = h.site_id"
            f" WHERE {_ANYWHERE}"
        )
        row = self._connection.execute(find, (url_id,)).fetchone()
        return SiteKey(row[0]) if row else None

    def url_facts(self, url_id: int) -> UrlFacts | None:
        row = self._connection.execute(
            f"SELECT u.text, u.reason, u.status, u.rule FROM url u WHERE {_ANYWHERE}", (url_id,)
        ).fetchone()
        return UrlFacts(Url(row[0]), Reason(row[1]), row[2] or 0, row[3]) if row else None

    def urls(self, site: SiteKey) -> UrlRows:
        find = f"SELECT u.id, u.text, u.reason, coalesce(u.depth, -1) FROM url u WHERE {self._of(site)}"
        return UrlRows.of(row_blocks(self._connection, find, ROWS_AT_ONCE))

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
        return PageRows.of(row_blocks(self._connection, find, ROWS_AT_ONCE))

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


class DatabasePages:
    """Looks up pages of a collection by keys (shard, id). Raises StoreError."""

    def __init__(self, connection: Connection, address: Address) -> None:
        self._connection, self._address, self._codec = connection, address, BodyCodec()

    def runs(self) -> Sequence[RunRecord]:
        with _reported(self._address):
            return runs.records(PostgresStatements(self._connection))

    def pages(self, keys: Sequence[tuple[int, UrlId]]) -> dict[UrlId, tuple[PageBlocks, SiteKey]]:
        """Returns the current pages among the URLs, each with its site."""
        site = "SELECT s.key FROM site s WHERE s.shard = h.shard AND s.id = h.site_id"
        find = pages_statement(POSTGRES).replace("SELECT ", f"SELECT ({site}), ", 1)
        among = "SELECT * FROM unnest(%s::smallint[], %s::bigint[])"
        with _reported(self._address), self._connection.transaction():
            look_up(self._connection)
            ask = f"{find} AND (p.shard, p.url_id) IN ({among})"
            rows = self._connection.execute(ask.encode(), columns_of(keys, 2)).fetchall()
        return {UrlId(row[1]): (page_of(row[1:], self._codec), SiteKey(row[0])) for row in rows}

    def urls(self, keys: Sequence[tuple[int, UrlId]]) -> dict[UrlId, Url]:
        """Returns the known URLs."""
        with _reported(self._address):
            rows = PostgresStatements(self._connection).at("id, text", "url", "id", keys)
            return {UrlId(url_id): Url(text) for url_id, text in rows}


@contextlib.contextmanager
def database_pages(address: Address, limit_s: float) -> Iterator[tuple[DatabasePages, str]]:
    """(pages, place of the shared index or empty) on one connection.

    limit_s: time limit of a statement; 0: the default. Raises UsageError, NoCollection, StoreError.
    """
    with contextlib.closing(connect(address)) as connection:
        schema.check(connection, address.collection)
        if limit_s:
            connection.execute(f"SET statement_timeout = {round(limit_s * 1000)}".encode())
        yield DatabasePages(connection, address), address.index or index_place.place_of_index(connection)


@contextlib.contextmanager
def site_reader(address: Address) -> Iterator[DatabaseSite]:
    """Opens a snapshot of the collection. Raises UsageError, NoCollection, StoreError."""
    with moment(address) as connection:
        yield DatabaseSite(connection)


AT_ONCE = 2_000  # rows fetched from the server at a time, which bounds the memory


def value_of(column: Column) -> str:
    """SQL of a column. Times are rounded to milliseconds, then truncated to seconds, as in SQLite."""
    expression = column.postgres or column.sql
    if column.kind is ColumnKind.BOOLEAN:
        return f"({expression})::int"
    if column.kind is ColumnKind.TIME:
        moment = f"to_timestamp(floor(nullif({expression}, 0) * 1000 + 0.5) / 1000) AT TIME ZONE 'UTC'"
        return f"""to_char({moment}, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"""
    return expression


def numeric(table: Table) -> str:
    """SELECT statement of the columns with an expression, times in milliseconds, in any order."""
    values = (_millis(column.sql) if column.kind is ColumnKind.TIME else value_of(column) for column in table.columns)
    shown = ", ".join(value for value, column in zip(values, table.columns, strict=True) if column.sql)
    return f"SELECT {shown} FROM {table.source} WHERE {table.where or 'true'}"


def _millis(expression: str) -> str:
    """Rounds half away from zero, as SQLite does, so that equal collections give equal tables."""
    return f"trunc(nullif({expression}, 0) * 1000 + sign({expression}) * 0.5)::bigint"


def statement(table: Table) -> str:
    """SELECT statement of all rows of a stored table, unsorted except for runs."""
    return (
        f"SELECT {', '.join(map(value_of, table.columns))} FROM {table.source}"
        + (f" WHERE {table.where}" if table.where else "")
        + (f" GROUP BY {table.group}" if table.group else "")
        + (" ORDER BY id" if table is RUNS else "")
    )


@contextlib.contextmanager
def table_rows(address: Address, table: Table) -> Iterator[Iterator[tuple[object, ...]]]:
    """Streams the rows of a stored table from one snapshot. Raises UsageError, NoCollection, StoreError."""
    with moment(address) as connection:
        read_whole_tables(connection)
        yield (row for block in row_blocks(connection, statement(table), AT_ONCE) for row in block)


BLOCK_ROWS = 10_000


def place_of_segments(connection: Connection) -> str:
    """Place of the collection's segments; empty if bytes are stored in the database."""
    return note(PostgresStatements(connection), "segments")


def segments_of_pages(connection: Connection) -> list[str]:
    """All segments that bodies refer to."""
    rows = connection.execute("SELECT DISTINCT segment FROM body WHERE segment IS NOT NULL").fetchall()
    return [str(row[0]) for row in rows]


def claimed(connection: Connection) -> Iterator[RecordPlace]:
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
