"""What a collection notes about itself, and persons on causes of faults: texts by name in the table meta, in the words
of both databases. They move with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import xxhash

from periplus.model.audit import FaultDecision, FaultNote
from periplus.model.frontier import CHOSEN_NOTE, Batch
from periplus.store.dialect import Statements


def note(statements: Statements, name: str, *, for_update: bool = False) -> str:
    """What stands under a name; empty: nothing. for_update: nobody else changes it within this transaction."""
    lock = statements.dialect.for_update if for_update else ""
    rows = statements.rows(f"SELECT value FROM meta WHERE name = ?{lock}", (name,))
    return str(rows[0][0]) if rows else ""


def put_note(statements: Statements, name: str, text: str) -> None:
    """In place of what stood there; empty: nothing stands there then. Within a transaction."""
    if text:
        upsert = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        statements.change(upsert, (name, text))
    else:
        statements.change("DELETE FROM meta WHERE name = ?", (name,))


def change_note(statements: Statements, name: str, changed: Callable[[str], str]) -> str:
    """See `model.ports.CrawlHome.change_note`. Within a transaction."""
    if statements.dialect.for_update:
        statements.change("LOCK TABLE meta IN SHARE ROW EXCLUSIVE MODE")
    text = changed(note(statements, name))
    put_note(statements, name, text)
    return text


def put_chosen(statements: Statements, batch: Batch) -> None:
    """The pages that are chosen ahead. Within a transaction."""
    if batch.chosen is not None:
        put_note(statements, CHOSEN_NOTE, "\n".join(batch.chosen))


# Of faults.

_FAULT = "fault:"  # of their names in meta; a digest follows, since a cause may be longer than an index takes
_FIELDS = ("code", "cause", "decision", "assignee", "words", "made")


def fault_notes(statements: Statements) -> tuple[FaultNote, ...]:
    """All of them, by code and cause."""
    made = []
    for (value,) in statements.rows("SELECT value FROM meta WHERE name LIKE ?", (_FAULT + "%",)):
        fields = json.loads(str(value))
        made.append(FaultNote(**{**fields, "decision": FaultDecision(fields["decision"])}))
    return tuple(sorted(made, key=lambda note: (note.code, note.cause)))


def fault_key(code: str, cause: str) -> str:
    """What names a cause shortly: 32 hexadecimal digits."""
    return xxhash.xxh3_128_hexdigest(f"{code}\n{cause}".encode("utf-8", "surrogatepass"))


def put_fault_note(statements: Statements, note: FaultNote) -> None:
    """In place of what was noted on the cause before; an empty note takes that away. Within a transaction."""
    name = _FAULT + fault_key(note.code, note.cause)
    fields = {field: getattr(note, field) for field in _FIELDS}
    put_note(statements, name, "" if note.is_empty else json.dumps(fields))
