"""Which URLs does a style sheet name?"""

from __future__ import annotations

import re
from collections.abc import Iterator

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
# An import with or without `url(`, a `url(`, and strings elsewhere so that what they hold is passed over.
# Source: CSS Syntax Level 3, 4.3.4 to 4.3.6; CSS Cascading 5, 2.
_STRING = r"""(?:"([^"\n]*)"|'([^'\n]*)')"""
_URL = re.compile(rf"""(@import\s+)?url\(\s*(?:{_STRING}|([^\s"'()]+))\s*\)|@import\s*{_STRING}|"[^"\n]*"|'[^'\n]*'""", re.IGNORECASE)


def urls(sheet: str) -> Iterator[tuple[str, bool]]:
    """Each URL as written, in order, and whether it is an imported sheet. Other strings and comments hold none."""
    plain = sheet.lower()
    if "url(" not in plain and "@import" not in plain:
        return
    if "/*" in sheet:
        sheet = _COMMENT.sub(" ", sheet)
    for match in _URL.finditer(sheet):
        before, *named, first, second = match.groups("")
        if text := "".join(named):
            yield text, bool(before)
        elif text := first or second:
            yield text, True
