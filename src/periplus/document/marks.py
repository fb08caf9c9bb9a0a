"""Finds the elements of a page that may contain its author and dates, in one pass over the columns of its tree.

Compiled if there is a C compiler; marks.pxd gives the types.
"""

from __future__ import annotations

from array import array

from periplus.document.page_rules import MARKS
from periplus.document.tags import ATTRIBUTE_NUMBERS, TAG_NUMBERS, TAGS
from periplus.document.tree import PageTree

JSON_LD, META, TIME, ITEM, REL, AUTHOR, DATE, MODIFIED, ELSEWHERE, ARTICLE, BOX, SILENT = MARKS
AROUND = ELSEWHERE | ARTICLE | SILENT
BYLINE_MARKS = TIME | ITEM | REL | AUTHOR | DATE | MODIFIED
MARKS_MOST = 3_000  # elements per page

NOTHING = 0  # in manuals: notes on versions, such as `versionchanged`
# Parts of class names and ids. For ELSEWHERE the name must begin with the word: `comment-list`, not `no-comments`
_WORDS = {
    NOTHING: "version",
    AUTHOR: "author byline autor auteur verfasser writer creator redakt postedby posted-by vcard journalist username "
    "submitted",
    DATE: "date datum fecha publi posted timestamp pubdate time created dato meta byline",
    MODIFIED: "modif update revis changed lastmod",
    ELSEWHERE: "comment related sidebar widget recent teaser popular disqus respond calendar copyright similar promo "
    "trending most-read mostread also-read read-more more-news latest kommentar breadcrumb reply footer",
}
_ALL_WORDS = sorted((word.encode(), kind) for kind, words in _WORDS.items() for word in words.split())
LETTERS = b"".join(word + b"\0" for word, _ in _ALL_WORDS)
KINDS = array("i", (kind for _, kind in _ALL_WORDS))
BEGINS = array("i", (sum(len(word) + 1 for word, _ in _ALL_WORDS[:place]) for place in range(len(_ALL_WORDS))))
WORDS_COUNT = len(_ALL_WORDS)
# by two letters, five bits each: the first word that begins with them
_FIRST_WORDS = {(word[0] & 31) << 5 | (word[1] & 31): row for row, (word, _) in reversed([*enumerate(_ALL_WORDS)])}
FIRST_WORDS = array("h", (_FIRST_WORDS.get(pair, -1) for pair in range(1024)))

_TAG_MARKS = {"time": TIME, "article": ARTICLE, "main": ARTICLE, "aside": ELSEWHERE}
_TAG_MARKS |= {"nav": ELSEWHERE, "footer": BOX, "header": BOX}
_TAG_MARKS |= dict.fromkeys(("pre", "code", "svg", "math"), SILENT)  # irrelevant, and full of classes
TAG_MARKS = array("i", (_TAG_MARKS.get(name, 0) for name in TAGS))
SCRIPT_TAG, META_TAG, HTML_TAG, BODY_TAG = map(TAG_NUMBERS.__getitem__, ("script", "meta", "html", "body"))
TYPE, NAME, PROPERTY, ITEMPROP, ITEMTYPE = map(
    ATTRIBUTE_NUMBERS.__getitem__, ("type", "name", "property", "itemprop", "itemtype")
)
CLASS_OF, ID_OF = -1, -2
_NAME_MARKS = {"class": CLASS_OF, "id": ID_OF, "itemprop": ITEM, "property": ITEM, "rel": REL}
NAME_MARKS = array("i", (_NAME_MARKS.get(name, 0) for name in ATTRIBUTE_NUMBERS))
TAGS_KNOWN, NAMES_KNOWN = len(TAGS), len(NAME_MARKS)
A, PLUS, SPACE, LOWER, DOT = b"a+ \x20."
ID_CHARS = 24  # longest id considered: longer ones, and those with a dot, are anchors of documentation
CLASS_CACHE_SIZE = 256  # a power of 2: a page has a thousand class attributes, and a few dozen distinct ones
ATTRIBUTE_NAMES = tuple(ATTRIBUTE_NUMBERS)
STYLE_TAG = TAG_NUMBERS["style"]


