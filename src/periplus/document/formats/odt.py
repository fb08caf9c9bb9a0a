"""Converts OpenDocument texts to HTML. Source: OpenDocument 1.3, part 3."""

from __future__ import annotations

from lxml import etree

from periplus.document.formats import zipped
from periplus.document.formats.converted import Converted, escape, is_absolute
from periplus.document.formats.zipped import SKIPPED, Archive, ElementMarkup, Rule, attribute, tree_html

_SPACES_MOST = 100  # of one `text:s`: it says how many it stands for


def html_of(body: bytes) -> Converted:
    """Total: what is no such file has a fault."""
    return zipped.html_of(body, _read)


def _read(archive: Archive) -> tuple[list[str], etree._Element | None]:
    content = archive.tree("content.xml")
    if content is None and not archive.faults:
        archive.faults.append("damaged: no content.xml")
    return [tree_html(content, _RULES)] if content is not None else [], archive.tree("meta.xml")


def _heading(element: etree._Element) -> ElementMarkup:
    value = attribute(element, "outline-level")
    level = min(int(value), 6) if value.isascii() and value.isdigit() and len(value) < 4 and int(value) else 1
    return ElementMarkup(f"<h{level}>", f"</h{level}>\n", text=True)


def _anchor(element: etree._Element) -> ElementMarkup:
    target = attribute(element, "href")
    return (
        ElementMarkup(f'<a href="{escape(target)}">', "</a>", text=True)
        if is_absolute(target)
        else ElementMarkup(text=True)
    )


def _spaces(element: etree._Element) -> ElementMarkup:
    count = attribute(element, "c")
    return ElementMarkup(
        " " * min(int(count), _SPACES_MOST) if count.isascii() and count.isdigit() and len(count) < 9 else " "
    )


def _around(tag: str, *, text: bool = False) -> Rule:
    markup = ElementMarkup(f"<{tag}>", f"</{tag}>\n", text)
    return lambda _: markup


_RULES: dict[str, Rule] = {
    "h": _heading,
    "p": _around("p", text=True),
    "a": _anchor,
    "s": _spaces,
    "tab": lambda _: ElementMarkup(" "),
    "line-break": lambda _: ElementMarkup("<br>"),
    "list": _around("ul"),
    "list-item": _around("li"),
    "list-header": _around("li"),
    "table": _around("table"),
    "table-row": _around("tr"),
    "table-cell": _around("td"),
    "desc": lambda element: ElementMarkup(f'<img alt="{escape(element.text or "")}">', skip=True),
    "note-citation": lambda _: SKIPPED,
    "tracked-changes": lambda _: SKIPPED,
    "annotation": lambda _: SKIPPED,
    "scripts": lambda _: SKIPPED,
    "font-face-decls": lambda _: SKIPPED,
    "automatic-styles": lambda _: SKIPPED,
    "table-of-content-source": lambda _: SKIPPED,
    "sequence-decls": lambda _: SKIPPED,
    "title": lambda _: SKIPPED,
}
