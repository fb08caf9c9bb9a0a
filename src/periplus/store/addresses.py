"""IP addresses of hosts, shared by all processes of a user on one machine: `model.ports.AddressTable`."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from periplus.children import process_lives
from periplus.errors import StoreError
from periplus.model.ports import AddressPlace
from periplus.store.sqlite.schema import connect_file

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # monotonic times are not comparable across boots
_TABLES = """
CREATE TABLE IF NOT EXISTS boot (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS name (address TEXT, name TEXT, pid INTEGER, PRIMARY KEY (address, name, pid)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS place (
    address TEXT PRIMARY KEY, pid INTEGER NOT NULL, asked TEXT NOT NULL, free_at REAL NOT NULL, next_slot REAL NOT NULL) WITHOUT ROWID;
"""  # noqa: E501


def addresses_file() -> Path:
    """Path in XDG_RUNTIME_DIR, else in XDG_CACHE_HOME (default ~/.cache)."""
    home = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "periplus" / "addresses.db"


class SharedAddresses:
    """Access of one process to the table. Live processes remove the entries of dead processes."""

    def __init__(self, path: Path, is_alive: Callable[[int], bool] = process_lives, pid: int = 0) -> None:
        """pid: the owning process; 0: this process. Every method raises StoreError."""
        self._path, self._is_alive, self._pid = path, is_alive, pid or os.getpid()
        with self._translated_errors():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._connection = connect_file(path)
            self._connection.execute("PRAGMA synchronous = OFF")  # after a power failure the content is obsolete anyway
            with self._transaction():
                for statement in _TABLES.split(";")[:-1]:
                    self._connection.execute(statement)
                self._begin_boot()
                self._remove_dead("SELECT DISTINCT pid FROM name")
                unused = "DELETE FROM place WHERE free_at < ? AND address NOT IN (SELECT address FROM name)"
                self._connection.execute(unused, (time.monotonic(),))

    def _begin_boot(self) -> None:
        boot = BOOT_ID.read_text("ascii") if BOOT_ID.is_file() else ""
        if self._connection.execute("SELECT id FROM boot").fetchall() != [(boot,)]:
            for table in ("boot", "name", "place"):
                self._connection.execute(f"DELETE FROM {table}")
            self._connection.execute("INSERT INTO boot VALUES (?)", (boot,))

    def enter(self, address: str, name: str) -> None:
        with self._translated_errors():
            self._connection.execute("INSERT OR IGNORE INTO name VALUES (?, ?, ?)", (address, name, self._pid))

    def leave(self, address: str, name: str) -> None:
        with self._translated_errors():
            drop = "DELETE FROM name WHERE address = ? AND name = ? AND pid = ?"
            self._connection.execute(drop, (address, name, self._pid))

    def names(self, address: str) -> int:
        with self._translated_errors():
            count = "SELECT count(DISTINCT name) FROM name WHERE address = ?"
            return int(self._connection.execute(count, (address,)).fetchone()[0])

    @contextlib.contextmanager
    def place(self, address: str) -> Iterator[AddressPlace]:
        with self._translated_errors(), self._transaction():
            here = (
                "SELECT pid FROM name WHERE address = ? UNION SELECT pid FROM place WHERE address = ? AND asked <> ''"
            )
            self._remove_dead(here, address, address)
            find = "SELECT pid, asked, free_at, next_slot FROM place WHERE address = ?"
            pid, *fields = self._connection.execute(find, (address,)).fetchone() or (0, "", 0.0, 0.0)
            place = AddressPlace(*fields)
            yield place
            holder = pid if place.asked == fields[0] else self._pid
            row = (address, holder, place.asked, place.free_at, place.next_slot)
            self._connection.execute("INSERT OR REPLACE INTO place VALUES (?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error), self._transaction():
            self._remove_process(self._pid)
        self._connection.close()

    def _remove_dead(self, pids: str, *values: object) -> None:
        for (pid,) in self._connection.execute(pids, values).fetchall():
            if not self._is_alive(pid):
                self._remove_process(pid)

    def _remove_process(self, pid: int) -> None:
        """Removes a process: its requests in progress, its names and its reserved slots."""
        of_names = "address IN (SELECT address FROM name WHERE pid = ?)"
        self._connection.execute(f"UPDATE place SET next_slot = free_at WHERE {of_names}", (pid,))
        self._connection.execute("UPDATE place SET asked = '' WHERE pid = ?", (pid,))
        self._connection.execute("DELETE FROM name WHERE pid = ?", (pid,))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"{self._path}, which coordinates the requests of processes, cannot be used: {error}. Is the "
                "disk full? Set XDG_RUNTIME_DIR to use another folder. A damaged file can be deleted."
            ) from error
