cimport cython


cdef class Ngrams:
    cdef readonly int longest, classes
    cdef readonly Py_ssize_t words, columns
    cdef readonly unsigned int last_slot
    cdef readonly unsigned short[::1] slots, weights
    cdef readonly unsigned int[::1] keys
    cdef unsigned long long[::1] weight_words

    @cython.locals(
        factor="unsigned int", mask="unsigned int", bias=int, path="Py_ssize_t[8]", row=Py_ssize_t, length=int, symbol="unsigned int",
        end=Py_ssize_t, key="unsigned int", slot="unsigned int", column=Py_ssize_t, weight=int, total=int,
    )
    cdef Py_ssize_t _unpack(self, Py_ssize_t rows, const unsigned char[::1] packed) except -1

    @cython.locals(
        space="unsigned int", factor="unsigned int", mask="unsigned int", most_added=int, last_slot="unsigned int", words=Py_ssize_t,
        added=int, cells="unsigned short[::1]", sums="unsigned long long[::1]", count=Py_ssize_t,
        recent="unsigned int[8]", place=Py_ssize_t, symbol="unsigned int", key="unsigned int", longest=Py_ssize_t,
        most=Py_ssize_t, back=Py_ssize_t, slot="unsigned int", row=Py_ssize_t, start=Py_ssize_t, word=Py_ssize_t,
    )
    cpdef Py_ssize_t add(
        self, const unsigned short[::1] codes, const unsigned short[::1] symbols, int[::1] totals
    ) except -1

    @cython.locals(bias=int, column=Py_ssize_t)
    cdef int _settle(self, int added, unsigned short[::1] cells, int[::1] totals) except -1


@cython.locals(place=Py_ssize_t)
cpdef int count_units(const unsigned short[::1] codes, const unsigned char[::1] places, int[::1] counts) except -1
