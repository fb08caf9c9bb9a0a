"""Opens collections, wherever they are stored: in folders, or in databases that features provide."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from periplus.acquire.clock import SystemClock
from periplus.children import affordable, raised_limit
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.features import is_address, store_at
from periplus.files import FolderFiles
from periplus.masking import without_secrets
from periplus.model.ports import CHECK, Clock, CrawlHome, RunRecord
from periplus.settings import SUFFIX, Auditing, Budget, Settings, last_settings
from periplus.store.reader import CollectionReader, CollectionWriter
from periplus.urls.folders import folders_of
from periplus.urls.scope import own_hosts
from periplus.values import Place

if TYPE_CHECKING:  # imports NumPy
    from periplus.children import Parent
    from periplus.model.results import ImportResult
    from periplus.model.web import SiteKey, Url, UrlId
    from periplus.store.crawl_reads import PageBlocks
    from periplus.store.job_queue import JobQueue
    from periplus.store.sqlite.index_feed import IndexFeed


class UserFiles(Protocol):
    """Files of a collection that are made at the request of a user: `periplus.files.USER_FILES`.

    Each call is one transaction. Methods raise UsageError for other names, NoCollection and StoreError.
    """

    def names(self, pattern: str) -> list[str]:
        """Names that match a pattern such as `topics/*.json`, sorted."""

    def read(self, name: str) -> bytes | None: ...

    def changed_s(self, name: str) -> float:
        """Time of the last change, in seconds since the epoch; 0.0 if there is no such file."""

    def write(self, name: str, data: bytes) -> None:
        """Creates or replaces a file."""

    def append(self, name: str, data: bytes) -> None:
        """Adds data to the end of a file, which is created if it does not exist."""

    def remove(self, name: str) -> bool:
        """Returns whether there was such a file."""


class CollectionStore(Protocol):
    """Where collections are stored. place: a folder, or an address with its password.

    Methods raise UsageError for an invalid address, NoCollection and StoreError.
    """

    def name(self, place: Any) -> str:
        """Name of a collection: that of its folder or database schema."""

    def home(self, place: Any) -> CrawlHome: ...

    def reader(self, place: Any) -> CollectionReader:
        """The reader of a collection, to be closed by the caller."""

    def cache_folder(self, place: Any) -> Path:
        """Folder for computed data: the collection's own, or one in the user's cache for a collection in a database."""

    def files(self, place: Any) -> UserFiles: ...
    def index_feed(self, place: Any, reader: CollectionReader | None) -> AbstractContextManager[IndexFeed]:
        """See `index_feed`."""

    def shared_index(self, place: Any) -> IndexSharing | None:
        """The index that readers of a collection share; None if every reader has its own."""

    def writer(self, place: Any) -> AbstractContextManager[CollectionWriter]:
        """See `writer_of`."""

    def shrink(self, place: Any) -> None:
        """Returns the space of deleted rows to the disk."""

    def queue(self, place: Any, *, make: bool, waits: bool) -> tuple[JobQueue, Clock]:
        """The jobs of a collection or of a folder of collections, and their clock. See `jobs.runner.opened_queue`."""


class FolderStore:
    """The collections in folders."""

    def name(self, place: Path) -> str:
        return place.resolve().name

    def home(self, place: Path) -> CrawlHome:
        from periplus.store.sqlite.frontier import FolderHome  # readers of a folder do without it

        return FolderHome(place)

    def reader(self, place: Path) -> CollectionReader:
        from periplus.store.sqlite.listing import SqliteReader  # readers of a database do without it

        return SqliteReader.of(place)

    def cache_folder(self, place: Path) -> Path:
        return place

    def files(self, place: Path) -> UserFiles:
        return FolderFiles(place)

    def index_feed(self, place: Path, reader: CollectionReader | None) -> AbstractContextManager[IndexFeed]:
        from periplus.store.sqlite.index_feed import folder_feed

        return folder_feed(place, reader)

    def shared_index(self, place: Path) -> None:
        return None

    def writer(self, place: Path) -> AbstractContextManager[CollectionWriter]:
        from periplus.store.sqlite import listing

        return listing.writer(place)

    def shrink(self, place: Path) -> None:
        from periplus.store.sqlite import listing

        listing.shrink(place)

    def queue(self, place: Path, *, make: bool, waits: bool) -> tuple[JobQueue, Clock]:
        from periplus.store.sqlite.job_file import folder_queue

        return folder_queue(place), SystemClock()

    def damage(self, place: Path) -> str:
        """Describes the first column with a value of the wrong type; empty if there is none. Raises as `reader`."""
        from periplus.store.sqlite.reading import wrong_value

        return wrong_value(place)


class IndexSharing(Protocol):
    """The search index and the vectors that readers of a collection in a database share."""

    def publishing(self, what: str) -> AbstractContextManager[Callable[[], None] | None]:
        """Takes the right to publish the index or the vectors, named by their folder. Yields None if another process
        has it, else a function that publishes those of the cache folder.
        """

    def take_over_vectors(self) -> None:
        """Downloads the published vectors into the cache folder if they differ."""


class SearchedCollection(Protocol):
    """A searchable collection. name: identifies its hits if several are searched. folder: contains its index and
    vectors.
    """

    name: str
    folder: Path
    settings_file: Path

    def catch_up(self, now: float, watch: Callable[[int, int], bool]) -> str:
        """Updates the index as far as possible; returns a note on missing pages, or an empty string."""

    def pages(self, ids: Sequence[UrlId]) -> Mapping[UrlId, tuple[PageBlocks, SiteKey]]:
        """The current pages among the URLs, each with its site."""

    def urls(self, ids: Sequence[UrlId]) -> Mapping[UrlId, Url]:
        """The known URLs among the ids."""

    def pages_with(self, column: str, text: str) -> Sequence[UrlId]:
        """See `searching.pages_with`."""

    def take_over_vectors(self) -> None:
        """Updates the local vectors. Raises StoreError."""


class DatabaseStore(CollectionStore, Protocol):
    """The collections in databases of one kind; a feature declares it for a scheme of addresses. Raises as its base."""

    def plain(self, place: str) -> str:
        """The address without password and storage places, by which users recognise it."""

    def collection(self, place: str, time_limit_s: float) -> Any:
        """A `Collection`, which imports this module."""

    def shares_index(self, place: str) -> bool:
        """Whether readers of a collection share a search index."""

    def search_source(self, name: str, place: str, limit_s: float) -> AbstractContextManager[SearchedCollection | None]:
        """The collection with its shared index; None if none is shared or published yet."""

    def serve_index(self, place: str, parent: Parent, watch: Callable[[int, int], bool]) -> None:
        """Keeps the shared index up to date until the crawl has ended and all is published, or the parent has died."""

    def take_in(self, place: str, make: Callable[[Path], ImportResult]) -> ImportResult:
        """Imports into a temporary folder, then moves the result into a database unless no page was read."""

    def withdraw_index(self, place: str) -> None:
        """Deletes the shared index after a deletion of pages; the next search publishes a new one."""

    def clear(self, place: str) -> None:
        """Deletes the contents of a collection, but not its jobs and the storage places of segments and index."""

    def remove(self, place: str) -> None:
        """Deletes a collection with its jobs, segments and computed data."""


FOLDERS: Final = FolderStore()


def database_at(address: str) -> DatabaseStore:
    """The store of a collection in a database. Raises UsageError if no installed package provides it."""
    if not is_address(address):
        raise UsageError(
            f"{without_secrets(address)} is not the address of a database: postgresql://USER@HOST/DATABASE?collection=NAME"
        )
    store: DatabaseStore = store_at(address)
    return store


def store_of(place: Place) -> CollectionStore:
    """Raises as `database_at`."""
    return FOLDERS if isinstance(place, Path) else database_at(place)


def home_of(place: Place) -> CrawlHome:
    """The home of a collection. place: a folder or a database address.

    Raises UsageError for an invalid address, or if the extra that it needs is not installed.
    """
    return store_of(place).home(place)


@contextlib.contextmanager
def open_reader(place: Place, limit_s: float = 0.0) -> Iterator[CollectionReader]:
    """Opens a collection in a folder or a database for reading, and closes it at the end. limit_s: see `limit_reads`.

    Raises UsageError, NoCollection, StoreError.
    """
    with contextlib.closing(reader_of(place)) as reader, reader.limit_reads(limit_s):
        yield reader


@contextlib.contextmanager
def snapshot_of(place: Place) -> Iterator[CollectionReader]:
    """Opens a collection with one snapshot for all reads. Raises as `open_reader`."""
    with open_reader(place) as reader, reader.snapshot():
        yield reader


def reader_of(place: Place) -> CollectionReader:
    """The reader of a collection, to be closed by the caller. Raises as `open_reader`."""
    where = place_at(place)
    return store_of(where).reader(where)


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
    return store_of(place).name(place)


def place_at(text: Place) -> Place:
    """Path for a folder, text for a database address."""
    return str(text) if is_address(str(text)) else Path(text)


def full_place(place: Place) -> Place:
    """The absolute path of a folder, or a database address: identifies the collection in this process."""
    return place.resolve() if isinstance(place, Path) else place


def files_state(folder: Path) -> object:
    """Changes whenever anything is written to the collection in a folder."""
    from periplus.store.sqlite.schema import files_state as state_of

    return state_of(folder)


def settle_files(folder: Path) -> None:
    """Moves the last changes into the database's file, so that `files_state` stays the same when its reader closes."""
    from periplus.store.sqlite import listing

    listing.settle(folder)


