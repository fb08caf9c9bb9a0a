"""Object storage, in a folder or a bucket, and the WARC segments in it that contain pages' bytes. Each segment has one
writer; sweeps compare segments with the database.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, cast

from isal import igzip

from periplus.errors import StoreError, UsageError
from periplus.extras import extra_needed
from periplus.model.collection import Exchange, RunNote, SegmentState
from periplus.model.visit import Headers
from periplus.model.web import Url
from periplus.settings import VERSION
from periplus.store.warc import LEVEL, answer, http_answer, original, warcinfo

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

__all__ = [
    "ENDING",
    "HELP",
    "READ_BYTES",
    "SEGMENT_BYTES",
    "BucketStorage",
    "FolderStorage",
    "ObjectStorage",
    "RecordPlace",
    "SegmentReader",
    "SegmentWriter",
    "copied_records",
    "members",
    "object_storage",
    "swept",
]


ENDING = ".warc.gz"
FILE_BLOCK_BYTES = 1 << 20  # read from a file at a time
# Some object storage is eventually consistent: a reader waits so long before it reports an object as missing.
UNSEEN_S = (0.1, 0.4, 1.5)
HELP = "Is the disk full, the storage unreachable, or the place not writable?"
# Errors other than OSError that storage packages raise if the network or service fails.
_FOREIGN = (
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("aiohttp", "ClientError"),
    ("azure.core.exceptions", "AzureError"),
    ("google.auth.exceptions", "GoogleAuthError"),
)
SEGMENT_BYTES = 1_000_000_000  # ISO 28500, annex C
READ_BYTES = 1 << 16
COPIED_BYTES = 1 << 24  # buffer for copying; without appending, the whole segment is in memory


class ObjectStorage(Protocol):
    """A place for objects. Every method raises StoreError for errors of the storage."""

    @property
    def appends(self) -> bool:
        """Whether data can be appended to a segment."""

    def write(self, name: str, data: bytes, at: int) -> None:
        """Appends data at byte `at`, the segment's end (0 for a new segment). Returns when it is durable."""

    def read(self, name: str, start: int, length: int) -> bytes: ...

    def open(self, name: str) -> BinaryIO:
        """Opens an object for sequential reading."""

    def sizes(self, ending: str = ENDING) -> Iterator[tuple[str, int]]:
        """(name, size in bytes) of the objects with this ending, sorted by name."""

    def delete(self, name: str) -> None:
        """Deletes an object, if it exists."""

    def get(self, name: str) -> bytes | None:
        """Reads a small object, or returns None."""

    def put(self, name: str, data: bytes) -> None:
        """Replaces a small object atomically."""

    def upload(self, name: str, path: Path) -> None:
        """Uploads a file under a new name. Returns when it is durable."""

    def download(self, name: str, path: Path) -> None: ...

    def file(self, name: str) -> Path | None:
        """Path of an object that is a file, or None."""

    def close(self) -> None: ...


def object_storage(place: str) -> ObjectStorage:
    """Opens a folder, which is created, or an fsspec URL (s3://bucket/folder). Raises UsageError, StoreError."""
    scheme, mark, rest = place.partition("://")
    if not mark or scheme in ("file", "local"):
        return FolderStorage(Path(rest if mark else place))
    with extra_needed():
        import fsspec
    try:
        system, folder = fsspec.core.url_to_fs(place)
    except (ImportError, ValueError) as error:  # unknown scheme or missing package; the message names it
        raise UsageError(f"cannot store segments on {scheme}://: {error}") from None
    return BucketStorage(system, folder)


