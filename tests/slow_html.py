"""Questions to turbohtml's tree, for the slow twin of the reader.

The parser is turbohtml: the tree of the HTML Living Standard, linear on every hostile input that we tried.
Its tree keeps the contents of `<template>` among the page's elements (a script may show them), but not in
its text (no reader sees them).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import repeat
from typing import TypeAlias

import turbohtml

from periplus.document import whitespace

Tree: TypeAlias = turbohtml.Document
Element: TypeAlias = turbohtml.Element

_TITLES_MOST = 500  # that are looked at; real pages have one, and one more in each picture
_UNSEEN = "head,script,style,template,iframe,noembed,noframes"
# 40 us a page, and half of all tags; each further name costs more than it saves
_WITHIN_LINES = "span,code,em,strong,b,i,noscript,a:not([href])"
# Their ids are places that links lead to, of which no two pages have the same: without them, tags of a site's pages are
# alike. Not so of sections: `section#comments` tells what it holds (quality/extraction fell by half a point without).
_PLACES = frozenset(("li", "p", "dt", "dd", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "pre"))
_WRITTEN_RAW = ("xmp", "plaintext")  # whose text is not escaped when written
# an attribute whose name has a `<`, as of `<img <a>`
_ODD_NAME = re.compile(' [^\\s"<>=]*<[^\\s"=>]*="[^"]*"')
_COMMENT = re.compile("<!--.*?-->", re.DOTALL)


def parse(text: str) -> Tree:
    """The tree that a browser builds without scripts. Takes any text."""
    return turbohtml.parse(text, positions=False)


def elements(tree: Tree, tag: str) -> list[Element]:
    """All elements of that name, in the document's order. Nearly free but for the first call, which makes an index."""
    return tree.select(tag)


def select(node: Tree | Element, selector: str) -> list[Element]:
    """What matches a CSS selector below a node, in the document's order: one walk through everything below it."""
    return node.select(selector)


def any_match(tree: Tree, selector: str) -> bool:
    """Whether anything matches: the walk ends at the first."""
    return tree.select_one(selector) is not None


def first(element: Element, selector: str) -> Element | None:
    """The first match below an element: the walk ends there."""
    return element.select_one(selector)


def is_within(element: Element, other: Element) -> bool:
    """Whether other is among the ancestors."""
    return other in element.ancestors


def closest(element: Element, selector: str) -> Element | None:
    """The nearest among the element and its ancestors that matches."""
    return element.closest(selector)


def closest_above(element: Element, selector: str) -> Element | None:
    """The nearest of the ancestors that matches."""
    above = element.parent
    return above.closest(selector) if isinstance(above, Element) else None


def depth(element: Element) -> int:
    """The number of ancestors."""
    return sum(1 for _ in element.ancestors)


def attribute(element: Element, name: str) -> str:
    """An attribute's value; empty when it is missing."""
    return element.attr(name) or ""


def attributes(of: Iterable[Element], name: str) -> list[str | None]:
    """One attribute of many elements; None where it is missing."""
    return list(map(Element.attr, of, repeat(name)))


def tag_of(element: Element) -> str:
    """Its name, as the parser writes it: lower case in HTML."""
    return element.tag


def is_html(element: Element) -> bool:
    """Whether it is an element of HTML, not of an SVG or MathML part."""
    return element.namespace is turbohtml.Namespace.HTML


def text_of(element: Element) -> str:
    """All text below, white space folded."""
    return whitespace.fold_whitespace(element.text)


def words_of(element: Element) -> str:
    """Its text, else the alt of an image in it, else its title."""
    if text := " ".join(element.text.split()):
        return text
    for image in element.select("img[alt]"):
        if text := whitespace.fold_whitespace(attribute(image, "alt")):
            return text
    return whitespace.fold_whitespace(attribute(element, "title"))


def label_of(element: Element) -> str:
    """Its alt, else its title."""
    return whitespace.fold_whitespace(attribute(element, "alt") or attribute(element, "title"))


def title_of(tree: Tree) -> str:
    """The first title of HTML, white space folded: pictures in SVG have titles too."""
    for title in elements(tree, "title")[:_TITLES_MOST]:
        if is_html(title):
            return text_of(title)
    return ""


def written_for_blocks(tree: Tree) -> str:
    """What a reader sees, as HTML in which `<` and `>` stand for tags only;
    the commonest tags within lines are left out.

    No scripts, styles, templates, head, comments. What is shown where a browser shows no frames goes too: the parser
    has its markup as text. Changes the tree: one of the last questions to ask of it.
    """
    for element in tree.select("[id]"):
        if element.tag in _PLACES:
            del element.attrs["id"]
    # before anything is changed: then this is nearly free
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
    """A section of character data loses its ends with them;
    asked for in the same expression those took 80 us a page.
    """
    if "<!--" not in markup:
        return markup
    markup = _COMMENT.sub("", markup)
    return markup.replace("<![CDATA[", "").replace("]]>", "") if "<![CDATA[" in markup else markup
