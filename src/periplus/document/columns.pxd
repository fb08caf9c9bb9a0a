cimport cython

cdef int NEWLINE, SPACE, RETURN, SLASH, BEYOND_ASCII, WHITE, MAY_BE_WHITE, GOING_ON
cdef const unsigned char[::1] SPACES, IMG_NAME, TITLE_PATH
cdef int PARAGRAPH, HEADING, CODE, LINK_KIND, ALT_KIND, TITLE_KIND, AT_BODY, AT_HEAD
cdef int COPIED_SINGLY, BLOCKS_MOST, PATHS_MOST, PATH_CHARS, PROBES, ROW_FIELDS, PATH_FIELDS, NAME_FIELDS
cdef int NAME_START, NAME_END, NAME_HASH
cdef int[::1] NO_NUMBERS
cdef unsigned char[::1] NO_CHARS
cdef unsigned long long SEED, MASK, FACTOR


@cython.final
cdef class NumberColumn:
    cdef int[::1] values
    cdef int room, size

    cdef inline int add(self, int value) except -1
    cdef inline int reserve(self, int more) except -1
    cdef int _grow(self, int more) except -1
    @cython.locals(most=int, others=int, value=int, place=int, count=int, row=int, narrow=bytearray)
    cpdef narrow(self, int first, int field, int fields, int less, int default)


@cython.final
cdef class Text:
    cdef unsigned char[::1] chars, former
    cdef int room, size, begin, pending

    cdef inline int reserve(self, int more) except -1
    cdef int _grow(self, int more) except -1
    cdef inline int put(self, int code) except -1
    @cython.locals(size=int)
    cdef int copy(self, const unsigned char[::1] source, int start, int end) except -1
    @cython.locals(size=size_t, at=size_t)
    cdef inline int _copy(
        self, unsigned char[::1] chars, const unsigned char[::1] source, size_t start, size_t end
    ) except -1
    cdef int fold(self, const unsigned char[::1] source, int start, int end) except -1
    @cython.locals(size=size_t, begin=size_t, pending=int, at=size_t, code=int, kind=int, width=int)
    cdef inline int _fold(
        self, unsigned char[::1] chars, const unsigned char[::1] spaces, const unsigned char[::1] source,
        size_t start, size_t end,
    ) except -1
    cdef int next_piece(self, int separator) except -1
    cpdef str string(self)
    cpdef list strings(self, str separator)


@cython.final
cdef class Names:
    cdef readonly Text text
    cdef NumberColumn rows
    cdef int[::1] slots
    cdef int mask, count
    cdef dict spilled

    @cython.locals(key=int, slot=int, number=int, _=int)
    cpdef int number(self, int owner, const unsigned char[::1] source, int start, int end) except? 0
    @cython.locals(row=int)
    cdef list owners(self)
    cdef inline int owner(self, int number) except? -1
    cdef inline int start(self, int number) except? -1
    cdef inline int end(self, int number) except? -1
    @cython.locals(row=int, place=int)
    cdef int _is(self, int number, int key, int owner, const unsigned char[::1] source, int start, int end) except -1
    @cython.locals(number=int, slot=int, _=int)
    cdef int _widen(self) except -1


@cython.locals(value="unsigned long long", at=size_t)
cdef int hash_of(int owner, const unsigned char[::1] source, size_t start, size_t end) except -1
@cython.locals(at=size_t)
cpdef int stands_at(
    const unsigned char[::1] chars, size_t place, const unsigned char[::1] source, size_t start, size_t end
) except -1
@cython.locals(lead=int, second=int, third=int)
cdef int white_bytes(const unsigned char[::1] source, int at, int end) except -1
@cython.locals(kind=int)
cpdef int white_at(const unsigned char[::1] source, int at, int end) except -1
@cython.locals(at=int, width=int)
cpdef int has_words(const unsigned char[::1] source, int start, int end) except -1
@cython.locals(count=int, pending=int, at=size_t, kind=int, width=int)
cpdef int folded_chars(const unsigned char[::1] source, size_t start, size_t end) except -1
@cython.locals(count=int, at=int)
cpdef int end_of_chars(const unsigned char[::1] source, int start, int end, int most) except -1
@cython.final
cdef class BlockColumns:
    cdef Text text, apart, path_text, path_names, scratch
    cdef NumberColumn rows, paths
    cdef Names parts
    cdef int path_count, images, kind, level, position, language, path, holds_p, links, linked, outside, mark

    cdef inline int full(self) except -1
    cdef int write(self, const unsigned char[::1] source, int start, int end) except -1
    cdef int line_break(self) except -1
    cdef int link(self, int more) except -1
    @cython.locals(text=Text, mark=int)
    cdef int _end_stretch(self) except -1
    @cython.locals(text=Text, lines=int, kind=int, share=int, start=int, end=int, path=int, _=int)
    cdef int finish(self) except -1
    @cython.locals(
        begin=int, at=int, end=int, size=int, last=int, lines=int, lines_before_words=int, words_end=int, code=int,
        kind=int, width=int, _=int,
    )
    cdef int _trim(self, unsigned char[::1] chars) except -1
    cdef int image(self, const unsigned char[::1] source, int start, int end) except -1
    @cython.locals(above=int, start_above=int, chars=int, number=int, text=Text, begin=int, at=int)
    cdef int path_below(self, const unsigned char[::1] source, int start, int end) except -1
    @cython.locals(rows=NumberColumn, field=int, column=int)
    cdef int row(self, int kind, int level, int lines, int share) except -1
    @cython.locals(rows=NumberColumn, without=int)
    cpdef columns(self, str title)
    cpdef bytes utf_8_text(self)
    cpdef languages(self, str title)
