"""Shared statements on PostgreSQL, single and in bulk."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from periplus.store.job_queue import JobQueue
from periplus.store.page_links import HISTORY_COLUMNS
from periplus.store.rows import LinkChanges, StoredLinks
from periplus.store.statements import Dialect, PageKey, Row, Statements
from periplus_postgres import page_links
from periplus_postgres.connection import Connection, Session, columns_of
from periplus_postgres.schema import KINDS

T = TypeVar("T")
POSTGRES = Dialect(
    greatest="greatest",
    least="least",
    position="strpos",
    of_long_text="md5({})",
    is_false="{} = 0",
    among="= ANY(?)",
    linking="(SELECT source FROM page_links WHERE targets @> ARRAY[?::bigint])",
    text_order=' COLLATE "C"',
    # rounded to milliseconds, then truncated to seconds, as SQLite does
    time="to_char(to_timestamp(floor(nullif({}, 0) * 1000 + 0.5) / 1000) AT TIME ZONE 'UTC',"
    """ 'YYYY-MM-DD"T"HH24:MI:SS"Z"')""",
    millis="trunc(nullif({0}, 0) * 1000 + sign({0}) * 0.5)::bigint",
    for_update=" FOR NO KEY UPDATE",
    skip_locked=" FOR UPDATE SKIP LOCKED",
    has_shards=True,
    has_triggers=False,
    has_sequences=True,
)
# A reader may have no right to create a function or a temporary table: the segments of its session are settings, and
# segment_of(id) is replaced by a binary search in them. The WITH clause parses them once per statement.
KEEP_SEGMENTS = (
    "SELECT set_config('periplus.segment_ids', %s::bigint[]::text, false),"
    " set_config('periplus.segment_names', %s::text[]::text, false),"
    " set_config('periplus.segment_codes', encode(%s, 'hex'), false)"
)
_SEGMENTS = (
    "WITH segments AS MATERIALIZED (SELECT current_setting('periplus.segment_ids')::bigint[] AS ids,"
    " current_setting('periplus.segment_names')::text[] AS names,"
    " decode(current_setting('periplus.segment_codes'), 'hex') AS codes) "
)
_SEGMENT_OF = re.compile(r"segment_of\((\w+\.\w+)\)")
_PLACE = r"width_bucket(\1, (SELECT ids FROM segments))"
_SEGMENT = (
    rf"(CASE WHEN (SELECT ids FROM segments)[{_PLACE}] = \1 THEN"
    rf" (SELECT names FROM segments)[get_byte((SELECT codes FROM segments), {_PLACE} - 1) + 1] END)"
)


class PostgresStatements:
    """`store.statements.Statements` of a PostgreSQL connection."""

    dialect = POSTGRES

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        return self.connection.execute(translate(statement), values).fetchall()

    def change(self, statement: str, values: Sequence[object] = ()) -> int:
        return self.connection.execute(translate(statement), values).rowcount

    def change_rows(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        values = list(rows)
        if values:
            self.connection.cursor().executemany(translate(statement), values)

    def at(self, columns: str, table: str, key: str, keys: Sequence[Sequence[object]]) -> Iterable[Row]:
        if not keys:
            return ()
        names = ", ".join(f"t.{name}" for name in columns.split(", "))
        find = f"SELECT {names} FROM {_unnest(table, key)} JOIN {table} t ON t.shard = k.shard AND t.{key} = k.{key}"
        return self.connection.execute(find.encode(), columns_of(keys, 2)).fetchall()

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[object]], *, key: str = "") -> None:
        if rows:
            copy_rows(self.connection, table, f"shard, {columns}", _last_of(rows, key) if key else rows)

    def replace(
        self, table: str, columns: str, rows: Sequence[Sequence[object]], before: Sequence[Sequence[object]]
    ) -> None:
        self.delete(table, columns.partition(",")[0], before)
        self.insert(table, columns, rows)

    def upsert(
        self, table: str, columns: str, rows: Sequence[Sequence[object]], *, key: str = "", update: str = ""
    ) -> None:
        if not rows:
            return
        sets = ", ".join(f"{name} = excluded.{name}" for name in update.split(", ")) if update else ""
        conflict = f"(shard, {key}) DO UPDATE SET {sets}" if sets else "DO NOTHING"
        insert = f"INSERT INTO {table} (shard, {columns}) SELECT * FROM {_unnest(table, columns)}"
        values = columns_of(_last_of(rows, key) if update else rows, len(rows[0]))
        self.connection.execute(f"{insert} ON CONFLICT {conflict}".encode(), values)

    def update(self, table: str, columns: str, rows: Sequence[Sequence[object]]) -> None:
        if not rows:
            return
        key, *others = columns.split(", ")
        sets = ", ".join(f"{name} = k.{name}" for name in others)
        where = f"t.shard = k.shard AND t.{key} = k.{key}"
        update = f"UPDATE {table} t SET {sets} FROM {_unnest(table, columns)} WHERE {where}"
        self.connection.execute(update.encode(), columns_of(rows, len(rows[0])))

    def delete(self, table: str, key: str, rows: Sequence[Sequence[object]]) -> Sequence[Sequence[object]]:
        if not rows:
            return ()
        table = "page_links" if table == "link" else table  # `link` is a view, deleted by page
        names = ["shard", *key.split(", ")]
        where = " AND ".join(f"t.{name} = k.{name}" for name in names)
        drop = (
            f"DELETE FROM {table} t USING {_unnest(table, key)} WHERE {where}"
            f" RETURNING {', '.join(f't.{name}' for name in names)}"
        )
        return self.connection.execute(drop.encode(), columns_of(rows, len(names))).fetchall()

    def links_of(self, pages: Sequence[Sequence[object]]) -> Iterable[Row]:
        stored = page_links.of_pages(self.connection, pages)  # type: ignore[arg-type]  # integers
        return [(source, *link.key, link.last_seen) for (_, source), links in stored.items() for link in links.values()]

    def enter_links(self, changes: LinkChanges) -> None:
        self.upsert("link_history", HISTORY_COLUMNS, page_links.enter(self.connection, changes))

    def stored_links(self, pages: Iterable[PageKey]) -> dict[PageKey, StoredLinks]:
        return page_links.of_pages(self.connection, pages)

    def store_links(self, pages: Mapping[PageKey, StoredLinks]) -> None:
        page_links.replace(self.connection, pages)


def copy_rows(connection: Connection, table: str, columns: str, rows: Iterable[Sequence[object]]) -> None:
    """Inserts rows by COPY. columns: names separated by `, `. COPY takes a third of the time of INSERT; its binary
    format saves a little more, and a third of our own CPU time.
    """
    names = columns.split(", ")
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)".encode()) as copy,
    ):
        copy.set_types([_BINARY[KINDS[table][name]] for name in names])
        for row in rows:
            copy.write_row(row)


_BINARY = {"smallint": "int2", "bigint": "int8", "text": "text", "float8": "float8", "bytea": "bytea"}


def _last_of(rows: Sequence[Sequence[object]], key: str) -> Sequence[Sequence[object]]:
    """Last row of each key, which is in the first columns: COPY and upserts allow no duplicates."""
    width = key.count(",") + 2
    return list({tuple(row[:width]): row for row in rows}.values())


def _unnest(table: str, columns: str) -> str:
    """SQL for rows given as arrays, one per column, starting with the shard."""
    names = ["shard", *columns.split(", ")]
    return f"unnest({', '.join(f'%s::{KINDS[table][name]}[]' for name in names)}) k({', '.join(names)})"


def translate(statement: str) -> bytes:
    """A shared statement in psycopg's syntax. CROSS JOIN: SQLite's order of a join, which PostgreSQL plans itself."""
    if "segment_of(" in statement:
        statement = _SEGMENTS + _SEGMENT_OF.sub(_SEGMENT, statement)
    return statement.replace("CROSS JOIN", "JOIN").replace("%", "%%").replace("?", "%s").encode()


class SessionStatements:
    """`store.statements.Database` of a session."""

    dialect = POSTGRES

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, action: Callable[[Statements], T]) -> T:
        return self.session.run(lambda connection: action(PostgresStatements(connection)))

    def read(self, action: Callable[[Statements], T]) -> T:
        return self.session.read(lambda connection: action(PostgresStatements(connection)))

    def close(self) -> None:
        self.session.close()


def database_queue(session: Session) -> JobQueue:
    """The jobs of a collection whose tables exist. session: closed with the queue.

    The times passed to the queue should come from `DatabaseClock`. All operations are idempotent, so that they can be
    repeated after a failure of the server.
    """
    return JobQueue(SessionStatements(session))


class DatabaseClock:
    """A `model.ports.Clock` with the time of the database, shared by all machines."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def now(self) -> float:
        row = self._session.run(
            lambda connection: connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        )
        return float(str(row[0])) if row else 0.0

    def monotonic(self) -> float:
        return time.monotonic()
