"""Folders for computed data of collections in databases, in the user's cache: search index, stories, link graph."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path

from periplus.errors import StoreError
from periplus.masking import without_secrets
from periplus_postgres.address import Address, address_of

UNUSED_S = 3 * 86_400.0  # folders that were not used for longer are deleted


def cache_folder(place: Address | str) -> Path:
    """Makes the folder for computed data of a collection: in `periplus/caches` of the user's cache folder
    (XDG_CACHE_HOME, by default ~/.cache). Raises StoreError.
    """
    folder = _folder(address_of(place))
    try:
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True)
            for other in folder.parent.iterdir():
                if time.time() - other.stat().st_mtime > UNUSED_S:
                    shutil.rmtree(other, ignore_errors=True)
        os.utime(folder)
    except OSError as error:
        raise StoreError(
            f"computed data cannot be stored in {folder}: {error.strerror}. Name another folder in XDG_CACHE_HOME"
        ) from error
    return folder


def forget(address: Address) -> None:
    """Deletes the computed data of a deleted collection."""
    shutil.rmtree(_folder(address), ignore_errors=True)


def _folder(address: Address) -> Path:
    key = hashlib.sha256(f"{without_secrets(address.dsn)} {address.collection}".encode()).hexdigest()
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "periplus" / "caches" / f"{address.collection}-{key[:16]}"
