"""The pieces of which a page's text consists, where each stands, and in which language."""

from __future__ import annotations

import dataclasses
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

from periplus.document import html, whitespace
from periplus.document.folding import fold_lines, line_blocks, unlikely_blocks
from periplus.document.language import language_of
from periplus.document.metadata import TITLE_CHARS
from periplus.model.page import (
    BLOCK_KIND_CODES,
    IS_APART,
    IS_TEXT,
    NO_BLOCKS,
    POSITION_CODES,
    Block,
    BlockPlace,
    Blocks,
    Position,
    numbered,
)

# The innermost landmark decides: `nav`, `header`, `main`, `aside`, `footer`, or an ARIA role of the same meaning. A
# header or footer of an article or section is none (HTML Accessibility API Mappings), so the headline of a post is not
# taken for the site's banner.

TAGS = {
    "nav": Position.NAV,
    "main": Position.MAIN,
    "aside": Position.ASIDE,
    "header": Position.HEADER,
    "footer": Position.FOOTER,
}
ROLES = {
    "navigation": Position.NAV,
    "banner": Position.HEADER,
    "main": Position.MAIN,
    "complementary": Position.ASIDE,
    "contentinfo": Position.FOOTER,
}
SECTION_TAGS = frozenset({"article", "aside", "main", "nav", "section"})
_SECTIONS = ",".join(sorted(SECTION_TAGS))
_BODY = Position.BODY  # an enum's own look-up takes 0.2 us
_MOST = 64  # landmarks of one page that are heeded: real pages have 0 to 12, and more would make hostile ones dear
_FEW = 24  # elements whose ancestors are searched one by one: 0.4 us each, where each landmark costs 5

Landmarks = Sequence[tuple[html.Element, Position]]


def landmarks(tree: html.Tree, with_roles: Iterable[html.Element]) -> Landmarks:
    """The page's landmarks, outer before inner, its head among them. with_roles: all elements that have a role."""
    marks: dict[html.Element, Position] = dict.fromkeys(html.elements(tree, "head")[:1], Position.HEAD)
    for tag, position in TAGS.items():
        for element in html.elements(tree, tag)[:_MOST]:
            if tag not in ("header", "footer") or html.closest(element, _SECTIONS) is None:
                marks[element] = position
    for element in with_roles:
        role = ROLES.get(html.attribute(element, "role").strip().lower())
        if role is not None and len(marks) < _MOST:
            marks[element] = role
    return sorted(marks.items(), key=lambda item: html.depth(item[0])) if len(marks) > 1 else list(marks.items())


def positions(elements: Sequence[html.Element], tag: str, marks: Landmarks) -> Iterable[Position]:
    """The position of each element.

    elements: all of that tag, or the first of them, in the document's order.
    """
    if not marks or (tag == "a" and marks[-1][1] is Position.HEAD):  # no anchor stands in a head
        return repeat(Position.BODY, len(elements))
    if len(elements) <= _FEW:
        return _by_ancestors(elements, dict(marks))
    places = [Position.BODY] * len(elements)
    for element, position in marks:
        first = html.first(element, tag)
        if first is not None and first in elements:
            start = elements.index(first)
            # What a landmark holds follows in one piece, so its end is found by halving: 5 us where a
            # walk through it took 40.
            end = bisect_left(elements, True, start, key=lambda other: not html.is_within(other, element))
            places[start:end] = [position] * (end - start)
    return places


def _by_ancestors(elements: Sequence[html.Element], marks: dict[html.Element, Position]) -> list[Position]:
    selector = "head,nav,header,main,aside,footer,[role]"
    places = []
    for element in elements:
        around = html.closest(element, selector)
        while around is not None and around not in marks:
            around = html.closest_above(around, selector)
        places.append(_BODY if around is None else marks[around])
    return places


# Asked only where the letters themselves are suspicious: long plain ASCII within a language that cannot write so
# much without a mark or a script of its own, and marks within a language that has none. A quotation in French on a
# German page stays unnoticed.

CHARS_LEAST = 100  # of a block; 70 us each, so what is shorter is not asked
ASKED_MOST = 40  # blocks of one page
_MARKED = frozenset([
    "cs", "sk", "pl", "hu", "tr", "ro", "lv", "lt", "vi", "ru", "uk", "bg", "sr", "mk", "be", "el", "he", "ar", "fa",
    "th", "ja", "ko", "zh", "ka", "hy", "hi", "bn", "ta",
])  # fmt: skip
_PLAIN = frozenset(("en", "nl", "id", "it"))  # written with hardly a mark
_SHARE = 40  # of the characters one in so many is beyond ASCII, where a language with marks is suspected


