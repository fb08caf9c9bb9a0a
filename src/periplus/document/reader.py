"""Reads a page's tree in one walk: text blocks with their positions, links, and metadata.

No object is created per element, block or link: data is collected in columns of numbers and UTF-8 texts, and converted
to Python objects after the walk. The properties of elements and attributes are in `page_rules`. Compiled if there is a
C compiler; reader.pxd gives the types.
"""

from __future__ import annotations

from periplus.document import page_rules as rules
from periplus.document.columns import (
    BlockColumns,
    Names,
    NumberColumn,
    Text,
    end_of_chars,
    folded_chars,
    has_words,
    stands_at,
    white_at,
)
from periplus.document.page_rules import Element
from periplus.document.tags import ATTRIBUTES, TAGS, numbers_of
from periplus.document.tree import PageTree, parse
from periplus.model.page import BLOCK_KIND_CODES, POSITION_CODES, BlockKind, Position

NEWLINE, SPACE, SHARP, SLASH, DOT, LOW_LINE, PARENTHESIS, DIGIT = b"\n #/._(0"
SPACES, GOING_ON = rules.SPACES, rules.GOING_ON
PROPERTIES, KINDS, LEVELS, LANDMARKS = rules.PROPERTIES, rules.KINDS, rules.LEVELS, rules.LANDMARKS
TAG_LETTERS, TAG_ENDS, SLOTS, NONE = rules.TAG_LETTERS, rules.TAG_ENDS, rules.SLOTS, rules.NO_RULE
FIRST_PARTS, PARTS, SOURCE_SLOTS = rules.FIRST_PARTS, rules.PARTS, rules.SOURCE_SLOTS
SOURCES_WITH_REL, SOURCE_IS_ANCHOR = rules.SOURCES_WITH_REL, rules.SOURCE_IS_ANCHOR
SOURCE_IS_LIST, POSITION_SHIFT, NOFOLLOW, LONG = rules.SOURCE_IS_LIST, rules.POSITION_SHIFT, rules.NOFOLLOW, rules.LONG
NAME_CHARS, ELEMENTS_MOST = rules.NAME_CHARS, rules.ELEMENTS_MOST
META_MOST, TITLES_MOST = rules.META_MOST, rules.TITLES_MOST
HEADINGS_MOST, HREF_CHARS, ANCHOR_CHARS = rules.HEADINGS_MOST, rules.HREF_CHARS, rules.ANCHOR_CHARS
PATHS_MOST, ROOT_CHARS, ROOT_BYTES = rules.PATHS_MOST, rules.ROOT_CHARS, 4 * rules.ROOT_CHARS
PLAIN_IN_FRAGMENTS, FRAGMENTS_MOST = rules.PLAIN_IN_FRAGMENTS, rules.FRAGMENTS_MOST
(
    BLOCK, SAME, HOLDS_P, UNNAMED, LEAF, UNSEEN, BREAK, LINK, IMAGE, WORDS, SHEET, NOTED, WITH_PARTS, MARK, SECTION,
    BANNER, ROOT,
) = map(int, Element)  # fmt: skip
(
    ROLE, STYLE, BACKGROUND, ID, NG_APP, REACT_ROOT, CLASS, LANG, XML_LANG, HREF, REL, ALT, TITLE, NAME, HTTP_EQUIV,
    CONTENT, HREFLANG, AS, IMAGESRCSET, SRCDOC,
) = range(1, 21)  # fmt: skip
ROOT_LETTERS, TAGS_KNOWN, NAMES_KNOWN = rules.ROOT_LETTERS, len(TAGS), len(ATTRIBUTES)
A_TAG, P, H1, META_TAG, LINK_TAG, BASE_TAG, HTML_TAG, BODY_TAG, SCRIPT_TAG, SVG_TAG, IFRAME_TAG, TITLE_TAG = (
    numbers_of("a p h1 meta link base html body script svg iframe title")
)  # fmt: skip
PARAGRAPH, HEADING = BLOCK_KIND_CODES[BlockKind.PARAGRAPH], BLOCK_KIND_CODES[BlockKind.HEADING]
AT_BODY = POSITION_CODES[Position.BODY]

