# cython: infer_types=True, initializedcheck=False
"""The nodes of a tree under construction, the stack of open elements, and the list of formatting elements.

HTML Living Standard, 13.2.4.2, 13.2.4.3, 13.2.6.1 and the adoption agency of 13.2.6.4.7. nodes.pxd gives the types in
C.
"""

from __future__ import annotations

from typing import Final

from periplus.document.tags import (
    ATTRIBUTE_NUMBERS,
    DEEPEST,
    FLAGS_OF,
    FOREIGN,
    HTML_POINT,
    MATH_FLAGS_OF,
    MATH_NAMES,
    ROOM,
    SVG_FLAGS_OF,
    SVG_NAMES,
    SVG_TAGS,
    TAGS,
    TEXT_POINT,
    bits_of,
    numbers_of,
)
from periplus.document.tokens import Tokens

MOST_MERGE_ATTRIBUTES: Final = 512  # attributes that <html> and <body> can gather from further tags
LEAST_REOPEN_LIMIT: Final = 10_000  # limit on reopened formatting elements; plus one per two characters of the page
COLUMNS: Final = 11  # of four bytes each
STACKS: Final = 6
APART: Final = ROOM + 16  # a power of two would map the tops of all stacks to the same cache line

A, ANNOTATION, MALIGNMARK, MGLYPH, P, SVG, TABLE, TEMPLATE = numbers_of(
    "a annotation-xml malignmark mglyph p svg table template"
)
SPECIAL, SCOPE, IN_BUTTON, IMPLIED, FOSTERING, LOOSE = bits_of("special scope button implied fostering loose")
STRANGE, TEXT_SIDE, HTML_SIDE = FOREIGN, TEXT_POINT, HTML_POINT
ELEMENTS: int = len(TAGS)
FLAGS, SVG_FLAGS, MATH_FLAGS, SVG_NUMBERS = FLAGS_OF, SVG_FLAGS_OF, MATH_FLAGS_OF, SVG_TAGS


