"""How do URLs that an older schema named by their spelling get the id of what all their spellings name? (`urls.canonical.identity`)"""

from __future__ import annotations

import sqlite3

from periplus.model.web import Url
from periplus.urls.canonical import url_id

_COLUMNS = (  # that hold ids of URLs, in tables of each schema
    ("url", "id"), ("start", "url_id"), ("alias", "url_id"), ("alias", "page_id"), ("queue", "url_id"), ("page", "url_id"), ("visit", "url_id"),
    ("link", "source"), ("link", "target"), ("bad_link", "source"), ("url_history", "url_id"), ("page_history", "url_id"), ("link_history", "source"),
    ("link_history", "target"), ("freshness", "url_id"), ("issue", "url_id"), ("issue", "related_id"),
)  # fmt: skip


def rename(connection: sqlite3.Connection) -> None:
    """Enters the new ids, in the transaction of the caller. A URL of which another spelling has the id already keeps its old one."""
    odd = "SELECT id, text FROM url WHERE instr(text, '%') OR instr(text, './') OR instr(text, '.:')"
    new = {old: url_id(Url(text)) for old, text in connection.execute(odd)}
    connection.execute("CREATE TEMP TABLE renamed (old INTEGER PRIMARY KEY, new INTEGER NOT NULL UNIQUE)")
    connection.executemany("INSERT OR IGNORE INTO renamed VALUES (?, ?)", [(old, number) for old, number in new.items() if number != old])
    connection.execute("DELETE FROM renamed WHERE new IN (SELECT id FROM url)")
    if connection.execute("SELECT 1 FROM renamed").fetchone():
        for table, column in _COLUMNS:
            renamed = f"(SELECT new FROM renamed WHERE old = {column})"
            connection.execute(f"UPDATE {table} SET {column} = {renamed} WHERE {column} IN (SELECT old FROM renamed)")
    connection.execute("DROP TABLE renamed")
