"""Ids of URLs that an older version named by their spelling: see `store.respelled`."""

from __future__ import annotations

from periplus.store.postgres.connection import Connection
from periplus.store.respelled import COLUMNS, new_ids

_ALSO = (("inbox", "url_id"), ("inbox", "page_id"), ("doubtful", "url_id"), ("verdict", "url_id"))
_SPELLED = r"SELECT id, text FROM url WHERE strpos(text, '%') > 0 AND text !~ '^https?://[^/]*\.(:[0-9]+)?/'"  # a host with a last dot lies in another shard


def rename(connection: Connection) -> None:
    """Enters the new ids, in the transaction of the caller."""
    renamed = new_ids(connection.execute(_SPELLED.encode()).fetchall())
    connection.execute("CREATE TEMP TABLE renamed (old bigint PRIMARY KEY, new bigint NOT NULL) ON COMMIT DROP")
    connection.cursor().executemany("INSERT INTO renamed VALUES (%s, %s)", renamed)
    connection.execute("DELETE FROM renamed WHERE new IN (SELECT id FROM url UNION ALL SELECT url_id FROM inbox)")
    if connection.execute("SELECT 1 FROM renamed").fetchone():
        for table, column in (*COLUMNS, *_ALSO):
            connection.execute(f"UPDATE {table} t SET {column} = r.new FROM renamed r WHERE t.{column} = r.old".encode())