class Nodes(Tokens):
    """A page's nodes as columns (see `tree.PageTree`), and the open ones.

    On the stack an HTML element is stored as the number of its name, an SVG or MathML element as the negative number.
    """

    def __init__(self, page: bytes) -> None:
        super().__init__(page)
        size = len(page)
        self.node_room = (size >> 4) + 256  # half of the real pages, in the manuals tried, have more nodes
        # one buffer for many columns: creating a Python buffer takes half a microsecond, a slice in C nothing
        self.cells = memoryview(bytearray(4 * COLUMNS * self.node_room)).cast("i")
        self.spaces = memoryview(bytearray(self.node_room))
        self._part()
        self.count = 1
        self.parents[0] = self.firsts[0] = self.nexts[0] = self.lasts[0] = self.backs[0] = -1
        self.stacks = memoryview(bytearray(4 * STACKS * APART)).cast("i")
        self.stack, self.open_tags = self.stacks[:ROOM], self.stacks[APART:][:ROOM]
        self.open_flags, self.formats = self.stacks[2 * APART :][:ROOM], self.stacks[3 * APART :][:ROOM]
        self.format_prints, self.template_modes = self.stacks[4 * APART :][:ROOM], self.stacks[5 * APART :][:ROOM]
        self.depth = 1  # the document is at the bottom of the stack
        self.listed = 0
        self.budget = (size >> 1) + LEAST_REOPEN_LIMIT
        self.before = -1
        self.fostering = 0

    def _part(self) -> int:
        """Divides the cells into columns."""
        cells, room = self.cells, self.node_room
        self.tags = cells[:room]
        self.parents = cells[room : 2 * room]
        self.firsts = cells[2 * room : 3 * room]
        self.nexts = cells[3 * room : 4 * room]
        self.starts = cells[4 * room : 5 * room]
        self.ends = cells[5 * room : 6 * room]
        self.attributes = cells[6 * room : 7 * room]
        self.counts = cells[7 * room : 8 * room]
        self.offsets = cells[8 * room : 9 * room]
        self.lasts = cells[9 * room : 10 * room]
        self.backs = cells[10 * room :]
        return 0

    def _grow(self) -> int:
        room = self.node_room
        cells = memoryview(bytearray(8 * COLUMNS * room)).cast("i")
        for column in range(COLUMNS):
            start = column * room
            cells[2 * start : 2 * start + room] = self.cells[start : start + room]
        spaces = memoryview(bytearray(2 * room))
        spaces[:room] = self.spaces
        self.cells, self.spaces, self.node_room = cells, spaces, 2 * room
        return self._part()

    def _attach(self, node: int, parent: int, before: int) -> int:
        """Inserts a node as the last child of another, or before a sibling."""
        self.parents[node] = parent
        self.nexts[node] = before
        if before < 0:
            last = self.lasts[parent]
            self.lasts[parent] = node
        else:
            last = self.backs[before]
            self.backs[before] = node
        self.backs[node] = last
        if last < 0:
            self.firsts[parent] = node
        else:
            self.nexts[last] = node
        return 0

    def _detach(self, node: int) -> int:
        parent, back, following = self.parents[node], self.backs[node], self.nexts[node]
        if parent < 0:
            return 0
        if back < 0:
            self.firsts[parent] = following
        else:
            self.nexts[back] = following
        if following < 0:
            self.lasts[parent] = back
        else:
            self.backs[following] = back
        self.parents[node] = self.nexts[node] = self.backs[node] = -1
        return 0

    def _new(self, tag: int) -> int:
        node = self.count
        if node == self.node_room:
            self._grow()
        self.tags[node] = tag
        self.firsts[node] = -1
        self.lasts[node] = -1
        self.count = node + 1
        return node

    def _add(self, tag: int) -> int:
        """Adds a node at the appropriate place for inserting a node (13.2.6.1)."""
        node = self._new(tag)
        top = self.depth - 1
        if self.fostering and self.open_flags[top] & FOSTERING:
            parent = self._foster_parent()
            self._attach(node, parent, self.before)
        else:
            self._attach(node, self.stack[top], -1)
        return node

    def _foster_parent(self) -> int:
        """The foster parent of nodes that are not allowed in a table; sets `before` to the table, if they
        go before it.
        """
        self.before = -1
        at = self.depth - 1
        while at > 0:
            if self.open_tags[at] == TEMPLATE:
                return self.stack[at]
            if self.open_tags[at] == TABLE:
                table = self.stack[at]
                if self.parents[table] >= 0:
                    self.before = table
                    return self.parents[table]
                return self.stack[at - 1]
            at -= 1
        return self.stack[1]

    def _insert_text(self, start: int, end: int) -> int:
        node = self._add(-1)
        self.starts[node] = start
        self.ends[node] = end
        return 0

    def _push(self, node: int, tag: int, flags: int) -> int:
        at = self.depth
        self.stack[at] = node
        self.open_tags[at] = tag
        self.open_flags[at] = flags
        self.depth = at + 1
        return 0

    def _open(self, tag: int, first: int, count: int) -> int:
        """Inserts an HTML element and pushes it on the stack."""
        node = self._add(tag)
        if count:
            self.attributes[node] = first
            self.counts[node] = count
        self._push(node, tag, FLAGS[tag] if tag < ELEMENTS else 0)
        return node

    def _insert(self, tag: int) -> int:
        """Opens the element of the current tag."""
        node = self._open(tag, self.first, self.attrs)
        self.offsets[node] = self.place
        return node

    def _insert_leaf(self, tag: int) -> int:
        self._insert(tag)
        self.depth -= 1
        return 0

    def _insert_foreign(self, tag: int, space: int) -> int:
        """Opens an SVG (1) or MathML (2) element, unless its tag is self-closing."""
        number, flags = tag, STRANGE
        if tag < ELEMENTS:
            flags = SVG_FLAGS[tag] if space == 1 else MATH_FLAGS[tag]
            if space == 1:
                number = SVG_NUMBERS[tag]
            elif tag == ANNOTATION and self._value("encoding").lower() in (b"text/html", b"application/xhtml+xml"):
                flags |= HTML_SIDE
        if self.attrs:
            self.adjust_names(self.first, self.attrs, SVG_NAMES if space == 1 else MATH_NAMES)
        node = self._add(number)
        self.attributes[node], self.counts[node], self.offsets[node] = self.first, self.attrs, self.place
        self.spaces[node] = space
        if not self.closing:
            self._push(node, -tag, flags)
        return 0

    def _value(self, name: str) -> bytes:
        """An attribute of the current tag."""
        number = ATTRIBUTE_NUMBERS[name]
        for row in range(self.first, self.first + self.attrs):
            if self.names[row] == number:
                return bytes(self.chars[self.value_starts[row] : self.value_ends[row]])
        return b""

    def _merge(self, node: int) -> int:
        """Adds the attributes of the current tag that the element does not have yet."""
        if self.attrs and self.counts[node] < MOST_MERGE_ATTRIBUTES:
            before = self.rows
            self.attributes[node] = self.merge_rows(self.attributes[node], self.counts[node], self.first, self.attrs)
            self.counts[node] = self.rows - before
        return 0

    # --- the stack

    def _has(self, tag: int, boundaries: int) -> int:
        """Whether an element is in the scope given by boundaries: its place on the stack plus one, or 0."""
        at = self.depth - 1
        while at >= 0:
            if self.open_tags[at] == tag:
                return at + 1
            if self.open_flags[at] & boundaries:
                return 0
            at -= 1
        return 0

    def _pop_to(self, tag: int) -> int:
        """Closes elements up to and including one with this name."""
        while self.depth > 2:
            self.depth -= 1
            if self.open_tags[self.depth] == tag:
                break
        return 0

    def _clear_to(self, context: int) -> int:
        while self.depth > 2 and not self.open_flags[self.depth - 1] & context:
            self.depth -= 1
        return 0

    def _close_implied_tags(self, but: int) -> int:
        while self.open_flags[self.depth - 1] & IMPLIED and self.open_tags[self.depth - 1] != but:
            self.depth -= 1
        return 0

    def _close_p(self) -> int:
        if self._has(P, SCOPE | IN_BUTTON):
            self._pop_to(P)
        return 0

    def _close_item(self, tag: int, other: int) -> int:
        """Closes a list item before the next one begins."""
        at = self.depth - 1
        while at > 0:
            if self.open_tags[at] == tag or self.open_tags[at] == other:
                self.depth = at
                break
            if self.open_flags[at] & SPECIAL and not self.open_flags[at] & LOOSE:
                break
            at -= 1
        return self._close_p()

    def _end_block(self, tag: int) -> int:
        if self._has(tag, SCOPE):
            self._pop_to(tag)
            return 1
        return 0

    def _end_other(self, tag: int) -> int:
        at = self.depth - 1
        while at > 0:
            if self.open_tags[at] == tag:
                self.depth = at
                return 0
            if self.open_flags[at] & SPECIAL:
                return 0
            at -= 1
        return 0

    # --- SVG and MathML

    def _is_foreign_start(self, tag: int) -> int:
        """Whether a tag within an SVG or MathML element begins one."""
        flags = self.open_flags[self.depth - 1]
        if flags & HTML_SIDE:
            return 0
        if flags & TEXT_SIDE and tag not in (MGLYPH, MALIGNMARK):
            return 0
        return not (tag == SVG and self.open_tags[self.depth - 1] == -ANNOTATION)

    def _break_out(self) -> int:
        while self.open_flags[self.depth - 1] & STRANGE:
            if self.open_flags[self.depth - 1] & (TEXT_SIDE | HTML_SIDE):
                break
            self.depth -= 1
        return 0

    def _has_style(self) -> bool:
        return any(
            self.names[row] in (ATTRIBUTE_NUMBERS["color"], ATTRIBUTE_NUMBERS["face"], ATTRIBUTE_NUMBERS["size"])
            for row in range(self.first, self.first + self.attrs)
        )

    # --- list of active formatting elements: nodes, -1 for a marker

    def _print_of(self, node: int) -> int:
        """A hash that is equal for elements with the same tag and attributes."""
        total = self.counts[node]
        for row in range(self.attributes[node], self.attributes[node] + self.counts[node]):
            value = self.names[row] + 1
            for at in range(self.value_starts[row], self.value_ends[row]):
                value = (value * 31 + self.chars[at] + 1) & 0x3FFFFFFF
            total = (total + value * value) & 0x3FFFFFFF
        return total

    def _list_format(self, node: int) -> int:
        """Adds an element to the list; of four equal ones since the last marker the earliest is removed."""
        tag, count, alike, earliest = self.tags[node], self.counts[node], 0, 0
        fingerprint = -1
        at = self.listed - 1
        while at >= 0 and self.formats[at] >= 0:
            other = self.formats[at]
            if self.tags[other] == tag and self.counts[other] == count:
                if fingerprint < 0:
                    fingerprint = self._print_of(node)
                if self.format_prints[at] < 0:
                    self.format_prints[at] = self._print_of(other)
                if self.format_prints[at] == fingerprint:
                    alike += 1
                    earliest = at
            at -= 1
        if alike >= 3:
            self._unlist(earliest)
        if self.listed < ROOM:
            self.formats[self.listed] = node
            self.format_prints[self.listed] = fingerprint
            self.listed += 1
        return 0

    def _unlist(self, at: int) -> int:
        self.listed -= 1
        while at < self.listed:
            self.formats[at] = self.formats[at + 1]
            self.format_prints[at] = self.format_prints[at + 1]
            at += 1
        return 0

    def _mark(self) -> int:
        if self.listed < ROOM:
            self.formats[self.listed] = -1
            self.listed += 1
        return 0

    def _clear_to_marker(self) -> int:
        while self.listed > 0:
            self.listed -= 1
            if self.formats[self.listed] < 0:
                break
        return 0

    def _open_place(self, node: int) -> int:
        """The place of a node on the stack; -1 if it is not open."""
        at = self.depth - 1
        while at >= 0 and self.stack[at] != node:
            at -= 1
        return at

    def _is_in_scope(self, place: int) -> bool:
        at = self.depth - 1
        while at > place:
            if self.open_flags[at] & SCOPE:
                return False
            at -= 1
        return True

    def _listed_place(self, tag: int) -> int:
        """The last formatting element with this name since the last marker; -1 if there is none."""
        at = self.listed - 1
        while at >= 0 and self.formats[at] >= 0:
            if self.tags[self.formats[at]] == tag:
                return at
            at -= 1
        return -1

    def _reopen(self) -> int:
        """Reconstructs the active formatting elements (13.2.4.3)."""
        at = self.listed - 1
        if at < 0 or self.formats[at] < 0 or self.formats[at] == self.stack[self.depth - 1]:
            return 0
        while at >= 0 and self.formats[at] >= 0 and self._open_place(self.formats[at]) < 0:
            at -= 1
        at += 1
        while at < self.listed and self.depth < DEEPEST and self.budget > 0:
            node = self.formats[at]
            self.formats[at] = self._open(self.tags[node], self.attributes[node], self.counts[node])
            self.budget -= 1
            at += 1
        return 0

    def _end_formatting(self, tag: int) -> int:
        """The adoption agency algorithm (13.2.6.4.7); the usual case first."""
        top = self.depth - 1
        if self.open_tags[top] == tag and self.listed and self.formats[self.listed - 1] == self.stack[top]:
            self.depth = top
            self.listed -= 1
            return 0
        if self.open_tags[top] == tag and self._format_entry(self.stack[top]) < 0:
            self.depth = top
            return 0
        for _ in range(8):
            entry = self._listed_place(tag)
            if entry < 0:
                return self._end_other(tag)
            place = self._open_place(self.formats[entry])
            if place < 0:
                return self._unlist(entry)
            if not self._is_in_scope(place):
                return 0
            furthest = place + 1
            while furthest < self.depth and not self.open_flags[furthest] & SPECIAL:
                furthest += 1
            if furthest == self.depth:
                self.depth = place
                return self._unlist(entry)
            self._adopt(entry, place, furthest)
        return 0

    def _close_link(self) -> int:
        """Ends an open link before the next one begins."""
        entry = self._listed_place(A)
        if entry >= 0:
            node = self.formats[entry]
            self._end_formatting(A)
            entry = self._format_entry(node)
            if entry >= 0:
                self._unlist(entry)
            place = self._open_place(node)
            if place >= 0:
                self._remove(place)
        return 0

    def _format_entry(self, node: int) -> int:
        at = self.listed - 1
        while at >= 0 and self.formats[at] != node:
            at -= 1
        return at

    def _clone(self, node: int) -> int:
        clone = self._new(self.tags[node])
        self.attributes[clone] = self.attributes[node]
        self.counts[clone] = self.counts[node]
        return clone

    def _adopt(self, entry: int, place: int, furthest: int) -> int:
        """One round: moves the furthest block out of the formatting element, and gives it a clone inside."""
        formatting, block, ancestor = self.formats[entry], self.stack[furthest], self.stack[place - 1]
        bookmark, last, rounds, at = entry, block, 0, furthest - 1
        while at > place:
            rounds += 1
            node = self.stack[at]
            listed = self._format_entry(node)
            if listed >= 0 and rounds > 3:
                self._unlist(listed)
                bookmark -= listed < bookmark
                entry -= listed < entry
                listed = -1
            if listed < 0:
                self._remove(at)
                furthest -= 1
            else:
                clone = self._clone(node)
                self.formats[listed] = self.stack[at] = clone
                if last == block:
                    bookmark = listed + 1
                self._detach(last)
                self._attach(last, clone, -1)
                last = clone
            at -= 1
        self._detach(last)
        if self.open_flags[place - 1] & FOSTERING:
            depth = self.depth
            self.depth = place
            parent = self._foster_parent()
            self.depth = depth
            self._attach(last, parent, self.before)
        else:
            self._attach(last, ancestor, -1)
        clone = self._clone(formatting)
        child = self.firsts[block]
        self.firsts[clone], self.lasts[clone] = child, self.lasts[block]
        self.firsts[block] = self.lasts[block] = -1
        while child >= 0:
            self.parents[child] = clone
            child = self.nexts[child]
        self._attach(clone, block, -1)
        flags = self.open_flags[place]
        self._remove(place)
        self._unlist(entry)
        bookmark -= entry < bookmark
        self._list_at(clone, bookmark)
        self._stack_at(furthest, clone, flags)
        return 0

    def _remove(self, place: int) -> int:
        """Removes an element from within the stack."""
        self.depth -= 1
        while place < self.depth:
            self.stack[place] = self.stack[place + 1]
            self.open_tags[place] = self.open_tags[place + 1]
            self.open_flags[place] = self.open_flags[place + 1]
            place += 1
        return 0

    def _stack_at(self, place: int, node: int, flags: int) -> int:
        at = self.depth
        while at > place:
            self.stack[at] = self.stack[at - 1]
            self.open_tags[at] = self.open_tags[at - 1]
            self.open_flags[at] = self.open_flags[at - 1]
            at -= 1
        self.stack[place], self.open_tags[place], self.open_flags[place] = node, self.tags[node], flags
        self.depth += 1
        return 0

    def _list_at(self, node: int, place: int) -> int:
        at = self.listed
        while at > place:
            self.formats[at] = self.formats[at - 1]
            self.format_prints[at] = self.format_prints[at - 1]
            at -= 1
        self.formats[place], self.format_prints[place] = node, -1
        self.listed += 1
        return 0
