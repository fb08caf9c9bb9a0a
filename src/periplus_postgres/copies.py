"""Local copies (in the cache folder) of collections in databases, for commands that only read a collection."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from periplus.errors import StoreError, UsageError
from periplus.masking import without_secrets
from periplus.present.wording import size
from periplus.settings import SETTINGS_FILE, SUFFIX, segments_written
from periplus.store import runs
from periplus.store.notes import put_note
from periplus.store.runs import PAUSE_KEY
from periplus.store.sqlite import reading
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.sqlite.results import take_results
from periplus.store.sqlite.schema import (
    SCHEMA_VERSION,
    SqliteStatements,
    WriteLock,
    draft_collection,
    exists,
    writing,
)
from periplus_postgres import copying, folder_rows, hosts, index_place, schema
from periplus_postgres.address import Address, address_of
from periplus_postgres.analysis_rows import computed_tables, result_notes
from periplus_postgres.connection import Connection, connect
from periplus_postgres.copying import DatabaseRows
from periplus_postgres.folder_rows import FolderRows
from periplus_postgres.moved_tables import WRITTEN_BACK, sum_of
from periplus_postgres.moving import BODIES_SAID_EVERY, Watch, report_rows, segment_reader, silent
from periplus_postgres.statements import PostgresStatements

# docs/decisions/0060. A copy is a collection folder as `move` makes it. Its table meta names the version of the
# database that it shows; if the database has another one, everything is copied again. The search index and other
# computed data are stored beside it, as in any folder, and kept. A copy contains nothing that the database lacks or
# that cannot be recomputed: decisions of users are changed in the copy and written back at once (docs/decisions/0061).

UNUSED_S = 3 * 86_400.0  # unused copies older than this are deleted
_NOTE = "copied"  # in meta: schema version of the folder, and versions of the database that it shows


def local_copy(place: str, watch: Watch = silent) -> Path:
    """Returns the folder of an up-to-date copy of a collection in a database. place: its address.

    Creates or updates the copy, one process at a time. Raises UsageError, NoCollection, StoreError.
    """
    with brought_up(address_of(place), watch) as (_, folder):
        return folder


@contextlib.contextmanager
def edit_copy(place: str) -> Iterator[Path]:
    """Yields an up-to-date copy for changes of the tables `moved_tables.WRITTEN_BACK`. They are written to the database
    at the end in one transaction; an exception or a kill leaves both unchanged.

    Only one editor per database runs at a time, so do slow work before. Raises as `local_copy`, UsageError if the
    database user may only read.
    """
    address = address_of(place)
    with brought_up(address, silent) as (database, folder), contextlib.ExitStack() as undo:
        copying.only_editor(database, address.collection)
        runs.refuse(PostgresStatements(database))
        if not copying.may_edit(database):
            raise UsageError(
                f"the database user may only read {address}, and this change is stored in it: name another user in the "
                "address, or `GRANT INSERT, DELETE` on its tables"
            )
        undo.callback(_bring_up, database, folder, silent)
        _bring_up(database, folder, silent)  # changes of the previous lock holder
        with writing(folder) as connection:  # until they are in the database, the copy is not that of any version
            _note_versions(connection, (_versions_of(folder) or ("",))[0], "")
        yield folder
        with writing(folder) as connection, database.transaction():
            folder_rows.load_files(connection, folder)
            here, there = FolderRows(connection), DatabaseRows(database)
            for table in here.tables():
                if table.name in WRITTEN_BACK and sum_of(here.rows(table)) != sum_of(there.rows(table)):
                    there.clear(table.name)
                    there.enter(table, here.rows(table))
        undo.pop_all()


@contextlib.contextmanager
def brought_up(address: Address, watch: Watch) -> Iterator[tuple[Connection, Path]]:
    """Yields (database, folder of the up-to-date copy) under the lock of the copy."""
    home = _home(address)
    with _translate_write_errors(home):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = copy_folder(address)
    with contextlib.closing(WriteLock(home)) as lock, lock.hold():
        os.utime(home)
        with copying.translate_errors(), contextlib.closing(connect(address)) as database:
            schema.check(database, address.collection)
            copying.remove_time_limits(database)
            index_place.remember(database, address.index)
            _bring_up(database, folder, watch)
            yield database, folder


def cache_folder(place: Address | str) -> Path:
    """Folder for computed data of a collection in a database, such as the search index. Raises StoreError."""
    address = address_of(place)
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


def copy_folder(place: Address | str) -> Path:
    """Folder of the copy of a collection."""
    address = address_of(place)
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
    with copying.one_moment(database):
        now, before = copying.versions(database), _versions_of(folder)
        if before is None:
            shutil.rmtree(folder, ignore_errors=True)
            _make_room(folder.parent, hosts.size_bytes(database))
            with draft_collection(folder) as draft, folder_rows.transaction(draft), _sync_files(draft, folder):
                _take(database, draft, now, watch, is_whole=True)
        elif before != now:
            with writing(folder) as connection, _sync_files(connection, folder):
                _take(database, connection, now, watch, is_whole=before[0] != now[0])
        with _translate_write_errors(folder.parent):
            _take_settings(copying.rules_text(database), folder)


@contextlib.contextmanager
def _sync_files(connection: reading.Connection, folder: Path) -> Iterator[None]:
    """Loads the folder's files into the table `file`, and writes them back at the end."""
    folder_rows.load_files(connection, folder)
    yield
    with _translate_write_errors(folder.parent):
        folder_rows.write_files(connection, folder)


