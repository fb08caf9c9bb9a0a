"""Rewrites URLs in HTML, CSS and XML, and removes scripts, to display pages without their servers."""

from __future__ import annotations

import contextlib
import html
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from periplus.document.canonical_xml import without_doctype, xml_of_xml
from periplus.document.headers import refresh_target
from periplus.document.link_rows import of_srcset
from periplus.document.page_rules import SOURCES
from periplus.errors import InvalidUrl
from periplus.model.web import Url
from periplus.urls.canonical import resolve

if TYPE_CHECKING:
    from lxml import etree

# Tags and attributes as recognised by a browser's tokeniser: HTML Living Standard, 13.2.5. Contents of comments,
# scripts and raw text elements are not tags

Change = Callable[[str], str | None]
"""Maps a URL as written to its replacement; None: unchanged."""

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
# attributes that would keep a browser from using a local file
_GUARDS = frozenset({"integrity", "crossorigin", "nonce"})
_CHARSET = re.compile(r"charset\s*=\s*[^\s;\"']+", re.IGNORECASE)
# Content allowed before the first element. An empty comment (`<!-->`) ends it: inserting too early does no harm
_PROLOGUE = re.compile(r"(?:[\s\ufeff]|<!--(?!-?>)(?:(?!--!?>).)*--!?>|<\?[^>]*>|<!(?!--)[^>]*>)*", re.DOTALL)
_HINTS = frozenset({"preconnect", "dns-prefetch"})  # not subject to any policy
# On a value without white space; the second alternative is for lists of values in animations
_SCRIPT_URL = re.compile(r"(?:^[\x00-\x20]*|;)(?:javascript|vbscript):", re.IGNORECASE)
_HTML_NAME, _SVG_NAME, _XLINK_NAME = (
    "{http://www.w3.org/1999/xhtml}",
    "{http://www.w3.org/2000/svg}",
    "{http://www.w3.org/1999/xlink}",
)
_SCRIPTS = tuple(space + name for space in (_HTML_NAME, _SVG_NAME) for name in ("script", "handler", "listener"))
# Elements that open documents or change the page: removed where no policy is possible
_FRAMES = tuple(_HTML_NAME + name for name in ("iframe", "frame", "object", "embed", "applet", "meta", "link"))
_ENTITY_DECLARATION = re.compile(r"""<!ENTITY\s+([^\s&;<>"']{1,100})\s+["']([^"'<>&%]{0,100})["']\s*>""")
_REFERENCE = re.compile(r"&([^\s&;<>\"']{1,100});")
_OUTSIDE = re.compile(r"https?:|//|\\", re.IGNORECASE)  # in a style or attribute: may cause a request to the web


def url_rewriter(url: Url, place: Callable[[Url, str], str]) -> Callable[[str], Change]:
    """A function from a page's base as written to the function that rewrites its URLs.

    place: the replacement for (URL, fragment).
    """

    def with_base(base: str) -> Change:
        start = url
        with contextlib.suppress(InvalidUrl):
            start = resolve(base, url)[0] if base else url

        def change(written: str) -> str | None:
            if not written.strip() or (written.startswith("#") and start == url):
                return None
            try:
                return place(*resolve(written, start))
            except InvalidUrl:  # mailto:, data:, javascript:
                return None

        return change

    return with_base


class _Attribute(NamedTuple):
    name: str  # in lower case
    value: str  # character references resolved
    start: int  # start of the attribute in the text
    end: int


class _Tag(NamedTuple):
    name: str  # in lower case
    attributes: list[_Attribute]
    start: int
    end: int
    text_end: int  # end of the text of a script or style; otherwise equal to end


