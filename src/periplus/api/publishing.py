"""How does a folder come to hold exactly these files, without a reader ever meeting half of one?"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from periplus.errors import UsageError

MANIFEST = ".periplus-files.json"  # what we wrote into the folder: nothing else there is ever replaced or deleted


@dataclass(frozen=True, slots=True)
class Published:
    """What was done to the folder: how many files were written, left as they were, deleted."""

    folder: Path
    written: int
    kept: int
    removed: int


def publish(folder: Path, files: Mapping[str, bytes]) -> Published:
    """Makes folder hold these files, and none that an earlier call put there and this one does not.

    files: relative path with slashes -> content, in the order in which they appear: what leads to another file stands after it. Each appears
    whole, by renaming, and only if its content is new; what is no longer wanted goes last. So at any moment, after a kill too, every link
    leads somewhere, and the next call goes on. Raises UsageError where a file stands in the way that is not ours, or the disk refuses.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ours = _ours(folder)
        foreign = next((path for path in files if path not in ours and (folder / path).exists()), None)
        if foreign is not None:
            raise UsageError(f"{folder / foreign} is there already, and was not written by a portal. Choose another folder with -o, or move it away.")
        _note(folder, ours | set(files))
        written = sum([_written(folder / path, content) for path, content in files.items()])
        gone = sorted(ours - set(files))
        _remove(folder, gone)
        _note(folder, files)
    except OSError as error:
        raise UsageError(f"the portal cannot be written into {folder}: {error.strerror or error}. Choose another folder with -o.") from None
    return Published(folder, written, len(files) - written, len(gone))


def _ours(folder: Path) -> set[str]:
    try:
        listed = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return set()
    return {path for path in listed if isinstance(path, str) and _is_below(path)} if isinstance(listed, list) else set()


def published_files(folder: Path) -> list[str]:
    """Paths below the folder of what `publish` put there last and is there still, by name."""
    return sorted(path for path in _ours(folder) if (folder / path).is_file())


def _is_below(path: str) -> bool:
    """Whether a path of the list stays in the folder, as all that we wrote do."""
    return bool(path) and not path.startswith("/") and ".." not in path.split("/")


def _note(folder: Path, paths: Iterable[str]) -> None:
    _written(folder / MANIFEST, (json.dumps(sorted(paths), indent=0) + "\n").encode("utf-8", "replace"))


def _written(path: Path, content: bytes) -> bool:
    """False: it was so already."""
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return True


def _remove(folder: Path, paths: Iterable[str]) -> None:
    for path in paths:
        (folder / path).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder around it, if nothing else is in it
            (folder / path).parent.rmdir()
