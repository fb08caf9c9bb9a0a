"""Values for a parsed document, classes of media types, and the summary of a page."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import compress, count, repeat
from operator import or_
from typing import NamedTuple, TypeAlias, TypeVar, overload

from periplus.model.web import Url
from periplus.values import frozen

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


class MediaClass(StrEnum):
    """Classes of content, in the order used by charts."""

    PAGES = "pages"
    DOCUMENTS = "documents"  # PDF, office files, plain text, data as text
    IMAGES = "images"
    RECORDINGS = "recordings"  # audio and video
    STYLES = "styles"
    SCRIPTS = "scripts"
    OTHER = "other"  # archives, programs, unknown types


_EXACT = {
    "text/html": MediaClass.PAGES,
    "application/xhtml+xml": MediaClass.PAGES,
    "text/css": MediaClass.STYLES,
    "text/javascript": MediaClass.SCRIPTS,
    "text/ecmascript": MediaClass.SCRIPTS,
    "application/javascript": MediaClass.SCRIPTS,
    "application/x-javascript": MediaClass.SCRIPTS,
    "application/ecmascript": MediaClass.SCRIPTS,
    "application/wasm": MediaClass.SCRIPTS,
}
_STARTS = {
    MediaClass.IMAGES: ("image/",),
    MediaClass.RECORDINGS: ("audio/", "video/"),
    MediaClass.DOCUMENTS: (
        "text/", "application/pdf", "application/postscript", "application/rtf", "application/msword",
        "application/vnd.ms-", "application/vnd.openxmlformats-", "application/vnd.oasis.opendocument.",
        "application/epub+zip", "application/xml", "application/json",
    ),
}  # fmt: skip


def media_class(media_type: str) -> MediaClass:
    """Class of a media type (lower case, without parameters); OTHER if unknown or empty."""
    kinds = (kind for kind, starts in _STARTS.items() if media_type.startswith(starts))
    other = MediaClass.DOCUMENTS if media_type.endswith(("+xml", "+json")) else MediaClass.OTHER
    return _EXACT.get(media_type) or next(kinds, other)


class LinkKind(StrEnum):
    """Purpose of a link. `FOLLOWED_KINDS` lead to pages; `CLICK_KINDS` can be followed by a visitor. The other
    kinds are subresources and references.
    """

    ANCHOR = "a"
    AREA = "area"
    FRAME = "frame"
    IFRAME = "iframe"
    REFRESH = "refresh"  # meta http-equiv=refresh, or the Refresh header
    REDIRECT = "redirect"  # recorded by the crawler, not part of a document
    CANONICAL = "canonical"
    ALTERNATE = "alternate"  # link rel=alternate: hreflang, feeds, other media
    RELATED = "related"  # link rel=next, prev, up, help, ...; the Link header; any link of a feed
    FORM = "form"
    IMAGE = "image"
    STYLE = "style"
    SCRIPT = "script"
    MEDIA = "media"  # video, audio, track, poster
    OBJECT = "object"  # object, embed, applet
    ICON = "icon"
    CITE = "cite"
    SITEMAP = "sitemap"

    __hash__ = str.__hash__  # the hash of Enum is slow Python code, and each page needs hundreds of lookups


CLICK_KINDS = frozenset(
    {
        LinkKind.ANCHOR,
        LinkKind.AREA,
        LinkKind.FRAME,
        LinkKind.IFRAME,
        LinkKind.REFRESH,
        LinkKind.REDIRECT,
    }
)
"""Links that a visitor can follow. Depth, site map and PageRank are computed from these only."""

FOLLOWED_KINDS = CLICK_KINDS | {LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.RELATED}
"""Links to pages. Those outside `CLICK_KINDS` cannot be clicked and set no depth."""

PULLED_KINDS = frozenset(
    {
        LinkKind.IMAGE,
        LinkKind.STYLE,
        LinkKind.SCRIPT,
        LinkKind.MEDIA,
        LinkKind.OBJECT,
        LinkKind.ICON,
        LinkKind.FRAME,
        LinkKind.IFRAME,
    }
)
"""Subresources that a browser loads. Every image of a srcset counts, though only one is loaded: an upper bound."""


class Position(StrEnum):
    """The innermost landmark around a link: HTML sectioning elements or their ARIA roles."""

    NAV = "nav"
    HEADER = "header"
    MAIN = "main"
    ASIDE = "aside"
    FOOTER = "footer"
    BODY = "body"  # outside all of these
    HEAD = "head"  # in <head>, or an HTTP header

    __hash__ = str.__hash__  # see LinkKind


# Stored as numbers, in memory and in collections: new kinds and landmarks go to the end of the enum, and existing ones
# keep their index.
LINK_KINDS = tuple(LinkKind)
POSITIONS = tuple(Position)
LINK_KIND_CODES = {kind: code for code, kind in enumerate(LINK_KINDS)}
POSITION_CODES = {position: code for code, position in enumerate(POSITIONS)}


def narrow(values: Sequence[int]) -> memoryview[int]:
    """Unsigned numbers in the narrowest type that holds the largest; NumPy reads them without a copy."""
    most = max(values, default=0)
    if most < 1 << 8:
        return memoryview(bytes(values))
    return memoryview(array("H" if most < 1 << 16 else "I", values)).toreadonly()


def dictionary_encode(values: Sequence[str]) -> tuple[memoryview[int], tuple[str, ...]]:
    """Dictionary encoding: (index of each value, distinct values in order of first occurrence)."""
    names = tuple(dict.fromkeys(values))
    places = {name: place for place, name in enumerate(names)}
    return narrow(list(map(places.__getitem__, values))), names


_NO_NUMBERS = narrow(())
Row = TypeVar("Row")


class Columns(Sequence[Row]):
    """Rows stored as columns of bytes, numbers and texts.

    The columns are stored as they are, and NumPy reads them without a copy. The sequence interface creates rows on
    demand.
    """

    __slots__ = ()

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, place: int | slice) -> Row | tuple[Row, ...]:
        """Slow: builds all rows. Iterate if you need several."""
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns | tuple | list) and len(self) == len(other) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class Link(NamedTuple):
    """All links of a page with equal target, kind, position and nofollow."""

    target: Url
    kind: LinkKind
    position: Position
    anchor: str = ""  # first non-empty text, white space normalised; for images the alt text
    nofollow: bool = False  # rel=nofollow, ugc or sponsored on the link, or nofollow for the whole page
    fragments: tuple[str, ...] = ()  # distinct, in order, percent-encoded, without `#`
    times: int = 1  # number of occurrences on the page


@dataclass(frozen=True, slots=True, eq=False)
class Links(Columns[Link]):
    """The links of a page, in document order."""

    targets: tuple[Url, ...] = ()
    kinds: bytes = b""  # indices into LINK_KINDS
    positions: bytes = b""  # indices into POSITIONS
    anchors: tuple[str, ...] = ()
    nofollow: bytes = b""  # 0 or 1
    fragments: tuple[str, ...] = ()  # fragments of each link, separated by spaces
    times: memoryview[int] = _NO_NUMBERS
    ids: memoryview[int] = _NO_NUMBERS  # of the targets; empty if not computed

    @classmethod
    def of(cls, rows: Iterable[Link]) -> Links:
        """Builds the columns from rows."""
        rows = tuple(rows)
        if not rows:
            return NO_LINKS
        targets, kinds, positions, anchors, nofollow, fragments, times = zip(*rows, strict=True)
        return cls(
            targets,
            bytes(map(LINK_KIND_CODES.__getitem__, kinds)),
            bytes(map(POSITION_CODES.__getitem__, positions)),
            anchors,
            bytes(nofollow),
            tuple(map(" ".join, fragments)),
            narrow(times),
        )

    def __len__(self) -> int:
        return len(self.targets)

    def __iter__(self) -> Iterator[Link]:
        columns = zip(
            self.targets,
            map(LINK_KINDS.__getitem__, self.kinds),
            map(POSITIONS.__getitem__, self.positions),
            self.anchors,
            map(bool, self.nofollow),
            map(tuple, map(str.split, self.fragments)),
            self.times,
            strict=True,
        )
        return map(Link._make, columns)

    def targets_of(self, kinds: frozenset[LinkKind]) -> list[Url]:
        """Targets of the links of these kinds, in order."""
        return list(compress(self.targets, self.kinds.translate(_marks_of(kinds))))


@cache
def link_codes(kinds: frozenset[LinkKind]) -> frozenset[int]:
    """Indices of the kinds in LINK_KINDS."""
    return frozenset(map(LINK_KIND_CODES.__getitem__, kinds))


@cache
def _marks_of(kinds: frozenset[LinkKind]) -> bytes:
    """1 for the codes of these kinds."""
    codes = link_codes(kinds)
    return bytes(code in codes for code in range(256))


NO_LINKS = Links()


@frozen
class BadLink:
    """A link whose URL cannot be fetched."""

    text: str  # as written, cut at 2,000 characters
    kind: LinkKind
    position: Position
    anchor: str
    why: str  # "javascript", "mailto", "tel", "data", ... (the scheme), or "malformed"


@frozen
class Charset:
    """The encoding that was used, and its source."""

    name: str  # label of the Encoding Living Standard, lower case
    source: str  # "bom", "header", "meta", "xml", "statistics", "default", "browser": rendered page
    # a declared encoding that was not used: overruled by the header, or contradicted by the text; or empty
    other: str = ""


NO_CHARSET = Charset("", "default")
"""Charset of a document that was not decoded."""


class BlockKind(StrEnum):
    """Kind of a text block, from its HTML element."""

    TITLE = "title"  # title of the document, not part of its text
    HEADING = "heading"
    PARAGRAPH = "paragraph"  # any other running text
    ITEM = "item"  # list item
    CELL = "cell"  # table cell
    CAPTION = "caption"  # of a table or figure
    CODE = "code"  # preformatted: keeps its line breaks
    LINK = "link"  # only link text, and no heading
    ALT = "alt"  # alt text of an image, not part of the page's text

    __hash__ = str.__hash__  # see LinkKind


class Block(NamedTuple):
    """A block of text, as a browser lays it out."""

    kind: BlockKind
    text: str  # white space normalised (for code: only at line ends), never empty
    # path of elements, outermost first, without `body`: "div#content.main/ul/li"; classes as written, ids only of
    # elements that contain blocks
    path: str
    level: int = 0  # heading level, 1 to 6
    position: Position = Position.BODY
    link_chars: int = 0  # characters that are link text
    language: str = ""  # BCP 47, if it differs from the page's language


class Part(StrEnum):
    """Part of a page that a block belongs to. TEXT_PARTS make up the page's own text."""

    CONTENT = "content"
    NAVIGATION = "navigation"  # menus, headers, footers, boxes
    HEADLINE = "headline"
    BYLINE = "byline"
    DATE = "date"  # of publication or of the last change
    CAPTIONS = "captions"
    COMMENTS = "comments"  # reader comments
    # classified as outside the main text
    OUTER_BYLINE = "outer byline"
    OUTER_DATE = "outer date"
    OUTER_CAPTIONS = "outer captions"

    __hash__ = str.__hash__  # see LinkKind


