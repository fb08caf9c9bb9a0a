"""The tables of a collection in SQLite, and opening, creating and locking its file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from pathlib import Path

from periplus.children import process_lives
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.features import stored_tables
from periplus.model.page import Publication
from periplus.model.visit import STATE_OF
from periplus.store import changes
from periplus.store.rows import LinkChanges, StoredLinks
from periplus.store.sqlite import page_links
from periplus.store.statements import SQLITE, PageKey, Row
from periplus.store.url_state import FIELDS
from periplus.store.views import CREATE_VIEWS

# Contents of the history tables: docs/decisions/0003.
#
# url_history is written by a trigger: the row before the first change in a run. URLs first seen in the same run have no
# history. Changes between two runs (new URL rules) belong to the next run.

HISTORY = f"""
CREATE TABLE url_history (
    url_id INTEGER NOT NULL, run_id INTEGER NOT NULL, reason TEXT NOT NULL, rule TEXT NOT NULL, status INTEGER, depth INTEGER,
    PRIMARY KEY (url_id, run_id)) WITHOUT ROWID;
CREATE TABLE page_history (url_id INTEGER NOT NULL, run_id INTEGER NOT NULL, {", ".join(FIELDS)}, PRIMARY KEY (url_id, run_id));
CREATE TABLE link_history (
    source INTEGER NOT NULL, target INTEGER NOT NULL, kind TEXT NOT NULL, position TEXT NOT NULL, nofollow INTEGER NOT NULL,
    run_id INTEGER NOT NULL, anchor TEXT NOT NULL, times INTEGER NOT NULL, first_seen REAL NOT NULL, last_seen REAL NOT NULL,
    PRIMARY KEY (source, target, kind, position, nofollow, run_id)) WITHOUT ROWID;
CREATE TABLE freshness (url_id INTEGER PRIMARY KEY, checked REAL NOT NULL, interval_s REAL NOT NULL, gone_since REAL);
CREATE TABLE run_count (run_id INTEGER NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (run_id, name)) WITHOUT ROWID;
CREATE TRIGGER url_keeps_history AFTER UPDATE OF reason, rule, status ON url
WHEN (OLD.reason <> NEW.reason OR OLD.rule <> NEW.rule OR OLD.status IS NOT NEW.status)
    AND OLD.first_seen < (SELECT CASE state WHEN 'running' THEN started ELSE 1e99 END FROM run ORDER BY id DESC LIMIT 1)
BEGIN
    INSERT OR IGNORE INTO url_history SELECT OLD.id, id + (state <> 'running'), OLD.reason, OLD.rule, OLD.status, OLD.depth
    FROM run ORDER BY id DESC LIMIT 1;
END;
"""  # noqa: E501


DATABASE = "collection.db"
SCHEMA_VERSION = 1
MOUNTS = Path("/proc/mounts")
BUSY_TIMEOUT_S = 60.0  # writers wait for the lock file; this is for readers during a checkpoint
AGAIN_S = 0.01
# errors that are not caused by the content of the file
_OF_THE_DISK = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN)
_ASK_THE_DISK = "Is the disk full, or the folder read-only?"
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs", "fuse.sshfs", "beegfs"}
)

# verdict: dead URLs that only a check requested: state after the check, and state after the crawl
_EVIDENCE_TABLES = """
CREATE TABLE verdict (
    url_id INTEGER PRIMARY KEY, reason TEXT NOT NULL, rule TEXT NOT NULL, status INTEGER NOT NULL,
    was TEXT NOT NULL, was_rule TEXT NOT NULL, was_status INTEGER);
CREATE INDEX queue_text ON queue (text) WHERE text IS NOT NULL;
CREATE INDEX visit_checked ON visit (text) WHERE purpose IN ('head', 'check');
CREATE TABLE look (
    visit_id INTEGER PRIMARY KEY, media_type TEXT NOT NULL, title TEXT NOT NULL, h1 TEXT NOT NULL, text TEXT NOT NULL, fragments TEXT NOT NULL);
CREATE TABLE issue (
    run_id INTEGER NOT NULL, code TEXT NOT NULL, url_id INTEGER NOT NULL, related_id INTEGER NOT NULL,
    PRIMARY KEY (run_id, code, url_id, related_id)) WITHOUT ROWID;
