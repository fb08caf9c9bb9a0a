"""What all who search a collection in a database share: its index and its vectors, in a place of their own."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_hexdigest

from periplus.api.homes import address_of_copy, folder_of
from periplus.errors import StoreError, UsageError
from periplus.extras import extra_needed
from periplus.model.web import UrlId
from periplus.search import index, vectors
from periplus.search.files import SEGMENT_ENDINGS, linked_files, replace_files
from periplus.search.index import IndexBusy, IndexState, read_state
from periplus.store.postgres.address import Address, address_of
from periplus.store.published import PublishedFile, PublishedSet, publish, published, published_set, take_over, text_of
from periplus.store.segments import object_storage
from periplus.store.sqlite import changes, index_rows, reading, schema

# docs/decisions/0063. A publication of the index is the engine's files, the ranks, and PAGES: of each page by which
# stamp it was indexed, and what of it is content; with what was learned of the sites. Who takes it over lays the files
# into the copy of the collection, and compares the stamps with the pages there: those that differ, or are on one side
# only, are noted as changed, and indexed as any others. So it does not matter which of the two is the older.

PAGES = "pages.npz"
RECORD = "published.json"  # beside what was taken over or published: as what
TRIES = 3  # to fetch a set that another one replaces meanwhile
INDEX = f"index-{index.VERSION}"  # names of sets; of another version's fields and terms it is another set
VECTORS = "vectors"

StillAlone = Callable[[], bool]


class PublishedPages(NamedTuple):
    """Pages by id, as `index_rows.IndexedPage` has each. lengths: of their parts, one after another; -1: not marked."""

    ids: NDArray[np.int64]
    stamps: NDArray[np.int64]
    lengths: NDArray[np.int64]
    parts: bytes


@dataclass(frozen=True, slots=True)
class SharedIndex:
    """Of one collection: folder is its copy here, place a folder or URL where all share."""

    folder: Path
    address: Address
    place: str

    def name(self, what: str) -> str:
        return f"{self.address.collection}-{what}"


def shared_index(folder: Path) -> SharedIndex | None:
    """What readers of the collection share; None: folder is no copy, or nothing is shared."""
    address = address_of_copy(folder)
    if not address:
        return None
    with contextlib.closing(reading.connect(folder)) as connection:
        place = reading.note_of(connection, "index")
    return SharedIndex(folder, address_of(address), place) if place else None


def require_place(folder: Path) -> None:
    """Raises UsageError for a copy of a collection whose readers share nothing: what was put there would be lost."""
    if address_of_copy(folder) and shared_index(folder) is None:
        raise UsageError(
            "vectors of a collection in a database are kept where its readers share the index, and no such place is "
            "named: add index=PLACE to the address, a folder or a URL (s3://bucket/folder) that all reach"
        )


def publishing(address: Address, what: str) -> AbstractContextManager[StillAlone | None]:
    """As `store.postgres.index_place.publishing`."""
    with extra_needed():
        from periplus.store.postgres import index_place
    return index_place.publishing(address, what)


def take_over_index(shared: SharedIndex) -> bool:
    """Lays the published index into the copy, where it is another one than that there. False: there was nothing to do,
    or somebody writes to that one. Raises StoreError.
    """
    where = shared.folder / index.FOLDER
    with contextlib.closing(object_storage(shared.place)) as storage:
        publication, has = published(storage, shared.name(INDEX)), _record(where)
    with contextlib.closing(reading.connect(shared.folder)) as connection:
        collection = index_rows.collection_key(connection)
    if publication is None or publication.note["collection"] != collection:
        return False
    if has is not None and has.token == publication.token and read_state(shared.folder) is not None:
        return False
    folder_of(shared.address.text)  # what was published is of an earlier moment than the copy then
    try:
        with index.only_writer(shared.folder), _arriving(shared.folder, INDEX) as arrived:
            publication = _fetch(shared, INDEX, where, arrived)
            pages, evidence = _read_pages(arrived / PAGES)
            replace_files(shared.folder, [file.name for file in publication.files if file.name != PAGES], arrived)
            position = _enter_pages(shared.folder, pages, evidence)
            state = IndexState(collection, position, publication.note["settled"] == "1")
            index.write_state(shared.folder, state)
            _write_record(where, publication, state)
    except IndexBusy:
        return False
    return True


def _fetch(shared: SharedIndex, what: str, where: Path, arrived: Path) -> PublishedSet:
    """Fetches what `where` lacks of the set as it stands now, which it returns. Raises StoreError."""
    with contextlib.closing(object_storage(shared.place)) as storage:
        for attempt in range(TRIES):
            publication, has = published(storage, shared.name(what)), _record(where)
            if publication is None:
                raise StoreError(f"{shared.place} has no {shared.name(what)}.json any longer")
            stored_as = {file.name: file.stored_as for file in has.files} if has else {}
            present = [
                file.name
                for file in publication.files
                if stored_as.get(file.name) == file.stored_as and (where / file.name).exists()
            ]
            try:
                take_over(storage, publication, arrived, present)
            except StoreError:
                later = published(storage, shared.name(what))
                if attempt + 1 == TRIES or later is None or later.token == publication.token:
                    raise
            else:
                return publication
    raise AssertionError("the last attempt raises")


def _enter_pages(folder: Path, pages: PublishedPages, evidence: Sequence[tuple[int, str, bytes]]) -> tuple[int, int]:
    """Marks the copy's pages as the index has them, and notes those that it has otherwise as changed; returns the
    position of the index in the copy.
    """
    ends = np.cumsum(np.maximum(pages.lengths, 0))
    unmatched = dict(zip(pages.ids.tolist(), range(len(pages.ids)), strict=True))
    changed: list[UrlId] = []
    parts: list[tuple[bytes | None, UrlId]] = []
    with schema.writing(folder) as connection:
        for page in index_rows.stored_pages(connection):
            at = unmatched.pop(page.url_id, -1)
            is_same = at >= 0 and pages.stamps[at] == page.stamp
            marks = None
            if is_same and pages.lengths[at] >= 0:
                marks = pages.parts[ends[at] - pages.lengths[at] : ends[at]]
            if not is_same:
                changed.append(page.url_id)
            if marks != page.parts:
                parts.append((marks, page.url_id))
        changed += map(UrlId, unmatched)
        index_rows.set_parts(connection, parts)
        index_rows.replace_evidence(connection, evidence)
        return index_rows.follow_but(connection, changes.INDEX, changed).position


def publish_index(shared: SharedIndex, still_alone: StillAlone) -> None:
    """Publishes the index of the copy, if it is another one than that which was taken over. For who may publish, and
    while nobody writes to the index but that one. Raises StoreError.
    """
    folder, where = shared.folder, shared.folder / index.FOLDER
    state, has = read_state(folder), _record(where)
    if state is None:
        return
    with contextlib.closing(object_storage(shared.place)) as storage, _arriving(folder, INDEX) as linked:
        earlier = published(storage, shared.name(INDEX))
        there: dict[str, PublishedFile] = {}
        if has is not None and earlier is not None and has.token == earlier.token:
            if has.note == _standing(where, state):
                return
            there = {file.name: file for file in earlier.files if file.name.endswith(SEGMENT_ENDINGS)}
        files = {name: there.get(name, path) for name, path in linked_files(folder, linked).items()}
        with contextlib.closing(reading.connect(folder)) as connection, reading.snapshot(connection):
            place = changes.place_of(connection, changes.INDEX)
            if place is None or state.position < place.position:
                return
            _write_pages(
                linked / PAGES, index_rows.indexed_pages(connection, place), index_rows.all_evidence(connection)
            )
        publication = publish(
            storage,
            shared.name(INDEX),
            files | {PAGES: linked / PAGES},
            {"collection": state.collection, "settled": f"{state.settled:d}"},
            time.time(),
            still_alone,
        )
        _write_record(where, publication, state)


@contextlib.contextmanager
def _arriving(folder: Path, what: str) -> Iterator[Path]:
    """A folder in the copy, empty, for files that are not in place yet."""
    arrived = folder / f"{what}.part"
    with index.translated(folder):
        shutil.rmtree(arrived, ignore_errors=True)
        arrived.mkdir()
        try:
            yield arrived
        finally:
            shutil.rmtree(arrived, ignore_errors=True)


def _standing(where: Path, state: IndexState) -> dict[str, str]:
    """What is recorded of an index when it was taken over or published: of no other standing of it the same."""
    commit = (where / index.COMMITTED).read_bytes()
    return {"commit": xxh3_64_hexdigest(commit), "position": repr(state.position), "settled": f"{state.settled:d}"}


def _record(where: Path) -> PublishedSet | None:
    """As what the files in a folder were taken over or published; None: they were not."""
    path = where / RECORD
    return published_set(path.read_bytes()) if path.exists() else None


def _write_record(where: Path, publication: PublishedSet, state: IndexState) -> None:
    (where / RECORD).write_bytes(text_of(replace(publication, note=_standing(where, state))))


def _write_pages(
    path: Path, pages: Iterable[index_rows.IndexedPage], evidence: Sequence[tuple[int, str, bytes]]
) -> None:
    ids, stamps, parts = zip(*sorted(pages), strict=True) if pages else ((), (), ())
    np.savez_compressed(
        path,
        ids=np.array(ids, "<i8"),
        stamps=np.array(stamps, "<i8"),
        lengths=np.array([-1 if one is None else len(one) for one in parts], "<i8"),
        parts=np.frombuffer(b"".join(one or b"" for one in parts), np.uint8),
        sites=np.array([site for site, _, _ in evidence], "<i8"),
        names=np.array([name for _, name, _ in evidence], "U"),
        sizes=np.array([len(data) for _, _, data in evidence], "<i8"),
        evidence=np.frombuffer(b"".join(data for _, _, data in evidence), np.uint8),
    )


def _read_pages(path: Path) -> tuple[PublishedPages, list[tuple[int, str, bytes]]]:
    """What `_write_pages` wrote. Raises StoreError."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            pages = PublishedPages(arrays["ids"], arrays["stamps"], arrays["lengths"], arrays["parts"].tobytes())
            data, ends = arrays["evidence"].tobytes(), np.cumsum(arrays["sizes"]).tolist()
            rows = zip(arrays["sites"].tolist(), arrays["names"].tolist(), [0, *ends], ends, strict=False)
            return pages, [(site, name, data[start:end]) for site, name, start, end in rows]
    except (OSError, ValueError, KeyError) as error:
        raise StoreError(f"{path} is damaged: {error}") from None


def take_over_vectors(folder: Path) -> None:
    """Lays the published vectors of the collection into its copy, where they are others. Raises StoreError."""
    shared = shared_index(folder)
    if shared is None:
        return
    where = folder / vectors.FOLDER
    with contextlib.closing(object_storage(shared.place)) as storage:
        publication, has = published(storage, shared.name(VECTORS)), _record(where)
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
