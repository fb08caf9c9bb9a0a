"""Converts documents of other formats to HTML, so that a single code path reads them all."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

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
