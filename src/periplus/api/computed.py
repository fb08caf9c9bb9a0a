"""How does what engines computed come back into the collection? Tables of Parquet with their manifests, all in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from periplus.analyse.engines.tables import blocks, manifest_in
from periplus.errors import UsageError
from periplus.model.dataset import Manifest
from periplus.store.sqlite import result_rows
from periplus.store.sqlite.result_rows import ResultNote, ResultTable
from periplus.store.sqlite.schema import writing

if TYPE_CHECKING:
    import pyarrow as pa

Watch = Callable[[str], None]  # is told the table that is loaded
INTERNAL = frozenset({"sketches", "edges", "nodes"})  # tables that only further stages read


def load_results(folder: Path, results: Path, dataset: Path, now: float, watch: Watch = lambda table: None) -> Mapping[str, int]:
    """Loads every finished analysis below results, computed from the dataset, into the collection in folder; returns rows by table.

    All of them in one transaction, each in place of an earlier result of its name; results in the numbers of another dataset go.
    Raises UsageError where nothing is finished, NoCollection, StoreError.
    """
    numbers = manifest_in(dataset)
    found = {place: manifest_in(place) for place in sorted(results.glob("*/")) if (place / "manifest.json").is_file()}
    finished = {place: manifest for place, manifest in found.items() if manifest.inputs.get("dataset") == numbers.digest}
    if not finished:
        others = f": {len(found)} were computed from another dataset" if found else ""
        raise UsageError(f"{results} holds no finished results of {dataset}{others}. `periplus analyse {dataset}` makes them.")
    rows: dict[str, int] = {}
    with writing(folder) as connection:
        if result_rows.dataset_of(connection) != numbers.digest:
            result_rows.clear(connection)
        for table in _numbers(dataset):
            watch(table.name)
            rows[table.name] = result_rows.replace(connection, table)
        for place, manifest in finished.items():
            for table in _tables(place, manifest):
                watch(table.name)
                rows[table.name] = result_rows.replace(connection, table)
            result_rows.note(connection, _note(manifest, numbers.digest), now)
    return rows


def _numbers(dataset: Path) -> Iterator[ResultTable]:
    """What leads from the numbers of results to the collection's own ids."""
    yield ResultTable("result_url", (("url", "INTEGER"), ("id", "INTEGER")), _rows(dataset, "urls", ["url", "id"]))
    sites = sorted(set(_rows(dataset, "hosts", ["site", "site_name"])), key=str)
    yield ResultTable("result_site", (("site", "INTEGER"), ("name", "TEXT")), sites)


def _tables(place: Path, manifest: Manifest) -> Iterator[ResultTable]:
    for table in manifest.tables:
        if table.name not in INTERNAL:
            name = f"result_{manifest.kind}" + ("" if table.name == manifest.kind else f"_{table.name}")
            yield ResultTable(name, _columns(place, table.name, list(table.columns)), _rows(place, table.name, list(table.columns)))


def _columns(place: Path, table: str, names: Sequence[str]) -> list[tuple[str, str]]:
    import pyarrow.parquet as pq

    types = {field.name: str(field.type) for field in pq.read_schema(place / table / "part-00000.parquet")}
    return [(name, _kind(types[name])) for name in names]


def _kind(type: str) -> str:
    return {"double": "REAL", "float": "REAL", "string": "TEXT", "large_string": "TEXT", "binary": "BLOB"}.get(type, "INTEGER")


def _rows(place: Path, table: str, columns: Sequence[str]) -> Iterator[tuple[object, ...]]:
    for block in blocks(place, table, columns):
        yield from zip(*(_values(block.column(name)) for name in columns), strict=True)


def _values(column: pa.Array) -> list[object]:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    found: list[object] = column.to_pylist()
    return found


def _note(manifest: Manifest, dataset: str) -> ResultNote:
    return ResultNote(manifest.kind, manifest.digest, dataset, json.dumps(manifest.parameters, sort_keys=True), manifest.program, manifest.made)
