"""The command `periplus`: its subcommands are imported when they are asked for, so that help answers at once."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from itertools import chain
from pathlib import Path

import click

from periplus.cli import HELP_ALL, show_all
from periplus.errors import PeriplusError, UsageError
from periplus.features import OURS, FeaturePart, features, loaded, parts
from periplus.masking import masked_command, without_secrets
from periplus.values import PIPES

# of the help, each with the core's commands: name: (place, sentence); the sentence is here so that
# `--help` imports nothing
_SECTIONS = {
    "Fetch": {
        "crawl": (
            "periplus.cli.crawl:crawl",
            "Fetch a site politely and store it; the same command continues an interrupted crawl.",
        ),
        "refresh": ("periplus.cli.crawl:refresh", "Bring a collection up to date: fetch again only what changed."),
        "check": ("periplus.cli.check:check", "Find broken links and other faults of a site; fail a build on them."),
        "faults": ("periplus.cli.faults:faults", "List faults by cause; accept, ignore or assign them."),
        "pause": ("periplus.cli.status:pause", "Pause a running crawl."),
        "resume": ("periplus.cli.status:resume", "Resume a paused crawl."),
        "import": (
            "periplus.cli.export:imports",
            "Make a collection of WARC, ARC or WACZ files, without fetching.",
        ),
    },
    "Look": {
        "trends": (
            "periplus.cli.status:trends",
            "Show how a collection changed over all of its runs: size, health, grades.",
        ),
        "status": ("periplus.cli.status:status", "Say what a collection holds and how its runs ended."),
        "map": ("periplus.cli.map:site_map", "Show the structure of a crawled site as a tree."),
        "report": ("periplus.cli.map:report", "Write one page that shows what was found."),
        "pages": ("periplus.cli.listing:pages", "List URLs with their state, status and title."),
        "links": ("periplus.cli.listing:links", "List links, with anchors and positions."),
        "page": ("periplus.cli.listing:page", "Show one stored page, or its metadata."),
        "search": ("periplus.cli.search:search", "Find pages by their words."),
        "index": ("periplus.cli.search:index", "Update or rebuild the search index."),
        "diff": ("periplus.cli.map:diff", "Compare two runs: pages, links, the map, issues."),
    },
    "Study": {
        "duplicates": ("periplus.cli.study:duplicates", "List pages with the same or nearly the same text."),
        "template": ("periplus.cli.study:template", "Tell navigation from content, by what a site's pages share."),
    },
    "Take along": {
        "export": (
            "periplus.cli.export:export",
            "Write tables as CSV, JSON lines, Parquet or Excel; the pages as WARC or WACZ, or a copy.",
        ),
        "delete": (
            "periplus.cli.delete:delete",
            "Delete pages, a site, a run or a whole collection; lists first what it deletes.",
        ),
        "sql": ("periplus.cli.export:sql", "Ask a collection a question in SQL."),
    },
    "Run": {
        "serve": ("periplus.cli.jobs:serve", "Show collections in a browser; start and watch crawls there."),
        "jobs": ("periplus.cli.jobs:jobs", "Ask for work, see how far it is, call it off; once or every so often."),
        "worker": ("periplus.cli.jobs:worker", "Do the jobs that wait, until Ctrl-C."),
        "rules": ("periplus.cli.settings:rules", "Decide which addresses are one page."),
        "settings": ("periplus.cli.settings:settings", "List every setting, its default and its range."),
        "help": (
            "periplus.cli.start:help_command",
            "Explain a command with all of its flags, or a topic.",
        ),
        "completion": ("periplus.cli.start:completion", "Write what makes a shell complete commands and flags."),
    },
}
_RARE = {
    "pause", "resume", "import", "trends", "index", "template", "delete", "worker", "rules", "completion",
}  # fmt: skip
"""Commands that only `--help-all` shows."""
_COMMANDS = {
    name: FeaturePart("commands", name, OURS, place)
    for section in _SECTIONS.values()
    for name, (place, _) in section.items()
}
for _command in chain.from_iterable(feature.commands for feature in features().values()):
    if _command.name not in _COMMANDS:
        _COMMANDS[_command.name] = parts("commands")[_command.name]
        _SECTIONS.setdefault(_command.section, {})[_command.name] = _command.place, _command.sentence
        _RARE.update([_command.name] if _command.is_rare else [])
_EXIT_CODES = """
Exit codes: 0 done, or stopped at a limit you set; 1 an error; 2 a wrong command or setting; 3 a crawl that is done
but for URLs in doubt; 4 a crawl that read no page, a check without a net; 5 a check in which --fail-on holds, or a
diff --exit-code that is not empty; 6 a crawl in which most requests failed; 130 stopped by Ctrl-C.
A reader that stops early (`| head`) changes none of them; in a pipe, `set -o pipefail` lets the shell see them.
"""
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""What NumPy's linear algebra reads when it is loaded.

Our matrices are small: more threads only spin beside one another, which made marking pages three times as dear and
learning a topic a hundred times.
"""
_GARBAGE_LOOK = 50_000
"""Objects after which Python looks for circles among them; 700 by default, which is a twelfth of a crawl's start."""
_BREAKS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError)
"""Raised by a damaged value and by a bug of ours; checking the collection shows which."""
_STANDING = frozenset({"serve", "mcp", "worker", "demo"})
"""Commands that wait for requests: their running time means nothing."""


