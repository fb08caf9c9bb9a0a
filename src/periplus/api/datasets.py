"""How does a collection become a folder of tables for engines? All of one moment, the manifest last."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from periplus.errors import StoreError
from periplus.model.dataset import TABLES, Block, Coded, Manifest, TableNote
from periplus.present.dataset_files import begin, drop, finish, write_table
from periplus.settings import VERSION
from periplus.store.sqlite import dataset_rows, reading, runs
from periplus.store.sqlite.dataset_rows import Numbers

Watch = Callable[[str, int], None]  # (the table that is written, its rows so far)


def _silent(table: str, rows: int) -> None:
    """Nobody watches."""


def export_dataset(folder: Path, into: Path, now: float, *, with_texts: bool = False, watch: Watch = _silent) -> Manifest:
    """Writes the collection in folder as Parquet tables: docs/parquet.md. with_texts: also the pages' texts.

    Raises NoCollection, StoreError, UsageError for a folder that is not empty. A kill leaves no manifest.
    """
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading(), reading.snapshot(connection):
        begin(into)
        try:
            with contextlib.ExitStack() as stack:
                stack.callback(drop, into)
                tables = tuple(_tables(connection, into, with_texts, watch))
                manifest = Manifest("collection", VERSION, now, _inputs(folder, connection), {"texts": with_texts}, tables)
                finish(into, manifest)
                stack.pop_all()
        except OSError as error:
            raise StoreError(f"{into} cannot be written: {error.strerror or error}. Is the disk full?") from error
        return manifest


def _tables(connection: reading.Connection, into: Path, with_texts: bool, watch: Watch) -> Iterator[TableNote]:
    def written(name: str, blocks: Iterator[Block]) -> TableNote:
        return write_table(into, name, TABLES[name], _watched(name, blocks, watch))

    block, host_numbers = dataset_rows.hosts(connection)
    yield written("hosts", iter([block]))
    ids = [np.zeros(0, np.int64)]
    yield written("urls", dataset_rows.urls(connection, host_numbers, ids))
    numbers = Numbers(np.concatenate(ids))
    ids.clear()
    yield written("redirects", iter([dataset_rows.leads(connection, numbers)]))
    yield written("pages", dataset_rows.pages(connection, numbers))
    yield written("links", dataset_rows.links(connection, numbers, into))
    if with_texts:
        yield written("texts", dataset_rows.texts(connection, numbers))


def _watched(name: str, blocks: Iterator[Block], watch: Watch) -> Iterator[Block]:
    rows = 0
    for block in blocks:
        yield block
        rows += len(numbers) if not isinstance(numbers := block[0], Coded) else 0
        watch(name, rows)


def _inputs(folder: Path, connection: reading.Connection) -> dict[str, object]:
    records = runs.run_records(connection)
    last = records[-1] if records else None
    run = {"id": last.id, "kind": last.kind, "state": last.state, "started": last.started, "ended": last.ended} if last else None
    return {"collection": folder.resolve().name, "runs": len(records), "last_run": run}