PARTS = tuple(Part)  # stored as indices, see LINK_KINDS
ALL_PARTS = frozenset(Part)
TEXT_PARTS = frozenset((Part.CONTENT, Part.HEADLINE, Part.BYLINE, Part.DATE, Part.CAPTIONS))
PART_CHOICES = {
    "content": frozenset((Part.CONTENT,)),
    "headline": frozenset((Part.HEADLINE,)),
    "byline": frozenset((Part.BYLINE, Part.OUTER_BYLINE)),
    "date": frozenset((Part.DATE, Part.OUTER_DATE)),
    "captions": frozenset((Part.CAPTIONS, Part.OUTER_CAPTIONS)),
    "comments": frozenset((Part.COMMENTS,)),
    "navigation": frozenset((Part.NAVIGATION,)),
}
"""Parts that a user can select by name."""

BLOCK_KINDS = tuple(BlockKind)
BLOCK_KIND_CODES = {kind: code for code, kind in enumerate(BLOCK_KINDS)}
APART = frozenset((BLOCK_KIND_CODES[BlockKind.TITLE], BLOCK_KIND_CODES[BlockKind.ALT]))
"""Codes of block kinds that are not part of a page's text."""
IS_APART = bytes(code in APART for code in range(256))  # tables for `bytes.translate`
IS_TEXT = bytes(code not in APART for code in range(256))

