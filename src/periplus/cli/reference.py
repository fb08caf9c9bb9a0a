"""Writes docs/cli.md, settings.md, sql.md, exports.md and parquet.md from the code, and man pages.
python -m periplus.cli.reference [--check] [--into docs] [--man FOLDER]
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType

import click

from periplus.cli import HELP_ALL
from periplus.model.tables import EXPORTS, VIEWS, Column
from periplus.settings import ABOUT, PRESETS, VERSION, SettingRow, Settings, rows

_SQL = """# Asking a collection in SQL

A collection is one SQLite file, `collection.db`. `periplus sql "SELECT ..."` asks it: it only reads, and stops after 10
s (`--time-limit`) or at 2 GiB of temporary files (sorts, `DISTINCT`). A value may have 4 MB. Any other program that
opens SQLite files can read it too, also during a crawl:

```text
datasette serve example.org.periplus/collection.db
duckdb -c "ATTACH 'example.org.periplus/collection.db' AS c (TYPE sqlite); SELECT reason, count(*) FROM c.urls GROUP BY 1"
sqlite3 -readonly example.org.periplus/collection.db "SELECT url, title FROM pages WHERE status = 404"
```

The views below keep their names and columns from version to version; the tables behind them may change. Times are texts in ISO 8601,
UTC; yes and no are 1 and 0; NULL means not known, or not applicable. Only `urls.id` is indexed: a query of one URL is
fast by its id, and a query of all links reads all links.
"""  # noqa: E501
_EXPORTS = """# Exports

`periplus export TABLE -o FILE` writes a table as CSV, JSON lines, Parquet or Excel, by the ending of FILE or by `--format`; CSV and
JSON lines go to stdout as well. Tables are streamed.

- **CSV**: UTF-8, RFC 4180. A text that a spreadsheet would compute (it begins with `=`, `+`, `-`, `@`, a tab or a line end) gets a
  leading `'`.
- **JSON lines**: an object a row, UTF-8; values as they are.
- **Parquet**: zstd; times are timestamps (UTC), each field carries its sentence. Needs pyarrow: `pip install 'periplus[parquet]'`.
- **Excel**: texts are texts, none is computed or becomes a link. A sheet ends at 1,048,576 rows and the table goes on in the next;
  texts are cut at 32,767 characters; ids beyond 2^53 are texts, for Excel would round them.

`periplus export warc` and `export wacz` write what was fetched as an archive, and `periplus import warc` makes a
collection from an archive: see [warc.md](warc.md).
The tables `urls`, `hosts` and `visits` are the views of [sql.md](sql.md); `pages` and `redirects` hold more than their views.
"""  # noqa: E501
_PARQUET = """# A collection as Parquet

`periplus export parquet FOLDER` writes a collection as a folder of Parquet tables, for programs that compute over all of it: DuckDB,
pandas, Polars, Spark, and Periplus' own engines. It needs pyarrow: `pip install 'periplus[parquet]'`.

```text
periplus export parquet graph -c example.org.periplus
duckdb -c "SELECT u.text, count(*) AS links FROM 'graph/links/*.parquet' l JOIN 'graph/urls/*.parquet' u ON u.url = l.target
           GROUP BY ALL ORDER BY links DESC LIMIT 20"
python -c "import pyarrow.dataset as ds; print(ds.dataset('graph/links').head(5))"
spark.read.parquet("graph/links")
```

```text
graph/
  hosts/part-00000.parquet
  urls/part-00000.parquet
  redirects/part-00000.parquet
  pages/part-00000.parquet
  links/part-00000.parquet  part-00001.parquet ...
  texts/part-00000.parquet      with --texts only
  manifest.json                 written last
```

- **Numbers.** URLs, hosts and sites are whole numbers from 0 without a gap, in the order of their texts (bytes of UTF-8). Equal
  collections give equal numbers and equal files, whatever order they were crawled in. `urls` leads from numbers to texts.
- **Files.** zstd; each table is a number of parts, one for each million URLs unless `--parts` says otherwise, each with the rows of as many URLs
  that follow one another; hosts and redirects are one. It is read in the order of its parts' names, and is in the order that its columns say.
  Times are timestamps in UTC, to the millisecond; each field carries its sentence.
