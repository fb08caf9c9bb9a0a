"""`periplus map`: the structure of a crawled site, as a tree to read or a file for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from periplus.cli.options import collection_option, columns_of, draws_boxes, found_collection, opened, output_option
from periplus.errors import UsageError


@click.command("map")
@collection_option
@click.option("--site", default="", metavar="KEY", help="Which site, where the collection has several starts: `example.org`, `localhost:8000`.")
@click.option("-f", "--format", type=click.Choice(("text", "json", "xml")), default="text", show_default=True, help="Text is folded to --max-nodes.")
@output_option
@click.option("--max-nodes", type=click.IntRange(1), default=60, show_default=True, help="Pages named in the text; the others are counted where they belong.")
@click.option("--max-depth", type=click.IntRange(0), help="Last layer shown. By default all; while a crawl goes on, the last complete one.")
@click.option("--scale", type=click.Choice(("normalised", "published")), help="Ranks that sum to 1 (the default), or PR >= 1-k as published.")
@click.option("--rounds", type=click.IntRange(0, 1000), help="Take the published rank after so many rounds, not when it settles.")
@click.option("--damping", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.85, show_default=True, help="Chance of following a link.")
@click.option("--values", default="", metavar="A,B,...", help="Which values stand beside each URL in json and xml; by default all.")
def site_map(collection: Path | None, format: str, output: Path | None, max_depth: int | None, **flags: Any) -> None:
    """Show the structure of a crawled site as a tree.

    Each page hangs from a page one click nearer to the home page: of several, from the one with the greatest rank. Works while a crawl
    goes on, too. The score is the rank as 0 to 100, on a logarithmic scale.
    """
    from periplus.api.collection import open_collection
    from periplus.present.map_values import VALUES, chosen

    values = tuple(part.strip() for part in flags["values"].split(",") if part.strip()) or VALUES
    chosen(values)
    scale = flags["scale"] or ("normalised" if flags["rounds"] is None else "published")
    if scale == "normalised" and flags["rounds"] is not None:
        raise UsageError("--rounds counts on the published scale: leave --scale out, or say --scale published")
    with open_collection(found_collection(collection)) as opened_collection:
        site = opened_collection.map(flags["site"], scale=scale, damping=flags["damping"], rounds=flags["rounds"])
    with opened(output, exact=format != "text") as out:
        if format == "json":
            site.write_json(out, values=values, max_depth=max_depth)
        elif format == "xml":
            site.write_xml(out, values=values, max_depth=max_depth)
        else:
            plain = not draws_boxes(out)
            for line in site.text(width=columns_of(out), max_nodes=flags["max_nodes"], max_depth=max_depth, ascii_only=plain):
                out.write(line + "\n")
