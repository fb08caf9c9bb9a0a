"""Reads one snapshot of a collection: tables for export, a site as arrays, and record positions in segments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import count, islice
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Any

import psycopg

from periplus.children import process_lives
from periplus.errors import OutOfTime, StoreError, UsageError
from periplus.model.tables import VIEWS, Table
from periplus.store.bodies import BodyCodec
from periplus.store.notes import note
from periplus.store.reader import NO_LIMIT, ROWS_AT_ONCE, Activity, Answer, CollectionReader
from periplus.store.statements import Row as DialectRow
from periplus.store.views import select
from periplus_postgres import hosts, schema
from periplus_postgres.address import Address, address_of
from periplus_postgres.connection import Connection, connect
from periplus_postgres.statements import KEEP_SEGMENTS, POSTGRES, PostgresStatements, translate

if TYPE_CHECKING:  # imports NumPy; and what collections without segments do without
    from periplus.model.arrays import Ints
    from periplus.model.results import Segmentation
    from periplus_postgres.segments import RecordPlace, SegmentReader

NUMBERS_AT_ONCE = 100_000  # rows converted to an array at a time
_TOO_LONG = "reading took too long and was stopped: query less, or allow more time"
_HEAD_BYTES = 19  # header of COPY's binary format: signature, flags, length of an empty extension


@contextlib.contextmanager
def _translate_errors(address: Address) -> Iterator[None]:
    """Translates database errors to StoreError."""
    try:
        yield
    except psycopg.errors.QueryCanceled as error:
        raise OutOfTime(_TOO_LONG) from error
    except psycopg.Error as error:
        message = str(error).strip().partition("\n")[0] or type(error).__name__
        raise StoreError(f"{address} could not be read: {message}") from error


def read_whole_tables(connection: Connection) -> None:
    """Plans the following statements of this transaction for complete reads of whole tables.

    These statements join by ids only, which are unique over all shards. If the shard were compared too, the planner
    would multiply two dependent probabilities, expect one row instead of millions, and use nested loops (two million
    links: not finished after nine minutes, instead of six seconds).
    """
    _plan(connection, "enable_nestloop = off", "enable_seqscan = on", "cursor_tuple_fraction = 1", "work_mem = '64MB'")


def _plan(connection: Connection, *settings: str) -> None:
    for setting in ("jit = off", *settings):
        connection.execute(f"SET LOCAL {setting}")


def number_blocks(connection: Connection, find: str, width: int) -> Iterator[Ints]:
    """Yields the rows of a query on integers without NULL as int64[rows, width].

    In COPY's binary format such rows have a fixed length, so that an array is read without Python objects.
    """
    values = ", ".join(f"c{place}::bigint" for place in range(width))
    names = ", ".join(f"c{place}" for place in range(width))
    import numpy as np  # look-ups do without

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


class PostgresReader(CollectionReader):
    """`store.reader.CollectionReader` over a connection of its own."""

    def __init__(self, place: Address | str) -> None:
        """Raises UsageError, NoCollection, StoreError."""
        address = address_of(place)
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
    def limit_reads(self, limit_s: float, cpu_s: Callable[[], float] = thread_time) -> Iterator[None]:
        with _translate_errors(self._address):
            if self._connection.closed:
                raise UsageError("the collection was closed: use it within `with periplus.open(ADDRESS) as collection`")
            self._connection.execute(f"SET statement_timeout = {round(limit_s * 1000)}".encode())
            yield

    @contextlib.contextmanager
    def snapshot(self, of: str = "") -> Iterator[None]:
        with self._connection.transaction():
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            if of:
                self._connection.execute(psycopg.sql.SQL("SET TRANSACTION SNAPSHOT {}").format(of))
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

    def numbers(self, find: str, width: int) -> Iterator[Ints]:
        return number_blocks(self._connection, find.replace("CROSS JOIN", "JOIN"), width)

    def plan(self, *, scans: bool) -> None:
        if scans:
            read_whole_tables(self._connection)
        else:
            _plan(self._connection, "enable_nestloop = on", "enable_seqscan = off")

    def name_segments(self, segments: Segmentation) -> None:
        with _translate_errors(self._address):
            values = (segments.ids.tolist(), list(segments.names), segments.codes.tobytes())
            self._connection.execute(KEEP_SEGMENTS.encode(), values)

    def ask(self, question: str, limit_s: float, most: int = -1) -> Answer:
        answer = self._answer(question, limit_s, most if most >= 0 else NO_LIMIT)
        return Answer(next(answer), answer)

    def _answer(self, question: str, limit_s: float, most: int) -> Iterator[Any]:
        """Yields the column names, then the rows."""
        with self.limit_reads(limit_s), self._connection.transaction():
            self._connection.execute("SET TRANSACTION READ ONLY")
            read_whole_tables(self._connection)
            with self._connection.cursor(name="answer") as cursor, _translate_mistakes():
                # a cursor has one statement, and a subquery is nothing but a query
                query = question.strip().rstrip(";")
                cursor.execute(f"{_views()} SELECT * FROM (\n{query}\n) answer".encode("utf-8", "replace"))
                yield [column.name for column in cursor.description or ()]
                read_s = 0.0
                while most and not 0 < limit_s < read_s:
                    began = monotonic()
                    rows = cursor.fetchmany(min(most, ROWS_AT_ONCE))
                    read_s, most = read_s + monotonic() - began, most - len(rows)
                    yield from (tuple(map(_plain_value, row)) for row in rows)
                    if not rows:
                        return
                if most:
                    raise OutOfTime(_TOO_LONG)

    def body_in_segment(self, segment: str, start: int, length: int) -> bytes:
        from periplus_postgres.segments import RecordPlace

        return self._segments.body(RecordPlace(segment, start, length))

    @cached_property
    def _segments(self) -> SegmentReader:
        from periplus_postgres.segments import SegmentReader, object_storage

        return SegmentReader(object_storage(place_of_segments(self._connection)))


def _views() -> str:
    """WITH clause that gives users' statements the tables of VIEWS, which only the owner could create as views."""
    views = (
        f"{table.name} ({', '.join(table.names)}) AS NOT MATERIALIZED ({select(table, dialect=POSTGRES)})"
        for table in VIEWS.values()
    )
    return f"WITH {', '.join(views)}"


