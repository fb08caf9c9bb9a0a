"""The options that commands share.

Settings' flags are made from the table of settings; a collection is named or found.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import click

from periplus.cli import HELP_ALL, show_all
from periplus.errors import NoCollection, UnknownSetting, UsageError
from periplus.features import is_address
from periplus.logs import FORMAT_VARIABLE, FORMATS, configure
from periplus.model.page import ALL_PARTS, PART_CHOICES, TEXT_PARTS, Part
from periplus.settings import (
    SETTINGS_FILE,
    SUFFIX,
    Settings,
    preset_named,
    read_files,
    read_presets,
    rows,
    settings_from,
)
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.api.collection import Collection

COLLECTION_VARIABLE = "PERIPLUS_COLLECTION"
COLLECTION = "periplus.collection"  # click's key for the collection of a command, for the message at its end
PIPED_COLUMNS = 100  # width of a text that goes to a file or a pipe
LARGEST = 2**63 - 1  # of SQLite's integers
_SHORT = {"max_depth": "-l", "delay_s": "-w"}
FILE = click.Path(path_type=Path, dir_okay=False)
PATH = click.Path(path_type=Path)
# in the order of help; the group of a setting gives the title where no flag is named here
_TITLES = {
    "scope": "Where",
    "budget": "How much",
    "politeness": "How polite",
    "storage": "What to keep",
    "rendering": "Rendering",
    "identity": "Network",
    "past": "Archives",
    "limits": "Limits",
    "auditing": "Output",
    "": "More",
}
_COMMON = {"Where", "How much", "How polite", "What to keep"}  # titles in --help; the rest is "Other"
_SECTIONS = {
    "lists": "Where", "collection": "Where", "site": "Where", "sitemaps": "Where",
    "max_depth": "How much", "everything": "How much", "every": "How much", "external": "How much",
    "fragments": "How much", "offline": "How much", "workers": "How much", "head": "How polite",
    "preset": "How polite", "user_agent": "How polite", "contact": "How polite", "fresh": "What to keep",
    "near": "Output", "segment": "Output", "fail_on": "Output", "fail_below": "Output", "baseline": "Output",
    "format": "Output", "output": "Output", "quiet": "Output", "no_progress": "Output", "verbose": "Output",
    "on": "Several machines", "part": "Several machines", "exchange": "Several machines",
    "until_all_done": "Several machines",
}  # fmt: skip
_EVERYDAY = frozenset({
    "lists", "collection", "scope", "include", "exclude", "max_depth", "max_pages", "max_time_s", "external",
    "fragments", "offline", "every", "delay_s", "mine", "contact", "fresh", "keep_parts", "render", "login",
    "allow_private", "fail_on", "fail_below", "baseline", "format", "output", "quiet", "preset",
})  # fmt: skip
"""Flags shown by `--help` of commands with many flags; --help-all shows the rest."""
_PHRASE_END = re.compile(r"[.;:] | \(|\.$")  # `--help` shows the first phrase of a flag's sentence


class FolderPath(click.Path):
    """A folder. The address of a database is refused: as a path it would be shown, and be a folder of that name."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value).startswith(("postgresql:/", "postgres:/")):
            self.fail("a folder is meant here, no database", param, ctx)
        return super().convert(value, param, ctx)


class PlacePath(FolderPath):
    """A folder as a Path, or the address of a collection in a database as a text."""

    envvar_list_splitter = "\n"  # addresses contain colons, the usual separator of paths

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not is_address(str(value)):
            return super().convert(value, param, ctx)
        from periplus.api.homes import name_of

        name_of(str(value))  # checks the address
        return str(value)


FOLDER = FolderPath()
PLACE = PlacePath()
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def option(
    names: str, sentence: str, kind: Any = None, default: Any = None, *, metavar: str | None = None, many: bool = False
) -> Decorator:
    """An option of a command, with its sentence of help.

    names: as click takes them, separated by blanks: `-c --collection`, `--near/--no-near`, `--json as_json`. kind: a
    type of click's or Python's, or the texts to choose from; bool: a flag. default: shown in the help unless it is
    empty. many: the option can be repeated.
    """
    more: dict[str, Any] = {"is_flag": True} if kind is bool and "/" not in names else {"default": default}
    if kind is not None and kind is not bool:
        more["type"] = kind if isinstance(kind, type | click.ParamType) else click.Choice(tuple(kind))
    return click.option(
        *names.split(), help=sentence or None, metavar=metavar, multiple=many, show_default=bool(default), **more
    )


