"""Reports bytes that a collection kept and that cannot be restored: its disk or its maker damaged them."""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Iterator

import zstandard

from periplus.errors import StoreError

RESTORED_BYTES = 4 << 30  # the greatest value of the setting inflated_bytes: a frame may claim anything


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
    """What a zstd frame holds, which must say itself how much that is. Raises StoreError."""
    with reported():
        size = zstandard.get_frame_parameters(data).content_size
        if size > RESTORED_BYTES:
            raise ValueError(f"a page of {size} bytes")
        return reader.decompress(data)
