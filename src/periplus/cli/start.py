"""`periplus` alone: useful next commands for the current folder; `periplus help` and `periplus completion`.

They ask nothing, fetch nothing and write nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import dedent, fill
from typing import TYPE_CHECKING

import click

from periplus.cli import HELP_ALL
from periplus.errors import PeriplusError, UsageError
from periplus.present.wording import count_of, number, utc, visible
from periplus.settings import SUFFIX

if TYPE_CHECKING:
    from periplus.api.collection import Status

MOST_COLLECTIONS = 10
_HELP = ("", "  periplus --help              every command", "  periplus help TOPIC          a command, or one of: ")
_SHELLS = ("bash", "zsh", "fish")
TOPICS = {
    "tutorials": """
        Ten minutes each, with example webs that `periplus demo` serves on this machine; docs/tutorials has the whole.
        Webmaster: crawl, map, check, report, refresh, diff. Webometrician: survey create, run, status, export, report.
        Editor: crawl -i FILE, stories, influence, topic train, portal create, build. Archivist: page, export warc,
        import warc, sql, delete. Administrator: settings --effective, jobs, worker, notices, serve. Python:
        periplus.crawl, open, check, sql. To begin: `periplus demo` in one terminal, `periplus demo --settings >
        periplus.toml` in another, then `periplus crawl http://127.0.0.1:8000/`.""",
    "collections": """
        A collection is a folder whose name ends in .periplus. It has everything that was fetched, and the results
        computed from it. Commands use the only collection in the current folder, or the collection given by -c.
        `periplus crawl URL` starts or continues it; you can stop it at any moment, by any means. -c postgresql://...
        names a collection in PostgreSQL. Only `periplus delete` and `crawl --fresh` delete anything.""",
    "addresses": """
        A page is named by its URL in any spelling (`https://example.org/a`, `example.org/a`), or by its path alone
        (`/a`) on the site where the crawl began. A site is named by its host without www (`example.org`), with a port
        where it has one. `periplus pages --url TEXT` finds URLs that contain a text.""",
    "settings": """
        Every setting is a flag of `periplus crawl` and a name in the table [settings] of periplus.toml. Files are read
        in the current folder and in the collection's, the latter over the former; flags go over both. An unknown name
        is an error. `periplus settings` lists them, `periplus settings --effective` shows their sources.""",
    "politeness": """
        One request at a time to a host, 0.5 s at least between two starts, robots.txt obeyed (RFC 9309), slower when a
        server asks for it. Hosts that you declare your own (--mine example.org, --mine '*.example.org') may be asked
        faster, and without robots.txt (--ignore-robots). Private addresses are refused without --allow-private.""",
    "ci": """
        `periplus check https://example.org --fail-on broken -f junit -o check.xml` ends with 5 when a link is broken;
        -f github writes annotations. `--baseline last` counts only what the check before did not find. `periplus
        --help` ends with the exit codes. With PERIPLUS_NO_PROGRESS in the environment no command shows progress.""",
    "extras": """
        The core crawls, maps, checks, reports and searches. The rest are extras: ui (serve), pdf, office (Markdown,
        Excel), progress, brotli; and parquet, postgres, segments, mcp, cluster. `pip install 'periplus[ui]'` adds what
        one of them needs. A command that lacks one names it.""",
}
"""What `periplus help TOPIC` explains, besides commands."""


def next_steps() -> Iterator[str]:
    """The collections in the current folder, and useful next commands."""
    folders = sorted(path for path in Path().glob(f"*{SUFFIX}") if path.is_dir())
    if not folders:
        yield "Periplus charts a chosen part of the web. No collection is here yet. To begin:"
        yield from _rows(
            ("crawl https://example.org", f"fetch a site politely into ./example.org{SUFFIX}"),
            ("check https://example.org", "find its broken links and other faults"),
            ("serve", "the same in a browser"),
        )
    elif len(folders) == 1:
        yield from _collection_lines(folders[0])
    else:
        yield f"{count_of(len(folders), 'collection')} here; -c names one of them:"
        for folder in folders[:MOST_COLLECTIONS]:
            yield f"  {_sentence(folder)}"
        if len(folders) > MOST_COLLECTIONS:
            yield f"  and {count_of(len(folders) - MOST_COLLECTIONS, 'more')}"
        yield "Next:"
        named = f"-c {shlex.quote(str(folders[0]))}"
        yield from _rows(
            (f"status {named}", "what it holds"),
            (f"map {named}", "its structure"),
            ("serve", "all of them in a browser"),
        )
    yield from _HELP[:-1]
    yield _HELP[-1] + ", ".join(TOPICS)


def _collection_lines(folder: Path) -> Iterator[str]:
    yield _sentence(folder)
    yield "Next:"
    report = _status(folder)
    if isinstance(report, str) or not report.runs:
        yield from _rows(("status", "what is there"), ("crawl https://example.org", "fetch a site"))
        return
    rows: list[tuple[str, str]] = []
    run = report.runs[-1]
    if report.running:
        rows.append(("resume", "continue it") if report.paused else ("status", "how far it is"))
    elif run.kind == "crawl" and report.entries_waiting and run.starts:
        start = shlex.quote(visible(run.starts[0]))
        rows.append(
            (f"crawl {start} -o {shlex.quote(str(folder))}", f"continue: {number(report.entries_waiting)} wait")
        )
    rows += [
        ("map", "the structure as a tree"),
        ("report", "one page that shows what was found"),
        ("check", "broken links and other faults"),
        ("search WORDS", "pages by their words"),
        ("serve", "all of it in a browser"),
    ]
    if not report.running:
        rows.append(("refresh", "fetch again only what changed"))
    yield from _rows(*rows)


def _status(folder: Path) -> Status | str:
    """Status of a collection, or a text: why it cannot be read."""
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


@click.command("help")
@click.argument("words", nargs=-1, metavar="[TOPIC | COMMAND]")
@click.pass_context
def help_command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Explain a command with all of its flags, or a topic; without one, list the topics."""
    if not words:
        click.echo(
            "Topics: " + ", ".join(TOPICS) + ".\nAny command is one too: periplus help crawl; periplus help topic train"
        )
    elif len(words) == 1 and words[0] in TOPICS:
        click.echo(fill(dedent(TOPICS[words[0]]).strip().replace("\n", " "), 80, break_on_hyphens=False))
    else:
        parent = ctx.parent or ctx
        command, path = parent.command, "periplus"
        for word in words:
            child = command.get_command(parent, word) if isinstance(command, click.Group) else None
            if child is None:
                raise UsageError(
                    f"{' '.join(words)!r} is neither a topic nor a command. Topics: {', '.join(TOPICS)}; "
                    f"`periplus --help` "
                    "lists the commands"
                )
            command, path = child, f"{path} {word}"
            parent = click.Context(command, info_name=word, parent=parent)
        parent.meta[HELP_ALL] = True
        click.echo(command.get_help(parent))


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Write what makes a shell complete commands, flags and their values.

    \b
    periplus completion bash >> ~/.bashrc
    periplus completion zsh >> ~/.zshrc
    periplus completion fish > ~/.config/fish/completions/periplus.fish
    """
    from click.shell_completion import get_completion_class

    completer = get_completion_class(shell)
    assert completer is not None
    click.echo(completer(ctx.find_root().command, {}, "periplus", "_PERIPLUS_COMPLETE").source())
