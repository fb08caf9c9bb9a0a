cimport cython

from periplus.document.columns cimport BlockColumns, Names, NumberColumn, Text, end_of_chars, folded_chars, has_words, stands_at, white_at
from periplus.document.tree cimport PageTree

cdef int NEWLINE, SPACE, SHARP, SLASH, DOT, LOW_LINE, PARENTHESIS, DIGIT
cdef int GOING_ON, NONE, TAGS_KNOWN, NAMES_KNOWN
cdef const unsigned char[::1] SPACES, KINDS, LEVELS, LANDMARKS, SLOTS, SOURCE_SLOTS
cdef const unsigned char[::1] SOURCES_WITH_REL, SOURCE_IS_ANCHOR, SOURCE_IS_LIST, TAG_LETTERS, ROOT_LETTERS
cdef const unsigned char[::1] PLAIN_IN_FRAGMENTS
cdef const int[::1] PROPERTIES, FIRST_PARTS, PARTS, TAG_ENDS
cdef int BLOCK, SAME, HOLDS_P, UNNAMED, LEAF, UNSEEN, BREAK, LINK, IMAGE, WORDS, SHEET, NOTED, WITH_PARTS, MARK
cdef int SECTION, BANNER, ROOT
cdef int ROLE, STYLE, BACKGROUND, ID, NG_APP, REACT_ROOT, CLASS, LANG, XML_LANG, HREF, REL, ALT, TITLE, NAME
cdef int HTTP_EQUIV, CONTENT, HREFLANG, AS, IMAGESRCSET, SRCDOC
cdef int A_TAG, P, H1, META_TAG, LINK_TAG, BASE_TAG, HTML_TAG, BODY_TAG, SCRIPT_TAG, SVG_TAG, IFRAME_TAG, TITLE_TAG
cdef int PARAGRAPH, HEADING, AT_BODY
cdef int NAME_CHARS, ELEMENTS_MOST, META_MOST, TITLES_MOST, HEADINGS_MOST, HREF_CHARS, ANCHOR_CHARS
cdef int PATHS_MOST, ROOT_CHARS, ROOT_BYTES, FRAGMENTS_MOST
cdef int END_BLOCK, END_UNSEEN, END_LINK, END_WORDS, END_SHEET, END_ROOT, END_MARK
cdef int OPEN_FIELDS, WORDS_FIELDS, HEAD_FIELDS, ROOT_FIELDS
cdef int OPEN_ENDS, OPEN_POSITION, OPEN_SECTIONED, OPEN_KIND, OPEN_LEVEL, OPEN_PART, OPEN_LANGUAGE, OPEN_PATH, OPEN_P
cdef int WORDS_PURPOSE, WORDS_NUMBER, WORDS_START, WORDS_ALT, WORDS_ALT_END, WORDS_TITLE, HEAD_ANCHOR, ROOT_LINKS
cdef int FOR_ANCHOR, FOR_TITLE, FOR_H1, FOR_NOSCRIPT
cdef int POSITION_SHIFT, NOFOLLOW, LONG


