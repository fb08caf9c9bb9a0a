"""Compresses page bodies, response headers and text blocks. Damaged data is never restored in part."""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from struct import Struct

import zstandard

from periplus.errors import StoreError
from periplus.model.page import APART, BLOCK_KINDS, PARTS, POSITIONS, Blocks, Part
from periplus.model.visit import Headers
from periplus.store.corruption import GZIP, decompress, decompress_gzip, decompress_second, translate_errors
from periplus.values import Pairs

LEVEL = 1  # level 2 takes 1.15 times as long and saves 2 % of a page, level 3 1.5 times and 6 %
PAGES_FOR_DICTIONARY = 200  # below this a dictionary costs more than it saves
LOOK_AFTER = PAGES_FOR_DICTIONARY // 8  # bodies that a process compresses for a site before it trains a dictionary
DICTIONARY_BYTES = 112_640
SAMPLE_PAGES = 100  # sample per site for a dictionary; twice as many saved 1 % and took twice the time
RETRY_GROWTH = 4  # a site without a dictionary is retried with so many times the pages
TRIAL_PAGES = 20  # to compare sizes with and without a new dictionary
SAMPLE_BYTES = 16_384  # of each page; longer samples improved the ratio by less than 1 %
# Part of the stored format: a change needs another format byte. Frequent words come last, where deflate distances are
# shortest. 400 bytes of headers take 190 bytes with it and 290 without.
_WORDS = (
    b"Accept, Authorization, Cookie, User-Agent, Origin: *\r\naccess-control-allow-origin: *\r\n"
    b"referrer-policy: strict-origin-when-cross-origin\r\n"
    b"alt-svc: h3=\":443\"; ma=86400\r\ncontent-security-policy: default-src 'self' 'unsafe-inline' 'unsafe-eval' "
    b"data: https:; frame-ancestors 'self'\r\n"
    b"permissions-policy: interest-cohort=()\r\nreport-to: "
    b'{"endpoints":[{"url":"https:\\/\\/"}],"group":"","max_age":604800}\r\nnel: \r\n'
    b"server: cloudflare\r\ncf-cache-status: DYNAMIC\r\ncf-ray: \r\nx-powered-by: PHP/8.\r\nx-cache: HIT\r\n"
    b"via: 1.1 varnish\r\nage: 0\r\n"
    b'link: <https://>; rel="canonical"\r\nset-cookie: PHPSESSID=; path=/; domain=.; expires=; secure; HttpOnly; '
    b"SameSite=Lax\r\nlocation: https://www.\r\n"
    b"x-xss-protection: 1; mode=block\r\nx-frame-options: SAMEORIGIN\r\nx-content-type-options: nosniff\r\n"
    b"strict-transport-security: max-age=31536000; includeSubDomains; preload\r\nupgrade: h2,h2c\r\n"
    b"expires: Thu, 19 Nov 1981 08:52:00 GMT\r\n"
    b"pragma: no-cache\r\ncache-control: no-store, no-cache, must-revalidate, private, public, max-age=0\r\n"
    b'etag: W/"\r\naccept-ranges: bytes\r\n'
    b"last-modified: Mon, Tue, Wed, Thu, Fri, Sat, Sun, 01 Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec 2023 "
    b"2024 2025 2026 00:00:00 GMT\r\n"
    b"content-language: en\r\nvary: Accept-Encoding,User-Agent\r\ntransfer-encoding: chunked\r\n"
    b"content-encoding: gzip\r\nserver: Apache/2.4 (Debian)\r\n"
    b"connection: keep-alive, close\r\nkeep-alive: timeout=5, max=100\r\ncontent-type: text/html; "
    b"charset=utf-8\r\ncontent-length: 1\r\n"
    b"HTTP/2 404 Not Found\r\nHTTP/2 301 Moved Permanently\r\nHTTP/2 200 \r\n"
    b"HTTP/1.1 200 OK\r\nserver: nginx\r\ndate: "
)
# A window of 4 KB holds the dictionary and a usual header: 5 us instead of 44, mostly for the tables of 32 KB. A copy
# takes 2 us less than a new object, which reads the dictionary.
_header_writer = zlib.compressobj(6, wbits=-12, memLevel=5, zdict=_WORDS)
HEAD_BYTES = 64 << 20  # more than any setting allows
_FORM = b"1"  # format byte
_PART_CODE = {part: code for code, part in enumerate(PARTS)}
_HEAD = Struct("<BIIIIIIIII")  # format version, number of blocks, length of each section except the last
_VERSION = 1
_CODES = bytes(range(256))


