"""Converts documents in zip archives to HTML: DOCX, OpenDocument texts, books in EPUB."""

from __future__ import annotations

import io
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple
from urllib.parse import unquote

from lxml import etree

from periplus.document.canonical_xml import without_doctype
from periplus.document.conversion import HTML_CHARS, Conversion, escape, is_absolute, page
from periplus.document.feed import attribute, child, local, parse_xml
from periplus_formats import rtf

MEMBER_BYTES = 33_554_432  # decompressed, per file: as much as a body may have
TOTAL_BYTES = 67_108_864  # decompressed, per archive
_READ_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    LookupError,
    OverflowError,
)
_DOCX_PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
_HEADING_STYLE = re.compile(r"heading\s*([1-6])$", re.I)
_FIELD_LINK = re.compile(r'\s*HYPERLINK\s+"([^"]+)"', re.I)
_SPACES_MOST = 100  # of one `text:s`, which has a repeat count
CHAPTERS_MOST = 2_000


class Archive:
    """The files of an archive by name.

    Damaged, encrypted, missing or oversized files read as empty, with an entry in faults.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive, self._room = archive, TOTAL_BYTES
        self.faults: list[str] = []

    def bytes_of(self, name: str) -> bytes:
        most = min(MEMBER_BYTES, self._room)
        try:
            with self._archive.open(name) as member:
                data = member.read(most + 1)
        except KeyError:
            return b""
        except _READ_ERRORS as error:
            self.faults.append(f"damaged: {name}: {error}"[:100])
            return b""
        if len(data) > most:
            self.faults.append(f"long: {name} is larger than {most} bytes")
            data = data[:most]
        self._room -= len(data)
        return data

    def tree(self, name: str) -> etree._Element | None:
        """The root of an XML file; of a damaged file as much as can be read. No entity is expanded."""
        return parse_xml(self.bytes_of(name))


def _text_of(root: etree._Element | None, name: str) -> str:
    """The text of the first element with this local name."""
    element = next(root.iter("{*}" + name), None) if root is not None else None
    return (element.text or "").strip() if element is not None else ""


class ElementMarkup(NamedTuple):
    """The HTML before and after an element's contents."""

    before: str = ""
    after: str = ""
    text: bool = False  # whether its own text is included, not only that of its descendants
    skip: bool = False  # whether its contents are skipped


SKIP = ElementMarkup(skip=True)
Rule = ElementMarkup | Callable[[etree._Element], ElementMarkup]


def tree_html(root: etree._Element, rules: Mapping[str, Rule]) -> str:
    """The HTML of the subtree. rules: by local name; elements without a rule are transparent."""
    pieces: list[str] = []
    texts: list[bool] = []
    skipped: etree._Element | None = None
    room = HTML_CHARS
    ends: list[str] = []
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if skipped is not None:
            if event == "end" and element is skipped:
                skipped = None
                _tail(pieces, texts, element)
            continue
        if event == "start":
            rule = rules.get(local(element))
            markup = rule(element) if callable(rule) else rule or ElementMarkup(text=bool(texts) and texts[-1])
            pieces.append(markup.before)
            if markup.skip:
                pieces.append(markup.after)
                skipped = element
                continue
            if markup.text and element.text:
                pieces.append(escape(element.text, quote=False))
            texts.append(markup.text)
            ends.append(markup.after)
        else:
            pieces.append(ends.pop())
            texts.pop()
            _tail(pieces, texts, element)
        room -= len(pieces[-1])
        if room < 0:
            break
    return "".join(pieces)


def _tail(pieces: list[str], texts: list[bool], element: etree._Element) -> None:
    if texts and texts[-1] and element.tail:
        pieces.append(escape(element.tail, quote=False))


def docx(body: bytes) -> Conversion:
    """Total, as the functions below: other input has a fault."""
    return _convert(body, _docx)


def odt(body: bytes) -> Conversion:
    return _convert(body, _odt)


def epub(body: bytes) -> Conversion:
    return _convert(body, _epub)


def _convert(body: bytes, read: Callable[[Archive], tuple[Sequence[str], etree._Element | None]]) -> Conversion:
    """Converts a document in an archive. Total: other input has a fault.

    read: returns its contents as HTML, and the root of the element with title, language and description.
    """
    try:
        opened = zipfile.ZipFile(io.BytesIO(body))
    except _READ_ERRORS:
        return Conversion(page(()), "damaged: no zip archive")
    with opened:
        archive = Archive(opened)
        parts, properties = read(archive)
        facts = {name: _text_of(properties, name) for name in ("title", "language", "description")}
        return Conversion(page(parts, **facts), "; ".join(archive.faults))


