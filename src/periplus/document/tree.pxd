cimport cython

from periplus.document.insertion cimport Insertion
from periplus.document.tokens cimport Tokens

cdef int T_TEXT, T_START, T_END, T_COMMENT, T_DOCTYPE, T_NUL, T_EOF
cdef int DATA, STEP, IN_FOREIGN, RCDATA, RAWTEXT, SCRIPT_DATA, PLAINTEXT
cdef int INITIAL, BEFORE_HTML, BEFORE_HEAD, IN_HEAD, IN_NOSCRIPT, AFTER_HEAD, IN_BODY, IN_TEXT, IN_TABLE, IN_CAPTION
cdef int IN_COLUMNS, IN_TABLE_BODY, IN_ROW, IN_CELL, IN_TEMPLATE, AFTER_BODY, IN_FRAMESET, AFTER_FRAMESET
cdef int AFTER_AFTER_BODY, AFTER_AFTER_FRAMESET
cdef int COLGROUP, HTML, TEMPLATE
cdef int STRANGE, TEXT_SIDE, HTML_SIDE, FOSTERING


cdef class _Builder


@cython.final
cdef class PageTree:
    cdef readonly unsigned char[::1] chars, spaces
    cdef readonly int[::1] tags, parents, firsts, nexts, starts, ends, attributes, attribute_counts, offsets
    cdef readonly int[::1] attribute_names, value_starts, value_ends
    cdef readonly tuple own_names, own_attribute_names

    @cython.locals(tokens=Tokens, count=int, rows=int)
    cdef int _take(self, _Builder builder) except -1


@cython.final
cdef class _Builder(Insertion):
    cdef list pending
    cdef int done

    @cython.locals(at=int, reading=int)
    cpdef build(self)
    @cython.locals(kind=int, start=int, end=int, tokens=Tokens)
    cdef int _read_token(self, int at) except -1
    cdef int _text(self, int start, int end, int blank) except -1
    cdef inline int _text_in_body(self, int start, int end, int blank) except -1
    cdef int _foster_text(self, int start, int end, int blank) except -1
    @cython.locals(pending=list)
    cdef _flush(self)
    cdef int _white_end(self, int start, int end) except -1
    cdef int _text_white(self, int start, int end) except -1
    cdef int _text_early(self, int start, int end, int blank) except -1
    cdef int _nul(self) except -1
    cdef int _comment(self, int start, int end) except -1
    cdef int _doctype(self, int start, int end, int first, int count, int quirks) except -1
    cdef int _end_of_page(self) except -1
