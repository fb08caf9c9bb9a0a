"""Opens a collection in a folder or a database; the only module that distinguishes the two."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from periplus.errors import NoCollection, StoreError
from periplus.extras import extra_needed
from periplus.model.ports import CrawlHome
from periplus.settings import SUFFIX, Settings
from periplus.store.database_address import address_of, is_address
from periplus.store.reader import CollectionReader
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.sqlite.schema import DATABASE
from periplus.urls.folders import folders_of
from periplus.urls.scope import own_hosts
from periplus.values import Place

if TYPE_CHECKING:  # imports NumPy
    from periplus.model.dataset import ResultStore, WholeRows


def home_of(place: Place) -> CrawlHome:
    """The home of a collection. place: a folder or a database address.

    Raises UsageError for an invalid address, or if the extra that it needs is not installed.
    """
    if isinstance(place, Path):
        from periplus.store.sqlite.frontier import FolderHome  # readers of a folder do without it

        return FolderHome(place)
    with extra_needed():
        from periplus.store.postgres.frontier import DatabaseHome
    return DatabaseHome(address_of(place))


@contextlib.contextmanager
def open_reader(place: Place, limit_s: float = 0.0) -> Iterator[CollectionReader]:
    """Opens a collection in a folder or a database for reading, and closes it at the end. limit_s: see `limit_reads`.

    Raises UsageError, NoCollection, StoreError.
    """
    with contextlib.closing(reader_of(place)) as reader, reader.limit_reads(limit_s):
        yield reader


def reader_of(place: Place) -> CollectionReader:
    """The reader of a collection, to be closed by the caller. Raises as `open_reader`."""
    if isinstance(place, Path) or not is_address(place):
        return SqliteReader.of(Path(place))
    with extra_needed():
        from periplus.store.postgres.table_rows import PostgresReader
    return PostgresReader(address_of(place))


def is_unused(folder: Path, now: float) -> bool:
    """Whether a folder has no collection, or one without pages, survey and running crawl, as after a crawl was killed
    before its first page. An unreadable collection counts as used.
    """
    try:
        with open_reader(folder) as reader:
            used = reader.note("survey") or reader.statements.rows("SELECT 1 FROM page LIMIT 1")
            return not (used or reader.activity(now).is_running)
    except NoCollection:
        return True
    except StoreError:  # the command that reads it reports the error
        return False


def name_of(place: Place) -> str:
    """Name of a collection: that of its folder or database schema."""
    if isinstance(place, Path):
        return place.resolve().name
    return address_of(place).collection


def place_at(text: Place) -> Place:
    """Path for a folder, text for a database address."""
    return str(text) if is_address(str(text)) else Path(text)


def collections_at(given: Sequence[Place], here: Path) -> dict[str, Place]:
    """Collections by name: the given ones and those inside given folders; by default those in `here`. A database
    address is named after its schema. Duplicates are dropped; equal names get a numeric suffix.
    """
    named: dict[str, Place] = {}
    places = set[Place]()
    for place in given or [here]:
        for path in [str(place)] if is_address(str(place)) else _collections_in(Path(place)):
            if (where := path.resolve() if isinstance(path, Path) else path) in places:
                continue
            places.add(where)
            name = plain = name_of(path).removesuffix(SUFFIX)
            number = 2
            while name in named:
                name, number = f"{plain} {number}", number + 1
            named[name] = path
    return named


def _collections_in(folder: Path) -> list[Path]:
    """The folder itself if it is a collection, else the collections inside it."""
    inside = [folder] if (folder / DATABASE).is_file() else sorted(folder.glob(f"*{SUFFIX}"))
    return [path for path in inside if (path / DATABASE).is_file()]


def folder_of(place: Place, watch: Callable[[str, int], None] | None = None) -> Path:
    """Folder from which a collection is read: itself, or an up-to-date copy of a collection in a database.

    watch: called with the table being copied and its rows so far. Raises as `api.copies.copied`.
    """
    if not is_address(str(place)):
        return Path(place)
    with extra_needed():
        from periplus.api.copies import local_copy
    folder = local_copy(str(place), watch or (lambda what, rows: None))
    _ADDRESSES[folder] = str(place)
    return folder


def copy_folder(address: str) -> Path:
    """Folder of the copy that `folder_of` makes for an address. Raises UsageError."""
    with extra_needed():
        from periplus.api import copies
    return copies.copy_folder(address_of(address))


# addresses of copies read by this process; they contain passwords and are never stored
_ADDRESSES: Final[dict[Path, str]] = {}


def address_of_copy(folder: Path) -> str:
    """Address of the collection that a folder is a copy of; empty if it is no copy."""
    return _ADDRESSES.get(folder, "")


def shares_index(store: str) -> bool:
    """Whether readers of a collection in a database share a search index. Raises UsageError, StoreError."""
    with extra_needed():
        from periplus.store.postgres import index_place
    return index_place.is_shared(address_of(store))


@contextlib.contextmanager
def editing(place: Place) -> Iterator[Path]:
    """Folder for users' changes of topics, portals and marks: the collection's own, or a copy that is written back to
    the database at the end. Raises as `api.copies.edited`.
    """
    if not is_address(str(place)):
        yield Path(place)
        return
    with extra_needed():
        from periplus.api.copies import edit_copy
    with edit_copy(str(place)) as folder:
        yield folder


@contextlib.contextmanager
def whole_of(place: Place, moment: str = "") -> Iterator[WholeRows]:
    """Opens a snapshot of a collection for a dataset. moment: name of a snapshot exported by another process.

    Raises as `open_reader`.
    """
    from periplus.store.datasets import StoredRows  # imports NumPy

    with open_reader(place) as reader, reader.snapshot(moment):
        yield StoredRows(reader)


def results_of(place: Place, now: float) -> AbstractContextManager[ResultStore]:
    """Store for results of engines, within one transaction. Raises as `home_of`,
    and NoCollection, StoreError."""
    if isinstance(place, Path):
        from periplus.store.sqlite import analysis_rows

        return analysis_rows.results(place, now)
    with extra_needed():
        from periplus.store.postgres import analysis_rows as stored_results
    return stored_results.results(address_of(place), now)


def leave_nothing(home: CrawlHome, part: str) -> bool:
    """Deletes a collection that a failed first run created, unless it has a page. Returns whether it was deleted. part:
    from the run's order; a part of a web is never deleted, since it has counted messages from other parts.
    """
    return not part and home.discard()


def workable(settings: Settings) -> Settings:
    """Adjusts settings for the engine: leases outlast every request by its time limit, host names are in lower case,
    and concurrency fits the limit of file descriptors.
    """
    storage = dataclasses.replace(
        settings.storage, lease_s=max(settings.storage.lease_s, 2 * settings.limits.total_timeout_s)
    )
    local = [host.removesuffix(":80") for host in folders_of(settings.identity.folders)]
    mine = own_hosts(dict.fromkeys((*settings.politeness.mine, *local)))
    from periplus.acquire.transport import affordable

    at_once = affordable(settings.politeness.concurrency)
    politeness = dataclasses.replace(settings.politeness, mine=mine, concurrency=at_once)
    past, archive = settings.past, settings.past.from_archive
    if archive and not archive.startswith(("cdx:", "memento:")):  # a later refresh may start in another directory
        past = dataclasses.replace(past, from_archive=str(Path(archive).expanduser().absolute()))
    return dataclasses.replace(settings, storage=storage, politeness=politeness, past=past)
