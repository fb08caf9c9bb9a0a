"""Writes docs/cli.md, settings.md, sql.md, exports.md and parquet.md from the code, and man pages.
python -m periplus.cli.reference [--check] [--man FOLDER]
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import click

from periplus.cli import HELP_ALL
from periplus.cli.options import LongCommand
from periplus.features import service
from periplus.model.tables import EXPORTS, VIEWS, Column
from periplus.settings import ABOUT, PRESETS, VERSION, SettingRow, Settings, rows

_SQL = """# How do I ask a collection in SQL?

```text
periplus sql "SELECT url, title FROM pages WHERE status = 404"
datasette serve example.org.periplus/collection.db
duckdb -c "ATTACH 'example.org.periplus/collection.db' AS c (TYPE sqlite); SELECT reason, count(*) FROM c.urls GROUP BY 1"
```

A collection is one SQLite file, `collection.db`. `periplus sql` only reads, and stops after 10 s (`--time-limit`) or at 2 GiB of temporary files;
a value may have 4 MB. Any program that opens SQLite files can read it, also during a crawl.

For a collection in a database the statement is executed by PostgreSQL: `LIKE` distinguishes case (`ILIKE` does not), `NULL` sorts last, and functions
have other names (`strpos`, not `instr`).

These views are stable; the tables behind them may change. Times are ISO 8601 texts in UTC; booleans are 1 and 0; NULL means unknown or not
applicable. Only `urls.id` is indexed.
"""  # noqa: E501
_EXPORTS = """# How do I export tables?

```text
periplus export pages -o pages.xlsx
periplus export links -f jsonl
```

The format is the ending of FILE or `--format`. Tables are streamed; CSV and JSON lines also go to stdout.

- **CSV**: UTF-8, RFC 4180. Texts that a spreadsheet would compute (first character `=`, `+`, `-`, `@`, tab, line end)
  get a leading `'`.
- **JSON lines**: one object per row.
- **Parquet**: zstd, timestamps in UTC. Needs `pip install 'periplus[parquet]'`.
- **Excel**: after 1,048,576 rows the table continues in the next sheet; texts are cut at 32,767 characters;
  ids beyond 2^53 are texts.

Archives: [warc.md](warc.md). `urls`, `hosts` and `visits` are the views of [sql.md](sql.md); `pages` and
`redirects` have more columns than theirs.
"""
_PARQUET = """# How do I export a whole collection as Parquet?

```text
periplus export parquet graph -c example.org.periplus
duckdb -c "SELECT u.text, count(*) AS links FROM 'graph/links/*.parquet' l JOIN 'graph/urls/*.parquet' u ON u.url = l.target
           GROUP BY ALL ORDER BY links DESC LIMIT 20"
python -c "import pyarrow.dataset as ds; print(ds.dataset('graph/links').head(5))"
```

Needs `pip install 'periplus[parquet]'`. The folder has `hosts`, `urls`, `redirects`, `pages`, `links` (and `texts` with `--texts`), each as
`part-00000.parquet ...`, and `manifest.json`, written last.

- **Numbers.** URLs, hosts and sites are numbered from 0 in the order of their texts (UTF-8 bytes). Equal collections give equal files.
- **Files.** zstd; one part per million URLs unless `--parts` sets another number; rows are sorted as the columns state. Timestamps are UTC in ms.
- **The manifest** has `format`, `kind`, `program`, `made`, `inputs`, `parameters`, `tables` (rows, parts, SHA-256, columns) and a `digest`. A folder without it
  is incomplete.
- **Processes.** `--workers N` writes N parts at once. After a kill the same command writes the missing parts; the folder `unfinished` lists the others.
- **Later exports.** `periplus export parquet graph2 --after graph` keeps the numbers of `graph`. Parts of links and texts without changes are hard links to its files
  and are not read; other parts are compared after writing. New URLs get further numbers and parts, so texts are not in order, and such datasets cannot be merged.
  `graph` stays as it is and can be deleted. Use parts of some 50,000 URLs (`--parts`): one change writes its whole part. After a deletion of URLs export everything.