def with_languages(blocks: Blocks, written: bytes, language: str) -> Blocks:
    """The blocks, with the languages of those that are in another than the page's.

    written: their text in UTF-8. language: the page's primary tag. What a block declares for itself stays.
    """
    is_marked = language in _MARKED
    if not is_marked and (language not in _PLAIN or blocks.text.isascii()):
        return blocks
    share = 0 if is_marked else _SHARE
    strange = [
        (block, words[start:end])
        for words, table in ((written, IS_TEXT), (blocks.apart.encode("utf-8", "surrogatepass"), IS_APART))
        for block, start, end in unlikely_blocks(words, _line_blocks(blocks, table), CHARS_LEAST, share)
        if blocks.kinds[block] != _CODE and not (blocks.languages and blocks.language_names[blocks.languages[block]])
    ]
    others = {
        block: other
        for block, words in sorted(strange)[:ASKED_MOST]
        if (other := language_of(words.decode("utf-8", "surrogatepass"))) not in ("", language)
    }
    if not others:
        return blocks
    declared = blocks.own_languages()
    for block, other in others.items():
        declared[block] = other
    languages, names = numbered(declared)
    return dataclasses.replace(blocks, languages=languages, language_names=names)


def _line_blocks(blocks: Blocks, members: bytes) -> Sequence[int]:
    return line_blocks(blocks.kinds, members, array("i", blocks.lines))


# A piece ends where a browser would begin a new line: at the edges of blocks and at `br`. Its path, landmark and
# language are those of the block around it; elements within a line (`b`, `span`, custom ones) have no part in that. A
# frame is one such block; frames are kept by the tag that opens them, so the hundred items of a menu are looked up and
# not made a hundred times.

BLOCKS_MOST = 200_000  # of one page that are kept; the King James Bible has 31,102 verses
# elements and ways between them that are remembered, and that a page may add: some 8 MB; a site's
# pages have a few hundred each
FRAMES_MOST = 20_000
RUN_CHARS = 2_000  # longer runs of tags are not met twice
PATH_CHARS = 1_000  # elements further in are left out; real paths have 20 to 300
NAME_CHARS = 40  # of an element's id, and of its classes, that are kept: nobody tells blocks apart by the rest
LANGUAGE_CHARS = 35  # RFC 5646, 4.4.1: more than any sensible tag has

# Kinds and landmarks are the numbers that columns hold.
_TITLE, _HEADING, _PARAGRAPH, _ITEM, _CELL, _CAPTION, _CODE, _LINK, _ALT = BLOCK_KIND_CODES.values()
_AT_HEAD, _AT_BODY = POSITION_CODES[Position.HEAD], POSITION_CODES[Position.BODY]
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_KINDS = {
    **dict.fromkeys(_HEADINGS, _HEADING),
    **dict.fromkeys(("li", "dt", "dd", "option"), _ITEM),
    **dict.fromkeys(("td", "th"), _CELL),
    **dict.fromkeys(("caption", "figcaption"), _CAPTION),
    **dict.fromkeys(("pre", "listing"), _CODE),
}
# Where a new text begins: what stands in an item or cell of the page's layout is no item because of that.
_PARAGRAPHS = frozenset({
    "html", "body", "p", "article", "section", "main", "nav", "aside", "header", "footer", "blockquote", "form",
    "fieldset", "address", "details",
    "dialog", "dl", "ul", "ol", "menu", "dir", "table", "figure", "hgroup", "search",
})  # fmt: skip
_SAME = frozenset({
    "div", "center", "legend", "summary", "button", "select", "optgroup", "textarea", "tr", "tbody", "thead", "tfoot",
    "colgroup", "frameset",
    "text", "title", "desc",
})  # fmt: skip
_P_IS_PART_OF = frozenset({"li", "td", "th", "caption", "figcaption"})  # whose paragraphs are but their text: `<li><p>`
_BLOCKS = frozenset({*_KINDS, *_PARAGRAPHS, *_SAME})
_UNBROKEN = frozenset({_HEADING, _CODE})  # which `br` does not part
_BREAKS = frozenset({"br", "hr"})
_BANNERS = frozenset({"header", "footer"})  # of the page, unless a section is around them
_UNNAMED = frozenset({"html", "body"})  # in no path
_LEAVES = frozenset({*_KINDS, "p"})  # their ids are the places that links lead to: no two pages have the same
_NONE: Sequence[str] = ()