# DOCX. Source: ECMA-376, part 1, 17 (WordprocessingML).


def _docx(archive: Archive) -> tuple[list[str], etree._Element | None]:
    headings = _heading_styles(archive.tree("word/styles.xml"))
    parts = []
    for name in _DOCX_PARTS:
        root = archive.tree(name)
        if root is not None:
            relations = archive.tree(f"word/_rels/{name.rpartition('/')[2]}.rels")
            parts.append(tree_html(root, _docx_rules(headings, _targets(relations))))
    if not parts and not archive.faults:
        archive.faults.append("damaged: no word/document.xml")
    return parts, archive.tree("docProps/core.xml")


def _heading_styles(styles: etree._Element | None) -> dict[str, int]:
    """Heading levels by style id; -1 for styles of list items."""
    levels: dict[str, int] = {}
    for style in styles if styles is not None else ():
        name = child(style, "name")
        label = attribute(name, "val") if name is not None else ""
        if match := _HEADING_STYLE.match(label):
            levels[attribute(style, "styleId")] = int(match[1])
        elif label.lower() == "title":
            levels[attribute(style, "styleId")] = 1
        elif label.lower().startswith(("list bullet", "list number", "list paragraph")):
            levels[attribute(style, "styleId")] = -1
    return levels


def _targets(relations: etree._Element | None) -> dict[str, str]:
    """Targets of external links, by relation id."""
    if relations is None:
        return {}
    return {
        attribute(relation, "Id"): attribute(relation, "Target")
        for relation in relations
        if attribute(relation, "TargetMode") == "External"
    }


def _docx_rules(headings: dict[str, int], targets: dict[str, str]) -> dict[str, Rule]:
    return {
        "p": partial(_paragraph, headings),
        "hyperlink": partial(_hyperlink, targets),
        "fldSimple": _field,
        "t": ElementMarkup(text=True),
        "tab": ElementMarkup(" "),
        "br": ElementMarkup("<br>"),
        "cr": ElementMarkup("<br>"),
        "noBreakHyphen": ElementMarkup("-"),
        "tbl": ElementMarkup("<table>", "</table>\n"),
        "tr": ElementMarkup("<tr>", "</tr>\n"),
        "tc": ElementMarkup("<td>", "</td>"),
        "docPr": _picture,
        "del": SKIP,
        "moveFrom": SKIP,
        "Fallback": SKIP,  # the same content for older programs
        "pPr": SKIP,
        "rPr": SKIP,
    }


def _paragraph(headings: dict[str, int], element: etree._Element) -> ElementMarkup:
    properties = child(element, "pPr")
    level = 0
    if properties is not None:
        style, outline, numbering = (child(properties, name) for name in ("pStyle", "outlineLvl", "numPr"))
        level = headings.get(attribute(style, "val"), 0) if style is not None else 0
        value = attribute(outline, "val") if outline is not None else ""
        if not level and value in tuple("012345"):
            level = int(value) + 1
        if not level and numbering is not None:
            number = child(numbering, "numId")
            level = -1 if number is None or attribute(number, "val") != "0" else 0
    if level < 0:
        return ElementMarkup("<ul><li>", "</li></ul>\n")
    return ElementMarkup(f"<h{level}>", f"</h{level}>\n") if level else ElementMarkup("<p>", "</p>\n")


def _hyperlink(targets: dict[str, str], element: etree._Element) -> ElementMarkup:
    return _link(targets.get(attribute(element, "id"), ""))


def _field(element: etree._Element) -> ElementMarkup:
    match = _FIELD_LINK.match(attribute(element, "instr"))
    return _link(match[1] if match else "")


def _link(target: str) -> ElementMarkup:
    return ElementMarkup(f'<a href="{escape(target)}">', "</a>") if is_absolute(target) else ElementMarkup()


def _picture(element: etree._Element) -> ElementMarkup:
    words = attribute(element, "descr")
    return ElementMarkup(f'<img alt="{escape(words)}">') if words else ElementMarkup()


# OpenDocument texts. Source: OpenDocument 1.3, part 3.