- **Snapshot.** All processes read one moment, also during a crawl. After a kill later parts have later rows (`moments` in the manifest), with the same URLs.
- **Memory.** 48 bytes a URL while numbers are made, then the links of 10,000 URLs; 26 bytes a URL of temporary files.
"""  # noqa: E501
HELP_COLUMNS = 110  # fixed, so that the reference does not depend on the terminal
NOTICE = "<!-- Made by `make docs` from the code; edit there. -->\n"
LEAST_COMMANDS = 2  # commands with the same flag and help from which the flag is explained once
LINE_CHARS = 100  # of a call in docs/api.md
# sets have no order, functions no name there; annotations are strings
_PLAINER = (
    (r"frozenset\(\{.*?\}\)|<function .*? at 0x\w+>", "..."),
    (r"\(self(, )?", "("),
    (r"(: |-> )'(.*?)'(?=[,)]| =|$)", r"\1\2"),
    (r"(?<!,) ", "\xa0"),  # lines end between parameters
)


def tables_reference(head: str, tables: Mapping[str, Any]) -> str:
    """A page with the columns of every table."""
    parts = [NOTICE, head]
    for name, table in tables.items():
        sentence = f"{table.sentence}\n\n" if tables is VIEWS else ""
        parts.append(f"## {name}\n\n{sentence}{_columns(table.columns)}")
    return "\n".join(parts)


def _columns(columns: Iterable[Column]) -> str:
    rows = (f"| `{column.name}` | {column.kind} | {column.sentence} |\n" for column in columns)
    return "| column | kind | meaning |\n|---|---|---|\n" + "".join(rows)


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
    shared = {record: _long(record) for record, count in counts.items() if count >= LEAST_COMMANDS}
    parts = [NOTICE, "# Commands\n", "Flags under *Also* are explained under [Shared flags](#shared-flags).\n"]
    for context, records in zip(contexts, flags, strict=True):
        item, formatter = context.command, context.make_formatter()
        item.format_usage(context, formatter)
        item.format_help_text(context, formatter)
        if isinstance(item, click.Group):
            item.format_commands(context, formatter)
        item.format_epilog(context, formatter)
        parts.append(f"## {context.info_name}\n\n```text\n{formatter.getvalue()}```\n")
        if isinstance(item, LongCommand):
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


def man_pages(command: click.Command) -> Iterator[tuple[str, str]]:
    """(file name, troff) of each command's page: its sentence, and its help with all flags, as it is."""
    for path, item in commands(command, "periplus"):
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

    parts = [NOTICE, "# What `import periplus` offers"]
    kinds = (("Functions", inspect.isfunction), ("Values", inspect.isclass), ("Modules", inspect.ismodule))
    for title, is_kind in kinds:
        parts.append(f"## {title}")
        for name in dir(periplus):
            if is_kind(value := getattr(periplus, name)):
                parts += _entry(name, value)
    return "\n\n".join(parts) + "\n"


def _function(name: str, function: Callable[..., object]) -> str:
    """One function: its signature and docstring."""
    call = str(inspect.signature(function))
    for pattern, text in _PLAINER:
        call = re.sub(pattern, text, call)
    call = textwrap.fill(name + call, LINE_CHARS, subsequent_indent="    ").replace("\xa0", " ")
    return f"### `{name}`\n\n```python\n{call}\n```\n\n{inspect.getdoc(function) or ''}".rstrip()


def _entry(name: str, value: Any) -> Iterator[str]:
    """A function; or a class or module: its docstring, fields, and its own functions."""
    if inspect.isfunction(value):
        yield _function(f"periplus.{name}", value)
        return
    yield f"### `periplus.{name}`\n\n{inspect.getdoc(value) or ''}"
    if fields := getattr(value, "__dataclass_fields__", None):
        yield "Fields: " + ", ".join(f"`{field.name}: {field.type}`" for field in fields.values()) + "."
    home = getattr(value, "__module__", value.__name__)
    owners = [owner for owner in getattr(value, "__mro__", ()) if owner.__module__ == home] or [value]
    for key, member in chain.from_iterable(vars(owner).items() for owner in reversed(owners)):
        if key.startswith("_") or name == "errors":
            continue
        if isinstance(member, property):
            yield f"`{name}.{key}`: {inspect.getdoc(member) or ''}"
        elif inspect.isfunction(member) and member.__module__ == home:
            yield "#" + _function(f"{name}.{key}", member)


def _pages(folder: Path, command: click.Command) -> dict[Path, str]:
    return {
        folder / "cli.md": cli_reference(command),
        folder / "settings.md": settings_reference(),
        folder / "sql.md": tables_reference(_SQL, VIEWS),
        folder / "exports.md": tables_reference(_EXPORTS, EXPORTS),
        folder / "api.md": python_reference(),
        folder / "parquet.md": tables_reference(_PARQUET, service("tables of a dataset")),
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
    "--man", type=click.Path(path_type=Path, file_okay=False), help="Write man pages into this folder instead."
)
def main(check: bool, man: Path | None) -> None:
    """Regenerate the references in docs from the code."""
    from periplus.cli.main import main as periplus  # here, so that other groups can be described without it

    if man is not None:
        man.mkdir(parents=True, exist_ok=True)
        for name, text in man_pages(periplus):
            (man / name).write_text(text, "utf-8")
    elif not check:
        write(Path("docs"), periplus)
    elif outdated := stale(Path("docs"), periplus):
        raise click.ClickException(f"{', '.join(map(str, outdated))}: differs from the code; run `make docs`")


if __name__ == "__main__":
    main()
