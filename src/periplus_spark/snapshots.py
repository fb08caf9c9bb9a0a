"""Snapshots of a collection for all its readers: exports in numbered folders of one place, and SQL over them."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from periplus.api.homes import home_of, name_of, open_reader
from periplus.errors import OutOfTime, StoreError, UsageError
from periplus.store.reader import Answer
from periplus.values import Place, frozen
from periplus_spark.dataset import Manifest
from periplus_spark.datasets import (
    INTERNAL,
    ExportParts,
    TableWatch,
    export_dataset,
    inputs_of,
    manifests_of_results,
    no_watch,
    refuse_other,
    result_table,
    unwritable_error,
)
from periplus_spark.files import is_whole, manifest_in, part_paths

# A collection's snapshots are exports in the folder that it notes, numbered 00001, 00002, ...; each keeps the unchanged
# parts of the one before. The newest complete one is read by everybody; results of analyses are beside it, in
# NUMBER.results. Those of the same parameters are found there by `api.compute`.

SNAPSHOT = "snapshot"  # key of a collection's note: the folder with its snapshots
SNAPSHOT_URLS = 50_000  # URLs per part: a part with a change is written again
LOCK = "lock"  # file in that folder, locked by the process that writes a snapshot
SQL_MEMORY = "500MB"
SQL_ROWS = 1_000  # rows fetched at a time


@frozen
class Snapshot:
    """The newest complete snapshot of a collection.

    made: seconds since the epoch. fetched: its change number. newer: pages requested since then. has_deleted: whether
    it has URLs that were deleted since.
    """

    folder: Path
    made: float
    fetched: int
    newer: int
    has_deleted: bool

    @property
    def results(self) -> Path:
        return self.folder.with_name(self.folder.name + ".results")


def find_snapshot(place: Place) -> Snapshot:
    """Raises UsageError if the collection has none, NoCollection, StoreError."""
    with open_reader(place) as reader:
        where, records, urls = reader.note(SNAPSHOT), reader.runs(), reader.count_urls()
    if not where:
        raise UsageError(f"{name_of(place)} has no snapshot: `periplus snapshot FOLDER` makes one")
    folder = _newest(Path(where))
    if folder is None:
        raise StoreError(
            f"{where}, where the snapshots of {name_of(place)} are, has none: is it a folder of this machine?"
        )
    manifest = manifest_in(folder)
    refuse_other(manifest, folder, records, name_of(place))
    fetched, now = int(str(manifest.inputs["fetched"])), sum(run.fetched for run in records)
    return Snapshot(folder, manifest.made, fetched, max(0, now - fetched), urls < manifest.rows("urls"))


def _newest(where: Path) -> Path | None:
    return max((path for path in where.glob("*") if path.name.isdecimal() and is_whole(path)), default=None)


def write_snapshot(
    place: Place, into: Path | None, now: float, *, with_texts: bool, workers: int = 1, watch: TableWatch = no_watch
) -> Path:
    """Writes what changed since the last snapshot, unless nothing did, and notes the folder in the collection.

    into: folder of all snapshots of the collection; None: the noted one. with_texts: also those of later snapshots.
    Raises as `export_dataset`.
    """
    if into and into.parts and into.parts[0].endswith(":"):  # `s3://bucket` as a path
        raise UsageError(
            f"{into} is no folder: snapshots are in a folder that all readers reach, not in object storage"
        )
    with open_reader(place) as reader:
        noted, records, urls = reader.note(SNAPSHOT), reader.runs(), reader.count_urls()
    where = (into or Path(noted)).absolute()
    if not (into or noted):
        raise UsageError("name a folder for the snapshots that all readers of the collection can read")
    with _alone_in(where):
        last = _newest(where)
        manifest = manifest_in(last) if last else None
        with_texts = with_texts or (manifest is not None and bool(manifest.parameters["texts"]))
        folder = last
        if not (manifest and _is_current(manifest, inputs_of(place, records), urls, with_texts)):
            folder = where / f"{int(last.name) + 1 if last else 1:05}"
            parts = ExportParts(0, workers, last, SNAPSHOT_URLS)
            export_dataset(place, folder, now, with_texts=with_texts, parts=parts, watch=watch)
        if noted != str(where):
            home_of(place).change_note(SNAPSHOT, lambda _: str(where))
        assert folder is not None
        return folder


def _is_current(manifest: Manifest, inputs: Mapping[str, object], urls: int, texts: bool) -> bool:
    is_same = inputs.items() <= manifest.inputs.items() and urls == manifest.rows("urls")
    return is_same and texts == manifest.parameters["texts"]


@contextlib.contextmanager
def _alone_in(where: Path) -> Iterator[None]:
    """Holds the lock of a folder of snapshots. Raises StoreError if it is taken or the folder cannot be written."""
    try:
        where.mkdir(parents=True, exist_ok=True)
        with (where / LOCK).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
    except BlockingIOError:
        raise StoreError(f"another process writes a snapshot into {where}: wait for it") from None
    except OSError as error:
        raise unwritable_error(where, error) from error


@contextlib.contextmanager
def ask_snapshot(snapshot: Snapshot, question: str, limit_s: float, most: int = -1) -> Iterator[Answer]:
    """Runs a query of DuckDB over the tables of a snapshot, and those of its results as `result_ANALYSIS`.

    The query reads no other file. limit_s: elapsed time, 0: none; most: rows, -1: all. Raises UsageError, OutOfTime.
    """
    import duckdb
    import pyarrow.dataset as ds

    options: dict[str, Any] = {
        "enable_external_access": False,
        "python_enable_replacements": False,
        "memory_limit": SQL_MEMORY,
    }
    with contextlib.closing(duckdb.connect(":memory:", config=options)) as connection:
        for name, files_of_table in _sql_tables(snapshot).items():
            data = ds.dataset([str(path) for path in files_of_table], format="parquet")
            times = [field.name for field in data.schema if str(field.type).startswith("timestamp")]
            utc = ", ".join(f'"{time}" AT TIME ZONE \'UTC\' AS "{time}"' for time in times)
            connection.register(f"arrow_{name}", data)
            replaced = f" REPLACE ({utc})" if utc else ""
            connection.execute(f'CREATE VIEW "{name}" AS SELECT *{replaced} FROM "arrow_{name}"')
        connection.execute("SET lock_configuration = true")
        alarm = threading.Timer(limit_s or threading.TIMEOUT_MAX, connection.interrupt)
        alarm.daemon = True
        alarm.start()
        try:
            connection.execute(question)
            columns = [str(column[0]) for column in connection.description or ()]
            yield Answer(columns, _sql_rows(connection.fetchmany, most))
        except duckdb.InterruptException:
            raise OutOfTime(
                f"reading took longer than {limit_s:g} s and was stopped: query less, or allow more time"
            ) from None
        except duckdb.Error as error:
            raise UsageError(f"cannot execute this: {error}") from None
        finally:
            alarm.cancel()


def _sql_tables(snapshot: Snapshot) -> dict[str, list[Path]]:
    """Files by name. Of several results of one analysis the latest counts."""
    manifest = manifest_in(snapshot.folder)
    results = sorted(manifests_of_results(snapshot.results, manifest.digest).items(), key=lambda item: item[1].made)
    return {note.name: part_paths(snapshot.folder, note.name) for note in manifest.tables} | {
        result_table(result, note.name): part_paths(path, note.name)
        for path, result in results
        for note in result.tables
        if note.name not in INTERNAL
    }


def _sql_rows(fetch: Callable[[int], list[tuple[Any, ...]]], most: int) -> Iterator[tuple[object, ...]]:
    count = 0
    while rows := fetch(SQL_ROWS if most < 0 else min(SQL_ROWS, most - count)):
        count += len(rows)
        yield from (tuple(map(_sql_value, row)) for row in rows)
        if count == most:
            return


def _sql_value(value: object) -> object:
    if isinstance(value, bool) or value is None or isinstance(value, (int, float, str)):
        return int(value) if isinstance(value, bool) else value
    if isinstance(value, bytes):
        return value.hex()
    return f"{value.isoformat()}Z" if isinstance(value, datetime.datetime) else str(value)
