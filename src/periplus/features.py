"""Features: packages that plug into the core. Each declares its parts in one file of data, `feature.py`.

An entry point of the group `periplus.features` names a Feature, in a module that imports this one and nothing else.
The core reads the declarations without importing a feature; a place in them is a text, `module:name`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from periplus.extensions import loaded


class CommandEntry(NamedTuple):
    """A command of `periplus`. section: of the help; place: of its click command; is_rare: in `--help-all` only."""

    name: str
    section: str
    sentence: str
    place: str
    is_rare: bool = False


class Feature(NamedTuple):
    """The parts of a feature."""

    sentence: str
    commands: tuple[CommandEntry, ...] = ()


@cache
def features() -> Mapping[str, Feature]:
    """The features of the installed packages by name. One that cannot be loaded is left out with a warning."""
    return {name: feature for name, (_, feature) in loaded("features", Feature).items()}
