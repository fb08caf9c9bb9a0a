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

    keys: uint32[a power of two], hash table with open addressing; 0: a free slot. rows: uint16, the row of the key in
    each slot. weights: uint16[rows + 1, columns], the sum over the n-gram and all its suffixes, plus BIAS: so only the
    longest n-gram that ends at each place has to be added. columns: the classes, padded with zeros to a
    multiple of four; the table is also viewed as 64-bit words, to add four columns at once.
    """

    def __init__(self, longest: int, classes: int, rows: int, packed: bytes) -> None:
        """longest: letters of the longest n-gram, at most 7. rows: at most 65,535.

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
        self.keys = array("I", bytes(4 * size))
        self.rows = array("H", bytes(2 * size))
        self.words = (classes + LANES - 1) // LANES
        self.columns = self.words * LANES
        self.weights, self.weight_words = _cells(rows + 1, self.words)
        self.cells, self.sums = _cells(1, self.words)
        self._unpack(rows, packed)

    def _unpack(self, rows: int, packed: bytes) -> int:
        factor, mask, bias = FACTOR, MASK, BIAS
        path, keys = [0] * 8, [0] * 8  # row and key of the present n-gram's suffix of each length
        for row in range(1, rows + 1):
            length = packed[row - 1] & 7
            symbol = packed[rows + 2 * row - 2] | packed[rows + 2 * row - 1] << 8
            path[length] = row
            end = path[length - 1] if length > 1 else 0
            key = (keys[length - 1] ^ symbol) * factor & mask
            key ^= key >> 15
            keys[length] = key
            slot = key & self.last_slot
            while self.keys[slot]:
                slot = (slot + 1) & self.last_slot
            self.keys[slot], self.rows[slot] = key, row
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
        space, factor, mask, last_slot, longest = SPACE, FACTOR, MASK, self.last_slot, self.longest
        count, filled, most = 0, 0, MOST_ROW_SUMS * longest
        recent = [0] * 8  # ring buffer of the last symbols
        keys, stored, slots = [0] * 400, [0] * 400, [0] * 400  # of MOST_ROW_SUMS places; C wants a literal
        for place in range(len(codes)):
            symbol = symbols[codes[place]]
            if symbol == space and (count == 0 or recent[(count - 1) & 7] == space):
                continue
            recent[count & 7] = symbol
            count += 1
            key = 0
            for back in range(1, longest + 1):
                key = (key ^ recent[(count - back) & 7]) * factor & mask
                key ^= key >> 15
                keys[filled], slots[filled] = key, key & last_slot
                stored[filled] = self.keys[key & last_slot] if back <= count else 0
                filled += 1
            if filled == most:
                self._settle(keys, stored, slots, filled, totals)
                filled = 0
        self._settle(keys, stored, slots, filled, totals)
        return count

    def _settle(
        self,
        keys: MutableSequence[int],
        stored: MutableSequence[int],
        slots: MutableSequence[int],
        filled: int,
        totals: MutableSequence[int],
    ) -> int:
        """Adds the weights of the longest known n-gram at each place to the totals.

        keys, slots, stored: `longest` per place: the keys of its n-grams, their slots, and the keys in these slots.
        Each loop reads a single large table, without a branch that waits for it: so the loads from memory overlap.
        """
        longest, words, added, bias = self.longest, self.words, 0, BIAS
        for first in range(0, filled, longest):
            last = -1
            for at in range(first, first + longest):
                slot = slots[at]
                while stored[at] != keys[at] and stored[at]:
                    slot = (slot + 1) & self.last_slot
                    stored[at] = self.keys[slot]
                if not stored[at]:
                    break
                last = slot
            if last >= 0:
                slots[added] = last
                added += 1
        for at in range(added):
            slots[at] = self.rows[slots[at]] * words
        for word in range(words):
            total = 0
            for at in range(added):
                total += self.weight_words[slots[at] + word]
            self.sums[word] = total
        for column in range(self.classes):
            totals[column] += self.cells[column] - added * bias
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
