"""How are segments written to a folder or to object storage, so that they are there for good when a call returns?"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from periplus.errors import StoreError, UsageError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

HELP = "Is the disk full, the storage away, or the place not to be written to?"


class Shelf(Protocol):
    """A place for segments. Every method raises StoreError for what the storage does."""

    @property
    def appends(self) -> bool:
        """Whether a segment can grow."""

    def write(self, name: str, data: bytes, at: int) -> None:
        """Returns when the data is there for good, from byte `at` on, which is the segment's end: 0 for a new one."""

    def read(self, name: str, start: int, length: int) -> bytes: ...

    def open(self, name: str) -> BinaryIO:
        """From its beginning to its end."""

    def sizes(self) -> Iterator[tuple[str, int]]:
        """(name, bytes) of each segment, by name."""

    def delete(self, name: str) -> None: ...

    def close(self) -> None: ...


def shelf_of(place: str) -> Shelf:
    """A folder, which is made, or a URL of fsspec's (s3://bucket/folder). Raises UsageError, StoreError."""
    scheme, found, rest = place.partition("://")
    if not found or scheme in ("file", "local"):
        return FolderShelf(Path(rest if found else place))
    try:
        import fsspec
    except ImportError:
        raise UsageError(f"segments on {scheme}:// need fsspec, which is not installed: pip install 'periplus[segments]'") from None
    try:
        system, folder = fsspec.core.url_to_fs(place)
    except (ImportError, ValueError) as error:  # an unknown scheme, or one whose package is missing; it says which
        raise UsageError(f"segments cannot be kept on {scheme}://: {error}") from None
    return ObjectShelf(system, folder)


class FolderShelf:
    """Segments as files of one folder. Every worker must reach it by the same path."""

    appends = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name, self._file = "", -1
        with _translated(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, data: bytes, at: int) -> None:
        with _translated(self._folder / name):
            self._hold(name, new=at == 0)
            if os.fstat(self._file).st_size != at:
                raise StoreError(f"{self._folder / name} is not as long as it was left: somebody else writes to it. Give each worker a name of its own.")
            try:
                _write_all(self._file, data)
                os.fdatasync(self._file)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, at)
                raise
            if at == 0:  # its name too must outlast a power cut
                self._sync_folder()

    def _hold(self, name: str, *, new: bool) -> None:
        if name != self._name:
            self.close()
            self._file = os.open(self._folder / name, os.O_WRONLY | os.O_APPEND | (os.O_CREAT | os.O_EXCL if new else 0), 0o644)
            self._name = name

    def _sync_folder(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def read(self, name: str, start: int, length: int) -> bytes:
        with _translated(self._folder / name), (self._folder / name).open("rb", buffering=0) as file:
            return os.pread(file.fileno(), length, start)

    def open(self, name: str) -> BinaryIO:
        with _translated(self._folder / name):
            return (self._folder / name).open("rb")

    def sizes(self) -> Iterator[tuple[str, int]]:
        with _translated(self._folder):
            yield from sorted((path.name, path.stat().st_size) for path in self._folder.glob("*.warc.gz"))

    def delete(self, name: str) -> None:
        with _translated(self._folder / name):
            (self._folder / name).unlink()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._name, self._file = "", -1


class ObjectShelf:
    """Segments as objects, each written at once: it is there whole or not at all."""

    appends = False

    def __init__(self, system: AbstractFileSystem, folder: str) -> None:
        self._system, self._folder = system, folder.rstrip("/")
        with _translated(folder):
            system.makedirs(self._folder, exist_ok=True)

    def write(self, name: str, data: bytes, at: int) -> None:
        assert at == 0
        with _translated(self._path(name)):
            self._system.pipe_file(self._path(name), data)

    def read(self, name: str, start: int, length: int) -> bytes:
        with _translated(self._path(name)):
            return bytes(self._system.cat_file(self._path(name), start=start, end=start + length))

    def open(self, name: str) -> BinaryIO:
        with _translated(self._path(name)):
            return cast(BinaryIO, self._system.open(self._path(name), "rb"))

    def sizes(self) -> Iterator[tuple[str, int]]:
        with _translated(self._folder):
            self._system.invalidate_cache(self._folder)
            found = self._system.ls(self._folder, detail=True)
            yield from sorted((str(one["name"]).rpartition("/")[2], int(one["size"])) for one in found if str(one["name"]).endswith(".warc.gz"))

    def delete(self, name: str) -> None:
        with _translated(self._path(name)):
            self._system.rm_file(self._path(name))

    def close(self) -> None:
        """Holds nothing."""

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


# What packages of storages raise beside OSError, for a network or a service that is away.
_FOREIGN = (
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("aiohttp", "ClientError"),
    ("azure.core.exceptions", "AzureError"),
    ("google.auth.exceptions", "GoogleAuthError"),
)


def _errors() -> tuple[type[BaseException], ...]:
    """Of those that are loaded: who never met a storage's package meets none of its errors."""
    found = (getattr(sys.modules[module], name, None) for module, name in _FOREIGN if module in sys.modules)
    return (OSError, *(error for error in found if isinstance(error, type)))


@contextlib.contextmanager
def _translated(place: Path | str) -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except _errors() as error:
        said = (getattr(error, "strerror", None) or str(error)).rstrip(".")
        raise StoreError(f"{place} cannot be read or written: {said}. {HELP}") from error
