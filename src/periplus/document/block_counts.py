"""Counts the characters of a page's blocks by class, and digests their texts and words: what tells content from menus.

Compiled where there is a C compiler; block_counts.pxd gives the types.
"""

from __future__ import annotations

CLASSES = 16
"""At most so many classes of characters."""
WORD = 16
"""Added to the class of a character that is part of a word."""
COLUMNS = CLASSES + 3
FIRST, LAST, WORDS = CLASSES, CLASSES + 1, CLASSES + 2
"""Columns behind the classes: of the first and of the last character the class; how many words there are so far."""
COMPARED = 64  # words of a block that are compared with one another: more are for a set

_ASTRAL = 0x10000
_LINE_FEED, _ZERO = 0x0A, 0x30
_START, _PRIME = 0xCBF29CE484222325, 0x100000001B3  # FNV-1a of 64 bits, a character in place of a byte
_BITS = 0xFFFFFFFFFFFFFFFF


class BlockCounter:
    """What is known of characters."""

    def __init__(self, classes: memoryview[int], lower: memoryview[int], digit: int) -> None:
        """classes: of each of 65,536 characters, as uint8; what is beyond is as the last one. lower: its small letter,
        as uint16; of a line feed the blank. digit: the class of digits.
        """
        self.classes = classes
        self.lower = lower
        self.digit = digit

    def read(
        self,
        codes: memoryview[int],
        lines: memoryview[int],
        counts: memoryview[int],
        digests: memoryview[int],
        words: memoryview[int],
    ) -> int:
        """Fills in what is asked of each block, and returns how many words there are.

        codes: `Blocks.text`, a line feed and `Blocks.apart`, as uint32. lines: of each block, as int32: of its text
        beyond the first; -1: it is one of those apart. counts: COLUMNS int32 a block, zeros. digests: two uint64 a
        block: of its text with small letters and each number as 0, and of its text as it is. words: room for a uint64
        for each word, a digest in small letters; half of the characters and one for each block are enough.
        """
        columns, first, last, classes, part_of_word = COLUMNS, FIRST, LAST, CLASSES - 1, WORD  # as numbers of C
        start, prime, bits, zero, line_feed, astral = _START, _PRIME, _BITS, _ZERO, _LINE_FEED, _ASTRAL
        own = number = 0
        apart = end_of_own(codes, lines)
        for block in range(len(lines)):
            left, row = lines[block], block * columns
            place = own
            if left < 0:
                left, place = 0, apart
            begin, folded, text, word, before, kind = place, start, start, 0, 0, 0
            while place < len(codes):
                code = codes[place]
                place += 1
                if code == line_feed:
                    if left == 0:
                        break
                    left -= 1
                kind, small = self.classes[code if code < astral else astral - 1], code
                if code < astral:
                    small = self.lower[code]
                text = ((text ^ code) * prime) & bits
                if kind & part_of_word:
                    word = (((word or start) ^ small) * prime) & bits
                elif word:
                    words[number] = word
                    number += 1
                    word = 0
                kind &= classes
                if place == begin + 1:
                    counts[row + first] = kind
                counts[row + kind] += 1
                if kind == self.digit:
                    small = zero
                if small != zero or before != zero:
                    folded = ((folded ^ small) * prime) & bits
                before = small
            if word:
                words[number] = word
                number += 1
            counts[row + last], counts[row + last + 1] = kind, number
            digests[2 * block], digests[2 * block + 1] = folded, text
            if lines[block] < 0:
                apart = place
            else:
                own = place
        return number


def end_of_own(codes: memoryview[int], lines: memoryview[int]) -> int:
    """Where the texts begin that are apart: behind all lines of the others."""
    left, place, line_feed = 0, 0, _LINE_FEED
    for block in range(len(lines)):
        left += lines[block] + 1
    left = max(left, 1)  # the line feed between them is there without any, too
    while left and place < len(codes):
        left -= codes[place] == line_feed
        place += 1
    return place


def shared_words(
    words: memoryview[int],
    ends: memoryview[int],
    title: int,
    brief: memoryview[int],
    table: memoryview[int],
    shared: memoryview[int],
) -> int:
    """Counts for each brief block the different words that the title has too, and its different words.

    words: of the blocks, as of `BlockCounter.read`. ends: of each block, int32: how many of the words there are with
    its own. title: the number of its block. brief: of each block, uint8. table: zeros, uint64, twice a power of two
    that is above twice the title's words. shared: two int32 a block, zeros: the first of the two counts, and where it
    is not zero the second; -1 for a block with more than COMPARED words. Returns the title's different words.
    """
    size = len(table) >> 1
    count, most = 0, COMPARED
    for number in range(ends[title - 1] if title else 0, ends[title]):
        word = words[number]
        slot = word & (size - 1)
        while table[slot] != 0 and table[slot] != word:
            slot = (slot + 1) & (size - 1)
        count += table[slot] == 0
        table[slot] = word
    for block in range(len(ends)):
        begin, end = ends[block - 1] if block else 0, ends[block]
        if not brief[block]:
            continue
        common, mark = 0, block + 1
        for number in range(begin, end):
            word = words[number]
            slot = word & (size - 1)
            while table[slot] != 0 and table[slot] != word:
                slot = (slot + 1) & (size - 1)
            if table[slot] == word and table[size + slot] != mark:
                table[size + slot] = mark
                common += 1
        if common:
            shared[2 * block] = common
            shared[2 * block + 1] = different(words, begin, end) if end - begin <= most else -1
    return count


def different(words: memoryview[int], begin: int, end: int) -> int:
    """How many of these words differ."""
    count = 0
    for number in range(begin, end):
        other = begin
        while words[other] != words[number]:
            other += 1
        count += other == number
    return count
