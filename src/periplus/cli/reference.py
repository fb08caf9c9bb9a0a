"""What do the commands and settings say of themselves? Writes the references in docs from the code.

python -m periplus.cli.reference [--check] [--into docs]
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from periplus.cli.table_reference import exports_reference, parquet_reference, sql_reference
from periplus.settings import Row, Settings, rows

HELP_COLUMNS = 110  # fixed, so that the reference does not depend on the terminal
NOTICE = "<!-- Made by `make docs` from the code; edit there. -->\n"


def commands(command: click.Command, path: str, parent: click.Context | None = None) -> Iterator[tuple[str, click.Command]]:
    """The command and all below it, depth first, in the group's own order, each with its full name; hidden ones are left out."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path, parent=parent)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from commands(child, f"{path} {name}", context)


def cli_reference(command: click.Command, name: str = "periplus") -> str:
    """docs/cli.md: each command's own help text."""
    parts = [NOTICE, "# Commands\n"]
    helps = command.context_settings.get("help_option_names", ["--help"])  # inherited by all below; a command that ran before remembers them too
    for path, item in commands(command, name):
        context = click.Context(item, info_name=path, terminal_width=HELP_COLUMNS, max_content_width=HELP_COLUMNS, color=False, help_option_names=helps)
        parts.append(f"## {path}\n\n```text\n{item.get_help(context)}\n```\n")
    return "\n".join(parts)


def shown_default(value: object) -> str:
    """A default as one writes it: code, or a dash for nothing."""
    if value in ("", ()):
        return "-"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def value_range(row: Row) -> str:
    if row.choices:
        return ", ".join(f"`{choice}`" for choice in row.choices)
    if row.kind is bool:
        return "`true`, `false`"
    if row.many:
        return "list of texts"
    if row.low is None or row.high is None:
        return "text"
    return f"{row.low:.12g} to {row.high:.12g}"


def _cells(row: Row) -> str:
    cells = (f"`{row.name}`", shown_default(row.default), row.unit or "-", value_range(row), row.sentence)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def settings_reference() -> str:
    """docs/settings.md: one table per group, in the order of `settings.rows()`."""
    parts = [
        NOTICE,
        "# Settings\n",
        "In a TOML file they stand in the table `[settings]` under these names. On the command line a name's flag has dashes for",
        "underscores, and no `_s` of seconds: `max_depth` is `--max-depth`, `delay_s` is `--delay`; those of searching have none.",
        "Unknown names and values outside their range are refused.",
    ]
    group = ""
    for row in rows():
        if row.group != group:
            group = row.group
            sentence = type(getattr(Settings(), group)).__doc__
            parts.append(f"\n## {group}\n\n{sentence}\n\n| name | default | unit | values | meaning |\n|---|---|---|---|---|")
        parts.append(_cells(row))
    return "\n".join(parts) + "\n"


def _pages(folder: Path, command: click.Command) -> dict[Path, str]:
    return {
        folder / "cli.md": cli_reference(command),
        folder / "settings.md": settings_reference(),
        folder / "sql.md": NOTICE + "\n" + sql_reference(),
        folder / "exports.md": NOTICE + "\n" + exports_reference(),
        folder / "parquet.md": NOTICE + "\n" + parquet_reference(),
    }


def stale(folder: Path, command: click.Command) -> list[Path]:
    """The references in folder that are missing or differ from the code."""
    return [path for path, text in _pages(folder, command).items() if not path.exists() or path.read_text("utf-8") != text]


def write(folder: Path, command: click.Command) -> None:
    """Writes the references into folder, which must exist."""
    for path, text in _pages(folder, command).items():
        path.write_text(text, "utf-8")


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 when a reference is stale.")
@click.option("--into", type=click.Path(path_type=Path, exists=True, file_okay=False), default=Path("docs"), help="The folder of the references.")
def main(check: bool, into: Path) -> None:
    """Write the references in docs anew from the code."""
    from periplus.cli.main import main as periplus  # here, so that other groups can be described without it

    if not check:
        write(into, periplus)
    elif found := stale(into, periplus):
        raise click.ClickException(f"{', '.join(map(str, found))}: not what the code says; run `make docs`")


if __name__ == "__main__":
    main()
