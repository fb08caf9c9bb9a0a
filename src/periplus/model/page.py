"""What is understood of one document, the kinds of media types, and what is shown of a page: values only."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import compress, islice, repeat
from typing import NamedTuple, TypeAlias, TypeVar, overload

from periplus.model.visit import Reason, State
from periplus.model.web import Url
from periplus.values import frozen


class MediaClass(StrEnum):
    """Kinds of content, in the order in which charts show them."""

    PAGES = "pages"
    DOCUMENTS = "documents"  # PDF, office files, plain text, data as text
    IMAGES = "images"
    RECORDINGS = "recordings"  # audio and video
    STYLES = "styles"
    SCRIPTS = "scripts"
    OTHER = "other"  # archives, programs, and what does not say what it is


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
_BY_START = (
    ("image/", MediaClass.IMAGES),
    ("audio/", MediaClass.RECORDINGS),
    ("video/", MediaClass.RECORDINGS),
    ("text/", MediaClass.DOCUMENTS),
    ("application/pdf", MediaClass.DOCUMENTS),
    ("application/postscript", MediaClass.DOCUMENTS),
    ("application/rtf", MediaClass.DOCUMENTS),
    ("application/msword", MediaClass.DOCUMENTS),
    ("application/vnd.ms-", MediaClass.DOCUMENTS),
    ("application/vnd.openxmlformats-", MediaClass.DOCUMENTS),
    ("application/vnd.oasis.opendocument.", MediaClass.DOCUMENTS),
    ("application/epub+zip", MediaClass.DOCUMENTS),
    ("application/xml", MediaClass.DOCUMENTS),
    ("application/json", MediaClass.DOCUMENTS),
)


def media_class(media_type: str) -> MediaClass:
    """The class of a media type in lower case, without parameters; OTHER for one not known or not said."""
    exact = _EXACT.get(media_type)
    if exact is not None:
        return exact
    for start, kind in _BY_START:
        if media_type.startswith(start):
            return kind
    return MediaClass.DOCUMENTS if media_type.endswith(("+xml", "+json")) else MediaClass.OTHER


class LinkKind(StrEnum):
    """What a link is for. `FOLLOWED_KINDS` lead to pages, `CLICK_KINDS` take a visitor there; the others are parts of
    the page or remarks on it.
    """

    ANCHOR = "a"
    AREA = "area"
    FRAME = "frame"
    IFRAME = "iframe"
    REFRESH = "refresh"  # meta http-equiv=refresh, or the Refresh header
    REDIRECT = "redirect"  # recorded by the crawler, not found in a document
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

    __hash__ = str.__hash__  # Enum's own is written in Python; on each page these are looked up some hundreds of times


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
"""Links that a browser shows or follows. Depth, the site map and PageRank are computed from these alone."""

FOLLOWED_KINDS = CLICK_KINDS | {LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.RELATED}
"""Links to pages. A visitor cannot click those that are not `CLICK_KINDS`: they give a URL without a depth."""

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
"""What a browser fetches to show the page. Every image of a srcset counts, though only one is shown: an upper bound."""


class Position(StrEnum):
    """The innermost landmark around a link: HTML sectioning elements or their ARIA roles."""

    NAV = "nav"
    HEADER = "header"
    MAIN = "main"
    ASIDE = "aside"
    FOOTER = "footer"
    BODY = "body"  # in none of these
    HEAD = "head"  # in <head>, or an HTTP header

    __hash__ = str.__hash__  # as above


# Columns hold these as numbers, in memory and in collections: a kind or landmark may be added at the end of an enum,
# none may change its place.
LINK_KINDS = tuple(LinkKind)
POSITIONS = tuple(Position)
LINK_KIND_CODES = {kind: code for code, kind in enumerate(LINK_KINDS)}
POSITION_CODES = {position: code for code, position in enumerate(POSITIONS)}


def narrow(values: Sequence[int]) -> memoryview[int]:
    """The values as unsigned numbers, each in as few bytes as the largest needs: NumPy reads them without a copy."""
    most = max(values, default=0)
    if most < 1 << 8:
        return memoryview(bytes(values))
    return memoryview(array("H" if most < 1 << 16 else "I", values)).toreadonly()


def numbered(values: Sequence[str]) -> tuple[memoryview[int], tuple[str, ...]]:
    """(each value as its place among the different values, these in the order in which they are met)."""
    names = tuple(dict.fromkeys(values))
    places = {name: place for place, name in enumerate(names)}
    return narrow(list(map(places.__getitem__, values))), names


_NO_NUMBERS = narrow(())
Row = TypeVar("Row")


class Columns(Sequence[Row]):
    """Many values of one kind as columns of bytes, numbers and texts, a place for each.

    The columns are made once, are stored as they are, and NumPy reads them without a copy. As a sequence they give
    rows, each made when it is asked for.
    """

    __slots__ = ()

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, place: int | slice) -> Row | tuple[Row, ...]:
        """Takes as long as all rows: whoever wants several iterates."""
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns | tuple | list) and len(self) == len(other) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class Link(NamedTuple):
    """All links of one page that agree in (target, kind, position, nofollow)."""

    target: Url
    kind: LinkKind
    position: Position
    anchor: str = ""  # the first text that is not empty, white space folded; for images their alt
    nofollow: bool = False  # rel=nofollow, ugc or sponsored on the link, or nofollow for the whole page
    fragments: tuple[str, ...] = ()  # distinct, in order, percent-encoded, without `#`
    times: int = 1  # how often it stands on the page


@dataclass(frozen=True, slots=True, eq=False)
class Links(Columns[Link]):
    """The links of a page, in the order in which they were met."""

    targets: tuple[Url, ...] = ()
    kinds: bytes = b""  # places in LINK_KINDS
    positions: bytes = b""  # places in POSITIONS
    anchors: tuple[str, ...] = ()
    nofollow: bytes = b""  # 0 or 1
    fragments: tuple[str, ...] = ()  # those of each with blanks between
    times: memoryview[int] = _NO_NUMBERS

    @classmethod
    def of(cls, rows: Iterable[Link]) -> Links:
        """The rows as columns."""
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
        """Where the links of some kinds lead, in their order."""
        codes = link_codes(kinds)
        return [target for target, kind in zip(self.targets, self.kinds, strict=True) if kind in codes]


@cache
def link_codes(kinds: frozenset[LinkKind]) -> frozenset[int]:
    """The kinds as `Links` hold them."""
    return frozenset(map(LINK_KIND_CODES.__getitem__, kinds))


NO_LINKS = Links()
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


@frozen
class BadLink:
    """What stood where a URL belongs and is none that can be fetched."""

    text: str  # as written, cut at 2,000 characters
    kind: LinkKind
    position: Position
    anchor: str
    why: str  # "javascript", "mailto", "tel", "data", ... (the scheme), or "malformed"


@frozen
class Charset:
    """Which encoding was taken, and on whose word."""

    name: str  # label of the Encoding Living Standard, lower case
    source: str  # "bom", "header", "meta", "xml", "statistics", "default", "browser": as it was rendered
    # what was declared and not taken: by the document beside its header, or by what the text contradicts; empty: none
    other: str = ""


NO_CHARSET = Charset("", "default")
"""Of what was not decoded."""


class BlockKind(StrEnum):
    """What a piece of a page's text is, by the element that holds it."""

    TITLE = "title"  # of the document: not part of its text
    HEADING = "heading"
    PARAGRAPH = "paragraph"  # any running text that is none of the others
    ITEM = "item"  # of a list
    CELL = "cell"  # of a table
    CAPTION = "caption"  # of a table or figure
    CODE = "code"  # preformatted: its line breaks stay
    LINK = "link"  # nothing but the text of links, and no heading
    ALT = "alt"  # what stands for an image: not part of its text

    __hash__ = str.__hash__  # as above