def rewritten_html(text: str, change: Callable[[str], Change], policy: str = "", *, with_scripts: bool = True) -> str:
    """A page with rewritten URLs, to be stored as UTF-8.

    change: from the page's base as written ('' if none) to the function that rewrites its URLs. The base is removed, as
    is everything that does not work for files: Content-Security-Policy, integrity and crossorigin, and refreshes to the
    web. policy: the new Content-Security-Policy. Without scripts, elements and attributes that run scripts are removed;
    only a policy is a real barrier, because a browser may parse hostile markup differently. Total; O(characters).
    """
    tags = list(_tags(text))
    base = next((value for tag in tags if tag.name == "base" for value in _values(tag, "href")), "")
    changed = change(base)
    start = _PROLOGUE.match(text)
    place = start.end() if start else 0
    meta = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">' if policy else ""
    edits = [(place, place, '<meta charset="utf-8">' + meta)]
    for tag in tags:
        if tag.name == "script" and not with_scripts:
            edits.append((tag.start, tag.text_end, ""))
            continue
        edits += _meta_edits(tag, changed) if tag.name == "meta" else _tag_edits(tag, changed, with_scripts)
        if tag.name == "style" and tag.text_end > tag.end:
            edits.append((tag.end, tag.text_end, rewritten_css(text[tag.end : tag.text_end], changed)))
    return _apply_edits(text, edits)


def rewritten_xml(text: str, change: Callable[[str], Change], policy: str = "") -> bytes:
    """An XML document (SVG, XHTML, a feed) with rewritten URLs and without scripts, in UTF-8.

    change, policy: as in `rewritten_html`; only XHTML can have a policy. In other documents everything that requests
    resources from the web is removed. Serialised from its tree, without document type and processing instructions, so
    that no browser parses it differently. b"" if nothing can be read.
    """
    from lxml import etree  # 0.2 s

    root = _root(text)
    if root is None or root.tag in (*_SCRIPTS, *_FRAMES):
        return b""
    has_policy = bool(policy) and root.tag == f"{_HTML_NAME}html"
    etree.strip_elements(root, *_SCRIPTS, *(() if has_policy else _FRAMES), with_tail=False)
    changed = change(next((element.get("href", "") for element in root.iter(f"{_HTML_NAME}base")), ""))
    for element in root.iter(f"{_HTML_NAME}*", f"{_SVG_NAME}*"):
        _change_element(element, changed, is_guarded=has_policy)
    if has_policy:
        head = root.find(f"{_HTML_NAME}head")
        if head is None:
            head = etree.Element(f"{_HTML_NAME}head")
            root.insert(0, head)
        meta = {"http-equiv": "Content-Security-Policy", "content": policy}
        head.insert(0, etree.Element(f"{_HTML_NAME}meta", meta))
    return etree.tostring(root, encoding="utf-8", xml_declaration=True, with_tail=False)


def _root(text: str) -> etree._Element | None:
    """The root element; an ill-formed document is repaired, since a browser shows everything before an error.

    Short plain-text entities are resolved: SVG files of Adobe Illustrator use them for namespaces.
    """
    from lxml import etree

    declared = dict[str, str](_ENTITY_DECLARATION.findall(text))
    text = _REFERENCE.sub(lambda name: declared.get(name[1], name[0]), text) if declared else text
    data = xml_of_xml(text)
    if data is None:
        parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True)
        with contextlib.suppress(etree.XMLSyntaxError):  # there is no element
            found = etree.fromstring(without_doctype(text).encode("utf-8", "replace"), parser)
            # parsed strictly once more: a browser may treat invalid names differently than this parser
            data = None if found is None else xml_of_xml(etree.tostring(found, encoding="unicode", with_tail=False))
    parser = etree.XMLParser(remove_pis=True, resolve_entities=False, huge_tree=True)
    return None if data is None else etree.fromstring(data, parser)


def _change_element(element: etree._Element, change: Change, *, is_guarded: bool) -> None:
    """Rewrites the URLs of an SVG or XHTML element. is_guarded: a policy prevents requests to the web."""
    name = str(element.tag).rpartition("}")[2]
    for key, value in dict[str, str](element.attrib).items():  # type: ignore[arg-type]  # bytes, say the stubs
        local = key.rpartition("}")[2]
        shown = f"xlink:{local}" if key.startswith(_XLINK_NAME) else local
        new = _new_value(name, _Attribute(shown, value, 0, 0), change) or value
        plain = "".join(value.split())
        if (
            local.startswith("on")
            or local == "http-equiv"
            or (name == "base" and local == "href")
            or _SCRIPT_URL.search(plain)
            or (name == "use" and plain.startswith("data:"))
            or ((not is_guarded or name == "iframe") and name != "a" and _OUTSIDE.search(new))
        ):
            del element.attrib[key]
        else:
            element.set(key, new)
    if name == "style" and element.text:
        sheet = rewritten_css(element.text, change)
        element.text = "" if not is_guarded and _OUTSIDE.search(sheet) else sheet


