"""`periplus` alone: what to do next, by what lies here. It asks nothing, fetches nothing and writes nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from periplus.errors import PeriplusError
from periplus.present.wording import count_of, number, utc, visible
from periplus.settings import SUFFIX

if TYPE_CHECKING:
    from periplus.api.collection import Status

COLLECTIONS_SHOWN = 10
_HELP = ("", "  periplus --help              every command", "  periplus COMMAND --help      its flags")


def next_steps() -> Iterator[str]:
    """What lies in the current folder, and the commands that one may type next."""
    folders = sorted(path for path in Path().glob(f"*{SUFFIX}") if path.is_dir())
    if not folders:
        yield "Periplus charts a chosen part of the web. No collection is here yet. To begin:"
        yield from _rows(
            ("crawl https://example.org", f"fetch a site politely into ./example.org{SUFFIX}"),
            ("check https://example.org", "find its dead links and other faults"),
            ("serve", "the same in a browser"),
        )
    elif len(folders) == 1:
        yield from _one(folders[0])
    else:
        yield f"{count_of(len(folders), 'collection')} here; -c names one of them:"
        for folder in folders[:COLLECTIONS_SHOWN]:
            yield f"  {_sentence(folder)}"
        if len(folders) > COLLECTIONS_SHOWN:
            yield f"  and {count_of(len(folders) - COLLECTIONS_SHOWN, 'more')}"
        yield "Next:"
        named = f"-c {shlex.quote(str(folders[0]))}"
        yield from _rows(
            (f"status {named}", "what it holds"),
            (f"map {named}", "its structure"),
            ("serve", "all of them in a browser"),
        )
    yield from _HELP


def _one(folder: Path) -> Iterator[str]:
    yield _sentence(folder)
    yield "Next:"
    report = _status(folder)
    if isinstance(report, str) or not report.runs:
        yield from _rows(("status", "what is there"), ("crawl https://example.org", "fetch a site"))
        return
    rows: list[tuple[str, str]] = []
    run = report.runs[-1]
    if report.running:
        rows.append(("resume", "have it go on") if report.paused else ("status", "how far it is"))
    elif run.kind == "crawl" and report.entries_waiting and run.starts:
        start = shlex.quote(visible(run.starts[0]))
        rows.append((f"crawl {start} -o {shlex.quote(str(folder))}", f"go on: {number(report.entries_waiting)} wait"))
    rows += [
        ("map", "the structure as a tree"),
        ("report", "one page that shows what was found"),
        ("check", "dead links and other faults"),
        ("search WORDS", "pages by their words"),
        ("serve", "all of it in a browser"),
    ]
    if not report.running:
        rows.append(("refresh", "fetch again only what changed"))
    yield from _rows(*rows)


def _status(folder: Path) -> Status | str:
    """How a collection stands; a text: why that cannot be told."""
    from periplus.api.collection import Collection

    try:
        with Collection(folder) as collection:
            return collection.status()
    except PeriplusError as error:
        return str(error)


def _sentence(folder: Path) -> str:
    """A collection and how its last run ended."""
    report = _status(folder)
    if isinstance(report, str):
        return f"{folder}: {report}"
    if not report.runs:
        return f"{folder}: no run yet"
    run = report.runs[-1]
    return (
        f"{folder}: {count_of(run.fetched, 'page')} fetched by the last {run.kind} "
        f"({report.state}, {utc(run.started, '%d %b %Y %H:%M UTC')})"
    )


def _rows(*rows: Sequence[str]) -> Iterator[str]:
    width = max(len(command) for command, _ in rows)
    for command, sentence in rows:
        yield f"  periplus {command:<{width}}   {sentence}"
