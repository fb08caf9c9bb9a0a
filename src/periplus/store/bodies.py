"""Packs page bodies, response heads and text blocks into few bytes, and unpacks them whole or not at all."""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Sequence
from itertools import repeat
from struct import Struct

import zstandard

from periplus.errors import StoreError
from periplus.model.page import Block, BlockKind, Part, Position
from periplus.model.visit import Headers
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


# Part of the stored form: a change needs another first byte. Most frequent last, where deflate's distances are
# shortest. 400 bytes of fields become some 190 with it, 290 without.
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
HEAD_BYTES = 64 << 20  # more than any setting lets in
_FORM = b"1"  # the first byte of what is stored


def pack_head(headers: Headers) -> bytes | None:
    """Status line and fields as they are stored; None when there is neither."""
    if not headers.fields and not headers.status_line:
        return None
    lines = [headers.status_line, *(f"{name}: {value}" for name, value in headers.fields)]
    squeezer = zlib.compressobj(6, wbits=-15, zdict=_WORDS)
    return _FORM + squeezer.compress("\n".join(lines).encode("latin-1", "replace")) + squeezer.flush()


def unpack_head(data: bytes | None) -> Headers:
    """What `pack_head` was given: no field holds a line feed, which is where header lines end. Raises StoreError."""
    if not data:
        return Headers()
    with told():
        lines = (
            zlib.decompressobj(wbits=-15, zdict=_WORDS).decompress(data[1:], HEAD_BYTES).decode("latin-1").split("\n")
        )
    fields = tuple((name, value) for name, _, value in (line.partition(": ") for line in lines[1:]))
    return Headers(fields, lines[0])


# The text holds the words of all blocks but the title and the alts, one below the other. What is left to be kept is one
# column after the other, packed: kinds and levels, landmarks, paths (each once), link shares, languages, and the words
# that are not in the text.

BLOCKS_LEVEL = 3
_APART = frozenset({BlockKind.TITLE, BlockKind.ALT})  # whose words are not in the text
# Written as numbers: a kind or landmark may be added at the end of these, none may change its place.
_KINDS = (
    BlockKind.TITLE, BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.ITEM, BlockKind.CELL,
    BlockKind.CAPTION, BlockKind.CODE, BlockKind.LINK, BlockKind.ALT,
)  # fmt: skip
_POSITIONS = (
    Position.NAV,
    Position.HEADER,
    Position.MAIN,
    Position.ASIDE,
    Position.FOOTER,
    Position.BODY,
    Position.HEAD,
)
_PARTS = (Part.CONTENT, Part.NAVIGATION)
_KIND_CODE = {kind: code for code, kind in enumerate(_KINDS)}
_POSITION_CODE = {position: code for code, position in enumerate(_POSITIONS)}
_PART_CODE = {part: code for code, part in enumerate(_PARTS)}
_HEAD = Struct("<BIIIIIIII")  # version of this form, number of blocks, length of each section but the last
_VERSION = 1

_writer = zstandard.ZstdCompressor(level=BLOCKS_LEVEL)
_reader = zstandard.ZstdDecompressor()


def pack_blocks(blocks: Sequence[Block]) -> bytes:
    """All that the text does not say. Without blocks empty."""
    if not blocks:
        return b""
    kinds, texts, paths, levels, positions, linked, languages = zip(*blocks, strict=True)
    path_ids, path_names = _numbered(paths)
    language_ids, language_names = _numbered(languages) if any(languages) else ([], [])
    lines = [text.count("\n") if "\n" in text else 0 for text in texts]  # to look takes half of what a call takes
    apart = "\n".join([text.replace("\n", " ") for kind, text in zip(kinds, texts, strict=True) if kind in _APART])
    # 0: nothing but links; else one more than how many characters stand in links
    shares = (
        [0 if chars == len(text) else chars + 1 for text, chars in zip(texts, linked, strict=True)]
        if any(linked)
        else []
    )
    sections = (
        bytes(map(_KIND_CODE.__getitem__, kinds)),
        bytes(levels) if any(levels) else b"",
        bytes(map(_POSITION_CODE.__getitem__, positions)),
        _column(path_ids),
        _column(shares),
        _column(lines) if any(lines) else b"",
        _column(language_ids),
        "\n".join(path_names).encode("utf-8", "replace"),
        "\0".join(["\n".join(language_names), apart]).encode("utf-8", "replace"),
    )
    head = _HEAD.pack(_VERSION, len(blocks), *map(len, sections[:-2]))
    return _writer.compress(head + len(sections[-2]).to_bytes(4, "little") + b"".join(sections))


