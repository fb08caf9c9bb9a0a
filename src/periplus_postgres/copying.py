"""Copies the rows of a collection into and out of PostgreSQL, by COPY and streaming cursors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

from psycopg import DataError, IntegrityError
from psycopg.errors import LockNotAvailable

from periplus.errors import StoreError
from periplus.model.collection import Exchange
from periplus.store.bodies import BodyCodec
from periplus.store.notes import CHANGES, note, put_note
from periplus.values import Row
from periplus_postgres import ledger, page_links, schema, table_rows
from periplus_postgres.address import Address
from periplus_postgres.committing import run_of
from periplus_postgres.connection import CONNECTION_ERRORS, LOCK_TIMEOUT_S, Connection
from periplus_postgres.ledger import DatabaseLedger
from periplus_postgres.moved_tables import BODY_COLUMNS, OWN_META, MovedBody, MovedTable
from periplus_postgres.segments import RecordPlace, SegmentReader
from periplus_postgres.statements import PostgresStatements, copy_rows

AT_ONCE = 5_000  # rows of a streaming cursor
BODIES_AT_ONCE = 100
_RUN_SUMS = "('fetched', 'wire_bytes')"  # stored by part in run_count; in SQLite in the table `run`
_SOURCE = {
    "meta": "meta t WHERE t.name NOT IN ({})".format(", ".join(f"'{name}'" for name in sorted(OWN_META))),
    "run_count": (
        "(SELECT run_id, name, sum(value)::bigint AS value FROM run_count"
        f" WHERE name NOT IN {_RUN_SUMS} GROUP BY 1, 2) t"
    ),
    "tally": "(SELECT name, sum(value)::bigint AS value FROM tally GROUP BY 1) t",
}
_SUM_OF_RUN = (
    "t.{0} + coalesce((SELECT sum(c.value) FROM run_count c WHERE c.run_id = t.id AND c.name = '{0}'), 0)::bigint"
)
_COMPUTED_COLUMNS = {("run", name): _SUM_OF_RUN.format(name) for name in ("fetched", "wire_bytes")} | {
    # A killed worker may have sent its last request just now.
    (
        "host",
        "next_at",
    ): (
        "CASE WHEN t.lease_by IS NULL THEN t.next_at ELSE greatest(t.next_at, extract(epoch"
        " FROM now()) + t.delay_s / t.rate) END"
    )
}
_BODIES = f"""
SELECT DISTINCT ON (b.id) {BODY_COLUMNS}, b.segment, b.start, b.length
FROM body b LEFT JOIN xml x ON x.shard = b.shard AND x.body_id = b.id ORDER BY b.id
"""
_SEQUENCE_TABLES = ("run", "site", "host", "body", "dictionary", "visit", "outbox")  # tables with ids from sequences

WriteRecord = Callable[[Exchange], RecordPlace]


class DatabaseRows:
    """`moved_tables.RowStore` of a collection in PostgreSQL, within a transaction.

    reader: for the collection's segments, if any. write_record: writes a WARC record to a segment; None: bytes are
    stored in the row.
    """

    def __init__(
        self,
        connection: Connection,
        reader: SegmentReader | None = None,
        write_record: WriteRecord | None = None,
    ) -> None:
        self.connection = connection
        self._reader, self._write_record = reader, write_record
        self._codec = BodyCodec()

    def rows(self, table: MovedTable) -> Iterator[Row]:
        """Streams the rows of a table; their shards are 0."""
        columns = [_COMPUTED_COLUMNS.get((table.name, name), f"t.{name}") for name in table.columns]
        source = _SOURCE.get(table.name, f"{table.name} t")
        return self._stream(f"SELECT 0, {', '.join(columns)} FROM {source}", AT_ONCE)

    def bodies(self) -> Iterator[MovedBody]:
        for row in self._stream(_BODIES, BODIES_AT_ONCE):
            yield MovedBody(*(*row[:9], self._content(row)))

    def _content(self, row: tuple[Any, ...]) -> bytes:
        data, dictionary_id, text, segment, start, length = row[6:]
        if segment is not None and self._reader is not None:
            return self._reader.body(RecordPlace(segment, start, length))
        if not data:
            return b""
        if dictionary_id is not None and not self._codec.knows(dictionary_id):
            find = "SELECT data FROM dictionary WHERE id = %s"
            (dictionary,) = self.connection.execute(find, (dictionary_id,)).fetchone() or (b"",)
            self._codec.add(dictionary_id, dictionary)
        return self._codec.unpack_body(data, dictionary_id, text)

    def _stream(self, find: str, at_once: int) -> Iterator[Any]:
        cursor: Any = self.connection.cursor(name="moving")
        with cursor:
            cursor.itersize = at_once
            cursor.execute(find)
            yield from cursor

    def clear(self, name: str) -> None:
        self.connection.execute(f"DELETE FROM {name}".encode())

    def enter(self, table: MovedTable, rows: Iterable[Row]) -> None:
        """Inserts rows. Links of a page must be consecutive."""
        if table.name == "link":
            page_links.fill(self.connection, rows)
            return
        has_shard = "shard" in schema.KINDS[table.name]
        columns = ", ".join((("shard",) if has_shard else ()) + table.columns)
        copy_rows(self.connection, table.name, columns, rows if has_shard else (row[1:] for row in rows))

    def enter_bodies(self, bodies: Iterable[MovedBody]) -> None:
        """Inserts bodies, with a row in each shard of their pages."""
        dictionary_shards: dict[int, int] = dict(self.connection.execute("SELECT id, shard FROM dictionary").fetchall())
        bodies = iter(bodies)
        while batch := list(islice(bodies, BODIES_AT_ONCE)):
            rows = [row for body in batch for row in self._body_rows(body, dictionary_shards)]
            columns = "shard, id, digest, dictionary_id, size, data, text, blocks, segment, start, length"
            copy_rows(self.connection, "body", columns, rows)
            xml = [(shard, body.id, body.media_type, body.xml) for body in batch if body.xml for shard in body.shards]
            copy_rows(self.connection, "xml", "shard, body_id, media_type, data", xml)

    def _body_rows(self, body: MovedBody, dictionary_shards: dict[int, int]) -> Iterator[Row]:
        write = self._write_record if body.content else None
        place = write(body.exchange) if write and body.exchange else None
        for shard in body.shards:
            data, dictionary_id = (b"", None) if place else (body.data, body.dictionary_id)
            if not place and (
                not data or (dictionary_id is not None and dictionary_shards.get(dictionary_id) != shard)
            ):
                data, dictionary_id = self._codec.pack(body.content, None) if body.content else b"", None
            texts = (body.text, body.blocks)
            yield (shard, body.id, body.digest, dictionary_id, body.size, data, *texts, *(place or (None, None, None)))


def only_mover(connection: Connection, collection: str) -> None:
    """Locks the collection against other moves until the connection closes. Raises StoreError after LOCK_TIMEOUT_S."""
    try:
        connection.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", (schema.LOCK_MOVE, collection))
    except LockNotAvailable:
        raise StoreError(f"another process has moved {collection} for {LOCK_TIMEOUT_S} s. Try again.") from None


def complete(connection: Connection, seq: int, meta: Mapping[str, str]) -> None:
    """Finishes a move: sets sequences and notes.

    seq: number of the last queue entry.
    """
    for table in _SEQUENCE_TABLES:
        connection.execute(
            f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))"
            f" WHERE EXISTS (SELECT 1 FROM {table})"
        )
    connection.execute("SELECT setval('queue_seq', greatest(1, %s))", (seq,))
    for name, value in meta.items():
        put_note(PostgresStatements(connection), name, value)


def last_seq(connection: Connection) -> int:
    """Number of the last queue entry ever, or the greatest in the queue for a user without rights on sequences."""
    row = connection.execute(
        "SELECT greatest(last_value, (SELECT max(seq) FROM queue), 0) FROM pg_sequences"
        " WHERE schemaname = current_schema() AND sequencename = 'queue_seq'"
    ).fetchone()
    return int(row[0]) if row else 0


def version(connection: Connection) -> str:
    """Changes with each commit to crawled data and results.

    It is a digest of the writing transactions of a few small tables: each commit of a crawl counts in `tally` or
    `run_count`, and `notes.count_change` counts other changes. Call it in the transaction that reads the data.
    """
    ask = (
        "SELECT (SELECT system_identifier FROM pg_control_system()) || ' ' || (SELECT timeline_id FROM"
        " pg_control_checkpoint()) || ' ' || to_regclass('meta')::oid"
    )
    collection = (connection.execute(ask).fetchone() or ("",))[0]
    crawled, changes = digests(connection, ("run", "run_count", "tally")), note(PostgresStatements(connection), CHANGES)
    return f"{collection} {schema.VERSION} {crawled} {changes}"


def digests(connection: Connection, tables: Iterable[str]) -> str:
    """Changes with each transaction that writes to one of these small tables."""
    find = "SELECT md5(string_agg(t.xmin::text || t.ctid::text, ' ' ORDER BY t.ctid)) FROM {} t"
    return str([connection.execute(find.format(name).encode()).fetchone() for name in tables])


def is_empty(connection: Connection) -> bool:
    """Whether the collection has no runs and no URLs. It may have jobs."""
    row = connection.execute("SELECT EXISTS (SELECT 1 FROM run) OR EXISTS (SELECT 1 FROM url)").fetchone()
    return row is not None and not row[0]


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translates database errors to StoreError."""
    try:
        yield
    except (*CONNECTION_ERRORS, DataError, IntegrityError) as error:
        text = str(error).strip().partition("\n")[0]
        raise StoreError(f"the database failed: {text}. Repeat the command; a move continues.") from error


