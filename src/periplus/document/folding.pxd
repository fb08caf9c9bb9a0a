cimport cython

cdef int CACHE_CODE_POINTS, WIDEST, LONGER, NO_ENTRY, COPIED_SINGLY
cdef unsigned long long HIGH_BITS


cdef class Folding:
    cdef object replaced
    cdef unsigned char[::1] sizes, pieces

    @cython.locals(
        size=Py_ssize_t, room=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, char=int, width=int, code=int,
        count=Py_ssize_t, place=Py_ssize_t, output="unsigned char[::1]", larger="unsigned char[::1]",
        plain=bytes, lower="const unsigned char[::1]", words="const unsigned long long[::1]", piece=bytes,
    )
    cpdef bytes fold(self, bytes written)

    @cython.locals(piece=bytes, place=Py_ssize_t)
    cdef bytes ask(self, bytes char, int code)


@cython.locals(size=Py_ssize_t, count=Py_ssize_t, word=Py_ssize_t)
cdef inline Py_ssize_t after_ascii(
    const unsigned char[::1] chars, const unsigned long long[::1] words, Py_ssize_t place
) except -1

@cython.locals(char=int, code=int, is_space=bint)
cdef int width_of_space(const unsigned char[::1] written, Py_ssize_t place) except -1

@cython.locals(count=Py_ssize_t, size=Py_ssize_t, block=Py_ssize_t, place=Py_ssize_t, numbers="int[::1]")
cpdef line_blocks(
    const unsigned char[::1] kinds, const unsigned char[::1] members, const unsigned char[::1] lines,
    const int[::1] wide
)

@cython.locals(
    size=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, copied=Py_ssize_t, line=Py_ssize_t, begin=Py_ssize_t,
    is_apart=bint, width=int, char=int, output="unsigned char[::1]",
)
cpdef bytes fold_lines(
    const unsigned char[::1] written, const int[::1] blocks, const unsigned char[::1] kinds, int kind
)

@cython.locals(
    size=Py_ssize_t, line=Py_ssize_t, start=Py_ssize_t, place=Py_ssize_t, block=int, more=Py_ssize_t, chars=Py_ssize_t,
    char=int,
)
cpdef list unlikely_blocks(
    const unsigned char[::1] written, const int[::1] blocks, Py_ssize_t least, Py_ssize_t share, Py_ssize_t foreign
)
