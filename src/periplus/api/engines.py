"""Runs analyses of an exported dataset, on this machine or on a cluster provided by an installed package."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from periplus.analyse.engines.dataset_files import manifest_in
from periplus.analyse.engines.stages import (
    ANALYSES,
    STREAM,
    Cluster,
    Engine,
    EngineChoice,
    StageParameters,
    StageResult,
    choose_engine,
    compute,
)
from periplus.errors import ExtensionError, UsageError
from periplus.extensions import extensions
from periplus.extras import absence
from periplus.values import Watch, frozen

LOCAL = "local[*]"
SPARK = "spark"
CLUSTER_CORES = 8  # assumed for a cluster whose size is not known yet
MEMORY_SHARE = 0.5  # of free memory: other programs need some, and the need of an analysis is an estimate
NO_SPARK = f"{absence('pyspark')}, and Java 17 on every machine"
_MEMORY = Path("/proc/meminfo")
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # of a container
_OF_TEXTS = ("near", "templates", "cascades")
__all__ = [
    "SPARK",
    "AnalysisResult",
    "EngineRequest",
    "StageParameters",
    "analyse_dataset",
    "find_cluster",
    "free_memory",
    "one_dataset",
]


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


_PARAMETERS = StageParameters()
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
    from periplus.analyse.engines.combining import combine

    combine(datasets, into, now)
    return into


@contextlib.contextmanager
def _open_engine(name: str, on: str, memory_bytes: int) -> Iterator[Engine]:
    if name == STREAM:
        from periplus.analyse.engines import streamed

        yield streamed.ENGINE
        return
    with find_cluster(name).engine_on(on or LOCAL, memory_bytes) as engine:
        yield engine


def find_cluster(name: str) -> Cluster:
    """A cluster provided by an installed package (including our own for Spark). Raises UsageError if unavailable."""
    extension = extensions("engines").get(name)
    if extension is None and name != SPARK:
        raise UsageError(f"unknown engine {name!r}: choose among {', '.join(['auto', STREAM, SPARK])}")
    try:
        if extension is not None:
            return extension.load(Cluster)
    except ExtensionError as error:
        if name != SPARK or not isinstance(error.__cause__, ImportError):
            raise
    raise UsageError(NO_SPARK)


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
