"""Local copies (in the cache folder) of collections in databases, for commands that only read a collection."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from periplus.api.moving import Watch, moved_tables, report_rows, segment_reader, silent
from periplus.errors import StoreError, UsageError
from periplus.masking import without_secrets
from periplus.present.wording import size
from periplus.settings import SETTINGS_FILE, SUFFIX, segments_written
from periplus.store import runs
from periplus.store.database_address import Address, address_of
from periplus.store.moving import WRITTEN_BACK, MovedBody, MovedTable, changed_rows
from periplus.store.postgres import copying as database_copying
from periplus.store.postgres import hosts, index_place, schema
from periplus.store.postgres.analysis_rows import computed_tables, result_notes
from periplus.store.postgres.connection import Connection, connect
from periplus.store.postgres.copying import DatabaseSnapshot
from periplus.store.postgres.statements import PostgresStatements
from periplus.store.runs import PAUSE_KEY
from periplus.store.sqlite import copying as folder_copying
from periplus.store.sqlite import reading
from periplus.store.sqlite.analysis_rows import take_results
from periplus.store.sqlite.schema import SCHEMA_VERSION, WriteLock, draft_collection, exists, writing
from periplus.values import Row

# docs/decisions/0060. A copy is a collection folder as `move` makes it. Its table meta names the database snapshot that
# it shows; before each use, later changes are copied. The search index and other computed data are stored beside it, as
# in any folder. A copy contains nothing that the database lacks or that cannot be recomputed: decisions of users are
# changed in the copy and written back at once (docs/decisions/0061).

BYTES = 20_000_000_000  # of all copies; beyond it the least recently used are deleted
UNUSED_S = 30 * 86_400.0  # unused copies older than this are deleted
IN_USE_S = 86_400.0  # a copy used more recently may still be open and is never deleted
PAGE_TABLES = ("link", "bad_link")  # tables in which all rows of a page are replaced together
_NOTE = "copied"  # in meta: schema version of the folder, and database snapshot
_EDIT_NOTE = "edited"  # in meta: the copy has decisions that are not in the database yet


def local_copy(place: str, watch: Watch = silent) -> Path:
    """Returns the folder of an up-to-date copy of a collection in a database. place: its address.

    Creates or updates the copy, one process at a time. Raises UsageError, NoCollection, StoreError.
    """
    with brought_up(address_of(place), watch) as (_, folder):
        return folder


@contextlib.contextmanager
def edit_copy(place: str) -> Iterator[Path]:
    """Yields an up-to-date copy for changes of the tables `store.moving.WRITTEN_BACK`. They are written to the database
    at the end in one transaction; an exception or a kill leaves both unchanged.

    Only one editor per database runs at a time, so do slow work before. Raises as `local_copy`, UsageError if the
    database user may only read.
    """
    address = address_of(place)
    with brought_up(address, silent) as (database, folder), contextlib.ExitStack() as undo:
        database_copying.only_editor(database, address.collection)
        runs.refuse(PostgresStatements(database))
        if not database_copying.may_edit(database):
            raise UsageError(
                f"the database user may only read {address}, and this change is stored in it: name another user in the "
                "address, or `GRANT INSERT, DELETE` on its tables"
            )
        _bring_up(database, folder, silent)  # changes of the previous lock holder
        with writing(folder) as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", (_EDIT_NOTE,))
        undo.callback(_bring_up, database, folder, silent)
        yield folder
        _write_back(database, folder)
        undo.pop_all()


def _write_back(database: Connection, folder: Path) -> None:
    with writing(folder) as connection:
        folder_copying.load_files(connection, folder)
        with database.transaction():
            for table in moved_tables(database, connection):
                if table.name in WRITTEN_BACK:
                    keys = folder_copying.keys_of(connection, table.name)
                    there, here = (
                        database_copying.rows_out(database, table),
                        folder_copying.rows_back(connection, table),
                    )
                    changes = changed_rows(there, here, [table.columns.index(key) for key in keys])
                    database_copying.enter_changes(database, table, keys, *changes)
        connection.execute("DELETE FROM meta WHERE name = ?", (_EDIT_NOTE,))


@contextlib.contextmanager
def brought_up(address: Address, watch: Watch) -> Iterator[tuple[Connection, Path]]:
    """Yields (database, folder of the up-to-date copy) under the lock of the copy."""
    home = _home(address)
    with _translate_write_errors(home):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = copy_folder(address)
    with contextlib.closing(WriteLock(home)) as lock, lock.hold():
        os.utime(home)
        with database_copying.translate_errors(), contextlib.closing(connect(address)) as database:
            schema.check(database, address.collection)
            database_copying.remove_time_limits(database)
            index_place.remember(database, address.index)
            _bring_up(database, folder, watch)
            yield database, folder


def index_folder(address: Address) -> Path:
    """Folder of the local copy of the shared search index, which searches use without a copy of the collection. It
    counts towards the size limit of copies. Raises StoreError.
    """
    home = _home(address)
    with _translate_write_errors(home):
        if not home.exists():
            home.mkdir(mode=0o700, parents=True)
            _make_room(home, 0)
        os.utime(home)
    return home / f"{address.collection}.index"


def forget(address: Address) -> None:
    """Deletes the copy of a deleted collection."""
    shutil.rmtree(_home(address), ignore_errors=True)


def copy_folder(address: Address) -> Path:
    """Folder of the copy of a collection."""
    return _home(address) / (address.collection + SUFFIX)


def _home(address: Address) -> Path:
    key = hashlib.sha256(f"{without_secrets(address.dsn)} {address.collection}".encode()).hexdigest()
    return copies_folder() / key[:16]


@contextlib.contextmanager
def _translate_write_errors(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"the local copy of the collection cannot be stored in {home}: {error.strerror}. Name another folder in "
            "XDG_CACHE_HOME"
        ) from error


def copies_folder() -> Path:
    """`periplus/copies` in the user's cache folder (XDG_CACHE_HOME, by default ~/.cache)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "periplus" / "copies"


