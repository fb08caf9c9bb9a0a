"""Cuts ASCII text into terms, and remembers the term of each word: what an index is made of.

Compiled where there is a C compiler; term_table.pxd gives the types.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

STRANGE, BLANK, PART, CAPITAL = range(4)
"""Kinds of characters: of another script or with marks; what parts words; of a word; of a word, and large."""

_LINE_FEED, _SPACE, _PLUS, _SHARP = 0x0A, 0x20, 0x2B, 0x23
_START, _PRIME = 0xCBF29CE484222325, 0x100000001B3  # FNV-1a of 64 bits
_BITS = 0xFFFFFFFFFFFFFFFF
# four numbers a word: where it stands in the arena, followed by its term; the length of each; the page that had it last
_COLUMNS = 4
_LEAST_WORDS, _LEAST_BYTES = 1_024, 16_384


class TermTable:
    """The words of one language. A word is cut as `words.forms` cuts it."""

    def __init__(self, kinds: memoryview[int], stem: Callable[[str], str], most_chars: int, most_words: int) -> None:
        """kinds: of each character below len(kinds), as uint8; all beyond are STRANGE. stem: the term of a form in
        small letters. most_chars: longer words are cut. most_words: then all are forgotten.
        """
        self.kinds = kinds
        self.stem = stem
        self.most_chars = most_chars
        self.most_words = most_words
        self.letters = bytearray(most_chars)
        self.word = memoryview(self.letters)
        self.terms = memoryview(bytearray(_LEAST_BYTES))
        self.forms = memoryview(bytearray(_LEAST_BYTES))
        self.terms_end = self.forms_end = 0
        self.clear()

    def clear(self) -> None:
        """Forgets all words."""
        self.hashes = memoryview(array("Q", bytes(8 * _LEAST_WORDS)))
        self.rows = memoryview(array("i", bytes(4 * _COLUMNS * _LEAST_WORDS)))
        self.content = bytearray(_LEAST_BYTES)
        self.arena = memoryview(self.content)
        self.count = self.arena_end = 0

    def cut(self, codes: memoryview[int], begin: int, page: int) -> int:
        """Adds the terms of a text to what `take_terms` gives, and the words that the page had not to `take_forms`.

        codes: uint32. begin: where to begin. page: above 0, one more with each page; 0: no words are wanted. Returns
        where it stopped: at the beginning of a line with a strange character, else at the end.
        """
        line_feed, plus, sharp, strange, blank, capital = _LINE_FEED, _PLUS, _SHARP, STRANGE, BLANK, CAPITAL
        first, prime, bits, beyond, most = _START, _PRIME, _BITS, len(self.kinds), self.most_chars
        place, size = begin, len(codes)
        while place < size:
            end = place
            while end < size and codes[end] != line_feed:
                if codes[end] >= beyond or self.kinds[codes[end]] == strange:
                    return place
                end += 1
            while place < end:
                kind = self.kinds[codes[place]]
                if kind == blank:
                    place += 1
                    continue
                digest, length = first, 0
                while kind != blank:
                    if length < most:
                        code = codes[place] + 32 if kind == capital else codes[place]
                        self.word[length] = code
                        digest = ((digest ^ code) * prime) & bits
                        length += 1
                    place += 1
                    kind = self.kinds[codes[place]] if place < end else blank
                signs, sign = 0, plus  # c++, c#
                if place + 1 < end and codes[place] == plus and codes[place + 1] == plus:
                    signs = 2
                elif place < end and codes[place] == sharp:
                    signs, sign = 1, sharp
                    if place + 1 < end and self.kinds[codes[place + 1]] != blank:
                        signs = 0
                place += signs
                while signs and length < most:
                    self.word[length] = sign
                    digest = ((digest ^ sign) * prime) & bits
                    length += 1
                    signs -= 1
                self.put(digest or 1, length, page)
            place += 1
        return size

    def put(self, digest: int, length: int, page: int) -> int:
        """Adds one word and its term to what was cut; returns 0. The word is the first so many bytes of `word`."""
        slot = self.find(digest, length)
        if self.hashes[slot] == 0:
            slot = self.add(digest, length)
        row, space = 4 * slot, _SPACE
        start, term = self.rows[row], self.rows[row + 2]
        if self.terms_end + term + 1 > len(self.terms):
            self.terms = enlarged(self.terms, self.terms_end + term + 1)
        for at in range(start + length, start + length + term):
            self.terms[self.terms_end] = self.arena[at]
            self.terms_end += 1
        self.terms[self.terms_end] = space
        self.terms_end += 1
        if page and self.rows[row + 3] != page:
            self.rows[row + 3] = page
            if self.forms_end + length + 1 > len(self.forms):
                self.forms = enlarged(self.forms, self.forms_end + length + 1)
            for at in range(start, start + length):
                self.forms[self.forms_end] = self.arena[at]
                self.forms_end += 1
            self.forms[self.forms_end] = space
            self.forms_end += 1
        return 0

    def find(self, digest: int, length: int) -> int:
        """Where the word is, or may be put. There is a free place always."""
        last = len(self.hashes) - 1
        slot = digest & last
        while self.hashes[slot] != 0 and not (self.hashes[slot] == digest and self.is_word(slot, length)):
            slot = (slot + 1) & last
        return slot

    def is_word(self, slot: int, length: int) -> int:
        """Whether that is the word in this place."""
        row = 4 * slot
        start = self.rows[row]
        if self.rows[row + 1] != length:
            return 0
        for at in range(length):
            if self.arena[start + at] != self.word[at]:
                return 0
        return 1

    def add(self, digest: int, length: int) -> int:
        """Learns a word; returns where it is."""
        if self.count >= self.most_words:
            self.clear()
        if 2 * self.count >= len(self.hashes):
            self._grow()
        form = self.letters[:length]
        term = self.stem(form.decode()).encode()
        end = self.arena_end + len(form) + len(term)
        if end > len(self.arena):
            self.content = bytearray(enlarged(self.arena, end))
            self.arena = memoryview(self.content)
        self.content[self.arena_end : end] = form + term
        slot = self.find(digest, length)
        self.hashes[slot] = digest
        row = 4 * slot
        self.rows[row], self.rows[row + 1], self.rows[row + 2] = self.arena_end, len(form), len(term)
        self.arena_end = end
        self.count += 1
        return slot

    def _grow(self) -> None:
        old, rows = self.hashes, self.rows
        size = 2 * len(old)
        self.hashes = memoryview(array("Q", bytes(8 * size)))
        self.rows = memoryview(array("i", bytes(4 * _COLUMNS * size)))
        for slot, digest in enumerate(old):
            if digest:
                place = digest & (size - 1)
                while self.hashes[place] != 0:
                    place = (place + 1) & (size - 1)
                self.hashes[place] = digest
                for column in range(_COLUMNS):
                    self.rows[place * _COLUMNS + column] = rows[slot * _COLUMNS + column]

    def take_terms(self) -> str:
        """What was cut since it was asked for before, parted by blanks."""
        text = bytes(self.terms[: self.terms_end]).decode()
        self.terms_end = 0
        return text

    def take_forms(self) -> str:
        """The words of the page, each once, parted by blanks."""
        text = bytes(self.forms[: self.forms_end]).decode()
        self.forms_end = 0
        return text


def enlarged(buffer: memoryview[int], least: int) -> memoryview[int]:
    """The same bytes with room for more, at least so many in all."""
    larger = memoryview(bytearray(max(2 * len(buffer), least)))
    larger[: len(buffer)] = buffer
    return larger
