"""Under which names are results kept? Those that a manifest gives, which anybody may have written."""

from __future__ import annotations

import re

from periplus.errors import StoreError

_NAME = re.compile(r"[a-z][a-z0-9_]{0,49}")  # PostgreSQL cuts names at 63 bytes, and what is made of these is up to 10 longer


def sound(name: str) -> str:
    """The name. Raises StoreError for what may not stand in a statement."""
    if not _NAME.fullmatch(name):
        raise StoreError(f"{name!r} is no name for a table or a column of results")
    return name
