"""Reports stored bytes of a collection that cannot be decoded because they are damaged."""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Iterable, Iterator

import zstandard

from periplus.errors import StoreError

RESTORED_BYTES = 4 << 30  # maximum of the setting inflated_bytes; the size declared in a frame is not trusted
GZIP = b"\x1f\x8b"  # every member of a gzip file begins so (RFC 1952, 2.3.1)
FED_BYTES = 4_096  # decompressed at a time: at most 130 MB, for frames without a declared size


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Translates all errors of unpacking, for any bytes, into StoreError."""
    try:
        yield
    except (
        zstandard.ZstdError,
        zlib.error,
        struct.error,
        ValueError,
        LookupError,
        TypeError,
        StopIteration,
        OverflowError,
        MemoryError,
    ) as error:
        text = str(error) or type(error).__name__
        raise StoreError(
            f"the collection is damaged: the stored data of a page cannot be read ({text}). Restore it "
            "from a copy, or crawl again."
        ) from error


def decompress(data: bytes, reader: zstandard.ZstdDecompressor) -> bytes:
    """Decompresses a zstd frame, or the first piece of a frame. Raises StoreError."""
    with translate_errors():
        size = zstandard.get_frame_parameters(data).content_size
        if size == zstandard.CONTENTSIZE_UNKNOWN:
            return next(_pieces((data,), reader.decompressobj()))
        if size > RESTORED_BYTES:
            raise ValueError(f"a page with {size} bytes")
        return reader.decompress(data)


def decompress_second(first: bytes, second: bytes, reader: zstandard.ZstdDecompressor) -> bytes:
    """Decompresses the second and last piece of a zstd frame. Raises StoreError."""
    frame = reader.decompressobj()
    with translate_errors():
        *_, content = _pieces((first, second), frame)
        if not frame.eof:
            raise ValueError("an incomplete frame")
        return content


def decompress_gzip(data: bytes) -> bytes:
    """Decompresses one or more gzip members, perhaps followed by padding. Raises StoreError."""
    parts = list[bytes]()
    with translate_errors():
        while data.startswith(GZIP):
            member = zlib.decompressobj(wbits=31)
            parts.append(member.decompress(data, RESTORED_BYTES - sum(map(len, parts)) + 1))
            if not member.eof:
                raise ValueError("an incomplete gzip member, or too many bytes")
            data = member.unused_data.lstrip(b"\0")
    return b"".join(parts)


def _pieces(pieces: Iterable[bytes], frame: zstandard.ZstdDecompressionObj) -> Iterator[bytes]:
    """Decompresses each piece. A frame in pieces has no declared size, so the output is counted."""
    room = RESTORED_BYTES
    for piece in pieces:
        parts = []
        for start in range(0, len(piece), FED_BYTES):
            parts.append(frame.decompress(piece[start : start + FED_BYTES]))
            room -= len(parts[-1])
            if room < 0:
                raise ValueError(f"a page with more than {RESTORED_BYTES} bytes")
        content = b"".join(parts)
        if not content:
            raise ValueError("an empty piece")
        yield content
