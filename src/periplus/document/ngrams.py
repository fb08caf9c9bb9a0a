"""Counts the letters of a text by script, and sums the weights of its n-grams, for language detection.

Compiled if there is a C compiler; ngrams.pxd gives the types.
"""

from __future__ import annotations

from array import array
from collections.abc import MutableSequence, Sequence

FACTOR = 0x9E3779B1
MASK = 0xFFFFFFFF  # a literal would be a Python object in C too
LANES = 4  # 16-bit sums in the 64 bits that are added at once
BIAS = 5 * 128  # makes every sum of five weights positive
MOST_ROW_SUMS = 50  # rows; twice as many still fit in 16 bits
SPACE = 32  # the symbol of all non-letters


class Ngrams:
    """The weights of the n-grams of one script, including all their suffixes: a row per n-gram, a column per class.

    slots: uint16[a power of two], hash table with open addressing: the row of a key; 0: none. keys: uint32[rows + 1];
    row 0 means none. weights: uint16[rows + 1, columns], the sum over the n-gram and all its suffixes, plus BIAS: so
    only the longest n-gram that ends at each place has to be added. columns: the classes, padded with zeros to a
    multiple of four; the table is also viewed as 64-bit words, to add four columns at once.
    """

    def __init__(self, longest: int, classes: int, rows: int, packed: bytes) -> None:
        """longest: letters of the longest n-gram. rows: at most 65,535.

        packed, as written by quality/charset/train_languages.py: length of each n-gram in symbols, a byte each; the
        first symbol of each, two bytes, little-endian; the weights of the first class for all rows, then of the next.
        Each n-gram follows the one without its first symbol, with only extensions of that suffix in between.
        """
        size = 1
        while size < 4 * rows:
            size *= 2
        self.longest = longest
        self.classes = classes
        self.last_slot = size - 1
        self.slots = array("H", bytes(2 * size))
        self.keys = array("I", bytes(4 * (rows + 1)))
        self.words = (classes + LANES - 1) // LANES
        self.columns = self.words * LANES
        self.weights, self.weight_words = _cells(rows + 1, self.words)
        self._unpack(rows, packed)

    def _unpack(self, rows: int, packed: bytes) -> int:
        factor, mask, bias = FACTOR, MASK, BIAS
        path = [0] * 8  # the row of the present n-gram's suffix of each length
        for row in range(1, rows + 1):
            length = packed[row - 1] & 7
            symbol = packed[rows + 2 * row - 2] | packed[rows + 2 * row - 1] << 8
            path[length] = row
            end = path[length - 1] if length > 1 else 0
            key = (self.keys[end] ^ symbol) * factor & mask
            key ^= key >> 15
            self.keys[row] = key
            slot = key & self.last_slot
            while self.slots[slot]:
                slot = (slot + 1) & self.last_slot
            self.slots[slot] = row
            for column in range(self.classes):
                weight = packed[3 * rows + column * rows + row - 1]
                total = self.weights[end * self.columns + column] if end else bias
                self.weights[row * self.columns + column] = total + weight - (256 if weight > 127 else 0)
        return rows

    def add(self, codes: Sequence[int], symbols: Sequence[int], totals: MutableSequence[int]) -> int:
        """Adds the weights of the n-grams of a text to the totals of the classes.

        codes: UTF-16 units, as uint16. symbols: uint16[65536], the symbol of each unit; SPACE for non-letters, of which
        a run counts once. totals: int32. Returns the number of symbols.
        """
        space, factor, mask, most_added = SPACE, FACTOR, MASK, MOST_ROW_SUMS
        last_slot, words, added, (cells, sums) = self.last_slot, self.words, 0, _cells(1, self.words)
        count, recent = 0, [0] * 8  # ring buffer of the last symbols
        for place in range(len(codes)):
            symbol = symbols[codes[place]]
            if symbol == space and (count == 0 or recent[(count - 1) & 7] == space):
                continue
            recent[count & 7] = symbol
            count += 1
            key = longest = 0
            most = min(self.longest, count)
            for back in range(1, most + 1):
                key = (key ^ recent[(count - back) & 7]) * factor & mask
                key ^= key >> 15
                slot = key & last_slot
                row = self.slots[slot]
                while row and self.keys[row] != key:
                    slot = (slot + 1) & last_slot
                    row = self.slots[slot]
                if not row:
                    break
                longest = row
            if longest:
                start = longest * words
                for word in range(words):
                    sums[word] += self.weight_words[start + word]
                added += 1
                if added == most_added:
                    added = self._settle(added, cells, totals)
        self._settle(added, cells, totals)
        return count

    def _settle(self, added: int, cells: memoryview, totals: MutableSequence[int]) -> int:
        """Moves the sums of `added` rows to the totals and clears them."""
        bias = BIAS
        for column in range(self.classes):
            totals[column] += cells[column] - added * bias
            cells[column] = 0
        return 0


def _cells(rows: int, words: int) -> tuple[memoryview, memoryview]:
    """A table viewed as 16-bit and as 64-bit cells."""
    cells = memoryview(bytearray(8 * rows * words))
    return cells.cast("H"), cells.cast("Q")


def count_units(codes: Sequence[int], places: Sequence[int], counts: MutableSequence[int]) -> int:
    """Counts the units in each place; returns the number of units.

    codes: UTF-16 units, as uint16. places: uint8[65536], the place of each unit. counts: int32.
    """
    for place in range(len(codes)):
        counts[places[codes[place]]] += 1
    return len(codes)
