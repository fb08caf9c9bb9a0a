"""How does a text fit on a terminal's line?"""

from __future__ import annotations

import re
import unicodedata

# C0, C1, soft hyphen, zero width, bidi marks and overrides, line separators, surrogates, byte order mark: a crawled title
# may not move the cursor, turn the line round or break the encoding
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")
_SPACE = re.compile(r"\s+")


def visible(text: str) -> str:
    """The text on one line, without characters that are no sign."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return _SPACE.sub(" ", _UNSEEN.sub("", _SPACE.sub(" ", text))).strip()


def without_controls(text: str) -> str:
    """The text without control characters, but for its lines and tabs: what joins letters or sets their direction stays."""
    return _CONTROL.sub("", text)


def cells(text: str) -> int:
    """Columns that a terminal gives the text: two for wide East Asian signs, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(_cell(sign) for sign in text)


def _cell(sign: str) -> int:
    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def fit(text: str, width: int, *, more: str = "…") -> str:
    """The text in exactly width columns: filled with spaces, or cut and ended with `more`."""
    free = width - cells(text)
    if free >= 0:
        return text + " " * free
    kept, free = "", max(width - len(more), 0)
    for sign in text:
        free -= _cell(sign)
        if free < 0:
            free += _cell(sign)
            break
        kept += sign
    return kept + more[:width] + " " * free