_RUN = re.compile(r"(<(?!/?a[ >]|img )[^>]*+>(?:\s*+<(?!/?a[ >]|img )[^>]*+>)*+)")  # of tags with no words between them
_TAG = re.compile("<([^>]*+)>")
_IMAGE = re.compile("<(img [^>]*+)>")
_ONE_LINK = re.compile("([^<]*+)<a [^>]*+>([^<]*+)</a>([^<]*+)")
_LINKS = re.compile("<a [^>]*+>([^<]*+)</a>")
_ATTRIBUTE = re.compile(r' (id|class|role|lang|xml:lang|alt)="([^"]*)"')


class _Tag(NamedTuple):
    """What the tag that opens an element says, as far as its words have it in common."""

    name: str
    part: str  # of the path; empty: none
    role: str  # of a landmark; empty: none
    language: str


class _Frame:
    """An element that is set apart, with what its words have in common; and where the tags met in it lead."""

    __slots__ = (
        "after", "around", "kind", "language", "level", "path", "place", "position", "sectioned", "tag", "within",
    )  # fmt: skip

    def __init__(self, tag: str, around: _Frame | None, path: str) -> None:
        self.tag, self.around, self.path = tag, around, path
        self.within: dict[_Tag, _Frame] = {}
        self.after: dict[str, _Frame] = {}  # by a run of tags
        self.kind, self.level, self.position, self.language, self.sectioned = _PARAGRAPH, 0, _AT_BODY, "", False
        self.place: BlockPlace = (path, 0, _AT_BODY, "")

    def inherit(self, around: _Frame, tag: _Tag, language: str) -> None:
        """language: the page's."""
        name = tag.name
        self.kind = kind = _kind(name, around)
        self.level = level = _HEADINGS.get(name) or (around.level if kind is _HEADING else 0)
        self.sectioned = sectioned = around.sectioned or around.tag in SECTION_TAGS
        landmark = TAGS.get(name) if not sectioned or name not in _BANNERS else None
        named = ROLES.get(tag.role) or landmark
        self.position = position = POSITION_CODES[named] if named else around.position
        self.language = around.language
        if tag.language:
            self.language = tag.language if tag.language.partition("-")[0] != language else ""
        self.place = (self.path, level, position, self.language)


# where tags lead that stand within a line, and those that are white space there
_WITHIN, _SPACE = _Frame("", None, ""), _Frame("", None, "")


