# cython: infer_types=True, initializedcheck=False
"""Tree construction: the insertion modes, HTML Living Standard 13.2.6.4 and 13.2.6.5.

insertion.pxd gives the types in C.
"""

from __future__ import annotations

from typing import Final

from periplus.document.nodes import Nodes
from periplus.document.tags import (
    DEEPEST,
    END_GROUPS,
    END_OF,
    FLAGS_OF,
    FOREIGN,
    START_GROUPS,
    START_OF,
    TAGS,
    bits_of,
    numbers_of,
)

# Tokeniser states, as in `tokens`
DATA, RCDATA, RAWTEXT, SCRIPT_DATA, PLAINTEXT = range(5)
# insertion modes
(INITIAL, BEFORE_HTML, BEFORE_HEAD, IN_HEAD, IN_NOSCRIPT, AFTER_HEAD, IN_BODY, IN_TEXT, IN_TABLE) = range(9)
(IN_CAPTION, IN_COLUMNS, IN_TABLE_BODY, IN_ROW, IN_CELL, IN_TEMPLATE, AFTER_BODY, IN_FRAMESET, AFTER_FRAMESET) = range(
    9, 18
)
(AFTER_AFTER_BODY, AFTER_AFTER_FRAMESET) = range(18, 20)
(S_OTHER, S_BLOCK, S_HEADING, S_PRE, S_FORM, S_LI, S_DD, S_PLAINTEXT, S_BUTTON, S_A, S_FORMATTING, S_NOBR) = range(12)
(S_OBJECT, S_TABLE, S_VOID, S_INPUT, S_PARAM, S_HR, S_TEXTAREA, S_XMP, S_IFRAME, S_NOEMBED, S_SELECT) = range(12, 23)
(S_OPTION, S_OPTGROUP, S_RB, S_RP, S_MATH, S_SVG, S_PART, S_HTML, S_BODY, S_FRAMESET, S_IN_HEAD) = range(23, 34)
(E_OTHER, E_BLOCK, E_FORM, E_P, E_LI, E_DD, E_HEADING, E_FORMATTING, E_OBJECT, E_BR, E_BODY, E_HTML, E_TEMPLATE) = (
    range(13)
)
assert len(START_GROUPS) == S_IN_HEAD + 1 and len(END_GROUPS) == E_TEMPLATE + 1

A, BASE, BODY, BR, BUTTON, CAPTION, COL, COLGROUP, DD, DT, FONT, FORM, FRAME, FRAMESET, HEAD, HTML, IMAGE, IMG = (
    numbers_of("a base body br button caption col colgroup dd dt font form frame frameset head html image img")
)
INPUT, LI, NOBR, NOFRAMES, NOSCRIPT, OPTGROUP, OPTION, P, PLAIN, RTC, RUBY, SCRIPT, SELECT, TABLE, TBODY, TD = (
    numbers_of("input li nobr noframes noscript optgroup option p plaintext rtc ruby script select table tbody td")
)
STYLE, TEMPLATE, TEXTAREA, TFOOT, TH, THEAD, TITLE, TR = numbers_of("style template textarea tfoot th thead title tr")
SCOPE, IN_LIST, IN_BUTTON, TABLE_SCOPE, IS_HEADING, BODY_CONTEXT, ROW_CONTEXT, FOSTERING, RAW, BREAKOUT = bits_of(
    "scope list button table_scope heading body_context row_context fostering raw breakout"
)
STRANGE = FOREIGN
ELEMENTS: int = len(TAGS)
MODES: Final = {
    TD: IN_CELL, TH: IN_CELL, TR: IN_ROW, TBODY: IN_TABLE_BODY, THEAD: IN_TABLE_BODY, TFOOT: IN_TABLE_BODY,
    CAPTION: IN_CAPTION, COLGROUP: IN_COLUMNS, TABLE: IN_TABLE, HEAD: IN_HEAD, BODY: IN_BODY, FRAMESET: IN_FRAMESET,
}  # fmt: skip
STARTS_BODY, ENDS_BODY, FLAGS = START_OF, END_OF, FLAGS_OF


def is_table_part(tag: int) -> bool:
    """Whether it is the tag of a caption, column, row, cell, or group of them."""
    return tag < ELEMENTS and STARTS_BODY[tag] == S_PART and tag not in (FRAME, HEAD)


