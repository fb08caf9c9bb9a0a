"""The tables of a script's trigrams, unpacked: what the encoding of a text is told by.

Compiled where there is a C compiler; trigrams.pxd gives the types.
"""

from __future__ import annotations

from array import array


class Trigrams:
    """The tables of one script, all in steps of the log chance, row by row with a column for each language.

    rows: uint16[width ** 3], where a trigram stands in threes; 0: nowhere.
    threes: int16, log P(third | both); row 0 stands for all that are nowhere.
    pairs: int16[width * width, languages], log P(second | first).
    unseen: int16[width * width, languages], log P(third | both) - log P(third | second) of a third that was not seen
    after the two.
    """

    def __init__(self, width: int, languages: int, trigrams: int, packed: bytes) -> None:
        """width: how many symbols the script has. trigrams: how many of them the tables hold.

        packed, as quality/charset/train.py writes it: pairs and unseen negated, a byte each; the distances between
        trigrams, four bytes each, lowest first; by how much each trigram is likelier than its last pair, a signed byte.
        A table stands by languages there. Here by rows: one trigram is looked up at a time, and nearly each is one row
        in the cache in place of two.
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