def _bring_up(database: Connection, folder: Path, watch: Watch) -> None:
    with database_copying.one_moment(database):
        now, (before, is_edited) = database_copying.snapshot(database), _snapshot_of(folder)
        if before is None or not before.precedes(now):
            shutil.rmtree(folder, ignore_errors=True)
            _make_room(folder.parent, hosts.size_bytes(database))
            with draft_collection(folder) as draft, folder_copying.transaction(draft), _sync_files(draft, folder):
                _take(database, draft, now, None, watch)
        elif is_edited or not (before.is_calm and before.following == now.following):
            with writing(folder) as connection, _sync_files(connection, folder):
                _take(database, connection, now, before, watch, WRITTEN_BACK if is_edited else ())
        with _translate_write_errors(folder.parent):
            _take_settings(database_copying.rules_text(database), folder)


@contextlib.contextmanager
def _sync_files(connection: reading.Connection, folder: Path) -> Iterator[None]:
    """Loads the folder's files into the table `file`, and writes them back at the end."""
    folder_copying.load_files(connection, folder)
    yield
    with _translate_write_errors(folder.parent):
        folder_copying.write_files(connection, folder)


def _snapshot_of(folder: Path) -> tuple[DatabaseSnapshot | None, bool]:
    """(database snapshot that the copy shows, whether it has decisions not yet written back). The snapshot is None if
    there is no copy, or one of another schema version.
    """
    if not exists(folder):
        return None, False
    with reading.open_reader(folder) as connection:
        notes = dict(connection.execute("SELECT name, value FROM meta WHERE name IN (?, ?)", (_NOTE, _EDIT_NOTE)))
    version, *moment = json.loads(notes.get(_NOTE, "[0]"))
    return DatabaseSnapshot(*moment) if version == SCHEMA_VERSION else None, _EDIT_NOTE in notes


