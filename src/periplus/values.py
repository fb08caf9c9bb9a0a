"""The decorator of value classes, and common type aliases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
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


# Methods of a dataclass that Python compiles from generated text, besides `__init__`
_METHODS = ("__repr__", "__eq__", "__hash__")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes a class a frozen dataclass with slots, whose methods are compiled when one of them is first called.

    Most commands use few of the classes that they import, and compiling takes about .5 ms a class. The class has no
    subclasses and no `__post_init__`, and its fields are positional.
    """
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    names = [name for name in _METHODS if name not in body]
    light = dataclass(init=False, repr=False, eq=False, slots=True)(cls)

    def stub(name: str, compile_methods: Callable[[], None]) -> Callable[..., Any]:
        def method(*arguments: Any, **named: Any) -> Any:
            compile_methods()
            return getattr(light, name)(*arguments, **named)

        return method

    def compile_init() -> None:
        setattr(light, "__init__", _initialiser(light))  # noqa: B010 - mypy refuses the assignment

    def compile_others() -> None:
        whole: Any = dataclass(frozen=True, init=False)(type(cls.__name__, cls.__bases__, body))
        for name in names:
            setattr(light, name, getattr(whole, name))

    methods = {name: stub(name, compile_others) for name in names} | {"__init__": stub("__init__", compile_init)}
    methods |= {"__setattr__": _refuse, "__delattr__": _refuse, "__getstate__": _state, "__setstate__": _restore}
    for name, method in methods.items():
        setattr(light, name, method)
    return light


def _initialiser(light: type[Any]) -> Any:
    """Compiles the `__init__` of a frozen class.

    While the fields are set, the value has another class with the same slots, whose fields can be assigned: 12 fields
    take .5 us instead of 2.3 by `object.__setattr__`, which `dataclass` uses.
    """
    opened = type(light.__name__, light.__bases__, {"__slots__": light.__slots__})
    scope: dict[str, Any] = {"_set": object.__setattr__, "_light": light, "_open": opened}
    head, lines = "self", "_set(self, '__class__', _open)"
    for part in fields(light):
        default, value = f"_of_{part.name}", part.name
        if part.default is not MISSING:
            scope[default] = part.default
        elif part.default_factory is not MISSING:
            scope[default], scope["_make" + default] = MISSING, part.default_factory
            value = f"_make{default}() if {part.name} is {default} else {part.name}"
        head += f", {part.name}={default}" if default in scope else f", {part.name}"
        lines += f"; self.{part.name} = {value}"
    exec(f"def __init__({head}): {lines}; self.__class__ = _light", scope)  # noqa: S102 - as dataclasses does
    return scope["__init__"]


def _refuse(value: object, name: str, _content: object = None) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(value: Any) -> list[object]:
    """Fields of a frozen value, for pickle and copy."""
    return [getattr(value, name) for name in value.__slots__]


def _restore(value: Any, state: list[object]) -> None:
    for name, content in zip(value.__slots__, state, strict=True):
        object.__setattr__(value, name, content)
