"""How does a collection become a folder of tables for engines? All of one moment, the manifest last."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from periplus.api.homes import name_of, whole_of
from periplus.errors import StoreError
from periplus.model.dataset import TABLES, Block, Coded, Manifest, WholeRows
from periplus.present.dataset_files import begin, drop, finish, write_table
from periplus.settings import VERSION
from periplus.store.dataset_blocks import tables

Watch = Callable[[str, int], None]  # (the table that is written, its rows so far)


def _silent(table: str, rows: int) -> None:
    """Nobody watches."""


def export_dataset(place: Path | str, into: Path, now: float, *, with_texts: bool = False, watch: Watch = _silent) -> Manifest:
    """Writes the collection in a folder, or at an address, as Parquet tables: docs/parquet.md. with_texts: also the pages' texts.

    Raises NoCollection, StoreError, UsageError for a folder that is not empty. A kill leaves no manifest.
    """
    with whole_of(place) as rows:
        begin(into)
        try:
            with contextlib.ExitStack() as stack:
                stack.callback(drop, into)
                written = [write_table(into, name, TABLES[name], _watched(name, blocks, watch)) for name, blocks in tables(rows, into, with_texts=with_texts)]
                manifest = Manifest("collection", VERSION, now, _inputs(place, rows), {"texts": with_texts}, tuple(written))
                finish(into, manifest)
                stack.pop_all()
        except OSError as error:
            raise StoreError(f"{into} cannot be written: {error.strerror or error}. Is the disk full?") from error
        return manifest


def _watched(name: str, blocks: Iterable[Block], watch: Watch) -> Iterator[Block]:
    rows = 0
    for block in blocks:
        yield block
        rows += len(numbers) if not isinstance(numbers := block[0], Coded) else 0
        watch(name, rows)


def _inputs(place: Path | str, rows: WholeRows) -> dict[str, object]:
    records = rows.runs()
    last = records[-1] if records else None
    run = {"id": last.id, "kind": last.kind, "state": last.state, "started": last.started, "ended": last.ended} if last else None
    return {"collection": name_of(place), "runs": len(records), "last_run": run}
