"""How are a dataset's tables read and written, block by block?"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.errors import StoreError, UsageError
from periplus.model.dataset import MANIFEST, Manifest, PartNote, TableNote, manifest_of
from periplus.settings import VERSION

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

BLOCK_ROWS = 1 << 19  # of links read at once: 5 columns of them are 20 MB, and smaller blocks cost more calls than they save
PART_ROWS = 1 << 22  # of a file: some 40 MB of links, so that a cluster has tasks to give out


class Field(NamedTuple):
    """A column of a result. type: as Arrow names it."""

    name: str
    type: str
    sentence: str


def manifest_in(folder: Path) -> Manifest:
    """Raises StoreError for a folder that is not whole, or of a newer program."""
    try:
        text = (folder / MANIFEST).read_text("utf-8")
    except OSError:
        raise StoreError(f"{folder} holds no {MANIFEST}, so it is not whole: make it again") from None
    return manifest_of(text, str(folder / MANIFEST))


def is_whole(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def part_paths(folder: Path, table: str) -> list[Path]:
    """The files of a table, in order. None where the folder has no such table."""
    notes = [note for note in manifest_in(folder).tables if note.name == table]
    return [folder / table / part.name for note in notes for part in note.parts]


def blocks(folder: Path, table: str, columns: Sequence[str], rows: int = BLOCK_ROWS) -> Iterator[pa.RecordBatch]:
    """A table's rows, in order."""
    parquet = parquet_module()
    for path in part_paths(folder, table):
        with parquet.ParquetFile(path) as file:
            for block in file.iter_batches(rows, columns=list(columns)):
                yield block.select(list(columns))


def number_blocks(folder: Path, table: str, columns: Sequence[str], rows: int = BLOCK_ROWS) -> Iterator[tuple[Ints, ...]]:
    """The same of columns of whole numbers that all have a value."""
    for block in blocks(folder, table, columns, rows):
        yield tuple(np.asarray(block.column(name), np.int64) for name in columns)


def numbers(folder: Path, table: str, column: str, missing: int = -1) -> Ints:
    """A whole column; of a time its milliseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = np.full(manifest_in(folder).rows(table), missing, np.int64)
    at = 0
    for block in blocks(folder, table, [column]):
        values = block.column(0)
        whole = pc.fill_null(values.cast(pa.int64()), missing)
        found[at : at + len(values)] = np.asarray(whole)
        at += len(values)
    return found


def reals(folder: Path, table: str, column: str) -> Floats:
    """A whole column of real numbers."""
    found = np.empty(manifest_in(folder).rows(table))
    at = 0
    for block in blocks(folder, table, [column]):
        found[at : at + len(block)] = np.asarray(block.column(0))
        at += len(block)
    return found


def is_among(folder: Path, table: str, column: str, names: Sequence[str]) -> Mask:
    """Of each row, whether its text is one of these."""
    parts = [text_mask(block, column, names) for block in blocks(folder, table, [column])]
    return np.concatenate(parts) if parts else np.zeros(0, np.bool_)


def flags(folder: Path, table: str, column: str) -> Mask:
    """A whole column of booleans; no value: no."""
    parts = [np.asarray(block.column(0).fill_null(False), np.bool_) for block in blocks(folder, table, [column])]
    return np.concatenate(parts) if parts else np.zeros(0, np.bool_)


def text_mask(block: pa.RecordBatch, column: str, names: Sequence[str]) -> Mask:
    import pyarrow as pa
    import pyarrow.compute as pc

    found: Mask = np.asarray(pc.is_in(block.column(column), value_set=pa.array(list(names), pa.string())), np.bool_)
    return found


class TableWriter:
    """Rows of one table into files `part-00000.parquet`, ...: at least one, so that an empty table has its columns."""

    def __init__(self, folder: Path, table: str, fields: Sequence[Field]) -> None:
        import pyarrow as pa

        self._folder = folder / table
        self._folder.mkdir(parents=True, exist_ok=True)
        self._schema = pa.schema([pa.field(field.name, pa.type_for_alias(field.type), metadata={"description": field.sentence}) for field in fields])
        self._file: pq.ParquetWriter | None = None
        self._rows = self._parts = 0

    def add(self, columns: Mapping[str, object]) -> None:
        """A block of rows: a column's values by its name."""
        import pyarrow as pa

        block = pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in self._schema], schema=self._schema)
        self.add_block(block)

    def add_block(self, block: pa.RecordBatch) -> None:
        """The same as Arrow has it; columns in the table's order."""
        if self._file is None or self._rows >= PART_ROWS:
            self._begin()
        assert self._file is not None
        self._file.write_batch(block)
        self._rows += len(block)

    def _begin(self) -> None:
        self._end()
        self._file = parquet_module().ParquetWriter(self._folder / f"part-{self._parts:05}.parquet", self._schema, compression="zstd")
        self._parts += 1
        self._rows = 0

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None and self._file is None:
            self._begin()
        self._end()


def write_manifest(folder: Path, kind: str, inputs: Mapping[str, object], parameters: Mapping[str, object], tables: Mapping[str, Sequence[Field]]) -> Manifest:
    """Says that the folder is whole: the last thing that is written. tables: their files are there."""
    notes = tuple(_noted(folder, name, fields) for name, fields in tables.items())
    manifest = Manifest(kind, VERSION, time.time(), inputs, parameters, notes)
    draft = folder / f"{MANIFEST}.part"
    draft.write_text(manifest.to_json(), "utf-8")
    draft.replace(folder / MANIFEST)
    return manifest


def _noted(folder: Path, table: str, fields: Sequence[Field]) -> TableNote:
    parts = []
    for path in sorted((folder / table).glob("*.parquet")):
        rows = parquet_module().read_metadata(path).num_rows
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        parts.append(PartNote(path.name, rows, path.stat().st_size, digest))
    return TableNote(table, sum(part.rows for part in parts), tuple(parts), {field.name: field.sentence for field in fields})


def parquet_module() -> pq:
    """pyarrow.parquet. Raises UsageError where it is missing."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise UsageError("Parquet needs pyarrow, which is not installed: pip install 'periplus[parquet]'") from None
    return pyarrow.parquet