BlockPlace: TypeAlias = tuple[str, int, int, str]
"""Context of a block: path, level, position (index into POSITIONS), language."""


@dataclass(frozen=True, slots=True, eq=False)
class Blocks(Columns[Block]):
    """The text blocks of a page, in document order. In an empty column all values are the default."""

    text: str = ""  # all blocks except APART, separated by line feeds
    apart: str = ""  # the title and alt texts, one per line
    kinds: bytes = b""  # indices into BLOCK_KINDS
    levels: bytes = b""  # heading levels, 1 to 6; default 0
    positions: bytes = b""  # indices into POSITIONS
    lines: memoryview[int] = _NO_NUMBERS  # extra lines of each block (code may have several); default 0
    # 0: only link text; else the number of link characters plus 1; default 1
    shares: memoryview[int] = _NO_NUMBERS
    paths: memoryview[int] = _NO_NUMBERS  # indices into path_names
    path_names: tuple[str, ...] = ()
    languages: memoryview[int] = _NO_NUMBERS  # indices into language_names; default: the page's language
    language_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[Block]) -> Blocks:
        """Builds the columns from rows."""
        if isinstance(rows, Blocks):
            return rows
        rows = tuple(rows)
        if not rows:
            return NO_BLOCKS
        shares = [0 if row.link_chars == len(row.text) else row.link_chars + 1 for row in rows]
        places = [(row.path, row.level, POSITION_CODES[row.position], row.language) for row in rows]
        kinds = bytes([BLOCK_KIND_CODES[row.kind] for row in rows])
        return cls.of_columns(kinds, [row.text for row in rows], shares, places)

    @classmethod
    def of_columns(
        cls, kinds: bytes, texts: Sequence[str], shares: Sequence[int], places: Sequence[BlockPlace]
    ) -> Blocks:
        """Builds the columns from parallel sequences with at least one block."""
        text = "\n".join(compress(texts, kinds.translate(IS_TEXT)))
        apart = [words.replace("\n", " ") for words in compress(texts, kinds.translate(IS_APART))]
        lines = [  # the `in` test is twice as fast as count()
            words.count("\n") if "\n" in words and kind not in APART else 0
            for kind, words in zip(kinds, texts, strict=True)
        ]
        paths, levels, positions, languages = zip(*places, strict=True)
        return cls(
            text,
            "\n".join(apart),
            kinds,
            bytes(levels) if any(levels) else b"",
            bytes(positions),
            narrow(lines if any(lines) else ()),
            narrow(shares if shares.count(1) < len(shares) else ()),
            *dictionary_encode(paths),
            *(dictionary_encode(languages) if any(languages) else ()),
        )

    @classmethod
    def plain(cls, text: str) -> Blocks:
        """One paragraph per line of plain text; none for empty text."""
        count = text.count("\n") + 1 if text else 0
        paragraph, body = BLOCK_KIND_CODES[BlockKind.PARAGRAPH], POSITION_CODES[Position.BODY]
        kinds, positions = bytes((paragraph,)) * count, bytes((body,)) * count
        return cls(text, "", kinds, b"", positions, paths=memoryview(bytes(count)), path_names=("",))

    def __len__(self) -> int:
        return len(self.kinds)

    def __iter__(self) -> Iterator[Block]:
        texts, names = self.texts(), self.path_names
        columns = zip(
            map(BLOCK_KINDS.__getitem__, self.kinds),
            texts,
            map(names.__getitem__, self.paths),
            self.levels or repeat(0),
            map(POSITIONS.__getitem__, self.positions),
            self.link_chars(texts),
            self.own_languages(),
            strict=False,
        )
        return map(Block._make, columns)

    def texts(self) -> list[str]:
        """Text of each block."""
        are_apart = self.kinds.translate(IS_APART)
        # most blocks are a line of the text; the others replace lines, or are inserted
        texts, apart = self.text.split("\n") if 0 in are_apart else [], iter(self.apart.split("\n"))
        for place in compress(count(), map(or_, are_apart, self.lines) if self.lines else are_apart):
            if are_apart[place]:
                texts.insert(place, next(apart))
            else:
                end = place + self.lines[place] + 1
                texts[place:end] = ["\n".join(texts[place:end])]
        return texts

    def own_languages(self) -> list[str]:
        """Language of each block; empty if it is the page's."""
        names = self.language_names
        return [names[place] for place in self.languages] if names else [""] * len(self.kinds)

    def link_chars(self, texts: Sequence[str]) -> list[int]:
        """Number of link characters of each block. texts: the result of `texts()`."""
        if not self.shares:
            return [0] * len(self.kinds)
        return [share - 1 if share else len(text) for share, text in zip(self.shares, texts, strict=True)]

    def content(self, parts: Sequence[Part] | None, leave_out: Collection[BlockKind]) -> list[str]:
        """Texts of the blocks in TEXT_PARTS, without the block kinds in leave_out.

        parts: one per block; if None or of a different length, all blocks count as content.
        """
        without = frozenset(map(BLOCK_KIND_CODES.__getitem__, leave_out))
        marks: Iterable[Part] = parts if parts is not None and len(parts) == len(self) else repeat(Part.CONTENT)
        return [
            text
            for kind, text, part in zip(self.kinds, self.texts(), marks, strict=False)
            if part in TEXT_PARTS and kind not in without
        ]


