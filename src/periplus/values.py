"""The decorator that most values have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes a class a frozen dataclass with slots."""
    return dataclass(frozen=True, slots=True)(cls)