@cython.final
cdef class Reader:
    cdef const unsigned char[::1] chars, spaces
    cdef const int[::1] tags, parents, children, nexts, starts, ends, attributes, attribute_counts
    cdef const int[::1] names, value_starts, value_ends
    cdef readonly BlockColumns blocks
    cdef readonly Names languages
    cdef readonly Text metas, links, frames, sheets, styles
    cdef readonly object base, language, title, h1
    cdef readonly int titled, h1_count, script_count, svg_count, root_count, filled_roots, images_without_alt
    cdef readonly int unscripted_chars, too_many
    cdef int[::1] slots, stamps, tag_counts, above, below, class_starts, class_ends
    cdef int serial, position, sectioned, unseen, sheet, title_count, html_count, h1_place, link_count
    cdef int noscripts, landmark
    cdef NumberColumn open, gathering, head_rows, entry_rows, anchor_starts, roots
    cdef NumberColumn by_head, ends_by_head
    cdef Text words, anchors
    cdef Names heads, entries

    @cython.locals(cells=NumberColumn)
    cdef int _take(self, PageTree tree) except -1
    @cython.locals(
        step=int, node=size_t, tag=int, tags="const int[::1]", children="const int[::1]", nexts="const int[::1]",
        parents="const int[::1]", starts="const int[::1]", ends="const int[::1]",
    )
    cpdef Reader read(self)
    cdef inline int _text(self, int start, int end) except -1
    @cython.locals(properties=int, general=int, saved=size_t, ends=int)
    cdef int _open(self, size_t node, size_t tag) except -1
    @cython.locals(stack=NumberColumn, blocks=BlockColumns, row=size_t)
    cdef int _save(self, int node) except -1
    @cython.locals(row=size_t, stack=NumberColumn, blocks=BlockColumns, ends=int)
    cdef int _close(self, int node) except -1
    @cython.locals(general=int, first=size_t, row=size_t, name=cython.uint, slot=size_t, start=size_t, size=int)
    cdef int _find_attributes(self, size_t node) except -1
    @cython.locals(row=size_t)
    cdef inline int _has(self, size_t slot) except -1
    @cython.locals(row=int)
    cdef bytes _value(self, int slot)
    @cython.locals(landmark=int)
    cdef int _find_landmark(self, int tag, int properties) except -1
    @cython.locals(named=bint)
    cdef int _root(self, int properties, int general) except -1
    @cython.locals(text=Text, row=int, start=int)
    cdef int _end_root(self) except -1
    @cython.locals(row=int)
    cdef int _show(self, int tag, int properties) except -1
    @cython.locals(blocks=BlockColumns, kind=int, around=int)
    cdef int _begin_block(self, int tag, int properties) except -1
    @cython.locals(row=int, number=int)
    cdef int _find_language(self, int slot) except -1
    @cython.locals(blocks=BlockColumns, part=Text, named=int, start=int, end=int, row=int, path=int)
    cdef int _path(self, int tag, int properties) except -1
    @cython.locals(before=int)
    cdef inline int _is_as_before(self, int tag, int start, int end) except -1
    @cython.locals(part=Text, row=int, at=int, end=int, count=int, pending=int, width=int, code=int)
    cdef int _add_name(self, int slot, int separator) except -1
    @cython.locals(ends=int, place=int)
    cdef int _note(self, int node, int tag, int properties) except -1
    @cython.locals(row=int, inner=int, start=int, end=int)
    cdef int _note_image(self) except -1
    @cython.locals(slot=int)
    cdef int _note_fact(self, int tag) except -1
    @cython.locals(row=int)
    cdef int _put_value(self, Text text, int slot) except -1
    @cython.locals(row=int, holds=int, at=int)
    cdef int _add_styles(self, int general) except -1
    @cython.locals(row=int, owner=int, start=int, end=int, head=int, entry=int, number=int, slot=int, is_first=int)
    cdef int _add_link(self, int node, int source) except -1
    @cython.locals(text=Text, entry=int, head=int)
    cdef int _add_anchor(self, int number, const unsigned char[::1] source, int start, int end) except -1
    cdef int _gather_words_of(self, int node, int tag) except -1
    @cython.locals(row=int, first=int, rows=NumberColumn)
    cdef int _gather(self, int node, int purpose, int number) except -1
    @cython.locals(
        rows=NumberColumn, words=Text, row=int, purpose=int, number=int, start=int, first=int, last=int, title=int,
        outer=int, source="const unsigned char[::1]", end=int,
    )
    cdef int _end_words(self, int node) except -1
    @cython.locals(rows=NumberColumn, anchors=Text, row=int, start=int, end=int)
    cpdef list anchors_by_head(self)
    @cython.locals(starts=NumberColumn, last=int)
    cdef (int, int) _ends_of_anchor(self, int anchor)
    @cython.locals(
        entries=Names, chars="unsigned char[::1]", ends=NumberColumn, by_head=NumberColumn, fragments=Text, others=bytearray,
        place=int, head=int, last=int,
        begin=int, count=int, is_plain=int, start=int, end=int, at=int,
    )
    cpdef tuple fragments_by_head(self)
    @cython.locals(entries=Names, ends="int[::1]", by_head=NumberColumn, entry=int, head=int)
    cdef int _group_entries(self) except -1
    @cython.locals(rows=list, ends=NumberColumn, place=int, entry=int, start=int, end=int)
    cpdef list fragments_of(self, int head)


cdef str decode_utf_8(bytes text)
@cython.locals(
    texts=Text, chars="const unsigned char[::1]", parents="const int[::1]", tags="const int[::1]",
    names="const int[::1]", counts="const int[::1]", firsts="const int[::1]", starts="const int[::1]",
    ends="const int[::1]", node=int, first=int, row=int, slot=int,
)
cpdef list names_of_places(tree)
