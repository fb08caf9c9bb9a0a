"""Properties of elements and attributes for the reader: tables indexed by the numbers of `tags`."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from enum import IntFlag, auto
from functools import lru_cache
from typing import Final, NamedTuple

from periplus.document.tags import ATTRIBUTES, TAG_NUMBERS, TAGS
from periplus.model.page import BLOCK_KIND_CODES, POSITION_CODES, BlockKind, LinkKind, Position

NO_RULE: Final = 255
POSITION_SHIFT, NOFOLLOW, LONG = 8, 1 << 12, 1 << 13  # parts of a head's owner, besides its source

BLOCKS_MOST: Final = 200_000  # blocks kept per page; the King James Bible has 31,102 verses
PATHS_MOST: Final = 20_000  # distinct paths per page; a site's pages have a few hundred each
PATH_CHARS: Final = 1_000  # deeper elements are left out; real paths have 20 to 300
NAME_CHARS: Final = 40  # characters kept of an element's id and of its classes: enough to distinguish blocks
# Elements of one tag with links, per page; a reference of 421 pages has 30,000 links, and more than this takes 3 s
ELEMENTS_MOST: Final = 200_000
META_MOST: Final = 500  # meta elements that are read; real pages have 0 to 60
TITLES_MOST: Final = 500  # title elements that are read; real pages have one, plus one in each picture
HEADINGS_MOST: Final = 8  # h1 elements that are searched for text
_NOFOLLOW_RELS = frozenset(("nofollow", "ugc", "sponsored"))
HREF_CHARS: Final = 65_536  # a longer one is invalid: no server accepts it
ANCHOR_CHARS: Final = 1_000  # for an `a` around a whole card or article
FRAGMENTS_MOST: Final = 20_000  # per row of links
# Not changed by percent-encoding
PLAIN_IN_FRAGMENTS: Final = bytes(
    code in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/()-" for code in range(256)
)
# The innermost landmark applies: `nav`, `header`, `main`, `aside`, `footer`, or an equivalent ARIA role. A header or
# footer of an article or section is not a landmark (HTML Accessibility API Mappings), so the headline of a post is not
# taken for the site's banner
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
# Ids that frameworks and their starters give to the element that they fill: React, Vue, Next, Nuxt, Gatsby, Svelte,
# Angular, Quasar, Polymer
ROOT_IDS: Final = frozenset(
    b"root app __next __nuxt ___gatsby svelte q-app react-root app-root app-mount application".split()
)
ROOT_LETTERS: Final = bytes(code in b"_aqrs" for code in range(256))  # their first letters
ROOT_CHARS: Final = 50  # characters allowed in a root before the script runs
_HEADINGS = "h1 h2 h3 h4 h5 h6"
_KINDS = {
    BlockKind.HEADING: _HEADINGS,
    BlockKind.ITEM: "li dt dd option",
    BlockKind.CELL: "td th",
    BlockKind.CAPTION: "caption figcaption",
    BlockKind.CODE: "pre listing xmp plaintext",
}
_WITH_KIND = " ".join(_KINDS.values())
# Elements that begin a new text: content in an item or cell used for layout is not an item
_PARAGRAPHS = (
    "html body p article section main nav aside header footer blockquote form fieldset address details dialog dl ul ol"
    " menu dir table figure hgroup search"
)
# text, title and desc are SVG elements; the HTML title is the page's
_SAME = (
    "div center legend summary button select optgroup textarea tr tbody thead tfoot colgroup frameset text title desc"
)
# Marks of an element in `marks`: by name, attributes and class, and by its ancestors
MARKS: Final = tuple(1 << bit for bit in range(12))
_WITH_REL = frozenset((LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FORM))
# Names in paths: preformatted elements are all `pre`
_PATH_NAMES = ["pre" if name in ("xmp", "plaintext") else name for name in TAGS]
TAG_LETTERS: Final = "".join(_PATH_NAMES).encode()
COPIED_SINGLY: Final = 40  # bytes; longer pieces are copied at once, which costs as much as this many single bytes


class Element(IntFlag):
    """Properties of elements."""

    BLOCK = auto()  # separates its text from the text before and after it
    SAME = auto()  # its text has the kind of the surrounding block, else it is a paragraph
    HOLDS_P = auto()  # its paragraphs are just its text: `<li><p>`
    UNNAMED = auto()  # omitted in paths
    LEAF = auto()  # its id is a link target, unique to the page
    UNSEEN = auto()  # its text is invisible
    BREAK = auto()  # ends a line
    LINK = auto()
    IMAGE = auto()
    WORDS = auto()  # its text is collected separately from the blocks
    SHEET = auto()
    NOTED = auto()  # has metadata of the page
    PARTS = auto()  # may refer to other documents: see SOURCES
    MARK = auto()  # a landmark
    SECTION = auto()  # a header or footer inside it is not the page's
    BANNER = auto()
    ROOT = auto()  # filled by a script


_PROPERTIES = {
    Element.BLOCK: f"{_WITH_KIND} {_PARAGRAPHS} {_SAME}",
    Element.SAME: _SAME,
    Element.HOLDS_P: "li td th caption figcaption",
    Element.UNNAMED: "html body",
    # not of sections: `section#comments` describes its contents (without, quality/extraction fell by half a point)
    Element.LEAF: f"{_WITH_KIND} p",
    Element.UNSEEN: "head script style template iframe noembed noframes",
    Element.BREAK: "br hr",
    Element.LINK: "a",
    Element.IMAGE: "img",
    Element.WORDS: "title h1 noscript",
    Element.SHEET: "style",
    Element.NOTED: "meta link base html body script svg iframe h1",
    Element.MARK: " ".join(_LANDMARKS),
    Element.SECTION: "article aside main nav section",
    Element.BANNER: "header footer",
    Element.ROOT: "app-root my-app",
}


class LinkSource(NamedTuple):
    """An attribute that refers to documents."""

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
"""In the order in which links are recorded: by element, then by attribute."""
FIRST_SVG_SOURCE: Final = len(_HTML_SOURCES)  # sources from here on apply only if there is an svg element

# Attributes that are read; the first six on any element
SLOT_NAMES: Final = (
    "role", "style", "background", "id", "ng-app", "data-reactroot", "class", "lang", "xml:lang", "href", "rel", "alt",
    "title", "name", "http-equiv", "content", "hreflang", "as", "imagesrcset", "srcdoc",
    *dict.fromkeys(source.attribute for source in SOURCES if source.attribute != "href"),
)  # fmt: skip


def _bytes(values: dict[str, int], names: tuple[str, ...] = TAGS, other: int = NO_RULE) -> bytes:
    return bytes(values.get(name, other) for name in names)


def _properties() -> array[int]:
    properties = array("i", [0]) * len(TAGS)
    for element, names in (*_PROPERTIES.items(), (Element.PARTS, " ".join(source.tag for source in SOURCES))):
        for name in names.split():
            properties[TAG_NUMBERS[name]] |= element
    return properties


def _parts() -> tuple[array[int], array[int]]:
    """(start of each tag's row of sources, the rows, each terminated by -1)."""
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
SOURCES_WITH_REL: Final = bytes(source.kind in _WITH_REL for source in SOURCES)
SOURCE_IS_ANCHOR: Final = bytes(source.kind is LinkKind.ANCHOR for source in SOURCES)
# Lists of URLs, each surrounded by white space or commas
SOURCE_IS_LIST: Final = bytes(
    source.attribute.endswith("srcset") or source.attribute == "archive" for source in SOURCES
)
TAG_ENDS: Final = _ends(_PATH_NAMES)

PLAIN, WHITE, MAY_BE_WHITE, GOING_ON = range(4)
# Role of a UTF-8 byte in Unicode white space (as in str.split): U+0085, 00A0, 1680, 2000-200A, 2028, 2029, 202F, 205F
# and 3000 begin with 0xC2, E1, E2 or E3
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


@lru_cache(maxsize=256)
def is_unfollowed(rel: bytes) -> bool:
    """Whether a rel attribute says that the link should not be followed."""
    return not _NOFOLLOW_RELS.isdisjoint(rel.decode("utf-8", "surrogatepass").lower().split())