"""  # noqa: E501
_CHECK_TABLES = """
CREATE TABLE certificate (
    host TEXT PRIMARY KEY, seen REAL NOT NULL, ends REAL NOT NULL, old_tls INTEGER NOT NULL, fault TEXT NOT NULL);
CREATE TABLE page_note (digest BLOB PRIMARY KEY, version INTEGER NOT NULL, notes TEXT NOT NULL);
"""
_TRAP_TABLES = """
CREATE TABLE doubtful (url_id INTEGER PRIMARY KEY, host_id INTEGER NOT NULL, doubt INTEGER NOT NULL);
CREATE INDEX doubtful_host ON doubtful (host_id);
CREATE TABLE shown (host_id INTEGER NOT NULL, first INTEGER NOT NULL, keys BLOB NOT NULL, PRIMARY KEY (host_id, first)) WITHOUT ROWID;
"""  # noqa: E501
_RENDERING = """
CREATE TABLE rendering (
    url_id INTEGER PRIMARY KEY, took_s REAL NOT NULL, requests INTEGER NOT NULL, refused INTEGER NOT NULL, part_bytes TEXT NOT NULL,
    bounds TEXT NOT NULL, leads_to TEXT NOT NULL, paint_s REAL, shift REAL,
    sent_digest BLOB NOT NULL, sent_size INTEGER NOT NULL, sent BLOB NOT NULL, screenshot BLOB);
