"""Counts the letters of a text by script, and looks its trigrams up: what its language is told by.

Compiled where there is a C compiler; trigrams.pxd gives the types.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from math import isqrt


class Trigrams:
    """The tables of one script, a column for each of its languages; `language.Letters` says what they hold."""

    def __init__(
        self,
        languages: int,
        rows: Sequence[int],
        threes: Sequence[int],
        pairs: Sequence[int],
        unseen: Sequence[int],
    ) -> None:
        """languages: how many. The tables: row by row in one dimension, rows as uint16, the others as int16."""
        self.languages = languages
        self.rows = rows
        self.threes = threes
        self.pairs = pairs
        self.unseen = unseen
        self.width = isqrt(len(pairs) // languages)  # symbols of the script

    def add(self, codes: Sequence[int], symbols: Sequence[int], least: int, totals: MutableSequence[int]) -> int:
        """Adds the chances of each trigram that ends in a letter to the totals of the languages.

        codes: UTF-16 units, as uint16. symbols: of each of 65,536 units, as uint8; letters are those from `least` on.
        totals: int32, in the steps of the tables. Returns the number of trigrams.
        """
        languages, width = self.languages, self.width
        count = first = second = 0
        for place in range(len(codes)):
            third = symbols[codes[place]]
            if place > 1 and third >= least:
                count += 1
                before = first * width + second
                row = self.rows[before * width + third]
                if row:
                    row *= languages
                    for language in range(languages):
                        totals[language] += self.threes[row + language]
                else:
                    start, row = (second * width + third) * languages, before * languages
                    for language in range(languages):
                        totals[language] += self.pairs[start + language] + self.unseen[row + language]
            first, second = second, third
        return count


def count_units(codes: Sequence[int], places: Sequence[int], counts: MutableSequence[int]) -> int:
    """Adds to the counts how many units stand in each place, and returns how many there are.

    codes: UTF-16 units, as uint16. places: of each of 65,536 units, as uint8. counts: int32.
    """
    for place in range(len(codes)):
        counts[places[codes[place]]] += 1
    return len(codes)
