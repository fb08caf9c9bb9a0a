"""Splits a collection into several that share its web; each is a folder or a collection in a database."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from periplus.api.homes import folder_of, home_of, place_at
from periplus.api.moving import Watch, into_database, silent
from periplus.api.parts import PLACE, exchange_place
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.settings import SETTINGS_FILE, SUFFIX
from periplus.store import runs
from periplus.store.database_address import is_address
from periplus.store.exchange import IDENTITY, PART
from periplus.store.sqlite import schema, splitting
from periplus.urls.parts import WebPart

SPLIT = "split"  # in meta of the collection and its parts: id of the split


def split(
    source: str, targets: Sequence[str], exchange: str = "", watch: Watch = silent
) -> dict[str, Mapping[str, int]]:
    """Splits a collection by registered domain into as many parts as targets; returns the rows of each new part.

    Each part is created atomically, and existing parts are kept, so that the same call continues after an interruption.
    The source remains readable, with a note that names the parts; it can no longer be crawled. Raises UsageError,
    NoCollection, StoreError.
    """
    if len({source, *targets}) <= len(targets) or len(targets) < 2:
        raise UsageError("name the collection to split and at least two different places for its parts")
    home = home_of(place_at(source))
    if home.note(PART):
        raise UsageError(f"{home} is part {home.note(PART)} of its web already: only a whole collection can be split")
    place, made = exchange_place(exchange), {}
    with home.only_crawl():
        identity = home.change_note(SPLIT, lambda before: before or uuid4().hex)
        parts = {target: WebPart(number, len(targets)) for number, target in enumerate(targets, 1)}
        missing = {target: part for target, part in parts.items() if not _is_made(target, part, identity)}
        aim = ", ".join(str(home_of(place_at(target))) for target in targets)
        home.change_note(runs.NEW_PLACE_KEY, lambda before: _only(before, aim))
        folder = folder_of(place_at(source), watch)
        for target, part in missing.items():
            watch(f"Making part {part}", 0)
            notes = {PART: str(part), IDENTITY: uuid4().hex, SPLIT: identity} | ({PLACE: place} if place else {})
            made[f"{part} {target}"] = _make_part(folder, target, part, notes)
    return made


def _only(before: str, aim: str) -> str:
    """New value of the note. Raises StoreError if the collection was moved elsewhere."""
    if before not in ("", aim):
        raise StoreError(f"this collection moved to {before}: split it there, or give the same targets")
    return aim


def _is_made(target: str, part: WebPart, identity: str) -> bool:
    """Whether the target already is this part of this split. Raises StoreError if it has another collection."""
    try:
        home = home_of(place_at(target))
        if (home.note(SPLIT), home.note(PART)) == (identity, str(part)):
            return True
        is_empty = is_address(target) and not home.runs()
    except NoCollection:
        return False
    if is_empty:
        return False
    raise StoreError(f"{target} has another collection. Choose another place for part {part}.")


def _make_part(folder: Path, target: str, part: WebPart, notes: Mapping[str, str]) -> Mapping[str, int]:
    with contextlib.ExitStack() as stack:
        new = Path(target)
        if is_address(target):
            new = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="periplus-"))) / f"part{SUFFIX}"
        with schema.draft_collection(new) as draft:
            rows = splitting.fill_part(draft, folder, part, notes)
            if (folder / SETTINGS_FILE).is_file():
                (new / SETTINGS_FILE).write_bytes((folder / SETTINGS_FILE).read_bytes())
        if is_address(target):
            into_database(new, target, silent)
    return rows
