"""Shares the search index and vectors of a collection in a database among its readers, through common storage."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from xxhash import xxh3_64_hexdigest

from periplus.api import search_index
from periplus.api.homes import SearchedCollection, open_reader
from periplus.api.searching import SearchedPlace, pages_in
from periplus.children import Parent
from periplus.errors import StoreError
from periplus.model.arrays import Ints, Unsigned8
from periplus.model.ports import RunRecord
from periplus.present.wording import utc
from periplus.retrieval import index, vectors
from periplus.retrieval.index import IndexState, read_state
from periplus.store import changes
from periplus.store.bodies import unpack_parts
from periplus.store.crawl_reads import PageBlocks
from periplus.store.reader import CollectionReader
from periplus.store.sqlite.index_feed import DatabaseFeed, open_records
from periplus.store.sqlite.schema import WriteLock
from periplus.values import frozen
from periplus_postgres import index_place, schema
from periplus_postgres.address import Address, address_of
from periplus_postgres.caches import cache_folder
from periplus_postgres.connection import connect
from periplus_postgres.copying import version
from periplus_postgres.published import (
    PublishedFile,
    PublishedSet,
    current_set,
    publish,
    published_set,
    take_over,
    text_of,
)
from periplus_postgres.segments import object_storage
from periplus_postgres.statements import PostgresStatements

# docs/decisions/0063. A published index consists of the engine's files, the ranks, and PAGES: for each page the stamp
# under which it was indexed, and its content marks. It is built in the publisher's cache folder. The files of a reader
# are in READERS_FOLDER below that folder, and PAGES are read by row (docs/decisions/0069).

log = logging.getLogger(__name__)

PAGES = tuple(f"pages-{name}.npy" for name in ("ids", "stamps", "places", "parts"))
RECORD = "published.json"  # next to the files: identifies the published set
TRIES = 3  # attempts to download a set that is replaced during the download
INDEX = f"index-{index.VERSION}.4"  # set name with the versions of the index and of PAGES
VECTORS = "vectors"
READERS_FOLDER = "shared"  # folder of the published files that a reader uses
ROUND_S = 20.0  # least time between two publications during a crawl
REST = 4  # pause in multiples of a round's duration: each round scans all tables
LEAVE_S = 10.0  # longest wait at the end for another indexing process; the next search adds what it lacks

StillAlone = Callable[[], bool]


class PublishedPages(NamedTuple):
    """Indexed pages by ascending id, see `changes.IndexedPage`. places: int64[n, 2], start and length of each page's
    parts; length -1: not marked.
    """

    ids: Ints
    stamps: Ints
    places: Ints
    parts: Unsigned8

    def parts_at(self, row: int) -> bytes | None:
        start, length = self.places[row].tolist()
        return None if length < 0 else self.parts[start : start + length].tobytes()

    def with_marks(self, page: PageBlocks) -> PageBlocks:
        """The page with its marks if it is still as it was indexed, else without."""
        row = int(np.searchsorted(self.ids, page.url_id))
        is_same = self.ids[row : row + 1] == page.url_id and self.stamps[row] == changes.stamp_of_page(page)
        parts = self.parts_at(row) if is_same else None
        return page._replace(parts=None if parts is None else unpack_parts(parts))


@frozen
class SharedIndex:
    """folder: for local files; place: shared folder or URL."""

    folder: Path
    address: Address
    place: str

    def name(self, what: str) -> str:
        return f"{self.address.collection}-{what}"

    @contextlib.contextmanager
    def publishing(self, what: str) -> Iterator[Callable[[], None] | None]:
        """See `periplus.api.homes.IndexSharing`."""
        with index_place.publishing(self.address, INDEX if what == index.FOLDER else VECTORS) as still_alone:
            if still_alone is None:
                yield None
            elif what == vectors.FOLDER:
                yield partial(publish_vectors, self, still_alone)
            else:
                yield partial(self._publish_index, still_alone)

    def _publish_index(self, still_alone: StillAlone) -> None:
        with index.only_writer(self.folder):
            publish_index(self, still_alone)

    def take_over_vectors(self) -> None:
        """See `periplus.api.homes.IndexSharing`. Raises StoreError."""
        take_over_vectors(self)


def shared_index(place: str) -> SharedIndex | None:
    """See `periplus.api.homes.CollectionStore.shared_index`."""
    address = address_of(place)
    with contextlib.closing(connect(address)) as connection:
        schema.check(connection, address.collection)
        where = address.index or index_place.place_of_index(connection)
    return SharedIndex(cache_folder(address), address, where) if where else None


@contextlib.contextmanager
def index_feed(place: str, reader: CollectionReader | None) -> Iterator[DatabaseFeed]:
    """See `periplus.api.homes.CollectionStore.index_feed`."""
    folder = cache_folder(place)
    with contextlib.ExitStack() as held:
        source = reader or held.enter_context(open_reader(place))
        assert isinstance(source.statements, PostgresStatements)
        connection, records = source.statements.connection, held.enter_context(open_records(folder))
        yield DatabaseFeed(folder, source, records, lambda: version(connection))


def _fetch(shared: SharedIndex, what: str, where: Path, arrived: Path, *, linked: bool = False) -> PublishedSet:
    """Downloads the files of the current set that `where` lacks; returns the set. linked: see `take_over`. Raises
    StoreError.
    """
    with contextlib.closing(object_storage(shared.place)) as storage:
        for attempt in range(TRIES):
            publication, has = current_set(storage, shared.name(what)), _record(where)
            if publication is None:
                raise StoreError(f"{shared.place} has no {shared.name(what)}.json anymore")
            stored_as = {file.name: file.stored_as for file in has.files} if has else {}
            present = [
                file.name
                for file in publication.files
                if stored_as.get(file.name) == file.stored_as and (where / file.name).exists()
            ]
            try:
                take_over(storage, publication, arrived, present, linked=linked)
            except StoreError:
                later = current_set(storage, shared.name(what))
                if attempt + 1 == TRIES or later is None or later.token == publication.token:
                    raise
            else:
                return publication
    raise AssertionError("the last attempt raises")


def publish_index(shared: SharedIndex, still_alone: StillAlone) -> None:
    """Publishes the index of the cache folder unless that is published. Requires the right to publish and the index
    writer lock. Raises StoreError.
    """
    folder, where = shared.folder, shared.folder / index.FOLDER
    state, has = read_state(folder), _record(where)
    if state is None:
        return
    with contextlib.closing(object_storage(shared.place)) as storage, _arriving(folder, INDEX) as linked:
        earlier = current_set(storage, shared.name(INDEX))
        there: dict[str, PublishedFile] = {}
        if has is not None and earlier is not None and has.token == earlier.token:
            if has.note == _standing(where, state):
                return
            there = {file.name: file for file in earlier.files if file.name.endswith(index_place.SEGMENT_ENDINGS)}
        files = {name: there.get(name, path) for name, path in index_place.linked_files(folder, linked).items()}
        with open_records(folder) as records, records.snapshot():
            place = changes.place_of(records.statements, changes.INDEX)
            if place is None or state.position < place.position:
                return
            unseen = _write_pages(linked, changes.indexed_pages(records, place))
            as_of, read = records.note("as_of"), int(records.note("read"))
        publication = publish(
            storage,
            shared.name(INDEX),
            files | {name: linked / name for name in PAGES},
            {
                "collection": state.collection,
                "settled": f"{state.settled:d}",
                "as_of": as_of,
                "read": f"{read - unseen}",
            },
            time.time(),
            still_alone,
        )
        _write_record(where, publication, state)


@contextlib.contextmanager
def _arriving(folder: Path, what: str) -> Iterator[Path]:
    """An empty temporary folder for incoming files."""
    arrived = folder / f"{what}.part"
    with index.translate_errors(folder):
        shutil.rmtree(arrived, ignore_errors=True)
        arrived.mkdir()
        try:
            yield arrived
        finally:
            shutil.rmtree(arrived, ignore_errors=True)


def _standing(where: Path, state: IndexState) -> dict[str, str]:
    """Identifies the state of an index at download or publication."""
    commit = (where / index.COMMIT_FILE).read_bytes()
    return {"commit": xxh3_64_hexdigest(commit), "position": repr(state.position), "settled": f"{state.settled:d}"}


def _record(where: Path) -> PublishedSet | None:
    """The published set that the files in a folder belong to, or None."""
    path = where / RECORD
    return published_set(path.read_bytes()) if path.exists() else None


def _write_record(where: Path, publication: PublishedSet, state: IndexState) -> None:
    (where / RECORD).write_bytes(text_of(replace(publication, note=_standing(where, state))))


def _write_pages(folder: Path, pages: Iterable[changes.IndexedPage]) -> int:
    """Returns the number of pages that are not indexed yet."""
    ids, stamps, parts = zip(*sorted(pages), strict=True) if pages else ((), (), ())
    lengths = np.array([-1 if part is None else len(part) for part in parts], np.int64)
    starts = np.cumsum(np.maximum(lengths, 0)) - np.maximum(lengths, 0)
    columns = (
        np.array(ids, "<i8"),
        np.array(stamps, "<i8"),
        np.column_stack((starts, lengths)).astype("<i8"),
        np.frombuffer(b"".join(part or b"" for part in parts), np.uint8),
    )
    for name, column in zip(PAGES, columns, strict=True):
        np.save(folder / name, column)
    return stamps.count(changes.UNSEEN)


def read_pages(folder: Path) -> PublishedPages:
    """Pages written by `_write_pages`, memory-mapped. Raises StoreError."""
    try:
        return PublishedPages(*(np.load(folder / name, "r", allow_pickle=False) for name in PAGES))
    except (OSError, ValueError, EOFError) as error:
        raise StoreError(f"{folder} is damaged: {error}") from None


def pages_read(records: Iterable[RunRecord]) -> int:
    """Number of pages read by all runs; grows when there is something to index."""
    return sum(record.fetched for record in records)


def at_hand(shared: SharedIndex, what: str, name: str) -> PublishedSet | None:
    """Updates the folder `name` of `shared.folder` to the published set `what` and returns the set; None if nothing is
    published. Files on a shared path are linked, not copied. If the storage is unavailable, returns the local set, or
    raises StoreError without one.
    """
    where = shared.folder / name
    try:
        with contextlib.closing(object_storage(shared.place)) as storage:
            publication = current_set(storage, shared.name(what))
        if publication is None or _is_here(where, publication):
            return publication
        shared.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.closing(WriteLock(shared.folder)) as lock, lock.hold():
            # another process may have updated it before
            return publication if _is_here(where, publication) else _install(shared, what, where)
    except StoreError as error:
        if (has := _record(where)) is None:
            raise
        log.warning("index trouble=%s", error)
        return has


def _install(shared: SharedIndex, what: str, where: Path) -> PublishedSet:
    """Downloads the set into a new folder and points the link `where` to it."""
    before = where.resolve().name
    with _arriving(shared.folder, what) as arrived:
        publication = _fetch(shared, what, where, arrived, linked=True)
        for file in publication.files:
            if not os.path.lexists(arrived / file.name):
                os.link(where / file.name, arrived / file.name, follow_symlinks=False)
        (arrived / RECORD).write_bytes(text_of(publication))
        state = IndexState(publication.note.get("collection", ""), index.NOTHING)
        (arrived / index.STATE).write_text(json.dumps(asdict(state)), "utf-8")
        own = shared.folder / f"{what}-{publication.token}"
        shutil.rmtree(own, ignore_errors=True)  # left by a killed process
        arrived.rename(own)
    draft = shared.folder / f"{where.name}.new"
    draft.unlink(missing_ok=True)
    draft.symlink_to(own.name)
    draft.replace(where)
    for other in shared.folder.glob(f"{what}-*"):
        if other.name not in (own.name, before):  # a process may still be opening the previous set
            shutil.rmtree(other, ignore_errors=True)
    return publication


def _is_here(where: Path, publication: PublishedSet) -> bool:
    has = _record(where)
    return has is not None and has.token == publication.token


def take_over_vectors(shared: SharedIndex) -> None:
    """Downloads the published vectors into the cache folder if they differ. Raises StoreError."""
    where = shared.folder / vectors.FOLDER
    with contextlib.closing(object_storage(shared.place)) as storage:
        publication, has = current_set(storage, shared.name(VECTORS)), _record(where)
    if publication is None or (has is not None and has.token == publication.token):
        return
    with _arriving(shared.folder, VECTORS) as arrived:
        publication = _fetch(shared, VECTORS, arrived, arrived)
        (arrived / RECORD).write_bytes(text_of(publication))
        shutil.rmtree(where, ignore_errors=True)
        arrived.rename(where)


def publish_vectors(shared: SharedIndex, still_alone: StillAlone) -> None:
    """Publishes the vectors of the cache folder. Raises StoreError."""
    where = shared.folder / vectors.FOLDER
    with contextlib.closing(object_storage(shared.place)) as storage:
        publication = publish(
            storage,
            shared.name(VECTORS),
            {path.name: path for path in where.iterdir() if path.name != RECORD},
            {},
            time.time(),
            still_alone,
        )
    (where / RECORD).write_bytes(text_of(publication))


class SearchedDatabase(SearchedPlace):
    """Searches a collection in a database with its shared index. docs/decisions/0069."""

    def __init__(self, name: str, shared: SharedIndex, reader: CollectionReader, note: str) -> None:
        """note: returned by `catch_up`. Raises StoreError."""
        super().__init__(name, shared.address.text, shared.folder, reader)
        self._shared, self._note, reader.with_marks = shared, note, read_pages(self.folder / index.FOLDER).with_marks

    def catch_up(self, now: float, watch: search_index.Watch) -> str:
        return self._note

    def take_over_vectors(self) -> None:
        at_hand(self._shared, VECTORS, vectors.FOLDER)


@contextlib.contextmanager
def search_source(name: str, place: str, limit_s: float) -> Iterator[SearchedCollection | None]:
    """None if the index is not shared, or not published yet."""
    address = address_of(place)
    with open_reader(place, limit_s) as reader:
        where = address.index or reader.note("index")
        shared = SharedIndex(cache_folder(address) / READERS_FOLDER, address, where)
        try:
            publication = at_hand(shared, INDEX, index.FOLDER) if where else None
        except StoreError as error:
            log.warning("index trouble=%s", error)
            publication = None
        runs = reader.runs()
        if publication is None or not runs or publication.note["collection"] != str(runs[0].started):
            yield None  # unpublished, or from an earlier collection of this name
            return
        note, waiting = "", pages_read(runs) - int(publication.note["read"])
        if waiting > 0:
            note = (
                f"{pages_in(shared.folder):,} pages are searchable, as of "
                f"{utc(float(publication.note['as_of']))}; up to {waiting:,} new or changed pages are not yet: run "
                "`periplus index`"
            )
        yield SearchedDatabase(name, shared, reader, note)


# For a collection in a database, one process on any machine indexes: it repeatedly looks for changes and publishes the
# result. The others wait to take over if it dies.


def serve_index(address: str, parent: Parent, watch: search_index.Watch) -> None:
    """Keeps the shared index up to date until the crawl has ended and all is published, or the parent has died."""
    until = math.inf
    while parent.message is not None or not parent.ended.is_set():
        if parent.ended.is_set():
            until = min(until, time.monotonic() + LEAVE_S)
        try:
            with index_place.publishing(address_of(address), INDEX) as still_alone:
                if still_alone is not None:
                    _follow_all(address, still_alone, parent, watch)
                    return
        except (StoreError, index.IndexBusy) as error:  # the database or storage may become available again
            log.warning("index trouble=%s", str(error) or "busy")
        if time.monotonic() > until:
            return
        wait = time.sleep if parent.ended.is_set() else parent.ended.wait
        wait(search_index.BUSY_WAIT_S)


def _follow_all(address: str, still_alone: StillAlone, parent: Parent, watch: search_index.Watch) -> None:
    """Raises index.IndexBusy, StoreError."""
    shared = shared_index(address)
    if shared is None:
        return
    with search_index.IndexWorker(address) as worker:
        while True:
            started, is_over = time.monotonic(), parent.ended.is_set()
            worker.update()
            while not parent.ended.is_set() and worker.step(lambda taken: parent.ended.is_set()):
                pass
            if is_over:
                break
            worker.flush(parent.ended.is_set)
            publish_index(shared, still_alone)
            parent.ended.wait(max(ROUND_S, REST * (time.monotonic() - started)))
        if parent.message is not None:
            search_index.finish(worker, watch, listen=False)
    if parent.message is not None:
        with index.only_writer(shared.folder):
            publish_index(shared, still_alone)