class FolderStorage:
    """Segments as files of one folder. Every worker must reach it by the same path."""

    appends = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name, self._file = "", -1
        with _translate_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, data: bytes, at: int) -> None:
        with _translate_errors(self._folder / name):
            self._hold(name, new=at == 0)
            if os.fstat(self._file).st_size != at:
                raise StoreError(
                    f"{self._folder / name} has an unexpected size: another process writes to it. Give "
                    "each worker its own name."
                )
            try:
                _write_all(self._file, data)
                os.fdatasync(self._file)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, at)
                raise
            if at == 0:  # the new name must be durable too
                self._sync_folder()

    def _hold(self, name: str, *, new: bool) -> None:
        if name != self._name:
            self.close()
            self._file = os.open(
                self._folder / name, os.O_WRONLY | os.O_APPEND | (os.O_CREAT | os.O_EXCL if new else 0), 0o644
            )
            self._name = name

    def _sync_folder(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def read(self, name: str, start: int, length: int) -> bytes:
        with _translate_errors(self._folder / name), (self._folder / name).open("rb", buffering=0) as file:
            return os.pread(file.fileno(), length, start)

    def open(self, name: str) -> BinaryIO:
        with _translate_errors(self._folder / name):
            return (self._folder / name).open("rb")

    def sizes(self, ending: str = ENDING) -> Iterator[tuple[str, int]]:
        with _translate_errors(self._folder):
            yield from sorted((path.name, path.stat().st_size) for path in self._folder.glob(f"*{ending}"))

    def delete(self, name: str) -> None:
        with _translate_errors(self._folder / name):
            (self._folder / name).unlink(missing_ok=True)

    def get(self, name: str) -> bytes | None:
        with _translate_errors(self._folder / name), contextlib.suppress(FileNotFoundError):
            return (self._folder / name).read_bytes()
        return None

    def put(self, name: str, data: bytes) -> None:
        draft = self._folder / f".{name}.{os.getpid()}"
        with _translate_errors(self._folder / name):
            with draft.open("wb") as file:
                file.write(data)
                _sync(file)
            draft.replace(self._folder / name)
            self._sync_folder()

    def upload(self, name: str, path: Path) -> None:
        with (
            _translate_errors(self._folder / name),
            path.open("rb") as source,
            (self._folder / name).open("wb") as file,
        ):
            shutil.copyfileobj(source, file, FILE_BLOCK_BYTES)
            _sync(file)

    def download(self, name: str, path: Path) -> None:
        with _translate_errors(self._folder / name):
            shutil.copyfile(self._folder / name, path)

    def file(self, name: str) -> Path | None:
        return self._folder.absolute() / name

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._name, self._file = "", -1


class BucketStorage:
    """Segments as objects of a bucket, each written in one operation."""

    appends = False

    def __init__(self, system: AbstractFileSystem, folder: str) -> None:
        self._system, self._folder = system, folder.rstrip("/")
        self._missing: set[str] = set()  # names that were waited for
        with _translate_errors(folder):
            system.makedirs(self._folder, exist_ok=True)

    def write(self, name: str, data: bytes, at: int) -> None:
        assert at == 0
        with _translate_errors(self._path(name)):
            self._system.pipe_file(self._path(name), data)

    def read(self, name: str, start: int, length: int) -> bytes:
        path = self._path(name)
        with _translate_errors(path):
            for wait_s in () if name in self._missing else UNSEEN_S:
                with contextlib.suppress(FileNotFoundError):
                    return bytes(self._system.cat_file(path, start=start, end=start + length))
                time.sleep(wait_s)
            self._missing.add(name)
            return bytes(self._system.cat_file(path, start=start, end=start + length))

    def open(self, name: str) -> BinaryIO:
        with _translate_errors(self._path(name)):
            return cast(BinaryIO, self._system.open(self._path(name), "rb"))

    def sizes(self, ending: str = ENDING) -> Iterator[tuple[str, int]]:
        with _translate_errors(self._folder):
            self._system.invalidate_cache(self._folder)
            entries = self._system.ls(self._folder, detail=True)
            yield from sorted(
                (str(entry["name"]).rpartition("/")[2], int(entry["size"]))
                for entry in entries
                if str(entry["name"]).endswith(ending)
            )

    def delete(self, name: str) -> None:
        with _translate_errors(self._path(name)), contextlib.suppress(FileNotFoundError):
            self._system.rm_file(self._path(name))

    def get(self, name: str) -> bytes | None:
        with _translate_errors(self._path(name)), contextlib.suppress(FileNotFoundError):
            return bytes(self._system.cat_file(self._path(name)))
        return None

    def put(self, name: str, data: bytes) -> None:
        self.write(name, data, 0)

    def upload(self, name: str, path: Path) -> None:
        with _translate_errors(self._path(name)):
            self._system.put_file(str(path), self._path(name))

    def download(self, name: str, path: Path) -> None:
        with _translate_errors(self._path(name)):
            self._system.get_file(self._path(name), str(path))

    def file(self, name: str) -> Path | None:
        return None

    def close(self) -> None:
        """Does nothing."""

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _errors() -> tuple[type[BaseException], ...]:
    """Error types of the packages that are loaded."""
    types = (getattr(sys.modules[module], name, None) for module, name in _FOREIGN if module in sys.modules)
    return (OSError, *(error for error in types if isinstance(error, type)))


@contextlib.contextmanager
def _translate_errors(place: Path | str) -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except _errors() as error:
        text = (getattr(error, "strerror", None) or str(error)).rstrip(".")
        raise StoreError(f"{place} cannot be read or written: {text}. {HELP}") from error


#     storage = object_storage("/data/press")  # or s3://bucket/press, any URL that fsspec supports
#     with SegmentWriter(storage, "worker-7f3a", note) as writer:  # a name that no other writer ever uses
#         place = writer.append(exchange)                        # buffers the record, returns its future position
#         writer.flush()                                         # makes it durable, or raises StoreError;
#                                                                commit the rows only after this
#     SegmentReader(storage).body(place)
#
# Bytes are written before the rows that refer to them. A crash between the two leaves unreferenced records, which
# `sweep` counts; a crash within a record leaves a torn tail, after which nothing was committed. After a StoreError the
# records appended since the last flush are dropped, and the next append begins another segment: pages of that batch
# must not be committed.
#
# In a folder a segment grows until it is full. Object storage cannot append, so that each flush creates a segment.


class RecordPlace(NamedTuple):
    """Position of a record. Bytes start to start + length of the segment are one gzip member."""

    segment: str
    start: int
    length: int


class SegmentWriter:
    """Appends response records for one process. For its guarantees see above."""

    def __init__(self, storage: ObjectStorage, name: str, note: RunNote, segment_bytes: int = SEGMENT_BYTES) -> None:
        """name: letters, digits and dashes; note: the run, written to the header of each segment."""
        self._storage, self._name, self._note, self._most = storage, name, note, segment_bytes
        self._number = 0
        self._segment = self._info_id = ""
        self._written = 0  # durable bytes of the segment
        self._held = bytearray()

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.flush()
        self._storage.close()

    def append(self, exchange: Exchange) -> RecordPlace:
        """Buffers the record of a visit. Returns its position, which is valid after `flush`."""
        if not self._segment or self._written + len(self._held) >= self._most:
            self.flush()
            self._begin()
        record, _ = answer(exchange, self._info_id, None)
        start, length = self._take(record.data)
        return RecordPlace(self._segment, start, length)

    def flush(self) -> None:
        """Makes all appended records durable. Raises StoreError if that fails, see above."""
        if not self._held:
            return
        data, self._held = bytes(self._held), bytearray()
        segment, self._segment = self._segment, ""  # if writing fails, the next append begins another segment
        self._storage.write(segment, data, self._written)
        self._written += len(data)
        if self._storage.appends:
            self._segment = segment

    def _begin(self) -> None:
        self._number += 1
        self._segment, self._written = f"{self._name}-{self._number:05}{ENDING}", 0
        info = warcinfo(self._note, VERSION, self._segment)
        self._info_id = info.record_id
        self._take(info.data)

    def _take(self, record: bytes) -> tuple[int, int]:
        member = igzip.compress(record, LEVEL, mtime=0)
        start = self._written + len(self._held)
        self._held += member
        return start, len(member)


class SegmentReader:
    """Reads records."""

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage

    def body(self, place: RecordPlace) -> bytes:
        """Body of a page, without content codings.
        Raises StoreError if the record is missing or damaged.
        """
        return self.response(place)[2]

    def response(self, place: RecordPlace) -> tuple[Url, Headers, bytes]:
        """(URL, headers as sent by the server, body). Raises StoreError as `body`."""
        data = self._storage.read(place.segment, place.start, place.length)
        try:
            url, block = _record(zlib.decompress(data, 31))
            answer = http_answer(block)
        except (zlib.error, ValueError) as error:
            raise _damage_error(place, str(error)) from None
        if answer is None:
            raise _damage_error(place, "it is not an HTTP response")
        return url, original(answer[1]), answer[2]


def _record(data: bytes) -> tuple[Url, bytes]:
    """Parses a record written by SegmentWriter: (target, block). Raises ValueError."""
    head, _, rest = data.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    try:
        return Url(fields["WARC-Target-URI"]), rest[: int(fields["Content-Length"])]
    except KeyError as missing:
        raise ValueError(f"a record without {missing}") from None


def _damage_error(place: RecordPlace, why: str) -> StoreError:
    return StoreError(
        f"the segment {place.segment} is damaged at byte {place.start}: {why}. Restore it from a "
        "copy, or fetch the page again."
    )


def members(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """(start, length) of each complete gzip member, in order, without a torn tail. Memory: READ_BYTES."""
    start = place = 0
    inflater, rest = zlib.decompressobj(31), b""
    while data := rest or file.read(READ_BYTES):
        rest = b""
        try:
            taken = data
            while taken and not inflater.eof:
                inflater.decompress(taken, READ_BYTES)
                taken = inflater.unconsumed_tail
        except zlib.error:
            return
        place += len(data)
        if inflater.eof:
            rest = inflater.unused_data
            place -= len(rest)
            yield start, place - start
            start, inflater = place, zlib.decompressobj(31)


def copied_records(
    storage: ObjectStorage, places: Sequence[RecordPlace], target: str
) -> list[tuple[RecordPlace, RecordPlace]]:
    """Copies a segment's header and some of its records to a new segment; returns (old, new) positions in order.

    places: one or more, all in one segment; target: name of the new segment. Returns when it is durable.
    """
    name, written, held, moves = places[0].segment, 0, bytearray(), []
    # a single request, since each may take 0.3 s in object storage
    whole = None if storage.appends else storage.get(name)
    with storage.open(name) if whole is None else io.BytesIO(whole) as file:
        head = next(members(file))
    for place in (RecordPlace(name, *head), *places):
        if storage.appends and len(held) > COPIED_BYTES:
            storage.write(target, bytes(held), written)
            written += len(held)
            held.clear()
        moves.append((place, RecordPlace(target, written + len(held), place.length)))
        held += storage.read(*place) if whole is None else whole[place.start :][: place.length]
    storage.write(target, bytes(held), written)
    return moves[1:]


def swept(storage: ObjectStorage, claimed: Iterable[RecordPlace]) -> Iterator[SegmentState]:
    """State of every segment that exists or is referred to, sorted by name.

    claimed: record positions from the database, sorted by segment. Reads all bytes.
    """
    sizes = iter(storage.sizes())
    here = next(sizes, None)
    for name, places in groupby(claimed, key=attrgetter("segment")):
        while here is not None and here[0] < name:
            yield _state(storage, *here, frozenset())
            here = next(sizes, None)
        named = frozenset((place.start, place.length) for place in places)
        if here is not None and here[0] == name:
            yield _state(storage, *here, named)
            here = next(sizes, None)
        else:
            yield SegmentState(name, 0, 0, 0, 0, 0, len(named))
    while here is not None:
        yield _state(storage, *here, frozenset())
        here = next(sizes, None)


def _state(storage: ObjectStorage, name: str, size_bytes: int, claimed: frozenset[tuple[int, int]]) -> SegmentState:
    records = orphans = orphan_bytes = present = end = 0
    with _translate_errors(name), storage.open(name) as file:
        for start, length in members(file):
            end = start + length
            if not start:  # the header record
                continue
            records += 1
            if (start, length) in claimed:
                present += 1
            else:
                orphans += 1
                orphan_bytes += length
    return SegmentState(
        name, size_bytes, records, orphans, orphan_bytes, max(0, size_bytes - end), len(claimed) - present
    )
