"""What do a collection's tables say, computed by the engine that they fit?"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from periplus.analyse.engines.stages import (
    ANALYSES,
    Engine,
    EngineChoice,
    StageParameters,
    StageResult,
    Watch,
    chosen,
    compute,
    manifest_in,
)
from periplus.errors import UsageError

ENGINES = ("auto", "numpy", "stream", "spark")
LOCAL = "local[*]"
MEMORY_SHARE = 0.5  # of what is free: others want some, and the estimate is one
_MEMORY = Path("/proc/meminfo")
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # of a container
__all__ = ["ENGINES", "NO_SPARK", "Analysed", "EngineRequest", "StageParameters", "analysed", "free_memory"]
NO_SPARK = "this needs pyspark, which is not installed: pip install 'periplus[cluster]', and Java 17 on every machine"
_ORDER = StageParameters()


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """Who computes.

    on: the address of a Spark cluster, spark://host:port, local[*] or yarn; empty: none was named.
    memory_bytes: 0: half of what is free.
    """

    engine: str = "auto"
    on: str = ""
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Analysed:
    """What was computed, in the order of the stages, by which engine and why."""

    choice: EngineChoice
    stages: tuple[StageResult, ...]


_WISH = EngineRequest()


def analysed(
    dataset: Path,
    wanted: Sequence[str] = (),
    results: Path | None = None,
    *,
    order: StageParameters = _ORDER,
    wish: EngineRequest = _WISH,
    watch: Watch | None = None,
) -> Analysed:
    """Computes analyses (names of ANALYSES; none: all that the dataset has tables for) into folders below results,
    by default beside the dataset.

    What is finished there is not computed again. Raises UsageError, StoreError.
    """
    unknown = [name for name in wanted if name not in ANALYSES]
    if unknown:
        raise UsageError(f"there is no analysis {unknown[0]!r}: choose among {', '.join(ANALYSES)}")
    manifest = manifest_in(dataset)
    names = list(wanted) or [name for name in ANALYSES if manifest.rows("texts") or name not in _OF_TEXTS]
    if not manifest.rows("texts") and (lacking := [name for name in names if name in _OF_TEXTS]):
        raise UsageError(f"{dataset} holds no texts, which {', '.join(lacking)} need: export it again with --texts")
    memory_bytes = wish.memory_bytes or free_memory()
    choice = (
        chosen(manifest, memory_bytes, has_cluster=bool(wish.on))
        if wish.engine == "auto"
        else EngineChoice(wish.engine, "it was asked for")
    )
    stages = [stage for name in names for stage in ANALYSES[name]]
    place = results or dataset.with_name(dataset.name + ".results")
    with _opened(choice.engine, wish.on, memory_bytes) as engine:
        done = compute(
            dataset, place, stages, order, (choice.engine, engine), watch or (lambda what, done, total: None)
        )
    return Analysed(choice, tuple(done))


_OF_TEXTS = ("near", "templates", "cascades")


@contextlib.contextmanager
def _opened(name: str, on: str, memory_bytes: int) -> Iterator[Engine]:
    match name:
        case "numpy":
            from periplus.analyse.engines import whole

            yield whole.ENGINE
        case "stream":
            from periplus.analyse.engines import streamed

            yield streamed.ENGINE
        case "spark":
            with _spark()(on or LOCAL, memory_bytes) as engine:
                yield engine
        case _:
            raise UsageError(f"there is no engine {name!r}: choose among {', '.join(ENGINES)}")


def _spark() -> Callable[[str, int], AbstractContextManager[Engine]]:
    try:
        from periplus.analyse.engines.spark.engine import engine_on
    except ImportError:
        raise UsageError(NO_SPARK) from None
    return engine_on


def free_memory() -> int:
    """Bytes that an analysis may use: MEMORY_SHARE of what this machine or container has left."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        lines = dict(line.split(":", 1) for line in _MEMORY.read_text().splitlines())
        found = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # not a Linux system: the whole machine's
        pass
    for path in _LIMITS:
        try:
            found = min(found, int(path.read_text()))
        except (OSError, ValueError):  # no limit
            continue
    return int(found * MEMORY_SHARE)
