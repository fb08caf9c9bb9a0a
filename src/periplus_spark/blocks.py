"""A stage cut into blocks of URLs, each computed by one task, and the files by which tasks hand numbers to one another.

All lies in the stage's scratch folder, which has the same path on every machine. A task that is done again writes the
same once more, so that a machine that is lost costs its tasks and nothing else. What is handed over is numbers of
64 bits in arrays, never rows: Spark's own exchange of such arrays took 0.25 CPU s a round where this takes 0.07.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.engines.dataset_files import Span, manifest_in
from periplus.analyse.engines.stages import StageTask
from periplus.errors import PeriplusError
from periplus.model.arrays import Ints
from periplus.values import frozen

if TYPE_CHECKING:
    from pyspark import SparkContext

T = TypeVar("T")

URLS_A_TASK = 4_000_000  # by their memory, 100 bytes each: see docs/cluster.md
LINKS_A_TASK = 40_000_000
_NUMBER = 8  # bytes


class Vector(NamedTuple):
    """A number of each URL in a file. Tasks write their parts of it, and map the whole into memory to look some up."""

    path: Path
    kind: str  # of NumPy
    length: int

    def create(self) -> Vector:
        with self.path.open("wb") as file:
            file.truncate(self.length * np.dtype(self.kind).itemsize)
        return self

    def put(self, first: int, values: NDArray[Any]) -> None:
        with self.path.open("r+b") as file:
            file.seek(first * np.dtype(self.kind).itemsize)
            file.write(np.ascontiguousarray(values, self.kind).tobytes())

    def values(self) -> NDArray[Any]:
        if not self.length:
            return np.zeros(0, self.kind)
        return np.asarray(np.memmap(self.path, self.kind, "r", shape=(self.length,)))


@frozen
class Blocks:
    """A stage, and the dataset's URLs cut into so many ranges of equal width."""

    task: StageTask
    urls: int
    count: int

    @property
    def width(self) -> int:
        return max(-(-self.urls // self.count), 1)

    def span(self, block: int, column: str = "url") -> Span:
        first = min(block * self.width, self.urls)
        return Span(column, first, min(first + self.width, self.urls))

    def of(self, urls: Ints) -> Ints:
        """The block of each URL."""
        return urls // self.width

    def vector(self, name: str, kind: str = "<i8", length: int = -1) -> Vector:
        """With a number of each URL, or so many."""
        return Vector(self.task.scratch / name, kind, self.urls if length < 0 else length)

    def deal(self, name: str, place: int | tuple[int, int], to: Ints, rows: Ints) -> None:
        """Hands rows, int64[columns, rows], to the blocks `to`.

        place: of these rows among all that are dealt by this name: a block, or a block and a number within it.
        """
        order = np.argsort(to.astype(np.uint16 if self.count < 1 << 16 else np.int64), kind="stable")
        offsets = np.searchsorted(to[order], np.arange(self.count + 1))
        folder = self.task.scratch / name
        folder.mkdir(exist_ok=True)
        numbers = place if isinstance(place, tuple) else (place,)
        with _drafted(folder / "-".join(f"{number:06}" for number in numbers)) as draft, draft.open("wb") as file:
            file.write(offsets.astype(np.int64).tobytes())
            for column in rows:
                file.write(column[order].tobytes())

    def dealt(self, name: str, block: int, columns: int) -> Iterator[Ints]:
        """What was handed to this block, in the order of the places that it came from."""
        for path in sorted(path for path in (self.task.scratch / name).glob("*") if path.suffix != DRAFT):
            offsets = np.fromfile(path, np.int64, self.count + 1)
            count = int(offsets[block + 1] - offsets[block])
            starts = self.count + 1 + np.arange(columns) * offsets[-1] + offsets[block]
            if count:
                yield np.stack([np.fromfile(path, np.int64, count, offset=int(start) * _NUMBER) for start in starts])

    def joined(self, name: str, block: int, columns: int) -> Ints:
        return np.concatenate([np.zeros((columns, 0), np.int64), *self.dealt(name, block, columns)], axis=1)

    @contextlib.contextmanager
    def part(self, number: int) -> Iterator[StageTask]:
        """The stage, to write a part of its tables with: `gather` brings them together in the order of the numbers."""
        with _drafted(self.task.scratch / "parts" / f"{number:06}") as draft:
            scratch = draft.with_name(f"{draft.name}.scratch")
            scratch.mkdir(parents=True)
            yield replace(self.task, out=draft, scratch=scratch)
            shutil.rmtree(scratch)

    def gather(self) -> None:
        """Moves the tables' parts to where every engine has them."""
        parts = sorted(path for path in (self.task.scratch / "parts").iterdir() if path.suffix != DRAFT)
        for table in self.task.stage.tables:
            (self.task.out / table).mkdir()
            paths = [path for part in parts for path in sorted((part / table).glob("*.parquet"))]
            for number, path in enumerate(paths):
                path.rename(self.task.out / table / f"part-{number:05}.parquet")


DRAFT = ".draft"


@contextlib.contextmanager
def _drafted(path: Path) -> Iterator[Path]:
    """A file or folder under another name until it is whole, since a task may be done twice at a time."""
    draft = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(4).hex()}{DRAFT}")
    yield draft
    if path.is_dir():
        shutil.rmtree(path)
    draft.rename(path)


def blocks_of(task: StageTask, cores: int, memory_bytes: int) -> Blocks:
    """memory_bytes: of each core; 0: not known."""
    manifest = manifest_in(task.dataset)
    urls = manifest.rows("urls")
    most = min(URLS_A_TASK, max(memory_bytes // 100, 1000)) if memory_bytes else URLS_A_TASK
    sizes = (cores, -(-urls // most), -(-manifest.rows("links") // LINKS_A_TASK))
    return Blocks(task, urls, max(sizes))


def everywhere(context: SparkContext, work: Callable[[int], T], count: int) -> list[T]:
    """What work gives for each of so many numbers, in order, each computed by one task.

    work: a function that the machines' own copy of this program has, with its arguments bound. Raises what it raises
    on purpose.
    """
    results = []
    for outcome in context.parallelize(range(count), max(count, 1)).map(partial(_outcome, work)).collect():
        if isinstance(outcome, PeriplusError):
            raise outcome
        results.append(outcome)
    return results


def _outcome(work: Callable[[int], T], number: int) -> T | PeriplusError:
    """A refusal is a result, else Spark would try it four times and show its trace."""
    try:
        return work(number)
    except PeriplusError as error:
        return error