"""  # noqa: E501
_OUTBOX = """
CREATE TABLE outbox (id INTEGER PRIMARY KEY, part INTEGER NOT NULL, number INTEGER, message TEXT NOT NULL);
CREATE INDEX outbox_part ON outbox (part, number);
"""
SCHEMA_TABLES = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE run (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, starts TEXT NOT NULL, settings TEXT NOT NULL, seed INTEGER NOT NULL,
    started REAL NOT NULL, ended REAL, state TEXT NOT NULL, note TEXT NOT NULL DEFAULT '',
    fetched INTEGER NOT NULL DEFAULT 0, wire_bytes INTEGER NOT NULL DEFAULT 0);
CREATE TABLE start (url_id INTEGER PRIMARY KEY, added REAL NOT NULL);
CREATE TABLE site (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, fetched INTEGER NOT NULL DEFAULT 0, dictionary_id INTEGER);
CREATE TABLE host (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, site_id INTEGER NOT NULL,
    pending INTEGER NOT NULL DEFAULT 0, fetched INTEGER NOT NULL DEFAULT 0,
    next_at REAL NOT NULL DEFAULT 0, delay_s REAL NOT NULL DEFAULT 0.5, rate REAL NOT NULL DEFAULT 1,
    strikes INTEGER NOT NULL DEFAULT 0, answered INTEGER NOT NULL DEFAULT 0, waits_for TEXT NOT NULL DEFAULT '',
    down_in_run INTEGER NOT NULL DEFAULT 0, lease_by TEXT, epoch INTEGER NOT NULL DEFAULT 0);
CREATE INDEX host_ready ON host (next_at) WHERE pending > 0 AND lease_by IS NULL;
CREATE INDEX host_leased ON host (lease_by) WHERE lease_by IS NOT NULL;
CREATE INDEX host_site ON host (site_id) WHERE pending > 0;
CREATE TABLE worker (name TEXT PRIMARY KEY, pid INTEGER NOT NULL, joined REAL NOT NULL, lease_until REAL NOT NULL, in_hand INTEGER NOT NULL DEFAULT 0,
    host TEXT NOT NULL DEFAULT '', pages INTEGER NOT NULL DEFAULT 0, commits INTEGER NOT NULL DEFAULT 0, commit_s REAL NOT NULL DEFAULT 0);
CREATE TABLE robots (
    origin TEXT PRIMARY KEY, status INTEGER NOT NULL, cause TEXT NOT NULL, body BLOB NOT NULL, fetched REAL NOT NULL, expires REAL NOT NULL);
CREATE TABLE family (host_id INTEGER NOT NULL, key TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (host_id, key)) WITHOUT ROWID;
CREATE TABLE reason (name TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE url (
    id INTEGER PRIMARY KEY, text TEXT NOT NULL, host_id INTEGER NOT NULL, reason TEXT NOT NULL, depth INTEGER,
    rule TEXT NOT NULL DEFAULT '', status INTEGER, in_sitemap INTEGER NOT NULL DEFAULT 0,
    first_seen REAL NOT NULL, visited REAL);
CREATE TABLE alias (
    url_id INTEGER PRIMARY KEY, page_id INTEGER, rule TEXT NOT NULL, learned INTEGER NOT NULL,
    was TEXT NOT NULL, was_rule TEXT NOT NULL DEFAULT '', moved TEXT NOT NULL DEFAULT '', page_depth INTEGER);
CREATE TABLE queue (
    host_id INTEGER NOT NULL, priority INTEGER NOT NULL, seq INTEGER NOT NULL, url_id INTEGER NOT NULL, text TEXT,
    purpose TEXT NOT NULL DEFAULT 'page', about TEXT NOT NULL DEFAULT '', hops INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0, not_before REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (host_id, priority, seq)) WITHOUT ROWID;
CREATE TABLE page (
    url_id INTEGER PRIMARY KEY, fetched REAL NOT NULL, media_type TEXT NOT NULL, size INTEGER NOT NULL, wire_bytes INTEGER NOT NULL,
    took_s REAL NOT NULL, charset TEXT NOT NULL, charset_source TEXT NOT NULL, language TEXT NOT NULL, title TEXT NOT NULL,
    description TEXT NOT NULL, h1 TEXT NOT NULL, canonical TEXT NOT NULL, robots TEXT NOT NULL, cut TEXT NOT NULL,
    last_modified REAL NOT NULL, expires REAL NOT NULL, etag TEXT NOT NULL, last_modified_field TEXT NOT NULL,
    text_chars INTEGER NOT NULL, body_digest BLOB NOT NULL, text_digest BLOB NOT NULL, folded_digest BLOB NOT NULL, body_id INTEGER,
    h1s INTEGER NOT NULL, images_without_alt INTEGER NOT NULL, other_charset TEXT NOT NULL, translations TEXT NOT NULL,
    language_found TEXT NOT NULL DEFAULT '', parts BLOB,
    {", ".join(f"{name} TEXT NOT NULL DEFAULT ''" for name in Publication._fields)});
CREATE TABLE body (id INTEGER PRIMARY KEY, digest BLOB NOT NULL, dictionary_id INTEGER, size INTEGER NOT NULL, data BLOB NOT NULL, text BLOB, blocks BLOB);
CREATE TABLE xml (body_id INTEGER PRIMARY KEY, media_type TEXT NOT NULL, data BLOB NOT NULL);
CREATE INDEX body_digest ON body (digest);
CREATE TABLE dictionary (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE visit (
    id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL, url_id INTEGER NOT NULL, text TEXT, purpose TEXT NOT NULL, started REAL NOT NULL,
    took_s REAL NOT NULL, outcome TEXT NOT NULL, status INTEGER NOT NULL, detail TEXT NOT NULL, wire_bytes INTEGER NOT NULL, address TEXT NOT NULL,
    head BLOB);
CREATE TABLE bad_link (
    source INTEGER NOT NULL, text TEXT NOT NULL, kind TEXT NOT NULL, position TEXT NOT NULL, anchor TEXT NOT NULL, why TEXT NOT NULL);
CREATE INDEX bad_link_source ON bad_link (source);
CREATE TABLE tally (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
{_OUTBOX}{_RENDERING}"""  # noqa: E501
_REASONS = ", ".join(f"('{reason.value}', '{state.value}')" for reason, state in STATE_OF.items())
_TYPES = {"text": "TEXT", "integer": "INTEGER", "real": "REAL", "bytes": "BLOB"}
_BEHIND_SHARD = itemgetter(slice(1, None))


def file_system_of(folder: Path, mounts: str) -> str:
    """Type of the folder's file system, from the text of /proc/mounts; empty if unknown."""
    best, kind = "", ""
    place = str(folder.resolve())
    for line in mounts.splitlines():
        _, point, this_kind = line.split(" ")[:3]
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), point)  # a space is written \040
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # a later mount hides an earlier one at the same place
            best, kind = point, this_kind
    return kind


