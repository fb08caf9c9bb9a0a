cimport cython

from periplus.document.nodes cimport Nodes

cdef int DATA, RCDATA, RAWTEXT, SCRIPT_DATA, PLAINTEXT
cdef int INITIAL, BEFORE_HTML, BEFORE_HEAD, IN_HEAD, IN_NOSCRIPT, AFTER_HEAD, IN_BODY, IN_TEXT, IN_TABLE, IN_CAPTION
cdef int IN_COLUMNS, IN_TABLE_BODY, IN_ROW, IN_CELL, IN_TEMPLATE, AFTER_BODY, IN_FRAMESET, AFTER_FRAMESET
cdef int AFTER_AFTER_BODY, AFTER_AFTER_FRAMESET
cdef int S_OTHER, S_BLOCK, S_HEADING, S_PRE, S_FORM, S_LI, S_DD, S_PLAINTEXT, S_BUTTON, S_A, S_FORMATTING, S_NOBR
cdef int S_OBJECT, S_TABLE, S_VOID, S_INPUT, S_PARAM, S_HR, S_TEXTAREA, S_XMP, S_IFRAME, S_NOEMBED, S_SELECT
cdef int S_OPTION, S_OPTGROUP, S_RB, S_RP, S_MATH, S_SVG, S_PART, S_HTML, S_BODY, S_FRAMESET, S_IN_HEAD
cdef int E_OTHER, E_BLOCK, E_FORM, E_P, E_LI, E_DD, E_HEADING, E_FORMATTING, E_OBJECT, E_BR, E_BODY, E_HTML, E_TEMPLATE
cdef int A, BASE, BODY, BR, BUTTON, CAPTION, COL, COLGROUP, DD, DT, FONT, FORM, FRAME, FRAMESET, HEAD, HTML, IMAGE, IMG
cdef int INPUT, LI, NOBR, NOFRAMES, NOSCRIPT, OPTGROUP, OPTION, P, PLAIN, RTC, RUBY, SCRIPT, SELECT, STYLE
cdef int TABLE, TBODY, TD, TEMPLATE, TEXTAREA, TFOOT, TH, THEAD, TITLE, TR
cdef int SCOPE, IN_LIST, IN_BUTTON, TABLE_SCOPE, IS_HEADING, BODY_CONTEXT, ROW_CONTEXT, FOSTERING, RAW, BREAKOUT
cdef int STRANGE, ELEMENTS, DEEPEST
cdef dict MODES
cdef int[::1] STARTS_BODY, ENDS_BODY, FLAGS


cdef bint is_table_part(int tag)


cdef class Insertion(Nodes):
    cdef int templates, mode, former, head, form, frameset_ok, quirks, skip_line

    cdef int _reset_mode(self) except -1
    cdef int _leave_early(self) except -1
    cdef int _read(self, int tag) except -1
    cdef int _start(self, int tag) except -1
    cdef int _start_at_the_end(self, int tag) except -1
    cdef int _start_in_mode(self, int tag) except -1
    cdef int _leave_columns(self) except -1
    cdef int _start_early(self, int tag, int group) except -1
    cdef int _start_in_head(self, int tag) except -1
    cdef int _insert_raw(self, int tag) except -1
    cdef int _start_in_body(self, int tag) except -1
    cdef int _start_wide(self, int group, int tag) except -1
    cdef int _start_root(self, int group, int tag) except -1
    cdef int _start_control(self, int group, int tag) except -1
    cdef int _start_plugin(self, int group, int tag) except -1
    cdef int _start_in_table(self, int tag) except -1
    cdef int _start_in_row(self, int tag) except -1
    cdef int _leave_row(self) except -1
    cdef int _leave_table_body(self) except -1
    cdef int _leave_cell(self) except -1
    cdef int _leave_caption(self) except -1
    cdef int _start_in_cell(self, int tag) except -1
    cdef int _start_in_template(self, int tag) except -1
    cdef int _start_foreign(self, int tag) except -1
    cdef int _end(self, int tag) except -1
    cdef int _end_in_mode(self, int tag) except -1
    cdef int _end_early(self, int tag) except -1
    cdef int _end_template(self) except -1
    cdef int _end_in_body(self, int tag) except -1
    cdef int _end_heading(self) except -1
    cdef int _end_form(self) except -1
    cdef int _end_in_cell(self, int tag) except -1
    cdef int _end_in_row(self, int tag) except -1
    cdef int _end_in_table(self, int tag) except -1
