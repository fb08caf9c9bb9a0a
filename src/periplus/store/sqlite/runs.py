"""The runs of a collection in a folder: one at a time, by a clock that may be set back."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from periplus.children import private_files
from periplus.errors import StoreError
from periplus.model.ports import RunRecord
from periplus.model.web import Url, UrlId
from periplus.settings import Settings
from periplus.store import runs
from periplus.store.sqlite import schema

# When the clock is set back, times that were kept move with it: else each host would wait until
# the old time comes again.
#
# A clock that is set forward needs nothing: what waited is due, and leases that seem to be over cost a page each.

NOTICED_S = 1.0  # less is a clock being kept right; what waits for so much longer is no harm


def last_known(connection: sqlite3.Connection) -> float:
    """The latest time that the runs so far are known to have reached; 0 without a run."""
    run = connection.execute("SELECT max(max(started), coalesce(max(ended), 0)) FROM run").fetchone()[0]
    visit = connection.execute("SELECT started FROM visit ORDER BY id DESC LIMIT 1").fetchone()
    return max(run or 0.0, visit[0] if visit else 0.0)


def follow(connection: sqlite3.Connection, back_s: float, now: float) -> None:
    """Moves what waits for a time to come, in the transaction of the caller. now: by the clock as it is set now."""
    if back_s <= NOTICED_S:
        return
    connection.execute("UPDATE host SET next_at = next_at - ? WHERE next_at > ?", (back_s, now))
    connection.execute("UPDATE queue SET not_before = not_before - ? WHERE not_before > ?", (back_s, now))
    connection.execute("UPDATE worker SET lease_until = lease_until - ?", (back_s,))


CRAWL_LOCK = "crawl.lock"  # held by whoever crawls; the file itself says nothing, and stays


@contextlib.contextmanager
def only_crawl(folder: Path) -> Iterator[None]:
    """Holds a collection for one crawl.

    The kernel frees it when its holder dies, however that happens; child processes do not inherit it. Raises StoreError
    when another crawl holds it: two would each take the other's limits and run for their own.
    """
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        file = os.open(folder / CRAWL_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(
            f"no collection can be kept in {folder}: {error.strerror}. Is the disk full, or the folder read-only?"
        ) from error
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(file, 0)
        os.write(file, str(os.getpid()).encode())
    except ImportError:  # no such locks on this system
        pass
    except BlockingIOError:
        who = os.read(file, 20).decode("ascii", "replace") or "?"
        os.close(file)
        raise StoreError(
            f"another crawl (process {who}) is at work on {folder}. Wait for its end, stop it, or "
            "choose another folder with -o."
        ) from None
    try:
        with private_files():
            yield
    finally:
        os.close(file)


def contents(folder: Path) -> list[Path]:
    """The files that make up the collection in folder: what `--fresh` deletes.

    Settings (periplus.toml) are not among them.
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
        "site.layout",
    )
    return [folder / name for name in names if (folder / name).exists()]


def names_in(folder: Path) -> list[str] | None:
    """None: there is no folder."""
    return [path.name for path in folder.iterdir()] if folder.is_dir() else None


def delete(paths: Iterable[Path]) -> None:
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def discard(folder: Path, before: Collection[str] | None) -> bool:
    """Deletes a new collection without pages and survey; the caller holds `only_crawl`. False: it has some, and stays.

    before: `names_in` the folder before it was made. What they name stays.
    """
    find = "SELECT EXISTS (SELECT 1 FROM page) OR EXISTS (SELECT 1 FROM meta WHERE name = 'survey')"
    with contextlib.closing(schema.connect(folder)) as connection:
        if connection.execute(find).fetchone()[0]:
            return False
    delete(path for path in (*contents(folder), folder / CRAWL_LOCK) if path.name not in (before or ()))
    if before is None:
        with contextlib.suppress(OSError):  # the user put something into it meanwhile
            folder.rmdir()
    return True


def begin_run(
    folder: Path,
    kind: str,
    starts: Sequence[Url],
    settings: Settings,
    now: float,
    further: Mapping[str, object] | None = None,
) -> int:
    """A new run; returns its id. What earlier runs knew of hosts' failures is forgotten: they are asked anew.

    further: what else decides how it goes, kept among its settings; `seed` stands in a column of its own.
    """
    with schema.writing(folder) as connection:
        follow(connection, last_known(connection) - now, now)
        return runs.begin(schema.SqliteStatements(connection), kind, starts, settings, now, further)


def add_starts(folder: Path, ids: Sequence[UrlId], now: float) -> None:
    with schema.writing(folder) as connection:
        rows = [(0, url_id, now) for url_id in ids]
        schema.SqliteStatements(connection).upsert("start", "url_id, added", rows)


def end_run(folder: Path, run_id: int, state: str, note: str, now: float) -> None:
    with schema.writing(folder) as connection:
        runs.end(schema.SqliteStatements(connection), run_id, state, note, now)


def run_records(connection: sqlite3.Connection) -> list[RunRecord]:
    """All runs, oldest first."""
    return runs.records(schema.SqliteStatements(connection))
