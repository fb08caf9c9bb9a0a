"""Counts the letters of a text by script, and looks its trigrams up: what its language is told by.

Compiled where there is a C compiler; trigrams.pxd gives the types.
"""

from __future__ import annotations

from array import array
from collections.abc import MutableSequence, Sequence

LANES = 4  # costs of two bytes in the eight that are added at once
MOST_ADDED = 128  # rows of at most 2 * 255 each, before two bytes are full


class Trigrams:
    """The tables of one script, row by row with a cost for each language: the negated log chance, in steps.

    rows: uint16[width ** 3], where a trigram stands in threes; 0: nowhere.
    threes: uint16, -log P(third | both); row 0 stands for all that are nowhere.
    pairs: uint16[width * width, languages], -log P(second | first).
    unseen: uint16[width * width, languages], log P(third | second) - log P(third | both) of a third that was not seen
    after the two.
    columns: of each row, the languages and zeros up to a multiple of four; the three tables are also there by eight
    bytes, so that the costs in four languages are added at once.
    """

    def __init__(self, width: int, languages: int, trigrams: int, packed: bytes) -> None:
        """width: how many symbols the script has. trigrams: how many of them the tables hold.

        packed, as quality/charset/train.py writes it: pairs and unseen, a byte each; the distances between trigrams,
        four bytes each, lowest first; by how much each trigram is likelier than its last pair, a signed byte.
        A table stands by languages there. Here by rows: one trigram is looked up at a time, and nearly each is one row
        in the cache in place of two.
        """
        table = width * width
        self.width = width
        self.languages = languages
        self.words = (languages + LANES - 1) // LANES
        self.columns = self.words * LANES
        self.rows = array("H", bytes(2 * width * table))
        self.threes, self.three_words = _costs(trigrams + 1, self.words)
        self.pairs, self.pair_words = _costs(table, self.words)
        self.unseen, self.unseen_words = _costs(table, self.words)
        self._unpack(trigrams, packed)

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
                self.threes[row * columns + language] = max(0, pair - change + (256 if change > 127 else 0))
        return trigrams

    def add(self, codes: Sequence[int], symbols: Sequence[int], least: int, totals: MutableSequence[int]) -> int:
        """Adds the chances of each trigram that ends in a letter to the totals of the languages.

        codes: UTF-16 units, as uint16. symbols: of each of 65,536 units, as uint8; letters are those from `least` on.
        totals: int32, in the steps of the tables. Returns the number of trigrams.
        """
        words, width = self.words, self.width
        costs, sums = _costs(1, words)
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
                        sums[word] += self.three_words[row + word]
                else:
                    start, row = (second * width + third) * words, before * words
                    for word in range(words):
                        sums[word] += self.pair_words[start + word] + self.unseen_words[row + word]
                if count % MOST_ADDED == 0:
                    self._settle(costs, totals)
            first, second = second, third
        self._settle(costs, totals)
        return count

    def _settle(self, costs: memoryview, totals: MutableSequence[int]) -> int:
        """Takes the sums from the totals, and begins again."""
        for language in range(self.languages):
            totals[language] -= costs[language]
            costs[language] = 0
        return 0


def _costs(rows: int, words: int) -> tuple[memoryview, memoryview]:
    """A table of so many rows: its costs, and the same memory by eight bytes."""
    cells = memoryview(bytearray(8 * rows * words))
    return cells.cast("H"), cells.cast("Q")


def count_units(codes: Sequence[int], places: Sequence[int], counts: MutableSequence[int]) -> int:
    """Adds to the counts how many units stand in each place, and returns how many there are.

    codes: UTF-16 units, as uint16. places: of each of 65,536 units, as uint8. counts: int32.
    """
    for place in range(len(codes)):
        counts[places[codes[place]]] += 1
    return len(codes)
