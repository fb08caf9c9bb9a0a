"""Collections as earlier versions wrote them."""

import sqlite3

from periplus.model.page import Publication

LINK = """
CREATE TABLE link (
    source INTEGER NOT NULL, target INTEGER NOT NULL, kind TEXT NOT NULL, position TEXT NOT NULL, nofollow INTEGER NOT NULL,
    anchor TEXT NOT NULL, fragments TEXT NOT NULL, times INTEGER NOT NULL, first_seen REAL NOT NULL, last_seen REAL NOT NULL,
    PRIMARY KEY (source, target, kind, position, nofollow)) WITHOUT ROWID;
"""  # noqa: E501


def as_schema_7(connection: sqlite3.Connection) -> None:
    """Pages without the types of what they describe."""
    connection.executescript(
        "DROP VIEW pages; DROP TABLE outbox; ALTER TABLE page DROP COLUMN types;"
        "UPDATE meta SET value = '7' WHERE name = 'schema';"
    )


def as_schema_6(connection: sqlite3.Connection) -> None:
    """Pages without author and dates, and without the view that shows them."""
    drops = (f"ALTER TABLE page DROP COLUMN {name};" for name in Publication._fields)
    connection.executescript(
        "DROP VIEW pages; DROP TABLE outbox;" + "".join(drops) + "UPDATE meta SET value = '6' WHERE name = 'schema';"
    )


def as_schema_5(connection: sqlite3.Connection) -> None:
    """A row a link, and a table of them."""
    as_schema_6(connection)
    links = connection.execute("SELECT * FROM link").fetchall()
    connection.executescript(f"DROP VIEW link; DROP TABLE page_links; {LINK}")
    connection.executemany("INSERT INTO link VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", links)
    connection.execute("UPDATE meta SET value = '5' WHERE name = 'schema'")
    connection.commit()


def with_rows_a_link(connection):
    """A collection in PostgreSQL before its links were columns."""
    connection.execute("CREATE TABLE link_rows AS SELECT * FROM link")
    connection.execute("DROP VIEW link; DROP TABLE page_links; ALTER TABLE link_rows RENAME TO link")
    connection.execute("DELETE FROM migration WHERE name LIKE '%-page-links'")