def _take(
    database: Connection,
    folder: reading.Connection,
    now: DatabaseSnapshot,
    since: DatabaseSnapshot | None,
    watch: Watch,
    anew: Collection[str] = (),
) -> None:
    """Copies what was written in the database since a snapshot; None: everything. Call within transactions of both.

    anew: tables to copy whole.
    """
    sources = database_copying.changed_sources(database, since) if since else ((), ())
    for table in moved_tables(database, folder):
        _take_table(database, folder, table, None if table.name in anew else since, sources, watch)
    bodies = database_copying.bodies_out(database, segment_reader(database), since, unpacked=False)
    folder_copying.enter_bodies(folder, _report_bodies(bodies, watch))
    if since:
        for name in ("body", "xml"):
            _delete_missing_rows(database, folder, name)
    take_results(folder, result_notes(database), computed_tables(database))
    folder_copying.complete(folder, database_copying.last_seq(database))
    notes = {_NOTE: json.dumps([SCHEMA_VERSION, *now]), **database_copying.notes(database)}
    folder.execute("DELETE FROM meta WHERE name IN (?, ?, ?)", (PAUSE_KEY, _EDIT_NOTE, index_place.NAME))
    folder.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", notes.items())


def _take_table(
    database: Connection,
    folder: reading.Connection,
    table: MovedTable,
    since: DatabaseSnapshot | None,
    sources: tuple[Sequence[int], Sequence[int]],
    watch: Watch,
) -> None:
    name = table.name

    def enter(rows: Iterable[Row]) -> None:
        folder_copying.enter(folder, table, report_rows(rows, f"Copying {name}", watch))

    def replace() -> None:
        folder_copying.clear(folder, name)
        enter(database_copying.rows_out(database, table))

    if since is None or name in database_copying.TOTALS_TABLES:
        replace()
    elif name in PAGE_TABLES:
        folder_copying.clear(folder, name, sources[1])
        enter(database_copying.rows_of_sources(database, table, sources))
        if folder_copying.count(folder, name) != database_copying.count(database, name):
            replace()
    else:
        rows = database_copying.rows_out(database, table, since)
        enter(folder_copying.note_changed_pages(folder, rows) if name == "url" else rows)
        _delete_missing_rows(database, folder, name)


def _delete_missing_rows(database: Connection, folder: reading.Connection, name: str) -> None:
    """Deletes rows that the database no longer has. The copy has all current rows, so equal counts mean equal rows."""
    if folder_copying.count(folder, name) != database_copying.count(database, name):
        keys = folder_copying.keys_of(folder, name)
        folder_copying.retain(folder, name, database_copying.keys_out(database, name, keys))


def _report_bodies(bodies: Iterable[MovedBody], watch: Watch) -> Iterator[MovedBody]:
    for count, body in enumerate(bodies, 1):
        yield body
        if count % 100 == 0:
            watch("Copying bodies", count)


def _take_settings(rules: str, folder: Path) -> None:
    """Links the periplus.toml of the current directory into the copy, adding the database's segments if it defines
    none. Without such a file, writes the database's rules for URLs and segments.
    """
    here, path = Path(SETTINGS_FILE).absolute(), folder / SETTINGS_FILE
    text = here.read_text("utf-8") if here.is_file() else rules
    segments = segments_written(rules)
    if here.is_file() and segments and not segments_written(text):
        text = f"{text}\n\n{segments}\n"
    elif here.is_file():
        path.unlink(missing_ok=True)
        path.symlink_to(here)
        return
    if path.is_symlink() or not path.is_file() or path.read_text("utf-8") != text:
        path.unlink(missing_ok=True)
        if text:
            path.write_text(text, "utf-8")


def _make_room(home: Path, needed_bytes: int) -> None:
    """Deletes copies that were not used recently. Raises StoreError if the disk has no room for a new copy."""
    now = time.time()
    used = {path: path.stat().st_mtime for path in home.parent.iterdir() if path != home}
    total = needed_bytes
    for other in sorted(used, key=lambda path: -used[path]):
        unused_s = now - used[other]
        with contextlib.suppress(FileNotFoundError):  # another process is updating it
            total += sum(file.stat().st_size for file in other.rglob("*") if file.is_file())
        if unused_s > UNUSED_S or (total > BYTES and unused_s > IN_USE_S):
            shutil.rmtree(other, ignore_errors=True)
    if needed_bytes > (free := shutil.disk_usage(home).free):
        raise StoreError(
            f"the local copy of the collection may take {size(needed_bytes)}, and {home.parent} has {size(free)}: name "
            "a folder on a larger disk in XDG_CACHE_HOME"
        )
