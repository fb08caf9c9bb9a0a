cimport cython

from periplus.document.columns cimport NumberColumn
from periplus.document.reader cimport Reader

cdef int ANCHOR_CHARS, FRAGMENTS_MOST, ROWS_MOST, KIND_SHIFT, POSITION, CACHED_CHARS, DOCUMENT_SHIFT, RANK_SHIFT


cdef class PageLinks


@cython.final
cdef class GatheredLinks:
    cdef object base, folder, charset
    cdef int nofollow, documents
    cdef dict rows, heads, pieces, bad, bounds_met, below
    cdef list targets, anchors, orders, fragments
    cdef NumberColumn places, counts

    @cython.locals(targets=tuple, row=int)
    cdef int add_head(self, str head, int place, int count, str anchor, long long at) except? -3
    cdef tuple _targets_of(self, str head, int place)
    @cython.locals(fragments=str)
    cdef int add_fragments(self, int row, PageLinks links, int head) except -1
    @cython.locals(links=PageLinks)
    cdef int _add_pieces(self, int row, list pieces) except -1
    @cython.locals(size=int, row=int, place=int, kinds=bytearray, positions=bytearray, nofollow=bytearray)
    cpdef links(self)


@cython.final
cdef class PageLinks:
    cdef Reader page
    cdef long long first
    cdef list heads, counts, anchor_places, anchors, fragments, parts, by_rank
    cdef bytes others

    @cython.locals(
        link=int, rank=int, place=int, is_long=bint, row=int, order="long long", bad=list,
    )
    cpdef add(self, GatheredLinks rows, int first, int end)
    cdef _add_bad(self, GatheredLinks rows, list bad)
    cdef list pieces(self, int head)
