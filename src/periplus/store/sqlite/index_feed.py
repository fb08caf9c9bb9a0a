"""Pages that the search index of a collection has to follow, and the state of that index."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from periplus.errors import StoreError
from periplus.store import changes
from periplus.store.bodies import unpack_parts
from periplus.store.crawl_reads import PageBlocks
from periplus.store.notes import note, put_note
from periplus.store.reader import CollectionReader
from periplus.store.sqlite import schema
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.statements import Statements

# A folder records changes of pages by triggers, and stores marks of their blocks in its table `page`. A database does
# neither, since each of its readers may have an index: the stamps of all its pages are compared with those of a small
# file beside the index, which also has the marks, whenever the version of the collection is another one.

FILE: Final = "pages.db"
_FORMAT: Final = 1  # in user_version: a file of another format is emptied
_TABLES = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE page (url_id INTEGER PRIMARY KEY, stamp INTEGER NOT NULL, body_id INTEGER, parts BLOB);
{changes.FEED_TABLES}PRAGMA user_version = {_FORMAT};
"""
_STAMPS = "SELECT p.url_id, p.fetched, p.body_id, u.reason FROM page p JOIN url u ON u.id = p.url_id"
_MISSING = "url_id NOT IN (SELECT url_id FROM temp.stored)"
_DIFFERENCES = "SELECT s.* FROM temp.stored s LEFT JOIN page p ON p.url_id = s.url_id WHERE p.stamp IS NOT s.stamp"


class IndexFeed:
    """What an index of a collection follows. folder: of the index; records: has the position of the index, changes of
    pages, marks, and evidence of sites.
    """

    def __init__(self, folder: Path, reader: CollectionReader, records: SqliteReader) -> None:
        self.folder, self.reader, self.records = folder, reader, records

    def is_current(self) -> bool:
        """Whether the records have all changes."""
        return True

    def update(self) -> None:
        """Records what changed. Raises StoreError."""

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Statements]:
        """Changes the records in one transaction."""
        with (
            contextlib.closing(schema.WriteLock(self.folder)) as lock,
            lock.transaction(self.records.connection),
        ):
            yield self.records.statements


@contextlib.contextmanager
def folder_feed(folder: Path, reader: CollectionReader | None) -> Iterator[IndexFeed]:
    """See `homes.CollectionStore.index_feed`."""
    if isinstance(reader, SqliteReader):
        yield IndexFeed(folder, reader, reader)
    else:
        with contextlib.closing(schema.connect(folder)) as connection:
            records = SqliteReader(connection)
            yield IndexFeed(folder, records, records)


class DatabaseFeed(IndexFeed):
    """Of a collection in a database. version: changes with each commit to it."""

    def __init__(
        self, folder: Path, reader: CollectionReader, records: SqliteReader, version: Callable[[], str]
    ) -> None:
        super().__init__(folder, reader, records)
        self._version = version
        reader.with_marks = self.with_marks

    def is_current(self) -> bool:
        return note(self.records.statements, "version") == self._version()

    def update(self) -> None:
        if self.is_current():
            return
        with self.reader.snapshot():
            version, key = self._version(), changes.collection_key(self.reader.statements)
            ((as_of,),) = self.reader.statements.rows("SELECT CAST(extract(epoch FROM now()) AS text)")
            notes = {"version": version, "collection": key, "as_of": as_of}
            notes["read"] = str(sum(record.fetched for record in self.reader.runs()))
            connection = self.records.connection
            connection.execute("CREATE TEMP TABLE IF NOT EXISTS stored (url_id INTEGER PRIMARY KEY, stamp, body_id)")
            stamps = (
                (url_id, changes.stamp_of(fetched, body_id, reason), body_id)
                for url_id, fetched, body_id, reason in self.reader.stream(_STAMPS)
            )
            with self.transaction() as records:
                records.change("DELETE FROM temp.stored")
                records.change_rows("INSERT INTO temp.stored VALUES (?, ?, ?)", stamps)
                if note(records, "collection") != key:  # its sites have other numbers
                    for table in ("evidence", "change", "follower", "page"):
                        records.change(f"DELETE FROM {table}")
                differ = f"SELECT url_id FROM page WHERE {_MISSING} UNION SELECT url_id FROM ({_DIFFERENCES})"
                changes.note_from(records, differ)
                records.change(f"DELETE FROM page WHERE {_MISSING}")
                records.change(f"INSERT OR REPLACE INTO page (url_id, stamp, body_id) {_DIFFERENCES}")
                for name, value in notes.items():
                    put_note(records, name, value)

    def with_marks(self, page: PageBlocks) -> PageBlocks:
        """The page with its marks if it is still as it was marked, else without."""
        find = "SELECT parts FROM page WHERE url_id = ? AND stamp = ? AND parts IS NOT NULL"
        rows = self.records.statements.rows(find, (page.url_id, changes.stamp_of_page(page)))
        return page._replace(parts=unpack_parts(rows[0][0]) if rows else None)


@contextlib.contextmanager
def open_records(folder: Path) -> Iterator[SqliteReader]:
    """Opens the records of a collection in a database, which are made if they do not exist. Raises StoreError."""
    try:
        with contextlib.closing(sqlite3.connect(folder / FILE, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            with contextlib.closing(schema.WriteLock(folder)) as lock, lock.hold():
                if connection.execute("PRAGMA user_version").fetchone() != (_FORMAT,):
                    connection.executescript(_TABLES)
            yield SqliteReader(connection)
    except sqlite3.Error as error:
        raise StoreError(f"{folder / FILE} cannot be used: {error}. Delete {folder}; it is made again.") from error
