"""The decorator of value classes, and common type aliases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, dataclass_transform

T = TypeVar("T")
Row = tuple[object, ...]  # of a table
Place = Path | str  # of a collection: a folder, or an address (postgresql://...)
JsonObject = dict[str, object]  # also the context of a template
Pairs = tuple[tuple[str, str], ...]  # (name, value)
PIPES = "PERIPLUS_RUNNER"
"""In the environment of a job's process: the numbers of two pipes, "write,read". The process writes its progress to the
first (JSON lines with the fields of `JobProgress`); the end of the second means that its runner has died.
"""
IN_DOUBT = 3  # exit code of a crawl that left only URLs of endless series
Watch = Callable[[str, int, int], None]  # called with (name of the step, items done, total)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes a class a frozen dataclass with slots."""
    return dataclass(frozen=True, slots=True)(cls)
