"""Features: packages that plug into the core. Each declares its parts in one file of data, `feature.py`.

An entry point of the group `periplus.features` names a Feature, in a module that imports this one and nothing else.
The core reads the declarations without importing a feature; a place in them is a text, `module:name`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from periplus.errors import UsageError
from periplus.extensions import loaded, value_at
from periplus.extras import extra_needed


class CommandEntry(NamedTuple):
    """A command of `periplus`. section: of the help; place: of its click command; is_rare: in `--help-all` only."""

    name: str
    section: str
    sentence: str
    place: str
    is_rare: bool = False


class NavEntry(NamedTuple):
    """An entry of the navigation of all screens."""

    path: str
    word: str
    is_for_administrators: bool = False


class Feature(NamedTuple):
    """The parts of a feature. A text that is no sentence, path or file name is a place.

    subcommands: places of click commands, by group and name, as "export warc";
    routes: a `periplus.ui.description.Routes`; templates: the package whose folder `templates` they use, as
    "package/name.html"; after_jobs: a function of a folder of collections; a worker calls what it returns with each
    job that ended, and with None while it is idle; files: names of databases that it keeps in a folder of collections;
    formats: places of readers of documents, functions of their bytes that return a
    `periplus.document.formats.converted.Conversion`, by media type;
    stores: places of a `periplus.api.homes.CollectionStore` by the scheme of its addresses, as "postgresql";
    services: places of the functions that the core calls, by the name of the service.
    """

    sentence: str
    commands: tuple[CommandEntry, ...] = ()
    subcommands: Mapping[str, str] = {}
    routes: str = ""
    templates: str = ""
    navigation: tuple[NavEntry, ...] = ()
    after_jobs: str = ""
    files: tuple[str, ...] = ()
    formats: Mapping[str, str] = {}
    stores: Mapping[str, str] = {}
    services: Mapping[str, str] = {}


@cache
def features() -> Mapping[str, Feature]:
    """The features of the installed packages by name. One that cannot be loaded is left out with a warning."""
    return {name: feature for name, (_, feature) in loaded("features", Feature).items()}


def parts(name: str) -> Iterator[Any]:
    """Imports the values of all features at the places that a field of Feature names."""
    return (value_at(place) for feature in features().values() if (place := getattr(feature, name)))


_SCHEMES = frozenset({"postgresql", "postgres"})  # named without a feature too, so that a message says what is missing


def is_address(text: str) -> bool:
    """Whether a text is the address of a collection in a database, and not a folder."""
    scheme, mark, _ = text.partition("://")
    return bool(mark) and (scheme in _SCHEMES or any(scheme in feature.stores for feature in features().values()))


def store_at(address: str) -> Any:
    """The store of a collection in a database. Raises UsageError if no installed package provides it."""
    scheme = address.partition("://")[0]
    for feature in features().values():
        if place := feature.stores.get(scheme):
            with extra_needed():
                return value_at(place)
    raise UsageError(f"{scheme}: no installed package stores collections there")


def service(name: str) -> Any:
    """Imports the function that a feature provides as a service. Raises UsageError if none is installed that does."""
    for feature in features().values():
        if place := feature.services.get(name):
            with extra_needed():
                return value_at(place)
    raise UsageError(f"{name}: no installed package provides it")
