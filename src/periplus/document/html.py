"""The HTML parser behind a few functions: the only module that depends on the parser library.

The parser is turbohtml: it builds the tree of the HTML Living Standard, in linear time for every hostile input that we
tried. Its tree has the contents of `<template>` among the page's elements (a script may show them), but not in its text
(it is invisible). It is imported late: it takes 9 ms at start-up, and most crawls never need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from periplus.document.digest import fold_whitespace

if TYPE_CHECKING:
    import turbohtml

    Tree: TypeAlias = turbohtml.Document
    Element: TypeAlias = turbohtml.Element
    RdfaItem: TypeAlias = turbohtml.RdfaItem


def parse(text: str) -> Tree:
    """The DOM tree without scripting. Total."""
    import turbohtml

    return turbohtml.parse(text, positions=False)


def parse_with_positions(text: str) -> Tree:
    """As `parse`, with positions of elements."""
    import turbohtml

    return turbohtml.parse(text, positions=True)


def anchors(tree: Tree) -> set[str]:
    """Every `id`, and the `name` of every `a`: see `links.anchors`."""
    return {
        text
        for selector, name in (("[id]", "id"), ("a[name]", "name"))
        for element in tree.select(selector)
        if (text := element.attr(name))
    }


def position(element: Element) -> tuple[int, int] | None:
    """(line, column) of the `<` of its start tag, both from 1; None for an implied element.

    CR, LF and CRLF end a line; a column is one character.
    """
    place = element.position
    return (place[0], place[1] + 1) if place else None


def parse_xml(text: str) -> Tree | None:
    """The tree of an XML document, with only the five entities of XML; None if it is not well-formed."""
    import turbohtml

    try:
        return turbohtml.parse_xml(text)
    except (turbohtml.HTMLParseError, ValueError):
        return None


def html_from_xml(tree: Tree) -> str:
    """Serialises an XHTML document as HTML, so that `<script/>` is closed as in XML."""
    import turbohtml

    return tree.serialize(turbohtml.Html())


def elements(tree: Tree, tag: str) -> list[Element]:
    """All elements with this name, in document order. Nearly free after the first call, which builds an index."""
    return tree.select(tag)


def select(node: Tree | Element, selector: str) -> list[Element]:
    """The descendants that match a CSS selector, in document order. Walks the whole subtree."""
    return node.select(selector)


def first(element: Tree | Element, selector: str) -> Element | None:
    """The first descendant that matches; stops there."""
    return element.select_one(selector)


def closest(element: Element, selector: str) -> Element | None:
    """The nearest match among the element and its ancestors."""
    return element.closest(selector)


def closest_above(element: Element, selector: str) -> Element | None:
    """The nearest match among the ancestors."""
    from turbohtml import Element

    above = element.parent
    return above.closest(selector) if isinstance(above, Element) else None


def attribute(element: Element, name: str) -> str:
    """An attribute's value; '' if missing."""
    return element.attr(name) or ""


def attributes(element: Element) -> Mapping[str, Any]:
    """All attributes by name, each read when it is asked for; `class`, `rel` and other lists of tokens are lists."""
    return element.attrs


def tag_of(element: Element) -> str:
    """The name as the parser writes it: lower case in HTML."""
    return element.tag


def text_of(element: Element) -> str:
    """All text of the subtree, white space folded."""
    return fold_whitespace(element.text)


def markup_of(element: Element) -> str:
    """The element as HTML."""
    return element.html


def xpath(tree: Tree, expression: str) -> object:
    """The result of an XPath 1.0 expression: a list of elements and strings, a string, a number, or a boolean.

    Raises ValueError.
    """
    return tree.xpath(expression)


def strings(tree: Tree) -> Iterable[str]:
    """The text nodes of an XML document, trimmed, none empty."""
    return tree.stripped_strings


def is_item(element: Element) -> bool:
    """Whether an element is a Microdata item."""
    return element.attr("itemscope") is not None


def rdfa(tree: Tree) -> list[RdfaItem]:
    """The RDFa Lite items; types and properties expanded if their vocabulary is declared; [] if nested too deep."""
    try:
        return tree.rdfa()
    except RecursionError:
        return []
