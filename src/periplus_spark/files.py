"""Reads and writes folders of Parquet tables: datasets and results.

A table is a folder of numbered files. A folder of tables is complete when its manifest exists.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from periplus.errors import StoreError, UsageError
from periplus.model.arrays import Floats, Ints, Mask
from periplus.model.tables import Column, ColumnKind, without_surrogates
from periplus.present.writers import arrow_schema, parquet_module
from periplus.values import frozen
from periplus_spark.dataset import (
    MANIFEST,
    TABLES,
    Block,
    CodedColumn,
    Manifest,
    PartNote,
    TableNote,
    Values,
    manifest_of,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


# Links per read: 5 columns take 20 MB; smaller blocks cost more calls than they save
RESULT_ROWS = 1 << 22  # per file: about 40 MB of links, so that a cluster has enough tasks
BLOCK_ROWS = 1 << 19
PART_ROWS = 10_000_000  # per file: about 100 MB of links, a good size for a cluster task
DRAFTS = "unfinished"  # folder in a dataset for temporary files
GROUP_ROWS = 1_000_000  # per row group, the unit of reading; a smaller block of texts is one row group


def require_free(folder: Path) -> None:
    """Creates the folder for a dataset, or accepts an unfinished one. Raises UsageError."""
    try:
        if (folder / MANIFEST).exists():
            raise UsageError(f"{folder} already contains a dataset. Choose another folder, or delete it.")
        folder.mkdir(parents=True, exist_ok=True)
        ours = {*TABLES, DRAFTS}
        if strange := sorted(path.name for path in folder.iterdir() if path.name not in ours):
            raise UsageError(f"{folder} is not empty: it contains {strange[0]}. Choose another folder.")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from None


def begin(folder: Path) -> None:
    """Prepares an empty folder for a dataset; deletes an unfinished one. Raises UsageError."""
    require_free(folder)
    drop(folder)


def drop(folder: Path) -> None:
    """Deletes unfinished tables."""
    for name in (*TABLES, DRAFTS):
        shutil.rmtree(folder / name, ignore_errors=True)


def manifest_in(folder: Path) -> Manifest:
    """The manifest of a folder. Raises StoreError if the folder is incomplete or from a newer version."""
    try:
        text = (folder / MANIFEST).read_text("utf-8")
    except OSError:
        raise StoreError(f"{folder} has no {MANIFEST}: it is incomplete, create it again") from None
    return manifest_of(text, str(folder / MANIFEST))


def is_whole(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def part_paths(folder: Path, table: str) -> list[Path]:
    """The files of a table, in order; empty if the folder has no such table."""
    notes = [note for note in manifest_in(folder).tables if note.name == table]
    return [folder / table / part.name for note in notes for part in note.parts]


class Span(NamedTuple):
    """The rows with first <= column < after; the table is sorted by the column."""

    column: str
    first: int
    after: int


def blocks(
    folder: Path, table: str, columns: Sequence[str], rows: int = BLOCK_ROWS, span: Span | None = None
) -> Iterator[pa.RecordBatch]:
    """A table's rows, in order. With a span, only its rows, and only row groups that contain some are read."""
    parquet = parquet_module()
    names = list(columns)
    read = names if span is None or span.column in names else [*names, span.column]
    for path in part_paths(folder, table):
        with parquet.ParquetFile(path) as file:
            for block in file.iter_batches(rows, row_groups=_groups(file, span), columns=read):
                part = block if span is None else _within(block, span)
                if part.num_rows:
                    yield part.select(names)


def _groups(file: pq.ParquetFile, span: Span | None) -> Sequence[int]:
    groups = range(file.metadata.num_row_groups)
    if span is None:
        return groups
    at = file.schema_arrow.get_field_index(span.column)
    ends = [file.metadata.row_group(group).column(at).statistics for group in groups]
    return [
        group
        for group, end in zip(groups, ends, strict=True)
        if end is None or not end.has_min_max or (end.max >= span.first and end.min < span.after)
    ]


