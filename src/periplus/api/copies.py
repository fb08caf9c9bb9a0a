"""Copies of collections in databases, as folders in the cache: what only reads a collection reads them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from periplus.api.moving import Watch, moved_tables, segment_reader, silent, watched
from periplus.errors import StoreError, UsageError
from periplus.masking import without_secrets
from periplus.present.wording import size
from periplus.settings import SETTINGS_FILE, SUFFIX, segments_written
from periplus.store import runs
from periplus.store.moving import WRITTEN_BACK, MovedBody, MovedTable, changed_rows
from periplus.store.postgres import copying as database_copying
from periplus.store.postgres import hosts, index_place, schema
from periplus.store.postgres.address import Address, address_of
from periplus.store.postgres.analysis_rows import computed_tables, result_notes
from periplus.store.postgres.connection import Connection, connect
from periplus.store.postgres.copying import DatabaseSnapshot
from periplus.store.postgres.statements import PostgresStatements
from periplus.store.runs import PAUSED
from periplus.store.sqlite import copying as folder_copying
from periplus.store.sqlite import reading
from periplus.store.sqlite.analysis_rows import take_results
from periplus.store.sqlite.schema import SCHEMA_VERSION, WriteLock, drafted, exists, writing
from periplus.values import Row

# docs/decisions/0060. A copy is the collection as `move` makes one, in a folder that is kept. In its table meta stands
# the moment of the database that it shows; what was written since is taken over before each question. Beside it lie the
# search index and what else is computed of a folder, which follow the pages as they do there. It holds nothing that the
# database has not, or that cannot be computed again: what persons decide is changed in it and written back at once,
# docs/decisions/0061.

BYTES = 20_000_000_000  # of all copies; above it those go that were not used for longest
UNUSED_S = 30 * 86_400.0  # a copy that nobody read for so long goes
IN_USE_S = 86_400.0  # one that was read lately may be read still, and stays in any case
ONE_BY_ONE = ("link", "bad_link")  # tables of which a page's rows are replaced together
_NOTE = "copied"  # in meta: the form of the folder's tables, and the moment
_EDITED = "edited"  # in meta: decisions were changed in the copy, and are not in the database yet


def copied(place: str, watch: Watch = silent) -> Path:
    """The folder that shows a collection in a database as it stands now. place: its address.

    Made at the first time, brought up to date at any other; by one process at a time. Raises UsageError, NoCollection,
    StoreError.
    """
    with brought_up(address_of(place), watch) as (_, folder):
        return folder


@contextlib.contextmanager
def edited(place: str) -> Iterator[Path]:
    """The copy as it stands now, to change `store.moving.WRITTEN_BACK` in it. At the end that is in the database
    too, in one transaction; an exception leaves both as they were, and so does a kill.

    By one at a time, whoever uses the database: what takes long comes before. Raises as `copied`, UsageError where the
    user of the database may only read.
    """
    address = address_of(place)
    with brought_up(address, silent) as (database, folder), contextlib.ExitStack() as undo:
        database_copying.only_editor(database, address.collection)
        runs.refuse(PostgresStatements(database))
        if not database_copying.may_edit(database):
            raise UsageError(
                f"the user of the database may only read {address}, and this is kept in it: name another user in the "
                "address, or `GRANT INSERT, DELETE` on its tables"
            )
        _bring_up(database, folder, silent)  # what others changed while they had the lock
        with writing(folder) as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", (_EDITED,))
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
        connection.execute("DELETE FROM meta WHERE name = ?", (_EDITED,))


@contextlib.contextmanager
def brought_up(address: Address, watch: Watch) -> Iterator[tuple[Connection, Path]]:
    """(the database, the copy as it stands now) while nobody else changes the copy."""
    home = _home(address)
    with _written(home):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = copy_folder(address)
    with contextlib.closing(WriteLock(home)) as lock, lock.held():
        os.utime(home)
        with database_copying.reported(), contextlib.closing(connect(address)) as database:
            schema.check(database, address.collection)
            database_copying.remove_time_limits(database)
            index_place.remember(database, address.index)
            _bring_up(database, folder, watch)
            yield database, folder


def index_folder(address: Address) -> Path:
    """Where the index that readers of a collection share is kept for searches, which need no copy; copies and these
    have their bounds together. Raises StoreError.
    """
    home = _home(address)
    with _written(home):
        if not home.exists():
            home.mkdir(mode=0o700, parents=True)
            _make_room(home, 0)
        os.utime(home)
    return home / f"{address.collection}.index"


def forget(address: Address) -> None:
    """Deletes the copy of a collection that is gone."""
    shutil.rmtree(_home(address), ignore_errors=True)


def copy_folder(address: Address) -> Path:
    """Where the copy of a collection is kept."""
    return _home(address) / (address.collection + SUFFIX)


def _home(address: Address) -> Path:
    key = hashlib.sha256(f"{without_secrets(address.dsn)} {address.collection}".encode()).hexdigest()
    return copies_folder() / key[:16]


@contextlib.contextmanager
def _written(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"the copy of the collection, which is read in its place, cannot be kept in {home}: {error.strerror}. Name "
            "another folder in XDG_CACHE_HOME"
        ) from error


def copies_folder() -> Path:
    """Where copies are kept: `periplus/copies` in the cache of this user (XDG_CACHE_HOME, by default ~/.cache)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "periplus" / "copies"


