"""Deletes pages, a site, a run or a whole collection: plans first, deletes, and updates the search index."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from periplus.api.homes import (
    cache_folder,
    database_at,
    home_of,
    is_collection,
    name_of,
    open_reader,
    reader_of,
    store_of,
    writer_of,
)
from periplus.errors import StoreError, UsageError
from periplus.model.collection import Deletion, DeletionPlan
from periplus.model.web import UrlId
from periplus.retrieval.index import IndexBusy, read_state
from periplus.settings import SUFFIX
from periplus.store import changes, column_files, deletion
from periplus.store.deletion import BATCH, Watch
from periplus.store.reader import CollectionReader
from periplus.urls.canonical import url_id
from periplus.values import Place, frozen

__all__ = [
    "BATCH",
    "Deletion",
    "DeletionPlan",
    "FolderPlan",
    "Watch",
    "count_urls",
    "delete",
    "folder_plan",
    "ids_of",
    "plan",
    "remove_collection",
]


def ids_of(place: Place, pages: Sequence[str]) -> tuple[UrlId, ...]:
    """Ids of pages given by URL.

    Raises InvalidUrl, and UsageError for an unknown page.
    """
    if not pages:
        return ()
    with open_reader(place) as reader:
        urls = tuple(dict.fromkeys(reader.resolve_url(text) for text in pages))
        ids = tuple(map(url_id, urls))
        there = {brief.url for brief in reader.briefs(ids)}
    if unknown := next((url for url in urls if url not in there), None):
        raise UsageError(f"the collection does not know {unknown}; `periplus pages` lists its URLs")
    return ids


def plan(place: Place, request: Deletion) -> DeletionPlan:
    """What a deletion would remove, without changes. Raises UsageError, NoCollection, StoreError."""
    with open_reader(place) as reader:
        _check(reader, request)
        return deletion.plan_deletion(reader, request)


def count_urls(place: Place, request: Deletion) -> int:
    """Only the plan's number of URLs; ten times faster than `plan`. Raises as `plan`."""
    with open_reader(place) as reader:
        _check(reader, request)
        return deletion.count_deletion(reader, request)


def delete(
    place: Place, request: Deletion, watch: Watch = lambda done, total: False, *, shrink: bool = False
) -> DeletionPlan:
    """Deletes, and removes the pages from the search index at once.

    place: a folder or a database address. watch: called after every few thousand URLs; True stops, keeping what is
    done. shrink: return the space to the disk. Raises UsageError, NoCollection, and StoreError during a crawl.
    """
    with _exclusive_access(place):
        with writer_of(place) as writer:
            _check(writer.reader, request)
            for file in (column_files.STORIES, column_files.ISSUES, column_files.ENTRIES):  # caches that name pages
                (cache_folder(place) / file).unlink(missing_ok=True)
            done = deletion.delete(writer, request, watch)
        if isinstance(place, Path):
            _tell_index(place)
        if shrink:
            store_of(place).shrink(place)
    if isinstance(place, str):
        database_at(place).withdraw_index(place)
    return done


def _check(reader: CollectionReader, request: Deletion) -> None:
    if not (request.pages or request.site is not None or request.run):
        raise UsageError("nothing selected: name pages, a site or a run")
    if request.run and [record.id for record in reader.runs()] == [request.run]:
        raise UsageError("the collection has no other run: delete the whole collection, or single pages")


@contextlib.contextmanager
def _exclusive_access(place: Place) -> Iterator[None]:
    with contextlib.ExitStack() as held:
        if isinstance(place, Path) and not is_collection(place):
            reader_of(place)  # raises NoCollection
        home = home_of(place)
        try:
            held.enter_context(home.only_crawl())
        except StoreError:
            raise StoreError(
                f"a crawl is running on {home}, so nothing was deleted. Stop it or wait for its end, then delete."
            ) from None
        yield


def _tell_index(folder: Path) -> None:
    """Removes deleted pages from the search index, if there is one.

    If another process is indexing, it does so; ranks are updated by the next search.
    """
    from periplus.api.search_index import IndexWorker

    with open_reader(folder) as reader:
        followed = changes.place_of(reader.statements, changes.INDEX) is not None
    if followed and read_state(folder) is not None:
        with contextlib.suppress(IndexBusy), IndexWorker(folder) as follower:
            while follower.step():
                pass
            follower.flush()


@frozen
class FolderPlan:
    """What the deletion of a whole collection removes.

    names: entries of its folder, including files of other programs. name: what the user must type to confirm.
    """

    name: str
    names: tuple[str, ...]
    files: int
    size_bytes: int


def folder_plan(folder: Path) -> FolderPlan:
    """Raises NoCollection, and UsageError if the folder is a symbolic link."""
    if not is_collection(folder):
        reader_of(folder)  # raises NoCollection
    if folder.is_symlink():
        raise UsageError(f"{folder} is a symbolic link: name its target, {folder.resolve()}")
    sizes = [(Path(place) / name).lstat().st_size for place, _, files in os.walk(folder) for name in files]
    return FolderPlan(
        folder.resolve().name, tuple(sorted(path.name for path in folder.iterdir())), len(sizes), sum(sizes)
    )


def remove_collection(place: Place, typed: str) -> None:
    """Deletes a collection's folder with all its contents, or its tables in a database. typed: its name, with or
    without `.periplus`. Raises UsageError for another name, StoreError during a crawl or if the deletion fails.
    """
    name = name_of(place)
    if typed not in (name, name.removesuffix(SUFFIX)):
        raise UsageError(f"nothing was deleted: type the collection's name, {name}, not {typed[:100]!r}")
    if isinstance(place, str):
        database_at(place).remove(place)
    else:
        _remove_folder(place)


def _remove_folder(folder: Path) -> None:
    folder_plan(folder)  # it exists and is not a symbolic link
    with _exclusive_access(folder):
        place = folder.resolve()
        doomed = place.with_name(f".{place.name}.{os.getpid()}.deleted")
        try:
            place.rename(doomed)  # first, so that no process opens a half-deleted collection
            shutil.rmtree(doomed)
        except OSError as error:
            raise StoreError(f"{folder} could not be deleted completely: {error}") from error
