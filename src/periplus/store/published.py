"""Sets of files in a folder or object storage that one process publishes and many take over, each file once."""

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
from periplus.store.segments import ObjectStorage
from periplus.values import frozen

# A set NAME is one small file, NAME.json, that names objects NAME-TOKEN-FILE. Objects are written once, under a name
# that no other has, and before NAME.json takes the place of its earlier self: whoever reads sees the earlier set or the
# later one. Killed in between, a publisher leaves objects that nobody names. These, and those of earlier sets, are
# deleted by a later publisher, RETIRED_S after it first saw them unnamed. Who still takes over a set as old as that
# misses an object, and asks for the set again.

Answer = TypeVar("Answer")

RETIRED_S: Final = 3_600.0  # a reader that fetches 10 GB at 3 MB/s needs as long
BLOCK_BYTES = 1 << 20
AGAIN_S = (0.1, 0.5, 2.0)  # waited before what storage refused is asked again: some services refuse now and then


@frozen
class PublishedFile:
    """One of the set. digest: xxh3, 64 bits, in hexadecimal."""

    name: str
    stored_as: str
    size_bytes: int
    digest: str


@frozen
class PublishedSet:
    """A set of files as it was published.

    token: no other has it; note: what its publisher says of it; retired: objects that no set names any longer, each
    with the moment, in seconds since the epoch, when that was first seen.
    """

    token: str
    note: Mapping[str, str]
    files: tuple[PublishedFile, ...]
    retired: Mapping[str, float]


def published_set(text: bytes | None) -> PublishedSet | None:
    """A set as its small file has it; None: there is none, or not in this form."""
    try:
        content = json.loads(text or b"")
        files = tuple(PublishedFile(**one) for one in content["files"])
        return PublishedSet(content["token"], dict(content["note"]), files, dict(content["retired"]))
    except (ValueError, KeyError, TypeError):
        return None


def published(storage: ObjectStorage, name: str) -> PublishedSet | None:
    """The set of that name as it stands now. Raises StoreError."""
    return published_set(_asked(partial(storage.get, f"{name}.json")))


def text_of(publication: PublishedSet) -> bytes:
    """What `published_set` reads."""
    return json.dumps(asdict(publication)).encode()


def publish(
    storage: ObjectStorage,
    name: str,
    files: Mapping[str, Path | PublishedFile],
    note: Mapping[str, str],
    now: float,
    still_alone: Callable[[], bool],
) -> PublishedSet:
    """Publishes files under their names as the set `name`; one process at a time may.

    files: each to be written, or as it lies there already. still_alone: asked before the set is named. Raises
    StoreError, also where somebody else publishes by then.
    """
    token = secrets.token_hex(8)
    made = []
    for file_name, source in files.items():
        if isinstance(source, PublishedFile):
            made.append(source)
            continue
        file = PublishedFile(file_name, f"{name}-{token}-{file_name}", source.stat().st_size, _digest(source))
        _asked(partial(storage.upload, file.stored_as, source))
        made.append(file)
    retired, over = _unnamed(storage, name, {file.stored_as for file in made}, now)
    if not still_alone():
        raise StoreError("the connection that held the right to publish was lost, and nothing was published: try again")
    current = PublishedSet(token, dict(note), tuple(made), retired)
    _asked(partial(storage.put, f"{name}.json", text_of(current)))
    for stored_as in over:
        with contextlib.suppress(StoreError):  # it is unnamed still, and the next one deletes it
            storage.delete(stored_as)
    return current


def _unnamed(
    storage: ObjectStorage, name: str, named: Collection[str], now: float
) -> tuple[dict[str, float], list[str]]:
    """(objects of the set that it does not name, with the moment when that was first seen; those to delete)."""
    earlier = published(storage, name)
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
    """Fetches the files of a set into a folder, but for those present there. linked: what storage has as a file is
    linked, and only its size is looked at. Raises StoreError.
    """
    for file in publication.files:
        if file.name in present:
            continue
        path = folder / file.name
        source = storage.file(file.stored_as) if linked else None
        if source is not None:
            path.symlink_to(source)
        else:
            _asked(partial(storage.download, file.stored_as, path))
        if not path.exists() or path.stat().st_size != file.size_bytes or (not source and _digest(path) != file.digest):
            raise StoreError(f"{file.stored_as} is not as it was published: restore it, or publish the set anew")


def _asked(action: Callable[[], Answer]) -> Answer:
    """What storage answers, asked again where it refuses. Raises StoreError."""
    for wait_s in AGAIN_S:
        with contextlib.suppress(StoreError):
            return action()
        time.sleep(wait_s)
    return action()


def withdraw(storage: ObjectStorage, name: str) -> None:
    """Deletes every set whose name begins so, with all its objects. Raises StoreError."""
    there = [stored_as for stored_as, _ in storage.sizes("") if stored_as.startswith(name)]
    for stored_as in sorted(there, key=lambda stored_as: not stored_as.endswith(".json")):  # what names others, first
        storage.delete(stored_as)


def _digest(path: Path) -> str:
    digest = xxh3_64()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
