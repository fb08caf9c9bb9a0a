"""`periplus duplicates`: which pages say the same as others."""

from __future__ import annotations

from pathlib import Path

import click

from periplus.cli.options import collection_option, columns_of, found_collection, opened, output_option
from periplus.cli.watching import Watch

FORMATS = ("text", "json", "csv")


@click.command()
@click.argument("site", default="", metavar="[SITE]")
@collection_option
@click.option("--near", type=click.FloatRange(0.3, 1), default=0.8, show_default=True, help="Runs of five words that near pages share; 1: none.")
@click.option("-f", "--format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--json", "format", flag_value="json", help="The same as -f json.")
@click.option("--csv", "format", flag_value="csv", help="The same as -f csv: a row a page.")
@click.option("--most", type=click.IntRange(-1), default=10, show_default=True, help="Pages of a group, and ten times as many groups, in text; -1: all.")
@output_option
def duplicates(site: str, collection: Path | None, near: float, format: str, most: int, output: Path | None) -> None:
    """List pages that say the same, or nearly the same.

    In groups, each with the page that stands for it and why: of the same text the version with diacritics, then the one that pages name as
    canonical, the nearest to the start, the one with the shortest URL. Encoding and markup do not count. SITE: of this site only.

    \b
    periplus duplicates                          groups, the largest first
    periplus duplicates --near 1                 only pages of the very same text
    periplus duplicates example.org --near 0.6   less alike, too
    periplus duplicates --csv -o same.csv        a row a page, for a spreadsheet
    """
    from periplus.api.collection import open_collection
    from periplus.present.duplicate_text import COLUMNS, duplicate_lines, duplicate_rows, write_duplicate_json
    from periplus.present.tables import write_table

    with open_collection(found_collection(collection)) as kept:
        found = kept.duplicates(site, near=near, watch=Watch())
    with opened(output, exact=format != "text") as out:
        if format == "json":
            write_duplicate_json(found, out)
        elif format == "csv":
            write_table(COLUMNS, duplicate_rows(found), "csv", out)
        else:
            out.writelines(line + "\n" for line in duplicate_lines(found, width=columns_of(out), most=most))
