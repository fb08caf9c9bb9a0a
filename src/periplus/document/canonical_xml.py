"""Converts documents to well-formed XML that any tool can read; removes entity declarations and document types."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from html.entities import html5

from periplus.document.tree import ATTRIBUTES, COMMENT, TAGS, TEXT, PageTree, parse

# Document type declarations are not read: nothing in them is fetched, and no entities are expanded, nested or not. HTML
# entities become their characters, as in old XHTML (`&nbsp;`); others stay as text (`&chapter1;`).

# An unclosed construct extends to the end; searching again from each start would take quadratic time
_ENTITY_PLACES = re.compile(r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|&([^\s&;<>#]+);", re.S)
_XML_ENTITIES = frozenset({"amp", "lt", "gt", "quot", "apos"})
_BEFORE_DOCTYPE = re.compile(r"\s*(?:(?:<!--.*?-->|<\?.*?\?>)\s*)*+(<!DOCTYPE)\s", re.S | re.I)
_DOCTYPE_PARTS = re.compile(r"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|\"[^\"]*\"|'[^']*'|[\[\]>]", re.S)
_DECLARATION = re.compile(r"\s*<\?xml\s.*?\?>", re.S)
DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'
XHTML = "http://www.w3.org/1999/xhtml"
_XLINK = ' xmlns:xlink="http://www.w3.org/1999/xlink"'
_SPACES = (XHTML, "http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML")  # by their numbers in a tree
_XML_NAMES = frozenset({"xml:lang", "xml:space"})
_XLINK_NAMES = frozenset(f"xlink:{name}" for name in ("actuate", "arcrole", "href", "role", "show", "title", "type"))
_CACHED_NAMES = 4096  # a page has tens; a hostile page may have any number
_NAME_STARTS = (
    r"A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f"
    r"\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NOT_AT_START = re.compile(f"^[^{_NAME_STARTS}]", re.S)
_NOT_IN_NAME = re.compile(f"[^{_NAME_STARTS}.0-9\xb7\u0300-\u036f\u203f\u2040-]")
# XML 1.0, production 2, plus the form feed
_NO_CHARACTER = re.compile("[\x00-\x08\x0b\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_HALVES = re.compile("[\ud800-\udfff]")
_LEGAL_BYTES = bytes({9, 10, 13, *range(32, 256)})
_NO_CHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")


def without_doctype(text: str) -> str:
    """Removes the XML declaration, the document type and its entities. Total; linear time."""
    text = text.removeprefix("\ufeff")
    if (doctype := _BEFORE_DOCTYPE.match(text)) is not None:
        text = text[: doctype.start(1)] + text[_end_of_doctype(text, doctype.end()) :]
    if (declaration := _DECLARATION.match(text)) is not None:
        text = text[declaration.end() :]
    return _ENTITY_PLACES.sub(_plain, text.lstrip()) if "&" in text else text.lstrip()


def _end_of_doctype(text: str, place: int) -> int:
    """The end of a document type declaration: its `>`, outside quotes, comments and the internal subset."""
    inside = False
    for part in _DOCTYPE_PARTS.finditer(text, place):
        if part[0] in "[]":
            inside = part[0] == "["
        elif part[0] == ">" and not inside:
            return part.end()
    return len(text)


def _plain(place: re.Match[str]) -> str:
    name = place[1]
    if not name or name in _XML_ENTITIES:
        return place[0]
    char = html5.get(name + ";")
    return char if char and char not in "&<" else f"&amp;{name};"


# HTML becomes XHTML: the DOM tree that a browser builds, in UTF-8, well-formed and namespace-well-formed for any text.
# Characters that XML cannot represent are changed as little as possible: an invalid character in a name becomes U and
# six hexadecimal digits (`g:plusone` is `gU00003Aplusone`), a control character U+FFFD, a form feed a space, and two
# hyphens in a comment are separated by a space. `xmlns` attributes of HTML and the doctype are dropped. Source: HTML
# Living Standard, 13.2.9 (coercing an HTML DOM into an infoset). XML is kept, except for its document type (above).


def xml_of_html(text: str) -> bytes:
    """Parses HTML as a browser does and writes it as XHTML. Total."""
    try:
        page = text.encode()
    except UnicodeEncodeError:  # lone surrogate, which no decoder produces
        page = _HALVES.sub("\ufffd", text).encode()
    return DECLARATION + _legal("".join(_serialise(parse(page)))) + b"\n"


def xml_of_xml(text: str) -> bytes | None:
    """A well-formed XML document, unchanged, in UTF-8; None if it is not well-formed.

    Nothing is fetched or expanded.
    """
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, huge_tree=True)
    try:
        root = etree.fromstring(without_doctype(text).encode("utf-8", "surrogatepass"), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    return DECLARATION + etree.tostring(root.getroottree(), encoding="UTF-8", xml_declaration=False) + b"\n"


def _legal(written: str) -> bytes:
    """The text in UTF-8 without characters invalid in XML; checked once for the whole text, since pages hardly have
    any.
    """
    try:
        data = written.encode()
        if not data.translate(None, _LEGAL_BYTES) and not any(sign in data for sign in _NO_CHARACTERS):
            return data
    except UnicodeEncodeError:  # lone surrogate
        pass
    return legal_text(written).encode()


def legal_text(text: str) -> str:
    """The text with characters invalid in XML replaced."""
    return _NO_CHARACTER.sub("\ufffd", text.replace("\f", " "))


@lru_cache(_CACHED_NAMES)
def legal_name(name: str) -> str:
    """A name without colon, valid in XML.

    Distinct HTML names stay distinct: the parser leaves no upper-case U in them.
    """
    return _NOT_AT_START.sub(_code_point, _NOT_IN_NAME.sub(_code_point, name)) or "U00005F"


def _code_point(sign: re.Match[str]) -> str:
    return f"U{ord(sign[0]):06X}"


def _escape_text(text: str) -> str:
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if ">" in text:
        text = text.replace(">", "&gt;")
    return text.replace("\r", "&#13;") if "\r" in text else text


def _quote_value(value: str) -> str:
    value = _escape_text(value)
    if '"' in value:
        value = value.replace('"', "&quot;")
    if "\n" in value:
        value = value.replace("\n", "&#10;")
    return value.replace("\t", "&#9;") if "\t" in value else value


@lru_cache(_CACHED_NAMES)
def _attribute_start(name: str) -> str:
    """The text before an attribute's value; '' if the attribute is dropped."""
    if name == "xmlns":
        return ""
    return f' {name if name in _XML_NAMES else legal_name(name)}="'


