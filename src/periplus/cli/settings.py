"""`periplus settings`: every setting with its flag, default and range."""

from __future__ import annotations

import textwrap
from itertools import groupby
from pathlib import Path

import click

from periplus.cli.options import columns_of, flag_of, opened, output_option
from periplus.cli.reference import shown_default, value_range
from periplus.present.tables import write_table
from periplus.settings import Row, rows

COLUMNS = ("name", "flag", "default", "unit", "values", "meaning")
FORMATS = ("text", "csv", "json", "jsonl")


@click.command()
@click.option("-f", "--format", type=click.Choice(FORMATS), default="text", show_default=True)
@output_option
def settings(format: str, output: Path | None) -> None:
    """List every setting, its default and its range.

    They are flags of `periplus crawl`, and names in the table [settings] of periplus.toml in a collection's folder. Flags go first.
    """
    with opened(output, exact=format != "text") as out:
        if format == "text":
            out.write(settings_text(min(columns_of(out), 110)))
        else:
            write_table(COLUMNS, map(_cells, rows()), format, out)


def _cells(row: Row) -> tuple[object, ...]:
    return row.name, flag_of(row), row.default, row.unit, _plain(value_range(row)), row.sentence


def settings_text(width: int) -> str:
    """The table for reading: a group after the other, a sentence below each flag."""
    parts = []
    for group, members in groupby(rows(), key=lambda row: row.group):
        parts.append(group)
        for row in members:
            unit = f" {row.unit}" if row.unit else ""
            default = _plain(shown_default(row.default))
            head = f"  {flag_of(row):<24}{'' if default == '-' else default + unit}"
            parts.append(f"{head:<44}  {row.name}: {_plain(value_range(row))}")
            parts.append(textwrap.fill(row.sentence, width, initial_indent="      ", subsequent_indent="      "))
        parts.append("")
    return "\n".join(parts)


def _plain(markdown: str) -> str:
    return markdown.replace("`", "")
