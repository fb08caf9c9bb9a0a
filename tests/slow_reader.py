"""Reads a page by queries of turbohtml's tree: the slow twin of `document.reader`.

Pages were read this way before the reader was written, except for the rules that decision 0049 corrected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import slow_html as html
from periplus.document import headers
from periplus.document.conversion import Content, Source
from periplus.document.digest import fold_whitespace
from periplus.document.metadata import Metadata, _one_language
from periplus.document.robots import page_directives
from periplus.model.page import (
    BLOCK_KIND_CODES,
    NO_BLOCKS,
    POSITION_CODES,
    BlockKind,
    BlockPlace,
    Blocks,
    LinkKind,
    Position,
)
from periplus.model.visit import Headers
from slow_links import ROLES, SECTION_TAGS, TAGS, rows_of, translations_of

TITLE_CHARS, DESCRIPTION_CHARS, META_MOST = 2_000, 5_000, 500
Place = tuple[LinkKind, Position, bool]

BLOCKS_MOST = 200_000
FRAMES_MOST = 20_000
RUN_CHARS = 2_000  # longer runs of tags do not occur twice
PATH_CHARS = 1_000  # deeper elements are omitted; real paths have 20 to 300
NAME_CHARS = 40  # characters kept of an element's id and of its classes; the rest does not distinguish blocks
LANGUAGE_CHARS = 35  # RFC 5646, 4.4.1: more than any sensible tag has

# Kinds and landmarks are the numbers in the columns.
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
# Elements that begin a new paragraph: text in an item or cell used for layout is not itself an item.
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
_P_IS_PART_OF = frozenset(
    {"li", "td", "th", "caption", "figcaption"}
)  # a paragraph inside is part of the element: `<li><p>`
_BLOCKS = frozenset({*_KINDS, *_PARAGRAPHS, *_SAME})
_UNBROKEN = frozenset({_HEADING, _CODE})  # kinds that `br` does not split
_BREAKS = frozenset({"br", "hr"})
_BANNERS = frozenset({"header", "footer"})  # landmarks of the page, unless inside a section
_UNNAMED = frozenset({"html", "body"})  # not part of paths
_LEAVES = frozenset({*_KINDS, "p"})  # their ids are link targets, which differ between pages
_NONE: Sequence[str] = ()

_RUN = re.compile(r"(<(?!/?a[ >]|img )[^>]*+>)")  # tags without words between them
_TAG = re.compile("<([^>]*+)>")
_IMAGE_TAG = re.compile("<(img [^>]*+)>")
_ONE_LINK = re.compile("([^<]*+)<a [^>]*+>([^<]*+)</a>([^<]*+)")
_LINKS = re.compile("<a [^>]*+>([^<]*+)</a>")
_ATTRIBUTE = re.compile(r' (id|class|role|lang|xml:lang|alt)="([^"]*)"')


class _Tag(NamedTuple):
    """The properties of an opening tag that its text inherits."""

    name: str
    part: str  # of the path; may be empty
    role: str  # of a landmark; may be empty
    language: str


class _Frame:
    """A block element with the properties of its text, and the frames that tags inside it lead to."""

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


# targets of inline tags, and of inline tags that count as white space
_WITHIN, _SPACE = _Frame("", None, ""), _Frame("", None, "")


class _Layout:
    """The frames of pages in a language. They are kept between pages, since pages of a site have similar markup."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.root = _Frame("", None, "")
        self.size, self.most = 0, FRAMES_MOST

    def follow(self, frame: _Frame, run: str) -> _Frame:
        """The frame that a run of tags leads to."""
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


