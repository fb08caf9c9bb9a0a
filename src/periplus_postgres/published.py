"""Sets of files in a folder or object storage, published by one process and downloaded by many, each file once."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from xxhash import xxh3_64

from periplus.errors import StoreError
from periplus.values import frozen
from periplus_postgres.segments import ObjectStorage

# A set NAME is described by the small file NAME.json, which lists objects NAME-TOKEN-FILE. Objects have unique names,
# are written once, and exist before NAME.json is replaced, so that readers see either the earlier or the later set. A
# crashed publisher leaves unreferenced objects. These, and the objects of earlier sets, are deleted by a later
# publisher, RETIRED_S after it first found them unreferenced. A reader of an older set then misses an object and starts
# again.

Answer = TypeVar("Answer")

RETIRED_S: Final = 3_600.0  # the time to download 10 GB at 3 MB/s
BLOCK_BYTES = 1 << 20
AGAIN_S = (0.1, 0.5, 2.0)  # delays before retries, since some services fail occasionally


@frozen
class PublishedFile:
    """A file of the set. digest: 64-bit xxh3, hexadecimal."""

    name: str
    stored_as: str
    size_bytes: int
    digest: str


@frozen
class PublishedSet:
    """A published set of files.

    token: unique; note: metadata of the publisher; retired: unreferenced objects, with the time in seconds since the
    epoch when they were first found unreferenced.
    """

    token: str
    note: Mapping[str, str]
    files: tuple[PublishedFile, ...]
    retired: Mapping[str, float]


def published_set(text: bytes | None) -> PublishedSet | None:
    """Parses the description of a set; None if it is missing or has another format."""
    try:
        content = json.loads(text or b"")
        files = tuple(PublishedFile(**file) for file in content["files"])
        return PublishedSet(content["token"], dict(content["note"]), files, dict(content["retired"]))
    except (ValueError, KeyError, TypeError):
        return None


def current_set(storage: ObjectStorage, name: str) -> PublishedSet | None:
    """Reads the current set of that name. Raises StoreError."""
    return published_set(_with_retries(partial(storage.get, f"{name}.json")))


def text_of(publication: PublishedSet) -> bytes:
    """Inverse of `published_set`."""
    return json.dumps(asdict(publication)).encode()


def publish(
    storage: ObjectStorage,
    name: str,
    files: Mapping[str, Path | PublishedFile],
    note: Mapping[str, str],
    now: float,
    still_alone: Callable[[], bool],
) -> PublishedSet:
    """Publishes files as the set `name`. Only one process at a time may do so.

    files: by name, a path to upload or a file that is already stored. still_alone: called before the description is
    replaced. Raises StoreError, also if another process has taken over publishing.
    """
    token = secrets.token_hex(8)
    published_files = []
    for file_name, source in files.items():
        if isinstance(source, PublishedFile):
            published_files.append(source)
            continue
        file = PublishedFile(file_name, f"{name}-{token}-{file_name}", source.stat().st_size, _digest(source))
        _with_retries(partial(storage.upload, file.stored_as, source))
        published_files.append(file)
    retired, over = _unreferenced_objects(storage, name, {file.stored_as for file in published_files}, now)
    if not still_alone():
        raise StoreError("the connection that held the right to publish was lost, and nothing was published: try again")
    current = PublishedSet(token, dict(note), tuple(published_files), retired)
    _with_retries(partial(storage.put, f"{name}.json", text_of(current)))
    for stored_as in over:
        with contextlib.suppress(StoreError):  # still unreferenced, so the next publisher deletes it
            storage.delete(stored_as)
    return current


def _unreferenced_objects(
    storage: ObjectStorage, name: str, named: Collection[str], now: float
) -> tuple[dict[str, float], list[str]]:
    """(unreferenced objects, with the time when they were first found; objects to delete)."""
    earlier = current_set(storage, name)
    since = earlier.retired if earlier else {}
    there = [stored_as for stored_as, _ in storage.sizes("") if stored_as.startswith(f"{name}-")]
    first_seen = {stored_as: since.get(stored_as, now) for stored_as in there if stored_as not in named}
    over = [stored_as for stored_as, seen in first_seen.items() if now - seen > RETIRED_S]
    return {stored_as: seen for stored_as, seen in first_seen.items() if stored_as not in over}, over


def take_over(
    storage: ObjectStorage,
    publication: PublishedSet,
    folder: Path,
    present: Collection[str],
    *,
    linked: bool = False,
) -> None:
    """Downloads the files of a set into a folder, except those present there. linked: creates links to files in storage
    and checks only their size. Raises StoreError.
    """
    for file in publication.files:
        if file.name in present:
            continue
        path = folder / file.name
        source = storage.file(file.stored_as) if linked else None
        if source is not None:
            path.symlink_to(source)
        else:
            _with_retries(partial(storage.download, file.stored_as, path))
        if not path.exists() or path.stat().st_size != file.size_bytes or (not source and _digest(path) != file.digest):
            raise StoreError(f"{file.stored_as} is damaged: restore it, or publish the set again")


def _with_retries(action: Callable[[], Answer]) -> Answer:
    """Runs a storage operation, with retries. Raises StoreError."""
    for wait_s in AGAIN_S:
        with contextlib.suppress(StoreError):
            return action()
        time.sleep(wait_s)
    return action()


def withdraw(storage: ObjectStorage, name: str) -> None:
    """Deletes all sets whose names start with `name`, with their objects. Raises StoreError."""
    there = [stored_as for stored_as, _ in storage.sizes("") if stored_as.startswith(name)]
    for stored_as in sorted(there, key=lambda stored_as: not stored_as.endswith(".json")):  # descriptions first
        storage.delete(stored_as)


def _digest(path: Path) -> str:
    digest = xxh3_64()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
