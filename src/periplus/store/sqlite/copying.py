"""How do the rows of a collection leave its file, and enter another one, when the collection moves?"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from periplus.model.archive import Exchange
from periplus.model.web import SiteKey, Url
from periplus.store.bodies import BodyCodec
from periplus.store.heads import unpack_head
from periplus.store.moving import OWN_META, MovedBody, MovedTable, Row, exact
from periplus.store.sqlite.contents import Contents
from periplus.store.sqlite.reading import rows as streamed
from periplus.urls.scope import site_key

BODIES_AT_ONCE = 100
_OF_HOST = "LEFT JOIN host h ON h.id = {} LEFT JOIN site s ON s.id = h.site_id"
_OF_URL = "LEFT JOIN url u ON u.id = {} " + _OF_HOST.format("u.host_id")
_WAY = {  # from a table's rows to the site whose shard they belong to
    "site": "LEFT JOIN site s ON s.id = t.id", "host": "LEFT JOIN site s ON s.id = t.site_id",
    "dictionary": "LEFT JOIN site s ON s.dictionary_id = t.id",
    "family": _OF_HOST.format("t.host_id"), "doubtful": _OF_HOST.format("t.host_id"), "shown": _OF_HOST.format("t.host_id"),
    "url": _OF_HOST.format("t.host_id"), "queue": _OF_HOST.format("t.host_id"),
    "look": "LEFT JOIN visit v ON v.id = t.visit_id " + _OF_URL.format("v.url_id"), "visit": _OF_URL.format("t.url_id"),
} | dict.fromkeys(("link", "bad_link", "link_history"), _OF_URL.format("t.source")) | dict.fromkeys(
    ("start", "alias", "page", "url_history", "page_history", "freshness", "verdict"), _OF_URL.format("t.url_id"))  # fmt: skip
_SHARD = {"robots": "shard_of_address(t.origin || '/')", "visit": "CASE WHEN t.url_id = 0 THEN shard_of_address(t.text) ELSE shard_of(s.key) END"}
# Of a worker that was killed the last request may have started this very moment.
_NEXT_AT = "CASE WHEN t.lease_by IS NULL THEN t.next_at ELSE max(t.next_at, CAST(strftime('%s', 'now') AS INTEGER) + 1 + t.delay_s / t.rate) END"
_BODIES = """
WITH holder AS MATERIALIZED (
    SELECT o.body_id, min(o.url_id) AS url_id, group_concat(DISTINCT shard_of(s.key)) AS shards
    FROM (SELECT body_id, url_id FROM page UNION ALL SELECT body_id, url_id FROM page_history) o
    JOIN url u ON u.id = o.url_id JOIN host h ON h.id = u.host_id JOIN site s ON s.id = h.site_id WHERE o.body_id IS NOT NULL GROUP BY o.body_id),
last AS MATERIALIZED (SELECT url_id, max(id) AS id FROM visit WHERE outcome = 'fetched' AND purpose = 'page' AND url_id <> 0 GROUP BY url_id)
SELECT b.id, b.md5, b.size, b.text, b.blocks, b.data, b.dictionary_id, coalesce(o.shards, '0'), coalesce(u.text, ''),
    coalesce(v.started, u.visited, 0.0), coalesce(v.run_id, 0), coalesce(v.status, 200), coalesce(v.address, ''), v.head,
    x.media_type, x.data
FROM body b LEFT JOIN xml x ON x.body_id = b.id LEFT JOIN holder o ON o.body_id = b.id LEFT JOIN url u ON u.id = o.url_id
    LEFT JOIN last l ON l.url_id = o.url_id LEFT JOIN visit v ON v.id = l.id ORDER BY b.id
"""


def know_shards(connection: sqlite3.Connection, shard_of: Callable[[SiteKey], int]) -> None:
    """Lets the statements here ask for shards. Of what has no known site it is 0."""
    of_site = lru_cache(maxsize=65_536)(lambda key: 0 if key is None else shard_of(SiteKey(key)))

    connection.create_function("shard_of", 1, of_site, deterministic=True)
    connection.create_function("shard_of_address", 1, lambda text: shard_of(site_key(Url(text))) if text else 0)


def rows_out(connection: sqlite3.Connection, table: MovedTable) -> Iterator[Row]:
    """The table's rows, exact, each behind its shard; needs `know_shards`."""
    make = exact(table.kinds)
    for row in streamed(connection.execute(_select(table, shards=True))):
        yield (row[0], *make(row[1:]))


def rows_back(connection: sqlite3.Connection, table: MovedTable) -> Iterator[Row]:
    """The same without shards, of a file that was just filled."""
    return map(exact(table.kinds), streamed(connection.execute(_select(table, shards=False))))


