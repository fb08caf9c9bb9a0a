"""Folds case, diacritics and white space of UTF-8 texts, and finds blocks with unlikely letters.

Compiled if there is a C compiler; folding.pxd gives the types. Texts are valid UTF-8, except for lone surrogates.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from periplus.document import page_rules as rules

CACHE_CODE_POINTS = 0x10000  # code points in the cache: hardly any letters beyond have case or diacritics
WIDEST = 8  # bytes of the longest cached replacement
LONGER = WIDEST + 1
NO_ENTRY = LONGER + 1
HIGH_BITS = 0x8080808080808080
COPIED_SINGLY = rules.COPIED_SINGLY


class Folding:
    """Replaces characters one by one, with a cache."""

    def __init__(self, replaced: Callable[[str], str]) -> None:
        """replaced: the replacement of a character outside ASCII; called once per character in the basic plane."""
        self.replaced = replaced
        self.sizes = bytearray([NO_ENTRY]) * CACHE_CODE_POINTS
        self.pieces = bytearray(CACHE_CODE_POINTS * WIDEST)

    def fold(self, written: bytes) -> bytes:
        """The text with each character replaced; ASCII letters in lower case."""
        plain = written.lower()  # changes ASCII letters only
        if plain.isascii():
            return plain
        lower = plain
        size = room = len(plain)
        words = memoryview(plain)[: size & ~7].cast("Q")
        output = bytearray(room)
        start = end = 0
        while start < size:
            char = lower[start]
            if char < 0x80:
                place = after_ascii(lower, words, start)
                if place - start > COPIED_SINGLY:
                    output[end : end + place - start] = lower[start:place]
                    end += place - start
                    start = place
                while start < place:
                    output[end] = lower[start]
                    start += 1
                    end += 1
                continue
            width = 2 if char < 0xE0 else 3 if char < 0xF0 else 4
            code = CACHE_CODE_POINTS
            if width == 2:
                code = (char & 0x1F) << 6 | (lower[start + 1] & 0x3F)
            elif width == 3:
                code = (char & 0x0F) << 12 | (lower[start + 1] & 0x3F) << 6 | (lower[start + 2] & 0x3F)
            count = self.sizes[code] if code < CACHE_CODE_POINTS else LONGER
            if count > WIDEST:
                piece = self.ask(plain[start : start + width], code if count == NO_ENTRY else CACHE_CODE_POINTS)
                count = len(piece)
            else:
                piece = b""
            start += width
            if end + count + size - start > room:  # the replacement may be longer
                room = 2 * (end + count + size - start)
                larger = bytearray(room)
                larger[:end] = output[:end]
                output = larger
            for place in range(count):
                output[end + place] = piece[place] if piece else self.pieces[code * WIDEST + place]
            end += count
        return bytes(output[:end])

    def ask(self, char: bytes, code: int) -> bytes:
        """The replacement of a character; cached if it is short and the code point is in the basic plane."""
        piece = self.replaced(char.decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")
        if code < CACHE_CODE_POINTS:
            self.sizes[code] = min(len(piece), LONGER)
            if len(piece) <= WIDEST:
                for place in range(len(piece)):
                    self.pieces[code * WIDEST + place] = piece[place]
        return piece


def after_ascii(chars: Sequence[int], words: Sequence[int], place: int) -> int:
    """The place of the next byte beyond ASCII, or the end.

    words: the same bytes in groups of eight, without the remainder.
    """
    size, count = len(chars), len(words)
    while place < size and chars[place] < 0x80:
        place += 1
        if place & 7 == 0:
            word = place >> 3
            while word < count and not words[word] & HIGH_BITS:
                word += 1
            place = word << 3
    return place


def width_of_space(written: bytes, place: int) -> int:
    """Length in bytes of the white space at a place; 0 if there is none.

    White space as in `str.isspace` and `str.split`.
    """
    char = written[place]
    if char < 0x80:
        return 1 if char == 32 or 9 <= char <= 13 or 28 <= char <= 31 else 0
    if char == 0xC2:
        return 2 if written[place + 1] in (0x85, 0xA0) else 0
    if char not in (0xE1, 0xE2, 0xE3):
        return 0
    code = written[place + 1] << 8 | written[place + 2]
    if char == 0xE2:
        is_space = 0x8080 <= code <= 0x808A or code in (0x80A8, 0x80A9, 0x80AF, 0x819F)
    else:
        is_space = code == (0x9A80 if char == 0xE1 else 0x8080)
    return 3 if is_space else 0


def line_blocks(kinds: Sequence[int], members: Sequence[int], lines: Sequence[int], wide: Sequence[int]) -> array[int]:
    """The block of each line of a text, int32.

    kinds: of all blocks, uint8. members: uint8[256], nonzero for kinds whose blocks are in the text. lines: uint8,
    lines of each block beyond its first; empty: as in `wide`, int32, or none.
    """
    count, size = 0, len(kinds)
    for block in range(size):
        if members[kinds[block]]:
            count += 1 + (lines[block] if block < len(lines) else wide[block] if block < len(wide) else 0)
    numbers = array("i", bytes(4 * count))
    place = 0
    for block in range(size):
        if members[kinds[block]]:
            for _ in range(1 + (lines[block] if block < len(lines) else wide[block] if block < len(wide) else 0)):
                numbers[place] = block
                place += 1
    return numbers


def fold_lines(written: bytes, blocks: Sequence[int], kinds: Sequence[int], kind: int) -> bytes:
    """Folds the white space in blocks of one kind: single spaces, none at line ends, no empty lines.

    blocks: of each line, as from `line_blocks`.
    """
    size = len(written)
    output = bytearray(size + 1)
    start = end = copied = 0  # copied: start of the unfolded text that is copied as one piece
    for line in range(len(blocks)):
        if kinds[blocks[line]] != kind:
            while start < size and written[start] != 10:
                start += 1
            start += 1
            continue
        if start > copied:
            output[end : end + start - copied] = written[copied:start]
            end += start - copied
        begin, is_apart = end, False
        while start < size:
            char = written[start]
            if char == 10:
                break
            width = width_of_space(written, start) if char <= 32 or char >= 0xC2 else 0
            if width:
                is_apart = end > begin
                start += width
                continue
            if is_apart:
                output[end] = 32
                end += 1
                is_apart = False
            output[end] = char
            start += 1
            end += 1
        if end > begin:
            output[end] = 10
            end += 1
        start += 1
        copied = start
    if copied < start:
        output[end : end + size - copied] = written[copied:size]
        end += size - copied + 1
    return bytes(output[: max(0, end - 1)])


def unlikely_blocks(
    written: bytes, blocks: Sequence[int], least: int, share: int, foreign: int
) -> list[tuple[int, int, int]]:
    """(block, start, end in bytes) of blocks with at least `least` characters and suspicious letters.

    blocks: of each line, as from `line_blocks`. share: a block is suspicious if more than one in `share` characters is
    beyond ASCII, counted by UTF-8 continuation bytes; 0: if none is. foreign: a block with at least `foreign`
    characters is also suspicious if it has more than half as many continuation bytes; 0: off.
    """
    rows = []
    size, line, start, place = len(written), 0, 0, 0
    while start < size:
        block, more, chars = blocks[line], 0, 0
        while place < size and (written[place] != 10 or (line + 1 < len(blocks) and blocks[line + 1] == block)):
            char = written[place]
            if char == 10:
                line += 1
            more += char & 0xC0 == 0x80
            place += 1
        chars = place - start - more
        if (chars >= least and (more * share > chars if share else more == 0)) or (
            foreign and chars >= foreign and more * 2 > chars
        ):
            rows.append((block, start, place))
        place += 1
        start = place
        line += 1
    return rows
