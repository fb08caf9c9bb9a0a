"""Which URLs does a style sheet name?"""

from __future__ import annotations

import re
from collections.abc import Iterator

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
# An import with or without `url(`, a `url(`, an `image-set(` with all that it holds, and strings elsewhere so that what they hold is passed over.
# Source: CSS Syntax Level 3, 4.3.4 to 4.3.6; CSS Cascading 5, 2; CSS Images 4, 2.4.
_STRING = r"""(?:"([^"\n]*)"|'([^'\n]*)')"""
_OTHER_STRING = r"""(?:"[^"\n]*"|'[^'\n]*')"""
_URL = re.compile(
    rf"""(@import\s+)?url\(\s*(?:{_STRING}|([^\s"'()]+))\s*\)|@import\s*{_STRING}"""
    rf"""|image-set\(((?:{_OTHER_STRING}|\((?:{_OTHER_STRING}|[^"'()])*\)|[^"'()])*+)|{_OTHER_STRING}""",
    re.IGNORECASE,
)
_OPTION = re.compile(rf"""(?:\A|,)\s*(?:{_STRING}|url\(\s*(?:{_STRING}|([^\s"'()]+)))|{_OTHER_STRING}""", re.IGNORECASE)


def urls(sheet: str) -> Iterator[tuple[str, bool]]:
    """Each URL as written, in order, and whether it is an imported sheet. Other strings and comments hold none."""
    plain = sheet.lower()
    if "url(" not in plain and "@import" not in plain and "image-set(" not in plain:
        return
    if "/*" in sheet:
        sheet = _COMMENT.sub(" ", sheet)
    for match in _URL.finditer(sheet):
        before, *named, first, second, options = match.groups("")
        for option in _OPTION.finditer(options):
            if text := "".join(option.groups("")):
                yield text, False
        if text := "".join(named):
            yield text, bool(before)
        elif text := first or second:
            yield text, True
