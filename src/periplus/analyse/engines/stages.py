"""The stages that lead from a collection's tables to each analysis, read and written block by block,
and which are still to be computed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol

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

# of links read at once: 5 columns of them are 20 MB, and smaller blocks cost more calls than they save
BLOCK_ROWS = 1 << 19
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


def number_blocks(
    folder: Path, table: str, columns: Sequence[str], rows: int = BLOCK_ROWS
) -> Iterator[tuple[Ints, ...]]:
    """The same of columns of whole numbers that all have a value."""
    for block in blocks(folder, table, columns, rows):
        yield tuple(np.asarray(block.column(name), np.int64) for name in columns)


def numbers(folder: Path, table: str, column: str, missing: int = -1) -> Ints:
    """A whole column; of a time its milliseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole_column = np.full(manifest_in(folder).rows(table), missing, np.int64)
    at = 0
    for block in blocks(folder, table, [column]):
        values = block.column(0)
        whole = pc.fill_null(values.cast(pa.int64()), missing)
        whole_column[at : at + len(values)] = np.asarray(whole)
        at += len(values)
    return whole_column


def reals(folder: Path, table: str, column: str) -> Floats:
    """A whole column of real numbers."""
    whole = np.empty(manifest_in(folder).rows(table))
    at = 0
    for block in blocks(folder, table, [column]):
        whole[at : at + len(block)] = np.asarray(block.column(0))
        at += len(block)
    return whole


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

    mask: Mask = np.asarray(pc.is_in(block.column(column), value_set=pa.array(list(names), pa.string())), np.bool_)
    return mask


class TableWriter:
    """Rows of one table into files `part-00000.parquet`, ...: at least one, so that an empty table has its columns."""

    def __init__(self, folder: Path, table: str, fields: Sequence[Field]) -> None:
        import pyarrow as pa

        self._folder = folder / table
        self._folder.mkdir(parents=True, exist_ok=True)
        self._schema = pa.schema(
            [
                pa.field(field.name, pa.type_for_alias(field.type), metadata={"description": field.sentence})
                for field in fields
            ]
        )
        self._file: pq.ParquetWriter | None = None
        self._rows = self._parts = 0

    def add(self, columns: Mapping[str, object]) -> None:
        """A block of rows: a column's values by its name."""
        import pyarrow as pa

        block = pa.RecordBatch.from_arrays(
            [pa.array(columns[field.name], field.type) for field in self._schema], schema=self._schema
        )
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
        self._file = parquet_module().ParquetWriter(
            self._folder / f"part-{self._parts:05}.parquet", self._schema, compression="zstd"
        )
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


def write_manifest(
    folder: Path,
    kind: str,
    inputs: Mapping[str, object],
    parameters: Mapping[str, object],
    tables: Mapping[str, Sequence[Field]],
) -> Manifest:
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
    return TableNote(
        table, sum(part.rows for part in parts), tuple(parts), {field.name: field.sentence for field in fields}
    )


