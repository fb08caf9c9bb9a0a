"""Loads extensions: entry points of installed packages.

Only packages that the user has installed can define an entry point, in one of GROUPS. Crawled content, collections and
settings cannot: docs/security.md.
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
"""The groups of entry points, without PREFIX, and their purpose."""


@frozen
class Extension:
    """An entry point. package: name and version of its package."""

    group: str
    name: str
    package: str
    entry_point: EntryPoint

    def load(self, kind: type[T]) -> T:
        """Imports the value. Raises ExtensionError if that fails or the value is not an instance of `kind`."""
        with blame(self.package):
            value = self.entry_point.load()
            if not isinstance(value, kind):
                raise TypeError(f"{self.entry_point.value} is no {kind.__name__}, as required by periplus.{self.group}")
        return value


@contextlib.contextmanager
def blame(package: str) -> Iterator[None]:
    """Turns exceptions of a package's code into an ExtensionError with its name; PeriplusErrors are passed on."""
    try:
        yield
    except PeriplusError:
        raise
    except Exception as error:  # third-party code may raise anything
        raise ExtensionError(f"the installed package {package} failed: {type(error).__name__}: {error}") from error


def guarded(package: str, function: Callable[P, T]) -> Callable[P, T]:
    """Wraps a function of a package in `blame`."""

    @wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> T:
        with blame(package):
            return function(*args, **named)

    return call


@cache
def extensions(group: str) -> Mapping[str, Extension]:
    """The extensions of a group by name, not yet loaded; of two with the same name, the first by package."""
    if not any(_may_have(place, PREFIX + group) for place in _places()):
        return {}
    rows = sorted((row for row in _entry_points() if row.group == group), key=lambda row: (row.name, row.package))
    return {row.name: row for row in reversed(rows)}


@cache
def _entry_points() -> tuple[Extension, ...]:
    """The extensions of all groups."""
    from importlib.metadata import distributions

    return tuple(
        Extension(point.group.removeprefix(PREFIX), point.name, f"{package.name} {package.version}", point)
        for package in distributions(path=list(_places()))
        for point in package.entry_points
        if point.group.startswith(PREFIX)
    )


@cache
def _places() -> tuple[str, ...]:
    """The folders in which packages are searched: sys.path without the working directory, which `python -m` adds and
    which may be a collection.
    """
    here = Path.cwd()
    return tuple(place for place in sys.path if place and Path(place).absolute() != here)


def _may_have(place: str, group: str) -> bool:
    """Whether some package in a folder may have an entry point of the group; true for places other than folders.

    A fast test for the usual case without extensions: 1 ms instead of 12 with `importlib.metadata`.
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
    """(package, value) of each extension of a group, by name. Extensions that cannot be loaded are skipped with a
    warning.
    """
    values: dict[str, tuple[str, T]] = {}
    for extension in extensions(group).values():
        try:
            values[extension.name] = extension.package, extension.load(kind)
        except ExtensionError as error:
            log.warning("extension left out group=%s name=%s: %s", group, extension.name, error)
    return values
