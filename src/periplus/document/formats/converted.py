"""Documents of other formats converted to HTML, so that one path reads them all."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

HTML_CHARS = 20_000_000  # of one document, tags included: four times the text that is kept of a page

END = "</body></html>"

__all__ = ["END", "HTML_CHARS", "Converted", "block", "escape", "is_absolute", "page"]


class Converted(NamedTuple):
    """A document converted to HTML."""

    html: str
    fault: str = ""  # why it could not be read, or not whole; empty: it could


def page(parts: Iterable[str], title: str = "", language: str = "", description: str = "") -> str:
    """A page of HTML around parts that are HTML, as many of them as HTML_CHARS allow:
    one of which some are left out is not closed.

    title, language and description are plain text.
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
    """An element around plain text; nothing for no words."""
    return f"<{tag}>{escape(text, quote=False)}</{tag}>\n" if text and not text.isspace() else ""


def is_absolute(target: str) -> bool:
    """Whether a link of a file leads out of it: what a file names relatively lies in the file,
    or on its author's disk.
    """
    return target.partition(":")[0].lower() in ("http", "https", "mailto", "ftp")
