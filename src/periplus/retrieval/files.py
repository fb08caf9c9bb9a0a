"""Publishes the files of an index: links them at the writer and installs them at the reader."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

from periplus.errors import StoreError
from periplus.retrieval.index import COMMIT_FILE, FILE, FOLDER, translate_errors

# A commit consists of files that never change and `meta.json`, which names them. The engine deletes a file only after a
# newer `meta.json` no longer names it. If `meta.json` is the same before and after linking, the set of links is
# complete.

SEGMENT_ENDINGS = (".idx", ".pos", ".term", ".store", ".fast", ".fieldnorm", ".del")  # files that never change
MANAGED_FILE = ".managed.json"  # the engine's list of files that it may delete
TRIES = 10  # a concurrent merge causes only a few retries


def linked_files(folder: Path, target: Path) -> dict[str, Path]:
    """Links the files of the index's last commit into another folder on the same disk.

    Returns them by name. Raises StoreError.
    """
    where = folder / FOLDER
    with translate_errors(folder):
        for _ in range(TRIES):
            meta = (where / COMMIT_FILE).read_bytes()
            names = engine_files(where, meta)
            with contextlib.suppress(FileNotFoundError):  # the commit has changed too; retried below
                for name in names:
                    (target / name).unlink(missing_ok=True)
                    (target / name).hardlink_to(where / name)
            if (where / COMMIT_FILE).read_bytes() == meta:
                break
        else:
            raise StoreError(f"the search index in {where} changes faster than it can be published: try again")
        if (where / FILE).exists():
            names.append(shutil.copyfile(where / FILE, target / FILE).name)
        (target / COMMIT_FILE).write_bytes(meta)
        (target / MANAGED_FILE).write_text(json.dumps([*names, COMMIT_FILE]), "utf-8")
        return {name: target / name for name in (*names, COMMIT_FILE, MANAGED_FILE)}


def engine_files(where: Path, meta: bytes) -> list[str]:
    """Sorted names of the files that the engine's `meta.json` names."""
    segments = json.loads(meta)["segments"]
    ids = {segment["segment_id"].replace("-", ""): segment["deletes"] for segment in segments}
    deletes = {f"{name}.{segment['opstamp']}.del" for name, segment in ids.items() if segment}
    there = (path.name for path in where.iterdir() if path.name.partition(".")[0] in ids)
    return sorted(name for name in there if not name.endswith(".del") or name in deletes)
