"""Of which pieces does a page's text consist, and where does each stand?

A piece ends where a browser would begin a new line: at the edges of blocks and at `br`. Its path, landmark and language are those
of the block around it; elements within a line (`b`, `span`, custom ones) have no part in that. A frame is one such block; frames
are kept by the tag that opens them, so the hundred items of a menu are looked up and not made a hundred times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from periplus.document import html, whitespace
from periplus.document.landmarks import ROLES, SECTION_TAGS, TAGS
from periplus.model.page import Block, BlockKind, Position

BLOCKS_MOST = 200_000  # of one page that are kept; the King James Bible has 31,102 verses
PATHS_MOST = 10_000  # different paths of one page; beyond, an element has its parent's
PATH_CHARS = 1_000  # elements further in are left out; real paths have 20 to 300
NAME_CHARS = 40  # of an element's id, and of its classes, that are kept: nobody tells blocks apart by the rest

_LINK, _IMAGE, _BREAK, _UP, _WITHIN = range(5)  # what a tag does that opens no frame

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_KINDS = {
    **dict.fromkeys(_HEADINGS, BlockKind.HEADING),
    **dict.fromkeys(("li", "dt", "dd", "option"), BlockKind.ITEM),
    **dict.fromkeys(("td", "th"), BlockKind.CELL),
    **dict.fromkeys(("caption", "figcaption"), BlockKind.CAPTION),
    **dict.fromkeys(("pre", "listing"), BlockKind.CODE),
}
# Where a new text begins: what stands in an item or cell of the page's layout is no item because of that.
_PARAGRAPHS = frozenset({
    "html", "body", "p", "article", "section", "main", "nav", "aside", "header", "footer", "blockquote", "form", "fieldset", "address", "details",
    "dialog", "dl", "ul", "ol", "menu", "dir", "table", "figure", "hgroup", "search",
})  # fmt: skip
_SAME = frozenset({
    "div", "center", "legend", "summary", "button", "select", "optgroup", "textarea", "hr", "tr", "tbody", "thead", "tfoot", "colgroup", "frameset",
    "text", "title", "desc",
})  # fmt: skip
_P_IS_PART_OF = frozenset({"li", "td", "th", "caption", "figcaption"})  # whose paragraphs are but their text: `<li><p>`
_BLOCKS = frozenset({*_KINDS, *_PARAGRAPHS, *_SAME})
_VOID = frozenset({"hr"})
_UNNAMED = frozenset({"html", "body"})  # in no path

_ATTRIBUTE = re.compile(r' (id|class|role|lang|xml:lang|alt|href)="([^"]*)"')
_LINES = re.compile(r"[^\S\n]*\n")


class _Frame:
    """A block that is open, and what the tags met in it do."""

    __slots__ = ("kind", "language", "level", "moves", "path", "position", "sectioned", "tag")

    def __init__(self, tag: str, path: str, around: _Frame | None) -> None:
        self.tag, self.path = tag, path
        self.kind, self.level = BlockKind.PARAGRAPH, 0
        self.position: Position = around.position if around else Position.BODY
        self.language: str = around.language if around else ""
        self.sectioned: bool = around is not None and (around.sectioned or around.tag in SECTION_TAGS)
        self.moves: dict[str, _Frame | int] = {}


def blocks_of(tree: html.Tree, language: str = "") -> tuple[Block, ...]:
    """The title, then all text that a reader sees and the words that stand for images, in the document's order.

    language: the page's. Changes the tree: the last question to ask of it.
    """
    title = html.title_of(tree)
    reader = _Reader(language)
    reader.read(html.written_for_blocks(tree))
    head = [Block(BlockKind.TITLE, title, "head/title", position=Position.HEAD)] if title else []
    return (*head, *reader.blocks)


def text_of(blocks: Sequence[Block]) -> str:
    """What a page says: its blocks one below the other, but not the title and what stands for images."""
    return "\n".join([block[1] for block in blocks if block[0] is not BlockKind.TITLE and block[0] is not BlockKind.ALT])


def words_of(blocks: Sequence[Block], text: str) -> str:
    """The text with the white space of code folded too: what digests are taken of. text: of these blocks."""
    return whitespace.blocks(text) if any(block[0] is BlockKind.CODE for block in blocks) else text


def first_blocks(blocks: tuple[Block, ...], chars: int) -> tuple[Block, ...]:
    """As many as have that many characters together; the last may be cut."""
    if sum([len(block[1]) for block in blocks]) <= chars:
        return blocks
    kept: list[Block] = []
    for block in blocks:
        if chars <= 0:
            break
        kept.append(block if len(block.text) <= chars else block._replace(text=block.text[:chars], link_chars=min(block.link_chars, chars)))
        chars -= len(block.text)
    return tuple(kept)


def plain_blocks(paragraphs: Sequence[str]) -> tuple[Block, ...]:
    """Paragraphs of a text without elements, white space folded, none empty."""
    return tuple(Block(BlockKind.PARAGRAPH, text, "") for text in paragraphs[:BLOCKS_MOST])


class _Reader:
    """Goes through a page's tags, and gathers the words between two that part them."""

    def __init__(self, language: str) -> None:
        self.blocks: list[Block] = []
        self._language = language.partition("-")[0]
        self._paths = 0
        self._words: list[str] = []
        self._linked: list[str] = []  # those of the words that stand in links
        self._alts: list[str] = []
        self._outside = False  # whether any of the words stands in no link

    def read(self, markup: str) -> None:
        """markup: HTML as written from a tree, so each tag of a block is closed, and `<` and `>` stand for nothing else."""
        frame = _Frame("", "", None)
        stack: list[_Frame] = []
        words, linked = self._words, self._linked
        links = 0  # open `a`, with or without href: one within another is rare, but can be
        is_link: Final[list[bool]] = []
        pieces = markup.split("<")
        pieces[0] = ">" + pieces[0]
        moves = frame.moves
        for piece in pieces:
            tag, _, text = piece.partition(">")
            move = moves.get(tag)
            if move is None:
                move = self._move(frame, tag)
            if move is _WITHIN:
                pass
            elif move is _LINK:
                if tag == "/a":
                    links -= bool(is_link) and is_link.pop()
                else:
                    is_link.append(' href="' in tag)
                    links += is_link[-1]
            elif move is _IMAGE:
                self._image(frame, tag)
            elif move is _BREAK:
                if frame.kind is BlockKind.CODE:
                    words.append("\n")
                elif frame.kind is BlockKind.HEADING:
                    words.append(" ")
                elif words:
                    self._flush(frame)
            else:
                if words:
                    self._flush(frame)
                if move is _UP:
                    frame = stack.pop() if stack else frame
                else:
                    stack.append(frame)
                    frame = move  # type: ignore[assignment]  # neither of the numbers above
                moves = frame.moves
                if len(self.blocks) >= BLOCKS_MOST:
                    return
            if text:
                words.append(text)
                if links:
                    linked.append(text)
                elif not self._outside and not text.isspace():
                    self._outside = True
        if words:
            self._flush(frame)

    def _flush(self, frame: _Frame) -> None:
        raw = "".join(self._words)
        self._words.clear()
        text = _unescaped(raw)
        text = _code(text) if frame.kind is BlockKind.CODE else whitespace.folded_line(text)
        if text:
            kind, link_chars = frame.kind, 0
            if self._linked:
                if self._outside:
                    link_chars = sum([len(whitespace.folded_line(_unescaped(part))) for part in self._linked])
                else:
                    link_chars = len(text)
                    kind = kind if kind is BlockKind.HEADING else BlockKind.LINK
            self.blocks.append(Block(kind, text, frame.path, frame.level, frame.position, link_chars, frame.language))
        self._linked.clear()
        self._outside = False
        if self._alts:
            for alt in self._alts:
                self._add_alt(frame, alt)
            self._alts.clear()

    def _image(self, frame: _Frame, tag: str) -> None:
        alt = next((value for name, value in _ATTRIBUTE.findall(tag) if name == "alt"), "")
        alt = whitespace.folded(_unescaped(alt))
        if alt and self._words:
            self._alts.append(alt)
        elif alt:
            self._add_alt(frame, alt)

    def _add_alt(self, frame: _Frame, alt: str) -> None:
        self.blocks.append(Block(BlockKind.ALT, alt, f"{frame.path}/img" if frame.path else "img", 0, frame.position, 0, frame.language))

    def _move(self, frame: _Frame, tag: str) -> _Frame | int:
        """What this tag does in this frame. Remembered, but for the tags of which no two are alike."""
        name = tag.partition(" ")[0].rstrip("/")
        move: _Frame | int
        if name in ("a", "/a"):
            if tag != name:
                return _LINK
            move = _LINK
        elif name == "img":
            return _IMAGE
        elif name == "br":
            move = _BREAK
        elif tag.startswith("/"):
            move = _UP if tag[1:] in _BLOCKS and tag[1:] not in _VOID else _WITHIN
        elif name in _VOID:
            move = _BREAK
        elif name in _BLOCKS:
            move = self._opened(frame, name, tag)
        else:
            return _WITHIN
        frame.moves[tag] = move
        return move

    def _opened(self, around: _Frame, name: str, tag: str) -> _Frame:
        said = dict(reversed(_ATTRIBUTE.findall(tag))) if name != tag else {}
        frame = _Frame(name, around.path, around)
        self._paths += 1
        if self._paths <= PATHS_MOST and len(around.path) < PATH_CHARS and name not in _UNNAMED:
            frame.path = f"{around.path}/{_named(name, said)}" if around.path else _named(name, said)
        frame.kind = _kind(name, around)
        frame.level = _HEADINGS.get(name, around.level if frame.kind is BlockKind.HEADING else 0)
        role = ROLES.get(said["role"].strip().lower()) if "role" in said else None
        landmark = TAGS.get(name) if name not in ("header", "footer") or not frame.sectioned else None
        frame.position = role or landmark or around.position
        if language := said.get("lang") or said.get("xml:lang"):
            language = language.strip().replace("_", "-").lower()[:35]
            if name == "html":
                self._language = self._language or language.partition("-")[0]
            frame.language = language if language.partition("-")[0] != self._language else ""
        return frame


def _kind(name: str, around: _Frame) -> BlockKind:
    if name in _KINDS:
        return _KINDS[name]
    if name == "p":
        return around.kind if around.tag in _P_IS_PART_OF else BlockKind.PARAGRAPH
    return around.kind if name in _SAME else BlockKind.PARAGRAPH


def _named(name: str, said: dict[str, str]) -> str:
    """An element as a path has it: `div#content.main`. A slash within a name would look like the path's own."""
    own = _unescaped(said.get("id", "")).strip().replace("/", "_")[:NAME_CHARS]
    classes = ".".join(_unescaped(said.get("class", "")).split()).replace("/", "_")[:NAME_CHARS]
    return name + (f"#{own}" if own else "") + (f".{classes}" if classes else "")


def _unescaped(text: str) -> str:
    """Text as written from a tree has these five references only."""
    if "&" not in text:
        return text
    for reference, char in (("&nbsp;", "\xa0"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(reference, char)
    return text


def _code(text: str) -> str:
    """Lines as they are, but for white space at their ends and empty lines around them."""
    return _LINES.sub("\n", text.replace("\r", "\n") + "\n").strip("\n")
