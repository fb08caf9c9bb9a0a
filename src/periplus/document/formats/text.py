"""Converts plain text to HTML.

Paragraphs, lists and headings, recognised by common conventions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from periplus.document.formats.converted import Conversion, block, page

HEADING_CHARS = 100  # longer lines are sentences
_EMPTY_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_UNDERLINE = re.compile(r"\s*([=\-~*#^_])\1{2,}\s*$")
_LEVELS = {"=": 1, "#": 1, "*": 1, "-": 2, "_": 2}  # heading level by underline character; else 3
_NUMBERED_HEADING = re.compile(r"\s*(\d{1,3}(?:\.\d{1,3}){0,4})\.?\s+\S")
_BULLET = re.compile(r"(\s*)(?:[-*+•‣▪o]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+(?=\S)")
_SENTENCE_END = (".", ",", ";", ":", "!", "?")


def html_of(text: str) -> Conversion:
    """Paragraphs are separated by empty lines. URLs stay text and do not become links."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n")
    return Conversion(page(part for paragraph in _EMPTY_LINES.split(text) for part in _parts(paragraph.strip("\n"))))


def _parts(paragraph: str) -> Iterator[str]:
    if not paragraph or paragraph.isspace():
        return
    lines = paragraph.split("\n")
    if len(lines) == 1 and (level := _heading_level(paragraph)):
        yield block(f"h{level}", paragraph)
        return
    begun = place = 0
    while place + 1 < len(lines):
        underline = _UNDERLINE.match(lines[place + 1])
        if underline and len(lines[place].strip()) <= HEADING_CHARS and not _UNDERLINE.match(lines[place]):
            yield from _body(lines[begun:place])
            yield block(f"h{_LEVELS.get(underline[1], 3)}", lines[place])
            begun = place = place + 2
        else:
            place += 1
    yield from _body(lines[begun:])


def _body(lines: list[str]) -> Iterator[str]:
    """Lines of one paragraph or list."""
    if lines and _BULLET.match(lines[0]):
        yield from _items(lines)
    else:
        yield block("p", "\n".join(lines))


def _heading_level(line: str) -> int:
    """The level of a single line: in capitals or numbered, and not a sentence. 0: not a heading."""
    line = line.strip()
    if len(line) > HEADING_CHARS or line.endswith(_SENTENCE_END):
        return 0
    if (number := _NUMBERED_HEADING.match(line)) and line[number.end() - 1].isupper():
        return min(number[1].count(".") + 2, 6)
    return 2 if line.isupper() and sum(map(str.isalpha, line)) > 2 else 0


def _items(lines: list[str]) -> Iterator[str]:
    """A list: each marker with the indentation of the first begins an item, which continues on the following lines."""
    first = _BULLET.match(lines[0])
    indent = first[1] if first else ""
    items: list[list[str]] = []
    for line in lines:
        mark = _BULLET.match(line)
        if mark and mark[1] == indent:
            items.append([line[mark.end() :]])
        else:
            items[-1].append(line)
    if len(items) == 1 and lines[0].lstrip()[0].isalnum():  # "A. Smith wrote ...", "o něm ..."
        yield block("p", "\n".join(lines))
        return
    yield "<ul>" + "".join(block("li", "\n".join(item)) for item in items) + "</ul>\n"
