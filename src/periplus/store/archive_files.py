"""Web archives that are read: WARC, ARC, and WACZ files with WARC files in them."""

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
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, cast

import zstandard

from periplus.errors import UsageError
from periplus.model.collection import ArchiveRecord
from periplus.model.visit import Headers
from periplus.model.web import UrlId
from periplus.values import frozen

# WARC 0.17 to 1.1 and ARC 1 and 2, plain, in gzip members, or in zstd frames with or without a dictionary; what a file
# is its bytes tell, not its name. A damaged or truncated file gives the records before the damage, and says so.
# Sources: ISO 28500:2017; the Internet Archive's ARC file format, 1996; WACZ 1.1.1.

LINE_BYTES = 65_536  # of one named field
FIELDS_MOST = 1_000  # lines in a record's head
SKIP_BYTES = 1 << 20  # read at a time of what is not wanted
READ_BYTES = 8_192  # of a file at a time: more is copied more often
SLICE_BYTES = 512  # inflated at a time
_DICTIONARY = b"\x5d\x2a\x4d\x18"  # the frame of a zstd dictionary, first in the file
DICTIONARY_BYTES = 1 << 24  # of a file's dictionary; usual ones have 110 KB
_ZSTD = b"\x28\xb5\x2f\xfd"
MANIFEST_BYTES = 1 << 24  # of a WACZ file's manifest, or of one line of its pages
# RuntimeError: what is encrypted; NotImplementedError, which is one: another compression than deflate
_BROKEN = (EOFError, OSError, RuntimeError, zlib.error, zstandard.ZstdError, struct.error, zipfile.BadZipFile)
_ZIP_HEAD, _ZIP_NAME_LENGTHS = 30, 26  # bytes of an entry's own head; where the lengths of what follows it stand
RECORDS = re.compile(r"\.w?arc(\.gz|\.zst)?$")
_STATUS_LINE = re.compile(r"HTTP/\S*\s+(?P<code>[0-9]{3})(?:\s|$)")


@frozen
class ArchiveFile:
    """One file of records. inner: where it stands within zip files, from the outermost; empty: it is a file itself."""

    path: Path
    inner: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "/".join((str(self.path), *self.inner))

    def opened(self, stack: ExitStack) -> BinaryIO:
        """Open for as long as stack is. Raises OSError, BadZipFile, KeyError."""
        file: Any = stack.enter_context(self.path.open("rb"))
        for name in self.inner:
            file = stack.enter_context(stack.enter_context(zipfile.ZipFile(file)).open(name))
        return file  # type: ignore[no-any-return]

    def opened_for_places(self, stack: ExitStack) -> BinaryIO:
        """As `opened`, for who reads here and there: what stands undeflated in a zip file is read from that itself, for
        `zipfile` reads all that lies before a place. No checksum is looked at.
        """
        if len(self.inner) != 1:
            return self.opened(stack)
        file = stack.enter_context(self.path.open("rb"))
        with zipfile.ZipFile(file) as package:
            entry = package.getinfo(self.inner[0])
        if entry.compress_type != zipfile.ZIP_STORED:
            return self.opened(stack)
        file.seek(entry.header_offset + _ZIP_NAME_LENGTHS)
        name_length, extra_length = struct.unpack("<HH", file.read(4))
        start = entry.header_offset + _ZIP_HEAD + name_length + extra_length
        return cast(BinaryIO, _Window(file, start, entry.file_size))


class MemberPlace(NamedTuple):
    """Where a record begins. member: byte of the file at which reading can begin: of the record itself, or of the gzip
    member or zstd frame that has it; skip: bytes of that, inflated, before the record.
    """

    member: int
    skip: int = 0


