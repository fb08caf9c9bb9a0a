cimport cython

cdef int COMMENT, DOCTYPE, NUL, EOF
cdef int DATA, RCDATA, RAWTEXT, SCRIPT, PLAINTEXT
cdef int LONGEST_REFERENCE, SLOTS, SHIFT
cdef unsigned long long SPREAD, MOST
cdef int WHITE, SLASH, CLOSE, NOTHING, EQUALS
cdef int ELEMENTS, NAMES, PUBLIC, SYSTEM
cdef const unsigned char[::1] ENDS, LOWER, FOLD, WORD, KNOWN_LETTERS
cdef unsigned long long[::1] KNOWN_KEYS, NEAR_NAMES
cdef int[::1] KNOWN_SLOTS, KNOWN_ENDS, KNOWN_SIZES
cdef dict REFERENCES, WINDOWS_1252

cdef bytes _expansion(bytes name)


cdef class Tokens:
    cdef readonly bytes page
    cdef readonly int used, rows, first, attrs, closing, malformed
    cdef readonly int size
    cdef int at, room, serial, place, done
    cdef public int reading, reading_tag
    cdef readonly unsigned char[::1] chars
    cdef readonly int[::1] names, value_starts, value_ends
    cdef int[::1] stamps
    cdef readonly dict own_tags, own_names

    @cython.locals(mode=int)
    cpdef run(self)
    cpdef int take_text(self, int start, int end, int blank) except -1
    cpdef int take_start(self, int tag) except -1
    cpdef int take_end(self, int tag) except -1
    cpdef int take_other(self, int kind, int start, int end) except -1
    cpdef int is_foreign(self) except -1
    cpdef adjust_names(self, int first, int count, int[::1] names)
    @cython.locals(row=int)
    cpdef int merge_rows(self, int first, int count, int other, int more) except -1
    @cython.final
    @cython.locals(at=size_t)
    cdef inline int _put_text(self, size_t start, size_t end) except -1
    @cython.final
    @cython.locals(at=size_t, start=size_t, begin=int, end=size_t, code=cython.uint, following=cython.uint)
    cdef inline int _next(self) except -1
    @cython.final
    cdef int _end_tag(self, int at) except -1
    @cython.final
    @cython.locals(begin=size_t, value=cython.ulonglong, code=cython.uchar, letter=cython.uchar, stop=int, after=int, tag=int, first=int, closing=int)
    cdef int _tag(self, int place, size_t at, int ends) except -1
    @cython.final
    @cython.locals(begin=size_t, value=cython.ulonglong, code=cython.uchar, letter=cython.uchar, name=int, start=size_t, end=size_t, odd=int, quote=cython.uchar)
    cdef int _attribute(self, size_t at) except? -1
    @cython.final
    cdef inline int _add_attribute(self, int name, int start, int end) except -1
    @cython.final
    @cython.locals(slot=size_t, row=cython.ulonglong)
    cdef inline int _number(self, size_t begin, size_t end, unsigned long long value, size_t slots) except? -1
    @cython.final
    @cython.locals(slot=int, number=int, name=int, at=int)
    cdef int _far_number(self, int begin, int end, unsigned long long value, int slots) except -1
    @cython.final
    @cython.locals(number=int)
    cdef int _own_number(self, bytes key, int slots) except -1
    @cython.locals(name=int, stop=int)
    cdef int _is_named(self, int at, int tag) except -1
    @cython.final
    @cython.locals(start=int, at=int, odd=int, escape=int, code=int, ending=int, end=int)
    cdef int _raw(self, int mode, int tag) except -1
    @cython.locals(at=int)
    cdef int _put_slice(self, int is_comment, int start, int end) except -1
    cdef int _bogus(self, int at) except -1
    cdef int _declaration(self, int at) except -1
    cdef int _comment(self, int at) except -1
    cdef int _after_white(self, int at) except -1
    @cython.locals(first=int, begin=int, start=int, end=int)
    cdef int _doctype(self, int at) except -1
    @cython.locals(quote=int, start=int, begin=int)
    cdef int _identifier(self, int at, int name) except -1
    @cython.final
    cdef inline int _append(self, int code) except -1
    @cython.locals(code=int)
    cdef int _append_all(self, bytes text) except -1
    cdef int _append_character(self, int code) except -1
    @cython.final
    @cython.locals(begin=int, at=int, code=int, after=int)
    cdef int _rewritten(self, int start, int end, int how) except -1
    @cython.locals(end=int, following=int, text=bytes)
    cdef int _reference(self, int at, bint in_attribute) except -1
    @cython.locals(code=int, second=int, third=int, fourth=int)
    cdef int _common_reference(self, Py_ssize_t at) except -1
    @cython.locals(end=int, base=int, begin=int, number=int, code=int, digit=int)
    cdef int _number_reference(self, int at) except -1
