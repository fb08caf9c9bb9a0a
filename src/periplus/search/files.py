"""The files of an index: taken from where it was made, and laid where it is read."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Collection
from pathlib import Path

from periplus.errors import StoreError
from periplus.search.index import ASKED, COMMITTED, FILE, FOLDER, STATE, translated

# A commit of the engine is a set of files that it never changes, and `meta.json`, which names them. A file goes only
# after a later `meta.json` names it no longer: so links made while one stands are all that it names.

SEGMENT_ENDINGS = (".idx", ".pos", ".term", ".store", ".fast", ".fieldnorm", ".del")  # of files that never change
MANAGED = ".managed.json"  # the engine's own: which files it may delete
TRIES = 10  # a merge that ends meanwhile is one of a few


def linked_files(folder: Path, target: Path) -> dict[str, Path]:
    """The files of the index's last commit, by name, linked into another folder on the same disk. Raises StoreError."""
    where = folder / FOLDER
    with translated(folder):
        for _ in range(TRIES):
            meta = (where / COMMITTED).read_bytes()
            names = engine_files(where, meta)
            with contextlib.suppress(FileNotFoundError):  # then the commit is another one, too
                for name in names:
                    (target / name).unlink(missing_ok=True)
                    (target / name).hardlink_to(where / name)
            if (where / COMMITTED).read_bytes() == meta:
                break
        else:
            raise StoreError(f"the search index in {where} changes faster than it can be published: try again")
        if (where / FILE).exists():
            names.append(shutil.copyfile(where / FILE, target / FILE).name)
        (target / COMMITTED).write_bytes(meta)
        (target / MANAGED).write_text(json.dumps([*names, COMMITTED]), "utf-8")
        return {name: target / name for name in (*names, COMMITTED, MANAGED)}


def engine_files(where: Path, meta: bytes) -> list[str]:
    """Names of the files that the engine's `meta.json` names, by name."""
    segments = json.loads(meta)["segments"]
    ids = {one["segment_id"].replace("-", ""): one["deletes"] for one in segments}
    deletes = {f"{name}.{one['opstamp']}.del" for name, one in ids.items() if one}
    there = (path.name for path in where.iterdir() if path.name.partition(".")[0] in ids)
    return sorted(name for name in there if not name.endswith(".del") or name in deletes)


def replace_files(folder: Path, names: Collection[str], arrived: Path) -> None:
    """Puts an index that was made elsewhere in place of the one in folder: files that are there already, and those in
    `arrived`, which leave it. It says nothing of itself until `write_state`. For its only writer.
    """
    where = folder / FOLDER
    with translated(folder):
        where.mkdir(exist_ok=True)
        (where / STATE).unlink(missing_ok=True)
        for name in sorted(names, key=lambda name: name == COMMITTED):
            if (arrived / name).exists():
                (arrived / name).replace(where / name)
        for path in where.iterdir():
            if path.name not in names and path.name != ASKED:
                path.unlink()