def refuse_network_disk(folder: Path, mounts: Path = MOUNTS) -> None:
    """Raises StoreError on a network file system, since WAL needs shared memory."""
    refuse_address(folder)
    try:
        kind = file_system_of(folder, mounts.read_text("utf-8", "replace"))
    except OSError:  # not a Linux system: unknown
        return
    if kind in NETWORK_FILE_SYSTEMS:
        raise StoreError(
            f"{folder} is on a network file system ({kind}), on which SQLite loses data. Choose a "
            "folder on a local disk (-o)."
        )


def refuse_address(folder: Path) -> None:
    """Raises UsageError if a database address was given instead of a folder."""
    if folder.parts[:1] in (("postgresql:",), ("postgres:",)):
        raise UsageError(
            "this is the address of a database, but a folder is needed: copy it by `periplus move ADDRESS FOLDER`"
        )


def create(folder: Path) -> None:
    """Creates an empty collection in folder, which must not contain one. Raises StoreError."""
    with draft_collection(folder):
        pass


@contextlib.contextmanager
def draft_collection(folder: Path, name: str = "") -> Iterator[sqlite3.Connection]:
    """Yields the connection of a new collection to fill.

    It gets its name at the end, so that a crash leaves no incomplete collection. name: of a draft that stays after
    an interruption, and is yielded again; StoreError deletes it. Raises StoreError.
    """
    path, draft = folder / DATABASE, folder / f"{DATABASE}.{name or os.getpid()}.{'kept' if name else 'new'}"
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        refuse_network_disk(folder)
        if path.exists():
            raise FileExistsError
        _clear_drafts(folder, draft)
        try:
            draft.touch(0o600)  # the files -wal and -shm inherit its mode
            with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                if name:
                    connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # only one process fills it
                if not connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
                    build(connection)
                yield connection
                # close() would do this too, but without an error if the disk is full
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            _rename_draft(draft, path)
            _clear_drafts(folder)
        except StoreError:
            _clear_drafts(folder)
            raise
        finally:
            _clear_drafts(folder, draft)
    except FileExistsError:
        raise StoreError(f"{folder} holds a collection already, or is no folder. Choose another folder (-o).") from None
    except (OSError, sqlite3.OperationalError) as error:
        raise StoreError(f"cannot create a collection in {folder}: {error}. {_ASK_THE_DISK}") from error


def files_state(folder: Path) -> list[tuple[int, int, int]]:
    """Changes whenever anything is written to the collection: (inode, size, time in ns) of its database's files."""
    files = [folder / DATABASE, folder / f"{DATABASE}-wal"]
    states = [file.stat() for file in files if file.exists()]
    return [(state.st_ino, state.st_size, state.st_mtime_ns) for state in states if state.st_size]


def _clear_drafts(folder: Path, spared: Path | None = None) -> None:
    """Deletes drafts of this process and of dead processes, and stored drafts but `spared`."""
    for path in folder.glob(f"{DATABASE}.*.new*"):
        pid = path.name.split(".")[2]
        if pid.isdecimal() and (int(pid) == os.getpid() or not process_lives(int(pid))):
            path.unlink(missing_ok=True)
    for path in folder.glob(f"{DATABASE}.*.kept*"):
        if spared is None or not path.name.startswith(spared.name):
            path.unlink(missing_ok=True)