def _within(block: pa.RecordBatch, span: Span) -> pa.RecordBatch:
    begin, end = np.searchsorted(np.asarray(block.column(span.column)), (span.first, span.after)).tolist()
    return block.slice(begin, end - begin)


def numbers(folder: Path, table: str, column: str, missing: int = -1, span: Span | None = None) -> Ints:
    """A whole column of integers; times in milliseconds. span: over a column of unique values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    most = manifest_in(folder).rows(table)
    whole_column = np.full(most if span is None else min(span.after - span.first, most), missing, np.int64)
    at = 0
    for block in blocks(folder, table, [column], span=span):
        values = block.column(0)
        whole = pc.fill_null(values.cast(pa.int64()), missing)
        whole_column[at : at + len(values)] = np.asarray(whole)
        at += len(values)
    return whole_column[:at]


def stored_ranks(folder: Path) -> Floats:
    """PageRank of each page."""
    parts = [np.asarray(block.column(0)) for block in blocks(folder, "ranks", ["rank"])]
    return np.concatenate(parts) if parts else np.zeros(0)


def is_among(folder: Path, table: str, column: str, names: Sequence[str], span: Span | None = None) -> Mask:
    """For each row, whether its text is one of names."""
    parts = [text_mask(block, column, names) for block in blocks(folder, table, [column], span=span)]
    return np.concatenate(parts) if parts else np.zeros(0, np.bool_)


def flags(folder: Path, table: str, column: str, span: Span | None = None) -> Mask:
    """A whole column of booleans; null is False."""
    read = blocks(folder, table, [column], span=span)
    parts = [np.asarray(block.column(0).fill_null(False), np.bool_) for block in read]
    return np.concatenate(parts) if parts else np.zeros(0, np.bool_)


def text_mask(block: pa.RecordBatch, column: str, names: Sequence[str]) -> Mask:
    import pyarrow as pa
    import pyarrow.compute as pc

    mask: Mask = np.asarray(pc.is_in(block.column(column), value_set=pa.array(list(names), pa.string())), np.bool_)
    return mask


class TableWriter:
    """Writes a table to files `part-00000.parquet`, ...; at least one, so that an empty table has its columns.

    part_rows: most rows per file, by default PART_ROWS. Raises UsageError if pyarrow is missing, OSError.
    """

    def __init__(self, folder: Path, table: str, columns: Sequence[Column], part_rows: int = 0) -> None:
        self._parquet = parquet_module()
        self._folder = folder / table
        self._folder.mkdir(parents=True, exist_ok=True)
        self._columns, self._schema = columns, arrow_schema(columns)
        self._part_rows = part_rows or PART_ROWS
        self._file: pq.ParquetWriter | None = None
        self._rows = self._parts = 0

    def add(self, columns: Mapping[str, object]) -> None:
        """Adds a block of rows: values by column name, in any form that Arrow accepts."""
        import pyarrow as pa

        arrays = [pa.array(columns[field.name], field.type) for field in self._schema]
        self._add(pa.record_batch(arrays, schema=self._schema))

    def add_block(self, block: Block) -> None:
        """Adds a block of rows in the form that a store returns."""
        import pyarrow as pa

        pairs = zip(self._columns, self._schema, block, strict=True)
        arrays = [_array(column.kind, field.type, values) for column, field, values in pairs]
        self._add(pa.record_batch(arrays, schema=self._schema))

    def _add(self, batch: pa.RecordBatch) -> None:
        for start in range(0, batch.num_rows, GROUP_ROWS):
            group = batch.slice(start, GROUP_ROWS)
            if self._file is None or (self._rows and self._rows + group.num_rows > self._part_rows):
                self._begin()
            assert self._file is not None
            self._file.write_batch(group)
            self._rows += group.num_rows

    def _begin(self) -> None:
        self._end()
        path = self._folder / f"part-{self._parts:05}.parquet"
        self._file = self._parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._parts += 1
        self._rows = 0

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._file is None:
            self._begin()
        self._end()


def _array(kind: ColumnKind, type: pa.DataType, values: Values) -> pa.Array:
    import pyarrow as pa

    if isinstance(values, CodedColumn):
        return pa.DictionaryArray.from_arrays(values.codes, pa.array(values.names, pa.string())).cast(type)
    if isinstance(values, np.ndarray):
        return pa.array(values.astype(np.bool_) if kind is ColumnKind.BOOLEAN else values).cast(type)
    if kind is ColumnKind.TEXT:
        return pa.array([without_surrogates(value) if isinstance(value, str) else None for value in values], type)
    if kind is ColumnKind.BOOLEAN:
        return pa.array([None if value is None else bool(value) for value in values], type)
    return pa.array(values, type)


def write_part(folder: Path, table: str, number: int, rows: Iterable[Block]) -> PartNote:
    """Writes one part of a table of TABLES; the file gets its final name when it is complete."""
    columns, draft = TABLES[table].columns, folder / DRAFTS / f"{table}-{number:05}"
    shutil.rmtree(draft, ignore_errors=True)
    with TableWriter(draft, table, columns, part_rows=1 << 62) as writer:
        for block in rows:
            writer.add_block(block)
    path = folder / table / f"part-{number:05}.parquet"
    path.parent.mkdir(exist_ok=True)
    next((draft / table).iterdir()).replace(path)
    shutil.rmtree(draft)
    return _part_note(path)


def keep_part(earlier: Path, folder: Path, table: str, note: PartNote) -> bool:
    """Links a part of an earlier dataset, or copies it to another disk; returns whether it still exists."""
    old, path = earlier / table / note.name, folder / table / note.name
    if not old.is_file() or old.stat().st_size != note.size_bytes:
        return False
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    try:
        path.hardlink_to(old)
    except OSError:  # another disk, or a file system without hard links
        shutil.copyfile(old, path)
    return True


def _part_note(path: Path) -> PartNote:
    return PartNote(path.name, parquet_module().read_metadata(path).num_rows, path.stat().st_size, _sha256(path))


def table_note(folder: Path, table: str, columns: Sequence[Column]) -> TableNote:
    """The manifest entry of a table whose files are written."""
    return noted_table(table, list(map(_part_note, sorted((folder / table).glob("*.parquet")))), columns)


def noted_table(table: str, parts: Sequence[PartNote], columns: Sequence[Column]) -> TableNote:
    """The manifest entry of a table with these parts, in order."""
    sentences = {column.name: column.sentence for column in columns}
    return TableNote(table, sum(part.rows for part in parts), tuple(parts), sentences)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Marks the folder as complete; must be written last."""
    draft = folder / f"{MANIFEST}.part"
    draft.write_text(manifest.to_json(), "utf-8")
    draft.replace(folder / MANIFEST)


