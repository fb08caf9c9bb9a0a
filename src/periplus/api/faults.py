"""Lists faults by cause, stores users' decisions on them, and exports and imports the notes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from periplus.analyse.audit import issue_kinds
from periplus.api.homes import home_of, place_at
from periplus.api.tables import Browser, NotedFault
from periplus.errors import UsageError
from periplus.model.audit import FaultDecision, FaultNote
from periplus.store.notes import fault_key
from periplus.values import Place

KEY_CHARS = 8  # of a key that are shown: among 100,000 causes two share them with a probability of 1 in 90
VERBS = {
    "accept": FaultDecision.ACCEPTED, "ignore": FaultDecision.IGNORED, "reopen": FaultDecision.OPEN, "assign": None,
}  # fmt: skip


def noted_faults(place: Place) -> dict[str, NotedFault]:
    """All present causes by key, most severe first. Raises NoCollection, StoreError."""
    return {fault_key(noted.fault.code, noted.fault.cause): noted for noted in Browser().noted_faults(place_at(place))}


def decide(
    place: Place,
    verb: str,
    subjects: Sequence[str],
    now: float,
    *,
    words: str | None = None,
    assignee: str | None = None,
) -> list[NotedFault]:
    """Stores a user's decision on causes. All or nothing.

    subjects: keys, unique prefixes of keys, or the causes themselves. words: the note. None keeps the old note or
    assignee, an empty text clears it. Returns the causes with their new notes. Raises UsageError for an unknown or
    ambiguous subject.
    """
    causes = noted_faults(place)
    chosen = [noted for subject in subjects for noted in _find_causes(causes, subject)]
    home, done = home_of(place), []
    for noted in chosen:
        decision = VERBS[verb]
        note = replace(
            noted.note,
            decision=noted.note.decision if decision is None else decision,
            words=noted.note.words if words is None else words.strip(),
            assignee=noted.note.assignee if assignee is None else assignee.strip(),
            made=now,
        )
        home.note_fault(note)
        done.append(replace(noted, note=note))
    return done


def _find_causes(causes: Mapping[str, NotedFault], subject: str) -> list[NotedFault]:
    by_cause = [noted for noted in causes.values() if noted.fault.cause == subject]
    if by_cause:
        return by_cause  # a URL may cause faults of several kinds
    keys = [key for key in causes if len(subject) > 3 and key.startswith(subject.lower())]
    if len(keys) != 1:
        why = f"begins {len(keys)} keys: write more of it" if keys else "is not a key or the cause of a fault"
        raise UsageError(f"{subject!r} {why}; `periplus faults list` shows them. Nothing was changed.")
    return [causes[keys[0]]]


def written_notes(place: Place) -> Iterator[str]:
    """All notes, one JSON object per line; including those of fixed causes, which may recur."""
    for note in home_of(place).fault_notes():
        yield json.dumps(asdict(note), ensure_ascii=False)


def read_notes(place: Place, lines: Iterable[str]) -> int:
    """Imports notes written by `written_notes`, replacing those on the same causes. All or nothing; returns the number.

    Raises UsageError that names the line.
    """
    notes = [_note(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    home = home_of(place)
    for note in notes:
        home.note_fault(note)
    return len(notes)


def _note(number: int, line: str) -> FaultNote:
    try:
        fields = json.loads(line)
        texts = {name: str(fields.get(name, "")) for name in ("assignee", "words")}
        decision = FaultDecision(fields.get("decision", ""))
        note = FaultNote(
            str(fields["code"]), str(fields["cause"]), decision, **texts, made=float(fields.get("made", 0))
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"line {number} is not a note on a fault ({error}). Nothing was changed.") from None
    if note.code not in issue_kinds():
        raise UsageError(f"line {number}: unknown kind of fault {note.code[:80]!r}. Nothing was changed.")
    return note
