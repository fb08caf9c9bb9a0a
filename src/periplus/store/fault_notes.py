"""What persons noted on causes of faults, for both databases: rows of the table meta, so that they move with it."""

from __future__ import annotations

import json

import xxhash

from periplus.model.audit import FaultDecision, FaultNote
from periplus.store.dialect import Statements

_PREFIX = "fault:"  # of their names in meta; a digest follows, since a cause may be longer than an index takes
_FIELDS = ("code", "cause", "decision", "assignee", "words", "made")


def notes(statements: Statements) -> tuple[FaultNote, ...]:
    """All of them, by code and cause."""
    made = []
    for (value,) in statements.rows("SELECT value FROM meta WHERE name LIKE ?", (_PREFIX + "%",)):
        fields = json.loads(str(value))
        made.append(FaultNote(**{**fields, "decision": FaultDecision(fields["decision"])}))
    return tuple(sorted(made, key=lambda note: (note.code, note.cause)))


def key_of(code: str, cause: str) -> str:
    """What names a cause shortly: 32 hexadecimal digits."""
    return xxhash.xxh3_128_hexdigest(f"{code}\n{cause}".encode("utf-8", "surrogatepass"))


def put(statements: Statements, note: FaultNote) -> None:
    """In place of what was noted on the cause before; an empty note takes that away. Within a transaction."""
    name = _PREFIX + key_of(note.code, note.cause)
    if note.is_empty:
        statements.change("DELETE FROM meta WHERE name = ?", (name,))
        return
    value = json.dumps({field: getattr(note, field) for field in _FIELDS})
    upsert = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    statements.change(upsert, (name, value))