# A site has a few hundred runs; 8 of a page are new, and 36 lead into a section of the page.
@lru_cache(maxsize=4096)
def _tags(run: str) -> tuple[tuple[_Tag | None, ...], bool]:
    """The block tags in a run (None: an end tag), and whether the run contains a line break."""
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
    """The title, then all visible text and the alternative texts of images, in document order.

    language: of the page. Changes the tree, so it must be the last query.
    """
    title = html.title_of(tree)[:TITLE_CHARS]
    layout = _layout(language.partition("-")[0])
    # each page may add the same number of frames, so the result does not depend on earlier pages
    layout.most = layout.size + FRAMES_MOST
    blocks = _columns(title, _pieces(html.written_for_blocks(tree), layout))
    if layout.size >= FRAMES_MOST:
        _layout.cache_clear()
    return blocks


def _pieces(markup: str, layout: _Layout) -> list[tuple[_Frame, str]]:
    """The frame and the words of each block, escaped and with the tags of links and images.

    markup: serialized HTML: each block tag is closed, and `<` and `>` occur only in tags.
    """
    first, *rest = _RUN.split(markup)
    frame, words, pieces = layout.root, first, list[tuple[_Frame, str]]()
    more: list[str] = []  # further words of the block, after inline tags
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
            if len(pieces) > BLOCKS_MOST:  # one more than allowed, so that `first_blocks` notices
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
    in_link = 0  # a link may contain several blocks
    for frame, text in pieces:
        kind, chars, alts = frame.kind, 0, _NONE
        if "<" in text or in_link:
            text, chars, alts, in_link = _without_links(text, in_link)  # noqa: PLW2901
        if "&" in text:
            text = _unescaped(text)  # noqa: PLW2901
        if kind == _CODE and chars >= 0:
            text = _code(text)  # noqa: PLW2901
        elif "  " in text or not text.isprintable():
            # the only white space that `isprintable` accepts is the plain space
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


def _without_links(words: str, depth: int) -> tuple[str, int, Sequence[str], int]:
    """(text, number of its characters in links or -1 for all, alternative texts of its images, open links)."""
    alts = [
        alt
        for tag in _IMAGE_TAG.findall(words)
        if (alt := fold_whitespace(_unescaped(dict(_ATTRIBUTE.findall(tag)).get("alt", ""))))
    ]
    whole, linked, outside = [], [""], []
    for part in re.split("(<a [^>]*>|</a>)", _IMAGE_TAG.sub("", words)):
        if part.startswith("<"):
            if not depth or (part == "</a>" and depth == 1):
                linked.append("")
            depth += 1 if part != "</a>" else -1
        else:
            whole.append(part)
            if depth:
                linked[-1] += part
            else:
                outside.append(part)
    text = "".join(whole)
    is_all = not _unescaped("".join(outside)).strip() and bool(text.strip())
    return text, -1 if is_all else sum(map(_chars, linked)), alts, depth


def _chars(part: str) -> int:
    return len(" ".join((part if "&" not in part else _unescaped(part)).split()))


def _kind(name: str, around: _Frame) -> int:
    if name in _KINDS:
        return _KINDS[name]
    if name == "p":
        return around.kind if around.tag in _P_IS_PART_OF else _PARAGRAPH
    return around.kind if name in _SAME else _PARAGRAPH


def _named(name: str, attributes: dict[str, str]) -> str:
    """An element as part of a path: `div#content.main`. Slashes are replaced, since they separate the path."""
    if (own := attributes.get("id")) and name not in _LEAVES:
        name += "#" + "_".join(_unescaped(own).split())[:NAME_CHARS]
    if classes := attributes.get("class"):
        name += "." + ".".join(_unescaped(classes).split())[:NAME_CHARS]
    return name.replace("/", "_")


