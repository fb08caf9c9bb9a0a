"""What is understood of one document, the kinds of media types, and what is shown of a page: values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from periplus.model.visit import Reason, State
from periplus.model.web import Url


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
    for start, found in _BY_START:
        if media_type.startswith(start):
            return found
    return MediaClass.DOCUMENTS if media_type.endswith(("+xml", "+json")) else MediaClass.OTHER


class LinkKind(StrEnum):
    """What a link is for. `FOLLOWED_KINDS` lead to pages; the others are parts of the page or remarks on it."""

    ANCHOR = "a"
    AREA = "area"
    FRAME = "frame"
    IFRAME = "iframe"
    REFRESH = "refresh"  # meta http-equiv=refresh, or the Refresh header
    REDIRECT = "redirect"  # recorded by the crawler, not found in a document
    CANONICAL = "canonical"
    ALTERNATE = "alternate"  # link rel=alternate: hreflang, feeds, other media
    RELATED = "related"  # link rel=next, prev, up, help, ...; the Link header
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


FOLLOWED_KINDS = frozenset(
    {
        LinkKind.ANCHOR,
        LinkKind.AREA,
        LinkKind.FRAME,
        LinkKind.IFRAME,
        LinkKind.REFRESH,
        LinkKind.REDIRECT,
        LinkKind.CANONICAL,
        LinkKind.ALTERNATE,
        LinkKind.RELATED,
    }
)

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


class Link(NamedTuple):
    """All links of one page that agree in (target, kind, position, nofollow).

    A tuple, because 70 are made for each page and a frozen dataclass takes four times as long to make.
    """

    target: Url
    kind: LinkKind
    position: Position
    anchor: str = ""  # the first text that is not empty, white space folded; for images their alt
    nofollow: bool = False  # rel=nofollow, ugc or sponsored on the link, or nofollow for the whole page
    fragments: tuple[str, ...] = ()  # distinct, in order, percent-encoded, without `#`
    times: int = 1  # how often it stands on the page


@dataclass(frozen=True, slots=True)
class BadLink:
    """What stood where a URL belongs and is none that can be fetched."""

    text: str  # as written, cut at 2,000 characters
    kind: LinkKind
    position: Position
    anchor: str
    why: str  # "javascript", "mailto", "tel", "data", ... (the scheme), or "malformed"


@dataclass(frozen=True, slots=True)
class Charset:
    """Which encoding was taken, and on whose word."""

    name: str  # label of the Encoding Living Standard, lower case
    source: str  # "bom", "header", "meta", "xml", "statistics", "default"
    # what was declared and not taken: by the document beside its header, or by what the text contradicts; empty: none
    other: str = ""


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
    """A piece of a page's text that a browser sets apart from what is before and after it.

    A tuple for the reason that `Link` is one.
    """

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
    """What a block is for: the page's own content, or what helps to move about the site (menus, headers,
    footers, boxes).
    """

    CONTENT = "content"
    NAVIGATION = "navigation"

    __hash__ = str.__hash__  # as above


@dataclass(frozen=True, slots=True)
class Digests:
    """16 bytes each.

    text and folded are MD5, as the source system specifies (C6); equal bodies are confirmed byte by byte.
    """

    body: bytes  # 128-bit xxh3 of the bytes as received, inflated
    text: bytes  # of the text, white space folded; of the body where there is no text
    folded: bytes  # of the text without diacritics and case


@dataclass(frozen=True, slots=True)
class Document:
    """A page understood. Empty strings and zeros mean: the page does not say."""

    media_type: str  # essence, lower case: "text/html"
    charset: Charset
    language: str  # BCP 47 as declared, lower case
    title: str
    description: str
    text: str  # of all blocks but the title and what stands for images, parted by "\n"
    links: tuple[Link, ...]
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
    blocks: tuple[Block, ...] = ()  # in the document's order
    language_found: str = ""  # BCP 47, as its words tell; empty where they do not
    fault: str = ""  # why it could not be read, or not whole: `encrypted`, `damaged: ...`, `long: ...`
    # which were met: `more than 20,000 distinct links`; what lies behind them is not recorded
    bounds: tuple[str, ...] = ()
    needs_script: bool = False  # it is an empty shell: what it shows is made by a script in a browser


class SamePage(NamedTuple):
    """Another page with the same bytes, the same words, or the same words but for diacritics and case."""

    url: str
    same: str  # bytes, words, folded


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What was read of a page that was fetched. Empty: it does not say."""

    fetched: str  # ISO 8601, UTC
    media_type: str
    size: int  # bytes
    cut: str
    title: str
    description: str
    h1: str
    language: str  # as declared
    language_found: str  # by its words
    charset: str
    charset_source: str
    other_charset: str  # what was declared, where another was taken
    canonical: str
    robots: str
    text_chars: int
    body_digest: str  # hexadecimal, like the two below
    text_digest: str
    folded_digest: str
    kept: tuple[str, ...]  # of bytes, text, xml


@dataclass(frozen=True, slots=True)
class PageSummary:
    """What is known of one URL. page None: nothing was fetched of it."""

    url: str
    state: State
    reason: Reason
    why: str  # the rule, limit or failure behind the reason
    status: int | None
    depth: int | None
    page: PageFacts | None
    fault: str  # why it could not be read, or not whole
    inlinks: int  # pages that link to it
    outlinks: int  # URLs that it links to
    duplicates: tuple[SamePage, ...]
