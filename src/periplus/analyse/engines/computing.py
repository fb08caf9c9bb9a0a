"""Which stages are still to be computed, and by which engine?"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from periplus.analyse.engines.stages import Engine, Order, Task, folder_name, needed, parameters_of
from periplus.analyse.engines.tables import is_whole, manifest_in, parquet_module, write_manifest
from periplus.errors import StoreError
from periplus.model.dataset import Manifest

Watch = Callable[[str, int, int], None]  # (stage's sentence, stages done, stages in all)

# Bytes that the largest stage holds, by benchmarks/engines.py at 1 M URLs and 9.9 M links: in memory 642 MiB, with links on disk 443 MiB
WHOLE_LINK_BYTES, WHOLE_URL_BYTES = 60, 130
STREAM_URL_BYTES = 130
PROGRAM_BYTES = 300 << 20  # Python, NumPy, Arrow and a few blocks of links


@dataclass(frozen=True, slots=True)
class Computed:
    """A stage that is finished. took_s: 0.0 where it was finished before."""

    stage: str
    folder: Path
    engine: str  # that computed it
    was_there: bool
    took_s: float
    rows: Mapping[str, int]  # by table


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine and why."""

    engine: str
    why: str


def compute(dataset: Path, results: Path, wanted: Sequence[str], order: Order, engines: tuple[str, Engine], watch: Watch) -> list[Computed]:
    """Each stage that leads to these, whole, in a folder below results. engines: name and what computes the stages.

    A stage whose manifest is there is left as it is; what is there without one was interrupted, and is made anew.
    Raises StoreError for a dataset that is not whole, UsageError where pyarrow is missing.
    """
    parquet_module()
    name, engine = engines
    digest = manifest_in(dataset).digest
    stages = needed(wanted)
    folders: dict[str, Path] = {}
    done = []
    for number, stage in enumerate(stages):
        watch(stage.sentence, number, len(stages))
        folder = folders[stage.name] = results / folder_name(stage, digest, order)
        was_there, began = is_whole(folder), time.monotonic()
        if not was_there:
            task = Task(stage, dataset, {before: folders[before] for before in stage.needs}, order, folder, folder / ".scratch")
            _compute(task, digest, name, engine)
        manifest = manifest_in(folder)
        took_s = 0.0 if was_there else time.monotonic() - began
        rows = {table.name: table.rows for table in manifest.tables}
        done.append(Computed(stage.name, folder, str(manifest.inputs.get("engine", "")), was_there, took_s, rows))
    return done


def _compute(task: Task, digest: str, name: str, engine: Engine) -> None:
    try:
        if task.out.exists():
            shutil.rmtree(task.out)
        task.scratch.mkdir(parents=True)
    except OSError as error:
        raise StoreError(f"{task.out} cannot be written: {error.strerror}. Choose another folder for results.") from None
    engine[task.stage.name](task)
    shutil.rmtree(task.scratch)
    inputs = {"dataset": digest, "engine": name} | {before: folder.name for before, folder in task.folders.items()}
    write_manifest(task.out, task.stage.name, inputs, parameters_of(task.stage, task.order), task.stage.tables)


def chosen(manifest: Manifest, memory_bytes: int, *, has_cluster: bool) -> Choice:
    """The least engine that the dataset fits: in memory, else links from disk, else the cluster. memory_bytes: that may be used."""
    urls, links = manifest.rows("urls"), manifest.rows("links")
    whole = PROGRAM_BYTES + WHOLE_URL_BYTES * urls + WHOLE_LINK_BYTES * links
    stream = PROGRAM_BYTES + STREAM_URL_BYTES * urls
    holds = f"{urls:,} URLs and {links:,} links"
    if whole <= memory_bytes:
        return Choice("numpy", f"{holds} take some {_size(whole)} of the {_size(memory_bytes)} that may be used")
    if stream <= memory_bytes or not has_cluster:
        more = "" if stream <= memory_bytes else "; even so memory may not do, and no cluster was named (--on)"
        return Choice("stream", f"{holds} would take some {_size(whole)} of {_size(memory_bytes)}, with links on disk {_size(stream)}{more}")
    return Choice("spark", f"{holds} would take {_size(stream)} even with links on disk, and {_size(memory_bytes)} may be used")


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:,.1f} GB"
