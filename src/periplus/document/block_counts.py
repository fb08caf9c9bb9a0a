"""Counts the characters of a page's blocks by class, and hashes their texts and words: input for content detection.

Compiled if there is a C compiler; block_counts.pxd gives the types.
"""

from __future__ import annotations

CLASSES = 16
"""Most classes of characters."""
WORD = 16
"""Flag on the class of a character that can be part of a word."""
COLUMNS = CLASSES + 3
FIRST, LAST, WORDS = CLASSES, CLASSES + 1, CLASSES + 2
"""Columns after the classes: class of the first character, class of the last, running number of words."""
PAIRWISE_WORDS = 64  # words of a block that are compared pairwise: above this a set is faster

_ASTRAL = 0x10000
_LINE_FEED, _ZERO = 0x0A, 0x30
_START, _PRIME = 0xCBF29CE484222325, 0x100000001B3  # FNV-1a of 64 bits, a character in place of a byte
_BITS = 0xFFFFFFFFFFFFFFFF


class BlockCounter:
    """Tables of character classes."""

    def __init__(self, classes: memoryview[int], lower: memoryview[int], digit: int) -> None:
        """classes: uint8[65536], later characters have the class of the last.

        lower: uint16[65536], lower-case letters; a line feed maps to a blank. digit: the class of digits.
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
        """Fills the output columns for each block; returns the number of words.

        codes: `Blocks.text`, a line feed and `Blocks.apart`, as uint32. lines: int32 per block: lines of its text
        beyond the first; -1: the text is in `apart`. counts: COLUMNS int32 per block, zeros. digests: two uint64 per
        block: of its text in lower case with each number as 0, and of its exact text. words: space for a uint64 hash of
        each lower-case word; half the characters plus one per block suffice.
        """
        # local copies, so that they are C numbers
        columns, first, last, classes, part_of_word = COLUMNS, FIRST, LAST, CLASSES - 1, WORD
        start, prime, bits, zero, line_feed, astral = _START, _PRIME, _BITS, _ZERO, _LINE_FEED, _ASTRAL
        own, number, apart = 0, 0, end_of_own(codes, lines)
        for block in range(len(lines)):
            left, row, place = lines[block], block * columns, own
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
    """Where the texts in `apart` begin: after all lines of the running text."""
    left, place, line_feed = 0, 0, _LINE_FEED
    for block in range(len(lines)):
        left += lines[block] + 1
    left = max(left, 1)  # the separating line feed exists even without lines
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
    """For each brief block, counts its distinct words, and those that are also in the title.

    words: of the blocks, as from `BlockCounter.read`. ends: int32 per block: running number of words including its own.
    title: index of its block. brief: uint8 per block. table: uint64 zeros, twice a power of two greater than twice the
    title's words. shared: two int32 per block, zeros: words in common, and, if not zero, distinct words; -1 for a block
    with more than PAIRWISE_WORDS words. Returns the number of distinct words in the title.
    """
    size = len(table) >> 1
    count, most = 0, PAIRWISE_WORDS
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
    """The number of distinct words."""
    count = 0
    for number in range(begin, end):
        other = begin
        while words[other] != words[number]:
            other += 1
        count += other == number
    return count
