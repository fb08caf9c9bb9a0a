"""Growing columns for reading a page: numbers, text with folded white space, interned names; and the page's blocks.

Compiled if there is a C compiler; columns.pxd gives the types.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from periplus.document import page_rules as rules
from periplus.model.page import BLOCK_KIND_CODES, NO_BLOCKS, POSITION_CODES, BlockKind, Blocks, Position

NEWLINE, SPACE, RETURN, SLASH = b"\n \r/"
BEYOND_ASCII = 128
WHITE, MAY_BE_WHITE, GOING_ON = rules.WHITE, rules.MAY_BE_WHITE, rules.GOING_ON
SPACES = rules.SPACES
PARAGRAPH, HEADING, CODE, LINK_KIND, ALT_KIND, TITLE_KIND = map(
    BLOCK_KIND_CODES.__getitem__,
    (BlockKind.PARAGRAPH, BlockKind.HEADING, BlockKind.CODE, BlockKind.LINK, BlockKind.ALT, BlockKind.TITLE),
)
AT_BODY, AT_HEAD = POSITION_CODES[Position.BODY], POSITION_CODES[Position.HEAD]
IMG_NAME, TITLE_PATH = b"img", b"head/title\n"
BLOCKS_MOST, PATHS_MOST, PATH_CHARS = rules.BLOCKS_MOST, rules.PATHS_MOST, rules.PATH_CHARS
COPIED_SINGLY = rules.COPIED_SINGLY
PROBES = 32  # slots of a hash table that are probed; then a dict is used, whatever was crafted to collide
# Hash seed: derived from Python's, which differs per process, so that nobody can prepare collisions
SEED = hash("names") & 0xFFFFFFFF
MASK, FACTOR = 0xFFFFFFFF, 0x01000193  # 32 bits; the prime of FNV-1a
ROW_FIELDS, PATH_FIELDS, NAME_FIELDS = 7, 4, 4
NAME_START, NAME_END, NAME_HASH = range(1, 4)  # offsets in a row of Names


NO_NUMBERS, NO_CHARS = memoryview(bytearray(0)).cast("i"), memoryview(bytearray(0))


class NumberColumn:
    """A growing array of int32."""

    def __init__(self, room: int) -> None:
        # the empty buffer is shared and free
        self.values = memoryview(bytearray(4 * room)).cast("i") if room else NO_NUMBERS
        self.room = room
        self.size = 0

    def add(self, value: int) -> int:
        """Appends a number."""
        if self.size == self.room:
            self._grow(1)
        self.values[self.size] = value
        self.size += 1
        return 0

    def reserve(self, more: int) -> int:
        """Reserves space for more numbers."""
        return self._grow(more) if self.size + more > self.room else 0

    def _grow(self, more: int) -> int:
        self.room = 2 * self.room + more
        values = memoryview(bytearray(4 * self.room)).cast("i")
        values[: self.size] = self.values[: self.size]
        self.values = values
        return 0

    def narrow(self, first: int, field: int, fields: int, less: int, default: int) -> memoryview:
        """One field of the rows from `first` on, minus `less`, in the narrowest unsigned type; empty if all have the
        default.
        """
        count = self.size // fields - first
        most = others = 0
        narrow = bytearray(count)
        place = first * fields + field
        for row in range(count):
            value = self.values[place] - less
            others |= value != default
            most = max(most, value)
            narrow[row] = value & 255
            place += fields
        if not others:
            return memoryview(b"")
        if most < 256:
            return memoryview(bytes(narrow))
        wide = [self.values[(first + place) * fields + field] - less for place in range(count)]
        return memoryview(array("H" if most < 1 << 16 else "I", wide)).toreadonly()


class Text:
    """Growing UTF-8 text. `begin` is the start of the piece that is being written.

    `_copy` and `_fold` get their buffers as arguments, which saves looking them up for each byte. These views are only
    valid until the text grows: space is reserved before the call, and nothing grows until it returns.
    """

    def __init__(self, room: int) -> None:
        self.chars = memoryview(bytearray(room)) if room else NO_CHARS
        self.former = self.chars  # the previous buffer: a source that points into it stays valid during a copy
        self.room = room
        self.size = 0
        self.begin = 0
        self.pending = 0  # whether there was white space since the last word of the piece

    def reserve(self, more: int) -> int:
        """Reserves space for more bytes."""
        return self._grow(more) if self.size + more > self.room else 0

    def _grow(self, more: int) -> int:
        self.room = 2 * self.room + more
        chars = memoryview(bytearray(self.room))
        chars[: self.size] = self.chars[: self.size]
        self.former, self.chars = self.chars, chars
        return 0

    def put(self, code: int) -> int:
        """Appends one byte."""
        self.reserve(1)
        self.chars[self.size] = code
        self.size += 1
        return 0

    def copy(self, source: bytes | memoryview, start: int, end: int) -> int:
        """Appends bytes unchanged."""
        self.reserve(end - start)
        if end - start > COPIED_SINGLY:
            size = self.size
            self.size = size + end - start
            self.chars[size : self.size] = source[start:end]
            return 0
        return self._copy(self.chars, source, start, end)

    def _copy(self, chars: memoryview, source: bytes | memoryview, start: int, end: int) -> int:
        size = self.size
        for at in range(start, end):
            chars[size] = source[at]
            size += 1
        self.size = size
        return 0

    def fold(self, source: bytes | memoryview, start: int, end: int) -> int:
        """Appends words to the piece; white space between words becomes a single space."""
        self.reserve(end - start + 1)
        return self._fold(self.chars, SPACES, source, start, end)

    def _fold(self, chars: memoryview, spaces: Sequence[int], source: bytes | memoryview, start: int, end: int) -> int:
        size, begin, pending, at = self.size, self.begin, self.pending, start
        while at < end:
            kind = spaces[source[at]]
            width = 1 if kind == WHITE else white_bytes(source, at, end) if kind == MAY_BE_WHITE else 0
            if width:
                pending = size > begin
                at += width
                continue
            if pending:
                chars[size] = SPACE
                size += 1
                pending = 0
            chars[size] = source[at]
            size += 1
            at += 1
            while at < end:
                code = source[at]
                if code <= SPACE or code >= BEYOND_ASCII:
                    break
                chars[size] = code
                size += 1
                at += 1
        self.size, self.pending = size, pending
        return 0

    def next_piece(self, separator: int) -> int:
        """Ends the piece with a separator and begins the next."""
        self.put(separator)
        self.begin = self.size
        self.pending = 0
        return 0

    def string(self) -> str:
        """The whole text, without the last separator."""
        size = max(self.size - 1, 0)
        return str(self.chars[:size], "utf-8", "surrogatepass")

    def strings(self, separator: str) -> list[str]:
        """The pieces."""
        return self.string().split(separator) if self.size else []


class Names:
    """Interned texts, numbered, unique per owner."""

    def __init__(self, slots: int) -> None:
        self.text = Text(slots * 16)
        self.rows = NumberColumn(slots * NAME_FIELDS)  # at offset 0 the owner
        self.slots = memoryview(bytearray(4 * slots)).cast("i")
        self.mask = slots - 1
        self.count = 0
        self.spilled: dict[tuple[int, bytes], int] = {}

    def number(self, owner: int, source: bytes | memoryview, start: int, end: int) -> int:
        """The number of a text, from 1 on; negative if it is new."""
        key = hash_of(owner, source, start, end)
        slot = key & self.mask
        for _ in range(PROBES):
            number = self.slots[slot]
            if number == 0:
                break
            if self._is(number, key, owner, source, start, end):
                return number
            slot = (slot + 1) & self.mask
        else:
            slot = -1
        if slot < 0 or self.spilled:
            number = self.spilled.get((owner, bytes(source[start:end])), 0)
            if number:
                return number
        self.count += 1
        self.rows.add(owner)
        self.rows.add(self.text.size)
        self.text.copy(source, start, end)
        self.rows.add(self.text.size)
        self.rows.add(key)
        self.text.put(0)
        if slot < 0:
            self.spilled[owner, bytes(source[start:end])] = self.count
        else:
            self.slots[slot] = self.count
            if 2 * self.count > self.mask:
                self._widen()
        return -self.count

    def owner(self, number: int) -> int:
        """The owner of a text."""
        return self.rows.values[(number - 1) * NAME_FIELDS]

    def owners(self) -> list[int]:
        """The owners of all texts."""
        return [self.rows.values[row] for row in range(0, self.rows.size, NAME_FIELDS)]

    def start(self, number: int) -> int:
        """Start of a text in `text`."""
        return self.rows.values[(number - 1) * NAME_FIELDS + NAME_START]

    def end(self, number: int) -> int:
        """End of a text in `text`."""
        return self.rows.values[(number - 1) * NAME_FIELDS + NAME_END]

    def _is(self, number: int, key: int, owner: int, source: bytes | memoryview, start: int, end: int) -> int:
        row = (number - 1) * NAME_FIELDS
        if self.rows.values[row + NAME_HASH] != key or self.rows.values[row] != owner:
            return 0
        place = self.rows.values[row + NAME_START]
        if self.rows.values[row + NAME_END] - place != end - start:
            return 0
        return stands_at(self.text.chars, place, source, start, end)

    def _widen(self) -> int:
        self.mask = 2 * self.mask + 1
        self.slots = memoryview(bytearray(4 * (self.mask + 1))).cast("i")
        for number in range(1, self.count + 1):
            slot = self.rows.values[(number - 1) * NAME_FIELDS + NAME_HASH] & self.mask
            for _ in range(PROBES):
                if self.slots[slot] == 0:
                    self.slots[slot] = number
                    break
                slot = (slot + 1) & self.mask
            else:
                name = bytes(self.text.chars[self.start(number) : self.end(number)])
                self.spilled[self.owner(number), name] = number
        return 0


def hash_of(owner: int, source: bytes | memoryview, start: int, end: int) -> int:
    """31-bit hash of an owner and a text."""
    value = owner
    value = (SEED ^ value) * FACTOR & MASK
    for at in range(start, end):
        value = (value ^ source[at]) * FACTOR & MASK
    return (value ^ value >> 15) >> 1


def stands_at(chars: Sequence[int], place: int, source: bytes | memoryview, start: int, end: int) -> int:
    """Whether the bytes at a place equal the source."""
    for at in range(start, end):
        if chars[place] != source[at]:
            return 0
        place += 1
    return 1


def white_bytes(source: bytes | memoryview, at: int, end: int) -> int:
    """Length in bytes of the non-ASCII white space at a place; 0 if there is none."""
    lead = source[at]
    if at + 1 >= end:
        return 0
    second = source[at + 1]
    if lead == 0xC2:
        return 2 if second in (0x85, 0xA0) else 0
    if at + 2 >= end:
        return 0
    third = source[at + 2]
    if lead == 0xE2:
        if second == 0x80:
            return 3 if third <= 0x8A or third in (0xA8, 0xA9, 0xAF) else 0
        return 3 if second == 0x81 and third == 0x9F else 0
    if lead == 0xE1:
        return 3 if second == 0x9A and third == 0x80 else 0
    return 3 if lead == 0xE3 and second == 0x80 and third == 0x80 else 0


def white_at(source: bytes | memoryview, at: int, end: int) -> int:
    """Length in bytes of the white space at a place; 0 if there is none."""
    kind = SPACES[source[at]]
    if kind == WHITE:
        return 1
    return white_bytes(source, at, end) if kind == MAY_BE_WHITE else 0


def has_words(source: bytes | memoryview, start: int, end: int) -> int:
    """Whether the text has anything but white space."""
    at = start
    while at < end:
        width = white_at(source, at, end)
        if not width:
            return 1
        at += width
    return 0


def folded_chars(source: bytes | memoryview, start: int, end: int) -> int:
    """The number of characters of a text with folded white space."""
    count, pending, at = 0, 0, start
    while at < end:
        kind = SPACES[source[at]]
        width = 1 if kind == WHITE else white_bytes(source, at, end) if kind == MAY_BE_WHITE else 0
        if width:
            pending = count > 0
            at += width
            continue
        if kind != GOING_ON:
            count += 1 + pending
            pending = 0
        at += 1
    return count


def end_of_chars(source: bytes | memoryview, start: int, end: int, most: int) -> int:
    """The end of the first `most` characters."""
    if end - start <= most:
        return end
    count = 0
    for at in range(start, end):
        if SPACES[source[at]] != GOING_ON:
            if count == most:
                return at
            count += 1
    return end


class BlockColumns:
    """The blocks of a page while they are written: a row of numbers per block, and their text."""

    def __init__(self, room: int) -> None:
        self.text = Text(room)
        self.apart = Text(0)  # alternative texts of images
        self.rows = NumberColumn(128 * ROW_FIELDS)  # kind, level, position, lines, share, path, language
        self.parts = Names(256)  # parts of paths: the owner of a path is its parent path
        self.paths = NumberColumn(128 * PATH_FIELDS)  # start and end of its text, characters, its index in the column
        self.path_text = Text(8192)
        self.path_names = Text(8192)
        self.scratch = Text(512)
        self.images = 0  # with alternative text, in the current piece
        # State of the current block element
        self.kind = PARAGRAPH
        self.level = 0
        self.position = AT_BODY
        self.language = 0
        self.path = 0
        self.holds_p = 0
        # State of the current piece
        self.links = 0  # number of open links
        self.linked = 0  # characters in closed links
        self.outside = 0  # whether there are words outside links
        self.mark = 0  # start of the text since the last link boundary
        for value in (0, 0, 0, -1):
            self.paths.add(value)
        for value in (TITLE_KIND, 0, AT_HEAD, 0, 1, 0, 0):
            self.rows.add(value)
        self.path_names.copy(TITLE_PATH, 0, len(TITLE_PATH))
        self.path_count = 1

    def full(self) -> int:
        """Whether there are more blocks than the limit."""
        return self.rows.size > (BLOCKS_MOST + 1) * ROW_FIELDS

    def write(self, source: bytes | memoryview, start: int, end: int) -> int:
        """Appends text to the piece, unless the limit of blocks is exceeded."""
        if self.full():
            return 0
        return self.text.copy(source, start, end) if self.kind == CODE else self.text.fold(source, start, end)

    def line_break(self) -> int:
        """Ends a line; for most kinds this ends the piece."""
        if self.kind == CODE:
            return self.text.put(NEWLINE)
        if self.kind == HEADING:
            self.text.pending = self.text.size > self.text.begin
            return 0
        return self.finish()

    def link(self, more: int) -> int:
        """Begins a link (1) or ends one (-1)."""
        if self.links + more <= 1:
            self._end_stretch()
        self.links += more
        return 0

    def _end_stretch(self) -> int:
        """Counts the text written since a link began or ended."""
        text, mark = self.text, self.mark
        if text.size > mark:
            if self.links:
                self.linked += folded_chars(text.chars, mark, text.size)
            elif self.kind != CODE or has_words(text.chars, mark, text.size):
                self.outside = 1
            self.mark = text.size
        return 0

    def finish(self) -> int:
        """Ends the piece: its text becomes a block, as does each image with alternative text."""
        text = self.text
        if text.size > text.begin:
            self._end_stretch()
            lines, kind, share = 0, self.kind, self.linked + 1
            if kind == CODE and self.outside:
                lines = self._trim(text.chars)
            elif kind == CODE:
                start, end = text.begin, text.size
                text.size = start
                text.fold(text.chars, start, end)
            if not self.outside:
                share = 0
                if kind != HEADING:
                    kind = LINK_KIND
            if text.size > text.begin:
                self.row(kind, self.level, lines, share)
                text.next_piece(NEWLINE)
        if self.images:
            path = self.path
            self.path = self.path_below(IMG_NAME, 0, 3)
            for _ in range(self.images):
                self.row(ALT_KIND, 0, 0, 1)
            self.path, self.images = path, 0
        text.pending = 0
        self.mark = text.begin
        self.linked = self.outside = 0
        return 0

    def _trim(self, chars: memoryview) -> int:
        """Removes white space at line ends and empty lines around the code; returns the number of line ends.

        chars: the text's own buffer, which does not grow meanwhile.
        """
        begin, at, end = self.text.begin, self.text.begin, self.text.size
        size = last = begin  # `last`: end of the last word, or start of the line
        lines = lines_before_words = 0
        words_end = begin
        while at < end:
            code = chars[at]
            if code in (NEWLINE, RETURN):
                size = last
                if size > begin:
                    chars[size] = NEWLINE
                    size += 1
                    lines += 1
                last = size
                at += 1
                continue
            kind = SPACES[code]
            width = 1 if kind == WHITE else white_bytes(chars, at, end) if kind == MAY_BE_WHITE else 0
            chars[size] = code
            size += 1
            at += 1
            for _ in range(1, width):
                chars[size] = chars[at]
                size += 1
                at += 1
            if not width:
                last = words_end = size
                lines_before_words = lines
        self.text.size = words_end
        return lines_before_words

    def image(self, source: bytes | memoryview, start: int, end: int) -> int:
        """Stores the alternative text of an image."""
        self.apart.fold(source, start, end)
        if self.apart.size > self.apart.begin:
            self.apart.next_piece(NEWLINE)
            self.images += 1
        return 0

    def path_below(self, source: bytes | memoryview, start: int, end: int) -> int:
        """The number of the path to an element with this name."""
        above = self.path * PATH_FIELDS
        start_above, chars = self.paths.values[above], self.paths.values[above + 2]
        if chars >= PATH_CHARS or self.parts.count >= PATHS_MOST:
            return self.path
        number = self.parts.number(self.path, source, start, end)
        if number > 0:
            return number
        text = self.path_text
        begin = text.size
        self.paths.add(begin)
        if self.path:
            text.copy(text.chars, start_above, self.paths.values[above + 1])
            text.put(SLASH)
            chars += 1
        text.copy(source, start, end)
        self.paths.add(text.size)
        for at in range(start, end):
            chars += SPACES[source[at]] != GOING_ON
        self.paths.add(chars)
        self.paths.add(-1)
        return -number

    def row(self, kind: int, level: int, lines: int, share: int) -> int:
        """Adds a block at the current position."""
        rows, field = self.rows, self.path * PATH_FIELDS + 3
        rows.add(kind)
        rows.add(level)
        rows.add(self.position)
        rows.add(lines)
        rows.add(share)
        column = self.paths.values[field]
        if column < 0:
            column = self.paths.values[field] = self.path_count
            self.path_count += 1
            self.path_names.copy(self.path_text.chars, self.paths.values[field - 3], self.paths.values[field - 2])
            self.path_names.put(NEWLINE)
        rows.add(column)
        rows.add(self.language)
        return 0

    def columns(self, title: str) -> Blocks:
        """The blocks; the title is the first if there is one. Their languages: see `languages`."""
        rows, without = self.rows, 0 if title else 1
        if rows.size == without * ROW_FIELDS:
            return NO_BLOCKS
        apart, paths = self.apart.string(), self.path_names.strings("\n")
        if title:
            apart = f"{title}\n{apart}" if apart else title
        return Blocks(
            self.text.string(),
            apart,
            rows.narrow(without, 0, ROW_FIELDS, 0, -1).tobytes(),
            rows.narrow(without, 1, ROW_FIELDS, 0, 0).tobytes(),
            rows.narrow(without, 2, ROW_FIELDS, 0, -1).tobytes(),
            rows.narrow(without, 3, ROW_FIELDS, 0, 0),
            rows.narrow(without, 4, ROW_FIELDS, 0, 1),
            rows.narrow(without, 5, ROW_FIELDS, without, -1),
            tuple(paths[without:]),
        )

    def utf_8_text(self) -> bytes:
        """The text of the blocks, in UTF-8."""
        return bytes(self.text.chars[: max(self.text.size - 1, 0)])

    def languages(self, title: str) -> memoryview:
        """The number of each block's declared language, 0: none; empty if no block declares one."""
        return self.rows.narrow(0 if title else 1, 6, ROW_FIELDS, 0, 0)