def archive_files(path: Path) -> tuple[ArchiveFile, ...]:
    """The files of records of an archive: itself, or those of a WACZ file, or of a zip file of WACZ files.

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
    except _BROKEN as error:
        raise UsageError(f"{path} is a damaged zip file: {error}") from None
    if not files:
        raise UsageError(f"{path} is a zip file, and no WACZ: it has no archive/*.warc.gz")
    return tuple(files)


def main_page(path: Path) -> str:
    """The address that a WACZ file says it begins with, or the first of its pages; empty: none, or no WACZ. Total."""
    if not zipfile.is_zipfile(path):
        return ""
    with suppress(*_BROKEN, ValueError, KeyError), zipfile.ZipFile(path) as package:
        with package.open("datapackage.json") as file:
            manifest = json.loads(file.read(MANIFEST_BYTES))
        for name in ("mainPageUrl", "mainPageURL"):  # as the specification has it, and as py-wacz writes it
            if isinstance(manifest, dict) and isinstance(manifest.get(name), str):
                return str(manifest[name])
        with package.open("pages/pages.jsonl") as file:
            for _ in range(2):  # the first line is a head
                page = json.loads(file.readline(MANIFEST_BYTES))
                if isinstance(page, dict) and isinstance(page.get("url"), str):
                    return str(page["url"])
    return ""


class ArchiveReader:
    """Iterates over the records of one file. damage: empty, or once the end is reached, why it was not the true one.

    Those of ARC files come as those of WARC files do.
    """

    def __init__(self, source: ArchiveFile, block_bytes: int, place: MemberPlace | None = None) -> None:
        """block_bytes: longest block that is kept of a record; place: of the first record that is read, None: the first
        there is. Raises UsageError for a file that is no archive.
        """
        self._source, self._most = source, block_bytes
        self._starts: deque[tuple[int, int]] = deque()  # (byte of all inflated, byte of the file) of members read
        self.damage = ""
        self.count = 0
        with ExitStack() as stack:
            try:
                file = source.opened(stack) if place is None else source.opened_for_places(stack)
            except OSError as error:
                raise UsageError(f"cannot read the archive {source}: {error.strerror or error}") from None
            except (*_BROKEN, KeyError) as error:
                raise UsageError(f"cannot read the archive {source}: {error}") from None
            try:
                member, skip = place or MemberPlace(0)
                self._stream = io.BufferedReader(_Steps(_inflated(file, member, self._starts)), 1 << 16)
                self._skip(skip)
                start = self._stream.peek(9)[:9]
            except _BROKEN as error:
                raise UsageError(f"{source} is no web archive, or damaged at its beginning: {error}") from None
            is_arc = start == b"filedesc:" or (place is not None and start[:4] == b"http")
            if not start.startswith(b"WARC/") and not is_arc:
                raise UsageError(f"{source} is no WARC, ARC or WACZ file: it begins with {start!r}")
            self._stack = stack.pop_all()
        self._next = self._next_arc if is_arc else self._next_warc
        self._arc_fields = 5  # in the head of an ARC record: URL, address, date, type, length; version 2 has 10
        self._is_sought = place is not None
        self._begins = 0  # byte of all inflated at which the record begins that was read last

    def __enter__(self) -> ArchiveReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def place(self) -> MemberPlace:
        """Of the record that was read last."""
        if not self._starts:
            return MemberPlace(self._begins)
        inflated, member = self._starts[0]
        return MemberPlace(member, self._begins - inflated)

    def __iter__(self) -> Iterator[ArchiveRecord]:
        try:
            while (record := self._next()) is not None:
                self.count += 1
                yield record
        except _BROKEN as error:
            self.damage = (
                f"{self._source} ends in the middle of a record, or is damaged, after {self.count} records: "
                f"{error or 'unexpected end'}"
            )
        except ValueError as error:
            self.damage = f"{self._source} is damaged after {self.count} records: {error}"

    def _head_line(self) -> bytes:
        """The next line that is not empty; empty: the end."""
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
        """A record of an ARC file: a line with its head, then what the server sent. URLs may have spaces in them."""
        line = self._head_line()
        if not line:
            return None
        if self._is_sought:  # the head of the file, which tells the version, was not read
            self._arc_fields = 10 if line.count(b" ") >= 9 else 5
        parts = line.decode("utf-8", "replace").strip().rsplit(" ", self._arc_fields - 1)
        if len(parts) != self._arc_fields:
            raise ValueError(f"a record begins with {line[:40]!r}")
        url, address, date = parts[:3]
        block, is_cut = self._block(parts[-1])
        if url.startswith("filedesc:"):
            names = block.splitlines()[1:2]  # the second line names the fields of the heads that follow
            self._arc_fields = max(5, len(names[0].split())) if names else 5
            return ArchiveRecord("warcinfo", {}, block, is_cut)
        stamp = date[:14].ljust(14, "0")
        day, time = (stamp[:4], stamp[4:6], stamp[6:8]), (stamp[8:10], stamp[10:12], stamp[12:14])
        fields = {"warc-target-uri": url, "warc-date": f"{'-'.join(day)}T{':'.join(time)}Z"}
        fields |= {"warc-ip-address": address} if address not in ("0.0.0.0", "-") else {}
        return ArchiveRecord("response", fields, block, is_cut)

    def _block(self, length_text: str) -> tuple[bytes, bool]:
        """A block, and whether it was longer than what is kept of it. Raises ValueError, EOFError."""
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
    """A stream of the pieces that an iterator yields. What came before an error is read before the error is met."""

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
    """Some bytes of a file, as a file."""

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
            raise io.UnsupportedOperation("from the beginning only")
        return self._file.seek(self._start + place) - self._start

    def tell(self) -> int:
        return self._file.tell() - self._start


def _inflated(file: BinaryIO, member: int, starts: deque[tuple[int, int]]) -> Iterator[bytes]:
    """What the file holds from a byte on at which a member begins, inflated; its first bytes tell its compression.

    starts: gets (byte of all inflated, byte of the file) of each member that is begun.
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
    """The gzip members or zstd frames of a file, one after another. Raises EOFError within one that is cut off.

    A step takes SLICE_BYTES, so that it can swell to some MB and no more: a thousandfold by deflate,
    128 KB for 4 bytes by zstd.
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
        # else it is believed, and so much taken
        if DICTIONARY_BYTES < zstandard.get_frame_parameters(data).content_size < zstandard.CONTENTSIZE_UNKNOWN:
            raise EOFError("a dictionary that is too large")
        data = zstandard.ZstdDecompressor().decompress(data, max_output_size=DICTIONARY_BYTES)
    return zstandard.ZstdCompressionDict(data)


class Payloads:
    """Which URL has the bytes of a digest, as archives write digests; on disk, for there may be millions."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("")
        self._connection.execute("CREATE TABLE payload (url_id INTEGER PRIMARY KEY, digest TEXT NOT NULL)")
        self._connection.execute("CREATE INDEX payload_digest ON payload (digest)")

    def add(self, url_id: UrlId, digest: str) -> None:
        """Of the URL these bytes are the last ones."""
        self._connection.execute("INSERT OR REPLACE INTO payload VALUES (?, ?)", (url_id, digest))

    def holder(self, digest: str, url_id: UrlId | None) -> UrlId | None:
        """A URL whose last bytes have this digest: this one where it does, or where nothing is noted of it."""
        find = "SELECT url_id FROM payload WHERE digest = ? ORDER BY url_id = ? DESC LIMIT 1"
        if row := self._connection.execute(find, (digest, url_id or 0)).fetchone():
            return UrlId(row[0])
        is_noted = self._connection.execute("SELECT 1 FROM payload WHERE url_id = ?", (url_id or 0,)).fetchone()
        return None if is_noted else url_id

    def close(self) -> None:
        self._connection.close()


