cimport cython

cdef int GAP, NEWLINE, LETTER, DIGIT, JOINT, LINE_WORDS, ADDRESS_WORDS, END, WORD, NUMBER, DAY
cdef int SMALLEST_BITS, SHORT, MOST_PAIRS, LINE_END, ZERO, LAST_DAY, FIRST_YEAR, LAST_YEAR, TOO_MUCH, NEAR
cdef const unsigned char[::1] KINDS
cdef unsigned int FREE, MASK_32, SEED, PRIME, MIX_1, MIX_2, PAIR_MASK, SIEVE_MASK, TWICE, LETTERS, PAIR, ADDRESS
cdef unsigned long long MASK_64, FACTOR
cdef KeySet CALENDAR
cdef bytes CALENDAR_SIEVE


@cython.final
cdef class KeySet:
    cdef unsigned int[::1] slots
    cdef readonly int count
    cdef int bits

    cpdef bint has(self, unsigned int key) except -1
    @cython.locals(place=Py_ssize_t)
    cpdef bint add(self, unsigned int key) except -1
    @cython.locals(place=Py_ssize_t, most=Py_ssize_t)
    cdef inline Py_ssize_t _place(self, unsigned long long key) except -1
    cdef inline unsigned int touch(self, unsigned long long key) except? 77
    @cython.locals(former="unsigned int[::1]", at=Py_ssize_t)
    cdef int _grow(self) except -1


@cython.final
cdef class LineMemory:
    cdef readonly KeySet young, old
    cdef readonly Py_ssize_t generation, shown, new
    cdef unsigned int[::1] new_keys
    cdef KeySet own
    cdef unsigned int[::1] pairs
    cdef unsigned char[::1] sieve
    cdef int kind, value, place, words, figures, count
    cdef unsigned int word, line, letters, touched

    cdef int _count_key(self) except -1
    cdef inline bint _meet(self, unsigned int key) except -1
    @cython.locals(former="unsigned int[::1]")
    cdef int _widen(self) except -1
    @cython.locals(
        chars="const unsigned char[::1]", pairs="unsigned int[::1]", at=Py_ssize_t, end=Py_ssize_t,
        line=Py_ssize_t, fresh=int, copies=int, pieces=int, numbers=int, count=int, place=int, shown=int, is_new=bint,
        pair="unsigned int",
    )
    cpdef int read(
        self, bytes written, bytes address, const int[::1] blocks, const unsigned char[::1] counted, int most
    ) except -1
    cdef int _learn_address(self, const unsigned char[::1] chars, Py_ssize_t end) except -1
    @cython.locals(
        days=int, kind=int, has_calendar=bint, whole="unsigned int", undated="unsigned int", letters="unsigned int",
        former="unsigned int", word="unsigned int", pair="unsigned int", words=int, figures=int, count=int,
    )
    cdef Py_ssize_t _read_line(
        self, const unsigned char[::1] chars, const unsigned char[::1] kinds, Py_ssize_t at, Py_ssize_t end, int use
    ) except -1
    @cython.locals(is_new=bint, address=bytes, key="unsigned int", at=Py_ssize_t)
    cpdef bint adds(self, bytes addresses) except -1
    @cython.locals(kind=int, char=int, value=int, letters=bint, digits=bint, joints=bint, is_day=bint, key="unsigned int")
    cdef inline Py_ssize_t _next(
        self, const unsigned char[::1] chars, const unsigned char[::1] kinds, Py_ssize_t at, Py_ssize_t end
    ) except -1


cdef unsigned int append_word(unsigned int key, unsigned int word) noexcept
cdef unsigned int mix_bits(unsigned int key) noexcept
@cython.locals(memory=LineMemory, written=bytes)
cpdef tuple calendar()
