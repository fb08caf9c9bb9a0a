"""Where do the bytes of pages lie, if not in the database? In segments: WARC files that one writer each appends to, and nobody changes.

    shelf = shelf_of("/data/press")                            # or s3://bucket/press, any place that fsspec knows
    with SegmentWriter(shelf, "worker-7f3a", note) as writer:  # a name that no other writer has or had
        place = writer.append(exchange)                        # takes bytes into memory, says where they will lie
        writer.flush()                                         # they are there for good, or StoreError; only now commit the rows
    SegmentReader(shelf).body(place)

Bytes first, then the rows that point at them: a kill between the two leaves records that no row names, which `sweep` counts; a kill in
the middle of a record leaves a torn tail, behind which nothing was committed. After a StoreError what was appended since the last flush
is forgotten, and the next append begins another segment: pages of that batch must not be committed.

In a folder a segment grows until it is full. Object storage knows no appending: there each flush is a segment of its own.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO, NamedTuple

from isal import igzip

from periplus.errors import StoreError
from periplus.model.archive import Exchange, RunNote
from periplus.model.visit import Headers
from periplus.model.web import Url
from periplus.settings import VERSION
from periplus.store.shelves import Shelf, shelf_of
from periplus.store.warc.reading import http_answer
from periplus.store.warc.records import answer, original, warcinfo
from periplus.store.warc.writing import LEVEL

__all__ = ["Place", "SegmentReader", "SegmentWriter", "Shelf", "members", "shelf_of"]

SEGMENT_BYTES = 1_000_000_000  # ISO 28500, annex C
ENDING = ".warc.gz"
READ_BYTES = 1 << 16


class Place(NamedTuple):
    """Where one record lies. Bytes start to start + length of the segment are one gzip member."""

    segment: str
    start: int
    length: int


class SegmentWriter:
    """Appends response records for one process. See above for what it promises."""

    def __init__(self, shelf: Shelf, name: str, note: RunNote, segment_bytes: int = SEGMENT_BYTES) -> None:
        """name: of letters, digits and dashes; note: what each segment says of its run at its head."""
        self._shelf, self._name, self._note, self._most = shelf, name, note, segment_bytes
        self._number = 0
        self._segment = self._info_id = ""
        self._written = 0  # bytes of the segment that are there for good
        self._held = bytearray()

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.flush()
        self._shelf.close()

    def append(self, exchange: Exchange) -> Place:
        """Where the record of an answered visit will lie once `flush` has returned."""
        if not self._segment or self._written + len(self._held) >= self._most:
            self.flush()
            self._begin()
        record, _ = answer(exchange, self._info_id, None)
        start, length = self._take(record.data)
        return Place(self._segment, start, length)

    def flush(self) -> None:
        """Returns when all that was appended is there for good. Raises StoreError when it is not, see above."""
        if not self._held:
            return
        data, self._held = bytes(self._held), bytearray()
        segment, self._segment = self._segment, ""  # should the writing fail, the next append begins another
        self._shelf.write(segment, data, self._written)
        self._written += len(data)
        if self._shelf.appends:
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
    """Reads records back."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def body(self, place: Place) -> bytes:
        """The bytes of the page, content codings removed. Raises StoreError if they are not there as they were written."""
        return self.response(place)[2]

    def response(self, place: Place) -> tuple[Url, Headers, bytes]:
        """(what was asked for, the answer's fields as the server sent them, its body). Raises StoreError as `body`."""
        data = self._shelf.read(place.segment, place.start, place.length)
        try:
            url, block = _record(zlib.decompress(data, 31))
            found = http_answer(block)
        except (zlib.error, ValueError) as error:
            raise _damaged(place, str(error)) from None
        if found is None:
            raise _damaged(place, "no answer stands there")
        return url, original(found[1]), found[2]


def _record(data: bytes) -> tuple[Url, bytes]:
    """(target, block) of one record that was written here. Raises ValueError."""
    head, _, rest = data.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    try:
        return Url(fields["WARC-Target-URI"]), rest[: int(fields["Content-Length"])]
    except KeyError as missing:
        raise ValueError(f"a record without {missing}") from None


def _damaged(place: Place, why: str) -> StoreError:
    return StoreError(f"the segment {place.segment} is damaged at byte {place.start}: {why}. Restore it from a copy, or fetch the page again.")


def members(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """(start, length) of each whole gzip member of a segment, in order; ends before a torn tail. Memory: READ_BYTES."""
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