def _versions_of(folder: Path) -> tuple[str, str] | None:
    """See `copying.versions`; None if there is no copy, or one of another schema version."""
    if not exists(folder):
        return None
    with reading.open_reader(folder) as connection:
        version, *versions = json.loads(SqliteReader(connection).note(_NOTE) or "[0]")
    return (versions[0], versions[1]) if version == SCHEMA_VERSION else None


def _note_versions(folder: reading.Connection, crawled: str, decided: str) -> None:
    put_note(SqliteStatements(folder), _NOTE, json.dumps([SCHEMA_VERSION, crawled, decided]))


def _take(
    database: Connection, folder: reading.Connection, now: tuple[str, str], watch: Watch, *, is_whole: bool
) -> None:
    """Replaces the rows of the copy: of all tables, or of users' decisions. Call within transactions of both."""
    source = DatabaseRows(database, segment_reader(database), unpacked=False)
    target = FolderRows(folder)
    with folder_rows.replaced_pages(folder) if is_whole else contextlib.nullcontext():
        for table in target.tables():
            if is_whole or table.name in ("meta", *WRITTEN_BACK):
                target.clear(table.name)
                target.enter(table, report_rows(source.rows(table), f"Copying {table.name}", watch))
    if is_whole:
        for name in ("body", "xml"):
            target.clear(name)
        target.enter_bodies(report_rows(source.bodies(), "Copying bodies", watch, BODIES_SAID_EVERY))
        take_results(folder, result_notes(database), computed_tables(database))
        folder_rows.complete(folder, copying.last_seq(database))
    folder.execute("DELETE FROM meta WHERE name IN (?, ?)", (PAUSE_KEY, index_place.NAME))
    folder.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", copying.notes(database).items())
    _note_versions(folder, *now)


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
    for other in home.parent.iterdir():
        if other != home and time.time() - other.stat().st_mtime > UNUSED_S:
            shutil.rmtree(other, ignore_errors=True)
    if needed_bytes > (free := shutil.disk_usage(home).free):
        raise StoreError(
            f"the local copy of the collection may take {size(needed_bytes)}, and {home.parent} has {size(free)}: name "
            "a folder on a larger disk in XDG_CACHE_HOME"
        )
