"""Trigram tables of a script, unpacked, for encoding detection.

Compiled if there is a C compiler; trigrams.pxd gives the types.
"""

from __future__ import annotations

from array import array


class Trigrams:
    """The tables of one script, in steps of log-probability, row-major with a column per language.

    rows: uint16[width ** 3], row of a trigram in threes; 0: none. threes: int16, log P(third | both); row 0 is for all
    trigrams without a row. pairs: int16[width * width, languages], log P(second | first). unseen: int16[width * width,
    languages], log P(third | both) - log P(third | second) of a third symbol that was not seen after the two.
    """

    def __init__(self, width: int, languages: int, trigrams: int, packed: bytes) -> None:
        """width: number of symbols of the script. trigrams: number of trigrams in the tables.

        packed, as written by quality/charset/train.py: pairs and unseen negated, a byte each; the distances between
        trigrams, four bytes each, little-endian; the gain in log-probability of each trigram over its last pair, a
        signed byte. Packed tables are ordered by language; here rows come first, so that a lookup usually touches one
        cache line instead of two.
        """
        table = width * width
        self.width = width
        self.languages = languages
        self.rows = array("H", bytes(2 * width * table))
        self.threes = array("h", bytes(2 * (trigrams + 1) * languages))
        self.pairs = array("h", bytes(2 * table * languages))
        self.unseen = array("h", bytes(2 * table * languages))
        self._unpack(trigrams, packed)

    def _unpack(self, trigrams: int, packed: bytes) -> int:
        languages, table = self.languages, self.width * self.width
        for language in range(languages):
            for place in range(table):
                self.pairs[place * languages + language] = -packed[language * table + place]
                self.unseen[place * languages + language] = -packed[(languages + language) * table + place]
        start = 2 * languages * table
        changes = start + 4 * trigrams
        key = 0
        for row in range(1, trigrams + 1):
            key += packed[start] | packed[start + 1] << 8 | packed[start + 2] << 16 | packed[start + 3] << 24
            start += 4
            self.rows[key] = row
            for language in range(languages):
                change = packed[changes + language * trigrams + row - 1]
                pair = self.pairs[key % table * languages + language]
                self.threes[row * languages + language] = pair + change - (256 if change > 127 else 0)
        return trigrams
