"""Reads web archives: WARC, ARC, and WACZ files that contain WARC files."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import struct
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import zstandard

from periplus.errors import UsageError
from periplus.model.collection import ArchiveRecord
from periplus.model.visit import Cut
from periplus.model.web import UrlId
from periplus.values import frozen

# WARC 0.17 to 1.1 and ARC 1 and 2, plain, in gzip members, or in zstd frames with or without a dictionary. The format
# is detected from the bytes, not from the name. Records before the damage in a file are read.
# Sources: ISO 28500:2017; the Internet Archive's ARC file format, 1996; WACZ 1.1.1.

LINE_BYTES = 65_536  # of one header line
FIELDS_MOST = 1_000  # header lines of a record
SKIP_BYTES = 1 << 20  # read at a time when skipping
READ_BYTES = 8_192  # read at a time; larger blocks are copied more often
SLICE_BYTES = 512  # decompressed at a time
_DICTIONARY = b"\x5d\x2a\x4d\x18"  # the frame of a zstd dictionary, first in the file
DICTIONARY_BYTES = 1 << 24  # maximum size of a dictionary; the usual size is 110 KB
_ZSTD = b"\x28\xb5\x2f\xfd"
MANIFEST_BYTES = 1 << 24  # of a WACZ file's manifest, or of one line of its pages
# RuntimeError: encrypted zip entry; its subclass NotImplementedError: unsupported compression
_READ_ERRORS = (EOFError, OSError, RuntimeError, zlib.error, zstandard.ZstdError, struct.error, zipfile.BadZipFile)
_ZIP_HEAD, _ZIP_NAME_LENGTHS = 30, 26  # size of a local file header; offset of the name length in it
RECORDS = re.compile(r"\.w?arc(\.gz|\.zst)?$")


@frozen
class ArchiveFile:
    """A file of records. inner: its path within nested zip files, outermost first; empty for a plain file."""

    path: Path
    inner: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "/".join((str(self.path), *self.inner))

    def open(self, stack: ExitStack) -> BinaryIO:
        """Opens the file until the stack is closed. Raises OSError, BadZipFile, KeyError."""
        file: Any = stack.enter_context(self.path.open("rb"))
        for name in self.inner:
            file = stack.enter_context(stack.enter_context(zipfile.ZipFile(file)).open(name))
        return file  # type: ignore[no-any-return]

    def open_seekable(self, stack: ExitStack) -> BinaryIO:
        """Opens the file for random access. An uncompressed zip entry is read directly from the zip file, since
        `zipfile` reads everything before a seek position. Checksums are not verified.
        """
        if len(self.inner) != 1:
            return self.open(stack)
        file = stack.enter_context(self.path.open("rb"))
        with zipfile.ZipFile(file) as package:
            entry = package.getinfo(self.inner[0])
        if entry.compress_type != zipfile.ZIP_STORED:
            return self.open(stack)
        file.seek(entry.header_offset + _ZIP_NAME_LENGTHS)
        name_length, extra_length = struct.unpack("<HH", file.read(4))
        start = entry.header_offset + _ZIP_HEAD + name_length + extra_length
        return cast(BinaryIO, _Window(file, start, entry.file_size))


class MemberPlace(NamedTuple):
    """Position of a record. member: byte of the file where reading can start: at the record itself, or at its gzip
    member or zstd frame; skip: decompressed bytes before the record.
    """

    member: int
    skip: int = 0


def archive_files(path: Path) -> tuple[ArchiveFile, ...]:
    """Files of records in an archive: the file itself, or those in a WACZ file, or in a zip file of WACZ files.

    Raises UsageError for a zip file without any.
    """
    if not zipfile.is_zipfile(path):
        return (ArchiveFile(path),)
    try:
        with zipfile.ZipFile(path) as package:
            files = [ArchiveFile(path, (name,)) for name in package.namelist() if RECORDS.search(name)]
            for name in package.namelist():
                if name.endswith(".wacz"):
                    with package.open(name) as file, zipfile.ZipFile(file) as inner:
                        names = filter(RECORDS.search, inner.namelist())
                        files += [ArchiveFile(path, (name, each)) for each in names]
    except _READ_ERRORS as error:
        raise UsageError(f"{path} is a damaged zip file: {error}") from None
    if not files:
        raise UsageError(f"{path} is a zip file but not a WACZ file: it has no archive/*.warc.gz")
    return tuple(files)


def main_page(path: Path) -> str:
    """Main page of a WACZ file, or its first page; empty if there is none or for other files. Never raises."""
    if not zipfile.is_zipfile(path):
        return ""
    with suppress(*_READ_ERRORS, ValueError, KeyError), zipfile.ZipFile(path) as package:
        with package.open("datapackage.json") as file:
            manifest = json.loads(file.read(MANIFEST_BYTES))
        for name in ("mainPageUrl", "mainPageURL"):  # spelling of the specification, and of py-wacz
            if isinstance(manifest, dict) and isinstance(manifest.get(name), str):
                return str(manifest[name])
        with package.open("pages/pages.jsonl") as file:
            for _ in range(2):  # the first line is a header
                page = json.loads(file.readline(MANIFEST_BYTES))
                if isinstance(page, dict) and isinstance(page.get("url"), str):
                    return str(page["url"])
    return ""


CUTS = {"disconnect": Cut.SHORT, "time": Cut.TIME_LIMIT, "length": Cut.BODY_LIMIT, "unspecified": Cut.SHORT}
"""Of the body of a record, by its WARC-Truncated."""


def seconds_of(date: str) -> float | None:
    """WARC-Date in seconds since the epoch, or None if it is invalid."""
    whole, _, part = date.rstrip("Zz").partition(".")
    try:
        return datetime.fromisoformat(f"{whole}.{part[:6].ljust(6, '0')}+00:00").timestamp()
    except ValueError:
        return None


class ArchiveReader:
    """Iterates over the records of a file. ARC records are converted to WARC records.

    damage: why reading ended before the end of the file; empty if it did not.
    """

    def __init__(self, source: ArchiveFile, block_bytes: int, place: MemberPlace | None = None) -> None:
        """block_bytes: maximum size of a block that is returned; place: position of the first record to read, None for
        the start of the file. Raises UsageError if the file is not an archive.
        """
        self._source, self._most = source, block_bytes
        self._starts: deque[tuple[int, int]] = deque()  # (decompressed position, file position) of members read
        self.damage = ""
        self.count = 0
        with ExitStack() as stack:
            try:
                file = source.open(stack) if place is None else source.open_seekable(stack)
            except OSError as error:
                raise UsageError(f"cannot read the archive {source}: {error.strerror or error}") from None
            except (*_READ_ERRORS, KeyError) as error:
                raise UsageError(f"cannot read the archive {source}: {error}") from None
            try:
                member, skip = place or MemberPlace(0)
                self._stream = io.BufferedReader(_Steps(_inflate(file, member, self._starts)), 1 << 16)
                self._skip(skip)
                start = self._stream.peek(9)[:9]
            except _READ_ERRORS as error:
                raise UsageError(f"{source} is not a web archive, or is damaged at the beginning: {error}") from None
            is_arc = start == b"filedesc:" or (place is not None and start[:4] == b"http")
            if not start.startswith(b"WARC/") and not is_arc:
                raise UsageError(f"{source} is not a WARC, ARC or WACZ file: it begins with {start!r}")
            self._stack = stack.pop_all()
        self._next = self._next_arc if is_arc else self._next_warc
        self._arc_fields = 5  # header fields of an ARC record: URL, address, date, type, length; version 2 has 10
        self._is_sought = place is not None
        self._begins = 0  # decompressed position of the last record

    def __enter__(self) -> ArchiveReader:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def place(self) -> MemberPlace:
        """Position of the last record."""
        if not self._starts:
            return MemberPlace(self._begins)
        inflated, member = self._starts[0]
        return MemberPlace(member, self._begins - inflated)

    def __iter__(self) -> Iterator[ArchiveRecord]:
        try:
            while (record := self._next()) is not None:
                self.count += 1
                yield record
        except _READ_ERRORS as error:
            self.damage = (
                f"{self._source} ends in the middle of a record, or is damaged, after {self.count} records: "
                f"{error or 'unexpected end'}"
            )
        except ValueError as error:
            self.damage = f"{self._source} is damaged after {self.count} records: {error}"

    def _head_line(self) -> bytes:
        """Next non-empty line; empty at the end of the file."""
        line = b"\n"
        while line in (b"\r\n", b"\n"):
            self._begins = self._stream.tell()
            line = self._line()
        while len(self._starts) > 1 and self._starts[1][0] <= self._begins:
            self._starts.popleft()
        return line

    def _next_warc(self) -> ArchiveRecord | None:
        line = self._head_line()
        if not line:
            return None
        if not line.startswith(b"WARC/"):
            raise ValueError(f"a record begins with {line[:40]!r}")
        fields = self._fields()
        block, is_cut = self._block(fields.get("content-length", ""))
        return ArchiveRecord(fields.get("warc-type", "").lower(), fields, block, is_cut)

    def _next_arc(self) -> ArchiveRecord | None:
        """Reads an ARC record: a header line, then the server's response. URLs may contain spaces."""
        line = self._head_line()
        if not line:
            return None
        if self._is_sought:  # the file header with the version was not read
            self._arc_fields = 10 if line.count(b" ") >= 9 else 5
        parts = line.decode("utf-8", "replace").strip().rsplit(" ", self._arc_fields - 1)
        if len(parts) != self._arc_fields:
            raise ValueError(f"a record begins with {line[:40]!r}")
        url, address, date = parts[:3]
        block, is_cut = self._block(parts[-1])
        if url.startswith("filedesc:"):
            names = block.splitlines()[1:2]  # the second line lists the header fields of the following records
            self._arc_fields = max(5, len(names[0].split())) if names else 5
            return ArchiveRecord("warcinfo", {}, block, is_cut)
        stamp = date[:14].ljust(14, "0")
        day, time = (stamp[:4], stamp[4:6], stamp[6:8]), (stamp[8:10], stamp[10:12], stamp[12:14])
        fields = {"warc-target-uri": url, "warc-date": f"{'-'.join(day)}T{':'.join(time)}Z"}
        fields |= {"warc-ip-address": address} if address not in ("0.0.0.0", "-") else {}
        return ArchiveRecord("response", fields, block, is_cut)

    def _block(self, length_text: str) -> tuple[bytes, bool]:
        """(block, whether it is truncated). Raises ValueError, EOFError."""
        length = int(length_text)
        if length < 0:
            raise ValueError("a negative length")
        block = self._stream.read(min(length, self._most))
        if len(block) < min(length, self._most):
            raise EOFError
        self._skip(length - len(block))
        return block, length > len(block)

    def _fields(self) -> dict[str, str]:
        fields: dict[str, str] = {}
        name = ""
        for _ in range(FIELDS_MOST):
            line = self._line()
            if not line:
                raise EOFError
            if line in (b"\r\n", b"\n"):
                return fields
            text = line.decode("utf-8", "replace")
            if text[0] in " \t" and name:  # a folded line
                fields[name] += " " + text.strip()
                continue
            name, _, value = text.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()
        raise ValueError(f"a record with more than {FIELDS_MOST} fields")

    def _line(self) -> bytes:
        line = self._stream.readline(LINE_BYTES)
        if line and not line.endswith(b"\n"):
            raise EOFError if len(line) < LINE_BYTES else ValueError("a line without end")
        return line

    def _skip(self, length: int) -> None:
        while length > 0:
            step = len(self._stream.read(min(length, SKIP_BYTES)))
            if not step:
                raise EOFError
            length -= step


