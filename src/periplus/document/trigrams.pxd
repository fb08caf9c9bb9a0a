cimport cython

cdef Py_ssize_t LANES, MOST_ADDED


cdef class Trigrams:
    cdef readonly Py_ssize_t languages, width, words, columns
    cdef readonly unsigned short[::1] rows, threes, pairs, unseen
    cdef unsigned long long[::1] three_words, pair_words, unseen_words

    @cython.locals(
        languages=Py_ssize_t, columns=Py_ssize_t, table=Py_ssize_t, start=Py_ssize_t, changes=Py_ssize_t, key=Py_ssize_t, row=Py_ssize_t,
        language=Py_ssize_t, place=Py_ssize_t, change=int, pair=int,
    )
    cdef int _unpack(self, Py_ssize_t trigrams, const unsigned char[::1] packed) except -1

    @cython.locals(
        place=Py_ssize_t, count=Py_ssize_t, words=Py_ssize_t, width=Py_ssize_t, word=Py_ssize_t,
        costs="unsigned short[::1]", sums="unsigned long long[::1]", first=Py_ssize_t, second=Py_ssize_t, third=Py_ssize_t, before=Py_ssize_t, row=Py_ssize_t, start=Py_ssize_t,
    )
    cpdef Py_ssize_t add(
        self, const unsigned short[::1] codes, const unsigned char[::1] symbols, int least, int[::1] totals
    ) except -1

    @cython.locals(language=Py_ssize_t)
    cdef int _settle(self, unsigned short[::1] costs, int[::1] totals) except -1


@cython.locals(place=Py_ssize_t)
cpdef int count_units(const unsigned short[::1] codes, const unsigned char[::1] places, int[::1] counts) except -1