def heads(tree: PageTree) -> list[tuple[int, int, str]]:
    """(node, META or JSON_LD, name of a meta element) of machine-readable elements, in page order."""
    tags, parents, counts, attributes = tree.tags, tree.parents, tree.attribute_counts, tree.attributes
    names, starts, ends, chars = tree.attribute_names, tree.value_starts, tree.value_ends, tree.chars
    rows = list[tuple[int, int, str]]()
    for node in range(1, len(tags)):
        tag = tags[node]
        if tag not in (SCRIPT_TAG, META_TAG) or parents[node] < 0:
            continue
        for row in range(attributes[node], attributes[node] + counts[node]):
            name, start, end = names[row], starts[row], ends[row]
            if tag == META_TAG:
                if name in (NAME, PROPERTY, ITEMPROP) and end > start:
                    rows.append((node, META, text(tree, start, end)))
            elif name == TYPE and end - start >= 19 and chars[start + 14] == PLUS:
                # application/ld+json is the only type of this length with a plus there
                rows.append((node, JSON_LD, ""))
        if len(rows) >= MARKS_MOST:
            break
    return rows


def item_types(tree: PageTree) -> list[str]:
    """Each `itemtype`, as written."""
    names = tree.attribute_names
    rows = [row for row in range(len(names)) if names[row] == ITEMTYPE]
    return [text(tree, tree.value_starts[row], tree.value_ends[row]) for row in rows[:MARKS_MOST]]


def marked_nodes(tree: PageTree) -> list[tuple[int, int]]:
    """(node, its marks) of the elements that may contain author or dates, in page order."""
    of_rows, rows = _of_rows(tree), list[tuple[int, int]]()
    if not len(of_rows):
        return rows
    tags, parents, counts, attributes = tree.tags, tree.parents, tree.attribute_counts, tree.attributes
    names, around = tree.attribute_names, memoryview(bytearray(4 * len(tags))).cast("i")
    for node in range(1, len(tags)):
        tag, parent = tags[node], parents[node]
        if tag <= 0 or parent < 0:
            continue
        inherited, marks = around[parent], TAG_MARKS[tag] if tag < TAGS_KNOWN else 0
        if (inherited | marks) & SILENT:
            around[node] = inherited | SILENT
            continue
        if marks == BOX:
            marks = 0 if inherited & ARTICLE else ELSEWHERE
        for row in range(attributes[node], attributes[node] + counts[node]):
            if of_rows[row] and (tag not in (HTML_TAG, BODY_TAG) or NAME_MARKS[names[row]] > 0):
                marks |= of_rows[row]
        marks |= inherited
        around[node] = marks & AROUND
        if marks & BYLINE_MARKS:
            rows.append((node, marks))
            if len(rows) == MARKS_MOST:
                break
    return rows


def _of_rows(tree: PageTree) -> memoryview:
    """The marks that each attribute gives its element; empty if no element can be `marked_nodes`, as on most pages."""
    names, starts, ends, chars = tree.attribute_names, tree.value_starts, tree.value_ends, tree.chars
    rows = memoryview(bytearray(2 * len(names))).cast("h")
    earlier = memoryview(bytearray(12 * CLASS_CACHE_SIZE)).cast("i")  # cache of classes: start, end, marks
    together = 0
    for row in range(len(names)):
        kind = NAME_MARKS[names[row]] if names[row] < NAMES_KNOWN else 0
        if not kind:
            continue
        start, end = starts[row], ends[row]
        if kind > 0:
            marks = kind if kind != REL or (end - start >= 6 and chars[start] | LOWER == A) else 0
        elif end - start < 4:
            continue
        elif kind == ID_OF:
            marks = _of_id(chars, start, end)
        else:
            # inlined: a call with memoryviews costs more than the work
            at, slot = start, 3 * ((end - start + 7 * chars[start] + 31 * chars[end - 1]) & (CLASS_CACHE_SIZE - 1))
            first = earlier[slot]
            if earlier[slot + 1] - first == end - start:
                while at < end and chars[at] == chars[first]:
                    at += 1
                    first += 1
            if at < end:
                earlier[slot], earlier[slot + 1], earlier[slot + 2] = start, end, _of_name(chars, start, end)
            marks = earlier[slot + 2]
        rows[row] = marks
        together |= marks
    node, tags = 0, tree.tags
    while not together & BYLINE_MARKS and node < len(tags):
        together |= TAG_MARKS[tags[node]] if 0 < tags[node] < TAGS_KNOWN else 0
        node += 1
    return rows if together & BYLINE_MARKS else rows[:0]


