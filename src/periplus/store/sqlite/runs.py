"""The runs of a collection in a folder: one at a time, with a clock that may be set back."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from periplus.children import private_files
from periplus.errors import StoreError
from periplus.model.ports import RunRecord
from periplus.store import runs
from periplus.store.sqlite import schema
from periplus.store.statements import Statements

# If the clock is set back, stored times are moved back too; otherwise each host would wait until the old time is
# reached again. A clock that is set forward needs no handling: waiting hosts become due, and each lease that seems to
# have expired costs one page.

NOTICED_S = 1.0  # smaller steps are clock corrections, and waiting that much longer does no harm


def latest_time_s(statements: Statements) -> float:
    """Latest time recorded by runs; 0 without a run."""
    times = statements.rows("SELECT max(max(started), coalesce(max(ended), 0)) FROM run")
    times += statements.rows("SELECT started FROM (SELECT started FROM visit ORDER BY id DESC LIMIT 1)")
    return max(time_s or 0.0 for (time_s,) in times)


def follow(statements: Statements, back_s: float, now: float) -> None:
    """Moves future times back, in the transaction of the caller. now: of the changed clock."""
    if back_s <= NOTICED_S:
        return
    statements.change("UPDATE host SET next_at = next_at - ? WHERE next_at > ?", (back_s, now))
    statements.change("UPDATE queue SET not_before = not_before - ? WHERE not_before > ?", (back_s, now))
    statements.change("UPDATE worker SET lease_until = lease_until - ?", (back_s,))


CRAWL_LOCK = "crawl.lock"  # locked by the running crawl; the file itself stays


@contextlib.contextmanager
def only_crawl(folder: Path) -> Iterator[None]:
    """Locks a collection for one crawl.

    The kernel releases the lock when its holder dies; child processes do not inherit it. Raises StoreError if another
    crawl holds it, since two would each use the other's limits and run.
    """
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        file = os.open(folder / CRAWL_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(
            f"cannot store a collection in {folder}: {error.strerror}. Is the disk full, or the folder read-only?"
        ) from error
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(file, 0)
        os.write(file, str(os.getpid()).encode())
    except ImportError:  # not available on this system
        pass
    except BlockingIOError:
        who = os.read(file, 20).decode("ascii", "replace") or "?"
        os.close(file)
        raise StoreError(
            f"another crawl (process {who}) is running on {folder}. Wait for its end, stop it, or "
            "choose another folder with -o."
        ) from None
    try:
        with private_files():
            yield
    finally:
        os.close(file)


def contents(folder: Path) -> list[Path]:
    """Files of the collection in folder, which `--fresh` deletes.

    Settings (periplus.toml) are not included.
    """
    names = (
        schema.DATABASE,
        schema.DATABASE + "-wal",
        schema.DATABASE + "-shm",
        "write.lock",
        "search",
        "search.lock",
        "vectors",
        "links.book",
        "stories.read",
        "issues.read",
        "report.read",
        "site.layout",
    )
    return [folder / name for name in names if (folder / name).exists()]


def names_in(folder: Path) -> list[str] | None:
    """Names in a folder, or None if it does not exist."""
    return [path.name for path in folder.iterdir()] if folder.is_dir() else None


def delete(paths: Iterable[Path]) -> None:
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def discard(folder: Path, before: Collection[str] | None) -> bool:
    """Deletes a new collection without pages and survey; the caller holds `only_crawl`. Returns whether it was deleted.

    before: `names_in` the folder before the collection was created. These files stay.
    """
    find = "SELECT EXISTS (SELECT 1 FROM page) OR EXISTS (SELECT 1 FROM meta WHERE name = 'survey')"
    with contextlib.closing(schema.connect(folder)) as connection:
        if connection.execute(find).fetchone()[0]:
            return False
    delete(path for path in (*contents(folder), folder / CRAWL_LOCK) if path.name not in (before or ()))
    if before is None:
        with contextlib.suppress(OSError):  # the folder is not empty
            folder.rmdir()
    return True


def run_records(connection: sqlite3.Connection) -> list[RunRecord]:
    """All runs, oldest first."""
    return runs.records(schema.SqliteStatements(connection))