class Insertion(Nodes):
    """The insertion mode, and the handling of start and end tags in each mode."""

    def __init__(self, page: bytes) -> None:
        super().__init__(page)
        self.templates = 0
        self.mode = self.former = INITIAL  # former: the mode to return to after the text of an element
        self.head = self.form = -1
        self.frameset_ok = 1
        self.quirks = self.skip_line = 0

    def _reset_mode(self) -> int:
        at = self.depth - 1
        while at > 0:
            tag = self.open_tags[at]
            if tag == TEMPLATE:
                self.mode = self.template_modes[self.templates - 1]
                return 0
            if tag == HTML:
                self.mode = BEFORE_HEAD if self.head < 0 else AFTER_HEAD
                return 0
            if tag in MODES:
                self.mode = MODES[tag]
                return 0
            at -= 1
        return 0

    def _leave_early(self) -> int:
        """Handles any token that implies the next part, in the modes before the body and in a column group."""
        if self.mode == INITIAL:
            self.quirks = 1
            self.mode = BEFORE_HTML
        elif self.mode == BEFORE_HTML:
            self._open(HTML, 0, 0)
            self.mode = BEFORE_HEAD
        elif self.mode == BEFORE_HEAD:
            self.head = self._open(HEAD, 0, 0)
            self.mode = IN_HEAD
        elif self.mode == IN_HEAD:
            self.depth -= 1
            self.mode = AFTER_HEAD
        elif self.mode == IN_NOSCRIPT:
            self.depth -= 1
            self.mode = IN_HEAD
        elif self.mode == AFTER_HEAD:
            self._open(BODY, 0, 0)
            self.mode = IN_BODY
        else:
            self.depth -= 1
            self.mode = IN_TABLE
        return 0

    def _read(self, tag: int) -> int:
        """Makes the tokeniser read the following text as that of a raw text element."""
        self.reading_tag = tag
        if tag in (TITLE, TEXTAREA):
            self.reading = RCDATA
        elif tag == SCRIPT:
            self.reading = SCRIPT_DATA
        else:
            self.reading = PLAINTEXT if tag == PLAIN else RAWTEXT
        return 0

    # --- start tags; a mode handler returns 1 if the mode has changed and the tag must be processed again

    def _start(self, tag: int) -> int:
        if self.open_flags[self.depth - 1] & STRANGE and self._is_foreign_start(tag):
            return self._start_foreign(tag)
        if self.depth >= DEEPEST:
            return self._start_at_the_end(tag)
        while self._start_in_mode(tag):
            pass
        return 0

    def _start_at_the_end(self, tag: int) -> int:
        """At the depth limit only text elements can be opened."""
        group = STARTS_BODY[tag] if tag < ELEMENTS else S_OTHER
        if tag < ELEMENTS and FLAGS[tag] & RAW:
            return self._insert_raw(tag)
        return 0 if group in (S_PART, S_HTML, S_BODY, S_FRAMESET) else self._insert_leaf(tag)

    def _start_in_mode(self, tag: int) -> int:
        mode = self.mode
        if mode == IN_BODY:
            return self._start_in_body(tag)
        if mode <= AFTER_HEAD:
            return self._start_early(tag, STARTS_BODY[tag] if tag < ELEMENTS else S_OTHER)
        if mode in (IN_CELL, IN_CAPTION):
            return self._start_in_cell(tag)
        if mode in (IN_ROW, IN_TABLE_BODY):
            return self._start_in_row(tag)
        if mode == IN_TABLE:
            return self._start_in_table(tag)
        if mode == IN_TEMPLATE:
            return self._start_in_template(tag)
        if tag == HTML:
            return self._start_in_body(tag)
        if mode == IN_COLUMNS:
            if tag == COL:
                return self._insert_leaf(tag)
            if tag == TEMPLATE:
                return self._start_in_head(tag)
            return self._leave_columns()
        if mode in (AFTER_BODY, AFTER_AFTER_BODY):
            self.mode = IN_BODY
            return 1
        if tag == NOFRAMES:
            return self._insert_raw(tag)
        if mode == IN_FRAMESET and tag == FRAMESET:
            self._insert(tag)
        elif mode == IN_FRAMESET and tag == FRAME:
            self._insert_leaf(tag)
        return 0

    def _leave_columns(self) -> int:
        if self.open_tags[self.depth - 1] != COLGROUP:
            return 0
        self.depth -= 1
        self.mode = IN_TABLE
        return 1

    def _start_early(self, tag: int, group: int) -> int:
        mode = self.mode
        if mode == BEFORE_HTML and tag == HTML:
            self._insert(tag)
            self.mode = BEFORE_HEAD
            return 0
        if mode >= BEFORE_HEAD and tag == HTML:
            return self._start_in_body(tag)
        if mode == BEFORE_HEAD and tag == HEAD:
            self.head = self._insert(tag)
            self.mode = IN_HEAD
            return 0
        if mode >= IN_HEAD and (tag == HEAD or (mode == IN_NOSCRIPT and tag == NOSCRIPT)):
            return 0
        if mode == IN_HEAD and tag == NOSCRIPT:
            self._insert(tag)
            self.mode = IN_NOSCRIPT
            return 0
        if group == S_IN_HEAD and mode >= IN_HEAD:
            if mode == IN_HEAD or (mode == IN_NOSCRIPT and tag not in (BASE, SCRIPT, TEMPLATE, TITLE)):
                return self._start_in_head(tag)
            if mode == AFTER_HEAD:
                self._push(self.head, HEAD, FLAGS[HEAD])
                place = self.depth - 1
                self._start_in_head(tag)
                return self._remove(place)
        if mode == AFTER_HEAD and tag == BODY:
            self._insert(tag)
            self.frameset_ok = 0
            self.mode = IN_BODY
            return 0
        if mode == AFTER_HEAD and tag == FRAMESET:
            self._insert(tag)
            self.mode = IN_FRAMESET
            return 0
        self._leave_early()
        return 1

    def _start_in_head(self, tag: int) -> int:
        if tag == TEMPLATE:
            self._insert(tag)
            self._mark()
            self.frameset_ok = 0
            self.mode = self.template_modes[self.templates] = IN_TEMPLATE
            self.templates += 1
            return 0
        return self._insert_raw(tag) if FLAGS[tag] & RAW else self._insert_leaf(tag)

    def _insert_raw(self, tag: int) -> int:
        self._insert(tag)
        self._read(tag)
        self.former = self.mode
        self.mode = IN_TEXT
        return 0

    def _start_in_body(self, tag: int) -> int:
        group = STARTS_BODY[tag] if tag < ELEMENTS else S_OTHER
        if group == S_OTHER:
            self._reopen()
            self._insert(tag)
        elif group == S_BLOCK:
            self._close_p()
            self._insert(tag)
        elif group in (S_FORMATTING, S_A, S_NOBR):
            if group == S_A and self.listed:
                self._close_link()
            self._reopen()
            if group == S_NOBR and self._has(NOBR, SCOPE):
                self._end_formatting(NOBR)
                self._reopen()
            self._list_format(self._insert(tag))
        elif group == S_LI:
            self._close_item(LI, LI)
            self._insert(tag)
            self.frameset_ok = 0
        elif group == S_DD:
            self._close_item(DD, DT)
            self._insert(tag)
            self.frameset_ok = 0
        elif group == S_VOID:
            self._reopen()
            self._insert_leaf(IMG if tag == IMAGE else tag)
            self.frameset_ok = 0
        elif group == S_HEADING:
            self._close_p()
            if self.open_flags[self.depth - 1] & IS_HEADING:
                self.depth -= 1
            self._insert(tag)
        elif group == S_IN_HEAD:
            self._start_in_head(tag)
        elif group in (S_PRE, S_TABLE):
            self._start_wide(group, tag)
        elif group in (S_SVG, S_MATH):
            self._reopen()
            self._insert_foreign(tag, 1 if group == S_SVG else 2)
        elif group in (S_HTML, S_BODY, S_FRAMESET):
            self._start_root(group, tag)
        elif group != S_PART:
            self._start_control(group, tag)
        return 0

    def _start_wide(self, group: int, tag: int) -> int:
        if group == S_PRE or not self.quirks:
            self._close_p()
        self._insert(tag)
        self.frameset_ok = 0
        if group == S_PRE:
            self.skip_line = 1
        else:
            self.mode = IN_TABLE
        return 0

    def _start_root(self, group: int, tag: int) -> int:
        if group == S_HTML:
            return 0 if self._has(TEMPLATE, 0) else self._merge(self.stack[1])
        if self.depth < 3 or self.open_tags[2] != BODY:
            return 0
        if group == S_BODY and not self._has(TEMPLATE, 0):
            self.frameset_ok = 0
            return self._merge(self.stack[2])
        if group == S_FRAMESET and self.frameset_ok:
            self._detach(self.stack[2])
            self.depth = 2
            self._insert(tag)
            self.mode = IN_FRAMESET
        return 0

    def _start_control(self, group: int, tag: int) -> int:
        """Forms and their controls, plugins, ruby."""
        if group == S_FORM:
            in_template = self._has(TEMPLATE, 0)
            if self.form < 0 or in_template:
                self._close_p()
                node = self._insert(tag)
                if not in_template:
                    self.form = node
            return 0
        if group == S_PARAM:
            return self._insert_leaf(tag)
        if group in (S_RB, S_RP):
            if self._has(RUBY, SCOPE):
                self._close_implied_tags(RTC if group == S_RP else 0)
            self._insert(tag)
            return 0
        if group in (S_OPTION, S_OPTGROUP):
            if self._has(SELECT, SCOPE):
                self._close_implied_tags(OPTGROUP if group == S_OPTION else 0)
            elif self.open_tags[self.depth - 1] == OPTION:
                self.depth -= 1
            self._reopen()
            self._insert(tag)
            return 0
        if group in (S_INPUT, S_SELECT):
            if self._has(SELECT, SCOPE):
                self._pop_to(SELECT)
                if group == S_SELECT:
                    return 0
            self._reopen()
            self._insert(tag)
            if group == S_INPUT:
                self.depth -= 1
            if group == S_SELECT or self._value("type").lower() != b"hidden":
                self.frameset_ok = 0
            return 0
        if group == S_NOEMBED:
            return self._insert_raw(tag)
        return self._start_plugin(group, tag)

    def _start_plugin(self, group: int, tag: int) -> int:
        if group != S_PLAINTEXT:
            self.frameset_ok = 0
        if group in (S_PLAINTEXT, S_XMP, S_HR):
            self._close_p()
        if group == S_IFRAME:
            return self._insert_raw(tag)
        if group == S_HR:
            if self._has(SELECT, SCOPE):
                self._close_implied_tags(0)
            return self._insert_leaf(tag)
        if group == S_TEXTAREA:
            self.skip_line = 1
            return self._insert_raw(tag)
        if group == S_PLAINTEXT:
            self._insert(tag)
            return self._read(tag)
        if group == S_BUTTON and self._has(BUTTON, SCOPE):
            self._pop_to(BUTTON)
        self._reopen()
        if group == S_XMP:
            return self._insert_raw(tag)
        self._insert(tag)
        return self._mark() if group == S_OBJECT else 0

    def _start_in_table(self, tag: int) -> int:
        if is_table_part(tag):
            self._clear_to(TABLE_SCOPE)
            if tag == CAPTION:
                self._mark()
            if tag == COL:
                self._open(COLGROUP, 0, 0)
            elif tag in (TD, TH, TR):
                self._open(TBODY, 0, 0)
            else:
                self._insert(tag)
            self.mode = MODES[self.open_tags[self.depth - 1]]
            return tag in (COL, TD, TH, TR)
        if tag == TABLE:
            if not self._has(TABLE, TABLE_SCOPE):
                return 0
            self._pop_to(TABLE)
            self._reset_mode()
            return 1
        if tag in (STYLE, SCRIPT, TEMPLATE):
            return self._start_in_head(tag)
        if tag == INPUT and self._value("type").lower() == b"hidden":
            return self._insert_leaf(tag)
        if tag == FORM:
            if self.form < 0 and not self._has(TEMPLATE, 0):
                self.form = self._insert(tag)
                self.depth -= 1
            return 0
        self.fostering = 1
        self._start_in_body(tag)
        self.fostering = 0
        return 0

    def _start_in_row(self, tag: int) -> int:
        """In a table body or a row."""
        if not is_table_part(tag):
            return self._start_in_table(tag)
        in_row = self.mode == IN_ROW
        if tag in (TD, TH):
            self._clear_to(ROW_CONTEXT if in_row else BODY_CONTEXT)
            if not in_row:
                self._open(TR, 0, 0)
                self.mode = IN_ROW
                return 1
            self._insert(tag)
            self._mark()
            self.mode = IN_CELL
            return 0
        if tag == TR and not in_row:
            self._clear_to(BODY_CONTEXT)
            self._insert(tag)
            self.mode = IN_ROW
            return 0
        return self._leave_row() if in_row else self._leave_table_body()

    def _leave_row(self) -> int:
        if not self._has(TR, TABLE_SCOPE):
            return 0
        self._clear_to(ROW_CONTEXT)
        self.depth -= 1
        self.mode = IN_TABLE_BODY
        return 1

    def _leave_table_body(self) -> int:
        if not (self._has(TBODY, TABLE_SCOPE) or self._has(THEAD, TABLE_SCOPE) or self._has(TFOOT, TABLE_SCOPE)):
            return 0
        self._clear_to(BODY_CONTEXT)
        self.depth -= 1
        self.mode = IN_TABLE
        return 1

    def _leave_cell(self) -> int:
        while self.depth > 2:
            self.depth -= 1
            if self.open_tags[self.depth] == TD or self.open_tags[self.depth] == TH:
                break
        self._clear_to_marker()
        self.mode = IN_ROW
        return 1

    def _leave_caption(self) -> int:
        if not self._has(CAPTION, TABLE_SCOPE):
            return 0
        self._pop_to(CAPTION)
        self._clear_to_marker()
        self.mode = IN_TABLE
        return 1

    def _start_in_cell(self, tag: int) -> int:
        """In a cell or a caption."""
        if is_table_part(tag):
            if self.mode == IN_CAPTION:
                return self._leave_caption()
            inside = self._has(TD, TABLE_SCOPE) or self._has(TH, TABLE_SCOPE)
            return self._leave_cell() if inside else 0
        return self._start_in_body(tag)

    def _start_in_template(self, tag: int) -> int:
        if tag < ELEMENTS and STARTS_BODY[tag] == S_IN_HEAD:
            return self._start_in_head(tag)
        if tag in (TD, TH):
            self.mode = IN_ROW
        elif tag == TR:
            self.mode = IN_TABLE_BODY
        elif tag == COL:
            self.mode = IN_COLUMNS
        elif tag in (CAPTION, COLGROUP, TBODY, TFOOT, THEAD):
            self.mode = IN_TABLE
        else:
            self.mode = IN_BODY
        self.template_modes[self.templates - 1] = self.mode
        return 1

    # --- SVG and MathML

    def _start_foreign(self, tag: int) -> int:
        if tag < ELEMENTS and (FLAGS[tag] & BREAKOUT or (tag == FONT and self._has_style())):
            self._break_out()
            while self._start_in_mode(tag):
                pass
            return 0
        self.closing |= self.depth >= DEEPEST
        return self._insert_foreign(tag, self.spaces[self.stack[self.depth - 1]])

    # --- end tags; return values as for start tags

    def _end(self, tag: int) -> int:
        if self.open_flags[self.depth - 1] & STRANGE:
            if tag in (BR, P):
                self._break_out()
            else:
                at = self.depth - 1
                while self.open_tags[at] < 0:
                    if self.open_tags[at] == -tag:
                        self.depth = at
                        return 0
                    at -= 1
        while self._end_in_mode(tag):
            pass
        return 0

    def _end_in_mode(self, tag: int) -> int:
        mode = self.mode
        if mode == IN_BODY:
            return self._end_in_body(tag)
        if mode == IN_TEXT:
            self.depth -= 1
            self.mode = self.former
            return 0
        if mode <= AFTER_HEAD:
            return self._end_early(tag)
        if mode in (IN_CELL, IN_CAPTION):
            return self._end_in_cell(tag)
        if tag == TEMPLATE and mode < AFTER_BODY:
            return self._end_template()
        if mode in (IN_ROW, IN_TABLE_BODY):
            return self._end_in_row(tag)
        if mode == IN_TABLE:
            return self._end_in_table(tag)
        if mode == IN_COLUMNS:
            if tag == COL:
                return 0
            return self._leave_columns() and tag != COLGROUP
        if mode == AFTER_BODY and tag == HTML:
            self.mode = AFTER_AFTER_BODY
        elif mode in (AFTER_BODY, AFTER_AFTER_BODY):
            self.mode = IN_BODY
            return 1
        elif mode == IN_FRAMESET and tag == FRAMESET and self.depth > 2:
            self.depth -= 1
            if self.open_tags[self.depth - 1] != FRAMESET:
                self.mode = AFTER_FRAMESET
        elif mode == AFTER_FRAMESET and tag == HTML:
            self.mode = AFTER_AFTER_FRAMESET
        return 0

    def _end_early(self, tag: int) -> int:
        mode = self.mode
        if tag == TEMPLATE and (mode in (IN_HEAD, AFTER_HEAD)):
            return self._end_template()
        if (mode == IN_HEAD and tag == HEAD) or (mode == IN_NOSCRIPT and tag == NOSCRIPT):
            return self._leave_early()
        if mode == INITIAL or tag == BR or (mode != IN_NOSCRIPT and (tag in (HEAD, BODY, HTML))):
            if mode == AFTER_HEAD and tag == HEAD:
                return 0
            self._leave_early()
            return 1
        return 0

    def _end_template(self) -> int:
        if self._has(TEMPLATE, 0):
            self._pop_to(TEMPLATE)
            self._clear_to_marker()
            self.templates -= 1
            self._reset_mode()
        return 0

    def _end_in_body(self, tag: int) -> int:
        group = ENDS_BODY[tag] if tag < ELEMENTS else E_OTHER
        if group == E_OTHER:
            return self._end_other(tag)
        if group in (E_BLOCK, E_DD):
            self._end_block(tag)
        elif group == E_FORMATTING:
            return self._end_formatting(tag)
        elif group == E_P:
            if not self._has(P, SCOPE | IN_BUTTON):
                self._open(P, 0, 0)
            self._pop_to(P)
        elif group == E_LI:
            if self._has(LI, SCOPE | IN_LIST):
                self._pop_to(LI)
        elif group == E_HEADING:
            self._end_heading()
        elif group == E_OBJECT:
            if self._end_block(tag):
                self._clear_to_marker()
        elif group == E_FORM:
            self._end_form()
        elif group == E_BR:
            self._reopen()
            self._open(BR, 0, 0)
            self.depth -= 1
            self.frameset_ok = 0
        elif group == E_TEMPLATE:
            self._end_template()
        elif self._has(BODY, SCOPE):  # </body>, </html>
            self.mode = AFTER_BODY
            return group == E_HTML
        return 0

    def _end_heading(self) -> int:
        at = self.depth - 1
        while at > 0 and not self.open_flags[at] & (SCOPE | IS_HEADING):
            at -= 1
        if self.open_flags[at] & IS_HEADING:
            self.depth = at
        return 0

    def _end_form(self) -> int:
        if self._has(TEMPLATE, 0):
            return self._end_block(FORM) and 0
        node, self.form = self.form, -1
        place = self._open_place(node) if node > 0 else -1
        if place >= 0 and self._is_in_scope(place):
            self._close_implied_tags(0)
            self._remove(place)
        return 0

    def _end_in_cell(self, tag: int) -> int:
        """In a cell or a caption."""
        caption = self.mode == IN_CAPTION
        if tag == CAPTION and caption:
            self._leave_caption()
            return 0
        if (tag in (TD, TH)) and not caption:
            if self._has(tag, TABLE_SCOPE):
                self._pop_to(tag)
                self._clear_to_marker()
                self.mode = IN_ROW
            return 0
        if tag == TABLE and caption:
            return self._leave_caption()
        part = is_table_part(tag)
        if tag == TABLE or (part and not caption and tag not in (CAPTION, COL, COLGROUP)):
            return self._leave_cell() if self._has(tag, TABLE_SCOPE) else 0
        return 0 if part or tag in (BODY, HTML) else self._end_in_body(tag)

    def _end_in_row(self, tag: int) -> int:
        """In a table body or a row."""
        in_row = self.mode == IN_ROW
        if tag == TABLE:
            return self._leave_row() if in_row else self._leave_table_body()
        if tag == TR and in_row:
            self._leave_row()
            return 0
        if tag in (TBODY, THEAD, TFOOT):
            if not self._has(tag, TABLE_SCOPE):
                return 0
            if in_row:
                return self._leave_row()
            self._leave_table_body()
            return 0
        return self._end_in_table(tag)

    def _end_in_table(self, tag: int) -> int:
        if tag == TABLE:
            if self._has(TABLE, TABLE_SCOPE):
                self._pop_to(TABLE)
                self._reset_mode()
            return 0
        if not is_table_part(tag) and tag not in (BODY, HTML):
            self.fostering = 1
            self._end_in_body(tag)
            self.fostering = 0
        return 0
