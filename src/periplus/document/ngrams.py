"""Counts the letters of a text by script, and adds up the weights of its n-grams: what its language is told by.

Compiled where there is a C compiler; ngrams.pxd gives the types.
"""

from __future__ import annotations

from array import array
from collections.abc import MutableSequence, Sequence

FACTOR = 0x9E3779B1
MASK = 0xFFFFFFFF  # as a literal it would be an object of Python's in C too
LANES = 4  # sums of two bytes in the eight that are added at once
BIAS = 5 * 128  # makes every sum of five weights positive
MOST_ADDED = 50  # rows of at most twice as much, before two bytes are full
SPACE = 32  # the symbol of all that is no letter


class Ngrams:
    """The weights of the n-grams of one script, with all that they end in: a row for each, a column for each class.

    slots: uint16[a power of two], the row of a key, by open addressing from its lowest bits; 0: none.
    keys: uint32[rows + 1]; row 0 stands for none. weights: uint16[rows + 1, columns], of the n-gram and of all that
    it ends in, summed, and BIAS: at each place of a text the longest one that ends there is enough. columns: the
    classes, and zeros up to a multiple of four; the table is also there by eight bytes, to add four at once.
    """

    def __init__(self, longest: int, classes: int, rows: int, packed: bytes) -> None:
        """longest: letters of the longest n-gram. rows: at most 65,535.

        packed, as quality/charset/train_languages.py writes it: how many symbols each n-gram has, a byte each; the
        first symbol of each, two bytes, the lower first; the weights of the first class for all rows, then of the next.
        Each n-gram stands after the one that lacks its first symbol, with none of other ends between.
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
        path = [0] * 8  # the row of each length that the present n-gram ends in
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

        codes: UTF-16 units, as uint16. symbols: of each of 65,536 units, as uint16; SPACE for all that is no letter,
        and a run of it is one. totals: int32. Returns the number of symbols.
        """
        space, factor, mask, most_added = SPACE, FACTOR, MASK, MOST_ADDED
        last_slot, words, added, (cells, sums) = self.last_slot, self.words, 0, _cells(1, self.words)
        count, recent = 0, [0] * 8  # a ring: the last symbols
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
        """Moves the sums of so many rows to the totals, and begins again."""
        bias = BIAS
        for column in range(self.classes):
            totals[column] += cells[column] - added * bias
            cells[column] = 0
        return 0


def _cells(rows: int, words: int) -> tuple[memoryview, memoryview]:
    """A table of so many rows by two bytes, and the same memory by eight."""
    cells = memoryview(bytearray(8 * rows * words))
    return cells.cast("H"), cells.cast("Q")


def count_units(codes: Sequence[int], places: Sequence[int], counts: MutableSequence[int]) -> int:
    """Adds to the counts how many units stand in each place, and returns how many there are.

    codes: UTF-16 units, as uint16. places: of each of 65,536 units, as uint8. counts: int32.
    """
    for place in range(len(codes)):
        counts[places[codes[place]]] += 1
    return len(codes)
