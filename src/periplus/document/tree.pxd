cimport cython

from periplus.document.insertion cimport Insertion

cdef int T_COMMENT, T_DOCTYPE, T_NUL
cdef int INITIAL, BEFORE_HTML, BEFORE_HEAD, IN_HEAD, IN_NOSCRIPT, AFTER_HEAD, IN_BODY, IN_TEXT, IN_TABLE, IN_CAPTION
cdef int IN_COLUMNS, IN_TABLE_BODY, IN_ROW, IN_CELL, IN_TEMPLATE, AFTER_BODY, IN_FRAMESET, AFTER_FRAMESET
cdef int AFTER_AFTER_BODY, AFTER_AFTER_FRAMESET
cdef int COLGROUP, HTML, TEMPLATE, ELEMENTS, DEEPEST
cdef const unsigned char[::1] CLOSES
cdef int STRANGE, TEXT_SIDE, HTML_SIDE, FOSTERING


cdef class _Builder


@cython.final
cdef class PageTree:
    cdef readonly unsigned char[::1] chars, spaces
    cdef readonly int[::1] tags, parents, firsts, nexts, starts, ends, attributes, attribute_counts, offsets
    cdef readonly int[::1] attribute_names, value_starts, value_ends
    cdef readonly tuple own_names, own_attribute_names

    @cython.locals(count=int, rows=int)
    cdef int _take(self, _Builder builder) except -1


cdef class _Builder(Insertion):
    cdef list pending

    cpdef int take_text(self, int start, int end, int blank) except -1
    @cython.locals(top=size_t)
    cpdef int take_start(self, int tag) except -1
    @cython.locals(top=size_t)
    cpdef int take_end(self, int tag) except -1
    cpdef int take_other(self, int kind, int start, int end) except -1
    cpdef int is_foreign(self) except -1
    @cython.final
    cdef int _text(self, int start, int end, int blank) except -1
    @cython.final
    cdef inline int _text_in_body(self, int start, int end, int blank) except -1
    cdef int _foster_text(self, int start, int end, int blank) except -1
    @cython.locals(pending=list)
    cdef _flush(self)
    cdef int _white_end(self, int start, int end) except -1
    cdef int _text_white(self, int start, int end) except -1
    cdef int _text_early(self, int start, int end, int blank) except -1
    @cython.final
    cdef int _nul(self) except -1
    @cython.final
    cdef int _insert_comment(self, int start, int end) except -1
    @cython.final
    @cython.locals(first=int, count=int)
    cdef int _insert_doctype(self, int start, int end) except -1
    @cython.final
    cdef int _end_of_page(self) except -1
