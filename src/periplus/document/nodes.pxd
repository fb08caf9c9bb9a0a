cimport cython

from periplus.document.tokens cimport Tokens

cdef int DEEPEST, ROOM, MOST_MERGE_ATTRIBUTES, LEAST_REOPEN_LIMIT, COLUMNS, STACKS, APART, ELEMENTS
cdef int A, ANNOTATION, MALIGNMARK, MGLYPH, P, SVG, TABLE, TEMPLATE
cdef int SPECIAL, SCOPE, IN_BUTTON, IMPLIED, FOSTERING, LOOSE, STRANGE, TEXT_SIDE, HTML_SIDE
cdef int[::1] FLAGS, SVG_FLAGS, MATH_FLAGS, SVG_NUMBERS


cdef class Nodes(Tokens):
    cdef int node_room, count, depth, listed, budget, before, fostering
    cdef int[::1] cells, stacks, template_modes
    cdef int[::1] tags, parents, firsts, nexts, starts, ends, attributes, counts, offsets, lasts, backs
    cdef int[::1] stack, open_tags, open_flags, formats, format_prints
    cdef unsigned char[::1] spaces

    @cython.locals(cells="int[::1]", room=int)
    cdef int _part(self) except -1
    @cython.locals(cells="int[::1]", spaces="unsigned char[::1]", room=int, column=int, start=int)
    cdef int _grow(self) except -1
    @cython.locals(last=int)
    cdef inline int _attach(self, size_t node, size_t parent, int before) except -1
    cdef int _detach(self, int node) except -1
    @cython.locals(node=size_t)
    cdef inline int _new(self, int tag) except -1
    @cython.locals(node=size_t, top=size_t)
    cdef inline int _add(self, int tag) except -1
    cdef int _foster_parent(self) except -1
    @cython.locals(node=size_t)
    cdef inline int _insert_text(self, int start, int end) except -1
    @cython.locals(at=size_t)
    cdef inline int _push(self, int node, int tag, int flags) except -1
    @cython.locals(node=size_t)
    cdef inline int _open(self, int tag, int first, int count) except -1
    @cython.locals(node=size_t)
    cdef inline int _insert(self, int tag) except -1
    cdef int _insert_leaf(self, int tag) except -1
    @cython.locals(number=int, flags=int)
    cdef int _insert_foreign(self, int tag, int space) except -1
    @cython.locals(number=int, row=int)
    cdef bytes _value(self, str name)
    cdef int _merge(self, int node) except -1
    cdef inline int _has(self, int tag, int boundaries) except -1
    cdef inline int _pop_to(self, int tag) except -1
    cdef int _clear_to(self, int context) except -1
    cdef int _close_implied_tags(self, int but) except -1
    cdef inline int _close_p(self) except -1
    cdef int _close_item(self, int tag, int other) except -1
    cdef int _end_block(self, int tag) except -1
    cdef int _end_other(self, int tag) except -1
    cdef int _is_foreign_start(self, int tag) except -1
    cdef int _break_out(self) except -1
    cdef bint _has_style(self) except -1
    @cython.locals(total=cython.longlong, value=cython.longlong, row=int, at=int)
    cdef int _print_of(self, int node) except -1
    @cython.locals(tag=int, count=int, alike=int, earliest=int, fingerprint=int, at=int, other=int)
    cdef int _list_format(self, int node) except -1
    cdef int _unlist(self, int at) except -1
    cdef int _mark(self) except -1
    cdef int _clear_to_marker(self) except -1
    cdef int _open_place(self, int node) except -2
    cdef bint _is_in_scope(self, int place) except -1
    cdef int _listed_place(self, int tag) except -2
    cdef inline int _reopen(self) except -1
    cdef int _close_link(self) except -1
    cdef int _end_formatting(self, int tag) except -1
    cdef int _format_entry(self, int node) except -2
    cdef int _clone(self, int node) except -1
    @cython.locals(
        formatting=int, block=int, ancestor=int, bookmark=int, last=int, rounds=int, at=int, node=int, listed=int,
        clone=int, depth=int, parent=int, child=int, flags=int,
    )
    cdef int _adopt(self, int entry, int place, int furthest) except -1
    cdef int _remove(self, int place) except -1
    cdef int _stack_at(self, int place, int node, int flags) except -1
    cdef int _list_at(self, int node, int place) except -1
