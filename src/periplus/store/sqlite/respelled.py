"""Ids of URLs that an older schema named by their spelling: see `store.respelled`."""

from __future__ import annotations

import sqlite3

from periplus.store.respelled import COLUMNS, new_ids


def rename(connection: sqlite3.Connection) -> None:
    """Enters the new ids, in the transaction of the caller."""
    urls = connection.execute("SELECT id, text FROM url WHERE instr(text, '%') OR instr(text, './') OR instr(text, '.:')")
    connection.execute("CREATE TEMP TABLE renamed (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)")
    connection.executemany("INSERT INTO renamed VALUES (?, ?)", new_ids(urls))
    connection.execute("DELETE FROM renamed WHERE new IN (SELECT id FROM url)")
    if connection.execute("SELECT 1 FROM renamed").fetchone():
        for table, column in COLUMNS:
            new = f"(SELECT new FROM renamed WHERE old = {column})"
            connection.execute(f"UPDATE {table} SET {column} = {new} WHERE {column} IN (SELECT old FROM renamed)")
    connection.execute("DROP TABLE renamed")
