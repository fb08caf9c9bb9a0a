"""How do tables become a folder of Parquet files? Block by block, a part after another, each with its digest."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from periplus.errors import UsageError
from periplus.model.dataset import MANIFEST, TABLES, Block, Coded, Manifest, PartNote, TableNote, Values
from periplus.model.tables import Column, ColumnKind
from periplus.present.tables import sound
from periplus.present.writers import arrow_type

if TYPE_CHECKING:
    import pyarrow

PART_ROWS = 10_000_000  # of links some 100 MB: what a task of a cluster likes to read
GROUP_ROWS = 1_000_000  # of a row group: readers take one at a time; of texts as many as a block has


def begin(folder: Path) -> None:
    """An empty folder for a dataset: a new one, or what an export that did not come to its end has left.

    Raises UsageError.
    """
    try:
        if (folder / MANIFEST).exists():
            raise UsageError(f"{folder} holds a dataset already. Choose another folder, or delete that one.")
        folder.mkdir(parents=True, exist_ok=True)
        if strange := sorted(path.name for path in folder.iterdir() if path.name not in TABLES):
            raise UsageError(f"{folder} is not empty: it holds {strange[0]}. Choose another folder.")
        drop(folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from None


def write_table(folder: Path, name: str, columns: Sequence[Column], blocks: Iterable[Block]) -> TableNote:
    """One table in a folder of its name. Raises OSError, UsageError where pyarrow is missing."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError("Parquet needs pyarrow, which is not installed: pip install 'periplus[parquet]'") from None
    schema = pa.schema(
        [
            pa.field(column.name, arrow_type(column.kind), metadata={"description": column.sentence})
            for column in columns
        ]
    )
    place = folder / name
    place.mkdir()
    parts: list[PartNote] = []
    batches = (
        pa.record_batch([_array(column, values) for column, values in zip(columns, block, strict=True)], schema=schema)
        for block in blocks
    )
    rest = _cut(batches)
    batch = next(rest, None)
    while batch is not None or not parts:
        path, rows = place / f"part-{len(parts):05}.parquet", 0
        with pq.ParquetWriter(path, schema, compression="zstd") as file:
            while batch is not None and (not rows or rows + batch.num_rows <= PART_ROWS):
                file.write_batch(batch)
                rows += batch.num_rows
                batch = next(rest, None)
        parts.append(PartNote(path.name, rows, path.stat().st_size, _sha256(path)))
    return TableNote(
        name, sum(part.rows for part in parts), tuple(parts), {column.name: column.sentence for column in columns}
    )


def finish(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest: from now on the folder is whole."""
    draft = folder / f"{MANIFEST}.new"
    draft.write_text(manifest.to_json(), "utf-8")
    draft.replace(folder / MANIFEST)


def drop(folder: Path) -> None:
    """Deletes unfinished tables."""
    for name in TABLES:
        shutil.rmtree(folder / name, ignore_errors=True)


def _cut(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, GROUP_ROWS):
            yield batch.slice(start, GROUP_ROWS)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _array(column: Column, values: Values) -> pyarrow.Array:
    import pyarrow as pa

    kind = arrow_type(column.kind)
    if isinstance(values, Coded):
        return pa.DictionaryArray.from_arrays(values.codes, pa.array(values.names, pa.string())).cast(kind)
    if isinstance(values, np.ndarray):
        return pa.array(values.astype(np.bool_) if column.kind is ColumnKind.BOOLEAN else values).cast(kind)
    if column.kind is ColumnKind.TEXT:
        return pa.array([sound(value) if isinstance(value, str) else None for value in values], kind)
    if column.kind is ColumnKind.BOOLEAN:
        return pa.array([None if value is None else bool(value) for value in values], kind)
    return pa.array(values, kind)
