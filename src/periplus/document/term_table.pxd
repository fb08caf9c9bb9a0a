cimport cython


cdef class TermTable:
    cdef const unsigned char[::1] kinds
    cdef object stem, letters, content
    cdef Py_ssize_t most_chars, most_words, count, arena_end, terms_end, forms_end
    cdef unsigned char[::1] word, terms, forms, arena
    cdef unsigned long long[::1] hashes
    cdef int[::1] rows

    @cython.locals(
        line_feed=cython.uint, plus=cython.uint, sharp=cython.uint, strange=cython.uint, blank=cython.uint,
        capital=cython.uint, first=cython.ulonglong, prime=cython.ulonglong, bits=cython.ulonglong, beyond=Py_ssize_t,
        most=Py_ssize_t, place=Py_ssize_t, size=Py_ssize_t, end=Py_ssize_t, kind=cython.uint, code=cython.uint,
        digest=cython.ulonglong, length=Py_ssize_t, signs=int, sign=cython.uint,
    )
    cpdef Py_ssize_t cut(self, const unsigned int[::1] codes, Py_ssize_t begin, int page) except -1

    @cython.locals(
        slot=Py_ssize_t, row=Py_ssize_t, space=cython.uint, start=Py_ssize_t, term=Py_ssize_t,
        at=Py_ssize_t,
    )
    cdef int put(self, unsigned long long digest, Py_ssize_t length, int page) except -1

    @cython.locals(last=cython.ulonglong, slot=cython.ulonglong)
    cdef Py_ssize_t find(self, unsigned long long digest, Py_ssize_t length) except -1

    @cython.locals(row=Py_ssize_t, start=Py_ssize_t, at=Py_ssize_t)
    cdef int is_word(self, Py_ssize_t slot, Py_ssize_t length) except -1

    @cython.locals(row=Py_ssize_t, end=Py_ssize_t)
    cdef Py_ssize_t add(self, unsigned long long digest, Py_ssize_t length) except -1
