cimport cython

cdef int NEWLINE, PLAIN, DIGIT, ENDING, SMALLEST_BITS
cdef const unsigned char[::1] IN_WORD, KINDS
cdef unsigned int FREE, MASK_32, PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5, ROUND_1, ROUND_2, ROUND_4
cdef unsigned long long MASK_64, FACTOR


@cython.final
cdef class KeySet:
    cdef unsigned int[::1] slots
    cdef readonly int count
    cdef int bits

    cpdef bint has(self, unsigned int key) except -1
    @cython.locals(place=Py_ssize_t)
    cpdef bint add(self, unsigned int key) except -1
    @cython.locals(place=Py_ssize_t, most=Py_ssize_t)
    cdef Py_ssize_t _place(self, const unsigned int[::1] slots, unsigned long long key) except -1
    @cython.locals(former="unsigned int[::1]", slots="unsigned int[::1]", at=Py_ssize_t)
    cdef int _grow(self) except -1


@cython.final
cdef class LineMemory:
    cdef readonly KeySet young, old
    cdef readonly object new
    cdef readonly Py_ssize_t generation, count
    cdef Py_ssize_t start

    cdef int _add(self, unsigned int key) except -1
    @cython.locals(
        chars="const unsigned char[::1]", output="unsigned char[::1]", size=Py_ssize_t, shown=Py_ssize_t,
        begin=Py_ssize_t, end=Py_ssize_t, key="unsigned int", _=int,
    )
    cpdef bytes new_lines(self, bytes written, int kind, int most, bint with_digits)
    @cython.locals(start=Py_ssize_t, size=Py_ssize_t, begin=Py_ssize_t, left_out=int, kind=int)
    cdef Py_ssize_t _copy_line(
        self, const unsigned char[::1] chars, unsigned char[::1] output, Py_ssize_t end, bint with_digits
    ) except -1


@cython.locals(lead=Py_ssize_t)
cdef Py_ssize_t before_word(const unsigned char[::1] written, Py_ssize_t begin, Py_ssize_t end) except -1
@cython.locals(char=int, width=int)
cdef Py_ssize_t after_word(const unsigned char[::1] written, Py_ssize_t start, Py_ssize_t size) except -1
cdef bint is_alphanumeric(bytes char) except -1
@cython.locals(
    size=Py_ssize_t, first="unsigned int", second="unsigned int", third="unsigned int", fourth="unsigned int",
    key="unsigned int",
)
cpdef unsigned int key_of(const unsigned char[::1] written, Py_ssize_t start, Py_ssize_t end) except? 0
cdef unsigned int step(unsigned int value, unsigned int word) noexcept
cdef unsigned int turned(unsigned int value, int count) noexcept
@cython.locals(highest="unsigned int")
cdef unsigned int word_at(const unsigned char[::1] written, Py_ssize_t at) except? 0
