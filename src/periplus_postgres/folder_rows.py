"""Copies rows of a collection in a folder in and out: moves, exchanges for archives, and imported completions."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from periplus.files import USER_FILES, FolderFiles, is_user_file
from periplus.model.collection import Exchange
from periplus.model.web import SiteKey, Url
from periplus.store.bodies import BodyCodec, unpack_headers
from periplus.store.sqlite import page_links, reading
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.sqlite.schema import build
from periplus.store.statements import shard_of
from periplus.urls.scope import site_key
from periplus.values import Row
from periplus_postgres import schema
from periplus_postgres.moved_tables import BODY_COLUMNS, OWN_META, OWNERS, TABLES, MovedBody, MovedTable, exact
from periplus_postgres.page_links import LINK_KINDS

BODIES_AT_ONCE = 100
_OF_HOST = "LEFT JOIN host h ON h.id = {} LEFT JOIN site s ON s.id = h.site_id"
_OF_URL = "LEFT JOIN url u ON u.id = {} " + _OF_HOST.format("u.host_id")
_WAY = {  # joins from a table to the site that determines the shard
    "site": "LEFT JOIN site s ON s.id = t.id",
    "host": "LEFT JOIN site s ON s.id = t.site_id",
    "dictionary": "LEFT JOIN site s ON s.dictionary_id = t.id",
    "look": "LEFT JOIN visit v ON v.id = t.visit_id " + _OF_URL.format("v.url_id"),
    "visit": _OF_URL.format("t.url_id"),
    **{table: (_OF_HOST if column == "host_id" else _OF_URL).format(f"t.{column}") for table, column in OWNERS.items()},
}
_SHARD = {
    "robots": "shard_of_address(t.origin || '/')",
    "visit": "CASE WHEN t.url_id = 0 THEN shard_of_address(t.text) ELSE shard_of(s.key) END",
    "look": "CASE WHEN v.url_id = 0 THEN shard_of_address(v.text) ELSE shard_of(s.key) END",
}
_NOT_OWN = f"name NOT IN ({', '.join(repr(own) for own in sorted(OWN_META))})"
# A killed worker may have sent its last request just now.
NEXT_AT = (
    "CASE WHEN t.lease_by IS NULL THEN t.next_at ELSE max(t.next_at, CAST(strftime('%s', 'now') AS "
    "INTEGER) + 1 + t.delay_s / t.rate) END"
)
_BODIES = f"SELECT {BODY_COLUMNS} FROM body b LEFT JOIN xml x ON x.body_id = b.id"
_HELD_BODIES = f"""
WITH holder AS MATERIALIZED (
    SELECT o.body_id, min(o.url_id) AS url_id, group_concat(DISTINCT shard_of(s.key)) AS shards
    FROM (SELECT body_id, url_id FROM page UNION ALL SELECT body_id, url_id FROM page_history) o
    JOIN url u ON u.id = o.url_id JOIN host h ON h.id = u.host_id JOIN site s ON s.id = h.site_id WHERE o.body_id IS NOT NULL GROUP BY o.body_id),
last AS MATERIALIZED (SELECT url_id, max(id) AS id FROM visit WHERE outcome = 'fetched' AND purpose = 'page' AND url_id <> 0 GROUP BY url_id)
SELECT {BODY_COLUMNS}, coalesce(o.shards, '0'), coalesce(v.run_id, 0), coalesce(u.text, ''), coalesce(v.started, u.visited, 0.0),
    coalesce(v.status, 200), coalesce(v.address, ''), v.head
FROM body b LEFT JOIN xml x ON x.body_id = b.id LEFT JOIN holder o ON o.body_id = b.id LEFT JOIN url u ON u.id = o.url_id
    LEFT JOIN last l ON l.url_id = o.url_id LEFT JOIN visit v ON v.id = l.id ORDER BY b.id
