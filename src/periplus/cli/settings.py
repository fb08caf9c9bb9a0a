"""`periplus settings` and `periplus rules`: every setting, and which addresses are one page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import click

from periplus.cli.options import (
    collection_folder,
    collection_option,
    columns_of,
    flag_of,
    format_option,
    opened,
    option,
    output_option,
    settings_files,
    settings_of,
)
from periplus.cli.reference import shown_default, value_range
from periplus.errors import ExtensionError, NoCollection
from periplus.extensions import GROUPS, extensions
from periplus.present.tables import write_table
from periplus.present.wording import count_of, visible
from periplus.settings import SettingRow, as_values, read_values, rows

# `periplus settings`: every setting with its flag, default and range.

COLUMNS = ("name", "flag", "default", "unit", "values", "meaning")
EFFECTIVE_COLUMNS = ("name", "value", "source")
EXTENSION_COLUMNS = ("group", "name", "package", "fault")
FORMATS = ("text", "csv", "json", "jsonl")


@click.command()
@format_option(FORMATS)
@option("--extensions added", "List what installed packages add to Periplus instead.", bool)
@option("--effective", "List the value of each instead, and where it comes from.", bool)
@collection_option
@output_option
def settings(format: str, output: Path | None, added: bool, effective: bool, collection: Path | None) -> None:
    """List every setting, its default and its range.

    They are flags of `periplus crawl`, and names in the table [settings] of periplus.toml, here or in a
    collection's folder. Flags go first, then the folder's file.

    \b
    periplus settings --effective -c FOLDER    what a crawl of the folder would take without flags, and from where
    """
    if effective:
        with opened(output, exact=format != "text") as out:
            effective_rows = _effective_rows(_folder(collection))
            write_table(EFFECTIVE_COLUMNS, effective_rows, "table" if format == "text" else format, out)
        return
    with opened(output, exact=format != "text") as out:
        if added:
            write_table(EXTENSION_COLUMNS, _extension_rows(), "table" if format == "text" else format, out)
        elif format == "text":
            out.write(settings_text(min(columns_of(out), 110)))
        else:
            write_table(COLUMNS, map(_cells, rows()), format, out)


def _folder(collection: Path | None) -> Path:
    """The one named, the only one here, or this folder."""
    try:
        return collection_folder(collection)
    except NoCollection:
        return Path()


def _effective_rows(folder: Path) -> Iterator[tuple[str, object, str]]:
    """Of each setting its name, its value, and the file that it comes from. Raises UnknownSetting."""
    sources: dict[str, str] = {}
    for path in settings_files(folder):
        sources.update(dict.fromkeys(read_values(path), str(path)))
    values = as_values(settings_of({}, folder))
    for row in rows():
        value = values[row.name]
        yield row.name, ", ".join(value) if row.many else value, sources.get(row.name, "default")


def _extension_rows() -> Iterator[tuple[str, ...]]:
    """Of each extension its group, name and package, and why it cannot be loaded; nothing where it can."""
    for group in GROUPS:
        for extension in extensions(group).values():
            fault = ""
            try:
                extension.load(object)
            except ExtensionError as error:
                fault = str(error)
            yield f"periplus.{group}", extension.name, extension.package, fault


def _cells(row: SettingRow) -> tuple[object, ...]:
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


# `periplus rules`: which addresses are one page, by a collection's rules; what they make of a URL; which
# rules its pages suggest.


@click.group()
def rules() -> None:
    """Decide which addresses are one page.

    Rules stand in the collection's periplus.toml. A table [[site]] says what never makes another page (session ids,
    www, slashes), a table [[script]] which parameters make a page of one script.
    """


@rules.command()
@collection_option
@click.argument("url")
def check(collection: Path | None, url: str) -> None:
    """Say what the rules make of a URL, step by step."""
    from periplus.api.rules import checked

    applied = checked(collection_folder(collection), url)
    for step in applied.steps:
        click.echo(f"  {visible(step)}")
    click.echo(applied.url if applied.url else f"ignored: {visible(applied.rule)}")


@rules.command()
@collection_option
@option("-f --format", "toml: only the rules, to be added to periplus.toml.", ("text", "toml"), "text")
@output_option
def propose(collection: Path | None, format: str, output: Path | None) -> None:
    """Propose rules from the pages that were fetched, with the evidence.

    A rule needs equal texts on several pages and nothing against it. Parameters that made pages are named, too.
    """
    from periplus.analyse.equivalences import DifferenceVerdict, rules_text
    from periplus.api.rules import proposals

    suggestions = proposals(collection_folder(collection))
    proposed = rules_text(suggestions)
    with opened(output, exact=True) as out:
        if format == "toml":
            out.write(proposed)
            return
        shown = [
            proposal for proposal in suggestions if proposal.verdict is not DifferenceVerdict.UNKNOWN or proposal.same
        ]
        out.writelines(f"{proposal.verdict}: {visible(proposal.sentence)}\n" for proposal in shown)
        if not shown:
            out.write("No two pages that were fetched differ in their address only as twins do.\n")
        out.write(
            f"\nTo be added to periplus.toml, then `periplus rules apply`:\n\n{proposed}"
            if proposed
            else "\nNo rule is proven.\n"
        )


@rules.command("apply")
@collection_option
def apply_command(collection: Path | None) -> None:
    """Bring what is stored into accord with the rules, without fetching.

    A crawl does the same when it begins. Nothing is thrown away: take a rule out, apply again, and all is as it was.
    """
    from periplus.api.rules import apply_now

    done = apply_now(collection_folder(collection))
    if done is None:
        click.echo("The collection is in accord with its rules.")
        return
    click.echo(
        f"{count_of(done.aliases, 'URL is', 'URLs are')} another address of a page, "
        f"{count_of(done.ignored, 'breaks', 'break')} a rule;"
        f" {count_of(done.merged, 'fetched page')} had the same address, "
        f"{done.undone:,} URLs are what they were before."
    )
