"""Named notes of a collection, and users' notes on causes of faults: texts in the table `meta`, in SQL for both
databases. They move with the collection.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import xxhash

from periplus.model.audit import FaultDecision, FaultNote
from periplus.model.frontier import CHOSEN_NOTE, Batch
from periplus.store.statements import Statements

CHANGES = "changes"  # name of a note: number of changes of the collection by others than crawls
_FAULT = "fault:"  # prefix of the key in meta, followed by a digest, since a cause may be too long for an index
_FIELDS = ("code", "cause", "decision", "assignee", "words", "made")


def note(statements: Statements, name: str, *, for_update: bool = False) -> str:
    """Value of a note, or empty. for_update: locks it within this transaction."""
    lock = statements.dialect.for_update if for_update else ""
    rows = statements.rows(f"SELECT value FROM meta WHERE name = ?{lock}", (name,))
    return str(rows[0][0]) if rows else ""


def put_note(statements: Statements, name: str, text: str) -> None:
    """Sets a note; an empty text deletes it. Call it within a transaction."""
    if text:
        upsert = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        statements.change(upsert, (name, text))
    else:
        statements.change("DELETE FROM meta WHERE name = ?", (name,))


def change_note(statements: Statements, name: str, changed: Callable[[str], str]) -> str:
    """See `model.ports.CrawlHome.change_note`. Call it within a transaction."""
    if statements.dialect.for_update:
        statements.change("LOCK TABLE meta IN SHARE ROW EXCLUSIVE MODE")
    text = changed(note(statements, name))
    put_note(statements, name, text)
    return text


def count_change(statements: Statements) -> None:
    """Counts a change of the collection that no crawl made. Call it within a transaction."""
    change_note(statements, CHANGES, lambda number: str(int(number or 0) + 1))


def put_chosen_pages(statements: Statements, batch: Batch) -> None:
    """Stores the pages chosen in advance. Call it within a transaction."""
    if batch.chosen is not None:
        put_note(statements, CHOSEN_NOTE, "\n".join(batch.chosen))


# Notes on faults.


def fault_notes(statements: Statements) -> tuple[FaultNote, ...]:
    """All notes on faults, sorted by code and cause."""
    notes = []
    for (value,) in statements.rows("SELECT value FROM meta WHERE name LIKE ?", (_FAULT + "%",)):
        fields = json.loads(str(value))
        notes.append(FaultNote(**{**fields, "decision": FaultDecision(fields["decision"])}))
    return tuple(sorted(notes, key=lambda note: (note.code, note.cause)))


def fault_key(code: str, cause: str) -> str:
    """Short key of a cause: 32 hexadecimal digits."""
    return xxhash.xxh3_128_hexdigest(f"{code}\n{cause}".encode("utf-8", "surrogatepass"))


def put_fault_note(statements: Statements, note: FaultNote) -> None:
    """Replaces the note on a cause; an empty note deletes it. Call it within a transaction."""
    name = _FAULT + fault_key(note.code, note.cause)
    fields = {field: getattr(note, field) for field in _FIELDS}
    put_note(statements, name, "" if note.is_empty else json.dumps(fields))
