"""Which collections does this server show, under which names, and where are new ones made?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from periplus.errors import NoCollection, UsageError

SUFFIX = ".periplus"
DATABASE = "collection.db"


@dataclass(frozen=True, slots=True)
class Places:
    """base: where new collections are made and the queue lies; folders: whose collections are all shown, as they come;
    single: others.
    """

    base: Path
    folders: tuple[Path, ...]
    single: tuple[Path, ...] = ()

    def collections(self) -> dict[str, Path]:
        """Name to folder, by name. Of two of one name the later one is numbered."""
        named: dict[str, Path] = {}
        for path in [*self.single, *(path for folder in self.folders for path in sorted(folder.glob(f"*{SUFFIX}")))]:
            if not (path / DATABASE).is_file() or any(path.samefile(known) for known in named.values()):
                continue
            name = plain = path.resolve().name.removesuffix(SUFFIX)
            number = 2
            while name in named:
                name, number = f"{plain} {number}", number + 1
            named[name] = path
        return dict(sorted(named.items()))

    def folder(self, name: str) -> Path:
        """Raises NoCollection."""
        found = self.collections().get(name)
        if found is None:
            raise NoCollection(f"there is no collection {name!r} here")
        return found


def places(given: Iterable[Path]) -> Places:
    """Folders of collections, and collections, as named on the command line; none: the current folder.

    Raises UsageError.
    """
    paths = list(given) or [Path()]
    for path in paths:
        if not path.is_dir():
            raise UsageError(f"{path} is no folder: name a collection, or a folder that holds collections")
    single = tuple(path for path in paths if (path / DATABASE).is_file())
    folders = tuple(path for path in paths if path not in single)
    base = folders[0] if folders else single[0].resolve().parent
    return Places(base, folders or (base,), single)
