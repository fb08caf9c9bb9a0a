"""Splits text into terms, with a cache of the term of each word: input of the index.

Compiled if there is a C compiler; term_table.pxd gives the types.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

STRANGE, BLANK, PART = range(3)
"""Kinds of characters: with further rules in `words.forms`; separators; part of a word."""

_STRANGE, _BLANK = STRANGE, BLANK  # these and the following are C numbers in the compiled module
_LINE_FEED, _SPACE, _PLUS, _SHARP = 0x0A, 0x20, 0x2B, 0x23
_START, _PRIME = 0xCBF29CE484222325, 0x100000001B3  # FNV-1a of 64 bits
_BITS = 0xFFFFFFFFFFFFFFFF
_ASCII, _LEAD, _TAIL, _SIX_BITS = 0x7F, 0xC0, 0x80, 0x3F  # UTF-8: non-ASCII letters have two bytes with these prefixes
MOST_CODE = 0x7FF
"""The last two-byte character: all later ones are STRANGE."""
# Five numbers per word: start in the arena of its spelling, followed by its term; length of the word, of the spelling,
# of the term; the last page that had it
_COLUMNS = 5
_LENGTH, _SHOWN, _TERM, _PAGE = range(1, 5)  # offsets in a row; at offset 0 is the place in the arena
_LEAST_WORDS, _LEAST_BYTES = 1_024, 16_384


def place_blocks(
    codes: memoryview[int],
    lines: memoryview[int],
    is_apart: memoryview[int],
    apart: int,
    kinds: memoryview[int],
    places: memoryview[int],
) -> int:
    """Finds the texts of blocks; returns 0.

    codes: `Blocks.text`, a line feed and `Blocks.apart`, as uint32. lines: int32 per block, lines of its text beyond
    the first. is_apart: uint8 per block. apart: start of the texts in `apart`. kinds: of characters, see `TermTable`.
    places: three int32 per block: begin, end, whether it has a strange character.
    """
    beyond, size, own = len(kinds), len(codes), 0
    for block in range(len(lines)):
        left, place, odd = lines[block], own, 0
        if is_apart[block]:
            left, place = 0, apart
        places[3 * block] = place
        while place < size:
            code = codes[place]
            if code == _LINE_FEED:
                if left == 0:
                    break
                left -= 1
            elif code >= beyond or kinds[code] == _STRANGE:
                odd = 1
            place += 1
        places[3 * block + 1], places[3 * block + 2] = place, odd
        if is_apart[block]:
            apart = place + 1
        else:
            own = place + 1
    return 0


class TermTable:
    """The words of one language. Words are split as in `words.forms`."""

    def __init__(
        self,
        kinds: memoryview[int],
        small: memoryview[int],
        learn: Callable[[str], tuple[str, str]],
        between: bytes,
        most_chars: int,
        most_words: int,
    ) -> None:
        """kinds: uint8 per character below len(kinds); later characters are STRANGE.

        small: uint16 per character: the lower-case letter of a PART. learn: from a form in lower case to (its
        spellings, which begin with it; its term). between: the separator term between blocks. most_chars: longer words
        are cut. most_words: size of the cache, which is then cleared.
        """
        self.kinds = kinds
        self.small = small
        self.learn = learn
        self.between = between
        self.most_chars = most_chars
        self.most_words = most_words
        self.letters = bytearray(2 * most_chars)
        self.word = memoryview(self.letters)
        self.terms = memoryview(bytearray(_LEAST_BYTES))
        self.forms = memoryview(bytearray(_LEAST_BYTES))
        self.terms_end = self.forms_end = 0
        self.clear()

    def clear(self) -> None:
        """Clears the cache."""
        self.hashes = memoryview(array("Q", bytes(8 * _LEAST_WORDS)))
        self.rows = memoryview(array("i", bytes(4 * _COLUMNS * _LEAST_WORDS)))
        self.content = bytearray(_LEAST_BYTES)
        self.arena = memoryview(self.content)
        self.count = self.arena_end = 0

    def cut(self, codes: memoryview[int], begin: int, page: int) -> int:
        """Adds the terms of a text to `take_terms`, and words new on the page to `take_forms`.

        codes: uint32. begin: start position. page: positive, increasing from page to page; 0: no words are wanted.
        Returns where it stopped: at the beginning of a line with a strange character, or at the end.
        """
        place, size, beyond = begin, len(codes), len(self.kinds)
        while place < size:
            end = place
            while end < size and codes[end] != _LINE_FEED:
                if codes[end] >= beyond or self.kinds[codes[end]] == _STRANGE:
                    return place
                end += 1
            self.cut_words(codes, place, end, page)
            place = end + 1
        return size

    def cut_blocks(
        self,
        codes: memoryview[int],
        places: memoryview[int],
        groups: memoryview[int],
        group: int,
        block: int,
        page: int,
    ) -> int:
        """As `cut`, for the blocks of a group from `block` on, with the separator term before each.

        places: from `place_blocks`. groups: uint8 per block. Returns where it stopped: at a strange block, of which
        only the separator was added, or at the number of blocks.
        """
        while block < len(groups):
            if groups[block] == group:
                self.add_between()
                if places[3 * block + 2]:
                    return block
                self.cut_words(codes, places[3 * block], places[3 * block + 1], page)
            block += 1
        return block

    def add_between(self) -> int:
        """Adds the separator term between blocks; returns 0."""
        size = len(self.between)
        if self.terms_end + size + 1 > len(self.terms):
            self.terms = enlarge(self.terms, self.terms_end + size + 1)
        for at in range(size):
            self.terms[self.terms_end + at] = self.between[at]
        self.terms[self.terms_end + size] = _SPACE
        self.terms_end += size + 1
        return 0

    def cut_words(self, codes: memoryview[int], place: int, end: int, page: int) -> int:
        """Adds the words between two positions without strange characters; returns 0."""
        most = self.most_chars
        while place < end:
            kind = self.kinds[codes[place]]
            if kind == _BLANK:
                place += 1
                continue
            digest, length, chars = _START, 0, 0
            while kind != _BLANK:
                if chars < most:
                    code = self.small[codes[place]]
                    digest = ((digest ^ code) * _PRIME) & _BITS
                    if code > _ASCII:
                        self.word[length] = _LEAD | (code >> 6)
                        length += 1
                        code = _TAIL | (code & _SIX_BITS)
                    self.word[length] = code
                    length += 1
                    chars += 1
                place += 1
                kind = self.kinds[codes[place]] if place < end else _BLANK
            signs, sign = 0, _PLUS  # c++, c#
            if place + 1 < end and codes[place] == _PLUS and codes[place + 1] == _PLUS:
                signs = 2
            elif place < end and codes[place] == _SHARP:
                signs, sign = 1, _SHARP
                if place + 1 < end and self.kinds[codes[place + 1]] != _BLANK:
                    signs = 0
            place += signs
            while signs and chars < most:
                self.word[length] = sign
                digest = ((digest ^ sign) * _PRIME) & _BITS
                length += 1
                chars += 1
                signs -= 1
            self.put(digest or 1, length, page)
        return 0

    def put(self, digest: int, length: int, page: int) -> int:
        """Adds one word and its term; returns 0. The word is the first `length` bytes of `word`."""
        slot = self.find(digest, length)
        if self.hashes[slot] == 0:
            slot = self.add(digest, length)
        row = slot * _COLUMNS
        start, shown, term = self.rows[row], self.rows[row + _SHOWN], self.rows[row + _TERM]
        if self.terms_end + term + 1 > len(self.terms):
            self.terms = enlarge(self.terms, self.terms_end + term + 1)
        for at in range(start + shown, start + shown + term):
            self.terms[self.terms_end] = self.arena[at]
            self.terms_end += 1
        self.terms[self.terms_end] = _SPACE
        self.terms_end += 1
        if page and self.rows[row + _PAGE] != page:
            self.rows[row + _PAGE] = page
            if self.forms_end + shown + 1 > len(self.forms):
                self.forms = enlarge(self.forms, self.forms_end + shown + 1)
            for at in range(start, start + shown):
                self.forms[self.forms_end] = self.arena[at]
                self.forms_end += 1
            self.forms[self.forms_end] = _SPACE
            self.forms_end += 1
        return 0

    def find(self, digest: int, length: int) -> int:
        """The slot of the word, or a free slot for it. There is always a free slot."""
        last = len(self.hashes) - 1
        slot = digest & last
        while self.hashes[slot] != 0 and not (self.hashes[slot] == digest and self.is_word(slot, length)):
            slot = (slot + 1) & last
        return slot

    def is_word(self, slot: int, length: int) -> int:
        """Whether the word is in this slot."""
        row = slot * _COLUMNS
        start = self.rows[row]
        if self.rows[row + _LENGTH] != length:
            return 0
        for at in range(length):
            if self.arena[start + at] != self.word[at]:
                return 0
        return 1

    def add(self, digest: int, length: int) -> int:
        """Learns a word; returns its slot."""
        if self.count >= self.most_words:
            self.clear()
        if 2 * self.count >= len(self.hashes):
            self._grow()
        shown, term = self.learn(self.letters[:length].decode())
        shown_bytes, term_bytes = shown.encode(), term.encode()
        end = self.arena_end + len(shown_bytes) + len(term_bytes)
        if end > len(self.arena):
            self.content = bytearray(enlarge(self.arena, end))
            self.arena = memoryview(self.content)
        self.content[self.arena_end : end] = shown_bytes + term_bytes
        slot = self.find(digest, length)
        self.hashes[slot] = digest
        row = slot * _COLUMNS
        self.rows[row], self.rows[row + _LENGTH] = self.arena_end, length
        self.rows[row + _SHOWN], self.rows[row + _TERM] = len(shown_bytes), len(term_bytes)
        self.arena_end = end
        self.count += 1
        return slot

    def _grow(self) -> int:
        old, rows = self.hashes, self.rows
        size = 2 * len(old)
        self.hashes = memoryview(array("Q", bytes(8 * size)))
        self.rows = memoryview(array("i", bytes(4 * _COLUMNS * size)))
        for slot in range(len(old)):
            digest = old[slot]
            if digest:
                place = digest & (size - 1)
                while self.hashes[place] != 0:
                    place = (place + 1) & (size - 1)
                self.hashes[place] = digest
                for column in range(_COLUMNS):
                    self.rows[place * _COLUMNS + column] = rows[slot * _COLUMNS + column]
        return 0

    def take_terms(self) -> str:
        """The terms added since the last call, separated by blanks."""
        text = bytes(self.terms[: self.terms_end]).decode()
        self.terms_end = 0
        return text

    def take_forms(self) -> str:
        """The spellings of the page's words, distinct, separated by blanks."""
        text = bytes(self.forms[: self.forms_end]).decode()
        self.forms_end = 0
        return text


def enlarge(buffer: memoryview[int], least: int) -> memoryview[int]:
    """A copy with space for at least `least` bytes."""
    larger = memoryview(bytearray(max(2 * len(buffer), least)))
    larger[: len(buffer)] = buffer
    return larger