def command_names() -> frozenset[str]:
    return frozenset(_COMMANDS)


def _damage(ctx: click.Context) -> str:
    """What is wrong with the values of the collection that the command read; empty: nothing that we know of."""
    from periplus.api.homes import FOLDERS
    from periplus.cli.options import COLLECTION

    try:
        return FOLDERS.damage(ctx.meta[COLLECTION]) if COLLECTION in ctx.meta else ""
    except PeriplusError:
        return ""


def _flush(result: object) -> object:
    sys.stdout.flush()  # here, where a closed pipe is still expected
    return result


def _hide_secrets() -> None:
    """Overwrites secrets on the command line where other users read it (`ps`), on Linux."""
    pairs = zip(sys.argv, masked_command(sys.argv), strict=True)
    shown = [(word.encode(), plain.encode()[: len(word)]) for word, plain in pairs if word != plain]
    status = Path("/proc/self/stat")
    if not shown or not status.is_file():
        return
    import ctypes

    fields = status.read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5), 48 and 49 of all
    title = ctypes.string_at(start, end - start)
    for word, plain in shown:
        title = title.replace(word, plain.ljust(len(word), b"\0"))
    ctypes.memmove(start, title, len(title))


def _print_error(text: str) -> None:
    from periplus.cli.progress import say

    say(text, level=logging.ERROR)


class _Commands(click.Group):
    """The table above as a click group."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = _COMMANDS[cmd_name].load(click.Command)
        if isinstance(command, click.Group):
            for _, added in loaded("subcommands", click.Command, f"{cmd_name} ").values():
                if added.name not in command.commands:
                    command.add_command(added)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        hidden = frozenset() if HELP_ALL in ctx.meta else _RARE
        # of all sections together, so that the sentences form one column
        width = max(map(len, _COMMANDS))
        for title, rows in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), row[1]) for name, row in rows.items() if name not in hidden])

    def invoke(self, ctx: click.Context) -> object:
        """Turns our own errors into one sentence and an exit code; any other error is a bug and shows its traceback."""
        for name, threads in _ONE_THREAD.items():
            os.environ.setdefault(name, threads)
        gc.set_threshold(_GARBAGE_LOOK)
        _hide_secrets()
        if PIPES in os.environ:
            from periplus.children import stop_with_runner

            stop_with_runner()
        try:
            if not sys.stderr.isatty():
                return _flush(super().invoke(ctx))
            from periplus.cli.progress import Pulse

            with Pulse(lambda: "" if ctx.invoked_subcommand in _STANDING else ctx.invoked_subcommand or "periplus"):
                return _flush(super().invoke(ctx))
        except click.ClickException as error:
            error.message = without_secrets(error.message)  # type: ignore[misc]  # final in subclasses
            group = error.ctx.command if isinstance(error, click.NoSuchOption) and error.ctx else None
            if isinstance(group, click.Group) and group.commands:
                error.message += f" Options follow one of its commands: {', '.join(group.commands)}."  # type: ignore[misc]
            raise
        except PeriplusError as error:
            _print_error(f"periplus: {without_secrets(str(error))}")
            sys.exit(2 if isinstance(error, UsageError) else 1)
        except _BREAKS as error:
            if not (damage := _damage(ctx)):
                raise
            click.echo(
                (
                    f"periplus: the collection is damaged: {damage}. Restore it from a copy, or crawl again into "
                    f"another folder. ({error!r})"
                ),
                err=True,
            )
            sys.exit(1)
        except ModuleNotFoundError as error:
            from periplus.extras import EXTRAS, absence

            if error.name not in EXTRAS:
                raise
            _print_error(f"periplus: {absence(error.name)}")
            sys.exit(2)
        except KeyboardInterrupt:  # where a command has nothing to store first
            click.echo("\nStopped.", err=True)
            sys.exit(128 + signal.SIGINT)
        except BrokenPipeError:  # the reader of our output has seen enough
            from periplus.cli.options import silence_output

            silence_output()
            sys.exit(0)


def _show_version(ctx: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    if not is_asked:
        return
    from periplus.document.native import interpreter_reason
    from periplus.settings import VERSION

    reason = interpreter_reason()
    click.echo(f"periplus, version {VERSION}\nreader: {f'interpreted (slow): {reason}' if reason else 'compiled'}")
    ctx.exit()


@click.command(
    cls=_Commands,
    commands=dict.fromkeys(_COMMANDS),  # their names, for suggestions
    invoke_without_command=True,
    epilog=_EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--help-all",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_all,
    help=f"Show every command, these and {len(_RARE)} more, and exit.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Periplus charts a chosen part of the web.

    It crawls sites politely, keeps what it saw in one folder, and shows each site's structure.

    \b
    periplus crawl https://example.org     fetch a site into ./example.org.periplus
    periplus map                           show its structure
    """
    if ctx.invoked_subcommand is None:
        from periplus.cli.start import next_steps

        click.echo("\n".join(next_steps()))