@frozen
class StageParameters:
    """Parameters of the stages. near: least share of equal MinHash values for pages to be grouped."""

    damping: float = 0.85
    tolerance: float = 1e-10
    max_rounds: int = 200
    near: float = 0.8


@frozen
class Stage:
    """A step that is computed as a whole.

    needs: stages that must run before it. parameters: the fields of StageParameters that it depends on.
    """

    name: str
    sentence: str
    needs: tuple[str, ...]
    parameters: tuple[str, ...]
    tables: Mapping[str, tuple[Column, ...]]
    version: int = 1


@frozen
class StageTask:
    """One stage to be computed.

    folders: the finished stages that it needs. out: folder for its tables. scratch: temporary folder, deleted
    afterwards.
    """

    stage: Stage
    dataset: Path
    folders: Mapping[str, Path]
    order: StageParameters
    out: Path
    scratch: Path

    def writer(self, table: str) -> TableWriter:
        return TableWriter(self.out, table, self.stage.tables[table], RESULT_ROWS)

    def write(self, table: str, columns: Mapping[str, object]) -> None:
        """Writes a whole table at once."""
        with self.writer(table) as writer:
            writer.add(columns)


Engine = Mapping[str, Callable[[StageTask], None]]
"""Function that computes each stage, by name of the stage."""
