cimport cython

cdef unsigned long long HIGH_BITS, FNV_START, FNV_PRIME, ALL_BITS


@cython.locals(
    chars="const unsigned char[::1]", words="const unsigned long long[::1]", place=Py_ssize_t, size=Py_ssize_t,
    count=Py_ssize_t, word=Py_ssize_t, char=int, second=int, least=int, most=int, width=int,
)
cpdef bint is_utf_8(bytes body) except -1

@cython.locals(
    chars="const unsigned char[::1]", place=Py_ssize_t, count=Py_ssize_t, digest="unsigned long long",
)
cpdef Py_ssize_t hash_words(bytes words, unsigned long long[::1] hashes) except -1
