# cython: infer_types=True, initializedcheck=False
"""The DOM tree of an HTML page without scripting, as columns of numbers.

Tree construction of the HTML Living Standard (13.2.6), on the tokens of `tokens`. Linear for any page: at a depth of
512 open elements further ones become leaves, as in browsers, and the number of reopened formatting elements is limited
by the length of the page. tree.pxd gives the types in C.
"""

from __future__ import annotations

from periplus.document.insertion import Insertion
from periplus.document.tags import (
    ATTRIBUTE_NUMBERS,
    ATTRIBUTES,
    BITS,
    DEEPEST,
    END_GROUPS,
    END_OF,
    FOREIGN,
    HTML_POINT,
    START_GROUPS,
    START_OF,
    TAG_NUMBERS,
    TAGS,
    TEXT_POINT,
    is_quirky,
    numbers_of,
)

__all__ = ["ATTRIBUTES", "ATTRIBUTE_NUMBERS", "COMMENT", "DOCTYPE", "TAGS", "TAG_NUMBERS", "TEXT", "PageTree", "parse"]

TEXT, COMMENT, DOCTYPE = -1, -2, -3  # kinds of nodes other than elements

# Kinds of tokens, as in `tokens`; insertion modes, as in `insertion`
T_COMMENT, T_DOCTYPE, T_NUL = range(3)
(INITIAL, BEFORE_HTML, BEFORE_HEAD, IN_HEAD, IN_NOSCRIPT, AFTER_HEAD, IN_BODY, IN_TEXT, IN_TABLE) = range(9)
(IN_CAPTION, IN_COLUMNS, IN_TABLE_BODY, IN_ROW, IN_CELL, IN_TEMPLATE, AFTER_BODY, IN_FRAMESET) = range(9, 17)
AFTER_FRAMESET, AFTER_AFTER_BODY, AFTER_AFTER_FRAMESET = range(17, 20)
COLGROUP, HTML, TEMPLATE = numbers_of("colgroup html template")
# Per element: whether its end tag, in a body or a cell, just closes it if it is the current element
_CLOSING = {[*END_GROUPS].index(group) for group in ("other", "block", "p", "li", "dd", "heading")}
_TABLE = {[*START_GROUPS].index(group) for group in ("table", "part")}
CLOSES = bytes(end in _CLOSING and start not in _TABLE for start, end in zip(START_OF, END_OF, strict=True))
ELEMENTS = len(TAGS)
STRANGE, TEXT_SIDE, HTML_SIDE, FOSTERING = FOREIGN, TEXT_POINT, HTML_POINT, BITS["fostering"]


class PageTree:
    """A page's nodes and attributes; int32, except `chars` and `spaces` (uint8). -1 means none.

    chars: the page as UTF-8, followed by rewritten parts; every text and value is a slice of it. Per node, where 0 is
    the document: `tags` (0 document, -1 text, -2 comment, -3 doctype, else an element's number in TAGS, from len(TAGS)
    on in `own_names`); `spaces` (0 HTML, 1 SVG, 2 MathML); `parents` (-1: removed from the tree), `firsts` (child),
    `nexts` (sibling); `starts`, `ends` (text, comment, name of a doctype); `attributes`, `attribute_counts` (first row,
    number); `offsets` (of its tag in the page, 0 if it has none). Per attribute: `attribute_names` (number in
    ATTRIBUTES, then in `own_attribute_names`), `value_starts`, `value_ends`. Adjacent text nodes may belong together.
    The contents of a template are its children.
    """

    def __init__(self, builder: _Builder) -> None:
        self._take(builder)

    def _take(self, builder: _Builder) -> int:
        """Takes the columns, cut to their length."""
        count, rows = builder.count, builder.rows
        self.chars, self.spaces = builder.chars[: builder.used], builder.spaces[:count]
        self.tags, self.parents = builder.tags[:count], builder.parents[:count]
        self.firsts, self.nexts = builder.firsts[:count], builder.nexts[:count]
        self.starts, self.ends = builder.starts[:count], builder.ends[:count]
        self.attributes, self.attribute_counts = builder.attributes[:count], builder.counts[:count]
        self.offsets = builder.offsets[:count]
        self.attribute_names = builder.names[:rows]
        self.value_starts, self.value_ends = builder.value_starts[:rows], builder.value_ends[:rows]
        self.own_names, self.own_attribute_names = _names(builder.own_tags), _names(builder.own_names)
        return 0


