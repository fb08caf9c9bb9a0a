"""The decorator of value classes, and common type aliases."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

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


def fields_of(value: object, names: str) -> JsonObject:
    """These attributes of a value, by name. names: separated by blanks."""
    return {name: getattr(value, name) for name in names.split()}


# Methods of a dataclass that Python compiles from generated text: those that most uses need, and others.
_METHODS = ("__init__", "__setattr__", "__delattr__"), ("__repr__", "__eq__", "__hash__")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes a class a frozen dataclass with slots, whose methods are compiled when one of them is first called.

    Most commands use few of the classes that they import, and compiling takes about .3 ms a class.
    """
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    light = dataclass(init=False, repr=False, eq=False, slots=True)(cls)

    def stub(name: str, names: tuple[str, ...]) -> Callable[..., Any]:
        def method(*arguments: Any, **named: Any) -> Any:
            # annotations that are no text: dataclass would parse each three times
            own = {"__annotations__": dict.fromkeys(vars(light)["__slots__"], object)}
            starts = name in _METHODS[0]
            has_hash = not starts and "__hash__" not in body
            compile_methods = dataclass(
                init=starts, repr=not starts, eq=not starts, frozen=starts, unsafe_hash=has_hash
            )
            whole: Any = compile_methods(type(cls.__name__, cls.__bases__, body | own))
            for other in names:
                if other not in body:
                    setattr(light, other, getattr(whole, other))
            return getattr(light, name)(*arguments, **named)

        return method

    methods = {name: stub(name, names) for names in _METHODS for name in names if name not in body}
    methods |= {"__getstate__": _state, "__setstate__": _restore}
    for name, method in methods.items():
        setattr(light, name, method)
    return light


def _state(value: Any) -> list[object]:
    """Fields of a frozen value, for pickle and copy."""
    return [getattr(value, name) for name in value.__slots__]


def _restore(value: Any, state: list[object]) -> None:
    for name, content in zip(value.__slots__, state, strict=True):
        object.__setattr__(value, name, content)


def nearest(name: str, names: Iterable[str]) -> str:
    """The most similar name, in parentheses; empty if none is similar."""
    from difflib import get_close_matches  # imported only for error messages

    matches = get_close_matches(name.strip("-").replace("-", "_"), list(names), 1, 0.6)
    return f" (is it {matches[0]}?)" if matches else ""