def rewritten_css(sheet: str, change: Change) -> str:
    """A style sheet with rewritten URLs."""

    def of_match(match: re.Match[str]) -> str:
        written = match[2] or match[3]
        if not written:
            return match[0]
        new = change(_unescape_css(written[1:-1] if written[0] in "\"'" else written))
        if new is None:
            return match[0]
        quoted = '"' + new.replace("\\", "\\\\").replace('"', "%22") + '"'
        return f"{match[1] or ''}url({quoted})" if match[2] else f"@import {quoted}"

    return _SHEET_URL.sub(of_match, sheet)


def _unescape_css(written: str) -> str:
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
    """Parses a tag; None if the text ends within it."""
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


def _tag_edits(tag: _Tag, change: Change, with_scripts: bool) -> Iterator[tuple[int, int, str]]:
    is_changed = False
    is_hint = tag.name == "link" and not _HINTS.isdisjoint(" ".join(_values(tag, "rel")).lower().split())
    for attribute in tag.attributes:
        name, new = attribute.name, _new_value(tag.name, attribute, change)
        if (tag.name, name) == ("iframe", "src") and _OUTSIDE.match(new or ""):
            name = "data-src"  # a browser connects to a frame's server before it checks the policy
        if (is_hint and name == "href") or (not with_scripts and _is_script(attribute)):
            yield attribute.start, attribute.end, ""
        elif new is not None and (new != attribute.value or name != attribute.name):
            is_changed |= (tag.name, name) in _URLS
            yield attribute.start, attribute.end, f'{name}="{html.escape(new)}"'
        elif tag.name == "base" and attribute.name == "href":
            yield attribute.start, attribute.end, ""
    if is_changed:
        yield from ((guard.start, guard.end, "") for guard in tag.attributes if guard.name in _GUARDS)


def _is_script(attribute: _Attribute) -> bool:
    """Whether the attribute contains a script."""
    return attribute.name.startswith("on") or _SCRIPT_URL.match("".join(attribute.value.split())) is not None


def _new_value(tag: str, attribute: _Attribute, change: Change) -> str | None:
    name, value = attribute.name, attribute.value
    if name == "style":
        return rewritten_css(value, change) if "url(" in value.lower() else None
    if name == "background":
        return change(value)
    if (tag, name) not in _URLS:
        # in SVG, on any element
        return change(value) if name == "xlink:href" else None
    return _rewrite_srcset(value, change) if name in _LISTS else change(value)


def _rewrite_srcset(value: str, change: Change) -> str:
    """A srcset with rewritten URLs."""
    parts, place = [], 0
    for written in of_srcset(value):
        start = value.index(written, place)
        new = change(written)
        parts.append(value[place:start] + (written if new is None else new.replace(",", "%2C")))
        place = start + len(written)
    return "".join(parts) + value[place:]


def _meta_edits(tag: _Tag, change: Change) -> Iterator[tuple[int, int, str]]:
    """Rewrites refresh targets, sets the charset to UTF-8, and disables policies."""
    equivalent = next(_values(tag, "http-equiv"), "").strip().lower()
    content = next(_values(tag, "content"), "")
    target = refresh_target(content) if equivalent == "refresh" else ""
    other = change(target) if target else None
    for attribute in tag.attributes:
        new: str | None = None
        if attribute.name == "charset":
            new = "utf-8"
        elif attribute.name == "http-equiv" and (
            equivalent == "content-security-policy" or (other or "").startswith(("http:", "https:"))
        ):
            new = "x-" + equivalent
        elif attribute.name == "content" and equivalent == "content-type":
            new = _CHARSET.sub("charset=utf-8", attribute.value)
        elif attribute.name == "content" and other is not None:
            new = f"{content.partition(';')[0].partition(',')[0]}; url={other}"
        if new is not None:
            yield attribute.start, attribute.end, f'{attribute.name}="{html.escape(new)}"'


def _apply_edits(text: str, edits: list[tuple[int, int, str]]) -> str:
    parts, place = [], 0
    for start, end, new in sorted(edits):
        parts += [text[place:start], new]
        place = end
    return "".join([*parts, text[place:]])
