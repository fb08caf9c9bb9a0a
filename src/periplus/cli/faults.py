"""`periplus faults`: what is to be mended, by cause, and what persons decide on it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TextIO

import click

from periplus.cli.options import (
    collection_option,
    collection_place,
    format_option,
    open_output,
    option,
    output_option,
    place_option,
)
from periplus.cli.progress import say
from periplus.errors import UsageError
from periplus.present.tables import FORMATS, write_table
from periplus.present.wording import count_of, visible
from periplus.values import Place

_STATES = ("open", "accepted", "ignored", "all")
_COLUMNS = ("key", "severity", "message", "cause", "pages", "decision", "assignee", "note")


@click.group()
def faults() -> None:
    """List faults by cause; accept, ignore or assign them.

    Accepted causes (will not be fixed) and ignored causes (not a fault) are left out of lists, sums, grades and gates
    until they are reopened. Each can have a note and an assignee. The browser shows the same notes.

    \b
    periplus faults list                                  causes, gravest first, with their keys
    periplus faults accept 3fa9c1d2 --note "archived"     by key, or how it begins; or by the cause itself
    periplus faults assign https://example.org/gone --to ann
    periplus faults reopen 3fa9
    periplus faults export -o notes.jsonl                 notes for another collection of the site:
    periplus faults import notes.jsonl -c new.periplus
    """


@faults.command("list")
@collection_option
@option("--decision", "Only causes with this decision; default: open.", _STATES, "open")
@option("--assignee", "Only causes of this assignee.", str, "", metavar="NAME")
@option("--code", "Only this kind.", str, "")
@option("-n --limit", "Most causes.", click.IntRange(1))
@format_option(FORMATS)
@output_option
def list_faults(collection: Place | None, limit: int | None, format: str, output: Path | None, **flags: str) -> None:
    """List causes, gravest first, with their keys."""
    from periplus.analyse.audit import issue_kinds
    from periplus.api.faults import KEY_CHARS, noted_faults
    from periplus.model.tables import FAULTS
    from periplus.present.issues import fault_row

    state = {"open": "", "all": None}.get(flags["decision"], flags["decision"])
    rows = [
        (key[:KEY_CHARS], *fault_row(noted.fault, issue_kinds(), noted.note, noted.since))
        for key, noted in noted_faults(collection_place(collection)).items()
        if state in (None, noted.note.decision.value)
        and flags["assignee"] in ("", noted.note.assignee)
        and flags["code"] in ("", noted.fault.code)
    ][:limit]
    names = ("key", *FAULTS.names)
    if format == "table":
        rows = [tuple(row[names.index(name)] for name in _COLUMNS) for row in rows]
    with open_output(output, exact=format != "table") as out:
        write_table(_COLUMNS if format == "table" else names, rows, format, out)


def _verb(verb: str, sentence: str) -> None:
    @faults.command(verb, help=sentence)
    @click.argument("subjects", nargs=-1, required=True, metavar="KEY|CAUSE...")
    @place_option
    @option("--note", "A note; '' removes it.", metavar="TEXT")
    @option("--to", "Name of the assignee; '' removes it.", metavar="NAME")
    def decide_faults(subjects: tuple[str, ...], place: Place, note: str | None, to: str | None) -> None:
        from periplus.api.faults import KEY_CHARS, decide
        from periplus.store.notes import fault_key

        if verb == "assign" and to is None:
            raise UsageError("name the assignee: --to NAME")
        done = decide(place, verb, subjects, time.time(), words=note, assignee=to)
        for noted in done:
            state = noted.note.decision.value or "open"
            assignee = f", {visible(noted.note.assignee)} mends it" if noted.note.assignee else ""
            key = fault_key(noted.fault.code, noted.fault.cause)[:KEY_CHARS]
            say(f"{key}  {noted.fault.code}: {visible(noted.fault.cause)} is {state}{assignee}.")


for _name, _sentence in (
    ("accept", "Accept causes: they may stay so."),
    ("ignore", "Ignore causes: they are no faults."),
    ("reopen", "Open causes again: they are to be mended."),
    ("assign", "Assign causes to a person, or write notes on them."),
):
    _verb(_name, _sentence)


@faults.command("export")
@place_option
@output_option
def export_notes(place: Place, output: Path | None) -> None:
    """Write all notes, a JSON object a line."""
    from periplus.api.faults import written_notes

    lines = list(written_notes(place))
    with open_output(output, exact=True) as out:
        out.writelines(line + "\n" for line in lines)


@faults.command("import")
@click.argument("file", type=click.File("r", encoding="utf-8"))
@place_option
def import_notes(file: TextIO, place: Place) -> None:
    """Take notes that `export` wrote, each in place of that on its cause."""
    from periplus.api.faults import read_notes

    say(f"{count_of(read_notes(place, file), 'note')} taken.")
