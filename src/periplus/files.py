"""Files that appear whole or not at all, and files of users in a collection's folder."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from periplus.errors import StoreError, UsageError

USER_FILES: Final = "topics/*"
"""Files of a collection that are made at the request of a user; a database stores them in the table `file`."""
_NAME: Final = re.compile(r"topics/\w[\w.-]*\.(json|examples\.gz|(labels|judged|harvest)\.jsonl)")


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


def is_user_file(name: str) -> bool:
    """Whether the name is one of USER_FILES. Any user of a database may have written other names to its table."""
    return bool(_NAME.fullmatch(name))


class FolderFiles:
    """`api.homes.UserFiles` of a collection in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self, pattern: str) -> list[str]:
        names = [path.relative_to(self._folder).as_posix() for path in self._folder.glob(pattern)]
        return sorted(filter(is_user_file, names))

    def read(self, name: str) -> bytes | None:
        with self._path(name) as path, contextlib.suppress(FileNotFoundError):
            return path.read_bytes()
        return None

    def changed_s(self, name: str) -> float:
        with self._path(name) as path, contextlib.suppress(FileNotFoundError):
            return path.stat().st_mtime
        return 0.0

    def write(self, name: str, data: bytes) -> None:
        with self._path(name) as path:
            path.parent.mkdir(0o700, exist_ok=True)
            replace_file(path, data)

    def append(self, name: str, data: bytes) -> None:
        with self._path(name) as path:
            path.parent.mkdir(0o700, exist_ok=True)
            with path.open("ab") as file:
                file.write(data)

    def remove(self, name: str) -> bool:
        with self._path(name) as path, contextlib.suppress(FileNotFoundError):
            path.unlink()
            return True
        return False

    @contextlib.contextmanager
    def _path(self, name: str) -> Iterator[Path]:
        path = self._folder / checked_file(name)
        try:
            yield path
        except OSError as error:
            raise StoreError(f"{path} cannot be read or written: {error.strerror}") from None


def checked_file(name: str) -> str:
    """Returns the name. Raises UsageError if it is none of USER_FILES."""
    if not is_user_file(name):
        raise UsageError(f"{name!r} is not the name of a user's file in a collection")
    return name
