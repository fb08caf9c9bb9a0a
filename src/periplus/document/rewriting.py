"""URLs in HTML and CSS changed where they stand; all else of a page stays as it was written."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from periplus.document.headers import refresh_target
from periplus.document.link_rows import of_srcset
from periplus.document.page_rules import SOURCES

# Tags and their attributes as a browser's tokenizer finds them: HTML Living Standard, 13.2.5. What stands in comments,
# scripts and elements of text alone is no tag.

Change = Callable[[str], str | None]
"""From a URL as written to what stands in its place; None: it stays."""

_OPEN = re.compile(r"<(?:(!--)|([/!?])|([a-zA-Z][^\s/>]*))")
_COMMENT_END = re.compile(r"--!?>")
_ATTRIBUTE = re.compile(r"""[\s/]*(?:(>)|([^\s/>][^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"'][^\s>]*)?))?)""")
_TEXT_ALONE = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
_SHEET_URL = re.compile(
    r"""/\*.*?(?:\*/|\Z)|(@import\s+)?url\(\s*("[^"\n]*"|'[^'\n]*'|(?:\\[0-9a-f]{1,6}\s?|\\.|[^\s"'()\\])+)\s*\)"""
    r"""|@import\s*("[^"\n]*"|'[^'\n]*')"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""",
    re.DOTALL | re.IGNORECASE,
)
_SHEET_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_LISTS = frozenset(source.attribute for source in SOURCES if source.attribute.endswith("srcset")) | {"imagesrcset"}
_URLS = frozenset((source.tag, source.attribute) for source in SOURCES) | {("link", "href"), ("link", "imagesrcset")}
# of a part that is a file now: what would keep a browser from taking it
_GUARDS = frozenset({"integrity", "crossorigin", "nonce"})
_CHARSET = re.compile(r"charset\s*=\s*[^\s;\"']+", re.IGNORECASE)
_XML_DECLARATION = re.compile(r"""(<\?xml\s[^>]*?encoding\s*=\s*)(?:"[^">]*"|'[^'>]*')""")


class _Attribute(NamedTuple):
    name: str  # in lower case
    value: str  # without references
    start: int  # of the whole attribute in the text
    end: int


class _Tag(NamedTuple):
    name: str  # in lower case
    attributes: list[_Attribute]
    start: int
    end: int
    text_end: int  # where the text of a script or style ends; else as end


def rewritten_html(text: str, change: Callable[[str], Change], *, is_xml: bool = False) -> str:
    """A page with other URLs, as it is to be written in UTF-8.

    change: from the page's base as written (empty: it has none) to what changes its URLs. The base itself goes, and
    what a file cannot obey: a Content-Security-Policy, integrity and crossorigin. is_xml: it is XHTML, not HTML. Total;
    O(characters).
    """
    tags = list(_tags(text))
    base = next((value for tag in tags if tag.name == "base" for value in _values(tag, "href")), "")
    changed = change(base)
    edits: list[tuple[int, int, str]] = []
    has_charset = False
    for tag in tags:
        if tag.name == "meta":
            edits += _meta_edits(tag, changed)
            has_charset |= any(
                attribute.name == "charset" or _CHARSET.search(attribute.value) for attribute in tag.attributes
            )
        else:
            edits += _tag_edits(tag, changed)
        if tag.name == "style" and tag.text_end > tag.end:
            edits.append((tag.end, tag.text_end, rewritten_css(text[tag.end : tag.text_end], changed)))
    if not has_charset and not is_xml:
        place = next(
            (tag.end for tag in tags if tag.name == "head"), next((tag.end for tag in tags if tag.name == "html"), 0)
        )
        edits.append((place, place, '<meta charset="utf-8">'))
    return _XML_DECLARATION.sub(r'\1"utf-8"', _edited(text, edits), count=1)


def rewritten_css(sheet: str, change: Change) -> str:
    """A style sheet with other URLs."""

    def of_match(match: re.Match[str]) -> str:
        written = match[2] or match[3]
        if not written:
            return match[0]
        new = change(_plain(written[1:-1] if written[0] in "\"'" else written))
        if new is None:
            return match[0]
        quoted = '"' + new.replace("\\", "\\\\").replace('"', "%22") + '"'
        return f"{match[1] or ''}url({quoted})" if match[2] else f"@import {quoted}"

    return _SHEET_URL.sub(of_match, sheet)


def _plain(written: str) -> str:
    def sign(match: re.Match[str]) -> str:
        code = int(match[1], 16) if match[1] else 0
        return match[2] or (chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd")

    return _SHEET_ESCAPE.sub(sign, written) if "\\" in written else written


def _tags(text: str) -> Iterator[_Tag]:
    place = 0
    while match := _OPEN.search(text, place):
        comment, other, name = match.groups()
        if comment:
            end = _COMMENT_END.search(text, match.end() - 2)
            place = end.end() if end else len(text)
        elif other:
            place = text.find(">", match.end()) + 1 or len(text)
        else:
            tag = _tag(text, name.lower(), match.start(), match.end())
            if tag is None:
                return
            yield tag
            place = tag.text_end


def _tag(text: str, name: str, start: int, place: int) -> _Tag | None:
    """None: the text ends within it."""
    attributes: list[_Attribute] = []
    while match := _ATTRIBUTE.match(text, place):
        closes, key, *values = match.groups()
        place = match.end()
        if closes:
            end = place
            if name in _TEXT_ALONE and text[place - 2 : place] != "/>":
                close = re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE).search(text, place)
                end = close.start() if close else len(text)
            return _Tag(name, attributes, start, place, end)
        value = next((value for value in values if value is not None), "")
        attributes.append(_Attribute(key.lower(), html.unescape(value), match.start(2), match.end()))
    return None


def _values(tag: _Tag, name: str) -> Iterator[str]:
    return (attribute.value for attribute in tag.attributes if attribute.name == name)


def _tag_edits(tag: _Tag, change: Change) -> Iterator[tuple[int, int, str]]:
    is_changed = False
    for attribute in tag.attributes:
        new = _new_value(tag.name, attribute, change)
        if new is not None and new != attribute.value:
            is_changed |= (tag.name, attribute.name) in _URLS
            yield attribute.start, attribute.end, f'{attribute.name}="{html.escape(new)}"'
        elif tag.name == "base" and attribute.name == "href":
            yield attribute.start, attribute.end, ""
    if is_changed:
        yield from ((one.start, one.end, "") for one in tag.attributes if one.name in _GUARDS)


def _new_value(tag: str, attribute: _Attribute, change: Change) -> str | None:
    name, value = attribute.name, attribute.value
    if name == "style":
        return rewritten_css(value, change) if "url(" in value.lower() else None
    if name == "background":
        return change(value)
    if (tag, name) not in _URLS:
        # xlink:href and href of any element in SVG
        return change(value) if name == "xlink:href" else None
    return _with_list(value, change) if name in _LISTS else change(value)


def _with_list(value: str, change: Change) -> str:
    """A srcset with other URLs."""
    parts, place = [], 0
    for written in of_srcset(value):
        start = value.index(written, place)
        new = change(written)
        parts.append(value[place:start] + (written if new is None else new.replace(",", "%2C")))
        place = start + len(written)
    return "".join(parts) + value[place:]


def _meta_edits(tag: _Tag, change: Change) -> Iterator[tuple[int, int, str]]:
    """A refresh leads elsewhere, the charset is UTF-8, a policy for the web is none for files."""
    equivalent = next(_values(tag, "http-equiv"), "").strip().lower()
    for attribute in tag.attributes:
        new: str | None = None
        if attribute.name == "charset":
            new = "utf-8"
        elif attribute.name == "http-equiv" and equivalent == "content-security-policy":
            new = "x-" + equivalent
        elif attribute.name == "content" and equivalent == "content-type":
            new = _CHARSET.sub("charset=utf-8", attribute.value)
        elif attribute.name == "content" and equivalent == "refresh" and (target := refresh_target(attribute.value)):
            other = change(target)
            new = None if other is None else f"{attribute.value.partition(';')[0].partition(',')[0]}; url={other}"
        if new is not None:
            yield attribute.start, attribute.end, f'{attribute.name}="{html.escape(new)}"'


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    parts, place = [], 0
    for start, end, new in sorted(edits):
        parts += [text[place:start], new]
        place = end
    return "".join([*parts, text[place:]])
