"""How does a text become part of an XML file, so that it neither breaks out nor breaks the file?"""

from __future__ import annotations

import re
from collections.abc import Iterable

# What XML 1.0 has no place for (section 2.2), surrogates among it; JSON in UTF-8 has none for surrogates either
_NO_CHAR = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPECIAL = re.compile("[&<>\"'\t\r\n]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "\t": "&#9;", "\r": "&#13;", "\n": "&#10;"}


def characters(text: str) -> str:
    """The text without what is no character in XML."""
    return _NO_CHAR.sub("", text)


def escaped(text: str) -> str:
    """Safe as content and between quotes; white space as references, else a reader folds it (XML 1.0, 3.3.3)."""
    return _SPECIAL.sub(lambda found: _ENTITIES[found[0]], characters(text))


def attributes(values: Iterable[tuple[str, str | int | float]]) -> str:
    """` name="value"` for each, in this order."""
    return "".join([f' {name}="{escaped(value) if isinstance(value, str) else value}"' for name, value in values])
