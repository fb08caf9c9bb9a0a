"""Folds case, diacritics and white space of texts in UTF-8, and finds blocks with unlikely letters.

Compiled where there is a C compiler; folding.pxd gives the types. Texts are valid UTF-8, but for lone surrogates.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

HIGH_BITS, LOW_BITS, LINE_FEEDS = 0x8080808080808080, 0x0101010101010101, 0x0A0A0A0A0A0A0A0A
# What makes the high bit of a byte of ASCII where it is from A on, and from the sign after Z on
FROM_A, AFTER_Z = 0x3F3F3F3F3F3F3F3F, 0x2525252525252525
LOWER = bytes(range(256)).lower()
REMEMBERED = 0x10000  # code points: beyond are hardly any letters with a case or a mark
WIDEST = 8  # bytes that stand for one of them, and are remembered
LONGER = WIDEST + 1
UNASKED = LONGER + 1


class Folding:
    """Replaces characters one by one, and remembers by what."""

    def __init__(self, replaced: Callable[[str], str]) -> None:
        """replaced: what stands for a character outside ASCII; asked once for each in the basic plane."""
        self.replaced = replaced
        self.sizes = bytearray([UNASKED]) * REMEMBERED
        self.pieces = bytearray(REMEMBERED * WIDEST)

    def fold(self, written: bytes) -> bytes:
        """The text with each character replaced; letters of ASCII in lower case."""
        size, room = len(written), len(written) + 7 & ~7
        words = memoryview(written)[: size & ~7].cast("Q")
        buffer = bytearray(room)
        output, written_words = memoryview(buffer), memoryview(buffer).cast("Q")
        start = end = 0
        while start < size:
            char = written[start]
            if char < 0x80:
                output[end] = LOWER[char]
                start += 1
                end += 1
                if (start | end) & 7 == 0:  # in step: eight letters at once
                    word, other, last = start >> 3, end >> 3, size >> 3
                    while word < last:
                        value = words[word]
                        if value & HIGH_BITS:
                            break
                        written_words[other] = value | ((value + FROM_A) & ~(value + AFTER_Z) & HIGH_BITS) >> 2
                        word += 1
                        other += 1
                    start, end = word << 3, other << 3
                continue
            width = 2 if char < 0xE0 else 3 if char < 0xF0 else 4
            code = REMEMBERED
            if width == 2:
                code = (char & 0x1F) << 6 | (written[start + 1] & 0x3F)
            elif width == 3:
                code = (char & 0x0F) << 12 | (written[start + 1] & 0x3F) << 6 | (written[start + 2] & 0x3F)
            count = self.sizes[code] if code < REMEMBERED else LONGER
            if count > WIDEST:
                piece = self.ask(bytes(written[start : start + width]), code if count == UNASKED else REMEMBERED)
                count = len(piece)
            else:
                piece = b""
            start += width
            if end + count + size - start > room:  # what is replaced may grow
                room = 2 * (end + count + size - start) + 7 & ~7
                buffer = bytearray(room)
                larger = memoryview(buffer)
                larger[:end] = output[:end]
                output, written_words = larger, memoryview(buffer).cast("Q")
            for place in range(count):
                output[end + place] = piece[place] if piece else self.pieces[code * WIDEST + place]
            end += count
        return bytes(output[:end])

    def ask(self, char: bytes, code: int) -> bytes:
        """What stands for a character, remembered where it is short and its code point a low one."""
        piece = self.replaced(char.decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")
        if code < REMEMBERED:
            self.sizes[code] = min(len(piece), LONGER)
            if len(piece) <= WIDEST:
                for place in range(len(piece)):
                    self.pieces[code * WIDEST + place] = piece[place]
        return piece


def width_of_space(written: Sequence[int], place: int) -> int:
    """How many bytes the white space takes that begins here; 0: none does.

    White space as `str.isspace` has it: what `str.split` splits at.
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


