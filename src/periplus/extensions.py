"""Loads what installed packages add to Periplus: entry points of their metadata, and nothing else.

An entry point is a line of a package that the user has installed beside Periplus, in one of GROUPS. Nothing that is
crawled, no collection and no setting can name one: docs/security.md.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from periplus.errors import ExtensionError, PeriplusError
from periplus.values import frozen

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

log = logging.getLogger(__name__)
T = TypeVar("T")
P = ParamSpec("P")

PREFIX = "periplus."
GROUPS = {
    "formats": "readers of media types",
    "writers": "file formats of tables",
    "findings": "kinds of issues that an audit finds",
    "policies": "rules of choice of a survey",
    "commands": "commands",
    "engines": "clusters for large analyses and crawls",
}
"""The groups, without PREFIX, and what a package adds there."""


@frozen
class Extension:
    """One entry point. package: the name and version of the package that has it."""

    group: str
    name: str
    package: str
    entry_point: EntryPoint

    def load(self, kind: type[T]) -> T:
        """Its value. Raises ExtensionError where importing it fails, or where it is no instance of `kind`."""
        with blame(self.package):
            value = self.entry_point.load()
            if not isinstance(value, kind):
                raise TypeError(f"{self.entry_point.value} is no {kind.__name__}, as periplus.{self.group} asks for")
        return value


@contextlib.contextmanager
def blame(package: str) -> Iterator[None]:
    """Turns whatever a package's code raises within into an ExtensionError that names it; our own errors pass."""
    try:
        yield
    except PeriplusError:
        raise
    except Exception as error:  # it is not our code: one guard around all of it
        raise ExtensionError(f"the installed package {package} failed: {type(error).__name__}: {error}") from error


def guarded(package: str, function: Callable[P, T]) -> Callable[P, T]:
    """The function of a package, each call of it within `blame`."""

    @wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> T:
        with blame(package):
            return function(*args, **named)

    return call


@cache
def extensions(group: str) -> Mapping[str, Extension]:
    """The extensions of a group by name, none of them loaded; of two with one name the first by package."""
    if not any(_may_name(place, PREFIX + group) for place in _places()):
        return {}
    rows = sorted((row for row in _entry_points() if row.group == group), key=lambda row: (row.name, row.package))
    return {row.name: row for row in reversed(rows)}


@cache
def _entry_points() -> tuple[Extension, ...]:
    """Those of every group."""
    from importlib.metadata import distributions

    return tuple(
        Extension(point.group.removeprefix(PREFIX), point.name, f"{package.name} {package.version}", point)
        for package in distributions(path=list(_places()))
        for point in package.entry_points
        if point.group.startswith(PREFIX)
    )


@cache
def _places() -> tuple[str, ...]:
    """Where packages are looked for. Those in the working directory do not count, which `python -m` puts on the path:
    it may be a collection.
    """
    here = Path.cwd()
    return tuple(place for place in sys.path if place and Path(place).absolute() != here)


def _may_name(place: str, group: str) -> bool:
    """Whether metadata of a package in a place names the group, as far as files tell; true of what is no folder.

    Most installations have no extension of a group: 1 ms, where `importlib.metadata` takes 12.
    """
    folder = Path(place)
    if not folder.is_dir():
        return folder.exists()
    for metadata in (folder / "EGG-INFO", *folder.iterdir()):
        if metadata.suffix in (".dist-info", ".egg-info") or metadata.name == "EGG-INFO":
            with contextlib.suppress(OSError):
                if group.encode() in (metadata / "entry_points.txt").read_bytes():
                    return True
    return False


@cache
def loaded(group: str, kind: type[T]) -> Mapping[str, tuple[str, T]]:
    """Of each extension of a group that can be loaded its package and its value, by name.

    A warning names the package of one that cannot; the others stay.
    """
    values: dict[str, tuple[str, T]] = {}
    for extension in extensions(group).values():
        try:
            values[extension.name] = extension.package, extension.load(kind)
        except ExtensionError as error:
            log.warning("extension left out group=%s name=%s: %s", group, extension.name, error)
    return values