class BodyCodec:
    """Compresses and decompresses bodies. Dictionaries are added when they are trained or loaded."""

    def __init__(self) -> None:
        self._writers: dict[int, zstandard.ZstdCompressor] = {}
        self._readers: dict[int, zstandard.ZstdDecompressor] = {}

    @cached_property
    def _plain(self) -> zstandard.ZstdCompressor:
        return zstandard.ZstdCompressor(level=LEVEL)

    @cached_property
    def _plain_reader(self) -> zstandard.ZstdDecompressor:
        return zstandard.ZstdDecompressor()

    def knows(self, dictionary_id: int) -> bool:
        return dictionary_id in self._readers

    def add(self, dictionary_id: int, data: bytes) -> None:
        """Adds a dictionary. Raises StoreError if it is invalid."""
        with translate_errors():
            dictionary = zstandard.ZstdCompressionDict(data)
            dictionary.precompute_compress(level=LEVEL)
        self._writers[dictionary_id] = zstandard.ZstdCompressor(level=LEVEL, dict_data=dictionary)
        self._readers[dictionary_id] = zstandard.ZstdDecompressor(dict_data=dictionary)

    def pack(self, body: bytes, dictionary_id: int | None) -> bytes:
        writer = self._plain if dictionary_id is None else self._writers[dictionary_id]
        return writer.compress(body)

    def pack_page(self, text: bytes, body: bytes) -> tuple[bytes, bytes]:
        """Compresses a page's text and body as one frame in two pieces, so that their common words are stored once.

        The first piece can be read alone (`unpack`), the second only after it (`unpack_body`). For pages of 64, 25 and
        4 KB this is 15, 47 and 45 % smaller than two frames, takes 0.87, 0.63 and 0.59 of the time; reading is as fast.
        """
        frame = self._plain.compressobj()
        first = frame.compress(text) + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        return first, frame.compress(body) + frame.flush()

    def unpack(self, data: bytes, dictionary_id: int | None) -> bytes:
        """Decompresses data. Raises StoreError if it is damaged."""
        return decompress(data, self._plain_reader if dictionary_id is None else self._readers[dictionary_id])

    def unpack_body(self, data: bytes, dictionary_id: int | None, text: bytes | None) -> bytes:
        """Decompresses a body: gzip as sent by the server, a frame, or the second piece of its text's frame.

        Raises StoreError.
        """
        if data.startswith(
            GZIP
        ):  # neither a frame nor a second piece, in which it would be a block of the reserved type
            return decompress_gzip(data)
        if data.startswith(zstandard.FRAME_HEADER):  # a second piece never starts so: it would be a block of 390 KB
            return self.unpack(data, dictionary_id)
        return decompress_second(text or b"", data, self._plain_reader)


def train(bodies: Sequence[bytes]) -> bytes:
    """Trains a dictionary; empty if the pages are too few or too small."""
    samples: list[bytes | bytearray | memoryview] = [body[:SAMPLE_BYTES] for body in bodies if body]
    try:
        # fixed k and d: a search for better values took four times as long without a gain. f and accel: 10 to 13 ms
        # instead of 29 to 61 ms, with dictionaries as good within 0.3 %
        return zstandard.train_dictionary(DICTIONARY_BYTES, samples, k=1024, d=8, f=16, accel=10).as_bytes()
    except zstandard.ZstdError:
        return b""


