"""How does a tree of XML become HTML, by a rule for each kind of element?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lxml import etree

from periplus.document.formats.converted import HTML_CHARS, escape


class Told(NamedTuple):
    """What HTML stands around an element's contents."""

    before: str = ""
    after: str = ""
    text: bool = False  # whether its own text counts, and not only that of elements below
    skip: bool = False  # whether nothing below counts


SKIPPED = Told(skip=True)
Rule = Callable[[etree._Element], Told]


def local(element: etree._Element) -> str:
    """Its name without the namespace."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: etree._Element, name: str) -> str:
    """An attribute's value by the name without its namespace; empty where there is none."""
    for key, value in element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(value)
    return ""


def child(element: etree._Element, name: str) -> etree._Element | None:
    """The first child of that local name."""
    return next((below for below in element if local(below) == name), None)


def told(root: etree._Element, rules: Mapping[str, Rule]) -> str:
    """The HTML of everything below root. rules: by local name; an element without one counts by what is below it."""
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
            said = rule(element) if rule else Told(text=bool(texts) and texts[-1])
            pieces.append(said.before)
            if said.skip:
                pieces.append(said.after)
                skipped = element
                continue
            if said.text and element.text:
                pieces.append(escape(element.text, quote=False))
            texts.append(said.text)
            ends.append(said.after)
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