- **The manifest** is JSON: `format`, `kind` (`collection`), `program` (version), `made`, `inputs` (collection, how many runs, the last one),
  `parameters`, `tables` (each with `rows`, `parts` with `rows`, `size_bytes` and `sha256`, `columns`), and `digest`, equal for equal tables.
  A folder without it is not whole.
- **Several processes.** `--workers N` writes N parts at once; the files do not depend on the order.
- **After a kill**, or with a full disk, the same command goes on with the parts that are missing (the folder `unfinished` says which are there),
  in as many parts as it began with. Of another collection, with or without `--texts`, or by another version it begins again.
- **One moment.** All processes read the collection as it stood when the export began, also while a crawl goes on: a database names its
  snapshot to them; in a folder all begin to read while nobody may write, for some milliseconds. An export that goes on after a kill cannot read
  that moment again: parts that it writes then have rows as they are then (`moments` in the manifest's `inputs` has the times of both). URLs and
  their numbers stay those of the first moment: each URL, page and link is of one of the two, no URL is there twice, and links to URLs that came
  since are left out. Where nothing was written between, it is the same dataset. Where URLs were deleted it ends, and says so.
- **Memory and disk.** Rows are streamed; the numbers of URLs, 26 bytes each, lie in `unfinished`, from where all processes read them; 48 bytes
  each are in memory while they are made, then of links those of 10,000 URLs. Nothing is sorted on the disk, but for the URLs' texts by the database.
"""  # noqa: E501


def sql_reference() -> str:
    """docs/sql.md: every view."""
    parts = [_SQL]
    for view in VIEWS.values():
        parts.append(f"## {view.name}\n\n{view.sentence}\n\n{_columns(view.columns)}")
    return "\n".join(parts)


def exports_reference() -> str:
    """docs/exports.md: every table of an export."""
    return "\n".join([_EXPORTS, *(f"## {name}\n\n{_columns(table.columns)}" for name, table in EXPORTS.items())])


def parquet_reference() -> str:
    """docs/parquet.md: every table of a dataset."""
    from periplus.model.dataset import TABLES  # with NumPy

    return "\n".join([_PARQUET, *(f"## {name}\n\n{_columns(table.columns)}" for name, table in TABLES.items())])


def _columns(columns: Iterable[Column]) -> str:
    rows = (f"| `{column.name}` | {column.kind} | {column.sentence} |\n" for column in columns)
    return "| column | kind | meaning |\n|---|---|---|\n" + "".join(rows)


HELP_COLUMNS = 110  # fixed, so that the reference does not depend on the terminal
NOTICE = "<!-- Made by `make docs` from the code; edit there. -->\n"


def commands(
    command: click.Command, path: str, parent: click.Context | None = None
) -> Iterator[tuple[str, click.Command]]:
    """The command and its subcommands with their full names, depth first, in the group's own order, without hidden
    commands.
    """
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path, parent=parent)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from commands(child, f"{path} {name}", context)


SHARED = 2  # commands with the same flag and help from which the flag is explained once


def cli_reference(command: click.Command, name: str = "periplus") -> str:
    """docs/cli.md: each command's help and its own flags, then once the flags that several commands share."""
    contexts = [
        click.Context(item, info_name=path, max_content_width=HELP_COLUMNS, terminal_width=HELP_COLUMNS)
        for path, item in commands(command, name)
    ]
    settings = {row.name for row in rows()}
    flags = [
        [
            record
            for param in context.command.get_params(context)
            if param.name not in settings and "--help" not in param.opts and (record := param.get_help_record(context))
        ]
        for context in contexts
    ]
    counts = Counter(chain(*flags))
    shared = {record: _long(record) for record, count in counts.items() if count >= SHARED}
    parts = [NOTICE, "# Commands\n", "Flags under *Also* are explained under [Shared flags](#shared-flags).\n"]
    for context, records in zip(contexts, flags, strict=True):
        item, formatter = context.command, context.make_formatter()
        item.format_usage(context, formatter)
        item.format_help_text(context, formatter)
        if isinstance(item, click.Group):
            item.format_commands(context, formatter)
        item.format_epilog(context, formatter)
        parts.append(f"## {context.info_name}\n\n```text\n{formatter.getvalue()}```\n")
        if any(param.name == "max_pages" for param in item.params):
            parts.append("Each [setting](settings.md) is a flag too.\n")
        parts += [_flag(record) for record in records if record[1] and record not in shared]
        if names := [f"`{shared[record]}`" for record in records if record in shared]:
            parts.append(f"\nAlso: {', '.join(names)}\n")
    return "\n".join([*parts, "## Shared flags\n", *map(_flag, sorted(shared, key=_long))]) + "\n"


def _long(record: tuple[str, str]) -> str:
    """The long name of a flag, or all of it."""
    return re.sub(r".*?(--[\w-]+).*", r"\1", record[0])


def _flag(record: tuple[str, str]) -> str:
    return f"- `{record[0]}`: {record[1]}"


def man_pages(command: click.Command, name: str = "periplus") -> Iterator[tuple[str, str]]:
    """(file name, troff) of each command's page: its sentence, and its help with all flags, as it is."""
    for path, item in commands(command, name):
        context = click.Context(item, info_name=path, terminal_width=78, max_content_width=78, color=False)
        context.meta[HELP_ALL] = True
        title = path.replace(" ", "-")
        usage, _, text = item.get_help(context).partition("\n\n")
        yield (
            f"{title}.1",
            f'.TH {title.upper()} 1 "" "periplus {VERSION}" "Periplus"\n'
            f".SH NAME\n{_troff(title)} \\- {_troff(item.get_short_help_str(200))}\n"
            f".SH SYNOPSIS\n.nf\n{_troff(usage.removeprefix('Usage: '))}\n.fi\n"
            f".SH DESCRIPTION\n.nf\n{_troff(text)}\n.fi\n",
        )


def _troff(text: str) -> str:
    """A text in which nothing is a request or an escape."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").split("\n")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in lines)


def shown_default(value: object) -> str:
    """A default as one writes it: code, or a dash for nothing."""
    if value in ("", ()):
        return "-"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def value_range(row: SettingRow) -> str:
    if row.choices:
        return ", ".join(f"`{choice}`" for choice in row.choices)
    if row.kind is bool:
        return "`true`, `false`"
    if row.many:
        return "list of texts"
    if row.low is None or row.high is None:
        return "text"
    return f"{row.low:.12g} to {row.high:.12g}"


def _cells(row: SettingRow) -> str:
    cells = (f"`{row.name}`", shown_default(row.default), row.unit or "-", value_range(row), row.sentence)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def settings_reference() -> str:
    """docs/settings.md: one table per group, in the order of `settings.rows()`."""
    parts = [
        NOTICE,
        "# Settings\n",
        (
            "In a TOML file they belong in the table `[settings]` under these names. On the command line a "
            "name's flag has dashes for"
        ),
        (
            "underscores, and no `_s` of seconds: `max_depth` is `--max-depth`, `delay_s` is `--delay`; "
            "search settings have no flag."
        ),
        "Unknown names and values outside their range are refused.",
    ]
    group = ""
    for row in rows():
        if row.group != group:
            group = row.group
            sentence = type(getattr(Settings(), group)).__doc__
            parts.append(
                f"\n## {group}\n\n{sentence}\n\n| name | default | unit | values | meaning |\n|---|---|---|---|---|"
            )
        parts.append(_cells(row))
    parts.append(
        "\n## Presets\n\nSettings chosen together by a name: `periplus crawl --preset gentle`, or in the "
        "browser. They override `[settings]` of a file, and flags override them.\nYour own are in "
        "`periplus.toml`, in a table "
        f"`[presets.NAME]` of settings and perhaps `{ABOUT}`, a sentence; the browser saves a form as one. "
        "`periplus settings --presets` lists all.\n\n| name | settings | meaning |\n|---|---|---|"
    )
    for preset in PRESETS:
        values = ", ".join(f"`{name} = {str(value).lower()}`" for name, value in preset.values.items())
        parts.append(f"| `{preset.name}` | {values} | {preset.sentence} |")
    return "\n".join(parts) + "\n"


def python_reference() -> str:
    """docs/api.md: what `import periplus` offers, by the signatures and docstrings of the code."""
    periplus = import_module("periplus")

    offered = {name: getattr(periplus, name) for name in periplus.__all__}
    functions = {name: value for name, value in offered.items() if inspect.isfunction(value)}
    classes = {name: value for name, value in offered.items() if inspect.isclass(value)}
    modules = {name: value for name, value in offered.items() if inspect.ismodule(value)}
    parts = [NOTICE, "# What `import periplus` offers"]
    parts += ["## Functions", *(_function(f"periplus.{name}", value) for name, value in functions.items())]
    parts += ["## Values", *(part for name, value in classes.items() for part in _class(name, value))]
    parts += ["## Modules", *(part for name, value in modules.items() for part in _module(name, value))]
    return "\n\n".join(parts) + "\n"


LINE_CHARS = 100  # of a call in docs/api.md


class _Bare(str):
    """Shown in a signature as it is, without quotes."""

    __repr__ = str.__str__


def _default_in_call(value: object, function: Callable[..., object]) -> object:
    """A set by its name in the function's module: its items have no order."""
    if isinstance(value, frozenset):
        return _Bare(next(name for name, other in inspect.unwrap(function).__globals__.items() if other is value))
    return _Bare("...") if inspect.isfunction(value) else value


def _function(name: str, function: Callable[..., object]) -> str:
    """One function: its signature and docstring."""
    signature = inspect.signature(function)
    parameters = [
        value.replace(
            annotation=_Bare(value.annotation),
            default=_default_in_call(value.default, function),
        )
        for key, value in signature.parameters.items()
        if key != "self"
    ]
    signature = signature.replace(parameters=parameters, return_annotation=_Bare(signature.return_annotation))
    call = f"{name}{signature}"
    if len(call) > LINE_CHARS:  # a parameter a line
        lines = [str(parameter) for parameter in parameters]
        named = [number for number, parameter in enumerate(parameters) if parameter.kind is parameter.KEYWORD_ONLY]
        if named and not any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
            lines.insert(named[0], "*")
        call = f"{name}(\n" + "".join(f"    {line},\n" for line in lines) + f") -> {signature.return_annotation}"
    return f"### `{name}`\n\n```python\n{call}\n```\n\n{inspect.getdoc(function) or ''}".rstrip()


def _class(name: str, kind: type) -> Iterator[str]:
    """A class: its docstring, fields and methods."""
    yield f"### `periplus.{name}`\n\n{inspect.getdoc(kind) or ''}"
    if fields := getattr(kind, "__dataclass_fields__", None):
        yield "Fields: " + ", ".join(f"`{field.name}: {field.type}`" for field in fields.values()) + "."
    for key, value in vars(kind).items():
        if key.startswith("_"):
            continue
        if isinstance(value, property):
            yield f"`{name}.{key}`: {inspect.getdoc(value) or ''}"
        elif inspect.isfunction(value):
            yield "#" + _function(f"{name}.{key}", value)


def _module(name: str, module: ModuleType) -> Iterator[str]:
    """A module: its docstring, public functions and errors."""
    yield f"### `periplus.{name}`\n\n{inspect.getdoc(module) or ''}"
    if name == "errors":
        return
    for key, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not key.startswith("_"):
            yield "#" + _function(f"{name}.{key}", value)


def _pages(folder: Path, command: click.Command) -> dict[Path, str]:
    return {
        folder / "cli.md": cli_reference(command),
        folder / "settings.md": settings_reference(),
        folder / "sql.md": NOTICE + "\n" + sql_reference(),
        folder / "exports.md": NOTICE + "\n" + exports_reference(),
        folder / "api.md": python_reference(),
        folder / "parquet.md": NOTICE + "\n" + parquet_reference(),
    }


def stale(folder: Path, command: click.Command) -> list[Path]:
    """The references in folder that are missing or differ from the code."""
    return [
        path for path, text in _pages(folder, command).items() if not path.exists() or path.read_text("utf-8") != text
    ]


def write(folder: Path, command: click.Command) -> None:
    """Writes the references into folder, which must exist."""
    for path, text in _pages(folder, command).items():
        path.write_text(text, "utf-8")


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 when a reference is stale.")
@click.option(
    "--into",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path("docs"),
    help="The folder of the references.",
)
@click.option(
    "--man", type=click.Path(path_type=Path, file_okay=False), help="Write man pages into this folder instead."
)
def main(check: bool, into: Path, man: Path | None) -> None:
    """Regenerate the references in docs from the code."""
    from periplus.cli.main import main as periplus  # here, so that other groups can be described without it

    if man is not None:
        man.mkdir(parents=True, exist_ok=True)
        for name, text in man_pages(periplus):
            (man / name).write_text(text, "utf-8")
    elif not check:
        write(into, periplus)
    elif outdated := stale(into, periplus):
        raise click.ClickException(f"{', '.join(map(str, outdated))}: differs from the code; run `make docs`")


if __name__ == "__main__":
    main()