NO_BLOCKS = Blocks()


@frozen
class Digests:
    """128-bit xxh3 of each, 16 bytes. Equal bodies are verified byte by byte."""

    body: bytes  # decompressed
    text: bytes  # of the text, white space normalised; of the body if there is no text
    folded: bytes  # of the text without diacritics and case


class Publication(NamedTuple):
    """Author and dates that a page declares, each with its source. Empty: not declared.

    Dates are ISO 8601 as declared: 2024-03-01, or 2024-03-01T10:00:00+01:00 with the declared zone.
    Sources: json-ld, meta, microdata (RDFa too), time, class (of elements), url, text; for authors also rel.
    """

    author: str = ""  # names, separated by `; `
    author_source: str = ""
    date_published: str = ""
    date_published_source: str = ""
    date_modified: str = ""
    date_modified_source: str = ""
    types: str = ""  # types of the things described in JSON-LD and Microdata, without vocabulary; separated by `; `


NO_PUBLICATION = Publication()


@frozen
class Document:
    """A parsed page. Empty strings and zeros mean: not declared."""

    media_type: str  # essence, lower case: "text/html"
    charset: Charset
    language: str  # BCP 47 as declared, lower case
    title: str
    description: str
    blocks: Blocks
    links: Links
    bad_links: tuple[BadLink, ...]
    digests: Digests
    noindex: bool
    nofollow: bool
    canonical: str
    last_modified: float  # seconds since the epoch, 0.0 when unknown
    expires: float
    h1: str
    h1s: int = 0  # main headings
    images_without_alt: int = 0
    translations: tuple[tuple[str, Url], ...] = ()  # (hreflang as written, URL of the translation)
    language_found: str = ""  # BCP 47, detected from the text; empty if undecided
    fault: str = ""  # why it was not parsed, or only in part: `encrypted`, `damaged: ...`, `long: ...`
    # limits that were reached: `more than 20,000 distinct links`; nothing beyond them is recorded
    bounds: tuple[str, ...] = ()
    needs_script: bool = False  # an empty shell whose content a script creates in the browser
    xml: tuple[bytes, str] | None = None  # (canonical XML, its media type), if requested
    publication: Publication = NO_PUBLICATION
    written: bytes = b""  # the text in UTF-8 as the reader wrote it; empty if it must be encoded

    @property
    def robots(self) -> str:
        """Robots directives as stored: `noindex,nofollow`."""
        return ",".join(["noindex"] * self.noindex + ["nofollow"] * self.nofollow)

    @property
    def text(self) -> str:
        """All blocks except title and alt texts, separated by line feeds."""
        return self.blocks.text

    def utf_8_text(self) -> bytes:
        """The text in UTF-8."""
        return self.written or self.text.encode("utf-8", "replace")


