"""A shared search index of a collection in a database: its place, its files, and the lock for publishing there."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

from periplus.errors import StoreError
from periplus.retrieval.index import COMMIT_FILE, FILE, FOLDER, translate_errors
from periplus.store.notes import note, put_note
from periplus_postgres import schema
from periplus_postgres.address import Address, address_of, noted_place
from periplus_postgres.connection import Connection, connect, try_lock
from periplus_postgres.ledger import lock_number
from periplus_postgres.statements import PostgresStatements

NAME = "index"  # key in meta

# A commit consists of files that never change and `meta.json`, which names them. The engine deletes a file only after a
# newer `meta.json` no longer names it. If `meta.json` is the same before and after linking, the set of links is
# complete.

SEGMENT_ENDINGS = (".idx", ".pos", ".term", ".store", ".fast", ".fieldnorm", ".del")  # files that never change
MANAGED_FILE = ".managed.json"  # the engine's list of files that it may delete
TRIES = 10  # a concurrent merge causes only a few retries


def remember(connection: Connection, place: str) -> None:
    """Stores the place of the collection's index, unless `place` is empty."""
    place = noted_place(place)
    if place and place_of_index(connection) != place:
        put_note(PostgresStatements(connection), NAME, place)


def place_of_index(connection: Connection) -> str:
    """Place of the shared index; empty if every reader has its own."""
    return note(PostgresStatements(connection), NAME)


def is_shared(place: str) -> bool:
    """Whether the collection exists and has a shared index. Raises UsageError, StoreError."""
    address = address_of(place)
    with contextlib.closing(connect(address)) as connection:
        return schema.exists(connection) and bool(address.index or place_of_index(connection))


@contextlib.contextmanager
def publishing(address: Address, what: str) -> Iterator[Callable[[], bool] | None]:
    """Takes the lock for publishing `what`. Yields None if another process has it, else a function that checks whether
    the lock is still held. The server releases it when the connection of a dead process ends. Stores the place in the
    address, if the user may. Raises UsageError, StoreError.
    """
    with contextlib.closing(connect(address)) as connection:
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
            remember(connection, address.index)
        lock = (schema.LOCK_INDEX, lock_number(f"{address.collection} {what}"))
        with try_lock(connection, lock) as is_held:

            def is_alive() -> bool:
                try:
                    connection.execute("SELECT 1")
                except psycopg.Error:
                    return False
                return True

            yield is_alive if is_held else None


def linked_files(folder: Path, target: Path) -> dict[str, Path]:
    """Links the files of the index's last commit into another folder on the same disk.

    Returns them by name. Raises StoreError.
    """
    where = folder / FOLDER
    with translate_errors(folder):
        for _ in range(TRIES):
            meta = (where / COMMIT_FILE).read_bytes()
            names = engine_files(where, meta)
            with contextlib.suppress(FileNotFoundError):  # the commit has changed too; retried below
                for name in names:
                    (target / name).unlink(missing_ok=True)
                    (target / name).hardlink_to(where / name)
            if (where / COMMIT_FILE).read_bytes() == meta:
                break
        else:
            raise StoreError(f"the search index in {where} changes faster than it can be published: try again")
        if (where / FILE).exists():
            names.append(shutil.copyfile(where / FILE, target / FILE).name)
        (target / COMMIT_FILE).write_bytes(meta)
        (target / MANAGED_FILE).write_text(json.dumps([*names, COMMIT_FILE]), "utf-8")
        return {name: target / name for name in (*names, COMMIT_FILE, MANAGED_FILE)}


def engine_files(where: Path, meta: bytes) -> list[str]:
    """Sorted names of the files that the engine's `meta.json` names."""
    segments = json.loads(meta)["segments"]
    ids = {segment["segment_id"].replace("-", ""): segment["deletes"] for segment in segments}
    deletes = {f"{name}.{segment['opstamp']}.del" for name, segment in ids.items() if segment}
    there = (path.name for path in where.iterdir() if path.name.partition(".")[0] in ids)
    return sorted(name for name in there if not name.endswith(".del") or name in deletes)
