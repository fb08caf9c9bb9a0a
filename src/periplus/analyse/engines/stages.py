"""The stages that lead from a collection's tables to each analysis, and which are still to be computed."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple, Protocol

from periplus.analyse.engines.dataset_files import (
    TableWriter,
    is_whole,
    manifest_in,
    table_note,
    write_manifest,
)
from periplus.errors import StoreError
from periplus.model.dataset import Manifest, parquet_module
from periplus.model.tables import BOOLEAN, BYTES, INTEGER, REAL, TEXT, Column, columns_of
from periplus.settings import VERSION
from periplus.values import Watch, frozen

RESULT_ROWS = 1 << 22  # of a file: some 40 MB of links, so that a cluster has tasks to give out

# A stage is named by a hash of what it is computed from: the dataset's digest, the stages before it, its parameters,
# its version. So one that is finished, which its manifest says, is never computed again for the same question, by
# whatever engine; and a change of a parameter computes anew only what depends on it.

_URL = Column("url", INTEGER, "the number of the URL")
_SOURCE = Column("source", INTEGER, "the number of the page with the link")
_TARGET = Column("target", INTEGER, "the number of the URL that it leads to")
_SITE = Column("site", INTEGER, "the number of its site")
_GROUP = Column("group", INTEGER, "the number of the page that stands for the group; it is of the group, too")
_RANKS = (_URL, Column("rank", REAL, "share of a random surfer's time"))
_SKETCH = (
    _URL,
    Column("shingles", INTEGER, "how many distinct ones"),
    Column("bins", BYTES, "128 MinHash values, 8 bytes each, little-endian"),
)
_ALIKE = (
    _URL,
    _GROUP,
    Column(
        "similarity",
        REAL,
        "the share of MinHash values that it has in common with the page that stands for it",
    ),
)


@frozen
class StageParameters:
    """What the stages are asked. near, template: shares of MinHash values from which pages are of one group."""

    damping: float = 0.85
    tolerance: float = 1e-10
    max_rounds: int = 200
    near: float = 0.8
    template: float = 0.8


@frozen
class Stage:
    """A step that is computed as a whole.

    needs: the stages before it; parameters: the fields of StageParameters that it depends on.
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

    folders: of the stages that it needs, whole; out: where its tables go; scratch: a folder that goes afterwards.
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


