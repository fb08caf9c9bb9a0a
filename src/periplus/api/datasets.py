"""Writes a collection as a dataset for engines, and takes back what they computed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from periplus.analyse.engines.dataset_files import (
    TableWriter,
    begin,
    blocks,
    drop,
    manifest_in,
    table_note,
    write_manifest,
)
from periplus.api.homes import name_of, results_of, whole_of
from periplus.errors import StoreError, UsageError
from periplus.model.dataset import TABLES, Block, Coded, ComputedTable, Manifest, ResultNote, TableNote, WholeRows
from periplus.model.ports import RunRecord
from periplus.settings import VERSION
from periplus.store.datasets import tables

if TYPE_CHECKING:
    import pyarrow as pa


TableWatch = Callable[[str, int], None]  # (the table that is written, its rows so far)


def _silent(table: str, rows: int) -> None:
    """Nobody watches."""


def export_dataset(
    place: Path | str, into: Path, now: float, *, with_texts: bool = False, watch: TableWatch = _silent
) -> Manifest:
    """Writes the collection in a folder, or at an address, as Parquet tables: docs/parquet.md.

    with_texts: also the pages' texts.

    Raises NoCollection, StoreError, UsageError for a folder that is not empty. A kill leaves no manifest.
    """
    with whole_of(place) as rows:
        begin(into)
        try:
            with contextlib.ExitStack() as stack:
                stack.callback(drop, into)
                written = [
                    _written(into, name, _watched(name, blocks, watch))
                    for name, blocks in tables(rows, into, with_texts=with_texts)
                ]
                manifest = Manifest(
                    "collection", VERSION, now, _inputs(place, rows), {"texts": with_texts}, tuple(written)
                )
                write_manifest(into, manifest)
                stack.pop_all()
        except OSError as error:
            raise StoreError(f"{into} cannot be written: {error.strerror or error}. Is the disk full?") from error
        return manifest


def _written(folder: Path, name: str, rows: Iterable[Block]) -> TableNote:
    with TableWriter(folder, name, TABLES[name].columns) as writer:
        for block in rows:
            writer.add_block(block)
    return table_note(folder, name, TABLES[name].columns)


def _watched(name: str, blocks: Iterable[Block], watch: TableWatch) -> Iterator[Block]:
    rows = 0
    for block in blocks:
        yield block
        rows += len(numbers) if not isinstance(numbers := block[0], Coded) else 0
        watch(name, rows)


def _inputs(place: Path | str, rows: WholeRows) -> dict[str, object]:
    records = rows.runs()
    last = records[-1] if records else None
    run = (
        {"id": last.id, "kind": last.kind, "state": last.state, "started": last.started, "ended": last.ended}
        if last
        else None
    )
    return {"collection": name_of(place), "runs": len(records), "last_run": run}


LoadWatch = Callable[[str], None]  # is told the table that is loaded
INTERNAL = frozenset({"sketches", "edges", "nodes"})  # tables that only further stages read


def load_results(
    place: Path | str, results: Path, dataset: Path, now: float, watch: LoadWatch = lambda table: None
) -> Mapping[str, int]:
    """Loads every finished analysis below results, computed from the dataset,
    into the collection in a folder or at an address; returns rows by table.

    All of them in one transaction, each in place of an earlier result of its name; results in the
    numbers of another dataset go.
    Raises UsageError where nothing is finished or the dataset is another collection's, NoCollection, StoreError.
    """
    numbers = manifest_in(dataset)
    manifests = {path: manifest_in(path) for path in sorted(results.glob("*/")) if (path / "manifest.json").is_file()}
    finished = {
        path: manifest for path, manifest in manifests.items() if manifest.inputs.get("dataset") == numbers.digest
    }
    if not finished:
        others = f": {len(manifests)} were computed from another dataset" if manifests else ""
        raise UsageError(
            f"{results} holds no finished results of {dataset}{others}. `periplus analyse {dataset}` makes them."
        )
    rows: dict[str, int] = {}
    with results_of(place, now) as store:
        _refuse_other(numbers, dataset, store.runs(), name_of(place))
        if store.dataset() != numbers.digest:
            store.clear()
        for table in _numbers(dataset):
            watch(table.name)
            rows[table.name] = store.replace(table)
        for path, manifest in finished.items():
            for table in _tables(path, manifest):
                watch(table.name)
                rows[table.name] = store.replace(table)
            store.note(_note(manifest, numbers.digest))
    return rows


def _refuse_other(numbers: Manifest, dataset: Path, runs: Sequence[RunRecord], name: str) -> None:
    """A collection is known by its runs, wherever it was moved.

    The last one that the dataset knows must still be there: pages go with a deleted run.
    """
    last = numbers.inputs.get("last_run")
    if not isinstance(last, dict) or (last.get("id"), last.get("started")) not in {
        (run.id, run.started) for run in runs
    }:
        source = numbers.inputs.get("collection", "another collection")
        raise UsageError(
            f"{dataset} is no dataset of {name}, but of {source}, or of a run that was deleted: "
            "`periplus export parquet` makes one."
        )


def _numbers(dataset: Path) -> Iterator[ComputedTable]:
    """What leads from the numbers of results to the collection's own ids."""
    yield ComputedTable("result_url", (("url", "INTEGER"), ("id", "INTEGER")), _rows(dataset, "urls", ["url", "id"]))
    sites = sorted(set(_rows(dataset, "hosts", ["site", "site_name"])), key=str)
    yield ComputedTable("result_site", (("site", "INTEGER"), ("name", "TEXT")), sites)


def _tables(place: Path, manifest: Manifest) -> Iterator[ComputedTable]:
    for table in manifest.tables:
        if table.name not in INTERNAL:
            name = f"result_{manifest.kind}" + ("" if table.name == manifest.kind else f"_{table.name}")
            yield ComputedTable(
                name, _columns(place, table.name, list(table.columns)), _rows(place, table.name, list(table.columns))
            )


def _columns(place: Path, table: str, names: Sequence[str]) -> list[tuple[str, str]]:
    import pyarrow.parquet as pq

    types = {field.name: str(field.type) for field in pq.read_schema(place / table / "part-00000.parquet")}
    return [(name, _kind(types[name])) for name in names]


def _kind(type: str) -> str:
    return {"double": "REAL", "float": "REAL", "string": "TEXT", "large_string": "TEXT", "binary": "BLOB"}.get(
        type, "INTEGER"
    )


def _rows(place: Path, table: str, columns: Sequence[str]) -> Iterator[tuple[object, ...]]:
    for block in blocks(place, table, columns):
        yield from zip(*(_values(block.column(name)) for name in columns), strict=True)


def _values(column: pa.Array) -> list[object]:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[object] = column.to_pylist()
    return values


def _note(manifest: Manifest, dataset: str) -> ResultNote:
    return ResultNote(
        manifest.kind,
        manifest.digest,
        dataset,
        json.dumps(manifest.parameters, sort_keys=True),
        manifest.program,
        manifest.made,
    )