def parquet_module() -> pq:
    """pyarrow.parquet. Raises UsageError where it is missing."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise UsageError("Parquet needs pyarrow, which is not installed: pip install 'periplus[parquet]'") from None
    return pyarrow.parquet


# A stage is named by a hash of what it is computed from: the dataset's digest, the stages before it, its parameters,
# its version. So one that is finished, which its manifest says, is never computed again for the same question, by
# whatever engine; and a change of a parameter computes anew only what depends on it.

_URL = Field("url", "int64", "the number of the URL")
_SOURCE = Field("source", "int64", "the number of the page with the link")
_TARGET = Field("target", "int64", "the number of the URL that it leads to")
_SITE = Field("site", "int64", "the number of its site")
_GROUP = Field("group", "int64", "the number of the page that stands for the group; it is of the group, too")
_RANKS = (_URL, Field("rank", "double", "share of a random surfer's time"))
_SKETCH = (
    _URL,
    Field("shingles", "int64", "how many distinct ones"),
    Field("bins", "binary", "128 MinHash values, 8 bytes each, little-endian"),
)
_ALIKE = (
    _URL,
    _GROUP,
    Field("similarity", "double", "the share of MinHash values that it has in common with the page that stands for it"),
)


@dataclass(frozen=True, slots=True)
class StageParameters:
    """What the stages are asked. near, template: shares of MinHash values from which pages are of one group."""

    damping: float = 0.85
    tolerance: float = 1e-10
    max_rounds: int = 200
    near: float = 0.8
    template: float = 0.8


@dataclass(frozen=True, slots=True)
class Stage:
    """A step that is computed as a whole.

    needs: the stages before it; parameters: the fields of StageParameters that it depends on.
    """

    name: str
    sentence: str
    needs: tuple[str, ...]
    parameters: tuple[str, ...]
    tables: Mapping[str, tuple[Field, ...]]
    version: int = 1


@dataclass(frozen=True, slots=True)
class StageTask:
    """One stage to be computed.

    folders: of the stages that it needs, whole; out: where its tables go; scratch: a folder that goes afterwards.
    """

    stage: Stage
    dataset: Path
    folders: Mapping[str, Path]
    order: StageParameters
    out: Path
    scratch: Path

    def writer(self, table: str) -> TableWriter:
        return TableWriter(self.out, table, self.stage.tables[table])

    def write(self, table: str, columns: Mapping[str, object]) -> None:
        """A whole table at once."""
        with self.writer(table) as writer:
            writer.add(columns)


Engine = Mapping[str, Callable[[StageTask], None]]
"""What computes each stage, by its name."""


class TasksOnCluster(Protocol):
    """Tasks that a cluster does: some at work, others waiting for a core."""

    @property
    def at_work(self) -> int:
        """Tasks that have a core now."""

    @property
    def is_over(self) -> bool:
        """Whether all tasks have ended. Raises StoreError where the cluster gave up."""

    def wait(self, limit_s: float) -> None:
        """Waits for all tasks to end by themselves; then those that are left are ended."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster for large analyses and crawls, which a package adds as an entry point of `periplus.engines`.

    engine_on: the engine on the cluster at an address; the other argument is the memory in bytes that it may use of
    this machine, where it is on this machine. carried: calls a function in so many tasks, each with its number, as
    cores become free; of one whose machine was lost again, elsewhere. Both raise StoreError for a cluster that cannot
    be reached or gives up.
    """

    engine_on: Callable[[str, int], AbstractContextManager[Engine]]
    carried: Callable[[str, int, Callable[[int], None]], AbstractContextManager[TasksOnCluster]]


_ALL = (
    Stage(
        "ends", "Where chains of redirects end", (), (),
        {
            "ends": (
                Field("source", "int64", "the number of a URL that redirects; ascending"),
                Field("end", "int64", "where the redirects end; -1: in a circle"),
            )
        },
    ),
    Stage(
        "graph", "The pages, and the distinct links between them", ("ends",), (),
        {
            "nodes": (
                Field("url", "int64", "the number of the page's URL; ascending"), _SITE,
                Field("indexed", "bool", "fetched and analysed"),
                Field("home", "bool", "the map of its site begins here"),
            ),
            "edges": (
                Field("source", "int64", "the number of the page with the link; ascending, then by target"), _TARGET,
                Field("inside", "bool", "both are of one site"),
            ),
        },
    ),
    Stage("ranks", "PageRank within each site", ("graph",), ("damping", "tolerance", "max_rounds"), {"ranks": _RANKS}),
    Stage("web_ranks", "PageRank over all sites together", ("graph",), ("damping", "tolerance", "max_rounds"),
        {"ranks": _RANKS}),
    Stage(
        "map", "The hierarchical map of each site", ("graph", "ranks"), (),
        {
            "map": (
                _URL, Field("depth", "int64", "clicks from the home page"),
                Field("parent", "int64", "the page of the depth before that it hangs from; -1: the home page"),
                Field("below", "int64", "pages under it, at any depth"),
                Field("place", "int64", "its place in its site's map, depth first, from 0"),
            )
        },
    ),
    Stage(
        "broken", "Links that lead nowhere", ("ends",), (),
        {
            "broken": (
                _SOURCE, _TARGET, Field("kind", "string", "a, image, ..."),
                Field("position", "string", "nav, header, main, ..."),
                Field("end", "int64", "where redirects lead from there: the URL that is not to be had"),
            )
        },
    ),
    Stage(
        "external", "Links to other sites", ("ends",), (),
        {
            "sites": (
                Field("site", "int64", "the number of a site that others link to; ascending"),
                Field("links", "int64", "links that lead there"),
                Field("pages", "int64", "pages that have some"),
                Field("targets", "int64", "distinct URLs of it where they lead"),
            )
        },
    ),
    Stage(
        "duplicates", "Pages that say the same", (), (),
        {"duplicates": (_URL, _GROUP,
                Field("like", "string",
                    "what it has in common with the page that stands for it: bytes, words or folded"))},
    ),
    Stage("sketches", "MinHash of each page's content", (), (), {"sketches": _SKETCH}),
    Stage("near", "Pages that say nearly the same", ("duplicates", "sketches"), ("near",), {"near": _ALIKE}),
    Stage("outlines", "MinHash of what of each page is no content", (), (), {"sketches": _SKETCH}),
    Stage("templates", "Pages that share their navigation", ("outlines",), ("template",), {"templates": _ALIKE}),
    Stage(
        "interlinking", "How often each site links to each", ("graph",), (),
        {
            "links": (
                Field("model", "string", "what counts as a document: page, directory or site"),
                Field("source", "int64", "the number of the linking site"),
                Field("target", "int64",
                    "the number of the site linked to; its own where documents of one site are linked"),
                Field("count", "int64", "distinct pairs of documents"),
            )
        },
    ),
    Stage(
        "cascades", "Which site had which text when", ("duplicates", "near"), (),
        {
            "cascades": (
                Field("story", "int64", "the number of the page that stands for all pages of the text"), _SITE,
                Field("place", "int64", "how many sites had it before, by time, then by number"),
                Field("when", "int64", "milliseconds since the epoch"),
                Field("delay_h", "double", "hours since the first site had it"),
            )
        },
    ),
)  # fmt: skip
STAGES: Mapping[str, Stage] = {stage.name: stage for stage in _ALL}

ANALYSES: Mapping[str, tuple[str, ...]] = {
    "ranks": ("ranks",),
    "web-ranks": ("web_ranks",),
    "map": ("map",),
    "links": ("broken", "external"),
    "duplicates": ("duplicates",),
    "near": ("near",),
    "templates": ("templates",),
    "interlinking": ("interlinking",),
    "cascades": ("cascades",),
}
"""What one asks for, and the stages in which it ends."""


def needed(names: Sequence[str]) -> tuple[Stage, ...]:
    """The stages that lead to these, each after those that it needs."""
    stages: dict[str, Stage] = {}

    def add(name: str) -> None:
        for before in STAGES[name].needs:
            add(before)
        stages.setdefault(name, STAGES[name])

    for name in names:
        add(name)
    return tuple(stages.values())


def folder_name(stage: Stage, dataset_digest: str, order: StageParameters) -> str:
    """`ranks-1f0c...`: equal for equal questions."""
    return f"{stage.name}-{_digest(stage, dataset_digest, order)[:16]}"


def _digest(stage: Stage, dataset_digest: str, order: StageParameters) -> str:
    before = [_digest(STAGES[name], dataset_digest, order) for name in stage.needs]
    question = [stage.name, stage.version, dataset_digest, parameters_of(stage, order), before]
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()


def parameters_of(stage: Stage, order: StageParameters) -> dict[str, float]:
    """What the stage itself depends on."""
    return {field.name: getattr(order, field.name) for field in fields(order) if field.name in stage.parameters}


Watch = Callable[[str, int, int], None]  # (stage's sentence, stages done, stages in all)

STREAM = "stream"  # the engine of one machine
# bytes that the largest stage holds of each URL, by benchmarks/engines.py at 1 M URLs and 9.9 M links
STREAM_URL_BYTES = 130
PROGRAM_BYTES = 300 << 20  # Python, NumPy, Arrow and a few blocks of links


@dataclass(frozen=True, slots=True)
class StageResult:
    """A stage that is finished. took_s: 0.0 where it was finished before."""

    stage: str
    folder: Path
    engine: str  # that computed it
    was_there: bool
    took_s: float
    rows: Mapping[str, int]  # by table


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine and why."""

    engine: str
    why: str


