"""Shares the search index and vectors of a collection in a database among its readers, through common storage."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from xxhash import xxh3_64_hexdigest

from periplus.api.homes import address_of_copy
from periplus.errors import StoreError, UsageError
from periplus.extras import extra_needed
from periplus.model.arrays import Ints, Unsigned8
from periplus.model.ports import RunRecord
from periplus.model.web import UrlId
from periplus.retrieval import index, vectors
from periplus.retrieval.files import SEGMENT_ENDINGS, linked_files
from periplus.retrieval.index import IndexState, read_state
from periplus.store.database_address import Address, address_of
from periplus.store.published import (
    PublishedFile,
    PublishedSet,
    current_set,
    publish,
    published_set,
    take_over,
    text_of,
)
from periplus.store.segments import object_storage
from periplus.store.sqlite import changes, index_rows, reading
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.sqlite.runs import run_records
from periplus.store.sqlite.schema import WriteLock
from periplus.values import frozen

# docs/decisions/0063. A published index consists of the engine's files, the ranks, and PAGES: for each page the stamp
# under which it was indexed, and its content marks. It is built from the publisher's copy of the collection. A reader
# needs no copy (docs/decisions/0069): the files are in a folder of their own, and PAGES are read by row.

log = logging.getLogger(__name__)

PAGES = tuple(f"pages-{name}.npy" for name in ("ids", "stamps", "places", "parts"))
RECORD = "published.json"  # next to the files: identifies the published set
TRIES = 3  # attempts to download a set that is replaced during the download
INDEX = f"index-{index.VERSION}.4"  # set name with the versions of the index and of PAGES
VECTORS = "vectors"

StillAlone = Callable[[], bool]


class PublishedPages(NamedTuple):
    """Indexed pages by ascending id, see `index_rows.IndexedPage`. places: int64[n, 2], start and length of each page's
    parts; length -1: not marked.
    """

    ids: Ints
    stamps: Ints
    places: Ints
    parts: Unsigned8

    def parts_at(self, row: int) -> bytes | None:
        start, length = self.places[row].tolist()
        return None if length < 0 else self.parts[start : start + length].tobytes()

    def rows(self, pages: Sequence[UrlId]) -> dict[UrlId, int]:
        """Row of each page; unknown pages are left out."""
        rows = np.searchsorted(self.ids, pages).tolist()
        return {url_id: row for url_id, row in zip(pages, rows, strict=True) if self.ids[row : row + 1] == url_id}


@frozen
class SharedIndex:
    """folder: local copy of the collection; place: shared folder or URL."""

    folder: Path
    address: Address
    place: str

    def name(self, what: str) -> str:
        return f"{self.address.collection}-{what}"


def shared_index(folder: Path) -> SharedIndex | None:
    """The shared index of a copy; None if the folder is no copy or nothing is shared."""
    address = address_of_copy(folder)
    if not address:
        return None
    with reading.open_reader(folder) as connection:
        place = SqliteReader(connection).note("index")
    return SharedIndex(folder, address_of(address), place) if place else None


def require_place(folder: Path) -> None:
    """Raises UsageError for a copy without shared index: vectors stored in it would be lost."""
    if address_of_copy(folder) and shared_index(folder) is None:
        raise UsageError(
            "vectors of a collection in a database are stored with its shared index, whose place is not set: add "
            "index=PLACE to the address, a folder or URL (s3://bucket/folder) that all readers reach"
        )


def publishing(address: Address, what: str) -> AbstractContextManager[StillAlone | None]:
    """See `store.postgres.index_place.publishing`."""
    with extra_needed():
        from periplus.store.postgres import index_place
    return index_place.publishing(address, what)


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
    """Publishes the index of the copy unless it equals the downloaded one. Requires the right to publish and the index
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
            there = {file.name: file for file in earlier.files if file.name.endswith(SEGMENT_ENDINGS)}
        files = {name: there.get(name, path) for name, path in linked_files(folder, linked).items()}
        with reading.moment(folder) as connection:
            place = changes.place_of(connection, changes.INDEX)
            if place is None or state.position < place.position:
                return
            unseen = _write_pages(linked, index_rows.indexed_pages(connection, place))
            as_of, read = SqliteReader(connection).note("as_of") or "0", pages_read(run_records(connection))
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
    """An empty temporary folder in the copy for incoming files."""
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


def _write_pages(folder: Path, pages: Iterable[index_rows.IndexedPage]) -> int:
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
    return stamps.count(index_rows.UNSEEN)


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


def take_over_vectors(folder: Path) -> None:
    """Downloads the published vectors into the copy if they differ. Raises StoreError."""
    shared = shared_index(folder)
    if shared is None:
        return
    where = folder / vectors.FOLDER
    with contextlib.closing(object_storage(shared.place)) as storage:
        publication, has = current_set(storage, shared.name(VECTORS)), _record(where)
    if publication is None or (has is not None and has.token == publication.token):
        return
    with _arriving(folder, VECTORS) as arrived:
        publication = _fetch(shared, VECTORS, arrived, arrived)
        (arrived / RECORD).write_bytes(text_of(publication))
        shutil.rmtree(where, ignore_errors=True)
        arrived.rename(where)


def publish_vectors(shared: SharedIndex, still_alone: StillAlone) -> None:
    """Publishes the vectors of the copy. Raises StoreError."""
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