@frozen
class Rendering:
    """A page rendered by a browser."""

    html: bytes  # the document after its scripts ran, UTF-8 with a byte order mark
    sent: bytes  # as sent by the server, decompressed; empty if bytes are not stored
    sent_digest: bytes  # digest of `sent`, see `Digests.body`
    sent_size: int
    took_s: float  # from navigation to the result, including waits for subresources
    requests: int = 0  # for scripts and styles, and by scripts
    refused: int = 0  # requests that were not sent or not answered
    bytes_by_kind: tuple[tuple[str, int], ...] = ()  # (script, style, data, image or font; bytes, decompressed)
    bounds: tuple[str, ...] = ()  # limits that were reached: time, size, `150 requests`
    leads_to: str = ""  # URL to which a script navigated, or empty
    paint_s: float | None = None  # largest contentful paint (LCP); None: unknown, or delayed by us
    shift: float | None = None  # cumulative layout shift (CLS); None: unknown, or delayed by us
    screenshot: bytes = b""  # WebP; empty if not requested


class DateOrigin(StrEnum):
    """Source of a page's date, most reliable first."""

    JSON_LD = "json-ld"
    META = "meta"
    TIME = "time"
    FEED = "feed"
    URL = "url"
    TEXT = "text"
    LAST_MODIFIED = "last-modified"
    FIRST_SEEN = "first seen"


@frozen
class PageDate:
    """Date of publication of a page, as far as known."""

    when: float  # seconds since the epoch
    source: DateOrigin
    whole_day: bool = False  # only the day is known: `when` is its start
