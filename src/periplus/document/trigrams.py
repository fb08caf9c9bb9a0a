"""Counts the letters of a text by script, and looks its trigrams up: what its language is told by.

Compiled where there is a C compiler; trigrams.pxd gives the types.
"""

from __future__ import annotations

from array import array
from collections.abc import MutableSequence, Sequence

LANES = 4  # languages in eight bytes
AT_ONCE = 64  # trigrams whose costs of less than 1,024 are added in 16 bits


class Trigrams:
    """The tables of one script, all in steps of the log chance without its sign, row by row with a column for each
    language, and columns of zeros up to the next multiple of four.

    rows: uint16[width ** 3], where a trigram stands in threes; 0: nowhere.
    threes: uint16, -log P(third | both); row 0 stands for all that are nowhere.
    pairs: uint16[width * width, columns], -log P(second | first).
    unseen: uint16[width * width, columns], log P(third | second) - log P(third | both) of a third that was not seen
    after the two.
    """

    def __init__(self, width: int, languages: int, trigrams: int, packed: bytes) -> None:
        """width: how many symbols the script has. trigrams: how many of them the tables hold.

        packed, as quality/charset/train.py writes it: pairs and unseen, a byte each; the distances between
        trigrams, four bytes each, lowest first; by how much each trigram is likelier than its last pair, a signed byte.
        A table stands by languages there. Here by rows: one trigram is looked up at a time, and nearly each is one row
        in the cache in place of two.
        """
        table = width * width
        self.width = width
        self.languages = languages
        self.columns = (languages + LANES - 1) // LANES * LANES
        self.rows = array("H", bytes(2 * width * table))
        self.threes = array("H", bytes(2 * (trigrams + 1) * self.columns))
        self.pairs = array("H", bytes(2 * table * self.columns))
        self.unseen = array("H", bytes(2 * table * self.columns))
        self._unpack(trigrams, packed)
        self.wide_threes = memoryview(self.threes).cast("B").cast("Q")
        self.wide_pairs = memoryview(self.pairs).cast("B").cast("Q")
        self.wide_unseen = memoryview(self.unseen).cast("B").cast("Q")

    def _unpack(self, trigrams: int, packed: bytes) -> int:
        languages, columns, table = self.languages, self.columns, self.width * self.width
        for language in range(languages):
            for place in range(table):
                self.pairs[place * columns + language] = packed[language * table + place]
                self.unseen[place * columns + language] = packed[(languages + language) * table + place]
        start = 2 * languages * table
        changes = start + 4 * trigrams
        key = 0
        for row in range(1, trigrams + 1):
            key += packed[start] | packed[start + 1] << 8 | packed[start + 2] << 16 | packed[start + 3] << 24
            start += 4
            self.rows[key] = row
            for language in range(languages):
                change = packed[changes + language * trigrams + row - 1]
                pair = self.pairs[key % table * columns + language]
                self.threes[row * columns + language] = pair - change + (256 if change > 127 else 0)
        return trigrams

    def add(self, codes: Sequence[int], symbols: Sequence[int], least: int, totals: MutableSequence[int]) -> int:
        """Adds the costs of each trigram that ends in a letter to the totals of the languages.

        codes: UTF-16 units, as uint16. symbols: of each of 65,536 units, as uint8; letters are those from `least` on.
        totals: int32, in the steps of the tables. Returns the number of trigrams.
        """
        width, words = self.width, self.columns // LANES
        buffer = memoryview(bytearray(8 * words))
        sums, lanes = buffer.cast("Q"), buffer.cast("H")  # four languages in each of the sums
        count = first = second = 0
        for place in range(len(codes)):
            third = symbols[codes[place]]
            if place > 1 and third >= least:
                count += 1
                before = first * width + second
                row = self.rows[before * width + third]
                if row:
                    row *= words
                    for word in range(words):
                        sums[word] += self.wide_threes[row + word]
                else:
                    start, row = (second * width + third) * words, before * words
                    for word in range(words):
                        sums[word] += self.wide_pairs[start + word] + self.wide_unseen[row + word]
                if count % AT_ONCE == 0:
                    self._empty(sums, lanes, totals)
            first, second = second, third
        self._empty(sums, lanes, totals)
        return count

    def _empty(self, sums: memoryview[int], lanes: memoryview[int], totals: MutableSequence[int]) -> int:
        """Adds the sums to the totals, and begins them anew. lanes: the same bytes, a number for each language."""
        for language in range(self.languages):
            totals[language] += lanes[language]
        for word in range(len(sums)):
            sums[word] = 0
        return 0


def count_units(codes: Sequence[int], places: Sequence[int], counts: MutableSequence[int]) -> int:
    """Adds to the counts how many units stand in each place, and returns how many there are.

    codes: UTF-16 units, as uint16. places: of each of 65,536 units, as uint8. counts: int32.
    """
    for place in range(len(codes)):
        counts[places[codes[place]]] += 1
    return len(codes)
