"""Numbers of element and attribute names, and their properties in the HTML standard's tree construction.

Element 0 is the document. A name has one number regardless of case; names that SVG writes with capitals have a second
one (`foreignobject`, `foreignObject`), given by `SVG_TAGS`. Source: HTML Living Standard, 13.2.4.2 (stack of open
elements), 13.2.5 and 13.2.6, as of 2026.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Final

_SVG_ELEMENTS = (
    "altGlyph altGlyphDef altGlyphItem animateColor animateMotion animateTransform clipPath feBlend feColorMatrix"
    " feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow"
    " feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feImage feMerge feMergeNode feMorphology feOffset"
    " fePointLight feSpecularLighting feSpotLight feTile feTurbulence foreignObject glyphRef linearGradient"
    " radialGradient textPath"
)
_SVG_ATTRIBUTES = (
    "attributeName attributeType baseFrequency baseProfile calcMode clipPathUnits diffuseConstant edgeMode filterUnits"
    " glyphRef gradientTransform gradientUnits kernelMatrix kernelUnitLength keyPoints keySplines keyTimes lengthAdjust"
    " limitingConeAngle markerHeight markerUnits markerWidth maskContentUnits maskUnits numOctaves pathLength"
    " patternContentUnits patternTransform patternUnits pointsAtX pointsAtY pointsAtZ preserveAlpha"
    " preserveAspectRatio primitiveUnits refX refY repeatCount repeatDur requiredExtensions requiredFeatures"
    " specularConstant specularExponent spreadMethod startOffset stdDeviation stitchTiles surfaceScale systemLanguage"
    " tableValues targetX targetY textLength viewBox viewTarget xChannelSelector yChannelSelector zoomAndPan"
)
_BLOCKS = (
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer header hgroup"
    " main menu nav ol p search section summary ul"
)
_HEADINGS = "h1 h2 h3 h4 h5 h6"
_FORMATTING = "b big code em font i s small strike strong tt u"
_TABLE_PARTS = "caption col colgroup tbody td tfoot th thead tr"
_IN_HEAD = "base basefont bgsound link meta noframes script style template title"
_TEXT_POINTS = ("mi", "mo", "mn", "ms", "mtext")

# Groups of start tags "in body" (13.2.6.4.7), by number; 0: any other
START_GROUPS: Final[Mapping[str, str]] = {
    "other": "",
    "block": _BLOCKS,
    "heading": _HEADINGS,
    "pre": "pre listing",
    "form": "form",
    "li": "li",
    "dd": "dd dt",
    "plaintext": "plaintext",
    "button": "button",
    "a": "a",
    "formatting": _FORMATTING,
    "nobr": "nobr",
    "object": "applet marquee object",
    "table": "table",
    "void": "area br embed image img keygen wbr",
    "input": "input",
    "param": "param source track",
    "hr": "hr",
    "textarea": "textarea",
    "xmp": "xmp",
    "iframe": "iframe",
    "noembed": "noembed",
    "select": "select",
    "option": "option",
    "optgroup": "optgroup",
    "rb": "rb rtc",
    "rp": "rp rt",
    "math": "math",
    "svg": "svg",
    "part": f"{_TABLE_PARTS} frame head",
    "html": "html",
    "body": "body",
    "frameset": "frameset",
    "in_head": _IN_HEAD,
}
# Groups of end tags
END_GROUPS: Final[Mapping[str, str]] = {
    "other": "",
    "block": f"{_BLOCKS.replace(' p ', ' ')} button listing pre select",
    "form": "form",
    "p": "p",
    "li": "li",
    "dd": "dd dt",
    "heading": _HEADINGS,
    "formatting": f"a nobr {_FORMATTING}",
    "object": "applet marquee object",
    "br": "br",
    "body": "body",
    "html": "html",
    "template": "template",
}
# Properties of open elements, one bit each
FLAGS: Final[Mapping[str, str]] = {
    "special": f"{_BLOCKS.replace(' dialog ', ' ')} {_HEADINGS} {_TABLE_PARTS} {_IN_HEAD}"
    " applet area body br button dd dt embed form frame frameset head hr html iframe img input keygen li listing"
    " marquee noembed noscript object param plaintext pre select source table textarea track wbr xmp",
    "scope": "applet caption html table td th marquee object select template",
    "list": "ol ul",
    "button": "button",
    "table_scope": "html table template",
    "implied": "dd dt li optgroup option p rb rp rt rtc",
    "thorough": "dd dt li optgroup option p rb rp rt rtc caption colgroup tbody td tfoot th thead tr",
    "heading": _HEADINGS,
    "body_context": "tbody tfoot thead template html",
    "row_context": "tr template html",
    "fostering": "table tbody tfoot thead tr",
    "loose": "address div p",  # skipped when a list item is closed, although special
    "raw": "title textarea style xmp iframe noembed noframes script plaintext",  # content is raw text
    "switch": "svg math",
    # start tags that end SVG or MathML
    "breakout": f"b big blockquote body br center code dd div dl dt em embed {_HEADINGS} head hr i img li listing menu"
    " meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var",
}
_MORE_ELEMENTS = (
    "abbr acronym audio bdi bdo canvas cite data datalist del desc dfn font g ins kbd label legend map mark meter"
    " mglyph malignmark annotation-xml noscript output path picture polygon progress q ruby samp selectedcontent slot"
    " span sub sup symbol text time tspan use var video bgsound app-root my-app"
)
_MORE_ATTRIBUTES = (
    "href class id src name content rel type title alt lang style value width height target role property http-equiv"
    " charset srcset sizes data data-src data-srcset data-original data-lazy-src imagesrcset imagesizes hreflang media"
    " action method formaction poster cite longdesc background archive manifest srcdoc color face size encoding public"
    " system colspan rowspan align valign border cellpadding cellspacing scope headers for tabindex hidden disabled"
    " checked selected placeholder download loading decoding async defer crossorigin integrity referrerpolicy nonce"
    " itemprop itemscope itemtype itemid about typeof datetime start reversed open onclick onload label language usemap"
    " ismap shape coords code codebase classid profile dir translate aria-label aria-hidden aria-labelledby"
    " aria-describedby aria-expanded aria-controls aria-current data-toggle data-target data-id fill d xmlns"
    " xmlns:xlink xlink:href xlink:title xlink:type xml:lang xml:space definitionurl definitionURL transform"
    " points stroke bgcolor allow frameborder clear nowrap rules summary accept-charset autocomplete required"
    " minlength maxlength pattern max min step rows cols wrap list multiple readonly form kind default preload controls"
    " autoplay loop muted ping noshade as ng-app data-reactroot"
)
DEEPEST: Final = 512  # open elements, as in Chromium and Firefox
ROOM: Final = 4 * DEEPEST  # size of the stack and the list of formatting elements: some are added without a tag
_EVERY_ELEMENT = " ".join([*START_GROUPS.values(), *FLAGS.values(), *_TEXT_POINTS, _MORE_ELEMENTS])
BITS: Final[Mapping[str, int]] = {name: 1 << place for place, name in enumerate(FLAGS)}
FOREIGN: Final = 1 << len(FLAGS)  # an SVG or MathML element
TEXT_POINT: Final = FOREIGN << 1  # a MathML text integration point
HTML_POINT: Final = FOREIGN << 2  # an HTML integration point in SVG or MathML
# 13.2.6.4.1: prefixes of public identifiers that trigger quirks mode
_QUIRKS = (
    "+//silmaril//dtd html pro v0r11 19970101//",
    "-//as//dtd html 3.0 aswedit + extensions//",
    "-//advasoft ltd//dtd html 3.0 aswedit + extensions//",
    *(f"-//ietf//dtd html {kind}//" for kind in (
        "2.0 level 1", "2.0 level 2", "2.0 strict level 1", "2.0 strict level 2", "2.0 strict", "2.0", "2.1e", "3.0",
        "3.2 final", "3.2", "3", "level 0", "level 1", "level 2", "level 3", "strict level 0", "strict level 1",
        "strict level 2", "strict level 3", "strict",
    )),
    "-//ietf//dtd html//",
    "-//metrius//dtd metrius presentational//",
    *(f"-//microsoft//dtd internet explorer {kind}//" for kind in (
        "2.0 html strict", "2.0 html", "2.0 tables", "3.0 html strict", "3.0 html", "3.0 tables",
    )),
    "-//netscape comm. corp.//dtd html//",
    "-//netscape comm. corp.//dtd strict html//",
    "-//o'reilly and associates//dtd html 2.0//",
    "-//o'reilly and associates//dtd html extended 1.0//",
    "-//o'reilly and associates//dtd html extended relaxed 1.0//",
    "-//softquad software//dtd hotmetal pro 6.0::19990601::extensions to html 4.0//",
    "-//softquad//dtd hotmetal pro 4.0::19971010::extensions to html 4.0//",
    "-//spyglass//dtd html 2.0 extended//",
    "-//sq//dtd html 2.0 hotmetal + extensions//",
    "-//sun microsystems corp.//dtd hotjava html//",
    "-//sun microsystems corp.//dtd hotjava strict html//",
    *(f"-//w3c//dtd html {kind}//" for kind in (
        "3 1995-03-24", "3.2 draft", "3.2 final", "3.2", "3.2s draft", "4.0 frameset", "4.0 transitional",
        "experimental 19960712", "experimental 970421",
    )),
    "-//w3c//dtd w3 html//",
    "-//w3o//dtd w3 html 3.0//",
    "-//webtechs//dtd mozilla html 2.0//",
    "-//webtechs//dtd mozilla html//",
)  # fmt: skip
_QUIRKS_WHOLE = ("-//w3o//dtd w3 html strict 3.0//en//", "-/w3c/dtd html 4.0 transitional/en", "html")
_QUIRKS_UNLESS_SYSTEM = ("-//w3c//dtd html 4.01 frameset//", "-//w3c//dtd html 4.01 transitional//")
_QUIRKS_SYSTEM = "http://www.ibm.com/data/dtd/v11/ibmxhtml1-transitional.dtd"


def _distinct(names: str, more: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*names.split(), *more.lower().split(), *more.split()]))


TAGS: Final = ("", *_distinct(_EVERY_ELEMENT, _SVG_ELEMENTS))
ATTRIBUTES: Final = _distinct(_MORE_ATTRIBUTES, _SVG_ATTRIBUTES)
TAG_NUMBERS: Final[Mapping[str, int]] = {name: number for number, name in enumerate(TAGS)}
ATTRIBUTE_NUMBERS: Final[Mapping[str, int]] = {name: number for number, name in enumerate(ATTRIBUTES)}


def numbers_of(names: str) -> list[int]:
    """The numbers of elements."""
    return [TAG_NUMBERS[name] for name in names.split()]


def bits_of(names: str) -> list[int]:
    """The bits of flags."""
    return [BITS[name] for name in names.split()]


def _groups(groups: Mapping[str, str]) -> array[int]:
    numbers = array("i", [0]) * len(TAGS)
    for number, names in enumerate(groups.values()):
        for name in names.split():
            numbers[TAG_NUMBERS[name]] = number
    return numbers


def _flags() -> array[int]:
    numbers = array("i", [0]) * len(TAGS)
    for flag, names in FLAGS.items():
        for name in names.split():
            numbers[TAG_NUMBERS[name]] |= BITS[flag]
    return numbers


def _foreign_flags(space: int) -> array[int]:
    """Flags of SVG (1) or MathML (2) elements, by lower-case name."""
    scope = BITS["special"] | BITS["scope"]
    numbers = array("i", [FOREIGN]) * len(TAGS)
    for name in ("foreignobject", "desc", "title") if space == 1 else ():
        numbers[TAG_NUMBERS[name]] |= scope | HTML_POINT
    for name in _TEXT_POINTS if space == 2 else ():
        numbers[TAG_NUMBERS[name]] |= scope | TEXT_POINT
    if space == 2:
        numbers[TAG_NUMBERS["annotation-xml"]] |= scope
    return numbers


def _adjustments(numbers: Mapping[str, int], names: str) -> array[int]:
    """Maps each number to that of the name as SVG or MathML writes it."""
    others = array("i", range(len(numbers)))
    for name in names.split():
        others[numbers[name.lower()]] = numbers[name]
    return others


START_OF: Final = _groups(START_GROUPS)
END_OF: Final = _groups(END_GROUPS)
FLAGS_OF: Final = _flags()
SVG_FLAGS_OF: Final = _foreign_flags(1)
MATH_FLAGS_OF: Final = _foreign_flags(2)
SVG_TAGS: Final = _adjustments(TAG_NUMBERS, _SVG_ELEMENTS)
SVG_NAMES: Final = _adjustments(ATTRIBUTE_NUMBERS, _SVG_ATTRIBUTES)
MATH_NAMES: Final = _adjustments(ATTRIBUTE_NUMBERS, "definitionURL")


def is_quirky(name: str, public: str | None, system: str | None) -> bool:
    """Whether a doctype triggers quirks mode, in which a table does not end a paragraph."""
    public_id = (public or "").lower()
    return (
        name != "html"
        or public_id in _QUIRKS_WHOLE
        or public_id.startswith(_QUIRKS)
        or (system or "").lower() == _QUIRKS_SYSTEM
        or (system is None and public_id.startswith(_QUIRKS_UNLESS_SYSTEM))
    )