def settings_before(place: Place) -> Settings:
    """Settings of the collection's last crawl or refresh, without those for auditing; also without its limits if it is
    finished.

    The defaults if there was none. Raises NoCollection.
    """
    crawls = crawls_of(home_of(place))
    settings = dataclasses.replace(last_settings(crawls[-1].settings), auditing=Auditing()) if crawls else Settings()
    return (
        dataclasses.replace(settings, budget=Budget(quantum=settings.budget.quantum))
        if crawls and is_over(crawls[-1])
        else settings
    )


def crawls_of(home: CrawlHome) -> list[RunRecord]:
    """Crawls and refreshes, oldest first. Raises NoCollection."""
    return [record for record in home.runs() if record.kind != CHECK]


def is_over(crawl: RunRecord) -> bool:
    return crawl.state in ("done", "suspicious") or at_limit(crawl.state, crawl.note)


def at_limit(state: str, note: str) -> bool:
    """Whether the run ended at a limit set by the user."""
    return state == "stopped" and note.startswith("max-")


def collections_at(given: Sequence[Place], here: Path) -> dict[str, Place]:
    """Collections by name: the given ones and those inside given folders; by default those in `here`. A database
    address is named after its schema. Duplicates are dropped; equal names get a numeric suffix.
    """
    named: dict[str, Place] = {}
    places = set[Place]()
    for place in given or [here]:
        for path in [str(place)] if is_address(str(place)) else _collections_in(Path(place)):
            if (where := full_place(path)) in places:
                continue
            places.add(where)
            name = plain = name_of(path).removesuffix(SUFFIX)
            number = 2
            while name in named:
                name, number = f"{plain} {number}", number + 1
            named[name] = path
    return named


