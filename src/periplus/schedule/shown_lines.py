"""Remembers which lines a host has shown, by 32-bit keys.

Compiled where there is a C compiler; shown_lines.pxd gives the types.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

NEWLINE = 10
PLAIN, DIGIT, ENDING = range(3)
KINDS = bytes({NEWLINE: ENDING}.get(code, DIGIT if code in b"0123456789" else PLAIN) for code in range(256))
IN_WORD = bytes(chr(code).isalnum() for code in range(128))  # whether a character of ASCII stands in a word
FREE = 0  # a slot without a key; the one key of this value is held as the next one
MASK_32, MASK_64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
# of the slots: Python's own hash is another one in each process, so nobody can prepare keys that collide
FACTOR = hash("lines") & MASK_64 | 1
SMALLEST_BITS = 8
PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393  # of XXH32
ROUND_1, ROUND_2, ROUND_4 = (PRIME_1 + PRIME_2) & MASK_32, PRIME_2, -PRIME_1 & MASK_32


class KeySet:
    """Keys of 32 bits, in a table that is never more than half full."""

    def __init__(self) -> None:
        self.count = 0
        self.bits = SMALLEST_BITS
        self.slots = memoryview(bytearray(4 << self.bits)).cast("I")

    def has(self, key: int) -> bool:
        """Whether the key is in the set."""
        return self.slots[self._place(self.slots, key or 1)] != FREE

    def add(self, key: int) -> bool:
        """Adds the key. False: it was in the set."""
        key = key or 1
        place = self._place(self.slots, key)
        if self.slots[place] != FREE:
            return False
        self.slots[place] = key
        self.count += 1
        if self.count >> (self.bits - 1):
            self._grow()
        return True

    def _place(self, slots: Sequence[int], key: int) -> int:
        """Where the key stands, or would stand."""
        most = (1 << self.bits) - 1
        place = (key * FACTOR & MASK_64) >> (64 - self.bits)
        while slots[place] != FREE and slots[place] != key:
            place = (place + 1) & most
        return place

    def _grow(self) -> int:
        former, self.bits = self.slots, self.bits + 1
        slots = memoryview(bytearray(4 << self.bits)).cast("I")
        for at in range(len(former)):
            if former[at] != FREE:
                slots[self._place(slots, former[at])] = former[at]
        self.slots = slots
        return 0


class LineMemory:
    """Keys of lines that a host has shown, in order; those of the last `generation` to twice as many are in memory.

    Which these are follows from the sequence of keys alone, so whoever is given it again has the same.
    """

    def __init__(self, generation: int, first: int, keys: Sequence[int]) -> None:
        """keys: the latest of the sequence, those of number `first` and on."""
        self.generation = generation
        self.count = first
        self.young = KeySet()
        self.old = KeySet()
        self.new = array("I")
        self.start = 0  # of the next line, while lines are read
        for at in range(len(keys)):
            self._add(keys[at])

    def _add(self, key: int) -> int:
        self.young.add(key)
        self.count += 1
        if self.count % self.generation == 0:
            self.old, self.young = self.young, KeySet()
        return 0

    def new_lines(self, written: bytes, kind: int, most: int, with_digits: bool) -> bytes:
        """Those lines that are not in memory, in order, each ended by a line feed. Remembers all of them.

        written: lines in UTF-8, of which `most` are read. kind: a byte before each line, for those that are compared
        with their own kind only; negative: none. with_digits: whether words with a digit of ASCII count.
        """
        chars, size, shown, self.start = written, len(written), 0, 0
        output = memoryview(bytearray(size + 2 * written.count(b"\n") + 2))
        for _ in range(most):
            begin = end = shown
            if kind >= 0:
                output[begin] = kind
                end += 1
            end = self._copy_line(chars, output, end, with_digits)
            key = key_of(output, begin, end)
            if not self.young.has(key):
                if not self.old.has(key):
                    output[end] = NEWLINE
                    shown = end + 1
                self._add(key)
                self.new.append(key)
            if self.start > size:
                break
        return bytes(output[:shown])

    def _copy_line(self, chars: Sequence[int], output: memoryview, end: int, with_digits: bool) -> int:
        """Appends the line that begins at `start` to the output, and goes to the next one. Returns where it ends."""
        start, size, begin = self.start, len(chars), end
        left_out = ENDING if with_digits else DIGIT  # and kinds after it
        while start < size:
            kind = KINDS[chars[start]]
            if kind < left_out:
                output[end] = chars[start]
                end += 1
                start += 1
            elif kind == ENDING:
                break
            else:
                end = before_word(output, begin, end)
                start = after_word(chars, start, size)
        self.start = start + 1
        return end

    def take_new(self) -> array[int]:
        """The keys added since last asked."""
        new, self.new = self.new, array("I")
        return new


def before_word(written: Sequence[int], begin: int, end: int) -> int:
    """Where the word begins that a text ends with; its end, if it ends with none."""
    while end > begin:
        lead = end - 1
        if written[lead] < 0x80:
            if not IN_WORD[written[lead]]:
                break
        else:
            while lead > begin and written[lead] & 0xC0 == 0x80:
                lead -= 1
            if not is_alphanumeric(bytes(written[lead:end])):
                break
        end = lead
    return end


def after_word(written: Sequence[int], start: int, size: int) -> int:
    """Where the word ends that goes on from here."""
    while start < size:
        char = written[start]
        if char < 0x80:
            if not IN_WORD[char]:
                break
            start += 1
        else:
            width = 2 if char < 0xE0 else 3 if char < 0xF0 else 4
            if not is_alphanumeric(bytes(written[start : start + width])):
                break
            start += width
    return start


def is_alphanumeric(char: bytes) -> bool:
    """Of one character in UTF-8."""
    return char.decode("utf-8", "replace").isalnum()


def key_of(written: Sequence[int], start: int, end: int) -> int:
    """XXH32 of the bytes from start to end, seed 0. Source: the xxHash specification, section "XXH32 algorithm"."""
    size = end - start
    if size >= 16:
        first, second, third, fourth = ROUND_1, ROUND_2, 0, ROUND_4
        while end - start >= 16:
            first = step(first, word_at(written, start))
            second = step(second, word_at(written, start + 4))
            third = step(third, word_at(written, start + 8))
            fourth = step(fourth, word_at(written, start + 12))
            start += 16
        key = (turned(first, 1) + turned(second, 7) + turned(third, 12) + turned(fourth, 18)) & MASK_32
    else:
        key = PRIME_5
    key = (key + size) & MASK_32
    while end - start >= 4:
        key = turned((key + word_at(written, start) * PRIME_3) & MASK_32, 17) * PRIME_4 & MASK_32
        start += 4
    while start < end:
        key = turned((key + written[start] * PRIME_5) & MASK_32, 11) * PRIME_1 & MASK_32
        start += 1
    key = (key ^ key >> 15) * PRIME_2 & MASK_32
    key = (key ^ key >> 13) * PRIME_3 & MASK_32
    return key ^ key >> 16


def step(value: int, word: int) -> int:
    """One lane of XXH32 goes on by a word."""
    return turned((value + word * PRIME_2) & MASK_32, 13) * PRIME_1 & MASK_32


def turned(value: int, count: int) -> int:
    """32 bits rotated to the left."""
    return (value << count | value >> (32 - count)) & MASK_32


def word_at(written: Sequence[int], at: int) -> int:
    """Four bytes, the lowest first."""
    highest = written[at + 3]
    return written[at] | written[at + 1] << 8 | written[at + 2] << 16 | highest << 24
