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
def report(collection: Path | None, site: str, output: Path | None) -> None:
    """Write one page that shows what was found.

    An HTML file that needs nothing else: what became of every URL, dead links with the pages that hold them, the map, redirects,
    duplicates, links to other sites. An earlier report there is written over.
    """
    from periplus.api.collection import open_collection

    with open_collection(found_collection(collection)) as opened:
        try:
            path = opened.report(output, site)
        except OSError as error:
            raise UsageError(f"the report cannot be written to {error.filename}: {error.strerror}. Name another place with -o.") from None
    click.echo(path)
