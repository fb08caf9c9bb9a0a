"""How are a page's blocks kept beside its text, in few bytes?

The text holds the words of all blocks but the title and the alts, one below the other. What is left to be kept is one column after the
other, packed: kinds and levels, landmarks, paths (each once), link shares, languages, and the words that are not in the text.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from itertools import repeat
from struct import Struct

import zstandard

from periplus.errors import StoreError
from periplus.model.page import Block, BlockKind, Part, Position
from periplus.store.damage import restored, told

LEVEL = 3
_APART = frozenset({BlockKind.TITLE, BlockKind.ALT})  # whose words are not in the text
# Written as numbers: a kind or landmark may be added at the end of these, none may change its place.
_KINDS = (
    BlockKind.TITLE, BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.ITEM, BlockKind.CELL,
    BlockKind.CAPTION, BlockKind.CODE, BlockKind.LINK, BlockKind.ALT,
)  # fmt: skip
_POSITIONS = (Position.NAV, Position.HEADER, Position.MAIN, Position.ASIDE, Position.FOOTER, Position.BODY, Position.HEAD)
_PARTS = (Part.CONTENT, Part.NAVIGATION)
_KIND_CODE = {kind: code for code, kind in enumerate(_KINDS)}
_POSITION_CODE = {position: code for code, position in enumerate(_POSITIONS)}
_PART_CODE = {part: code for code, part in enumerate(_PARTS)}
_HEAD = Struct("<BIIIIIIII")  # version of this form, number of blocks, length of each section but the last
_VERSION = 1

_writer = zstandard.ZstdCompressor(level=LEVEL)
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
    shares = [0 if chars == len(text) else chars + 1 for text, chars in zip(texts, linked, strict=True)] if any(linked) else []
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
    """The blocks that `pack_blocks` was given; text: all words of the page as `document.blocks.text_of` gives them. Raises StoreError."""
    raw = restored(data, _reader)
    with told():
        return _blocks_of(raw, text)


def blocks_of(text: str, packed_blocks: bytes | None) -> tuple[Block, ...]:
    """A page's blocks. packed_blocks: None where its text alone was kept; then each line is one, and there are none without text."""
    if packed_blocks is not None:
        return unpack_blocks(packed_blocks, text)
    return tuple([Block(BlockKind.PARAGRAPH, line, "") for line in text.split("\n")]) if text else ()


def _blocks_of(raw: bytes, text: str) -> tuple[Block, ...]:
    version, count, *lengths = _HEAD.unpack_from(raw)
    if version != _VERSION:
        raise StoreError(f"a page's blocks are kept in form {version}; this program knows {_VERSION}. Upgrade periplus.")
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
            [len(own) if share == 0 else share - 1 for share, own in zip(_numbers(sections[4], count), texts, strict=True)]
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
