"""The HTML parser behind a few functions: the only file that knows which parser it is.

The parser is turbohtml: the tree of the HTML Living Standard, linear on every hostile input that we tried.
Its tree keeps the contents of `<template>` among the page's elements (a script may show them), but not in
its text (no reader sees them). It is imported where a page is parsed: 9 ms of a start, which most crawls never need.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from periplus.document import whitespace

if TYPE_CHECKING:
    import turbohtml

    Tree: TypeAlias = turbohtml.Document
    Element: TypeAlias = turbohtml.Element
    MicrodataItem: TypeAlias = turbohtml.MicrodataItem
    RdfaItem: TypeAlias = turbohtml.RdfaItem


def parse(text: str) -> Tree:
    """The tree that a browser builds without scripts. Takes any text."""
    import turbohtml

    return turbohtml.parse(text, positions=False)


def parse_with_positions(text: str) -> Tree:
    """The same, whose elements know where they stand."""
    import turbohtml

    return turbohtml.parse(text, positions=True)


def position(element: Element) -> tuple[int, int] | None:
    """(line, column) of its start tag's `<`, both from 1; None: it is not written. CR, LF and CRLF end a line; a column
    is a character, whatever its width."""
    place = element.position
    return (place[0], place[1] + 1) if place else None


def parse_xml(text: str) -> Tree | None:
    """The tree of a well-formed XML document, no entities but the five of XML; None when it is not well-formed."""
    import turbohtml

    try:
        return turbohtml.parse_xml(text)
    except (turbohtml.HTMLParseError, ValueError):
        return None


def html_from_xml(tree: Tree) -> str:
    """An XHTML document written as HTML, so that `<script/>` ends where XML ends it."""
    import turbohtml

    return tree.serialize(turbohtml.Html())


def elements(tree: Tree, tag: str) -> list[Element]:
    """All elements of that name, in the document's order. Nearly free but for the first call, which makes an index."""
    return tree.select(tag)


def select(node: Tree | Element, selector: str) -> list[Element]:
    """What matches a CSS selector below a node, in the document's order: one walk through everything below it."""
    return node.select(selector)


def first(element: Tree | Element, selector: str) -> Element | None:
    """The first match below a node: the walk ends there."""
    return element.select_one(selector)


def closest(element: Element, selector: str) -> Element | None:
    """The nearest among the element and its ancestors that matches."""
    return element.closest(selector)


def closest_above(element: Element, selector: str) -> Element | None:
    """The nearest of the ancestors that matches."""
    from turbohtml import Element

    above = element.parent
    return above.closest(selector) if isinstance(above, Element) else None


def attribute(element: Element, name: str) -> str:
    """An attribute's value; empty when it is missing."""
    return element.attr(name) or ""


def tag_of(element: Element) -> str:
    """Its name, as the parser writes it: lower case in HTML."""
    return element.tag


def text_of(element: Element) -> str:
    """All text below, white space folded."""
    return whitespace.folded(element.text)


def markup_of(element: Element) -> str:
    """The element as HTML."""
    return element.html


def xpath(tree: Tree, expression: str) -> object:
    """What an XPath 1.0 expression gives: a list of elements and texts, a text, a number, or a truth value.

    Raises ValueError.
    """
    return tree.xpath(expression)


def strings(tree: Tree) -> Iterable[str]:
    """The pieces of text of an XML document, trimmed, none empty."""
    return tree.stripped_strings


def microdata(tree: Tree) -> list[MicrodataItem]:
    """The outermost items of Microdata, with values as the HTML Standard has them, URLs as written; none where they are
    nested beyond all reason.
    """
    try:
        return tree.microdata()
    except RecursionError:
        return []


def rdfa(tree: Tree) -> list[RdfaItem]:
    """The same of RDFa Lite; types and properties in full, where their vocabulary is named."""
    try:
        return tree.rdfa()
    except RecursionError:
        return []