def _unescaped(text: str) -> str:
    """The text without references. Serialized HTML has only these five."""
    if "&" not in text:
        return text
    for reference, char in (("&nbsp;", "\xa0"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(reference, char)
    return text


def _code(text: str) -> str:
    """The lines without trailing white space and without empty lines at both ends."""
    return "\n".join(map(str.rstrip, text.replace("\r", "\n").split("\n"))).strip("\n")


def metadata(tree: html.Tree, fields: Headers) -> Metadata:
    """Metadata of an HTML page. Meta elements take precedence over HTTP headers (SPEC A4)."""
    by_name: dict[str, str] = {}
    by_equivalent: dict[str, str] = {}
    directives: list[tuple[str, str]] = []
    refreshes: list[str] = []
    for meta in html.elements(tree, "meta")[:META_MOST]:
        content = html.attribute(meta, "content")
        if name := html.attribute(meta, "name").strip().lower():
            by_name.setdefault(name, content)
            directives.append((name, content))
        elif equivalent := html.attribute(meta, "http-equiv").strip().lower():
            by_equivalent.setdefault(equivalent, content)
            if equivalent == "refresh" and (target := headers.refresh_target(content)):
                refreshes.append(target)
    noindex, nofollow = page_directives(fields.all("x-robots-tag"), directives)
    return Metadata(
        title=html.title_of(tree)[:TITLE_CHARS],
        description=" ".join(by_name.get("description", "").split())[:DESCRIPTION_CHARS],
        h1=_first_h1(tree)[:TITLE_CHARS],
        h1s=len(html.elements(tree, "h1")),
        images_without_alt=html.attributes(html.elements(tree, "img"), "alt").count(None),
        language=_language(tree, by_equivalent.get("content-language", ""), fields),
        noindex=noindex,
        nofollow=nofollow,
        last_modified=headers.date_s(by_equivalent.get("last-modified") or fields.get("last-modified")),
        expires=headers.date_s(by_equivalent.get("expires") or fields.get("expires")),
        refreshes=tuple(refreshes),
    )


def _first_h1(tree: html.Tree) -> str:
    """The first heading with words. The alt text of a logo counts."""
    for heading in html.elements(tree, "h1")[:8]:
        if text := html.words_of(heading):
            return text
    return ""


def _language(tree: html.Tree, equivalent: str, fields: Headers) -> str:
    """The language of the root element, else of the meta element, else of the header."""
    for root in html.elements(tree, "html")[:1]:
        if declared := html.attribute(root, "lang") or html.attribute(root, "xml:lang"):
            return _one_language(declared)
    return _one_language(equivalent) or _one_language(fields.get("content-language"))


SHELL_CHARS = 200  # of all text, for example "Loading", a name and a copyright line
ROOT_CHARS = 50  # of the text in a root element before the script runs
# The root elements that frameworks fill: React, Vue, Next, Nuxt, Gatsby, Svelte, Angular, Quasar, Polymer.
_ROOTS = (
    "#root,#app,#__next,#__nuxt,#___gatsby,#svelte,#q-app,#react-root,#app-root,#app-mount,#application,app-root,"
    "my-app,[ng-app],[data-reactroot]"
)


def read_html(source: Source) -> Content:
    """Reads HTML, with its errors, as a browser does."""
    tree = html.parse(source.text)
    facts = metadata(tree, source.headers)
    rows = rows_of(tree, source, facts)
    translations = translations_of(tree, source)
    scripts = bool(html.elements(tree, "script"))
    unscripted_chars = sum(len(html.text_of(element)) for element in html.elements(tree, "noscript")) if scripts else 0
    blocks = blocks_of(tree, facts.language)  # last, since it consumes the tree
    return Content(
        facts,
        blocks,
        rows.links(),
        rows.bad_links(),
        translations,
        rows.bounds(),
        scripts and _is_shell(tree, blocks, unscripted_chars),
    )


def _is_shell(tree: html.Tree, blocks: Blocks, unscripted_chars: int) -> bool:
    """Whether a page is empty until a script fills it.

    unscripted_chars: characters of the text that is shown only without scripts.
    """
    most = SHELL_CHARS + unscripted_chars
    if len(blocks.text) > 2 * most:  # each block has at least one character and a separator
        return False
    if sum(len(block.text) for block in blocks if block.kind is not BlockKind.TITLE) > most:
        return False
    roots = html.select(tree, _ROOTS)
    return bool(roots) and all(
        len(html.text_of(root)) <= ROOT_CHARS and html.first(root, "a[href]") is None for root in roots
    )
