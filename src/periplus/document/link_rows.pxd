cimport cython

from periplus.document.columns cimport Names, NumberColumn, stands_at
from periplus.document.reader cimport Reader

cdef int ANCHOR_CHARS, FRAGMENTS_MOST, ROWS_MOST, KIND_SHIFT, POSITION, PLACE_BITS, CACHED_BYTES, DOCUMENT_SHIFT
cdef int RANK_SHIFT, NOFOLLOW, LONG, SLASH, NOTHING, INVALID, UNKNOWN
cdef const unsigned char[::1] RANKS, KIND_CODES, SOURCE_IS_LIST, HTTP, HTTPS


cdef class PageLinks


@cython.final
cdef class Addresses:
    cdef dict folders, numbers
    cdef readonly Names heads
    cdef readonly list urls
    cdef NumberColumn targets, identities
    cdef long long[::1] ids
    cdef int room

    @cython.locals(number=int, ids="long long[::1]")
    cdef int number_of(self, str url) except -1


@cython.final
cdef class GatheredLinks:
    cdef object base, folder, charset
    cdef int nofollow, documents, folder_number, root_number
    cdef Addresses addresses
    cdef dict rows, heads, pieces, bad, bounds_met
    cdef list anchors, orders, fragments
    cdef NumberColumn targets, places, counts

    @cython.locals(row=int, link="long long")
    cdef int add_row(self, int target, int place, int count, str anchor, long long at) except? -3
    @cython.locals(size=int, folder=int, number=int, target=int, addresses=Addresses)
    cdef int target_at(self, const unsigned char[::1] chars, int start, int end, int place) except? -4
    cdef int _resolve(self, str head, int place) except? -4
    @cython.locals(fragments=str)
    cdef int add_fragments(self, int row, PageLinks links, int head) except -1
    @cython.locals(links=PageLinks)
    cdef int _add_pieces(self, int row, list pieces) except -1
    @cython.locals(
        size=int, row=int, place=int, target=int, addresses=Addresses, ids="long long[::1]", targets=list,
        kinds=bytearray, positions=bytearray, nofollow=bytearray,
    )
    cpdef links(self)


@cython.final
cdef class PageLinks:
    cdef Reader page
    cdef long long first
    cdef Names heads
    cdef NumberColumn rows
    cdef list anchors, fragments
    cdef bytes others
    cdef bytearray ranks

    cpdef add(self, GatheredLinks rows, int first, int end)
    @cython.locals(heads=Names, link=int, owner=int, source=int, place=int, count=int, order="long long", row=int, target=int)
    cdef int _add_rank(self, GatheredLinks rows, int rank, list bad) except -1
    cdef int _add_bad(self, GatheredLinks rows, list bad) except -1
    cdef str head(self, int link)
    cdef list pieces(self, int head)


cdef str _text(const unsigned char[::1] chars, int start, int end)
cdef int _place_of_owner(int owner) except -1