class _Steps(io.RawIOBase):
    """A stream over the pieces of an iterator. All pieces before an error can be read before it is raised."""

    def __init__(self, steps: Iterator[bytes]) -> None:
        self._steps, self._rest, self._count = steps, memoryview(b""), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._steps, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        self._count += count
        return count

    def tell(self) -> int:
        return self._count


class _Window(io.RawIOBase):
    """A byte range of a file, as a file."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file, self._start, self._size = file, start, size
        self.seek(0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), max(0, self._size - self.tell())))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("only absolute seeks are supported")
        return self._file.seek(self._start + place) - self._start

    def tell(self) -> int:
        return self._file.tell() - self._start


def _inflate(file: BinaryIO, member: int, starts: deque[tuple[int, int]]) -> Iterator[bytes]:
    """Yields the decompressed content of a file, starting at the byte position of a member. The first bytes of the file
    determine the compression.

    starts: receives (decompressed position, file position) of each member.
    """
    start = file.read(4)
    file.seek(member)
    if start[:2] == b"\x1f\x8b":
        return _members(file, lambda: zlib.decompressobj(31), starts)
    if start == _DICTIONARY:
        frames = zstandard.ZstdDecompressor(dict_data=_dictionary(file))
        file.seek(max(member, file.tell()))
        return _members(file, frames.decompressobj, starts)
    if start == _ZSTD:
        return _members(file, zstandard.ZstdDecompressor().decompressobj, starts)
    return iter(lambda: file.read(READ_BYTES), b"")


def _members(file: BinaryIO, inflater_of: Callable[[], Any], starts: deque[tuple[int, int]]) -> Iterator[bytes]:
    """Yields the decompressed gzip members or zstd frames of a file. Raises EOFError for a truncated one.

    Each step takes SLICE_BYTES, so that it expands to a few MB at most: a thousandfold with deflate, 128 KB for 4 bytes
    with zstd.
    """
    inflater, begun, count = inflater_of(), False, 0
    while data := file.read(READ_BYTES):
        while data:
            if not begun:
                starts.append((count, file.tell() - len(data)))
            begun, piece = True, inflater.decompress(data[:SLICE_BYTES])
            if piece:
                count += len(piece)
                yield piece
            data = inflater.unused_data + data[SLICE_BYTES:]
            if inflater.eof:
                inflater, begun = inflater_of(), False
    if begun:
        raise EOFError


def _dictionary(file: BinaryIO) -> zstandard.ZstdCompressionDict:
    file.seek(4)
    data = file.read(struct.unpack("<I", file.read(4))[0])
    if data[:4] == _ZSTD:
        # a frame without a declared size is decompressed up to the limit
        if DICTIONARY_BYTES < zstandard.get_frame_parameters(data).content_size < zstandard.CONTENTSIZE_UNKNOWN:
            raise EOFError("the dictionary is too large")
        data = zstandard.ZstdDecompressor().decompress(data, max_output_size=DICTIONARY_BYTES)
    return zstandard.ZstdCompressionDict(data)


class Payloads:
    """Maps payload digests to URLs, on disk since there may be millions."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("")
        self._connection.execute("CREATE TABLE payload (url_id INTEGER PRIMARY KEY, digest TEXT NOT NULL)")
        self._connection.execute("CREATE INDEX payload_digest ON payload (digest)")

    def add(self, url_id: UrlId, digest: str) -> None:
        """Stores the digest of a URL's latest payload."""
        self._connection.execute("INSERT OR REPLACE INTO payload VALUES (?, ?)", (url_id, digest))

    def holder(self, digest: str, url_id: UrlId | None) -> UrlId | None:
        """A URL whose latest payload has this digest: preferably this URL, which is also returned if it is unknown."""
        find = "SELECT url_id FROM payload WHERE digest = ? ORDER BY url_id = ? DESC LIMIT 1"
        if row := self._connection.execute(find, (digest, url_id or 0)).fetchone():
            return UrlId(row[0])
        is_noted = self._connection.execute("SELECT 1 FROM payload WHERE url_id = ?", (url_id or 0,)).fetchone()
        return None if is_noted else url_id

    def close(self) -> None:
        self._connection.close()