def http_answer(block: bytes) -> tuple[int, Headers, bytes] | None:
    """(status, fields, body without chunks) of a response record's block; None for what is no HTTP answer. Total."""
    for mark in (b"\r\n\r\n", b"\n\n"):
        head, end, body = block.partition(mark)
        if end:
            break
    else:
        head, body = block, b""
    line, _, rest = head.decode("latin-1").partition("\n")
    status_line = _STATUS_LINE.match(line)
    if status_line is None:
        return None
    fields = [
        (name.strip().lower(), value.strip())
        for name, colon, value in (item.partition(":") for item in rest.split("\n"))
        if colon
    ]
    headers = Headers(tuple(fields), line.strip())
    if "chunked" in headers.get("transfer-encoding").lower():
        body = unchunked(body)
    return int(status_line["code"]), headers, body


def unchunked(body: bytes) -> bytes:
    """A body without the marks of its chunks (RFC 9112, 7.1); as it is where it has none,
    for many archives keep bodies without.
    """
    parts: list[bytes] = []
    place = 0
    while place < len(body):
        end = body.find(b"\r\n", place, place + 1024)
        size = body[place:end].split(b";")[0].strip() if end >= 0 else b""
        if not size or len(size) > 15 or any(sign not in b"0123456789abcdefABCDEF" for sign in size):
            return b"".join(parts) if parts else body
        length = int(size, 16)
        if not length:
            break
        parts.append(body[end + 2 : end + 2 + length])
        place = end + 2 + length + 2
    return b"".join(parts)
