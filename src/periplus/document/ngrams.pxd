cimport cython


cdef class Ngrams:
    cdef readonly int longest, classes
    cdef readonly Py_ssize_t words, columns
    cdef readonly unsigned int last_slot
    cdef readonly unsigned short[::1] rows, weights
    cdef readonly unsigned int[::1] keys
    cdef unsigned short[::1] cells
    cdef unsigned long long[::1] weight_words, sums

    @cython.locals(
        factor="unsigned int", mask="unsigned int", bias=int, path="Py_ssize_t[8]", keys="unsigned int[8]", row=Py_ssize_t,
        length=int, symbol="unsigned int", end=Py_ssize_t, key="unsigned int", slot="unsigned int", column=Py_ssize_t, weight=int, total=int,
    )
    cdef Py_ssize_t _unpack(self, Py_ssize_t rows, const unsigned char[::1] packed) except -1

    @cython.locals(
        space="unsigned int", factor="unsigned int", mask="unsigned int", last_slot="unsigned int", longest=int,
        count=Py_ssize_t, filled=Py_ssize_t, recent="unsigned int[8]", keys="unsigned int[400]",
        stored="unsigned int[400]", slots="unsigned int[400]", place=Py_ssize_t, symbol="unsigned int",
        key="unsigned int", back=Py_ssize_t, most=Py_ssize_t,
    )
    cpdef Py_ssize_t add(
        self, const unsigned short[::1] codes, const unsigned short[::1] symbols, int[::1] totals
    ) except -1

    @cython.locals(
        longest=Py_ssize_t, words=Py_ssize_t, added=Py_ssize_t, bias=int, at=Py_ssize_t, first=Py_ssize_t,
        last=Py_ssize_t, slot="unsigned int", word=Py_ssize_t, column=Py_ssize_t, total="unsigned long long",
    )
    cdef int _settle(
        self, unsigned int* keys, unsigned int* stored, unsigned int* slots, Py_ssize_t filled, int[::1] totals
    ) except -1


@cython.locals(place=Py_ssize_t)
cpdef int count_units(const unsigned short[::1] codes, const unsigned char[::1] places, int[::1] counts) except -1