def line_end(written: Sequence[int], words: Sequence[int], place: int) -> int:
    """Where the line ends that goes on there. words: the text by eights of bytes, in which none can be."""
    size, count = len(written), len(words)
    while place < size:
        if place & 7 == 0:
            word = place >> 3
            while word < count:
                value = words[word] ^ LINE_FEEDS
                if (value - LOW_BITS) & ~value & HIGH_BITS:
                    break
                word += 1
            place = word << 3
            if place >= size:
                break
        if written[place] == 10:
            return place
        place += 1
    return size


def going_on(written: Sequence[int], words: Sequence[int], place: int, end: int) -> int:
    """How many bytes of characters beyond ASCII stand there, but for the first of each."""
    more, count = 0, len(words)
    while place < end:
        if place & 7 == 0:
            word = place >> 3
            while word < count and not words[word] & HIGH_BITS:
                word += 1
            place = word << 3
            if place >= end:
                break
        more += written[place] & 0xC0 == 0x80
        place += 1
    return more


def line_blocks(kinds: Sequence[int], members: Sequence[int], few: Sequence[int], many: Sequence[int]) -> array[int]:
    """Which block each line of a text belongs to, int32.

    kinds: of all blocks, uint8. members: uint8[256], not 0 for the kinds whose blocks the text holds. few: uint8, how
    many lines each block has beyond its first; many: the same as int32; one of them is empty, or both: none has any.
    """
    size, narrow, wide, count = len(kinds), len(few), len(many), 0
    for block in range(size):
        if members[kinds[block]]:
            count += 1 + (few[block] if block < narrow else many[block] if block < wide else 0)
    numbers = array("i", bytes(4 * count))
    place = 0
    for block in range(size):
        if members[kinds[block]]:
            more = few[block] if block < narrow else many[block] if block < wide else 0
            while more >= 0:
                numbers[place] = block
                place += 1
                more -= 1
    return numbers


def fold_lines(written: bytes, blocks: Sequence[int], kinds: Sequence[int], kind: int) -> bytes:
    """The text with the white space of one kind of blocks folded: one space for each run, none at the ends of lines, no
    empty lines.

    blocks: of each line, as `line_blocks` gives them.
    """
    size, count = len(written), len(blocks)
    text, output = memoryview(written), memoryview(bytearray(size + 1))
    words = memoryview(written)[: size & ~7].cast("Q")
    start = end = line = 0
    while line < count:
        begin = start
        while line < count and kinds[blocks[line]] != kind:
            start = line_end(text, words, start) + 1
            line += 1
        if start > begin:  # lines that stay
            stop = min(start, size)
            output[end : end + stop - begin] = text[begin:stop]
            end += stop - begin
            if stop < start:
                output[end] = 10
                end += 1
            continue
        begin, is_apart = end, False
        while start < size:
            char = written[start]
            if char == 10:
                break
            width = width_of_space(text, start) if char <= 32 or char >= 0xC2 else 0
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
        line += 1
    return bytes(output[: max(0, end - 1)])


def unlikely_blocks(written: bytes, blocks: Sequence[int], least: int, share: int) -> list[tuple[int, int, int]]:
    """(block, start, end) of the blocks with at least so many characters and unlikely ones; where they stand, in bytes.

    blocks: of each line, as `line_blocks` gives them. share: unlikely are more than one in so many beyond ASCII, by the
    bytes that UTF-8 takes for them beyond their first; 0: none beyond ASCII at all.
    """
    rows = []
    size, count, line, start = len(written), len(blocks), 0, 0
    text = memoryview(written)
    words = memoryview(written)[: size & ~7].cast("Q")
    while start < size:
        block = blocks[line]
        place = line_end(text, words, start)
        line += 1
        while line < count and blocks[line] == block and place < size:
            place = line_end(text, words, place + 1)
            line += 1
        if place - start >= least:
            more = going_on(text, words, start, place)
            if place - start - more >= least and (more * share > place - start - more if share else more == 0):
                rows.append((block, start, place))
        start = place + 1
    return rows
