"""What a page's elements and attributes are to its reader: tables by the numbers of `tags`."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from enum import IntFlag, auto
from typing import Final, NamedTuple

from periplus.document.tags import ATTRIBUTES, TAG_NUMBERS, TAGS
from periplus.model.page import BLOCK_KIND_CODES, POSITION_CODES, BlockKind, LinkKind, Position

NONE: Final = 255
POSITION_SHIFT, NOFOLLOW, LONG = 8, 1 << 12, 1 << 13  # what tells the heads of links apart, beside their source

BLOCKS_MOST: Final = 200_000  # of one page that are kept; the King James Bible has 31,102 verses
PATHS_MOST: Final = 20_000  # different ones of a page: a site's pages have a few hundred each
PATH_CHARS: Final = 1_000  # elements further in are left out; real paths have 20 to 300
NAME_CHARS: Final = 40  # of an element's id, and of its classes, that are kept: nobody tells blocks apart by the rest
# of one tag on one page, with links; a reference of 421 pages has 30,000 links, and more than these take 3 s
ELEMENTS_MOST: Final = 200_000
META_MOST: Final = 500  # meta elements that are heeded; real pages have 0 to 60
TITLES_MOST: Final = 500  # that are looked at; real pages have one, and one more in each picture
HEADINGS_MOST: Final = 8  # of the first rank that are looked through for words
HREF_CHARS: Final = 65_536  # a longer one is malformed: no server takes it
ANCHOR_CHARS: Final = 1_000  # for an `a` around a whole card or article
FRAGMENTS_MOST: Final = 20_000  # of one row of links
# percent-encoding leaves them as they are
PLAIN_IN_FRAGMENTS: Final = bytes(
    code in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/()-" for code in range(256)
)


class Element(IntFlag):
    """What is done with an element."""

    BLOCK = auto()  # it sets its text apart from what is before and after it
    SAME = auto()  # its text is of the kind of the block around it, else a paragraph
    HOLDS_P = auto()  # its paragraphs are but its text: `<li><p>`
    UNNAMED = auto()  # in no path
    LEAF = auto()  # its id is a place that links lead to: no two pages have the same
    UNSEEN = auto()  # no reader sees its text
    BREAK = auto()  # a line ends
    LINK = auto()
    IMAGE = auto()
    WORDS = auto()  # its text is gathered apart from the blocks
    SHEET = auto()
    NOTED = auto()  # it says something of the page
    PARTS = auto()  # it may name other documents: see SOURCES
    MARK = auto()  # a landmark
    SECTION = auto()  # a header or footer in it is none of the page
    BANNER = auto()
    ROOT = auto()  # a script fills it


# The innermost landmark decides: `nav`, `header`, `main`, `aside`, `footer`, or an ARIA role of the same meaning. A
# header or footer of an article or section is none (HTML Accessibility API Mappings), so the headline of a post is not
# taken for the site's banner.
_LANDMARKS = {
    "head": Position.HEAD,
    "nav": Position.NAV,
    "main": Position.MAIN,
    "aside": Position.ASIDE,
    "header": Position.HEADER,
    "footer": Position.FOOTER,
}
ROLES: Final = {
    "navigation": POSITION_CODES[Position.NAV],
    "banner": POSITION_CODES[Position.HEADER],
    "main": POSITION_CODES[Position.MAIN],
    "complementary": POSITION_CODES[Position.ASIDE],
    "contentinfo": POSITION_CODES[Position.FOOTER],
}
# What the frameworks and their starters call the element that they fill: React, Vue, Next, Nuxt, Gatsby, Svelte,
# Angular, Quasar, Polymer.
ROOT_IDS: Final = frozenset(
    b"root app __next __nuxt ___gatsby svelte q-app react-root app-root app-mount application".split()
)
ROOT_LETTERS: Final = bytes(code in b"_aqrs" for code in range(256))  # with which they begin
ROOT_CHARS: Final = 50  # of what stands in a root until the script comes
_HEADINGS = "h1 h2 h3 h4 h5 h6"
_KINDS = {
    BlockKind.HEADING: _HEADINGS,
    BlockKind.ITEM: "li dt dd option",
    BlockKind.CELL: "td th",
    BlockKind.CAPTION: "caption figcaption",
    BlockKind.CODE: "pre listing xmp plaintext",
}
_WITH_KIND = " ".join(_KINDS.values())
# Where a new text begins: what stands in an item or cell of the page's layout is no item because of that.
_PARAGRAPHS = (
    "html body p article section main nav aside header footer blockquote form fieldset address details dialog dl ul ol"
    " menu dir table figure hgroup search"
)
# text, title and desc are SVG's; a title of HTML is the page's
_SAME = (
    "div center legend summary button select optgroup textarea tr tbody thead tfoot colgroup frameset text title desc"
)
_PROPERTIES = {
    Element.BLOCK: f"{_WITH_KIND} {_PARAGRAPHS} {_SAME}",
    Element.SAME: _SAME,
    Element.HOLDS_P: "li td th caption figcaption",
    Element.UNNAMED: "html body",
    # not of sections: `section#comments` tells what it holds (quality/extraction fell by half a point without)
    Element.LEAF: f"{_WITH_KIND} p",
    Element.UNSEEN: "head script style template iframe noembed noframes",
    Element.BREAK: "br hr",
    Element.LINK: "a",
    Element.IMAGE: "img",
    Element.WORDS: "title h1 noscript",
    Element.SHEET: "style",
    Element.NOTED: "meta link base html script svg iframe h1",
    Element.MARK: " ".join(_LANDMARKS),
    Element.SECTION: "article aside main nav section",
    Element.BANNER: "header footer",
    Element.ROOT: "app-root my-app",
}


# What `marks` says of an element: what it is by its name, attributes and class; in what it stands
MARKS: Final = tuple(1 << bit for bit in range(12))


class LinkSource(NamedTuple):
    """An attribute that names documents."""

    tag: str
    attribute: str
    kind: LinkKind


#     ANCHOR     a href, svg a href and xlink:href          FORM     form action; button and input formaction
#     AREA       area href                                  IMAGE    img src, srcset, data-src, data-srcset and their
#     FRAME      frame src                                           like; source srcset; input src; svg image and use;
#     IFRAME     iframe src, data-src                                background; url(), image-set() in CSS; link
#     REFRESH    meta refresh, Refresh header                        imagesrcset
#     CANONICAL  link rel=canonical                         STYLE    link rel=stylesheet, @import, <?xml-stylesheet?>
#     ALTERNATE  link rel=alternate                         SCRIPT   script src; svg script href and xlink:href
#     RELATED    link rel=next, prev, up, help, ...;        MEDIA    video src, poster; audio src; source src; track
#                longdesc                                            src; bgsound
#     CITE       cite of blockquote, q, ins, del;           OBJECT   object data, embed src, applet code and archive,
#                link rel=profile, schema.*                          html manifest, link rel=manifest, preload, ...
#     ICON       link rel=icon and its like                 SITEMAP  link rel=sitemap
# The Link header counts as a link element. Contents of noscript, template and iframe srcdoc count, comments and scripts
# do not. `base href` is obeyed, the first one only; HTTP headers are resolved against the page itself. A query is sent
# in the page's charset. Left out, because nothing is fetched for them: empty src, fragments of the page itself in a
# part of it (`<use href="#x">`), data: and about: where a part is embedded, preconnect and dns-prefetch.
_A, _I, _M, _O = LinkKind.ANCHOR, LinkKind.IMAGE, LinkKind.MEDIA, LinkKind.OBJECT
_C, _F, _R = LinkKind.CITE, LinkKind.FORM, LinkKind.RELATED
_HTML_SOURCES = (
    ("a", "href", _A), ("area", "href", LinkKind.AREA), ("frame", "src", LinkKind.FRAME), ("frame", "longdesc", _R),
    ("iframe", "src", LinkKind.IFRAME), ("iframe", "data-src", LinkKind.IFRAME), ("iframe", "longdesc", _R),
    ("form", "action", _F), ("button", "formaction", _F), ("input", "formaction", _F), ("input", "src", _I),
    ("img", "src", _I), ("img", "srcset", _I), ("img", "data-src", _I), ("img", "data-srcset", _I),
    ("img", "data-original", _I), ("img", "data-lazy-src", _I), ("img", "longdesc", _R),
    ("source", "src", _M), ("source", "srcset", _I), ("source", "data-srcset", _I),
    ("video", "src", _M), ("video", "poster", _M), ("audio", "src", _M), ("track", "src", _M), ("bgsound", "src", _M),
    ("embed", "src", _O), ("object", "data", _O), ("applet", "code", _O), ("applet", "archive", _O),
    ("html", "manifest", _O), ("script", "src", LinkKind.SCRIPT),
    ("blockquote", "cite", _C), ("q", "cite", _C), ("ins", "cite", _C), ("del", "cite", _C),
)  # fmt: skip
_SVG_SOURCES = (
    ("a", "xlink:href", _A), ("image", "href", _I), ("image", "xlink:href", _I), ("use", "href", _I),
    ("use", "xlink:href", _I), ("feImage", "href", _I), ("feImage", "xlink:href", _I),
    ("script", "href", LinkKind.SCRIPT), ("script", "xlink:href", LinkKind.SCRIPT),
)  # fmt: skip
SOURCES: Final = tuple(LinkSource(*source) for source in (*_HTML_SOURCES, *_SVG_SOURCES))
"""In the order in which links are recorded: element by element, and of each its attributes."""
FIRST_SVG_SOURCE: Final = len(_HTML_SOURCES)  # those from here on count where there is an svg element

# Attributes that are looked at; the first six on any element
SLOT_NAMES: Final = (
    "role", "style", "background", "id", "ng-app", "data-reactroot", "class", "lang", "xml:lang", "href", "rel", "alt",
    "title", "name", "http-equiv", "content", "hreflang", "as", "imagesrcset", "srcdoc",
    *dict.fromkeys(source.attribute for source in SOURCES if source.attribute != "href"),
)  # fmt: skip


def _bytes(values: dict[str, int], names: tuple[str, ...] = TAGS, other: int = NONE) -> bytes:
    return bytes(values.get(name, other) for name in names)


def _properties() -> array[int]:
    properties = array("i", [0]) * len(TAGS)
    for element, names in (*_PROPERTIES.items(), (Element.PARTS, " ".join(source.tag for source in SOURCES))):
        for name in names.split():
            properties[TAG_NUMBERS[name]] |= element
    return properties


def _parts() -> tuple[array[int], array[int]]:
    """(where each tag's row of sources begins, the rows; -1 ends one)."""
    rows, firsts = array("i", [-1]), array("i", [0]) * len(TAGS)
    for tag, number in TAG_NUMBERS.items():
        sources = [place for place, source in enumerate(SOURCES) if source.tag == tag and place]
        if sources:
            firsts[number] = len(rows)
            rows.extend([*sources, -1])
    return firsts, rows


def _ends(names: Iterable[str]) -> array[int]:
    ends, end = array("i"), 0
    for name in names:
        end += len(name)
        ends.append(end)
    return ends


PROPERTIES: Final = _properties()
KINDS: Final = _bytes({name: BLOCK_KIND_CODES[kind] for kind, names in _KINDS.items() for name in names.split()})
LEVELS: Final = _bytes({name: level for level, name in enumerate(_HEADINGS.split(), 1)}, other=0)
LANDMARKS: Final = _bytes({name: POSITION_CODES[position] for name, position in _LANDMARKS.items()})
SLOTS: Final = _bytes({name: number for number, name in enumerate(SLOT_NAMES, 1)}, ATTRIBUTES, 0)
FIRST_PARTS, PARTS = _parts()
SOURCE_SLOTS: Final = bytes(SLOT_NAMES.index(source.attribute) + 1 for source in SOURCES)
_WITH_REL = frozenset((LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FORM))
SOURCES_WITH_REL: Final = bytes(source.kind in _WITH_REL for source in SOURCES)
SOURCE_IS_ANCHOR: Final = bytes(source.kind is LinkKind.ANCHOR for source in SOURCES)
# a list of URLs, of which each has white space or commas around it
SOURCE_IS_LIST: Final = bytes(
    source.attribute.endswith("srcset") or source.attribute == "archive" for source in SOURCES
)
# names in paths: what is shown as it is written is `pre`
_PATH_NAMES = ["pre" if name in ("xmp", "plaintext") else name for name in TAGS]
TAG_LETTERS: Final = "".join(_PATH_NAMES).encode()
TAG_ENDS: Final = _ends(_PATH_NAMES)

COPIED_SINGLY: Final = 40  # bytes: more are copied as one piece, which costs as much as these
PLAIN, WHITE, MAY_BE_WHITE, GOING_ON = range(4)
# What a byte of UTF-8 is to white space as Unicode has it (str.split): U+0085, 00A0, 1680, 2000-200A, 2028, 2029, 202F,
# 205F and 3000 begin with 0xC2, E1, E2 or E3
SPACES: Final = bytes(
    WHITE
    if code in b"\t\n\v\f\r\x1c\x1d\x1e\x1f "
    else MAY_BE_WHITE
    if code in (0xC2, 0xE1, 0xE2, 0xE3)
    else GOING_ON
    if 0x80 <= code < 0xC0
    else PLAIN
    for code in range(256)
)