def _rename_draft(draft: Path, path: Path) -> None:
    """Renames the draft by a hard link, which never replaces a file; falls back to a rename."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:
        draft.replace(path)


def build(connection: sqlite3.Connection) -> None:
    # fewer overflow pages for bodies: 9 % less time per stored page than 4096
    connection.execute("PRAGMA page_size = 8192")
    connection.execute("PRAGMA journal_mode = WAL")
    tables = (
        SCHEMA_TABLES,
        page_links.TABLE,
        page_links.VIEW,
        _TRAP_TABLES,
        HISTORY,
        _EVIDENCE_TABLES,
        changes.TABLES,
        _CHECK_TABLES,
    )
    connection.executescript("BEGIN;" + "".join(tables) + CREATE_VIEWS)
    connection.execute("INSERT INTO meta VALUES ('schema', ?), ('seq', '0')", (str(SCHEMA_VERSION),))
    connection.execute(f"INSERT INTO reason VALUES {_REASONS}")
    _add_tables(connection)
    connection.execute("COMMIT")


def _add_tables(connection: sqlite3.Connection, scope: str = "main") -> None:
    """Creates the missing tables of features. scope: `temp` gives a connection that cannot write empty ones."""
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table in stored_tables():
        if table.name not in present:
            columns = ", ".join(f"{name} {_TYPES[kind]} NOT NULL" for name, kind in table.kinds.items())
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {scope}.{table.name} ({columns}, PRIMARY KEY ({table.key}))"
            )


def exists(folder: Path) -> bool:
    return (folder / DATABASE).is_file()


def connect(folder: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Opens the collection in folder. Raises NoCollection or StoreError."""
    path = folder / DATABASE
    refuse_address(folder)
    missing = NoCollection(f"{folder} has no collection. `periplus crawl URL -o {folder}` makes one.")
    if not path.is_file():
        raise missing
    if not read_only:
        refuse_network_disk(folder)
    connection = None
    try:
        connection = sqlite3.connect(_place(path, read_only), uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)
        # views and triggers of an untrusted file can only call safe functions
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(
            "PRAGMA synchronous = NORMAL"
        )  # with WAL a power failure may lose the last commits but not damage the file
        # readers sort long lists on disk
        connection.execute(f"PRAGMA temp_store = {'FILE' if read_only else 'MEMORY'}")
        connection.execute("PRAGMA cache_size = -32768")  # 32 MiB
        (version,) = connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
        if version != str(SCHEMA_VERSION):
            raise StoreError(
                f"{path} has schema {version}; this program supports {SCHEMA_VERSION}. Use another version."
            )
        _add_tables(connection, "temp" if read_only else "main")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except (StoreError, sqlite3.DatabaseError, TypeError, ValueError) as error:
        if connection is not None:
            connection.close()
        if isinstance(error, StoreError):
            raise
        if not path.is_file():  # a crawl that failed deleted it meanwhile
            raise missing from None
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_THE_DISK:
            raise StoreError(
                f"the collection in {folder} cannot be {'read' if read_only else 'written'}: {error}. {_ASK_THE_DISK}"
            ) from None
        raise StoreError(
            f"{path} cannot be read as a collection: {error}. Restore it from a copy, or "
            "crawl again into another folder."
        ) from None
    return connection


