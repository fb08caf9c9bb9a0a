"""Queries of turbohtml's tree, for the slow twin of the reader.

turbohtml builds the tree of the HTML Living Standard, in linear time on every hostile input that we tried. The content
of `<template>` is among its elements, since a script may show it, but not in its text, since readers do not see it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import repeat
from typing import TypeAlias

import turbohtml

from periplus.document.digest import fold_whitespace

Tree: TypeAlias = turbohtml.Document
Element: TypeAlias = turbohtml.Element

_TITLES_MOST = 500  # limit of `title` elements read; a page has one, and one in each SVG image
_UNSEEN = "head,script,style,template,iframe,noembed,noframes"
# 40 us per page for half of all tags; each further name costs more time than it saves
_WITHIN_LINES = "span,code,em,strong,b,i,noscript,a:not([href])"
# Ids of these are link targets that differ between pages; without them the tags of a site's pages are alike. Ids of
# sections are kept: `section#comments` describes its content (without them quality/extraction fell by half a point).
_PLACES = frozenset(("li", "p", "dt", "dd", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "pre"))
_WRITTEN_RAW = ("xmp", "plaintext")  # elements whose text is not escaped in serialized HTML
# an attribute with `<` in its name, as in `<img <a>`
_ODD_NAME = re.compile(' [^\\s"<>=]*<[^\\s"=>]*="[^"]*"')
_COMMENT = re.compile("<!--.*?-->", re.DOTALL)


def parse(text: str) -> Tree:
    """The tree that a browser builds without scripts. Takes any text."""
    return turbohtml.parse(text, positions=False)


def elements(tree: Tree, tag: str) -> list[Element]:
    """All elements with this tag name, in document order. Only the first call is slow, since it builds an index."""
    return tree.select(tag)


def select(node: Tree | Element, selector: str) -> list[Element]:
    """Matches of a CSS selector below a node, in document order, in one walk of the subtree."""
    return node.select(selector)


def any_match(tree: Tree, selector: str) -> bool:
    """Whether any element matches. Stops at the first match."""
    return tree.select_one(selector) is not None


def first(element: Element, selector: str) -> Element | None:
    """The first match below an element. Stops there."""
    return element.select_one(selector)


def is_within(element: Element, other: Element) -> bool:
    """Whether `other` is an ancestor of the element."""
    return other in element.ancestors


def closest(element: Element, selector: str) -> Element | None:
    """The nearest match among the element and its ancestors."""
    return element.closest(selector)


def closest_above(element: Element, selector: str) -> Element | None:
    """The nearest match among the ancestors."""
    above = element.parent
    return above.closest(selector) if isinstance(above, Element) else None


def depth(element: Element) -> int:
    """The number of ancestors."""
    return sum(1 for _ in element.ancestors)


def attribute(element: Element, name: str) -> str:
    """The value of an attribute; empty if it is missing."""
    return element.attr(name) or ""


def attributes(of: Iterable[Element], name: str) -> list[str | None]:
    """The values of an attribute of many elements; None where it is missing."""
    return list(map(Element.attr, of, repeat(name)))


def tag_of(element: Element) -> str:
    """The tag name; lower case in HTML."""
    return element.tag


def is_html(element: Element) -> bool:
    """Whether it is an element of HTML, not of an SVG or MathML part."""
    return element.namespace is turbohtml.Namespace.HTML


def text_of(element: Element) -> str:
    """All text below, white space folded."""
    return fold_whitespace(element.text)


def words_of(element: Element) -> str:
    """The text, else the alt text of an image inside, else the title attribute."""
    if text := " ".join(element.text.split()):
        return text
    for image in element.select("img[alt]"):
        if text := fold_whitespace(attribute(image, "alt")):
            return text
    return fold_whitespace(attribute(element, "title"))


def label_of(element: Element) -> str:
    """The alt attribute, else the title attribute."""
    return fold_whitespace(attribute(element, "alt") or attribute(element, "title"))


def title_of(tree: Tree) -> str:
    """The first HTML title, white space folded. SVG titles are not page titles."""
    for title in elements(tree, "title")[:_TITLES_MOST]:
        if is_html(title):
            return text_of(title)
    return ""


def written_for_blocks(tree: Tree) -> str:
    """The visible content as HTML in which `<` and `>` occur only in tags, without the most common inline tags.

    Scripts, styles, templates, head, comments and `noframes` (whose markup is parsed as text) are removed. Changes the
    tree.
    """
    for element in tree.select("[id]"):
        if element.tag in _PLACES:
            del element.attrs["id"]
    # before any other change: then this costs almost nothing
    raw = [element for tag in _WRITTEN_RAW for element in tree.select(tag)]
    titles = [title for title in tree.select("title") if is_html(title)]
    for element in raw:
        element.tag = "pre"
    for title in titles:
        title.decompose()
    tree.remove(_UNSEEN)
    tree.strip_tags(_WITHIN_LINES)
    return _without_comments(_ODD_NAME.sub("", tree.html))


def _without_comments(markup: str) -> str:
    """Also removes the delimiters of CDATA sections; in the same regular expression they took 80 us per page."""
    if "<!--" not in markup:
        return markup
    markup = _COMMENT.sub("", markup)
    return markup.replace("<![CDATA[", "").replace("]]>", "") if "<![CDATA[" in markup else markup
