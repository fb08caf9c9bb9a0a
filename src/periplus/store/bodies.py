"""How are page bytes kept small? zstd, with a dictionary per site once the site is known well enough."""

from __future__ import annotations

from collections.abc import Sequence

import zstandard

from periplus.store.damage import restored, told

LEVEL = 3  # level 6 costs four times as much for a tenth less
PAGES_FOR_DICTIONARY = 200  # below this a dictionary costs more than it saves
DICTIONARY_BYTES = 112_640
SAMPLE_BYTES = 16_384  # of each page; 35 ms to train on 150 pages, ratio within 1 % of training on longer ones


class BodyCodec:
    """Compresses and restores bodies. Dictionaries are added as they are learned or met."""

    def __init__(self) -> None:
        self._plain = zstandard.ZstdCompressor(level=LEVEL)
        self._plain_reader = zstandard.ZstdDecompressor()
        self._writers: dict[int, zstandard.ZstdCompressor] = {}
        self._readers: dict[int, zstandard.ZstdDecompressor] = {}

    def knows(self, dictionary_id: int) -> bool:
        return dictionary_id in self._readers

    def add(self, dictionary_id: int, data: bytes) -> None:
        """Raises StoreError for what is no dictionary."""
        with told():
            dictionary = zstandard.ZstdCompressionDict(data)
            dictionary.precompute_compress(level=LEVEL)
        self._writers[dictionary_id] = zstandard.ZstdCompressor(level=LEVEL, dict_data=dictionary)
        self._readers[dictionary_id] = zstandard.ZstdDecompressor(dict_data=dictionary)

    def pack(self, body: bytes, dictionary_id: int | None) -> bytes:
        writer = self._plain if dictionary_id is None else self._writers[dictionary_id]
        return writer.compress(body)

    def unpack(self, data: bytes, dictionary_id: int | None) -> bytes:
        """Raises StoreError for what was damaged."""
        return restored(data, self._plain_reader if dictionary_id is None else self._readers[dictionary_id])


def train(bodies: Sequence[bytes]) -> bytes:
    """A dictionary for pages like these. Empty when they are too few or too small to learn from."""
    samples: list[bytes | bytearray | memoryview] = [body[:SAMPLE_BYTES] for body in bodies if body]
    try:
        # fixed k and d: a search for better ones took four times as long for nothing
        return zstandard.train_dictionary(DICTIONARY_BYTES, samples, k=1024, d=8).as_bytes()
    except zstandard.ZstdError:
        return b""