def connect_file(path: Path) -> sqlite3.Connection:
    """Opens a file that several processes may create at once. Raises sqlite3.DatabaseError."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_S)
    until = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return connection
        except sqlite3.OperationalError as error:  # SQLite itself does not wait when two processes change the mode
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(AGAIN_S)


def _place(path: Path, read_only: bool) -> str:
    """URI of the file, which SQLite does not create if it was deleted meanwhile.

    WAL needs write access even for readers. If the folder is not writable and no process is writing, the file is opened
    as immutable.
    """
    if read_only and not os.access(path.parent, os.W_OK) and not path.with_name(path.name + "-wal").exists():
        return f"{path.resolve().as_uri()}?immutable=1"
    return f"{path.resolve().as_uri()}?mode=rw"


class SqliteStatements:
    """`store.statements.Statements` of an SQLite connection."""

    dialect = SQLITE

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        return self.connection.execute(statement, values).fetchall()

    def change(self, statement: str, values: Sequence[object] = ()) -> int:
        return self.connection.execute(statement, values).rowcount

    def change_rows(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        self.connection.executemany(statement, rows)

    def at(self, columns: str, table: str, key: str, keys: Sequence[Sequence[object]]) -> Iterable[Row]:
        find = f"SELECT {columns} FROM {table} WHERE {key} IN (SELECT value FROM json_each(?))"
        return self.connection.execute(find, (json.dumps([value for _, value in keys]),)) if keys else ()

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[object]], *, key: str = "") -> None:
        self._enter(table, columns, rows, "INSERT OR REPLACE" if key else "INSERT")

    def replace(
        self, table: str, columns: str, rows: Sequence[Sequence[object]], before: Sequence[Sequence[object]]
    ) -> None:
        self._enter(table, columns, rows, "INSERT OR REPLACE")

    def upsert(
        self, table: str, columns: str, rows: Sequence[Sequence[object]], *, key: str = "", update: str = ""
    ) -> None:
        sets = ", ".join(f"{name} = excluded.{name}" for name in update.split(", ")) if update else ""
        conflict = f" ON CONFLICT ({key}) DO UPDATE SET {sets}" if sets else " ON CONFLICT DO NOTHING"
        self._enter(table, columns, rows, "INSERT", conflict)

    def _enter(self, table: str, columns: str, rows: Sequence[Sequence[object]], verb: str, conflict: str = "") -> None:
        if rows:
            self.connection.executemany(_insert(verb, table, columns) + conflict, map(_BEHIND_SHARD, rows))

    def update(self, table: str, columns: str, rows: Sequence[Sequence[object]]) -> None:
        key, *others = columns.split(", ")
        places = ", ".join(f"{name} = ?{place}" for place, name in enumerate(others, 3))
        if rows:
            self.connection.executemany(f"UPDATE {table} SET {places} WHERE {key} = ?2 AND ?1 = 0", rows)

    def delete(self, table: str, key: str, rows: Sequence[Sequence[object]]) -> Sequence[Sequence[object]]:
        where = " AND ".join(f"{name} = ?" for name in key.split(", "))
        drop = f"DELETE FROM {table} WHERE {where}"
        return [row for row in rows if self.connection.execute(drop, row[1:]).rowcount]

    def links_of(self, pages: Sequence[Sequence[object]]) -> Iterable[Row]:
        return [
            (source, *link.key, link.last_seen)
            for _, source in pages
            for link in page_links.of_page(self.connection, source).values()  # type: ignore[arg-type]  # an integer
        ]

    def enter_links(self, changes: LinkChanges) -> None:
        page_links.enter(self.connection, changes)

    def stored_links(self, pages: Iterable[PageKey]) -> dict[PageKey, StoredLinks]:
        return {page: page_links.of_page(self.connection, page[1]) for page in pages}

    def store_links(self, pages: Mapping[PageKey, StoredLinks]) -> None:
        for (_, source), links in pages.items():
            page_links.replace(self.connection, source, links.values())


@cache
def _insert(verb: str, table: str, columns: str) -> str:
    return f"{verb} INTO {table} ({columns}) VALUES ({', '.join('?' * (columns.count(',') + 1))})"


class WriteLock:
    """Serialises the writers of one collection.

    SQLite has one writer, and its busy handler sleeps up to 100 ms at a time. A file lock is handed over at once, and
    the kernel releases it when its holder dies.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._file = os.open(folder / "write.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(
                f"the collection in {folder} cannot be written: {error.strerror}. {_ASK_THE_DISK}"
            ) from error

    @contextlib.contextmanager
    def transaction(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Runs BEGIN IMMEDIATE ... COMMIT, or ROLLBACK on any exception. Raises StoreError for database errors."""
        with self.hold():
            try:
                with connection:  # commits at the end, or rolls back
                    connection.execute("BEGIN IMMEDIATE")
                    yield
            except sqlite3.OperationalError as error:
                raise StoreError(f"the collection cannot be written: {error}. {_ASK_THE_DISK}") from error
            except sqlite3.DatabaseError as error:
                if type(error) is not sqlite3.DatabaseError:  # its other subclasses are mistakes of ours
                    raise
                raise StoreError(
                    f"the collection is damaged: {error}. Restore it from a copy, or crawl again into another folder."
                ) from error

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Holds the lock within the context."""
        try:
            import fcntl
        except ImportError:  # not available on this system: relies on SQLite's busy handler
            yield
            return
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._file)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[sqlite3.Connection]:
    """Opens a connection with one transaction. Raises NoCollection, StoreError."""
    with (
        contextlib.closing(connect(folder)) as connection,
        contextlib.closing(WriteLock(folder)) as lock,
        lock.transaction(connection),
    ):
        yield connection
