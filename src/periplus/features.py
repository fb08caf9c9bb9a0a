"""Features: packages that plug into the core. Each declares its parts in one file of data, `feature.py`.

An entry point of the group `periplus.features` names a Feature, in a module that imports this one and nothing else.
The core reads the declarations without importing a feature; a place in them is a text, `module:name`. Only packages
that the user has installed can define an entry point: docs/security.md.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from periplus.errors import ExtensionError, PeriplusError, UsageError
from periplus.extras import extra_needed

log = logging.getLogger(__name__)
T = TypeVar("T")

GROUP = "periplus.features"
OURS = "periplus"
_SCHEMES = frozenset({"postgresql", "postgres"})  # named without a feature too, so that a message says what is missing


class CommandEntry(NamedTuple):
    """A command of `periplus`.

    section: of the help; place: of its click command; is_rare: in `--help-all` only; is_job: a worker may run it.
    """

    name: str
    section: str
    sentence: str
    place: str
    is_rare: bool = False
    is_job: bool = False


class NavEntry(NamedTuple):
    """An entry of the navigation.

    place: the group of a collection's screens, as "Study", in which it is; empty: it is on all screens. path: of its
    screen, within its collection; starts: of the paths of other screens that belong to it.
    """

    path: str
    word: str
    is_for_administrators: bool = False
    place: str = ""
    starts: tuple[str, ...] = ()


class StoredTable(NamedTuple):
    """A table of users' decisions that a feature adds to every collection, in folders and databases.

    It moves with the collection.
    columns: `name kind, name kind` with kind text, integer, real or bytes; no value may be missing. key: columns that
    identify a row, separated by commas.
    url: a column with the URL of a page; the rows of deleted pages are deleted.
    """

    name: str
    columns: str
    key: str
    url: str = ""

    @property
    def kinds(self) -> Mapping[str, str]:
        """Kinds of the columns by name."""
        return dict(column.split() for column in self.columns.split(", "))


class Feature(NamedTuple):
    """The parts of a feature. A text that is no sentence, path or file name is a place; a mapping has places by name.

    subcommands: click commands by group and name, as "export warc"; names: of `import periplus`;
    policies: functions of a store and a CrawlOrder that return the policy of a crawl, by kind of run;
    rules: rules of choice of a survey, functions of budget and number of sites;
    presets: kinds of jobs in the first form, each a `periplus.jobs.presets.Preset`;
    stored_tables: tables that it adds to every collection; file_tables: tables of periplus.toml that it reads;
    tables: the tables of its stored results, a mapping of `periplus.api.tables.ResultTable` by name;
    in_use: a function of a collection's folder or address: whether the feature has stored something there;
    routes: a `periplus.ui.description.Routes`; templates: the package whose folder `templates` they use, as
    "package/name.html"; after_jobs: a function of a folder of collections; a worker calls what it returns with each
    job that ended, and with None while it is idle; files: names of databases that it keeps in a folder of collections;
    formats: readers of documents, functions of their bytes that return a
    `periplus.document.conversion.Conversion`, by media type; text_formats: the same for texts, functions of the text
    and of whether `[[page]]` in it is a link;
    page_columns: functions of a collection's place that return the columns that it adds to the pages of the collection,
    a `periplus.api.page_columns.ExtraColumns`, or None;
    writers: file formats of tables, each a `periplus.present.writers.Writer`, by the ending of a file;
    findings: kinds of issues, each a `periplus.analyse.audit.Finding`, by code;
    engines: clusters for large analyses and crawls, each a `periplus_spark.api.Cluster`;
    stores: where collections are stored, each a `periplus.api.homes.DatabaseStore`, by the scheme of its addresses;
    services: functions that the core calls.
    """

    sentence: str
    commands: tuple[CommandEntry, ...] = ()
    subcommands: Mapping[str, str] = {}
    names: Mapping[str, str] = {}
    policies: Mapping[str, str] = {}
    rules: Mapping[str, str] = {}
    presets: Mapping[str, str] = {}
    stored_tables: tuple[StoredTable, ...] = ()
    file_tables: tuple[str, ...] = ()
    tables: str = ""
    in_use: str = ""
    routes: str = ""
    templates: str = ""
    navigation: tuple[NavEntry, ...] = ()
    after_jobs: str = ""
    files: tuple[str, ...] = ()
    formats: Mapping[str, str] = {}
    text_formats: Mapping[str, str] = {}
    page_columns: str = ""
    writers: Mapping[str, str] = {}
    findings: Mapping[str, str] = {}
    engines: Mapping[str, str] = {}
    stores: Mapping[str, str] = {}
    services: Mapping[str, str] = {}


PLACES = tuple(
    name
    for name in Feature._field_defaults
    if name not in ("templates", "navigation", "files", "stored_tables", "file_tables")
)
"""The fields of Feature that have places."""


class FeaturePart(NamedTuple):
    """A declared value. field: of Feature; package: name and version of its package; place: `module:name`."""

    field: str
    name: str
    package: str
    place: str

    def load(self, kind: type[T]) -> T:
        """Imports the value. Raises ExtensionError if that fails or the value is not an instance of `kind`."""
        with blame(self.package):
            value = value_at(self.place)
            if not isinstance(value, kind):
                raise TypeError(f"{self.place} is no {kind.__name__}, as required by {self.field}")
        return value


def value_at(place: str) -> Any:
    """Imports a module, and returns its value of that name: `module:name`."""
    module, _, name = place.partition(":")
    return reduce(getattr, filter(None, name.split(".")), import_module(module))


@contextlib.contextmanager
def blame(package: str) -> Iterator[None]:
    """Turns exceptions of another package's code into an ExtensionError with its name; PeriplusErrors are passed on.

    `blame(package)(function)` is the guarded function.
    """
    try:
        yield
    except PeriplusError:
        raise
    except Exception as error:  # third-party code may raise anything
        if package.partition(" ")[0] == OURS:
            raise
        raise ExtensionError(f"the installed package {package} failed: {type(error).__name__}: {error}") from error


@cache
def declarations() -> tuple[FeaturePart, ...]:
    """The Feature of each installed package, not yet loaded: ours, then the others by name and package.

    They are read from the metadata of packages: a twelfth of the time of `importlib.metadata`. The working directory,
    which `python -m` adds to sys.path and which may be a collection, is left out.
    """
    here = Path.cwd()
    folders = (Path(place) for place in sys.path if place and Path(place).absolute() != here)
    rows = (
        row
        for folder in folders
        if folder.is_dir()
        for metadata in folder.iterdir()
        if metadata.suffix in (".dist-info", ".egg-info")
        for row in _package_declarations(metadata)
    )
    return tuple(sorted(rows, key=lambda row: (row.package.partition(" ")[0] != OURS, row.name, row.package)))


def _package_declarations(metadata: Path) -> Iterator[FeaturePart]:
    """The declarations of a package's metadata folder; its name has the package's name and version."""
    try:
        text = (metadata / "entry_points.txt").read_text("utf-8")
    except OSError:
        return
    for line in text.partition(f"[{GROUP}]")[2].partition("\n[")[0].splitlines():
        name, equals, place = line.partition("=")
        if equals:
            yield FeaturePart("features", name.strip(), metadata.stem.replace("-", " "), place.strip())


@cache
def _packages() -> Mapping[str, tuple[str, Feature]]:
    """(package, feature) by name, of two with one name the first."""
    return _load_all(declarations(), Feature)


@cache
def features() -> Mapping[str, Feature]:
    """The features of the installed packages by name, ours first; one that cannot be loaded is skipped with a
    warning.
    """
    return {name: _packages()[name][1] for name in _packages()}


@cache
def stored_tables() -> tuple[StoredTable, ...]:
    """The tables that features add to every collection."""
    return tuple(table for feature in features().values() for table in feature.stored_tables)


@cache
def parts(field: str) -> Mapping[str, FeaturePart]:
    """The values that features declare in a field of Feature, none of them imported; of two with one name the first.

    A field with a single place has the name of its feature.
    """
    made: dict[str, FeaturePart] = {}
    for feature_name, (package, feature) in _packages().items():
        value = getattr(feature, field)
        if field == "commands":
            value = {command.name: command.place for command in feature.commands}
        for name, place in ({feature_name: value} if isinstance(value, str) else value).items():
            if place:
                made.setdefault(name, FeaturePart(field, name, package, place))
    return made


def _load_all(rows: Iterable[FeaturePart], kind: type[T]) -> Mapping[str, tuple[str, T]]:
    values: dict[str, tuple[str, T]] = {}
    for row in rows:
        try:
            values.setdefault(row.name, (row.package, row.load(kind)))
        except ExtensionError as error:
            log.warning("left out: %s %s: %s", row.field, row.name, error)
    return values


@cache
def loaded(field: str, kind: type[T], start: str = "") -> Mapping[str, tuple[str, T]]:
    """(package, value) of each part by name. Parts that cannot be loaded are skipped with a warning.

    start: only names that begin with this.
    """
    return _load_all((row for name, row in parts(field).items() if name.startswith(start)), kind)


def is_address(text: str) -> bool:
    """Whether a text is the address of a collection in a database, and not a folder."""
    scheme, mark, _ = text.partition("://")
    return bool(mark) and (scheme in _SCHEMES or scheme in parts("stores"))


def store_at(address: str) -> Any:
    """The store of a collection in a database. Raises UsageError if no installed package provides it."""
    scheme = address.partition("://")[0]
    if scheme not in parts("stores"):
        raise UsageError(f"{scheme}: no installed package stores collections there")
    with extra_needed():
        return parts("stores")[scheme].load(object)


def service(name: str) -> Any:
    """Imports the function that a feature provides as a service. Raises UsageError if none is installed that does."""
    if name not in parts("services"):
        raise UsageError(f"{name}: no installed package provides it")
    with extra_needed():
        return parts("services")[name].load(object)