def _odt(archive: Archive) -> tuple[list[str], etree._Element | None]:
    content = archive.tree("content.xml")
    if content is None and not archive.faults:
        archive.faults.append("damaged: no content.xml")
    return [tree_html(content, _ODT_RULES)] if content is not None else [], archive.tree("meta.xml")


def _odt_heading(element: etree._Element) -> ElementMarkup:
    value = attribute(element, "outline-level")
    level = min(int(value), 6) if value.isascii() and value.isdigit() and len(value) < 4 and int(value) else 1
    return ElementMarkup(f"<h{level}>", f"</h{level}>\n", text=True)


def _odt_link(element: etree._Element) -> ElementMarkup:
    target = attribute(element, "href")
    return (
        ElementMarkup(f'<a href="{escape(target)}">', "</a>", text=True)
        if is_absolute(target)
        else ElementMarkup(text=True)
    )


def _odt_spaces(element: etree._Element) -> ElementMarkup:
    count = attribute(element, "c")
    return ElementMarkup(
        " " * min(int(count), _SPACES_MOST) if count.isascii() and count.isdigit() and len(count) < 9 else " "
    )


_ODT_RULES: dict[str, Rule] = {
    "h": _odt_heading,
    "p": ElementMarkup("<p>", "</p>\n", text=True),
    "a": _odt_link,
    "s": _odt_spaces,
    "tab": ElementMarkup(" "),
    "line-break": ElementMarkup("<br>"),
    "list": ElementMarkup("<ul>", "</ul>\n"),
    "list-item": ElementMarkup("<li>", "</li>\n"),
    "list-header": ElementMarkup("<li>", "</li>\n"),
    "table": ElementMarkup("<table>", "</table>\n"),
    "table-row": ElementMarkup("<tr>", "</tr>\n"),
    "table-cell": ElementMarkup("<td>", "</td>\n"),
    "desc": lambda element: ElementMarkup(f'<img alt="{escape(element.text or "")}">', skip=True),
    "note-citation": SKIP,
    "tracked-changes": SKIP,
    "annotation": SKIP,
    "scripts": SKIP,
    "font-face-decls": SKIP,
    "automatic-styles": SKIP,
    "table-of-content-source": SKIP,
    "sequence-decls": SKIP,
    "title": SKIP,
}


# EPUB: the chapters in reading order. Source: EPUB 3.3, 3 and 5.


def _epub(archive: Archive) -> tuple[list[str], etree._Element | None]:
    container = archive.tree("META-INF/container.xml")
    place = next((attribute(element, "full-path") for element in _all(container, "rootfile")), "")
    package = archive.tree(place) if place else None
    if package is None and not archive.faults:
        archive.faults.append("damaged: no package")
    files = {attribute(element, "id"): attribute(element, "href") for element in _all(package, "item")}
    chapters = [
        files[reference] for element in _all(package, "itemref") if (reference := attribute(element, "idref")) in files
    ]
    if len(chapters) > CHAPTERS_MOST:
        archive.faults.append(f"long: {CHAPTERS_MOST} of {len(chapters)} chapters were read")
    folder = posixpath.dirname(place)
    names = [posixpath.normpath(posixpath.join(folder, unquote(name))) for name in chapters[:CHAPTERS_MOST]]
    return [_epub_chapter(archive.bytes_of(name)) for name in dict.fromkeys(names)], package


def _all(root: etree._Element | None, name: str) -> list[etree._Element]:
    return [element for element in root.iter() if local(element) == name] if root is not None else []


def _epub_chapter(data: bytes) -> str:
    """The body of a chapter. Links within the book are not web addresses and are removed."""
    root = parse_xml(without_doctype(data.decode("utf-8", "replace")).encode())
    parts = _all(root, "body")
    if not parts:
        return ""
    for element in parts[0].iter():
        for name in ("href", "src", "srcset", "{http://www.w3.org/1999/xlink}href"):
            value = element.get(name)
            if value is not None and not is_absolute(str(value)):
                del element.attrib[name]
    etree.cleanup_namespaces(parts[0])
    for element in parts[0].iter():
        element.tag = local(element) or element.tag
    parts[0].tag = "div"
    return str(etree.tostring(parts[0], method="html", encoding="unicode", with_tail=False))


def word(body: bytes) -> Conversion:
    """DOCX; and RTF, which some servers send with the media type of Word."""
    return rtf.html_of(body) if body.startswith(b"{\\rtf") else docx(body)
