"""Converts documents of other formats to HTML, so that a single code path reads them all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from html import escape
from typing import NamedTuple

from periplus.document.decode import text_of
from periplus.document.metadata import Metadata
from periplus.model.page import NO_CHARSET, NO_PUBLICATION, BadLink, Blocks, Charset, Links, Publication
from periplus.model.visit import Headers
from periplus.model.web import Url
from periplus.values import frozen


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


HTML_CHARS = 20_000_000  # per document, including tags: four times the text kept per page

END = "</body></html>"

__all__ = ["END", "HTML_CHARS", "Conversion", "block", "escape", "is_absolute", "page"]


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
