"""What does a collection hold, and what can be asked of it?"""

from __future__ import annotations

from pathlib import Path

from periplus.store.sqlite import schema


def contents(folder: Path) -> list[Path]:
    """The files that make up the collection in folder: what `--fresh` deletes. Settings (periplus.toml) are not among them."""
    names = (schema.DATABASE, schema.DATABASE + "-wal", schema.DATABASE + "-shm", "write.lock")
    return [folder / name for name in names if (folder / name).exists()]
