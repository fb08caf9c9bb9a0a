"""The decorator of value classes, and common type aliases."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from operator import attrgetter
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


_FIELDS = "__dataclass_fields__"  # the name by which `dataclasses` finds the fields of a class
_CALLS = 20  # creations of a class's values before its `__init__` is compiled, which takes the time of 200


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes a class a frozen dataclass with slots, without compiling the text of its methods: .7 ms a class.

    Most commands use few of the classes that they import, and few values of each. `__init__` is compiled for a class
    of which many values are created.
    """
    names, every = tuple(cls.__annotations__), frozenset(cls.__annotations__)
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    defaults = {name: body[name] for name in names if name in body}
    special = {name: value for name, value in defaults.items() if isinstance(value, Field)}
    plain = {name: value for name, value in defaults.items() if name not in special}
    plain |= {name: value.default for name, value in special.items() if value.default is not MISSING}
    makers = {name: value.default_factory for name, value in special.items() if value.default_factory is not MISSING}
    compared = [name for name in names if name not in special or special[name].compare]
    shown = [name for name in names if name not in special or special[name].repr]
    key = attrgetter("__class__", *compared)
    later = body.get("__post_init__", lambda value: None)
    calls = 0

    def compiled() -> Any:
        # annotations that are no text: dataclass would parse each three times
        untyped = {"__annotations__": dict.fromkeys(names, object)}
        return dataclass(repr=False, eq=False, frozen=True)(type(cls.__name__, cls.__bases__, body | untyped))

    def create(self: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        values = plain | dict(zip(names, arguments, strict=False)) | named
        values |= {name: make() for name, make in makers.items() if name not in values}
        is_right = len(arguments) <= len(names) and named.keys().isdisjoint(names[: len(arguments)])
        if calls > _CALLS or not is_right or values.keys() != every:
            light.__init__ = compiled().__init__
            return light.__init__(self, *arguments, **named)  # raises what Python says of wrong arguments
        for name, value in values.items():
            object.__setattr__(self, name, value)
        return later(self)

    def is_equal(self: Any, other: object) -> bool:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def show(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({values})"

    methods = {
        "__init__": create,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__repr__": show,
        "__eq__": is_equal,
        "__hash__": lambda self: hash(key(self)),
        "__getstate__": _state,
        "__setstate__": _restore,
        "__qualname__": cls.__qualname__,
        _FIELDS: _LateFields(compiled),
    }
    own = dict.fromkeys(("__slots__", "__match_args__"), names)
    own |= {name: value for name, value in body.items() if name not in defaults}
    light: Any = type(cls.__name__, cls.__bases__, methods | own)
    return cast("type[T]", light)


class _LateFields:
    """The fields of a class, for `dataclasses`."""

    def __init__(self, compiled: Callable[[], Any]) -> None:
        self._compiled = compiled

    def __get__(self, value: object, owner: Any) -> object:
        fields = getattr(self._compiled(), _FIELDS)
        for name, part in fields.items():
            part.type = owner.__annotations__[name]
        setattr(owner, _FIELDS, fields)
        return fields


def _refuse(value: object, name: str, *content: object) -> None:
    raise FrozenInstanceError(f"cannot {'assign to' if content else 'delete'} field {name!r}")


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