@frozen
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
                Column("source", INTEGER, "the number of a URL that redirects; ascending"),
                Column("end", INTEGER, "where the redirects end; -1: in a circle"),
            )
        },
    ),
    Stage(
        "graph", "The pages, and the distinct links between them", ("ends",), (),
        {
            "nodes": (
                Column("url", INTEGER, "the number of the page's URL; ascending"), _SITE,
                Column("fetched", BOOLEAN, "fetched and analysed"),
                Column("home", BOOLEAN, "the map of its site begins here"),
            ),
            "edges": (
                Column("source", INTEGER, "the number of the page with the link; ascending, then by target"), _TARGET,
                Column("inside", BOOLEAN, "both are of one site"),
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
                _URL, *columns_of("""
                depth integer: clicks from the home page
                parent integer: the page of the depth before that it hangs from; -1: the home page
                below integer: pages under it, at any depth
                place integer: its place in its site's map, depth first, from 0
            """),
            )
        },
    ),
    Stage(
        "broken", "Links that lead nowhere", ("ends",), (),
        {
            "broken": (
                _SOURCE, _TARGET, *columns_of("""
                kind text: a, image, ...
                position text: nav, header, main, ...
                end integer: where redirects lead from there: the URL that is not to be had
            """),
            )
        },
    ),
    Stage(
        "external", "Links to other sites", ("ends",), (),
        {
            "sites": columns_of("""
                site integer: the number of a site that others link to; ascending
                links integer: links that lead there
                pages integer: pages that have some
                targets integer: distinct URLs of it where they lead
            """)
        },
    ),
    Stage(
        "duplicates", "Pages that say the same", (), (),
        {"duplicates": (_URL, _GROUP,
                Column("like", TEXT,
                    "what it has in common with the page that stands for it: bytes, words or folded"))},
    ),
    Stage("sketches", "MinHash of each page's content", (), (), {"sketches": _SKETCH}),
    Stage("near", "Pages that say nearly the same", ("duplicates", "sketches"), ("near",), {"near": _ALIKE}),
    Stage("outlines", "MinHash of what of each page is no content", (), (), {"sketches": _SKETCH}),
    Stage("templates", "Pages that share their navigation", ("outlines",), ("template",), {"templates": _ALIKE}),
    Stage(
        "interlinking", "How often each site links to each", ("graph",), (),
        {
            "links": columns_of("""
                model text: what counts as a document: page, directory or site
                source integer: the number of the linking site
                target integer: the number of the site linked to; its own where documents of one site are linked
                count integer: distinct pairs of documents
            """)
        },
    ),
    Stage(
        "cascades", "Which site had which text when", ("duplicates", "near"), (),
        {
            "cascades": (
                Column("story", INTEGER, "the number of the page that stands for all pages of the text"), _SITE,
                *columns_of("""
                place integer: how many sites had it before, by time, then by number
                when integer: milliseconds since the epoch
                delay_h real: hours since the first site had it
            """),
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


STREAM = "stream"  # the engine of one machine


class EngineCost(NamedTuple):
    """What an engine costs on one core. By benchmarks/engines.py: 1 M URLs, 9.9 M links; 20,000 texts of 600 words."""

    start_s: float
    url_bytes: int  # that the largest stage holds of each URL in one process
    row_us: Mapping[str, float]  # of each stage and row of the table that it reads


ROWS: Mapping[str, str] = {
    "ends": "redirects", "graph": "links", "ranks": "links", "web_ranks": "links", "map": "links", "broken": "links",
    "external": "links", "interlinking": "links", "duplicates": "pages", "sketches": "texts", "near": "texts",
    "outlines": "texts", "templates": "texts", "cascades": "pages",
}  # fmt: skip
"""The table whose rows set what a stage costs."""

COSTS = {
    STREAM: EngineCost(0.7, 130, {
        "ends": 1.0, "graph": 0.26, "ranks": 0.36, "web_ranks": 0.34, "map": 0.14, "broken": 0.11, "external": 0.09,
        "interlinking": 0.23, "duplicates": 6, "sketches": 440, "near": 10, "outlines": 55, "templates": 17,
        "cascades": 6,
    }),
    "spark": EngineCost(7.0, 100, {
        "ends": 1.0, "graph": 0.45, "ranks": 0.6, "web_ranks": 1.8, "map": 0.5, "broken": 0.3, "external": 0.25,
        "interlinking": 0.4, "duplicates": 40, "sketches": 760, "near": 50, "outlines": 250, "templates": 80,
        "cascades": 30,
    }),
}  # fmt: skip
PROGRAM_BYTES = 300 << 20  # Python, NumPy, Arrow and a few blocks of links


@frozen
class StageResult:
    """A stage that is finished. took_s: 0.0 where it was finished before."""

    stage: str
    folder: Path
    engine: str  # that computed it
    was_there: bool
    took_s: float
    rows: Mapping[str, int]  # by table


@frozen
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
    notes = tuple(table_note(task.out, name, columns) for name, columns in task.stage.tables.items())
    asked = parameters_of(task.stage, task.order)
    write_manifest(task.out, Manifest(task.stage.name, VERSION, time.time(), inputs, asked, notes))


def chosen(
    manifest: Manifest, stages: Sequence[str], memory_bytes: int, cluster: str = "", cores: int = 1
) -> EngineChoice:
    """The cluster where one was named and the dataset's URLs do not fit this machine, or it ends sooner; else STREAM.

    stages: in which the analyses end. memory_bytes: that may be used. cluster: its engine's name; empty: none was
    named. cores: it has.
    """
    urls = manifest.rows("urls")
    needed_bytes = PROGRAM_BYTES + COSTS[STREAM].url_bytes * urls
    alone_s = seconds(manifest, stages, STREAM)
    why = f"{urls:,} URLs and {manifest.rows('links'):,} links take one process some {_size(needed_bytes)} of the "
    why += f"{_size(memory_bytes)} that may be used, and {alone_s:,.0f} s"
    if not cluster:
        lacking = "" if needed_bytes <= memory_bytes else "; memory may not do, and no cluster was named (--on)"
        return EngineChoice(STREAM, why + lacking)
    together_s = seconds(manifest, stages, cluster, cores)
    is_cluster = needed_bytes > memory_bytes or together_s < alone_s
    return EngineChoice(
        cluster if is_cluster else STREAM, f"{why}; {together_s:,.0f} s with {cores} cores of {cluster}"
    )


def seconds(manifest: Manifest, stages: Sequence[str], engine: str, cores: int = 1) -> float:
    """What the stages that lead to these take, all of them, by COSTS."""
    cost = COSTS[engine]
    work_us = sum(cost.row_us[stage.name] * manifest.rows(ROWS[stage.name]) for stage in needed(stages))
    return cost.start_s + work_us / 1e6 / cores


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:,.1f} GB"
