"""Splits a collection into several that share its web; each is a folder or a collection in a database."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from periplus.api.homes import folder_of, home_of, place_at
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.features import is_address
from periplus.model.tables import any_of
from periplus.model.visit import Reason
from periplus.model.web import HostKey, Url
from periplus.settings import SETTINGS_FILE, SUFFIX
from periplus.store import runs
from periplus.store.part_messages import IDENTITY, LEFT_ASIDE, PART
from periplus.store.sqlite import schema
from periplus.store.url_state import RAISABLE_REASONS
from periplus.urls.hosts import WebPart, host_key, part_of
from periplus_postgres import folder_rows
from periplus_postgres.exchange import PLACE, exchange_place
from periplus_postgres.moved_tables import OWN_META, OWNERS, TABLES, sum_of
from periplus_postgres.moving import Watch, into_database, silent

SPLIT = "split"  # in meta of the collection and its parts: id of the split
# A row belongs to the part of its host. Conditions may refer to tables filled before. `main` is the part, `source` the
# collection.
_OF_URL = "url_id IN (SELECT id FROM main.url)"
_BODIES = "SELECT body_id FROM {0}.page WHERE body_id > 0 UNION SELECT body_id FROM {0}.page_history WHERE body_id > 0"
_DICTIONARIES = "SELECT dictionary_id FROM main.body UNION SELECT dictionary_id FROM main.site"
_ROWS = {
    "host": "is_own_host(key)",
    "site": "id IN (SELECT site_id FROM main.host)",
    "robots": "is_own_host(substr(origin, instr(origin, '://') + 3))",
    **{
        "page_links"
        if table == "link"
        else table: f"{column} IN (SELECT id FROM main.{'host' if column == 'host_id' else 'url'})"
        for table, column in OWNERS.items()
    },
    "issue": _OF_URL,
    "visit": f"{_OF_URL} OR (url_id = 0 AND is_own_url(text))",
    "look": "visit_id IN (SELECT id FROM main.visit)",
}
"""Tables whose rows each belong to one part, in the order in which they are filled."""
_SHARED_ROWS = {
    "body": f"id IN ({_BODIES.format('main')})",
    "xml": "body_id IN (SELECT id FROM main.body)",
    "dictionary": f"id IN ({_DICTIONARIES})",
    **dict.fromkeys(sorted({*TABLES} - {*_ROWS, "link", "meta", "tally", "outbox", "file", "dictionary"}), "true"),
}
"""Tables that parts share: bytes of pages, runs, users' decisions."""


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
            rows = fill_part(draft, folder, part, notes)
            if (folder / SETTINGS_FILE).is_file():
                (new / SETTINGS_FILE).write_bytes((folder / SETTINGS_FILE).read_bytes())
        if is_address(target):
            into_database(new, target, silent)
    return rows


def fill_part(draft: sqlite3.Connection, source: Path, part: WebPart, notes: Mapping[str, str]) -> dict[str, int]:
    """Fills a new collection with one part of another, which must not change; returns the number of rows by table.

    notes: notes of the part. Link targets in other parts are inserted as already sent there. Raises StoreError unless
    all rows arrived.
    """
    draft.execute("ATTACH ? AS source", (str(source / schema.DATABASE),))
    draft.create_function("is_own_host", 1, lambda key: part_of(HostKey(key), part.of) == part.number)
    draft.create_function("is_own_url", 1, lambda text: part_of(host_key(Url(text)), part.of) == part.number)
    there = {name for (name,) in draft.execute("SELECT name FROM source.sqlite_master WHERE type = 'table'")}
    with folder_rows.transaction(draft):
        rows = {
            table: _copy_rows(draft, table, condition)
            for table, condition in (_ROWS | _SHARED_ROWS).items()
            if table in there
        }
        _insert_foreign_urls(draft)
        _complete(draft, notes)
    draft.execute("DETACH source")
    return rows


def _copy_rows(draft: sqlite3.Connection, table: str, condition: str) -> int:
    """Copies rows of a table and verifies them; returns their number."""
    columns = ", ".join(folder_rows.columns_of(draft, table))
    find = f"SELECT {columns} FROM source.{table} WHERE {condition}"
    draft.execute(f"INSERT INTO main.{table} ({columns}) {find}")
    left, arrived = (sum_of(draft.execute(query)) for query in (find, f"SELECT {columns} FROM main.{table}"))
    if left != arrived:
        raise StoreError(f"the table {table} was not copied completely: {left} were sent, {arrived} arrived.")
    return left.rows


def _insert_foreign_urls(draft: sqlite3.Connection) -> None:
    """Inserts URLs of other parts that rows of this part refer to, with their hosts and sites."""
    draft.execute("CREATE TEMP TABLE other (id INTEGER PRIMARY KEY)")
    targets = draft.execute("SELECT targets FROM main.page_links")
    draft.executemany(
        "INSERT OR IGNORE INTO other VALUES (?)", ((int(target),) for (ids,) in targets for target in ids.split())
    )
    named = (("page_id", "alias"), ("target", "link_history"), ("related_id", "issue"))
    for column, table in named:
        draft.execute(f"INSERT OR IGNORE INTO other SELECT {column} FROM main.{table} WHERE {column} IS NOT NULL")
    aside, raised = any_of(LEFT_ASIDE), any_of(RAISABLE_REASONS - LEFT_ASIDE)
    draft.execute(
        "INSERT INTO main.url (id, text, host_id, depth, in_sitemap, first_seen, reason, rule)"
        " SELECT id, text, host_id, depth, in_sitemap, first_seen,"
        f" CASE WHEN reason IN {aside} THEN reason ELSE '{Reason.OTHER_PART.value}' END,"
        f" CASE WHEN reason IN {aside} THEN rule WHEN reason IN {raised} THEN reason ELSE 'waiting' END"
        " FROM source.url WHERE id IN (SELECT id FROM other) AND id NOT IN (SELECT id FROM main.url)"
    )
    for table, columns, of in (("host", "id, key, site_id", "url"), ("site", "id, key", "host")):
        draft.execute(
            f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM source.{table}"
            f" WHERE id IN (SELECT {table}_id FROM main.{of}) AND id NOT IN (SELECT id FROM main.{table})"
        )
    draft.execute("DROP TABLE other")


def _complete(draft: sqlite3.Connection, notes: Mapping[str, str]) -> None:
    """Writes the part's own notes and totals, and removes leases."""
    own = ", ".join(f"'{name}'" for name in sorted(OWN_META))
    draft.execute(f"INSERT OR REPLACE INTO main.meta SELECT * FROM source.meta WHERE name NOT IN ({own})")
    draft.executemany("INSERT OR REPLACE INTO main.meta VALUES (?, ?)", notes.items())
    draft.execute("INSERT OR REPLACE INTO main.meta SELECT * FROM source.meta WHERE name = 'seq'")
    draft.execute("INSERT INTO main.tally SELECT 'reason:' || reason, count(*) FROM main.url GROUP BY reason")
    draft.execute("INSERT INTO main.tally SELECT 'known', count(*) FROM main.url")
    next_at = folder_rows.NEXT_AT.replace("t.", "")
    draft.execute(f"UPDATE main.host SET next_at = {next_at}, lease_by = NULL WHERE lease_by IS NOT NULL")