class _Layout:
    """The frames met on pages of one language: kept from page to page, for those of a site are built alike."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.root = _Frame("", None, "")
        self.size, self.most = 0, FRAMES_MOST

    def follow(self, frame: _Frame, run: str) -> _Frame:
        """Where a run of tags leads from a frame."""
        is_short = len(run) < RUN_CHARS
        tags, breaks = _tags(run) if is_short else _tags.__wrapped__(run)
        to = frame
        for tag in tags:
            to = (to.around or to) if tag is None else to.within.get(tag) or self._open(to, tag)
        if not tags:
            to = _WITHIN if not breaks else _SPACE if frame.kind in _UNBROKEN else frame
        if is_short and self.size < self.most:
            self.size += 1
            frame.after[run] = to
        return to

    def _open(self, around: _Frame, tag: _Tag) -> _Frame:
        is_kept = self.size < self.most
        path = around.path
        if tag.part and is_kept and len(path) < PATH_CHARS:
            path = f"{path}/{tag.part}" if path else tag.part
        frame = _Frame(tag.name, around, path)
        frame.inherit(around, tag, self.language)
        if is_kept:
            self.size += 1
            around.within[tag] = frame
        return frame


# runs; a site has some hundreds, 8 of a page are new. A page follows 36 of them into a section of its own
@lru_cache(maxsize=4096)
def _tags(run: str) -> tuple[tuple[_Tag | None, ...], bool]:
    """The tags in a run that set elements apart (None: the end of one), and whether a line ends there too."""
    tags: list[_Tag | None] = []
    breaks = False
    for tag in _TAG.findall(run):
        name = tag.partition(" ")[0]
        if name in _BLOCKS:
            tags.append(_tag(name, dict(_ATTRIBUTE.findall(tag)) if tag != name else {}))
        elif name[:1] == "/" and name[1:] in _BLOCKS:
            tags.append(None)
        elif name in _BREAKS:
            breaks = True
    return tuple(tags), breaks


def _tag(name: str, attributes: dict[str, str]) -> _Tag:
    """attributes: its attributes."""
    part = "" if name in _UNNAMED else _named(name, attributes)
    language = (
        ""
        if name == "html"
        else (attributes.get("lang") or attributes.get("xml:lang") or "")
        .strip()
        .replace("_", "-")
        .lower()[:LANGUAGE_CHARS]
    )
    return _Tag(name, part, attributes.get("role", "").strip().lower(), language)


@lru_cache(maxsize=16)
def _layout(language: str) -> _Layout:
    return _Layout(language)


def blocks_of(tree: html.Tree, language: str = "") -> Blocks:
    """The title, then all text that a reader sees and the words that stand for images, in the document's order.

    language: the page's. Changes the tree: the last question to ask of it.
    """
    title = html.title_of(tree)[:TITLE_CHARS]
    layout = _layout(language.partition("-")[0])
    # each page has the same room: what it says does not depend on those before it
    layout.most = layout.size + FRAMES_MOST
    blocks = _columns(title, _pieces(html.written_for_blocks(tree), layout))
    if layout.size >= FRAMES_MOST:
        _layout.cache_clear()
    return blocks


def _pieces(markup: str, layout: _Layout) -> list[tuple[_Frame, str]]:
    """The words of each block with their frame: still with the tags of links and images, and escaped.

    markup: HTML as written from a tree: each tag of a block is closed, and `<` and `>` stand for nothing else.
    """
    first, *rest = _RUN.split(markup)
    frame, words, pieces = layout.root, first, list[tuple[_Frame, str]]()
    more: list[str] = []  # the words go on, where tags within a line part them
    for run, text in zip(rest[::2], rest[1::2], strict=True):
        to = frame.after.get(run) or layout.follow(frame, run)
        if to is _WITHIN or to is _SPACE:
            more.append(text if to is _WITHIN else "\n" + text)
            continue
        if more:
            words += "".join(more)
            more.clear()
        if words and not words.isspace():
            pieces.append((frame, words))
            if len(pieces) > BLOCKS_MOST:  # one too many, from which `first_blocks` sees it
                return pieces
        words, frame = text, to
    words += "".join(more)
    if words and not words.isspace():
        pieces.append((frame, words))
    return pieces


def _columns(title: str, pieces: Sequence[tuple[_Frame, str]]) -> Blocks:
    rows: list[tuple[int, str, int, BlockPlace]] = []  # kind, text, share of links, place
    if title:
        rows.append((_TITLE, title, 1, ("head/title", 0, _AT_HEAD, "")))
    in_link = False  # a link may hold several blocks
    for frame, text in pieces:
        kind, chars, alts = frame.kind, 0, _NONE
        if "<" in text or in_link:
            text, chars, alts, in_link = _without_links(text, in_link)  # noqa: PLW2901
        if "&" in text:
            text = _unescaped(text)  # noqa: PLW2901
        if kind == _CODE and chars >= 0:
            text = _code(text)  # noqa: PLW2901
        elif "  " in text or not text.isprintable():
            # the only white space that `isprintable` lets pass is the plain space
            text = " ".join(text.split())  # noqa: PLW2901
        else:
            text = text.strip()  # noqa: PLW2901
        if not text:
            pass
        elif not chars:
            rows.append((kind, text, 1, frame.place))
        elif chars < 0:
            rows.append((_LINK if kind != _HEADING else kind, text, 0, frame.place))
        else:
            rows.append((kind, text, chars + 1 if chars != len(text) else 0, frame.place))
        for alt in alts:
            place = (f"{frame.path}/img" if frame.path else "img", 0, frame.position, frame.language)
            rows.append((_ALT, alt, 1, place))
    if not rows:
        return NO_BLOCKS
    kinds, texts, shares, places = zip(*rows, strict=True)
    return Blocks.of_columns(bytes(kinds), texts, shares, places)


def _without_links(words: str, in_link: bool) -> tuple[str, int, Sequence[str], bool]:
    """(text, how many of its characters stand in links: -1 for all, what stands for the images in it,
    whether a link goes on).
    """
    if not in_link and (match := _ONE_LINK.fullmatch(words)):  # most have but one
        before, inner, after = match.groups()
        if (before and not before.isspace()) or (after and not after.isspace()):
            return (
                before + inner + after,
                len(inner) if "&" not in inner and inner.isprintable() else _chars(inner),
                _NONE,
                False,
            )
        return inner, -1, _NONE, False
    alts = _NONE
    if "<img" in words:
        alts = [
            alt
            for tag in _IMAGE.findall(words)
            if (alt := whitespace.folded(_unescaped(dict(_ATTRIBUTE.findall(tag)).get("alt", ""))))
        ]
        words = _IMAGE.sub("", words)
    if not in_link:
        parts = _LINKS.split(words)  # those of links at odd places
        text = "".join(parts)
        if "<" not in text:  # nearly always: no link goes beyond its block, or holds another
            others = "".join(parts[::2])
            is_all = len(parts) > 1 and (not others or others.isspace())
            return text, -1 if is_all else sum(map(_chars, parts[1::2])), alts, False
    first, *pieces = words.split("<a ")
    whole, linked, outside = [first], list[str](), [first]
    if in_link:
        linked, outside = whole, []
        inner, ends, outer = first.partition("</a>")
        whole, linked, outside, in_link = [inner, outer], [inner], [outer], not ends
    for piece in pieces:
        inner, ends, outer = piece.partition(">")[2].partition("</a>")
        in_link = not ends
        whole += inner, outer
        linked.append(inner)
        outside.append(outer)
    others = "".join(outside).replace("</a>", "")  # of one link within another
    chars = -1 if linked and (not others or others.isspace()) else sum(map(_chars, linked))
    return "".join(whole).replace("</a>", ""), chars, alts, in_link


def _chars(part: str) -> int:
    return len(" ".join((part if "&" not in part else _unescaped(part)).split()))


def words_of(blocks: Blocks, written: bytes) -> bytes:
    """The text with the white space of code folded too: what digests are taken of. written: it, in UTF-8."""
    if _CODE not in blocks.kinds:
        return written
    return fold_lines(written, _line_blocks(blocks, IS_TEXT), blocks.kinds, _CODE)


def first_blocks(blocks: Blocks, most_chars: int) -> tuple[Blocks, tuple[str, ...]]:
    """(as many blocks as are kept and have that many characters together, which bounds were met).

    The last block may be cut.
    """
    bounds = (f"more than {BLOCKS_MOST:,} blocks of text",) if len(blocks) > BLOCKS_MOST else ()
    if not bounds and len(blocks.text) + len(blocks.apart) <= most_chars:
        return blocks, ()
    rows, room = list[Block](), most_chars
    for block in blocks[:BLOCKS_MOST]:
        if room <= 0:
            return Blocks.of(rows), (*bounds, f"more than {most_chars:,} characters of text")
        text = block.text[:room]
        rows.append(block._replace(text=text, link_chars=min(block.link_chars, len(text))))
        room -= len(block.text)
    if room < 0:
        bounds = (*bounds, f"more than {most_chars:,} characters of text")
    return Blocks.of(rows), bounds


def plain_blocks(paragraphs: Sequence[str]) -> Blocks:
    """Paragraphs of a text without elements, white space folded, none empty."""
    return Blocks.plain("\n".join(paragraphs[: BLOCKS_MOST + 1]))


def _kind(name: str, around: _Frame) -> int:
    if name in _KINDS:
        return _KINDS[name]
    if name == "p":
        return around.kind if around.tag in _P_IS_PART_OF else _PARAGRAPH
    return around.kind if name in _SAME else _PARAGRAPH


def _named(name: str, attributes: dict[str, str]) -> str:
    """An element as a path has it: `div#content.main`. A slash within a name would look like the path's own."""
    if (own := attributes.get("id")) and name not in _LEAVES:
        name += "#" + "_".join(_unescaped(own).split())[:NAME_CHARS]
    if classes := attributes.get("class"):
        name += "." + ".".join(_unescaped(classes).split())[:NAME_CHARS]
    return name.replace("/", "_")


def _unescaped(text: str) -> str:
    """Text as written from a tree has these five references only."""
    if "&" not in text:
        return text
    for reference, char in (("&nbsp;", "\xa0"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(reference, char)
    return text


def _code(text: str) -> str:
    """Lines as they are, but for white space at their ends and empty lines around them."""
    return "\n".join(map(str.rstrip, text.replace("\r", "\n").split("\n"))).strip("\n")
