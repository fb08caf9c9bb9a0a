"""Loads extensions: entry points of installed packages.

Only packages that the user has installed can define an entry point, in one of GROUPS. Crawled content, collections and
settings cannot: docs/security.md.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, reduce, wraps
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from periplus.errors import ExtensionError, PeriplusError
from periplus.values import frozen

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
    "features": "commands, screens and other parts of a feature, declared together",
}
"""The groups of entry points, without PREFIX, and their purpose."""


@frozen
class Extension:
    """An entry point. package: name and version of its package; place: `module:name` of the value."""

    group: str
    name: str
    package: str
    place: str

    def load(self, kind: type[T]) -> T:
        """Imports the value. Raises ExtensionError if that fails or the value is not an instance of `kind`."""
        with blame(self.package):
            value = value_at(self.place)
            if not isinstance(value, kind):
                raise TypeError(f"{self.place} is no {kind.__name__}, as required by periplus.{self.group}")
        return value


def value_at(place: str) -> Any:
    """Imports a module, and returns its value of that name: `module:name`."""
    module, _, name = place.partition(":")
    return reduce(getattr, filter(None, name.split(".")), import_module(module))


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
    rows = sorted((row for row in _entry_points() if row.group == group), key=lambda row: (row.name, row.package))
    return {row.name: row for row in reversed(rows)}


@cache
def _entry_points() -> tuple[Extension, ...]:
    """The extensions of all groups, from the metadata of packages: a twelfth of the time of `importlib.metadata`.

    The working directory, which `python -m` adds to sys.path and which may be a collection, is left out.
    """
    here = Path.cwd()
    folders = (Path(place) for place in sys.path if place and Path(place).absolute() != here)
    return tuple(
        row
        for folder in folders
        if folder.is_dir()
        for metadata in folder.iterdir()
        if metadata.suffix in (".dist-info", ".egg-info")
        for row in _package_extensions(metadata)
    )


def _package_extensions(metadata: Path) -> Iterator[Extension]:
    """The extensions that a package's metadata folder declares; its name has the package's name and version."""
    try:
        text = (metadata / "entry_points.txt").read_text("utf-8")
    except OSError:
        return
    group = ""
    for line in text.splitlines() if f"[{PREFIX}" in text else ():
        if line.startswith("["):
            group = line.strip("[] ")
        elif group.startswith(PREFIX) and "=" in line:
            name, _, place = line.partition("=")
            package = metadata.stem.replace("-", " ")
            yield Extension(group.removeprefix(PREFIX), name.strip(), package, place.strip())


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
