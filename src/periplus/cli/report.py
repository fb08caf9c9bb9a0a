"""`periplus report`: one HTML page with what was found."""

from __future__ import annotations

from pathlib import Path

import click

from periplus.cli.options import collection_option, found_collection
from periplus.errors import UsageError


@click.command()
@collection_option
@click.option("--site", default="", metavar="KEY", help="Which site, where the collection has several starts.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The file to write. By default report.html in the collection's folder.")
@click.option("--near/--no-near", default=None, help="Compare texts for near duplicates; by default where there are at most 20,000 pages.")
def report(collection: Path | None, site: str, output: Path | None, near: bool | None) -> None:
    """Write one page that shows what was found.

    An HTML file that needs nothing else: what to repair first, every finding with its pages, the map, dead links, redirects, duplicates,
    sizes, depth, links to other sites. Long tables turn pages, sort and filter. An earlier report there is written over.
    """
    from periplus.api.collection import open_collection

    with open_collection(found_collection(collection)) as opened:
        try:
            path = opened.report(output, site, near=near)
        except OSError as error:
            raise UsageError(f"the report cannot be written to {error.filename}: {error.strerror}. Name another place with -o.") from None
    click.echo(path)