def _select(table: MovedTable, *, shards: bool) -> str:
    name = table.name
    columns = ", ".join(_NEXT_AT if shards and (name, column) == ("host", "next_at") else f"t.{column}" for column in table.columns)
    where = f" WHERE t.name NOT IN ({', '.join(repr(own) for own in sorted(OWN_META))})" if name == "meta" else ""
    shard = _SHARD.get(name) or ("shard_of(s.key)" if name in _WAY else "0")
    return f"SELECT {f'{shard}, ' if shards else ''}{columns} FROM {name} t {_WAY.get(name, '') if shards else ''}{where}"


def bodies_out(connection: sqlite3.Connection) -> Iterator[MovedBody]:
    """What was kept of pages, in the order of ids; needs `know_shards`."""
    contents = Contents(connection)
    cursor = connection.execute(_BODIES)
    while block := cursor.fetchmany(BODIES_AT_ONCE):
        for row in block:
            body_id, md5, size, text, blocks, data, dictionary_id, shards, url, started, run_id, status, address, head, media_type, xml = row
            content = contents.restore(data, dictionary_id) if data else b""
            said = (Url(url), "page", started, 0.0, "fetched", status, "", address, unpack_head(head))
            exchange = Exchange(0, run_id, *said, content, "", body_id)
            numbers = tuple(int(shard) for shard in shards.split(","))
            yield MovedBody(body_id, md5, size, text, blocks, data, dictionary_id, content, numbers, _xml(media_type, xml), exchange)


def bodies_back(connection: sqlite3.Connection) -> Iterator[Row]:
    """What arrived of bodies, as `MovedBody.row` has it."""
    contents = Contents(connection)
    find = "SELECT b.id, b.md5, b.size, b.text, b.blocks, b.data, b.dictionary_id, x.media_type, x.data FROM body b LEFT JOIN xml x ON x.body_id = b.id"
    cursor = connection.execute(find)
    while block := cursor.fetchmany(BODIES_AT_ONCE):
        for *body, data, dictionary_id, media_type, xml in block:
            yield (*body, contents.restore(data, dictionary_id) if data else b"", _xml(media_type, xml))


def _xml(media_type: str | None, data: bytes | None) -> tuple[str, bytes] | None:
    return None if media_type is None or data is None else (media_type, data)


def enter(connection: sqlite3.Connection, table: MovedTable, rows: Iterable[Row]) -> None:
    """Within a transaction, into an empty table."""
    marks = ", ".join("?" * len(table.columns))
    connection.executemany(f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({marks})", rows)


def enter_bodies(connection: sqlite3.Connection, bodies: Iterable[MovedBody]) -> None:
    """Within a transaction, after `dictionary`. Bytes that lay in segments are packed without a dictionary."""
    codec = BodyCodec()
    insert = "INSERT INTO body (id, md5, dictionary_id, size, data, text, blocks) VALUES (?, ?, ?, ?, ?, ?, ?)"
    for body in bodies:
        data = body.data or (codec.pack(body.content, None) if body.content else b"")
        connection.execute(insert, (body.id, body.md5, body.dictionary_id if body.data else None, body.size, data, body.text, body.blocks))
        if body.xml:
            connection.execute("INSERT INTO xml (body_id, media_type, data) VALUES (?, ?, ?)", (body.id, *body.xml))


def complete(connection: sqlite3.Connection, seq: int) -> None:
    """What this database alone keeps. seq: of the last entry of a to-do list."""
    connection.execute("UPDATE site SET fetched = coalesce((SELECT sum(h.fetched) FROM host h WHERE h.site_id = site.id), 0)")
    connection.execute("UPDATE meta SET value = ? WHERE name = 'seq'", (str(seq),))


def last_seq(connection: sqlite3.Connection) -> int:
    found = connection.execute("SELECT max(CAST(value AS INTEGER), (SELECT coalesce(max(seq), 0) FROM queue)) FROM meta WHERE name = 'seq'").fetchone()
    return int(found[0])


def columns_of(connection: sqlite3.Connection, table: str) -> Sequence[str]:
    described: Any = connection.execute(f"SELECT * FROM {table} LIMIT 0").description
    return [column[0] for column in described]


def rules_in_force(connection: sqlite3.Connection) -> str:
    """The rules for URLs that were applied, in one spelling; see `rule_file.rules_key`."""
    found = connection.execute("SELECT value FROM meta WHERE name = 'rules'").fetchone()
    return str(found[0]) if found else ""


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    with connection:  # commits, or rolls back what raised
        connection.execute("BEGIN IMMEDIATE")
        yield
