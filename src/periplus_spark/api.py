"""Runs analyses of an exported dataset, on this machine or on a cluster provided by an installed package."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

from periplus.children import process_lives
from periplus.errors import StoreError, UsageError
from periplus.extras import absence
from periplus.features import parts
from periplus.model.ports import TasksOnCluster
from periplus.model.tables import BOOLEAN, BYTES, INTEGER, REAL, TEXT, Column, columns_of
from periplus.present.writers import parquet_module
from periplus.settings import VERSION
from periplus.values import Watch, frozen
from periplus_spark.dataset import Manifest
from periplus_spark.files import (
    Engine,
    Stage,
    StageParameters,
    StageTask,
    is_whole,
    manifest_in,
    table_note,
    write_manifest,
)

# A stage's folder is named by a hash of its inputs: the dataset's digest, the previous stages, its parameters, its
# version. A finished stage (one with a manifest) is therefore never computed again for the same inputs, by any engine;
# a changed parameter recomputes only the stages that depend on it.

_URL = Column("url", INTEGER, "the number of the URL")
_SOURCE = Column("source", INTEGER, "the number of the page with the link")
_TARGET = Column("target", INTEGER, "the number of the URL that it links to")
_SITE = Column("site", INTEGER, "the number of its site")
_GROUP = Column("group", INTEGER, "the number of the page that represents the group, itself a member")
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
        "the share of MinHash values in common with the page that represents the group",
    ),
)

ANALYSES: Mapping[str, tuple[str, ...]] = {
    "ranks": ("ranks",),
    "web-ranks": ("web_ranks",),
    "map": ("map",),
    "links": ("broken", "external"),
    "duplicates": ("duplicates",),
    "near": ("near",),
    "interlinking": ("interlinking",),
    "cascades": ("cascades",),
}
STREAM = "stream"  # the engine of one machine
ROWS: Mapping[str, str] = {
    "ends": "redirects", "graph": "links", "ranks": "links", "web_ranks": "links", "map": "links", "broken": "links",
    "external": "links", "interlinking": "links", "duplicates": "pages", "sketches": "texts", "near": "texts",
    "cascades": "pages",
}  # fmt: skip
PROGRAM_BYTES = 300 << 20  # Python, NumPy, Arrow and a few blocks of links
LOCAL = "local[*]"
SPARK = "spark"
CLUSTER_CORES = 8  # assumed for a cluster whose size is not known yet
MEMORY_SHARE = 0.5  # of free memory: other programs need some, and the need of an analysis is an estimate
NO_SPARK = f"{absence('pyspark')}, and Java 17 on every machine"
_MEMORY = Path("/proc/meminfo")
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # of a container
_OF_TEXTS = ("near", "cascades")
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
                Column("home", BOOLEAN, "home page: the root of its site's map"),
            ),
            "edges": (
                Column("source", INTEGER, "the number of the page with the link; ascending, then by target"), _TARGET,
                Column("inside", BOOLEAN, "both pages are on the same site"),
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
                parent integer: the parent page in the map, one click nearer; -1: the home page
                below integer: pages under it, at any depth
                place integer: its position in its site's map, depth first, from 0
            """),
            )
        },
    ),
    Stage(
        "broken", "Broken links", ("ends",), (),
        {
            "broken": (
                _SOURCE, _TARGET, *columns_of("""
                kind text: a, image, ...
                position text: nav, header, main, ...
                end integer: the failed URL at the end of redirects
            """),
            )
        },
    ),
    Stage(
        "external", "Links to other sites", ("ends",), (),
        {
            "sites": columns_of("""
                site integer: the number of a site that others link to; ascending
                links integer: links to it
                pages integer: pages with such a link
                targets integer: distinct URLs on it that are linked to
            """)
        },
    ),
    Stage(
        "duplicates", "Duplicate content", (), (),
        {"duplicates": (_URL, _GROUP,
                Column("like", TEXT,
                    "what is equal to the page that represents the group: bytes, words or folded"))},
    ),
    Stage("sketches", "MinHash of each page's content", (), (), {"sketches": _SKETCH}),
    Stage("near", "Near-duplicate content", ("duplicates", "sketches"), ("near",), {"near": _ALIKE}),
    Stage(
        "interlinking", "How often each site links to each", ("graph",), (),
        {
            "links": columns_of("""
                model text: what counts as a document: page, directory or site
                source integer: the number of the linking site
                target integer: the number of the site linked to; equal to source for links within a site
                count integer: distinct pairs of documents
            """)
        },
    ),
    Stage(
        "cascades", "Spread of texts from site to site", ("duplicates", "near"), (),
        {
            "cascades": (
                Column("story", INTEGER, "the number of the page that represents all pages with the text"), _SITE,
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

"""The final stages of each analysis."""
_PARAMETERS = StageParameters()


@frozen
class Cluster:
    """A cluster for large analyses and crawls, one of the `engines` of a feature.

    engine_on: the engine on the cluster at an address; the other argument is the memory in bytes that it may use if the
    cluster is on this machine. carried: runs a function in a number of tasks, each called with its number, as cores
    become free; a task whose machine is lost is restarted elsewhere. Both raise StoreError if the cluster cannot be
    reached or fails.
    """

    engine_on: Callable[[str, int], AbstractContextManager[Engine]]
    carried: Callable[[str, int, Callable[[int], None]], AbstractContextManager[TasksOnCluster]]


def required_stages(names: Sequence[str]) -> tuple[Stage, ...]:
    """The stages required for these, in order of computation."""
    stages: dict[str, Stage] = {}

    def add(name: str) -> None:
        for before in STAGES[name].needs:
            add(before)
        stages.setdefault(name, STAGES[name])

    for name in names:
        add(name)
    return tuple(stages.values())


def folder_name(stage: Stage, dataset_digest: str, order: StageParameters) -> str:
    """`ranks-1f0c...`: equal for equal inputs."""
    return f"{stage.name}-{_digest(stage, dataset_digest, order)[:16]}"


def _digest(stage: Stage, dataset_digest: str, order: StageParameters) -> str:
    before = [_digest(STAGES[name], dataset_digest, order) for name in stage.needs]
    question = [stage.name, stage.version, dataset_digest, parameters_of(stage, order), before]
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()


def parameters_of(stage: Stage, order: StageParameters) -> dict[str, float]:
    """The parameters that the stage itself depends on."""
    return {field.name: getattr(order, field.name) for field in fields(order) if field.name in stage.parameters}


class EngineCost(NamedTuple):
    """Cost of an engine on one core, measured with benchmarks/engines.py: 1 M URLs, 9.9 M links; 20,000 texts of 600
    words.
    """

    start_s: float
    url_bytes: int  # held per URL in one process by the largest stage
    row_us: Mapping[str, float]  # by stage, per row of the table that it reads; the other stages run on this machine


"""The table whose number of rows determines the cost of a stage."""

COSTS = {
    STREAM: EngineCost(0.7, 130, {
        "ends": 1.0, "graph": 0.26, "ranks": 0.36, "web_ranks": 0.34, "map": 0.14, "broken": 0.11, "external": 0.09,
        "interlinking": 0.23, "duplicates": 6, "sketches": 440, "near": 10, "cascades": 6,
    }),
    "spark": EngineCost(7.0, 100, {
        "ends": 1.0, "graph": 0.45, "ranks": 0.6, "interlinking": 0.4,
        "sketches": 760,
    }),
}  # fmt: skip


@frozen
class StageResult:
    """A finished stage. took_s: 0.0 if it was already finished."""

    stage: str
    folder: Path
    engine: str  # engine that computed it
    was_there: bool
    took_s: float
    rows: Mapping[str, int]  # by table


@frozen
class EngineChoice:
    """An engine and the reason for choosing it."""

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
    """Computes the stages required for these, each in a folder of its own below results. engines: (name, engine).

    A stage with a manifest is not recomputed; drafts of dead processes are deleted. Raises
    StoreError for an unfinished dataset, UsageError if pyarrow is missing.
    """
    parquet_module()
    name, engine = engines
    digest = manifest_in(dataset).digest
    stages = required_stages(names)
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
    """Computes a stage into a draft, which then gets the stage's name: others may compute the same at the same time."""
    folder, prefix = task.out, f"{task.out.name}.{platform.node()}-"
    task = replace(task, out=folder.with_name(f"{prefix}{os.getpid()}-{secrets.token_hex(4)}"))
    task = replace(task, scratch=task.out / ".scratch")
    try:
        for draft in folder.parent.glob(f"{prefix}*"):
            if not process_lives(int(draft.name.removeprefix(prefix).partition("-")[0])):
                shutil.rmtree(draft)
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
    if not is_whole(folder):
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier attempt
    with contextlib.suppress(OSError):  # another process has finished the stage
        task.out.rename(folder)
    shutil.rmtree(task.out, ignore_errors=True)


def choose_engine(
    manifest: Manifest, stages: Sequence[str], memory_bytes: int, cluster: str = "", cores: int = 1
) -> EngineChoice:
    """Chooses an engine: the cluster if the dataset does not fit this machine or the cluster is faster; else STREAM.

    stages: final stages of the analyses. memory_bytes: available. cluster: name of its engine; empty: none. cores: of
    the cluster.
    """
    urls = manifest.rows("urls")
    needed_bytes = _bytes_here(urls)
    alone_s = seconds(manifest, stages, STREAM)
    why = f"{urls:,} URLs and {manifest.rows('links'):,} links take one process some {_size(needed_bytes)} of the "
    why += f"{_size(memory_bytes)} that may be used, and {alone_s:,.0f} s"
    if not cluster:
        lacking = "" if needed_bytes <= memory_bytes else "; memory may not suffice, and no cluster is given (--on)"
        return EngineChoice(STREAM, why + lacking)
    together_s = seconds(manifest, stages, cluster, cores)
    is_cluster = needed_bytes > memory_bytes or together_s < alone_s
    return EngineChoice(
        cluster if is_cluster else STREAM, f"{why}; {together_s:,.0f} s with {cores} cores of {cluster}"
    )


def _bytes_here(urls: int) -> int:
    return PROGRAM_BYTES + COSTS[STREAM].url_bytes * urls


def stages_here(stages: Sequence[str], engine: str, urls: int) -> str:
    """A sentence about the stages that a cluster leaves to this machine; empty if there are none."""
    names = [
        stage.name for stage in required_stages(stages) if stage.name not in COSTS.get(engine, COSTS[STREAM]).row_us
    ]
    if not names:
        return ""
    return (
        f"; computed on this machine in some {_size(_bytes_here(urls))}, since a cluster takes more than three times "
        f"the CPU: {', '.join(names)}"
    )


def seconds(manifest: Manifest, stages: Sequence[str], engine: str, cores: int = 1) -> float:
    """Estimated time of all stages required for these, by COSTS."""
    cost, took_s = COSTS[engine], COSTS[engine].start_s
    for stage in required_stages(stages):
        shared_us = cost.row_us.get(stage.name, 0.0) / cores
        took_s += (shared_us or COSTS[STREAM].row_us[stage.name]) * manifest.rows(ROWS[stage.name]) / 1e6
    return took_s


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:,.1f} GB"


@frozen
class EngineRequest:
    """Which engine to use.

    engine: `auto`, `stream`, or the name of a cluster. on: cluster address, for Spark spark://host:port, local[*] or
    yarn; empty: not given. memory_bytes: 0: half of the free memory.
    """

    engine: str = "auto"
    on: str = ""
    memory_bytes: int = 0


@frozen
class AnalysisResult:
    """The results in order of the stages, with the engine and the reason for its choice."""

    choice: EngineChoice
    stages: tuple[StageResult, ...]


_REQUEST = EngineRequest()


def analyse_dataset(
    dataset: Path,
    analyses: Sequence[str] = (),
    results: Path | None = None,
    *,
    parameters: StageParameters = _PARAMETERS,
    request: EngineRequest = _REQUEST,
    watch: Watch | None = None,
) -> AnalysisResult:
    """Computes analyses of a dataset into folders below results, by default beside the dataset.

    analyses: names from ANALYSES; empty: all for which the dataset has tables. Finished results are not recomputed.
    Raises UsageError, StoreError.
    """
    unknown = [name for name in analyses if name not in ANALYSES]
    if unknown:
        raise UsageError(f"unknown analysis {unknown[0]!r}: choose among {', '.join(ANALYSES)}")
    manifest = manifest_in(dataset)
    names = list(analyses) or [name for name in ANALYSES if manifest.rows("texts") or name not in _OF_TEXTS]
    if not manifest.rows("texts") and (lacking := [name for name in names if name in _OF_TEXTS]):
        raise UsageError(f"{dataset} has no texts, which {', '.join(lacking)} need: export it again with --texts")
    memory_bytes = request.memory_bytes or free_memory()
    stages = [stage for name in names for stage in ANALYSES[name]]
    choice = (
        choose_engine(manifest, stages, memory_bytes, SPARK if request.on else "", _cores(request.on))
        if request.engine == "auto"
        else EngineChoice(request.engine, "it was requested")
    )
    choice = replace(choice, why=choice.why + stages_here(stages, choice.engine, manifest.rows("urls")))
    place = results or dataset.with_name(dataset.name + ".results")
    with _open_engine(choice.engine, request.on, memory_bytes) as engine:
        done = compute(
            dataset, place, stages, parameters, (choice.engine, engine), watch or (lambda what, done, total: None)
        )
    return AnalysisResult(choice, tuple(done))


def _cores(on: str) -> int:
    """Cores of a cluster: N for local[N], this machine's for local[*], 1 for local, else CLUSTER_CORES."""
    if not on.startswith("local"):
        return CLUSTER_CORES
    number = on.partition("[")[2].partition("]")[0].partition(",")[0]
    return int(number) if number.isdecimal() else (os.cpu_count() or 1) if number else 1


def one_dataset(datasets: Sequence[Path], into: Path, now: float) -> Path:
    """The dataset; several datasets are first combined into a new one in the folder `into`, if that is missing.

    Raises StoreError, UsageError.
    """
    if len(datasets) == 1:
        return datasets[0]
    from periplus_spark.combining import combine

    combine(datasets, into, now)
    return into


@contextlib.contextmanager
def _open_engine(name: str, on: str, memory_bytes: int) -> Iterator[Engine]:
    if name == STREAM:
        from periplus_spark import streamed

        yield streamed.ENGINE
        return
    with find_cluster(name).engine_on(on or LOCAL, memory_bytes) as engine:
        yield engine


def find_cluster(name: str) -> Cluster:
    """A cluster provided by an installed package (including our own for Spark). Raises UsageError if unavailable."""
    if name not in parts("engines"):
        raise UsageError(f"unknown engine {name!r}: choose among {', '.join(['auto', STREAM, *parts('engines')])}")
    try:
        return parts("engines")[name].load(Cluster)
    except ImportError:  # of our own
        raise UsageError(NO_SPARK) from None


def free_memory() -> int:
    """Bytes that an analysis may use: MEMORY_SHARE of the free memory of this machine or container."""
    free_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        lines = dict(line.split(":", 1) for line in _MEMORY.read_text().splitlines())
        free_bytes = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # not Linux: use the machine's total memory
        pass
    for path in _LIMITS:
        try:
            free_bytes = min(free_bytes, int(path.read_text()))
        except (OSError, ValueError):  # no limit
            continue
    return int(free_bytes * MEMORY_SHARE)
