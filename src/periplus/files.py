"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from periplus.errors import UsageError


def replace_file(path: Path, data: bytes) -> None:
    """Writes a file, readable by its owner only, that replaces an earlier one at once. Raises OSError."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        draft.touch(0o600)
        draft.write_bytes(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def kept_text(path: Path, key: str) -> str | None:
    """The text that `keep_text` wrote with this key; None: none, damaged, or with another key."""
    try:
        first, _, text = path.read_bytes().decode().partition("\n")
    except (OSError, ValueError):
        return None
    return text if first == f"{len(text)} {key}" else None


def keep_text(path: Path, key: str, text: str) -> None:
    """Keeps a text that belongs to a key without line breaks. A folder that cannot be written keeps nothing."""
    with contextlib.suppress(OSError):
        replace_file(path, f"{len(text)} {key}\n{text}".encode("utf-8", "replace"))


def read_rules(path: Path) -> str:
    """The text of a periplus.toml; empty without a file. Raises UsageError if it is unreadable."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
