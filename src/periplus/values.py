"""What values are made with: the decorator of most, and names of types that many have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")
Row = tuple[object, ...]  # of a table
JsonObject = dict[str, object]  # and what templates are filled with
Pairs = tuple[tuple[str, str], ...]  # (name, value)
PIPES = "PERIPLUS_RUNNER"
"""In the environment of a job's process: the numbers of two pipes, "write,read". The process writes its progress to the
first (JSON lines with the fields of `JobProgress`); the end of the second means that its runner has died.
"""
IN_DOUBT = 3  # exit code of a crawl that is done but for URLs of endless series
Watch = Callable[[str, int, int], None]  # is told what is done, how many are, of how many


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes a class a frozen dataclass with slots."""
    return dataclass(frozen=True, slots=True)(cls)