@lru_cache(_CACHED_NAMES)
def _foreign_attribute_start(name: str) -> str:
    """As `_attribute_start`, within SVG and MathML, where `xlink:` is declared."""
    if name == "xmlns:xlink":
        return ""
    return f' {name}="' if name in _XLINK_NAMES else _attribute_start(name)


def _serialise(tree: PageTree) -> list[str]:
    """Serialises the nodes of a tree as XHTML, in document order."""
    chars = str(tree.chars, "latin-1")  # one character per byte
    tags, firsts, nexts, parents = (
        memoryview(tree.tags).tolist(),
        memoryview(tree.firsts).tolist(),
        memoryview(tree.nexts).tolist(),
        memoryview(tree.parents).tolist(),
    )
    starts, ends = memoryview(tree.starts).tolist(), memoryview(tree.ends).tolist()
    names = [legal_name(name) for name in (*TAGS, *tree.own_names)]
    attributes_of = _attributes(tree, chars)
    pieces: list[str] = []
    add, node = pieces.append, 0
    while True:
        tag = tags[node]
        if tag > 0:
            add(f"<{names[tag]}{attributes_of(node)}>")
        elif tag == TEXT:
            add(_escape_text(_text(chars[starts[node] : ends[node]])))
        elif tag == COMMENT:
            data = _text(chars[starts[node] : ends[node]]).replace("--", "- -").replace("--", "- -")
            add(f"<!--{data}{' ' if data.endswith('-') else ''}-->")
        if firsts[node] >= 0:
            node = firsts[node]
            continue
        while True:
            if tags[node] > 0:
                add(f"</{names[tags[node]]}>")
            if nexts[node] >= 0:
                break
            node = parents[node]
            if node <= 0:
                return pieces
        node = nexts[node]


def _text(letters: str) -> str:
    """Decodes text that was read as one character per byte."""
    return letters if letters.isascii() else letters.encode("latin-1").decode()


def _attributes(tree: PageTree, chars: str) -> Callable[[int], str]:
    """A function that serialises an element's attributes, and its namespace if it differs from its parent's."""
    parents, spaces = memoryview(tree.parents).tolist(), memoryview(tree.spaces).tolist()
    firsts, counts, numbers = (
        memoryview(tree.attributes).tolist(),
        memoryview(tree.attribute_counts).tolist(),
        memoryview(tree.attribute_names).tolist(),
    )
    starts, ends = memoryview(tree.value_starts).tolist(), memoryview(tree.value_ends).tolist()
    names = (*ATTRIBUTES, *tree.own_attribute_names)
    plain = [_attribute_start(name) for name in names]
    foreign = [_foreign_attribute_start(name) for name in names] if any(spaces) else plain

    def attributes_of(node: int) -> str:
        space, above = spaces[node], parents[node]
        written = ""
        if not above or space != spaces[above]:
            written = f' xmlns="{_SPACES[space]}"' + (_XLINK if space else "")
        before = foreign if space else plain
        for row in range(firsts[node], firsts[node] + counts[node]):
            if start := before[numbers[row]]:
                written += f'{start}{_quote_value(_text(chars[starts[row] : ends[row]]))}"'
        return written

    return attributes_of