def _of_id(chars: memoryview, start: int, end: int) -> int:
    if end - start > ID_CHARS:
        return 0
    for at in range(start, end):
        if chars[at] == DOT:
            return 0
    return _of_name(chars, start, end)


def _of_name(chars: memoryview, start: int, end: int) -> int:
    """The marks of an element with this class or id."""
    marks = 0
    for at in range(start, end - 3):
        word = FIRST_WORDS[(chars[at] & 31) << 5 | (chars[at + 1] & 31)]
        if word < 0:
            continue
        first = LETTERS[BEGINS[word]]
        while word < WORDS_COUNT and LETTERS[BEGINS[word]] == first:
            place, on = BEGINS[word], at
            while on < end and LETTERS[place] and LETTERS[place] == chars[on] | LOWER:
                place += 1
                on += 1
            if not LETTERS[place] and KINDS[word] == NOTHING:
                return NOTHING
            if not LETTERS[place] and (KINDS[word] != ELSEWHERE or at == start or chars[at - 1] <= SPACE):
                marks |= KINDS[word]
            word += 1
    return marks


def values(tree: PageTree, node: int) -> dict[str, str]:
    """The attributes of an element."""
    first, names = tree.attributes[node], len(ATTRIBUTE_NAMES)
    return {
        ATTRIBUTE_NAMES[tree.attribute_names[row]]: text(tree, tree.value_starts[row], tree.value_ends[row])
        for row in range(first, first + tree.attribute_counts[node])
        if tree.attribute_names[row] < names
    }


def text(tree: PageTree, start: int, end: int) -> str:
    """A slice of the page."""
    return bytes(tree.chars[start:end]).decode("utf-8", "replace")


def text_of(tree: PageTree, node: int, most: int) -> str:
    """The text below a node, white space folded, cut at `most` characters."""
    pieces, size, children, nexts, parents = list[str](), 0, tree.firsts, tree.nexts, tree.parents
    at = children[node]
    while at > 0 and size < most:
        if tree.tags[at] == -1:
            piece = text(tree, tree.starts[at], min(tree.ends[at], tree.starts[at] + 4 * most))
            pieces.append(piece)
            size += len(piece.strip())
        else:
            pieces.append(" ")
        if children[at] > 0 and tree.tags[at] != STYLE_TAG and tree.tags[at] != SCRIPT_TAG:
            at = children[at]
            continue
        while nexts[at] < 0:
            at = parents[at]
            pieces.append(" ")
            if at == node or at <= 0:
                return " ".join("".join(pieces).split())[:most]
        at = nexts[at]
    return " ".join("".join(pieces).split())[:most]


def is_within(tree: PageTree, node: int, outer: int) -> bool:
    """Whether a node is inside another."""
    while node > outer:
        node = tree.parents[node]
    return node == outer


def source_of(tree: PageTree, node: int, most: int) -> str:
    """The source of a script, as written."""
    pieces, at = list[str](), tree.firsts[node]
    while at > 0:
        pieces.append(text(tree, tree.starts[at], min(tree.ends[at], tree.starts[at] + most)))
        at = tree.nexts[at]
    return "".join(pieces)[:most]