# Actions at the end of an element
END_BLOCK, END_UNSEEN, END_LINK, END_WORDS, END_SHEET, END_ROOT, END_MARK = 1, 2, 4, 8, 16, 32, 64
# Number of fields per row of the columns
OPEN_FIELDS, WORDS_FIELDS, HEAD_FIELDS, ROOT_FIELDS = 10, 7, 2, 2
# offsets in these rows; at offset 0 is the element, the count of links, or the length of the text
OPEN_ENDS, OPEN_POSITION, OPEN_SECTIONED, OPEN_KIND, OPEN_LEVEL = range(1, 6)
OPEN_PART, OPEN_LANGUAGE, OPEN_PATH, OPEN_P = range(6, 10)
WORDS_PURPOSE, WORDS_NUMBER, WORDS_START, WORDS_ALT, WORDS_ALT_END, WORDS_TITLE = range(1, 7)
HEAD_ANCHOR = ROOT_LINKS = 1
FOR_ANCHOR, FOR_TITLE, FOR_H1, FOR_NOSCRIPT = range(4)  # purposes of collected text


class Reader:
    """The walk over one page, and its results."""

    def __init__(self, tree: PageTree) -> None:
        self._take(tree)
        self.blocks = BlockColumns(len(self.chars) // 2 + 1024)
        self.serial = 0
        self.open = NumberColumn(32 * OPEN_FIELDS)  # saved state, restored at the ends of open elements
        self.position = AT_BODY
        self.sectioned = 0
        self.unseen = 0
        self.sheet = 0
        self.words = Text(1024)  # of elements whose text is collected separately
        # node, purpose, number, start, start and end of an image's alternative text, title
        self.gathering = NumberColumn(4 * WORDS_FIELDS)
        self.anchors = Text(4096)  # texts of links
        self.anchor_starts = NumberColumn(128)
        self.heads = Names(256)  # targets of links without fragments
        self.entries = Names(256)  # fragments, with their `#`; the owner is the head
        self.head_rows = NumberColumn(256 * HEAD_FIELDS)  # count, index of the anchor
        self.entry_rows = NumberColumn(256)  # index of the anchor
        # entries grouped by head; the end of each group
        self.by_head, self.ends_by_head = NumberColumn(0), NumberColumn(0)
        self.languages = Names(16)
        self.metas, self.links, self.frames, self.sheets, self.styles = Text(512), Text(512), Text(0), Text(0), Text(0)
        self.base = self.language = self.title = self.h1 = ""
        self.html_count = self.titled = 0
        self.title_count = self.h1_count = self.h1_place = self.script_count = self.svg_count = self.root_count = 0
        self.link_count = self.filled_roots = self.images_without_alt = self.unscripted_chars = self.noscripts = 0
        self.too_many = 0  # whether the limit of elements of one kind was exceeded
        self.landmark = NONE  # of the current element
        self.roots = NumberColumn(0)  # of open root elements: start of their text, number of links before

    def _take(self, tree: PageTree) -> int:
        """Takes the tree's columns and creates those by attribute and tag: assignments untyped in `__init__`."""
        cells = NumberColumn(2 * 64 + 5 * TAGS_KNOWN)  # one buffer for all columns by attribute or tag
        # By attribute slot: its row, valid if the stamp equals the serial
        self.slots, self.stamps = cells.values[:64], cells.values[64:128]
        # By tag: number of elements with links
        self.tag_counts = cells.values[128 : 128 + TAGS_KNOWN]
        # By tag, for the last element without id: parent path, own path, position of its class
        self.above = cells.values[128 + TAGS_KNOWN : 128 + 2 * TAGS_KNOWN]
        self.below = cells.values[128 + 2 * TAGS_KNOWN : 128 + 3 * TAGS_KNOWN]
        self.class_starts = cells.values[128 + 3 * TAGS_KNOWN : 128 + 4 * TAGS_KNOWN]
        self.class_ends = cells.values[128 + 4 * TAGS_KNOWN :]
        self.chars, self.tags, self.spaces = tree.chars, tree.tags, tree.spaces
        self.parents, self.children, self.nexts = tree.parents, tree.firsts, tree.nexts
        self.starts, self.ends = tree.starts, tree.ends
        self.attributes, self.attribute_counts = tree.attributes, tree.attribute_counts
        self.names, self.value_starts, self.value_ends = tree.attribute_names, tree.value_starts, tree.value_ends
        return 0

    def read(self) -> Reader:
        """Walks the tree; returns itself."""
        tags, children, nexts, parents = self.tags, self.children, self.nexts, self.parents
        starts, ends = self.starts, self.ends
        step = children[0]
        while step > 0:
            node = step
            tag = tags[node]
            if tag == -1:
                self._text(starts[node], ends[node])
            elif tag > 0:
                self._open(node, tag)
                step = children[node]
                if step >= 0:
                    continue
                self._close(node)
            step = nexts[node]
            while step < 0:
                node = parents[node]
                if node == 0:
                    self.blocks.finish()
                    return self
                self._close(node)
                step = nexts[node]
        return self

    def _text(self, start: int, end: int) -> int:
        if not self.unseen:
            self.blocks.write(self.chars, start, end)
        if self.gathering.size:
            self.words.fold(self.chars, start, end)
        if self.sheet:
            self.sheets.copy(self.chars, start, end)
        return 0

    def _open(self, node: int, tag: int) -> int:
        """Processes the start of an element."""
        properties = PROPERTIES[tag] if tag < TAGS_KNOWN else 0
        self.serial += 1
        general = self._find_attributes(node) if self.attribute_counts[node] else 0
        if not properties and not general:
            return 0
        if tag == TITLE_TAG and self.spaces[node] == 0:
            properties = WORDS | UNSEEN
        saved = self.open.size
        self._save(node)
        ends = 0
        self.landmark = NONE
        if properties & MARK or general & (1 << ROLE):
            ends |= self._find_landmark(tag, properties)
        if properties & ROOT or general & (1 << ID | 1 << NG_APP | 1 << REACT_ROOT):
            ends |= self._root(properties, general)
        if properties & UNSEEN:
            self.unseen += 1
            ends |= END_UNSEEN
        elif not self.unseen:
            ends |= self._show(tag, properties)
        if properties & SECTION:
            self.sectioned = 1
            ends |= END_MARK
        if properties & (LINK | WITH_PARTS | NOTED | WORDS | IMAGE):
            ends |= self._note(node, tag, properties)
        if general & (1 << STYLE | 1 << BACKGROUND):
            self._add_styles(general)
        if properties & SHEET:
            self.sheet += 1
            ends |= END_SHEET
        if ends:
            self.open.values[saved + OPEN_ENDS] = ends
        else:
            self.open.size = saved
        return 0

    def _save(self, node: int) -> int:
        """Saves the state that the end of the element restores."""
        stack, blocks, row = self.open, self.blocks, self.open.size
        stack.reserve(OPEN_FIELDS)
        stack.values[row], stack.values[row + OPEN_ENDS] = node, 0
        stack.values[row + OPEN_POSITION], stack.values[row + OPEN_SECTIONED] = self.position, self.sectioned
        stack.values[row + OPEN_KIND], stack.values[row + OPEN_LEVEL] = blocks.kind, blocks.level
        stack.values[row + OPEN_PART], stack.values[row + OPEN_P] = blocks.position, blocks.holds_p
        stack.values[row + OPEN_LANGUAGE], stack.values[row + OPEN_PATH] = blocks.language, blocks.path
        stack.size = row + OPEN_FIELDS
        return 0

    def _close(self, node: int) -> int:
        """Processes the end of an element."""
        if self.open.size == 0:
            return 0
        row = self.open.size - OPEN_FIELDS
        if self.open.values[row] != node:
            return 0
        stack, blocks = self.open, self.blocks
        ends = stack.values[row + OPEN_ENDS]
        if ends & END_LINK:
            blocks.link(-1)
        if ends & END_BLOCK:
            blocks.finish()
        if ends & END_WORDS:
            self._end_words(node)
        if ends & END_UNSEEN:
            self.unseen -= 1
        if ends & END_SHEET:
            self.sheet -= 1
            if not self.sheet:
                self.sheets.put(0)
        if ends & END_ROOT:
            self._end_root()
        self.position, self.sectioned = stack.values[row + OPEN_POSITION], stack.values[row + OPEN_SECTIONED]
        blocks.kind, blocks.level = stack.values[row + OPEN_KIND], stack.values[row + OPEN_LEVEL]
        blocks.position, blocks.holds_p = stack.values[row + OPEN_PART], stack.values[row + OPEN_P]
        blocks.language, blocks.path = stack.values[row + OPEN_LANGUAGE], stack.values[row + OPEN_PATH]
        stack.size = row
        return 0

    def _find_attributes(self, node: int) -> int:
        """Records the relevant attributes; returns a bit mask of those that apply to any element."""
        general, first = 0, self.attributes[node]
        for row in range(first, first + self.attribute_counts[node]):
            name = self.names[row]
            slot = SLOTS[name] if name < NAMES_KNOWN else 0
            if slot:
                self.slots[slot], self.stamps[slot] = row, self.serial
                if slot < CLASS:
                    general |= 1 << slot
        if general & (1 << ID):
            row = self.slots[ID]
            start, size = self.value_starts[row], self.value_ends[row] - self.value_starts[row]
            # checked before the lookup: most pages have many ids, and none of these
            if size < 3 or size > 11 or not ROOT_LETTERS[self.chars[start]]:
                general &= ~(1 << ID)
        return general

    def _has(self, slot: int) -> int:
        """Whether the current element has a non-empty attribute in this slot."""
        if self.stamps[slot] != self.serial:
            return 0
        row = self.slots[slot]
        return self.value_ends[row] > self.value_starts[row]

    def _value(self, slot: int) -> bytes:
        """The attribute of the current element in this slot; b"" if missing."""
        if self.stamps[slot] != self.serial:
            return b""
        row = self.slots[slot]
        return bytes(self.chars[self.value_starts[row] : self.value_ends[row]])

    def _find_landmark(self, tag: int, properties: int) -> int:
        landmark = LANDMARKS[tag] if properties & MARK else NONE
        if properties & BANNER and self.sectioned:
            landmark = NONE
        if self.stamps[ROLE] == self.serial:
            landmark = rules.ROLES.get(decode_utf_8(self._value(ROLE)).strip().lower(), landmark)
        if landmark == NONE:
            return 0
        self.position = self.landmark = landmark
        return END_MARK

    def _root(self, properties: int, general: int) -> int:
        """Recognises the root element of a script framework."""
        named = general & (1 << NG_APP | 1 << REACT_ROOT) or (general & (1 << ID) and self._value(ID) in rules.ROOT_IDS)
        if self.unseen or not (properties & ROOT or named):
            return 0
        self.root_count += 1
        self.roots.add(self.blocks.text.size)
        self.roots.add(self.link_count)
        return END_ROOT

    def _end_root(self) -> int:
        text, row = self.blocks.text, self.roots.size - ROOT_FIELDS
        start = min(self.roots.values[row], text.size)
        if (
            self.link_count > self.roots.values[row + ROOT_LINKS]
            or text.size - start > ROOT_BYTES
            or folded_chars(text.chars, start, text.size) > ROOT_CHARS
        ):
            self.filled_roots += 1
        self.roots.size = row
        return 0

    def _show(self, tag: int, properties: int) -> int:
        """Handles the element's role for blocks: a block, link, line break or image."""
        if properties & BLOCK:
            self._begin_block(tag, properties)
            return END_BLOCK
        if properties & LINK and self.stamps[HREF] == self.serial:
            self.blocks.link(1)
            self.link_count += 1
            return END_LINK
        if properties & BREAK:
            self.blocks.line_break()
        elif properties & IMAGE and self._has(ALT):
            row = self.slots[ALT]
            self.blocks.image(self.chars, self.value_starts[row], self.value_ends[row])
        return 0

    def _begin_block(self, tag: int, properties: int) -> int:
        blocks = self.blocks
        blocks.finish()
        kind = KINDS[tag]
        if kind == NONE:
            around = blocks.kind
            kind = around if properties & SAME or (tag == P and blocks.holds_p) else PARAGRAPH
        if LEVELS[tag] or kind != HEADING:
            blocks.level = LEVELS[tag]
        blocks.kind, blocks.holds_p = kind, properties & HOLDS_P
        if self.landmark != NONE:
            blocks.position = self.landmark
        if not properties & UNNAMED:
            blocks.path = self._path(tag, properties)
        if tag != HTML_TAG:
            self._find_language(LANG if self._has(LANG) else XML_LANG)
        return 0

    def _find_language(self, slot: int) -> int:
        row = self.slots[slot]
        if self._has(slot) and has_words(self.chars, self.value_starts[row], self.value_ends[row]):
            number = self.languages.number(0, self.chars, self.value_starts[row], self.value_ends[row])
            self.blocks.language = number if number > 0 else -number
        return 0

    def _path(self, tag: int, properties: int) -> int:
        """The number of the path to the element; its parts are like `div#content.main`."""
        blocks, named = self.blocks, not properties & LEAF and self._has(ID)
        start = end = 0
        if not named:
            if self._has(CLASS):
                row = self.slots[CLASS]
                start, end = self.value_starts[row], self.value_ends[row]
            if self._is_as_before(tag, start, end):
                return self.below[tag]
            self.above[tag], self.class_starts[tag], self.class_ends[tag] = blocks.path, start, end
        part = blocks.scratch
        part.size = 0
        part.copy(TAG_LETTERS, TAG_ENDS[tag - 1], TAG_ENDS[tag])
        if named:
            part.put(SHARP)
            self._add_name(ID, LOW_LINE)
        if self._has(CLASS):
            part.put(DOT)
            self._add_name(CLASS, DOT)
        path = blocks.path_below(part.chars, 0, part.size)
        if not named:
            self.below[tag] = path
        return path

    def _is_as_before(self, tag: int, start: int, end: int) -> int:
        """Whether the last element with this tag and without id had the same parent path and class."""
        if self.blocks.path != self.above[tag] or not self.below[tag] or self.blocks.parts.count >= PATHS_MOST:
            return 0
        before = self.class_starts[tag]
        return self.class_ends[tag] - before == end - start and stands_at(self.chars, before, self.chars, start, end)

    def _add_name(self, slot: int, separator: int) -> int:
        """Appends the first characters of an attribute to a path part, without slashes: they separate parts."""
        part, row = self.blocks.scratch, self.slots[slot]
        at, end = self.value_starts[row], self.value_ends[row]
        count = pending = 0
        part.reserve(2 * (end - at))
        while at < end:
            width = white_at(self.chars, at, end)
            if width:
                pending = count > 0
                at += width
                continue
            code = self.chars[at]
            if SPACES[code] != GOING_ON:
                if pending and count < NAME_CHARS:
                    part.put(separator)
                    count += 1
                    pending = 0
                count += 1
                if count > NAME_CHARS:
                    break
            part.put(LOW_LINE if code == SLASH else code)
            at += 1
        return 0

    def _note(self, node: int, tag: int, properties: int) -> int:
        """Records the element's metadata and links, and starts the collection of its text."""
        if properties & IMAGE:
            self._note_image()
        if properties & NOTED:
            self._note_fact(tag)
        ends = self._gather_words_of(node, tag) if properties & WORDS else 0
        if properties & (LINK | WITH_PARTS) and self.attribute_counts[node]:
            self.tag_counts[tag] += 1
            if self.tag_counts[tag] > ELEMENTS_MOST:
                self.too_many = 1
                return ends
            if properties & LINK and self.stamps[HREF] == self.serial:
                ends |= self._add_link(node, 0)
            place = FIRST_PARTS[tag]
            while PARTS[place] >= 0:
                if self._has(SOURCE_SLOTS[PARTS[place]]):
                    ends |= self._add_link(node, PARTS[place])
                place += 1
            if tag == IFRAME_TAG:
                self._put_value(self.frames, SRCDOC)
        return ends

    def _note_image(self) -> int:
        if self.stamps[ALT] != self.serial:
            self.images_without_alt += 1
            return 0
        row, inner = self.slots[ALT], self.gathering.size - WORDS_FIELDS
        start, end = self.value_starts[row], self.value_ends[row]
        if inner >= 0 and not self.gathering.values[inner + WORDS_ALT_END] and has_words(self.chars, start, end):
            self.gathering.values[inner + WORDS_ALT], self.gathering.values[inner + WORDS_ALT_END] = start, end
        return 0

    def _note_fact(self, tag: int) -> int:
        """Records metadata from the page's head, and counts scripts, SVGs and h1."""
        if tag == META_TAG:
            self.tag_counts[tag] += 1
            if self.tag_counts[tag] <= META_MOST:
                self._put_value(self.metas, NAME)
                self._put_value(self.metas, HTTP_EQUIV)
                self._put_value(self.metas, CONTENT)
        elif tag == LINK_TAG:
            self.tag_counts[tag] += 1
            if self.tag_counts[tag] > ELEMENTS_MOST:
                self.too_many = 1
                return 0
            for slot in (REL, HREF, HREFLANG, AS, TITLE, IMAGESRCSET):
                self._put_value(self.links, slot)
        elif tag == BASE_TAG and not self.base:
            self.base = decode_utf_8(self._value(HREF))
        elif tag == HTML_TAG and not self.html_count:
            self.html_count = 1
            self.language = decode_utf_8(self._value(LANG) or self._value(XML_LANG))
        elif tag == BODY_TAG and not self.language:
            self.language = decode_utf_8(self._value(LANG) or self._value(XML_LANG))
        elif tag == SCRIPT_TAG:
            self.script_count += 1
        elif tag == SVG_TAG:
            self.svg_count += 1
        elif tag == H1:
            self.h1_count += 1
        return 0

    def _put_value(self, text: Text, slot: int) -> int:
        """Appends an attribute's value and a NUL."""
        if self.stamps[slot] == self.serial:
            row = self.slots[slot]
            text.copy(self.chars, self.value_starts[row], self.value_ends[row])
        return text.put(0)

    def _add_styles(self, general: int) -> int:
        """Keeps attributes that may contain URLs (a style with parentheses, a background), with their position."""
        row, holds = self.slots[STYLE], 0
        if general & (1 << STYLE):
            for at in range(self.value_starts[row], self.value_ends[row]):
                holds |= self.chars[at] == PARENTHESIS
        if not holds:
            self.stamps[STYLE] = 0
            if not general & (1 << BACKGROUND):
                return 0
        self.styles.put(DIGIT + self.position)
        self.styles.put(0)
        self._put_value(self.styles, STYLE)
        return self._put_value(self.styles, BACKGROUND)

    def _add_link(self, node: int, source: int) -> int:
        """Counts a link, and records it if it is new."""
        row, owner = self.slots[SOURCE_SLOTS[source]], source | self.position << POSITION_SHIFT
        start, end = self.value_starts[row], self.value_ends[row]
        if SOURCES_WITH_REL[source] and self._has(REL) and rules.is_unfollowed(self._value(REL)):
            owner |= NOFOLLOW
        head = end
        if not SOURCE_IS_LIST[source]:
            while start < end and self.chars[start] <= SPACE:
                start += 1
            while start < end and self.chars[end - 1] <= SPACE:
                end -= 1
            head = start
            while head < end and self.chars[head] != SHARP:
                head += 1
            if end - start > HREF_CHARS:
                owner |= LONG
        number = self.heads.number(owner, self.chars, start, head)
        if number < 0:
            number = -number
            self.head_rows.add(0)
            self.head_rows.add(0)
        self.head_rows.values[(number - 1) * HEAD_FIELDS] += 1
        entry = self.entries.number(number, self.chars, head, end)
        if entry < 0:
            entry = -entry
            self.entry_rows.add(0)
        if self.entry_rows.values[entry - 1]:
            return 0
        if SOURCE_IS_ANCHOR[source]:
            is_first = not self.head_rows.values[(number - 1) * HEAD_FIELDS + HEAD_ANCHOR]
            return self._gather(node, FOR_ANCHOR, entry * 2 + is_first)
        slot = ALT if self._has(ALT) else TITLE
        if self._has(slot):
            row = self.slots[slot]
            self._add_anchor(entry * 2, self.chars, self.value_starts[row], self.value_ends[row])
        return 0

    def _add_anchor(self, number: int, source: bytes | memoryview, start: int, end: int) -> int:
        """Sets the anchor text of a link, if it has words.

        number: twice the link's entry, plus one if no link with the same head had a text when this one began: then its
        text is the head's first, even if a nested link ended before.
        """
        entry = number // 2
        text = self.anchors
        text.fold(source, start, end)
        if text.size > text.begin:
            text.size = end_of_chars(text.chars, text.begin, text.size, ANCHOR_CHARS)
            self.anchor_starts.add(text.begin)
            text.next_piece(NEWLINE)
            self.entry_rows.values[entry - 1] = self.anchor_starts.size
            head = (self.entries.owner(entry) - 1) * HEAD_FIELDS + HEAD_ANCHOR
            if number % 2 or not self.head_rows.values[head]:
                self.head_rows.values[head] = self.anchor_starts.size
        return 0

    def _gather_words_of(self, node: int, tag: int) -> int:
        if tag == H1:
            return self._gather(node, FOR_H1, self.h1_count) if self.h1_count <= HEADINGS_MOST else 0
        if tag == TITLE_TAG:
            self.title_count += 1
            if self.titled or self.spaces[node] or self.title_count > TITLES_MOST:
                return 0
            self.titled = 1
            return self._gather(node, FOR_TITLE, 0)
        self.noscripts += 1
        return self._gather(node, FOR_NOSCRIPT, self.noscripts)

    def _gather(self, node: int, purpose: int, number: int) -> int:
        """Starts to collect the text of the current element."""
        row = self.slots[TITLE] if self.stamps[TITLE] == self.serial else -1
        rows, first = self.gathering, self.gathering.size
        rows.reserve(WORDS_FIELDS)
        rows.values[first], rows.values[first + WORDS_PURPOSE] = node, purpose
        rows.values[first + WORDS_NUMBER], rows.values[first + WORDS_TITLE] = number, row
        rows.values[first + WORDS_START] = self.words.size
        rows.values[first + WORDS_ALT] = rows.values[first + WORDS_ALT_END] = 0
        rows.size = first + WORDS_FIELDS
        return END_WORDS

    def _end_words(self, node: int) -> int:
        rows, words = self.gathering, self.words
        while rows.size and rows.values[rows.size - WORDS_FIELDS] == node:
            row = rows.size - WORDS_FIELDS
            purpose, number = rows.values[row + WORDS_PURPOSE], rows.values[row + WORDS_NUMBER]
            start, title = rows.values[row + WORDS_START], rows.values[row + WORDS_TITLE]
            first, last = rows.values[row + WORDS_ALT], rows.values[row + WORDS_ALT_END]
            outer = row - WORDS_FIELDS
            if row and last and not rows.values[outer + WORDS_ALT_END]:
                rows.values[outer + WORDS_ALT], rows.values[outer + WORDS_ALT_END] = first, last
            rows.size = row
            source, end = words.chars, words.size
            if start < end and words.chars[start] == SPACE:
                start += 1
            if purpose == FOR_NOSCRIPT:
                self.noscripts = number - 1
                if number == 1:
                    self.unscripted_chars += folded_chars(source, start, end)
                continue
            if purpose == FOR_TITLE:
                self.title = decode_utf_8(bytes(source[start:end]))
                continue
            if start == end:
                source = self.chars
                start, end = first, last
                if not last and title >= 0:
                    start, end = self.value_starts[title], self.value_ends[title]
            if purpose == FOR_ANCHOR:
                self._add_anchor(number, source, start, end)
            elif has_words(source, start, end) and (not self.h1_place or number < self.h1_place):
                self.h1_place = number
                self.h1 = " ".join(decode_utf_8(bytes(source[start:end])).split())
        if not rows.size:
            words.size = words.pending = 0
        return 0

    def anchors_by_head(self) -> list[str]:
        """The anchor texts of all heads."""
        rows, anchors = self.head_rows, Text(1024)
        for row in range(1, rows.size, HEAD_FIELDS):
            if rows.values[row]:
                start, end = self._ends_of_anchor(rows.values[row])
                anchors.copy(self.anchors.chars, start, end)
            anchors.put(NEWLINE)
        return anchors.strings("\n")

    def _ends_of_anchor(self, anchor: int) -> tuple[int, int]:
        starts, last = self.anchor_starts, self.anchors.size
        return starts.values[anchor - 1], (starts.values[anchor] if anchor < starts.size else last) - 1

    def fragments_by_head(self) -> tuple[list[str], bytes]:
        """(fragments of each head in page order, separated by blanks; 1 for each head with too many or unencodable)."""
        self._group_entries()
        entries, chars, ends, by_head = self.entries, self.entries.text.chars, self.ends_by_head, self.by_head
        fragments, others, place = Text(1024), bytearray(self.heads.count), 0
        for head in range(self.heads.count):
            last = ends.values[head]
            begin, count, is_plain = fragments.size, 0, int(last - place <= FRAGMENTS_MOST)
            while place < last:
                start, end = entries.start(by_head.values[place]) + 1, entries.end(by_head.values[place])
                place += 1
                if start >= end or not is_plain:
                    continue
                for at in range(start, end):
                    is_plain &= PLAIN_IN_FRAGMENTS[chars[at]]
                if count:
                    fragments.put(SPACE)
                count += 1
                fragments.copy(chars, start, end)
            if not is_plain:
                others[head] = 1
                fragments.size = begin
            fragments.put(0)
        return fragments.strings("\0"), bytes(others)

    def _group_entries(self) -> int:
        """Groups the entries by head, in page order within a head."""
        entries = self.entries
        self.ends_by_head, self.by_head = NumberColumn(self.heads.count + 1), NumberColumn(entries.count)
        ends, by_head = self.ends_by_head.values, self.by_head
        for entry in range(entries.count):
            ends[entries.owner(entry + 1)] += 1
        for head in range(self.heads.count):
            ends[head + 1] += ends[head]
        for entry in range(entries.count):
            head = entries.owner(entry + 1) - 1
            by_head.values[ends[head]] = entry + 1
            ends[head] += 1
        return 0

    def fragments_of(self, head: int) -> list[tuple[int, str, str]]:
        """(index among all entries of the page, fragment with `#`, anchor text) of each fragment of a head.

        Call `fragments_by_head` first.
        """
        rows, ends = list[tuple[int, str, str]](), self.ends_by_head
        for place in range(ends.values[head - 1] if head else 0, ends.values[head]):
            entry, anchor = self.by_head.values[place], ""
            if self.entry_rows.values[entry - 1]:
                start, end = self._ends_of_anchor(self.entry_rows.values[entry - 1])
                anchor = decode_utf_8(bytes(self.anchors.chars[start:end]))
            start, end = self.entries.start(entry), self.entries.end(entry)
            rows.append((entry - 1, decode_utf_8(bytes(self.entries.text.chars[start:end])), anchor))
        return rows


def decode_utf_8(text: bytes) -> str:
    """Decodes UTF-8 that may contain lone surrogates."""
    return text.decode("utf-8", "surrogatepass")


def tree_of(text: str) -> PageTree:
    """The tree of an HTML page. Total."""
    return parse(text.encode("utf-8", "surrogatepass"))


def read_page(page: str | bytes) -> Reader:
    """Reads an HTML page; bytes must be UTF-8. Total."""
    return Reader(tree_of(page) if isinstance(page, str) else parse(page)).read()


def names_of_places(tree: PageTree) -> list[str]:
    """All non-empty `id`, and `name` of `a` elements."""
    texts = Text(1024)
    chars, parents, tags, names = tree.chars, tree.parents, tree.tags, tree.attribute_names
    counts, firsts, starts, ends = tree.attribute_counts, tree.attributes, tree.value_starts, tree.value_ends
    for node in range(len(tags)):
        if parents[node] < 0:
            continue
        first = firsts[node]
        for row in range(first, first + counts[node]):
            slot = SLOTS[names[row]] if names[row] < NAMES_KNOWN else 0
            if (slot == ID or (slot == NAME and tags[node] == A_TAG)) and ends[row] > starts[row]:
                texts.copy(chars, starts[row], ends[row])
                texts.put(0)
    return texts.strings("\0")
