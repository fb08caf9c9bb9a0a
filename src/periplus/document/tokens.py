# cython: infer_types=True, initializedcheck=False
"""The tokens of an HTML page: tags with attributes, text, comments, doctypes.

The tokeniser of the HTML Living Standard (13.2.5), without error reports. A subclass receives each token by a call; it
sets `reading` if raw text follows. All text is a slice of `chars`: the page as UTF-8, a NUL, the replacement character,
and then rewritten parts. Line ends must be LF. tokens.pxd gives the types in C.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import Final

from periplus.document.tags import ATTRIBUTE_NUMBERS, ATTRIBUTES, TAGS

COMMENT, DOCTYPE, NUL, EOF = range(4)  # kinds of tokens other than tags and text
DATA, RCDATA, RAWTEXT, SCRIPT, PLAINTEXT = range(5)  # values of `reading`
LONGEST_REFERENCE: Final = 33  # length of the longest character name, plus two

WHITE, SLASH, CLOSE, NOTHING, EQUALS = range(1, 6)  # characters that end a name
LETTERS_AND_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ENDS = bytes({9: 1, 10: 1, 12: 1, 13: 1, 32: 1, 47: 2, 62: 3, 0: 4, 61: 5}.get(code, 0) for code in range(256))
LOWER = bytes(range(256)).lower()
# lower-case letter of a name; 0: the name may end here
FOLD = bytes(0 if ENDS[code] else LOWER[code] for code in range(256))
WORD = bytes(code in LETTERS_AND_DIGITS for code in range(256))
ELEMENTS: int = len(TAGS)
NAMES: int = len(ATTRIBUTES)
PUBLIC: int = ATTRIBUTE_NUMBERS["public"]
SYSTEM: int = ATTRIBUTE_NUMBERS["system"]
SLOTS: Final = 2048
SHIFT: Final = 53  # leaves as many bits as are needed to number the slots
SPREAD: Final = 0x9E3779B97F4A7C15  # 2 ** 64 divided by the golden ratio: spreads similar keys
MOST: Final = (1 << 64) - 1
# 13.2.5.80: numeric references that mean a windows-1252 character
WINDOWS_1252 = {code: ord(bytes([code]).decode("cp1252", "ignore") or chr(code)) for code in range(0x80, 0xA0)}
REFERENCES: dict[bytes, bytes] = {}  # loaded on first use: 2,231 entries
# Names of elements, then of attributes: slots of each kind; per name its key, its length, and its end in the
# concatenated letters
KNOWN_NAMES = (*TAGS, *ATTRIBUTES)
KNOWN_SIZES = array("i", map(len, KNOWN_NAMES))
KNOWN_ENDS = array("i", accumulate(map(len, KNOWN_NAMES)))
KNOWN_LETTERS = "".join(KNOWN_NAMES).encode()


def key_of(name: bytes) -> int:
    """The last eight bytes of a lower-case name as a number: the whole name in most cases."""
    return int.from_bytes(name.lower()[max(len(name) - 8, 0) :], "big")


def _slots(names: tuple[str, ...], first: int) -> array[int]:
    """A hash table of the lower-case names, numbered from `first`, with linear probing; -1: free slot."""
    slots = array("i", [-1]) * SLOTS
    for number, name in enumerate(names, first):
        if name == name.lower() and name:
            slot = ((key_of(name.encode()) * SPREAD) & MOST) >> SHIFT
            while slots[slot] >= 0:
                slot = (slot + 1) & (SLOTS - 1)
            slots[slot] = number
    return slots


KNOWN_SLOTS = _slots(TAGS, 0) + _slots(ATTRIBUTES, ELEMENTS)
KNOWN_KEYS = array("Q", (key_of(name.encode()) for name in KNOWN_NAMES))


def _near_names() -> array[int]:
    """Per slot: key, and length << 32 | number, of a name of at most eight bytes that stands in its first slot."""
    rows = array("Q", bytes(32 * SLOTS))
    for slots, names in ((0, TAGS), (SLOTS, ATTRIBUTES)):
        for number, name in enumerate(names):
            slot = slots + (((key_of(name.encode()) * SPREAD) & MOST) >> SHIFT)
            if len(name) <= 8 and KNOWN_SLOTS[slot] == number + (ELEMENTS if slots else 0):
                rows[2 * slot : 2 * slot + 2] = array("Q", (key_of(name.encode()), len(name) << 32 | number))
    return rows


NEAR_NAMES = _near_names()


def _expansion(name: bytes) -> bytes | None:
    """The expansion of a named character reference, given with its semicolon if it has one; None if unknown."""
    if not REFERENCES:
        from html.entities import html5

        REFERENCES.update((key.encode(), text.encode()) for key, text in html5.items())
    return REFERENCES.get(name)


class Tokens:
    """A page's tokens, each given to a method of a subclass, and all of its attributes.

    chars, used: the page and rewritten parts. Of the current tag or doctype: `first`, `attrs` (its attributes), `place`
    (position in the page), `closing` (whether it ends with `/>`).
    """

    def __init__(self, page: bytes) -> None:
        size = len(page)
        self.page = page
        self.size = size
        self.at = 0
        self.used = size + 4
        self.chars = memoryview(bytearray().join((page, b"\0\xef\xbf\xbd", bytes((size >> 3) + 252))))
        self.rows = 0
        room = (size >> 5) + 64
        self.names = memoryview(bytearray(4 * room)).cast("i")
        self.value_starts = memoryview(bytearray(4 * room)).cast("i")
        self.value_ends = memoryview(bytearray(4 * room)).cast("i")
        self.room = room
        self.reading, self.reading_tag = DATA, 0  # the state requested by the subclass, and the element that it is in
        self.first = self.attrs = self.closing = self.place = 0
        self.done = 0
        self.malformed = 0  # whether the current doctype is
        self.serial = 0
        self.stamps = memoryview(bytearray(4 * (NAMES + 64))).cast("i")
        self.own_tags: dict[bytes, int] = {}
        self.own_names: dict[bytes, int] = {}

    def run(self) -> None:
        """Reads the whole page."""
        while not self.done:
            if self.reading:
                mode, self.reading = self.reading, DATA
                self._raw(mode, self.reading_tag)
            else:
                self._next()

    # --- what a subclass does with tokens

    def take_text(self, start: int, end: int, blank: int) -> int:
        """blank: whether it is only white space."""
        return 0

    def take_start(self, tag: int) -> int:
        """A start tag."""
        return 0

    def take_end(self, tag: int) -> int:
        """An end tag."""
        return 0

    def take_other(self, kind: int, start: int, end: int) -> int:
        """A comment, doctype (the slice is its name), NUL, or the end of the page."""
        return 0

    def is_foreign(self) -> int:
        """Whether the current element is in SVG or MathML, where CDATA sections are allowed."""
        return 0

    def adjust_names(self, first: int, count: int, names: array[int]) -> None:
        """Replaces the names of some attributes with those of SVG or MathML."""
        for row in range(first, first + count):
            if self.names[row] < NAMES:
                self.names[row] = names[self.names[row]]

    def merge_rows(self, first: int, count: int, other: int, more: int) -> int:
        """Merges the attributes of two elements into one row, the first of equal names; returns the start
        of the row.
        """
        begin = self.rows
        self.serial += 1
        for row in range(first, first + count):
            self.stamps[self.names[row]] = self.serial
            self._add_attribute(self.names[row], self.value_starts[row], self.value_ends[row])
        for row in range(other, other + more):
            if self.stamps[self.names[row]] != self.serial:
                self._add_attribute(self.names[row], self.value_starts[row], self.value_ends[row])
        return begin

    def _put_text(self, start: int, end: int) -> int:
        if end > start:
            at = start
            if self.chars[at] <= 32:
                while at < end and ENDS[self.chars[at]] == WHITE:
                    at += 1
            return self.take_text(start, end, at == end)
        return 0

    def _next(self) -> int:
        """Reads the text up to the next markup, and the markup."""
        at = self.at
        start = at
        while True:
            code = self.chars[at]
            while code > 60 or (code not in {60, 38, 0}):
                at += 1
                code = self.chars[at]
            if code == 60:  # <
                following = self.chars[at + 1]
                if 97 <= (following | 32) <= 122:
                    self._put_text(start, at)
                    return self._tag(at, at + 1, 0)
                if (following == 47 and self.chars[at + 2] != 0) or (following == 47 and at + 2 < self.size):
                    self._put_text(start, at)
                    return self._end_tag(at)
                if following in {33, 63}:  # ! ?
                    self._put_text(start, at)
                    return self._declaration(at)
                at += 1
            elif code == 38:  # &
                begin = self.used
                end = self._reference(at, False)
                if end > at:
                    self._put_text(start, at)
                    self._put_text(begin, self.used)
                    self.at = end
                    return 0
                at += 1
            else:
                self._put_text(start, at)
                self.at = at + 1
                if at >= self.size:
                    self.at = at
                    self.done = 1
                    return self.take_other(EOF, at, at)
                return self.take_other(NUL, at, at + 1)

    def _end_tag(self, at: int) -> int:
        following = self.chars[at + 2]
        if 97 <= (following | 32) <= 122:
            return self._tag(at, at + 2, 1)
        if following == 62:  # </>
            self.at = at + 3
            return 0
        return self._bogus(at + 2)

    def _tag(self, place: int, at: int, ends: int) -> int:
        """Reads a tag from its name on; no token if the page ends within it."""
        begin = at
        value = 0
        while True:
            code = self.chars[at]
            letter = FOLD[code]
            if not letter:
                if code != 61 and (code or at >= self.size):
                    break
                letter = code
            value = ((value << 8) | letter) & MOST
            at += 1
        tag = self._number(begin, at, value, 0)
        first = self.rows
        closing = 0
        self.serial += 1
        while True:
            stop = ENDS[self.chars[at]]
            if stop == CLOSE:
                break
            if stop == WHITE:
                at += 1
            elif stop == SLASH:
                at += 1
                closing = self.chars[at] == 62
            else:
                after = self._attribute(at) if stop != NOTHING or at < self.size else -1
                if after < 0:
                    self.at = self.size
                    self.rows = first
                    return 0
                at = after
        self.at = at + 1
        if ends:
            self.rows = first
            return self.take_end(tag)
        self.first, self.attrs, self.place, self.closing = first, self.rows - first, place, closing
        return self.take_start(tag)

    def _attribute(self, at: int) -> int:
        """Reads an attribute; returns the position after it, -1 if the page ends first."""
        begin = at
        value = 0
        while True:
            code = self.chars[at]
            letter = FOLD[code]
            if not letter:
                if (code != 61 or at > begin) and (code or at >= self.size):
                    break
                letter = code
            value = ((value << 8) | letter) & MOST
            at += 1
        name = self._number(begin, at, value, SLOTS)
        while ENDS[self.chars[at]] == WHITE:
            at += 1
        start = end = at
        odd = 0
        if self.chars[at] == 61:  # =
            at += 1
            while ENDS[self.chars[at]] == WHITE:
                at += 1
            quote = self.chars[at]
            start = at
            if quote in (34, 39):
                start = at = at + 1
                code = self.chars[at]
                while True:
                    while code > 39 or (code not in (quote, 38) and code):  # 39 is the greatest of both quotes and &
                        at += 1
                        code = self.chars[at]
                    if code == quote or (not code and at >= self.size):
                        break
                    odd = 1
                    at += 1
                    code = self.chars[at]
            else:
                code = quote
                while code > 62 or (code != 62 and ENDS[code] != WHITE and (code or at < self.size)):
                    odd |= code in (38, 0)
                    at += 1
                    code = self.chars[at]
            end = at
            at += quote in (34, 39)
        if at > self.size or (at == self.size and end == at):
            return -1
        if self.stamps[name] != self.serial:
            self.stamps[name] = self.serial
            if odd:
                start = self._rewritten(start, end, 2)
                end = self.used
            self._add_attribute(name, start, end)
        return at

    def _add_attribute(self, name: int, start: int, end: int) -> int:
        """Appends an attribute row."""
        row = self.rows
        if row == self.room:
            self.room = 2 * row
            self.names = _wider(self.names)
            self.value_starts = _wider(self.value_starts)
            self.value_ends = _wider(self.value_ends)
        self.names[row] = name
        self.value_starts[row] = start
        self.value_ends[row] = end
        self.rows = row + 1
        return 0

    def _number(self, begin: int, end: int, value: int, slots: int) -> int:
        """The number of an element name (slots: 0) or attribute name (slots: SLOTS). value: its key."""
        slot = 2 * (slots + (((value * SPREAD) & MOST) >> SHIFT))
        row = NEAR_NAMES[slot + 1]
        if NEAR_NAMES[slot] == value and row >> 32 == end - begin:
            return row & 0xFFFF
        return self._far_number(begin, end, value, slots)

    def _far_number(self, begin: int, end: int, value: int, slots: int) -> int:
        slot = ((value * SPREAD) & MOST) >> SHIFT
        number = KNOWN_SLOTS[slots + slot]
        while number >= 0:
            if KNOWN_KEYS[number] == value and KNOWN_SIZES[number] == end - begin:
                at = begin
                name = KNOWN_ENDS[number] - (end - begin)
                while at < end - 8 and KNOWN_LETTERS[name] == LOWER[self.chars[at]]:  # the key covers the rest
                    at += 1
                    name += 1
                if at >= end - 8:
                    return number if not slots else number - ELEMENTS
            slot = (slot + 1) & (SLOTS - 1)
            number = KNOWN_SLOTS[slots + slot]
        return self._own_number(self.page[begin:end].lower().replace(b"\0", "\ufffd".encode()), slots)

    def _own_number(self, key: bytes, slots: int) -> int:
        """The number of a name that is not in the tables."""
        if not slots:
            return self.own_tags.setdefault(key, ELEMENTS + len(self.own_tags))
        number = self.own_names.setdefault(key, NAMES + len(self.own_names))
        if number >= len(self.stamps):
            self.stamps = _wider(self.stamps)
        return number

    def _is_named(self, at: int, tag: int) -> bool:
        """Whether the name of an element is here, followed by a delimiter; False for element 0."""
        if not tag:
            return False
        name = KNOWN_ENDS[tag] - KNOWN_SIZES[tag]
        while name < KNOWN_ENDS[tag]:
            if KNOWN_LETTERS[name] != LOWER[self.chars[at]]:
                return False
            at += 1
            name += 1
        stop = ENDS[self.chars[at]]
        return stop in (WHITE, SLASH, CLOSE)

    def _raw(self, mode: int, tag: int) -> int:
        """Reads the text of a raw text element, and its end tag."""
        start = at = self.at
        odd = escape = 0  # in a script: 1 after <!--, 2 after <script> within it
        while True:
            code = self.chars[at]
            while code > 60 or (code not in {60, 38, 45, 0}):
                at += 1
                code = self.chars[at]
            if code == 60 and mode != PLAINTEXT:
                ending = self.chars[at + 1] == 47
                if ending and escape < 2 and self._is_named(at + 2, tag):
                    break
                if mode == SCRIPT and not escape and self.page[at : at + 4] == b"<!--":
                    escape = 1
                    at += 1
                elif escape == 1 + ending and self._is_named(at + 1 + ending, tag):
                    escape = 1 + (not ending)
            elif code == 45 and escape and self.chars[at + 1] == 45:  # --
                while self.chars[at + 1] == 45:
                    at += 1
                if self.chars[at + 1] == 62:
                    escape = 0
            elif code == 38:
                odd |= mode == RCDATA
            elif code == 0:
                if at >= self.size:
                    break
                odd = 1
            at += 1
        end = at
        if odd:
            start = self._rewritten(start, end, mode == RCDATA)
            self._put_text(start, self.used)
        else:
            self._put_text(start, end)
        self.at = at
        return self._tag(at, at + 2, 1) if at < self.size else 0

    def _put_slice(self, is_comment: int, start: int, end: int) -> int:
        """A comment, or text in SVG; each NUL becomes the replacement character."""
        at = start
        while at < end and self.chars[at]:
            at += 1
        if at < end:
            start = self._rewritten(start, end, 0)
            end = self.used
        return self.take_other(COMMENT, start, end) if is_comment else self._put_text(start, end)

    def _bogus(self, at: int) -> int:
        """A bogus comment: everything up to the next >."""
        end = self.page.find(b">", at)
        if end < 0:
            end = self.size
        self.at = min(end + 1, self.size)
        return self._put_slice(1, at, end)

    def _declaration(self, at: int) -> int:
        """A comment, a doctype, or a CDATA section in SVG and MathML."""
        if self.chars[at + 1] == 63:
            return self._bogus(at + 1)
        if self.chars[at + 2] == 45 and self.chars[at + 3] == 45:
            return self._comment(at + 4)
        if (self.chars[at + 2] | 32) == 100 and self.page[at + 2 : at + 9].lower() == b"doctype":
            return self._doctype(at + 9)
        if self.page[at + 2 : at + 9] == b"[CDATA[" and self.is_foreign():
            end = self.page.find(b"]]>", at + 9)
            self.at = end + 3 if end >= 0 else self.size
            return self._put_slice(0, at + 9, end if end >= 0 else self.size)
        return self._bogus(at + 2)

    def _comment(self, at: int) -> int:
        start = at
        if self.chars[at] == 62:  # <!-->
            self.at = at + 1
            return self.take_other(COMMENT, at, at)
        if self.chars[at] == 45 and self.chars[at + 1] == 62:  # <!--->
            self.at = at + 2
            return self.take_other(COMMENT, at, at)
        while True:
            at = self.page.find(b"--", at)
            if at < 0:
                break
            end = at + 2
            end += self.chars[end] == 33  # --!>
            if self.chars[end] == 62:
                self.at = end + 1
                return self._put_slice(1, start, at)
            at += 1
        self.at = self.size
        end = self.size
        for tail in (b"--!", b"--", b"-"):
            if self.page[start:].endswith(tail):
                end -= len(tail)
                break
        return self._put_slice(1, start, end)

    def _after_white(self, at: int) -> int:
        while ENDS[self.chars[at]] == WHITE:
            at += 1
        return at

    def _doctype(self, at: int) -> int:
        """Reads a doctype: its name is the token's text, its identifiers are attributes."""
        first = self.rows
        self.malformed = 0
        begin = at = self._after_white(at)
        while at < self.size and self.chars[at] != 62 and ENDS[self.chars[at]] != WHITE:
            at += 1
        start = self._rewritten(begin, at, -1)
        end = self.used
        at = self._after_white(at)
        if at == begin or at >= self.size:
            self.malformed = 1
        elif self.chars[at] != 62:
            keyword = self.page[at : at + 6].lower()
            if keyword == b"public":
                at = self._identifier(self._after_white(at + 6), PUBLIC)
                if not self.malformed and self.chars[at] != 62:
                    at = self._identifier(at, SYSTEM)
            elif keyword == b"system":
                at = self._identifier(self._after_white(at + 6), SYSTEM)
            else:
                self.malformed = 1
        at = self.page.find(b">", at)
        self.at = at + 1 if at >= 0 else self.size
        self.first, self.attrs = first, self.rows - first
        return self.take_other(DOCTYPE, start, end)

    def _identifier(self, at: int, name: int) -> int:
        """Reads a quoted identifier of a doctype and white space; sets `malformed`."""
        quote = self.chars[at]
        if quote not in {34, 39}:
            self.malformed = 1
            return at
        start = at = at + 1
        while at < self.size and self.chars[at] != quote and self.chars[at] != 62:
            at += 1
        begin = self._rewritten(start, at, 0)
        self._add_attribute(name, begin, self.used)
        if self.chars[at] != quote:
            self.malformed = 1
            return at
        at = self._after_white(at + 1)
        self.malformed |= at >= self.size
        return at

    def _append(self, code: int) -> int:
        if self.used == len(self.chars):
            self.chars = _wider(self.chars)
        self.chars[self.used] = code
        self.used += 1
        return 0

    def _append_all(self, text: bytes) -> int:
        for code in text:
            self._append(code)
        return 0

    def _append_character(self, code: int) -> int:
        if code < 128:
            return self._append(code)
        return self._append_all(chr(code).encode())

    def _rewritten(self, start: int, end: int, how: int) -> int:
        """Copies a slice without NULs; returns its start; it ends at `used`.

        how: 1 with references, 2 with references in an attribute, -1 in lower case, 0 unchanged.
        """
        begin = self.used
        at = start
        while at < end:
            code = self.chars[at]
            if code == 38 and how > 0:
                after = self._reference(at, how == 2)
                if after > at:
                    at = after
                    continue
            if code:
                self._append(LOWER[code] if how < 0 else code)
            else:
                self._append_character(0xFFFD)
            at += 1
        return begin

    def _reference(self, at: int, in_attribute: bool) -> int:
        """Appends the expansion of a character reference; returns the position after it, or `at` if there is none."""
        if self.chars[at + 1] == 35:  # #
            return self._number_reference(at)
        end = at + self._common_reference(at)
        if end > at:
            return end
        end = at + 1
        while WORD[self.chars[end]] and end - at < LONGEST_REFERENCE:
            end += 1
        if end == at + 1:
            return at
        if self.chars[end] == 59:  # ;
            text = _expansion(self.page[at + 1 : end + 1])
            if text is not None:
                self._append_all(text)
                return end + 1
        end = min(end, at + 7)  # six letters: the longest name that needs no semicolon
        while end > at + 2:
            text = _expansion(self.page[at + 1 : end])
            if text is not None:
                following = self.chars[end]
                if in_attribute and (following == 61 or WORD[following]):
                    return at
                self._append_all(text)
                return end
            end -= 1
        return at

    def _common_reference(self, at: int) -> int:
        """Appends the expansion of the four most common references; returns their length, or 0 for any other."""
        code = self.chars[at + 1]
        second, third, fourth = self.chars[at + 2], self.chars[at + 3], self.chars[at + 4]
        if second == 116 and third == 59 and code in (108, 103):  # &lt; &gt;
            self._append(60 if code == 108 else 62)
            return 4
        if code == 97 and second == 109 and third == 112 and fourth == 59:  # &amp;
            self._append(38)
            return 5
        if code == 113 and second == 117 and third == 111 and fourth == 116 and self.chars[at + 5] == 59:  # &quot;
            self._append(34)
            return 6
        return 0

    def _number_reference(self, at: int) -> int:
        end = at + 2
        base = 10
        if (self.chars[end] | 32) == 120:  # x
            base = 16
            end += 1
        begin = end
        number = 0
        while WORD[self.chars[end]]:
            code = self.chars[end] | 32
            digit = code - 87 if code >= 97 else self.chars[end] - 48
            if digit >= base:
                break
            number = min(number * base + digit, 0x110000)
            end += 1
        if end == begin:
            return at
        if number == 0 or number > 0x10FFFF or 0xD800 <= number < 0xE000:
            number = 0xFFFD
        elif 0x80 <= number < 0xA0:
            number = WINDOWS_1252[number]
        self._append_character(number)
        return end + (self.chars[end] == 59)


def _wider(column: memoryview[int]) -> memoryview[int]:
    """A copy of a column with twice the size."""
    old = memoryview(column)
    wide = memoryview(bytearray(2 * old.nbytes))
    if old.itemsize > 1:
        wide = wide.cast("i")
    wide[: len(old)] = old
    return wide