class Block(NamedTuple):
    """A piece of a page's text that a browser sets apart from what is before and after it."""

    kind: BlockKind
    text: str  # white space folded (of code only what ends a line), never empty
    # of the elements around it, outermost first, `body` left out: "div#content.main/ul/li"; classes as written, and
    # ids of what holds blocks
    path: str
    level: int = 0  # of a heading: 1 to 6
    position: Position = Position.BODY
    link_chars: int = 0  # how many of the text's characters stand in links
    language: str = ""  # BCP 47, where it is another than the page's


class Part(StrEnum):
    """Which part of a page a block is of. TEXT_PARTS are what the page says."""

    CONTENT = "content"
    NAVIGATION = "navigation"  # what helps to move about the site: menus, headers, footers, boxes
    HEADLINE = "headline"
    BYLINE = "byline"
    DATE = "date"  # of publication or of the last change
    CAPTIONS = "captions"
    COMMENTS = "comments"  # of readers
    # those that were judged to stand outside of the text
    OUTER_BYLINE = "outer byline"
    OUTER_DATE = "outer date"
    OUTER_CAPTIONS = "outer captions"

    __hash__ = str.__hash__  # as above


PARTS = tuple(Part)  # columns hold the places: as of LINK_KINDS
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
"""What a user may ask for by name."""