def dictionary_for(pages: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Trains a dictionary for a site. pages: (body, text) of each; text is empty if it is not stored.

    Returns an empty one if it saves nothing compared with `pack_page`, or if there are too few pages.
    """
    data = train([body for body, _ in pages])
    if not data:
        return b""
    codec, sample = BodyCodec(), pages[:: max(1, len(pages) // TRIAL_PAGES)]
    codec.add(0, data)
    apart = sum(len(codec.pack(body, 0)) + len(codec.pack(text, None)) for body, text in sample)
    joined = sum(sum(map(len, codec.pack_page(text, body))) for body, text in sample)
    return data if apart < joined else b""


def pack_headers(headers: Headers) -> bytes | None:
    """Compresses the status line and header fields; None if there are none."""
    if not headers.fields and not headers.status_line:
        return None
    lines = [headers.status_line, *map(": ".join, headers.fields)]
    squeezer = _header_writer.copy()
    return _FORM + squeezer.compress("\n".join(lines).encode("latin-1", "replace")) + squeezer.flush()


def unpack_headers(data: bytes | None) -> Headers:
    """Inverse of `pack_headers`. Fields contain no line feed, which separates them. Raises StoreError."""
    if not data:
        return Headers()
    first, *lines = _head_lines(data)
    return Headers(tuple((name, value) for name, _, value in (line.partition(": ") for line in lines)), first)


def header_fields(data: bytes, names: Collection[str]) -> Pairs:
    """The packed fields with these names; three times as fast as `unpack_headers`. Raises StoreError."""
    fields = (line.partition(": ") for line in _head_lines(data)[1:])
    return tuple([(name, value) for name, _, value in fields if name in names])


def _head_lines(data: bytes) -> list[str]:
    with translate_errors():
        head = zlib.decompressobj(wbits=-15, zdict=_WORDS).decompress(data[1:], HEAD_BYTES)
    return head.decode("latin-1").split("\n")


# Stored format: the columns of `Blocks` one after the other, compressed, without the text, which is stored separately.


_writer = zstandard.ZstdCompressor(level=LEVEL)
_reader = zstandard.ZstdDecompressor()


def pack_blocks(blocks: Blocks) -> bytes:
    """Compresses all columns except the text; empty without blocks."""
    if not blocks:
        return b""
    sections = (
        blocks.kinds,
        blocks.levels,
        blocks.positions,
        _bytes_of(blocks.paths),
        _bytes_of(blocks.shares),
        _bytes_of(blocks.lines),
        _bytes_of(blocks.languages),
        "\n".join(blocks.path_names).encode("utf-8", "replace"),
        "\0".join(["\n".join(blocks.language_names), blocks.apart]).encode("utf-8", "replace"),
    )
    head = _HEAD.pack(_VERSION, len(blocks), *map(len, sections[:-1]))
    return _writer.compress(head + b"".join(sections))


def unpack_blocks(data: bytes, text: str) -> Blocks:
    """Inverse of `pack_blocks`. text: the text of the blocks. Raises StoreError."""
    raw = decompress(data, _reader)
    with translate_errors():
        return _blocks_of(raw, text)


def blocks_of(text: str, packed_blocks: bytes | None) -> Blocks:
    """Blocks of a page. packed_blocks: None if only the text is stored; then each line is a block."""
    return Blocks.plain(text) if packed_blocks is None else unpack_blocks(packed_blocks, text)


def _blocks_of(raw: bytes, text: str) -> Blocks:
    version, count, *lengths = _HEAD.unpack_from(raw)
    if version != _VERSION:
        raise StoreError(
            f"the blocks of a page have format {version}; this program supports {_VERSION}. Upgrade periplus."
        )
    ends = list(accumulate(lengths, initial=_HEAD.size))
    kinds, levels, positions, paths, shares, lines, languages, names = (raw[start:end] for start, end in pairwise(ends))
    language_names, _, apart = raw[ends[-1] :].decode().partition("\0")
    blocks = Blocks(
        text,
        apart,
        kinds,
        levels,
        positions,
        _numbers_of(lines),
        _numbers_of(shares),
        _numbers_of(paths),
        tuple(names.decode().split("\n")),
        _numbers_of(languages),
        tuple(language_names.split("\n")) if languages else (),
    )
    _check(blocks, count)
    return blocks


def _check(blocks: Blocks, count: int) -> None:
    """Raises ValueError unless all columns have `count` valid values."""
    apart = sum(map(blocks.kinds.count, APART))
    columns = (blocks.levels, blocks.positions, blocks.lines, blocks.shares, blocks.paths, blocks.languages)
    if (
        len(blocks.kinds) != count
        or any(len(column) not in (0, count) for column in columns)
        or not len(blocks.positions) == len(blocks.paths) == count
        or blocks.kinds.translate(None, _CODES[: len(BLOCK_KINDS)])
        or blocks.positions.translate(None, _CODES[: len(POSITIONS)])
        or max(blocks.paths.tolist(), default=0) >= len(blocks.path_names)  # max() of a list takes half the time
        or max(blocks.languages.tolist(), default=-1) >= len(blocks.language_names)
        or (apart and blocks.apart.count("\n") + 1 < apart)
        or (apart < count and blocks.text.count("\n") + 1 < count - apart + sum(blocks.lines))
    ):
        raise ValueError("the columns of the blocks are inconsistent")


def pack_original(body: bytes) -> bytes:
    """Compresses the original bytes of a rendered page, which are mostly few."""
    return _writer.compress(body)


def unpack_original(data: bytes) -> bytes:
    """Inverse of `pack_original`. Raises StoreError if the data is damaged."""
    return decompress(data, _reader)


def pack_parts(parts: Sequence[Part]) -> bytes:
    """One byte per block."""
    return bytes(map(_PART_CODE.__getitem__, parts))


def unpack_parts(data: bytes) -> tuple[Part, ...]:
    with translate_errors():
        return tuple(map(PARTS.__getitem__, data))


def _bytes_of(column: memoryview[int]) -> bytes:
    """Serialises a column: item type, then little-endian numbers; empty for an empty column."""
    return column.format.encode() + _swap_bytes(column).tobytes() if column else b""


def _numbers_of(section: bytes) -> memoryview[int]:
    """Inverse of `_bytes_of`."""
    if section[:1] not in (b"", b"B", b"H", b"I"):
        raise ValueError("not a column of numbers")
    return _swap_bytes(memoryview(section)[1:].cast(section[:1].decode() or "B"))  # type: ignore[call-overload]  # of three


def _swap_bytes(column: memoryview[int]) -> memoryview[int]:
    """Converts between little-endian and the machine's byte order."""
    if sys.byteorder == "little":
        return column
    values = array(column.format, column)
    values.byteswap()
    return memoryview(values)
