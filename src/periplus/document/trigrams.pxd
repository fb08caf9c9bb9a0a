cimport cython


cdef class Trigrams:
    cdef readonly Py_ssize_t languages, width
    cdef readonly unsigned short[::1] rows
    cdef readonly short[::1] threes, pairs, unseen

    @cython.locals(
        languages=Py_ssize_t, table=Py_ssize_t, start=Py_ssize_t, changes=Py_ssize_t, key=Py_ssize_t, row=Py_ssize_t,
        language=Py_ssize_t, place=Py_ssize_t, change=int, pair=int,
    )
    cdef int _unpack(self, Py_ssize_t trigrams, const unsigned char[::1] packed) except -1
