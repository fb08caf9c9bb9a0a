"""Opens a collection in a folder or a database; the only module that distinguishes the two."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from periplus.extras import extra_needed
from periplus.model.ports import CrawlHome
from periplus.model.tables import Table
from periplus.settings import SUFFIX, Settings
from periplus.store.postgres.address import address_of, is_address
from periplus.store.sqlite.schema import DATABASE
from periplus.urls.folders import folders_of
from periplus.urls.scope import own_hosts

if TYPE_CHECKING:  # imports NumPy
    from periplus.model.dataset import ResultStore, WholeRows
    from periplus.model.graph import SiteReader
    from periplus.store.moving import PageBody


def home_of(place: Path | str) -> CrawlHome:
    """The home of a collection. place: a folder or a database address.

    Raises UsageError for an invalid address, or if the extra that it needs is not installed.
    """
    if isinstance(place, Path):
        from periplus.store.sqlite.frontier import FolderHome  # readers of a folder do without it

        return FolderHome(place)
    with extra_needed():
        from periplus.store.postgres.frontier import DatabaseHome
    return DatabaseHome(address_of(place))


def name_of(place: Path | str) -> str:
    """Name of a collection: that of its folder or database schema."""
    if isinstance(place, Path):
        return place.resolve().name
    return address_of(place).collection


def place_at(text: Path | str) -> Path | str:
    """Path for a folder, text for a database address."""
    return str(text) if is_address(str(text)) else Path(text)


def collections_at(given: Sequence[Path | str], here: Path) -> dict[str, Path | str]:
    """Collections by name: the given ones and those inside given folders; by default those in `here`. A database
    address is named after its schema. Duplicates are dropped; equal names get a numeric suffix.
    """
    named: dict[str, Path | str] = {}
    places = set[Path | str]()
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


def folder_of(place: Path | str, watch: Callable[[str, int], None] | None = None) -> Path:
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
def editing(place: Path | str) -> Iterator[Path]:
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


def whole_of(place: Path | str, moment: str = "") -> AbstractContextManager[WholeRows]:
    """Snapshot of a whole collection for a dataset; moment: name of a snapshot exported by another process.

    Raises as `home_of`, and NoCollection, StoreError.
    """
    if isinstance(place, Path):
        from periplus.store.sqlite import analysis_rows

        return analysis_rows.whole(place)
    with extra_needed():
        from periplus.store.postgres import analysis_rows as stored_results
    return stored_results.whole(address_of(place), moment)


def results_of(place: Path | str, now: float) -> AbstractContextManager[ResultStore]:
    """Store for results of engines, within one transaction. Raises as `whole_of`."""
    if isinstance(place, Path):
        from periplus.store.sqlite import analysis_rows

        return analysis_rows.results(place, now)
    with extra_needed():
        from periplus.store.postgres import analysis_rows as stored_results
    return stored_results.results(address_of(place), now)


def site_reader_of(store: str) -> AbstractContextManager[SiteReader]:
    """Reader of sites of a collection in a database. Raises as `whole_of`."""
    with extra_needed():
        from periplus.store.postgres.table_rows import site_reader
    return site_reader(address_of(store))


def rows_of(store: str, table: Table) -> AbstractContextManager[Iterator[tuple[object, ...]]]:
    """Rows of a table of a collection in a database, streamed. Raises as `whole_of`."""
    with extra_needed():
        from periplus.store.postgres.table_rows import table_rows
    return table_rows(address_of(store), table)


@contextlib.contextmanager
def pages_of(place: Path | str) -> Iterator[Iterator[PageBody]]:
    """Pages with stored bodies, by URL, from one snapshot; streamed. Raises as `whole_of`."""
    if isinstance(place, Path):
        from periplus.store.sqlite import copying, reading

        with reading.moment(place) as connection:
            yield copying.pages_out(connection)
        return
    with extra_needed():
        from periplus.store.postgres import copying as stored_pages
        from periplus.store.postgres.table_rows import moment, place_of_segments
    from periplus.store.segments import SegmentReader, object_storage

    with moment(address_of(place)) as database:
        segments = place_of_segments(database)
        yield stored_pages.pages_out(database, SegmentReader(object_storage(segments)) if segments else None)


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
