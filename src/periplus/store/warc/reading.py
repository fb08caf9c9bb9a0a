"""What stands in an archive that somebody else wrote? Records one by one, bounded, as far as they are whole.

WARC 0.17 to 1.1, plain, in gzip members, or in zstd frames with or without a dictionary. A damaged or truncated file gives the
records before the damage, and says so.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import zstandard

from periplus.errors import UsageError
from periplus.model.archive import ArchiveRecord
from periplus.model.visit import Headers

LINE_BYTES = 65_536  # of one named field
FIELDS_MOST = 1_000  # lines in a record's head
SKIP_BYTES = 1 << 20  # read at a time of what is not wanted
READ_BYTES = 8_192  # of a file at a time: more is copied more often
SLICE_BYTES = 512  # inflated at a time
_DICTIONARY = b"\x5d\x2a\x4d\x18"  # the frame of a zstd dictionary, first in the file
DICTIONARY_BYTES = 1 << 24  # of a file's dictionary; usual ones have 110 KB
_ZSTD = b"\x28\xb5\x2f\xfd"
_BROKEN = (EOFError, OSError, zlib.error, zstandard.ZstdError, struct.error)
_STATUS_LINE = re.compile(r"HTTP/\S*\s+(?P<code>[0-9]{3})(?:\s|$)")


class Reader:
    """Iterates over the records of one file. damage: empty, or once the end is reached, why it was not the true one."""

    def __init__(self, path: Path, block_bytes: int) -> None:
        """block_bytes: longest block that is kept of a record. Raises UsageError for a file that is no archive."""
        self._path, self._most = path, block_bytes
        self.damage = ""
        self.count = 0
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise UsageError(f"cannot read the archive {path}: {error.strerror}") from None
        try:
            self._stream = io.BufferedReader(_Steps(_inflated(self._file)), 1 << 16)
            start = self._stream.peek(5)[:5]
        except _BROKEN as error:
            self._file.close()
            raise UsageError(f"{path} is no WARC file, or damaged at its beginning: {error}") from None
        if start != b"WARC/":
            self._file.close()
            raise UsageError(f"{path} is no WARC file: it begins with {start!r}. Files of the older ARC format must be converted first.")

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[ArchiveRecord]:
        try:
            while (record := self._next()) is not None:
                self.count += 1
                yield record
        except _BROKEN as error:
            self.damage = f"{self._path} ends in the middle of a record, or is damaged, after {self.count} records: {error or 'unexpected end'}"
        except ValueError as error:
            self.damage = f"{self._path} is damaged after {self.count} records: {error}"

    def _next(self) -> ArchiveRecord | None:
        line = self._line()
        while line in (b"\r\n", b"\n"):
            line = self._line()
        if not line:
            return None
        if not line.startswith(b"WARC/"):
            raise ValueError(f"a record begins with {line[:40]!r}")
        fields = self._fields()
        length = int(fields.get("content-length", ""))
        if length < 0:
            raise ValueError("a negative Content-Length")
        block = self._stream.read(min(length, self._most))
        rest = length - len(block)
        if len(block) < min(length, self._most):
            raise EOFError
        self._skip(rest)
        return ArchiveRecord(fields.get("warc-type", "").lower(), fields, block, rest > 0)

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
        self._steps, self._rest = steps, memoryview(b"")

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
        return count


def _inflated(file: BinaryIO) -> Iterator[bytes]:
    """What the file holds, inflated; its compression is told by its first bytes."""
    start = file.read(4)
    file.seek(0)
    if start[:2] == b"\x1f\x8b":
        return _members(file, lambda: zlib.decompressobj(31))
    if start == _DICTIONARY:
        frames = zstandard.ZstdDecompressor(dict_data=_dictionary(file))
        return _members(file, frames.decompressobj)
    if start == _ZSTD:
        return _members(file, zstandard.ZstdDecompressor().decompressobj)
    return iter(lambda: file.read(READ_BYTES), b"")


def _members(file: BinaryIO, inflater_of: Callable[[], Any]) -> Iterator[bytes]:
    """The gzip members or zstd frames of a file, one after another. Raises EOFError within one that is cut off.

    A step takes SLICE_BYTES, so that it can swell to some MB and no more: a thousandfold by deflate, 128 KB for 4 bytes by zstd.
    """
    inflater, begun = inflater_of(), False
    while data := file.read(READ_BYTES):
        while data:
            begun, piece = True, inflater.decompress(data[:SLICE_BYTES])
            if piece:
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
        if DICTIONARY_BYTES < zstandard.get_frame_parameters(data).content_size < zstandard.CONTENTSIZE_UNKNOWN:  # else it is believed, and so much taken
            raise EOFError("a dictionary that is too large")
        data = zstandard.ZstdDecompressor().decompress(data, max_output_size=DICTIONARY_BYTES)
    return zstandard.ZstdCompressionDict(data)


def http_answer(block: bytes) -> tuple[int, Headers, bytes] | None:
    """(status, fields, body without chunks) of a response record's block; None for what is no HTTP answer. Total."""
    for mark in (b"\r\n\r\n", b"\n\n"):
        head, found, body = block.partition(mark)
        if found:
            break
    else:
        head, body = block, b""
    line, _, rest = head.decode("latin-1").partition("\n")
    status_line = _STATUS_LINE.match(line)
    if status_line is None:
        return None
    fields = [(name.strip().lower(), value.strip()) for name, colon, value in (item.partition(":") for item in rest.split("\n")) if colon]
    headers = Headers(tuple(fields), line.strip())
    if "chunked" in headers.get("transfer-encoding").lower():
        body = unchunked(body)
    return int(status_line["code"]), headers, body


def unchunked(body: bytes) -> bytes:
    """A body without the marks of its chunks (RFC 9112, 7.1); as it is where it has none, for many archives keep bodies without."""
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