def is_collection(folder: Path) -> bool:
    from periplus.store.sqlite.schema import exists

    return exists(folder)


def _collections_in(folder: Path) -> list[Path]:
    """The folder itself if it is a collection, else the collections inside it."""
    inside = [folder] if is_collection(folder) else sorted(folder.glob(f"*{SUFFIX}"))
    return [path for path in inside if is_collection(path)]


def cache_folder(place: Place) -> Path:
    """See `CollectionStore.cache_folder`. Raises as `open_reader`."""
    where = place_at(place)
    return store_of(where).cache_folder(where)


def files_of(place: Place) -> UserFiles:
    """Files of a collection that are made at the request of a user. Raises UsageError for an invalid address."""
    where = place_at(place)
    return store_of(where).files(where)


def index_feed(place: Place, reader: CollectionReader | None = None) -> AbstractContextManager[IndexFeed]:
    """What the index of a collection in its cache folder follows. reader: for a search, which changes nothing in a
    folder; None: opens one. Raises as `open_reader`.
    """
    return store_of(place).index_feed(place, reader)


def shared_index(place: Place) -> IndexSharing | None:
    """See `CollectionStore.shared_index`. Raises as `open_reader`."""
    return store_of(place).shared_index(place)


def writer_of(place: Place) -> AbstractContextManager[CollectionWriter]:
    """Opens a collection for changes in several transactions, while no crawl runs; the caller holds `only_crawl`.

    At the end no file has bytes of deleted rows. Raises StoreError while workers run, UsageError, NoCollection.
    """
    return store_of(place).writer(place)


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
    at_once = affordable(settings.politeness.concurrency, raised_limit())
    politeness = dataclasses.replace(settings.politeness, mine=mine, concurrency=at_once)
    past, archive = settings.past, settings.past.from_archive
    if archive and not archive.startswith(("cdx:", "memento:")):  # a later refresh may start in another directory
        past = dataclasses.replace(past, from_archive=str(Path(archive).expanduser().absolute()))
    return dataclasses.replace(settings, storage=storage, politeness=politeness, past=past)