BLOCK_KINDS = tuple(BlockKind)
BLOCK_KIND_CODES = {kind: code for code, kind in enumerate(BLOCK_KINDS)}
APART = frozenset((BLOCK_KIND_CODES[BlockKind.TITLE], BLOCK_KIND_CODES[BlockKind.ALT]))
"""Codes of the blocks whose words are no part of a page's text."""
IS_APART = bytes(code in APART for code in range(256))  # tables for `bytes.translate`
IS_TEXT = bytes(code not in APART for code in range(256))

BlockPlace: TypeAlias = tuple[str, int, int, str]
"""What a block has in common with those beside it: path, level, position (a place in POSITIONS), language."""


@dataclass(frozen=True, slots=True, eq=False)
class Blocks(Columns[Block]):
    """The pieces of a page's text, in the document's order. An empty column holds its default alone."""

    text: str = ""  # what the page says: the words of all blocks but those APART, one below the other
    apart: str = ""  # the words of the title and of what stands for images, a line each
    kinds: bytes = b""  # places in BLOCK_KINDS
    levels: bytes = b""  # of headings: 1 to 6; default 0
    positions: bytes = b""  # places in POSITIONS
    lines: memoryview[int] = _NO_NUMBERS  # of the text beyond the block's first: code has several; default 0
    # 0: nothing but links; else one more than how many characters stand in links; default 1
    shares: memoryview[int] = _NO_NUMBERS
    paths: memoryview[int] = _NO_NUMBERS  # places in path_names
    path_names: tuple[str, ...] = ()
    languages: memoryview[int] = _NO_NUMBERS  # places in language_names; default: the page's
    language_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[Block]) -> Blocks:
        """The rows as columns."""
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
        """The columns of one block or more, of which the texts are apart yet."""
        text = "\n".join(compress(texts, kinds.translate(IS_TEXT)))
        apart = [words.replace("\n", " ") for words in compress(texts, kinds.translate(IS_APART))]
        lines = [  # to look takes half of what a call takes
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
            *numbered(paths),
            *(numbered(languages) if any(languages) else ()),
        )

    @classmethod
    def plain(cls, text: str) -> Blocks:
        """A paragraph for each line of a text of which nothing else is known; none for no text."""
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
        """The words of each block."""
        if not self.kinds:
            return []
        own, apart = iter(self.text.split("\n")), iter(self.apart.split("\n"))
        if not self.lines:
            return [next(apart if kind in APART else own) for kind in self.kinds]
        return [
            next(apart) if kind in APART else "\n".join([next(own), *islice(own, more)]) if more else next(own)
            for kind, more in zip(self.kinds, self.lines, strict=True)
        ]

    def own_languages(self) -> list[str]:
        """The language of each block; empty: the page's."""
        names = self.language_names
        return [names[place] for place in self.languages] if names else [""] * len(self.kinds)

    def link_chars(self, texts: Sequence[str]) -> list[int]:
        """How many characters of each block stand in links. texts: its `texts`."""
        if not self.shares:
            return [0] * len(self.kinds)
        return [share - 1 if share else len(text) for share, text in zip(self.shares, texts, strict=True)]

    def content(self, parts: Sequence[Part] | None, leave_out: Collection[BlockKind]) -> list[str]:
        """The texts of TEXT_PARTS, but for some kinds of blocks.

        parts: one for each block; None, or of another number: all blocks are content.
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
    """16 bytes each.

    text and folded are MD5, as the source system specifies (C6); equal bodies are confirmed byte by byte.
    """

    body: bytes  # 128-bit xxh3 of the bytes as received, inflated
    text: bytes  # of the text, white space folded; of the body where there is no text
    folded: bytes  # of the text without diacritics and case


class Publication(NamedTuple):
    """Who wrote a page and when, each with where the page says so. Empty: it does not say.

    Dates are ISO 8601 as the page has them: 2024-03-01, or 2024-03-01T10:00:00+01:00 with the zone that it names.
    Sources: json-ld, meta, microdata (RDFa too), time, class (of elements), url, text; of authors rel.
    """

    author: str = ""  # names, `; ` between
    author_source: str = ""
    date_published: str = ""
    date_published_source: str = ""
    date_modified: str = ""
    date_modified_source: str = ""
    types: str = ""  # of what it describes in JSON-LD and Microdata, without their vocabulary; `; ` between


NO_PUBLICATION = Publication()


@frozen
class Document:
    """A page understood. Empty strings and zeros mean: the page does not say."""

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
    translations: tuple[tuple[str, Url], ...] = ()  # (hreflang as written, where its page is)
    language_found: str = ""  # BCP 47, as its words tell; empty where they do not
    fault: str = ""  # why it could not be read, or not whole: `encrypted`, `damaged: ...`, `long: ...`
    # which were met: `more than 20,000 distinct links`; what lies behind them is not recorded
    bounds: tuple[str, ...] = ()
    needs_script: bool = False  # it is an empty shell: what it shows is made by a script in a browser
    xml: tuple[bytes, str] | None = None  # as canonical XML, and the media type of that, where it was asked for
    publication: Publication = NO_PUBLICATION

    @property
    def robots(self) -> str:
        """What the page asks of robots, as it is stored: `noindex,nofollow`."""
        return ",".join(["noindex"] * self.noindex + ["nofollow"] * self.nofollow)

    @property
    def text(self) -> str:
        """What it says: all blocks but the title and what stands for images, parted by line feeds."""
        return self.blocks.text


@frozen
class Rendering:
    """A page as a browser made it."""

    html: bytes  # the document as its scripts left it, in UTF-8 with a mark that says so
    sent: bytes  # as the server sent it, inflated; empty where bytes are not kept
    sent_digest: bytes  # of them, as `Digests.body`
    sent_size: int
    took_s: float  # from when the browser was given it until it was read, waits for its parts included
    requests: int = 0  # of its scripts and styles, and of its scripts
    refused: int = 0  # of them, those that were not asked for, or not answered
    bytes_by_kind: tuple[tuple[str, int], ...] = ()  # (script, style, data, image or font; bytes, inflated)
    bounds: tuple[str, ...] = ()  # those that it met: time, size, `150 requests`
    leads_to: str = ""  # where its script wanted to go on to; empty: nowhere
    paint_s: float | None = None  # until the largest part was shown (LCP); None: unknown, or we delayed it
    shift: float | None = None  # how much what was shown moved (CLS); None: likewise
    screenshot: bytes = b""  # WebP; empty: none was wanted


class SamePage(NamedTuple):
    """Another page with the same bytes, the same words, or the same words but for diacritics and case."""

    url: str
    same: str  # bytes, words, folded


@frozen
class PageSummary:
    """What is known of one URL, in the columns of `model.tables.PAGE`. None: it does not say, or was not fetched."""

    url: str
    state: State
    reason: Reason
    rule: str | None
    status: int | None
    depth: int | None
    fetched_at: str | None  # None: nothing was fetched of it
    media_type: str | None
    size: int | None
    cut: str | None
    title: str | None
    description: str | None
    h1: str | None
    language: str | None
    declared_language: str | None
    charset: str | None
    charset_source: str | None
    author: str | None
    author_source: str | None
    date_published: str | None
    date_published_source: str | None
    date_modified: str | None
    date_modified_source: str | None
    types: str | None
    other_charset: str | None
    canonical: str | None
    robots: str | None
    text_chars: int | None
    body_digest: str | None
    text_digest: str | None
    folded_digest: str | None
    rendered: bool  # a browser made it of its scripts
    paint_s: float | None  # until its largest part was shown in that browser (LCP)
    shift: float | None  # how much it moved there (CLS)
    kept: tuple[str, ...]  # of bytes, text, xml, screenshot
    inlinks: int  # pages that link to it
    outlinks: int  # URLs that it links to
    duplicates: tuple[SamePage, ...]