def unpack_blocks(data: bytes, text: str) -> tuple[Block, ...]:
    """The blocks that `pack_blocks` was given; text: all words of the page as `document.blocks.text_of` gives them.

    Raises StoreError.
    """
    raw = restored(data, _reader)
    with told():
        return _blocks_of(raw, text)


def blocks_of(text: str, packed_blocks: bytes | None) -> tuple[Block, ...]:
    """A page's blocks.

    packed_blocks: None where its text alone was kept; then each line is one, and there are none without text.
    """
    if packed_blocks is not None:
        return unpack_blocks(packed_blocks, text)
    return tuple([Block(BlockKind.PARAGRAPH, line, "") for line in text.split("\n")]) if text else ()


def _blocks_of(raw: bytes, text: str) -> tuple[Block, ...]:
    version, count, *lengths = _HEAD.unpack_from(raw)
    if version != _VERSION:
        raise StoreError(
            f"a page's blocks are kept in form {version}; this program knows {_VERSION}. Upgrade periplus."
        )
    at = _HEAD.size + 4
    lengths = [*lengths, int.from_bytes(raw[at - 4 : at], "little")]
    sections = []
    for length in lengths:
        sections.append(raw[at : at + length])
        at += length
    kinds = [_KINDS[code] for code in sections[0]]
    languages, _, apart = raw[at:].decode().partition("\0")
    texts = _texts(kinds, _numbers(sections[5], count), text, apart)
    return tuple(
        map(
            Block,
            kinds,
            texts,
            _named(sections[3], sections[7].decode().split("\n"), count),
            list(sections[1]) or repeat(0, count),
            [_POSITIONS[code] for code in sections[2]],
            [
                len(own) if share == 0 else share - 1
                for share, own in zip(_numbers(sections[4], count), texts, strict=True)
            ]
            if sections[4]
            else repeat(0, count),
            _named(sections[6], languages.split("\n"), count) if sections[6] else repeat("", count),
        )
    )


def pack_parts(parts: Sequence[Part]) -> bytes:
    """One byte a block."""
    return bytes(map(_PART_CODE.__getitem__, parts))


def unpack_parts(data: bytes) -> tuple[Part, ...]:
    with told():
        return tuple([_PARTS[code] for code in data])


def _numbered(values: Sequence[str]) -> tuple[list[int], list[str]]:
    """Each value as its number in the list of different values."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values], list(numbers)


def _named(section: bytes, names: Sequence[str], count: int) -> list[str]:
    return [names[number] for number in _numbers(section, count)]


def _column(values: Sequence[int]) -> bytes:
    """Numbers, each in as many bytes as the largest needs; the first byte says how many."""
    if not values:
        return b""
    most = max(values)
    if most < 1 << 8:
        return b"B" + bytes(values)
    code = "H" if most < 1 << 16 else "I"
    column = array(code, values)
    if sys.byteorder == "big":
        column.byteswap()
    return code.encode() + column.tobytes()


def _numbers(section: bytes, count: int) -> Sequence[int]:
    """What `_column` wrote; of an empty one zeros."""
    if not section:
        return [0] * count
    column = array(section[:1].decode(), section[1:])
    if sys.byteorder == "big":
        column.byteswap()
    return column


def _texts(kinds: Sequence[BlockKind], lines: Sequence[int], text: str, apart: str) -> list[str]:
    """The words of each block: of the text its next lines."""
    own, others = iter(text.split("\n")), iter(apart.split("\n"))
    found = []
    for kind, more in zip(kinds, lines, strict=True):
        if kind in _APART:
            found.append(next(others))
        elif more:
            found.append("\n".join([next(own) for _ in range(more + 1)]))
        else:
            found.append(next(own))
    return found