def format_option(formats: Iterable[str], sentence: str = "") -> Decorator:
    """`-f FORMAT`, by default the first; where JSON is among them, `--json` too."""
    choices = tuple(formats)
    name = option("-f --format", sentence, choices, choices[0])
    return options(name, _json_option) if "json" in choices else name


_json_option = click.option("--json", "format", flag_value="json", help="The same as -f json.")


def options(*decorators: Decorator) -> Decorator:
    """Several options as one decorator, in the order in which help lists them."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for add in reversed(decorators):
            command = add(command)
        return command

    return decorate


def _set_log_format(ctx: click.Context, param: click.Parameter, value: str) -> None:
    if value == "json":
        os.environ[FORMAT_VARIABLE] = value
        configure(logging.WARNING)


log_format_option = click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    envvar=FORMAT_VARIABLE,
    is_eager=True,
    expose_value=False,
    callback=_set_log_format,
    help="json: each line on stderr is a JSON object with time, level, message, host, worker and run.",
)
verbose_option = options(
    click.option("-v", "--verbose", count=True, help="Log what happens; -vv: every request."), log_format_option
)


class WholeNumber(click.IntRange):
    """A whole number from low on that fits a database integer; larger numbers are refused here, with a message."""

    def __init__(self, low: int = 0) -> None:
        super().__init__(low)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number > LARGEST:
            self.fail(f"{value} is more than can be counted; {LARGEST:,} is the most", param, ctx)
        return number


class LongCommand(click.Command):
    """A command with many flags: --help shows the common flags in groups, --help-all all flags."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        every = click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=show_all,
            help="Show every flag and exit.",
        )
        return [*super().get_params(ctx), every]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        group_of = {row.name: row.group for row in rows()}
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in (*_TITLES.values(), *_SECTIONS.values())}
        is_whole = HELP_ALL in ctx.meta
        asides, left_out = [], 0
        for param in self.get_params(ctx):
            record, name = param.get_help_record(ctx), param.name or ""
            if record is None or isinstance(param, click.Argument):
                continue
            if name == "help_all" or param is self.get_help_option(ctx):
                asides.append(record)
            elif is_whole or name in _EVERYDAY or name not in {*group_of, *_SECTIONS}:
                title = _SECTIONS.get(name) or _TITLES[group_of.get(name, "")]
                short = record[0].partition(" / ")[0], _PHRASE_END.split(record[1])[0]
                (sections[title] if is_whole or title in _COMMON else asides).append(record if is_whole else short)
            else:
                left_out += 1
        if left_out:
            asides[-1] = (asides[-1][0], f"Show every flag, these and {left_out} more, and exit.")
        for title, records in {**sections, "Other": asides}.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=36)


def setting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds a flag for every setting of a crawl; unset flags arrive as None or ()."""
    command = option(
        "--preset",
        "A preset: gentle, own-site, archive, quick-look, or [presets.NAME] of periplus.toml; `periplus "
        "settings --presets` lists them. Flags override it.",
        str,
        "",
        metavar="NAME",
    )(command)
    # what hits weigh is for periplus.toml: no crawl knows it
    for row in reversed([row for row in rows() if row.group != "searching"]):
        names = [name for name in (_SHORT.get(row.name), row.flag, row.name) if name]
        text = row.sentence + (f" [{row.unit}; {row.default:.12g}]" if row.unit else "")
        if row.kind is bool:
            names[-2] = f"{row.flag}/--no-{row.flag[2:]}"
            command = click.option(*names, default=None, help=text)(command)
        elif row.choices:
            command = click.option(*names, type=click.Choice(row.choices), default=None, help=text)(command)
        else:
            metavar = "REGEX" if row.name in ("include", "exclude") else None
            command = click.option(*names, type=row.kind, multiple=row.many, default=None, metavar=metavar, help=text)(
                command
            )
    return command


def given_settings(flags: dict[str, Any]) -> dict[str, Any]:
    """The settings among a command's flags that were given."""
    values = {row.name: flags[row.name] for row in rows() if flags.get(row.name) not in (None, ())}
    if "login" in values:  # a refresh may be begun in another folder
        files = [Path(name).expanduser() for name in values["login"]]
        values["login"] = tuple(
            str(path.absolute()) if path.is_file() else name for path, name in zip(files, values["login"], strict=True)
        )
    return values


