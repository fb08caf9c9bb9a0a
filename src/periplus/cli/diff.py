"""`periplus diff`: what changed between two runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from periplus.cli.options import collection_option, found_collection, opened, output_option
from periplus.errors import UsageError

DIFFERENT = 5  # with --exit-code: something differs


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN RUN]")
@collection_option
@click.option("--other", type=click.Path(path_type=Path, file_okay=False), help="Take the second run from this collection.")
@click.option("--site", default="", metavar="KEY", help="Which site, where the collection has several starts.")
@click.option("-f", "--format", type=click.Choice(("text", "html", "json")), default="text", show_default=True, help="JSON has every list whole.")
@output_option
@click.option("--links", is_flag=True, help="Name each link that came or went; else how many each page has.")
@click.option("--most", type=click.IntRange(-1), default=20, show_default=True, help="Entries of each list in the text; -1: all.")
@click.option("--exit-code", is_flag=True, help=f"End with {DIFFERENT} when anything differs.")
def diff(runs: tuple[str, ...], collection: Path | None, other: Path | None, format: str, output: Path | None, **flags: Any) -> None:
    """Compare two runs: pages, links, the map, issues.

    A run is named by its number, or as last, last-1 and so on; by default the last two are compared, with --other the last of each
    collection. `periplus status` lists the runs. Issues are those that the pages' own fields and links tell.
    """
    from periplus.api.comparison import RunChoice, compare_runs
    from periplus.present.diff_html import diff_page
    from periplus.present.diff_json import write_diff_json
    from periplus.present.diff_text import diff_lines

    if len(runs) not in (0, 2):
        raise UsageError("name two runs, or none for the last two: periplus diff last-1 last")
    folder = found_collection(collection)
    before, after = runs or (("last", "last") if other else ("last-1", "last"))
    found = compare_runs(RunChoice(folder, before), RunChoice(other or folder, after), flags["site"])
    with opened(output, exact=format != "text") as out:
        if format == "json":
            write_diff_json(found, out)
        elif format == "html":
            out.write(diff_page(found))
        else:
            out.writelines(line + "\n" for line in diff_lines(found, most=flags["most"], links=flags["links"]))
    if flags["exit_code"] and not found.is_empty:
        sys.exit(DIFFERENT)