def _bring_up(database: Connection, folder: Path, watch: Watch) -> None:
    with database_copying.one_moment(database):
        now, (before, is_edited) = database_copying.snapshot(database), _snapshot_of(folder)
        if before is None or not before.precedes(now):
            shutil.rmtree(folder, ignore_errors=True)
            _make_room(folder.parent, hosts.size_bytes(database))
            with drafted(folder) as draft, folder_copying.transaction(draft), _files_laid(draft, folder):
                _take(database, draft, now, None, watch)
        elif is_edited or not (before.is_calm and before.following == now.following):
            with writing(folder) as connection, _files_laid(connection, folder):
                _take(database, connection, now, before, watch, WRITTEN_BACK if is_edited else ())
        with _written(folder.parent):
            _take_settings(database_copying.rules_text(database), folder)


@contextlib.contextmanager
def _files_laid(connection: reading.Connection, folder: Path) -> Iterator[None]:
    """What becomes of the table `file` within becomes of the folder's files."""
    folder_copying.load_files(connection, folder)
    yield
    with _written(folder.parent):
        folder_copying.write_files(connection, folder)


def _snapshot_of(folder: Path) -> tuple[DatabaseSnapshot | None, bool]:
    """Of the database that a copy shows; None: there is none, or one of another version. And whether decisions in it
    are none of the database.
    """
    if not exists(folder):
        return None, False
    with reading.opened(folder) as connection:
        notes = dict(connection.execute("SELECT name, value FROM meta WHERE name IN (?, ?)", (_NOTE, _EDITED)))
    version, *moment = json.loads(notes.get(_NOTE, "[0]"))
    return DatabaseSnapshot(*moment) if version == SCHEMA_VERSION else None, _EDITED in notes


def _take(
    database: Connection,
    folder: reading.Connection,
    now: DatabaseSnapshot,
    since: DatabaseSnapshot | None,
    watch: Watch,
    anew: Collection[str] = (),
) -> None:
    """Takes over what was written in the database since a moment; None: all of it. Within transactions of both.

    anew: tables that are taken whole.
    """
    sources = database_copying.changed_sources(database, since) if since else ((), ())
    for table in moved_tables(database, folder):
        _take_table(database, folder, table, None if table.name in anew else since, sources, watch)
    bodies = database_copying.bodies_out(database, segment_reader(database), since, unpacked=False)
    folder_copying.enter_bodies(folder, _counted(bodies, watch))
    if since:
        for name in ("body", "xml"):
            _drop_vanished(database, folder, name)
    take_results(folder, result_notes(database), computed_tables(database))
    folder_copying.complete(folder, database_copying.last_seq(database))
    notes = {_NOTE: json.dumps([SCHEMA_VERSION, *now]), **database_copying.notes(database)}
    folder.execute("DELETE FROM meta WHERE name IN (?, ?, ?)", (PAUSED, _EDITED, index_place.NAME))
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
        folder_copying.enter(folder, table, watched(rows, f"Copying {name}", watch))

    def replace() -> None:
        folder_copying.clear(folder, name)
        enter(database_copying.rows_out(database, table))

    if since is None or name in database_copying.SUMMED:
        replace()
    elif name in ONE_BY_ONE:
        folder_copying.clear(folder, name, sources[1])
        enter(database_copying.rows_of_sources(database, table, sources))
        if folder_copying.count(folder, name) != database_copying.count(database, name):
            replace()
    else:
        rows = database_copying.rows_out(database, table, since)
        enter(folder_copying.note_changed(folder, rows) if name == "url" else rows)
        _drop_vanished(database, folder, name)


def _drop_vanished(database: Connection, folder: reading.Connection, name: str) -> None:
    """Deletes what the database has no longer. The copy has all that is there: equal counts are equal rows."""
    if folder_copying.count(folder, name) != database_copying.count(database, name):
        keys = folder_copying.keys_of(folder, name)
        folder_copying.retain(folder, name, database_copying.keys_out(database, name, keys))


def _counted(bodies: Iterable[MovedBody], watch: Watch) -> Iterator[MovedBody]:
    for count, body in enumerate(bodies, 1):
        yield body
        if count % 100 == 0:
            watch("Copying bodies", count)


def _take_settings(rules: str, folder: Path) -> None:
    """The periplus.toml where the program was started is that of the copy, with the database's segments where it names
    none; without one, the rules for URLs and segments of the database are.
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
    """Deletes copies that were not used for long. Raises StoreError where the disk has no room for another one."""
    now = time.time()
    used = {path: path.stat().st_mtime for path in home.parent.iterdir() if path != home}
    total = needed_bytes
    for other in sorted(used, key=lambda path: -used[path]):
        unused_s = now - used[other]
        with contextlib.suppress(FileNotFoundError):  # somebody brings it up to date meanwhile
            total += sum(file.stat().st_size for file in other.rglob("*") if file.is_file())
        if unused_s > UNUSED_S or (total > BYTES and unused_s > IN_USE_S):
            shutil.rmtree(other, ignore_errors=True)
    if needed_bytes > (free := shutil.disk_usage(home).free):
        raise StoreError(
            f"the copy of the collection, which is read in its place, may take {size(needed_bytes)}, and {home.parent} "
            f"has {size(free)}: name a folder on a larger disk in XDG_CACHE_HOME"
        )