def chosen_settings(flags: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The settings of the preset that was named, and over them those given as flags. Raises UnknownSetting."""
    if not flags.get("preset"):
        return given_settings(flags)
    presets = read_presets(settings_files(folder))
    return {**preset_named(flags["preset"], presets).values, **given_settings(flags)}


def settings_of(flags: dict[str, Any], folder: Path, base: Settings | None = None) -> Settings:
    """base (or the defaults), then the files of `settings_files`, then a preset, then the flags.

    Raises UnknownSetting.
    """
    return settings_from(chosen_settings(flags, folder), read_files(settings_files(folder), base)[0])


def settings_files(folder: Path) -> list[Path]:
    """Files of settings, each overriding the ones before: periplus.toml here, and in the collection's folder.

    Raises UnknownSetting for rules in the file of the current folder: rules belong to the collection.
    """
    import tomllib

    files = [path for path in (Path(SETTINGS_FILE), folder / SETTINGS_FILE) if path.is_file()]
    if len(files) > 1 and files[0].samefile(files[1]):
        return files[1:]
    if files and files[0] != folder / SETTINGS_FILE:
        with contextlib.suppress(tomllib.TOMLDecodeError, UnicodeDecodeError):  # reported where it is read
            if {"site", "script", "segments", "extract"} & tomllib.loads(files[0].read_text("utf-8")).keys():
                raise UnknownSetting(
                    f"{files[0]} here has rules ([[site]], [[script]], [segments], [extract]), which are read in the "
                    f"collection's folder alone: write them into {folder / SETTINGS_FILE}"
                )
    return files


def place_flag(names: str, sentence: str, default: Path | None = None, *, many: bool = False) -> Decorator:
    """An option that names one collection, in a folder or database.

    many: the option can be repeated, and the command gets a tuple.
    """

    def single_place(ctx: click.Context, param: click.Parameter, given: tuple[Place, ...]) -> Any:
        if many:
            return given
        if len(given) > 1:
            raise UsageError("a collection is in one folder or in one database (-c): name only one")
        return given[0] if given else default

    return click.option(
        *names.split(),
        "collection",
        type=PLACE,
        multiple=True,
        callback=single_place,
        envvar=COLLECTION_VARIABLE,
        metavar="FOLDER|ADDRESS",
        help=sentence,
    )


collection_option = place_flag(
    "-c --collection",
    "The collection: a folder, or postgresql://USER@HOST/DATABASE?collection=NAME. Default: the value of "
    f"{COLLECTION_VARIABLE}, or the only *{SUFFIX} folder here.",
)
collections_option = place_flag(
    "-c --collection",
    "A collection: its folder, a folder of collections, or postgresql://USER@HOST/DATABASE?collection=NAME. "
    f"If repeated, all are searched together. Default: the value of {COLLECTION_VARIABLE}, or the only *{SUFFIX} "
    "folder here.",
    many=True,
)
segment_option = option(
    "--segment",
    "Only this segment of periplus.toml (docs/segments.md); `other`: the rest.",
    str,
    "",
    metavar="NAME",
)
site_option = option("--site", "The site, if the collection has several.", str, "", metavar="KEY")


def collection_place(named: Place | None) -> Place:
    """The named folder or address, or the folder of the only collection here.

    Collections without pages count only where there is no other. Raises NoCollection with a list of collections here.
    """
    if isinstance(named, str):
        return named
    here = [named] if named is not None else sorted(path for path in Path().glob(f"*{SUFFIX}") if path.is_dir())
    if len(here) > 1:
        from periplus.api.homes import is_unused

        here = [folder for folder in here if not is_unused(folder, time.time())] or here
    if len(here) == 1:
        if (context := click.get_current_context(silent=True)) is not None:
            context.meta[COLLECTION] = here[0]
        return here[0]
    if not here:
        raise NoCollection(
            "no collection here. `periplus crawl URL` makes one; -c FOLDER names one elsewhere (a "
            f"folder ending in {SUFFIX})."
        )
    raise NoCollection(f"several collections here: {', '.join(map(str, here))}. Choose one with -c FOLDER.")


def opened_collection(named: Place | None) -> Collection:
    """The same, opened for reading. Raises the same."""
    from periplus.api.functions import open_collection

    return open_collection(collection_place(named))


parts_options = options(
    option(
        "--parts",
        f"Only these parts of a page: {', '.join(PART_CHOICES)}. By default its content with the headline, "
        f"and the captions, byline and date inside it.",
        str,
        "",
        metavar="A,B,...",
    ),
    option("--whole", "All parts, with menus, comments, headers and footers.", bool),
)


def choose_parts(names: str, whole: bool) -> frozenset[Part]:
    """The parts of a page that --parts names, or --whole. Raises UsageError."""
    if names and whole:
        raise UsageError("--parts and --whole exclude each other: --whole has all parts")
    asked = [name for part in names.split(",") if (name := part.strip())]
    if unknown := [name for name in asked if name not in PART_CHOICES]:
        raise UsageError(f"there is no part {unknown[0]!r}: name some of {', '.join(PART_CHOICES)}")
    if not asked:
        return ALL_PARTS if whole else TEXT_PARTS
    return frozenset(part for name in asked for part in PART_CHOICES[name])


def place_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """-c; the command gets `place`, as `collection_place` finds it."""

    @functools.wraps(command)
    def run_at_place(*args: Any, collection: Place | None, **more: Any) -> Any:
        return command(*args, place=collection_place(collection), **more)

    return collection_option(run_at_place)


def place_word(place: Place) -> str:
    """A collection as it is named in a command line: an address without its password."""
    from periplus.api.homes import home_of

    return shlex.quote(str(home_of(place)).removesuffix("/"))


output_option = option("-o --output", "Write to this file instead of stdout.", FILE)


@contextlib.contextmanager
def open_output(path: Path | None, *, exact: bool = False) -> Iterator[TextIO]:
    """Output stream: the file in UTF-8, or stdout. exact: a format that is always UTF-8, for any terminal encoding. A
    reader of stdout that closes early (`| head`) ends the output, but not the command: its exit code still reports the
    result. Raises UsageError for a file that cannot be written.
    """
    if path is not None:
        try:
            file = path.open("w", encoding="utf-8", errors="replace", newline="")
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from None
        with file:
            yield file
        click.echo(f"Written to {path}", err=True)
        return
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8" if exact else None, errors="replace")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        silence_output()


def write_output(path: Path | None, lines: Iterable[str], values: object = None) -> None:
    """Writes values as JSON; without values the lines, for reading."""
    from periplus.present.tables import json_text

    with open_output(path, exact=values is not None) as out:
        if values is not None:
            out.write(json_text(values))
            return
        for line in lines:
            click.echo(line, file=out)  # which omits colours where the output is not a terminal


def silence_output() -> None:
    """Discards all further output to stdout, also of Python's last flush: its reader has closed it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def opened_bytes(path: Path | None) -> Iterator[BinaryIO]:
    """Output stream of bytes: the file, or stdout.

    The file appears when it is complete. Raises UsageError for a file that cannot be written.
    """
    if path is None:
        yield sys.stdout.buffer
        return
    draft = path.with_name(path.name + ".part")
    try:
        file = draft.open("wb")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    try:
        with file:
            yield file
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    click.echo(f"Written to {path}", err=True)


def draws_boxes(out: TextIO) -> bool:
    """Whether the output's encoding has the signs that a tree is drawn with."""
    try:
        "├█…".encode(out.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def columns_of(out: TextIO) -> int:
    """The width to write for: the terminal's; COLUMNS, or PIPED_COLUMNS where there is no terminal."""
    return shutil.get_terminal_size((PIPED_COLUMNS, 24)).columns if out is sys.stdout else PIPED_COLUMNS
