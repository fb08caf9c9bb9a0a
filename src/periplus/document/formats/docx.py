"""Converts DOCX files to HTML. Source: ECMA-376, part 1, 17 (WordprocessingML)."""

from __future__ import annotations

import re
from functools import partial

from lxml import etree

from periplus.document.formats import zipped
from periplus.document.formats.converted import Converted, escape, is_absolute
from periplus.document.formats.zipped import SKIPPED, Archive, ElementMarkup, Rule, attribute, child, tree_html

_PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
_HEADING = re.compile(r"heading\s*([1-6])$", re.I)
_FIELD_LINK = re.compile(r'\s*HYPERLINK\s+"([^"]+)"', re.I)


def html_of(body: bytes) -> Converted:
    """Total: what is no such file has a fault."""
    return zipped.html_of(body, _read)


def _read(archive: Archive) -> tuple[list[str], etree._Element | None]:
    headings = _headings(archive.tree("word/styles.xml"))
    parts = []
    for name in _PARTS:
        root = archive.tree(name)
        if root is not None:
            relations = archive.tree(f"word/_rels/{name.rpartition('/')[2]}.rels")
            parts.append(tree_html(root, _rules(headings, _targets(relations))))
    if not parts and not archive.faults:
        archive.faults.append("damaged: no word/document.xml")
    return parts, archive.tree("docProps/core.xml")


def _headings(styles: etree._Element | None) -> dict[str, int]:
    """Levels of the styles that are headings, by their ids; items of lists have -1."""
    levels: dict[str, int] = {}
    for style in styles if styles is not None else ():
        name = child(style, "name")
        label = attribute(name, "val") if name is not None else ""
        if match := _HEADING.match(label):
            levels[attribute(style, "styleId")] = int(match[1])
        elif label.lower() == "title":
            levels[attribute(style, "styleId")] = 1
        elif label.lower().startswith(("list bullet", "list number", "list paragraph")):
            levels[attribute(style, "styleId")] = -1
    return levels


def _targets(relations: etree._Element | None) -> dict[str, str]:
    """Where links lead that leave the file, by the ids of their relations."""
    if relations is None:
        return {}
    return {
        attribute(one, "Id"): attribute(one, "Target")
        for one in relations
        if attribute(one, "TargetMode") == "External"
    }


def _rules(headings: dict[str, int], targets: dict[str, str]) -> dict[str, Rule]:
    return {
        "p": partial(_paragraph, headings),
        "hyperlink": partial(_hyperlink, targets),
        "fldSimple": _field,
        "t": lambda _: ElementMarkup(text=True),
        "tab": lambda _: ElementMarkup(" "),
        "br": lambda _: ElementMarkup("<br>"),
        "cr": lambda _: ElementMarkup("<br>"),
        "noBreakHyphen": lambda _: ElementMarkup("-"),
        "tbl": lambda _: ElementMarkup("<table>", "</table>\n"),
        "tr": lambda _: ElementMarkup("<tr>", "</tr>\n"),
        "tc": lambda _: ElementMarkup("<td>", "</td>"),
        "docPr": _picture,
        "del": lambda _: SKIPPED,
        "moveFrom": lambda _: SKIPPED,
        "Fallback": lambda _: SKIPPED,  # the same once more, for older programs
        "pPr": lambda _: SKIPPED,
        "rPr": lambda _: SKIPPED,
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
    return _anchor(targets.get(attribute(element, "id"), ""))


def _field(element: etree._Element) -> ElementMarkup:
    match = _FIELD_LINK.match(attribute(element, "instr"))
    return _anchor(match[1] if match else "")


def _anchor(target: str) -> ElementMarkup:
    return ElementMarkup(f'<a href="{escape(target)}">', "</a>") if is_absolute(target) else ElementMarkup()


def _picture(element: etree._Element) -> ElementMarkup:
    words = attribute(element, "descr")
    return ElementMarkup(f'<img alt="{escape(words)}">') if words else ElementMarkup()
