"""Reports bytes that a collection kept and that cannot be restored: its disk or its maker damaged them."""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Iterable, Iterator

import zstandard

from periplus.errors import StoreError

RESTORED_BYTES = 4 << 30  # the greatest value of the setting inflated_bytes: a frame may claim anything
FED_BYTES = 4_096  # at once: of a frame that does not say how much it holds, they make 130 MB at most


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Translates what unpacking raises into StoreError. Whatever the bytes are, nothing else leaves it."""
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
            f"the collection is damaged: what it kept of a page cannot be restored ({text}). Restore it "
            "from a copy, or crawl again."
        ) from error


def restored(data: bytes, reader: zstandard.ZstdDecompressor) -> bytes:
    """What a zstd frame holds, or the first piece of one that goes on elsewhere. Raises StoreError."""
    with reported():
        size = zstandard.get_frame_parameters(data).content_size
        if size == zstandard.CONTENTSIZE_UNKNOWN:
            return next(_pieces((data,), reader.decompressobj()))
        if size > RESTORED_BYTES:
            raise ValueError(f"a page of {size} bytes")
        return reader.decompress(data)


def second_restored(first: bytes, second: bytes, reader: zstandard.ZstdDecompressor) -> bytes:
    """What the second piece of a zstd frame holds, with which it ends. Raises StoreError."""
    frame = reader.decompressobj()
    with reported():
        *_, content = _pieces((first, second), frame)
        if not frame.eof:
            raise ValueError("a frame that does not end")
        return content


def _pieces(pieces: Iterable[bytes], frame: zstandard.ZstdDecompressionObj) -> Iterator[bytes]:
    """What each piece holds. A frame in pieces does not say how much it holds: it is counted as it comes."""
    room = RESTORED_BYTES
    for piece in pieces:
        parts = []
        for start in range(0, len(piece), FED_BYTES):
            parts.append(frame.decompress(piece[start : start + FED_BYTES]))
            room -= len(parts[-1])
            if room < 0:
                raise ValueError(f"a page of more than {RESTORED_BYTES} bytes")
        content = b"".join(parts)
        if not content:
            raise ValueError("a piece that holds nothing")
        yield content
