"""What is left of an XML text once nothing in it can grow or lead elsewhere?

No document type declaration is read: nothing that it names is fetched, and no entity is expanded, however often it stands in another.
An entity that HTML knows becomes its character, as in the XHTML of old (`&nbsp;`); any other stays as text (`&chapter1;`).
"""

from __future__ import annotations

import re
from html.entities import html5

# What is not closed goes on to the end: sought again from each beginning, it would take quadratic time.
_ENTITY_PLACES = re.compile(r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|&([^\s&;<>#]+);", re.S)
_XML_ENTITIES = frozenset({"amp", "lt", "gt", "quot", "apos"})
_BEFORE_DOCTYPE = re.compile(r"\s*(?:(?:<!--.*?-->|<\?.*?\?>)\s*)*+(<!DOCTYPE)\s", re.S | re.I)
_DOCTYPE_PARTS = re.compile(r"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|\"[^\"]*\"|'[^']*'|[\[\]>]", re.S)
_DECLARATION = re.compile(r"\s*<\?xml\s.*?\?>", re.S)


def without_doctype(text: str) -> str:
    """The text without its XML declaration, its document type and entities of its own. Total; linear in the text."""
    text = text.removeprefix("\ufeff")
    if (found := _BEFORE_DOCTYPE.match(text)) is not None:
        text = text[: found.start(1)] + text[_end_of_doctype(text, found.end()) :]
    if (declaration := _DECLARATION.match(text)) is not None:
        text = text[declaration.end() :]
    return _ENTITY_PLACES.sub(_plain, text.lstrip()) if "&" in text else text.lstrip()


def _end_of_doctype(text: str, place: int) -> int:
    """Where the declaration is over that goes on at place: its `>`, not within quotes, comments or its internal subset."""
    inside = False
    for part in _DOCTYPE_PARTS.finditer(text, place):
        if part[0] in "[]":
            inside = part[0] == "["
        elif part[0] == ">" and not inside:
            return part.end()
    return len(text)


def _plain(place: re.Match[str]) -> str:
    name = place[1]
    if not name or name in _XML_ENTITIES:
        return place[0]
    known = html5.get(name + ";")
    return known if known and known not in "&<" else f"&amp;{name};"
