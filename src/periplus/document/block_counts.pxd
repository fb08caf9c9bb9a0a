cimport cython


cdef class BlockCounter:
    cdef const unsigned char[::1] classes
    cdef const unsigned short[::1] lower
    cdef unsigned int digit

    @cython.locals(
        own=Py_ssize_t, apart=Py_ssize_t, number=Py_ssize_t, block=Py_ssize_t, left=int, row=Py_ssize_t,
        place=Py_ssize_t, begin=Py_ssize_t, code=cython.uint, small=cython.uint, before=cython.uint, kind=cython.uint,
        columns=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, classes=cython.uint, part_of_word=cython.uint,
        start=cython.ulonglong, prime=cython.ulonglong, bits=cython.ulonglong, zero=cython.uint,
        line_feed=cython.uint, astral=cython.uint, folded=cython.ulonglong, text=cython.ulonglong, word=cython.ulonglong,
    )
    cpdef Py_ssize_t read(
        self, const unsigned int[::1] codes, const int[::1] lines, int[::1] counts, unsigned long long[::1] digests,
        unsigned long long[::1] words
    ) except -1


@cython.locals(left=Py_ssize_t, place=Py_ssize_t, block=Py_ssize_t, line_feed=cython.uint)
cpdef Py_ssize_t end_of_own(const unsigned int[::1] codes, const int[::1] lines) except -1


@cython.locals(
    size=Py_ssize_t, count=Py_ssize_t, number=Py_ssize_t, slot=Py_ssize_t, block=Py_ssize_t, begin=Py_ssize_t,
    end=Py_ssize_t, common=int, most=Py_ssize_t, word=cython.ulonglong, mark=cython.ulonglong,
)
cpdef Py_ssize_t shared_words(
    const unsigned long long[::1] words, const int[::1] ends, Py_ssize_t title, const unsigned char[::1] brief,
    unsigned long long[::1] table, int[::1] shared
) except -1


@cython.locals(count=Py_ssize_t, number=Py_ssize_t, other=Py_ssize_t)
cpdef Py_ssize_t different(const unsigned long long[::1] words, Py_ssize_t begin, Py_ssize_t end) except -1
