cimport cython

cdef unsigned int _STRANGE, _BLANK, _LINE_FEED, _SPACE, _PLUS, _SHARP, _ASCII, _LEAD, _TAIL, _SIX_BITS
cdef unsigned long long _START, _PRIME, _BITS
cdef Py_ssize_t _COLUMNS, _LENGTH, _SHOWN, _TERM, _PAGE, _LEAST_WORDS, _LEAST_BYTES


@cython.locals(
    beyond=Py_ssize_t, size=Py_ssize_t, own=Py_ssize_t, block=Py_ssize_t, left=int, place=Py_ssize_t,
    odd=cython.uint, code=cython.uint,
)
cpdef int place_blocks(
    const unsigned int[::1] codes, const int[::1] lines, const unsigned char[::1] is_apart, Py_ssize_t apart,
    const unsigned char[::1] kinds, int[::1] places
) except -1


cdef class TermTable:
    cdef const unsigned char[::1] kinds
    cdef const unsigned short[::1] small
    cdef const unsigned char[::1] between
    cdef object learn, letters, content
    cdef Py_ssize_t most_chars, most_words, count, arena_end, terms_end, forms_end
    cdef unsigned char[::1] word, terms, forms, arena
    cdef unsigned long long[::1] hashes
    cdef int[::1] rows

    @cython.locals(beyond=Py_ssize_t, place=Py_ssize_t, size=Py_ssize_t, end=Py_ssize_t)
    cpdef Py_ssize_t cut(self, const unsigned int[::1] codes, Py_ssize_t begin, int page) except -1

    cpdef Py_ssize_t cut_blocks(
        self, const unsigned int[::1] codes, const int[::1] places, const unsigned char[::1] groups,
        unsigned int group, Py_ssize_t block, int page
    ) except -1

    @cython.locals(size=Py_ssize_t, at=Py_ssize_t)
    cdef int add_between(self) except -1

    @cython.locals(
        most=Py_ssize_t, kind=cython.uint, code=cython.uint, digest=cython.ulonglong, length=Py_ssize_t,
        chars=Py_ssize_t, signs=int, sign=cython.uint,
    )
    cdef int cut_words(self, const unsigned int[::1] codes, Py_ssize_t place, Py_ssize_t end, int page) except -1

    @cython.locals(
        slot=Py_ssize_t, row=Py_ssize_t, start=Py_ssize_t, shown=Py_ssize_t, term=Py_ssize_t, at=Py_ssize_t,
    )
    cdef int put(self, unsigned long long digest, Py_ssize_t length, int page) except -1

    @cython.locals(last=cython.ulonglong, slot=cython.ulonglong)
    cdef Py_ssize_t find(self, unsigned long long digest, Py_ssize_t length) except -1

    @cython.locals(row=Py_ssize_t, start=Py_ssize_t, at=Py_ssize_t)
    cdef int is_word(self, Py_ssize_t slot, Py_ssize_t length) except -1

    @cython.locals(row=Py_ssize_t, end=Py_ssize_t, slot=Py_ssize_t)
    cdef Py_ssize_t add(self, unsigned long long digest, Py_ssize_t length) except -1

    @cython.locals(
        old="unsigned long long[::1]", rows="int[::1]", size=Py_ssize_t, slot=Py_ssize_t, digest=cython.ulonglong,
        place=Py_ssize_t, column=Py_ssize_t,
    )
    cdef int _grow(self) except -1