def remove_time_limits(connection: Connection) -> None:
    """Removes time limits, since whole tables are read and the other database may be slow."""
    connection.execute("SET idle_in_transaction_session_timeout = 0")
    connection.execute("SET statement_timeout = 0")


@contextmanager
def one_moment(connection: Connection) -> Iterator[None]:
    """A transaction with one snapshot."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield


def only_caller(connection: Connection, address: Address) -> None:
    """Prepares changes of a whole collection by a caller that holds the lock of a crawl. Raises StoreError while
    workers run.
    """
    if workers := table_rows.workers_at_work(connection):
        raise StoreError(f"{workers} workers are running on {address}. Stop them, or wait for their end.")
    remove_time_limits(connection)
    merge_inbox(connection, address.collection)


def merge_inbox(connection: Connection, collection: str) -> None:
    """Merges the inbox into the queue."""

    def merge() -> int:
        with connection.transaction():
            last = connection.execute("SELECT max(id) FROM run").fetchone()
            if not last or last[0] is None or ledger.is_empty(connection):
                return 0
            run = run_of(connection, last[0])
            return ledger.merge(connection, collection, lambda moment: DatabaseLedger(connection, run, 0, moment), None)

    while merge():
        pass


def rules_text(connection: Connection) -> str:
    """The collection's URL rules, in TOML."""
    return note(PostgresStatements(connection), "rules_text")
