"""Converts documents of other formats, and plain text, to HTML, so that a single code path reads them all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from html import escape
from typing import NamedTuple

from periplus.document.decode import text_of
from periplus.document.metadata import Metadata
from periplus.model.page import NO_CHARSET, NO_PUBLICATION, BadLink, Blocks, Charset, Links, Publication
from periplus.model.visit import Headers
from periplus.model.web import Url
from periplus.values import frozen

HTML_CHARS = 20_000_000  # per document, including tags: four times the text kept per page
HEADING_CHARS = 100  # longer lines are sentences
_EMPTY_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_UNDERLINE = re.compile(r"\s*([=\-~*#^_])\1{2,}\s*$")
_LEVELS = {"=": 1, "#": 1, "*": 1, "-": 2, "_": 2}  # heading level by underline character; else 3
_NUMBERED_HEADING = re.compile(r"\s*(\d{1,3}(?:\.\d{1,3}){0,4})\.?\s+\S")
_BULLET = re.compile(r"(\s*)(?:[-*+•‣▪o]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+(?=\S)")
_SENTENCE_END = (".", ",", ";", ":", "!", "?")


@frozen
class Source:
    """A document as parser input: its own markup, or the HTML it was converted to; and its origin."""

    url: Url
    headers: Headers
    page: bytes  # in UTF-8, possibly with lone surrogates
    charset: str = "utf-8"  # name in the Encoding Living Standard: used for queries of its links
    media_type: str = ""  # of the document
    # Of the text: a media type of `MARKUP`; empty: the type is unsupported, or the content is not of this type
    kind: str = ""
    encoding: Charset = NO_CHARSET  # encoding of the original bytes
    fault: str = ""  # why it could not be read, or only in part

    @property
    def text(self) -> str:
        """The page as text, decoded on each access."""
        return text_of(self.page)


@frozen
class Content:
    """The contents of a document."""

    metadata: Metadata
    blocks: Blocks
    links: Links
    bad_links: tuple[BadLink, ...]
    translations: tuple[tuple[str, Url], ...] = ()  # (hreflang as written, URL)
    bounds: tuple[str, ...] = ()  # limits that were exceeded: content beyond them is missing
    needs_script: bool = False  # an empty shell to be filled by a script
    publication: Publication = NO_PUBLICATION
    written: bytes = field(default=b"", compare=False)  # the blocks' text in UTF-8, if the reader has it


END = "</body></html>"

__all__ = ["END", "HTML_CHARS", "Conversion", "block", "escape", "html_of_text", "is_absolute", "page"]


class Conversion(NamedTuple):
    """A document converted to HTML."""

    html: str
    fault: str = ""  # why it could not be read, or only in part; empty: no fault


def page(parts: Iterable[str], title: str = "", language: str = "", description: str = "") -> str:
    """An HTML page with these parts, as far as HTML_CHARS allows; without END if parts are missing.

    parts: HTML. title, language, description: plain text.
    """
    pieces, room = [], HTML_CHARS
    for part in parts:
        room -= len(part)
        if room < 0:
            break
        pieces.append(part)
    meta = f'<meta name="description" content="{escape(description)}">' if description else ""
    lang = f' lang="{escape(language)}"' if language else ""
    head = (f"<title>{escape(title)}</title>" if title else "") + meta
    return f"<!DOCTYPE html><html{lang}><head>{head}</head><body>{''.join(pieces)}{END if room >= 0 else ''}"


def block(tag: str, text: str) -> str:
    """An element with plain text; '' if the text is blank."""
    return f"<{tag}>{escape(text, quote=False)}</{tag}>\n" if text and not text.isspace() else ""


def is_absolute(target: str) -> bool:
    """Whether a link in a file is absolute: relative links refer to the file, or to its author's disk."""
    return target.partition(":")[0].lower() in ("http", "https", "mailto", "ftp")


def html_of_text(text: str) -> Conversion:
    """Plain text as HTML: paragraphs, lists and headings, recognised by common conventions.

    Paragraphs are separated by empty lines. URLs stay text and do not become links."""
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
