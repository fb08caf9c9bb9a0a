"""The decorator of value classes, and common type aliases."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, cast, dataclass_transform

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


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes a class a frozen dataclass with slots, whose methods are compiled when one of them is first called.

    Most commands use few of the classes that they import, and compiling takes about .1 ms a class.
    """
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    light: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)

    def start(*arguments: Any, **named: Any) -> None:
        light.__init__ = _constructor(light)
        light.__init__(*arguments, **named)

    def stub(name: str) -> Callable[..., Any]:
        def method(*arguments: Any) -> Any:
            # annotations that are no text: dataclass would parse each three times
            own = {"__annotations__": dict.fromkeys(vars(light)["__slots__"], object)}
            compile_methods = dataclass(init=False, unsafe_hash="__hash__" not in body)
            whole: Any = compile_methods(type(cls.__name__, cls.__bases__, body | own))
            for other in _LIKENESS:
                if other not in body:
                    setattr(light, other, getattr(whole, other))
            return getattr(light, name)(*arguments)

        return method

    methods = {name: stub(name) for name in _LIKENESS if name not in body}
    methods |= {"__getstate__": _state, "__setstate__": _restore, "__init__": start}
    methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
    for name, method in methods.items():
        setattr(light, name, method)
    return cast(type[T], light)


_LIKENESS = "__repr__", "__eq__", "__hash__"


def _constructor(cls: Any) -> Callable[..., None]:
    """Compiles the constructor of a value class.

    While it runs, the value is of a second class with the same slots, whose values can change: three times as fast as
    `object.__setattr__`, which dataclasses use.
    """
    twin = type(cls.__name__, cls.__bases__, {"__slots__": cls.__slots__, "__setattr__": object.__setattr__})
    names: JsonObject = {"_become": vars(object)["__class__"].__set__, "_twin": twin, "_cls": cls}
    parameters, lines = ["self"], ["_become(self, _twin)"]
    for row in fields(cls):
        name = value = row.name
        names[f"_of_{name}"], names[f"_make_{name}"] = row.default, row.default_factory
        has_factory = row.default_factory is not MISSING
        if has_factory:  # its default is MISSING
            value = f"_make_{name}() if {name} is _of_{name} else {name}"
        parameters.append(name if row.default is MISSING and not has_factory else f"{name}=_of_{name}")
        lines.append(f"self.{name} = {value}")
    text = "\n ".join([f"def __init__({', '.join(parameters)}):", *lines, "self.__class__ = _cls"])
    exec(text, names)  # noqa: S102 - text of the names of fields alone, as in `dataclasses`
    made: Any = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return cast(Callable[..., None], made)


def _refuse(_value: object, name: str, *_content: object) -> None:
    raise FrozenInstanceError(f"the field {name} cannot be changed")


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