@contextlib.contextmanager
def _translate_mistakes() -> Iterator[None]:
    """Translates errors of a user's statement to UsageError."""
    try:
        yield
    except (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.ActiveSqlTransaction):
        raise UsageError("`periplus sql` only reads: one SELECT") from None
    except (psycopg.ProgrammingError, psycopg.DataError, psycopg.NotSupportedError) as error:
        raise UsageError(
            f"PostgreSQL does not understand this: {error.diag.message_primary or error}. It takes one SELECT from "
            f"{', '.join(VIEWS)}; docs/sql.md lists their columns."
        ) from None


def _plain_value(value: object) -> object:
    """A value as SQLite returns it."""
    if value is None or isinstance(value, int | float | str):
        return int(value) if isinstance(value, bool) else value
    if isinstance(value, Decimal):
        return float(value) if value % 1 else int(value)
    return value.hex() if isinstance(value, bytes) else str(value)


def place_of_segments(connection: Connection) -> str:
    """Place of the collection's segments; empty if bytes are stored in the database."""
    return note(PostgresStatements(connection), "segments")


def segments_of_pages(connection: Connection) -> list[str]:
    """All segments that bodies refer to."""
    rows = connection.execute("SELECT DISTINCT segment FROM body WHERE segment IS NOT NULL").fetchall()
    return [str(row[0]) for row in rows]


def record_places(connection: Connection) -> Iterator[RecordPlace]:
    """Streams the distinct record positions of bodies, sorted by segment, within a transaction."""
    from periplus_postgres.segments import RecordPlace

    with connection.cursor(name="claimed") as cursor:
        cursor.itersize = ROWS_AT_ONCE
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
