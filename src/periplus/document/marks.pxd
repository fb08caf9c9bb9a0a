cimport cython

from periplus.document.tree cimport PageTree

cdef int JSON_LD, META, TIME, ITEM, REL, AUTHOR, DATE, MODIFIED, ELSEWHERE, ARTICLE, BOX, SILENT, AROUND, BYLINE_MARKS
cdef int MARKS_MOST, WORDS_COUNT, SCRIPT_TAG, META_TAG, TYPE, NAME, PROPERTY, ITEMPROP, ITEMTYPE, STYLE_TAG, HTML_TAG, BODY_TAG, TAGS_KNOWN, NAMES_KNOWN
cdef int NOTHING, A, PLUS, SPACE, LOWER, DOT, CLASS_OF, ID_OF, ID_CHARS, CLASS_CACHE_SIZE
cdef const unsigned char[::1] LETTERS
cdef const short[::1] FIRST_WORDS
cdef const int[::1] KINDS, BEGINS, TAG_MARKS, NAME_MARKS


@cython.locals(
    tags="const int[::1]", parents="const int[::1]", counts="const int[::1]", attributes="const int[::1]",
    names="const int[::1]", starts="const int[::1]", ends="const int[::1]", chars="const unsigned char[::1]",
    node=int, tag=int, rows=list, row=int, name=int, start=int, end=int,
)
cpdef list heads(PageTree tree)
@cython.locals(
    of_rows="const short[::1]", rows=list, tags="const int[::1]", parents="const int[::1]", counts="const int[::1]",
    attributes="const int[::1]", names="const int[::1]", around="int[::1]", node=size_t, tag=int, parent=int, marks=int,
    inherited=int, row=size_t,
)
cpdef list marked_nodes(PageTree tree)
@cython.locals(
    names="const int[::1]", starts="const int[::1]", ends="const int[::1]", chars="const unsigned char[::1]",
    rows="short[::1]", earlier="int[::1]", together=int, row=size_t, kind=int, start=size_t, end=size_t, marks=int,
    at=size_t, slot=size_t, first=size_t, node=size_t, tags="const int[::1]",
)
cdef short[::1] _of_rows(PageTree tree)
@cython.locals(at=int)
cdef int _of_id(const unsigned char[::1] chars, int start, int end) except -1
@cython.locals(marks=int, at=size_t, first=int, word=int, place=size_t, on=size_t)
cdef int _of_name(const unsigned char[::1] chars, int start, int end) except -1
@cython.locals(names="const int[::1]", row=int, rows=list)
cpdef list item_types(PageTree tree)
cpdef dict values(PageTree tree, int node)
cpdef str text(PageTree tree, int start, int end)
@cython.locals(
    pieces=list, size=int, children="const int[::1]", nexts="const int[::1]", parents="const int[::1]", at=int,
)
cpdef str text_of(PageTree tree, int node, int most)
cpdef bint is_within(PageTree tree, int node, int outer)
@cython.locals(pieces=list, at=int)
cpdef str source_of(PageTree tree, int node, int most)
