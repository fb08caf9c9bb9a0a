"""`periplus settings` and `periplus rules`: every setting, and which addresses are one page."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import click

from periplus.cli.options import (
    collection_option,
    collection_place,
    columns_of,
    format_option,
    open_output,
    option,
    output_option,
    place_option,
    settings_files,
)
from periplus.cli.reference import shown_default, value_range
from periplus.errors import ExtensionError, NoCollection
from periplus.features import PLACES, declarations, parts
from periplus.masking import masked_setting
from periplus.present.tables import write_table
from periplus.present.wording import count_of, number, size, visible
from periplus.settings import SettingRow, as_values, read_files, read_presets, rows
from periplus.values import Place, Row

# `periplus settings`: every setting with its flag, default and range.

COLUMNS = ("name", "flag", "default", "unit", "values", "meaning")
EFFECTIVE_COLUMNS = ("name", "value", "source")
PRESET_COLUMNS = ("preset", "name", "value", "source", "meaning")
EXTENSION_COLUMNS = ("part", "name", "package", "fault")
FORMATS = ("text", "csv", "json", "jsonl")


@click.command()
@format_option(FORMATS)
@option("--extensions added", "List the features of installed packages and their parts instead.", bool)
@option("--effective", "List the present values and their sources instead.", bool)
@option("--presets", "List the presets instead, with their values.", bool)
@collection_option
@output_option
def settings(format: str, output: Path | None, collection: Place | None, **listed: bool) -> None:
    """List every setting, its default and its range.

    They are flags of `periplus crawl`, and names in the table [settings] of periplus.toml, here or in a collection's
    folder. Flags override a preset (--preset NAME), which overrides the files. Your own presets are tables
    [presets.NAME] of the same files.

    \b
    periplus settings --effective -c FOLDER    values for a crawl of the folder without flags, and their sources
    """
    table_format = "table" if format == "text" else format
    with open_output(output, exact=format != "text") as out:
        if listed["effective"]:
            write_table(EFFECTIVE_COLUMNS, _effective_rows(_folder(collection)), table_format, out)
        elif listed["presets"]:
            write_table(PRESET_COLUMNS, _preset_rows(_folder(collection)), table_format, out)
        elif listed["added"]:
            write_table(EXTENSION_COLUMNS, _extension_rows(), table_format, out)
        elif format == "text":
            out.write(settings_text(min(columns_of(out), 110)))
        else:
            write_table(COLUMNS, map(_cells, rows()), format, out)


def _folder(collection: Place | None) -> Path:
    """The named collection, the only collection here, or this folder."""
    with contextlib.suppress(NoCollection):
        if isinstance(place := collection_place(collection), Path):
            return place
    return Path()


def _effective_rows(folder: Path) -> Iterator[tuple[str, object, str]]:
    """Name, value and source file of each setting. Raises UnknownSetting."""
    settings, sources = read_files(settings_files(folder))
    values = as_values(settings)
    for row in rows():
        value = masked_setting(row.name, values[row.name])
        yield row.name, ", ".join(value) if row.many else value, sources.get(row.name, "default")


def _preset_rows(folder: Path) -> Iterator[Row]:
    """Rows of each setting of each preset. Raises UnknownSetting."""
    for preset in read_presets(settings_files(folder)).values():
        for name, given in preset.values.items():
            value = masked_setting(name, given)
            shown = ", ".join(value) if isinstance(value, list) else value
            yield preset.name, name, shown, preset.source or "built in", preset.sentence


def _extension_rows() -> Iterator[tuple[str, ...]]:
    """Field, name and package of each part, and why it cannot be loaded (empty if it can)."""
    for part in chain(declarations(), *(parts(field).values() for field in PLACES)):
        fault = ""
        try:
            part.load(object)
        except (ExtensionError, ImportError) as error:
            fault = str(error)
        yield part.field, part.name, part.package, fault


def _cells(row: SettingRow) -> Row:
    return row.name, row.flag, row.default, row.unit, _plain(value_range(row)), row.sentence


def settings_text(width: int) -> str:
    """The table for reading: a group after the other, a sentence below each flag."""
    parts = []
    for group, members in groupby(rows(), key=lambda row: row.group):
        parts.append(group)
        for row in members:
            unit = f" {row.unit}" if row.unit else ""
            default = _plain(shown_default(row.default))
            head = f"  {row.flag:<24}{'' if default == '-' else default + unit}"
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
    """Rules for equal URLs, and segments of pages.

    Rules are in the collection's periplus.toml. A table [[site]] lists what never makes another page (session ids, www,
    slashes), a table [[script]] the parameters that identify a page of a script. The table [segments] names parts of
    the collection, for filters and colours of tables, maps and reports. The table [extract] takes values from pages by
    CSS, XPath, regular expressions or JSONPath, as columns of `pages`.
    """


@rules.command()
@collection_option
@click.argument("url")
def check(collection: Place | None, url: str) -> None:
    """Show how the rules change a URL, step by step, and the values that [extract] takes from its stored page."""
    from periplus.api.page_columns import extra_values
    from periplus.api.rules import explain_url

    place = collection_place(collection)
    applied = explain_url(place, url)
    for step in applied.steps:
        click.echo(f"  {visible(step)}")
    click.echo(applied.url or f"excluded: {visible(applied.rule)}")
    for name, value in extra_values(place, applied.url).items() if applied.url else ():
        click.echo(f"  {name}: nothing on this page" if value in (None, "") else f"  {name} = {visible(str(value))}")


@rules.command()
@collection_option
@option("-f --format", "toml: only the rules, to be added to periplus.toml.", ("text", "toml"), "text")
@output_option
def propose(collection: Place | None, format: str, output: Path | None) -> None:
    """Propose rules from the pages that were fetched, with the evidence.

    A rule needs equal texts on several pages and nothing against it. Parameters that made pages are named, too.
    """
    from periplus.analyse.equivalences import DifferenceVerdict, rules_text
    from periplus.api.rules import proposals

    suggestions = proposals(collection_place(collection))
    proposed = rules_text(suggestions)
    with open_output(output, exact=True) as out:
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
def apply_command(collection: Place | None) -> None:
    """Bring what is stored into accord with the rules, without fetching.

    A crawl does the same when it begins, of a folder. A collection in a database gets the rules of the periplus.toml
    here. Nothing is thrown away: take a rule out, apply again, and all is as it was.
    """
    from periplus.api.rules import apply_now

    done = apply_now(collection_place(collection))
    if done is None:
        click.echo("The collection already follows its rules.")
        return
    click.echo(
        f"{count_of(done.aliases, 'URL is', 'URLs are')} another address of a page, "
        f"{count_of(done.excluded, 'breaks', 'break')} a rule;"
        f" {count_of(done.merged, 'fetched page')} had the same address, "
        f"{done.undone:,} URLs are what they were before."
    )


SEGMENT_COLUMNS = ("segment", "urls", "pages", "failed", "depth", "deepest", "text_chars", "size", "examples")


@rules.command()
@place_option
@format_option(FORMATS)
@option("-n --examples", "Pages named of each.", click.IntRange(0, 1000), 3)
@output_option
def segments(place: Place, format: str, examples: int, output: Path | None) -> None:
    """List the segments of the table [segments], each with its sums and some of its pages.

    The first matching rule decides, so every URL is in one segment; `other` is the rest. Depth is the mean over fetched
    pages, text_chars and size their sums. docs/segments.md describes the rules.
    """
    from periplus.api.page_segments import sums_of

    rows = [
        (row.name, row.urls, row.pages, row.failed, round(row.depth, 2), row.deepest, row.text_chars, row.size_bytes,
            list(map(str, row.examples)))
        for row in sums_of(place, examples=examples)
    ]  # fmt: skip
    with open_output(output, exact=format != "text") as out:
        if format == "text":
            out.writelines(line + "\n" for line in _segment_lines(rows))
        else:
            flat = rows if format == "json" else [(*row[:-1], " ".join(row[-1])) for row in rows]
            write_table(SEGMENT_COLUMNS, flat, format, out)


def _segment_lines(rows: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    """For reading: of each segment a line of sums, and a line for each example."""
    width = max(len(visible(row[0])) for row in rows)
    for name, urls, pages, failed, depth, deepest, chars, bytes_, examples in rows:
        sums = f"{count_of(pages, 'page')} of {count_of(urls, 'URL')}"
        if failed:
            sums += f", {number(failed)} failed"
        if pages:
            sums += f"; {depth:.1f} clicks on average, {deepest} at most; {number(chars)} characters, {size(bytes_)}"
        yield f"{visible(name):<{width}}  {sums}"
        yield from (f"{'':<{width}}  {visible(url)}" for url in examples)