"""  # noqa: E501
_BODY = "id, digest, size, blocks, data, dictionary_id, text"
_KINDS = {"smallint": "int", "bigint": "int", "float8": "float", "text": "text", "bytea": "bytes"}
_NOT_TO_MOVE = {"host": frozenset({"lease_by"})}


class FolderRows:
    """`moved_tables.RowStore` of a collection in a folder, in portable form.

    has_shards: computes the shards of rows and bodies, which a database needs; otherwise they are 0.
    """

    def __init__(self, connection: sqlite3.Connection, *, has_shards: bool = False) -> None:
        self.connection, self._has_shards = connection, has_shards
        if has_shards:
            # rows without a known site have shard 0
            of_site = lru_cache(maxsize=65_536)(lambda key: 0 if key is None else shard_of(SiteKey(key)))
            of_address = lambda text: shard_of(site_key(Url(text))) if text else 0  # noqa: E731
            connection.create_function("shard_of", 1, of_site, deterministic=True)
            connection.create_function("shard_of_address", 1, of_address)

    def tables(self) -> list[MovedTable]:
        """Tables to move, with the columns that both databases have."""
        tables = []
        for name in TABLES:
            own = set(columns_of(self.connection, name)) - _NOT_TO_MOVE.get(name, frozenset())
            kinds = LINK_KINDS if name == "link" else schema.KINDS[name]
            kinds = {column: _KINDS[kind] for column, kind in kinds.items() if column in own}
            if kinds:  # the table `file` exists only during a move
                tables.append(MovedTable(name, tuple(kinds), tuple(kinds.values())))
        return tables

    def rows(self, table: MovedTable) -> Iterator[Row]:
        name, make = table.name, exact(table.kinds)
        columns = ", ".join(
            NEXT_AT if self._has_shards and (name, column) == ("host", "next_at") else f"t.{column}"
            for column in table.columns
        )
        where = f" WHERE t.{_NOT_OWN}" if name == "meta" else ""
        shard, way = "0", ""
        if self._has_shards and name in (_SHARD | _WAY):
            shard, way = _SHARD.get(name, "shard_of(s.key)"), _WAY.get(name, "")
        find = f"SELECT {shard}, {columns} FROM {name} t {way}{where}"
        for row in reading.rows(self.connection.execute(find)):
            yield (row[0], *make(row[1:]))

    def bodies(self) -> Iterator[MovedBody]:
        contents = SqliteReader(self.connection)
        cursor = self.connection.execute(_HELD_BODIES if self._has_shards else _BODIES)
        while block := cursor.fetchmany(BODIES_AT_ONCE):
            for row in block:
                content = contents.restore(*row[6:9]) if row[6] else b""
                body = MovedBody(*(*row[:9], content))
                if self._has_shards:
                    shards, run_id, url, started, status, address, head = row[9:]
                    fetched = (Url(url), "page", started, 0.0, "fetched", status, "", address, unpack_headers(head))
                    exchange = Exchange(0, run_id, *fetched, content, "", body.id)
                    body = body._replace(shards=tuple(map(int, shards.split(","))), exchange=exchange)
                yield body

    def clear(self, name: str) -> None:
        """Deletes the rows of a table, except what belongs to one database."""
        self.connection.execute(f"DELETE FROM {_base_table(name)}{f' WHERE {_NOT_OWN}' if name == 'meta' else ''}")

    def enter(self, table: MovedTable, rows: Iterable[Row]) -> None:
        """Inserts or replaces rows. Links: grouped by page, only for pages without links."""
        if table.name == "link":
            page_links.fill(self.connection, (row[1:] for row in rows))
            return
        self._insert(table.name, ", ".join(table.columns), (row[1:] for row in rows))

    def enter_bodies(self, bodies: Iterable[MovedBody]) -> None:
        """Inserts or replaces bodies. Bytes from segments are compressed without a dictionary."""
        codec = BodyCodec()
        for body in bodies:
            data = body.data or (codec.pack(body.content, None) if body.content else b"")
            dictionary_id = body.dictionary_id if body.data else None
            self._insert("body", _BODY, [(*body[:4], data, dictionary_id, body.text)])
            if body.xml:
                self._insert("xml", "body_id, media_type, data", [(body.id, body.media_type, body.xml)])

    def _insert(self, name: str, columns: str, rows: Iterable[Row]) -> None:
        marks = ", ".join("?" * (columns.count(",") + 1))
        self.connection.executemany(f"INSERT OR REPLACE INTO {name} ({columns}) VALUES ({marks})", rows)


def _base_table(name: str) -> str:
    return "page_links" if name == "link" else name


def complete(connection: sqlite3.Connection, seq: int) -> None:
    """Finishes a move: sets values that only SQLite has. seq: number of the last queue entry."""
    connection.execute(
        "UPDATE site SET fetched = coalesce((SELECT sum(h.fetched) FROM host h WHERE h.site_id = site.id), 0)"
    )
    connection.execute("UPDATE meta SET value = ? WHERE name = 'seq'", (str(seq),))


def last_seq(connection: sqlite3.Connection) -> int:
    row = connection.execute(
        "SELECT max(CAST(value AS INTEGER), (SELECT coalesce(max(seq), 0) FROM queue)) FROM meta WHERE name = 'seq'"
    ).fetchone()
    return int(row[0])


def columns_of(connection: sqlite3.Connection, table: str) -> Sequence[str]:
    """Columns of a table; empty if it does not exist."""
    return [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]


def foreign_tables(connection: sqlite3.Connection) -> list[str]:
    """Tables of a collection that a new one would not have."""
    names = "SELECT name FROM sqlite_schema WHERE type = 'table'"
    with contextlib.closing(sqlite3.connect(":memory:")) as new:
        build(new)
        own = set(new.execute(names))
    return sorted(str(row[0]) for row in connection.execute(names) if row not in own)


def load_files(connection: sqlite3.Connection, folder: Path) -> None:
    """Creates the temporary table `file` with USER_FILES of the folder. changed: modification time in nanoseconds since
    the epoch.
    """
    paths = [(name, folder / name) for name in FolderFiles(folder).names(USER_FILES)]
    rows = [(name, path.read_bytes(), path.stat().st_mtime_ns) for name, path in paths]
    (is_reader,) = connection.execute("PRAGMA query_only").fetchone()
    connection.execute("PRAGMA query_only = OFF")  # a read-only connection cannot create a temporary table
    connection.execute("CREATE TEMP TABLE file (name TEXT PRIMARY KEY, data BLOB NOT NULL, changed INTEGER NOT NULL)")
    connection.executemany("INSERT INTO file VALUES (?, ?, ?)", rows)
    connection.execute(f"PRAGMA query_only = {is_reader}")


def write_files(connection: sqlite3.Connection, folder: Path) -> None:
    """Writes the content of the table `file` to USER_FILES of the folder. Each file is replaced atomically; equal files
    are not written.

    Other names are ignored, since any user of the database may have written them. Raises StoreError.
    """
    files, rows = FolderFiles(folder), connection.execute("SELECT name, data, changed FROM file").fetchall()
    for name in set(files.names(USER_FILES)).difference(name for name, *_ in rows):
        files.remove(name)
    for name, data, changed in rows:
        if is_user_file(name):
            if files.read(name) != data:
                files.write(name, data)
            os.utime(folder / name, ns=(changed, changed))


def rules_in_force(connection: sqlite3.Connection) -> str:
    """The URL rules in force, in canonical spelling; see `parameters.rules_key`."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'rules'").fetchone()
    return str(row[0]) if row else ""


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    with connection:  # commits, or rolls back after an exception
        connection.execute("BEGIN IMMEDIATE")
        yield