def compute(
    dataset: Path,
    results: Path,
    names: Sequence[str],
    order: StageParameters,
    engines: tuple[str, Engine],
    watch: Watch,
) -> list[StageResult]:
    """Each stage that leads to these, whole, in a folder below results. engines: name and what computes the stages.

    A stage whose manifest is there is left as it is; what is there without one was interrupted, and is made anew.
    Raises StoreError for a dataset that is not whole, UsageError where pyarrow is missing.
    """
    parquet_module()
    name, engine = engines
    digest = manifest_in(dataset).digest
    stages = needed(names)
    folders: dict[str, Path] = {}
    done = []
    for number, stage in enumerate(stages):
        watch(stage.sentence, number, len(stages))
        folder = folders[stage.name] = results / folder_name(stage, digest, order)
        was_there, began = is_whole(folder), time.monotonic()
        if not was_there:
            task = StageTask(
                stage, dataset, {before: folders[before] for before in stage.needs}, order, folder, folder / ".scratch"
            )
            _compute(task, digest, name, engine)
        manifest = manifest_in(folder)
        took_s = 0.0 if was_there else time.monotonic() - began
        rows = {table.name: table.rows for table in manifest.tables}
        done.append(StageResult(stage.name, folder, str(manifest.inputs.get("engine", "")), was_there, took_s, rows))
    return done


def _compute(task: StageTask, digest: str, name: str, engine: Engine) -> None:
    try:
        if task.out.exists():
            shutil.rmtree(task.out)
        task.scratch.mkdir(parents=True)
    except OSError as error:
        raise StoreError(
            f"{task.out} cannot be written: {error.strerror}. Choose another folder for results."
        ) from None
    engine[task.stage.name](task)
    shutil.rmtree(task.scratch)
    inputs = {"dataset": digest, "engine": name} | {before: folder.name for before, folder in task.folders.items()}
    write_manifest(task.out, task.stage.name, inputs, parameters_of(task.stage, task.order), task.stage.tables)


def chosen(manifest: Manifest, memory_bytes: int, cluster: str) -> EngineChoice:
    """STREAM where the dataset's URLs fit this machine or no cluster was named, else the cluster.

    memory_bytes: that may be used. cluster: its engine's name; empty: none was named.
    """
    urls, links = manifest.rows("urls"), manifest.rows("links")
    needed_bytes = PROGRAM_BYTES + STREAM_URL_BYTES * urls
    why = f"{urls:,} URLs and {links:,} links take some {_size(needed_bytes)} of the {_size(memory_bytes)} "
    why += "that may be used, with links on disk"
    if needed_bytes <= memory_bytes:
        return EngineChoice(STREAM, why)
    return EngineChoice(
        cluster or STREAM, why if cluster else why + "; memory may not do, and no cluster was named (--on)"
    )


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:,.1f} GB"
