cimport cython

cdef unsigned long long HIGH_BITS, LOW_BITS, LINE_FEEDS, FROM_A, AFTER_Z
cdef const unsigned char[::1] LOWER
cdef int REMEMBERED, WIDEST, LONGER, UNASKED


cdef class Folding:
    cdef object replaced
    cdef unsigned char[::1] sizes, pieces

    @cython.locals(
        size=Py_ssize_t, room=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, char=int, width=int, code=int,
        count=Py_ssize_t, place=Py_ssize_t, output="unsigned char[::1]", larger="unsigned char[::1]",
        words="const unsigned long long[::1]", written_words="unsigned long long[::1]", word=Py_ssize_t,
        other=Py_ssize_t, last=Py_ssize_t, value="unsigned long long", piece=bytes, buffer=bytearray,
    )
    cpdef bytes fold(self, bytes written)

    @cython.locals(piece=bytes, place=Py_ssize_t)
    cdef bytes ask(self, bytes char, int code)


@cython.locals(char=int, code=int, is_space=bint)
cdef int width_of_space(const unsigned char[::1] written, Py_ssize_t place) except -1

@cython.locals(size=Py_ssize_t, count=Py_ssize_t, word=Py_ssize_t, value="unsigned long long")
cdef Py_ssize_t line_end(
    const unsigned char[::1] written, const unsigned long long[::1] words, Py_ssize_t place
) except -1

@cython.locals(more=Py_ssize_t, count=Py_ssize_t, word=Py_ssize_t)
cdef Py_ssize_t going_on(
    const unsigned char[::1] written, const unsigned long long[::1] words, Py_ssize_t place, Py_ssize_t end
) except -1

@cython.locals(
    count=Py_ssize_t, size=Py_ssize_t, narrow=Py_ssize_t, wide=Py_ssize_t, block=Py_ssize_t, place=Py_ssize_t, more=int,
    numbers="int[::1]",
)
cpdef line_blocks(
    const unsigned char[::1] kinds, const unsigned char[::1] members, const unsigned char[::1] few, const int[::1] many
)

@cython.locals(
    size=Py_ssize_t, count=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, line=Py_ssize_t, begin=Py_ssize_t,
    stop=Py_ssize_t, is_apart=bint, width=int, char=int, output="unsigned char[::1]", text="const unsigned char[::1]",
    words="const unsigned long long[::1]",
)
cpdef bytes fold_lines(bytes written, const int[::1] blocks, const unsigned char[::1] kinds, int kind)

@cython.locals(
    size=Py_ssize_t, count=Py_ssize_t, line=Py_ssize_t, start=Py_ssize_t, place=Py_ssize_t, block=int, more=Py_ssize_t,
    words="const unsigned long long[::1]", text="const unsigned char[::1]",
)
cpdef list unlikely_blocks(bytes written, const int[::1] blocks, Py_ssize_t least, Py_ssize_t share)