def parse(page: bytes) -> PageTree:
    """The tree of a page in UTF-8. Total."""
    if b"\r" in page:
        page = page.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    builder = _Builder(page)
    builder.run()
    return PageTree(builder)


def _names(own: dict[bytes, int]) -> tuple[str, ...]:
    return tuple(name.decode("utf-8", "replace").replace("\0", "\ufffd") for name in own)


class _Builder(Insertion):
    """Dispatches the tokens: tags to the insertion modes; text, comments and doctypes are handled here."""

    def __init__(self, page: bytes) -> None:
        super().__init__(page)
        # text in a table, until it is known whether it is only white space
        self.pending: list[tuple[int, int, int]] = []

    def take_text(self, start: int, end: int, blank: int) -> int:
        """Inserts a text."""
        if self.skip_line:
            self.skip_line = 0
            start += self.chars[start] == 10
            if start == end:
                return 0
        if self.mode == IN_BODY and not self.listed and not self.open_flags[self.depth - 1] & STRANGE:
            self.frameset_ok &= blank
            return self._insert_text(start, end)
        return self._text(start, end, blank)

    def take_start(self, tag: int) -> int:
        """Processes a start tag."""
        self.skip_line = 0
        if self.pending:
            self._flush()
        top = self.depth - 1
        if self.mode == IN_BODY and top < DEEPEST - 1 and not self.open_flags[top] & STRANGE:
            return self._start_in_body(tag)
        return self._start(tag)

    def take_end(self, tag: int) -> int:
        """Processes an end tag."""
        self.skip_line = 0
        if self.pending:
            self._flush()
        top = self.depth - 1
        if (
            self.open_tags[top] == tag
            and (self.mode in (IN_BODY, IN_CELL))
            and top > 1
            and tag < ELEMENTS
            and CLOSES[tag]
        ):
            self.depth = top
            return 0
        return self._end(tag)

    def take_other(self, kind: int, start: int, end: int) -> int:
        """Processes a comment, a doctype, a NUL, or the end of the page."""
        self.skip_line = 0
        if kind == T_NUL:
            return self._nul()
        if self.pending:
            self._flush()
        if kind == T_COMMENT:
            return self._insert_comment(start, end)
        if kind == T_DOCTYPE:
            return self._insert_doctype(start, end) if self.mode == INITIAL else 0
        while self._end_of_page():
            pass
        return 0

    def is_foreign(self) -> int:
        """Whether the current element is in SVG or MathML."""
        return self.open_flags[self.depth - 1] & STRANGE

    def _text(self, start: int, end: int, blank: int) -> int:
        mode = self.mode
        flags = self.open_flags[self.depth - 1]
        if flags & STRANGE and not flags & (TEXT_SIDE | HTML_SIDE):
            if not blank:
                self.frameset_ok = 0
            return self._insert_text(start, end)
        if mode in (IN_BODY, IN_CELL, IN_CAPTION, IN_TEMPLATE):
            return self._text_in_body(start, end, blank)
        if mode == IN_TEXT:
            return self._insert_text(start, end)
        if mode in (IN_TABLE, IN_TABLE_BODY, IN_ROW):
            if self.open_flags[self.depth - 1] & FOSTERING or self.open_tags[self.depth - 1] == TEMPLATE:
                self.pending.append((start, end, blank))
                return 0
            return self._foster_text(start, end, blank)
        if mode in (AFTER_BODY, AFTER_AFTER_BODY):
            if not blank:
                self.mode = IN_BODY
            return self._text_in_body(start, end, blank)
        if mode in (IN_FRAMESET, AFTER_FRAMESET, AFTER_AFTER_FRAMESET):
            return self._text_white(start, end)
        return self._text_early(start, end, blank)

    def _text_in_body(self, start: int, end: int, blank: int) -> int:
        if self.listed:
            self._reopen()
        if not blank:
            self.frameset_ok = 0
        return self._insert_text(start, end)

    def _foster_text(self, start: int, end: int, blank: int) -> int:
        self.fostering = 1
        self._text_in_body(start, end, blank)
        self.fostering = 0
        return 0

    def _flush(self) -> None:
        """Inserts the pending text of a table: white space stays in it, anything else is foster-parented."""
        pending, self.pending = self.pending, []
        blank = all(blank for _, _, blank in pending)
        for start, end, white in pending:
            if blank:
                self._insert_text(start, end)
            else:
                self._foster_text(start, end, white)

    def _white_end(self, start: int, end: int) -> int:
        while start < end and self.chars[start] in (9, 10, 12, 13, 32):
            start += 1
        return start

    def _text_white(self, start: int, end: int) -> int:
        """Inserts only the white space of a text."""
        while start < end:
            white = self._white_end(start, end)
            if white > start:
                self._insert_text(start, white)
            start = white + 1
        return 0

    def _text_early(self, start: int, end: int, blank: int) -> int:
        """Before the body, and in a column group: inserts leading white space, then enters the next part."""
        white = self._white_end(start, end)
        inserted = self.mode in (IN_HEAD, IN_NOSCRIPT, AFTER_HEAD, IN_COLUMNS)
        if inserted and white > start:
            self._insert_text(start, white)
        if white == end:
            return 0
        if self.mode == IN_COLUMNS and self.open_tags[self.depth - 1] != COLGROUP:
            return self._text_white(white, end)
        self._leave_early()
        return self._text(white, end, 0)

    def _nul(self) -> int:
        """A NUL is dropped in HTML, and replaced in SVG and MathML."""
        flags = self.open_flags[self.depth - 1]
        if flags & STRANGE and not flags & (TEXT_SIDE | HTML_SIDE):
            return self._insert_text(self.size + 1, self.size + 4)
        while self.mode <= AFTER_HEAD:
            self._leave_early()
        if self.mode in (AFTER_BODY, AFTER_AFTER_BODY):
            self.mode = IN_BODY
        return 0

    def _insert_comment(self, start: int, end: int) -> int:
        mode = self.mode
        if mode in (INITIAL, BEFORE_HTML, AFTER_AFTER_BODY, AFTER_AFTER_FRAMESET):
            node = self._new(-2)
            self._attach(node, 0, -1)
        elif mode == AFTER_BODY:
            node = self._new(-2)
            self._attach(node, self.stack[1], -1)
        else:
            node = self._add(-2)
        self.starts[node] = start
        self.ends[node] = end
        return 0

    def _insert_doctype(self, start: int, end: int) -> int:
        node = self._new(-3)
        self._attach(node, 0, -1)
        first, count = self.first, self.attrs
        self.starts[node], self.ends[node], self.attributes[node], self.counts[node] = start, end, first, count
        values = {
            self.names[row]: bytes(self.chars[self.value_starts[row] : self.value_ends[row]])
            for row in range(first, first + count)
        }
        public, system = (values.get(ATTRIBUTE_NUMBERS[name]) for name in ("public", "system"))
        texts = [None if value is None else value.decode("utf-8", "replace") for value in (public, system)]
        self.quirks = self.malformed or is_quirky(bytes(self.chars[start:end]).decode("utf-8", "replace"), *texts)
        self.mode = BEFORE_HTML
        return 0

    def _end_of_page(self) -> int:
        """What the end of the page closes; 1: there is more."""
        if self.mode == IN_TEXT:
            self.depth -= 1
            self.mode = self.former
            return 1
        if self.mode <= AFTER_HEAD:
            self._leave_early()
            return 1
        if self.templates and self.mode < AFTER_BODY and self._has(TEMPLATE, 0):
            self._end_template()
            return 1
        return 0
